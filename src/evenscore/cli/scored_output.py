"""Writing scores that a command made: whole, or tile by tile so that a run that was cut short can be continued."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenscore.errors import FileError, InputError
from evenscore.files import FORMATS, write
from evenscore.progress import Progress, silent
from evenscore.tables import ScoreMatrix, ScoreTable, TrialList

if TYPE_CHECKING:
    from evenscore.files.chunked_output import ChunkedOutput

__all__ = ["ScoredOutput", "scored_output", "write_scores"]

_GATHERED = 1 << 28  # bytes of a result that may be brought together in memory, for formats that have no chunks
_ENDINGS = (".zarr", ".parquet", ".pq")


@dataclass(frozen=True, kw_only=True, eq=False)
class ScoredOutput:
    """A place for scores; ``store`` is one that is written tile by tile, None for a file that is written whole."""

    path: str | None
    format: str | None = None
    store: ChunkedOutput | None = None
    client: Any = None
    progress: Progress = silent

    def begin(self, listed: bool, identity: Callable[[], Mapping[str, str]]) -> None:
        """Start a store, or go on with one of a run with the same inputs and options."""
        self.check(listed)
        if self.store is not None:
            self.store.begin(identity())

    def check(self, listed: bool) -> None:
        """Refuse a list of trials that this format has no place for, before anything is computed."""
        if self.store is not None and listed:
            self.store.refuse_lists()

    def write(self, scores: ScoreTable) -> None:
        """Write scores; those that are not in memory must be few if the format has no chunks."""
        assert self.path is not None  # noqa: S101
        if self.store is not None:
            self.store.write(scores, client=self.client, progress=self.progress)
            return
        if not scores.is_in_memory and scores.nbytes > _GATHERED:
            raise FileError(self.path, "these scores are too many for this format; write them to .zarr or .parquet")
        self.progress("writing", 0.9)
        write_scores(scores.in_memory(), self.path, self.format)


@contextmanager
def scored_output(
    path: str | None, format: str | None, *, lazy: bool, resume: bool = False, client: Any = None, progress: Progress
) -> Iterator[ScoredOutput]:
    """Give the output of a command, as a context: ``lazy`` scores are written tile by tile where the format can."""
    if path is not None and not Path(path).absolute().parent.is_dir():  # better now than after the work
        raise FileError(path, "its directory does not exist; create it first")
    place = ScoredOutput(path=path, format=format, client=client, progress=progress)
    if path is None or not lazy:
        if resume:
            raise InputError("--resume goes on with an output that was cut short; give its name with -o")
        yield place
    elif format in ("zarr", "parquet") or (format is None and Path(path).suffix.lower() in _ENDINGS):
        from evenscore.files.chunked_output import ChunkedOutput

        with ChunkedOutput(path, format=format, resume=resume) as store:
            yield ScoredOutput(path=path, format=format, store=store, client=client, progress=progress)
    elif resume:
        raise FileError(path, "only .zarr and .parquet are written in chunks, so --resume has nothing to go on with")
    else:
        yield place


def write_scores(scores: ScoreMatrix | TrialList, output: str, to_format: str | None) -> None:
    """Write scores; labels that are known for all trials choose a text format that has a place for them."""
    endings = tuple(ending for format in FORMATS.values() for ending in format.extensions)
    has_labels = isinstance(scores, TrialList) and scores.labels is not None and not scores.n_unknown
    if to_format is None and has_labels and not output.lower().removesuffix(".gz").endswith(endings):
        to_format = "wespeaker"  # the usual format for such names has no place for labels
    write(scores, output, format=to_format)
