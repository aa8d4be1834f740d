"""Where the files of a comparison stand, relative to its folder; names of methods and conditions may be anything.

================================  ==============================================================================
``results.json``                  all figures, see docs/schema/comparison.schema.json
``methods/NAME/scores*.npz``      the normalized evaluation trials with labels, one file per condition
``methods/NAME/llrs*.npz``        the same, calibrated
``methods/NAME/scores*.zarr``     in place of both, where they are not in memory (``.parquet`` if they are a list)
``methods/NAME/calibration.json`` the calibration
``methods/NAME/model.json``       the score model, where there is one
``methods/NAME/stored.json``      which of these are complete, and what they were made from
``methods/NAME/summaries/``       histograms of these scores and LLRs, for the report
``methods/NAME/record.json``      what a later run needs to go on from here; written last
================================  ==============================================================================
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from evenscore.tables import ScoreTable

__all__ = [
    "CALIBRATION",
    "MODEL",
    "RECORD",
    "RESULTS",
    "STORED",
    "SUMMARIES",
    "method_folders",
    "score_files",
]

RESULTS = "results.json"
CALIBRATION = "calibration.json"
MODEL = "model.json"
RECORD = "record.json"
STORED = "stored.json"
SUMMARIES = "summaries"

_ODD = re.compile(r"[^A-Za-z0-9_.=+]+")
_LONGEST = 80


def method_folders(names: Iterable[str]) -> dict[str, str]:
    """Return the folder of each method.

    Examples
    --------
    >>> method_folders(["as:top_k=100", "as-top_k=100", "../x"])
    {'../x': 'methods/x', 'as-top_k=100': 'methods/as-top_k=100', 'as:top_k=100': 'methods/as-top_k=100-2'}
    """
    folders: dict[str, str] = {}
    for name in sorted(names):
        folder = first = f"methods/{_plain(name)}"
        number = 1
        while folder in folders.values():
            number += 1
            folder = f"{first}-{number}"
        folders[name] = folder
    return folders


def score_files(kind: str, conditions: Sequence[str], tables: Sequence[ScoreTable] = ()) -> list[str]:
    """Return the names of the files with the scores (or LLRs) of each condition; of tables that are not in memory, too.

    Examples
    --------
    >>> score_files("llrs", [""]), score_files("llrs", ["one/f", "two/m"])
    (['llrs.npz'], ['llrs-1-one-f.npz', 'llrs-2-two-m.npz'])
    """
    ends = [".parquet" if table.listed else ".zarr" for table in tables] or [".npz"] * len(conditions)
    if len(conditions) == 1:
        return [f"{kind}{ends[0]}"]
    named = enumerate(zip(conditions, ends, strict=True), 1)
    return [f"{kind}-{place}-{_plain(name)}{end}" for place, (name, end) in named]


def _plain(name: str) -> str:
    return _ODD.sub("-", name).strip("-.")[:_LONGEST] or "unnamed"
