"""The four blocks of scores of a norm, where some or all of them are not in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evenscore.errors import InputError
from evenscore.scale.chunked_scores import ChunkedScores, as_chunked, hashed
from evenscore.scale.chunked_trials import ChunkedTrials
from evenscore.tables import Labels, TrialList
from evenscore.tables.blocks import aligned_block, shared_ids, side_speakers
from evenscore.tables.ids import Ids, IdsLike

__all__ = ["ChunkedBlocks"]


@dataclass(frozen=True, eq=False, repr=False, init=False)
class ChunkedBlocks:
    """Trial scores and their cohort scores, like `ScoreBlocks`, but read tile by tile.

    Parameters
    ----------
    trials
        `ChunkedScores`, `ChunkedTrials`, a score matrix, a list of trials, or scores of embeddings (`Bilinear`).
    enroll, test, cohort
        Cohort scores, in any of these forms but lists.
    cohort_labels, enroll_speakers, test_speakers, cohort_enroll_speakers, cohort_test_speakers
        As in `ScoreBlocks`. Speakers of listed trials are maps from id to speaker.

    Examples
    --------
    >>> from evenscore import ScoreMatrix
    >>> blocks = ChunkedBlocks(
    ...     ScoreMatrix([[3.0]], ["e"], ["t"]), enroll=ScoreMatrix([[1.0, 0.0]], ["e"], ["c1", "c2"])
    ... )
    >>> blocks
    ChunkedBlocks(trials 1 x 1, enroll 1 x 2)
    """

    trials: ChunkedScores | ChunkedTrials
    enroll: ChunkedScores | None
    test: ChunkedScores | None
    cohort: ChunkedScores | None
    cohort_labels: Labels | None
    enroll_speakers: Ids | Mapping[str, str] | None
    test_speakers: Ids | Mapping[str, str] | None
    cohort_enroll_speakers: Ids | None
    cohort_test_speakers: Ids | None

    def __init__(
        self,
        trials: Any,
        *,
        enroll: Any = None,
        test: Any = None,
        cohort: Any = None,
        cohort_labels: Labels | None = None,
        enroll_speakers: IdsLike | Mapping[str, str] | None = None,
        test_speakers: IdsLike | Mapping[str, str] | None = None,
        cohort_enroll_speakers: IdsLike | Mapping[str, str] | None = None,
        cohort_test_speakers: IdsLike | Mapping[str, str] | None = None,
    ) -> None:
        if isinstance(trials, TrialList):
            trials = ChunkedTrials.of(trials)
        elif not isinstance(trials, ChunkedTrials):
            trials = as_chunked(trials)
        enroll, test, cohort = (None if block is None else as_chunked(block) for block in (enroll, test, cohort))
        rows = shared_ids(cohort, test, "enroll_ids", "the cohort's enrolments (rows of `cohort` and `test`)")
        columns = shared_ids(cohort, enroll, "test_ids", "the cohort's tests (columns of `cohort` and `enroll`)")
        listed = isinstance(trials, ChunkedTrials)
        if enroll is not None:
            enroll = aligned_block(enroll, None if listed else trials.enroll_ids, columns, "enroll")
        if test is not None:
            test = aligned_block(test, rows, None if listed else trials.test_ids, "test")
        for name, value in {
            "trials": trials,
            "enroll": enroll,
            "test": test,
            "cohort": cohort,
            "cohort_labels": cohort_labels,
        }.items():
            object.__setattr__(self, name, value)
        for name, given, ids in (
            ("enroll_speakers", enroll_speakers, self.enroll_ids),
            ("test_speakers", test_speakers, self.test_ids),
            ("cohort_enroll_speakers", cohort_enroll_speakers, rows),
            ("cohort_test_speakers", cohort_test_speakers, columns),
        ):
            by_id = listed and not name.startswith("cohort")  # which ids there are, the chunks of the list will tell
            if by_id and given is not None and not isinstance(given, Mapping):
                raise InputError(f"{name} of listed trials must be a map from id to speaker")
            object.__setattr__(self, name, given if by_id else side_speakers(given, ids, name))
        if not isinstance(cohort_labels, Labels | None):
            raise InputError(
                f"cohort_labels are a {type(cohort_labels).__name__}, but must be Labels; make them with "
                "Labels.from_speakers or Labels.from_key"
            )
        if cohort is None and cohort_labels is not None:
            raise InputError("cohort_labels were given without cohort scores; give `cohort` too")

    def normalized(self, method: str, *, client: Any = None, **options: Any) -> ChunkedScores | ChunkedTrials:
        """Return the normalized trials, see `normalize`."""
        from evenscore.scale.normalize import normalize_chunks

        return normalize_chunks(self, method, client=client, **options)

    @property
    def enroll_ids(self) -> Ids | None:
        """Ids of the enrolments; None if the trials are listed and have no cohort scores."""
        if isinstance(self.trials, ChunkedScores):
            return self.trials.enroll_ids
        return None if self.enroll is None else self.enroll.enroll_ids

    @property
    def test_ids(self) -> Ids | None:
        """Ids of the tests; None if the trials are listed and have no cohort scores."""
        if isinstance(self.trials, ChunkedScores):
            return self.trials.test_ids
        return None if self.test is None else self.test.test_ids

    @property
    def cohort_enroll_ids(self) -> Ids | None:
        """Ids of the enrolment cohort, None if there is none."""
        block = self.cohort if self.cohort is not None else self.test
        return None if block is None else block.enroll_ids

    @property
    def cohort_test_ids(self) -> Ids | None:
        """Ids of the test cohort, None if there is none."""
        block = self.cohort if self.cohort is not None else self.enroll
        return None if block is None else block.test_ids

    @property
    def labels_of_cohort(self) -> Labels | None:
        """Labels of the cohort against itself: those that were given, else by speaker, else all non-targets."""
        cohort = self.cohort
        if cohort is None:
            return None
        if self.cohort_labels is not None:
            return self.cohort_labels.align(cohort.enroll_ids, cohort.test_ids)
        rows: Any = self.cohort_enroll_speakers
        columns: Any = self.cohort_test_speakers
        if rows is None or columns is None:  # everybody is somebody else
            n_rows, n_columns = cohort.shape
            rows, columns = range(n_rows), range(n_rows, n_rows + n_columns)
        return Labels.from_speakers(rows, columns, enroll_ids=cohort.enroll_ids, test_ids=cohort.test_ids)

    @property
    def speakers(self) -> dict[str, Any]:
        """The speakers of all sides, as `ScoreBlocks` takes them."""
        names = ("enroll_speakers", "test_speakers", "cohort_enroll_speakers", "cohort_test_speakers")
        return {name: getattr(self, name) for name in names}

    def identity(self) -> dict[str, str]:
        """Return for each block, by name, a text that changes when it changes."""
        found = {}
        for name in ("trials", "enroll", "test", "cohort"):
            block = getattr(self, name)
            found[name] = "" if block is None else block.identity()
        labels = self.cohort_labels
        key = None
        if labels is not None:
            key = (labels.enroll_speakers, labels.test_speakers) if labels.by_speaker else labels.matrix
        parts = key if isinstance(key, tuple) else (key,)
        return found | {"labels and speakers": hashed(*parts, *self.speakers.values())}

    def __repr__(self) -> str:
        listed = isinstance(self.trials, ChunkedTrials)
        parts = [f"{len(self.trials)} listed trials" if isinstance(self.trials, ChunkedTrials) else ""]
        names = ("enroll", "test", "cohort") if listed else ("trials", "enroll", "test", "cohort")
        for name in names:
            block = getattr(self, name)
            if block is not None:
                parts.append(f"{name} {block.shape[0]} x {block.shape[1]}")
        return f"ChunkedBlocks({', '.join(part for part in parts if part)})"
