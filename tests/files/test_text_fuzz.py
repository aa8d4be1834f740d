"""Arbitrary bytes and damaged files: every reader parses them or raises the project's own error, at any chunk size."""

from pathlib import Path

import pytest
from hypothesis import example, given, strategies as st

from damage import cuts_and_flips, must_parse_or_refuse
from evenscore import FileError, read, read_speakers
from evenscore.files import FORMATS
from evenscore.files.registry import ReadOptions
from evenscore.files.text.layouts import LAYOUTS
from evenscore.files.text.read import read_trials_text
from examples import examples

GOLDEN = sorted(path for path in (Path(__file__).parent / "golden").glob("*") if path.is_file())
TEXT = [*LAYOUTS, "utt2spk", "spk2utt"]
lines = st.lists(
    st.sampled_from(["e", "t", "0.5", "nan", "1", "target", "imp", "-", '"', "e*t", ",", "\0", "\r", "é", "\ufeff"])
    .flatmap(lambda word: st.lists(st.just(word) | st.sampled_from(["a", "2", "0"]), min_size=1, max_size=5)),
    max_size=5,
)  # fmt: skip


@pytest.mark.parametrize("name", TEXT)
@examples(20)
@given(data=st.binary(max_size=60))
def test_arbitrary_bytes(name, data, tmp_path):
    path = tmp_path / "fuzz"
    path.write_bytes(data)
    must_parse_or_refuse(lambda one: read(one, format=name), path)


@given(data=st.binary(max_size=60))
def test_arbitrary_bytes_of_no_named_format(data, tmp_path):
    path = tmp_path / "fuzz"
    path.write_bytes(data)
    must_parse_or_refuse(read, path)
    must_parse_or_refuse(read_speakers, path)


@examples(100)
@given(
    rows=lines, separator=st.sampled_from([" ", "\t", ",", "  "]), header=st.sampled_from(["", "enroll,test,score\n"])
)
@example(rows=[['"', "a"], ['"', "b"]], separator=",", header="enroll,test\n")
def test_lines_of_tricky_words(rows, separator, header, tmp_path):
    path = tmp_path / "fuzz"
    path.write_text(header + "".join(separator.join(row) + "\n" for row in rows), newline="")
    must_parse_or_refuse(read, path)
    for name in ("kaldi", "wespeaker", "bob", "espnet", "csv"):
        must_parse_or_refuse(lambda one, name=name: read(one, format=name), path)


@pytest.mark.parametrize("golden", [path for path in GOLDEN if path.suffix != ".md"], ids=lambda path: path.name)
@examples(15)
@given(data=st.data())
def test_damaged_golden_files(golden, data, tmp_path):
    path = tmp_path / golden.name
    path.write_bytes(data.draw(cuts_and_flips(golden.read_bytes())))
    must_parse_or_refuse(read, path)


def result_of(path, layout, chunk_size):
    try:
        return read_trials_text(path, ReadOptions(), layout, chunk_size=chunk_size)
    except FileError as error:
        return str(error)


@pytest.mark.parametrize(
    "name", ["kaldi.scores", "wespeaker_norm.scores", "table.csv", "asvspoof5.tsv", "espnet.scores"]
)
@examples(25)
@given(data=st.data())
def test_the_size_of_the_chunks_does_not_matter(name, data, tmp_path):
    """Neither for what is read, nor for the line that is blamed."""
    golden = Path(__file__).parent / "golden" / name
    layout = name.split(".")[0].split("_")[0].replace("table", "csv")
    path = tmp_path / name
    path.write_bytes(data.draw(cuts_and_flips(golden.read_bytes())))
    assert result_of(path, layout, 20) == result_of(path, layout, 1 << 24)


def test_every_text_format_is_fuzzed():
    text = {name for name, record in FORMATS.items() if record.kinds != ("embeddings",)}
    assert set(TEXT) <= text
