"""The tables and sentences of the page as plain text: nothing here knows of HTML."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from evenscore.comparison.record import METRICS, ComparedMetric, Comparison
from evenscore.comparison.verdict import METRIC_NAMES
from evenscore.metrics import OperatingPoint, PairedTest, as_points, bayes_error_curve, miss_rate_at
from evenscore.model.parameters import ScoreModel
from evenscore.plot.style import percent

__all__ = ["Cell", "Model", "ResultRow", "Table", "Tile"]


@dataclass(frozen=True)
class Table:
    """A table; the first cell of each row is the row's heading."""

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    texts: int = 1  #: how many columns hold texts before those with numbers; 0 if all do


@dataclass(frozen=True)
class Cell:
    """A figure in the table of results."""

    text: str
    value: float  #: for sorting
    range: str = ""
    mood: str = ""  #: "better", "worse" or nothing


@dataclass(frozen=True)
class ResultRow:
    """A method in the table of results."""

    name: str
    tag: str
    recommended: bool
    cells: Sequence[Cell]


@dataclass(frozen=True)
class Tile:
    """A large figure of the summary."""

    name: str
    value: str
    before: str
    change: str
    better: bool


@dataclass(frozen=True)
class Model:
    """What a score model learned."""

    name: str
    text: str
    table: Table


def figure(metric: str, value: float) -> str:
    """Return a metric as text: an error rate in percent, a cost with three decimals.

    Examples
    --------
    >>> figure("eer", 0.01234), figure("cllr", 0.12345), figure("cllr", float("inf"))
    ('1.23 %', '0.123', '∞')
    """
    if not math.isfinite(value):
        return "–" if math.isnan(value) else "∞"
    return percent(value) if metric == "eer" else f"{value:.3f}"


def difference(metric: str, value: float) -> str:
    """Return a difference of a metric with its sign; that of error rates is in percentage points.

    Examples
    --------
    >>> difference("eer", -0.0012), difference("cllr", 0.5), difference("cllr", 0.0)
    ('−0.12', '+0.500', '0.000')
    """
    if not math.isfinite(value):
        return "–" if math.isnan(value) else f"{value:+f}".replace("inf", "∞").replace("-", "−")
    text = f"{100 * value:.2f}" if metric == "eer" else f"{value:.3f}"
    if float(text) == 0:
        return text.removeprefix("-")
    return f"+{text}" if value > 0 else text.replace("-", "−")


def share(part: float) -> str:
    """Return a share in whole percents.

    Examples
    --------
    >>> share(0.256), share(0.001), share(0.9999), share(1.0)
    ('26 %', 'below 1 %', 'above 99 %', '100 %')
    """
    if 0 < part < 0.005:
        return "below 1 %"
    return "above 99 %" if 0.995 <= part < 1 else f"{100 * part:.0f} %"


def tiles(comparison: Comparison) -> list[Tile]:
    """Return the figures of the recommended method (of the best, if that is raw) beside those of the raw scores."""
    used = comparison.best if comparison.verdict.use == "raw" else comparison[comparison.verdict.use]
    raw = comparison["raw"].figures
    found = []
    for metric in METRICS[:-1]:
        after, before = used.figures.value(metric), raw.value(metric)
        relative = (after - before) / before if before > 0 and math.isfinite(before) else 0.0
        changed = used.name != "raw" and abs(relative) >= 0.005
        change = f"{abs(100 * relative):.0f} % {'lower' if relative < 0 else 'higher'}" if changed else ""
        name, beside = f"{METRIC_NAMES[metric]} of {used.name}", f"raw {figure(metric, before)}"
        found.append(Tile(name, figure(metric, after), beside if used.name != "raw" else "", change, relative < 0))
    return found


def columns(comparison: Comparison) -> list[tuple[str, str]]:
    """Return title and explanation of each column of the table of results."""
    explanations = {
        "eer": "Equal error rate: misses and false alarms are equally frequent",
        "min_dcf": "Detection cost at the best threshold",
        "act_dcf": "Detection cost at the threshold that the prior and the costs demand of LLRs",
        "cllr": "Cost of the LLRs as they are, in bits, over all priors",
        "min_cllr": "Cost of the LLRs after the best possible calibration",
    }
    found = [("Method", "Name of the method")]
    found += [(title, explanations[metric]) for title, metric, _ in _shown(comparison.settings.points)]
    found.append(("Cllr to raw", "Difference of Cllr to the raw scores"))
    return [*found, ("Cllr to best", "Difference of Cllr to the method with the lowest one")]


def _shown(points: Sequence[OperatingPoint]) -> list[tuple[str, ComparedMetric, int]]:
    """Return title, metric and number of the operating point of all figures of a method."""
    found: list[tuple[str, ComparedMetric, int]] = [("EER", "eer", 0)]
    for number, point in enumerate(points):
        beside = f" {point.name}" if len(points) > 1 else ""
        found += [(f"minDCF{beside}", "min_dcf", number), (f"actDCF{beside}", "act_dcf", number)]
    return [*found, ("Cllr", "cllr", 0), ("minCllr", "min_cllr", 0)]


def result_rows(comparison: Comparison) -> list[ResultRow]:
    """Return the methods of the table of results."""
    settings, rows = comparison.settings, []
    for method in comparison.methods:
        used = method.name == comparison.verdict.use
        tags = ["recommended"] * used + ["lowest Cllr"] * (method is comparison.best and not used)
        tags += ["by its own LLRs"] * (method.judged_by == "own")
        cells = []
        for _, metric, point in _shown(settings.points):
            value, ends = method.figures.value(metric, point), method.figures.interval(metric, point, settings.level)
            span = f"{figure(metric, ends.low)} to {figure(metric, ends.high)}".replace(" %", "")
            cells.append(Cell(figure(metric, value), value, span))
        cells += [_difference_cell(tests.get("cllr")) for tests in (method.to_raw, method.to_best)]
        rows.append(ResultRow(method.name, ", ".join(tags), used, cells))
    return rows


def _difference_cell(test: PairedTest | None) -> Cell:
    """Return a difference, and no figures for a method against itself."""
    if test is None or test.difference == test.interval.low == test.interval.high == 0:
        return Cell("–", 0.0)
    low, high = test.interval.low, test.interval.high
    ends = f"{difference(test.metric, low)} to {difference(test.metric, high)}"
    mood = "better" if high < 0 else "worse" if low > 0 else ""
    return Cell(difference(test.metric, test.difference), test.difference, ends, mood)


def results_text(comparison: Comparison) -> tuple[str, str]:
    """Return what stands above the table of results, and its caption."""
    settings = comparison.settings
    text = (
        f"Lower is better everywhere. Small figures are {100 * settings.level:g} % intervals from "
        f"{settings.replicates} draws of {comparison.data.evaluation.speakers} speakers; a difference is bold and in "
        "colour where its interval leaves out 0, and the intervals of differences hold for all methods at once. All "
        f"methods were calibrated the same way ({settings.calibration}) on the training side; a method that gives "
        "log-likelihood ratios itself is judged by these where they are better on the training side."
    )
    points = "; ".join(
        f"target prior {point.p_target:g}, a miss costs {point.c_miss:g}, a false alarm {point.c_fa:g}"
        for point in settings.points
    )
    return text, f"Methods, lowest Cllr first. Detection costs are normalized: {points}. Click on a heading to sort."


def differences(comparison: Comparison) -> Table:
    """Return the differences of each method to the raw scores in every metric."""
    rows = []
    for method in comparison.methods:
        cells = [(_difference_cell(test), test.p_value) for test in map(method.to_raw.get, METRICS) if test]
        if method.name != "raw":
            rows.append([method.name, *(f"{cell.text} ({cell.range}), p = {p_value:.2g}" for cell, p_value in cells)])
    caption = (
        "Difference to the raw scores, its interval, and the chance p of such a difference between equally good "
        "methods. That of EER is in percentage points."
    )
    return Table(caption, ["Method", *METRIC_NAMES.values()], rows)


def training(comparison: Comparison) -> Table:
    """Return Cllr on the training side, which decides by which LLRs a method is judged, beside the evaluation side."""
    rows = []
    for method in comparison.methods:
        on_evaluation = (method.calibrated.evaluation, method.own and method.own.evaluation)
        found = (method.training, method.training_own, *on_evaluation)
        cells = [figure("cllr", getattr(one, "cllr", math.nan)) for one in found]
        rows.append([method.name, *cells, "own LLRs" if method.judged_by == "own" else "calibrated"])
    caption = (
        f"Cllr on the training side, each trial calibrated without its speakers ({comparison.settings.folds} folds), "
        "and on the evaluation side; by the calibrated scores and by the LLRs that a method gives itself"
    )
    head = ["Method", "Training, calibrated", "Training, own", "Evaluation, calibrated", "Evaluation, own"]
    return Table(caption, [*head, "Judged by"], rows)


def methods(comparison: Comparison) -> tuple[Table, Table]:
    """Return what each method is, and those that could not run, with reasons."""
    rows = [
        [method.name, method.norm, _options(method.options), f"{method.seconds:.1f} s", " ".join(method.notes) or "–"]
        for method in comparison.methods
    ]
    failed = [[name, reason] for name, reason in comparison.failed.items()]
    return (
        Table("What each method is", ["Method", "Norm", "Options", "Time", "Notes"], rows, texts=0),
        Table("Methods left out of the comparison", ["Method", "Reason"], failed, texts=0),
    )


def _options(options: Mapping[str, object]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in options.items()) or "–"


def det_table(comparison: Comparison) -> Table:
    """Return miss rates at some false-alarm rates."""
    rows, rates = [], (0.0001, 0.001, 0.01, 0.05, 0.1)
    for method in comparison.methods:
        points = as_points(method.llrs, comparison.labels, merge=False)
        misses = [percent(miss_rate_at(points, p_fa=rate).p_miss) for rate in rates]
        rows.append([method.name, percent(method.figures.value("eer")), *misses])
    head = ["Method", "EER", *(f"at {100 * rate:g} %" for rate in rates)]
    return Table("Equal error rate, and miss rates at these false-alarm rates", head, rows)


def bayes_table(comparison: Comparison) -> Table:
    """Return actual and minimum Bayes error rates at some priors."""
    rows, log_odds = [], (-6.0, -4.0, -2.0, 0.0, 2.0, 4.0, 6.0)
    for method in comparison.methods:
        found = bayes_error_curve(method.llrs, comparison.labels, log_odds=log_odds)
        both = zip(found.actual, found.minimum, strict=True)
        rows.append([method.name, *(f"{actual:.3f} ({minimum:.3f})" for actual, minimum in both)])
    head = ["Method", *(f"{odds:+g}".replace("-", "−") for odds in log_odds)]
    return Table("Normalized Bayes error rates, actual and (minimum), at these prior log-odds", head, rows)


def histogram_table(comparison: Comparison) -> Table:
    """Return quantiles of the normalized scores of each class."""
    rows, levels = [], (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
    for method in comparison.methods:
        for label, side in ((0, "non-targets"), (1, "targets")):
            values = np.quantile(method.scores[comparison.labels == label], levels, method="nearest")
            rows.append([method.name, side, *(f"{value:.3g}".replace("-", "−") for value in values)])
    head = ["Method", "Class", *(f"{100 * level:g} %" for level in levels)]
    return Table("Scores below which this share of a class lies, before calibration", head, rows, texts=2)


def conditions(comparison: Comparison) -> list[Table]:
    """Return Cllr of every method in each phrase or condition, then all metrics; nothing if there is only one."""
    names = list(comparison.best.conditions)
    if not names:
        return []
    found = {(name, method.name): method.conditions[name] for name in names for method in comparison.methods}
    rows = [
        [
            name or "(no name)",
            *(figure("cllr", getattr(found[name, method.name], "cllr", math.nan)) for method in comparison.methods),
        ]
        for name in names
    ]
    details = [
        [name or "(no name)", method, *(figure(metric, getattr(figures, metric, math.nan)) for metric in METRICS)]
        for (name, method), figures in found.items()
    ]
    head = ["Condition", *(method.name for method in comparison.methods)]
    return [
        Table("Cllr in each phrase or condition alone", head, rows),
        Table("Each condition alone", ["Condition", "Method", *METRIC_NAMES.values()], details, texts=2),
    ]


def models(comparison: Comparison) -> list[Model]:
    """Return what each score model learned about the variance of the scores."""
    found = [(method.name, method.model) for method in comparison.methods if isinstance(method.model, ScoreModel)]
    return [Model(name, *_variances(name, model)) for name, model in found]


def _variances(name: str, model: ScoreModel) -> tuple[str, Table]:
    """Return in words and as a table where the variance of the scores comes from."""
    table = model.variances
    whole = table.sigma2 + table.nu
    parts = [
        ("Enrolment's hidden variable", table.nu_enroll),
        ("Test's hidden variable", table.nu_test),
        ("Both hidden variables (ν)", table.nu),
        ("Unexplained (σ²)", table.sigma2),
        ("Whole variance", whole),
    ]
    rows = [["Mean score (μ)", f"{model.mu[0]:#.4g}", "–", f"{model.mu[1]:#.4g}", "–"]]
    for title, part in parts if model.dim else parts[-1:]:
        shares = [share(float(part[h] / whole[h])) for h in (0, 1)]
        rows.append([title, f"{part[0]:#.4g}", shares[0], f"{part[1]:#.4g}", shares[1]])
    caption = f"Where the variance of the scores comes from, as {name} sees it (D = {model.dim})"
    text = "The model has no hidden variables, so cohort scores change nothing."
    if model.dim:
        of_enroll, of_test = (share(float(part[0] / whole[0])) for part in (table.nu_enroll, table.nu_test))
        text = (
            f"{of_enroll} of the variance of non-target scores comes from the enrolment and {of_test} from the test: "
            "all scores of the one or the other are shifted, and cohort scores show by how much. The rest "
            f"({share(float(table.sigma2[0] / whole[0]))}) belongs to the single pair, and no cohort can tell it."
        )
    return text, Table(caption, ["Part", "Non-targets", "share", "Targets", "share"], rows)


def hidden_targets(comparison: Comparison) -> Table | None:
    """Return cohort scores that look like those of targets."""
    rows = [
        [str(one["cohort"]), str(one["trial"]), f"{float(one['score']):.4g}"]
        for diagnostic in comparison.diagnostics
        for one in diagnostic.examples
    ]
    caption = "Cohort scores as high as those of targets: is the trial's speaker in the cohort?"
    return Table(caption, ["Cohort member", "Scored with", "Score"], rows, texts=2) if rows else None


def data(comparison: Comparison) -> list[Table]:
    """Return how much there is on each side and in the cohort, and in each condition, if there are several."""
    found = comparison.data
    sides = [("Training", found.training), ("Evaluation", found.evaluation)]
    parts = [(f"Training: {part.name}", part) for part in found.training_conditions]
    parts += [(f"Evaluation: {part.name}", part) for part in found.evaluation_conditions]
    rows = []
    for title, side in (*sides, *parts):
        numbers = side.speakers, side.enrolments, side.tests, side.trials, side.targets, side.nontargets
        rows.append([title, *(f"{number:,}".replace(",", "\u202f") for number in numbers)])
    cohort = [found.cohort_speakers, found.cohort_enrolments, found.cohort_tests]
    known = ["unknown" if number is None else f"{number:,}".replace(",", "\u202f") for number in cohort]
    head = ["Side", "Speakers", "Enrolments", "Tests", "Trials", "Targets", "Non-targets"]
    whole = [*rows[:2], ["Cohort", *known, "–", "–", "–"]]
    tables = [Table(f"All conditions; speakers are known from {found.speakers_from}", head, whole)]
    return tables if len(parts) == 2 else [*tables, Table("Each condition", head, rows[2:])]


def making(comparison: Comparison) -> Table:
    """Return settings, versions and time."""
    settings = comparison.settings
    rows = [["Calibration", f"{settings.calibration}, {_options(settings.calibration_options)}"]]
    rows += [["Draws of speakers", f"{settings.replicates}, seed {settings.seed}"]]
    rows += [[name, version] for name, version in comparison.versions.items()]
    rows += [["Finished", comparison.time.replace("T", " ")], ["Took", f"{comparison.seconds:.1f} s"]]
    return Table("Settings, versions and time", ["What", "Value"], rows, texts=0)
