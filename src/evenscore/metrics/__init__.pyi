from .cllr import (
    PriorCurve as PriorCurve,
    cllr as cllr,
    dev_pav as dev_pav,
    ece_curve as ece_curve,
    llr_bounds as llr_bounds,
    min_cllr as min_cllr,
    posterior_probability as posterior_probability,
)
from .costs import (
    SPOOF_COSTS as SPOOF_COSTS,
    DetectionCost as DetectionCost,
    OperatingPoint as OperatingPoint,
    SpoofCosts as SpoofCosts,
    SpoofingEvaluation as SpoofingEvaluation,
    act_dcf as act_dcf,
    bayes_error_curve as bayes_error_curve,
    detection_costs as detection_costs,
    evaluate_spoofing as evaluate_spoofing,
    min_dcf as min_dcf,
)
from .evaluation import (
    NIST_PRESETS as NIST_PRESETS,
    Evaluation as Evaluation,
    EvaluationBy as EvaluationBy,
    NistPreset as NistPreset,
    NotEvaluated as NotEvaluated,
    evaluate as evaluate,
    evaluate_by as evaluate_by,
    evaluate_nist as evaluate_nist,
)
from .points import (
    Hull as Hull,
    Points as Points,
    as_points as as_points,
)
from .rates import (
    DetCurve as DetCurve,
    EqualErrorRate as EqualErrorRate,
    ErrorRates as ErrorRates,
    auc as auc,
    det_curve as det_curve,
    eer as eer,
    equal_error_rate as equal_error_rate,
    miss_rate_at as miss_rate_at,
)
from .resampling import (
    Bootstrap as Bootstrap,
    DetBand as DetBand,
    Interval as Interval,
    Metric as Metric,
    PairedTest as PairedTest,
    bootstrap as bootstrap,
    bootstrap_det as bootstrap_det,
    paired_test as paired_test,
    speakers_from_targets as speakers_from_targets,
)
