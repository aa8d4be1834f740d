"""Forensic metrics: against the figures of another program, and against their definitions."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from evenscore.calibrate import BoundedLlrs
from evenscore.errors import InputError
from evenscore.metrics import cllr, dev_pav, ece_curve, llr_bounds, min_cllr, sort_scores, summarize

GOLDEN = json.loads((Path(__file__).parent / "golden" / "forensic" / "lir.json").read_text())
CASES = GOLDEN["cases"]


@pytest.mark.parametrize("name", CASES)
def test_the_figures_are_those_of_another_program(name):
    case = CASES[name]
    llrs, labels, priors = np.array(case["llr"]), case["labels"], np.array(case["priors"])
    assert np.array(llr_bounds(llrs, labels)) / math.log(10) == pytest.approx(case["elub_log10"], abs=1e-9)
    assert dev_pav(llrs, labels) == pytest.approx(case["dev_pav"], abs=1e-9)
    curve = ece_curve(llrs, labels, log_odds=np.log(priors / (1 - priors)))
    assert curve.actual == pytest.approx(case["ece"], rel=1e-9)
    assert curve.minimum == pytest.approx(case["ece_pav"], rel=1e-9, abs=1e-12)
    entropy = -priors * np.log2(priors) - (1 - priors) * np.log2(1 - priors)
    assert curve.default == pytest.approx(entropy)


def test_cross_entropy_at_even_odds_is_cllr():
    llrs, labels = CASES["overconfident"]["llr"], CASES["overconfident"]["labels"]
    curve = ece_curve(llrs, labels, log_odds=[0.0])
    assert curve.actual == pytest.approx([cllr(llrs, labels)])
    assert curve.minimum == pytest.approx([min_cllr(llrs, labels)])
    counted = ece_curve(summarize(llrs, labels), log_odds=[0.0])
    assert counted.actual == pytest.approx(curve.actual, rel=1e-6)
    infinite = ece_curve([math.inf, 1.0, -math.inf], [1, 1, 0], log_odds=[0.0])
    assert infinite.actual == pytest.approx([np.log2(1 + math.exp(-1)) / 4])


def test_dev_pav_is_the_mean_distance_from_the_diagonal():
    rng = np.random.default_rng(2)
    labels = np.arange(400) % 2
    llrs = rng.normal(np.where(labels, 1.0, -1.0), 1.5)
    hull = sort_scores(llrs, labels).hull
    finite = np.isfinite(hull.llr)
    x, y = (np.stack(pair, axis=1).ravel() for pair in ((hull.low, hull.high), (hull.llr, hull.llr)))
    x, y = x[np.repeat(finite, 2)], y[np.repeat(finite, 2)]
    grid = np.linspace(x[0], x[-1], 200_001)
    assert dev_pav(llrs, labels) == pytest.approx(
        np.mean(np.abs(np.interp(grid, x, y) - grid)) / math.log(10), rel=1e-4
    )


def test_bounds_are_kept_and_are_those_of_counted_scores():
    llrs, labels = np.array(CASES["calibrated"]["llr"]), CASES["calibrated"]["labels"]
    bounded = BoundedLlrs.fit(llrs, labels)
    assert (bounded.lower, bounded.upper) == llr_bounds(llrs, labels)
    assert BoundedLlrs.fit(summarize(llrs, labels)) == bounded
    assert (bounded(llrs).min(), bounded(llrs).max()) == (bounded.lower, bounded.upper)
    with pytest.raises(InputError, match="with 0 between them"):
        BoundedLlrs(lower=1.0, upper=2.0)


def test_special_cases():
    assert math.isnan(dev_pav([1.0, 2.0, -1.0, -2.0], [1, 1, 0, 0]))  # calibrated LLRs are infinite everywhere
    assert dev_pav([0.5, 0.5], [1, 0]) == pytest.approx(0.5 / math.log(10))
    assert dev_pav([math.inf, math.inf, 1.0, 0.0], [1, 0, 1, 0]) == math.inf
    low, high = llr_bounds([500.0, 400.0, -500.0, -400.0], [1, 1, 0, 0])  # two of a class cannot tell more than 3 : 1
    assert -math.log(3) - 0.03 <= low <= 0 <= high <= math.log(3) + 0.03
    assert llr_bounds([-1.0, 1.0], [1, 0]) == (0.0, 0.0)
