"""The rule of the verdict, on made-up draws whose answer is known."""

from dataclasses import replace

import numpy as np
import pytest

from evenscore.comparison import Figures
from evenscore.comparison.judge import with_differences
from evenscore.comparison.verdict import choose, write_verdict

NOISE = np.random.default_rng(0).normal(scale=0.004, size=60)


class Drawn:
    """Draws of speakers around given figures; ``own`` adds noise that other methods do not share."""

    n_speakers = 22

    def __init__(self, cllr, act_dcf, own):
        noise = NOISE + own * np.random.default_rng(int(1000 * cllr)).normal(size=len(NOISE))
        self.values = {"cllr": cllr + noise, "act_dcf": act_dcf + noise}

    def replicates(self, metric, point=0):
        return self.values.get(metric, 0.1 + NOISE)


@pytest.fixture
def judged(comparison):
    """Return a function that makes results: name -> (Cllr, actDCF, own noise)."""

    def make(**methods):
        made = []
        for name, (cllr, act_dcf, own) in methods.items():
            costs = tuple(replace(cost, act_dcf=act_dcf) for cost in comparison["raw"].figures.evaluation.costs)
            evaluation = replace(
                comparison["raw"].figures.evaluation, cllr=cllr, act_dcf=act_dcf, costs=costs, min_cllr=0.9 * cllr
            )
            figures = Figures(evaluation, Drawn(cllr, act_dcf, own))
            made.append(replace(comparison["raw"], name=name, figures=figures))
        return with_differences(made, comparison.settings)

    return make


RAW = (0.30, 0.60, 0.0)


@pytest.mark.parametrize(
    ("methods", "use", "alike"),
    [
        ({"a": (0.20, 0.50, 0.001), "b": (0.25, 0.55, 0.001)}, "a", ()),
        ({"a": (0.20, 0.50, 0.01), "b": (0.201, 0.502, 0.01)}, "a", ("b",)),
        ({"a": (0.299, 0.599, 0.01)}, "raw", ()),  # not clearly better than raw
        ({"a": (0.35, 0.40, 0.001)}, "raw", ()),  # Cllr decides first
        ({"a": (0.20, 0.70, 0.001), "b": (0.25, 0.55, 0.001)}, "b", ()),  # a has a clearly worse actDCF than raw
        ({"a": (0.20, 0.50, 0.01), "b": (0.201, 0.40, 0.01)}, "b", ()),  # alike by Cllr, clearly cheaper
        ({"a": (0.20, 0.50, 0.001), "b": (0.25, 0.40, 0.001)}, "a", ()),  # cheaper, but clearly worse by Cllr
        ({}, "raw", ()),
    ],
)
def test_rule(judged, comparison, methods, use, alike):
    results = judged(raw=RAW, **methods)
    chosen, others = choose(results, comparison.settings)
    assert (chosen.name, others) == (use, alike)
    verdict = write_verdict(results, comparison.settings, comparison.data)
    assert (verdict.use, verdict.sure, verdict.alike) == (use, use != "raw", alike)
    assert verdict.text == " ".join(verdict.sentences)
    assert f"Use {use}:" in verdict.text or use == "raw"


@pytest.mark.parametrize(("share", "words"), [(0.05, "face value"), (0.2, "fairly"), (0.5, "not well")])
def test_trust_is_the_share_of_cllr_that_calibration_loses(judged, comparison, share, words):
    results = judged(raw=RAW, a=(0.2, 0.5, 0.001))
    evaluation = replace(results[0].figures.evaluation, min_cllr=0.2 * (1 - share), calibration_loss=0.2 * share)
    changed = replace(results[0], figures=replace(results[0].figures, evaluation=evaluation))
    assert words in write_verdict((changed, *results[1:]), comparison.settings, comparison.data).text


def test_a_norm_helps_where_scores_are_shifted_and_the_raw_scores_stay_where_they_are_not(comparison):
    assert comparison.verdict.use in ("lgsm", "s")
    assert comparison.verdict.sure
    assert comparison.verdict.use in str(comparison)
