"""Which method to use, in plain words, and how sure that is.

A method is worth its effort if its Cllr is clearly lower than that of calibrated raw scores, and its actDCF at the
first operating point is not clearly higher. Of those the one with the lowest Cllr is used, unless another cannot be
told from it by Cllr and has a clearly lower actDCF. "Clearly" means that the interval of the difference on the same
draws of speakers, which holds for all methods at once, leaves out zero.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evenscore.comparison.diagnostics import FEW_SPEAKERS, FEW_TARGETS
from evenscore.comparison.judge import paired
from evenscore.comparison.record import ComparedMetric, DataSummary, MethodResult, Settings, Verdict

__all__ = ["METRIC_NAMES", "choose", "write_verdict"]

METRIC_NAMES: Mapping[ComparedMetric, str] = {
    "eer": "EER",
    "min_dcf": "minDCF",
    "act_dcf": "actDCF",
    "cllr": "Cllr",
    "min_cllr": "minCllr",
}
_WELL_CALIBRATED, _FAIRLY_CALIBRATED = 0.1, 0.3  # shares of Cllr that are lost to calibration


def write_verdict(methods: Sequence[MethodResult], settings: Settings, data: DataSummary) -> Verdict:
    """Return which method to use, and sentences that say why; the methods come in the order of their Cllr."""
    used, alike = choose(methods, settings)
    sure = used.name != "raw"
    sentences = [_choice(methods, used)]
    if sure and used is not methods[0]:
        best = methods[0]
        values = f"{best.figures.evaluation.cllr:.3f}, actDCF {best.figures.evaluation.act_dcf:.3f}"
        sentences.append(f"{best.name} has the lowest Cllr ({values}), but {used.name} has the lower actDCF.")
    if sure and alike:
        names = " and ".join([", ".join(alike[:-1])] * (len(alike) > 1) + [alike[-1]])
        sentences.append(f"{names} {'is' if len(alike) == 1 else 'are'} not distinguishable from it.")
    elif sure and len(methods) > 2:
        sentences.append("It is clearly better than every other method here.")
    sentences.append(_trust(used))
    if data.training.speakers < FEW_SPEAKERS:
        few = f"{data.training.speakers} speakers"
        sentences.append(f"The training side has only {few}: do not expect the same on other data.")
    if data.evaluation.targets < FEW_TARGETS:
        sentences.append(f"There are only {data.evaluation.targets} target trials: these figures are not reliable.")
    return Verdict(use=used.name, sure=sure, alike=alike, sentences=tuple(sentences))


def choose(methods: Sequence[MethodResult], settings: Settings) -> tuple[MethodResult, tuple[str, ...]]:
    """Return the method to use, and the names of those that cannot be told from it; see the rule above."""
    usable = [
        one for one in methods if one.to_raw["cllr"].interval.high < 0 and one.to_raw["act_dcf"].interval.low <= 0
    ]
    if not usable:
        return next(one for one in methods if one.name == "raw"), ()

    def sign(one: MethodResult, other: MethodResult, metric: ComparedMetric) -> int:
        """Return -1 if one method is clearly better than another, 1 if it is clearly worse, else 0."""
        interval = paired(one, other, metric, settings, len(methods) - 1).interval
        return int(interval.low > 0) - int(interval.high < 0)

    used = usable[0]
    cheaper = [one for one in usable if not sign(one, used, "cllr") and sign(one, used, "act_dcf") < 0]
    used = min(cheaper, key=lambda one: one.figures.evaluation.act_dcf, default=used)
    others = [one for one in methods if one is not used and one.name != "raw"]
    return used, tuple(one.name for one in others if not sign(one, used, "cllr") and not sign(one, used, "act_dcf"))


def _choice(methods: Sequence[MethodResult], used: MethodResult) -> str:
    """Say what to use and what it gains."""
    shown = methods[0] if used.name == "raw" else used
    gain = shown.to_raw["cllr"]
    if len(methods) == 1:
        return f"No norm could be compared: only raw scores were judged (Cllr {gain.a:.3f})."
    if shown.name == "raw":
        return f"No norm helps here: calibrated raw scores are the best (Cllr {gain.a:.3f})."
    cost = shown.to_raw["act_dcf"]
    relative = f"{100 * gain.difference / gain.b:+.0f} %, " if gain.b > 0 else ""
    interval = f"{relative}interval of the difference {gain.interval.low:.3f} to {gain.interval.high:.3f}"
    values = f"Cllr {gain.a:.3f} against {gain.b:.3f} raw ({interval}), actDCF {cost.a:.3f} against {cost.b:.3f}"
    if used.name != "raw":
        return f"Use {shown.name}: {values}."
    return (
        f"No norm is clearly better than calibrated raw scores: the best, {shown.name}, has {values}; "
        "stay with raw, or measure on more speakers."
    )


def _trust(used: MethodResult) -> str:
    """Say whether the LLRs can be taken at face value: what share of Cllr is lost to calibration."""
    figures = used.figures.evaluation
    whose = "of the calibrated raw scores" if used.name == "raw" else f"of {used.name} after calibration"
    if used.judged_by == "own":
        whose = f"of {used.name}, which were better without calibration on the training side,"
    lead = f"The log-likelihood ratios {whose}"
    if not figures.cllr < 1:
        return f"{lead} are worse than none (Cllr {figures.cllr:.3f}): do not use them as they are."
    share = figures.calibration_loss / figures.cllr if figures.cllr > 0 else 0.0
    amount = f"{100 * share:.0f} % of Cllr {figures.cllr:.3f} is lost to calibration"
    if share <= _WELL_CALIBRATED:
        return f"{lead} can be taken at face value ({amount})."
    if share <= _FAIRLY_CALIBRATED:
        return f"{lead} are fairly well calibrated ({amount})."
    return f"{lead} are not well calibrated on these trials ({amount}): the training scores are of another kind."
