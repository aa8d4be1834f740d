"""Score sets are written and read back as they were, and the one that comes with the package is whole."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import evenscore
from evenscore import FileError, InputError, ScoreMatrix, TrialList, eer, load_audiomnist_scores
from evenscore.files import ScoreSet, load_score_set, save_score_set

SPEAKERS = {
    "enroll": {"a": "ann", "b": "bob", "c": "cid", "d": "dan"},
    "test": {"a1": "ann", "a2": "ann", "b1": "bob", "c1": "cid", "d1": "dan"},
}
GENDER = {"ann": "f", "bob": "m", "cid": "m", "dan": ""}
DEVELOPMENT, EVALUATION = (["a", "b"], ["a1", "a2", "b1"]), (["c", "d"], ["c1", "d1"])


def matrices(seed):
    rng = np.random.default_rng(seed)
    sides = {
        "development": DEVELOPMENT,
        "trials": EVALUATION,
        "enroll": (EVALUATION[0], DEVELOPMENT[1]),
        "test": (DEVELOPMENT[0], EVALUATION[1]),
    }
    return {
        name: ScoreMatrix(rng.normal(size=(len(rows), len(columns))), rows, columns)
        for name, (rows, columns) in sides.items()
    }


@pytest.fixture
def scores():
    return ScoreSet.from_matrices([("yes", matrices(1)), ("no", matrices(2))], SPEAKERS, GENDER)


def test_matrices_become_trials_with_cohorts(scores):
    assert repr(scores) == "ScoreSet(2 phrases, 12 development and 8 evaluation trials, 4 speakers)"
    part = scores.evaluation[1]
    given = matrices(2)
    assert part.name == scores.development[1].name == "no"
    assert part.blocks.trials == given["trials"]
    assert (part.blocks.enroll, part.blocks.test) == (given["enroll"], given["test"])
    assert part.blocks.cohort == given["development"] == scores.development[1].blocks.trials
    assert part.labels.counts == (2, 2, 0)
    assert part.blocks.cohort_labels.counts == scores.development[1].labels.counts == (3, 3, 0)


def test_a_set_is_saved_and_read_back(scores, tmp_path):
    save_score_set(scores, tmp_path / "set")
    loaded = load_score_set(tmp_path / "set")
    assert loaded.gender == GENDER
    for before, after in ((scores.development, loaded.development), (scores.evaluation, loaded.evaluation)):
        for one, other in zip(before, after, strict=True):
            assert one.name == other.name
            assert one.blocks == other.blocks
            assert one.labels.counts == other.labels.counts


def test_what_is_missing_is_named(scores, tmp_path):
    save_score_set(scores, tmp_path)
    (tmp_path / "001-test.npz").unlink()
    with pytest.raises(FileError, match=r"001-test.npz: there is no such file"):
        load_score_set(tmp_path)
    with pytest.raises(FileError, match="no such directory"):
        load_score_set(tmp_path / "absent")


def test_both_sides_have_the_same_phrases(scores):
    with pytest.raises(InputError, match="the same phrases in the same order"):
        ScoreSet(scores.development, scores.evaluation[::-1], GENDER)


def test_shipped_scores_are_small_real_and_complete():
    folder = Path(evenscore.__file__).parent / "data" / "audiomnist_gmm"
    assert sum(path.stat().st_size for path in folder.iterdir()) < 5_000_000
    assert "MIT" in (folder / "README.md").read_text(encoding="utf-8")
    scores = load_audiomnist_scores()
    assert [part.name for part in scores.evaluation] == [str(digit) for digit in range(10)]
    sides = [
        {name for part in parts for name in part.blocks.enroll_speakers}
        for parts in (scores.development, scores.evaluation)
    ]
    assert [len(side) for side in sides] == [20, 20]
    assert not sides[0] & sides[1]
    assert sorted(scores.gender[name] for name in sides[1]).count("f") == 4
    for part in scores.evaluation:
        assert part.blocks.trials.scores.dtype == np.float32
        assert part.blocks.cohort is not None
        assert part.labels.counts == (180, 3420, 0)
    rate = eer(TrialList.concat([part.trials for part in scores.evaluation]))
    assert 0.005 < rate < 0.06


def test_shipped_scores_need_nothing_but_the_base_package():
    code = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"soundfile", "kaldi_native_fbank", "matplotlib"}:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent())
import evenscore
print(len(evenscore.load_audiomnist_scores().development))
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "10"
