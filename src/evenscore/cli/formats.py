"""``evenscore formats``: the file formats."""

from __future__ import annotations

from evenscore.cli import options as opt
from evenscore.cli.output import print_json, print_table

__all__ = ["EXAMPLES", "formats"]

EXAMPLES = """
evenscore formats
evenscore formats --json
"""


def formats(json: opt.Json = False) -> None:
    """List the file formats: what they are called, what they hold, how a line or the file looks."""
    from evenscore.files import FORMATS

    if json:
        print_json(
            [
                {
                    "name": format.name,
                    "kinds": format.kinds,
                    "layout": format.layout,
                    "extensions": format.extensions,
                    "read": format.read is not None,
                    "write": format.write is not None,
                }
                for format in FORMATS.values()
            ]
        )
        return
    rows = [
        (
            format.name,
            ", ".join(format.kinds),
            " ".join(way for way, can in (("read", format.read), ("write", format.write)) if can is not None),
            " ".join(format.extensions),
            format.layout,
        )
        for format in FORMATS.values()
    ]
    print_table(rows, header=("format", "holds", "can", "names", "layout"))
