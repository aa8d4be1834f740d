from .counting import summarize_table as summarize_table
from .cross_entropy import (
    calibration_loss as calibration_loss,
    cllr as cllr,
    min_cllr as min_cllr,
)
from .detection_cost import (
    BayesErrorCurve as BayesErrorCurve,
    DetectionCost as DetectionCost,
    act_dcf as act_dcf,
    bayes_error_curve as bayes_error_curve,
    detection_costs as detection_costs,
    min_dcf as min_dcf,
)
from .error_rates import (
    EqualErrorRate as EqualErrorRate,
    auc as auc,
    eer as eer,
    equal_error_rate as equal_error_rate,
    p_fa_at as p_fa_at,
    p_miss_at as p_miss_at,
)
from .evaluation import (
    equalized_weights as equalized_weights,
    evaluate as evaluate,
    evaluate_by as evaluate_by,
)
from .evaluation_records import (
    Evaluation as Evaluation,
    EvaluationBy as EvaluationBy,
    NotEvaluated as NotEvaluated,
)
from .forensic import (
    CrossEntropyCurve as CrossEntropyCurve,
    dev_pav as dev_pav,
    ece_curve as ece_curve,
    llr_bounds as llr_bounds,
)
from .hull import (
    Roc as Roc,
    Rocch as Rocch,
    roc as roc,
    rocch as rocch,
)
from .nist import (
    NIST_PRESETS as NIST_PRESETS,
    NistPreset as NistPreset,
    evaluate_nist as evaluate_nist,
)
from .operating_points import OperatingPoint as OperatingPoint
from .points import Points as Points
from .spoofing import (
    SPOOF_COSTS as SPOOF_COSTS,
    SpoofCosts as SpoofCosts,
    SpoofingEvaluation as SpoofingEvaluation,
    evaluate_spoofing as evaluate_spoofing,
)
from .summary import (
    ScoreSummary as ScoreSummary,
    summarize as summarize,
)
from .trials import (
    SortedScores as SortedScores,
    Trials as Trials,
    points_of as points_of,
    sort_scores as sort_scores,
    validate as validate,
)
from .uncertainty import (
    Bootstrap as Bootstrap,
    DetBand as DetBand,
    Interval as Interval,
    PairedTest as PairedTest,
    bootstrap as bootstrap,
    bootstrap_det as bootstrap_det,
    paired_test as paired_test,
)
