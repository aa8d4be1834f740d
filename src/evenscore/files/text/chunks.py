"""Bytes of a text file in chunks that end at line ends, and the same without odd blanks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

import numpy as np

from evenscore.files.text.columns import Sample

__all__ = ["CHUNK_SIZE", "LONGEST_LINE", "SAMPLE_SIZE", "UTF16_MARKS", "line_chunks", "sample_of", "squeezed"]

CHUNK_SIZE = 1 << 24  #: bytes; measured: smaller costs calls, larger costs fresh memory from the system
LONGEST_LINE = 1 << 20  #: bytes; what is longer is no line of a table
SAMPLE_SIZE = 1 << 16  #: bytes that decide on the format

UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")  #: how a text in UTF-16 begins
_BOM = b"\xef\xbb\xbf"
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


def squeezed(data: bytes, separator: str = " ") -> bytes:
    r"""Return the lines without blank lines and carriage returns, and with one space between the columns.

    Examples
    --------
    >>> squeezed(b" e1\t t1  0.5 \r\n\ne2 t1 1")
    b'e1 t1 0.5\ne2 t1 1\n'
    """
    data = data.replace(b"\r\n", b"\n") + b"\n"
    if separator != " ":
        return b"".join(line + b"\n" for line in data.split(b"\n") if line.strip(b" \t"))
    text = np.frombuffer(data.translate(_TABS_TO_SPACES), dtype=np.uint8)
    space, end = text == ord(" "), text == ord("\n")
    text = text[~(space & _shifted(space | end, 1))]  # leading spaces, and all but the first of several
    space, end = text == ord(" "), text == ord("\n")
    text = text[~(space & _shifted(end, -1))]  # a space at the end of a line
    end = text == ord("\n")
    return text[~(end & _shifted(end, 1))].tobytes()


def _shifted(flags: np.ndarray[tuple[int], np.dtype[np.bool_]], by: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return the flags of the byte before (1) or after (-1) each one; before the first byte is a line end."""
    shifted = np.roll(flags, by)
    shifted[0 if by > 0 else -1] = by > 0
    return shifted


def sample_of(head: bytes, *, whole: bool) -> Sample:
    """Return the first lines for a look at them; the last one is left out if it may be cut off."""
    head = head.removeprefix(_BOM)
    cut = head[:SAMPLE_SIZE]
    if len(cut) < len(head) or not whole:
        cut = cut[: cut.rfind(b"\n") + 1] or cut
    lines = [line.removesuffix("\r") for line in cut.decode(errors="replace").split("\n")]
    filled = {number: line for number, line in enumerate(lines, start=1) if line.strip(" \t")}
    return Sample(list(filled.values()), list(filled))
