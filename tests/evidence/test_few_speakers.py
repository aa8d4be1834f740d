"""Vectors that are centred on few training speakers: what that tells of their targets must not be learned."""

import numpy as np

from evenscore import (
    LabelledBlocks,
    Labels,
    LogisticCalibration,
    ScoreBlocks,
    ScoreMatrix,
    evaluate,
    fit_norm,
    fit_score_model,
)
from evenscore.evidence import Penalties


def side(rng, n_speakers, name):
    """Return enrolments and tests of speakers, with their names."""
    takes = rng.normal(size=(n_speakers, 1, 20)) + rng.normal(size=(n_speakers, 6, 20))
    names = [f"{name}{at}" for at in range(n_speakers)]
    return takes[:, :2].mean(axis=1), takes[:, 2:].reshape(-1, 20), names, np.repeat(names, 4).tolist()


def scores(left, right, names):
    rows, columns = (
        [f"{name}{at}" for at in range(len(part))] for name, part in zip(names, (left, right), strict=True)
    )
    return ScoreMatrix(left @ right.T, rows, columns)


def centred(n_speakers, seed):
    """Return labelled training blocks, and blocks of new speakers with their labels."""
    rng = np.random.default_rng(seed)
    dev, new = side(rng, n_speakers, "dev"), side(rng, 40, "new")
    center = np.concatenate([np.repeat(dev[0], 2, axis=0), dev[1]]).mean(axis=0)
    units = [(part - center) / np.linalg.norm(part - center, axis=1, keepdims=True) for part in (*dev[:2], *new[:2])]
    E, T, E2, T2 = units
    cohort = scores(E, T, ("ce", "ct"))
    labels = Labels.from_speakers(*dev[2:], enroll_ids=cohort.enroll_ids, test_ids=cohort.test_ids)
    blocks = ScoreBlocks(
        scores(E2, T2, ("e", "t")),
        enroll=scores(E2, T, ("e", "ct")),
        test=scores(E, T2, ("ce", "t")),
        cohort=cohort,
        cohort_labels=labels,
        cohort_enroll_speakers=dev[2],
        cohort_test_speakers=dev[3],
    )
    return LabelledBlocks.own_cohort(cohort, labels), blocks, np.equal.outer(new[2], new[3]).astype(np.int8)


def cllr(method, training, blocks, key):
    options = {}
    if method == "evidence":  # whose score model would creep for thousands of iterations, and has no part in this
        scores = [(training.blocks.trials, training.labels)]
        options["score_model"] = fit_score_model(scores, max_iter=50, starts=1).model
    fitted = fit_norm(method, [training], **options)
    llrs = fitted.normalizer.normalize(blocks).scores
    if not fitted.is_llr:
        trials = training.labelled(fitted.training_scores[0])
        llrs = LogisticCalibration.fit(trials.scores, trials.labels)(llrs)
    return evaluate(llrs.ravel(), key.ravel())["cllr"]


def test_few_centred_speakers_do_no_harm():
    """With free views the ratio was 2 to 4."""
    material = centred(10, seed=0)
    assert cllr("evidence", *material) < 1.25 * cllr("s", *material)


def test_penalties_fall_with_the_numbers_of_speakers_and_targets():
    assert [Penalties.of(20, number).bend for number in (0, 1, 100, 10**6)] == [1.0, 1.0, 0.01, Penalties().bend]
    found = [Penalties.of(number, 1000).views for number in (0, 1, 8, 20, 100, 200, 5000)]
    assert found == sorted(found, reverse=True)
    assert found[-1] == found[-2] == Penalties().views
    assert found[3] == 100 * Penalties().views
