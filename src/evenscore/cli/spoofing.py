"""``evenscore evaluate --spoof``: trials of targets, of other speakers, and of spoofed targets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from evenscore.cli.labelled import LabelledScores, named
from evenscore.cli.output import print_json, print_lines, print_table
from evenscore.errors import InputError
from evenscore.metrics.spoofing import CLASSES, SPOOF_COSTS, SpoofCosts, evaluate_spoofing
from evenscore.tables import NONTARGET, TARGET, UNKNOWN

if TYPE_CHECKING:
    from evenscore.cli.evaluation import EvaluationOptions

__all__ = ["evaluate_spoofed", "print_spoofed", "spoof_costs"]

_WORDS = {label: word for word, label in zip(CLASSES, (TARGET, NONTARGET, UNKNOWN), strict=True)}
_RATES = (("SASV-EER %", "sasv_eer"), ("SV-EER %", "sv_eer"), ("SPF-EER %", "spf_eer"))
_COSTS = (("min a-DCF", "min_a_dcf"), ("act a-DCF", "act_a_dcf"))
_COUNTS = (("targets", "n_target"), ("non-targets", "n_nontarget"), ("spoofs", "n_spoof"))


def spoof_costs(text: str) -> SpoofCosts:
    """Return the priors and costs that ``--spoof`` spells: a name, or six numbers.

    Examples
    --------
    >>> spoof_costs("a-dcf").c_fa_spoof
    20.0
    """
    if text in SPOOF_COSTS:
        return SPOOF_COSTS[text]
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if len(numbers) != 6:
        raise InputError(
            f"--spoof is {text!r}, but must be {' or '.join(SPOOF_COSTS)}, or six numbers: the priors of targets, "
            "non-targets and spoofs, and the costs of a miss, of an accepted non-target and of an accepted spoof"
        )
    return SpoofCosts(*numbers)


def evaluate_spoofed(
    files: Sequence[LabelledScores], options: EvaluationOptions, costs: SpoofCosts
) -> list[dict[str, Any]]:
    """Return the figures of each file; trials whose class is neither target nor non-target are spoofs."""
    found = []
    for file in files:
        trials = file.trials()
        assert trials.labels is not None and trials.scores is not None  # noqa: S101, PT018
        classes = np.array([_WORDS[label] for label in trials.labels.tolist()])
        with named(file.path):
            figures = evaluate_spoofing(trials.scores, classes, costs=costs, eer_method=options.eer_method)
        found.append({"scores": file.path, "eer_method": options.eer_method, **figures.to_dict()})
    return found


def print_spoofed(found: Sequence[dict[str, Any]], costs: SpoofCosts, *, json: bool) -> None:
    """Print the figures for people or as JSON: of one system an object, of several a list in ``systems``."""
    if json:
        print_json(found[0] if len(found) == 1 else {"systems": list(found)}, spell_infinity=True)
        return
    header = ["", *(title for title, _ in (*_RATES, *_COSTS, *_COUNTS))]
    lines = [
        [
            one["scores"],
            *(f"{100 * one[name]:.2f}" for _, name in _RATES),
            *(f"{one[name]:.4f}" for _, name in _COSTS),
            *(str(one[name]) for _, name in _COUNTS),
        ]
        for one in found
    ]
    print_table(lines, header=header, numbers=True)
    priors = f"p_target {costs.p_target:g}, p_nontarget {costs.p_nontarget:g}, p_spoof {costs.p_spoof:g}"
    prices = f"c_miss {costs.c_miss:g}, c_fa {costs.c_fa:g}, c_fa_spoof {costs.c_fa_spoof:g}"
    print_lines([f"a-DCF at {priors}, {prices}; EER by {found[0]['eer_method']}"])
