"""Data, cohorts, score models, example trials, versions: the tables that say where the results come from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from evenscore.model.parameters import ScoreModel
from evenscore.report.content import Contributions, Model, Table
from evenscore.report.numbers import count, json_numbers, share

if TYPE_CHECKING:
    from evenscore.comparison.cohorts import CohortDiagnostics
    from evenscore.comparison.comparison import Comparison, RunFacts
    from evenscore.comparison.data import DataSummary
    from evenscore.comparison.likeness import SideLikeness
    from evenscore.comparison.trials import SideSummary
    from evenscore.model.parameters import VarianceTable

__all__ = [
    "cohort_sentences",
    "cohort_tables",
    "contributions_of",
    "data_tables",
    "likeness_tables",
    "models_of",
    "version_table",
]

_NAMED = 12  # speakers that are listed by name
_LIKENESS = {
    "mean": "mean",
    "level": "standard deviation of their means",
    "spread": "standard deviation of the scores of one",
    "high": "share of high scores",
}


def models_of(comparison: Comparison) -> list[Model]:
    """Return what each score model learned about the variance of the scores."""
    found = [(method.name, method.model) for method in comparison.methods if isinstance(method.model, ScoreModel)]
    return [
        Model(name=name, sentences=_meaning(model.variances), table=_variances(name, model)) for name, model in found
    ]


def _variances(name: str, model: ScoreModel) -> Table:
    table = model.variances
    whole = table.sigma2 + table.nu
    parts = [
        ("Enrolment's hidden variable", table.nu_enroll),
        ("Test's hidden variable", table.nu_test),
        ("Both hidden variables (ν)", table.nu),
        ("Unexplained (σ²)", table.sigma2),
        ("Whole variance", whole),
    ]
    parts = parts if model.dim else parts[-1:]
    rows = [["Mean score (μ)", f"{model.mu[0]:#.4g}", "–", f"{model.mu[1]:#.4g}", "–"]]
    rows += [
        [title, *(text for h in (0, 1) for text in (f"{part[h]:#.4g}", share(float(part[h] / whole[h]))))]
        for title, part in parts
    ]
    return Table(
        caption=f"Where the variance of the scores comes from, as {name} sees it (D = {model.dim})",
        head=["Part", "Non-targets", "share", "Targets", "share"],
        rows=rows,
    )


def _meaning(table: VarianceTable) -> list[str]:
    """Return sentences on what the shares mean for the user."""
    whole = table.sigma2 + table.nu
    if not table.nu.any():
        return ["The model has no hidden variables, so cohort scores change nothing."]
    sides = [
        f"{share(float(table.nu_enroll[h] / whole[h]))} of the variance of {name} scores comes from the enrolment and "
        f"{share(float(table.nu_test[h] / whole[h]))} from the test"
        for h, name in ((0, "non-target"), (1, "target"))
    ]
    most = float(table.share[0])
    use = (
        "Cohort scores, which are non-target scores, show much of it: shifting scores has a lot to take away"
        if most >= 0.4
        else "Cohort scores, which are non-target scores, show some of it: there is something for a shift to take away"
        if most >= 0.1
        else "Cohort scores, which are non-target scores, show little of it: shifting scores gains little here, "
        "but a norm that also scales them may gain more"
    )
    return [
        f"The hidden variables say how far whoever is compared shifts all their scores: {sides[0]}; {sides[1]}. {use}.",
        f"The rest ({share(float(table.sigma2[0] / whole[0]))} of non-target and "
        f"{share(float(table.sigma2[1] / whole[1]))} of target variance) belongs to the single pair, and no cohort can "
        "tell it.",
    ]


def contributions_of(comparison: Comparison) -> tuple[Contributions, dict[str, Any]] | None:
    """Return what the features of the best method that can tell add to the LLRs of its examples, and for scripts."""
    for method in comparison.methods:
        found = method.contributions
        if found is not None and len(found.trials):
            break
    else:
        return None
    name, values = method.name, np.asarray(found.values, dtype=np.float64)
    rows = [
        [trial, *(f"{value:+.3f}" for value in row), f"{row.sum():+.3f}"]
        for trial, row in zip(found.trials, values, strict=True)
    ]
    section = Contributions(
        trials=list(found.trials),
        description=f"Bars: what each of {len(found.features)} features of {name} adds to the LLR of the chosen trial.",
        table=Table(caption=f"Contributions to the LLR, {name}", head=["Trial", *found.features, "Sum"], rows=rows),
    )
    return section, {
        "features": list(found.features),
        "values": [json_numbers(row) for row in values],
        "totals": json_numbers(values.sum(axis=1)),
    }


def cohort_tables(cohorts: Sequence[CohortDiagnostics]) -> list[Table]:
    """Return size, overlap and odd members of the cohorts."""
    if not cohorts:
        return []
    rows = [
        [
            cohort.name or "all trials",
            count(cohort.enrolments),
            count(cohort.tests),
            "unknown" if cohort.speakers is None else count(cohort.speakers),
            count(cohort.smallest),
            count(len(cohort.shared_with_evaluation)),
            count(len(cohort.shared_with_training)),
            count(cohort.n_outliers),
            count(cohort.n_hidden_targets),
        ]
        for cohort in cohorts
    ]
    head = ["Condition", "Enrolments", "Tests", "Speakers", "Fewest for a trial", "Also in evaluation"]
    head += ["Also in training", "Members that stand out", "Hidden targets?"]
    tables = [
        Table(caption="Size of the cohorts, and how many of their speakers are elsewhere too", head=head, rows=rows)
    ]
    return tables + _odd_members(cohorts)


def _odd_members(cohorts: Sequence[CohortDiagnostics]) -> list[Table]:
    members = [
        [
            *(one.id, cohort.name or "all trials", _side(one.side), one.speaker or "unknown"),
            *(f"{one.mean:.3g}", f"{one.std:.3g}", f"{one.mean_z:+.1f}", f"{one.std_z:+.1f}"),
        ]
        for cohort in cohorts
        for one in cohort.outliers
    ]
    hidden = [
        [one.cohort_id, cohort.name or "all trials", one.trial_id, _side(one.side), f"{one.score:.4g}", f"{one.z:.1f}"]
        for cohort in cohorts
        for one in cohort.hidden_targets
    ]
    tables = []
    if members:
        head = ["Member", "Condition", "Side", "Speaker", "Mean", "Spread", "Mean, z", "Spread, z"]
        caption = "Cohort members whose scores are unlike those of the others; z counts robust standard deviations"
        tables.append(Table(caption=caption, head=head, rows=members, texts=4))
    if hidden:
        head = ["Member", "Condition", "Scored with", "Side of the trial", "Score", "z"]
        caption = "Cohort scores as high as those of targets: is the trial's speaker in the cohort?"
        tables.append(Table(caption=caption, head=head, rows=hidden, texts=4))
    return tables


def _side(side: str) -> str:
    return "enrolment" if side == "enroll" else "test"


def cohort_sentences(cohorts: Sequence[CohortDiagnostics]) -> list[str]:
    """Say who is in the cohort that should not be, or that nobody is."""
    known = [cohort for cohort in cohorts if cohort.speakers is not None]
    if not known:
        return ["Who speaks in the cohort is not known, so overlap with the trials cannot be checked."]
    shared = sorted({name for cohort in known for name in cohort.shared_with_evaluation})
    if not shared:
        return ["No speaker of the evaluation trials is in the cohort."]
    left_out = all(cohort.own_speakers_left_out for cohort in known)
    what = "each is left out of the cohort of their own trials" if left_out else "so some trials meet themselves there"
    more = f" and {len(shared) - _NAMED} more" if len(shared) > _NAMED else ""
    return [f"Evaluation speakers in the cohort: {', '.join(shared[:_NAMED])}{more}; {what}."]


def data_tables(data: DataSummary) -> list[Table]:
    """Return how much there is on each side."""
    head = ["Side", "Speakers", "Enrolments", "Tests", "Trials", "Targets", "Non-targets", "Unknown"]
    sides = (("Training", data.training), ("Evaluation", data.evaluation))
    tables = [
        Table(
            caption=f"All conditions. Speakers of the training side are known from {data.training_speakers_from}, "
            f"those of the evaluation side from {data.evaluation_speakers_from}.",
            head=head,
            rows=[_counts(title, side) for title, side in sides],
        )
    ]
    if len(data.evaluation_conditions) > 1 or len(data.training_conditions) > 1:
        rows = [_counts(f"Training: {part.name}", part) for part in data.training_conditions]
        rows += [_counts(f"Evaluation: {part.name}", part) for part in data.evaluation_conditions]
        tables.append(Table(caption="Each condition", head=head, rows=rows))
    return tables


def likeness_tables(found: Sequence[SideLikeness]) -> list[Table]:
    """Return cohort scores of the training side beside those of the evaluation side, if there are any."""
    rows = []
    for one in found:
        who = "Enrolments" if one.side == "enroll" else "Tests"
        for name, meaning in _LIKENESS.items():
            contrast = getattr(one, name)
            values = [f"{value:.3f}" for value in (contrast.training, contrast.evaluation)]
            apart = "–" if contrast.z is None else f"{abs(contrast.z):.1f}"
            rows.append([f"{who}: {meaning}", *values, apart, "unlike" if contrast.unlike else "alike"])
    caption = (
        "Cohort scores of both sides, in standard deviations of the training side's non-targets and from their mean; "
        "high are scores above all but 1 % of these. Unlike is what differs for sure and by so much that it matters; "
        "standard errors are those of speakers."
    )
    head = ["Cohort scores", "Training", "Evaluation", "Standard errors apart", "Finding"]
    return [Table(caption=caption, head=head, rows=rows)] if rows else []


def _counts(title: str, side: SideSummary) -> list[str]:
    numbers = (side.speakers, side.enrolments, side.tests, side.trials, side.targets, side.nontargets, side.unknown)
    return [title, *map(count, numbers)]


def version_table(run: RunFacts) -> Table:
    """Return versions and times."""
    rows = [[name, version] for name, version in run.versions.items()]
    rows += [["Finished", run.time.replace("T", " ")], ["Took", f"{run.seconds:.1f} s"]]
    if run.resumed:
        rows.append(["Taken from an earlier run", ", ".join(run.resumed)])
    return Table(caption="Versions and time", head=["Part", "Version"], rows=rows, words=True)
