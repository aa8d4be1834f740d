"""What is written is read again: every format, any ids it can hold, plain and packed; and line by line by the twin."""

import gzip
import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from evenscore import FileError, ScoreMatrix, TrialList, read, read_scores, read_speakers, read_trials, write
from evenscore.files import FORMATS
from evenscore.files.registry import ReadOptions
from evenscore.files.text.read import read_trials_text
from examples import examples
from reference import text_lines
from strategies import score_matrices, speaker_maps, trial_lists

# Which of scores and labels a format can hold at once; None: with or without.
HOLDS = {
    "kaldi": [(True, False), (False, None)],
    "wespeaker": [(None, True)],
    "speechbrain": [(True, True)],
    "espnet": [(True, True)],
    "bob": [(True, True)],
    "voxceleb": [(False, True)],
    "nist": [(True, False), (False, None)],
    "asvspoof5": [(True, False)],
    "csv": [(None, None)],
    "tsv": [(None, None)],
}
HEADED = ("nist", "csv", "tsv")


def tables_for(name):
    """Tables that the format can hold without a loss."""
    tables = st.one_of(
        [
            trial_lists(
                scores=scores,
                labels=labels,
                unknown=name in HEADED,
                measures=name in ("csv", "tsv"),
                dtype=np.float64,
                spaces=name == "csv",
            )
            for scores, labels in HOLDS[name]
        ]
    )
    if name == "espnet":
        tables = tables.filter(lambda t: not any("*" in one for one in (*t.enroll_ids, *t.test_ids)))
    return tables


def lines_hold(table, marks="\r\n\0"):
    """Whether the ids can stand in lines at all; the others must be refused."""
    names = (*table.enroll_ids, *table.test_ids)
    return all(name.strip(" \t") and not name.startswith("\ufeff") and not set(name) & set(marks) for name in names)


@pytest.mark.parametrize("name", HOLDS)
@examples(25)
@given(data=st.data(), packed=st.booleans(), chunk=st.sampled_from([7, 64, 1 << 20]))
def test_what_is_written_is_read_again(name, data, packed, chunk, tmp_path):
    table = data.draw(tables_for(name))
    path = tmp_path / f"table.{name}{'.gz' if packed else ''}"
    if not lines_hold(table):
        with pytest.raises(FileError, match="cannot be written"):
            write(table, path, format=name)
        return
    write(table, path, format=name)
    kind = "scores" if table.scores is not None else "trials"
    options = ReadOptions(kind=kind)
    assert FORMATS[name].reader()(path, options) == table
    assert read_trials_text(path, options, name, chunk_size=chunk) == table


@pytest.mark.parametrize("name", HOLDS)
@examples(25)
@given(data=st.data())
def test_a_plain_loop_over_the_lines_finds_the_same(name, data, tmp_path):
    table = data.draw(
        tables_for(name).filter(lambda t: not any(set(',"') & set(i) for i in (*t.enroll_ids, *t.test_ids)))
    )
    if not lines_hold(table, "\r\n\0\t\x0b\x0c\x1c\x1d\x1e\x1f\x85"):
        return
    path = tmp_path / "table"
    write(table, path, format=name)
    rows = text_lines.read_trials(path.read_bytes().decode(), name)
    assert [row[:2] for row in rows] == list(zip(table.enroll, table.test, strict=True))
    assert [row[2] for row in rows] == ([None] * len(table) if table.scores is None else table.scores.tolist())
    assert [row[3] for row in rows] == ([None] * len(table) if table.labels is None else table.labels.tolist())
    for measure, values in table.measures.items():
        assert [row[4][measure] for row in rows] == values.tolist()


@given(matrix=score_matrices(dtype=np.float64))
def test_a_matrix_is_written_in_long_form(matrix, tmp_path):
    path = tmp_path / "matrix.scores"
    if matrix.n_missing == matrix.scores.size:
        return
    write(matrix, path)
    assert read_scores(path, format="kaldi") == matrix.to_trials().select(np.arange(len(matrix.to_trials())))


def test_a_matrix_is_written_in_parts_of_whole_rows(tmp_path, monkeypatch):
    monkeypatch.setattr("evenscore.files.text.write._LINES_AT_ONCE", 5)
    rng = np.random.default_rng(1)
    matrix = ScoreMatrix(rng.normal(size=(7, 3)), [f"e{i}" for i in range(7)], [f"t{j}" for j in range(3)])
    write(matrix, tmp_path / "m.txt")
    assert read_scores(tmp_path / "m.txt").to_matrix() == matrix
    write(matrix.to_trials(), tmp_path / "list.txt")
    assert (tmp_path / "list.txt").read_bytes() == (tmp_path / "m.txt").read_bytes()


def test_float32_scores_come_back_as_the_same_numbers(tmp_path):
    scores = np.random.default_rng(2).normal(size=100).astype(np.float32)
    table = TrialList.from_pairs(["e"] * 100, [f"t{i}" for i in range(100)], scores=scores)
    write(table, tmp_path / "f32.scores")
    assert (read(tmp_path / "f32.scores").scores.astype(np.float32) == scores).all()


def test_the_measures_of_wespeaker_are_written_when_all_are_there(tmp_path):
    four = {name: [0.5, math.nan] for name in ("mag_e", "mag_t", "mu_e", "mu_t")}
    table = TrialList.from_pairs(["e", "e"], ["t", "u"], scores=[1.0, 2.0], labels=[1, 0], measures=four)
    path = tmp_path / "w.scores"
    write(table, path, format="wespeaker")
    assert path.read_text() == "e t 1.0 target 0.5 0.5 0.5 0.5\ne u 2.0 nontarget nan nan nan nan\n"
    assert read(path) == table
    write(
        TrialList.from_pairs(["e"], ["t"], scores=[1.0], labels=[1], measures={"mag_e": [1.0]}),
        path,
        format="wespeaker",
    )
    assert path.read_text() == "e t 1.0 target\n"


def test_factors_are_any_number_of_measures(tmp_path):
    path, pairs = tmp_path / "f", {"enroll": ["e", "e"], "test": ["t", "u"], "scores": [1.0, 2.0], "labels": [1, 0]}
    write(
        TrialList.from_pairs(**pairs, measures={"min:mag": [0.5, 2.0], "snr": [9, 8]}), path, format="wespeaker-factors"
    )
    assert path.read_text() == "e t target 1.0 0.5 9.0\ne u nontarget 2.0 2.0 8.0\n"
    assert read(path) == TrialList.from_pairs(**pairs, measures={"factor1": [0.5, 2.0], "factor2": [9.0, 8.0]})
    with pytest.raises(FileError, match="needs measures, but these trials have none; write wespeaker"):
        write(TrialList.from_pairs(**pairs), path, format="wespeaker-factors")
    path.write_text("e t target 1.0\n")
    with pytest.raises(FileError, match=r"f:1: .* expected 5 columns or more"):
        read(path, format="wespeaker-factors")


def test_the_other_scores_of_asvspoof5_are_written(tmp_path):
    table = TrialList.from_pairs(["s", "s"], ["f", "g"], scores=[1.0, 2.0], measures={"cm-score": [0.5, math.nan]})
    path = tmp_path / "a.tsv"
    write(table, path, format="asvspoof5")
    header = "spk\tfilename\tcm-score\tasv-score\tsasv-score\n"
    assert path.read_text() == header + "s\tf\t0.5\t-\t1.0\ns\tg\t-\t-\t2.0\n"
    assert read(path) == table


@given(speakers=speaker_maps(), name=st.sampled_from(["utt2spk", "spk2utt"]), packed=st.booleans())
def test_speaker_maps_are_read_again(speakers, name, packed, tmp_path):
    path = tmp_path / (name + ".gz" * packed)
    write(speakers, path)
    assert read_speakers(path, format=name) == speakers


def test_packed_output_is_gzip(tmp_path):
    table = TrialList.from_pairs(["e"], ["t"], labels=[1])
    write(table, tmp_path / "key.gz")
    assert gzip.decompress((tmp_path / "key.gz").read_bytes()) == b"e t target\n"
    assert read_trials(tmp_path / "key.gz") == table


@pytest.mark.parametrize(
    ("table", "name", "problem"),
    [
        (TrialList.from_pairs(["a b"], ["t"], scores=[1.0]), "kaldi", "the id 'a b' cannot be written"),
        (TrialList.from_pairs(["a"], ["t*1"], scores=[1.0], labels=[1]), "espnet", r"the id 't\*1' cannot be written"),
        (TrialList.from_pairs(["a\tb"], ["t"], scores=[1.0]), "tsv", "cannot be written"),
        (TrialList.from_pairs(["a\nb"], ["t"], scores=[1.0]), "csv", "cannot be written"),
        (TrialList.from_pairs(["a\ud800"], ["t"], scores=[1.0]), "csv", "cannot be written"),
        (TrialList.from_pairs(["a"], ["t"], scores=[1.0]), "wespeaker", "needs labels"),
        (TrialList.from_pairs(["a"], ["t"], labels=[1]), "espnet", "needs scores"),
        (TrialList.from_pairs(["a"], ["t"], scores=[1.0]), "bob", "needs labels"),
        (TrialList.from_pairs(["a"], ["t"], labels=[-1]), "voxceleb", r"\('a', 't'\) has no label"),
        (TrialList.from_pairs(["a"], ["t"], scores=[1], measures={"label": [1]}), "csv", "measure 'label'"),
        (ScoreMatrix([[1.0]], ["a"], ["b"]), "voxceleb", "needs labels"),
        ({"a": "b"}, "kaldi", "not a map of speakers"),
        ({"a b": "c"}, "utt2spk", "'a b' cannot be written"),
        (TrialList.from_pairs(["a"], ["t"]), "utt2spk", "a map from utterance to speaker"),
    ],
)  # fmt: skip
def test_a_table_that_does_not_fit_leaves_no_file(table, name, problem, tmp_path):
    path = tmp_path / "out"
    with pytest.raises(FileError, match=problem):
        write(table, path, format=name)
    assert list(tmp_path.iterdir()) == []
