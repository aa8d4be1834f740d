"""Norms of tiles and of chunks of trials give the numbers of `normalize` in memory."""

import pickle
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from evenscore import (
    Conditions,
    InputError,
    Labels,
    ScoreBlocks,
    ScoreMatrix,
    ScoreModelNormalizer,
    TrialList,
    normalize,
)
from evenscore.norms import own_parts
from evenscore.norms.by_blocks import ByBlocks
from evenscore.norms.parts import ByParts, Pass
from evenscore.norms.score_model_parts import cohort_weights
from evenscore.tables import LazyScores
from evenscore.tables.score_table import Array
from scale.chunked_examples import MODEL, TILINGS, ids, in_runs, in_tiles, matrix, shuffled

pytestmark = pytest.mark.usefixtures("route")

E, T, C, D = ids("e", 23), ids("t", 31), ids("c", 17), ids("d", 17)
NORMS = {
    "z": {},
    "t": {},
    "s": {"combine": "sqrt2"},
    "as": {"top_k": 7},
    "at": {"top_k": 0.5},
    "az": {"top_k": 4, "drop_top": 1},
    "zt": {},
    "tz": {"statistic": "median"},
    "lgsm": {"model": MODEL},
}
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


#: Many small cohorts, one for each pattern of missing scores, are slow in both ways.
TILES = [
    pytest.param(*case, marks=[pytest.mark.slow] if case == ("lgsm", "missing", "own speakers") else [])
    for case in product(NORMS, ("complete", "missing"), ("strangers", "own speakers"))
]


@pytest.mark.parametrize(("method", "missing", "speakers"), TILES)
def test_tiles_are_those_of_the_matrix(method, missing, speakers):
    rng = np.random.default_rng(3)
    missing, speakers = 0.05 * (missing == "missing"), SPEAKERS if speakers == "own speakers" else {}
    here, there = both(rng, blocks_of(rng, missing), **speakers)
    wanted, found = normalize(here, method, **NORMS[method]), normalize(there, method, **NORMS[method])
    separable = not (method in ("zt", "tz") and speakers) and not (method == "lgsm" and missing)
    assert isinstance(found.source.way, ByParts if separable else ByBlocks)
    np.testing.assert_allclose(found.in_memory().scores, wanted.scores, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("method", ["as", "zt", "lgsm"])
@pytest.mark.parametrize("tiling", ["one", "one row"])
def test_tiles_of_any_shape_are_those_of_the_matrix(method, tiling):
    blocks = blocks_of(np.random.default_rng(3))
    tiles = {name: in_tiles(block, *TILINGS[tiling]) for name, block in blocks.items()}
    wanted, found = (normalize(ScoreBlocks(**some), method, **NORMS[method]) for some in (blocks, tiles))
    np.testing.assert_allclose(found.in_memory().scores, wanted.scores, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("speakers", [{}, SPEAKERS], ids=["strangers", "own speakers"])
@pytest.mark.parametrize("method", ["s", "as", "zt", "lgsm"])
def test_chunks_of_a_list_are_those_of_the_list(method, speakers):
    rng = np.random.default_rng(4)
    blocks = blocks_of(rng)
    trials = blocks["trials"].to_trials().select(rng.permutation(23 * 31)[:300])
    wanted = normalize(
        ScoreBlocks(
            blocks["trials"].to_trials(), **{name: blocks[name] for name in ("enroll", "test", "cohort")}, **speakers
        ),
        method,
        **NORMS[method],
    )
    known = dict(speakers)
    if known:
        known["enroll_speakers"] = dict(zip(E, known["enroll_speakers"], strict=True))
        known["test_speakers"] = dict(zip(T, known["test_speakers"], strict=True))
    listed = in_runs(trials, (0, 7, 290, 300))
    tiles = {name: in_tiles(shuffled(rng, blocks[name])) for name in ("enroll", "test")}
    found = normalize(
        ScoreBlocks(listed, **tiles, cohort=blocks["cohort"], **known), method, **NORMS[method]
    ).in_memory()
    match = found.match(wanted)
    assert len(found) == 300
    np.testing.assert_allclose(found.scores, wanted.scores[match], rtol=1e-6, atol=1e-6)


def test_cross_selection_and_conditions():
    rng = np.random.default_rng(5)
    here, there = both(rng, blocks_of(rng, cohort_rows=C))
    options = {"top_k": 5, "select": "cross"}
    np.testing.assert_allclose(
        normalize(there, "as", **options).in_memory().scores, normalize(here, "as", **options).scores, rtol=1e-6
    )
    gender = {name: "fm"[place % 2] for names in (E, T, C) for place, name in enumerate(names)}
    given = {"conditions": Conditions(enroll=gender, test=gender, cohort_enroll=gender, cohort_test=gender)}
    np.testing.assert_allclose(
        normalize(there, "s", **given).in_memory().scores, normalize(here, "s", **given).scores, rtol=1e-6
    )


def test_a_score_model_works_with_one_side_or_none():
    rng = np.random.default_rng(6)
    blocks = blocks_of(rng)
    for names in ((), ("enroll",), ("test",), ("enroll", "test")):
        some = {name: blocks[name] for name in names}
        here = normalize(ScoreBlocks(blocks["trials"], **some), "lgsm", model=MODEL)
        tiles = {name: in_tiles(block) for name, block in some.items()}
        there = normalize(ScoreBlocks(in_tiles(blocks["trials"]), **tiles), "lgsm", model=MODEL)
        np.testing.assert_allclose(there.in_memory().scores, here.scores, rtol=1e-6)
        listed = ScoreBlocks(blocks["trials"].to_trials(), **tiles)
        np.testing.assert_allclose(
            normalize(listed, "lgsm", model=MODEL).in_memory().to_matrix().scores, here.scores, rtol=1e-6
        )


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


def test_trials_without_a_cohort_follow_the_policy():
    rng = np.random.default_rng(8)
    blocks = blocks_of(rng)
    scores = blocks["enroll"].scores.copy()
    scores[2] = np.nan
    enroll = ScoreMatrix(scores, E, C, missing="nan")
    for vanished in ("raw", "missing"):
        here = normalize(ScoreBlocks(blocks["trials"], enroll=enroll), "z", vanished=vanished)
        there = normalize(ScoreBlocks(in_tiles(blocks["trials"]), enroll=in_tiles(enroll)), "z", vanished=vanished)
        np.testing.assert_allclose(there.in_memory().scores, here.scores, rtol=1e-6)
    there = normalize(ScoreBlocks(in_tiles(blocks["trials"]), enroll=in_tiles(enroll)), "z")
    with pytest.raises(InputError, match="no cohort left"):
        there.in_memory()


def test_the_blocks_are_shown():
    blocks = blocks_of(np.random.default_rng(0))
    assert repr(ScoreBlocks(blocks["trials"], enroll=blocks["enroll"])) == "ScoreBlocks(trials 23 x 31, enroll 23 x 17)"
    assert repr(ScoreBlocks(blocks["trials"].to_trials())) == "ScoreBlocks(713 listed trials)"


@pytest.mark.parametrize("labelled", ["nobody", "speakers", "key", "holes", "holes and key"])
@pytest.mark.parametrize("sides", [("enroll", "test"), ("enroll",), ("test",)], ids=" ".join)
def test_the_cohort_against_itself_is_read_in_tiles(labelled, sides, monkeypatch):
    rng = np.random.default_rng(9)
    blocks = blocks_of(rng)
    cohort = matrix(rng, D, C, 0.1 if "holes" in labelled else 0.0, np.float32)
    known = {}
    if labelled == "speakers":
        known = {f"cohort_{side}_speakers": [f"c{n % 6}" for n in range(17)] for side in ("enroll", "test")}
    elif "key" in labelled:
        key = rng.choice([-1, 0, 0, 0, 0, 1], size=(17, 17))
        known = {"cohort_labels": Labels.from_key(key, enroll_ids=D, test_ids=C)}
    some = {name: blocks[name] for name in sides}
    here = ScoreBlocks(blocks["trials"], **some, cohort=cohort, **known)
    tiles = {name: in_tiles(block) for name, block in some.items()}
    there = ScoreBlocks(in_tiles(blocks["trials"]), **tiles, cohort=in_tiles(cohort), **known)
    monkeypatch.setattr(LazyScores, "in_memory", lambda self: pytest.fail("the whole cohort was read"))
    for method in ("zt", "tz", "lgsm") if len(sides) == 2 else ("lgsm",):
        wanted, found = normalize(here, method, **NORMS[method]), normalize(there, method, **NORMS[method])
        assert isinstance(found.source.way, ByParts)
        scores = found.block(slice(0, 23), slice(0, 31))
        np.testing.assert_allclose(scores, wanted.scores, rtol=1e-5, atol=1e-5)


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


def test_a_prepared_score_model_takes_cohort_scores_in_any_order():
    rng = np.random.default_rng(11)
    blocks = blocks_of(rng)
    here = ScoreBlocks(blocks["trials"], **{name: blocks[name] for name in ("enroll", "test", "cohort")})
    sides = {name: in_tiles(shuffled(rng, blocks[name])) for name in ("enroll", "test")}
    there = ScoreBlocks(in_tiles(blocks["trials"]), **sides)
    found = normalize(there, "lgsm", model=MODEL, cohort=blocks["cohort"]).in_memory().scores
    np.testing.assert_allclose(found, normalize(here, "lgsm", model=MODEL).scores, rtol=1e-5, atol=1e-5)


OWN = [
    pytest.param(*case, marks=[pytest.mark.slow] if case == ("lgsm", 0.1, "matrix") else [])
    for case in product(("z", "t", "s", "as", "az", "lgsm"), (0.0, 0.1), ("matrix", "list"))
]


@pytest.mark.parametrize(("method", "missing", "trials"), OWN)
def test_own_speakers_are_left_out_exactly(method, missing, trials, monkeypatch):
    rng = np.random.default_rng(12)
    shapes = {"trials": (E, T), "enroll": (E, C), "test": (D, T), "cohort": (D, C)}
    blocks = {name: matrix(rng, *sides, missing if name != "cohort" else 0.0) for name, sides in shapes.items()}
    speakers = {name: list(who) for name, who in SPEAKERS.items()}
    speakers["enroll_speakers"][3] = speakers["cohort_test_speakers"][2] = None
    if method == "lgsm":
        speakers["cohort_test_speakers"][2] = "s8"
    others = {name: blocks[name] for name in ("enroll", "test", "cohort")}
    here = normalize(ScoreBlocks(blocks["trials"], **others, **speakers), method, **NORMS[method])
    tiles = {name: in_tiles(shuffled(rng, block) if name != "cohort" else block) for name, block in others.items()}
    if trials == "list":
        speakers["enroll_speakers"] = dict(zip(E, speakers["enroll_speakers"], strict=True))
        speakers["test_speakers"] = dict(zip(T, speakers["test_speakers"], strict=True))
        listed = blocks["trials"].to_trials()
        listed = in_runs(listed, (0, 7, len(listed)))
        found = normalize(ScoreBlocks(listed, **tiles, **speakers), method, **NORMS[method])
        scores = found.in_memory().to_matrix().align(E, T).scores
    else:
        found = normalize(ScoreBlocks(in_tiles(blocks["trials"]), **tiles, **speakers), method, **NORMS[method])
        scores = found.in_memory().scores
    assert isinstance(found.source.way, ByParts) == (method != "lgsm" or not missing)
    np.testing.assert_allclose(scores, here.scores, rtol=1e-10, atol=1e-10)
    monkeypatch.setattr(own_parts, "_MOST_TABLE", 100)
    if trials == "matrix":
        again = normalize(ScoreBlocks(in_tiles(blocks["trials"]), **tiles, **speakers), method, **NORMS[method])
        assert isinstance(again.source.way, ByBlocks)
        np.testing.assert_allclose(again.in_memory().scores, here.scores, rtol=1e-10, atol=1e-10)


def test_rows_are_read_once_for_a_row_of_tiles():
    rng = np.random.default_rng(13)
    blocks = blocks_of(rng, cohort_rows=C)
    reads = []

    class Counted(Array):
        def read(self, place):
            reads.append((place.rows.start, place.rows.stop))
            return super().read(place)

    enroll = replace(in_tiles(blocks["enroll"]), source=Counted(blocks["enroll"].scores))
    trials = in_tiles(blocks["trials"])
    there = normalize(
        ScoreBlocks(trials, enroll=enroll, test=blocks["test"], cohort=blocks["cohort"]),
        "as",
        top_k=5,
        select="cross",
    )
    there.in_memory()
    rows = [(tile.rows.start, tile.rows.stop) for tile in trials.places()]
    assert len(rows) > len(set(rows)) == len(reads)
    copied = pickle.loads(pickle.dumps(there.source.way.last))  # noqa: S301  (as it travels to a worker)
    assert copied.get(rows[-1], lambda: "read anew") == "read anew"


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
