"""The paper's graphical models, and what depends on what in them.

Nodes have the paper's names in plain letters: ``h`` is the hypothesis of the trial at hand, ``s`` its score, ``e`` and
``t`` its enrolment and test; ``E`` and ``T`` are the cohorts; ``S_e``, ``S_t`` and ``S_I`` the cohort scores; ``Theta``
the parameters of the model that made all data, ``pi`` the prior of a target.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from evenscore import EvenscoreError, InputError

if TYPE_CHECKING:
    import networkx as nx  # type: ignore[import-untyped, unused-ignore]

__all__ = [
    "COHORT_SCORES",
    "GRAPHS",
    "QUESTIONS",
    "Question",
    "depends",
    "ideal_graph",
    "open_path",
    "runtime_graph",
    "score_graph",
    "training_graph",
]

COHORT_SCORES = ("S_e", "S_t", "S_I")

# The cohorts make the cohort scores, with the trial at hand on one side of S_e and of S_t.
_COHORT_EDGES = [("Theta", "E"), ("Theta", "T"), ("E", "S_I"), ("T", "S_I")]
_COHORT_EDGES += [("T", "S_e"), ("e", "S_e"), ("E", "S_t"), ("t", "S_t")]


def score_graph() -> nx.DiGraph:
    """Return figure 1 of the paper: where the scores that a norm works with come from.

    Examples
    --------
    >>> sorted(score_graph().predecessors("s"))
    ['e', 't']
    """
    trial = [("pi", "h"), ("h", "t"), ("e", "t"), ("Theta", "e"), ("Theta", "t"), ("e", "s"), ("t", "s")]
    return _graph(trial + _COHORT_EDGES)


def ideal_graph() -> nx.DiGraph:
    """Return figure 1 for a score that is the log-likelihood ratio under the very Theta that made the data.

    d-separation sees which variable is computed from which, but not how, so figure 1 cannot show what is special about
    such a score. Sufficiency says it: p(e, t | s, h, Theta) = p(e, t | s, Theta), and P(h | s, pi) is
    sigmoid(s + logit pi) whatever Theta is. The same joint distribution therefore factorizes in another order,

        p(h, s, e, t | pi, Theta) = p(s | pi, Theta) P(h | s, pi) p(e, t | s, Theta),

    and this is the graph of these factors: the hypothesis meets the data only through the score.

    Examples
    --------
    >>> sorted(ideal_graph().predecessors("h"))
    ['pi', 's']
    """
    trial = [("pi", "s"), ("Theta", "s"), ("s", "h"), ("pi", "h")]
    trial += [("s", "e"), ("s", "t"), ("e", "t"), ("Theta", "e"), ("Theta", "t")]
    return _graph(trial + _COHORT_EDGES)


def training_graph(rows: int = 2, columns: int = 2) -> nx.DiGraph:
    """Return figure 2, the score model at training time, with its plates unrolled.

    Examples
    --------
    >>> sorted(training_graph().predecessors("s_12"))
    ['h_12', 'x_1', 'y_2']
    """
    pairs = [(i, j) for i in range(1, rows + 1) for j in range(1, columns + 1)]
    sources = {(i, j): (f"x_{i}", f"y_{j}", f"h_{i}{j}") for i, j in pairs}
    return _graph([(node, f"s_{i}{j}") for (i, j), nodes in sources.items() for node in nodes])


def runtime_graph() -> nx.DiGraph:
    """Return figure 3, the score model at run time; ``x``, ``y`` belong to the trial, ``X``, ``Y`` to the cohorts.

    Examples
    --------
    >>> sorted(runtime_graph().predecessors("s"))
    ['h', 'x', 'y']
    """
    trial = [("pi", "h"), ("h", "s"), ("x", "s"), ("y", "s")]
    cohort = [("X", "S_I"), ("Y", "S_I"), ("Y", "S_e"), ("x", "S_e"), ("X", "S_t"), ("y", "S_t")]
    return _graph(trial + cohort)


def depends(graph: nx.DiGraph, a: str | Iterable[str], b: str | Iterable[str], given: str | Iterable[str] = ()) -> bool:
    """Tell whether the graph lets two sets of variables depend on each other when others are given.

    Parameters
    ----------
    graph
        A directed acyclic graph.
    a, b, given
        Nodes, as one name or several; none may stand in two of the sets.

    Examples
    --------
    >>> graph = score_graph()
    >>> depends(graph, "h", "S_t", given=["s", "Theta", "pi"])
    True
    >>> depends(graph, "h", "S_t", given=["e", "t", "Theta", "pi"])
    False
    """
    nx = _networkx()
    sets = [_nodes(graph, names) for names in (a, b, given)]
    shared = (sets[0] & sets[1]) | (sets[0] & sets[2]) | (sets[1] & sets[2])
    if shared:
        raise InputError(f"the node {min(shared)!r} stands in two of the sets; a variable can have one part only")
    return not nx.is_d_separator(graph, *sets)


def open_path(graph: nx.DiGraph, a: str, b: str, given: str | Iterable[str] = ()) -> str | None:
    """Return a shortest path along which dependency flows, None if all paths are blocked.

    Dependency passes ``-> N ->`` and ``<- N ->`` unless N is given, and ``-> N <-`` only if N or one of its
    descendants is given.

    Examples
    --------
    >>> open_path(score_graph(), "h", "S_e", given=["s", "Theta", "pi"])
    'h -> t <- e -> S_e'
    """
    nx = _networkx()
    _, _, known = (_nodes(graph, names) for names in (a, b, given))
    told = known.union(*(nx.ancestors(graph, node) for node in known))
    skeleton = graph.to_undirected()
    if not nx.has_path(skeleton, a, b):
        return None
    for path in nx.shortest_simple_paths(skeleton, a, b):
        if all(_passes(graph, path[place - 1 : place + 2], known, told) for place in range(1, len(path) - 1)):
            return _written(graph, path)
    return None


def _passes(graph: nx.DiGraph, triple: list[str], known: set[str], told: set[str]) -> bool:
    before, node, after = triple
    collides = graph.has_edge(before, node) and graph.has_edge(after, node)
    return node in told if collides else node not in known


def _written(graph: nx.DiGraph, path: list[str]) -> str:
    arrows = ("->" if graph.has_edge(*step) else "<-" for step in pairwise(path))
    return path[0] + "".join(f" {arrow} {node}" for arrow, node in zip(arrows, path[1:], strict=True))


@dataclass(frozen=True)
class Question:
    """Whether ``a`` depends on ``b`` in a graph of `GRAPHS` when ``given`` are known.

    Examples
    --------
    >>> question = Question("score", "h", ("S_I",), ("s", "pi"))
    >>> question.dependent, question.path
    (True, 'h -> t <- Theta -> E -> S_I')
    """

    graph: str
    a: str
    b: tuple[str, ...]
    given: tuple[str, ...]

    @property
    def dependent(self) -> bool:
        """The answer, by d-separation."""
        return depends(GRAPHS[self.graph](), self.a, self.b, self.given)

    @property
    def path(self) -> str | None:
        """A shortest path along which dependency flows, None if there is none."""
        graph = GRAPHS[self.graph]()
        paths = [path for node in self.b if (path := open_path(graph, self.a, node, self.given)) is not None]
        return min(paths, key=len, default=None)


GRAPHS = {"score": score_graph, "ideal": ideal_graph, "training": training_graph, "runtime": runtime_graph}

_KNOWN = ("s", "pi", "Theta")
#: What the paper's section on theory asks, in its order.
QUESTIONS = (
    # Given all that a norm has, with Theta known: each kind of cohort scores, with the others known too.
    *(
        Question("score", "h", (name,), (*_KNOWN, *(other for other in COHORT_SCORES if other != name)))
        for name in COHORT_SCORES
    ),
    # One kind at a time: the inter-cohort scores alone tell nothing while Theta is known, but do when it is hidden.
    *(Question("score", "h", (name,), _KNOWN) for name in COHORT_SCORES),
    *(Question("score", "h", (name,), ("s", "pi")) for name in COHORT_SCORES),
    Question("score", "h", ("Theta",), ("s", "pi")),
    # With the data of the trial in hand (equation indep): no cohort score matters, if Theta is known.
    Question("score", "h", ("s", *COHORT_SCORES), ("e", "t", "pi", "Theta")),
    Question("score", "h", COHORT_SCORES, ("e", "t", "pi")),
    # The normalization killer, with Theta known or hidden.
    Question("ideal", "h", ("e", "t", *COHORT_SCORES), _KNOWN),
    Question("ideal", "h", ("e", "t", "Theta", *COHORT_SCORES), ("s", "pi")),
    # The score model: scores of one enrolment go together, and every cohort score is of use.
    Question("training", "s_11", ("s_12",), ("h_11", "h_12", "h_21", "h_22")),
    Question("training", "s_11", ("s_22",), ("h_11", "h_12", "h_21", "h_22")),
    *(
        Question("runtime", "h", (name,), ("s", "pi", *(other for other in COHORT_SCORES if other != name)))
        for name in COHORT_SCORES
    ),
)


def _graph(edges: list[tuple[str, str]]) -> nx.DiGraph:
    return _networkx().DiGraph(edges)


def _nodes(graph: nx.DiGraph, names: str | Iterable[str]) -> set[str]:
    nodes = {names} if isinstance(names, str) else set(names)
    odd = nodes - set(graph)
    if odd:
        raise InputError(f"the graph has no node {min(odd)!r}; it has {', '.join(sorted(graph))}")
    return nodes


def _networkx() -> Any:
    try:
        import networkx
    except ImportError:
        raise EvenscoreError("graphs need the package networkx; install it: pip install 'evenscore[theory]'") from None
    return networkx
