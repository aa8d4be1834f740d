"""Training on matrices with many millions of scores: trials are sampled, their cohorts stay whole."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from evenscore.tables import NONTARGET, TARGET, UNKNOWN, LabelledBlocks, Labels, ScoreMatrix, TrialList

__all__ = ["sampled_own_cohort"]


def sampled_own_cohort(scores: ScoreMatrix, labels: Labels, *, most: int = 150_000) -> LabelledBlocks:
    """Return a labelled matrix as the cohort of some of its trials, the same ones every time.

    Features of trials take a hundred times the memory of their scores, and the head is fitted to a sample anyway.

    Parameters
    ----------
    scores, labels
        As in `LabelledBlocks.own_cohort`.
    most
        About how many trials of each class are taken, at most.

    Examples
    --------
    >>> from evenscore import ScoreModel, simulate
    >>> model = ScoreModel(mu=[0.0, 4.0], alpha=[[1.0], [1.0]], beta=[[0.5], [0.5]], sigma2=[1.0, 1.0])
    >>> scores, labels = simulate(model, range(50), range(50), seed=1)
    >>> len(sampled_own_cohort(scores, labels, most=300).blocks.trials)
    349
    """
    whole = LabelledBlocks.own_cohort(scores, labels).blocks
    assert whole.cohort_labels is not None  # noqa: S101
    key = whole.cohort_labels.matrix
    if scores.n_missing:
        key = np.where(scores.missing, np.int8(UNKNOWN), key)
    chosen = np.sort(np.concatenate([_spread(np.flatnonzero(key == label), most) for label in (TARGET, NONTARGET)]))
    rows, columns = np.divmod(chosen, scores.shape[1])
    trials = TrialList(
        whole.trials.enroll_axis,
        whole.trials.test_axis,
        rows,
        columns,
        scores=scores.scores[rows, columns],
        labels=key[rows, columns],
    )
    return LabelledBlocks(whole.replace(trials=trials))


def _spread(places: npt.NDArray[np.intp], most: int) -> npt.NDArray[np.intp]:
    """Return about so many of the places, spread evenly over rows and columns by a multiplicative hash."""
    if len(places) <= most:
        return places
    mixed = (places.astype(np.uint64) * np.uint64(2654435761)) % np.uint64(1 << 32)
    return places[mixed < np.uint64(int(most / len(places) * (1 << 32)))]
