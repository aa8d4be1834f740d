"""Training the location-scale model: it starts from the linear-Gaussian model and must explain the scores better."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from evenscore.errors import InputError
from evenscore.location_scale.em import (
    MatrixPosterior,
    bound,
    infer_location,
    infer_scales,
    initial,
    maximize_location,
    maximize_scale,
)
from evenscore.location_scale.parameters import LocationScaleModel
from evenscore.model.dense_scores import DenseScores, class_counts, dense_scores
from evenscore.model.fit import fit_score_model
from evenscore.model.statistics import TiledSource, TrainingData
from evenscore.progress import Progress, silent
from evenscore.tables import TrialList
from evenscore.tables.arrays import frozen

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["LocationScaleFit", "fit_location_scale", "location_scale_bound"]

Array = np.ndarray
_FIRST_LOADING = 0.4  # of all log-scales; at 0 the bound has a saddle
_LINEAR_TOLERANCE, _LINEAR_ITERATIONS = 1e-2, 1000  # of the start; its iterations are cheap and gain less each
_ROUNDING = 1e-13  # relative rounding error of the bound
_BROKEN = 1e-9  # a larger relative fall of the bound shows that rounding errors have taken over
_ALIKE = (
    "some enrolments or tests have scores that are all alike next to those of others, so that their spread falls to 0 "
    "in training; leave them or the others out, or train the score model (lgsm)"
)


@dataclass(frozen=True, kw_only=True, eq=False)
class LocationScaleFit:
    """A trained location-scale model and how the training went.

    Examples
    --------
    >>> from evenscore import ScoreModel, simulate
    >>> truth = ScoreModel(mu=[0.0, 3.0], alpha=[[0.5], [0.5]], beta=[[0.5], [0.5]], sigma2=[1.0, 1.0])
    >>> result = fit_location_scale(simulate(truth, ["a", "b", "c"] * 4, ["a", "b", "c"] * 5, seed=0), dim=1)
    >>> bool(result.bound[-1] >= result.linear_log_likelihood - 1e-6), result.model.dim
    (True, 1)
    """

    model: LocationScaleModel
    bound: Float[Array, " n"]  #: lower bound of the log-likelihood, before the first and after each iteration
    linear_log_likelihood: float  #: of the linear-Gaussian model that it started from
    converged: bool  #: whether an iteration gained less than the tolerance
    n_iter: int
    n_scores: tuple[int, int]  #: numbers of non-target and of target scores
    notes: tuple[str, ...] = field(default=())  #: what the user should know about this fit


def fit_location_scale(
    data: TrainingData,
    dim: int = 2,
    *,
    tol: float = 1e-5,
    max_iter: int = 300,
    progress: Progress = silent,
) -> LocationScaleFit:
    """Train the location-scale score model on labelled scores by variational EM.

    Unlike `fit_score_model`, every iteration passes over all scores.

    Parameters
    ----------
    data
        One or more pairs (scores, labels) or labelled trial lists, for instance one matrix per phrase.
    dim
        Dimension D of the hidden variables that move the mean; 2 is the general model.
    tol
        Stop when an iteration gains less than this, in nats per enrolment and test.
    max_iter
        Most iterations.
    progress
        Called with a stage name and the fraction done.

    Examples
    --------
    >>> import numpy as np
    >>> from evenscore import Labels
    >>> rng = np.random.default_rng(0)
    >>> speakers = [f"s{n % 10}" for n in range(40)]
    >>> labels = Labels.from_speakers(speakers, speakers)
    >>> spread = np.exp(0.5 * rng.normal(size=(40, 1)))  # some enrolments have wider scores than others
    >>> scores = 3.0 * labels.matrix + spread * rng.normal(size=(40, 40))
    >>> result = fit_location_scale([(scores, labels)], dim=1)
    >>> bool((np.diff(result.bound) >= 0).all())
    True
    >>> c, d = result.model.c[0], result.model.d[0]  # of the enrolments, of the tests
    >>> bool(c > 0.5 > d)
    True
    """
    if not tol >= 0 or max_iter < 1:
        raise InputError(f"tol is {tol} and max_iter is {max_iter}, but tol must not be negative and max_iter positive")
    data = data if isinstance(data, TrialList | TiledSource | tuple) else list(data)
    parts, center, scale = standardized(dense_scores(data))
    linear = fit_score_model(data, dim, tol=_LINEAR_TOLERANCE * tol, max_iter=_LINEAR_ITERATIONS)
    count = class_counts(parts)
    start = LocationScaleModel(linear.model.rescaled(1 / scale, -center / scale))
    units = float(count.sum()) * np.log(scale)
    states = [infer_location(start, initial(part, start.dim)) for part in parts]
    linear_bound = bound(start, states)
    loading = [_FIRST_LOADING, _FIRST_LOADING]
    model = LocationScaleModel(start.location, c=loading, d=loading)
    states = [infer_scales(model, state) for state in states]
    trace = [bound(model, states)]
    members = sum(sum(part.scores.shape) for part in parts)
    enough = tol * members
    converged = False
    for number in range(max_iter):
        progress("fit", number / max_iter)
        try:
            model, states = _iterate(model, states)
            trace.append(bound(model, states))
        except (InputError, np.linalg.LinAlgError):  # loadings, or precisions, beyond all measure
            raise InputError(_ALIKE) from None
        if trace[-1] < trace[-2] - max(enough, _BROKEN * abs(trace[-2])):
            raise InputError(_ALIKE)
        if trace[-1] - trace[-2] <= max(enough, _ROUNDING * abs(trace[-1])):
            converged = True
            break
    progress("fit", 1.0)
    notes = [note for note in linear.notes if not note.startswith("not converged")]
    if not converged:
        notes.append(f"not converged after {max_iter} iterations; raise max_iter or tol")
    cost = (2 + model.dim) * np.log(members)  # of c, d, f and g, by the Bayesian information criterion
    if trace[-1] <= linear_bound + cost:
        model = start
        notes.append("hidden log-scales explain the scores no better, so the linear-Gaussian score model was kept")
    return LocationScaleFit(
        model=_signed(model.rescaled(scale, center)),
        bound=frozen(np.array(trace) - units),
        linear_log_likelihood=float(linear_bound - units),
        converged=converged,
        n_iter=len(trace) - 1,
        n_scores=(int(count[0]), int(count[1])),
        notes=tuple(notes),
    )


def location_scale_bound(model: LocationScaleModel, data: TrainingData, *, n_iter: int = 50) -> float:
    """Return the lower bound of the log-likelihood of labelled scores; exact if the model has no scale effects.

    Examples
    --------
    >>> import numpy as np
    >>> from evenscore import Labels, ScoreModel
    >>> linear = ScoreModel(mu=[0.0, 2.0], alpha=[[0.5], [0.5]], beta=[[0.1], [0.3]], sigma2=[1.0, 1.0])
    >>> labels = Labels.from_speakers(["a", "b"], ["a", "b"])
    >>> round(location_scale_bound(LocationScaleModel(linear), [(np.array([[2.5, 0.1], [-0.4, 1.5]]), labels)]), 6)
    -4.38955
    """
    parts, center, scale = standardized(dense_scores(data))
    inner = model.rescaled(1 / scale, -center / scale)
    states = [settle(inner, part, n_iter=n_iter) for part in parts]
    return float(bound(inner, states) - class_counts(parts).sum() * np.log(scale))


def settle(model: LocationScaleModel, part: DenseScores, *, n_iter: int = 50, tol: float = 1e-8) -> MatrixPosterior:
    """Infer the hidden variables of one matrix with fixed parameters, until the bound rests."""
    try:
        state = infer_location(model, initial(part, model.dim))
        value = bound(model, [state])
        for _ in range(0 if model.is_linear else n_iter):
            state = infer_location(model, infer_scales(model, state))
            before, value = value, bound(model, [state])
            if value - before <= tol * sum(part.scores.shape):
                break
    except np.linalg.LinAlgError:
        raise InputError(
            "the scores of the cohort, or of most of its members, are all alike next to the scores that the model was "
            "trained on, so that their spread cannot be inferred; check them, or leave them out"
        ) from None
    return state


def standardized(parts: list[DenseScores]) -> tuple[list[DenseScores], float, float]:
    """Return all scores with mean 0 and standard deviation 1, and the centre and scale that were taken out."""
    count = sum(int(part.present.sum()) for part in parts)
    if not count:
        raise InputError("no score has a known label; check that labels and scores belong together")
    center = sum(float(part.scores.sum()) for part in parts) / count
    squares = sum(float(((part.scores - center) ** 2)[part.present].sum()) for part in parts) / count
    scale = float(np.sqrt(squares)) or 1.0
    return [part.standardized(center, scale) for part in parts], center, scale


def _iterate(
    model: LocationScaleModel, states: list[MatrixPosterior]
) -> tuple[LocationScaleModel, list[MatrixPosterior]]:
    """Do one iteration; each line raises the bound or leaves it."""
    states = [infer_location(model, state) for state in states]
    model, states = maximize_location(model, states)
    for _ in range(2):  # cheap next to the posterior of x and y
        states = [infer_scales(model, state) for state in states]
        model, states = maximize_scale(model, states)
    return model, states


def _signed(model: LocationScaleModel) -> LocationScaleModel:
    """Turn the log-scales so that a positive one means wider non-target scores."""
    u, v = (-1.0 if side[0] < 0 else 1.0 for side in (model.c, model.d))
    return LocationScaleModel(model.location, c=u * model.c, d=v * model.d, f=u * model.f, g=v * model.g)
