"""The shapes that records of metrics and calibrations promise in their annotations are the shapes they have."""

from collections.abc import Callable
from typing import Any, get_type_hints

import numpy as np
import pytest
from jaxtyping import AbstractArray, jaxtyped

from evenscore.calibrate import (
    BayesianCalibration,
    GaussianCalibration,
    LogisticCalibration,
    PavCalibration,
    UnsupervisedCalibration,
    cross_calibrate,
)
from evenscore.calibrate.logistic_regression import Design, objective
from evenscore.metrics import (
    bayes_error_curve,
    bootstrap,
    bootstrap_det,
    evaluate,
    roc,
    rocch,
    sort_scores,
)
from evenscore.metrics.operating_points import as_points
from evenscore.metrics.resampling import rank_trials
from evenscore.metrics.speakers import trial_speakers

RNG = np.random.default_rng(0)
ENROLL, TEST = np.repeat(np.arange(12), 24), np.tile(np.repeat(np.arange(12), 2), 12)
LABELS = (ENROLL == TEST).astype(np.int8)
SCORES = RNG.normal(2.0 * LABELS, 1.0)
SIDES = {"enroll_speakers": ENROLL, "test_speakers": TEST}


def speakers():
    return trial_speakers(None, LABELS.size, ENROLL, TEST)


def design():
    return Design.of(SCORES[LABELS == 0][:, None], SCORES[LABELS == 1][:, None], 1)


#: Made when a test runs: collecting must not compile loops.
RECORDS: list[Callable[[], Any]] = [
    lambda: sort_scores(SCORES, LABELS),
    lambda: sort_scores(SCORES, LABELS, weights=np.ones(LABELS.size)),
    lambda: sort_scores(SCORES.astype(np.float32), LABELS),
    lambda: rocch(SCORES, LABELS),
    lambda: roc(SCORES, LABELS),
    lambda: bayes_error_curve(SCORES, LABELS),
    lambda: bootstrap(SCORES, LABELS, **SIDES, replicates=5, points=[0.1, 0.5]),
    lambda: bootstrap_det(SCORES, LABELS, **SIDES, replicates=5),
    speakers,
    lambda: rank_trials(SCORES, LABELS, speakers(), as_points([0.1, 0.2])),
    lambda: GaussianCalibration.fit(SCORES, LABELS),
    lambda: LogisticCalibration.fit(np.stack((SCORES, SCORES**2), axis=1), LABELS, quality=SCORES**3),
    lambda: PavCalibration.fit(SCORES, LABELS),
    lambda: PavCalibration(edges=[], llr=[0.0]),
    lambda: BayesianCalibration.fit(SCORES, LABELS),
    lambda: UnsupervisedCalibration.fit(SCORES + 9 * LABELS),
    lambda: cross_calibrate(SCORES, LABELS, **SIDES),
    design,
    lambda: objective(np.zeros(2), design(), 0.5, 0.0),
]


@pytest.mark.parametrize("make", RECORDS)
def test_fields_have_the_promised_shapes(make):
    record, arrays = make(), 0
    with jaxtyped("context"):
        for name, hint in get_type_hints(type(record)).items():
            value = getattr(record, name)
            options = getattr(hint, "__args__", None) or [hint]
            shapes = [option for option in options if isinstance(option, type) and issubclass(option, AbstractArray)]
            if shapes and value is not None:
                assert isinstance(value, shapes[0]), (name, hint, value.dtype, value.shape)
                arrays += 1
    assert arrays > 0


def test_evaluate_is_made_of_plain_numbers():
    kinds = {type(value) for value in evaluate(SCORES, LABELS).values()}
    assert kinds == {float, int, list}
