"""What each feature contributes to the log-likelihood ratio of a trial."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evenscore.plot.style import GREY, PALETTE, axes_or_new, literal

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from evenscore.evidence.contributions import Contributions

__all__ = ["plot_contributions"]


def plot_contributions(found: Contributions, *, ax: Axes | None = None) -> Axes:
    """Draw what each feature of a cohort-evidence model adds to a trial's log-likelihood ratio, as horizontal bars.

    Parameters
    ----------
    found
        From `contributions`; its bars add up to the log-likelihood ratio in the title.
    ax
        Where to draw; by default on a new figure.

    Examples
    --------
    >>> from evenscore.evidence import Contributions
    >>> terms = {"s_norm": 2.5, "score_model": 1.5, "w": -0.5, "offset": 0.25, "bounds": 0.0}
    >>> ax = plot_contributions(Contributions(enroll="ann", test="t1", llr=3.75, terms=terms, features={}))
    >>> ax.get_title(), [text.get_text().split(":")[0] for text in ax.get_yticklabels()][-1]
    ('ann against t1: LLR 3.75', 's_norm')
    """
    ax = axes_or_new(ax)
    rows = [row for row in found.rows() if row[3] != 0.0][::-1]
    places = range(len(rows))
    values = [row[3] for row in rows]
    ax.barh(list(places), values, color=[PALETTE[0] if value > 0 else PALETTE[1] for value in values])
    ax.axvline(0.0, color=GREY, linewidth=0.8)
    ax.set_yticks(
        list(places),
        [f"{name}: {what}" if value is None else f"{name}: {what} ({value:.3g})" for name, what, value, _ in rows],
    )
    for place, value in zip(places, values, strict=True):
        ax.annotate(
            f"{value:+.2f}",
            (value, place),
            xytext=(3 if value >= 0 else -3, 0),
            textcoords="offset points",
            ha="left" if value >= 0 else "right",
            va="center",
            fontsize=8,
        )
    ax.margins(x=0.15)
    ax.set_xlabel("Contribution to the log-likelihood ratio (nats)")
    literal(ax.title, f"{found.enroll} against {found.test}: LLR {found.llr:.3g}")
    return ax
