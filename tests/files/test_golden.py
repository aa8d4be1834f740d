"""Files as other programs write them: HDF5 of BOSARIS and its relatives, Kaldi's vectors, npy, npz, parquet, lines."""

import gzip
import struct

import h5py
import numpy as np
import polars as pl
import pytest

from evenscore.data import Embeddings, ScoreMatrix, TrialList
from evenscore.errors import FileError
from evenscore.files import read, read_embeddings, read_scores, read_trials, sniff, write

SCORES = np.array([[1.0, 2.0, 3.0]])
MASK = np.int8([[1, 0, -1]])
TESTS = [b"s", b"t", b"u"]


def made(path, **datasets):
    """Create an HDF5 file; ``ID__row_ids`` stands for ``ID/row_ids``."""
    with h5py.File(path, "w") as file:
        for name, values in datasets.items():
            file[name.replace("__", "/")] = values
    return path


@pytest.mark.parametrize(
    "sides",
    [
        ("ID__row_ids", "ID__column_ids"),  # BOSARIS
        ("modelset", "segset"),  # SIDEKIT
        ("enroll_ids", "test_ids"),  # DCA-PLDA
        ("train_ids", "test_ids"),  # and an older one
        ("model_names", "test_names"),  # PyBOSARIS
    ],
)
def test_hdf5_of_bosaris_and_relatives(tmp_path, sides):
    ids = {sides[0]: [b"m"], sides[1]: TESTS}
    scores = {"score_mat" if sides[0] == "model_names" else "scores": SCORES}
    assert read_scores(made(tmp_path / "s.h5", **ids, **scores)) == ScoreMatrix(SCORES, ["m"], ["s", "t", "u"])
    if sides[1] != "test_names":  # a process each
        return
    key = TrialList(["m", "m"], ["s", "u"], labels=[1, 0])
    assert read_trials(made(tmp_path / "k.h5", **ids, trial_mask=MASK)) == key
    masks = {"tar_mask": MASK > 0, "non_mask": MASK < 0}
    assert read_trials(made(tmp_path / "o.h5", **ids, **masks)) == key
    assert read_trials(made(tmp_path / "n.h5", **ids, trial_mask=MASK != 0)) == key.with_labels(None)


def test_masks_of_hdf5(tmp_path):
    ids = {"ID__row_ids": ["a"], "ID__column_ids": ["s", "t"]}
    masked = made(tmp_path / "s.h5", scores=[[np.nan, 1.0]], score_mask=np.uint8([[0, 1]]), **ids)
    np.testing.assert_array_equal(read_scores(masked).scores, [[np.nan, 1.0]])
    only_targets = made(tmp_path / "k.h5", trial_mask=np.int8([[1, 0]]), file_format="2.0", **ids)
    assert read_trials(only_targets).labels.tolist() == [1]
    write(TrialList(["a", "b"], ["ß", "ß"], labels=[1, 0]), tmp_path / "w.h5")
    with h5py.File(tmp_path / "w.h5") as file:
        assert (file["trial_mask"].dtype, file["trial_mask"][()].tolist()) == (np.int8, [[1], [-1]])
        assert (file["file_format"][()], file["ID/column_ids"][()].tolist()) == (b"2.0", ["ß".encode()])
    write(TrialList(["a", "b"], ["s", "s"], labels=[1, 0]), tmp_path / "w.h5", format="bosaris-old-key")
    with h5py.File(tmp_path / "w.h5") as file:
        assert (file["nontarget_mask"].dtype, file["nontarget_mask"][()].tolist()) == (np.uint8, [[0], [1]])


@pytest.mark.parametrize("padding", [h5py.h5t.STR_SPACEPAD, h5py.h5t.STR_NULLPAD])
def test_fixed_text_of_any_padding(tmp_path, padding):
    path = made(tmp_path / "s.h5", scores=[[1.0], [2.0]], ID__column_ids=["t"])
    with h5py.File(path, "a") as file:
        kind = h5py.h5t.C_S1.copy()
        kind.set_size(6)
        kind.set_strpad(padding)
        dataset = h5py.h5d.create(file.id, b"/ID/row_ids", kind, h5py.h5s.create_simple((2,)))
        dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, np.array([b"ab", b"c"], dtype="S6"))
    assert read_scores(path).enroll_ids.tolist() == ["ab", "c"]


def test_embeddings_in_hdf5(tmp_path):
    vectors = np.float32([[1, 2], [3, 4]])
    found = read_embeddings(made(tmp_path / "e.h5", embeddings=vectors, ids=[b"a", b"b"], speakers=["ann", ""]))
    assert (found.speakers.tolist(), found.vectors.tolist()) == (["ann", None], vectors.tolist())
    assert read_embeddings(made(tmp_path / "x.h5", X=vectors, utt_ids=[7, 8])).ids.tolist() == ["7", "8"]
    each = {"id1/video/1.wav": vectors[0], "id1/video/2.wav": vectors[1], "b": vectors[:1]}
    assert read_embeddings(made(tmp_path / "i.h5", **each)).select(["id1/video/2.wav"]).vectors.tolist() == [[3, 4]]


def test_archives_of_kaldi(tmp_path, monkeypatch):
    two = Embeddings(["utt1", "utt2"], np.float32([[0.5, -1.5], [2, 3.25]]))
    entries = [
        name + b" \0BFV \4" + struct.pack("<i2f", 2, *row)
        for name, row in zip((b"utt1", b"utt2"), two.vectors, strict=True)
    ]
    write(two, tmp_path / "w.ark")
    assert (tmp_path / "w.ark").read_bytes() == b"".join(entries)
    write(two, tmp_path / "t.ark", format="kaldi-ark-text")
    assert (tmp_path / "t.ark").read_text() == "utt1  [ 0.5 -1.5 ]\nutt2  [ 2.0 3.25 ]\n"
    (tmp_path / "g.ark").write_bytes(b"utt1  [ 0.5 -1.5 ]\nutt2  [\n  2 3.25 ]\r\n\n")
    np.testing.assert_array_equal(read(tmp_path / "g.ark").vectors, two.vectors)
    (tmp_path / "d.ark.gz").write_bytes(gzip.compress(b"a \0BDV \4" + struct.pack("<i2d", 2, 0.1, 0.2)))
    assert read(tmp_path / "d.ark.gz").vectors.tolist() == [[0.1, 0.2]]
    (tmp_path / "exp").mkdir()
    monkeypatch.chdir(tmp_path)
    write(two, "exp/x.scp")
    assert (tmp_path / "exp/x.scp").read_text() == "utt1 exp/x.ark:5\nutt2 exp/x.ark:28\n"
    (tmp_path / "exp/y.scp").write_text("utt1 x.ark:5\nutt2 x.ark:28\n")  # beside the scp
    for name in ("exp/x.scp", "exp/y.scp"):
        np.testing.assert_array_equal(read(name).vectors, two.vectors)


@pytest.mark.parametrize("name", ["e.npy.ids", "e.ids", "e.npy.txt", "e.txt"])
def test_npy_with_a_list_of_ids(tmp_path, name):
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), }".ljust(117) + b"\n"
    content = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + struct.pack("<2f", 0.5, -2.0)
    (tmp_path / "e.npy").write_bytes(content)
    (tmp_path / name).write_bytes(b"\xef\xbb\xbfutt 1\r\nC:\\x\\y.wav\r\n")
    found = read(tmp_path / "e.npy")
    assert (found.ids.tolist(), found.vectors.tolist()) == (["utt 1", "C:\\x\\y.wav"], [[0.5], [-2]])
    (tmp_path / name).write_text("only one\n")
    with pytest.raises(FileError):
        read(tmp_path / "e.npy")


def test_npz_of_other_programs(tmp_path):
    np.savez(tmp_path / "s.npz", score_mat=SCORES, modelset=["m"], segset=["s", "t", "u"])
    assert read(tmp_path / "s.npz") == ScoreMatrix(SCORES, ["m"], ["s", "t", "u"])
    np.savez(tmp_path / "l.npz", scores=SCORES, enroll_ids=["m"], test_ids=["s", "t", "u"], labels=[[1, 0, -1]])
    assert read(tmp_path / "l.npz").labels.tolist() == [1, 0, -1]
    np.savez(tmp_path / "e.npz", X=np.eye(2), utts=["a", "b"], spk=["ann", "bob"], gender=["f", "m"])
    found = read(tmp_path / "e.npz")
    assert (found.speakers.tolist(), found.columns["gender"].tolist()) == (["ann", "bob"], ["f", "m"])
    np.savez(tmp_path / "v.npz", u1=np.ones(3), u2=np.zeros(3))
    assert read(tmp_path / "v.npz").ids.tolist() == ["u1", "u2"]


LABELS = {
    "words": ["target", "NonTarget", None],
    "zero and one": [1, 0, None],
    "unknown as -1": [1, 0, -1],
    "plus and minus one": pl.Series([1, -1, None], dtype=pl.Int8),
    "truth values": [True, False, None],
    "categories": pl.Series(["tgt", "imp", ""], dtype=pl.Categorical),
}


@pytest.mark.parametrize("spelling", LABELS)
def test_labels_of_parquet(tmp_path, spelling):
    ids = pl.Series(["a", "b", "c"], dtype=pl.Categorical)
    frame = pl.DataFrame({"modelid": ids, "segmentid": 7, "label": LABELS[spelling], "note": "x", "snr": [1, 2, 3]})
    frame.write_parquet(tmp_path / "t.parquet")
    expected = TrialList(["a", "b", "c"], ["7"] * 3, labels=[1, 0, -1], columns={"snr": [1.0, 2, 3]})
    assert read(tmp_path / "t.parquet") == expected


@pytest.mark.parametrize("kind", [pl.Array(pl.Float64, 2), pl.List(pl.Float64)])
def test_embeddings_in_parquet(tmp_path, kind):
    vectors = pl.Series([[1.0, 2.0], [3.0, 4.0]], dtype=kind)
    pl.DataFrame({"utt": ["a", "b"], "spk": ["ann", None], "xvector": vectors}).write_parquet(tmp_path / "e.parquet")
    found = read(tmp_path / "e.parquet")
    assert (found.vectors.tolist(), found.speakers.tolist()) == ([[1, 2], [3, 4]], ["ann", None])


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("a b 0.5\n", "kaldi"),
        ("a b 1\na c 0\na d 0.5\n", "kaldi"),
        ("1 a b\n", "voxceleb"),
        ("a b 0.5 1\n", "wespeaker"),
        ("a b 1 1\na b 0 0.5\n", "speechbrain"),
        ("a b 1 1\na c 0.5 0\n", "wespeaker"),
        ("a b c 0.5\n", "bob"),
        ("a*b 0.5 1\n", "espnet"),
        ("a b\na c\n", "kaldi"),
        ("ann-1 ann\nbob-1 bob\n", "utt2spk"),
        ("ann ann-1\nbob bob-1\n", "spk2utt"),
        ("ann a1 a2 a3\nbob b1\n", "spk2utt"),
        ("a x.ark:12\nb x.ark:400\n", "kaldi-scp"),
        ('"enroll","test","score"\n', "csv"),
        ("enroll test score\na b 1\n", "tsv"),
        ("a b 0.5\na c x\na d 0.5\na e 0.7\n", "kaldi"),  # the bad line is reported when it is read
        ("a b 1\na c 0\n", "kaldi or wespeaker"),
        ("a b 1 0\n", "wespeaker or speechbrain"),
        ("1 2 0.5\n", "kaldi or voxceleb"),
        ("a x\nb y\n", "kaldi or utt2spk"),
        ("0.5 target\n-1 nontarget\n", "no ids"),
        ("hello there, this is no table\n", "no known format"),
    ],
)
def test_lines_are_recognized_or_refused(tmp_path, text, name):
    (tmp_path / "file").write_text(text)
    if " " not in name:
        assert sniff(tmp_path / "file") == name
        return
    with pytest.raises(FileError, match=name):
        sniff(tmp_path / "file")
