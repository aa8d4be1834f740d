"""Bad input: one sentence with the file and the line, what is wrong and what to do; no traceback and no guess."""

import gzip

import numpy as np
import pytest

from evenscore import FileError, TrialList, read, read_embeddings, read_scores, read_speakers, read_trials
from evenscore.files.registry import ReadOptions
from evenscore.files.text.read import read_trials_text

GOOD = "".join(f"e{i} t{j} {i - j / 10}\n" for i in range(40) for j in range(5))


def refused(path, content, *, line=None, **how):
    """Write a file, read it, and return the problem without the place."""
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(FileError) as caught:
        read(path, **how)
    assert caught.value.line == line, str(caught.value)
    assert str(caught.value).startswith(str(path) + (f":{line}: " if line else ": "))
    assert "\n" not in caught.value.problem
    return caught.value.problem


@pytest.fixture
def path(tmp_path):
    return tmp_path / "dev.scores"


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        ("e t", "expected 3 columns (enroll test score), found 2 columns"),
        ("e", "expected 3 columns (enroll test score), found 1 column"),
        ("e t 0.5 target", "expected 3 columns (enroll test score), found 4 columns"),
        ("e t abc", "score 'abc' is not a number"),
        ("e t 1_000", "score '1_000' is not a number"),
        ("e t 0x10", "score '0x10' is not a number"),
        ("e t ١", "score '١' is not a number"),
        ("e t nan", "score 'nan' is not finite; drop the trial, or read it with missing='skip'"),
        ("e t -Infinity", "score '-Infinity' is not finite; drop the trial, or read it with missing='skip'"),
        ("e t 1e999", "score '1e999' is not finite; drop the trial, or read it with missing='skip'"),
        ("e t -", "score '-' is absent; drop the trial, or read it with missing='skip'"),
        ("e t target", "score 'target' is not a number"),
        ("e\r t 0.5", "there is a carriage return inside the line; convert the line ends"),
        ("e\0 t 0.5", "the line has a null byte; this is binary data (or UTF-16), not text"),
        ("e0 t3 0.75", "the trial ('e0', 't3') stands in line 4 already, with another score; keep one of the two"),
        ("e0  t3 -0.3", "the trial ('e0', 't3') stands in line 4 already, with the same values; remove it, or read it "
         "with duplicates='drop'"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("chunk_size", [300, 1 << 24])
@pytest.mark.parametrize("blanks", [0, 3])
def test_the_first_bad_line_is_named(bad, problem, chunk_size, blanks, path):
    path.write_text("\n" * blanks + GOOD + bad + "\n" + GOOD.replace("e", "x"), newline="\n")
    expected = problem.replace("line 4", f"line {4 + blanks}")
    for attempt in (
        lambda: read_trials_text(path, ReadOptions(), "kaldi", chunk_size=chunk_size),
        lambda: read(path),
    ):
        with pytest.raises(FileError) as caught:
            attempt()
        assert str(caught.value) == f"{path}:{201 + blanks}: {expected}"


@pytest.mark.parametrize("chunk_size", [30, 1 << 24])
def test_invalid_utf8_is_named_by_line_and_byte(chunk_size, path):
    path.write_bytes(b"sp\xc3\xa9c t 1.0\n" * 1 + b"e t 2.0\ne\xff t 1.0\n")
    with pytest.raises(FileError) as caught:
        read_trials_text(path, ReadOptions(), "kaldi", chunk_size=chunk_size)
    assert str(caught.value) == f"{path}:3: byte 0xff at column 2 is not UTF-8; convert the file"


def test_labels_that_are_not_known(path):
    problem = "label 'maybe' is not known; use target and nontarget, tgt and imp, 1 and 0"
    assert refused(path, "e t target\ne u maybe\ne v nontarget\n", line=2) == problem
    assert refused(path, "e t 0.5 1\ne u 0.6 0\ne v 0.7 maybe\n", line=3) == problem
    assert refused(path, "enroll,test,label\ne,t,target\ne,u,maybe\n", line=3) == problem


def test_labels_in_any_case(path):
    words = ["TARGET", "NonTarget", "Tgt", "IMP", "True", "FALSE", "+1", "-1", "1", "0", "non"]
    path.write_text("".join(f"{word} e t{i}\n" for i, word in enumerate(words)))
    assert read(path, format="voxceleb").labels.tolist() == [1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 0]


@pytest.mark.parametrize("chunk_size", [30, 1 << 24])
def test_scores_that_are_missing_can_be_skipped(chunk_size, path):
    path.write_text("e t 1.0\ne u nan\ne v -\n\ne w inf\ne x 2.0\n")
    options = ReadOptions(missing="skip")
    table = read_trials_text(path, options, "kaldi", chunk_size=chunk_size)
    assert table == TrialList.from_pairs(["e", "e"], ["t", "x"], scores=[1.0, 2.0])
    path.write_text("e t 1.0\ne u nan\n" + "e x 2.0\n" * 2)
    with pytest.raises(FileError, match=r"scores:4: the trial \('e', 'x'\) stands in line 3 already"):
        read_trials_text(path, options, "kaldi", chunk_size=chunk_size)


def test_nothing_left_after_skipping(path):
    assert "there are no trials" in refused(path, "e t nan\n", missing="skip", format="kaldi")


@pytest.mark.parametrize("chunk_size", [30, 1 << 24])
def test_identical_repeats_can_be_dropped_but_not_contradictions(chunk_size, path):
    options = ReadOptions(duplicates="drop")
    path.write_text("e t 1.0 1\ne u 2.0 0\ne t 1.0 1\ne u 2.0 0\n")
    table = read_trials_text(path, options, "wespeaker", chunk_size=chunk_size)
    assert table == TrialList.from_pairs(["e", "e"], ["t", "u"], scores=[1.0, 2.0], labels=[1, 0])
    path.write_text("e t 1.0 1\ne u 2.0 0\ne t 1.0 1\ne u 2.0 1\n")
    with pytest.raises(FileError, match=r":4: the trial \('e', 'u'\) stands in line 2 already, with another label"):
        read_trials_text(path, options, "wespeaker", chunk_size=chunk_size)


def test_measures_that_are_absent_are_equal(path):
    path.write_text("enroll,test,score,snr\ne,t,1.0,2\ne,u,1.0,\ne,u,1.0,\n")
    assert np.isnan(read(path, duplicates="drop").measures["snr"][1])


@pytest.mark.parametrize("content", ["", "\n", " \t\n\r\n\n", "\ufeff"])
def test_empty_files(content, path):
    assert refused(path, content) == "the file is empty; there is nothing to read"
    assert refused(path, content, format="kaldi") == "the file is empty; there is nothing to read"
    with pytest.raises(FileError, match="empty"):
        read_speakers(path)


def test_a_header_without_trials(path):
    assert "there are no trials" in refused(path, "enroll,test,score\n")


def test_files_that_cannot_be_opened(tmp_path, monkeypatch):
    with pytest.raises(FileError, match="no-such: there is no such file; check the name"):
        read(tmp_path / "no-such")
    with pytest.raises(FileError, match="this is a directory, but a file is expected"):
        read(tmp_path)
    with pytest.raises(FileError, match="this is a directory, but a file is expected"):
        read(tmp_path, format="kaldi")
    path = tmp_path / "secret"
    path.write_text(GOOD)

    def refuse(*_args, **_kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", refuse)
    with pytest.raises(FileError, match="secret: no permission to read it"):
        read(path)


@pytest.mark.parametrize("format", [None, "kaldi"])
def test_truncated_and_damaged_gzip(format, tmp_path):
    path = tmp_path / "dev.scores.gz"
    packed = gzip.compress((GOOD * 400).encode())
    for damaged in (packed[: len(packed) // 2], packed[:-4], packed[:40] + bytes([packed[40] ^ 255]) + packed[41:]):
        path.write_bytes(damaged)
        with pytest.raises(FileError, match=r"the gzip data is cut off or damaged \(.*\); copy the file again"):
            read(path, format=format)


def test_binary_garbage(path):
    garbage = np.random.default_rng(0).bytes(100_000)
    assert "binary data of no known format" in refused(path, garbage)
    assert refused(path, b"e t 0.5\n" + garbage, format="kaldi", line=2)


@pytest.mark.parametrize("format", [None, "kaldi", "csv"])
def test_utf16_is_named(format, path):
    assert refused(path, GOOD.encode("utf-16"), format=format, line=1) == "it is text in UTF-16; convert it to UTF-8"


class _Endless:
    """A stream of one endless line that counts what is read of it."""

    def __init__(self, start=b""):
        self.start = start
        self.taken = 0

    def read(self, size):
        data = self.start + b"a" * (size - len(self.start))
        self.start = b""
        self.taken += size
        return data

    readline = read


def test_an_endless_line_ends_the_reading(monkeypatch, path):
    from contextlib import contextmanager

    stream = _Endless(b"e t 0.5\n")

    @contextmanager
    def opened(_path):
        yield stream

    monkeypatch.setattr("evenscore.files.text.read.open_input", opened)
    with pytest.raises(FileError, match=r":2: the line is longer than 1 MiB; this is not a table of trials"):
        read_trials_text(path, ReadOptions(), "kaldi")
    assert stream.taken < 40 << 20


def test_a_line_of_some_megabytes_is_refused(path):
    assert "longer than 1 MiB" in refused(path, b"a" * (3 << 20), line=1)
    assert "longer than 1 MiB" in refused(path, b"e t 0.5\n" + b"a" * (3 << 20) + b" t 1.5", format="kaldi", line=2)


def test_quotes_that_do_not_fit(path):
    assert "quotes" in refused(path, 'enroll,test,score\ne,t,1.0\n"e,u,2.0\n', line=3)


@pytest.mark.parametrize("chunk_size", [12, 1 << 24])
def test_a_line_end_within_quotes(chunk_size, path):
    path.write_text('enroll,test,score\n"e 1",t,1.0\n"e\n2",t,2.0\ne,u,1.0\n')
    with pytest.raises(FileError, match=r":3: the quotes do not fit together"):
        read_trials_text(path, ReadOptions(), "csv", chunk_size=chunk_size)


def test_a_csv_without_a_header(path):
    problem = "the columns are separated by commas, but no header names them; add one, such as enroll,test,score"
    assert refused(path, "e,t,1.0\ne,u,2.0\n", line=1) == problem
    assert "expected a header line" in refused(path, "e,t,1.0\ne,u,2.0\n", line=1, format="csv")


def test_a_header_with_the_same_name_twice(path):
    assert "the header has 'snr' twice" in refused(path, "enroll,test,snr,SNR\ne,t,1.0,2.0\n", line=1)


def test_a_column_without_a_name_is_ignored(path):
    path.write_text('"enroll","test",score,"a, b",\ne,t,1.0,2.0,7\n"e ""2""",t,1.0,,\n')
    expected = TrialList.from_pairs(["e", 'e "2"'], ["t", "t"], scores=[1.0, 1.0], measures={"a, b": [2.0, np.nan]})
    assert read(path) == expected


def test_a_column_that_is_not_there(path):
    problem = refused(path, "enroll,test,score\ne,t,1.0\n", score_column="llr", line=1)
    assert "there is no column 'llr'; the header has enroll, test, score" in problem


def test_text_in_a_further_column_of_numbers(path):
    rows = "".join(f"e,t{i},1.0,{i}\n" for i in range(20_000))
    problem = refused(path, f"enroll,test,score,snr\n{rows}e,u,1.0,loud\n", line=20_002)
    assert problem == "snr 'loud' is not a number"


@pytest.mark.parametrize("row", ["e,u", "e,u,1.0,2,3", "e,,1.0,2", ",u,1.0,2"])
def test_wrong_rows_of_a_csv(row, path):
    refused(path, f"enroll,test,score,snr\ne,t,1.0,2\n{row}\ne,v,1.0,2\n", line=3)


def test_the_wrong_kind_of_file(path):
    path.write_text("e t target\ne u nontarget\n")
    with pytest.raises(FileError, match="expected scores, but it holds trials without scores; give a score file"):
        read_scores(path)
    with pytest.raises(FileError, match="expected embeddings, but it holds trials without scores"):
        read_embeddings(path)
    path.write_text("ann a1 a2\nbob b1\n")
    with pytest.raises(FileError, match="expected trials, but it holds a map of speakers"):
        read_trials(path)


@pytest.mark.parametrize(
    ("content", "line", "problem"),
    [
        ("u1 ann\nu1 bob\n", 2, "'u1' is of 'bob' here, but of 'ann' in line 1; keep one of the two"),
        ("u1 ann\nu2 ann\nu1 ann\n", 3, "'u1' stands in line 1 already; remove it, or read it with duplicates='drop'"),
        ("u1 ann\nu2 ann x\n", 2, "expected 2 columns (utterance speaker), found 3"),
        ("u1 ann\n\xff\n", 2, "byte 0xff is not UTF-8; convert the file"),
        ("u1 ann\n\0\n", 2, "this is not a text file of utterances and speakers"),
    ],
)
def test_bad_speaker_maps(content, line, problem, path):
    path.write_bytes(content.encode("latin-1"))
    with pytest.raises(FileError) as caught:
        read_speakers(path, format="utt2spk")
    assert str(caught.value) == f"{path}:{line}: {problem}"
    if "drop" in problem:
        assert read_speakers(path, format="utt2spk", duplicates="drop") == {"u1": "ann", "u2": "ann"}
    path.write_text("ann\n")
    with pytest.raises(FileError, match=":1: expected a speaker and its utterances, found 1 column"):
        read_speakers(path, format="spk2utt")
