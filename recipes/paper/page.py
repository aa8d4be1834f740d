"""The page that puts our figures next to the paper's, and says what agrees and what does not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from recipes.paper.reference import PAPER_EER, PAPER_VARIANCES
from recipes.paper.systems import POOLED
from recipes.paper.tables import (
    as_markdown,
    eer_table,
    interval_table,
    metric_table,
    scale_table,
    set_table,
    shift_table,
    variance_table,
)

__all__ = ["agreement", "page"]

_INTRODUCTION = """\
# The paper's experiment

Swart and Brümmer, "A Generative Model for Score Normalization in Speaker Recognition" (Interspeech 2017), run again
with `python -m recipes.paper`: a text-dependent GMM-UBM recognizer with eigenchannel compensation, one score matrix
for each phrase, score models trained on the development matrices, the development sets as cohorts, same-phrase and
same-gender trials only.
"""

_ABOUT_METRICS = """\
EER, minDCF (p = 0.01) and minCllr are of the scores as each system gives them. "Cllr" is of the score models' own
log-likelihood ratios; other scores are none, so it has no meaning for them. "Cllr, calibrated" is after a logistic
calibration that was trained on the development trials, for all systems alike; each of these trials is without two
speakers in its cohort, whatever its label. LGSM 0D has no hidden variables: a Gaussian calibration without a norm. S
shift is S-norm without its division.
"""

_ABOUT_PER_GENDER = """\
Score models, cohorts and calibrations are trained for each gender apart, as in the paper; pooled figures are of all
these trials together.
"""

_ABOUT_JOINT = """\
The same trials, with score models, cohorts and calibrations from the development speakers of both genders together.
"""

_ABOUT_SCALES = """\
What the score model cannot follow is scale: how far the standard deviations of the cohort scores of evaluation
enrolments and tests differ, as the standard deviation of their logarithms, and which shares of its square come from the
phrase, from the enrolment or test itself, and from the cohort's few speakers (a jackknife over them); everybody is in
the cohort.
"""

_ABOUT_SETS = """\
Raw scores of the speakers that score models and calibrations are trained on, and of those that they are judged on:
"""

_ABOUT_SHIFT = """\
Evaluation takes are passed through a telephone band, noise or a codec, the recognizer, score models, cohorts and
calibrations stay as they were trained on the clean recordings. "mixed" draws one of the conditions, clean among them,
for every recording by chance.
"""


def page(results: Mapping[str, Any], figures: Sequence[str]) -> str:
    """Return the page in Markdown; ``figures`` are the names of the files that it may show."""
    several = len(results["splits"]) > 1
    over = f"mean ± standard deviation over {len(results['splits'])} splits of the speakers" if several else "one split"
    parts = [
        _INTRODUCTION,
        _facts(results),
        "## Equal error rates, ours and the paper's\n",
        f"Ours: {over}. The paper's are of RSR2015 part I.\n",
        as_markdown(eer_table(results["summary"]["per-gender"])),
        _shown(figures, "det_mean.svg", "DET curves on the paper's axes, mean over the splits"),
        _shown(figures, "det.svg", "DET curves of the first split on the paper's axes"),
        "## What agrees, and what does not\n",
        "\n".join(f"- {line}" for line in agreement(results)) + "\n",
        "## Where the variance of the scores comes from\n",
        f"Ours: {over}.\n",
        as_markdown(variance_table(results["variances"])),
        _ABOUT_SCALES,
        as_markdown(scale_table(results["scales"])),
        _ABOUT_SETS,
        as_markdown(set_table({" and ".join(results["options"]["recognizer"]["train_sets"]): results["sets"]})),
        "## All figures of merit\n",
        _ABOUT_METRICS,
        _ABOUT_PER_GENDER,
        as_markdown(metric_table(results["summary"]["per-gender"])),
        _ABOUT_JOINT,
        as_markdown(metric_table(results["summary"]["joint"])),
        _shown(figures, "bayes.svg", "Bayes error rates of the first split"),
        "## The first split, with intervals\n",
        "95 % intervals from draws of the evaluation speakers. The last column is the difference of the EER to that of "
        "raw scores, on the same draws.\n",
        _ABOUT_PER_GENDER,
        as_markdown(interval_table(results["splits"][0]["models"]["per-gender"])),
        _ABOUT_JOINT,
        as_markdown(interval_table(results["splits"][0]["models"]["joint"])),
        *_shift_section(results, figures),
    ]
    return "\n".join(part for part in parts if part)


def _shift_section(results: Mapping[str, Any], figures: Sequence[str]) -> list[str]:
    shifts = results["shifts"]
    if not shifts:
        return []
    splits = results["options"]["splits"]
    sides = {"test": "test takes", "both": "enrolment and test takes"}[results["options"]["shift_side"]]
    parts = ["## Dataset shift\n", _ABOUT_SHIFT, f"Shifted: the {sides} of the evaluation speakers; {splits} splits.\n"]
    for models, summary in shifts[0]["summary"].items():
        group = POOLED if POOLED in summary else next(iter(summary))
        parts.append(
            f"### Score models {'for each gender' if models == 'per-gender' else 'of both genders together'}\n"
        )
        parts += [as_markdown(shift_table(shifts, models, group, name)) for name in ("eer", "cllr_calibrated", "cllr")]
    parts.append(_shown(figures, "shift.svg", "EER and Cllr under the shifts, score models of both genders together"))
    return parts


def _facts(results: Mapping[str, Any]) -> str:
    corpus, options = results["corpus"], results["options"]
    lines = [
        f"- Corpus: {corpus['name']}, {corpus['n_recordings']} recordings of {corpus['n_phrases']} phrases, "
        f"{len(corpus['skipped'])} left out.",
        *(f"- {role.capitalize()} speakers of the first split: {_people(people)}." for role, people in _roles(results)),
        f"- Recognizer: {_recognizer(options['recognizer'])}; seed {options['seed']}.",
    ]
    return "\n".join(lines) + "\n"


def _recognizer(options: Mapping[str, Any]) -> str:
    kind = "one for each gender" if options["gender_dependent"] else "one for both genders"
    return (
        f"{options['n_gaussians']} Gaussians, {options['rank']} eigenchannels, relevance factor "
        f"{options['relevance']:g}, {kind}, trained on {' and '.join(options['train_sets'])} speakers"
    )


def _roles(results: Mapping[str, Any]) -> list[tuple[str, Mapping[str, int]]]:
    return list(results["splits"][0]["speakers"].items())


def _people(people: Mapping[str, int]) -> str:
    return ", ".join(f"{number} {kind}" for kind, number in people.items())


def agreement(results: Mapping[str, Any]) -> list[str]:
    """Return sentences that compare our figures with the paper's findings."""
    lines = []
    summary = results["summary"]["per-gender"]
    for group, known in PAPER_EER.items():
        if group not in summary:
            continue
        for system in known:
            if system != "raw":
                ours = summary[group][system]["eer"]["mean"] / max(summary[group]["raw"]["eer"]["mean"], 1e-12) - 1
                theirs = known[system] / known["raw"] - 1
                verdict = "agrees" if ours < 0 else "does not agree"
                lines.append(
                    f"{group}, {system}: the EER changes by {100 * ours:+.0f} % against raw (paper: "
                    f"{100 * theirs:+.0f} %): {verdict} in direction."
                )
    for group, models in results["variances"].items():
        shares = models.get("LGSM 2D", {})
        if group in PAPER_VARIANCES and shares:
            more = shares["share_tar"]["mean"] > shares["share_non"]["mean"]
            lines.append(
                f"{group}: the hidden variables explain {100 * shares['share_tar']['mean']:.0f} % of the variance of "
                f"target scores and {100 * shares['share_non']['mean']:.0f} % of that of non-target scores (paper: "
                f"{_share(group, 'tar'):.0f} % and {_share(group, 'non'):.0f} %): "
                f"{'more for targets, as in the paper' if more else 'not more for targets, unlike in the paper'}."
            )
    few = _fewest(results)
    if few < 10:
        lines.append(f"A set has as few as {few} speakers of one gender: those figures are weak, see the intervals.")
    return lines


def _share(group: str, of: str) -> float:
    known = PAPER_VARIANCES[group]
    return 100 * known[f"nu_{of}"] / (known[f"nu_{of}"] + known[f"sigma2_{of}"])


def _fewest(results: Mapping[str, Any]) -> int:
    return min(number for _, people in _roles(results) for number in people.values())


def _shown(figures: Sequence[str], name: str, text: str) -> str:
    return f"![{text}]({name})\n" if name in figures else ""
