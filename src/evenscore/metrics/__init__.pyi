from .cross_entropy import (
    calibration_loss as calibration_loss,
)
from .cross_entropy import (
    cllr as cllr,
)
from .cross_entropy import (
    min_cllr as min_cllr,
)
from .detection_cost import (
    BayesErrorCurve as BayesErrorCurve,
)
from .detection_cost import (
    DetectionCost as DetectionCost,
)
from .detection_cost import (
    act_dcf as act_dcf,
)
from .detection_cost import (
    bayes_error_curve as bayes_error_curve,
)
from .detection_cost import (
    detection_costs as detection_costs,
)
from .detection_cost import (
    min_dcf as min_dcf,
)
from .error_rates import (
    EqualErrorRate as EqualErrorRate,
)
from .error_rates import (
    auc as auc,
)
from .error_rates import (
    eer as eer,
)
from .error_rates import (
    equal_error_rate as equal_error_rate,
)
from .error_rates import (
    p_fa_at as p_fa_at,
)
from .error_rates import (
    p_miss_at as p_miss_at,
)
from .evaluation import (
    equalized_weights as equalized_weights,
)
from .evaluation import (
    evaluate as evaluate,
)
from .evaluation import (
    evaluate_by as evaluate_by,
)
from .hull import (
    Roc as Roc,
)
from .hull import (
    Rocch as Rocch,
)
from .hull import (
    roc as roc,
)
from .hull import (
    rocch as rocch,
)
from .operating_points import OperatingPoint as OperatingPoint
from .summary import (
    ScoreSummary as ScoreSummary,
)
from .summary import (
    summarize as summarize,
)
from .trials import (
    SortedScores as SortedScores,
)
from .trials import (
    sort_scores as sort_scores,
)
from .trials import (
    validate as validate,
)
from .uncertainty import (
    Bootstrap as Bootstrap,
)
from .uncertainty import (
    DetBand as DetBand,
)
from .uncertainty import (
    Interval as Interval,
)
from .uncertainty import (
    PairedTest as PairedTest,
)
from .uncertainty import (
    bootstrap as bootstrap,
)
from .uncertainty import (
    bootstrap_det as bootstrap_det,
)
from .uncertainty import (
    paired_test as paired_test,
)
