"""A norm is one module and one entry: registered once, it works wherever the others do."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from evenscore import (
    Embeddings,
    FittedNorm,
    LabelledBlocks,
    Labels,
    ScoreBlocks,
    compare,
    normalize,
    read_scores,
    register_norm,
    write,
)
from evenscore.files.models import load_trained, save_trained
from evenscore.norms.normalize import normalize_with
from evenscore.norms.parts import ByParts
from evenscore.norms.registry import METHODS
from evenscore.scoring import score_embeddings, score_lazily
from in_process import run_command
from scale.chunked_examples import ids, matrix

E, T, C = ids("e", 23), ids("t", 31), ids("c", 17)


@dataclass(frozen=True)
class Share:
    """What the toy norm learns: how much of a side's mean is subtracted."""

    share: float = 0.5

    def to_dict(self):
        return {"share": self.share}

    @classmethod
    def from_dict(cls, values):
        return cls(float(values["share"]))


@dataclass(frozen=True)
class CentreParts:
    """The toy norm by parts: the number of an element is the mean of its cohort scores."""

    share: float
    width: ClassVar[int] = 1
    sides_alike: ClassVar[bool] = True

    def enroll_part(self, scores, rows):
        return np.nanmean(scores, axis=1, keepdims=True) if scores.shape[1] else np.zeros((len(scores), 1))

    def test_part(self, scores, columns):
        return self.enroll_part(scores.T, columns)

    def apply(self, trials, enroll, test):
        tile = trials.read(*trials.places())
        row, column = tile.pair(enroll[:, 0], test[:, 0])
        return trials.with_scores((trials.scores - self.share * (row + column)).astype(trials.dtype))


@dataclass(frozen=True)
class Centre:
    """The toy norm: subtract a share of the mean cohort scores of both sides."""

    model: Share

    def normalize(self, blocks):
        parts = self.parts(blocks, None)
        sides = parts.enroll_part(blocks.enroll.scores, None), parts.test_part(blocks.test.scores, None)
        return parts.apply(blocks.trials, *sides)

    def parts(self, blocks, how):
        return CentreParts(self.model.share)


def prepare(method, *, model=None, share=0.5):
    return Centre(model or Share(share))


def train(method, training, *, progress, client=None, share=0.5):
    norm = Centre(Share(share))
    scores = [normalize_with(norm, part.blocks, f"centre {share}", client=client) for part in training]
    return FittedNorm(method=method, normalizer=norm, training_scores=scores, model=norm.model)


@pytest.fixture(autouse=True)
def registered():
    register_norm("centre", prepare, train=train, record=Share)
    yield
    del METHODS["centre"]


@pytest.fixture(scope="module")
def blocks():
    rng = np.random.default_rng(0)
    shapes = {"trials": (E, T), "enroll": (E, C), "test": (C, T)}
    tables = {name: matrix(rng, *sides, 0.0, np.float32) for name, sides in shapes.items()}
    return ScoreBlocks(tables.pop("trials"), **tables)


def expected(blocks, share=0.5):
    means = blocks.enroll.scores.mean(axis=1)[:, None] + blocks.test.scores.mean(axis=0)
    return blocks.trials.scores - share * means


def tiled(blocks, nbytes, stored):
    tables = {name: getattr(blocks, name).in_tiles(nbytes, stored) for name in ("trials", "enroll", "test")}
    return blocks.replace(**tables)


@pytest.mark.parametrize(
    ("nbytes", "stored"), [(1e9, (99, 99)), (600.0, (5, 7)), (1.0, (1, 1))], ids=["one", "ragged", "single"]
)
def test_it_works_in_memory_and_in_tiles(blocks, nbytes, stored):
    np.testing.assert_allclose(normalize(blocks, "centre", share=0.3).scores, expected(blocks, 0.3), rtol=1e-5)
    found = normalize(tiled(blocks, nbytes, stored), "centre", share=0.3)
    assert isinstance(found.source.way, ByParts)
    np.testing.assert_allclose(found.in_memory().scores, expected(blocks, 0.3), rtol=1e-5, atol=1e-5)


def test_it_works_on_a_cluster(blocks, client):
    found = normalize(tiled(blocks, 600.0, (5, 7)), "centre", client=client)
    np.testing.assert_allclose(found.in_memory().scores, expected(blocks), rtol=1e-5, atol=1e-5)


def test_it_works_from_embeddings():
    rng = np.random.default_rng(1)
    enroll, test, cohort = (Embeddings(names, rng.normal(size=(len(names), 6))) for names in (E, T, C))
    here = score_embeddings(enroll, test, cohort=cohort, method="centre")
    there = score_lazily(enroll, test, cohort=cohort, method="centre").in_memory()
    np.testing.assert_allclose(there.scores, here.scores, rtol=1e-10)


def side(rng, prefix):
    names = [f"{prefix}{place}" for place in range(24)]
    speakers = [f"{prefix}{place % 8}" for place in range(24)]
    scores = matrix(rng, [f"{name}-e" for name in names], [f"{name}-t" for name in names])
    labels = Labels.from_speakers(speakers, speakers)
    scores = scores.with_scores(scores.scores + 3.0 * labels.matrix)
    return LabelledBlocks.own_cohort(scores, labels)


def test_it_is_compared_and_leaves_a_model(tmp_path):
    rng = np.random.default_rng(2)
    comparison = compare(
        side(rng, "a"), side(rng, "b"), ["centre:share=0.25", "s"], bootstrap=20, directory=tmp_path / "out"
    )
    [method] = [method for method in comparison.methods if method.name == "centre:share=0.25"]
    assert method.model == Share(0.25)
    [file] = [path for path in (tmp_path / "out").rglob("*.json") if "evenscore-norm-centre" in path.read_text()]
    assert load_trained(file) == Share(0.25)


def test_it_is_a_command_with_a_model_file(blocks, tmp_path):
    files = {}
    for name in ("trials", "enroll", "test"):
        files[name] = tmp_path / f"{name}.npz"
        write(getattr(blocks, name), files[name])
    save_trained(Share(0.2), tmp_path / "model.json")
    arguments = ["normalize", "--method", "centre", "--model", str(tmp_path / "model.json")]
    for name, file in files.items():
        arguments += [f"--{name}", str(file)]
    result = run_command(*arguments, "-o", tmp_path / "out.npz")
    assert result.exit_code == 0, result.output
    np.testing.assert_allclose(read_scores(tmp_path / "out.npz").scores, expected(blocks, 0.2), rtol=1e-5, atol=1e-5)
