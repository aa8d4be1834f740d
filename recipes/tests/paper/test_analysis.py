"""The analysis of the paper's experiment on simulated scores: genders, systems, metrics, tables, figures."""

import numpy as np
import pytest
from scipy.stats import norm

from evenscore import (
    InputError,
    LabelledBlocks,
    Labels,
    LogisticCalibration,
    ScoreBlocks,
    ScoreMatrix,
    ScoreModel,
    eer,
    evaluate,
    fit_norm,
    normalize,
    simulate_blocks,
)
from evenscore.files import ScoreSet
from recipes.paper.development_trials import second_speakers
from recipes.paper.genders import genders_of, within_gender
from recipes.paper.metrics import measure_groups, raw_by_set, spread, summarize_metrics, variances
from recipes.paper.scales import scale_facts, scale_variances
from recipes.paper.systems import SYSTEMS, apply_systems, train_systems
from recipes.paper.tables import (
    as_csv,
    as_markdown,
    eer_table,
    metric_table,
    scale_table,
    set_table,
    variance_table,
)
from recipes.tests.reference.naive_cohorts import single_trial

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
    """Train all systems, the score models briefly: what is made of them is compared with plain calls."""

    def quick(method, training, **options):
        return fit_norm(method, training, **options | ({"max_iter": 20} if method == "lgsm" else {}))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("recipes.paper.systems.fit_norm", quick)
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


def normalized(blocks, method, options):
    return blocks.trials if method == "raw" else normalize(blocks, method, **options)


def trials_without_two_speakers(blocks, method, options):
    """Return each trial normalized on its own, with a cohort that lacks its speakers: two, or its own and another."""
    found = {}
    if "top_k" in options:  # the share is one of the cohort before anybody is left out
        number = len(set(blocks.cohort_enroll_speakers))
        options = options | {"top_k": options["top_k"] * number / (number - 2)}
    second = dict(zip(blocks.trials.test_ids, second_speakers(blocks), strict=True))
    for enrolment, of in zip(blocks.trials.enroll_ids, blocks.enroll_speakers, strict=True):
        for test, who in zip(blocks.trials.test_ids, blocks.test_speakers, strict=True):
            gone = {of, who if who != of else second[test]}
            assert len(gone) == 2
            single = single_trial(blocks, enrolment, test, gone)
            found[of, test, who] = float(normalized(single, method, options).scores[0, 0])
    return found


@pytest.mark.parametrize("place", range(len(SYSTEMS)), ids=[system.name for system in SYSTEMS])
def test_each_system_equals_plain_calls(scores, trained, groups, place):
    system = SYSTEMS[place]
    for kind, group in (("f", "female"), ("m", "male")):
        model = trained["apart"][kind][system.name].model
        options = {"model": model} if system.method == "lgsm" else dict(system.options)
        own, values, labels = {}, [], []
        for dev, part in zip(scores.development, scores.evaluation, strict=True):
            dev, part = within_gender(dev, GENDER, kind), within_gender(part, GENDER, kind)
            own |= listed(normalized(part.blocks, system.method, options).to_trials(part.labels))
            made = trials_without_two_speakers(dev.blocks, system.method, options)
            values += made.values()
            labels += [int(enrolment == test) for enrolment, _, test in made]
        found = groups["apart"][group][system.name]
        assert listed(found.trials) == own
        calibration = LogisticCalibration.fit(np.array(values), np.array(labels), l2=1e-4)
        np.testing.assert_allclose(found.calibrated.scores, calibration(found.trials.scores), rtol=1e-6)
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


def test_second_speakers_are_all_others_in_turn(scores):
    blocks = scores.development[0].blocks
    chosen = {name: set() for name in DEV}
    for name, other in zip(blocks.test_speakers, second_speakers(blocks), strict=True):
        chosen[name].add(other)
    assert all(len(others) == 2 and name not in others for name, others in chosen.items())


@pytest.mark.parametrize("system", [system for system in SYSTEMS if system.name in ("LGSM 0D", "S shift")])
def test_systems_without_a_part_are_what_is_left(scores, system):
    part = scores.evaluation[0]
    fitted = fit_norm(system.method, scores.development, **system.options)
    found, raw = fitted.normalizer.normalize(part.blocks).scores, part.blocks.trials.scores
    if system.name == "LGSM 0D":  # two Gaussians, with no regard to any cohort
        density = norm.logpdf(raw[..., None], fitted.model.mu, np.sqrt(fitted.model.sigma2))
        np.testing.assert_allclose(found, density[..., 1] - density[..., 0], rtol=1e-9)
    else:
        means = (part.blocks.enroll.scores.mean(axis=1)[:, None] + part.blocks.test.scores.mean(axis=0)[None]) / 2
        np.testing.assert_allclose(found, (raw - means) / 1e3, rtol=1e-9)


@pytest.mark.parametrize("takes", [1, 5])
def test_sources_of_scale_are_found_again(takes):
    rng, found, truth = np.random.default_rng(3), [], []
    speakers = [f"s{n // takes}" for n in range(20 * takes)]
    for _ in range(12):
        phrase, own = 0.2 * rng.normal(size=10), 0.15 * rng.normal(size=(10, 20))
        spoken = np.repeat(rng.normal(size=(10, 20, 20)), takes, axis=2)  # takes of a speaker are alike
        scores = 0.9 * spoken + 0.4 * rng.normal(size=spoken.shape)
        scores *= np.exp(phrase[:, None] + own)[..., None]
        one = scale_variances([(table, speakers) for table in scores])
        assert one["phrase"] + one["member"] + one["sampling"] == pytest.approx(1.0)
        found.append([one[name] * one["spread"] ** 2 for name in ("phrase", "member")])
        truth.append([phrase.var(ddof=1), own.var(axis=1, ddof=1).mean()])
    assert np.mean(found, axis=0) == pytest.approx(np.mean(truth, axis=0), rel=0.15)


def test_jackknife_over_speakers_is_that_of_single_estimates():
    """Two members of two phrases, everything written out."""
    rng, speakers = np.random.default_rng(4), np.array(["a", "a", "b", "c", "c", "c", "d"])
    tables = [rng.normal(size=(2, 7)) for _ in range(2)]
    without = [speakers != name for name in "abcd"]
    differences = [[np.log(t[0, k].std() / t[1, k].std()) for k in without] for t in tables]
    noise = (
        sum(3 * np.var(one) / 2 for one in differences) / 2
    )  # of (x - y) / 2, twice, over one degree of freedom each
    means = [[np.log(t[:, k].std(axis=1)).mean() for t in tables] for k in without]
    noise += 3 * np.var([x - y for x, y in means]) / 2
    found = scale_variances([(t, speakers) for t in tables])
    assert found["sampling"] * found["spread"] ** 2 == pytest.approx(noise)
    assert scale_variances([(tables[0], speakers)])["phrase"] == 0.0
    with pytest.raises(InputError, match="give at least two enrolments or tests of each"):
        scale_variances([(tables[0][:1], speakers)])


def test_scales_and_sets_have_tables(scores):
    facts = scale_facts(scores)
    table = scale_table(summarize_metrics([facts]))
    assert [row[0] for row in table] == ["", "enrolments", "tests"]
    assert table[1][1] == f"{facts['joint']['enroll']['spread']:.2f}"
    sets = raw_by_set(scores)
    inside = [within_gender(part, GENDER, kind).trials for part in scores.development for kind in "fm"]
    values = np.concatenate([one.scores for one in inside])
    labels = np.concatenate([one.labels for one in inside])
    assert sets["raw"]["development"]["eer"] == eer(values, labels)
    assert sets["raw"]["development"]["mean_tar"] == pytest.approx(values[labels == 1].mean())
    rows = set_table({"background": summarize_metrics([sets])})
    assert [row[0] for row in rows[1:]] == ["background, development", "background, evaluation"]


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
