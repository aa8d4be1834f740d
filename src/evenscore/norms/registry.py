"""All norms by name: the classical ones, and whatever else registers itself."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Protocol, TypeVar, overload, runtime_checkable

from evenscore.errors import InputError
from evenscore.norms.options import CLASSICAL_METHODS
from evenscore.tables.blocks import ScoreBlocks
from evenscore.tables.score_matrix import ScoreMatrix
from evenscore.tables.trial_list import TrialList

__all__ = ["Normalizer", "norm_methods", "normalize", "prepare_norm", "register_norm"]


class Normalizer(Protocol):
    """A norm that is ready to use."""

    def normalize(self, blocks: ScoreBlocks) -> ScoreMatrix | TrialList:
        """Return the normalized trials, as a matrix or a list just as they came."""
        ...


Normalized = TypeVar("Normalized", covariant=True)


@runtime_checkable
class NormalizesItself(Protocol[Normalized]):
    """Blocks that are not in memory, such as `ChunkedBlocks`: they are normalized where they are."""

    def normalized(self, method: str, *, client: Any = None, **options: Any) -> Normalized:
        """Return the normalized trials, to be computed when they are read."""


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


@overload
def normalize(
    blocks: ScoreBlocks, method: str = "as", *, client: Any = None, **options: Any
) -> ScoreMatrix | TrialList: ...


@overload
def normalize(
    blocks: NormalizesItself[Normalized], method: str = "as", *, client: Any = None, **options: Any
) -> Normalized: ...


def normalize(blocks: Any, method: str = "as", *, client: Any = None, **options: Any) -> Any:
    """Normalize trial scores with their cohort scores.

    Parameters
    ----------
    blocks
        Trials and cohort scores. Which blocks a method needs: Z ``enroll``, T ``test``, S both, ZT and TZ also
        ``cohort``. With the speakers of trials and cohort, a trial's own speakers are left out of its cohort.
        `ChunkedBlocks` are read and normalized tile by tile.
    method
        Name of the norm.
    client
        A `distributed.Client` whose workers read the cohort scores of `ChunkedBlocks`; None does it here.
    **options
        See `prepare_norm`.

    Returns
    -------
    ScoreMatrix or TrialList
        The normalized trials, in the form of ``blocks.trials``; for `ChunkedBlocks` as `ChunkedScores` or
        `ChunkedTrials`, which are computed when they are read or written.

    Examples
    --------
    >>> blocks = ScoreBlocks(
    ...     ScoreMatrix([[3.0, 1.0]], ["e"], ["t1", "t2"]),
    ...     enroll=ScoreMatrix([[2.0, 1.0, 0.0]], ["e"], ["c1", "c2", "c3"]),
    ...     test=ScoreMatrix([[1.5, 0.0], [0.5, 2.0], [-0.5, 1.0]], ["c1", "c2", "c3"], ["t1", "t2"]),
    ... )
    >>> normalize(blocks, "as", top_k=2).scores
    array([[ 3.5, -1. ]])
    >>> normalize(blocks, "z", ddof=1).scores
    array([[2., 0.]])
    """
    if isinstance(blocks, ScoreBlocks):
        return prepare_norm(method, **options).normalize(blocks)
    if not isinstance(blocks, NormalizesItself):
        raise InputError(f"blocks are a {type(blocks).__name__}, but must be ScoreBlocks or ChunkedBlocks")
    return blocks.normalized(method, client=client, **options)
