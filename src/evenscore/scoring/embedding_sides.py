"""The sides of a norm, computed from embeddings piece by piece."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.norms.conditions import Conditions
from evenscore.norms.sides import NO_GROUP, Codes, Groups, NormSides, Rows, Side, coded, speaker_codes
from evenscore.scoring.products import cohort_reader, same_scores
from evenscore.sources import Bilinear, Scorer
from evenscore.tables.embeddings import Embeddings
from evenscore.tables.ids import Ids, positions
from evenscore.tables.score_matrix import ScoreMatrix
from evenscore.tables.trial_list import TrialList

__all__ = ["embedding_sides"]


def embedding_sides(
    trials: ScoreMatrix | TrialList,
    enroll: Embeddings,
    test: Embeddings,
    cohort: Embeddings,
    scorer: Scorer,
    method: str,
    condition: str | None,
    memory: float,
) -> NormSides:
    """Return what a classical norm reads of these embeddings."""
    codes = speaker_codes([cohort.speakers], [enroll.speakers, test.speakers])
    groups = Groups(coded(cohort.speakers, codes, len(cohort)), len(codes))
    maker = _Maker(cohort, groups, codes, condition)
    left, right = scorer.score(enroll, cohort), scorer.score(cohort, test)
    enroll_rows = positions(enroll.ids, trials.enroll_ids, "enrolment", "the embeddings")
    test_rows = positions(test.ids, trials.test_ids, "test", "the embeddings")
    cohort_side = None
    if method in ("zt", "tz"):
        cohort_side = maker.cohort_side(scorer.score(cohort, cohort), method, memory)
    one = enroll is test and not codes and condition is None and same_scores(left, right)
    return NormSides(
        enroll=maker.side("enroll", left, enroll, enroll_rows),
        test=maker.side("test", right, test, test_rows),
        cohort=cohort_side,
        enroll_speaker=coded(enroll.speakers, codes, len(enroll))[enroll_rows],
        test_speaker=coded(test.speakers, codes, len(test))[test_rows],
        both=maker.side("enroll", left, enroll, np.arange(len(enroll))) if one else None,
        both_rows=(enroll_rows, test_rows) if one else None,
    )


@dataclass(frozen=True, eq=False)
class _Maker:
    cohort: Embeddings
    groups: Groups
    codes: dict[str, int]
    condition: str | None

    def side(self, name: str, scores: Bilinear, embeddings: Embeddings, rows: npt.NDArray[np.intp]) -> Side:
        read = _of_rows(cohort_reader(scores, of=name), rows)
        condition, cohort_condition = self._conditions(name, embeddings, rows)
        return Side(
            name=name,
            ids=embeddings.ids[rows],
            cohort_ids=self.cohort.ids,
            read=read,
            fresh=True,
            speaker=coded(embeddings.speakers, self.codes, len(embeddings))[rows],
            groups=self.groups,
            condition=condition,
            cohort_condition=cohort_condition,
            itemsize=scores.dtype.itemsize,
        )

    def cohort_side(self, scores: Bilinear, method: str, memory: float) -> Side:
        """Return the cohort against itself, where a member is never an impostor of its own speaker."""
        if self.codes and len(self.cohort) ** 2 * scores.dtype.itemsize > memory:
            raise InputError(
                f"{method!r} with own speakers in the cohort needs all {len(self.cohort)} x {len(self.cohort)} cohort "
                f"scores at once, more than the memory of {memory / 1e9:.1f} GB; allow more, or take a smaller cohort"
            )
        speakers = self.cohort.speakers
        own = None if speakers is None else _own_pairs(speakers)
        read = cohort_reader(scores, of="enroll" if method == "zt" else "test")

        def impostors(rows: Rows) -> npt.NDArray[Any]:
            X = read(rows)
            at = np.arange(len(self.cohort))[rows]
            if own is None:
                X[np.arange(len(at)), at] = np.nan
            else:
                X[(own[at][:, None] == own[None, :]) | (own[at][:, None] < 0) | (own[None, :] < 0)] = np.nan
            return X

        condition, cohort_condition = self._conditions("cohort", self.cohort, np.arange(len(self.cohort)))
        return Side(
            name="cohort",
            ids=self.cohort.ids,
            cohort_ids=self.cohort.ids,
            read=impostors,
            fresh=True,
            speaker=np.full(len(self.cohort), NO_GROUP, dtype=np.int64),
            groups=self.groups,
            condition=condition,
            cohort_condition=cohort_condition,
            itemsize=scores.dtype.itemsize,
        )

    def _conditions(
        self, name: str, embeddings: Embeddings, rows: npt.NDArray[np.intp]
    ) -> tuple[Codes | None, Codes | None]:
        if self.condition is None:
            return None, None
        mine = _column(embeddings, self.condition, name)
        theirs = _column(self.cohort, self.condition, "cohort")
        maps = Conditions(enroll=mine, cohort_test=theirs)
        return maps.codes("enroll", embeddings.ids[rows], "cohort_test", self.cohort.ids)


def _of_rows(
    read: Callable[[Rows], npt.NDArray[Any]], rows: npt.NDArray[np.intp]
) -> Callable[[Rows], npt.NDArray[Any]]:
    """Return a reader whose rows are some of another's."""
    if np.array_equal(rows, np.arange(len(rows))):
        return read
    return lambda which: read(rows[which])


def _own_pairs(speakers: Ids) -> Codes:
    names = {name: number for number, name in enumerate(dict.fromkeys(speakers.tolist())) if name is not None}
    return coded(speakers, names, len(speakers))


def _column(embeddings: Embeddings, name: str, what: str) -> dict[str, str | None]:
    if name not in embeddings.columns:
        have = ", ".join(embeddings.columns) or "none"
        raise InputError(f"the {what} embeddings have no column {name!r} to be the condition; they have {have}")
    values = embeddings.columns[name].tolist()
    return {key: None if value is None else str(value) for key, value in zip(embeddings.ids, values, strict=True)}
