"""Ids as nobody would choose them: written and read again as they were, or refused in one printable sentence."""

import re

import numpy as np
import pytest

from evenscore import Embeddings, EvenscoreError, InputError, ScoreMatrix, TrialList, read, write
from evenscore.files import FORMATS

ODD = [
    "\ufeffa", "a\x1b[31m", "b\u202e", "c\ud800", "d\x07", "e\u2066", "f\tg", "g h", "h\ni", "i\x9b", "j\u200b", "k\0l",
    "l\0", "m\ufeff", "o\rp", "p\u2028q", "q,r", 'r"s', "s't", "t\x85u", "\x1cu", "v\x0bw", "w\xa0", "%s", "x\\n",
    "../y", "-z", " a", "b ", "#c", "é", "e\u0301", "\u3000", "1e5", "nan", "a*b", "x" * 4000, "y" * 70_000,
]  # fmt: skip
ONLY_READ = {"dca-plda", "pybosaris", "sidekit"}
NEEDS_MEASURES = {"wespeaker-factors"}
NEEDS_LABELS = {"bob", "espnet", "speechbrain", "wespeaker"}
TABLES = {
    "scores": lambda names: [
        TrialList.from_pairs(names, names, scores=np.ones(len(names)), labels=[1] * len(names)),
        ScoreMatrix(np.ones((len(names), 1)), names, ["t"]),
    ],
    "trials": lambda names: [TrialList.from_pairs(names, names, labels=[1] * len(names))],
    "embeddings": lambda names: [Embeddings(names, np.ones((len(names), 2)))],
    "speakers": lambda names: [dict.fromkeys(names, "s"), {f"u{n}": name for n, name in enumerate(names)}],
}


def names_of(table):
    if isinstance(table, dict):
        return table
    return list(table.ids) if isinstance(table, Embeddings) else (set(table.enroll_ids), set(table.test_ids))


def refusal(table, path, format):
    """Return why a table is not written, or None if it is."""
    try:
        write(table, path, format=format)
    except EvenscoreError as error:
        return str(error)
    return None


def written(make, path, format):
    """Write all odd ids that the format takes, and return them; each that it does not take is named."""
    names = list(ODD)
    while told := refusal(make(names), path, format):
        assert told.isprintable(), ascii(told)
        assert not path.exists()
        refused = [name for name in names if re.search(rf"(?<!\w){re.escape(repr(name)[:30])}", told)]
        assert len(refused) == 1, told
        names.remove(*refused)
    return names


@pytest.mark.parametrize("format", sorted(FORMATS.keys() - ONLY_READ - NEEDS_MEASURES))
def test_ids_come_back_as_they_were_or_are_refused(format, tmp_path):
    suffix = (FORMATS[format].extensions or (".txt",))[0]
    for kind in FORMATS[format].kinds:
        for number in range(1 if format in NEEDS_LABELS else len(TABLES[kind](["a", "b"]))):
            path = tmp_path / f"{kind}{number}{suffix}"
            names = written(lambda names, at=number, of=kind: TABLES[of](names)[at], path, format)
            assert {"é", "e\u0301", "%s", "../y"} <= set(names)
            assert names_of(read(path, format=format)) == names_of(TABLES[kind](names)[number])


def test_an_id_has_a_character():
    with pytest.raises(InputError, match="is empty"):
        Embeddings([""], np.ones((1, 2)))
