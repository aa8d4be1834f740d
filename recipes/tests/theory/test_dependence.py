"""The graphs say what the paper says, and d-separation agrees with a walk along every path."""

import pytest

nx = pytest.importorskip("networkx", reason="graphs need the extra 'theory'")

from hypothesis import (  # noqa: E402
    assume,
    given,
    strategies as st,
)

from evenscore import InputError  # noqa: E402
from examples import examples  # noqa: E402
from recipes.tests.reference import path_blocking  # noqa: E402
from recipes.theory.dependence import (  # noqa: E402
    COHORT_SCORES,
    GRAPHS,
    QUESTIONS,
    depends,
    ideal_graph,
    open_path,
    runtime_graph,
    score_graph,
    training_graph,
)

GIVEN = ("s", "Theta", "pi")


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_the_graphs_have_no_circles(graph):
    assert nx.is_directed_acyclic_graph(graph())


@pytest.mark.parametrize("name", COHORT_SCORES)
def test_the_hypothesis_depends_on_every_cohort_score_that_comes_with_the_others(name):
    others = [other for other in COHORT_SCORES if other != name]
    assert depends(score_graph(), "h", name, [*GIVEN, *others])
    assert depends(score_graph(), "h", name, ["s", "pi", *others])  # and when Theta is hidden


def test_the_cohort_tells_of_itself_only_if_theta_is_hidden():
    assert not depends(score_graph(), "h", "S_I", GIVEN)
    assert depends(score_graph(), "h", "S_I", ["s", "pi"])
    assert depends(score_graph(), "h", "Theta", ["s", "pi"])


def test_the_data_of_the_trial_make_every_score_irrelevant():
    assert not depends(score_graph(), "h", ["s", *COHORT_SCORES], ["e", "t", "Theta", "pi"])
    assert depends(score_graph(), "h", COHORT_SCORES, ["e", "t", "pi"])  # but only if Theta is known
    assert depends(score_graph(), "h", COHORT_SCORES, ["e", "Theta", "s", "pi"])  # and the data of both sides


@pytest.mark.parametrize("known", [(), ("Theta",), ("S_e",), ("S_e", "S_t", "Theta"), ("e",), ("e", "t", "S_I")])
def test_the_ideal_score_makes_everything_else_irrelevant(known):
    rest = set(ideal_graph()) - {"h", "s", "pi", *known}
    assert not depends(ideal_graph(), "h", rest, ["s", "pi", *known])
    assert depends(ideal_graph(), "h", rest, ["pi", *known])  # it takes the score


def test_both_graphs_allow_what_a_reordered_factorization_must_not_change():
    """The ideal graph adds independence; whatever figure 1 separates without h and s stays separated."""
    for graph in (score_graph(), ideal_graph()):
        assert not depends(graph, ["e", "t"], ["E", "T", "S_I"], ["Theta"])
        assert not depends(graph, "E", "T", "Theta")
        assert depends(graph, ["e", "t"], ["E", "T"])


def test_the_score_model_ties_scores_that_share_a_side():
    labels = [f"h_{i}{j}" for i in (1, 2, 3) for j in (1, 2)]
    graph = training_graph(3, 2)
    assert depends(graph, "s_11", "s_12", labels)
    assert depends(graph, "s_11", "s_31", labels)
    assert not depends(graph, "s_11", "s_22", labels)
    assert depends(graph, "s_11", "s_22", [*labels, "s_12"])  # explaining away
    assert not depends(graph, "s_11", ["s_12", "s_21"], [*labels, "x_1", "y_1"])


@pytest.mark.parametrize("name", COHORT_SCORES)
def test_the_score_model_uses_every_cohort_score(name):
    others = [other for other in COHORT_SCORES if other != name]
    assert depends(runtime_graph(), "h", name, ["s", "pi", *others])
    assert not depends(runtime_graph(), "h", name, ["s", "pi", "x", "y"])


def test_every_question_gets_the_answer_of_the_paper():
    answers = [question.dependent for question in QUESTIONS]
    score, ideal, training, runtime = (
        [answer for answer, q in zip(answers, QUESTIONS, strict=True) if q.graph == name]
        for name in ("score", "ideal", "training", "runtime")
    )
    assert score == [True] * 3 + [True, True, False] + [True] * 3 + [True] + [False, True]
    assert ideal == [False, False]
    assert training == [True, False]
    assert runtime == [True, True, True]
    assert all((question.path is not None) == question.dependent for question in QUESTIONS)


def test_a_path_is_written_with_its_arrows():
    assert open_path(score_graph(), "h", "S_I", [*GIVEN, "S_t"]) == "h -> t -> S_t <- E -> S_I"
    assert open_path(score_graph(), "h", "S_I", GIVEN) is None
    assert open_path(nx.DiGraph([("a", "b"), ("c", "d")]), "a", "c") is None


@st.composite
def questions(draw):
    """Draw a graph without circles, two nodes, and some that are given."""
    size = draw(st.integers(2, 6))
    pairs = [(str(i), str(j)) for i in range(size) for j in range(i + 1, size)]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True))
    a, b = draw(st.sampled_from(pairs))
    rest = [str(node) for node in range(size) if str(node) not in (a, b)]
    given = draw(st.lists(st.sampled_from(rest), unique=True)) if rest else []
    return size, edges, a, b, given


@given(questions())
@examples(150)
def test_d_separation_agrees_with_a_walk_along_every_path(question):
    size, edges, a, b, known = question
    graph = nx.DiGraph(edges)
    graph.add_nodes_from(str(node) for node in range(size))
    expected = path_blocking.dependent(set(edges), a, b, known)
    assert depends(graph, a, b, known) == expected
    assert depends(graph, b, a, known) == expected
    path = open_path(graph, a, b, known)
    assert (path is not None) == expected
    if path is not None:
        walked = path.replace("->", " ").replace("<-", " ").split()
        assert path_blocking.is_open(set(edges), walked, known)


@given(questions(), st.data())
@examples(50)
def test_sets_depend_if_any_of_their_nodes_do(question, data):
    size, edges, a, b, known = question
    rest = [str(node) for node in range(size) if str(node) not in (a, b, *known)]
    assume(rest)
    more = data.draw(st.lists(st.sampled_from(rest), min_size=1, unique=True))
    graph = nx.DiGraph(edges)
    graph.add_nodes_from(str(node) for node in range(size))
    expected = any(path_blocking.dependent(set(edges), a, node, known) for node in (b, *more))
    assert depends(graph, a, [b, *more], known) == expected


@pytest.mark.parametrize(
    ("sets", "message"),
    [
        (("h", "S_x", ()), "the graph has no node 'S_x'; it has E, S_I"),
        (("h", "S_e", ("h",)), "the node 'h' stands in two of the sets"),
        ((["h", "s"], ["s"], ()), "the node 's' stands in two of the sets"),
    ],
)
def test_wrong_names_are_refused(sets, message):
    with pytest.raises(InputError, match=message):
        depends(score_graph(), *sets)
