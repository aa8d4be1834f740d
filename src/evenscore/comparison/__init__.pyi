from .choosing import choose_cohort as choose_cohort
from .cohort_choice import (
    CohortCandidate as CohortCandidate,
)
from .cohort_choice import (
    CohortChoice as CohortChoice,
)
from .cohorts import (
    CohortDiagnostics as CohortDiagnostics,
)
from .cohorts import (
    CohortMember as CohortMember,
)
from .cohorts import (
    HiddenTarget as HiddenTarget,
)
from .comparison import (
    Comparison as Comparison,
)
from .comparison import (
    Figures as Figures,
)
from .comparison import (
    MethodResult as MethodResult,
)
from .comparison import (
    RunFacts as RunFacts,
)
from .data import (
    DataSummary as DataSummary,
)
from .data import (
    SideSummary as SideSummary,
)
from .methods import Method as Method
from .run import compare as compare
from .trials import ComparedTrials as ComparedTrials
from .verdict import Verdict as Verdict
