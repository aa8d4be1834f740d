"""Which format a file has: what is certain is said, what is not is an error that names the choices."""

import gzip
import io
import sys

import numpy as np
import pytest

from evenscore import Embeddings, FileError, InputError, ScoreMatrix, TrialList, read, write
from evenscore.files import FORMATS, sniff

TABLES = {
    "scores": TrialList.from_pairs(["e1", "e2"], ["t1", "t1"], scores=[0.5, -1.25]),
    "trials": TrialList.from_pairs(["e1", "e1"], ["t1", "t2"], labels=[1, 0]),
    "embeddings": Embeddings(["u1", "u2"], [[0.5, 1.0], [2.0, -1.0]]),
    "speakers": {"ann-1": "ann", "ann-2": "ann", "bob-1": "bob"},
}
LABELLED = TrialList.from_pairs(["e1", "e2"], ["t1", "t1"], scores=[0.5, -1.25], labels=[1, 0])
MEASURED = TrialList.from_pairs(["e1", "e2"], ["t1", "t1"], scores=[0.5, -1], labels=[1, 0], measures={"snr": [9, 8]})
WRITTEN = [(name, kind) for name, record in FORMATS.items() if record.write for kind in record.kinds]
PACKED = [(name, kind, True) for name, kind in WRITTEN if name not in ("zarr", "npy", "kaldi-scp")]  # one file each


@pytest.mark.parametrize(("name", "kind", "packed"), [*((*case, False) for case in WRITTEN), *PACKED])
def test_every_written_file_is_recognized(name, kind, packed, tmp_path):
    record = FORMATS[name]
    path = tmp_path / ("file" + (record.extensions[0] if record.extensions else "") + ".gz" * packed)
    table = LABELLED if name in ("wespeaker", "speechbrain", "espnet", "bob") else TABLES[kind]
    table = MEASURED if name == "wespeaker-factors" else table
    if name == "zarr":
        pytest.importorskip("zarr")
    write(table, path, format=name)
    found = sniff(path).name
    same = {"spk2utt": "spk2utt", "kaldi-ark-text": "kaldi-ark", "bosaris-old-key": "bosaris"}
    assert found in (name, same.get(name))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("a b 0.5\n", "kaldi"),
        ("a b 1\na c 0\na d 0.5\n", "kaldi"),
        ("a b target\n", "kaldi"),
        ("1 a b\n", "voxceleb"),
        ("a b 0.5 1\n", "wespeaker"),
        ("a b 1 0.5\n", "speechbrain"),
        ("a b 1 1\na b 0 0.5\n", "speechbrain"),
        ("a b 1 1\na c 0.5 0\n", "wespeaker"),
        ("a b c 0.5\n", "bob"),
        ("a*b 0.5 1\n", "espnet"),
        ("a b\na c\n", "kaldi"),
        ("ann-1 ann\nbob-1 bob\n", "utt2spk"),
        ("ann ann-1\nbob bob-1\n", "spk2utt"),
        ("ann a1 a2 a3\nbob b1\n", "spk2utt"),
        ("a x.ark:12\nb x.ark:400\n", "kaldi-scp"),
        ("a  [ 0.5 1.0 ]\n", "kaldi-ark-text"),
        ("modelid\tsegmentid\tLLR\n", "nist"),
        ("enroll\ttest\tscore\n", "tsv"),
        ("enroll,test,score\n", "csv"),
        ('"enroll","test","score"\n', "csv"),
        ("enroll test score\na b 1\n", "tsv"),
        ("a b 0.5\na c x\na d 0.5\na e 0.7\n", "kaldi"),  # a bad line is for the reader to report
        ("a b 0.5\na c\na d 0.5\na e 0.7\n", "kaldi"),
    ],
)
def test_lines_are_recognized(text, name, tmp_path):
    path = tmp_path / "file"
    path.write_text(text)
    assert sniff(path).name == name
    (tmp_path / "file.gz").write_bytes(gzip.compress(text.encode()))
    assert sniff(tmp_path / "file.gz").name == name


@pytest.mark.parametrize(
    ("text", "choices"),
    [
        ("a b 1\na c 0\n", r"kaldi \(0 and 1 are scores\) or wespeaker \(0 and 1 are labels\)"),
        ("a b 1 0\n", "wespeaker .* or speechbrain"),
        ("1 2 0.5\n", "kaldi .* or voxceleb"),
        ("a x\nb y\n", "kaldi .* or utt2spk"),
    ],
)
def test_what_can_be_two_things_is_an_error_that_names_both(text, choices, tmp_path):
    path = tmp_path / "file"
    path.write_text(text)
    with pytest.raises(
        FileError, match=rf"such as '.*', which can be {choices}.*; read it with format=NAME, one of them"
    ):
        sniff(path)


def test_what_is_asked_for_decides(tmp_path):
    path = tmp_path / "file"
    path.write_text("a x\nb x\n")
    assert sniff(path, kind="trials").name == "kaldi"
    assert sniff(path, kind="speakers").name == "utt2spk"
    path.write_text("a x\nb y\n")
    with pytest.raises(FileError, match="utt2spk as well as spk2utt"):
        sniff(path, kind="speakers")


@pytest.mark.parametrize("text", ["a\n", "a b c d e f\na g h\n1 2 3 4 5 6\n", "hello there, this is no table\n"])
def test_what_is_no_table_is_shown(text, tmp_path):
    path = tmp_path / "file"
    path.write_text(text)
    with pytest.raises(FileError, match=r"such as '.*', which is no known format; name the format"):
        sniff(path)


def test_scores_without_ids_are_explained(tmp_path):
    path = tmp_path / "file"
    path.write_text("0.5 target\n-1 nontarget\n")
    with pytest.raises(FileError, match="a score and a label but no ids"):
        sniff(path)


def test_a_name_that_is_no_format():
    with pytest.raises(InputError, match=r"there is no format 'kadli'; known are .*kaldi"):
        read("file", format="kadli")


def test_standard_input_is_read_once_and_sniffed(monkeypatch):
    for content in (b"a b 0.5\na c 1.5\n", gzip.compress(b"a b 0.5\na c 1.5\n")):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        assert read("-") == TrialList.from_pairs(["a", "a"], ["b", "c"], scores=[0.5, 1.5])
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a b 0.5\na c x\na d 1\n")))
    with pytest.raises(FileError, match=r"^<stdin>:2: score 'x' is not a number"):
        read("-")


@pytest.mark.parametrize(
    ("name", "table", "format"),
    [
        ("a.csv", "scores", "csv"),
        ("a.tsv.gz", "trials", "tsv"),
        ("a.NPZ", "scores", "npz"),
        ("a.scores", "scores", "kaldi"),
        ("trials", "trials", "kaldi"),
        ("a.h5", "scores", "bosaris"),
        ("a.h5", "embeddings", "hdf5"),
        ("a.ark", "embeddings", "kaldi-ark"),
        ("vectors", "embeddings", "kaldi-ark"),
        ("utt2spk", "speakers", "utt2spk"),
        ("spk2utt", "speakers", "spk2utt"),
    ],
)
def test_the_name_decides_what_is_written(name, table, format, tmp_path):
    write(TABLES[table], tmp_path / name)
    assert sniff(tmp_path / name).name == format


def test_a_name_for_another_kind_of_table_is_refused(tmp_path):
    with pytest.raises(FileError, match=r"a\.ark: .*not a score matrix"):
        write(ScoreMatrix(np.ones((1, 1)), ["e"], ["t"]), tmp_path / "a.ark")
    assert list(tmp_path.iterdir()) == []
