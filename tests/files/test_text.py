"""What is written is read again, and what is wrong is named with its line."""

import gzip

import numpy as np
import pytest
from hypothesis import given, strategies as st

from evenscore.data import ScoreMatrix, TrialList
from evenscore.errors import FileError
from evenscore.files import read, read_scores, read_trials, text_reader, write

LINE_FORMATS = ("kaldi", "wespeaker", "wespeaker-factors", "speechbrain", "espnet", "bob", "voxceleb")
HEADED_FORMATS = ("nist", "asvspoof5", "csv", "tsv")
AWKWARD = [
    "é",
    "日本",
    "-",
    "NA",
    "nan",
    "1",
    "0",
    "a:b",
    "C:\\x",
    '"q"',
    "a,b",
    "#c",
    "'",
    "null",
    "\u00a0x",
    "\x1f",
    "\x85",
]

ids = st.lists(
    st.one_of(st.sampled_from(AWKWARD), st.text(st.characters(blacklist_categories=["Cs"]), min_size=1, max_size=8)),
    min_size=1,
    max_size=6,
    unique=True,
)
scores = st.floats(-1e30, 1e30, allow_nan=False).filter(lambda x: abs(x) < 1e29)


@st.composite
def tables(draw):
    """Some pairs of awkward ids with scores, labels and a further column."""
    bad = "\0\r\n \t*\ufeff"
    enroll, test = ([name for name in draw(ids) if not set(name) & set(bad) and name.strip()] or ["x"] for _ in "et")
    pairs = draw(st.lists(st.tuples(st.sampled_from(enroll), st.sampled_from(test)), min_size=1, unique=True))
    values = draw(st.lists(scores, min_size=len(pairs), max_size=len(pairs)))
    labels = draw(st.lists(st.sampled_from([0, 1]), min_size=len(pairs), max_size=len(pairs)))
    dur = [np.nan if draw(st.booleans()) else abs(v) for v in values]
    return TrialList(*zip(*pairs, strict=True), scores=values, labels=labels, columns={"dur": dur})


@pytest.mark.parametrize("format", LINE_FORMATS + HEADED_FORMATS)
@given(table=tables())
def test_what_is_written_is_read_again(tmp_path, format, table):
    path = tmp_path / "file"
    write(table, path, format=format)
    found = read(path, format=format)
    assert [found.pair(i) for i in range(len(found))] == [table.pair(i) for i in range(len(table))]
    if format != "voxceleb":
        np.testing.assert_array_equal(found.scores, table.scores)
    if format not in ("kaldi", "nist", "asvspoof5"):
        np.testing.assert_array_equal(found.labels, table.labels)
    if format in ("csv", "tsv") and not np.isnan(table.columns["dur"]).all():
        np.testing.assert_array_equal(found.columns["dur"], table.columns["dur"])


@given(
    table=tables(), separator=st.sampled_from([" ", "\t", "  ", " \t "]), end=st.sampled_from(["\n", "\r\n", " \n\n"])
)
def test_blanks_line_ends_and_compression_do_not_matter(tmp_path, table, separator, end):
    lines = [separator.join((*table.pair(i), repr(float(table.scores[i])))) for i in range(len(table))]
    path = tmp_path / "file.gz"
    path.write_bytes(gzip.compress(b"\xef\xbb\xbf" + end.join([*lines, ""]).encode()))
    assert read(path, format="kaldi") == TrialList(*zip(*map(table.pair, range(len(table))), strict=True), table.scores)


@pytest.mark.parametrize("format", [*LINE_FORMATS, *HEADED_FORMATS])
def test_a_format_that_is_written_is_recognized(tmp_path, format):
    table = TrialList(["ann", "bob", "bob"], ["u1", "u1", "u2"], [1.5, -2, 0.25], [1, 0, 1], {"dur": [1.0, 2, 3]})
    write(table, tmp_path / "file", format=format)
    found = read(tmp_path / "file")
    assert len(found) == 3
    assert (found.scores is None) == (format == "voxceleb")


def test_chunks_are_joined(tmp_path, monkeypatch):
    monkeypatch.setattr(text_reader, "CHUNK_SIZE", 200)
    rng = np.random.default_rng(0)
    codes = rng.permutation(2500)[:1000]
    lines = [f"e{c // 50} t{c % 50}   {c / 7}" if c % 3 else f"e{c // 50} t{c % 50} {c / 7}\n" for c in codes]
    path = tmp_path / "file"
    path.write_text("\n".join(lines) + "\n")
    found = read(path)
    assert [found.pair(i) for i in range(1000)] == [(f"e{c // 50}", f"t{c % 50}") for c in codes]
    np.testing.assert_array_equal(found.scores, codes / 7)
    path.write_text("\n".join([*lines, "e1 t1"]))
    with pytest.raises(FileError) as caught:
        read(path)
    assert caught.value.line == path.read_text().count("\n") + 1


@pytest.mark.parametrize("size", [20, 25, 30, 60])
def test_the_lines_behind_a_long_header_are_all_read(tmp_path, monkeypatch, size):
    monkeypatch.setattr(text_reader, "CHUNK_SIZE", size)
    names = ",".join(["enroll", "test", "score", *(f"column{i}" for i in range(9))])
    lines = [f"e{i},t,{i}" + ",1" * 9 for i in range(20)]
    (tmp_path / "a.csv").write_text("\n".join([names, *lines, ""]))
    assert read(tmp_path / "a.csv").scores.tolist() == list(range(20))


BAD_LINES = {
    "kaldi": ["a b", "a b c d", "a b x", "a b 1,5", "a b nan", "a b inf", "a b 1e31", "a b \0", "a\rb c 1", "a b \xff"],
    "wespeaker": ["a b 1 maybe", "a b x target"],
    "speechbrain": ["a b target -"],
    "espnet": ["ab 1 1", "a*b*c 1 1", "*b 1 1"],
    "csv": ["a,b,", "a,,1", ",b,1", "a,b,1,2", 'a,"b,1', "a,b,x"],
}


@pytest.mark.parametrize(("format", "bad"), [(format, bad) for format, lines in BAD_LINES.items() for bad in lines])
def test_a_bad_line_is_named(tmp_path, format, bad):
    good = {"wespeaker": "e{} t 1 target", "speechbrain": "e{} t target 1", "espnet": "e{}*t 1 1", "csv": "e{},t,1"}
    line = good.get(format, "e{} t 1.5")
    path = tmp_path / "file"
    content = ["enroll,test,score"] * (format == "csv") + [line.format(i) for i in range(5)] + ["", bad, line.format(6)]
    path.write_bytes("\n".join(content).encode("latin1"))
    with pytest.raises(FileError) as caught:
        read_scores(path, format=format)
    assert caught.value.line == 7 + (format == "csv")
    assert str(caught.value).startswith(f"{path}:{caught.value.line}: ")


def test_missing_scores_are_refused_or_skipped(tmp_path):
    path = tmp_path / "file"
    path.write_text("e1 t1 1\n\ne1 t2 nan\ne1 t3 -\ne1 t4 inf\ne2 t1 2\ne2 t1 2\n")
    with pytest.raises(FileError, match=":3: "):
        read(path)
    with pytest.raises(FileError, match=r":7: .*in line 6"):
        read(path, missing="skip")
    assert read(path, missing="skip", duplicates="drop").scores.tolist() == [1, 2]
    assert read(path, missing="skip", duplicates="drop", infinite="accept").scores.tolist() == [1, np.inf, 2]


def test_a_repeated_trial_with_another_value_is_refused(tmp_path):
    path = tmp_path / "file"
    path.write_text("e t 1\ne u 1\ne t 2\n")
    with pytest.raises(FileError, match=r":3: .*in line 1"):
        read(path, duplicates="drop")


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"", None),
        (b"\n \n", None),
        (b"enroll,test,score\n", None),
        (b"enroll,test,score,score\na,b,1,1\n", 1),
        (b"a,b,1\n", 1),
        (b"a;b;1\n", 1),
        (b"a b 1,5\n", 1),
        (b"\xff\xfea\0b\0", 1),
        (b"a b c d e\n", 1),
        (b"x" * (1 << 21), 1),
        (b"\x80\x04x", None),
        (b"\x89HDF\r\n\x1a\n", None),
        (b"\0" * 100, None),
        (b"\x1f\x8b\x08\x00", None),
    ],
)
def test_what_is_no_score_file_is_refused(tmp_path, content, line):
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(FileError) as caught:
        read_scores(path)
    assert (caught.value.path, caught.value.line) == (str(path), line)


def test_formats_that_do_not_fit_are_refused(tmp_path):
    path = tmp_path / "file"
    table = TrialList(["e"], ["t"], scores=[1.0])
    for format in ("wespeaker", "speechbrain", "bob", "utt2spk", "wespeaker-factors", "speaker-table"):
        with pytest.raises(FileError, match=format):
            write(table, path, format=format)
    for format in ("asvspoof5", "espnet"):
        with pytest.raises(FileError, match="scores"):
            write(TrialList(["e"], ["t"], labels=[1]), path, format=format)
    with pytest.raises(FileError, match="no label"):
        write(TrialList(["e"], ["t"], labels=[-1]), path)
    for name in ("a b", "a\nb", " ", "x" * 5000, "\ud800"):
        with pytest.raises(FileError, match="cannot be written"):
            write(TrialList([name], ["t"], scores=[1.0]), path)
    with pytest.raises(ValueError, match="did you mean 'kaldi'"):
        read(path, format="kalid")
    assert not path.exists()
    path.write_text("e t 1\n")
    with pytest.raises(FileError, match=":1: this is not the format csv"):
        read(path, format="csv")
    path.write_text("enroll,test,score\ne,t,1\n")
    with pytest.raises(FileError, match="no column 'x'"):
        read(path, score_column="x")
    path.write_text("e t target\n")
    with pytest.raises(FileError, match="expected scores"):
        read_scores(path)


def test_a_matrix_is_written_in_long_form(tmp_path):
    matrix = ScoreMatrix(np.array([[1.5, np.nan], [0.1, 3e-7]], np.float32), ["e1", "e2"], ["t1", "t2"])
    write(matrix, tmp_path / "file")
    assert (tmp_path / "file").read_text() == "e1 t1 1.5\ne2 t1 0.1\ne2 t2 3e-7\n"
    assert read_trials(tmp_path / "file").shape == (2, 2)
