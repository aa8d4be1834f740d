"""Norms, compared on one's own data: which to use, what it gains, and how sure that is; and the cohort they need."""

from evenscore.comparison.choosing import choose_cohort
from evenscore.comparison.cohort_choice import CohortCandidate, CohortChoice
from evenscore.comparison.cohorts import CohortDiagnostics, CohortMember, HiddenTarget
from evenscore.comparison.comparison import Comparison, Figures, MethodResult, RunFacts
from evenscore.comparison.data import DataSummary, SideSummary
from evenscore.comparison.methods import Method
from evenscore.comparison.run import compare
from evenscore.comparison.trials import ComparedTrials
from evenscore.comparison.verdict import Verdict

__all__ = [
    "CohortCandidate",
    "CohortChoice",
    "CohortDiagnostics",
    "CohortMember",
    "ComparedTrials",
    "Comparison",
    "DataSummary",
    "Figures",
    "HiddenTarget",
    "Method",
    "MethodResult",
    "RunFacts",
    "SideSummary",
    "Verdict",
    "choose_cohort",
    "compare",
]
