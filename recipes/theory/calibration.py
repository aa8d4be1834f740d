"""Are the score model's log-likelihood ratios calibrated? On scores from the model, and on real ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from evenscore import (
    LabelledBlocks,
    LogisticCalibration,
    ScoreModel,
    ScoreModelNormalizer,
    evaluate,
    fit_norm,
    simulate,
    simulate_blocks,
)
from evenscore.metrics import bayes_error_curve
from recipes.theory.bounds import Bound, bound_of
from recipes.theory.ideal import GAUSSIAN, METHODS, REFERENCE, SCORE_MODEL, Trials, ignore

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["LOG_ODDS", "MODEL", "TRUE_MODEL", "Checked", "check_calibration", "model_scores"]

Progress = Callable[[str, float], None]

#: The variances that the paper reports for male speakers: the hidden variables explain 4 of 23 and 66 of 122.
MODEL = ScoreModel(
    mu=[-10.0, 15.0],
    alpha=[[1.43, 0.0], [4.6, 3.5]],
    beta=[[1.43, 0.0], [4.6, -3.4]],
    sigma2=[18.9, 55.7],
)
LOG_ODDS = np.linspace(-8.0, 6.0, 141)  #: operating points: logits of the prior
TRUE_MODEL = "LGSM, true parameters"
_CHECKED = {
    "raw, calibrated": METHODS[REFERENCE],
    "ZT-norm, calibrated": METHODS["zt"],
    "LGSM, D = 0": METHODS[GAUSSIAN],
    "LGSM": METHODS[SCORE_MODEL],
}
_FEWEST_ERRORS = 30  # operating points with fewer errors of either kind are left out of the worst gap
_PENALTY = 1e-6  # keeps the calibration finite where a small development set is free of errors


@dataclass(frozen=True, eq=False)
class Checked:
    """LLRs of several systems on the same trials.

    Attributes
    ----------
    systems
        The trials as each system scores them.
    bounds
        How far the LLRs of the score models among them go.
    """

    systems: Mapping[str, Trials]
    bounds: Mapping[str, Bound]

    def gap(self, name: str) -> Float[np.ndarray, " k"]:
        """Return the actual minus the minimum normalized Bayes error rate at `LOG_ODDS`; nan where errors are few.

        Where the best threshold makes fewer than 30 errors of either kind, both rates are too uncertain to compare.
        """
        trials = self.systems[name]
        curve = bayes_error_curve(trials.scores, trials.labels, log_odds=LOG_ODDS)
        return np.where(self._seen(name), curve.actual - curve.minimum, np.nan)

    def _seen(self, name: str) -> Float[np.ndarray, " k"]:
        """Tell at which operating points a decision by these LLRs makes enough misses and false alarms."""
        trials = self.systems[name]
        thresholds = -LOG_ODDS
        target, nontarget = (np.sort(trials.scores[trials.labels == label]) for label in (1, 0))
        misses = np.searchsorted(target, thresholds)
        alarms = nontarget.size - np.searchsorted(nontarget, thresholds)
        return np.asarray((misses >= _FEWEST_ERRORS) & (alarms >= _FEWEST_ERRORS))

    def summary(self) -> dict[str, dict[str, float]]:
        """Return for each system Cllr, min Cllr, and the worst gap with the log-odds where it is."""
        found = {}
        for name, trials in self.systems.items():
            values = evaluate(trials.scores, trials.labels)
            gap = self.gap(name)
            known = np.isfinite(gap)
            at = int(np.nanargmax(gap)) if known.any() else -1
            found[name] = {
                "cllr": values["cllr"],
                "min_cllr": values["min_cllr"],
                "worst_gap": float(gap[at]) if known.any() else float("nan"),
                "worst_at": float(LOG_ODDS[at]) if known.any() else float("nan"),
                "from": float(LOG_ODDS[known].min()) if known.any() else float("nan"),
                "to": float(LOG_ODDS[known].max()) if known.any() else float("nan"),
            }
        return found


def model_scores(
    *, seed: int = 1, speakers: int = 200, sets: int = 4
) -> tuple[list[LabelledBlocks], list[LabelledBlocks]]:
    """Draw scores from `MODEL`: development sets that are their own cohorts, and trials with cohorts of other speakers.

    Parameters
    ----------
    seed
        The same seed gives the same scores.
    speakers
        Of the trials of each set; a development set and a cohort have half as many.
    sets
        How many independent sets of trials there are.

    Examples
    --------
    >>> training, evaluation = model_scores(speakers=10, sets=3)
    >>> len(evaluation), training[0].blocks.trials.shape, evaluation[0].blocks.trials.shape
    (3, (10, 20), (20, 40))
    """
    training, evaluation = [], []
    for place in range(sets):
        named = {
            group: [[f"{group}{place}-{number}" for number in range(count) for _ in range(each)] for each in (2, 4)]
            for group, count in (("d", speakers // 2), ("e", speakers), ("c", speakers // 2))
        }
        numbers = np.random.SeedSequence((seed, place)).generate_state(2)
        training.append(LabelledBlocks.own_cohort(*simulate(MODEL, *named["d"], seed=int(numbers[0]))))
        blocks = simulate_blocks(MODEL, *named["e"], *named["c"], seed=int(numbers[1]))
        evaluation.append(LabelledBlocks(*blocks))
    return training, evaluation


def check_calibration(
    training: Sequence[LabelledBlocks],
    evaluation: Sequence[LabelledBlocks],
    *,
    truth: ScoreModel | None = None,
    progress: Progress = ignore,
) -> Checked:
    """Train on one side and return LLRs of the other: LGSM as it comes, raw and ZT-norm after a calibration.

    LGSM comes twice, with hidden variables and without (D = 0), which tells its norm from its Gaussians.

    Parameters
    ----------
    training, evaluation
        Labelled scores, one for each phrase or condition.
    truth
        The model that the scores were drawn from, if there is one: its LLRs are calibrated whatever comes.
    progress
        Called with a stage name and the fraction done.

    Examples
    --------
    >>> found = check_calibration(*model_scores(speakers=40, sets=1)).summary()
    >>> list(found)
    ['raw, calibrated', 'ZT-norm, calibrated', 'LGSM, D = 0', 'LGSM']
    """
    systems, bounds = {}, {}
    for place, (name, method) in enumerate(_CHECKED.items()):
        progress("calibration", place / len(_CHECKED))
        fitted = fit_norm(method.norm, training, **method.options)
        new = Trials.of(evaluation, [fitted.normalizer.normalize(part.blocks) for part in evaluation])
        if not fitted.is_llr:
            seen = Trials.of(training, fitted.training_scores)
            calibration = LogisticCalibration.fit(seen.scores, seen.labels, l2=_PENALTY)
            new = new.with_scores(calibration(new.scores))
        else:
            bounds[name] = bound_of(fitted.model, evaluation)
        systems[name] = new
    if truth is not None:
        normalizer = [ScoreModelNormalizer(truth, part.blocks).normalize(part.blocks) for part in evaluation]
        systems[TRUE_MODEL] = Trials.of(evaluation, normalizer)
        bounds[TRUE_MODEL] = bound_of(truth, evaluation)
    progress("calibration", 1.0)
    return Checked(systems, bounds)
