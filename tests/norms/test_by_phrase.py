"""Trials of several phrases: the same as each phrase by itself."""

import re

import numpy as np
import pytest

from evenscore import (
    Embeddings,
    InputError,
    ScoreBlocks,
    ScoreMatrix,
    fit_score_model,
    read_scores,
    score_blocks,
    write,
)
from evenscore.norms import normalize, normalize_by_phrase
from evenscore.sources import Cosine
from in_process import run_command

WORDS = ("yes", "no")


def takes(seed, prefix, count):
    ids = [f"{prefix}{n}-{WORDS[n % 2]}" for n in range(count)]
    words = [WORDS[n % 2] for n in range(count)]
    vectors = np.random.default_rng(seed).normal(size=(count, 4))
    return Embeddings(ids, vectors, [f"{prefix}{n // 4}" for n in range(count)], columns={"word": words})


ENROLL, TEST, COHORT = takes(1, "e", 6), takes(2, "t", 8), takes(3, "c", 20)
PHRASES = {name: name.partition("-")[2] for side in (TEST, COHORT) for name in side.ids}


def of(side, word):
    return side.take(np.array([name.endswith(word) for name in side.ids]))


def by_hand(method, **options):
    """All enrolments against all tests, phrase by phrase."""
    wanted = np.empty((len(ENROLL), len(TEST)))
    for word in WORDS:
        blocks = score_blocks(Cosine(), ENROLL, of(TEST, word), of(COHORT, word))
        wanted[:, [name.endswith(word) for name in TEST.ids]] = normalize(blocks, method, **options).scores
    return wanted


@pytest.mark.parametrize("method", ["s", "zt", "lgsm"])
@pytest.mark.parametrize("listed", [False, True])
def test_each_phrase_has_its_own_cohort(method, listed):
    options = {}
    if method == "lgsm":
        options["model"] = fit_score_model(Cosine().score(COHORT, COHORT), max_iter=3, starts=1).model
    blocks, wanted = score_blocks(Cosine(), ENROLL, TEST, COHORT), by_hand(method, **options)
    if listed:
        blocks = blocks.replace(trials=blocks.trials.to_trials())
        wanted = wanted.reshape(-1)
    found = normalize_by_phrase(blocks, PHRASES, method, **options)
    np.testing.assert_allclose(found.scores, wanted, rtol=1e-9)
    assert not np.allclose(normalize(blocks, method, **options).scores, wanted)


def test_enrolments_without_phrases_serve_all():
    scores = np.random.default_rng(0).normal(size=(3, 2))
    blocks = ScoreBlocks(
        ScoreMatrix([[1.0, 2.0]], ["e"], ["t0-yes", "t1-no"]),
        test=ScoreMatrix(scores, list("abc"), ["t0-yes", "t1-no"]),
    )
    phrases = {"t0-yes": "yes", "t1-no": "no"}
    np.testing.assert_allclose(normalize_by_phrase(blocks, phrases, "t").scores, normalize(blocks, "t").scores)
    with pytest.raises(InputError, match="there is no phrase for test 't1-no'; add it"):
        normalize_by_phrase(blocks, {"t0-yes": "yes"}, "t")
    with pytest.raises(InputError, match="no cohort member has the phrase 'no'"):
        normalize_by_phrase(blocks, phrases | dict.fromkeys("abc", "yes"), "t")


@pytest.mark.parametrize("where", ["column:word", "re:-([a-z]+)$"])
def test_the_command_line(tmp_path, monkeypatch, where):
    monkeypatch.chdir(tmp_path)
    for name, side in (("e", ENROLL), ("t", TEST), ("c", COHORT)):
        write(side, f"{name}.npz")
    vectors = ("--enroll-embeddings", "e.npz", "--test-embeddings", "t.npz", "--cohort-embeddings", "c.npz")
    done = run_command("normalize", "--norm", "s", *vectors, "--phrase-from", where, "-o", "o.npz")
    assert done.exit_code == 0, done.stderr
    np.testing.assert_allclose(read_scores("o.npz").scores, by_hand("s"), rtol=1e-9)
    blocks = score_blocks(Cosine(), ENROLL, TEST, COHORT)
    for name in ("trials", "enroll", "test"):
        write(getattr(blocks, name), f"{name}.npz")
    files = ("--trials", "trials.npz", "--enroll-cohort", "enroll.npz", "--test-cohort", "test.npz")
    pattern = ("--phrase-from", "re:-([a-z]+)$", "-o", "o.npz")
    done = run_command("normalize", "--norm", "s", *files, *pattern)
    assert done.exit_code == 0, done.stderr
    np.testing.assert_allclose(read_scores("o.npz").scores, by_hand("s"), rtol=1e-9)
    done = run_command("normalize", "--norm", "s", *files, *pattern, "--memory-limit", "1GB")
    assert done.exit_code == 2
    assert re.search("--phrase-from works on scores in memory", done.stderr)
