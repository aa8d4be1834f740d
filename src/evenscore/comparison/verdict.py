"""Which method to use, in plain words, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evenscore.comparison.data import FEW_TARGETS
from evenscore.comparison.methods import RAW, listed
from evenscore.comparison.recommendation import Recommendation, clear, losses_of, recommended, worst_loss

if TYPE_CHECKING:
    from evenscore.comparison.comparison import Comparison, MethodResult
    from evenscore.metrics import OperatingPoint

__all__ = ["METRIC_NAMES", "Verdict", "shown_metrics", "shown_value", "verdict_of"]

METRIC_NAMES = {"eer": "EER", "min_dcf": "minDCF", "act_dcf": "actDCF", "cllr": "Cllr", "min_cllr": "minCllr"}
# Shares of Cllr that are lost to calibration; minCllr, fitted to the evaluation trials, is a little too good itself.
_WELL_CALIBRATED, _FAIRLY_CALIBRATED = 0.1, 0.3
_DOUBTS = {
    "too few": "The training side is too small to trust it on other data.",
    "unlike": "The evaluation side is unlike the training side, so do not expect the same on other data.",
}


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What to use.

    Attributes
    ----------
    use
        Name of the method that loses least in the worst case, or raw if none is clearly better than raw.
    sure
        Whether it is clearly better than raw.
    not_distinguishable
        Other methods that may be as good as this one (as the best one, if raw is to be used).
    text
        All that in plain words.
    """

    use: str
    sure: bool
    not_distinguishable: tuple[str, ...]
    text: str

    def __str__(self) -> str:
        return self.text


def shown_metrics(points: Sequence[OperatingPoint]) -> list[tuple[str, str, int]]:
    """Return the columns of tables of metrics: title, metric and operating point; the costs are at all points.

    Examples
    --------
    >>> from evenscore import OperatingPoint
    >>> [title for title, *_ in shown_metrics([OperatingPoint(0.01), OperatingPoint(0.05)])]
    ['EER', 'minDCF 0.01', 'actDCF 0.01', 'minDCF 0.05', 'actDCF 0.05', 'Cllr', 'minCllr']
    """
    costs = [
        (f"{METRIC_NAMES[metric]} {point.name}" if len(points) > 1 else METRIC_NAMES[metric], metric, place)
        for place, point in enumerate(points)
        for metric in ("min_dcf", "act_dcf")
    ]
    eer, *_, cllr, min_cllr = ((title, metric, 0) for metric, title in METRIC_NAMES.items())
    return [eer, *costs, cllr, min_cllr]


def verdict_of(comparison: Comparison) -> Verdict:
    """Return which method to use and how sure that is."""
    found = recommended(comparison)
    used = found.method
    helps = used.name != RAW
    shown = used if helps else comparison.best
    others = [method for method in comparison.methods if method.name not in (shown.name, RAW)]
    alike = tuple(method.name for method in others if not clear(comparison.paired(method, shown)))
    lines = [_choice(comparison, shown, helps)]
    if helps and found.why:
        lines.append(_why(comparison, found))
    if helps and alike:
        lines.append(f"{listed(alike)} {'is' if len(alike) == 1 else 'are'} not distinguishable from it.")
    elif helps and others:
        lines.append("It is clearly better than every other method here.")
    lines.append(_trust(used))
    if found.doubt:
        lines.append(_DOUBTS[found.doubt])
    if comparison.data.evaluation.targets < FEW_TARGETS:
        few = comparison.data.evaluation.targets
        lines.append(f"There are only {few} target trials, so these figures are not reliable.")
    return Verdict(use=used.name, sure=helps, not_distinguishable=alike, text=" ".join(lines))


def shown_value(metric: str, value: float) -> str:
    """Return a figure as tables show it.

    Examples
    --------
    >>> shown_value("eer", 0.0213), shown_value("cllr", 0.0613)
    ('2.13 %', '0.061')
    """
    return f"{100 * value:.2f} %" if metric == "eer" else f"{value:.3f}"


def _choice(comparison: Comparison, shown: MethodResult, helps: bool) -> str:
    metric = comparison.rank_by
    name = METRIC_NAMES[metric]
    gain = shown.to_raw[metric]
    if shown.name == RAW:
        if len(comparison.methods) == 1:
            return f"No norm could be compared: only raw scores were judged ({name} {shown_value(metric, gain.a)})."
        return f"No norm helps here: calibrated raw scores are the best ({name} {shown_value(metric, gain.a)})."
    values = f"{name} {shown_value(metric, gain.a)} against {shown_value(metric, gain.b)} raw"
    relative = f"{100 * gain.difference / gain.b:+.0f} %, " if gain.b > 0 else ""
    ends = " to ".join(shown_value(metric, end) for end in (gain.interval.low, gain.interval.high))
    interval = f"{relative}{100 * gain.interval.level:g} % interval of the difference {ends}"
    if helps:
        return f"Use {shown.name}: {values} ({interval})."
    return (
        f"No norm is clearly better than calibrated raw scores: the best, {shown.name}, has {values} ({interval}); "
        "stay with raw, or measure on more speakers."
    )


def _why(comparison: Comparison, found: Recommendation) -> str:
    """Say why it is not the method that is best on average."""
    best, metric = comparison.best, comparison.rank_by
    losses = losses_of(comparison.methods, metric)
    most, least = (
        shown_value(metric, worst_loss(losses[one.name], comparison.how.level)) for one in (best, found.method)
    )
    reasons = {
        "surer": "is not clearly better than raw",
        "safer": f"loses more in the worst case ({most} to the best method of a draw of speakers, against {least})",
        "simpler": "is no safer, and learns more from the training side",
        "too few": "is not clearly better, and the training side is too small to trust it",
        "unlike": "is not clearly better, and learns more from a training side that is unlike the evaluation side",
    }
    value = shown_value(metric, best.figures.values[metric])
    return f"{best.name} has the lowest {METRIC_NAMES[metric]} ({value}), but {reasons[found.why]}."


def _trust(used: MethodResult) -> str:
    """Say whether its calibrated log-likelihood ratios can be taken at face value: what share of Cllr is lost."""
    figures = used.figures.values
    actual, loss = figures["cllr"], figures["calibration_loss"]
    whose = "of the calibrated raw scores" if used.name == RAW else f"of {used.name} after calibration"
    lead = f"The log-likelihood ratios {whose}"
    if not actual < 1:
        return f"{lead} are worse than none (Cllr {actual:.3f}): do not use them as they are."
    share = loss / actual if actual > 0 else 0.0
    amount = f"{100 * share:.0f} % of Cllr {actual:.3f} is lost to calibration"
    if share <= _WELL_CALIBRATED:
        return f"{lead} can be taken at face value ({amount})."
    if share <= _FAIRLY_CALIBRATED:
        return f"{lead} are fairly well calibrated ({amount})."
    return (
        f"{lead} are not well calibrated on these trials ({amount}): the training scores are of another kind, or there "
        "are too few trials to tell."
    )
