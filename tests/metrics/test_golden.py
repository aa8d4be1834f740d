"""Agreement with outside programs; the golden files say which versions made them, and how."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from evenscore.metrics import (
    as_points,
    auc,
    bayes_error_curve,
    cllr,
    det_curve,
    detection_costs,
    dev_pav,
    ece_curve,
    eer,
    llr_bounds,
    min_cllr,
)
from evenscore.metrics.points import Points

FOLDER = Path(__file__).parent / "golden"
GOLDEN = sorted(FOLDER.glob("*.json"))
FORENSIC = json.loads((FOLDER / "forensic" / "lir.json").read_text())["cases"]
TOLERANCE = {"rtol": 1e-9, "atol": 1e-9}


@pytest.fixture(scope="module", params=GOLDEN, ids=lambda path: path.stem)
def golden(request):
    return json.loads(request.param.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def points(golden):
    return as_points(np.array(golden["scores"]), golden["labels"])


@pytest.fixture(scope="module", params=[False, True], ids=["every score", "merged"])
def either(request, golden):
    odds = [math.log(p / (1 - p)) for p in golden["priors"]]
    thresholds = [*(-x for x in odds), *(math.log((1 - p) * f / (p * m)) for p, m, f in golden["costs"])]
    scores, labels = np.array(golden["scores"]), np.array(golden["labels"])
    thresholds += [
        math.log((1 - p) * f) - math.log(p * m)
        for p, m, f in [*golden["costs"], *((p, 1, 1) for p in golden["priors"])]
    ]
    return Points.from_scores(scores, labels, thresholds=thresholds, merge=request.param)


def test_there_are_golden_files():
    assert len(GOLDEN) >= 9


def test_hull_eer_and_cllr_agree_with_llreval(golden, either):
    values = golden["values"]["llreval"]
    assert_allclose(eer(either), values["eer"], rtol=0, atol=2e-8)  # llreval searches the EER to 1.5e-8
    assert_allclose(cllr(either), values["cllr"], **TOLERANCE)
    assert_allclose(min_cllr(either), values["min_cllr"], **TOLERANCE)
    hull = either.hull
    assert_allclose(hull.p_miss, values["rocch_p_miss"], **TOLERANCE)
    assert_allclose(hull.p_fa, values["rocch_p_fa"], **TOLERANCE)
    gap = hull.p_miss - hull.p_fa
    assert_allclose(eer(either), np.interp(0.0, gap, hull.p_miss), **TOLERANCE)


def test_costs_agree_with_llreval_expected_cost_and_bob(golden, either):
    odds = np.log(golden["priors"]) - np.log1p(-np.array(golden["priors"]))
    curve = bayes_error_curve(as_points(np.array(golden["scores"]), golden["labels"]), log_odds=odds, normalize=False)
    assert_allclose(curve.minimum, golden["values"]["llreval"]["min_bayes_error"], **TOLERANCE)
    assert_allclose(curve.actual, golden["values"]["llreval"]["act_bayes_error"], **TOLERANCE)
    costs = detection_costs(either, points=golden["costs"])
    assert_allclose([cost.min_dcf for cost in costs], golden["values"]["expected_cost"]["min_dcf"], **TOLERANCE)
    assert_allclose([cost.act_dcf for cost in costs], golden["values"]["expected_cost"]["act_dcf"], **TOLERANCE)
    costs = detection_costs(either, points=golden["priors"])
    assert_allclose([cost.act_p_miss for cost in costs], golden["values"]["bob.measure"]["act_p_miss"], **TOLERANCE)
    assert_allclose([cost.act_p_fa for cost in costs], golden["values"]["bob.measure"]["act_p_fa"], **TOLERANCE)


def test_areas_and_rates_agree_with_scikit_learn_and_pyeer(golden, points, either):
    assert_allclose(auc(either), golden["values"]["scikit-learn"]["auc"], **TOLERANCE)
    assert_allclose(auc(either), golden["values"]["pyeer"]["auc"], **TOLERANCE)
    expected = golden["values"]["scikit-learn"]["nearest_max"]
    assert eer(points, method="nearest-max") == pytest.approx(expected, abs=1e-15)
    values = golden["values"]["pyeer"]
    at = [points.rejected(threshold) for threshold in values["thresholds"]]
    assert_allclose(points.p_miss[at], values["p_miss"], **TOLERANCE)
    assert_allclose(points.p_fa[at], values["p_fa"], **TOLERANCE)
    curve = det_curve(points)
    assert set(zip(curve.p_miss, curve.p_fa, strict=True)) <= set(zip(points.p_miss, points.p_fa, strict=True))


@pytest.mark.parametrize("name", FORENSIC)
def test_forensic_figures_agree_with_lir(name):
    case = FORENSIC[name]
    llr, labels, priors = np.array(case["llr"]), case["labels"], np.array(case["priors"])
    assert np.array(llr_bounds(llr, labels)) / math.log(10) == pytest.approx(case["elub_log10"], abs=1e-9)
    assert dev_pav(llr, labels) == pytest.approx(case["dev_pav"], abs=1e-9)
    curve = ece_curve(llr, labels, log_odds=np.log(priors / (1 - priors)))
    assert curve.actual == pytest.approx(case["ece"], rel=1e-9)
    assert curve.minimum == pytest.approx(case["ece_pav"], rel=1e-9, abs=1e-12)
    assert curve.default == pytest.approx(-priors * np.log2(priors) - (1 - priors) * np.log2(1 - priors))
