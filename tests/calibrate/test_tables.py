"""Calibrations of tables and files: the numbers of arrays; dask, fusion, quality measures."""

import dask.array as da
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from evenscore import InputError, Labels, ScoreMatrix, Side, TrialList, read_model, write_model
from evenscore.calibrate import CALIBRATIONS, LogisticCalibration, PavCalibration, calibration_class, quality_columns
from evenscore.errors import FileError

ENROLL = [f"s{i % 6}-e{i}" for i in range(18)]
TEST = [f"s{j % 6}-t{j}" for j in range(24)]
SPEAKERS = {name: name.split("-")[0] for name in ENROLL + TEST}


def matrix(seed=0, missing=40, dtype=np.float64):
    """Make scores of one system, with some missing."""
    rng = np.random.default_rng(seed)
    same = np.equal.outer([SPEAKERS[e] for e in ENROLL], [SPEAKERS[t] for t in TEST])
    scores = rng.normal(3.0 * same, 1.0).astype(dtype)
    scores.flat[np.random.default_rng(9).choice(scores.size, missing, replace=False)] = np.nan
    return ScoreMatrix(scores, ENROLL, TEST).with_speakers(SPEAKERS, SPEAKERS)


MATRIX = matrix()
LABELS = Labels.from_speakers(MATRIX.enroll, MATRIX.test)
LIST = MATRIX.to_trials(LABELS)


def options(kind):
    return {"l2": 1e-3} if "l2" in calibration_class(kind).option_names() else {}


@pytest.mark.parametrize("kind", CALIBRATIONS)
def test_tables_give_the_numbers_of_arrays(kind):
    found = calibration_class(kind)
    plain = found.fit(LIST.scores, LIST.labels, **options(kind))
    key = LIST.with_scores(np.zeros(len(LIST)))
    weights = np.ones(MATRIX.shape)
    for scores, labels, mass in (
        *((MATRIX, None, None), (MATRIX, LABELS, weights), (MATRIX, key, None), (MATRIX, LABELS.matrix, weights)),
        *((LIST, None, weights[LIST.rows, LIST.cols]), (LIST.with_labels(None), LABELS, None)),
        *((LIST.with_labels(None), key, None), (LIST, LIST.labels, None)),
    ):
        assert found.fit(scores, labels, mass, **options(kind)).to_dict() == plain.to_dict()
    expected = plain(LIST.scores)
    assert_array_equal(plain(LIST).scores, expected)
    assert plain(LIST).enroll_ids.tolist() == LIST.enroll_ids.tolist()
    assert_array_equal(plain(LIST).labels, LIST.labels)
    assert_array_equal(plain(MATRIX).to_trials().scores, expected)
    ragged = da.from_array(MATRIX.scores.astype(np.float32), chunks=((5, 1, 12), (7, 17)))
    lazy = plain(MATRIX.with_scores(ragged))
    assert lazy.scores.chunks == ragged.chunks
    assert lazy.scores.dtype == np.float32
    assert_allclose(lazy.to_trials().scores, plain(LIST.scores.astype(np.float32)), rtol=1e-6)


def test_trials_that_a_key_does_not_have_are_not_used():
    half = LIST.select(np.arange(0, len(LIST), 2))
    fit = LogisticCalibration.fit(LIST.with_labels(None), half)
    assert fit.to_dict() == LogisticCalibration.fit(half).to_dict()
    with pytest.raises(InputError):
        LogisticCalibration.fit(LIST.with_labels(None).with_sides(Side(ENROLL), Side(TEST)))


def test_systems_are_matched_by_id():
    other = matrix(1)
    stacked = np.column_stack((LIST.scores, other.to_trials().scores))
    plain = LogisticCalibration.fit(stacked, LIST.labels)
    turned = other.take(np.arange(18)[::-1], np.arange(24)[::-1])
    for systems in ([MATRIX, turned], [LIST, turned.to_trials()], [LIST, turned]):
        fit = LogisticCalibration.fit(systems)
        assert_allclose([*fit.weights, fit.offset], [*plain.weights, plain.offset], rtol=1e-9)
        llr = fit(systems)
        assert type(llr) is type(systems[0])
        assert_allclose(llr.to_trials().scores, plain(stacked), rtol=1e-9)
    for systems in ([LIST, LIST.select(np.arange(99))], [MATRIX, matrix(1, missing=41)]):
        with pytest.raises(InputError):
            LogisticCalibration.fit(systems)
    for arguments in ([LIST], [LIST, LIST, LIST], stacked[:, :1]):
        with pytest.raises(InputError):
            plain(arguments)
    for kind in CALIBRATIONS[1:]:
        with pytest.raises(InputError):
            calibration_class(kind).fit([LIST, turned.to_trials()])
        with pytest.raises(InputError):
            calibration_class(kind).fit(LIST, **options(kind))([LIST, LIST])


def with_columns(table):
    rng = np.random.default_rng(5)
    enroll, test = ({"dur": rng.uniform(1, 9, n), "sex": np.array(["f", "m"] * n)[:n]} for n in (18, 24))
    return table.with_sides(
        table.enroll.with_columns(enroll), table.test.with_columns(test | {"snr": rng.normal(size=24)})
    )


def test_quality_measures_are_those_of_the_definition():
    trials = with_columns(LIST)
    enroll, test = trials.enroll.columns["dur"][trials.rows], trials.test.columns["dur"][trials.cols]
    names = {
        "enroll:dur": enroll,
        "test:dur": test,
        "snr": trials.test.columns["snr"][trials.cols],
        "min:dur": [min(pair) for pair in zip(enroll, test, strict=True)],
        "max:dur": [max(pair) for pair in zip(enroll, test, strict=True)],
        "diff:dur": [abs(e - t) for e, t in zip(enroll, test, strict=True)],
        "log:ratio:dur": [abs(np.log(e / t)) for e, t in zip(enroll, test, strict=True)],
    }
    assert_allclose(quality_columns(trials, list(names)), np.column_stack(list(names.values())), rtol=1e-12)
    columns = {"mag_e": enroll, "mag_t": test, "noise": enroll * 2}
    own = TrialList.trusted(**{**vars(LIST), "columns": columns})
    assert_array_equal(
        quality_columns(own, ["test:mag", "mag_e", "noise"]), np.column_stack((test, enroll, enroll * 2))
    )
    for name in ("dur", "sex", "enroll:snr", "mean:dur", "log:snr", "nothing"):
        with pytest.raises(InputError, match=name.split(":")[-1]):
            quality_columns(trials, [name])


def test_quality_measures_are_used_by_name_and_remembered(tmp_path):
    trials, table = with_columns(LIST), with_columns(MATRIX)
    names = ["test:dur", "snr"]
    measures = quality_columns(trials, names)
    plain = LogisticCalibration.fit(LIST.scores, LIST.labels, quality=measures)
    fit = LogisticCalibration.fit(trials, quality=names)
    assert_array_equal(fit.quality_weights, plain.quality_weights)
    write_model(fit, tmp_path / "c.json")
    again = read_model(tmp_path / "c.json")
    expected = plain(LIST.scores, measures)
    for llr in (fit(trials), fit(trials, names), again(trials), again(table).to_trials(), fit(trials, measures)):
        assert_allclose(llr.scores, expected, rtol=1e-12)
    for wrong in ((LIST,), (LIST.scores,), (LIST.scores, names)):
        with pytest.raises(InputError):
            fit(*wrong)


@pytest.mark.parametrize("kind", CALIBRATIONS)
def test_every_calibration_is_read_as_it_was_written(kind, tmp_path):
    fit = calibration_class(kind).fit(LIST, **options(kind))
    write_model(fit, tmp_path / "c.json", {"train": ["dev"]})
    again = read_model(tmp_path / "c.json", calibration_class(kind))
    assert again.to_dict() == fit.to_dict()
    assert_array_equal(again(LIST).scores, fit(LIST).scores)
    with pytest.raises(InputError):
        again.interval([1.0], (SPEAKERS, SPEAKERS))


def test_damaged_files_are_refused(tmp_path):
    write_model(PavCalibration.fit(LIST, smoothing=0), tmp_path / "c.json")
    text = (tmp_path / "c.json").read_text()
    assert np.isinf(read_model(tmp_path / "c.json").llr[[0, -1]]).all()
    for old, new in (('"pav"', '"pau"'), ('"edges"', '"hedges"'), ('"llr": [', '"llr": [9.0, '), ('"inf"', '"much"')):
        (tmp_path / "c.json").write_text(text.replace(old, new))
        with pytest.raises(FileError, match=r"c\.json"):
            read_model(tmp_path / "c.json")
