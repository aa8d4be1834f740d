"""Lists of trials that are not in memory: some of them are read at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from evenscore.errors import InputError
from evenscore.model.patterns import LabelledSums
from evenscore.progress import Progress, silent
from evenscore.scale.chunked_scores import ChunkedScores, hashed
from evenscore.scale.tiles import spans
from evenscore.tables import Labels, TrialList

if TYPE_CHECKING:
    from evenscore.metrics.summary import ScoreSummary

__all__ = ["ChunkedTrials", "ListedTrials", "TrialChunk", "TrialReader", "refuse_unless_chunked"]

_TRIALS = 1 << 20  # that are read at a time, where the data has no chunks of its own


@dataclass(frozen=True)
class TrialChunk:
    """Some trials of a list, and which of all chunks it is."""

    number: int
    trials: slice

    def __str__(self) -> str:
        return f"chunk {self.number} (trials {self.trials.start} to {self.trials.stop - 1})"


@runtime_checkable
class TrialReader(Protocol):
    """Gives some trials of a list. It travels to other machines, so it holds names, not open files."""

    def read(self, trials: slice) -> TrialList:
        """Return some trials, with the ids that they use."""

    def identity(self) -> str:
        """Return a text that changes when the trials change."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ChunkedTrials:
    """A list of scored trials that stays where it is.

    Attributes
    ----------
    size
        Number of trials.
    reader
        Where they come from.
    bounds
        Where chunks begin, and the end of the last one.

    Examples
    --------
    >>> trials = ChunkedTrials.of(TrialList.from_pairs(["e1", "e1"], ["t1", "t2"], scores=[2.0, -1.0]))
    >>> trials
    ChunkedTrials(2 trials, 1 chunks)
    """

    size: int
    reader: TrialReader
    bounds: tuple[int, ...]

    @classmethod
    def of(cls, trials: TrialList) -> ChunkedTrials:
        """Take a list that is in memory."""
        if trials.scores is None:
            raise InputError("the trials have no scores; give a score file or a score matrix")
        return cls(size=len(trials), reader=ListedTrials(trials), bounds=cls.cut(len(trials)))

    @staticmethod
    def cut(size: int) -> tuple[int, ...]:
        """Cut a number of trials into chunks of the usual size."""
        return (0, *(part.stop for part in spans(size, _TRIALS)))

    def chunks(self) -> list[TrialChunk]:
        """Return the chunks of the list."""
        parts = zip(self.bounds[:-1], self.bounds[1:], strict=True)
        return [TrialChunk(number, slice(*part)) for number, part in enumerate(parts)]

    def gather(self) -> TrialList:
        """Return all trials in memory, 13 bytes or more for each."""
        return TrialList.concat([self.reader.read(chunk.trials) for chunk in self.chunks()])

    def summarize(self, labels: Labels | TrialList | None = None, **options: Any) -> ScoreSummary:
        """Count the scores for all metrics at once, see `summarize_chunks`."""
        from evenscore.scale.passes import summarize_chunks

        return summarize_chunks(self, labels, **options)

    def summarize_unlabelled(self) -> ScoreSummary:
        """Count the scores whatever their labels."""
        from evenscore.scale.passes import count_unlabelled

        return count_unlabelled(self)

    def labelled_sums(
        self, labels: Labels | None = None, *, client: Any = None, progress: Progress = silent
    ) -> list[LabelledSums]:
        """Return the sums that training needs, by independent parts of the list.

        A part that is a complete matrix of speakers takes nothing per trial; others are read a second time, and take
        9 bytes for each trial, or a byte for each pair where more than half of them are listed.

        Parameters
        ----------
        labels
            Labels with ids; None takes those of the trials themselves.
        client
            A `distributed.Client` whose workers do it; None does it here.
        progress
            Called with ``"summing scores"`` or ``"listing pairs"`` and the fraction done.
        """
        from evenscore.scale.trial_sums import label_chunks

        return label_chunks(self, labels, client=client, progress=progress)

    def identity(self) -> str:
        """Return a text that changes when the trials change."""
        return hashed(self.reader.identity(), self.bounds)

    def __len__(self) -> int:
        return self.size

    def __repr__(self) -> str:
        return f"ChunkedTrials({self.size} trials, {len(self.bounds) - 1} chunks)"


@dataclass(frozen=True, eq=False)
class ListedTrials:
    """Trials in memory."""

    trials: TrialList

    def read(self, trials: slice) -> TrialList:
        """Return some of them."""
        return self.trials.select(np.arange(trials.start, trials.stop))

    def identity(self) -> str:
        """Return a hash of ids, pairs, scores and labels."""
        table = self.trials
        parts: list[Any] = [table.enroll_ids, table.test_ids, table.enroll_index, table.test_index]
        return hashed(*parts, table.scores, table.labels, *table.measures.values())


def refuse_unless_chunked(scores: object) -> None:
    """Refuse what has neither ids nor chunks, with the way to make them."""
    if not isinstance(scores, ChunkedScores | ChunkedTrials):
        raise InputError(
            f"the scores are a {type(scores).__name__}, but must be ChunkedScores or ChunkedTrials; make them with "
            "as_chunked(scores, enroll_ids, test_ids), or with ChunkedTrials.of(trials)"
        )
