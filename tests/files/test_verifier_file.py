"""The file of a verifier: the same numbers again, and a reason for every refusal."""

import json

import numpy as np
import pytest
from hypothesis import given, strategies as st

from damage import cuts_and_flips, must_parse_or_refuse
from evenscore import FileError, InputError, read_embeddings
from evenscore.files import load_verifier, save_verifier
from evenscore.online import Verifier
from examples import examples
from online_data import CALIBRATION, COHORT, ENROLLED, TESTED, scorers, trained

PAIR = ENROLLED.vectors[0], TESTED.vectors[0]


def changed(path, **arrays):
    """Write the file again with other arrays; None leaves one out."""
    with np.load(path) as archive:
        found = {name: archive[name] for name in archive.files} | arrays
    np.savez(path, **{name: values for name, values in found.items() if values is not None})


def with_settings(path, change):
    with np.load(path) as archive:
        settings = json.loads(archive["verifier"].item())
    change(settings)
    changed(path, verifier=np.array(json.dumps(settings).encode()))


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "v.npz"
    save_verifier(Verifier(scorers()["cosine"], cohort=COHORT, method="as", top_k=7, calibration=CALIBRATION), path)
    return path


@pytest.mark.parametrize("scorer", ["cosine", "dot", "plda", "transformed"])
@pytest.mark.parametrize("method", ["raw", "zt", "lgsm", "evidence"])
def test_a_round_trip_is_exact(tmp_path, scorer, method):
    options = {"model": trained(method)} if method in ("lgsm", "evidence") else {}
    cohort = None if method == "raw" else COHORT
    verifier = Verifier(scorers()[scorer], cohort=cohort, method=method, length_norm="before", **options)
    save_verifier(verifier, tmp_path / "v.npz")
    again = load_verifier(tmp_path / "v.npz")
    assert again.normalized(*PAIR) == verifier.normalized(*PAIR)
    assert (again.length_norm, again.cohort, repr(again)) == ("before", cohort, repr(verifier))


def test_options_calibration_and_cohort_come_back(path):
    again = load_verifier(path)
    assert dict(again.options) == {"top_k": 7}
    assert again.calibration == CALIBRATION
    assert read_embeddings(path) == COHORT  # for whoever wants to look


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda s: s.update(version=0),
            r"v.npz\[version\]: the file has version 0, but this evenscore reads version 1",
        ),
        (lambda s: s.update(format="x"), "expected 'evenscore-verifier'"),
        (lambda s: s.pop("norm"), r"\[norm\]: the key is missing"),
        (lambda s: s.update(more=1), "no such key"),
        (lambda s: s["scorer"].update(name="plad"), "no scorer 'plad'"),
        (lambda s: s["scorer"].update(mean=[1.0]), "mean has 1 components"),
        (lambda s: s["scorer"].update(mean=["a"]), r"scorer.mean\[0\]"),
        (lambda s: s["norm"].update(name="ass"), "no norm 'ass'"),
        (lambda s: s["norm"].update(name="lgsm"), "needs a model"),
        (lambda s: s["norm"].update(options={"top_k": -1}), "top_k is -1"),
        (lambda s: s["norm"].update(options={"topk": 1}), "topk"),
        (lambda s: s["norm"].update(options={"cohort": 1}), "cohort"),
        (lambda s: s.update(length_norm="late"), "length_norm"),
        (lambda s: s["calibration"].update(kind="x"), "no calibration 'x'"),
    ],
)
def test_odd_settings_are_refused(path, change, message):
    with_settings(path, change)
    with pytest.raises(FileError, match=message):
        load_verifier(path)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"embeddings": None}, "needs a cohort"),
        ({"embeddings": np.full((36, 6), np.nan)}, "not finite"),
        ({"embeddings": np.zeros((35, 6))}, "ids"),
        ({"verifier": None}, "holds no verifier"),
        ({"verifier": np.array(3)}, "expected one text"),
        ({"verifier": np.array(b"{")}, "not JSON"),
    ],
)
def test_odd_arrays_are_refused(path, arrays, message):
    changed(path, **arrays)
    with pytest.raises(FileError, match=message):
        load_verifier(path)


@examples(25)
@given(st.data())
def test_a_damaged_file_is_read_or_refused(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("damaged") / "v.npz"
    save_verifier(Verifier(), path)
    path.write_bytes(data.draw(cuts_and_flips(path.read_bytes())))
    must_parse_or_refuse(load_verifier, path)


def test_what_has_no_file_is_refused_and_nothing_is_written(tmp_path):
    class Own:
        def score(self, enroll, test):
            return scorers()["dot"].score(enroll, test)

    with pytest.raises(InputError, match="of the kind Own cannot be kept"):
        save_verifier(Verifier(Own()), tmp_path / "v.npz")
    assert list(tmp_path.iterdir()) == []
