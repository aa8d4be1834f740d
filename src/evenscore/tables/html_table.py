"""Tables for notebooks: what records show of themselves where HTML can be shown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

__all__ = ["html_table"]


def html_table(header: Sequence[str], rows: Iterable[Sequence[str]], caption: str = "") -> str:
    """Return an HTML table; the first cell of each row is its heading. Names are data, so that everything is escaped.

    Examples
    --------
    >>> html_table(["", "score"], [["<b>", "1.5"]])
    '<table><thead><tr><th></th><th>score</th></tr></thead><tbody><tr><th>&lt;b&gt;</th><td>1.5</td></tr></tbody></table>'
    """
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    body = "".join(
        f"<tr><th>{escape(name)}</th>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"
        for name, *cells in rows
    )
    return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
