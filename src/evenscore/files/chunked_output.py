"""Scores that are written chunk by chunk, so that a run that was cut short can be continued.

Work goes on in the directory ``<name>.partial``: ``data`` is the store or dataset, ``kept`` holds statistics that were
found already, and ``journal.jsonl`` tells what the run is about (its first line) and which chunks are written (a line
each). When all are, ``data`` takes its final name and the rest is removed. The directory appears and goes in one step
each, and is locked in between, so that it can be gone on with from any moment at which a run is killed.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from evenscore._version import __version__
from evenscore.engine.engine import engine_for
from evenscore.errors import FileError, InputError
from evenscore.files.numpy_files import read_array
from evenscore.files.parquet import parquet_parts
from evenscore.files.parquet_chunks import ParquetChunks
from evenscore.files.streams import ZARR_MARKS, PathLike, atomic_output, parsing, reading, writing
from evenscore.files.working_files import held, new_directory, put_in_place, remove_left, take_away
from evenscore.files.zarr_chunks import PlainChunks
from evenscore.files.zarr_store import create_score_store
from evenscore.progress import Progress, silent
from evenscore.tables import Place, ScoreTable
from evenscore.tables.score_table import Source
from evenscore.tables.tile import Grid

__all__ = ["ChunkedOutput", "chunked_format", "write_table"]

_LISTED_BYTES = 1 << 22  # of scores that are written as one part of a parquet dataset: a million trials
_JOURNAL = "journal.jsonl"


def write_table(
    scores: ScoreTable,
    path: PathLike,
    *,
    format: Literal["zarr", "parquet"] | None = None,
    client: Any = None,
    resume: bool = False,
    progress: Progress = silent,
) -> None:
    """Read or compute scores chunk by chunk, and write each of them where it is made.

    Parameters
    ----------
    scores
        What to write.
    path
        A zarr store (``.zarr``), or a directory of parquet files (``.parquet``) in long form. It appears under this
        name when all is written; until then there is ``<path>.partial``.
    format
        By default the end of the name decides.
    client
        A `distributed.Client` whose workers do it; they must see the directory. None does it here.
    resume
        Go on with a run that was cut short: only chunks that are not written yet are made, and the result is the same
        to the byte. If the scores are not the same as then, it is an error.
    progress
        Called with ``"writing"`` and the fraction done.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from evenscore import ScoreMatrix, read_scores
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "out.zarr"
    >>> write_table(ScoreMatrix([[1.5, 2.0]], ["e1"], ["t1", "t2"]), path)
    >>> read_scores(path)
    ScoreMatrix(1 enrolments x 2 tests, float64, scores 1.5 to 2, 0 missing)
    """
    if not isinstance(scores, ScoreTable):
        raise InputError(
            f"the scores are a {type(scores).__name__}, but must be a table; make one with "
            "as_table(scores, enroll_ids, test_ids)"
        )
    with ChunkedOutput(path, format=format, resume=resume) as output:
        output.begin({"scores": scores.identity()})
        output.write(scores, client=client, progress=progress)


def chunked_format(path: PathLike, format: str | None = None) -> Literal["zarr", "parquet"]:
    """Return the format of an output that is written chunk by chunk."""
    name = format or Path(path).suffix.lower().removeprefix(".")
    if name == "zarr":
        return "zarr"
    if name in ("parquet", "pq"):
        return "parquet"
    raise FileError(path, "scores that are not in memory are written to .zarr or .parquet; give such a name")


class ChunkedOutput:
    """An output that is written chunk by chunk, and what is known about a run that was cut short.

    Call `begin` with what the result depends on, then `write`. In between, `get` and `put` keep statistics. As a
    context, it leaves nothing behind if something goes wrong before there is anything to go on with.
    """

    def __init__(self, path: PathLike, *, format: str | None = None, resume: bool = False) -> None:
        self.path = Path(os.path.realpath(path))
        self.format = chunked_format(path, format)
        self.resume = resume
        self.partial = self.path.with_name(f"{self.path.name}.partial")
        self._written: set[int] = set()
        self._layout: list[Any] | None = None
        self._in_place = False
        self._release: weakref.finalize[..., ChunkedOutput] | None = None  # lets others write; None before `begin`
        self._refuse_other_files()

    def __enter__(self) -> ChunkedOutput:
        return self

    def __exit__(self, failure: type[BaseException] | None, *_: object) -> None:
        if failure is not None and self._release is not None and not self._worth_keeping():
            with suppress(OSError):
                take_away(self.partial, self.path)
        self.close()

    def refuse_lists(self) -> None:
        """Refuse a list of trials if the format has none; to be called before anything is computed."""
        if self.format != "parquet":
            raise FileError(self.path, "a list of trials is written to parquet; give a name in .parquet")

    def begin(self, identity: Mapping[str, str], *, start_over: bool = False) -> None:
        """Start, or go on with a run of the same identity: named texts that stand for inputs and options.

        What a run of another identity has left is an error, or is thrown away to ``start_over``.
        """
        header = {"evenscore": __version__, "format": self.format, **identity}
        with writing(self.path):
            remove_left(self.path)
            if not self._found():
                self._start(header)
                return
        try:
            if not self.resume:
                problem = (
                    f"{self.partial} is left from a run that was cut short; go on with it (resume=True), or delete it"
                )
                raise FileError(self.path, problem)
            self._read_journal(header)
        except FileError:
            if start_over:
                with writing(self.path):
                    take_away(self.partial, self.path)
                    self.close()
                    self._start(header)
                return
            self.close()
            raise

    def _found(self) -> bool:
        """Tell whether a run was begun, and keep others from going on with it."""
        try:
            handle = held(self.partial, self.path)
        except FileNotFoundError:
            return False
        self._hold(handle)
        if self.partial.exists() and os.path.samestat(os.fstat(handle), os.stat(self.partial)):
            return True
        self.close()  # another run has just ended
        return False

    def _start(self, header: Mapping[str, str]) -> None:
        """Make the directory with all that belongs to it, before it gets its name."""
        made, handle = new_directory(self.path)
        self._hold(handle)
        try:
            for name in ("kept", "data"):
                (made / name).mkdir()
            (made / _JOURNAL).write_bytes(_line(header))
            os.rename(made, self.partial)
        except BaseException:
            shutil.rmtree(made, ignore_errors=True)
            self.close()
            raise

    def _hold(self, handle: int) -> None:
        self._release = weakref.finalize(self, os.close, handle)

    def close(self) -> None:
        """Let other runs go on with what is there."""
        if self._release is not None:
            self._release()
            self._release = None

    def get(self, name: str) -> npt.NDArray[Any] | None:
        """Return statistics that were kept, None if there are none of this name, or if they are damaged."""
        file = self.partial / "kept" / f"{name}.npy"
        try:
            with parsing(file, "an npy file"):
                return read_array(file, file)
        except FileError:
            return None

    def put(self, name: str, values: npt.NDArray[Any]) -> None:
        """Keep statistics for a run that goes on."""
        with atomic_output(self.partial / "kept" / f"{name}.npy") as stream:
            np.lib.format.write_array(stream, values, allow_pickle=False)

    def write(self, scores: ScoreTable, *, client: Any = None, progress: Progress = silent) -> None:
        """Write the tiles that are not written yet, then give the output its name."""
        if self._in_place:  # only the rest of the working directory was left
            self._clear()
            return
        target: PlainChunks | ParquetChunks
        if scores.is_in_memory:
            scores = scores.in_tiles()
        if scores.listed:
            self.refuse_lists()
        if self.format == "parquet":
            target = ParquetChunks(str(self.partial / "data"), scores.enroll_axis, scores.test_axis)
            layout = scores.layout if scores.listed else scores.in_tiles(_LISTED_BYTES).layout
            places = layout.whole_rows() if isinstance(layout, Grid) else layout.places()
        else:
            target, places = self._store(scores), scores.places()
        self._check_layout(places)
        missing = [place for place in places if place.number not in self._written or not target.is_written(place)]
        task = _WriteTask(scores.source, target, str(self.path))
        with self._journal() as line:
            done = len(places) - len(missing)

            def report(stage: str, fraction: float) -> None:
                progress(stage, (done + fraction * len(missing)) / max(len(places), 1))

            for place, _ in engine_for(client).map(_write_one, task, missing, stage="writing", progress=report):
                line({"chunk": place.number})
                self._written.add(place.number)
        self._finish()

    def _worth_keeping(self) -> bool:
        with suppress(OSError):
            return self._in_place or bool(self._written) or any((self.partial / "kept").iterdir())
        return True

    def _check_layout(self, places: list[Any]) -> None:
        """Refuse to go on with chunks of another size."""
        layout = [len(places), *map(str, places[:1])]
        if self._layout is None:
            with self._journal() as line:
                line({"layout": layout})
        elif self._layout != layout:
            problem = f"{self.partial} was begun with chunks of another size; give the same memory limit as then"
            raise FileError(self.path, problem)

    def _store(self, scores: ScoreTable) -> PlainChunks:
        """Return where the chunks go: to the store that was begun, whichever its format, or to a new one."""
        folder = self.partial / "data"
        with parsing(folder, "a zarr store"):
            begun = PlainChunks.of(folder / "scores")
        if begun is not None:
            return begun
        with writing(self.path):
            shutil.rmtree(folder, ignore_errors=True)
            create_score_store(folder, scores.enroll_ids, scores.test_ids, self.path)
            return PlainChunks.create(folder / "scores", scores.shape, _sizes(scores), scores.dtype)

    def _finish(self) -> None:
        data = self.partial / "data"
        with writing(self.path):
            for left in data.rglob(".*.part"):
                left.unlink()
            self._refuse_other_files()
            with self._journal() as line:
                line({"finished": _inode(data)})
            put_in_place(data, self.path)
        self._clear()

    def _clear(self) -> None:
        with writing(self.path):
            take_away(self.partial, self.path)
        self.close()

    def _refuse_other_files(self) -> None:
        """Replace an earlier output of the same kind only, so that a wrong name never costs other files."""
        if not self.path.exists():
            return
        if not self.path.is_dir():
            return  # a file, which is replaced as by any other command
        names = {entry.name for entry in self.path.iterdir()}
        ours = names & set(ZARR_MARKS) or names == {part.name for part in parquet_parts(self.path)}
        if not ours:
            raise FileError(self.path, "a directory with other files has this name; choose another one")

    def _read_journal(self, header: Mapping[str, str]) -> None:
        file = self.partial / _JOURNAL
        with reading(file):
            lines = file.read_bytes().splitlines()
        found = [entry for entry in map(_parsed, lines) if entry is not None]
        if not found:
            raise FileError(self.partial, "it has no journal, so the run cannot go on; delete it and start anew")
        begun = found[0]
        changed = [name for name in (*header, *begun) if begun.get(name) != header.get(name)]
        if changed:
            problem = f"{self.partial} was begun with another {changed[0]}; give the same one, or delete the directory"
            raise FileError(self.path, problem)
        finished = None
        for entry in found[1:]:
            self._layout = entry.get("layout", self._layout)
            finished = entry.get("finished", finished)
            chunk = entry.get("chunk")
            self._written |= {chunk} if isinstance(chunk, int) else set()
        if finished is not None:
            self._look_for(finished)

    def _look_for(self, finished: int) -> None:
        """Find out where the data are that were to get their name when the run was cut short."""
        data = self.partial / "data"
        self._in_place = _inode(self.path) == finished
        if (
            not self._in_place and _inode(data) != finished
        ):  # they are gone; this is what they have replaced, if anything
            with writing(self.path):
                shutil.rmtree(data, ignore_errors=True)
                data.mkdir(exist_ok=True)
            self._written = set()

    @contextmanager
    def _journal(self) -> Iterator[Any]:
        with writing(self.path), open(self.partial / _JOURNAL, "ab") as stream:
            if stream.tell():
                stream.write(b"\n")  # after a line that was cut short

            def line(entry: Mapping[str, Any]) -> None:
                stream.write(_line(entry))
                stream.flush()

            yield line


def _line(entry: Mapping[str, Any]) -> bytes:
    return json.dumps(entry).encode() + b"\n"


def _inode(path: Path) -> int | None:
    with suppress(OSError):
        return path.stat().st_ino
    return None


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):  # the last line of a run that was killed, or a damaged one
        return None
    return entry if isinstance(entry, dict) else None


def _sizes(scores: ScoreTable) -> tuple[int, int]:
    """Return the shape of the chunks to store: those that the tiles are made of."""
    assert isinstance(scores.layout, Grid)  # noqa: S101
    rows, columns = (max(min(size, whole), 1) for size, whole in zip(scores.layout.stored, scores.shape, strict=True))
    return rows, columns


@dataclass(frozen=True, eq=False)
class _WriteTask:
    source: Source
    target: PlainChunks | ParquetChunks
    path: str


def _write_one(task: _WriteTask, place: Place) -> None:
    tile = task.source.read(place)
    try:
        task.target.write(place, tile)
    except (OSError, FileError) as error:
        why = error.problem if isinstance(error, FileError) else error.strerror or str(error)
        if "disk is full" in why or getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT):
            why = "the disk is full"
        problem = f"{place} cannot be written: {why}; mend that, then go on with resume=True"
        raise FileError(task.path, problem) from None
