"""Awkward ids in every format: they are read as they were written, or refused in one printable sentence."""

import numpy as np
import pytest

from evenscore.data import Embeddings, ScoreMatrix, TrialList
from evenscore.errors import EvenscoreError
from evenscore.files import FORMATS, read, write

# fmt: off
ODD = [
    "\ufeffa", "a\x1b[31m", "b\u202e", "c\ud800", "d\x07", "e\u2066", "f\tg", "g h", "h\ni", "i\x9b", "j\u200b", "k\0l",
    "l\0", "m\ufeff", "o\rp", "p\u2028q", "q,r", 'r"s', "s't", "t\x85u", "\x1cu", "v\x0bw", "w\xa0", "%s", "x\\n",
    "../y", "-z", " a", "b ", "#c", "é", "e\u0301", "\u3000", "1e5", "nan", "a*b", "x" * 4000, "y" * 70_000, "NA", '""',
]
# fmt: on


def tables(kind, names):
    """Return tables of a kind with these ids."""
    ones = [1] * len(names)
    columns = {"dur": [float(n) for n in range(len(names))]}
    return {
        "scores": [TrialList(names, names, ones, ones, columns), ScoreMatrix(np.ones((len(names), 1)), names, ["t"])],
        "trials": [TrialList(names, names, labels=ones)],
        "embeddings": [Embeddings(names, np.ones((len(names), 2)))],
        "speakers": [dict.fromkeys(names, "s"), {f"u{n}": name for n, name in enumerate(names)}],
    }[kind]


def names_of(table):
    """Return all ids of a table."""
    if isinstance(table, dict):
        return table
    return table.ids.tolist() if table.kind == "embeddings" else (set(table.enroll_ids), set(table.test_ids))


def refusal(table, path, format):
    """Return why a table is not written, or an empty text if it is."""
    try:
        write(table, path, format=format)
    except EvenscoreError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("format", [name for name, one in FORMATS.items() if one.writer])
def test_ids_come_back_as_they_were_or_are_refused(tmp_path, format):
    path = tmp_path / f"file{(FORMATS[format].extensions or ('.txt',))[0]}"
    for kind in FORMATS[format].kinds:
        for at in range(len(tables(kind, ["a"]))):
            if "needs" in refusal(tables(kind, ["plain"])[at], path, format):  # labels, or columns
                continue
            good = list(ODD)
            while message := refusal(tables(kind, good)[at], path, format):
                refused = [name for name in good if f"{name[:40]!r}"[1:-1] in message.replace(str(path), "")]
                assert refused, message
                good.remove(max(refused, key=len))
            assert {"é", "e\u0301", "%s", "../y"} <= {*good}
            assert "c\ud800" not in good
            write(tables(kind, good)[at], path, format=format)
            assert names_of(read(path, format=format)) == names_of(tables(kind, good)[at])
