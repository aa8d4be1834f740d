"""Features of pairs, b and w, where the speakers of trials may be in the cohort: they are left out fold by fold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.evidence.pair_space import impostor_prediction, pair_space, within_speaker_part
from evenscore.norms.conditions import coded
from evenscore.norms.parts import speakers_meet
from evenscore.tables import ScoreBlocks

__all__ = ["Ridges", "pair_features", "pair_tables"]

Array = npt.NDArray[np.float64]
_FOLDS = 10  # folds of speakers for small cohorts
_FOLDS_LARGE = 8  # and for those with many members, which take longer and lose less
_LARGE = 150


@dataclass(frozen=True, kw_only=True)
class Ridges:
    """How b and w are regularized: the ridge k, the ridge within speakers l, and the most coordinates."""

    impostor: float = 0.3
    within: float = 0.1
    rank: int = 128


def pair_features(blocks: ScoreBlocks, ridges: Ridges) -> dict[str, Array]:
    """Return b and w of each trial, in the shape of the scores."""
    found = pair_tables(blocks, (ridges.impostor,), (ridges.within,), (ridges.rank,))
    return {"b": found["b", ridges.impostor, ridges.rank], "w": found["w", ridges.within, ridges.rank]}


def pair_tables(
    blocks: ScoreBlocks, impostor: Sequence[float], within: Sequence[float], ranks: Sequence[int]
) -> dict[tuple[str, float, int], Array]:
    """Return b and w for several ridges and ranks at once, by ("b" or "w", ridge, rank)."""
    assert blocks.trials.scores is not None  # noqa: S101
    assert blocks.enroll is not None and blocks.test is not None  # noqa: S101, PT018
    keys = [(name, ridge, rank) for rank in ranks for name, some in (("b", impostor), ("w", within)) for ridge in some]
    out = {key: np.zeros(blocks.trials.scores.shape) for key in keys}
    for part in _parts(blocks):
        if min(len(part.enrolments), len(part.tests)) < 2:
            continue  # nothing to compare with: b and w stay 0
        whole = pair_space(part.cohort(blocks), _taken(blocks.cohort_test_speakers, part.tests), max(ranks))
        enroll = whole.enroll(blocks.enroll.scores[np.ix_(part.trial_rows, part.tests)])
        test = whole.test(blocks.test.scores[np.ix_(part.enrolments, part.trial_columns)].T)
        for rank in ranks:
            space, x, y = whole.leading(rank), enroll[:, :rank], test[:, :rank]
            for name, ridge, _ in (key for key in keys if key[2] == rank):
                function = impostor_prediction if name == "b" else within_speaker_part
                part.write(blocks, function(space, x, y, ridge), out[name, ridge, rank])
    return out


@dataclass(frozen=True, kw_only=True, eq=False)
class _Part:
    """Some trials, and the members of the cohort that serve them."""

    enrolments: npt.NDArray[np.intp]  #: of the cohort
    tests: npt.NDArray[np.intp]
    trial_rows: npt.NDArray[np.intp]
    trial_columns: npt.NDArray[np.intp]
    mask: npt.NDArray[np.bool_] | None  #: which pairs of these rows and columns belong here; None: all

    def cohort(self, blocks: ScoreBlocks) -> npt.NDArray[Any]:
        assert blocks.cohort is not None  # noqa: S101
        scores: npt.NDArray[Any] = blocks.cohort.scores[np.ix_(self.enrolments, self.tests)]
        return scores

    def write(self, blocks: ScoreBlocks, table: Array, out: Array) -> None:
        trials = blocks.trials
        if not trials.listed:
            at = np.ix_(self.trial_rows, self.trial_columns)
            out[at] = table if self.mask is None else np.where(self.mask, table, out[at])
            return
        row, column = (
            _places(self.trial_rows, len(trials.enroll_ids)),
            _places(self.trial_columns, len(trials.test_ids)),
        )
        i, j = row[trials.enroll_index], column[trials.test_index]
        mine = (i >= 0) & (j >= 0)
        if self.mask is not None:
            mine[mine] = self.mask[i[mine], j[mine]]
        out[mine] = table[i[mine], j[mine]]


def _places(chosen: npt.NDArray[np.intp], size: int) -> npt.NDArray[np.intp]:
    place = np.full(size, -1, dtype=np.intp)
    place[chosen] = np.arange(len(chosen))
    return place


def _taken(values: npt.NDArray[Any] | None, at: npt.NDArray[np.intp]) -> npt.NDArray[Any] | None:
    return None if values is None else values[at]


def _parts(blocks: ScoreBlocks) -> Iterator[_Part]:
    """Divide the trials by the folds of their two speakers; a trial's cohort is without these two folds.

    Two folds are left out of a target trial, too, whose speakers are in one: else its cohort would be larger than that
    of a non-target trial, and the size would tell them apart.
    """
    assert blocks.cohort is not None  # noqa: S101
    n, m = blocks.cohort.shape
    size = (len(blocks.trials.enroll_ids), len(blocks.trials.test_ids))
    if not speakers_meet(blocks, ("cohort",)):
        everyone = [np.arange(count) for count in (n, m, *size)]
        yield _Part(
            enrolments=everyone[0], tests=everyone[1], trial_rows=everyone[2], trial_columns=everyone[3], mask=None
        )
        return
    fold_of, number = _speaker_folds(blocks)

    cohort_rows = coded(blocks.cohort_enroll_speakers, fold_of, n)
    cohort_columns = coded(blocks.cohort_test_speakers, fold_of, m)
    rows, columns = coded(blocks.enroll_speakers, fold_of, size[0]), coded(blocks.test_speakers, fold_of, size[1])
    for first in range(-1, number):
        for second in range(first, number):
            chosen_rows = np.flatnonzero((rows == first) | (rows == second))
            chosen_columns = np.flatnonzero((columns == first) | (columns == second))
            low = np.minimum(rows[chosen_rows][:, None], columns[chosen_columns][None])
            high = np.maximum(rows[chosen_rows][:, None], columns[chosen_columns][None])
            mask = (low == first) & (high == second)
            if not mask.any():
                continue
            gone = {first, second if second != first else (first + 1) % number} - {-1} if second >= 0 else set()
            yield _Part(
                enrolments=np.flatnonzero(~np.isin(cohort_rows, list(gone))),
                tests=np.flatnonzero(~np.isin(cohort_columns, list(gone))),
                trial_rows=chosen_rows,
                trial_columns=chosen_columns,
                mask=mask,
            )


def _speaker_folds(blocks: ScoreBlocks) -> tuple[dict[Any, int], int]:
    """Return the fold of each cohort speaker: in turn, in an order that does not follow their names."""
    sides = (blocks.cohort_enroll_speakers, blocks.cohort_test_speakers)
    names = sorted({name for side in sides if side is not None for name in side.tolist()} - {None})
    order = np.random.default_rng(0).permutation(len(names))
    number = max(min(len(names), _FOLDS if len(names) <= _LARGE else _FOLDS_LARGE), 1)
    return {names[place]: turn % number for turn, place in enumerate(order)}, number
