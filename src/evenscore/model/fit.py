"""Training the score model: EM with minimum divergence on statistics, from several deterministic starts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.model.em import Run, Statistics, expect, run_em
from evenscore.model.parameters import ScoreModel
from evenscore.model.precision import refusing_singular
from evenscore.model.statistics import TrainingData, label_sums, standardize
from evenscore.progress import Progress, silent
from evenscore.tables.arrays import frozen
from evenscore.tables.html_table import html_table
from evenscore.threads import one_thread_per_product

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["FitResult", "fit_score_model", "log_likelihood"]

Array = np.ndarray
_LARGEST_USEFUL_DIM = 2  # x enters only through (alpha_0'x, alpha_1'x)
_FIRST_ITERATIONS = 100  # of every start; then only the best goes on
_FULLY_EXPLAINED = 1 - 1e-6  # share of a class's variance from which the data cannot support the dimension


@dataclass(frozen=True, kw_only=True, eq=False)
class FitResult:
    """A trained score model and how the training went.

    Examples
    --------
    >>> from evenscore import ScoreModel, fit_score_model, simulate
    >>> truth = ScoreModel(mu=[0.0, 3.0], alpha=[[0.5], [0.5]], beta=[[0.5], [0.5]], sigma2=[1.0, 1.0])
    >>> result = fit_score_model(simulate(truth, ["a", "b", "c"] * 4, ["a", "b", "c"] * 5, seed=0), dim=1)
    >>> result.n_scores, result.converged, result.model.dim
    ((120, 60), True, 1)
    """

    model: ScoreModel
    log_likelihood: Float[Array, " n"]  #: of the scores, before the first and after each iteration of the best start
    converged: bool  #: whether an iteration gained less than the tolerance
    n_iter: int  #: iterations of the best start
    restarts: Float[Array, " r"]  #: log-likelihood of every start after its first iterations (100 at most)
    n_scores: tuple[int, int]  #: numbers of non-target and of target scores
    notes: tuple[str, ...] = field(default=())  #: what the user should know about this fit

    def _repr_html_(self) -> str:
        """Return a table for notebooks."""
        nontarget, target = self.n_scores
        end = f"{'converged' if self.converged else 'not converged'} after {self.n_iter} iterations"
        caption = (
            f"{target} target and {nontarget} non-target scores, log-likelihood {self.log_likelihood[-1]:.4f}, {end}"
        )
        rows = self.model.variance_rows() + [(f"! {note}", "", "") for note in self.notes]
        return html_table(["", "non-target", "target"], rows, caption)


def log_likelihood(model: ScoreModel, data: TrainingData) -> float:
    """Return the log-likelihood of labelled scores, the hidden variables integrated out (the paper's marginal).

    Parameters
    ----------
    model
        The score model.
    data
        One or more pairs (scores, labels) or labelled trial lists; each has hidden variables of its own.

    Examples
    --------
    >>> import numpy as np
    >>> from evenscore import Labels, ScoreModel
    >>> model = ScoreModel(mu=[0.0, 2.0], alpha=[[0.5], [0.5]], beta=[[0.1], [0.3]], sigma2=[1.0, 1.0])
    >>> labels = Labels.from_speakers(["a", "b"], ["a", "b"])
    >>> round(log_likelihood(model, [(np.array([[2.5, 0.1], [-0.4, 1.5]]), labels)]), 6)
    -4.38955
    """
    statistics = standardize(label_sums(data))
    center, scale = statistics[0].center, statistics[0].scale
    value = expect(model.rescaled(1 / scale, -center / scale), statistics).log_likelihood
    return float(value - _counts(statistics).sum() * np.log(scale))


@one_thread_per_product()
@refusing_singular
def fit_score_model(
    data: TrainingData,
    dim: int = 2,
    *,
    min_divergence: bool = True,
    tol: float = 1e-10,
    max_iter: int = 5000,
    starts: int = 3,
    keep_self_pairs: bool = False,
    progress: Progress = silent,
    client: Any = None,
) -> FitResult:
    """Train the score model on labelled scores by maximum likelihood.

    Parameters
    ----------
    data
        One or more pairs (scores, labels) or labelled trial lists, for instance one matrix per phrase. Scores may be
        a `ScoreMatrix`, an array, a `TrialList`, a bilinear source such as `Cosine`, or tables that are not in
        memory. Hidden variables are fresh in each; parameters are shared.
    dim
        Dimension D of the hidden variables. 0 is Gaussian calibration, 2 is the general model, 1 forces the effects
        on targets and non-targets to be proportional. More than 2 has the likelihood of 2.
    min_divergence
        Whether each iteration also fits the prior of the hidden variables, which converges much faster.
    tol
        Stop when an iteration gains less than this, in nats per hidden variable (or less than can be computed).
    max_iter
        Most iterations of each start.
    starts
        Number of deterministic starting points. Each is tried for 100 iterations, then the best goes on.
    keep_self_pairs
        Whether scores that are made from embeddings have one of each utterance with itself, too, as a target, where an
        id stands on both sides. Matrices and lists are taken as they are.
    progress
        Called with a stage name and the fraction done.
    client
        A `distributed.Client` whose workers read and sum tables that are not in memory; None does it here.

    Examples
    --------
    >>> import numpy as np
    >>> from evenscore import Labels
    >>> rng = np.random.default_rng(0)
    >>> speakers = [f"s{n % 10}" for n in range(40)]
    >>> labels = Labels.from_speakers(speakers, speakers)
    >>> scores = 3.0 * labels.matrix + rng.normal(size=(40, 1)) + rng.normal(size=(40, 40))
    >>> result = fit_score_model([(scores, labels)], dim=1)
    >>> bool(result.converged), bool((np.diff(result.log_likelihood) > -1e-6).all())
    (True, True)
    """
    _check_options(dim, tol, max_iter, starts)
    statistics = standardize(label_sums(data, keep_self_pairs=keep_self_pairs, client=client, progress=progress))
    _check_scores(statistics)
    count = _counts(statistics)
    inner_dim = min(dim, _LARGEST_USEFUL_DIM)
    runs = []
    for number, start in enumerate(_starting_points(statistics, inner_dim, starts, tol, max_iter, min_divergence)):
        runs.append(run_em(start, statistics, min_divergence, tol, min(max_iter, _FIRST_ITERATIONS)))
        progress("fit", (number + 1) / (starts + 1))
    best = max(runs, key=lambda run: run.trace[-1])
    if not best.converged and best.n_iter < max_iter:
        rest = run_em(best.model, statistics, min_divergence, tol, max_iter - best.n_iter)
        best = Run(model=rest.model, trace=best.trace + rest.trace[1:], converged=rest.converged)
    progress("fit", 1.0)
    center, scale = statistics[0].center, statistics[0].scale
    model = best.model.rescaled(scale, center)
    notes = []
    if dim > _LARGEST_USEFUL_DIM:
        model = model.padded(dim)
        notes.append(f"D = {dim} has the likelihood of D = 2: only two effects per side can be told apart")
    if not best.converged:
        notes.append(f"not converged after {best.n_iter} iterations; raise max_iter or tol")
    if (best.model.variances.share > _FULLY_EXPLAINED).any():
        notes.append("the hidden variables explain a class completely; there are too few scores for this dimension")
    units = float(count.sum()) * np.log(scale)
    return FitResult(
        model=model,
        log_likelihood=frozen(np.array(best.trace) - units),
        converged=best.converged,
        n_iter=best.n_iter,
        restarts=frozen(np.array([run.trace[-1] for run in runs]) - units),
        n_scores=(int(count[0]), int(count[1])),
        notes=tuple(notes),
    )


def _starting_points(
    statistics: list[Statistics], dim: int, starts: int, tol: float, max_iter: int, min_divergence: bool
) -> list[ScoreModel]:
    """Return models that split the variance of each class between sides and residual in different ways.

    D = 1 has poor local optima, so it starts from the leading directions of the D = 2 solution.
    """
    variance = np.sum([s.squares for s in statistics], axis=0) / _counts(statistics)
    if dim == 0:
        return [ScoreModel(mu=np.zeros(2), alpha=np.zeros((2, 0)), beta=np.zeros((2, 0)), sigma2=variance)]
    # (share of each side's effect in the variance, correlation of the effects on the two classes)
    plans = [(0.25, 0.5), (0.05, 0.9), (0.4, -0.3), (0.15, 0.0), (0.45, 0.95), (0.02, -0.9)]
    general = []
    for number in range(starts):
        share, correlation = plans[number % len(plans)]
        share *= 0.7 ** (number // len(plans))
        covariance = share * np.sqrt(np.outer(variance, variance)) * np.array([[1, correlation], [correlation, 1]])
        root = np.linalg.cholesky(covariance)
        general.append(ScoreModel(mu=np.zeros(2), alpha=root, beta=root, sigma2=(1 - 2 * share) * variance))
    if dim == _LARGEST_USEFUL_DIM:
        return general
    solved = run_em(general[0], statistics, min_divergence, tol, max_iter).model
    return [_one_dimensional(solved, number) for number in range(starts)]


def _one_dimensional(model: ScoreModel, number: int) -> ScoreModel:
    """Keep one direction of each side: the leading one, or that of one class alone."""

    def reduce(loading: Float[Array, "2 d"]) -> npt.NDArray[Any]:
        if number % 3 == 0:
            left, values, _ = np.linalg.svd(loading)
            return left[:, :1] * values[0]
        kept = (number % 3) - 1  # the class whose effect is kept whole
        covariance = loading @ loading.T
        return (covariance[:, kept] / np.sqrt(max(covariance[kept, kept], 1e-12)))[:, None]

    alpha, beta = reduce(model.alpha), reduce(model.beta)
    lost = np.diag(model.alpha @ model.alpha.T + model.beta @ model.beta.T - alpha @ alpha.T - beta @ beta.T)
    return ScoreModel(mu=model.mu, alpha=alpha, beta=beta, sigma2=model.sigma2 + np.maximum(lost, 0.0))


def _counts(statistics: list[Statistics]) -> Float[Array, "2"]:
    counts: Array = np.sum([stats.count for stats in statistics], axis=0)
    return counts


def _check_options(dim: Any, tol: Any, max_iter: Any, starts: Any) -> None:
    if not isinstance(dim, int | np.integer) or dim < 0:
        raise InputError(f"dim is {dim!r}, but must be a whole number, 0 or more")
    if isinstance(tol, str) or not tol >= 0:
        raise InputError(f"tol is {tol}, but must not be negative")
    if any(isinstance(count, str) or count < 1 for count in (max_iter, starts)):
        raise InputError(f"max_iter is {max_iter} and starts is {starts}, but both must be at least 1")


def _check_scores(statistics: list[Statistics]) -> None:
    count = _counts(statistics)
    squares = np.sum([s.squares for s in statistics], axis=0)
    for h, name in enumerate(("non-target", "target")):
        if count[h] == 0:
            raise InputError(f"there is no {name} score, but training needs both classes; check the labels")
        if count[h] == 1:
            raise InputError(f"there is one {name} score only, but training needs several of both classes")
        if squares[h] <= 1e-20 * count[h]:
            raise InputError(f"all {name} scores are equal, so they have no distribution to learn; check the scores")
