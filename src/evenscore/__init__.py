"""evenscore: speaker-verification scores in, normalized and calibrated log-likelihood ratios out.

Everything public is exported here; modules load when a name is first used, so ``import evenscore`` is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from evenscore._home import MODULE_OF
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
        SaturatingCalibration,
        UnsupervisedCalibration,
        calibration_from_dict,
        cross_calibrate,
    )
    from evenscore.comparison import CohortChoice, Comparison, choose_cohort, compare
    from evenscore.errors import EvenscoreError, FileError, InputError
    from evenscore.evidence import CohortEvidence, Contributions, EvidenceNormalizer, contributions, fit_evidence
    from evenscore.experiments.audiomnist_scores import load_audiomnist_scores
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
    from evenscore.files.array_cache import ArrayCache
    from evenscore.files.calibration_json import load_calibration, save_calibration
    from evenscore.files.chunked_output import write_chunks
    from evenscore.files.evidence_json import load_evidence, save_evidence
    from evenscore.files.json_text import read_json
    from evenscore.files.location_scale_json import load_location_scale, save_location_scale
    from evenscore.files.metadata import read_metadata
    from evenscore.files.model_json import load_model, save_model
    from evenscore.files.score_tiles import open_chunked_scores
    from evenscore.files.trial_chunks import open_chunked_trials
    from evenscore.location_scale import (
        LocationScaleFit,
        LocationScaleModel,
        LocationScaleNormalizer,
        fit_location_scale,
        location_scale_bound,
    )
    from evenscore.metrics import (
        OperatingPoint,
        ScoreSummary,
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
        summarize,
    )
    from evenscore.model import (
        AdaptResult,
        FitResult,
        HiddenPosterior,
        ScoreModel,
        ScoreModelNormalizer,
        VarianceTable,
        adapt_score_model,
        fit_score_model,
        leave_one_speaker_out,
        log_likelihood,
    )
    from evenscore.model.simulate import simulate, simulate_blocks
    from evenscore.norms import (
        CONVENTIONS,
        Conditions,
        FittedNorm,
        NormOptions,
        fit_norm,
        norm_methods,
        normalize,
        prepare_norm,
        register_norm,
        register_trainer,
    )
    from evenscore.plda import PLDA, PLDAFit, fit_plda
    from evenscore.plot import (
        plot_bayes_error,
        plot_cohort_choice,
        plot_contributions,
        plot_det,
        plot_histograms,
        plot_norm_effect,
        plot_reliability,
        plot_tippett,
        save_figure,
    )
    from evenscore.progress import silent
    from evenscore.report import write_report
    from evenscore.scale import (
        ChunkedBlocks,
        ChunkedScores,
        ChunkedTrials,
        LabelledChunks,
        as_chunked,
        score_chunks,
        summarize_chunks,
        transform_chunks,
    )
    from evenscore.scoring import EmbeddingScores, average_embeddings, make_cohort, score_embeddings
    from evenscore.sources import Bilinear, BilinearNormalizer, Cosine, DotProduct, score_blocks
    from evenscore.tables import (
        NONTARGET,
        TARGET,
        UNKNOWN,
        Embeddings,
        LabelledBlocks,
        Labels,
        ScoreBlocks,
        ScoreMatrix,
        TrialList,
    )


__all__ = [  # noqa: PLE0604, RUF100
    "CALIBRATIONS",
    "CONVENTIONS",
    "FORMATS",
    "NONTARGET",
    "PLDA",
    "TARGET",
    "UNKNOWN",
    "AdaptResult",
    "ArrayCache",
    "BayesianCalibration",
    "Bilinear",
    "BilinearNormalizer",
    "Calibration",
    "ChunkedBlocks",
    "ChunkedScores",
    "ChunkedTrials",
    "CohortChoice",
    "CohortEvidence",
    "Comparison",
    "Conditions",
    "Contributions",
    "Cosine",
    "DotProduct",
    "EmbeddingScores",
    "Embeddings",
    "EvenscoreError",
    "EvidenceNormalizer",
    "FileError",
    "FitResult",
    "FittedNorm",
    "GaussianCalibration",
    "HiddenPosterior",
    "InputError",
    "LabelledBlocks",
    "LabelledChunks",
    "Labels",
    "LocationScaleFit",
    "LocationScaleModel",
    "LocationScaleNormalizer",
    "LogisticCalibration",
    "NormOptions",
    "NormalGammaPrior",
    "OperatingPoint",
    "PLDAFit",
    "PavCalibration",
    "SaturatingCalibration",
    "ScoreBlocks",
    "ScoreMatrix",
    "ScoreModel",
    "ScoreModelNormalizer",
    "ScoreSummary",
    "SortedScores",
    "TrialList",
    "UnsupervisedCalibration",
    "VarianceTable",
    "__version__",
    "act_dcf",
    "adapt_score_model",
    "as_chunked",
    "auc",
    "average_embeddings",
    "bayes_error_curve",
    "bootstrap",
    "bootstrap_det",
    "calibration_from_dict",
    "calibration_loss",
    "choose_cohort",
    "cllr",
    "compare",
    "contributions",
    "cross_calibrate",
    "detection_costs",
    "eer",
    "equal_error_rate",
    "equalized_weights",
    "evaluate",
    "evaluate_by",
    "fit_evidence",
    "fit_location_scale",
    "fit_norm",
    "fit_plda",
    "fit_score_model",
    "leave_one_speaker_out",
    "load_audiomnist_scores",
    "load_calibration",
    "load_evidence",
    "load_location_scale",
    "load_model",
    "location_scale_bound",
    "log_likelihood",
    "make_cohort",
    "min_cllr",
    "min_dcf",
    "norm_methods",
    "normalize",
    "open_chunked_scores",
    "open_chunked_trials",
    "p_fa_at",
    "p_miss_at",
    "paired_test",
    "plot_bayes_error",
    "plot_cohort_choice",
    "plot_contributions",
    "plot_det",
    "plot_histograms",
    "plot_norm_effect",
    "plot_reliability",
    "plot_tippett",
    "prepare_norm",
    "read",
    "read_embeddings",
    "read_json",
    "read_metadata",
    "read_scores",
    "read_speakers",
    "read_trials",
    "register_norm",
    "register_trainer",
    "roc",
    "rocch",
    "save_calibration",
    "save_evidence",
    "save_figure",
    "save_location_scale",
    "save_model",
    "score_blocks",
    "score_chunks",
    "score_embeddings",
    "silent",
    "simulate",
    "simulate_blocks",
    "sniff",
    "sort_scores",
    "summarize",
    "summarize_chunks",
    "transform_chunks",
    "write",
    "write_chunks",
    "write_report",
]


def __getattr__(name: str) -> Any:
    module = MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module 'evenscore' has no attribute {name!r}")
    value = getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
