"""float32 scores far from 0 give what the same numbers give as float64, within what float32 holds."""

import numpy as np
import pytest

from evenscore import LabelledBlocks, Labels, ScoreMatrix, fit_norm

SPEAKERS = [f"s{n % 8}" for n in range(24)]
SAME = np.array(SPEAKERS[:8])[:, None] == np.array(SPEAKERS)
ENROLL, TEST = [f"e{n}" for n in range(8)], [f"t{n}" for n in range(24)]


@pytest.mark.parametrize("offset", [0.0, -1e4, 1e6])
@pytest.mark.parametrize("method", ["z", "t", "zt", "tz", "s", "as", "lgsm"])
def test_the_type_of_scores_changes_no_digit_that_it_holds(route, method, offset):
    single = (np.random.default_rng(0).normal(size=SAME.shape) + 3 * SAME + offset).astype(np.float32)
    labels = Labels.from_speakers(SPEAKERS[:8], SPEAKERS, enroll_ids=ENROLL, test_ids=TEST)
    found = []
    for scores in (single, single.astype(np.float64)):
        part = LabelledBlocks.own_cohort(ScoreMatrix(scores, ENROLL, TEST), labels)
        options = {"max_iter": 5} if method == "lgsm" else {}
        found.append(fit_norm(method, [part], **options).normalizer.normalize(part.blocks).scores)
    np.testing.assert_allclose(found[0], found[1], rtol=3e-6, atol=1e-5)
