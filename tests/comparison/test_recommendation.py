"""Which method is recommended: the one that loses least in the worst case, and in doubt one that learns less."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from compared_sides import evaluation_side, training_side
from hypothesis import given, strategies as st

from evenscore import compare
from evenscore.comparison.likeness import Contrast, SideLikeness
from evenscore.comparison.methods import Method
from evenscore.comparison.needs import need_of, size_warnings, too_few
from evenscore.comparison.recommendation import clear, losses_of, paired_with, recommended, worst_loss
from evenscore.comparison.run import _ranked
from reference.plain_comparison import joint_intervals

METHODS = ["raw", "s", "z", "lgsm"]
ALIKE = Contrast(training=0.0, evaluation=0.1, z=0.5, unlike=False)
UNLIKE = SideLikeness(
    side="enroll",
    mean=Contrast(training=0.0, evaluation=1.0, z=9.0, unlike=True),
    level=ALIKE,
    spread=ALIKE,
    high=ALIKE,
)
RNG = np.random.default_rng(0)
DRAWS = RNG.normal(size=400)


@pytest.fixture(scope="module")
def measured():
    return compare(training_side(count=16), evaluation_side(cohort="train", members=16), METHODS, bootstrap=400)


def with_draws(comparison, draws, *, training_speakers=16, unlike=False):
    """Return a comparison in which methods have the Cllr that is given for each draw."""
    methods = []
    for one in comparison.methods:
        values = np.asarray(draws[one.name], dtype=float)
        figures = replace(one.figures, values={**one.figures.values, "cllr": float(values.mean())})
        methods.append(replace(one, figures=figures, replicates={**one.replicates, "cllr": values}))
    training = replace(comparison.data.training, speakers=training_speakers, targets=100)
    return replace(
        comparison,
        methods=_ranked(methods, "cllr", comparison.how.level, len(comparison.trials.speakers)),
        data=replace(comparison.data, training=training),
        likeness=(UNLIKE,) if unlike else (),
    )


def test_losses_are_to_the_best_of_each_draw(measured):
    drawn = np.array([one.replicates["cllr"] for one in measured.methods])
    losses = losses_of(measured.methods, "cllr")
    for one, own in zip(measured.methods, drawn, strict=True):
        expected = [max(own[at] - other[at] for other in drawn) for at in range(400)]
        np.testing.assert_allclose(losses[one.name], expected)
        share = np.mean(losses[one.name] > one.worst_loss)
        assert share == pytest.approx(0.05, abs=0.005) or one.worst_loss == 0
    assert measured.results()["methods"]["s"]["worst_loss"] == measured["s"].worst_loss


def test_what_is_best_on_average_but_risky_is_not_recommended(measured):
    risky = np.where(np.arange(400) < 40, 0.25, 0.10)  # rarely much worse
    found = with_draws(
        measured, {"raw": np.full(400, 0.3), "s": risky, "z": np.full(400, 0.12), "lgsm": np.full(400, 0.2)}
    )
    assert found.best.name == "s"
    assert found.verdict.use == "z"
    assert (
        "s has the lowest Cllr (0.115), but loses more in the worst case (0.130 to the best method"
        in found.verdict.text
    )
    assert recommended(found).why == "safer"


def test_where_the_draws_cannot_tell_what_learns_less_is_recommended(measured):
    draws = {"raw": 0.3 + 0 * DRAWS, "z": 0.25 + 0 * DRAWS, "s": 0.100 + 0.01 * DRAWS, "lgsm": 0.0999 - 0.01 * DRAWS}
    draws["s"] += 1e-4 - draws["s"].mean() + 0.1  # a little worse on average
    draws["lgsm"] += 0.1 - draws["lgsm"].mean()
    found = with_draws(measured, draws)
    assert found.best.name == "lgsm"
    assert found.verdict.use == "s"
    assert "is no safer, and learns more from the training side" in found.verdict.text
    assert found.verdict.not_distinguishable == ("lgsm",)


def doubtful(measured, **facts):
    """Return a comparison in which lgsm is safest, s is not clearly worse, and z is."""
    return with_draws(
        measured,
        {"raw": 0.3 + 0 * DRAWS, "z": 0.2 + 0 * DRAWS, "s": 0.11 + 0.008 * DRAWS, "lgsm": 0.10 + 0 * DRAWS},
        **facts,
    )


@pytest.mark.parametrize(
    ("facts", "use", "words"),
    [
        ({}, "lgsm", "s is not distinguishable from it"),
        ({"training_speakers": 11}, "s", "and the training side is too small to trust it"),
        ({"unlike": True}, "s", "learns more from a training side that is unlike the evaluation side"),
    ],
)
def test_a_small_or_unlike_training_side_speaks_for_simpler_methods(measured, facts, use, words):
    found = doubtful(measured, **facts)
    assert not clear(found.paired(found["s"], found["lgsm"]))
    assert found.verdict.use == use
    assert words in found.verdict.text
    assert found.verdict.text.startswith(f"Use {use}: Cllr ")


def test_a_clear_win_stands_with_a_warning(measured):
    draws = {"raw": 0.3 + 0 * DRAWS, "z": 0.2 + 0 * DRAWS, "s": 0.15 + 0 * DRAWS, "lgsm": 0.10 + 0 * DRAWS}
    few = with_draws(measured, draws, training_speakers=11)
    assert few.verdict.use == "lgsm"
    assert few.verdict.text.endswith("The training side is too small to trust it on other data.")
    unlike = with_draws(measured, draws, unlike=True)
    assert unlike.verdict.use == "lgsm"
    assert "The evaluation side is unlike the training side, so do not expect the same" in unlike.verdict.text


def test_only_what_is_clearly_better_than_raw_is_recommended(measured):
    draws = {
        "raw": 0.2 + 0 * DRAWS,
        "z": 0.18 + 0.02 * (DRAWS - DRAWS.mean()),
        "s": 0.19 + 0 * DRAWS,
        "lgsm": 0.3 + 0 * DRAWS,
    }
    found = with_draws(measured, draws)
    assert found.best.name == "z"
    assert found.verdict.use == "s"
    assert "z has the lowest Cllr (0.180)" in found.verdict.text
    assert "but is not clearly better than raw" in found.verdict.text
    none = with_draws(measured, draws | {"s": 0.25 + 0 * DRAWS})
    assert none.verdict.use == "raw"
    assert "the best, z, has Cllr" in none.verdict.text


@given(
    st.integers(2, 4).flatmap(
        lambda number: st.lists(
            st.lists(st.integers(-9, 9), min_size=number + 1, max_size=number + 1), min_size=2, max_size=60
        )
    ),
    st.sampled_from([0.5, 0.9, 0.95]),
)
def test_intervals_hold_for_all_methods_at_once(draws, level):
    drawn = np.array(draws, dtype=float).T
    methods = [
        SimpleNamespace(figures=SimpleNamespace(values={"cllr": row.mean()}), replicates={"cllr": row}) for row in drawn
    ]
    tests = paired_with(methods, methods[0], "cllr", level, 9)
    against = drawn[1:] - drawn[0]
    expected = joint_intervals(against.tolist(), level)
    assert [(test.interval.low, test.interval.high) for test in tests[1:]] == expected
    for test, row in zip(tests[1:], against, strict=True):
        assert min(1, 2 / (1 + len(row))) <= test.p_value <= 1
        if test.p_value <= 1 - level:
            assert clear(test)


def test_a_method_that_is_there_twice_costs_nothing(measured):
    one, raw = measured["s"], measured.raw
    few = paired_with([raw, one, measured["z"]], raw, "cllr", 0.95, 9)
    many = paired_with([raw, one, measured["z"], replace(one), replace(one)], raw, "cllr", 0.95, 9)
    assert few == many[:3]


def test_what_the_row_says_decides_however_many_methods_there_are(measured):
    """A method whose interval stays below zero is recommended, whoever else ranks first by luck."""
    noise = RNG.normal(size=(30, 400)) * 0.1
    draws = {"raw": 0.3 + 0 * DRAWS, "z": 0.3 + 0 * DRAWS, "s": 0.3 + 0 * DRAWS, "lgsm": 0.25 + 0.001 * DRAWS}
    found = with_draws(measured, draws)
    lucky = [
        replace(one, name=f"lucky {place}", replicates={**one.replicates, "cllr": 0.22 + drawn})
        for place, drawn in enumerate(noise)
        for one in [
            replace(
                found["z"],
                figures=replace(
                    found["z"].figures,
                    values={
                        "cllr": 0.2,
                        **{name: value for name, value in found["z"].figures.values.items() if name != "cllr"},
                    },
                ),
            )
        ]
    ]
    more = replace(found, methods=_ranked([*found.methods, *lucky], "cllr", 0.95, 9))
    assert more.best.name.startswith("lucky")
    assert more.verdict.use == "lgsm"
    assert more["lgsm"].to_raw["cllr"].interval.high < 0


def test_few_draws_are_enough_for_an_answer():
    found = compare(training_side(), evaluation_side(), ["s"], bootstrap=1)
    assert found.verdict.use in ("raw", "s")
    assert worst_loss(np.array([0.5]), 0.95, errors=2) == 0.5


def test_infinite_figures_lose_without_end(measured):
    draws = {"raw": np.full(400, np.inf), "z": np.full(400, np.inf), "s": 0.1 + 0 * DRAWS, "lgsm": np.full(400, np.inf)}
    found = with_draws(measured, draws)
    assert found.verdict.use == "s"
    assert found["z"].worst_loss == np.inf
    assert found.results()["methods"]["z"]["worst_loss"] == "inf"


def test_needs_grow_with_what_is_learned(measured):
    names = ["raw", "s", "as:top_k=5", "lgsm:dim=0", "lgsm", "evidence"]
    needs = [need_of(Method.of(name)) for name in names]
    assert needs == sorted(needs)
    assert needs[0] == needs[3] < needs[4] < needs[5]
    assert need_of(Method("my own", "unknown")) == needs[-1]
    side = replace(measured.data.training, speakers=18, targets=25)
    assert too_few([Method.of(name) for name in names], side) == {
        "lgsm": "25 training targets, 30 needed",
        "evidence": "18 training speakers, 20 needed",
    }


def test_a_small_training_side_is_told():
    found = compare(training_side(count=8), evaluation_side(), ["s", "lgsm"], bootstrap=20)
    assert "the training side is too small to trust lgsm: 8 training speakers, 16 needed" in found.warnings
    assert found.results()["sides"]["too_few"] == found.too_few == {"lgsm": "8 training speakers, 16 needed"}
    assert size_warnings({}) == []


@pytest.mark.slow
def test_the_needs_are_where_methods_do_no_harm():
    """How often a method is worse than raw scores, with fewer training speakers than it needs, and with as many."""
    worse = {}
    for name, few, enough in (("s", 4, need_of(Method.of("s"))), ("lgsm", 6, need_of(Method.of("lgsm")))):
        for count in (few, enough.speakers):
            found = [
                compare(training_side(count=count, seed=1000 + seed), evaluation, [name], bootstrap=1)
                for seed in range(20)
                for evaluation in [evaluation_side(count=60, members=40, seed=5000 + seed)]
            ]
            gains = [one[name].figures.values["cllr"] - one.raw.figures.values["cllr"] for one in found]
            worse[name, count < enough.speakers] = np.mean(np.array(gains) > 0)
    assert worse["s", True] > 0.25
    assert worse["lgsm", True] > 0.25
    assert worse["s", False] <= 0.1
    assert worse["lgsm", False] <= 0.1
