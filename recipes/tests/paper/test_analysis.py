"""The analysis of the paper's experiment on simulated scores: genders, systems, metrics, tables, figures."""

import numpy as np
import pytest

from evenscore import (
    InputError,
    LabelledBlocks,
    Labels,
    LogisticCalibration,
    ScoreBlocks,
    ScoreMatrix,
    ScoreModel,
    TrialList,
    eer,
    evaluate,
    normalize,
    simulate_blocks,
)
from evenscore.files import ScoreSet
from recipes.paper.genders import genders_of, within_gender
from recipes.paper.metrics import measure_groups, spread, summarize_metrics, variances
from recipes.paper.systems import SYSTEMS, apply_systems, train_systems
from recipes.paper.tables import as_csv, as_markdown, eer_table, metric_table, variance_table

MODEL = ScoreModel(mu=[-5.0, 6.0], alpha=[[1.8, 0.0], [1.4, 1.0]], beta=[[1.6, 0.0], [1.2, 0.9]], sigma2=[6.0, 7.0])
DEV = [f"d{n}" for n in range(11)]
EVAL = [f"e{n}" for n in range(6)]
GENDER = {name: "f" if int(name[1:]) % 2 else "m" for name in DEV + EVAL}


def phrase(name, seed):
    """Return development and evaluation blocks of one phrase; ids carry its name."""
    sides = {"enroll": EVAL, "test": EVAL * 3, "cohort_enroll": DEV, "cohort_test": DEV * 2}
    made, _ = simulate_blocks(MODEL, *sides.values(), seed=seed)
    ids = {side: [f"{name}-{side}-{n}" for n in range(len(who))] for side, who in sides.items()}
    blocks = ScoreBlocks(
        ScoreMatrix(made.trials.scores, ids["enroll"], ids["test"]),
        enroll=ScoreMatrix(made.enroll.scores, ids["enroll"], ids["cohort_test"]),
        test=ScoreMatrix(made.test.scores, ids["cohort_enroll"], ids["test"]),
        cohort=ScoreMatrix(made.cohort.scores, ids["cohort_enroll"], ids["cohort_test"]),
        **{f"{side}_speakers": who for side, who in sides.items()},
    )
    own = LabelledBlocks.own_cohort(blocks.cohort, blocks.cohort_labels, name=name)
    return own, LabelledBlocks(blocks, Labels.from_speakers(EVAL, EVAL * 3), name)


@pytest.fixture(scope="module")
def scores():
    development, evaluation = zip(*(phrase(name, seed) for seed, name in enumerate(("one", "two"))), strict=True)
    return ScoreSet(development, evaluation, GENDER)


@pytest.fixture(scope="module")
def trained(scores):
    return {kind: train_systems(scores, by_gender=kind == "apart") for kind in ("apart", "joint")}


@pytest.fixture(scope="module")
def groups(scores, trained):
    return {kind: apply_systems(scores, systems) for kind, systems in trained.items()}


def listed(trials):
    return {trials.pair(n): float(trials.scores[n]) for n in range(len(trials))}


def test_within_a_gender_every_block_has_only_its_speakers(scores):
    for part in (*scores.development, *scores.evaluation):
        old = part.blocks
        for kind in "fm":
            new = within_gender(part, GENDER, kind).blocks
            for side in ("enroll", "test", "cohort_enroll", "cohort_test"):
                known = getattr(new, f"{side}_speakers")
                assert [name for name in getattr(old, f"{side}_speakers") if GENDER[name] == kind] == list(known)
            for block in ("trials", "enroll", "test", "cohort"):
                table, whole = getattr(new, block), getattr(old, block)
                assert table == whole.select(table.enroll_ids, table.test_ids)
    assert within_gender(scores.evaluation[0], GENDER, "x") is None
    assert within_gender(scores.evaluation[0], GENDER, "") is scores.evaluation[0]


def test_genders_are_apart_only_if_all_are_known(scores):
    sides = {"development": scores.development, "evaluation": scores.evaluation}
    assert genders_of(GENDER, sides) == ("f", "m")
    assert genders_of({**GENDER, "e0": ""}, sides) == ("",)
    assert genders_of({}, sides) == ("",)
    one = dict.fromkeys(GENDER, "m") | dict.fromkeys(("d1", "d3", "e1", "e3"), "f")
    with pytest.raises(InputError, match=r"the development set has 2 female speakers, but at least 4 are needed"):
        genders_of(one, sides)


@pytest.mark.parametrize("place", range(len(SYSTEMS)), ids=[system.name for system in SYSTEMS])
def test_each_system_equals_plain_calls(scores, trained, groups, place):
    system = SYSTEMS[place]
    for kind, group in (("f", "female"), ("m", "male")):
        model = trained["apart"][kind][system.name].model
        own, made = {}, []
        for dev, part in zip(scores.development, scores.evaluation, strict=True):
            dev, part = within_gender(dev, GENDER, kind), within_gender(part, GENDER, kind)
            results = []
            for blocks in (dev.blocks, part.blocks):
                if system.method == "raw":
                    results.append(blocks.trials)
                else:
                    options = {"model": model} if system.method == "lgsm" else dict(system.options)
                    results.append(normalize(blocks, system.method, **options))
            made.append(results[0].to_trials(dev.labels))
            own |= listed(results[1].to_trials(part.labels))
        found = groups["apart"][group][system.name]
        assert listed(found.trials) == own
        calibration = LogisticCalibration.fit(TrialList.concat(made), l2=1e-4)
        np.testing.assert_allclose(found.calibrated.scores, calibration(found.trials.scores), rtol=1e-9)
        assert found.is_llr == (system.method == "lgsm")


def test_pooled_trials_are_those_of_both_genders_and_never_across(groups):
    for kind in groups.values():
        assert list(kind) == ["female", "male", "pooled"]
        for name in (system.name for system in SYSTEMS):
            pooled = kind["pooled"][name]
            assert listed(pooled.trials) == listed(kind["female"][name].trials) | listed(kind["male"][name].trials)
            rows = [GENDER[pooled.speakers[one]] for one in pooled.trials.enroll]
            assert rows == [GENDER[pooled.speakers[one]] for one in pooled.trials.test]


def test_joint_models_judge_the_same_trials_with_everybody_as_cohort(scores, groups):
    for group in ("female", "male", "pooled"):
        apart, joint = (listed(groups[kind][group]["raw"].trials) for kind in ("apart", "joint"))
        assert apart == joint
    whole = {}
    for part in scores.evaluation:
        whole |= listed(normalize(part.blocks, "s").to_trials(part.labels))
    found = listed(groups["joint"]["male"]["S"].trials)
    assert found == {pair: whole[pair] for pair in found}


def test_unknown_genders_give_one_group(scores):
    unknown = ScoreSet(scores.development, scores.evaluation, {})
    found = apply_systems(unknown, train_systems(unknown, systems=SYSTEMS[:1]))
    assert list(found) == ["all"]
    assert found["all"]["raw"].trials.n_target == 2 * 6 * 3


def test_metrics_are_those_of_evaluate_with_intervals_around_them(groups):
    measured = measure_groups(groups["apart"], replicates=100, seed=3)
    for group, systems in groups["apart"].items():
        for name, scored in systems.items():
            found, own = measured[group][name], evaluate(scored.trials)
            assert found["eer"] == own["eer"]
            assert found["cllr"] == (own["cllr"] if scored.is_llr else None)
            assert found["cllr_calibrated"] == evaluate(scored.calibrated)["cllr"]
            assert found["n_speakers"] == (6 if group == "pooled" else 3)
            low, high = found["intervals"]["cllr_calibrated"]
            assert low <= found["cllr_calibrated"] <= high
            if name != "raw":
                assert found["against_raw"]["difference"] == pytest.approx(own["eer"] - measured[group]["raw"]["eer"])
    assert measured == measure_groups(groups["apart"], replicates=100, seed=3)
    assert "intervals" not in measure_groups(groups["apart"], replicates=0)["male"]["raw"]


def test_the_table_of_variances_is_the_models(trained):
    table = variances(trained["apart"])
    assert list(table) == ["female", "male"]
    model = trained["apart"]["m"]["LGSM 2D"].model
    row = table["male"]["LGSM 2D"]
    assert row["nu_tar"] == pytest.approx(float((model.alpha[1] ** 2).sum() + (model.beta[1] ** 2).sum()))
    assert row["sigma2_non"] == float(model.sigma2[0])
    assert row["share_tar"] == pytest.approx(row["nu_tar"] / (row["nu_tar"] + row["sigma2_tar"]))
    text = as_markdown(variance_table(summarize_metrics([table])))
    assert "| female, paper (RSR2015) | 23.4 | 3.5 | 58.7 | 55.0 | 13 | 48 |" in text


def test_summaries_are_means_with_spread():
    runs = [{"male": {"raw": {"eer": rate, "cllr": None, "intervals": {}}}} for rate in (0.01, 0.03)]
    found = summarize_metrics(runs)
    assert found == {"male": {"raw": {"eer": spread([0.01, 0.03])}}}
    assert found["male"]["raw"]["eer"]["std"] == pytest.approx(0.01 * 2**0.5)
    assert spread([2.0])["std"] == 0.0
    table = eer_table(found)
    assert table == [["EER (%)", "male", "male, paper"], ["raw", "2.00 ± 1.41", "1.24"]]
    assert metric_table(found)[1] == ["male, raw", "2.00 ± 1.41", "–", "–", "–", "–"]


def test_csv_quotes_what_must_be_quoted():
    assert as_csv([["a,b", 1], [None, 0.5]]) == '"a,b",1\n,0.5\n'


@pytest.fixture
def drawn(groups):
    pytest.importorskip("matplotlib", reason="figures need the extra evenscore[plot]")
    from recipes.paper.figures import draw_det

    return draw_det(groups["apart"]).axes[0]


def test_the_det_figure_has_the_papers_axes_and_colours(drawn, groups):
    assert drawn.get_xlim() == (-4.5, -0.85)
    assert drawn.get_ylim() == (-3.3, -0.8)
    assert [text.get_text() for text in drawn.get_xticklabels()] == ["0.001", "0.05", "0.5", "2", "5", "10", "20", "40"]
    looks = [(line.get_color(), line.get_linestyle()) for line in drawn.get_lines()]
    colours = ["black", "blue", "green", "red"]
    assert looks == [(colour, line) for line in ("--", "-") for colour in colours]
    rate = 100 * eer(groups["apart"]["male"]["ZT"].trials)
    assert drawn.get_legend().get_texts()[1].get_text() == f"male, ZT, EER={rate:.2f}%"


def test_mean_curves_of_equal_splits_are_the_curve_itself(groups):
    pytest.importorskip("matplotlib", reason="figures need the extra evenscore[plot]")
    from scipy.special import ndtr

    from evenscore.metrics import p_miss_at
    from recipes.paper.figures import draw_mean_det

    (line, *_) = draw_mean_det([groups["apart"], groups["apart"]]).axes[0].get_lines()
    p_fa, p_miss = ndtr(line.get_data())
    trials = groups["apart"]["male"]["raw"].trials
    for at in (200, 300, 399):
        assert p_miss[at] == pytest.approx(p_miss_at(p_fa[at], trials), abs=1e-6)


def test_stages_are_timed_where_the_time_went():
    from recipes.paper.stages import StageClock

    seen = []
    clock = StageClock(lambda stage, fraction: seen.append((stage, fraction)))
    for stage, fraction in (("features", 0.5), ("background model", 1.0), ("features", 1.0), ("statistics", 1.0)):
        clock(stage, fraction)
    clock.whole(0.5)
    assert list(clock.seconds) == ["features", "UBM", "scores"]
    assert all(seconds >= 0 for seconds in clock.seconds.values())
    assert seen == [("features", 0.5), ("UBM", 1.0), ("features", 1.0), ("scores", 1.0), ("experiment", 0.5)]


def test_shifts_are_what_their_names_say():
    pytest.importorskip("soundfile", reason="speech needs the extra evenscore[speech]")
    pytest.importorskip("kaldi_native_fbank", reason="speech needs the extra evenscore[speech]")
    from recipes.paper.shift import DEFAULT_SHIFTS, check_shifts, shift_of
    from recipes.text_dependent import AdditiveNoise, Codec, TelephoneBand

    check_shifts(DEFAULT_SHIFTS)
    named = {name: shift_of(name, DEFAULT_SHIFTS, [], 3) for name in DEFAULT_SHIFTS}
    assert named["telephone"] == TelephoneBand()
    assert named["gsm"] == Codec("gsm")
    assert named["noise:10"] == AdditiveNoise(10.0, "white", 3)
    assert named["mixed"].choices == (None, *(named[name] for name in DEFAULT_SHIFTS if name != "mixed"))
    tone = np.sin(np.arange(4000) / 5)
    takes = [named["mixed"].apply(tone, f"take {n}") for n in range(60)]
    assert sum(np.array_equal(take, tone) for take in takes) in range(2, 25)  # about a sixth stays clean
    assert np.array_equal(takes[7], named["mixed"].apply(tone, "take 7"))


def test_the_comparison_with_the_paper_says_what_the_figures_say():
    from recipes.paper.page import agreement

    rates = {"raw": 0.02, "ZT": 0.01, "LGSM 1D": 0.03, "LGSM 2D": 0.02}
    shares = {"share_tar": spread([0.2]), "share_non": spread([0.3])}
    lines = agreement(
        {
            "summary": {"per-gender": {"male": {name: {"eer": spread([rate])} for name, rate in rates.items()}}},
            "variances": {"male": {"LGSM 2D": shares}},
            "splits": [{"speakers": {"evaluation": {"male": 16}}}],
        }
    )
    assert lines == [
        "male, ZT: the EER changes by -50 % against raw (paper: -41 %): agrees in direction.",
        "male, LGSM 1D: the EER changes by +50 % against raw (paper: -35 %): does not agree in direction.",
        "male, LGSM 2D: the EER changes by +0 % against raw (paper: -39 %): does not agree in direction.",
        "male: the hidden variables explain 20 % of the variance of target scores and 30 % of that of non-target "
        "scores (paper: 54 % and 18 %): not more for targets, unlike in the paper.",
    ]
