"""The fast parser against the careful one: whatever it accepts, it reads in the same way."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from evenscore import FileError
from evenscore.files.registry import ReadOptions
from evenscore.files.text.careful import parse_carefully
from evenscore.files.text.chunks import filled_lines, line_chunks, sample_of, squeezed
from evenscore.files.text.fast import parse_fast
from evenscore.files.text.layouts import ENROLL, LABEL, MEASURE, PAIR, REAL, SCORE, SIDE, SKIP, TEST, Columns
from examples import examples

NUMBERS = [
    *("0.5", "-1", "+2", "1e3", "1E-3", ".5", "5.", "1e999", "1e-999", "nan", "NaN", "inf", "-Infinity", "0x1", "1_0"),
    *("1d3", "٣", "", "-", "NA", "--1", "1.5.2", "9007199254740993", "0.1e1e1", "1,5", " 1", "1 "),
]
LABELS = ["target", "NONTARGET", "Tgt", "imp", "1", "0", "-1", "+1", "true", "maybe", "", "-", "2"]
IDS = ["e", "f", "g1", "é", "#1", "NA", "-", "", '"', '"q"', "a*b", "*", "\0", "\r", "'", "x y", "null"]
COLUMNS = {
    "kaldi": Columns(roles=(ENROLL, TEST, SCORE)),
    "key": Columns(roles=(ENROLL, TEST, LABEL)),
    "list": Columns(roles=(ENROLL, TEST)),
    "wespeaker": Columns(roles=(ENROLL, TEST, SCORE, LABEL, MEASURE + "a", MEASURE + "b")),
    "espnet": Columns(roles=(PAIR, SCORE, LABEL)),
    "bob": Columns(roles=(ENROLL, REAL, TEST, SCORE)),
    "nist": Columns(roles=(ENROLL, TEST, SIDE, SCORE), separator="\t", names=("m", "s", "side", "LLR")),
    "asvspoof5": Columns(
        roles=(ENROLL, TEST, MEASURE + "c", SKIP, SCORE), separator="\t", names=("a", "b", "c", "d", "e")
    ),
    "csv": Columns(roles=(ENROLL, TEST, SCORE, LABEL), separator=",", names=("a", "b", "c", "d"), quoted=True),
    "csv+": Columns(
        roles=(SCORE, SKIP, LABEL, ENROLL, TEST, MEASURE + "m"), separator=",", names=tuple("abcdef"), quoted=True
    ),
}


def fields(role, tame):
    """A field for a column: usually right, sometimes odd."""
    if role == SCORE or role.startswith(MEASURE):
        return st.sampled_from(NUMBERS[:7] if tame else NUMBERS)
    if role == LABEL:
        return st.sampled_from(LABELS[:9] if tame else LABELS)
    if role == PAIR:
        return st.sampled_from(["e*t", "f*u", "g*t"] if tame else ["e*t", "*t", "e*", "e", "a*b*c", "é*t"])
    return st.sampled_from(IDS[:5] if tame else IDS)


@st.composite
def chunks(draw, columns):
    """Some lines, most of them right; odd blanks and line ends; sometimes a column too few or too many."""
    lines = []
    for _ in range(draw(st.integers(0, 5))):
        tame = draw(st.integers(0, 3)) > 0
        row = [draw(fields(role, tame)) for role in columns.roles]
        if not draw(st.integers(0, 9)):
            row = draw(st.sampled_from([row[:-1], [*row, "x"], row[:1], []]))
        joint = draw(st.sampled_from([" ", " ", "  ", "\t", " \t"])) if columns.separator == " " else columns.separator
        around = draw(st.sampled_from(["", "", "", " "])) if columns.separator == " " else ""
        lines.append(around + joint.join(row) + around + draw(st.sampled_from(["\n", "\n", "\n", "\r\n", "\n\n"])))
    text = "".join(lines).encode()
    return text.removesuffix(b"\n") if draw(st.booleans()) else text


def same(a, b):
    return (a is None and b is None) or np.array_equal(a, b, equal_nan=a.dtype.kind == "f")


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("missing", ["error", "skip"])
@examples(60)
@given(data=st.data())
def test_what_the_fast_parser_accepts_it_reads_like_the_careful_one(name, missing, data):
    columns = COLUMNS[name]
    chunk = data.draw(chunks(columns))
    fast = parse_fast(chunk, columns, ReadOptions(missing=missing))
    if fast is None:
        return
    careful = parse_carefully(chunk, columns, ReadOptions(missing=missing), "file", 1)
    assert fast.n_lines == careful.n_lines or not chunk
    assert len(fast) == len(careful)
    if not len(fast):
        return
    for side in ("enroll", "test"):
        ours, theirs = getattr(fast, side), getattr(careful, side)
        assert [ours.names[i] for i in ours.index] == [theirs.names[i] for i in theirs.index]
        assert set(ours.names) == set(theirs.names)
    assert same(fast.scores, careful.scores)
    assert same(fast.labels, careful.labels)
    assert fast.measures.keys() == careful.measures.keys()
    assert all(same(fast.measures[measure], careful.measures[measure]) for measure in fast.measures)
    lines = np.arange(len(fast)) if fast.lines is None else fast.lines
    assert same(lines, careful.lines)


@pytest.mark.parametrize("name", COLUMNS)
@examples(30)
@given(data=st.data())
def test_clean_lines_take_the_fast_way(name, data):
    columns = COLUMNS[name]
    rows = data.draw(st.lists(st.tuples(*(fields(role, tame=True) for role in columns.roles)), min_size=1, max_size=5))
    chunk = "".join(columns.separator.join(row) + "\n" for row in rows).encode()
    assert parse_fast(chunk, columns, ReadOptions()) is not None


@given(text=st.text(" \t\r\nab", max_size=30))
def test_squeezing_is_what_split_does(text):
    data = text.replace("\r\n", "\n").replace("\r", "").encode()
    plain = b"".join(b" ".join(line.split()) + b"\n" for line in data.split(b"\n") if line.split())
    assert squeezed(data) == plain
    assert squeezed(data.replace(b"\n", b"\r\n")) == plain
    assert squeezed(data, ",") == b"".join(line + b"\n" for line in data.split(b"\n") if line.strip())
    assert filled_lines(data).tolist() == [bool(line.strip()) for line in data.removesuffix(b"\n").split(b"\n")]


@given(data=st.binary(max_size=60), size=st.integers(1, 20), longest=st.integers(4, 100))
def test_chunks_end_at_line_ends_and_lose_nothing(data, size, longest):
    import io

    pieces = list(line_chunks(io.BytesIO(data), size, longest))
    content = data.removeprefix(b"\xef\xbb\xbf")
    assert content.startswith(b"".join(pieces))
    assert all(piece.endswith(b"\n") for piece in pieces[:-1])
    if b"".join(pieces) != content:
        assert len(pieces[-1]) > longest
        assert b"\n" not in pieces[-1][-longest:]


def test_a_sample_leaves_out_a_line_that_is_cut_off():
    sample = sample_of(b"\xef\xbb\xbfe t 1\n\ne u 2\ne v", whole=False)
    assert (sample.lines, sample.numbers) == (["e t 1", "e u 2"], [1, 3])
    assert sample_of(b"e t 1\ne v", whole=True).lines == ["e t 1", "e v"]
    assert sample_of(b"e t", whole=False).lines == ["e t"]


def test_the_careful_parser_counts_from_the_first_line_of_its_chunk():
    with pytest.raises(FileError, match=r"^file:12: expected 3 columns"):
        parse_carefully(b"e t 1\n\ne t\n", COLUMNS["kaldi"], ReadOptions(), "file", 10)
