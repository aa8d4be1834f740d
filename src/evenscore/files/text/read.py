"""From a text file to a `TrialList`: chunk by chunk, so that memory holds the table and little else."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain

from evenscore.errors import FileError
from evenscore.files.formats import ReadOptions
from evenscore.files.streams import PathLike, open_input
from evenscore.files.text.blocks import Block
from evenscore.files.text.careful import parse_carefully
from evenscore.files.text.chunks import CHUNK_SIZE, LONGEST_LINE, SAMPLE_SIZE, UTF16_MARKS, line_chunks, sample_of
from evenscore.files.text.collect import Collector
from evenscore.files.text.columns import Columns
from evenscore.files.text.fast import parse_fast
from evenscore.files.text.layouts import Layout, MisfitError
from evenscore.tables import TrialList

__all__ = ["read_trials_text"]

_AHEAD = 2  # chunks that are parsed while the next one is read


def read_trials_text(
    path: PathLike, options: ReadOptions, layout: Layout, *, chunk_size: int = CHUNK_SIZE
) -> TrialList:
    """Read trials, with scores and labels where the columns have them.

    Parameters
    ----------
    path
        A file, plain or gzip, or ``-``.
    options
        What to do with missing scores and repeated trials, and which column has the scores.
    layout
        The format; the first lines decide which of its variants it is.
    chunk_size
        Bytes that are parsed at a time.
    """
    with open_input(path) as stream:
        chunks = line_chunks(stream, chunk_size)
        head = _head(chunks)
        columns = _columns(head, path, options, layout)
        collector = Collector(path, options, line=1 + (_drop_header(head) if columns.names else 0))
        for data, block in _parsed(chain(_drained(head), chunks), columns, options):
            if block is None:
                block = parse_carefully(data, columns, options, path, collector.line)
            collector.add(block)
        return collector.table()


def _head(chunks: Iterator[bytes]) -> list[bytes]:
    """Return the first chunks, enough of them to find out what the columns are."""
    head: list[bytes] = []
    for data in chunks:
        head.append(data)
        if sum(map(len, head)) > SAMPLE_SIZE:
            break
    return head


def _columns(head: list[bytes], path: PathLike, options: ReadOptions, layout: Layout) -> Columns:
    sample = sample_of(b"".join(data[: SAMPLE_SIZE + 1] for data in head), whole=True)
    if not sample.lines:
        raise FileError(path, "the file is empty; there is nothing to read")
    if head[0].startswith(UTF16_MARKS):
        raise FileError(path, "it is text in UTF-16; convert it to UTF-8", line=1)
    try:
        return layout.reads(sample, options)
    except MisfitError as misfit:
        problem = f"this is not the format {layout.name}: {misfit}; name the right one"
        raise FileError(path, problem, line=misfit.line) from None


def _drop_header(head: list[bytes]) -> int:
    """Cut off the first line that is not blank, and return how many lines are gone."""
    dropped = 0
    while True:
        line, _, head[0] = head[0].partition(b"\n")
        dropped += 1
        if not head[0]:
            head.pop(0)
        if line.strip(b" \t\r"):
            return dropped


def _drained(items: list[bytes]) -> Iterator[bytes]:
    """Hand out the items without holding them any longer."""
    while items:
        yield items.pop(0)


def _parsed(chunks: Iterator[bytes], columns: Columns, options: ReadOptions) -> Iterator[tuple[bytes, Block | None]]:
    """Parse the chunks in threads (polars lets go of the interpreter), and hand them out in order."""

    def parse(data: bytes) -> Block | None:
        if not data.endswith(b"\n") and len(data) - data.rfind(b"\n") > LONGEST_LINE:
            return None
        return parse_fast(data, columns, options)

    waiting: deque[tuple[bytes, Future[Block | None]]] = deque()
    with ThreadPoolExecutor(_AHEAD, "evenscore-read") as workers:
        for data in chunks:
            waiting.append((data, workers.submit(parse, data)))
            if len(waiting) > _AHEAD:
                first, future = waiting.popleft()
                yield first, future.result()
        for data, future in waiting:
            yield data, future.result()
