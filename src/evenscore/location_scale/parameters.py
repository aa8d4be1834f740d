"""The location-scale score model: its parameters and what they mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.model.parameters import ScoreModel
from evenscore.tables.arrays import frozen, same_array

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["LocationScaleModel"]

Array = np.ndarray
_LARGEST_LOADING = 20.0  # a member at u = 1 would have scores 22 000 times as wide; beyond that, densities overflow


@dataclass(frozen=True, eq=False, init=False)
class LocationScaleModel:
    """Score model whose hidden variables move the mean and the spread of the scores.

    u_i, v_j ~ N(0, 1),   x_i | u_i ~ N(u_i f, I_D),   y_j | v_j ~ N(v_j g, I_D)            (L1)
    s_ij | h ~ N(mu_h + alpha_h' x_i + beta_h' y_j, sigma_h^2 exp(c_h u_i + d_h v_j))       (L2)

    with h in (NONTARGET, TARGET) = (0, 1), the first axis of every array. With c = d = 0 it is the linear-Gaussian
    `ScoreModel`.

    Parameters
    ----------
    location
        The score model that says what moves the mean; its ``sigma2`` is the variance at u = v = 0.
    c, d
        Loadings of the enrolment's and of the test's log-scale, one number per class.
    f, g
        What the log-scales say about x and y, D numbers each; 0 by default. With them, whose scores are wider may also
        have higher target scores, as in scores that S-norm suits.

    Examples
    --------
    >>> location = ScoreModel(mu=[0.0, 4.0], alpha=[[1.0], [1.0]], beta=[[0.5], [0.5]], sigma2=[1.0, 1.0])
    >>> model = LocationScaleModel(location, c=[0.6, 0.4], d=[0.3, 0.0])
    >>> model.dim, model.is_linear
    (1, False)
    >>> model.spread_ratio.round(2)
    array([[1.35, 1.22],
           [1.16, 1.  ]])
    """

    location: ScoreModel
    c: Float[Array, "2"]
    d: Float[Array, "2"]
    f: Float[Array, " d"]
    g: Float[Array, " d"]

    def __init__(
        self,
        location: ScoreModel,
        *,
        c: npt.ArrayLike = (0.0, 0.0),
        d: npt.ArrayLike = (0.0, 0.0),
        f: npt.ArrayLike | None = None,
        g: npt.ArrayLike | None = None,
    ) -> None:
        if not isinstance(location, ScoreModel):
            raise InputError("the location part must be a ScoreModel")
        object.__setattr__(self, "location", location)
        for name, value in (("c", c), ("d", d)):
            array = np.array(value, dtype=np.float64)
            if array.shape != (2,) or not np.isfinite(array).all():
                raise InputError(f"{name} must be 2 finite numbers (non-target, target), but is {value!r}")
            if np.abs(array).max() > _LARGEST_LOADING:
                raise InputError(
                    f"{name} must lie between -{_LARGEST_LOADING:g} and {_LARGEST_LOADING:g}, but is {array.tolist()}; "
                    "members whose scores are all alike drive it there"
                )
            object.__setattr__(self, name, frozen(array))
        for name, loading in (("f", f), ("g", g)):
            array = np.array(np.zeros(location.dim) if loading is None else loading, dtype=np.float64)
            if array.shape != (location.dim,) or not np.isfinite(array).all():
                raise InputError(f"{name} must be D = {location.dim} finite numbers, but is {loading!r}")
            object.__setattr__(self, name, frozen(array))

    @property
    def dim(self) -> int:
        """Dimension D of the hidden variables that move the mean."""
        return self.location.dim

    @property
    def is_linear(self) -> bool:
        """Whether there are no scale effects, so that this is the linear-Gaussian score model."""
        return not (self.c.any() or self.d.any() or self.f.any() or self.g.any())

    @property
    def spread_ratio(self) -> Float[Array, "2 2"]:
        """How much wider the scores of a member at u = 1 are than at u = 0: enrolment, test (rows) and class."""
        ratio: Float[Array, "2 2"] = np.exp(np.abs(np.stack([self.c, self.d])) / 2)
        return ratio

    def rescaled(self, scale: float, shift: npt.ArrayLike = 0.0) -> LocationScaleModel:
        """Return the model of the scores ``scale * s + shift``; the shift may differ by class."""
        return LocationScaleModel(self.location.rescaled(scale, shift), c=self.c, d=self.d, f=self.f, g=self.g)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LocationScaleModel):
            return NotImplemented
        return self.location == other.location and all(
            same_array(getattr(self, name), getattr(other, name)) for name in ("c", "d", "f", "g")
        )

    __hash__ = None  # type: ignore[assignment]
