"""Awkward blocks of scores for the tests of norms: missing scores, shared and unknown speakers, uneven sizes."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from evenscore import ScoreBlocks, ScoreMatrix, Side


def make_blocks(
    seed=0,
    m=4,
    n=5,
    cohort_enroll=7,
    cohort_test=9,
    *,
    speakers=3,
    missing=0.0,
    listed=None,
    dtype=np.float64,
    same_cohort=False,
    same_speakers=False,
    ties=False,
):
    """Random blocks; ``speakers`` is how many speakers they share (0: no speakers), ``listed`` a share of all pairs.

    The two cohorts may have the same members, or at least the same speakers. Every id has a gender.
    """
    rng = np.random.default_rng(seed)
    cohort_enroll = cohort_test if same_cohort else cohort_enroll

    def side(prefix, size, extra=()):
        names = [*(f"s{i}" for i in range(speakers)), *extra, None]
        known = rng.choice(np.array(names, object), size=size) if speakers or same_speakers else None
        gender = rng.choice(np.array(["f", "m", "f", None] if not extra else ["f", "m"], object), size=size)
        return Side([f"{prefix}{i}" for i in range(size)], known, {"gender": gender})

    def matrix(rows, columns, missing=missing):
        scores = rng.normal(size=(len(rows), len(columns))) * 2 + 1
        scores = np.round(scores) if ties else scores
        scores[rng.random(scores.shape) < missing] = np.nan
        return ScoreMatrix(scores.astype(dtype), rows, columns)

    def shuffled(side):
        return side.take(rng.permutation(len(side)))

    e, t = side("e", m), side("t", n)
    rows = side("c", cohort_enroll, "xyz")
    columns = rows if same_cohort else side("d", cohort_test, "xyz")
    if same_speakers and len(rows):
        rows = rows.with_speakers(["x", *rows.speakers[1:]])
        columns = columns.with_speakers(["x", *rng.choice(rows.speakers, size=len(columns) - 1)])
    trials = matrix(e, t, missing if listed is None else 0.0)
    if listed is not None:
        every = trials.to_trials()
        kept = np.flatnonzero(rng.random(len(every)) < listed)
        trials = every.select(rng.permutation(kept if len(kept) else [0]))
    return ScoreBlocks(trials, matrix(e, shuffled(columns)), matrix(shuffled(rows), t), matrix(rows, columns))


@st.composite
def block_cases(draw, *, max_cohort=12, **given):
    """Blocks of many kinds."""
    cases = {
        "seed": st.integers(0, 10**6),
        "m": st.integers(1, 6),
        "n": st.integers(1, 6),
        "cohort_enroll": st.integers(1, max_cohort),
        "cohort_test": st.integers(1, max_cohort),
        "speakers": st.sampled_from([0, 1, 2, 3]),
        "missing": st.sampled_from([0.0, 0.0, 0.3]),
        "listed": st.sampled_from([None, 0.6]),
        "dtype": st.sampled_from([np.float32, np.float64]),
        "ties": st.booleans(),
    }
    return make_blocks(**{name: given[name] if name in given else draw(case) for name, case in cases.items()} | given)


def replaced(blocks, **changes):
    """The same blocks with some of them replaced."""
    names = ("trials", "enroll", "test", "cohort", "enroll_labels", "test_labels", "cohort_labels")
    return ScoreBlocks(**{name: getattr(blocks, name) for name in names} | changes)


def ragged(blocks):
    """The same blocks as dask arrays in uneven chunks; a list of trials stays in memory."""
    import dask.array as da

    def cut(table):
        if not isinstance(table, ScoreMatrix):
            return table
        chunks = tuple((1, size // 2, size - 1 - size // 2) if size > 2 else (size,) for size in table.shape)
        return table.with_scores(da.from_array(table.scores, chunks=chunks))

    return replaced(blocks, **{name: cut(getattr(blocks, name)) for name in ("trials", "enroll", "test", "cohort")})


def as_dict(trials):
    """Scores by pair of ids, without missing ones."""
    trials = trials.to_trials() if isinstance(trials, ScoreMatrix) else trials
    return {trials.pair(at): float(trials.scores[at]) for at in range(len(trials))}


def assert_same(found, expected, dtype=np.float64):
    """Compare a norm's result with the scores by pair of ids; a missing one is absent or None."""
    found = as_dict(found)
    expected = {pair: score for pair, score in expected.items() if score is not None}
    assert found.keys() == expected.keys()
    tolerance = 2e-5 if dtype == np.float32 else 1e-9
    values = [found[pair] for pair in expected]
    np.testing.assert_allclose(values, list(expected.values()), rtol=tolerance, atol=tolerance)
