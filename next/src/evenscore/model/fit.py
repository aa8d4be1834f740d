"""Training the score model by maximum likelihood, and the likelihood of labelled scores."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from evenscore.errors import InputError
from evenscore.model.em import Run, run_bfgs, run_em
from evenscore.model.expectation import expect
from evenscore.model.parameters import ScoreModel
from evenscore.model.residuals import fit_residuals
from evenscore.model.statistics import Statistics, collect
from evenscore.model.sums import as_parts, table_sums
from evenscore.parallel import Progress, one_blas_thread

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["FitResult", "fit_score_model", "log_likelihood"]

_LARGEST_USEFUL_DIM = 2  # x enters only through (alpha_0'x, alpha_1'x)
_EM_FIRST = 50  # iterations of EM before BFGS
_TRIED = 100  # iterations of every start of plain EM; then only the best goes on
_FULLY_EXPLAINED = 1 - 1e-6  # share of a class's variance from which the data cannot support the dimension


@dataclass(frozen=True, kw_only=True, eq=False)
class FitResult:
    """A trained score model and how the training went.

    Examples
    --------
    >>> from evenscore import ScoreModel, fit_score_model, simulate
    >>> truth = ScoreModel(mu=[0.0, 3.0], alpha=[[0.5], [0.5]], beta=[[0.5], [0.5]], sigma2=[1.0, 1.0])
    >>> result = fit_score_model(*simulate(truth, ["a", "b", "c"] * 4, ["a", "b", "c"] * 5, seed=0), dim=1)
    >>> result.n_scores, result.converged, result.model.dim
    ((120, 60), True, 1)
    """

    model: ScoreModel
    log_likelihood: Float[np.ndarray, " n"]  #: of the scores, before the first and after each iteration
    converged: bool  #: whether an iteration gained less than the tolerance
    n_iter: int  #: iterations from the best start
    restarts: Float[np.ndarray, " r"]  #: log-likelihood of every start after its first iterations
    n_scores: tuple[int, int]  #: numbers of non-target and of target scores
    undetermined: tuple[str, ...] = ()  #: splits of variance that the data do not determine
    notes: tuple[str, ...] = ()  #: what the user should know about this fit, with those


def log_likelihood(model: ScoreModel, data: Any, labels: Any = None) -> float:
    """Return the log-likelihood of labelled scores, the hidden variables integrated out (the paper's marginal).

    Parameters
    ----------
    model
        The score model.
    data, labels
        Labelled scores, as for `fit_score_model`; each part has hidden variables of its own.

    Examples
    --------
    >>> from evenscore import Labels, ScoreModel
    >>> model = ScoreModel(mu=[0.0, 2.0], alpha=[[0.5], [0.5]], beta=[[0.1], [0.3]], sigma2=[1.0, 1.0])
    >>> labels = Labels.from_speakers(["a", "b"], ["a", "b"])
    >>> round(log_likelihood(model, [(np.array([[2.5, 0.1], [-0.4, 1.5]]), labels)]), 6)
    -4.38955
    """
    with one_blas_thread():
        stats = collect([table_sums(*part) for part in as_parts(data, labels)])
        return (
            expect(model.rescaled(1 / stats.scale, -stats.center / stats.scale), stats).log_likelihood - stats.log_units
        )


def fit_score_model(
    scores: Any,
    labels: Any = None,
    dim: int = 2,
    *,
    method: Literal["bfgs", "em"] = "bfgs",
    residuals: Literal["gaussian", "hyperbolic"] = "gaussian",
    min_divergence: bool = True,
    tol: float = 1e-10,
    max_iter: int = 5000,
    starts: int | None = None,
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
        "em" is the paper's. "bfgs" begins with 50 iterations of it and goes on with BFGS, which finds the same maximum
        where EM needs thousands of iterations.
    residuals
        Density of what the model does not predict: "gaussian" is the paper's; "hyperbolic" fits heavier and skewed
        tails to the residuals of the training trials, whose own speakers are left out. See `ResidualDensities`.
    min_divergence
        Whether each iteration of EM also fits the prior of the hidden variables, which converges much faster.
    tol
        Stop when an iteration gains less than this, in nats per hidden variable (or less than can be computed).
    max_iter
        Most iterations from each start.
    starts
        Number of deterministic starting points. By default 1, but 3 for ``dim=1``, which has poor local optima.
    progress
        Called with the number of iterations and the largest possible one.

    Examples
    --------
    >>> from evenscore import Labels
    >>> rng = np.random.default_rng(0)
    >>> speakers = [f"s{n % 10}" for n in range(40)]
    >>> labels = Labels.from_speakers(speakers, speakers)
    >>> scores = 3.0 * labels.matrix + rng.normal(size=(40, 1)) + rng.normal(size=(40, 40))
    >>> result = fit_score_model(scores, labels, dim=1)
    >>> bool(result.converged), bool((np.diff(result.log_likelihood) > -1e-6).all())
    (True, True)
    """
    import scipy.linalg  # noqa: F401  # before BLAS is held to one thread: SciPy has a BLAS of its own

    _check_options(dim, method, residuals, tol, max_iter, starts)
    with one_blas_thread():
        stats = collect([table_sums(*part) for part in as_parts(scores, labels)])
        _check_scores(stats)
        inner_dim = min(dim, _LARGEST_USEFUL_DIM)
        first = min(max_iter, _EM_FIRST if method == "bfgs" else _TRIED)
        points = _starting_points(stats, inner_dim, starts or (3 if inner_dim == 1 else 1), tol, min_divergence)
        runs = [run_em(Run(point, [], False), stats, tol, first, min_divergence) for point in points]
        best = max(runs, key=lambda run: run.trace[-1])
        left = max_iter - len(best.trace) + 1
        if not best.converged and left:
            tell = None if progress is None else partial(progress, total=max_iter)
            climb = (
                partial(run_bfgs, max_iter=left)
                if method == "bfgs"
                else partial(run_em, tol=tol, max_iter=left, min_divergence=min_divergence)
            )
            best = climb(best, stats, progress=tell)
        model = best.model.rescaled(stats.scale, stats.center)
        model = ScoreModel(mu=model.mu, alpha=model.alpha, beta=model.beta, sigma2=model.sigma2)
        model = model.padded(dim) if dim > inner_dim else model
        if residuals == "hyperbolic":
            model = model.with_residuals(fit_residuals(model, scores, labels))
    undetermined = _undetermined(stats) if inner_dim else ()
    return FitResult(
        model=model,
        log_likelihood=np.array(best.trace) - stats.log_units,
        converged=best.converged,
        n_iter=len(best.trace) - 1,
        restarts=np.array([run.trace[-1] for run in runs]) - stats.log_units,
        n_scores=(int(stats.count[0]), int(stats.count[1])),
        undetermined=undetermined,
        notes=(*_notes(best, dim), *undetermined),
    )


def _starting_points(stats: Statistics, dim: int, starts: int, tol: float, min_divergence: bool) -> list[ScoreModel]:
    """Return models that split the variance of each class between sides and residual in different ways."""
    variance = stats.squares / stats.count
    if dim == 0:
        return [ScoreModel.trusted(np.zeros(2), np.zeros((2, 0)), np.zeros((2, 0)), variance)]
    # share of each side's effect in the variance, and correlation of the effects on the two classes
    plans = [(0.25, 0.5), (0.05, 0.9), (0.4, -0.3), (0.15, 0.0), (0.45, 0.95), (0.02, -0.9)]
    general = []
    for number in range(starts if dim == _LARGEST_USEFUL_DIM else 1):
        share, correlation = plans[number % len(plans)]
        share *= 0.7 ** (number // len(plans))
        root = np.linalg.cholesky(share * np.sqrt(np.outer(variance, variance)) * [[1, correlation], [correlation, 1]])
        general.append(ScoreModel.trusted(np.zeros(2), root, root, (1 - 2 * share) * variance))
    if dim == _LARGEST_USEFUL_DIM:
        return general
    # D = 1 has poor local optima, so it starts from directions of the D = 2 solution.
    solved = run_em(Run(general[0], [], False), stats, tol, _EM_FIRST, min_divergence).model
    return [_one_dimensional(solved, number) for number in range(starts)]


def _one_dimensional(model: ScoreModel, number: int) -> ScoreModel:
    """Keep one direction of each side: the leading one, or that of one class alone."""

    def reduced(covariance: Float[np.ndarray, "2 2"]) -> Float[np.ndarray, "2 1"]:
        if number % 3 == 0:
            values, vectors = np.linalg.eigh(covariance)
            return vectors[:, -1:] * np.sqrt(values[-1])
        h = number % 3 - 1  # the class whose effect is kept whole
        return covariance[:, h : h + 1] / np.sqrt(max(covariance[h, h], 1e-12))

    table = model.variances
    alpha, beta = reduced(table.enroll_covariance), reduced(table.test_covariance)
    lost = table.nu - (alpha**2 + beta**2).sum(1)
    return ScoreModel.trusted(model.mu, alpha, beta, model.sigma2 + np.maximum(lost, 0.0))


def _notes(run: Run, dim: int) -> list[str]:
    notes = []
    if dim > _LARGEST_USEFUL_DIM:
        notes.append(f"D = {dim} has the likelihood of D = 2: only two effects per side can be told apart")
    if not run.converged:
        notes.append(f"not converged after {len(run.trace) - 1} iterations; raise max_iter or tol")
    if (run.model.variances.share > _FULLY_EXPLAINED).any():
        notes.append("the hidden variables explain a class completely; there are too few scores for this dimension")
    return notes


def _undetermined(stats: Statistics) -> tuple[str, ...]:
    """Return what the data say only about sums of variances: no side has two target scores of one element."""
    rows, cols = stats.most_targets[::-1] if stats.transposed else stats.most_targets
    single = [name for name, most in (("enrolment", rows), ("test", cols)) if most < 2]
    return tuple(
        f"no {name} has two target scores: only the sum of the {name}'s effect on targets and the unexplained variance of "
        "targets is known, not how it splits"
        for name in single
    )


def _check_options(dim: Any, method: Any, residuals: Any, tol: Any, max_iter: Any, starts: Any) -> None:
    if not isinstance(dim, int | np.integer) or dim < 0:
        raise InputError(f"dim is {dim!r}, but must be a whole number, 0 or more")
    for name, value, choices in (
        ("method", method, ("bfgs", "em")),
        ("residuals", residuals, ("gaussian", "hyperbolic")),
    ):
        if value not in choices:
            raise InputError(f"{name} is {value!r}, but must be {' or '.join(map(repr, choices))}")
    if isinstance(tol, str) or not tol >= 0:
        raise InputError(f"tol is {tol}, but must not be negative")
    if any(isinstance(count, str) or count < 1 for count in (max_iter, starts or 1)):
        raise InputError(f"max_iter is {max_iter} and starts is {starts}, but both must be at least 1")


def _check_scores(stats: Statistics) -> None:
    for h, name in enumerate(("non-target", "target")):
        if stats.count[h] == 0:
            raise InputError(f"there is no {name} score, but training needs both classes; check the labels")
        if stats.count[h] == 1:
            raise InputError(f"there is one {name} score only, but training needs several of both classes")
        if stats.squares[h] <= 1e-20 * stats.count[h]:
            raise InputError(f"all {name} scores are equal, so they have no distribution to learn; check the scores")
