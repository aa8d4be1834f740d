from __future__ import annotations

import gzip
from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import given, strategies as st

from damage import cuts_and_flips, must_parse_or_refuse
from evenscore import Embeddings, FileError, ScoreMatrix, TrialList
from evenscore.files import FORMATS, write
from evenscore.files.bosaris import hdf5_format, read_bosaris, write_bosaris, write_bosaris_old_key
from evenscore.files.registry import ReadOptions
from examples import examples
from strategies import score_matrices, trial_lists

DEFAULT = ReadOptions()


def made(path, **datasets):
    """Create an HDF5 file; ``ID__row_ids`` stands for ``ID/row_ids``."""
    with h5py.File(path, "w") as file:
        for name, values in datasets.items():
            file[name.replace("__", "/")] = values
    return path


def in_order(trials: TrialList) -> TrialList:
    """The trials row by row, the order in which a matrix gives them back."""
    at = np.lexsort((trials.test_index, trials.enroll_index))
    return TrialList(
        trials.enroll_ids,
        trials.test_ids,
        trials.enroll_index[at],
        trials.test_index[at],
        scores=None if trials.scores is None else trials.scores[at],
        labels=None if trials.labels is None else trials.labels[at],
    )


@given(score_matrices(spaces=True))
def test_round_trip_of_scores(tmp_path, matrix):
    write_bosaris(matrix, tmp_path / "s.h5")
    assert read_bosaris(tmp_path / "s.h5", DEFAULT) == matrix


@given(
    trial_lists(scores=False, unused_ids=True, spaces=True) | trial_lists(labels=True, unused_ids=True, spaces=True),
    st.sampled_from([write_bosaris, write_bosaris_old_key]),
)
def test_round_trip_of_trials_keys_and_labelled_scores(tmp_path, trials, write):
    write(trials, tmp_path / "k.h5")
    again = read_bosaris(tmp_path / "k.h5", DEFAULT)
    assert again == in_order(trials)
    if trials.scores is not None:
        assert again.scores.dtype == trials.scores.dtype


def test_golden_scores(tmp_path):
    path = made(
        tmp_path / "s.h5",
        scores=np.array([[1.5, 0.0, -2.0], [0.25, 9.0, 3.0]]),
        score_mask=np.array([[1, 0, 1], [1, 1, 1]], dtype=np.uint8),
        ID__row_ids=np.array([b"m1", b"m2"]),
        ID__column_ids=["s1", "s2", "s3"],
    )
    matrix = read_bosaris(path, DEFAULT)
    np.testing.assert_array_equal(matrix.scores, [[1.5, np.nan, -2.0], [0.25, 9.0, 3.0]])
    assert matrix.enroll_ids.tolist() == ["m1", "m2"]
    assert matrix.test_ids.tolist() == ["s1", "s2", "s3"]


def test_golden_ndx(tmp_path):
    mask = np.array([[1, 0], [0, 1], [0, 0]], dtype=np.uint8)
    path = made(tmp_path / "n.h5", trial_mask=mask, ID__row_ids=["a", "b", "c"], ID__column_ids=["s", "t"])
    assert read_bosaris(path, DEFAULT) == TrialList(["a", "b", "c"], ["s", "t"], [0, 1], [0, 1])


def test_golden_key(tmp_path):
    expected = TrialList(["a", "b"], ["s", "t"], [0, 0, 1], [0, 1, 1], labels=[1, 0, 0])
    ids = {"ID__row_ids": ["a", "b"], "ID__column_ids": ["s", "t"]}
    new = made(tmp_path / "2.h5", trial_mask=np.array([[1, -1], [0, -1]], dtype=np.int8), file_format="2.0", **ids)
    assert read_bosaris(new, DEFAULT) == expected
    masks = {"target_mask": np.uint8([[1, 0], [0, 0]]), "nontarget_mask": np.uint8([[0, 1], [0, 1]])}
    assert read_bosaris(made(tmp_path / "1.h5", **masks, **ids), DEFAULT) == expected


def test_a_key_of_targets_only_is_still_a_key(tmp_path):
    ids = {"ID__row_ids": ["a"], "ID__column_ids": ["s"]}
    path = made(tmp_path / "k.h5", trial_mask=np.int8([[1]]), file_format="2.0", **ids)
    assert read_bosaris(path, DEFAULT).labels.tolist() == [1]


def test_what_we_write_has_the_types_of_bosaris(tmp_path):
    key = TrialList(["a", "b"], ["ß"], [0, 1], [0, 0], labels=[1, 0])
    write_bosaris(key, tmp_path / "k.h5")
    with h5py.File(tmp_path / "k.h5") as file:
        assert file["trial_mask"].dtype == np.int8
        assert file["trial_mask"][()].tolist() == [[1], [-1]]
        assert file["file_format"][()] == b"2.0"
        assert file["ID/column_ids"][()].tolist() == ["ß".encode()]
        assert set(file) == {"ID", "trial_mask", "file_format"}
    write_bosaris_old_key(key, tmp_path / "old.h5")
    with h5py.File(tmp_path / "old.h5") as file:
        assert file["target_mask"].dtype == np.uint8
        assert file["nontarget_mask"][()].tolist() == [[0], [1]]
        assert set(file) == {"ID", "target_mask", "nontarget_mask"}
    write_bosaris(TrialList(["a"], ["s"], [0], [0]), tmp_path / "n.h5")
    with h5py.File(tmp_path / "n.h5") as file:
        assert file["trial_mask"].dtype == np.uint8
        assert set(file) == {"ID", "trial_mask"}
    write_bosaris(ScoreMatrix(np.float32([[2.5, np.nan]]), ["a"], ["s", "t"], missing="nan"), tmp_path / "s.h5")
    with h5py.File(tmp_path / "s.h5") as file:
        assert file["scores"].dtype == np.float32
        assert file["scores"][()].tolist() == [[2.5, 0.0]]
        assert file["score_mask"].dtype == np.uint8
        assert file["score_mask"][()].tolist() == [[1, 0]]


SCORES = np.array([[1.0, 2.0, 3.0]])
OTHERS = {
    "sidekit": {"modelset": [b"m"], "segset": [b"s", b"t", b"u"], "scores": SCORES, "score_mask": np.int8([[1, 1, 1]])},
    "dca-plda": {"enroll_ids": [b"m"], "test_ids": [b"s", b"t", b"u"], "scores": SCORES},
    "pybosaris": {"model_names": [b"m"], "test_names": [b"s", b"t", b"u"], "score_mat": SCORES},
}
OLD_DCA = {"train_ids": [b"m"], "test_ids": [b"s", b"t", b"u"], "scores": SCORES}


@pytest.mark.parametrize(("name", "datasets"), [*OTHERS.items(), ("dca-plda", OLD_DCA)])
def test_scores_of_other_programs(tmp_path, name, datasets):
    path = made(tmp_path / "s.h5", **datasets)
    assert read_bosaris(path, DEFAULT) == ScoreMatrix(SCORES, ["m"], ["s", "t", "u"])
    assert hdf5_format(path) == name
    assert FORMATS[name].write is None


def test_keys_of_other_programs(tmp_path):
    expected = TrialList(["m"], ["s", "t", "u"], [0, 0], [0, 2], labels=[1, 0])
    mask = np.int8([[1, 0, -1]])
    sidekit = made(tmp_path / "1.h5", modelset=[b"m"], segset=[b"s", b"t", b"u"], trial_mask=mask)
    dca = made(tmp_path / "2.h5", enroll_ids=[b"m"], test_ids=[b"s", b"t", b"u"], trial_mask=mask)
    names = {"model_names": [b"m"], "test_names": [b"s", b"t", b"u"]}
    pybosaris = made(tmp_path / "3.h5", tar_mask=mask > 0, non_mask=mask < 0, **names)
    for path in (sidekit, dca, pybosaris):
        assert read_bosaris(path, DEFAULT) == expected
    ndx = made(tmp_path / "4.h5", trial_mask=np.array([[True, False, True]]), **names)
    assert read_bosaris(ndx, DEFAULT) == expected.with_labels(None)


def test_transposed_matrices_and_ids_as_matlab_writes_them(tmp_path):
    path = made(
        tmp_path / "s.h5",
        scores=SCORES.T,
        score_mask=np.uint8([[1], [0], [1]]),
        ID__row_ids=np.array([[b"m"]]),
        ID__column_ids=np.array([[b"s"], [b"t"], [b"u"]]),
    )
    expected = ScoreMatrix([[1.0, np.nan, 3.0]], ["m"], ["s", "t", "u"], missing="nan")
    assert read_bosaris(path, DEFAULT) == expected


@pytest.mark.parametrize("padding", [h5py.h5t.STR_SPACEPAD, h5py.h5t.STR_NULLTERM, h5py.h5t.STR_NULLPAD])
def test_fixed_text_of_any_padding(tmp_path, padding):
    path = made(tmp_path / "s.h5", scores=[[1.0], [2.0]], ID__column_ids=["t"])
    with h5py.File(path, "a") as file:
        kind = h5py.h5t.C_S1.copy()
        kind.set_size(6)
        kind.set_strpad(padding)
        dataset = h5py.h5d.create(file.id, b"/ID/row_ids", kind, h5py.h5s.create_simple((2,)))
        dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, np.array([b"ab", b"c"], dtype="S6"))
    assert read_bosaris(path, DEFAULT).enroll_ids.tolist() == ["ab", "c"]


def test_scores_that_are_not_finite(tmp_path):
    ids = {"ID__row_ids": ["m"], "ID__column_ids": ["s", "t"]}
    path = made(tmp_path / "s.h5", scores=[[np.nan, 1.0]], score_mask=np.uint8([[1, 1]]), **ids)
    with pytest.raises(FileError, match=r"s\.h5\[scores\]: the score of \('m', 's'\) is nan.*missing='skip'"):
        read_bosaris(path, DEFAULT)
    assert read_bosaris(path, ReadOptions(missing="skip")).n_missing == 1
    masked = made(tmp_path / "m.h5", scores=[[np.nan, 1.0]], score_mask=np.uint8([[0, 1]]), **ids)
    assert read_bosaris(masked, DEFAULT).n_missing == 1


def test_gzip_around_it(tmp_path):
    matrix = ScoreMatrix([[1.0]], ["m"], ["s"])
    write_bosaris(matrix, tmp_path / "s.h5.gz")
    assert (tmp_path / "s.h5.gz").read_bytes()[:2] == b"\x1f\x8b"
    assert read_bosaris(tmp_path / "s.h5.gz", DEFAULT) == matrix
    (tmp_path / "cut.h5.gz").write_bytes(gzip.compress(b"x" * 1000)[:-9])
    with pytest.raises(FileError, match="gzip data is cut off"):
        read_bosaris(tmp_path / "cut.h5.gz", DEFAULT)


IDS = {"ID__row_ids": ["a", "b"], "ID__column_ids": ["s"]}
BAD = {
    "empty": ({}, r"\[ID/row_ids\]: expected the ids of rows and columns, found nothing"),
    "other datasets": ({"x": [1.0], "y": [1.0]}, "found x, y; this is no BOSARIS file"),
    "one side": ({"modelset": ["a"], "scores": [[1.0]]}, r"\[segset\]: there is modelset, but"),
    "only ids": (IDS, r"\[scores\]: there is neither scores nor trial_mask"),
    "shape": ({**IDS, "scores": np.ones((2, 3))}, r"\[scores\]: shape \(2, 3\) does not fit 2 row ids and 1 column"),
    "shape of the mask": ({**IDS, "scores": np.ones((2, 1)), "score_mask": [1]}, r"\[score_mask\]: shape \(1,\)"),
    "vector": ({**IDS, "scores": np.ones(2)}, r"\[scores\]: shape \(2,\)"),
    "single value": ({**IDS, "scores": 1.0}, r"\[scores\]: shape \(\)"),
    "text": ({**IDS, "scores": [[b"x"], [b"y"]]}, r"\[scores\]: it holds text"),
    "complex": ({**IDS, "scores": np.ones((2, 1), dtype=complex)}, r"\[scores\]: it has type complex128"),
    "repeated id": ({**IDS, "ID__row_ids": ["a", "a"], "scores": np.ones((2, 1))}, r"\[ID/row_ids\]: .*more than once"),
    "empty id": ({**IDS, "ID__row_ids": ["a", ""], "scores": np.ones((2, 1))}, r"\[ID/row_ids\]: .*is empty"),
    "ids in no UTF-8": ({**IDS, "ID__row_ids": np.array([b"\xff", b"b"])}, r"\[ID/row_ids\]: .*not valid UTF-8"),
    "ids in a matrix": ({**IDS, "ID__row_ids": np.full((2, 2), b"a")}, r"\[ID/row_ids\]: shape \(2, 2\)"),
    "ids as real numbers": ({**IDS, "ID__row_ids": [0.5, 1.5]}, r"\[ID/row_ids\]: .*ids must be text"),
    "mask": ({**IDS, "scores": np.ones((2, 1)), "score_mask": [[2], [0]]}, r"\[score_mask\]: it holds 2"),
    "key": ({**IDS, "trial_mask": [[7], [0]]}, r"\[trial_mask\]: it holds 7"),
    "half an old key": ({**IDS, "target_mask": [[1], [0]]}, r"\[nontarget_mask\]: there is target_mask, but"),
    "contradiction": ({**IDS, "target_mask": [[1], [0]], "nontarget_mask": [[1], [0]]}, "both target and non-target"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_wrong_is_named(tmp_path, case):
    datasets, message = BAD[case]
    with pytest.raises(FileError, match=message):
        read_bosaris(made(tmp_path / "x.h5", **datasets), DEFAULT)


def test_nothing_outside_the_file_is_read(tmp_path):
    secret = made(tmp_path / "secret.h5", scores=[[1.0], [2.0]])
    (tmp_path / "raw").write_bytes(np.ones(2).tobytes())
    linked = made(tmp_path / "1.h5", **IDS)
    with h5py.File(linked, "a") as file:
        file["scores"] = h5py.ExternalLink(str(secret), "/scores")
    with pytest.raises(FileError, match=r"1\.h5\[scores\]: this is a link to another file"):
        read_bosaris(linked, DEFAULT)
    virtual = made(tmp_path / "2.h5", **IDS)
    with h5py.File(virtual, "a") as file:
        layout = h5py.VirtualLayout((2, 1), dtype=np.float64)
        layout[:] = h5py.VirtualSource(str(secret), "scores", (2, 1))
        file.create_virtual_dataset("scores", layout)
    with pytest.raises(FileError, match=r"2\.h5\[scores\]: its data lies in other files"):
        read_bosaris(virtual, DEFAULT)
    external = made(tmp_path / "3.h5", **IDS)
    with h5py.File(external, "a") as file:
        file.create_dataset("scores", (2, 1), np.float64, external=[(str(tmp_path / "raw"), 0, 16)])
    with pytest.raises(FileError, match=r"3\.h5\[scores\]: its data lies in other files"):
        read_bosaris(external, DEFAULT)


@pytest.mark.parametrize(("rows", "message"), [(1 << 45, "but only .* of memory"), (1 << 27, "unpack to")])
def test_a_size_that_is_only_declared(tmp_path, rows, message):
    path = made(tmp_path / "x.h5", scores=[[1.0]], ID__column_ids=["t"])
    with h5py.File(path, "a") as file:
        file.create_dataset("ID/row_ids", (rows,), "S8", chunks=(1024,))
    with pytest.raises(FileError, match=rf"x\.h5\[ID/row_ids\]: .*{message}"):
        read_bosaris(path, DEFAULT)


def test_a_group_that_contains_itself(tmp_path):
    path = made(tmp_path / "x.h5", scores=[[1.0], [2.0]], **IDS)
    with h5py.File(path, "a") as file:
        file["ID/loop"] = file["/"]
    assert read_bosaris(path, DEFAULT).shape == (2, 1)


def test_cut_off_file_and_text_file(tmp_path):
    path = tmp_path / "x.h5"
    write_bosaris(ScoreMatrix([[1.0]], ["m"], ["s"]), path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(FileError, match="cut off or damaged"):
        read_bosaris(path, DEFAULT)
    path.write_text("spk utt 0.5\n")
    with pytest.raises(FileError, match="not an HDF5 file"):
        read_bosaris(path, DEFAULT)
    with pytest.raises(FileError, match="no such file"):
        read_bosaris(tmp_path / "none.h5", DEFAULT)


def test_what_cannot_be_written_leaves_the_old_file(tmp_path):
    path = tmp_path / "x.h5"
    path.write_bytes(b"before")
    with pytest.raises(FileError, match="the format bosaris holds scores and trials, not embeddings"):
        write(Embeddings(["a"], [[1.0]]), path, format="bosaris")
    with pytest.raises(FileError, match="null character"):
        write_bosaris(ScoreMatrix([[1.0]], ["m\0"], ["s"]), path)
    assert path.read_bytes() == b"before"
    assert [file.name for file in tmp_path.iterdir()] == ["x.h5"]


def test_a_list_of_trials_whose_matrix_would_not_fit_into_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("evenscore.files.bosaris.free_memory", lambda: 30)
    with pytest.raises(FileError, match=r"2 x 2 pairs do not fit into memory; .*long form"):
        write_bosaris(TrialList(["a", "b"], ["s", "t"], [0], [0], labels=[1]), tmp_path / "x.h5")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs the device /dev/full")
def test_a_full_disk():
    with pytest.raises(FileError, match="the disk is full"):
        write_bosaris(ScoreMatrix([[1.0]], ["m"], ["s"]), "/dev/full")


@given(data=st.data())
@examples(150)
def test_damaged_files(tmp_path, data):
    path = tmp_path / "x.h5"
    scores = ScoreMatrix([[1.0, 2.0], [0.5, np.nan]], ["m", "n"], ["s", "t"], missing="nan")
    key = TrialList(["m"], ["s", "t"], [0, 0], [0, 1], labels=[1, 0])
    write_bosaris(data.draw(st.sampled_from([scores, key])), path)
    path.write_bytes(data.draw(cuts_and_flips(path.read_bytes())))
    must_parse_or_refuse(lambda file: read_bosaris(file, DEFAULT), path)
