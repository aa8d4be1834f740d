"""Norms on a cluster, and what is refused of blocks in tiles; their numbers are tested beside the norms."""

import numpy as np
import pytest

from evenscore import (
    InputError,
    Labels,
    ScoreBlocks,
    ScoreMatrix,
    ScoreModelNormalizer,
    TrialList,
    normalize,
)
from evenscore.norms.parts import ByParts, Pass
from evenscore.norms.score_model import cohort_weights
from scale.chunked_examples import MODEL, ids, in_tiles, matrix, shuffled

pytestmark = pytest.mark.usefixtures("route")

E, T, C, D = ids("e", 23), ids("t", 31), ids("c", 17), ids("d", 17)
NORMS = {"zt": {}, "s": {"combine": "sqrt2"}, "lgsm": {"model": MODEL}}
SPEAKERS = {
    "enroll_speakers": [f"s{place % 12}" for place in range(23)],
    "test_speakers": [f"s{place % 15}" for place in range(31)],
    "cohort_enroll_speakers": [f"s{place % 20 + 6}" for place in range(17)],
    "cohort_test_speakers": [f"s{place % 20 + 6}" for place in range(17)],
}


def blocks_of(rng, missing=0.0, cohort_rows=D):
    shapes = {"trials": (E, T), "enroll": (E, C), "test": (cohort_rows, T), "cohort": (cohort_rows, C)}
    return {name: matrix(rng, *sides, missing, np.float32) for name, sides in shapes.items()}


def both(rng, blocks, **speakers):
    """Return blocks in memory and in tiles; the rows and columns of the latter's cohort scores are shuffled."""
    others = {name: blocks[name] for name in ("enroll", "test", "cohort")}
    tiles = {name: in_tiles(shuffled(rng, block) if name != "cohort" else block) for name, block in others.items()}
    trials = in_tiles(blocks["trials"], tile_bytes=1500.0 if speakers else 600.0)
    return ScoreBlocks(blocks["trials"], **others, **speakers), ScoreBlocks(trials, **tiles, **speakers)


def test_what_is_wrong_is_said():
    rng = np.random.default_rng(7)
    blocks = blocks_of(rng)
    with pytest.raises(InputError, match="needs the block `test`"):
        normalize(ScoreBlocks(in_tiles(blocks["trials"]), enroll=blocks["enroll"]), "s")
    with pytest.raises(InputError, match="block `enroll`: enrolment 'e0'"):
        ScoreBlocks(in_tiles(blocks["trials"]), enroll=matrix(rng, ids("x", 3), C))
    with pytest.raises(InputError, match="without cohort scores"):
        ScoreBlocks(in_tiles(blocks["trials"]), cohort_labels=Labels.from_speakers(["a"], ["a"]))
    with pytest.raises(InputError, match="enroll_speakers has 1 speakers, but 23 are needed"):
        ScoreBlocks(blocks["trials"].to_trials(), enroll_speakers=["a"])
    with pytest.raises(InputError, match="no scores"):
        ScoreBlocks(TrialList.from_pairs(["e"], ["t"]))
    strange = TrialList.from_pairs(["who"], ["t0"], scores=[1.0])
    with pytest.raises(InputError, match="enrolment 'who' not in the scores"):
        ScoreBlocks(strange, enroll=blocks["enroll"], test=blocks["test"])
    constant = ScoreMatrix(np.ones((23, 17)), E, C)
    with pytest.raises(InputError, match="standard deviation of zero"):
        normalize(ScoreBlocks(in_tiles(blocks["trials"]), enroll=in_tiles(constant)), "z")


def test_the_blocks_are_shown():
    blocks = blocks_of(np.random.default_rng(0))
    assert repr(ScoreBlocks(blocks["trials"], enroll=blocks["enroll"])) == "ScoreBlocks(trials 23 x 31, enroll 23 x 17)"
    assert repr(ScoreBlocks(blocks["trials"].to_trials())) == "ScoreBlocks(713 listed trials)"


def test_the_weights_of_the_score_model_are_those_of_the_cohort_in_memory():
    rng = np.random.default_rng(10)
    cohort = matrix(rng, D, C, 0.1)
    key = rng.choice([-1, 0, 0, 0, 0, 1], size=(17, 17))
    for labels in (None, Labels.from_key(key)):
        for sides in ((True, True), (True, False), (False, True)):
            names = [name for name, there in zip(("enroll", "test"), sides, strict=True) if there]
            blocks = {name: block for name, block in blocks_of(rng).items() if name in ("trials", *names)}
            chunked = ScoreBlocks(blocks.pop("trials"), **blocks, cohort=in_tiles(cohort), cohort_labels=labels)
            found = cohort_weights(MODEL, chunked, Pass())
            wanted = ScoreModelNormalizer(MODEL, cohort, labels).weights(enroll=sides[0], test=sides[1])
            for name in ("offset", "enroll", "test", "variance"):
                np.testing.assert_allclose(getattr(found, name), getattr(wanted, name), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("method", ["zt", "s", "lgsm"])
def test_a_cluster_gives_the_same(client, method):
    rng = np.random.default_rng(14)
    known = {} if method == "zt" else SPEAKERS
    here, there = both(rng, blocks_of(rng), **known)
    found = normalize(there, method, client=client, **NORMS[method])
    assert isinstance(found.source.way, ByParts)
    np.testing.assert_allclose(
        found.in_memory().scores, normalize(here, method, **NORMS[method]).scores, rtol=1e-5, atol=1e-5
    )
