"""``evenscore model show``: the variance table and its meaning."""

import json

import numpy as np
import pytest

from evenscore import LabelledBlocks, ScoreModel, fit_evidence, save_model, simulate
from evenscore.files import save_evidence

MODEL = ScoreModel(mu=[-1.0, 3.0], alpha=[[0.6, 0.0], [0.8, 0.6]], beta=[[0.8, 0.0], [0.0, 1.5]], sigma2=[1.0, 2.0])


@pytest.fixture
def model_file(tmp_path):
    save_model(MODEL, tmp_path / "m.json", info={"converged": True, "n_target": 12, "scores": ["a", "b"]})
    return "m.json"


def row(text, name):
    [line] = [line for line in text.splitlines() if line.strip().startswith(name)]
    return line.strip().removeprefix(name).split()


def test_the_table(cli, model_file):
    result = cli("model", "show", model_file)
    assert result.exit_code == 0
    assert row(result.stdout, "mean score (mu)") == ["-1.0000", "3.0000"]
    assert row(result.stdout, "variance ") == ["2.0000", "5.2500"]
    assert row(result.stdout, "unexplained (sigma^2)") == ["1.0000", "2.0000"]
    assert row(result.stdout, "hidden variables (nu)") == ["1.0000", "3.2500"]
    assert row(result.stdout, "of the enrolment") == ["0.36000", "1.0000"]
    assert row(result.stdout, "of the test") == ["0.64000", "2.2500"]
    assert row(result.stdout, "share of nu") == ["50.0", "%", "61.9", "%"]
    assert "non-target scores by about 1 and target scores by about 1.8" in result.stdout
    assert "(enrolment 0.80, test 0.00)" in result.stdout
    assert "up to 50 % of the variance of non-target scores and 12 % of that of target scores" in result.stdout
    assert row(result.stdout, "converged") == ["yes"]
    assert row(result.stdout, "scores") == ["a,", "b"]
    assert "effects" not in result.stdout.partition("Who")[0]


def test_the_floor_of_the_llr_and_who_is_beyond_it(cli, model_file):
    text = cli("model", "show", model_file).stdout.replace("\n", " ")
    alone, known = MODEL.llr_shape(), MODEL.llr_shape(large_cohort=True)
    assert f"a floor of {alone.floor:.4g}, at the score {alone.vertex:.4g} (its vertex); below it, a lower" in text
    assert f"With a very large cohort it has a floor of {known.floor:.4g} in an average trial" in text
    assert f"{100 * alone.beyond[0]:.1f} % of the non-targets and {100 * alone.beyond[1]:.1f} % of the targets" in text
    assert f"{100 * known.beyond[0]:.1f} % of the non-targets" in text
    found = json.loads(cli("model", "show", model_file, "--json").stdout)["llr"]
    assert found["without_cohort"]["floor"] == alone.floor
    assert found["without_cohort"]["ceiling"] is None
    assert found["with_large_cohort"]["vertex"] == known.vertex
    assert found["with_large_cohort"]["expected_beyond"]["target"] == known.beyond[1]


@pytest.mark.parametrize(
    ("mu", "sigma2", "said"),
    [
        ([0, 2], [1, 3], "a floor of -1.549, at the score -1 (its vertex); below it, a lower score gets a higher LLR"),
        ([0, 2], [3, 1], "a ceiling of 1.549, at the score 3 (its vertex); above it, a higher score gets a lower LLR"),
        ([2, 0], [1, 3], "a floor of -1.549, at the score 3 (its vertex); above it, a higher score gets a higher LLR"),
        ([2, 0], [3, 1], "a ceiling of 1.549, at the score -1 (its vertex); below it, a lower score gets a lower LLR"),
    ],
)
def test_floors_and_ceilings_of_scores_and_of_distances(cli, tmp_path, mu, sigma2, said):
    save_model(ScoreModel(mu=mu, alpha=[[], []], beta=[[], []], sigma2=sigma2), tmp_path / "g.json")
    text = cli("model", "show", "g.json").stdout.replace("\n", " ")
    assert f"The LLR has {said}." in text
    assert "cohort it has" not in text


def test_verbose_adds_the_covariances(cli, model_file):
    text = cli("model", "show", model_file, "--verbose").stdout
    assert text.count("effects   ") == 2
    assert ["0.36", "0.48"] in [line.split()[1:] for line in text.splitlines() if line.strip()]


def test_json_has_everything(cli, model_file):
    found = json.loads(cli("model", "show", model_file, "--json").stdout)
    assert found["dim"] == 2
    assert found["alpha"] == MODEL.alpha.tolist()
    assert found["variances"]["target"]["nu_test"] == 2.25
    assert found["effects"]["enroll"]["correlation"] == pytest.approx(0.8)
    assert found["effects"]["enroll"]["covariance"][0] == pytest.approx([0.36, 0.48])
    left = 2.0 + 1.0 * (1 - 0.8**2) + 2.25
    assert found["variances"]["target"]["variance_with_large_cohort"] == pytest.approx(left)
    assert found["info"]["n_target"] == 12


def test_a_large_cohort_leaves_the_variance_that_is_shown(cli, model_file):
    """The sentence about large cohorts, against the normalizer itself."""
    from evenscore import ScoreMatrix, ScoreModelNormalizer

    found = json.loads(cli("model", "show", model_file, "--json").stdout)
    size = 500
    ids = [f"c{i}" for i in range(size)]
    normalizer = ScoreModelNormalizer(MODEL, ScoreMatrix(np.zeros((size, size)), ids, ids))
    shown = [found["variances"][name]["variance_with_large_cohort"] for name in ("nontarget", "target")]
    assert normalizer.weights().variance == pytest.approx(shown, rel=8e-3)


def test_models_without_hidden_variables_or_effects(cli, tmp_path):
    save_model(ScoreModel(mu=[0, 1], alpha=[[], []], beta=[[], []], sigma2=[1, 1]), tmp_path / "flat.json")
    flat = cli("model", "show", "flat.json", "--verbose").stdout
    assert "it calibrates scores" in flat
    assert "straight line" in flat
    assert "unexplained" not in flat  # there is nothing to be explained
    assert "effects" not in flat
    zero = ScoreModel(mu=[0, 1], alpha=[[0.0], [0.0]], beta=[[0.0], [0.0]], sigma2=[1, 1e-9])
    save_model(zero, tmp_path / "zero.json")
    result = cli("model", "show", "zero.json")
    assert "(enrolment none, test none)" in result.stdout
    assert row(result.stdout, "unexplained (sigma^2)") == ["1.0000", "1.0000e-09"]
    assert json.loads(cli("model", "show", "zero.json", "--json").stdout)["effects"]["test"]["correlation"] is None


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (('"version": 1', '"version": 9'), "m.json[version]: the file has version 9"),
        (('"sigma2": [1.0', '"sigma2": [-1.0'), "m.json[sigma2[0]]: a variance must be positive"),
        (("{", "["), "m.json:"),
    ],
)
def test_refusals(cli, tmp_path, model_file, change, reason):
    path = tmp_path / model_file
    path.write_text(path.read_text().replace(*change, 1))
    result = cli("model", "show", model_file)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert reason in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_cohort_evidence_model_is_shown_by_its_features(cli, tmp_path):
    speakers = [f"s{n % 12}" for n in range(24)]
    dev = LabelledBlocks.own_cohort(*simulate(MODEL, speakers[:12], speakers, seed=1))
    evidence = fit_evidence([dev])
    save_evidence(evidence, tmp_path / "e.json", info={"scores": "dev.npz"})
    result = cli("model", "show", "e.json")
    assert result.exit_code == 0, result.stderr
    for name in evidence.heads["full"].weight:
        assert name in result.stdout
    assert row(result.stdout, "scores ") == ["dev.npz"]
    assert "sigma^2" not in result.stdout
    assert "sigma^2" in cli("model", "show", "e.json", "--verbose").stdout
    facts = json.loads(cli("model", "show", "e.json", "--json").stdout)
    assert facts["weights"] == pytest.approx(dict(evidence.heads["full"].weight))
    assert (facts["file"], facts["info"], facts["speakers"]) == ("e.json", {"scores": "dev.npz"}, 12)
    assert facts["trials"] == {"nontarget": 264, "target": 24}
