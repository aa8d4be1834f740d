"""What the score model is adapted to: trials without labels, some with labels, and their cohort scores, as matrices."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.model.parameters import ScoreModel
from evenscore.tables import NONTARGET, UNKNOWN, LabelledBlocks, Labels, ScoreBlocks, ScoreMatrix, ScoreTable, TrialList
from evenscore.tables.ids import Ids

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["DenseScores", "UnlabelledData", "hidden_scores"]

Array = np.ndarray
UnlabelledData = ScoreMatrix | TrialList | ScoreBlocks | tuple[ScoreMatrix, Labels]
_LARGEST = 50_000_000  # pairs of one matrix: 400 MB, several times over


@dataclass(frozen=True, kw_only=True, eq=False)
class DenseScores:
    """One matrix: finite scores (0 where there is none), which of them exist, and their labels (-1: not known)."""

    scores: Float[Array, "k l"]
    present: npt.NDArray[np.bool_]
    key: npt.NDArray[np.int8]
    enroll_ids: tuple[str, ...] = ()  #: names of the rows

    def of_class(self, h: int) -> npt.NDArray[np.bool_]:
        """Tell which pairs have a score and belong to a class for certain."""
        mask: npt.NDArray[np.bool_] = self.present & (self.key == h)
        return mask

    @property
    def hidden(self) -> npt.NDArray[np.bool_]:
        """Which pairs have a score, but no label."""
        return self.of_class(UNKNOWN)

    @property
    def known(self) -> npt.NDArray[np.bool_]:
        """Which pairs have a score and a label."""
        mask: npt.NDArray[np.bool_] = self.present & (self.key != UNKNOWN)
        return mask

    def log_densities(self, model: ScoreModel) -> Float[Array, "2 k l"]:
        """Return the log-density of every score in each class, as if it were a trial without cohort."""
        mean, variance = (v[:, None, None] for v in (model.mu, model.sigma2 + model.variances.nu))
        density: Float[Array, "2 k l"] = -0.5 * ((self.scores - mean) ** 2 / variance + np.log(2 * np.pi * variance))
        return density

    def standardized(self, center: float, scale: float) -> DenseScores:
        """Return (score - center) / scale."""
        return replace(self, scores=np.where(self.present, (self.scores - center) / scale, 0.0))


def hidden_scores(data: UnlabelledData | Iterable[UnlabelledData]) -> list[DenseScores]:
    """Return every independent matrix with the labels that are known; the others are hidden.

    Rows and columns without any score are left out.
    """
    pair = isinstance(data, tuple) and len(data) == 2 and isinstance(data[1], Labels)
    single = pair or isinstance(data, ScoreTable | ScoreBlocks | LabelledBlocks)
    items: list[Any] = [data] if single else list(data)  # type: ignore[arg-type]
    if not items:
        raise InputError("there are no trials; give a score matrix, a list of trials or score blocks")
    return [_one(item) for item in items]


def _one(item: object) -> DenseScores:
    if isinstance(item, LabelledBlocks):
        raise InputError("these blocks have labels, which would be hidden; give their `blocks`")
    if isinstance(item, ScoreBlocks):
        return _present(*_joined(item))
    scores, labels = item if isinstance(item, tuple) and len(item) == 2 else (item, None)
    if not isinstance(scores, ScoreTable):
        raise InputError("data must be a score matrix, a list of trials, score blocks or pairs (scores, labels)")
    if not scores.is_in_memory:
        raise InputError("scores that are not in memory cannot be looked at in each iteration; read a part of them")
    trials: Any = scores
    if trials.listed:
        return _present(*_joined(ScoreBlocks(trials if labels is None else trials.join(labels))))
    key = None if labels is None else labels.align(trials.enroll_ids, trials.test_ids).matrix
    return _present(trials.scores, key, trials.enroll_ids.tolist())


def _present(scores: npt.NDArray[np.floating], key: npt.NDArray[np.int8] | None, names: list[str]) -> DenseScores:
    """Keep the rows and columns that have scores."""
    _refuse_too_large(*scores.shape)
    key = np.full(scores.shape, UNKNOWN, dtype=np.int8) if key is None else key
    present = ~np.isnan(scores)
    rows, columns = present.any(axis=1), present.any(axis=0)
    kept = np.ix_(rows, columns)
    return DenseScores(
        scores=np.where(present, scores, 0.0).astype(np.float64)[kept],
        present=present[kept],
        key=key[kept],
        enroll_ids=tuple(name for name, there in zip(names, rows, strict=True) if there),
    )


def _refuse_too_large(n_rows: int, n_columns: int) -> None:
    if n_rows * n_columns > _LARGEST:
        raise InputError(
            f"a matrix of {n_rows} x {n_columns} scores is too large to be looked at in each iteration; "
            "take a part of the enrolments and tests"
        )


def _joined(blocks: ScoreBlocks) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int8], list[str]]:
    """Put trials and cohort scores into one matrix: an enrolment has the same hidden variable in all of its scores."""
    trials = blocks.trials
    m, n = len(trials.enroll_ids), len(trials.test_ids)
    cohort_names = [] if blocks.cohort_enroll_ids is None else blocks.cohort_enroll_ids.tolist()
    n_columns = 0 if blocks.cohort_test_ids is None else len(blocks.cohort_test_ids)
    _refuse_too_large(m + len(cohort_names), n + n_columns)
    scores = np.full((m + len(cohort_names), n + n_columns), np.nan)
    key = np.full(scores.shape, UNKNOWN, dtype=np.int8)
    tile = trials.tile
    scores[tile.rows, tile.columns] = tile.scores
    if tile.labels is not None:
        key[tile.rows, tile.columns] = tile.labels
    if blocks.enroll is not None:
        scores[:m, n:] = blocks.enroll.scores
        key[:m, n:] = _known(blocks.enroll_speakers, blocks.cohort_test_speakers, blocks.enroll.shape)
    if blocks.test is not None:
        scores[m:, :n] = blocks.test.scores
        key[m:, :n] = _known(blocks.cohort_enroll_speakers, blocks.test_speakers, blocks.test.shape)
    if blocks.cohort is not None and blocks.cohort_labels is not None:
        labels = blocks.cohort_labels.matrix
        scores[m:, n:] = np.where(labels == UNKNOWN, np.nan, blocks.cohort.scores)
        key[m:, n:] = labels
    return scores, key, [*trials.enroll_ids.tolist(), *cohort_names]


def _known(enroll: Ids | None, test: Ids | None, shape: tuple[int, int]) -> npt.NDArray[np.int8]:
    """Return labels of scores against a cohort: by speaker where both are known, else non-targets."""
    if enroll is None or test is None:
        return np.full(shape, NONTARGET, dtype=np.int8)
    labels = Labels.from_speakers(enroll, test).matrix
    known: npt.NDArray[np.int8] = np.where(labels == UNKNOWN, np.int8(NONTARGET), labels)
    return known
