"""The LLR as a function of the raw score: two Gaussians make it a parabola, with a floor or a ceiling."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["LlrShape"]

Array = np.ndarray


@dataclass(frozen=True, kw_only=True, eq=False)
class LlrShape:
    """What a trial's raw score can do to its LLR when the score of class h is N(p_h, v_h).

    LLR(s)  = 1/2 log(v_0 / v_1) + (s - p_0)^2 / 2 v_0 - (s - p_1)^2 / 2 v_1        (S4)
    vertex  = p_0 - (p_1 - p_0) v_0 / (v_1 - v_0)                                   (S8)
    extreme = 1/2 log(v_0 / v_1) - (p_1 - p_0)^2 / 2 (v_1 - v_0)                    (S9)

    If target scores vary more (v_1 > v_0), the extreme is a floor: no score gives a lower LLR, and below the vertex a
    lower score gets a *higher* one. If non-target scores vary more it is a ceiling, and above the vertex a higher
    score gets a lower LLR. With equal variances the LLR is a straight line that has neither.

    `ScoreModel.llr_shape` gives that of a score model.

    Attributes
    ----------
    mean, variance
        p_h and v_h of the two classes (non-target, target); in a model with a cohort those of an average trial.
    spread
        How much p_1 - p_0 varies from trial to trial, a variance; 0 without a cohort, when all trials are alike.

    Examples
    --------
    >>> shape = LlrShape(mean=np.array([-2.0, 3.0]), variance=np.array([1.0, 2.0]))
    >>> shape.vertex, round(shape.floor, 2), shape.ceiling
    (-7.0, -12.85, inf)
    >>> [f"{share:.1e}" for share in shape.beyond]
    ['2.9e-07', '7.7e-13']
    """

    mean: Float[Array, "2"]
    variance: Float[Array, "2"]
    spread: float = 0.0

    @property
    def vertex(self) -> float | None:
        """The score at which the LLR turns; None if it is a straight line."""
        v0, v1 = self.variance.tolist()
        return None if v0 == v1 else float(self.mean[0]) - self._distance * v0 / (v1 - v0)  # (S8)

    @property
    def floor(self) -> float:
        """The lowest LLR that any score gets; -inf if there is none."""
        return self._extreme if self.variance[1] > self.variance[0] else -math.inf

    @property
    def ceiling(self) -> float:
        """The highest LLR that any score gets; inf if there is none."""
        return self._extreme if self.variance[1] < self.variance[0] else math.inf

    @property
    def beyond_is_below(self) -> bool:
        """Whether the scores beyond the vertex are those below it (else those above)."""
        return bool((self._distance >= 0) == (self.variance[1] > self.variance[0]))

    @property
    def beyond(self) -> Float[Array, "2"]:
        """Share of each class's trials beyond the vertex, if the scores are distributed as the model says."""
        v0, v1 = self.variance.tolist()
        shares = []
        for own, other in ((v0, v1), (v1, v0)):
            # The slope of the LLR at a score of this class is Gaussian, too; beyond the vertex it has the other sign.
            typical = abs(self._distance) / other
            varies = math.sqrt(own * (1 / v0 - 1 / v1) ** 2 + self.spread / other**2)
            shares.append(0.5 * math.erfc(typical / varies / math.sqrt(2)) if varies > 0 else 0.0)  # (S10)
        return np.array(shares)

    @property
    def _distance(self) -> float:
        return float(self.mean[1] - self.mean[0])

    @property
    def _extreme(self) -> float:
        v0, v1 = self.variance.tolist()
        return 0.5 * math.log(v0 / v1) - self._distance**2 / (2 * (v1 - v0))  # (S9)
