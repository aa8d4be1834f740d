"""How good scores are: error rates, detection costs, Cllr, and how sure we are of them.

Every metric takes ``(scores, labels)``, a labelled `TrialList`, or `SortedScores`, which several metrics can share.
"""

from evenscore.metrics.cross_entropy import calibration_loss, cllr, min_cllr
from evenscore.metrics.detection_cost import (
    BayesErrorCurve,
    DetectionCost,
    act_dcf,
    bayes_error_curve,
    detection_costs,
    min_dcf,
)
from evenscore.metrics.error_rates import EqualErrorRate, auc, eer, equal_error_rate, p_fa_at, p_miss_at
from evenscore.metrics.evaluation import equalized_weights, evaluate, evaluate_by
from evenscore.metrics.hull import Roc, Rocch, roc, rocch
from evenscore.metrics.operating_points import OperatingPoint
from evenscore.metrics.summary import ScoreSummary, summarize
from evenscore.metrics.trials import SortedScores, sort_scores, validate
from evenscore.metrics.uncertainty import (
    Bootstrap,
    DetBand,
    Interval,
    PairedTest,
    bootstrap,
    bootstrap_det,
    paired_test,
)

__all__ = [
    "BayesErrorCurve",
    "Bootstrap",
    "DetBand",
    "DetectionCost",
    "EqualErrorRate",
    "Interval",
    "OperatingPoint",
    "PairedTest",
    "Roc",
    "Rocch",
    "ScoreSummary",
    "SortedScores",
    "act_dcf",
    "auc",
    "bayes_error_curve",
    "bootstrap",
    "bootstrap_det",
    "calibration_loss",
    "cllr",
    "detection_costs",
    "eer",
    "equal_error_rate",
    "equalized_weights",
    "evaluate",
    "evaluate_by",
    "min_cllr",
    "min_dcf",
    "p_fa_at",
    "p_miss_at",
    "paired_test",
    "roc",
    "rocch",
    "sort_scores",
    "summarize",
    "validate",
]
