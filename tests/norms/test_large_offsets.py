"""float32 scores far from 0 give what the same numbers give as float64, within what float32 holds."""

import numpy as np
import pytest

from evenscore import LabelledBlocks, Labels, ScoreMatrix, evaluate, fit_norm
from evenscore.calibrate.registry import CALIBRATIONS

SPEAKERS = [f"s{n % 8}" for n in range(24)]
SAME = np.array(SPEAKERS[:8])[:, None] == np.array(SPEAKERS)
ENROLL, TEST = [f"e{n}" for n in range(8)], [f"t{n}" for n in range(24)]

# Without an offset this is what the tests of both types of scores show anyway.
OFFSETS = [pytest.param(0.0, marks=pytest.mark.slow), -1e4, 1e6]


@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("tiles", [False, True], ids=["whole", "in tiles"])
@pytest.mark.parametrize("method", ["z", "t", "zt", "tz", "s", "as", "at", "az", "lgsm"])
def test_the_type_of_scores_changes_no_digit_that_it_holds(route, method, tiles, offset):
    single = (np.random.default_rng(0).normal(size=SAME.shape) + 3 * SAME + offset).astype(np.float32)
    labels = Labels.from_speakers(SPEAKERS[:8], SPEAKERS, enroll_ids=ENROLL, test_ids=TEST)
    found = []
    for scores in (single, single.astype(np.float64)):
        table = ScoreMatrix(scores, ENROLL, TEST)
        part = LabelledBlocks.own_cohort(table.in_tiles(200, (3, 8)) if tiles else table, labels)
        options = {"max_iter": 5} if method == "lgsm" else {}
        found.append(fit_norm(method, [part], **options).normalize(part.blocks).in_memory().scores)
    np.testing.assert_allclose(found[0], found[1], rtol=3e-6, atol=1e-5)


@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("kind", sorted(CALIBRATIONS))
def test_calibrations_and_metrics_do_not_depend_on_it(kind, offset):
    single = (np.random.default_rng(0).normal(size=SAME.shape) + 3 * SAME + offset).astype(np.float32).reshape(-1)
    labels = () if kind == "unsupervised" else (SAME.reshape(-1),)
    one, two = (CALIBRATIONS[kind].fit(scores, *labels)(scores) for scores in (single, single.astype(np.float64)))
    np.testing.assert_allclose(one, two, rtol=1e-6, atol=1e-6)
    assert evaluate(single, SAME.reshape(-1)).eer == evaluate(single.astype(np.float64), SAME.reshape(-1)).eer
