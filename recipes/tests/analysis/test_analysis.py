"""The analysis on simulated scores, against slow and obvious twins."""

import json
from dataclasses import replace

import numpy as np
import pytest

from evenscore import (
    InputError,
    LabelledBlocks,
    LogisticCalibration,
    ScoreBlocks,
    ScoreMatrix,
    ScoreModel,
    TrialList,
    cllr,
    eer,
    fit_score_model,
    simulate_blocks,
)
from evenscore.files import ScoreSet
from recipes.analysis.cohorts import BLOCKS, among_others, draw_orders, run_blocks, run_sizes, sizes_of, with_cohort
from recipes.analysis.effects import agreement, side_effects, variance_rows
from recipes.analysis.phrases import run_phrases
from recipes.analysis.residuals import likelihood_rows, residual_rows, residuals_of
from recipes.analysis.run import run_analysis
from recipes.analysis.systems import MODELS, PENALTY, SYSTEMS, check_apart
from recipes.analysis.tables import analysis_tables
from recipes.paper.systems import train_systems
from reference.dense_score_model import dense_log_likelihood, dense_posterior

MODEL = ScoreModel(mu=[-3.0, 3.0], alpha=[[1.8, 0.0], [1.4, 1.0]], beta=[[1.6, 0.0], [1.2, 0.9]], sigma2=[6.0, 7.0])
DEV = [f"d{n}" for n in range(8)]
EVAL = [f"e{n}" for n in range(5)]
GENDER = {name: "f" if int(name[1:]) % 2 else "m" for name in DEV + EVAL}


def phrase(name, seed):
    """Return the matrices of one phrase, and the speakers of its ids."""
    sides = {"enroll": EVAL, "test": EVAL * 3, "cohort_enroll": DEV, "cohort_test": DEV * 2}
    made, _ = simulate_blocks(MODEL, *sides.values(), seed=seed)
    ids = {side: [f"{name}-{side}-{n}" for n in range(len(who))] for side, who in sides.items()}
    matrices = {
        "development": ScoreMatrix(made.cohort.scores, ids["cohort_enroll"], ids["cohort_test"]),
        "trials": ScoreMatrix(made.trials.scores, ids["enroll"], ids["test"]),
        "enroll": ScoreMatrix(made.enroll.scores, ids["enroll"], ids["cohort_test"]),
        "test": ScoreMatrix(made.test.scores, ids["cohort_enroll"], ids["test"]),
    }
    speakers = {side: dict(zip(ids[side], who, strict=True)) for side, who in sides.items()}
    return matrices, speakers


@pytest.fixture(scope="module")
def scores():
    phrases, speakers = [], {"enroll": {}, "test": {}}
    for seed, name in enumerate(("one", "two", "three")):
        matrices, known = phrase(name, seed)
        phrases.append((name, matrices))
        for side in speakers:
            speakers[side] |= known[side] | known[f"cohort_{side}"]
    return ScoreSet.from_matrices(phrases, speakers, GENDER)


@pytest.fixture(scope="module")
def trained(scores):
    return train_systems(scores, systems=SYSTEMS, by_gender=False)[""]


@pytest.fixture(scope="module")
def sizes(scores, trained):
    orders = draw_orders(scores, 2, seed=3)
    return orders, run_sizes(scores, trained, sizes=[2, 4, 8], orders=orders)


def pooled(fitted, parts):
    return TrialList.concat([part.labelled(fitted.normalizer.normalize(part.blocks)) for part in parts])


def by_hand(part, kept):
    """Return the evaluation blocks with only some cohort speakers, index by index."""
    old = part.blocks
    rows = [n for n, who in enumerate(old.cohort_enroll_speakers) if who in kept]
    columns = [n for n, who in enumerate(old.cohort_test_speakers) if who in kept]
    cohort_rows, cohort_columns = old.cohort_enroll_ids[rows], old.cohort_test_ids[columns]
    return ScoreBlocks(
        old.trials,
        enroll=ScoreMatrix(old.enroll.scores[:, columns], old.trials.enroll_ids, cohort_columns),
        test=ScoreMatrix(old.test.scores[rows], cohort_rows, old.trials.test_ids),
        cohort=ScoreMatrix(old.cohort.scores[np.ix_(rows, columns)], cohort_rows, cohort_columns),
        cohort_enroll_speakers=old.cohort_enroll_speakers[rows],
        cohort_test_speakers=old.cohort_test_speakers[columns],
    )


def test_a_smaller_cohort_has_these_speakers_only(scores):
    for part in scores.evaluation:
        assert with_cohort(part.blocks, ["d5", "d1"]) == by_hand(part, {"d1", "d5"})


def test_calibration_trials_and_their_cohort_share_no_speaker(scores):
    part = among_others(scores.development[1], ["d0", "d3", "d4"])
    blocks = part.blocks
    assert set(blocks.cohort_enroll_speakers) == set(blocks.cohort_test_speakers) == {"d0", "d3", "d4"}
    others = {"d1", "d2", "d5", "d6", "d7"}
    assert set(blocks.enroll_speakers) == set(blocks.test_speakers) == others
    whole = scores.development[1].blocks.trials
    assert blocks.trials == whole.select(blocks.trials.enroll_ids, blocks.trials.test_ids)
    assert blocks.enroll == whole.select(blocks.trials.enroll_ids, blocks.cohort_test_ids)
    assert blocks.test == whole.select(blocks.cohort_enroll_ids, blocks.trials.test_ids)
    assert part.labels.n_target == 5 * 2


def test_sizes_end_with_the_whole_cohort(scores):
    assert sizes_of(scores) == [2, 3, 5, 8]
    assert sizes_of(scores, [4, 2, 4]) == [2, 4, 8]


def test_orders_are_drawn_anew_and_the_same_for_the_same_seed(scores):
    one, two = draw_orders(scores, 4, seed=1), draw_orders(scores, 4, seed=1)
    assert one == two
    assert one != draw_orders(scores, 4, seed=2)
    [speakers] = one[0]
    assert all(sorted(order[speakers]) == list(speakers) == DEV for order in one)
    assert len({tuple(order[speakers]) for order in one}) == 4


def test_sizes_are_measured_with_systems_that_stay_as_they_are(scores, trained, sizes):
    orders, rows = sizes
    found = {(row["size"], row["system"]): row for row in rows}
    for name in ("raw", "S", "ZT", "LGSM 2D"):
        values = {"eer": [], "cllr_whole": [], "cllr_same": []}
        for order in orders:
            [speakers] = order
            kept = set(order[speakers][:4])
            fitted = trained[name].fitted
            parts = [LabelledBlocks(by_hand(part, kept), part.labels) for part in scores.evaluation]
            trials = pooled(fitted, parts)
            others = pooled(fitted, [among_others(part, kept) for part in scores.development])
            values["eer"].append(eer(trials))
            for key, calibration in (
                ("cllr_whole", trained[name].calibration),
                ("cllr_same", LogisticCalibration.fit(others, l2=PENALTY)),
            ):
                values[key].append(cllr(trials.with_scores(calibration(trials.scores))))
        for key, expected in values.items():
            assert found[4, name][key]["mean"] == pytest.approx(np.mean(expected), rel=1e-9)
            assert found[4, name][key]["std"] == pytest.approx(np.std(expected, ddof=1), rel=1e-6, abs=1e-12)


def test_the_whole_cohort_is_the_plain_system(scores, trained, sizes):
    rows = {row["system"]: row for row in sizes[1] if row["size"] == 8}
    assert rows.keys() == trained.keys()
    for name, system in trained.items():
        trials = pooled(system.fitted, scores.evaluation)
        assert rows[name]["eer"]["mean"] == pytest.approx(eer(trials))
        assert rows[name]["draws"] == 1
        assert rows[name]["cllr_same"] is None  # nobody is outside of it
        assert (rows[name]["cllr"] is not None) == name.startswith("LGSM")
    assert rows["LGSM 2D"]["cllr"]["mean"] == pytest.approx(cllr(pooled(trained["LGSM 2D"].fitted, scores.evaluation)))


def test_half_of_two_speakers_is_no_cohort_for_as_norm(sizes):
    assert {row["system"] for row in sizes[1] if row["size"] == 2} == {s.name for s in SYSTEMS} - {"AS"}


def test_blocks_are_left_out(scores, trained):
    rows = run_blocks(scores, trained, sizes=[3, 8], orders=draw_orders(scores, 2, seed=3))
    found = {(row["system"], row["blocks"], row["size"]): row for row in rows}
    assert len(found) == 2 * len(BLOCKS) * 2
    raw = TrialList.concat([part.trials for part in scores.evaluation])
    for model in ("LGSM 1D", "LGSM 2D"):
        own = pooled(trained[model].fitted, scores.evaluation)
        assert found[model, "S_e + S_t + S_I", 8]["cllr"]["mean"] == pytest.approx(cllr(own))
        table = trained[model].model.variances
        values, variance = raw.scores[:, None] - trained[model].model.mu, table.sigma2 + table.nu
        plain = np.diff(-0.5 * values**2 / variance - 0.5 * np.log(variance))[:, 0]  # a Gaussian for each class
        for size in (3, 8):
            assert found[model, "none", size]["cllr"]["mean"] == pytest.approx(cllr(raw.with_scores(plain)))
        assert found[model, "S_e", 8]["cllr"]["mean"] != found[model, "S_t", 8]["cllr"]["mean"]


def test_phrases_are_measured_one_by_one(scores, trained):
    rows = run_phrases(scores, trained)
    assert [row["phrase"] for row in rows] == ["one", "two", "three"]
    part = scores.evaluation[1]
    assert rows[1]["systems"]["raw"]["eer"] == pytest.approx(eer(part.trials))
    key = part.labels.matrix
    assert rows[1]["raw"]["evaluation"]["mean_tar"] == pytest.approx(part.blocks.trials.scores[key == 1].mean())
    assert rows[1]["raw"]["evaluation"]["std_non"] == pytest.approx(part.blocks.trials.scores[key == 0].std(ddof=1))


@pytest.mark.parametrize("side", ["enroll", "test"])
def test_effects_are_the_dense_posterior(scores, side):
    found = side_effects(MODEL, scores.evaluation, side)
    at = 0
    for number, part in enumerate(scores.evaluation):
        blocks, key = part.blocks, part.labels.matrix
        whole, labels = blocks.cohort.scores, blocks.cohort_labels.matrix
        given = blocks.enroll.scores if side == "enroll" else blocks.test.scores.T
        for n, own in enumerate(given):
            if side == "enroll":
                more = np.vstack([whole, own]), np.vstack([labels, np.zeros(own.size, dtype=int)])
                mean = dense_posterior(MODEL, *more)[2]
                x = mean[len(whole) * 2 : (len(whole) + 1) * 2]
                effect, scores_of, classes = MODEL.alpha @ x, blocks.trials.scores[n], key[n]
            else:
                more = np.column_stack([whole, own]), np.column_stack([labels, np.zeros(own.size, dtype=int)])
                effect = MODEL.beta @ dense_posterior(MODEL, *more)[2][-2:]
                scores_of, classes = blocks.trials.scores[:, n], key[:, n]
            assert np.allclose(found.predicted[:, at], effect)
            for label in (0, 1):
                expected = scores_of[classes == label].mean() - MODEL.mu[label]
                assert found.measured[label, at] == pytest.approx(expected)
            assert found.phrases[at] == number
            at += 1
    assert at == found.predicted.shape[1]


def test_agreement_within_phrases_takes_the_phrases_out(scores):
    found = side_effects(MODEL, scores.evaluation, "test")
    moved = replace(found, measured=found.measured + 10.0 * found.phrases, predicted=found.predicted + found.phrases)
    one, other = agreement(found, 0), agreement(moved, 0)
    assert one["correlation_within"] == pytest.approx(other["correlation_within"])
    assert other["correlation"] > one["correlation"] > 0.3
    nothing = replace(found, predicted=np.zeros_like(found.predicted))
    assert agreement(nothing, 0)["correlation"] == agreement(nothing, 0)["slope"] == 0.0


def test_residuals_have_the_dense_predictive_density(scores):
    found = residuals_of(MODEL, scores.evaluation[:1])
    part = scores.evaluation[0]
    blocks, labels = part.blocks, part.labels.matrix
    n, m = blocks.cohort.shape
    rng = np.random.default_rng(0)
    for place in rng.choice(labels.size, 12, replace=False):
        i, j = np.divmod(place, labels.shape[1])
        values, key = np.zeros((n + 1, m + 1)), np.zeros((n + 1, m + 1), dtype=int)
        values[:n, :m], values[n, :m], values[:n, m] = (
            blocks.cohort.scores,
            blocks.enroll.scores[i],
            blocks.test.scores[:, j],
        )
        values[n, m] = blocks.trials.scores[i, j]
        key[:n, :m], key[n, m] = blocks.cohort_labels.matrix, labels[i, j]
        with_trial = dense_log_likelihood(MODEL, values, key)
        key[n, m] = -1
        expected = with_trial - dense_log_likelihood(MODEL, values, key)
        assert found.log_density[place] == pytest.approx(expected)
        assert found.labels[place] == labels[i, j]


def test_residuals_of_the_right_model_are_standard(scores):
    rows = {row["class"]: row for row in residual_rows({"LGSM 2D": residuals_of(MODEL, scores.evaluation)})}
    assert rows["non-target"]["n"] == 3 * 60
    assert rows["non-target"]["std"] == pytest.approx(1.0, abs=0.15)
    assert abs(rows["non-target"]["mean"]) < 0.3
    assert rows["target"]["n"] == 3 * 15


def test_likelihoods_are_those_of_left_out_scores(scores, trained):
    models = {name: trained[name].model for name in MODELS.values()}
    residuals = {name: residuals_of(model, scores.evaluation) for name, model in models.items()}
    rows = likelihood_rows(scores, models, residuals, seed=0)
    assert [row["dim"] for row in rows] == [0, 1, 2]
    for row in rows:
        model = models[row["system"]]
        for side in ("development", "evaluation"):
            parts = getattr(scores, side)
            dense = [dense_log_likelihood(model, p.blocks.trials.scores, p.labels.matrix) for p in parts]
            assert row[side] == pytest.approx(sum(dense) / sum(p.blocks.trials.size for p in parts))
    reached = [row["development"] for row in rows]
    assert min(np.diff(reached)) > -1e-6  # the models are nested
    assert rows[0]["given_cohort"] == pytest.approx(rows[0]["evaluation"])  # without hidden variables
    assert rows == likelihood_rows(scores, models, residuals, seed=0)


def test_cross_validation_never_sees_the_left_out_speakers(scores, monkeypatch):
    seen = []

    def fit(data, **options):
        seen.append({name for matrix, _ in data for name in matrix.enroll_axis.speakers})
        return fit_score_model(data, **options)

    def likelihood(model, data):
        for matrix, labels in data:
            assert not set(matrix.enroll_axis.speakers) & seen[-1]
            assert not set(matrix.test_axis.speakers) & seen[-1]
            assert (labels.matrix == (matrix.enroll_axis.speakers[:, None] == matrix.test_axis.speakers)).all()
        return -1.0

    monkeypatch.setattr("recipes.analysis.residuals.fit_score_model", fit)
    monkeypatch.setattr("recipes.analysis.residuals.log_likelihood", likelihood)
    from recipes.analysis.residuals import _cross_validated

    _cross_validated(scores.development, seed=0)
    assert len(seen) == 4 * 3  # pairs of speakers, three dimensions
    assert set().union(*seen) == set(DEV)


def test_correlations_of_effects():
    [row] = variance_rows([("all", "2D", MODEL)])
    assert row["nu_enroll_tar"] == pytest.approx(1.4**2 + 1.0)
    assert row["correlation_enroll"] == pytest.approx(1.8 * 1.4 / (1.8 * np.sqrt(1.4**2 + 1.0)))
    turned = ScoreModel(mu=MODEL.mu, alpha=MODEL.alpha[:, :1] * [[1], [-1]], beta=0 * MODEL.beta[:, :1], sigma2=[1, 1])
    [row] = variance_rows([("all", "1D", turned)])
    assert row["correlation_enroll"] == pytest.approx(-1.0)
    assert row["correlation_test"] == 0.0


@pytest.mark.slow
def test_the_same_seed_gives_the_same_numbers_and_every_table_has_rows(scores):
    unknown = ScoreSet(scores.development, scores.evaluation, {})
    one, two = (run_analysis(unknown, sizes=[2, 3], draws=2, seed=5).numbers for _ in range(2))
    assert json.dumps(one) == json.dumps(two)
    tables = analysis_tables(one)
    assert all(table.count("\n") >= 4 for table in tables.values())
    assert {row["group"] for row in one["variances"]} == {"everybody"}  # as genders are not known
    assert "| 8 |" not in tables["sizes-same"]
    assert "| 3 | " in tables["sizes-same"]


def test_evaluation_speakers_in_the_cohort_are_refused(scores):
    mixed = ScoreSet(scores.development, scores.development, GENDER)
    with pytest.raises(InputError, match="'d0' is an evaluation and a development speaker of 'one'"):
        check_apart(mixed)
    old = scores.evaluation[0]
    nobody = ScoreMatrix(old.blocks.trials.scores, old.blocks.trials.enroll_ids, old.blocks.trials.test_ids)
    unknown = LabelledBlocks(old.blocks.replace(trials=nobody), old.labels, "one")
    with pytest.raises(InputError, match="the speakers of 'one' are not known"):
        check_apart(ScoreSet(scores.development[:1], [unknown], GENDER))


@pytest.mark.parametrize("wrong", [{"draws": 0}, {"sizes": []}, {"sizes": [1, 5]}])
def test_options_that_mean_nothing_are_refused(scores, wrong):
    with pytest.raises(InputError, match="must be at least 1, and 2 each"):
        run_analysis(scores, **wrong)
