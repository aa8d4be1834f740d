"""Calibrations as dictionaries: what goes in comes out, and anything odd is refused with the reason."""

import json
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from evenscore import InputError
from evenscore.calibrate import (
    CALIBRATIONS,
    BayesianCalibration,
    BoundedLlrs,
    GaussianCalibration,
    LogisticCalibration,
    PavCalibration,
    SaturatingCalibration,
    UnsupervisedCalibration,
    calibration_class,
    calibration_from_dict,
)

EXAMPLES = [
    GaussianCalibration(mean=[0.0, 5.0], variance=[1.0, 0.1 + 0.2]),
    LogisticCalibration(weights=[1.5, -0.1], quality_weights=[0.3], offset=-2.0, p_target=0.01, l2=0.001),
    LogisticCalibration(weights=[1.5], quality_weights=[], offset=-2.0),
    PavCalibration(edges=[0.5, 1.5], llr=[-np.inf, 1 / 3, np.inf]),
    PavCalibration(edges=[], llr=[0.0]),
    BayesianCalibration(mean=[0.0, 5.0], scale2=[1.0, 2.0], df=[2.0, 9.0]),
    UnsupervisedCalibration(mean=[0.0, 5.0], variance=[1.0, 2.0], p_target=0.1),
    SaturatingCalibration(weight=1.5, offset=-0.1, target_outliers=0.01, nontarget_outliers=0.0),
    BoundedLlrs(lower=-2.0, upper=1 / 3),
]


def test_every_kind_is_registered_by_its_name():
    assert list(CALIBRATIONS) == ["gaussian", "logistic", "pav", "bayesian", "unsupervised", "saturating", "elub"]
    assert {type(example).kind for example in EXAMPLES} == set(CALIBRATIONS)
    assert calibration_class("pav") is calibration_class(PavCalibration) is PavCalibration
    with pytest.raises(InputError, match="no calibration 'plda'; choose one of gaussian, logistic"):
        calibration_class("plda")


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.kind)
def test_json_keeps_every_digit(example):
    text = json.dumps(example.to_dict(), allow_nan=False)
    again = calibration_from_dict(json.loads(text))
    assert type(again) is type(example)
    assert again == example
    scores = np.linspace(-3, 6, 7) if example.kind != "logistic" else np.ones((2, example.weights.size))
    quality = {"quality": np.ones((2, 1))} if getattr(example, "quality_weights", np.empty(0)).size else {}
    assert np.array_equal(again(scores, **quality), example(scores, **quality))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.kind)
def test_parameters_cannot_be_changed(example):
    for name, value in vars(example).items():
        with pytest.raises(FrozenInstanceError):
            setattr(example, name, value)
        if isinstance(value, np.ndarray) and value.size:
            with pytest.raises(ValueError, match="read-only"):
                value[0] = 9.0


GOOD = EXAMPLES[0].to_dict()
PAV = EXAMPLES[3].to_dict()


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({}, "not a calibration"),
        ([], "not a calibration"),
        (GOOD | {"format": "other"}, "not a calibration"),
        (GOOD | {"version": 2}, "version 2, but this evenscore reads version 1; update evenscore"),
        ({k: v for k, v in GOOD.items() if k != "version"}, "version None"),
        (GOOD | {"kind": "plda"}, "no calibration 'plda'"),
        (GOOD | {"kind": 3}, "has no 'kind'"),
        ({k: v for k, v in GOOD.items() if k != "parameters"}, "has no 'parameters'"),
        (GOOD | {"parameters": {"mean": [0, 1]}}, "lacks 'variance'"),
        (GOOD | {"parameters": GOOD["parameters"] | {"skew": 1}}, "unknown parameter 'skew'"),
        (GOOD | {"parameters": {"mean": [0, "inf"], "variance": [1, 1]}}, "mean is .*must be finite"),
        (GOOD | {"parameters": {"mean": [0, float("nan")], "variance": [1, 1]}}, "'mean' is nan"),
        (GOOD | {"parameters": {"mean": [0, "one"], "variance": [1, 1]}}, "'mean' is 'one'"),
        (GOOD | {"parameters": {"mean": [0, True], "variance": [1, 1]}}, "'mean' is True"),
        (GOOD | {"parameters": {"mean": [0, None], "variance": [1, 1]}}, "'mean' is None"),
        (GOOD | {"parameters": {"mean": [0, 1], "variance": [1, 0]}}, "must be above 0"),
        (GOOD | {"parameters": {"mean": [0, 1, 2], "variance": [1, 1]}}, "mean has shape"),
        (GOOD | {"parameters": {"mean": 0, "variance": [1, 1]}}, "mean has shape"),
        (PAV | {"parameters": {"edges": [1.0, 0.0], "llr": [0, 1, 2]}}, "must rise"),
        (PAV | {"parameters": {"edges": [0.0, 1.0], "llr": [0, 2, 1]}}, "must rise"),
        (PAV | {"parameters": {"edges": [0.0], "llr": [0, 1, 2]}}, "k LLRs need k - 1 edges"),
        (PAV | {"parameters": {"edges": [0.0, 1.0], "llr": ["-inf", "-inf", 2]}}, "must be finite"),
    ],
)
def test_anything_odd_is_refused(record, message):
    with pytest.raises(InputError, match=message):
        calibration_from_dict(record)


def test_from_dict_of_another_kind_is_refused():
    with pytest.raises(InputError, match="this is a 'gaussian' calibration, not a 'pav' one"):
        PavCalibration.from_dict(GOOD)


@pytest.mark.parametrize(
    ("kind", "parameters", "message"),
    [
        (LogisticCalibration, {"weights": [], "quality_weights": [], "offset": 0.0}, "weights has shape"),
        (LogisticCalibration, {"weights": [1.0], "quality_weights": [], "offset": np.nan}, "offset is nan"),
        (LogisticCalibration, {"weights": [1.0], "quality_weights": [], "offset": 0.0, "l2": -1.0}, "l2 is"),
        (UnsupervisedCalibration, {"mean": [0, 1], "variance": [1, 1], "p_target": 1.0}, "p_target is 1.0"),
        (BayesianCalibration, {"mean": [0, 1], "scale2": [1, 1], "df": [0, 1]}, "df is"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(kind, parameters, message):
    with pytest.raises(InputError, match=message):
        kind(**parameters)


def test_different_calibrations_are_different():
    assert EXAMPLES[0] != EXAMPLES[5]
    assert EXAMPLES[0] != "gaussian"
