from . import (
    calibrate as calibrate,
    comparison as comparison,
    data as data,
    evidence as evidence,
    files as files,
    metrics as metrics,
    model as model,
    norms as norms,
    plot as plot,
    report as report,
    scoring as scoring,
)
from ._version import __version__ as __version__
from .calibrate import (
    BayesianCalibration as BayesianCalibration,
    GaussianCalibration as GaussianCalibration,
    LogisticCalibration as LogisticCalibration,
    PavCalibration as PavCalibration,
    SaturatingCalibration as SaturatingCalibration,
    UnsupervisedCalibration as UnsupervisedCalibration,
    cross_validate as cross_validate,
)
from .comparison import (
    Comparison as Comparison,
    compare as compare,
)
from .data import (
    Embeddings as Embeddings,
    LabelledBlocks as LabelledBlocks,
    Labels as Labels,
    ScoreBlocks as ScoreBlocks,
    ScoreMatrix as ScoreMatrix,
    Side as Side,
    TrialList as TrialList,
)
from .errors import (
    EvenscoreError as EvenscoreError,
    FileError as FileError,
    InputError as InputError,
)
from .files import (
    load_verifier as load_verifier,
    read as read,
    read_embeddings as read_embeddings,
    read_metadata as read_metadata,
    read_model as read_model,
    read_scores as read_scores,
    read_speakers as read_speakers,
    read_trials as read_trials,
    save_verifier as save_verifier,
    write as write,
    write_model as write_model,
)
from .metrics import (
    OperatingPoint as OperatingPoint,
    act_dcf as act_dcf,
    bootstrap as bootstrap,
    cllr as cllr,
    eer as eer,
    evaluate as evaluate,
    min_cllr as min_cllr,
    min_dcf as min_dcf,
    paired_test as paired_test,
    posterior_probability as posterior_probability,
)
from .model import (
    FitResult as FitResult,
    ScoreModel as ScoreModel,
    ScoreModelNormalizer as ScoreModelNormalizer,
    fit_score_model as fit_score_model,
    log_likelihood as log_likelihood,
    posterior as posterior,
    simulate as simulate,
    simulate_blocks as simulate_blocks,
)
from .norms import (
    NormOptions as NormOptions,
    as_norm as as_norm,
    at_norm as at_norm,
    az_norm as az_norm,
    fit_norm as fit_norm,
    normalize as normalize,
    prepare_norm as prepare_norm,
    register_norm as register_norm,
    s_norm as s_norm,
    t_norm as t_norm,
    tz_norm as tz_norm,
    z_norm as z_norm,
    zt_norm as zt_norm,
)
from .scoring import (
    PLDA as PLDA,
    Verifier as Verifier,
    fit_plda as fit_plda,
    make_cohort as make_cohort,
    make_scorer as make_scorer,
    make_trials as make_trials,
    score_embeddings as score_embeddings,
)
