"""The cohort-evidence model as a whole: training, scoring, files, contributions."""

import json
from dataclasses import replace

import numpy as np
import pytest
from tests.evidence.material import evaluation, training
from tests.evidence.test_features import as_list, looked_up

from evenscore import (
    FileError,
    InputError,
    LabelledBlocks,
    Labels,
    ScoreBlocks,
    cllr,
    contributions,
    fit_evidence,
    fit_norm,
    normalize,
    prepare_norm,
)
from evenscore.evidence import CohortEvidence, EvidenceNormalizer
from evenscore.evidence.choice import clearly_better
from evenscore.evidence.features import PATTERNS, evidence_features, pattern_of, restricted
from evenscore.evidence.head import Penalties, _newton, fit_head
from evenscore.files import load_evidence, save_evidence
from evenscore.norms.normalize import normalize_with
from evenscore.plot import plot_contributions
from evenscore.tables import Axis
from tilings import every_way, on_route, over_tilings, tiled_blocks


@pytest.fixture(scope="module")
def fitted():
    """Whatever is better, the whole head is tested here; `test_simple` tests what it gives way to."""
    return fit_norm("evidence", [training(16, 3, 0, "a"), training(16, 3, 1, "b")], guard=False)


@pytest.fixture(scope="module")
def model(fitted):
    return fitted.model


def general(model, blocks):
    """Score by the features, one and all."""
    pattern, head = model.head_for(pattern_of(blocks))
    blocks = restricted(blocks, pattern)
    return head.llr(evidence_features(blocks, pattern, model.score_model, model.scales, model.ridges))


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_fast_way_gives_the_same_numbers(model, pattern, dtype):
    blocks = restricted(evaluation(dtype=dtype), pattern)
    expected = general(model, blocks)
    for tiling, route in every_way():
        with on_route(route):
            found = normalize(tiled_blocks(blocks, tiling), "evidence", model=model).in_memory()
        assert found.scores.dtype == dtype
        assert found.scores == pytest.approx(expected, abs=1e-9 if dtype == np.float64 else 2e-4), (tiling, route)


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("missing", [0, 7])
def test_lists_and_partial_cohorts(model, own, missing):
    blocks = evaluation(own=own, missing=missing)
    expected, listed = general(model, blocks), as_list(blocks)
    for tiling, route in every_way():
        with on_route(route):
            whole = normalize(tiled_blocks(blocks, tiling), "evidence", model=model).in_memory().scores
            found = normalize(tiled_blocks(listed, tiling), "evidence", model=model).in_memory()
        assert whole == pytest.approx(expected, abs=1e-9), (tiling, route)
        assert found.scores == pytest.approx(looked_up(whole, blocks, listed), abs=1e-9), (tiling, route)


@pytest.mark.usefixtures("route")
def test_trials_in_pieces(model, monkeypatch):
    blocks = evaluation(own=True)
    whole = normalize(blocks, "evidence", model=model).scores
    monkeypatch.setattr("evenscore.evidence.normalizer._TRIALS", 15)
    assert normalize(blocks, "evidence", model=model).scores == pytest.approx(whole, abs=1e-12)
    listed = as_list(blocks)
    found = normalize(listed, "evidence", model=model).scores
    assert found == pytest.approx(looked_up(whole, blocks, listed), abs=1e-9)


def test_one_trial_online(model):
    blocks = evaluation()
    whole = normalize(blocks, "evidence", model=model).scores
    normalizer = EvidenceNormalizer(model, blocks)
    row, column = blocks.enroll.scores[1], blocks.test.scores[:, 2]
    score = blocks.trials.scores[1, 2]
    assert normalizer.normalize_one(score, row, column) == pytest.approx(whole[1, 2])
    assert normalizer.normalize_one(score, row, column) == pytest.approx(whole[1, 2])  # now it is prepared
    holed = np.where(np.arange(len(row)) == 3, np.nan, row)
    assert normalizer.normalize_one(score, holed, column) != pytest.approx(whole[1, 2], abs=1e-9)
    one_sided = normalize(restricted(blocks, "enroll"), "evidence", model=model).scores[1, 2]
    assert normalizer.normalize_one(score, row) == pytest.approx(one_sided)
    assert np.isfinite(normalizer.normalize_one(score))
    own = normalizer.normalize_one(score, row, column, enroll_speaker="s1", test_speaker="s2")
    assert own != pytest.approx(whole[1, 2])
    with pytest.raises(InputError, match="the cohort has 42 members"):
        normalizer.normalize_one(score, row[:3], column)


@over_tilings
def test_a_prepared_cohort_serves_blocks_without_one(model, tiling):
    blocks = evaluation()
    prepared = prepare_norm(
        "evidence",
        model=model,
        cohort=blocks.cohort,
        cohort_enroll_speakers=blocks.cohort_enroll_speakers,
        cohort_test_speakers=blocks.cohort_test_speakers,
    )
    bare = tiled_blocks(ScoreBlocks(blocks.trials, enroll=blocks.enroll, test=blocks.test), tiling)
    for one in (bare, tiled_blocks(blocks, tiling)):
        found = normalize_with(prepared, one, "evidence").in_memory()
        assert found.scores == pytest.approx(normalize(blocks, "evidence", model=model).scores)
    other = ScoreBlocks(blocks.trials, cohort=blocks.cohort.with_scores(blocks.cohort.scores + 1))
    with pytest.raises(InputError, match="not those the normalizer was prepared for"):
        prepared.normalize(other)


def test_training_scores_come_from_heads_that_never_met_the_speakers(fitted):
    part = training(16, 3, 0, "a")
    seen = fitted.normalizer.normalize(part.blocks).scores
    assert fitted.training_scores[0].shape == seen.shape
    assert not np.allclose(fitted.training_scores[0].scores, seen)
    key = part.labels.matrix.reshape(-1)
    assert cllr(fitted.training_scores[0].scores.reshape(-1), key) < 0.8
    assert fitted.is_llr
    assert any("without score_model" in note for note in fitted.notes)


def test_training_is_repeatable_and_better_than_the_raw_score(model):
    again = fit_evidence([training(16, 3, 0, "a"), training(16, 3, 1, "b")], guard=False)
    assert again.heads["full"].weight == model.heads["full"].weight
    new = evaluation(seed=3, n_trials=12, n_cohort=16)
    key = (new.enroll_speakers[:, None] == new.test_speakers[None]).reshape(-1)
    llr = normalize(new, "evidence", model=model).scores.reshape(-1)
    none = normalize(restricted(new, "none"), "evidence", model=model).scores.reshape(-1)
    assert cllr(llr, key) < cllr(none, key)


@pytest.mark.parametrize(("speakers", "tests"), [(2, 2), (4, 1), (7, 1)])
def test_tiny_training_sets_work(model, speakers, tests):
    part = training(speakers, tests)
    evidence = fit_evidence([part], score_model=model.score_model)
    assert np.isfinite(normalize(part.blocks, "evidence", model=evidence).scores).all()
    assert evidence.report.folds == (3 if speakers == 7 else 0)
    assert ("cross-validated Cllr" if speakers == 7 else "too few speakers") in evidence.report.lines()[1]


@pytest.mark.usefixtures("route")
def test_training_with_missing_scores(model):
    part = training(6, 3)
    scores = part.blocks.trials.scores.copy()
    scores.reshape(-1)[::41] = np.nan
    matrix = type(part.blocks.trials)(scores, part.blocks.trials.enroll_ids, part.blocks.trials.test_ids, missing="nan")
    holed = LabelledBlocks.own_cohort(matrix, part.labels)
    fitted = fit_norm("evidence", [holed], score_model=model.score_model)
    assert np.array_equal(np.isnan(fitted.training_scores[0].scores), np.isnan(scores))


def test_one_sided_training_makes_one_sided_heads(model):
    part = training(12, 3)
    for side, other in (("enroll", "test"), ("test", "enroll")):
        one = LabelledBlocks(restricted(part.blocks, side), part.labels)
        evidence = fit_evidence([one], score_model=model.score_model, guard=False)
        assert list(evidence.heads) == [side, "none"]
        new = evaluation()
        of = {
            name: normalize(restricted(new, name), "evidence", model=evidence).scores for name in ("none", side, other)
        }
        assert np.array_equal(normalize(new, "evidence", model=evidence).scores, of[side])  # the other side is not used
        assert np.array_equal(of[other], of["none"])
        assert not np.array_equal(of[side], of["none"])


@over_tilings
def test_the_targets_of_a_cohort_tell_its_speakers(model, tiling):
    new = restricted(evaluation(), "full")
    tables = {"trials": new.trials, "enroll": new.enroll, "test": new.test, "cohort": new.cohort}
    sides = {name: table.with_axes(Axis(table.enroll_ids), Axis(table.test_ids)) for name, table in tables.items()}
    trials = sides.pop("trials")
    nameless = ScoreBlocks(trials, **sides, cohort_labels=Labels.from_key(new.cohort_labels.matrix.copy()))
    full, found = (
        normalize(blocks, "evidence", model=model).in_memory().scores
        for blocks in (new, tiled_blocks(nameless, tiling))
    )
    np.testing.assert_allclose(found, full, rtol=1e-9)
    assert contributions(model, nameless, ("e1", "t3")).llr == pytest.approx(full[1, 3])
    without = normalize(ScoreBlocks(trials, **sides), "evidence", model=model).scores  # no targets, no speakers
    pair = ScoreBlocks(trials, enroll=sides["enroll"], test=sides["test"])
    assert np.array_equal(without, normalize(pair, "evidence", model=model).scores)


def test_contributions_add_up(model):
    blocks = evaluation()
    found = contributions(model, blocks, ("e1", "t3"))
    whole = normalize(blocks, "evidence", model=model).scores
    assert sum(found.terms.values()) == pytest.approx(found.llr) == pytest.approx(whole[1, 3])
    assert {row[0] for row in found.rows()} == set(found.terms)
    assert found.terms["bounds"] == 0  # exactly, since this head has none
    listed = contributions(model, as_list(blocks), ("e0", "t0"))
    assert listed.llr == pytest.approx(whole[0, 0])
    with pytest.raises(InputError, match="'x' is not in the blocks"):
        contributions(model, blocks, ("x", "t3"))
    with pytest.raises(InputError, match="no trial of 'e0' and 't1'"):
        contributions(model, as_list(blocks), ("e0", "t1"))


def test_the_plot_shows_every_contribution(model):
    pytest.importorskip("matplotlib")
    found = contributions(model, evaluation(), ("e1", "t3"))
    ax = plot_contributions(found)
    shown = [bar.get_width() for bar in ax.patches]
    assert sorted(shown) == pytest.approx(sorted(value for value in found.terms.values() if value))
    assert "e1 against t3" in ax.get_title()


def test_files_keep_every_digit(model, tmp_path):
    path = tmp_path / "evidence.json"
    save_evidence(model, path, info={"train": "here"})
    again = load_evidence(path)
    blocks = evaluation()
    before, after = (normalize(blocks, "evidence", model=one).scores for one in (model, again))
    assert np.array_equal(before, after)
    assert again.report.without == model.report.without
    assert (again.ridges, again.scales) == (model.ridges, model.scales)


def test_older_files_count_scores_as_they_did(model, tmp_path):
    path = tmp_path / "evidence.json"
    save_evidence(model, path)
    values = json.loads(path.read_text())
    for prior in values["scales"].values():
        del prior["alike"]
    path.write_text(json.dumps(values))
    old = load_evidence(path)
    assert [old.scales.of(side, top).alike for side in ("enroll", "test") for top in (False, True)] == [0.0] * 4
    assert old.scales.enroll == replace(model.scales.enroll, alike=0.0)
    blocks = evaluation()
    tables = [blocks.trials, blocks.enroll, blocks.test]
    trials, enroll, test = (table.with_axes(Axis(table.enroll_ids), Axis(table.test_ids)) for table in tables)
    nameless = ScoreBlocks(trials, enroll=enroll, test=test)
    before, after = (normalize(some, "evidence", model=old).scores for some in (nameless, restricted(blocks, "pair")))
    np.testing.assert_allclose(after, before, rtol=1e-12)  # speakers or not


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda v: v.update(format="x"), r"\[format\]: expected 'evenscore-evidence'"),
        (lambda v: v["heads"].update(all={}), "there is no pattern 'all'"),
        (lambda v: v["heads"].pop("none"), "with 'none'"),
        (lambda v: v["heads"]["full"]["weight"].pop("s_norm"), "heads.full.weight.s_norm"),
        (lambda v: v["heads"]["full"].update(target_outliers=0.7), "a share must be from 0"),
        (lambda v: v["heads"]["enroll"]["slope"].update(b=1.0), "no feature of the pattern 'enroll'"),
        (lambda v: v["ridges"].update(rank=2.5), "ridges.rank"),
        (lambda v: v["ridges"].update(within=0), "a ridge must be above 0"),
        (lambda v: v["score_model"].update(sigma2=[1.0, -1.0]), "score_model"),
        (lambda v: v["scales"].update(enroll=3), r"\[scales.enroll\]: expected an object"),
        (lambda v: v["scales"]["test"].update(variance=-1.0), "the variance must not be negative"),
        (lambda v: v["scales"]["test"].update(alike=1.5), "that must be from 0 to 1"),
        (lambda v: v["scales"]["test"].update(center=1e9), "must lie between -700 and 700"),
        (lambda v: v["report"].update(loss="low"), r"\[report.loss\]: expected a number"),
        (lambda v: v.update(pickle="no"), "there is no such key"),
    ],
)
def test_odd_files_are_refused(model, tmp_path, change, message):
    path = tmp_path / "evidence.json"
    save_evidence(model, path)
    values = json.loads(path.read_text())
    change(values)
    path.write_text(json.dumps(values))
    with pytest.raises(FileError, match=message):
        load_evidence(path)


def test_one_trial_without_a_prepared_cohort(model):
    norm, blocks = prepare_norm("evidence", model=model), evaluation()
    row, column = blocks.enroll.scores[1], blocks.test.scores[:, 2]
    trials, enroll = (
        table.with_axes(Axis(table.enroll_ids), Axis(table.test_ids)) for table in (blocks.trials, blocks.enroll)
    )
    sides = ScoreBlocks(trials, enroll=enroll)  # as for a single trial, nobody knows who the cohort is
    score = float(trials.scores[1, 2])
    assert norm.normalize_one(score, row) == pytest.approx(norm.normalize(sides).scores[1, 2])
    assert norm.normalize_one(score, row, column) != pytest.approx(norm.normalize_one(score, row))


def test_options_that_are_not_known_are_refused(model):
    with pytest.raises(InputError, match="needs a trained CohortEvidence"):
        prepare_norm("evidence")
    with pytest.raises(InputError, match="knows no option"):
        prepare_norm("evidence", model=model, top_k=3)
    with pytest.raises(InputError, match="no training scores"):
        fit_evidence([])
    with pytest.raises(InputError, match="the heads are"):
        CohortEvidence(
            score_model=model.score_model, scales=model.scales, ridges=model.ridges, heads={}, report=model.report
        )


def test_the_head_minimizes_its_objective():
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(200, 3)), (rng.random(200) < 0.3).astype(np.int8)
    X[labels == 1] += 0.7
    prior, penalty = np.array([0.5, 0.5, 0.0]), np.array([0.1, 0.2, 0.3])
    weights, offset = _newton(X, labels, prior, penalty)

    def objective(w, c):
        margin = np.where(labels == 1, 1, -1) * (X @ w + c)
        loss = np.logaddexp(0, -margin)
        return 0.5 * loss[labels == 1].mean() + 0.5 * loss[labels == 0].mean() + 0.5 * penalty @ (w - prior) ** 2

    best = objective(weights, offset)
    for at in range(4):
        for step in (-1e-3, 1e-3):
            moved = np.append(weights, offset)
            moved[at] += step
            assert objective(moved[:3], moved[3]) > best


def test_a_strong_penalty_gives_the_average_of_the_views():
    rng = np.random.default_rng(0)
    labels = (np.arange(400) % 4 == 0).astype(np.int8)
    features = {name: rng.normal(size=400) + 2 * labels for name in ("raw", "s_norm", "ls_e")}
    strong = Penalties(views=1e9, bend=1e9, extras=1e9)
    head = fit_head(features, labels, ("raw", "s_norm"), ("ls_e",), strong)
    assert [head.weight[name] for name in ("raw", "s_norm")] == pytest.approx(list(head.share.values()), abs=1e-6)
    assert [head.weight["bend"], head.weight["ls_e"]] == pytest.approx([0, 0], abs=1e-6)
    with pytest.raises(InputError, match="one kind is missing"):
        fit_head(features, np.zeros(400, dtype=np.int8), ("raw",), (), strong)


def test_a_choice_does_not_hang_on_rounding():
    losses = np.array([0.1, 0.2, 0.3, 0.4, 0.5])
    assert not clearly_better(losses * (1 - 1e-15), losses)
    assert not clearly_better(losses, losses)
    assert clearly_better(losses - 0.01, losses)
    assert not clearly_better(losses - [0.3, -0.2, 0.1, -0.1, 0.1], losses)
