from . import (
    calibrate as calibrate,
    comparison as comparison,
    engine as engine,
    errors as errors,
    evidence as evidence,
    files as files,
    metrics as metrics,
    model as model,
    norms as norms,
    online as online,
    plda as plda,
    plot as plot,
    progress as progress,
    report as report,
    scoring as scoring,
    sources as sources,
    tables as tables,
)
from ._version import __version__ as __version__
from .calibrate import (
    BayesianCalibration as BayesianCalibration,
    GaussianCalibration as GaussianCalibration,
    LogisticCalibration as LogisticCalibration,
    PavCalibration as PavCalibration,
    SaturatingCalibration as SaturatingCalibration,
    UnsupervisedCalibration as UnsupervisedCalibration,
    cross_calibrate as cross_calibrate,
)
from .comparison import (
    choose_cohort as choose_cohort,
    compare as compare,
)
from .errors import (
    EvenscoreError as EvenscoreError,
    FileError as FileError,
    InputError as InputError,
)
from .evidence import (
    contributions as contributions,
    fit_evidence as fit_evidence,
)
from .files import (
    load_audiomnist_scores as load_audiomnist_scores,
    load_calibration as load_calibration,
    load_model as load_model,
    open_scores as open_scores,
    read as read,
    read_embeddings as read_embeddings,
    read_scores as read_scores,
    read_speakers as read_speakers,
    read_trials as read_trials,
    save_calibration as save_calibration,
    save_model as save_model,
    write as write,
    write_table as write_table,
)
from .metrics import (
    OperatingPoint as OperatingPoint,
    act_dcf as act_dcf,
    bootstrap as bootstrap,
    cllr as cllr,
    eer as eer,
    evaluate as evaluate,
    evaluate_by as evaluate_by,
    min_cllr as min_cllr,
    min_dcf as min_dcf,
    paired_test as paired_test,
)
from .model import (
    ScoreModel as ScoreModel,
    ScoreModelNormalizer as ScoreModelNormalizer,
    adapt_score_model as adapt_score_model,
    fit_score_model as fit_score_model,
    log_likelihood as log_likelihood,
    simulate as simulate,
    simulate_blocks as simulate_blocks,
)
from .norms import (
    Conditions as Conditions,
    FittedNorm as FittedNorm,
    NormOptions as NormOptions,
    fit_norm as fit_norm,
    normalize as normalize,
    prepare_norm as prepare_norm,
    register_norm as register_norm,
)
from .plda import (
    PLDA as PLDA,
    fit_plda as fit_plda,
)
from .report import write_report as write_report
from .scoring import (
    average_embeddings as average_embeddings,
    make_cohort as make_cohort,
    score_embeddings as score_embeddings,
)
from .sources import (
    Cosine as Cosine,
    DotProduct as DotProduct,
    as_table as as_table,
    score_blocks as score_blocks,
)
from .tables import (
    Embeddings as Embeddings,
    LabelledBlocks as LabelledBlocks,
    Labels as Labels,
    ScoreBlocks as ScoreBlocks,
    ScoreMatrix as ScoreMatrix,
    ScoreTable as ScoreTable,
    TrialList as TrialList,
    labels_for as labels_for,
)
