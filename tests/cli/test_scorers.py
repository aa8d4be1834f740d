"""--scorer: centres from vectors, transforms, Kaldi's PLDA, adapted ones, and training trials by folds."""

import json

import numpy as np
import pytest

from evenscore import Cosine, Embeddings, fit_plda, read_scores, write
from evenscore.files.kaldi_objects import write_kaldi_plda
from evenscore.files.models import load_plda
from evenscore.plda import adapt_plda
from evenscore.scoring import Transformed, enroll_models, fit_transform, score_by_folds

SPEAKERS = [f"s{n % 12}" for n in range(60)]
RNG = np.random.default_rng(0)
VECTORS = 2 * RNG.normal(size=(12, 4))[[n % 12 for n in range(60)]] + RNG.normal(size=(60, 4)) + 1
TRAIN = Embeddings([f"u{n}" for n in range(60)], VECTORS, SPEAKERS)
NEW = Embeddings([f"n{n}" for n in range(6)], RNG.normal(size=(6, 4)) + 1)
SIDES = ("--enroll-embeddings", "new.npz", "--test-embeddings", "x.npz")


@pytest.fixture(autouse=True)
def files(tmp_path):
    write(TRAIN, tmp_path / "x.npz")
    write(NEW, tmp_path / "new.npz")


def scored(cli, tmp_path, scorer, *more):
    result = cli("score", *SIDES, "--scorer", scorer, "-o", "out.npz", *more)
    assert result.exit_code == 0, result.stderr
    return read_scores(tmp_path / "out.npz").scores


def test_a_centre_from_a_vector(cli, tmp_path):
    mean = VECTORS.mean(axis=0)
    np.save(tmp_path / "mean.npy", mean)
    (tmp_path / "mean.vec").write_text(f" [ {' '.join(map(repr, mean.tolist()))} ]\n")
    expected = Cosine(mean).score(NEW, TRAIN).block()
    for name in ("mean.npy", "mean.vec", "x.npz"):
        np.testing.assert_allclose(scored(cli, tmp_path, f"cosine:center={name}"), expected, atol=1e-12)
    np.save(tmp_path / "mean.npy", np.ones(3))
    refused = cli("score", *SIDES, "--scorer", "cosine:center=mean.npy", "-o", "other.npz")
    assert (refused.exit_code, "mean has 3 components" in refused.stderr) == (2, True)


def test_a_transform(cli, tmp_path):
    result = cli("transform", "x.npz", "--steps", "center, wccn", "-o", "t.json")
    assert result.exit_code == 0, result.stderr
    fit = fit_transform(TRAIN, ["center", "wccn"])
    assert f"from 4 to 4 dimensions, shrinkage {fit.shrinkage:g}" in result.stdout
    expected = Transformed(fit.transform).score(NEW, TRAIN).block()
    np.testing.assert_allclose(scored(cli, tmp_path, "cosine:transform=t.json"), expected)
    moved = Transformed(fit.transform.recentered(NEW.vectors.mean(axis=0))).score(NEW, TRAIN).block()
    np.testing.assert_allclose(scored(cli, tmp_path, "cosine:center=new.npz:transform=t.json"), moved)
    values = json.loads((tmp_path / "t.json").read_text())
    for change in (
        {"steps": []},
        {"steps": [{}]},
        {"steps": [values["steps"][0], values["steps"][1] | {"center": [0]}]},
    ):
        (tmp_path / "bad.json").write_text(json.dumps(values | change))
        refused = cli("score", *SIDES, "--scorer", "cosine:transform=bad.json", "-o", "other.npz")
        assert (refused.exit_code, "bad.json[steps" in refused.stderr) == (2, True)


def test_kaldis_plda_and_an_adapted_one(cli, tmp_path):
    plda = fit_plda(TRAIN, length_normalize=False, center=False, shrinkage=0.1).model
    write_kaldi_plda(plda, tmp_path / "plda")
    expected = load_plda(tmp_path / "plda").score(NEW, TRAIN).block()
    np.testing.assert_array_equal(scored(cli, tmp_path, "plda:model=plda"), expected)
    assert cli("plda", "x.npz", "-o", "p.json").exit_code == 0
    fit = fit_plda(TRAIN)
    for name, how in (("kaldi:within=0.5", {"within": 0.5}), ("coral+", {"method": "coral+"})):
        result = cli("plda", "new.npz", "--adapt", "p.json", "--adaptation", name, "-o", "a.json")
        assert "adapted to 6 embeddings" in result.stdout, result.stderr
        adapted = adapt_plda(fit.model, NEW, **how, inflation=fit.inflation)
        np.testing.assert_allclose(load_plda(tmp_path / "a.json").within, adapted.within)
    refused = cli("plda", "new.npz", "--adapt", "p.json", "--adaptation", "kaldi:much=1", "-o", "b.json")
    assert (refused.exit_code, "has no option 'much'" in refused.stderr) == (2, True)
    assert not (tmp_path / "b.json").exists()


def test_enrolments_of_several_utterances_are_posteriors(cli, tmp_path):
    assert cli("plda", "x.npz", "-o", "p.json").exit_code == 0
    (tmp_path / "spk2utt").write_text("m1 n0 n1 n2\nm2 n3\n")
    plda = load_plda(tmp_path / "p.json")
    enroll = enroll_models(plda, NEW, {"m1": ["n0", "n1", "n2"], "m2": ["n3"]})
    found = scored(cli, tmp_path, "plda:model=p.json", "--enroll-map", "spk2utt")
    np.testing.assert_allclose(found, plda.score(enroll, TRAIN).block())


@pytest.mark.parametrize("command", ["plda", "transform"])
def test_training_trials_by_folds(cli, tmp_path, monkeypatch, command):
    from evenscore.cli import scorers

    assert cli(command, "x.npz", "-o", "m.json").exit_code == 0
    text = "plda:model=m.json" if command == "plda" else "cosine:transform=m.json"
    monkeypatch.chdir(tmp_path)
    chosen = scorers.training_scorer_of(f"{text}:train=x.npz:folds=3", TRAIN)
    if command == "plda":
        fit = fit_plda(TRAIN)
        how = {"shrinkage": fit.shrinkage, "inflation": fit.inflation}
        expected = score_by_folds(lambda part: fit_plda(part, **how).model, TRAIN, folds=3)
    else:
        share = fit_transform(TRAIN).shrinkage
        expected = score_by_folds(
            lambda part: Transformed(fit_transform(part, shrinkage=share).transform), TRAIN, folds=3
        )
    off = ~np.eye(60, dtype=bool)
    np.testing.assert_allclose(chosen.score(TRAIN, TRAIN).block()[off], expected.scores[off])
    others = scorers.training_scorer_of(f"{text}:train=x.npz", NEW)  # whom it never met
    assert type(others) is type(scorers.scorer_of(text))
    sides = ("--enroll-embeddings", "x.npz", "--test-embeddings", "x.npz", "--norm", "lgsm:dim=0:residuals=gaussian")
    fitted = cli("fit", *sides, "--scorer", f"{text}:train=x.npz", "-o", "model.json")
    assert fitted.exit_code == 0, fitted.stderr
    assert "it is not known whose embeddings" not in fitted.stdout
    fitted = cli("fit", *sides, "--scorer", text, "-o", "model.json")
    assert "it is not known whose embeddings" in fitted.stdout


@pytest.mark.parametrize(
    ("scorer", "problem"),
    [
        ("plda", "needs a trained PLDA"),
        ("plda:model=p.json:leave_out=none", "has no option leave_out"),
        ("cosine:train=x.npz", "nothing is trained"),
        ("cosine:transform=t.json:folds=3", "folds are for train=FILE"),
        ("cosine:transform=t.json:center=x.npz:leave_out=none", "nothing to leave out"),
        ("cosine:transform=t.json:train=x.npz:folds=some", "folds is 'some'"),
        ("plda:model=kaldi:train=x.npz", "does not tell how it was trained"),
        ("plda:model=odd.json:train=x.npz", "has no option 'much'"),
        ("cosine:center=mean.npy:leave_out=speakers", "mean.npy"),
    ],
)
def test_what_cannot_be_meant_is_refused(cli, tmp_path, scorer, problem):
    fit = fit_plda(TRAIN, length_normalize=False, center=False, shrinkage=0.5)
    write_kaldi_plda(fit.model, tmp_path / "kaldi")
    np.save(tmp_path / "mean.npy", np.ones(4))
    assert cli("transform", "x.npz", "--shrinkage", 0.5, "-o", "t.json").exit_code == 0
    assert cli("plda", "x.npz", "--shrinkage", 0.5, "-o", "p.json").exit_code == 0
    values = json.loads((tmp_path / "p.json").read_text())
    (tmp_path / "odd.json").write_text(json.dumps(values | {"info": {"recipe": {"much": 1}}}))
    sides = ("--enroll-embeddings", "x.npz", "--test-embeddings", "x.npz")
    refused = cli("fit", *sides, "--scorer", scorer, "-o", "model.json")
    assert refused.exit_code == 2, refused.stdout
    assert problem in " ".join(refused.stderr.split())
    assert not (tmp_path / "model.json").exists()
