"""All norms by name: the classical ones, and whatever else registers itself."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Protocol

from evenscore.errors import InputError
from evenscore.norms.options import CLASSICAL_METHODS
from evenscore.tables.blocks import ScoreBlocks
from evenscore.tables.score_matrix import ScoreMatrix
from evenscore.tables.trial_list import TrialList

__all__ = ["Normalizer", "norm_methods", "prepare_norm", "register_norm"]


class Normalizer(Protocol):
    """A norm that is ready to use."""

    def normalize(self, blocks: ScoreBlocks) -> ScoreMatrix | TrialList:
        """Return the normalized trials, as a matrix or a list just as they came."""
        ...


Factory = Callable[..., Normalizer]

# A name leads to a factory, or to "module:function" of one, which is imported when the norm is first used.
_FACTORIES: dict[str, Factory | str] = {
    **dict.fromkeys(CLASSICAL_METHODS, "evenscore.norms.classical:prepare_classical"),
    "lgsm": "evenscore.norms.score_model:prepare_score_model",
    "evidence": "evenscore.evidence.norm:prepare_evidence",
}


def register_norm(method: str, factory: Factory | str) -> None:
    """Make a norm known under a name.

    Parameters
    ----------
    method
        The name; a name that is taken is an error.
    factory
        Called as ``factory(method, **options)``, returns a `Normalizer`, and refuses options that it does not know;
        or ``"package.module:function"``, imported when it is first used.

    Examples
    --------
    >>> class Halved:
    ...     def normalize(self, blocks):
    ...         return blocks.trials.with_scores(blocks.trials.scores / 2)
    >>> register_norm("halved", lambda method: Halved())
    >>> from evenscore import ScoreMatrix, normalize
    >>> normalize(ScoreBlocks(ScoreMatrix([[3.0]], ["e"], ["t"])), "halved").scores
    array([[1.5]])
    """
    if method in _FACTORIES:
        raise InputError(f"there is a norm {method!r} already; take another name")
    _FACTORIES[method] = factory


def norm_methods() -> tuple[str, ...]:
    """Return the names of all norms.

    Examples
    --------
    >>> norm_methods()[:3]
    ('z', 't', 'zt')
    """
    return tuple(_FACTORIES)


def prepare_norm(method: str = "as", **options: Any) -> Any:
    """Prepare a norm once, to normalize blocks or single trials with it.

    Parameters
    ----------
    method
        Name of the norm: ``"z"``, ``"t"``, ``"zt"``, ``"tz"``, ``"s"``, ``"as"``, ``"at"``, ``"az"``, ``"lgsm"`` (the
        score model), or another one that is registered.
    **options
        For the classical norms: the fields of `NormOptions`, or ``convention`` (``"wespeaker"``, ``"speechbrain"``,
        ``"espnet"``, ``"asv-subtools"``, ``"hyperion"``, ``"bob"``) with single options that differ from it, or a
        record as ``options``; ``conditions``; and the cohort itself, which ZT and TZ need for single trials:
        ``cohort``, ``cohort_labels``, ``cohort_enroll_speakers``, ``cohort_test_speakers``. For the score model:
        ``model``, and the cohort likewise.

    Returns
    -------
    Normalizer
        For the classical norms a `ClassicalNorm`, for the score model with a cohort a `ScoreModelNormalizer`.

    Examples
    --------
    >>> norm = prepare_norm("as", top_k=2, cohort_enroll_speakers=["a", "b", "c"], cohort_test_speakers=["a", "b", "c"])
    >>> norm.normalize_one(3.0, [2.0, 1.0, 0.0], [1.5, 0.5, -0.5])
    3.5
    >>> norm.normalize_one(3.0, [2.0, 1.0, 0.0], [1.5, 0.5, -0.5], enroll_speaker="a")
    5.5
    """
    if method not in _FACTORIES:
        raise InputError(f"there is no norm {method!r}; there are {', '.join(_FACTORIES)}")
    factory = _FACTORIES[method]
    if isinstance(factory, str):
        module, _, name = factory.partition(":")
        factory = getattr(import_module(module), name)
    return factory(method, **options)
