"""Training the score model by maximum likelihood, and the likelihood of labelled scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from evenscore.data.blocks import LabelledBlocks
from evenscore.errors import InputError
from evenscore.model.em import Run, run_bfgs, run_em
from evenscore.model.parameters import ScoreModel
from evenscore.model.posterior import expect
from evenscore.model.residuals import fit_residuals
from evenscore.model.statistics import Statistics, collect
from evenscore.model.sums import labelled_parts, part_sums
from evenscore.parallel import Progress, one_blas_thread

__all__ = ["FitResult", "fit_lgsm", "fit_score_model", "log_likelihood"]

_EM_FIRST = 80  # iterations of EM before BFGS
_UNDETERMINED = "no {0} has two target scores: the split between the {0}'s effect on targets and sigma2 is not known"


@dataclass(frozen=True, kw_only=True, eq=False)
class FitResult:
    """A trained score model and how the training went."""

    model: ScoreModel
    log_likelihood: npt.NDArray[np.float64]  #: of the scores, before the first and after each iteration
    converged: bool  #: whether an iteration gained less than the tolerance
    n_iter: int  #: iterations from the best start
    n_scores: tuple[int, int]  #: numbers of non-target and of target scores
    undetermined: tuple[str, ...] = ()  #: splits of variance that the data do not determine
    notes: tuple[str, ...] = ()  #: what the user should know about this fit, with those


def log_likelihood(model: ScoreModel, data: Any, labels: Any = None) -> float:
    """Return the log-likelihood of labelled scores, the hidden variables integrated out (the paper's marginal).

    The data are labelled scores as for `fit_score_model`; each part has hidden variables of its own.

    Examples
    --------
    >>> model = ScoreModel(mu=[0.0, 2.0], alpha=[[0.5], [0.5]], beta=[[0.1], [0.3]], sigma2=[1.0, 1.0])
    >>> round(log_likelihood(model, np.array([[2.5, 0.1], [-0.4, 1.5]]), np.eye(2)), 6)
    -4.38955
    """
    with one_blas_thread():
        stats = collect([part_sums(*part) for part in labelled_parts(data, labels)])
        standard = (model.T if stats.transposed else model).rescaled(1 / stats.scale, -stats.center / stats.scale)
        return expect(standard, stats).log_likelihood - stats.log_units


def fit_score_model(
    scores: Any,
    labels: Any = None,
    dim: int = 2,
    *,
    method: Literal["bfgs", "em"] = "bfgs",
    residuals: Literal["gaussian", "hyperbolic"] = "hyperbolic",
    tol: float = 1e-10,
    max_iter: int = 5000,
    progress: Progress | None = None,
) -> FitResult:
    """Train the score model on labelled scores by maximum likelihood.

    Parameters
    ----------
    scores, labels
        Scores with labels: a matrix (array, dask array or `ScoreMatrix`) with `Labels` or a matrix of 1 (target), 0
        (non-target) and -1 (unknown); or a `TrialList`. Or, as ``scores`` alone, a labelled `TrialList`, a pair
        (scores, labels), or a list of pairs, for instance one per phrase: hidden variables are fresh in each, and
        parameters are shared. NaN is a missing score.
    dim
        Dimension D of the hidden variables. 0 is Gaussian calibration, 2 is the general model, 1 forces the effects
        on targets and non-targets to be proportional. More than 2 has the likelihood of 2.
    method
        "em" is the paper's. "bfgs" begins with 80 iterations of it and goes on with BFGS, which finds the same maximum
        where EM needs thousands of iterations.
    residuals
        Density of what the model does not predict: "gaussian" is the paper's; "hyperbolic" fits heavier and skewed
        tails (`ResidualDensities`) to the residuals of training trials whose own speakers are left out. It is the
        default because Gaussian LLRs are not calibrated: see the figures in `residuals.py`.
    tol, max_iter
        Stop when an iteration gains less than this, in nats per hidden variable, or after so many.
    progress
        Called with the number of iterations and the largest possible one.

    Examples
    --------
    >>> from evenscore import simulate
    >>> truth = ScoreModel(mu=[0.0, 3.0], alpha=[[0.5], [0.5]], beta=[[0.5], [0.5]], sigma2=[1.0, 1.0])
    >>> result = fit_score_model(*simulate(truth, ["a", "b", "c"] * 4, ["a", "b", "c"] * 5, seed=0), dim=1)
    >>> result.n_scores, result.converged, result.model.dim
    ((120, 60), True, 1)
    """
    import scipy.linalg  # noqa: F401  # before BLAS is held to one thread: SciPy has a BLAS of its own

    _check_options(dim, method, residuals, tol, max_iter)
    with one_blas_thread():
        parts = labelled_parts(scores, labels)
        stats = collect([part_sums(*part) for part in parts])
        _check_scores(stats)
        first = [run_em(Run(model, []), stats, tol, min(max_iter, _EM_FIRST)) for model in _starts(stats, min(dim, 2))]
        best = max(first, key=lambda run: run.trace[-1])
        left = max_iter - len(best.trace) + 1
        if not best.converged and left:
            tell = None if progress is None else lambda done: progress(done, max_iter)
            best = (run_bfgs if method == "bfgs" else run_em)(best, stats, tol, left, tell)
        model = best.model.rescaled(stats.scale, stats.center)
        model = model.T if stats.transposed else model
        if dim > 2:
            more = np.zeros((2, dim - 2))
            model = replace(model, alpha=np.hstack([model.alpha, more]), beta=np.hstack([model.beta, more]))
        if residuals == "hyperbolic" and dim:
            model = replace(model, residuals=fit_residuals(model, parts))
    most = zip(("test", "enrolment") if stats.transposed else ("enrolment", "test"), stats.most_targets, strict=True)
    undetermined = tuple(_UNDETERMINED.format(side) for side, number in most if number < 2 and dim)
    return FitResult(
        model=model,
        log_likelihood=np.array(best.trace) - stats.log_units,
        converged=best.converged,
        n_iter=len(best.trace) - 1,
        n_scores=(int(stats.count[0]), int(stats.count[1])),
        undetermined=undetermined,
        notes=(*_notes(best, model), *undetermined),
    )


def fit_lgsm(training: Sequence[LabelledBlocks], *, dim: int = 2, **options: Any) -> ScoreModel:
    """Train a score model on the trials of blocks, such as phrases, that share it: the trainer of the norm "lgsm".

    Options are those of `fit_score_model`: method, residuals, tol, max_iter. Cohort scores are not used.
    """
    return fit_score_model([(part.blocks.trials, part.labels) for part in training], dim=dim, **options).model


def _starts(stats: Statistics, dim: int) -> list[ScoreModel]:
    """Return starting points. D = 1 has poor local optima, so it starts from directions of the D = 2 solution."""
    variance = stats.squares / stats.count
    if dim == 0:
        return [ScoreModel(mu=np.zeros(2), alpha=np.zeros((2, 0)), beta=np.zeros((2, 0)), sigma2=variance)]
    root = np.linalg.cholesky(0.25 * np.sqrt(np.outer(variance, variance)) * [[1, 0.5], [0.5, 1]])
    general = ScoreModel(mu=np.zeros(2), alpha=root, beta=root, sigma2=0.5 * variance)
    if dim == 2:
        return [general]
    solved, models = run_em(Run(general, []), stats, 0.0, _EM_FIRST).model, []
    table = solved.variances
    sides = table.enroll_covariance, table.test_covariance
    leading = [np.linalg.eigh(side)[1][:, -1] for side in sides]
    for first, second in (leading, np.eye(2)[[0, 0]], np.eye(2)[[1, 1]]):  # or the effects on one class
        a = sides[0] @ first[:, None] / np.sqrt(max(first @ sides[0] @ first, 1e-12))
        b = sides[1] @ second[:, None] / np.sqrt(max(second @ sides[1] @ second, 1e-12))
        lost = np.maximum(table.nu - (a**2 + b**2).sum(1), 0.0)
        models.append(ScoreModel(mu=solved.mu, alpha=a, beta=b, sigma2=solved.sigma2 + lost))
    return models


def _notes(run: Run, model: ScoreModel) -> list[str]:
    notes = []
    if not run.converged:
        notes.append(f"not converged after {len(run.trace) - 1} iterations; raise max_iter or tol")
    if (model.variances.share > 1 - 1e-6).any():
        notes.append("the hidden variables explain a class completely; there are too few scores for this dimension")
    vertex, _, beyond = model.llr_bound()
    if model.residuals is None and max(beyond) > 0.01:
        shares = f"{beyond[0]:.1%} of the non-targets and {beyond[1]:.1%} of the targets"
        notes.append(f"the LLR turns at a score near {vertex:.3g}, beyond which {shares} lie")
    return notes


def _check_options(dim: int, method: str, residuals: str, tol: float, max_iter: int) -> None:
    if method not in ("bfgs", "em"):
        raise InputError(f"method is {method!r}, but must be 'bfgs' or 'em'")
    if residuals not in ("gaussian", "hyperbolic"):
        raise InputError(f"residuals is {residuals!r}, but must be 'gaussian' or 'hyperbolic'")
    for name, number, least in (("dim", dim, 0), ("max_iter", max_iter, 1)):
        if not isinstance(number, int | np.integer) or number < least:
            raise InputError(f"{name} is {number!r}, but must be a whole number, {least} or more")
    if not isinstance(tol, int | float) or not tol >= 0:
        raise InputError(f"tol is {tol!r}, but must be a number, 0 or more")


def _check_scores(stats: Statistics) -> None:
    for h, name in enumerate(("non-target", "target")):
        if stats.count[h] < 2:
            number = "is no" if stats.count[h] == 0 else "is only one"
            raise InputError(f"there {number} {name} score, but training needs several of both; check the labels")
        if stats.squares[h] <= 1e-20 * stats.count[h]:
            raise InputError(f"all {name} scores are equal, so they have no distribution to learn; check the scores")
