from .choosing import choose_cohort as choose_cohort
from .cohort_choice import (
    CohortCandidate as CohortCandidate,
    CohortChoice as CohortChoice,
)
from .cohorts import (
    CohortDiagnostics as CohortDiagnostics,
    CohortMember as CohortMember,
    HiddenTarget as HiddenTarget,
)
from .comparison import (
    Comparison as Comparison,
    Figures as Figures,
    Judging as Judging,
    MethodResult as MethodResult,
    RunFacts as RunFacts,
)
from .data import DataSummary as DataSummary
from .likeness import (
    Contrast as Contrast,
    SideLikeness as SideLikeness,
)
from .methods import Method as Method
from .run import compare as compare
from .trials import (
    ComparedTrials as ComparedTrials,
    SideSummary as SideSummary,
)
from .verdict import Verdict as Verdict
