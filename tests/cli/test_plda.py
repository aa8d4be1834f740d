"""``evenscore plda``: the PLDA of the library, in a file."""

import json

import numpy as np
import pytest

from evenscore import Embeddings, FileError, fit_plda, write
from evenscore.files.models import load_plda, save_plda

SPEAKERS = [f"s{n % 20}" for n in range(100)]
rng = np.random.default_rng(0)
VECTORS = 2 * rng.normal(size=(20, 4))[[n % 20 for n in range(100)]] + rng.normal(size=(100, 4))
TRAIN = Embeddings(range(100), VECTORS, SPEAKERS)


def same(ours, theirs):
    names = ("mean", "between", "within")
    return all(np.array_equal(getattr(ours, name), getattr(theirs, name)) for name in names)


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        ((), {}),
        (("--lda-dim", 2, "--no-length-norm"), {"lda_dim": 2, "length_normalize": False}),
        (("--whiten", "--no-center", "--training", "moments"), {"whiten": True, "center": False, "method": "moments"}),
        (("--shrinkage", 0.25), {"shrinkage": 0.25}),
    ],
)
def test_training(cli, tmp_path, arguments, options):
    write(TRAIN, tmp_path / "x.npz")
    result = cli("plda", "x.npz", "-o", "plda.json", *arguments)
    assert result.exit_code == 0, result.stderr
    expected = fit_plda(TRAIN, **options)
    assert f"dimension {len(expected.model.mean)}, converged" in result.stdout
    found = load_plda(tmp_path / "plda.json")
    assert same(found, expected.model)
    assert np.array_equal(found.score(TRAIN, TRAIN).block(), expected.model.score(TRAIN, TRAIN).block())


def test_what_did_not_converge_says_so(cli, tmp_path):
    few = np.arange(100) % 20 < 6
    write(
        Embeddings(TRAIN.ids[few], np.hstack([VECTORS, rng.normal(size=(100, 8))])[few], TRAIN.speakers[few]),
        tmp_path / "x.npz",
    )
    told = cli("plda", "x.npz", "-o", "plda.json", "--shrinkage", 0).stdout
    assert "not converged after 200 iterations" in told
    assert "! the last iterations still gained" in told
    assert "!" not in cli("plda", "x.npz", "-o", "plda.json").stdout
    refused = cli("plda", "x.npz", "-o", "other.json", "--shrinkage", "much")
    assert (refused.exit_code, "--shrinkage is 'much'" in refused.stderr) == (2, True)


def test_speakers_from_a_map(cli, tmp_path):
    write(Embeddings(TRAIN.ids, VECTORS), tmp_path / "x.npz")
    write(dict(zip(TRAIN.ids, SPEAKERS, strict=True)), tmp_path / "utt2spk", format="utt2spk")
    result = cli("plda", "x.npz", "--speakers", "utt2spk", "-o", "-")
    assert json.loads(result.stdout)["mean"] == fit_plda(TRAIN).model.mean.tolist()
    refused = cli("plda", "x.npz", "-o", "plda.json")
    assert refused.exit_code == 2
    assert "no speakers" in refused.stderr
    assert not (tmp_path / "plda.json").exists()


def test_damaged_models_are_refused(tmp_path):
    path = tmp_path / "plda.json"
    model = fit_plda(TRAIN).model
    save_plda(model, path)
    assert same(load_plda(path), model)
    values = json.loads(path.read_text())
    for change in ({"version": 2}, {"format": "x"}, {"mean": []}, {"within": [[1.0]]}, {"between": None}):
        path.write_text(json.dumps(values | change))
        with pytest.raises(FileError, match="plda"):
            load_plda(path)
    path.write_text("[" * 100_000)
    with pytest.raises(FileError, match="nested too deeply"):
        load_plda(path)
