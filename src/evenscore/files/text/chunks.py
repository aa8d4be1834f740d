"""Chunks of a text file: bytes that end at line ends, the same without odd blanks, and the trials that they hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from evenscore.errors import FileError
from evenscore.files.streams import PathLike, open_input, reading
from evenscore.files.text.layouts import Sample

__all__ = [
    "CHUNK_SIZE",
    "LONGEST_LINE",
    "SAMPLE_SIZE",
    "UTF16_MARKS",
    "Block",
    "CodedIds",
    "filled_lines",
    "line_chunks",
    "sample_of",
    "squeezed",
    "text_lines",
]

CHUNK_SIZE = 1 << 24  #: bytes; measured: smaller costs calls, larger costs fresh memory from the system
LONGEST_LINE = 1 << 20  #: bytes; what is longer is no line of a table
LONGEST_LIST = 1 << 26  # bytes; a line of spk2utt lists all utterances of a speaker
SAMPLE_SIZE = 1 << 16  #: bytes that decide on the format

UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")  #: how a text in UTF-16 begins
_BOM = b"\xef\xbb\xbf"
_IS_BLANK = np.isin(np.arange(256), list(b" \t\r\n"))
_TABS_TO_SPACES = bytes.maketrans(b"\t", b" ")


def line_chunks(stream: BinaryIO, size: int = CHUNK_SIZE, longest: int = LONGEST_LINE) -> Iterator[bytes]:
    """Cut a stream at line ends into chunks of about ``size`` bytes, without a byte-order mark.

    A line whose last ``longest`` bytes run over the end of a chunk ends the iteration: the chunk comes with as much
    of it, so that the reader can refuse it.
    """
    start = stream.read(len(_BOM)).removeprefix(_BOM)
    while block := stream.read(size):
        data = start + block if start else block
        if not data.endswith(b"\n"):
            data += stream.readline(longest + 1)
        yield data
        if not data.endswith(b"\n"):
            return  # the end of the file, or a line that is too long
        start = b""
    if start:
        yield start


def text_lines(path: PathLike, what: str, longest: int = LONGEST_LIST) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file of the kind ``what`` with their numbers; a line that is no text is refused."""
    number = 0
    with open_input(path) as stream, reading(path):
        for data in line_chunks(stream, longest=longest):
            for line in data.removesuffix(b"\n").split(b"\n"):
                number += 1
                if len(line) > longest or b"\0" in line:
                    raise FileError(path, f"this is not {what}", line=number)
                try:
                    text = line.removesuffix(b"\r").decode()
                except UnicodeDecodeError as error:
                    problem = f"byte 0x{line[error.start]:02x} is not UTF-8; convert the file"
                    raise FileError(path, problem, line=number) from None
                yield number, text


def squeezed(data: bytes, separator: str = " ") -> bytes:
    r"""Return the lines without blank lines and carriage returns, and with one space between the columns.

    Examples
    --------
    >>> squeezed(b" e1\t t1  0.5 \r\n\ne2 t1 1")
    b'e1 t1 0.5\ne2 t1 1\n'
    """
    data = data.replace(b"\r\n", b"\n") + b"\n"
    if separator == " ":
        text = np.frombuffer(data.translate(_TABS_TO_SPACES), dtype=np.uint8)
        space = text == ord(" ")
        text = text[~(space & _before(space | (text == ord("\n"))))]  # leading spaces, and all but the first of several
        end = text == ord("\n")
        text = text[~((text == ord(" ")) & np.append(end[1:], False))]  # a space at the end of a line
        end = text == ord("\n")
        return text[~(end & _before(end))].tobytes()
    text, filled = np.frombuffer(data, dtype=np.uint8), filled_lines(data)
    lengths = np.diff(np.flatnonzero(text == ord("\n")), prepend=-1)
    return text[np.repeat(filled, lengths)].tobytes()


def filled_lines(data: bytes) -> npt.NDArray[np.bool_]:
    """Tell for each line whether there is more in it than blanks."""
    text = np.frombuffer(data if data.endswith(b"\n") else data + b"\n", dtype=np.uint8)
    solid = ~_IS_BLANK[text]
    starts = np.append(0, np.flatnonzero(text == ord("\n"))[:-1] + 1)
    filled: npt.NDArray[np.bool_] = np.logical_or.reduceat(solid, starts)
    return filled


def _before(flags: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return the flag of the byte before each one; before the first byte is a line end."""
    return np.append(True, flags[:-1])


def sample_of(head: bytes, *, whole: bool) -> Sample:
    """Return the first lines for a look at them; the last one is left out if it may be cut off."""
    head = head.removeprefix(_BOM)
    cut = head[:SAMPLE_SIZE]
    if len(cut) < len(head) or not whole:
        cut = cut[: cut.rfind(b"\n") + 1] or cut
    lines = [line.removesuffix("\r") for line in cut.decode(errors="replace").split("\n")]
    filled = {number: line for number, line in enumerate(lines, start=1) if line.strip(" \t")}
    return Sample(list(filled.values()), list(filled))


@dataclass(frozen=True)
class CodedIds:
    """Ids of one side: the distinct ones in order of appearance, and for each trial which of them it has."""

    names: Any  #: a list, or a series of polars, whose texts are not made unless somebody looks at them
    index: npt.NDArray[np.int32]
    numbers: npt.NDArray[np.uint32] | None = None  #: of the distinct ids, the same in all chunks of a file; None: none

    def select(self, keep: npt.NDArray[np.bool_]) -> CodedIds:
        """Return the ids of some trials, without those that they do not use."""
        used, index = np.unique(self.index[keep], return_inverse=True)
        return CodedIds([self.names[place] for place in used.tolist()], index.astype(np.int32))


@dataclass(frozen=True, kw_only=True)
class Block:
    """The trials of one chunk."""

    enroll: CodedIds
    test: CodedIds
    scores: npt.NDArray[np.float64] | None = None
    labels: npt.NDArray[np.int8] | None = None
    measures: Mapping[str, npt.NDArray[np.float64]] = field(default_factory=dict)
    lines: npt.NDArray[Any] | None = None  #: line of each trial in the chunk, from 0; None if one follows the other
    n_lines: int = 0  #: lines of the chunk, blank ones included

    def __len__(self) -> int:
        return len(self.enroll.index)

    def select(self, keep: npt.NDArray[np.bool_]) -> Block:
        """Return the trials that are True in a mask."""
        lines = np.arange(len(self)) if self.lines is None else self.lines
        return Block(
            enroll=self.enroll.select(keep),
            test=self.test.select(keep),
            scores=None if self.scores is None else self.scores[keep],
            labels=None if self.labels is None else self.labels[keep],
            measures={name: values[keep] for name, values in self.measures.items()},
            lines=lines[keep],
            n_lines=self.n_lines,
        )
