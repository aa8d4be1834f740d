"""Agreement with outside programs; the golden files say which versions made them, and how."""

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from evenscore.metrics import (
    OperatingPoint,
    auc,
    bayes_error_curve,
    cllr,
    detection_costs,
    eer,
    min_cllr,
    rocch,
    sort_scores,
)

GOLDEN = sorted((Path(__file__).parent / "golden").glob("*.json"))
TOLERANCE = {"rtol": 1e-9, "atol": 1e-9}


@pytest.fixture(scope="module", params=GOLDEN, ids=lambda path: path.stem)
def golden(request):
    return json.loads(request.param.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def trials(golden):
    return sort_scores(np.array(golden["scores"]), golden["labels"])


def test_there_are_golden_files():
    assert len(GOLDEN) >= 9


def test_eer_cllr_and_min_cllr_agree_with_llreval(golden, trials):
    values = golden["values"]["llreval"]
    assert_allclose(
        eer(trials), values["eer"], rtol=0, atol=2e-8
    )  # llreval searches the EER with a tolerance of 1.5e-8
    assert_allclose(cllr(trials), values["cllr"], **TOLERANCE)
    assert_allclose(min_cllr(trials), values["min_cllr"], **TOLERANCE)


def test_eer_lies_on_the_hull_of_llreval(golden, trials):
    p_miss, p_fa = (np.array(golden["values"]["llreval"][f"rocch_{rate}"]) for rate in ("p_miss", "p_fa"))
    expected = np.interp(0.0, p_miss - p_fa, p_miss)
    assert_allclose(eer(trials), expected, **TOLERANCE)


def test_hull_agrees_with_llreval(golden, trials):
    hull = rocch(trials)
    values = golden["values"]["llreval"]
    assert_allclose(hull.p_miss, values["rocch_p_miss"], **TOLERANCE)
    assert_allclose(hull.p_fa, values["rocch_p_fa"], **TOLERANCE)


def test_bayes_error_rates_agree_with_llreval(golden, trials):
    odds = np.log(golden["priors"]) - np.log1p(-np.array(golden["priors"]))
    curve = bayes_error_curve(trials, log_odds=odds, normalize=False)
    assert_allclose(curve.minimum, golden["values"]["llreval"]["min_bayes_error"], **TOLERANCE)
    assert_allclose(curve.actual, golden["values"]["llreval"]["act_bayes_error"], **TOLERANCE)


def test_costs_agree_with_expected_cost(golden, trials):
    costs = detection_costs(trials, points=golden["costs"])
    values = golden["values"]["expected_cost"]
    assert_allclose([cost.min_dcf for cost in costs], values["min_dcf"], **TOLERANCE)
    assert_allclose([cost.act_dcf for cost in costs], values["act_dcf"], **TOLERANCE)


def test_error_rates_and_cllr_agree_with_bob(golden, trials):
    costs = detection_costs(trials, points=[OperatingPoint(prior) for prior in golden["priors"]])
    values = golden["values"]["bob.measure"]
    assert_allclose([cost.act_p_miss for cost in costs], values["act_p_miss"], **TOLERANCE)
    assert_allclose([cost.act_p_fa for cost in costs], values["act_p_fa"], **TOLERANCE)
    if "cllr" in values:
        assert_allclose(cllr(trials), values["cllr"], **TOLERANCE)


def test_area_and_nearest_corner_agree_with_scikit_learn(golden, trials):
    values = golden["values"]["scikit-learn"]
    assert_allclose(auc(trials), values["auc"], **TOLERANCE)
    assert eer(trials, method="nearest-max") == pytest.approx(values["nearest_max"], abs=1e-15)


def test_area_and_rates_agree_with_pyeer(golden, trials):
    values = golden["values"]["pyeer"]
    assert_allclose(auc(trials), values["auc"], **TOLERANCE)
    i, j = trials.below(values["thresholds"])
    assert_allclose(trials.miss_rate(i), values["p_miss"], **TOLERANCE)
    assert_allclose(trials.false_alarm_rate(j), values["p_fa"], **TOLERANCE)
