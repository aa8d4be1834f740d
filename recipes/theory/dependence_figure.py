"""The graphs as the paper draws them: shaded nodes are observed, clear ones hidden, letters without a circle given."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from recipes.theory.dependence import ideal_graph, runtime_graph, score_graph

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["LAYOUTS", "Layout", "draw_dependence", "draw_graph"]

_RADIUS = 0.3
_OBSERVED = "#D4D4D4"
_BEND = 0.45
_PLATES = {"i": "#0072B2", "j": "#D55E00"}

_COHORT = {"S_e": r"$\mathcal{S}_{\tilde e}$", "S_t": r"$\mathcal{S}_{\tilde t}$", "S_I": r"$\mathcal{S}_I$"}
_COHORT |= {"E": r"$\mathcal{E}$", "T": r"$\mathcal{T}$", "X": r"$\mathcal{X}$", "Y": r"$\mathcal{Y}$"}
_GREEK = {"Theta": r"$\Theta$", "pi": r"$\pi$"}

# The places of the paper's figure 1, which its figure 3 has too.
_SCORE_PLACES = {"S_I": (-1, 0), "Theta": (0, 0), "s": (1, 0), "T": (-1, 1), "S_e": (0, 1), "e": (1, 1)}
_SCORE_PLACES |= {"E": (-1, -1), "S_t": (0, -1), "t": (1, -1), "h": (2, -1), "pi": (2, 0)}
_RUNTIME_PLACES = {"S_I": (-1, 0), "s": (1, 0), "Y": (-1, 1), "S_e": (0, 1), "x": (1, 1)}
_RUNTIME_PLACES |= {"X": (-1, -1), "S_t": (0, -1), "y": (1, -1), "h": (2, 0), "pi": (2, 1)}
_PLATE_PLACES = {"x_i": (-1, 0), "s_ij": (0, 0), "y_j": (1, 0), "h_ij": (0, -1)}


@dataclass(frozen=True)
class Layout:
    """How a graph is drawn.

    Attributes
    ----------
    title
        Above it.
    places
        Where each node stands.
    observed, given
        Nodes that are shaded, and nodes that have no circle.
    bent
        Edges that are drawn as bows.
    plates
        Frames around nodes that are repeated, by index.
    """

    title: str
    places: Mapping[str, tuple[float, float]]
    observed: tuple[str, ...]
    given: tuple[str, ...] = ()
    bent: tuple[tuple[str, str], ...] = ()
    plates: Mapping[str, tuple[str, ...]] | None = None


_OBSERVED_SCORES = ("s", "S_e", "S_t", "S_I")
LAYOUTS = {
    "score": Layout(
        "Any score (the paper's figure 1)", _SCORE_PLACES, _OBSERVED_SCORES, ("Theta", "pi"), (("e", "t"),)
    ),
    "ideal": Layout("The ideal score", _SCORE_PLACES, _OBSERVED_SCORES, ("Theta", "pi"), (("e", "t"),)),
    "training": Layout(
        "Score model, training (figure 2)",
        _PLATE_PLACES,
        ("s_ij", "h_ij"),
        plates={"i": ("x_i", "s_ij", "h_ij"), "j": ("y_j", "s_ij", "h_ij")},
    ),
    "runtime": Layout("Score model, run time (figure 3)", _RUNTIME_PLACES, _OBSERVED_SCORES, ("pi",)),
}


def draw_dependence(figure: Figure) -> None:
    """Draw the four graphs."""
    edges = {
        "score": list(score_graph().edges),
        "ideal": list(ideal_graph().edges),
        "training": [(node, "s_ij") for node in ("x_i", "y_j", "h_ij")],
        "runtime": list(runtime_graph().edges),
    }
    for ax, (name, layout) in zip(figure.subplots(2, 2).flat, LAYOUTS.items(), strict=True):
        draw_graph(ax, edges[name], layout)


def draw_graph(ax: Axes, edges: list[tuple[str, str]], layout: Layout) -> None:
    """Draw one graph on given axes."""
    from matplotlib.patches import Circle, FancyArrowPatch

    for node, place in layout.places.items():
        color = _OBSERVED if node in layout.observed else "white"
        if node not in layout.given:
            ax.add_patch(Circle(place, _RADIUS, facecolor=color, edgecolor="black", linewidth=1.2, zorder=3))
        ax.text(*place, _symbol(node), ha="center", va="center", zorder=4, fontsize=12)
    for start, end in edges:
        bent = (start, end) in layout.bent
        points = (_edge_of(node, other, layout, bent) for node, other in ((start, end), (end, start)))
        bow = f"arc3,rad={-_BEND if bent else 0}"
        look: dict[str, Any] = {"arrowstyle": "-|>", "mutation_scale": 12, "linewidth": 1.1, "color": "black"}
        ax.add_patch(FancyArrowPatch(*points, connectionstyle=bow, shrinkA=0, shrinkB=0, zorder=2, **look))
    for inset, (index, nodes) in enumerate((layout.plates or {}).items()):
        _draw_plate(ax, [layout.places[node] for node in nodes], index, 0.12 + 0.1 * inset)
    ax.set(aspect="equal", xlim=(-1.55, 2.45), ylim=(-1.65, 1.45))
    if layout.plates:
        ax.set(xlim=(-2.0, 2.0), ylim=(-2.1, 1.0))
    ax.set_axis_off()
    ax.set_title(layout.title)


def _edge_of(node: str, other: str, layout: Layout, bent: bool) -> tuple[float, float]:
    """Return where an arrow leaves or reaches a node: towards the other node, or to the right of it for a bow."""
    (x, y), (to_x, to_y) = layout.places[node], layout.places[other]
    angle = math.atan2(to_y - y, to_x - x)
    if bent:
        angle -= math.copysign(1.6 * _BEND, to_y - y)
    reach = _RADIUS * (0.7 if node in layout.given else 1.0)
    return x + reach * math.cos(angle), y + reach * math.sin(angle)


def _draw_plate(ax: Axes, places: list[tuple[float, float]], index: str, margin: float) -> None:
    from matplotlib.patches import FancyBboxPatch

    left, right = (end(x for x, _ in places) for end in (min, max))
    bottom, top = (end(y for _, y in places) for end in (min, max))
    pad, color = _RADIUS + margin, _PLATES[index]
    frame = FancyBboxPatch(
        (left - pad, bottom - pad - 0.12),
        right - left + 2 * pad,
        top - bottom + 2 * pad + 0.12,
        boxstyle="round,pad=0,rounding_size=0.08",
        fill=False,
        edgecolor=color,
        linewidth=1.2,
        zorder=1,
    )
    ax.add_patch(frame)
    x = left - pad + 0.15 if index == "i" else right + pad - 0.15
    ax.text(x, bottom - pad + 0.02, f"${index}$", color=color, ha="center", va="center", fontsize=11)


def _symbol(node: str) -> str:
    if node in _COHORT or node in _GREEK:
        return (_COHORT | _GREEK)[node]
    letter, _, index = node.partition("_")
    return f"${letter}_{{{index}}}$" if index else rf"$\tilde {letter}$"
