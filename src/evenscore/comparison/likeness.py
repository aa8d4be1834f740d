"""Whether the evaluation side is like the training side, as far as scores against the cohort tell.

Cohort scores are non-target scores on both sides, so no label of an evaluation trial is needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from evenscore.comparison.cohort_sums import CohortSums, Side, Speakers, Unit, cohort_sums
from evenscore.comparison.data import Sides
from evenscore.comparison.methods import listed
from evenscore.metrics.points import Points
from evenscore.progress import Progress, silent
from evenscore.tables import NONTARGET

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["Contrast", "SideLikeness", "likeness_of", "unlike_warnings"]

HIGH = 0.99  #: share of the training side's non-targets that are below a high score
#: Differences that matter: of means in standard deviations, of levels in the whole variance, of the others as factors.
MATTERS = {"mean": 0.25, "level": 0.15, "spread": 1.25, "high": 2.0}
_SURE = 3.0  # standard errors, if their own size were known
_SMALLEST = 1e-12  # variance


@dataclass(frozen=True, kw_only=True)
class Contrast:
    """One figure of both sides.

    Attributes
    ----------
    training, evaluation
        The figure of each side.
    z
        How many standard errors the two are apart; None if there are too few speakers to tell.
    unlike
        Whether they differ for sure, and by so much that it matters.
    """

    training: float
    evaluation: float
    z: float | None
    unlike: bool


@dataclass(frozen=True, kw_only=True)
class SideLikeness:
    """Cohort scores of the enrolments, or of the tests, of the training and of the evaluation side.

    Scores are in units of the training side's non-targets of the same condition: their mean is 0, their standard
    deviation 1.

    Attributes
    ----------
    side
        ``"enroll"`` or ``"test"``.
    mean
        Of all cohort scores.
    level
        The standard deviation of the enrolments' (tests') mean scores.
    spread
        The standard deviation of the scores of one enrolment (test).
    high
        The share of scores as high as the highest 1 % of the training side's non-targets.
    """

    side: Side
    mean: Contrast
    level: Contrast
    spread: Contrast
    high: Contrast

    @property
    def unlike(self) -> tuple[str, ...]:
        """The names of the figures in which the two sides differ."""
        return tuple(name for name in MATTERS if getattr(self, name).unlike)


def likeness_of(
    sides: Sides, points: Sequence[Points], *, client: Any = None, progress: Progress = silent
) -> tuple[SideLikeness, ...]:
    """Compare the cohort scores of both sides: those of the enrolments and those of the tests, if there are any.

    ``points`` are the training trials of each condition. Scores of a condition are measured in the unit of the training
    condition of that name; where there is none, in that of all training trials.
    """
    whole = _unit(points)
    named = zip(sides.training_trials.names, points, strict=True)
    units = {name: _unit([one]) for name, one in named if one.n_nontarget}
    parts = (sides.training, sides.training_trials), (sides.evaluation, sides.trials)
    found = []
    for side in ("enroll", "test"):
        if any(getattr(part.blocks, side) is None for part in (*sides.training, *sides.evaluation)):
            continue
        speakers = Speakers.of(sides, side)
        training, evaluation = (
            cohort_sums(
                blocks,
                trials,
                side,
                speakers,
                [units.get(name, whole) for name in trials.names],
                client=client,
                progress=progress,
            )
            for blocks, trials in parts
        )
        found.append(_compared(side, training, evaluation, speakers.populations))
    return tuple(found)


def _unit(points: Sequence[Points]) -> Unit:
    """Return mean, standard deviation and high scores of the non-targets."""
    pairs = [one.class_scores(NONTARGET) for one in points]
    scores, weights = (np.concatenate(each) for each in zip(*pairs, strict=True))
    mean = np.average(scores, weights=weights)
    std = np.sqrt(np.average(np.square(scores - mean), weights=weights)) or 1.0
    order = np.argsort(scores, kind="stable")
    below = np.cumsum(weights[order])
    high = scores[order][np.searchsorted(below, HIGH * below[-1])]
    return Unit(float(mean), float(std), float((high - mean) / std))


def _compared(side: Side, training: CohortSums, evaluation: CohortSums, populations: Iterable[range]) -> SideLikeness:
    """Leave out one group of speakers after the other, wherever they stand, to see how sure each difference is."""
    first, second = _figures(*training.total()), _figures(*evaluation.total())
    left_out = _differences(_figures(*training.without_each()), _figures(*evaluation.without_each()))
    difference = _differences(first, second)
    parts = [_jackknife(left_out[:, at.start : at.stop]) for at in populations if len(at)]
    variance = np.sum([part for part, _ in parts], axis=0)
    whole = np.where(np.isfinite(variance) & (variance > 0), variance, 1.0)
    freedom = 1 / np.maximum(np.sum([np.square(v / whole) / n for v, n in parts], axis=0), 1e-300)
    contrasts = {}
    for at, name in enumerate(MATTERS):
        values = float(first[at]), float(second[at])
        known = np.isfinite(variance[at]) and variance[at] > 0
        z = float(difference[at] / np.sqrt(variance[at])) if known else None
        sure = z is not None and abs(z) > _critical(float(freedom[at]))
        contrasts[name] = Contrast(
            training=values[0], evaluation=values[1], z=z, unlike=sure and _matters(name, *values)
        )
    return SideLikeness(side=side, **contrasts)


def _figures(pairs: Float[np.ndarray, "... 4"], rows: Float[np.ndarray, "... 3"]) -> Float[np.ndarray, "4 ..."]:
    """Return mean, level, spread and share of high scores from sums; NaN where there is nothing."""
    with np.errstate(invalid="ignore", divide="ignore"):
        _, mean, square, high = np.moveaxis(pairs / pairs[..., :1], -1, 0)
        count = rows[..., 0]
        _, middle, around = np.moveaxis(rows / rows[..., :1], -1, 0)
        level = (around - np.square(middle)) * count / (count - 1)
        spread = square - np.square(mean) - (around - np.square(middle))
    deviations = [np.sqrt(np.maximum(variance, _SMALLEST)) for variance in (level, spread)]
    return np.stack([mean, *deviations, high])


def _differences(
    training: Float[np.ndarray, "4 ..."], evaluation: Float[np.ndarray, "4 ..."]
) -> Float[np.ndarray, "4 ..."]:
    """Return differences on scales on which their standard errors hardly depend on the figures."""
    scales = (np.positive, np.log, np.log, np.sqrt)
    return np.stack([scale(b) - scale(a) for scale, a, b in zip(scales, training, evaluation, strict=True)])


def _jackknife(values: Float[np.ndarray, "4 g"]) -> tuple[Float[np.ndarray, " 4"], int]:
    """Return the variance that leaving out one group at a time tells, and its degrees of freedom."""
    size = values.shape[1]
    if size < 2:
        return np.full(len(values), np.nan), 1
    return (size - 1) * values.var(axis=1), size - 1


def _critical(freedom: float) -> float:
    """Return what Student's t exceeds as rarely as the normal distribution exceeds `_SURE` (Cornish and Fisher)."""
    x = _SURE
    return x + (x**3 + x) / (4 * freedom) + (5 * x**5 + 16 * x**3 + 3 * x) / (96 * freedom**2)


def _matters(name: str, training: float, evaluation: float) -> bool:
    """Tell whether a difference is large; of high scores only more of them matter."""
    if name == "mean":
        return abs(evaluation - training) > MATTERS[name]
    if name == "level":  # a small part of the variance may double
        return abs(evaluation**2 - training**2) > MATTERS[name]
    factor = evaluation / training if training > 0 else np.inf
    return bool(factor > MATTERS[name] or (name != "high" and factor < 1 / MATTERS[name]))


_WHO = {"enroll": ("its enrolments", "an enrolment"), "test": ("its tests", "a test")}


def unlike_warnings(found: Iterable[SideLikeness]) -> list[str]:
    """Return what to say about sides that are unlike: nothing, or one sentence."""
    parts = [f"cohort scores of {_WHO[one.side][0]} {listed(_sayings(one))}" for one in found if one.unlike]
    if not parts:
        return []
    return [
        f"the evaluation side is unlike the training side: {'; '.join(parts)}. What was learned and calibrated on the "
        "training side may not hold; train on scores of the same kind if you can"
    ]


def _sayings(one: SideLikeness) -> tuple[str, ...]:
    shift = one.mean.evaluation - one.mean.training
    of_one = _WHO[one.side][1]
    sayings = {
        "mean": f"lie {abs(shift):.2f} standard deviations {'higher' if shift > 0 else 'lower'}",
        "level": f"differ {_times(one.level)} as much in their level from {of_one} to the next",
        "spread": f"spread {_times(one.spread)} as widely within {of_one}",
        "high": f"are high in {_percent(one.high.evaluation)} instead of {_percent(one.high.training)} of all cases",
    }
    return tuple(sayings[name] for name in one.unlike)


def _times(contrast: Contrast) -> str:
    return f"{contrast.evaluation / contrast.training:.2g} times" if contrast.training > 0 else "many times"


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %"
