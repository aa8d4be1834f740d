"""Training scores by scorers that have never met their speakers, for all that is trained on the training side."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import numpy.typing as npt

from evenscore.calibrate.folds import spread_speakers
from evenscore.errors import InputError
from evenscore.progress import Progress, silent
from evenscore.sources import Scorer
from evenscore.tables import Embeddings, ScoreMatrix

__all__ = ["score_by_folds"]

NOWHERE = -1  # the fold of who is not in the background


def score_by_folds(
    train: Callable[[Embeddings], Scorer],
    background: Embeddings,
    enroll: Embeddings | None = None,
    test: Embeddings | None = None,
    *,
    folds: int = 5,
    progress: Progress = silent,
) -> ScoreMatrix:
    """Score trials of speakers who are in a scorer's own training data, each by a scorer trained without its two.

    The speakers of the background are divided into folds. Trials between speakers of folds f and g are scored by what
    was trained without these two folds, so that they are like those of new speakers: for PLDA, LDA, whitening and
    whatever else is learned. A centre alone needs no folds: `LeftOutCenter` leaves out each trial's speakers exactly.

    Parameters
    ----------
    train
        Makes a scorer from embeddings, such as ``lambda part: fit_plda(part).model``. It is called once for each pair
        of folds.
    background
        What the scorer is trained on; every embedding needs its speaker.
    enroll, test
        The trials' embeddings with their speakers; by default the background, against itself. Who is not in the
        background is in no fold. An id that stands on both sides is one utterance, without a score against itself.
    folds
        How many, at least 3.
    progress
        Called with ``"scoring by folds"`` and the fraction done.

    Examples
    --------
    >>> from evenscore import fit_plda
    >>> rng = np.random.default_rng(0)
    >>> speakers = np.repeat(np.arange(30), 4)
    >>> takes = Embeddings(range(120), rng.normal(size=(30, 6))[speakers] + rng.normal(size=(120, 6)), speakers)
    >>> scores = score_by_folds(lambda part: fit_plda(part).model, takes)
    >>> scores.shape, scores.n_missing
    ((120, 120), 120)
    """
    if folds < 3:
        raise InputError(f"folds is {folds}, but a trial's two speakers can be in two folds, and a third must be left")
    enroll, test = (background if side is None else side for side in (enroll, test))
    fold_of = _folds(background, folds)
    rows, columns, own = (_on(side, fold_of, what) for side, what in _named(enroll, test, background))
    scores = np.full((len(enroll), len(test)), np.nan)
    wanted = sorted({(min(pair), max(pair)) for pair in product(np.unique(rows).tolist(), np.unique(columns).tolist())})
    for number, pair in enumerate(wanted):
        scorer = train(background.take(~np.isin(own, pair)))
        for one, other in {pair, pair[::-1]}:
            row, column = np.flatnonzero(rows == one), np.flatnonzero(columns == other)
            if len(row) and len(column):
                scores[np.ix_(row, column)] = scorer.score(enroll.take(row), test.take(column)).block()
        progress("scoring by folds", (number + 1) / len(wanted))
    itself = test.axis.find(enroll.ids)
    there = np.flatnonzero(itself >= 0)
    scores[there, itself[there]] = np.nan
    return ScoreMatrix(scores, enroll.axis, test.axis, missing="nan")


def _named(*sides: Embeddings) -> list[tuple[Embeddings, str]]:
    return list(zip(sides, ("enrolment", "test", "embedding"), strict=True))


def _folds(background: Embeddings, folds: int) -> dict[str, int]:
    """Return the fold of each speaker."""
    if background.speakers is None:
        raise InputError("the embeddings have no speakers to divide into folds; give them with with_speakers")
    names, counts = np.unique([name for name in background.speakers if name is not None], return_counts=True)
    found = spread_speakers(names.tolist(), counts, folds)
    return dict(zip(names.tolist(), found.tolist(), strict=True))


def _on(side: Embeddings, fold_of: dict[str, int], what: str) -> npt.NDArray[np.intp]:
    """Return the fold of each row; nobody's speaker may be unknown."""
    speakers = [None] * len(side) if side.speakers is None else side.speakers.tolist()
    if None in speakers:
        raise InputError(f"the speaker of {what} {side.ids[speakers.index(None)]!r} is not known; give it, or drop it")
    return np.array([fold_of.get(str(name), NOWHERE) for name in speakers], dtype=np.intp)
