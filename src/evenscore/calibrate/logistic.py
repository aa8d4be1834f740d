"""Calibration and fusion by prior-weighted logistic regression."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from evenscore.calibrate.calibration import Calibration, as_input, finite
from evenscore.calibrate.logistic_regression import Design, minimize
from evenscore.errors import InputError
from evenscore.metrics.points import Points
from evenscore.metrics.trials import ScoresLike, Trials, as_labels, is_lazy, points_of, scores_and_labels
from evenscore.tables import NONTARGET, TARGET, ScoreTable
from evenscore.threads import one_thread_per_product

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["LogisticCalibration", "told_apart", "trials_of"]

_TOLD = 1e-4  # least share of a measure's variance that the inputs before it do not explain: rounded sums have less


@dataclass(frozen=True, kw_only=True, eq=False)
class LogisticCalibration(Calibration):
    """An affine map of scores and quality measures, fitted by logistic regression.

    llr = offset + weights . scores + quality_weights . quality                                     (L1)

    minimizes p mean_targets log(1 + exp(-llr - logit p)) + (1 - p) mean_nontargets log(1 + exp(llr + logit p))
    + l2 / 2 |standardized weights|^2                                                               (L2)

    With p_target = 0.5 and no penalty, this is the Cllr (times log 2). Several systems at once are a fusion.

    Attributes
    ----------
    weights
        One per system.
    quality_weights
        One per quality measure; none by default.
    offset
        LLR where all inputs are 0.
    p_target, l2
        How it was fitted.

    Examples
    --------
    >>> calibration = LogisticCalibration.fit([-2.0, -1.0, 0.0, 0.5, 2.0], [0, 0, 1, 0, 1])
    >>> calibration([0.0, 1.0]).round(4)
    array([-0.1092,  1.5289])
    """

    kind: ClassVar[str] = "logistic"

    weights: Float[np.ndarray, " k"]
    quality_weights: Float[np.ndarray, " q"]
    offset: float
    p_target: float = 0.5
    l2: float = 0.0

    def __post_init__(self) -> None:
        for name in ("weights", "quality_weights"):
            values = finite(name, getattr(self, name))
            if values.ndim != 1 or (name == "weights" and not values.size):
                raise InputError(f"{name} has shape {values.shape}, but must be a list with one number per input")
            object.__setattr__(self, name, values)
        object.__setattr__(self, "offset", float(finite("offset", self.offset, ())))
        _check_options(self.p_target, self.l2)

    @classmethod
    @one_thread_per_product()
    def fit(
        cls,
        scores: ScoresLike,
        labels: npt.ArrayLike | None = None,
        *,
        quality: npt.ArrayLike | None = None,
        p_target: float = 0.5,
        l2: float = 0.0,
    ) -> LogisticCalibration:
        """Fit by Newton's method.

        Parameters
        ----------
        scores, labels
            One finite score per trial, or n x k scores of k systems; labels as in `evenscore.metrics.validate`. Or a
            `ScoreSummary` of one system's scores: each bin is then one score, the mean of its class in it.
        quality
            n x q finite quality measures, such as the logarithm of the duration, or n values of one measure.
        p_target
            Prior at which the cross-entropy is minimized: where the LLRs should be best.
        l2
            Penalty on the weights of the inputs, each divided by its standard deviation; not on the offset.

        Raises
        ------
        InputError
            If a system's scores are constant or a weighted sum of the others', or if the classes can be separated
            without error, so that without a penalty the weights would be infinite.

        Notes
        -----
        A quality measure that is constant gets the weight 0; so does one that is a weighted sum of the inputs before
        it, unless there is a penalty (`unused_measures`).
        """
        _check_options(p_target, l2)
        found = _inputs(scores, labels, quality)
        found.check_classes()
        found.refuse_infinite()
        sides, counts = zip(*(found.class_scores(label) for label in (NONTARGET, TARGET)), strict=True)
        k = found.n_systems
        nontarget, target = (side.reshape(len(side), -1) for side in sides)
        kept, slopes = _informative(nontarget, target, k, l2), np.zeros(nontarget.shape[1])
        design = Design.of(nontarget[:, kept], target[:, kept], k, counts)
        slopes[kept], intercept = minimize(design, p_target=p_target, l2=l2)
        return cls(weights=slopes[:k], quality_weights=slopes[k:], offset=intercept, p_target=p_target, l2=l2)

    @property
    def unused_measures(self) -> list[int]:
        """Places of the quality measures that were left out of the fit, as the inputs before them tell all they do."""
        return np.flatnonzero(self.quality_weights == 0).tolist()

    def __call__(self, scores: npt.ArrayLike, quality: npt.ArrayLike | None = None) -> npt.NDArray[np.float64]:
        """Return the LLRs; NaN stays NaN.

        Parameters
        ----------
        scores
            Of one system: scores of any shape. Of k systems: the last axis has the k scores of a trial.
        quality
            Where quality measures were used in `fit`: one more axis, the last, with the q measures of a trial; with
            one measure that axis may be left out.
        """
        values = as_input(scores)
        if self.weights.size > 1:
            if values.ndim == 0 or values.shape[-1] != self.weights.size:
                raise InputError(
                    f"scores have shape {values.shape}, but the last axis must hold {self.weights.size} systems"
                )
            llr = values @ self.weights + self.offset
        else:
            llr = values * self.weights[0] + self.offset
        if (quality is not None) != (self.quality_weights.size > 0):
            raise InputError(f"this calibration uses {self.quality_weights.size} quality measures; give as many")
        if quality is None:
            return np.asarray(llr)
        measures = as_input(quality)
        if self.quality_weights.size == 1 and measures.shape == llr.shape:
            measures = measures[..., None]
        if measures.shape != (*llr.shape, self.quality_weights.size):
            raise InputError(
                f"quality has shape {measures.shape}, but must have shape {(*llr.shape, self.quality_weights.size)}"
            )
        return np.asarray(llr + measures @ self.quality_weights)


def _informative(
    nontarget: npt.NDArray[Any], target: npt.NDArray[Any], n_systems: int, l2: float
) -> slice | npt.NDArray[np.intp]:
    """Return which inputs are fitted: all systems, and the measures that are not told by the inputs before them."""
    if nontarget.shape[1] == n_systems:
        return slice(None)
    both = np.concatenate((nontarget, target)).astype(np.float64)
    both -= both.mean(axis=0)
    spread = np.sqrt(np.einsum("nd,nd->d", both, both))
    varies = spread > 1e-12 * np.sqrt(len(both)) * np.abs(np.concatenate((nontarget, target))).max(axis=0)
    both /= np.where(varies, spread, 1.0)
    return told_apart(both.T @ both * np.outer(varies, varies), n_systems, l2)


def told_apart(covariance: Float[np.ndarray, "d d"], n_systems: int, l2: float) -> npt.NDArray[np.intp]:
    """Return which inputs are fitted, given how they go together; one that does not vary goes with none, nor itself."""
    kept = list(range(n_systems))
    for place in range(n_systems, len(covariance)):
        known = covariance[np.ix_(kept, [place])]
        told = known.T @ np.linalg.lstsq(covariance[np.ix_(kept, kept)], known, rcond=None)[0]
        own = covariance[place, place]
        if own > 0 and (l2 > 0 or told.item() < (1 - _TOLD) * own):
            kept.append(place)
    return np.array(kept)


def _check_options(p_target: float, l2: float) -> None:
    if not 0 < p_target < 1:
        raise InputError(f"p_target is {p_target}, but must lie between 0 and 1")
    if not 0 <= l2 < np.inf:
        raise InputError(f"l2 is {l2}, but must be finite and at least 0")


def _inputs(scores: ScoresLike, labels: npt.ArrayLike | None, quality: npt.ArrayLike | None) -> Points:
    """Return the points of one system, or trials with a column for each system and each quality measure."""
    if isinstance(scores, Trials) and labels is None and quality is None:
        return scores
    if isinstance(scores, Points) or is_lazy(scores):
        if quality is not None:
            raise InputError("quality measures are of trials in memory, one row for each; leave out quality")
        return points_of(scores, labels)
    return trials_of(scores, labels, quality)


def trials_of(
    scores: npt.ArrayLike | ScoreTable, labels: npt.ArrayLike | None, quality: npt.ArrayLike | None = None
) -> Trials:
    """Return trials with a column for each system and each quality measure; the scores of one system as they are."""
    given, key = scores_and_labels(scores, labels)
    values = _numbers(given, "scores")
    trials = Trials(values=values, key=as_labels(key, len(values)), n_systems=values[:1].size or 1)
    if quality is None:
        return trials
    measures = _numbers(quality, "quality")
    if len(measures) != len(values):
        raise InputError(f"quality has {len(measures)} rows, but there are {len(values)} trials")
    return replace(trials, values=np.column_stack((values, measures)))


def _numbers(values: npt.ArrayLike, what: str) -> npt.NDArray[Any]:
    array = np.asarray(values)
    if array.dtype.kind not in "fiu" or array.ndim not in (1, 2) or array.shape[-1:] == (0,) != array.shape:
        raise InputError(f"{what} must be n numbers or n x k numbers, but is {array.dtype} of shape {array.shape}")
    return array
