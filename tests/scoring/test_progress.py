import numpy as np
import pytest

from evenscore import Embeddings, score_embeddings


@pytest.mark.parametrize("method", ["as", "zt"])
def test_progress_rises_to_one(method):
    rng = np.random.default_rng(0)
    enroll, test, cohort = (
        Embeddings([f"{side}{n}" for n in range(size)], rng.normal(size=(size, 5)))
        for side, size in (("e", 7), ("t", 9), ("c", 30))
    )
    seen = []
    score_embeddings(
        enroll,
        test,
        cohort=cohort,
        method=method,
        memory=20_000,
        progress=lambda stage, done: seen.append((stage, done)),
    )
    wanted = {"cohort scores of enrolments", "cohort scores of tests"}
    assert {stage for stage, _ in seen} == (wanted if method == "as" else wanted | {"cohort against itself"})
    for stage in wanted:
        fractions = [done for name, done in seen if name == stage]
        assert fractions == sorted(fractions)
        assert fractions[-1] == 1.0
