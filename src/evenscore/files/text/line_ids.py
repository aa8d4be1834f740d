"""Which ids can stand in a line of text, so that they are read again as they were written."""

from __future__ import annotations

import re
from collections.abc import Iterable

from evenscore.errors import FileError
from evenscore.files.streams import PathLike

__all__ = ["refuse_odd_ids"]

_LONGEST = 4096  # characters: the first lines of a file must fit into the sample by which formats are told apart
_NO_TEXT = "\ud800-\udfff"  # halves of characters, which no encoding has


def refuse_odd_ids(
    ids: Iterable[str], path: PathLike, forbidden: str, marks: str, remedy: str = "rename it, or write npz"
) -> None:
    """Refuse ids with a forbidden character or a line end, blank and endless ones, and what no encoding can hold.

    Parameters
    ----------
    ids
        All that are written.
    path
        Where to.
    forbidden
        What ends an id in the format, besides line ends.
    marks
        The same in words, for the message.
    remedy
        What to do about it, for the message.

    Examples
    --------
    >>> refuse_odd_ids(["a", "b c"], "x.scp", " ", "spaces")
    Traceback (most recent call last):
        ...
    evenscore.errors.FileError: x.scp: the id 'b c' cannot be written: ids of this format have no spaces; rename it, ...
    """
    names = list(ids)
    never = re.escape("\0\r\n" + forbidden) + _NO_TEXT
    if not re.search(f"[{never}\ufeff]", "".join(names)) and all(
        name.strip() and len(name) <= _LONGEST for name in names
    ):
        return
    odd = re.compile(f"[{never}]|^\ufeff|^[ \t]*$")  # at the start of a file the mark would be that of its encoding
    for name in names:
        if len(name) > _LONGEST:
            raise FileError(path, f"the id {name[:30]!r}... has {len(name)} characters, {_LONGEST} at most; {remedy}")
        if odd.search(name):
            no_text = re.search(f"[{_NO_TEXT}]", name)
            why = "it is no Unicode text" if no_text else f"ids of this format have no {marks}"
            raise FileError(path, f"the id {name!r} cannot be written: {why}; {remedy}")
