"""evenscore: speaker-verification scores in, normalized and calibrated log-likelihood ratios out.

Everything public is exported here; modules load when a name is first used, so ``import evenscore`` is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from evenscore._version import __version__

if TYPE_CHECKING:
    from evenscore.calibrate import (
        CALIBRATIONS,
        BayesianCalibration,
        Calibration,
        GaussianCalibration,
        LogisticCalibration,
        NormalGammaPrior,
        PavCalibration,
        UnsupervisedCalibration,
        calibration_from_dict,
        cross_calibrate,
    )
    from evenscore.errors import EvenscoreError, FileError, InputError
    from evenscore.files import (
        FORMATS,
        read,
        read_embeddings,
        read_scores,
        read_speakers,
        read_trials,
        sniff,
        write,
    )
    from evenscore.files.calibration_json import load_calibration, save_calibration
    from evenscore.files.model_json import load_model, save_model
    from evenscore.metrics import (
        OperatingPoint,
        SortedScores,
        act_dcf,
        auc,
        bayes_error_curve,
        bootstrap,
        bootstrap_det,
        calibration_loss,
        cllr,
        detection_costs,
        eer,
        equal_error_rate,
        equalized_weights,
        evaluate,
        evaluate_by,
        min_cllr,
        min_dcf,
        p_fa_at,
        p_miss_at,
        paired_test,
        roc,
        rocch,
        sort_scores,
    )
    from evenscore.model import (
        FitResult,
        HiddenPosterior,
        ScoreModel,
        ScoreModelNormalizer,
        VarianceTable,
        fit_score_model,
        leave_one_speaker_out,
        log_likelihood,
    )
    from evenscore.model.simulate import simulate, simulate_blocks
    from evenscore.norms import (
        CONVENTIONS,
        Conditions,
        NormOptions,
        normalize,
        prepare_norm,
    )
    from evenscore.plda import PLDA, PLDAFit, fit_plda
    from evenscore.plot import (
        plot_bayes_error,
        plot_det,
        plot_histograms,
        plot_norm_effect,
        plot_reliability,
        plot_tippett,
        save_figure,
    )
    from evenscore.scoring import EmbeddingScores, average_embeddings, make_cohort, score_embeddings
    from evenscore.sources import Bilinear, BilinearNormalizer, Cosine, DotProduct, score_blocks
    from evenscore.tables import (
        NONTARGET,
        TARGET,
        UNKNOWN,
        Embeddings,
        Labels,
        ScoreBlocks,
        ScoreMatrix,
        TrialList,
    )

_HOME = {
    "evenscore.errors": ("EvenscoreError", "FileError", "InputError"),
    "evenscore.files": (
        "FORMATS",
        "read",
        "read_embeddings",
        "read_scores",
        "read_speakers",
        "read_trials",
        "sniff",
        "write",
    ),
    "evenscore.files.calibration_json": ("load_calibration", "save_calibration"),
    "evenscore.files.model_json": ("load_model", "save_model"),
    "evenscore.metrics": (
        "OperatingPoint",
        "SortedScores",
        "act_dcf",
        "auc",
        "bayes_error_curve",
        "bootstrap",
        "bootstrap_det",
        "calibration_loss",
        "cllr",
        "paired_test",
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
        "roc",
        "rocch",
        "sort_scores",
    ),
    "evenscore.model": (
        "FitResult",
        "HiddenPosterior",
        "ScoreModel",
        "ScoreModelNormalizer",
        "VarianceTable",
        "fit_score_model",
        "leave_one_speaker_out",
        "log_likelihood",
    ),
    "evenscore.model.simulate": ("simulate", "simulate_blocks"),
    "evenscore.norms": (
        "CONVENTIONS",
        "Conditions",
        "NormOptions",
        "normalize",
        "prepare_norm",
    ),
    "evenscore.plda": ("PLDA", "PLDAFit", "fit_plda"),
    "evenscore.scoring": ("EmbeddingScores", "average_embeddings", "make_cohort", "score_embeddings"),
    "evenscore.plot": (
        "plot_bayes_error",
        "plot_det",
        "plot_histograms",
        "plot_norm_effect",
        "plot_reliability",
        "plot_tippett",
        "save_figure",
    ),
    "evenscore.sources": ("Bilinear", "BilinearNormalizer", "Cosine", "DotProduct", "score_blocks"),
    "evenscore.calibrate": (
        "CALIBRATIONS",
        "BayesianCalibration",
        "Calibration",
        "GaussianCalibration",
        "LogisticCalibration",
        "NormalGammaPrior",
        "PavCalibration",
        "UnsupervisedCalibration",
        "calibration_from_dict",
        "cross_calibrate",
    ),
    "evenscore.tables": (
        "NONTARGET",
        "TARGET",
        "UNKNOWN",
        "Embeddings",
        "Labels",
        "ScoreBlocks",
        "ScoreMatrix",
        "TrialList",
    ),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = [  # noqa: PLE0604, RUF100
    "CALIBRATIONS",
    "CONVENTIONS",
    "FORMATS",
    "NONTARGET",
    "PLDA",
    "TARGET",
    "UNKNOWN",
    "BayesianCalibration",
    "Bilinear",
    "BilinearNormalizer",
    "Calibration",
    "Conditions",
    "Cosine",
    "DotProduct",
    "EmbeddingScores",
    "Embeddings",
    "EvenscoreError",
    "FileError",
    "FitResult",
    "GaussianCalibration",
    "HiddenPosterior",
    "InputError",
    "Labels",
    "LogisticCalibration",
    "NormOptions",
    "NormalGammaPrior",
    "OperatingPoint",
    "PLDAFit",
    "PavCalibration",
    "ScoreBlocks",
    "ScoreMatrix",
    "ScoreModel",
    "ScoreModelNormalizer",
    "SortedScores",
    "TrialList",
    "UnsupervisedCalibration",
    "VarianceTable",
    "__version__",
    "act_dcf",
    "auc",
    "average_embeddings",
    "bayes_error_curve",
    "bootstrap",
    "bootstrap_det",
    "calibration_from_dict",
    "calibration_loss",
    "cllr",
    "cross_calibrate",
    "detection_costs",
    "eer",
    "equal_error_rate",
    "equalized_weights",
    "evaluate",
    "evaluate_by",
    "fit_plda",
    "fit_score_model",
    "leave_one_speaker_out",
    "load_calibration",
    "load_model",
    "log_likelihood",
    "make_cohort",
    "min_cllr",
    "min_dcf",
    "normalize",
    "p_fa_at",
    "p_miss_at",
    "paired_test",
    "plot_bayes_error",
    "plot_det",
    "plot_histograms",
    "plot_norm_effect",
    "plot_reliability",
    "plot_tippett",
    "prepare_norm",
    "read",
    "read_embeddings",
    "read_scores",
    "read_speakers",
    "read_trials",
    "roc",
    "rocch",
    "save_calibration",
    "save_figure",
    "save_model",
    "score_blocks",
    "score_embeddings",
    "simulate",
    "simulate_blocks",
    "sniff",
    "sort_scores",
    "write",
]


def __getattr__(name: str) -> Any:
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module 'evenscore' has no attribute {name!r}")
    value = getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
