"""How far covariances of few speakers are trusted: chosen by trials of speakers who were left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore.calibrate.folds import spread_speakers
from evenscore.errors import InputError
from evenscore.metrics import cllr, min_cllr
from evenscore.tables import Embeddings

if TYPE_CHECKING:
    from jaxtyping import Float

    from evenscore.sources import Scorer

__all__ = ["CHOICES", "CLOSE", "Chosen", "choose_shrinkage", "share_up_to", "shrunk"]

Array = np.ndarray
CHOICES = (0.0, 0.1, 0.3, 0.6, 0.8, 0.9, 0.97)  #: shares of the target that are tried
CLOSE = 0.9  #: the share where too few speakers are there to leave some out
_FOLDS = 3
_FEWEST = 9  # speakers with several embeddings, so that a fold has three of them
_MOST = 1000  # embeddings of a fold that are scored
_NONTARGETS = 20_000  # trials of a fold; all of its targets are taken
_INFLATIONS = 2.0 ** np.arange(0, 5.01, 0.25)


@dataclass(frozen=True)
class Chosen:
    """What was chosen by trials of left-out speakers."""

    shrinkage: float
    inflation: float = 1.0  #: what covariances are multiplied with, so that ratios are no surer than they may be


def shrunk(covariance: Float[Array, "d d"], share: float) -> Float[Array, "d d"]:
    """Return a covariance with this share of it replaced by equal variances in all directions."""
    size = len(covariance)
    return (1 - share) * covariance + share * np.trace(covariance) / size * np.eye(size)


def share_up_to(given: Any, largest: float) -> float:
    """Return a share that was given in place of auto, from 0 to the largest that can be used."""
    if isinstance(given, str) or not 0 <= given <= largest:
        raise InputError(f"shrinkage is {given!r}, but must be 'auto', or from 0 to {largest:g}")
    return float(given)


def choose_shrinkage(
    embeddings: Embeddings,
    train: Callable[[Embeddings, float], Scorer | None],
    *,
    inflate: bool = False,
    progress: Callable[[str, float], None] | None = None,
) -> Chosen:
    """Choose the share of `shrunk` that tells left-out speakers apart best (by min Cllr, the mean of three folds).

    Parameters
    ----------
    embeddings
        With known speakers.
    train
        Trains a scorer with a share; None where the share is too small for the data.
    inflate
        Whether the scores are log-likelihood ratios of Gaussians, whose covariances are inflated then by what gives the
        left-out speakers the least Cllr.
    progress
        Called with ``"shrinkage"`` and the fraction done.
    """
    folds = list(_folds(embeddings))
    if not folds:
        return Chosen(CLOSE)
    found: dict[float, list[tuple[Any, npt.NDArray[np.int8]]]] = {}
    for number, share in enumerate(CHOICES):
        for seen, left_out in folds:
            scorer = train(seen, share)
            if scorer is None:
                found.pop(share, None)
                break
            found.setdefault(share, []).append(_trials(scorer, left_out))
        if progress is not None:
            progress("shrinkage", (number + 1) / len(CHOICES))
    if not found:
        return Chosen(CLOSE)
    loss = {share: np.mean([min_cllr(scores, key) for (scores, _), key in parts]) for share, parts in found.items()}
    best = min(loss, key=lambda share: (loss[share], -share))
    return Chosen(best, _inflation(found[best]) if inflate else 1.0)


def _folds(embeddings: Embeddings) -> Iterator[tuple[Embeddings, Embeddings]]:
    """Yield who is seen and who is left out; nothing if there are too few speakers."""
    names, codes, sizes = np.unique(embeddings.speakers.astype(str), return_inverse=True, return_counts=True)  # type: ignore[union-attr]
    if np.count_nonzero(sizes > 1) < _FEWEST:
        return
    fold = spread_speakers(names.tolist(), sizes * (sizes - 1) // 2, _FOLDS)
    rng = np.random.default_rng(0)
    for number in range(_FOLDS):
        own = rng.permutation(np.flatnonzero(fold == number))
        few = own[: max(int(np.searchsorted(np.cumsum(sizes[own]), _MOST)), 3)]
        yield embeddings.take(fold[codes] != number), embeddings.take(np.isin(codes, few))


def _trials(scorer: Scorer, side: Embeddings) -> tuple[tuple[Any, float], npt.NDArray[np.int8]]:
    """Return scores of pairs and what they have all in common, and the key: all targets and some non-targets."""
    rows, columns = np.triu_indices(len(side), 1)
    speakers = np.unique(side.speakers.astype(str), return_inverse=True)[1]  # type: ignore[union-attr]
    same = speakers[rows] == speakers[columns]
    others = np.flatnonzero(~same)
    if len(others) > _NONTARGETS:
        others = np.random.default_rng(0).choice(others, _NONTARGETS, replace=False)
    kept = np.concatenate([np.flatnonzero(same), others])
    scores = scorer.score(side, side).pairs(rows[kept], columns[kept]).astype(np.float64)
    return (scores, float(getattr(scorer, "constant", 0.0))), same[kept].astype(np.int8)


def _inflation(parts: Sequence[tuple[Any, npt.NDArray[np.int8]]]) -> float:
    """Return what Gaussian covariances are multiplied with: all of a ratio but its constant is divided by it."""
    loss = [
        np.mean([cllr(constant + (scores - constant) / by, key) for (scores, constant), key in parts])
        for by in _INFLATIONS
    ]
    return float(_INFLATIONS[int(np.argmin(loss))])
