from . import (
    calibrate as calibrate,
)
from . import (
    comparison as comparison,
)
from . import (
    errors as errors,
)
from . import (
    evidence as evidence,
)
from . import (
    files as files,
)
from . import (
    location_scale as location_scale,
)
from . import (
    metrics as metrics,
)
from . import (
    model as model,
)
from . import (
    norms as norms,
)
from . import (
    plda as plda,
)
from . import (
    plot as plot,
)
from . import (
    progress as progress,
)
from . import (
    report as report,
)
from . import (
    scale as scale,
)
from . import (
    scoring as scoring,
)
from . import (
    sources as sources,
)
from . import (
    tables as tables,
)
from ._version import __version__ as __version__
from .calibrate import (
    BayesianCalibration as BayesianCalibration,
)
from .calibrate import (
    GaussianCalibration as GaussianCalibration,
)
from .calibrate import (
    LogisticCalibration as LogisticCalibration,
)
from .calibrate import (
    PavCalibration as PavCalibration,
)
from .calibrate import (
    SaturatingCalibration as SaturatingCalibration,
)
from .calibrate import (
    UnsupervisedCalibration as UnsupervisedCalibration,
)
from .calibrate import (
    cross_calibrate as cross_calibrate,
)
from .comparison import (
    choose_cohort as choose_cohort,
)
from .comparison import (
    compare as compare,
)
from .errors import (
    EvenscoreError as EvenscoreError,
)
from .errors import (
    FileError as FileError,
)
from .errors import (
    InputError as InputError,
)
from .evidence import (
    contributions as contributions,
)
from .evidence import (
    fit_evidence as fit_evidence,
)
from .files import (
    load_audiomnist_scores as load_audiomnist_scores,
)
from .files import (
    load_calibration as load_calibration,
)
from .files import (
    load_model as load_model,
)
from .files import (
    read as read,
)
from .files import (
    read_embeddings as read_embeddings,
)
from .files import (
    read_scores as read_scores,
)
from .files import (
    read_speakers as read_speakers,
)
from .files import (
    read_trials as read_trials,
)
from .files import (
    save_calibration as save_calibration,
)
from .files import (
    save_model as save_model,
)
from .files import (
    write as write,
)
from .metrics import (
    OperatingPoint as OperatingPoint,
)
from .metrics import (
    act_dcf as act_dcf,
)
from .metrics import (
    bootstrap as bootstrap,
)
from .metrics import (
    cllr as cllr,
)
from .metrics import (
    eer as eer,
)
from .metrics import (
    evaluate as evaluate,
)
from .metrics import (
    evaluate_by as evaluate_by,
)
from .metrics import (
    min_cllr as min_cllr,
)
from .metrics import (
    min_dcf as min_dcf,
)
from .metrics import (
    paired_test as paired_test,
)
from .model import (
    ScoreModel as ScoreModel,
)
from .model import (
    ScoreModelNormalizer as ScoreModelNormalizer,
)
from .model import (
    adapt_score_model as adapt_score_model,
)
from .model import (
    fit_score_model as fit_score_model,
)
from .model import (
    log_likelihood as log_likelihood,
)
from .model import (
    simulate as simulate,
)
from .model import (
    simulate_blocks as simulate_blocks,
)
from .norms import (
    Conditions as Conditions,
)
from .norms import (
    FittedNorm as FittedNorm,
)
from .norms import (
    NormOptions as NormOptions,
)
from .norms import (
    fit_norm as fit_norm,
)
from .norms import (
    normalize as normalize,
)
from .norms import (
    prepare_norm as prepare_norm,
)
from .norms import (
    register_norm as register_norm,
)
from .norms import (
    register_trainer as register_trainer,
)
from .plda import (
    PLDA as PLDA,
)
from .plda import (
    fit_plda as fit_plda,
)
from .report import write_report as write_report
from .scoring import (
    average_embeddings as average_embeddings,
)
from .scoring import (
    make_cohort as make_cohort,
)
from .scoring import (
    score_embeddings as score_embeddings,
)
from .sources import (
    Cosine as Cosine,
)
from .sources import (
    DotProduct as DotProduct,
)
from .sources import (
    score_blocks as score_blocks,
)
from .tables import (
    Embeddings as Embeddings,
)
from .tables import (
    LabelledBlocks as LabelledBlocks,
)
from .tables import (
    Labels as Labels,
)
from .tables import (
    ScoreBlocks as ScoreBlocks,
)
from .tables import (
    ScoreMatrix as ScoreMatrix,
)
from .tables import (
    TrialList as TrialList,
)
