"""Cases of the public API of Python, in its plainest use."""

from pathlib import Path

import numpy as np
from case_run import Case

import evenscore

MODEL = {
    "mu": [0.1, 3.0],
    "alpha": [[0.7, 0.0], [0.5, 0.6]],
    "beta": [[0.5, 0.1], [0.3, 0.7]],
    "sigma2": [1.0, 1.5],
}


def arrays():
    """Return scores and labels of the trials as plain arrays."""
    rows = [line.split() for line in Path("trials.key").read_text().splitlines()]
    scores = [float(line.split()[2]) for line in Path("trials.scores").read_text().splitlines()]
    return np.array(scores), np.array([label == "target" for _, _, label in rows]).astype(int)


def matrix(name):
    """Return a score matrix of the data."""
    with np.load(f"{name}.npz") as file:
        return evenscore.ScoreMatrix(file["scores"], list(file["enroll_ids"]), list(file["test_ids"]))


def speakers(ids):
    return [name.split("_")[1] for name in ids]


def labels_of(table):
    enroll, test = list(table.enroll_ids), list(table.test_ids)
    return evenscore.Labels.from_speakers(speakers(enroll), speakers(test), enroll_ids=enroll, test_ids=test)


def blocks():
    cohort = matrix("cohort")
    return evenscore.ScoreBlocks(
        matrix("trials"), enroll=matrix("enroll"), test=matrix("test"), cohort=cohort, cohort_labels=labels_of(cohort)
    )


def read():
    table, key = evenscore.read_scores("trials.scores"), evenscore.read_trials("trials.key")
    return {
        "enroll": list(table.enroll_ids),
        "test": list(table.test_ids),
        "scores": table.scores,
        "labels": key.labels,
        "joined": evenscore.read_scores("trials.scores").to_trials().join(key).labels,
    }


def tables():
    trials = matrix("trials").to_trials()
    return {"scores": trials.scores, "matrix": trials.to_matrix().scores, "labels": labels_of(matrix("trials")).matrix}


def norms():
    options = {"z": {}, "s": {"ddof": 1}, "zt": {}, "as": {"top_k": 7}, "at": {"top_k": 0.3}}
    return {name: evenscore.normalize(blocks(), name, **given).scores for name, given in options.items()}


def trained_norm():
    training = evenscore.LabelledBlocks(blocks(), labels_of(matrix("trials")))
    return {"s": evenscore.fit_norm("s", training).normalize(blocks()).scores}


def metrics():
    scores, labels = arrays()
    result = evenscore.evaluate(scores, labels, points=[0.01, (0.05, 10, 1)])
    methods = ("rocch", "interpolated", "nearest-mean", "nearest-max", "kaldi")
    return {
        **{name: getattr(result, name) for name in ("eer", "cllr", "min_cllr", "auc", "min_dcf", "act_dcf")},
        "eer_methods": [evenscore.eer(scores, labels, method=method) for method in methods],
        "dcf": [evenscore.min_dcf(scores, labels, p_target=0.05), evenscore.act_dcf(scores, labels, p_target=0.05)],
        "functions": [evenscore.cllr(scores, labels), evenscore.min_cllr(scores, labels)],
    }


def forensic():
    scores, labels = arrays()
    return {
        "dev_pav": evenscore.metrics.dev_pav(scores, labels),
        "bounds": evenscore.metrics.llr_bounds(scores, labels),
        "infinite": evenscore.evaluate([-np.inf, -1.0, 1.0, np.inf], [0, 0, 1, 1]).cllr,
    }


def bootstrapped():
    scores, labels = arrays()
    people = [
        speakers(column)
        for column in zip(*[line.split()[:2] for line in Path("trials.key").read_text().splitlines()], strict=True)
    ]
    draws = evenscore.bootstrap(scores, labels, enroll_speakers=people[0], test_speakers=people[1], replicates=300)
    interval = draws.interval("eer", level=0.95)
    assert interval.low < evenscore.eer(scores, labels) < interval.high
    return {"roughly": 0.04 < interval.high - interval.low < 0.2}


def calibrations():
    scores, labels = arrays()
    new = np.array([-2.0, 0.0, 1.0, 4.0, np.nan])
    kinds = ("Logistic", "Gaussian", "Pav", "Bayesian", "Saturating", "Unsupervised")
    found = {}
    for kind in kinds:
        calibration = getattr(evenscore, f"{kind}Calibration")
        found[kind] = (calibration.fit(scores) if kind == "Unsupervised" else calibration.fit(scores, labels))(new)
    fused = evenscore.LogisticCalibration.fit(np.column_stack((scores, np.sin(scores))), labels)
    return found | {"fusion": fused([[0.5, 0.2], [3.0, -1.0]])}


def score_model():
    model, cohort = evenscore.ScoreModel(**MODEL), matrix("cohort")
    trials, enroll, test = matrix("trials"), matrix("enroll"), matrix("test")
    normalizer = evenscore.ScoreModelNormalizer(model, cohort, labels_of(cohort))
    one = normalizer.normalize_one(trials.scores[2, 5], enroll.scores[2], test.scores[:, 5])
    whole = normalizer.normalize(evenscore.ScoreBlocks(trials, enroll=enroll, test=test))
    assert abs(one - whole.scores[2, 5]) < 1e-9
    gaps = np.array(enroll.scores[2], dtype=float)
    gaps[::3] = np.nan
    return {
        "one": one,
        "gaps": normalizer.normalize_one(trials.scores[2, 5], gaps, test.scores[:, 5]),
        "all": whole.scores,
    }


def likelihood():
    model = evenscore.ScoreModel(**MODEL)
    parts = [(table, labels_of(table)) for table in (matrix("trials"), matrix("cohort"))]
    flat = evenscore.ScoreModel(mu=[0.0, 3.0], alpha=np.zeros((2, 0)), beta=np.zeros((2, 0)), sigma2=[1.0, 2.0])
    return {
        "one": evenscore.log_likelihood(model, parts[:1]),
        "two": evenscore.log_likelihood(model, parts),
        "flat": evenscore.log_likelihood(flat, parts),
    }


def fitted():
    parts = [(table, labels_of(table)) for table in (matrix("dev"), matrix("trials"))]
    models = [evenscore.fit_score_model(parts, dim=dim, tol=1e-15).model for dim in (0, 1, 2)]
    found = {"log_likelihood": [evenscore.log_likelihood(model, parts) for model in models]}
    return found | {"mu": models[0].mu, "sigma2": models[0].sigma2}


def simulated():
    people = [f"s{n}" for n in range(60)]
    scores, labels = evenscore.simulate(evenscore.ScoreModel(**MODEL), people, people * 2, seed=1)
    target = labels.matrix == 1
    means = [scores.scores[target].mean(), scores.scores[~target].mean()]
    assert np.abs(np.subtract(means, [3.0, 0.1])).max() < 0.6
    return {"shape": scores.scores.shape, "targets": int(target.sum())}


def read_vectors(name):
    with np.load(f"{name}.npz") as file:
        return evenscore.Embeddings(list(file["ids"]), file["embeddings"], list(file["speakers"]))


def verified(verifier, names=("llr",)):
    enroll, test = read_vectors("xenroll").vectors, read_vectors("xtest").vectors
    found = {
        name: [getattr(verifier, name)(verifier.enroll(e), t) for e in enroll[:4] for t in test[:4]] for name in names
    }
    return found | {"mean": verifier.llr(verifier.enroll(enroll[:2]), test[1])}


def verifier():
    kind = getattr(evenscore, "Verifier", None) or evenscore.online.Verifier
    scores, labels = arrays()
    calibration = evenscore.LogisticCalibration.fit(scores, labels)
    return verified(
        kind("cosine", cohort=read_vectors("xcohort"), method="as", top_k=15, calibration=calibration),
        ("llr", "normalized"),
    )


def loaded_verifier():
    load = getattr(evenscore, "load_verifier", None) or evenscore.files.load_verifier
    return verified(load("models/verifier.npz"))


BEHIND_EM = {calibrations: 1e-6, fitted: 1e-6, verifier: 1e-6}
FUNCTIONS = (read, tables, norms, trained_norm, metrics, forensic, bootstrapped, calibrations, score_model, likelihood)
FUNCTIONS += (fitted, simulated, verifier, loaded_verifier)
CASES = [
    Case(name=f"python/{function.__name__.replace('_', '-')}", python=function, tol=BEHIND_EM.get(function, 1e-9))
    for function in FUNCTIONS
]
