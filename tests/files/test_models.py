"""Model files: those of the first edition are read, and every model is read as it was written."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from evenscore.calibrate import LogisticCalibration, PavCalibration
from evenscore.data import Embeddings
from evenscore.errors import FileError, InputError
from evenscore.evidence.features import ScalePrior
from evenscore.evidence.fit import EvidenceModel
from evenscore.evidence.head import Head
from evenscore.files import read_model, write_model
from evenscore.model import ScoreModel
from evenscore.model.densities import ResidualDensities
from evenscore.norms.registry import METHODS, register_norm
from evenscore.scoring.plda import PLDA
from evenscore.scoring.projection import Projection
from evenscore.scoring.scorers import DotScorer
from evenscore.scoring.verifier import Verifier

OLD = Path(__file__).resolve().parents[1] / "acceptance" / "models"
PARAMETERS = {"mu": [0.1, 1 / 3], "alpha": [[0.7], [0.5]], "beta": [[0.5], [1e-17]], "sigma2": [1.0, 1.5]}
RESIDUALS = {"location": [0.0, 0.1], "scale": [1.0, 1.1], "skew": [0.0, -0.1], "tail": [1.0, 1.2]}
MODELS = [
    ScoreModel(**PARAMETERS),
    ScoreModel(**PARAMETERS, residuals=ResidualDensities(**RESIDUALS)),
    ScoreModel(mu=[0.0, 1.0], alpha=np.zeros((2, 0)), beta=np.zeros((2, 0)), sigma2=[1.0, 1.0]),
    LogisticCalibration(weights=[1 / 3], quality_weights=[], offset=-1.0),
    PavCalibration(llr=[-np.inf, 0.5, np.inf], edges=[0.0, 1.0]),
    PLDA(np.zeros(1), np.eye(1), np.eye(1), Projection(np.ones(2), np.full((2, 1), 1 / 3), length_normalize=True)),
    DotScorer(Projection(np.array([0.5, 1 / 7]))),
    EvidenceModel(
        Head(("raw", "s"), np.zeros(2), np.ones(2), 1 / 3, np.ones(5)),
        {"enroll": ScalePrior(0.5, 1 / 3)},
        ScoreModel(**PARAMETERS),
    ),
]


def text(model):
    """Return all that is in a model."""
    with np.printoptions(precision=17, threshold=10**6):
        return repr(model)


RECORDS = sorted((Path(__file__).parent / "golden" / "records").glob("*.json"))


@pytest.mark.parametrize("path", [*sorted(OLD.glob("*")), *RECORDS], ids=lambda path: path.name)
def test_a_model_of_the_first_edition_is_read_and_written(tmp_path, path):
    name, model = path.name, read_model(path)
    write_model(model, tmp_path / name, {"n_target": np.int64(3)})
    assert text(read_model(tmp_path / name, type(model))) == text(model)
    if name.startswith(("lgsm", "logistic")):
        kept = json.loads((tmp_path / name).read_text())
        assert kept.pop("info") == {"n_target": 3}
        kept.get("residuals", {}).pop("format", None)
        assert kept.items() <= json.loads(path.read_text()).items()


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_a_model_is_read_as_it_was_written(tmp_path, model):
    write_model(model, tmp_path / "m.json")
    assert text(read_model(tmp_path / "m.json", type(model))) == text(model)
    with pytest.raises(FileError, match=r"m\.json"):
        read_model(tmp_path / "m.json", Verifier)


@dataclass(frozen=True)
class Shift:
    """The model of a norm of one's own."""

    amount: float
    per_member: np.ndarray
    options: dict


def test_the_model_of_a_norm_of_ones_own_is_read_once_it_is_registered(tmp_path):
    path, model = tmp_path / "m.json", Shift(0.25, np.array([1.0, 1 / 3]), {"kind": "mean"})
    with pytest.raises(InputError, match="Shift"):
        write_model(model, path)
    register_norm("shift", lambda blocks, model: blocks.trials, fit=lambda training: model, model=Shift)
    try:
        write_model(model, path)
        assert text(read_model(path, Shift)) == text(model)
        for amount, members in ((None, np.ones(2)), (0.5, [1.0, None]), (float("nan"), np.ones(2))):
            with pytest.raises(InputError, match="Shift could not be read again"):
                write_model(Shift(amount, members, {}), path)
        assert text(read_model(path, Shift)) == text(model)
    finally:
        del METHODS["shift"]
    with pytest.raises(FileError, match="norm:shift"):
        read_model(path)


def test_a_verifier_gives_the_same_llrs(tmp_path):
    rng = np.random.default_rng(0)
    cohort = Embeddings([f"c{n}" for n in range(30)], rng.normal(size=(30, 4)))
    options = {"cohort": cohort, "method": "as", "top_k": 7, "calibration": MODELS[3]}
    for scorer in ("cosine", DotScorer(Projection(np.ones(4)))):
        verifier = Verifier(scorer, **options)
        write_model(verifier, tmp_path / "v.npz")
        e, t = rng.normal(size=(2, 4))
        found = read_model(tmp_path / "v.npz")
        assert found.llr(found.enroll(e), t) == verifier.llr(verifier.enroll(e), t)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"format": "evenscore-nothing"}, "format"),
        ({"format": ["x"]}, ""),
        ({"version": 2}, "version"),
        ({"mu": None}, "mu"),
        ({"mu": [0.0, float("nan")]}, "NaN"),
        ({"mu": [0.0, 1e999]}, ""),
        ({"alpha": [[1.0], [1.0, 2.0]]}, ""),
        ({"sigma2": [1.0, -1.0]}, "sigma2"),
        ({"sigma2": "text"}, ""),
        ({"nu": 1.0}, "nu"),
        ({"residuals": {"scale": 1}}, "location"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_name(tmp_path, change, named):
    record = {"format": "evenscore-score-model", "version": 1, **PARAMETERS, **change}
    (tmp_path / "m.json").write_text(json.dumps({name: value for name, value in record.items() if value is not None}))
    with pytest.raises(FileError, match=rf"m\.json.*{named}"):
        read_model(tmp_path / "m.json")


def test_other_files_and_objects_are_refused(tmp_path):
    for number, data in enumerate((b"", b"[]", b"[" * 100_000, b"PK\3\4", b"\0B<Plda> DV ", b'"text"', b"\xff{}")):
        (tmp_path / f"{number}.json").write_bytes(data)
        with pytest.raises(FileError):
            read_model(tmp_path / f"{number}.json")
    with pytest.raises(InputError):
        write_model({"mu": 1}, tmp_path / "m.json")
    assert not (tmp_path / "m.json").exists()
