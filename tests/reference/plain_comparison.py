"""A comparison of norms by plain public calls, one after the other, straight from its definition."""

import numpy as np

from evenscore import (
    ScoreModelNormalizer,
    bootstrap,
    cross_calibrate,
    evaluate,
    fit_score_model,
    normalize,
    paired_test,
)
from evenscore.calibrate import CALIBRATIONS
from evenscore.norms import fit_residuals


def compare_plainly(training, evaluation, methods, *, calibration="logistic", replicates=50, seed=0):
    """Return for each method its scores, LLRs and figures, with speakers by name."""
    found = {method: judge_plainly(training, evaluation, method, calibration, replicates, seed) for method in methods}
    best = min(found, key=lambda name: found[name]["figures"]["cllr"])
    _, labels, speakers = pooled(evaluation, [part.blocks.trials for part in evaluation])
    for name in methods:
        for other, against in (("to_raw", "raw"), ("to_best", best)):
            found[name][other] = paired_test(
                found[name]["llrs"],
                found[against]["llrs"],
                labels,
                **speakers,
                metric="cllr",
                replicates=replicates,
                seed=seed,
            )
    return found, best


def joint_intervals(drawn, level):
    """Return intervals of several rows of draws: as narrow as can be, but all hold at once in a share of the draws.

    Each leaves out as many draws at either end as every other one, and none is narrower than it were alone.
    """
    number = len(drawn[0])
    alone = [np.quantile(row, [(1 - level) / 2, (1 + level) / 2], method="inverted_cdf") for row in drawn]
    for tail in range(number // 2 + 1, 0, -1):
        ends = [(sorted(row)[tail - 1], sorted(row)[number - tail]) for row in drawn]
        inside = [
            all(low <= row[b] <= high for row, (low, high) in zip(drawn, ends, strict=True)) for b in range(number)
        ]
        if sum(inside) >= level * number - 1e-9:
            break
    return [(min(low, a), max(high, b)) for (low, high), (a, b) in zip(ends, alone, strict=True)]


def judge_plainly(training, evaluation, method, calibration, replicates, seed):
    change = norm_of(method, training)
    trained, training_labels, training_speakers = pooled(training, [change(part) for part in training])
    fitted = CALIBRATIONS[calibration].fit(trained, training_labels, l2=1e-5)
    scores, labels, speakers = pooled(evaluation, [change(part) for part in evaluation])
    llrs = fitted(scores)
    cross = cross_calibrate(
        trained, training_labels, **training_speakers, calibration=calibration, options={"l2": 1e-5}
    )
    return {
        "scores": scores,
        "llrs": llrs,
        "figures": evaluate(llrs, labels).to_dict(),
        "intervals": bootstrap(llrs, labels, **speakers, replicates=replicates, seed=seed).to_dict(),
        "training": evaluate(cross.llr, training_labels).to_dict(),
    }


def norm_of(method, training):
    """Return a function from labelled blocks to normalized trials."""
    if method == "raw":
        return lambda part: part.blocks.trials
    if method in ("lgsm", "lgsm:dim=0"):
        dim = 2 if method == "lgsm" else 0
        model = fit_score_model([(part.blocks.trials, part.labels) for part in training], dim).model
        model = fit_residuals(model, training) if dim else model
        return lambda part: ScoreModelNormalizer(model, part.blocks).normalize(part.blocks)
    return lambda part: normalize(part.blocks, method)


def pooled(parts, tables):
    """Return scores, labels and speakers of all trials, one after the other, row by row."""
    scores, labels, enroll, test = [], [], [], []
    for part, table in zip(parts, tables, strict=True):
        for i in range(table.shape[0]):
            for j in range(table.shape[1]):
                scores.append(table.scores[i, j])
                labels.append(part.labels.matrix[i, j])
                enroll.append(part.blocks.enroll_speakers[i])
                test.append(part.blocks.test_speakers[j])
    return np.array(scores), np.array(labels), {"enroll_speakers": enroll, "test_speakers": test}
