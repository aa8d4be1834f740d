"""How norms of tables in tiles go about it: what they keep of each side, and what they read for it."""

import pickle
from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest
from norm_blocks import make_blocks

from evenscore import Labels, ScoreModel
from evenscore.norms import normalize, parts
from evenscore.norms.parts import ByBlocks, ByParts
from evenscore.tables import LazyScores
from tilings import RAGGED, cut_tilings, tiled, tiled_blocks

MODEL = ScoreModel(mu=[0.0, 3.0], alpha=[[0.5, 0.1], [0.4, 0.2]], beta=[[0.5, 0.2], [0.3, 0.3]], sigma2=[1.0, 1.2])
METHODS = ("z", "t", "s", "as", "at", "az", "zt", "tz", "lgsm")


def options_for(method):
    return {"model": MODEL} if method == "lgsm" else {"top_k": 4} if method.startswith("a") else {}


def blocks_for(own, missing):
    """Return blocks whose speakers are all known, or none."""
    blocks = make_blocks(3, 5, 6, 17, 17, speakers=0, missing=missing)
    if not own:
        return blocks
    trials, cohort = (
        table.with_speakers(*([f"s{n % number}" for n in range(size)] for size in table.shape))
        for table, number in ((blocks.trials, 4), (blocks.cohort, 9))
    )
    return blocks.replace(trials=trials, cohort=cohort, cohort_labels=None)


@pytest.mark.parametrize(("method", "missing", "own"), list(product(METHODS, (0.0, 0.1), (False, True))))
def test_what_can_be_taken_apart_is(method, missing, own):
    blocks = blocks_for(own, missing)
    found = normalize(tiled_blocks(blocks, RAGGED), method, **options_for(method))
    whole = not (method in ("zt", "tz") and own) and not (method == "lgsm" and missing)
    assert isinstance(found.source.way, ByParts if whole else ByBlocks)
    expected = normalize(blocks, method, **options_for(method)).scores
    np.testing.assert_allclose(found.in_memory().scores, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("method", ["z", "as", "lgsm"])
@cut_tilings
def test_tables_of_own_speakers_that_would_be_too_large_are_not_made(method, tiling, monkeypatch):
    blocks = blocks_for(True, 0.0)
    monkeypatch.setattr(parts, "_MOST_TABLE", 100)
    found = normalize(tiled_blocks(blocks, tiling), method, **options_for(method))
    assert isinstance(found.source.way, ByBlocks)
    expected = normalize(blocks, method, **options_for(method)).scores
    np.testing.assert_allclose(found.in_memory().scores, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("labelled", ["nobody", "speakers", "key", "holes", "holes and key"])
@pytest.mark.parametrize("method", ["zt", "tz", "lgsm"])
@cut_tilings
def test_the_cohort_against_itself_is_read_in_tiles(labelled, method, tiling, monkeypatch):
    blocks = make_blocks(9, 5, 6, 17, 17, speakers=0)
    rows, columns = blocks.cohort.enroll_ids, blocks.cohort.test_ids
    labels = None
    if labelled == "speakers":
        labels = Labels.from_speakers(np.arange(17) % 6, np.arange(17) % 5, enroll_ids=rows, test_ids=columns)
    elif "key" in labelled:
        key = np.random.default_rng(1).choice([-1, 0, 0, 0, 0, 1], size=(17, 17))
        labels = Labels.from_key(key, enroll_ids=rows, test_ids=columns)
    cohort = make_blocks(9, 5, 6, 17, 17, speakers=0, missing=0.1).cohort if "holes" in labelled else blocks.cohort
    blocks = blocks.replace(cohort=cohort, cohort_labels=labels)
    expected = normalize(blocks, method, **options_for(method)).scores
    monkeypatch.setattr(LazyScores, "in_memory", lambda self: pytest.fail("a whole table was read"))
    found = normalize(tiled_blocks(blocks, tiling), method, **options_for(method))
    assert isinstance(found.source.way, ByParts)
    np.testing.assert_allclose(found.block(slice(0, 5), slice(0, 6)), expected, rtol=1e-9, atol=1e-9)


@dataclass(frozen=True, eq=False)
class Counted:
    """A source that notes the rows that are read."""

    source: object
    reads: list

    def read(self, place):
        self.reads.append((place.rows.start, place.rows.stop))
        return self.source.read(place)

    def identity(self):
        return self.source.identity()


def test_rows_are_read_once_for_a_row_of_tiles():
    blocks = make_blocks(13, 9, 10, 17, 17, speakers=0, same_cohort=True)
    reads = []
    enroll = tiled(blocks.enroll, RAGGED)
    trials = tiled(blocks.trials, RAGGED)
    some = blocks.replace(trials=trials, enroll=enroll.with_source(Counted(enroll.source, reads)))
    found = normalize(some, "as", top_k=5, select="cross")
    found.in_memory()
    rows = [(place.rows.start, place.rows.stop) for place in trials.places()]
    assert len(rows) > len(set(rows)) == len(reads)
    copied = pickle.loads(pickle.dumps(found.source.way.last))  # noqa: S301  (as it travels to a worker)
    assert copied.get(rows[-1], lambda: "read anew") == "read anew"


@cut_tilings
def test_only_norms_that_read_the_cohort_against_itself_bring_it_into_memory(tiling, monkeypatch):
    blocks = make_blocks(13, 5, 6, 17, 17, speakers=0, same_cohort=True)
    expected = normalize(blocks, "as", top_k=5, select="cross").scores
    monkeypatch.setattr(LazyScores, "in_memory", lambda self: pytest.fail("a whole table was read"))
    found = normalize(tiled_blocks(blocks, tiling), "as", top_k=5, select="cross")
    np.testing.assert_allclose(found.block(slice(0, 5), slice(0, 6)), expected, rtol=1e-9, atol=1e-9)
    with pytest.raises(pytest.fail.Exception, match="a whole table was read"):
        normalize(tiled_blocks(blocks, tiling), "as", top_k=5, select="profile").block(slice(0, 5), slice(0, 6))
