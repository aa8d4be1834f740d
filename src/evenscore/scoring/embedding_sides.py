"""The sides of a norm, computed from embeddings piece by piece."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.norms.conditions import Conditions
from evenscore.norms.sides import NO_GROUP, Codes, Groups, NormSides, Rows, Side, coded, speaker_codes
from evenscore.progress import Progress, silent
from evenscore.scoring.products import Vectors, score_reader
from evenscore.sources import Bilinear
from evenscore.tables.embeddings import Embeddings
from evenscore.tables.ids import Ids

__all__ = ["EmbeddingSides"]


@dataclass(frozen=True, eq=False)
class EmbeddingSides:
    """Enrolments, tests and cohort, with their scores against each other in bilinear form.

    A scorer treats each embedding by itself, so the left vectors of one product go with the right ones of another:
    enrolments against the cohort are ``scores.left`` with ``cohort_scores.right``.
    """

    enroll: Embeddings
    test: Embeddings
    cohort: Embeddings
    scores: Bilinear
    cohort_scores: Bilinear
    mirrored: bool  #: whether enrolments and tests are the same vectors
    condition: str | None
    progress: Progress = silent

    def of(self, method: str, row: Codes, column: Codes, memory: float) -> NormSides:
        """Return what a classical norm reads, for trials whose enrolments and tests stand at these places."""
        left, right = Vectors.left(self.scores), Vectors.right(self.scores)
        cohort_left, cohort_right = Vectors.left(self.cohort_scores), Vectors.right(self.cohort_scores)
        unrestricted = not self._codes and self.condition is None
        one = self.mirrored and unrestricted and cohort_left.same(cohort_right)
        everyone = np.arange(len(self.enroll))
        tell = _Counter(len(everyone) if one else len(row) + len(column), self.progress)
        return NormSides(
            enroll=self._side("enroll", self.enroll, row, left, cohort_right, tell),
            test=self._side("test", self.test, column, right, cohort_left, tell),
            cohort=self._cohort_side(method, memory) if method in ("zt", "tz") else None,
            enroll_speaker=coded(self.enroll.speakers, self._codes, len(self.enroll))[row],
            test_speaker=coded(self.test.speakers, self._codes, len(self.test))[column],
            both=self._side("enroll", self.enroll, everyone, left, cohort_right, tell) if one else None,
            both_rows=(row, column) if one else None,
        )

    @cached_property
    def _codes(self) -> dict[str, int]:
        return speaker_codes([self.cohort.speakers], [self.enroll.speakers, self.test.speakers])

    def _itself(self, ids: Ids) -> Codes | None:
        """Return where each of these utterances stands in the cohort, None if none of them does."""
        if self._cohort_places.keys().isdisjoint(ids.tolist()):
            return None
        return coded(ids, self._cohort_places, len(ids))

    @cached_property
    def _cohort_places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.cohort.ids.tolist())}

    @cached_property
    def _groups(self) -> Groups:
        return Groups(coded(self.cohort.speakers, self._codes, len(self.cohort)), len(self._codes))

    def _side(
        self, name: str, embeddings: Embeddings, rows: Codes, elements: Vectors, cohort: Vectors, tell: _Counter
    ) -> Side:
        condition, cohort_condition = self._conditions(name, embeddings, rows)
        return Side(
            name=name,
            ids=embeddings.ids[rows],
            cohort_ids=self.cohort.ids,
            read=score_reader(elements, cohort, rows, tell),
            fresh=True,
            speaker=coded(embeddings.speakers, self._codes, len(embeddings))[rows],
            groups=self._groups,
            itself=self._itself(embeddings.ids[rows]),
            condition=condition,
            cohort_condition=cohort_condition,
            itemsize=np.result_type(elements.vectors, cohort.vectors).itemsize,
        )

    def _cohort_side(self, method: str, memory: float) -> Side:
        """Return the cohort against itself, where a member is never an impostor of its own speaker."""
        size, scores = len(self.cohort), self.cohort_scores
        if self._codes and size**2 * scores.dtype.itemsize > memory:
            raise InputError(
                f"{method!r} with own speakers in the cohort needs all {size} x {size} cohort scores at once, "
                f"more than the memory of {memory / 1e9:.1f} GB; allow more, or take a smaller cohort"
            )
        everyone = np.arange(size)
        sides = (Vectors.left(scores), Vectors.right(scores))
        read = score_reader(*(sides if method == "zt" else sides[::-1]), everyone)
        own = everyone if self.cohort.speakers is None else _numbered(self.cohort.speakers)

        def impostors(rows: Rows) -> npt.NDArray[Any]:
            X = read(rows)
            speaker = own[rows][:, None]
            X[(speaker == own) | (speaker == NO_GROUP) | (own == NO_GROUP)] = np.nan
            return X

        condition, cohort_condition = self._conditions("cohort", self.cohort, everyone)
        return Side(
            name="cohort",
            ids=self.cohort.ids,
            cohort_ids=self.cohort.ids,
            read=impostors,
            fresh=True,
            speaker=np.full(size, NO_GROUP, dtype=np.int64),
            groups=self._groups,
            condition=condition,
            cohort_condition=cohort_condition,
            itemsize=scores.dtype.itemsize,
        )

    def _conditions(self, name: str, embeddings: Embeddings, rows: Codes) -> tuple[Codes | None, Codes | None]:
        if self.condition is None:
            return None, None
        mine, theirs = _column(embeddings, self.condition, name), _column(self.cohort, self.condition, "cohort")
        maps = Conditions(enroll=mine, cohort_test=theirs)
        return maps.codes("enroll", embeddings.ids[rows], "cohort_test", self.cohort.ids)


class _Counter:
    """Counts rows of cohort scores, in any thread, and reports which part of all of them is made."""

    def __init__(self, total: int, progress: Progress) -> None:
        self._total, self._progress = max(total, 1), progress
        self._done = 0
        self._lock = Lock()

    def __call__(self, rows: int) -> None:
        with self._lock:
            self._done += rows
            self._progress("cohort scores", min(self._done / self._total, 1.0))


def _numbered(speakers: Ids) -> Codes:
    names = {name: number for number, name in enumerate(dict.fromkeys(speakers.tolist())) if name is not None}
    return coded(speakers, names, len(speakers))


def _column(embeddings: Embeddings, name: str, what: str) -> dict[str, str | None]:
    if name not in embeddings.columns:
        have = ", ".join(embeddings.columns) or "none"
        raise InputError(f"the {what} embeddings have no column {name!r} to be the condition; they have {have}")
    values = embeddings.columns[name].tolist()
    return {key: None if value is None else str(value) for key, value in zip(embeddings.ids, values, strict=True)}
