"""`evenscore fit` on parquet lists, read in chunks: the model of the same files in memory."""

import json

import numpy as np
import pytest

from evenscore import ScoreModel, TrialList, simulate, write
from evenscore.files import load_evidence
from in_process import output_of as run

TRUTH = ScoreModel(mu=[-2.0, 3.0], alpha=[[0.9, 0.0], [0.7, 0.5]], beta=[[0.8, 0.0], [0.6, -0.5]], sigma2=[1.0, 1.5])
SPEAKERS = [f"s{n % 5}" for n in range(15)], [f"s{n % 5}" for n in range(20)]
QUICK = ("--max-iter", 10, "--starts", 1, "--tol", 0)


@pytest.fixture
def lists(tmp_path, monkeypatch):
    """Give a folder with a list in one parquet file and in a directory of parts, a key and maps."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("evenscore.tables.tile._TRIALS", 37)  # so that there are many chunks
    scores, labels = simulate(TRUTH, *SPEAKERS, seed=1)
    trials = scores.to_trials(labels)
    rng = np.random.default_rng(0)
    trials = trials.select(np.sort(rng.permutation(len(trials))[:280]))
    write(trials, "whole.parquet")
    (tmp_path / "parts.parquet").mkdir()
    for number, part in enumerate(np.array_split(np.arange(280), 3)):
        write(trials.select(part), tmp_path / "parts.parquet" / f"part-{number}.parquet")
    bare = trials.with_labels(None)
    write(bare, "bare.parquet")
    key = TrialList(trials.enroll_ids, trials.test_ids, trials.enroll_index, trials.test_index, labels=trials.labels)
    write(key.select(rng.permutation(280)), "key", format="kaldi")
    write(key.select(np.arange(100, 280)), "some", format="kaldi")
    names = dict(zip([*scores.enroll_ids, *scores.test_ids], [*SPEAKERS[0], *SPEAKERS[1]], strict=True))
    write(names, "utt2spk", format="utt2spk")
    write({name: f"p{n % 2}" for n, name in enumerate(scores.test_ids)}, "phrases", format="utt2spk")
    return trials


def model_of(*arguments):
    run("fit", *arguments, *QUICK, "-o", "m.json")
    with open("m.json") as stream:
        return json.load(stream)


@pytest.mark.parametrize(
    "given",
    [
        ("whole",),
        ("parts",),
        ("bare", "--key", "key"),
        ("bare", "--key", "some", "--unmatched", "drop"),
        ("bare", "--enroll-speakers", "utt2spk"),
        ("whole", "--phrase-from", "phrases"),
        ("whole", "--phrase-from", "re:([0-9])$"),
    ],
    ids=lambda given: " ".join(given),
)
def test_the_model_is_that_in_memory(lists, given):
    files = ("--scores", f"{given[0]}.parquet", *given[1:])
    here = model_of(*files)
    there = model_of(*files, "--memory-limit", "1GB")
    for name in ("mu", "alpha", "beta", "sigma2"):
        np.testing.assert_allclose(there[name], here[name], rtol=1e-9, atol=1e-12)
    assert there["info"]["n_target"] == here["info"]["n_target"]
    assert there["info"]["log_likelihood"] == pytest.approx(here["info"]["log_likelihood"], rel=1e-11)


def test_other_methods_read_the_list(lists):
    how = ("fit", "--method", "evidence", "--scores", "whole.parquet")
    run(*how, "--memory-limit", "1GB", "-o", "chunks.json")
    run(*how, "-o", "memory.json")
    chunks, memory = (load_evidence(name) for name in ("chunks.json", "memory.json"))
    assert chunks.heads["full"].weight == pytest.approx(memory.heads["full"].weight, rel=1e-6)


def test_what_does_not_match_is_said(lists):
    limit = ("--memory-limit", "1GB", "-o", "m.json")
    assert "of the 280 scored trials are not in the key" in run(
        "fit", "--scores", "bare.parquet", "--key", "some", *limit, code=2
    )
    assert "no labels" in run("fit", "--scores", "bare.parquet", *limit, code=2)
    write(lists.with_labels(None).select(np.arange(50)), "few.parquet")
    assert "230 of the 280 trials of the key have no score" in run(
        "fit", "--scores", "few.parquet", "--key", "key", *limit, code=2
    )
    write(dict.fromkeys(lists.enroll_ids, "s"), "half", format="utt2spk")
    assert "has no speaker for test" in run(
        "fit", "--scores", "bare.parquet", "--enroll-speakers", "half", *limit, code=2
    )
    assert "no phrase for test" in run(
        "fit", "--scores", "whole.parquet", "--phrase-from", "re:(never)", *limit, code=2
    )


def test_a_cluster_gives_the_same(lists, client):
    from evenscore import fit_score_model
    from evenscore.files import open_scores

    here = fit_score_model(lists, max_iter=10, starts=1, tol=0.0)
    there = fit_score_model(open_scores("parts.parquet"), max_iter=10, starts=1, tol=0.0, client=client)
    np.testing.assert_allclose(there.model.alpha, here.model.alpha, rtol=1e-9)
    np.testing.assert_allclose(there.log_likelihood, here.log_likelihood, rtol=1e-11)
