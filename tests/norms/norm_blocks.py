"""Awkward blocks of scores for the tests of norms: missing scores, shared and unknown speakers, uneven sizes."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from evenscore import ScoreBlocks, ScoreMatrix


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

    The two cohorts may have the same members, or at least the same speakers, all of them known.
    """
    rng = np.random.default_rng(seed)
    if same_cohort:
        cohort_enroll = cohort_test
    rows = [f"c{i}" for i in range(cohort_enroll)]
    columns = rows if same_cohort else [f"d{i}" for i in range(cohort_test)]

    def matrix(row_ids, column_ids, missing=missing):
        scores = rng.normal(size=(len(row_ids), len(column_ids))) * 2 + 1
        if ties:
            scores = np.round(scores)
        mask = rng.random(scores.shape) < missing
        return ScoreMatrix(scores.astype(dtype), row_ids, column_ids, missing=mask if missing else None)

    e, t = [f"e{i}" for i in range(m)], [f"t{i}" for i in range(n)]
    trials = matrix(e, t, missing if listed is None else 0.0)
    if listed is not None:
        every = trials.to_trials()
        kept = np.flatnonzero(rng.random(len(every)) < listed)
        trials = every.select(rng.permutation(kept if len(kept) else [0]))
    names = [f"s{i}" for i in range(max(speakers, 1) + 2)]

    def spoken(size, extra=None):
        if not speakers:
            return None
        some = [*names[:speakers], *(extra or []), None]
        return [some[k] for k in rng.integers(len(some), size=size)]

    own = spoken(len(rows), ["x", "y", "z"])
    others = own if same_cohort else spoken(len(columns), ["x", "y", "z"])
    if same_speakers:
        pool = [*names[:speakers], "x", "y", "z"]
        pool = pool[-rng.integers(1, min(len(pool), len(rows), len(columns)) + 1) :]
        own, others = ([*pool, *rng.choice(pool, size=len(ids) - len(pool))] for ids in (rows, columns))
    return ScoreBlocks(
        trials,
        enroll=matrix(e, rng.permutation(columns)),
        test=matrix(rng.permutation(rows), t),
        cohort=matrix(rows, columns),
        enroll_speakers=spoken(len(trials.enroll_ids)),
        test_speakers=spoken(len(trials.test_ids)),
        cohort_enroll_speakers=own,
        cohort_test_speakers=others,
    )


@st.composite
def block_cases(draw, *, same_cohort=False, same_speakers=False, max_cohort=12):
    """Blocks of many kinds."""
    return make_blocks(
        seed=draw(st.integers(0, 10**6)),
        m=draw(st.integers(1, 6)),
        n=draw(st.integers(1, 6)),
        cohort_enroll=draw(st.integers(1, max_cohort)),
        cohort_test=draw(st.integers(1, max_cohort)),
        speakers=draw(st.sampled_from([0, 1, 2, 6])),
        missing=draw(st.sampled_from([0.0, 0.0, 0.3])),
        listed=draw(st.sampled_from([None, 0.6])),
        dtype=draw(st.sampled_from([np.float32, np.float64])),
        same_cohort=same_cohort,
        same_speakers=same_speakers,
        ties=draw(st.booleans()),
    )


def as_dict(trials):
    """Scores by pair of ids, None where missing."""
    if isinstance(trials, ScoreMatrix):
        return {
            (e, t): None if np.isnan(trials.scores[i, j]) else float(trials.scores[i, j])
            for i, e in enumerate(trials.enroll_ids)
            for j, t in enumerate(trials.test_ids)
        }
    return {trials.pair(at): float(trials.scores[at]) for at in range(len(trials))}


def assert_same(found, expected, dtype, how=""):
    """Compare a norm's result with the naive one; a missing trial is absent or None in either."""
    found = {pair: score for pair, score in as_dict(found).items() if score is not None}
    expected = {pair: score for pair, score in expected.items() if score is not None}
    assert found.keys() == expected.keys(), how
    rtol = 2e-5 if dtype == np.float32 else 1e-9
    pairs = list(expected)
    scores = np.array([[found[pair], expected[pair]] for pair in pairs]).reshape(-1, 2)
    np.testing.assert_allclose(*scores.T, rtol=rtol, atol=rtol, err_msg=f"{how} {pairs}")
