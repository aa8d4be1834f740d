"""``evenscore formats``: the file formats."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

__all__ = ["EXAMPLES", "formats"]

EXAMPLES = """
evenscore formats
evenscore formats --json
"""


def formats(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """List the file formats: what each holds, and what its lines look like."""
    from evenscore.files import FORMATS

    rows = [
        {"name": one.name, "holds": list(one.kinds), "layout": one.layout, "written": one.writer is not None}
        for one in FORMATS.values()
    ]
    if as_json:
        json.dump(rows, sys.stdout, indent=2)
        typer.echo()
        return
    width = max(len(str(row["name"])) for row in rows)
    for row in rows:
        typer.echo(f"{row['name']:{width}s}  {row['layout']}" + ("" if row["written"] else "  (only read)"))
