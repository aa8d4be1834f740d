"""Figures of merit of the paper's systems: with intervals for one split of the speakers, with spread for several."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from evenscore import TrialList, bootstrap, eer, evaluate, paired_test
from recipes.paper.genders import GENDER_NAMES, genders_of, within_gender
from recipes.paper.systems import Groups, Scored, TrainedSystem

if TYPE_CHECKING:
    from evenscore.files import ScoreSet

__all__ = ["METRICS", "measure_groups", "raw_by_set", "spread", "summarize_metrics", "variances"]

#: What is reported of every system; those with "_calibrated" are of the scores after a logistic calibration.
METRICS = ("eer", "min_dcf", "min_cllr", "cllr", "cllr_calibrated", "act_dcf", "act_dcf_calibrated")

P_TARGET = 0.01  #: prior of the detection costs

_CLASSES = ("mean_non", "mean_tar")  # in the order of the labels

Progress = Callable[[str, float], None]


def measure_groups(
    groups: Groups, *, replicates: int = 1000, seed: int = 0, progress: Progress | None = None
) -> dict[str, dict[str, dict[str, Any]]]:
    """Return metrics, their 95 % intervals over speakers, and the comparison with raw, by group and system.

    ``cllr`` and ``act_dcf`` are None for scores that are no log-likelihood ratios. With ``replicates=0`` there are no
    intervals.
    """
    found: dict[str, dict[str, dict[str, Any]]] = {}
    number, done = sum(map(len, groups.values())), 0
    for group, systems in groups.items():
        found[group] = {}
        for name, scored in systems.items():
            if progress is not None:
                progress("evaluation", done / number)
            found[group][name] = _measured(scored, replicates, seed)
            if replicates and name != "raw" and "raw" in systems:
                found[group][name]["against_raw"] = _against(scored, systems["raw"], replicates, seed)
            done += 1
    return found


def _measured(scored: Scored, replicates: int, seed: int) -> dict[str, Any]:
    own, calibrated = (evaluate(trials, points=P_TARGET) for trials in (scored.trials, scored.calibrated))
    figures = _figures(own, calibrated, scored.is_llr)
    if replicates:
        ends = [_ends(trials, scored.speakers, replicates, seed) for trials in (scored.trials, scored.calibrated)]
        figures["intervals"] = _figures(ends[0], ends[1], scored.is_llr)
    counts = {name: own[name] for name in ("n_target", "n_nontarget")}
    return figures | counts | {"n_speakers": len(set(scored.speakers.values()))}


def _ends(trials: TrialList, speakers: Mapping[str, str], replicates: int, seed: int) -> dict[str, Any]:
    return bootstrap(
        trials, enroll_speakers=speakers, test_speakers=speakers, replicates=replicates, points=P_TARGET, seed=seed
    ).to_dict()


def _figures(own: Mapping[str, Any], calibrated: Mapping[str, Any], is_llr: bool) -> dict[str, Any]:
    figures = {name: own[name] for name in ("eer", "min_dcf", "min_cllr")}
    for name in ("cllr", "act_dcf"):
        figures[name] = own[name] if is_llr else None
        figures[f"{name}_calibrated"] = calibrated[name]
    return figures


def _against(scored: Scored, raw: Scored, replicates: int, seed: int) -> dict[str, Any]:
    """Return by how much the EER differs from that of raw scores, on the same draws of speakers."""
    test = paired_test(
        scored.trials,
        raw.trials,
        enroll_speakers=scored.speakers,
        test_speakers=scored.speakers,
        metric="eer",
        replicates=replicates,
        seed=seed,
    )
    return {
        "difference": test.difference,
        "interval": [test.interval.low, test.interval.high],
        "p_value": test.p_value,
    }


def variances(trained: Mapping[str, Mapping[str, TrainedSystem]]) -> dict[str, dict[str, dict[str, float]]]:
    """Return the paper's variance table: by gender and score model, sigma^2 and nu of each class."""
    table: dict[str, dict[str, dict[str, float]]] = {}
    for kind, systems in trained.items():
        models = {name: system.model for name, system in systems.items() if system.model is not None}
        table[GENDER_NAMES.get(kind, kind)] = {
            name: {
                "sigma2_non": float(model.variances.sigma2[0]),
                "nu_non": float(model.variances.nu[0]),
                "sigma2_tar": float(model.variances.sigma2[1]),
                "nu_tar": float(model.variances.nu[1]),
                "share_non": float(model.variances.share[0]),
                "share_tar": float(model.variances.share[1]),
            }
            for name, model in models.items()
        }
    return table


def raw_by_set(scores: ScoreSet) -> dict[str, dict[str, dict[str, float]]]:
    """Return error rate and mean scores of the raw trials within genders, of development and evaluation speakers.

    Where they differ, what is trained on development scores does not hold for new speakers.
    """
    sides = {"development": scores.development, "evaluation": scores.evaluation}
    kinds = genders_of(scores.gender, sides)
    found = {}
    for side, parts in sides.items():
        some = [within_gender(part, scores.gender, kind) for part in parts for kind in kinds]
        trials = TrialList.concat([part.trials for part in some if part is not None])
        values = np.asarray(trials.scores)
        means = {of: float(values[trials.labels == label].mean()) for label, of in enumerate(_CLASSES)}
        found[side] = {"eer": float(eer(trials)), **means}
    return {"raw": found}


def spread(values: Sequence[float]) -> dict[str, float]:
    """Return mean, standard deviation, least and greatest of a figure over the splits.

    Examples
    --------
    >>> spread([1.0, 2.0, 3.0])
    {'mean': 2.0, 'std': 1.0, 'min': 1.0, 'max': 3.0}
    """
    array = np.asarray(values, dtype=np.float64)
    std = float(array.std(ddof=1)) if array.size > 1 else 0.0
    return {"mean": float(array.mean()), "std": std, "min": float(array.min()), "max": float(array.max())}


def summarize_metrics(runs: Sequence[Mapping[str, Mapping[str, Mapping[str, Any]]]]) -> dict[str, Any]:
    """Return `spread` of every number that all runs have, by group, system and metric."""
    return {
        group: {
            system: {
                name: spread([run[group][system][name] for run in runs])
                for name, value in figures.items()
                if isinstance(value, int | float)
            }
            for system, figures in systems.items()
        }
        for group, systems in runs[0].items()
    }
