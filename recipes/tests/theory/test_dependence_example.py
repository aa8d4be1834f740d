"""In a world that is small enough to write down, the cohort tells nothing beyond the ideal score, exactly."""

import itertools

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.testing import assert_allclose

pytest.importorskip("networkx", reason="graphs need the extra 'theory'")

from recipes.tests.reference import naive_information
from recipes.theory.dependence_example import (
    CASES,
    Case,
    World,
    cohort_information,
    conditional_information,
)

IDEAL = [case for case in CASES if case.name.startswith("ideal")]
OTHER = [case for case in CASES if not case.name.startswith("ideal")]


def by_name(case):
    return case.name


@pytest.mark.parametrize("case", IDEAL, ids=by_name)
def test_nothing_is_left_to_learn_beyond_the_ideal_score(case):
    found = cohort_information(case)
    assert found.pop("score") > 0.01
    assert_allclose(list(found.values()), 0, atol=1e-12)


@pytest.mark.parametrize("case", OTHER, ids=by_name)
def test_the_cohort_tells_more_than_any_other_score(case):
    found = cohort_information(case)
    assert found["all"] > 1e-5
    assert found["S_e"] > 1e-6
    assert found["S_t"] > 1e-6
    assert found["data"] >= found["all"]


def test_the_inter_cohort_scores_help_as_the_graph_says():
    found = {case.name: cohort_information(case) for case in CASES}
    known, hidden = found["approximate score"], found["score of one world, one of two worlds"]
    assert_allclose(known["S_I"], 0, atol=1e-12)  # Theta is known: alone they tell nothing ...
    assert known["S_I given the rest"] > 1e-5  # ... but they explain the others
    assert hidden["S_I"] > 1e-5  # Theta is hidden: they tell about Theta


def test_the_ideal_scores_do_not_give_the_pair_away():
    """Else the independence would be trivial."""
    scores = np.round(IDEAL[0].scores[0], 9)
    assert len(np.unique(scores)) < scores.size / 2


def test_probabilities_are_those_of_the_world():
    world = CASES[0].worlds[0]
    heard, speakers = np.asarray(world.heard), np.asarray(world.speakers)
    together = sum(speakers[y] * np.outer(heard[y], heard[y]) for y in range(len(speakers)))
    assert_allclose(world.target, together)
    assert_allclose(world.target.sum(), 1)
    assert_allclose(world.nontarget, np.outer(together.sum(axis=1), together.sum(axis=0)))
    assert_allclose(heard.sum(axis=1), 1)


def test_the_information_of_a_case_is_that_of_all_its_outcomes():
    """Enumerate a case with loops and dictionaries."""
    worlds = [World([0.3, 0.7], [[0.9, 0.1], [0.4, 0.6]]), World([0.5, 0.5], [[0.6, 0.4], [0.1, 0.9]])]
    score = np.array([[1.0, 0.0], [0.0, 1.0]])
    outcomes = []
    for world, h, e, t, other_e, other_t in itertools.product(worlds, (0, 1), *[(0, 1)] * 4):
        trial = 0.3 * world.target[e, t] if h else 0.7 * world.nontarget[e, t]
        p = 0.5 * trial * world.nontarget[other_e, other_t]
        cohort = (score[e, other_t], score[other_e, t], score[other_e, other_t])
        outcomes.append((p, h, cohort, score[e, t]))
    assert_allclose(sum(p for p, *_ in outcomes), 1)
    found = cohort_information(Case("", worlds, [score, score]))
    assert_allclose(found["all"], naive_information.conditional_information(outcomes), rtol=1e-8, atol=1e-14)
    each = [naive_information.conditional_information([(p, h, c[k], s) for p, h, c, s in outcomes]) for k in range(3)]
    assert_allclose([found[name] for name in ("S_e", "S_t", "S_I")], each, rtol=1e-8, atol=1e-14)


@given(st.lists(st.tuples(st.integers(0, 5), *[st.integers(0, 2)] * 3), min_size=1, max_size=20))
def test_information_is_that_of_the_definition_and_never_negative(rows):
    weights = np.array([row[0] for row in rows], dtype=float) + 0.25
    p = weights / weights.sum()
    a, b, c = (np.array(column) for column in list(zip(*rows, strict=True))[1:])
    found = conditional_information(p, a, b, c)
    assert found > -1e-12
    assert_allclose(found, naive_information.conditional_information(zip(p, a, b, c, strict=True)), atol=1e-12)
    assert_allclose(found, conditional_information(p, b, a, c), atol=1e-12)
