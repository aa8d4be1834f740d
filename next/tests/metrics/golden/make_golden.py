"""Make the golden values of the metrics with outside programs.

Run it in an environment of its own, which needs nothing of evenscore:

    python -m venv /tmp/golden && /tmp/golden/bin/pip install llreval==0.0.3 bob.measure==6.1.1 pyeer==0.5.6 \
        expected_cost==1.0 "scikit-learn<1.6" && /tmp/golden/bin/python tests/metrics/golden/make_golden.py

It writes one JSON file per score set next to itself: the scores, the labels, and under ``values`` what each program
said, with its version.
"""

import json
import warnings
from importlib.metadata import version
from pathlib import Path

import numpy as np
from bob.measure import farfrr
from bob.measure.calibration import cllr as bob_cllr
from expected_cost.ec import CostMatrix, average_cost, bayes_decisions
from llreval.bayes_error_rate import fast_Bayes_error_rate
from llreval.cllr import cllr, min_cllr
from llreval.pav_rocch import PAV, ROCCH
from pyeer.eer_stats import calculate_roc, calculate_roc_auc
from scipy.special import logit
from sklearn.metrics import roc_auc_score, roc_curve

HERE = Path(__file__).parent
PRIORS = (0.001, 0.01, 0.05, 0.5, 0.9)
COSTS = ((0.01, 10.0, 1.0), (0.05, 1.0, 5.0))


def score_sets():
    rng = np.random.default_rng(20170820)

    def normal(target, nontarget, mean=2.0, scale=1.5):
        scores = np.concatenate((rng.normal(mean, scale, target), rng.normal(-mean, scale, nontarget)))
        labels = np.concatenate((np.ones(target, int), np.zeros(nontarget, int)))
        order = rng.permutation(labels.size)
        return scores[order], labels[order]

    scores, labels = normal(400, 2600)
    yield "gaussian", scores, labels
    yield "ties", np.round(scores), labels
    yield "inverted", -scores[:500], labels[:500]
    yield "few", np.array([-1.5, 0.25, 0.25, 2.0, -0.5]), np.array([0, 1, 0, 1, 0])
    yield "pair", np.array([1.0, -2.0]), np.array([1, 0])
    yield "equal", np.zeros(12), np.array([1, 0, 0] * 4)
    separable, key = normal(40, 90, mean=30.0)
    yield "separable", separable, key
    huge, key = normal(150, 350)
    yield "huge", huge * 5e3, key
    yield "shifted", *(lambda s, k: (0.3 * s + 4.0, k))(*normal(120, 3000, mean=1.0))


def llreval_values(scores, labels):
    pav = PAV(scores, labels)
    hull = ROCCH(pav)
    odds = logit(np.array(PRIORS))
    p_miss, p_fa = hull.Pmiss_Pfa()
    return {
        "eer": hull.EER(),
        "cllr": float(cllr(scores[labels == 1], scores[labels == 0])),
        "min_cllr": float(min_cllr(pav)),
        "min_bayes_error": hull.Bayes_error_rate(odds).tolist(),
        "act_bayes_error": fast_Bayes_error_rate(scores, labels, odds).tolist(),
        "rocch_p_miss": p_miss.tolist(),
        "rocch_p_fa": p_fa.tolist(),
    }


def expected_cost_values(scores, labels):
    values = {"min_dcf": [], "act_dcf": []}
    for p_target, c_miss, c_fa in COSTS:
        costs = CostMatrix([[0.0, c_fa], [c_miss, 0.0]])
        priors = np.array([1 - p_target, p_target])
        llks = np.stack((np.zeros_like(scores), scores), axis=1)
        decisions, _ = bayes_decisions(llks, costs, priors, score_type="log_likelihoods", silent=True)
        thresholds = np.append(np.unique(scores), np.inf)
        choices = [decisions, *((scores >= threshold).astype(int) for threshold in thresholds)]
        actual, *every = (average_cost(labels, made, costs, priors[:, None], adjusted=True) for made in choices)
        values["act_dcf"].append(float(actual))
        values["min_dcf"].append(float(min(every)))
    return values


def bob_values(scores, labels):
    tar, non = scores[labels == 1], scores[labels == 0]
    rates = [farfrr(non, tar, -logit(prior)) for prior in PRIORS]
    values = {"act_p_fa": [float(far) for far, _ in rates], "act_p_miss": [float(frr) for _, frr in rates]}
    if np.abs(scores).max() < 700:  # bob's Cllr overflows above
        values["cllr"] = bob_cllr(non, tar)
    return values


def sklearn_values(scores, labels):
    fpr, tpr, _ = roc_curve(labels, scores)
    fnr = 1 - tpr
    nearest = np.nanargmin(np.absolute(fnr - fpr))
    return {"auc": float(roc_auc_score(labels, scores)), "nearest_max": float(max(fpr[nearest], fnr[nearest]))}


def pyeer_values(scores, labels):
    thresholds, fmr, fnmr = calculate_roc(scores[labels == 1], scores[labels == 0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        area = calculate_roc_auc(np.append(fmr, 0.0), np.append(fnmr, 1.0))
    return {
        "thresholds": thresholds[:40].tolist(),
        "p_fa": fmr[:40].tolist(),
        "p_miss": fnmr[:40].tolist(),
        "auc": float(area),
    }


def main():
    programs = {
        "llreval": llreval_values,
        "expected_cost": expected_cost_values,
        "bob.measure": bob_values,
        "scikit-learn": sklearn_values,
        "pyeer": pyeer_values,
    }
    for name, scores, labels in score_sets():
        golden = {
            "made_by": {program: version(program) for program in programs} | {"numpy": np.__version__},
            "script": "tests/metrics/golden/make_golden.py",
            "priors": PRIORS,
            "costs": COSTS,
            "values": {program: values(scores, labels) for program, values in programs.items()},
            "scores": scores.tolist(),
            "labels": labels.tolist(),
        }
        (HERE / f"{name}.json").write_text(json.dumps(golden) + "\n")


if __name__ == "__main__":
    main()
