"""Adapting the score model to trials without labels: EM over hypotheses, started from the trained model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.model import adapt_guard as guard
from evenscore.model.adapt_data import DenseScores, UnlabelledData, hidden_scores
from evenscore.model.adapt_steps import (
    Anchor,
    HiddenLabels,
    affine_step,
    bound,
    full_step,
    infer_labels,
    infer_location,
    initial,
    pooled,
    start_from_scores,
)
from evenscore.model.parameters import ScoreModel
from evenscore.model.precision import refusing_singular
from evenscore.progress import Progress, silent
from evenscore.tables.arrays import frozen
from evenscore.threads import one_thread_per_product

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["AdaptResult", "adapt_score_model"]

Array = np.ndarray
_ROUNDING = 1e-12  # relative rounding error of the bound
_FIRST_ITERATIONS = 30  # of every start; then only the best goes on


@dataclass(frozen=True, kw_only=True, eq=False)
class AdaptResult:
    """An adapted score model, and what supports it.

    Examples
    --------
    >>> from evenscore import ScoreModel, simulate
    >>> model = ScoreModel(mu=[0.0, 5.0], alpha=[[0.5], [0.5]], beta=[[0.5], [0.5]], sigma2=[1.0, 1.0])
    >>> scores, labels = simulate(model.rescaled(1.0, 2.0), ["a", "b", "c", "d"] * 5, ["a", "b", "c", "d"] * 10)
    >>> result = adapt_score_model(model, scores, prior=0.25, change="affine")
    >>> round(result.shift, 1), round(result.share_of_targets, 2), result.n_trials
    (2.0, 0.25, 800)
    """

    model: ScoreModel
    trained: ScoreModel  #: the model before adaptation
    scale: float  #: the new domain's scores are scale * s + shift, with s as the trained model expects
    shift: float
    bound: Float[Array, " n"]  #: of the log-likelihood (less the penalty): before the first, after each iteration
    unadapted_bound: float  #: of the trained model
    score_gain: guard.ScoreGain  #: on the scores one by one, with its standard error
    expected_cllr: tuple[
        float, float
    ]  #: of the trained and the adapted model, as the latter sees the labels; no cohort
    share_of_targets: float  #: among the trials without labels, as the adapted model sees them
    certainty: float  #: share of the prior's uncertainty about the labels that the scores remove, 0 to 1
    n_trials: int  #: trials without labels
    n_known: int  #: scores with known labels that were used beside them
    converged: bool
    n_iter: int
    notes: tuple[str, ...] = field(default=())


@one_thread_per_product()
@refusing_singular
def adapt_score_model(
    model: ScoreModel,
    data: UnlabelledData | Iterable[UnlabelledData],
    *,
    prior: float,
    change: Literal["all", "affine"] = "all",
    strength: float = 20.0,
    enroll_speakers: Mapping[str, str] | None = None,
    tol: float = 1e-5,
    max_iter: int = 300,
    progress: Progress = silent,
) -> AdaptResult:
    """Adapt a trained score model to trials of a new domain whose labels are not known.

    First the trained model's scores are allowed one scale and one shift; then (``change="all"``) every parameter may
    move, held by ``strength`` imaginary scores of each class from the model so far.

    Parameters
    ----------
    model
        The trained score model, where the adaptation starts.
    data
        Trials of the new domain: a score matrix, a list of trials, score blocks, pairs (scores, labels), or several of
        them. Trials with labels keep them (semi-supervised); all others are hidden. Of blocks, the cohort scores are
        used as well: pairs with a cohort member are non-targets, or targets where the speakers say so. Give only
        cohort scores that belong to the new domain.
    prior
        Share of targets among the trials without labels; it must be about right.
    change
        What may change: ``"affine"`` (scale and shift of all scores), or ``"all"`` parameters.
    strength
        Number of imaginary scores of each class that hold the parameters.
    enroll_speakers
        Speakers of the enrolments. Only the guard looks at them: if a speaker enrolled more than once (a phrase each,
        say), these enrolments are no independent witnesses of a shift. Enrolments that are not in it, and by default
        all of them, count as speakers of their own.
    tol
        Stop when an iteration gains less than this, in nats per enrolment and test.
    max_iter
        Most iterations of each of the two stages.
    progress
        Called with a stage name and the fraction done.

    Raises
    ------
    InputError
        If the data cannot support an adaptation: too few trials or expected targets, classes that the scores do not
        tell apart, a share of targets that contradicts the prior, one class that explains all trials as well, nothing
        to gain over the trained model, a gain that is not there for most enrolments, or too small a gain to be worth
        the risk.

    Examples
    --------
    >>> from evenscore import ScoreModel, simulate
    >>> trained = ScoreModel(mu=[0.0, 5.0], alpha=[[0.5], [0.5]], beta=[[0.5], [0.5]], sigma2=[1.0, 1.0])
    >>> shifted = ScoreModel(mu=[1.5, 5.5], alpha=[[0.5], [0.5]], beta=[[0.5], [0.5]], sigma2=[1.5, 1.0])
    >>> speakers = [f"s{n % 10}" for n in range(40)]
    >>> scores, labels = simulate(shifted, speakers, speakers, seed=1)
    >>> adapt_score_model(trained, scores, prior=0.1).model.mu.round(1)
    array([1.5, 5.7])
    """
    _check_options(prior, change, strength, tol, max_iter)
    center, scale = float(model.mu.mean()), float(np.sqrt((model.sigma2 + model.variances.nu).mean()))
    parts = [part.standardized(center, scale) for part in hidden_scores(data)]
    start = model.rescaled(1 / scale, -center / scale)
    n_trials, n_known = (sum(int(getattr(p, name).sum()) for p in parts) for name in ("hidden", "known"))
    guard.refuse_few(n_trials, prior)
    guard.refuse_equal(parts)
    enough = tol * sum(sum(part.scores.shape) for part in parts)
    run = _Stage(prior=prior, enough=enough, max_iter=max_iter)
    unadapted = run.settled(start, parts)
    affine = run.affine(start, parts)
    progress("scale and shift", 0.5)
    best = run.full(affine, Anchor(model=affine.model, strength=float(strength))) if change == "all" else affine
    progress("all parameters", 1.0)
    n_parameters = 2 if change == "affine" else 4 + 4 * min(model.dim, 2)
    alone = run.one_class(affine)
    p = np.concatenate([state.p_target[state.data.hidden] for state in best.states])
    share, certainty = float(p.mean()), guard.certainty(p, prior)
    score_gain = guard.score_gain(start, best.model, parts, _groups(parts, enroll_speakers or {}), prior)
    expected = (
        guard.expected_cllr(start, best.model, parts, prior),
        guard.expected_cllr(best.model, best.model, parts, prior),
    )
    guard.refuse_unsupported(
        best.model,
        p,
        prior=prior,
        gain=best.trace[-1] - unadapted,
        over_one=best.trace[-1] - alone,
        n=n_parameters,
        alone=score_gain,
        cllr=expected,
    )
    units = (n_trials + n_known) * np.log(scale)
    notes: tuple[str, ...] = (
        () if best.converged else (f"not converged after {max_iter} iterations; raise max_iter or tol",)
    )
    notes += guard.doubts(share, prior)
    factor = affine.scale
    return AdaptResult(
        model=best.model.rescaled(scale, center).with_residuals(model.residuals),
        trained=model,
        scale=float(factor),
        shift=float(scale * affine.shift + center * (1 - factor)),
        bound=frozen(np.array(best.trace) - units),
        unadapted_bound=float(unadapted - units),
        score_gain=score_gain,
        expected_cllr=expected,
        share_of_targets=share,
        certainty=certainty,
        n_trials=n_trials,
        n_known=n_known,
        converged=best.converged,
        n_iter=len(best.trace) - 1,
        notes=notes,
    )


def _groups(parts: list[DenseScores], speakers: Mapping[str, str]) -> list[npt.NDArray[np.intp]]:
    """Return for each matrix to which group its rows belong: the enrolments of a speaker are one."""
    numbers: dict[str, int] = {}
    names = [[speakers.get(name, name) for name in part.enroll_ids] for part in parts]
    return [np.array([numbers.setdefault(name, len(numbers)) for name in part], dtype=np.intp) for part in names]


@dataclass(frozen=True, kw_only=True, eq=False)
class _Run:
    model: ScoreModel
    states: list[HiddenLabels]
    trace: list[float]
    converged: bool
    scale: float = 1.0
    shift: float = 0.0


@dataclass(frozen=True, kw_only=True)
class _Stage:
    """The iterations, with what they have in common."""

    prior: float
    enough: float
    max_iter: int

    def infer(self, model: ScoreModel, states: list[HiddenLabels]) -> list[HiddenLabels]:
        """Infer the hidden variables, then the labels."""
        return [infer_labels(model, infer_location(model, state), self.prior) for state in states]

    def rests(self, trace: list[float]) -> bool:
        """Tell whether the last iteration gained next to nothing."""
        return trace[-1] - trace[-2] <= max(self.enough, _ROUNDING * abs(trace[-1]))

    def climb(self, run: _Run, step: Callable[[_Run], _Run], n_iter: int, anchor: Anchor | None = None) -> _Run:
        """Repeat a step of the parameters and the inference, until next to nothing is gained."""
        for _ in range(n_iter):
            run = step(run)
            states = self.infer(run.model, run.states)
            run = replace(run, states=states, trace=[*run.trace, bound(run.model, states, self.prior, anchor)])
            if self.rests(run.trace):
                return replace(run, converged=True)
        return replace(run, converged=False)

    def start(self, model: ScoreModel, parts: list[DenseScores]) -> _Run:
        """Return a model with what it believes about the trials before the first iteration."""
        states = [start_from_scores(model, initial(part, self.prior), self.prior) for part in parts]
        states = [infer_location(model, state) for state in states]
        return _Run(model=model, states=states, trace=[bound(model, states, self.prior)], converged=False)

    def settled(self, model: ScoreModel, parts: list[DenseScores]) -> float:
        """Return the bound of a model that does not change."""
        return self.climb(self.start(model, parts), lambda run: run, self.max_iter).trace[-1]

    def affine(self, base: ScoreModel, parts: list[DenseScores]) -> _Run:
        """Fit scale and shift, from the trained model and from one that fits mean and variance of the trials."""

        def step(run: _Run) -> _Run:
            scale, shift = affine_step(base, pooled(run.states))
            return replace(run, model=base.rescaled(scale, shift), scale=scale, shift=shift)

        runs = []
        for scale, shift in ((1.0, 0.0), guard.matching_scale(base, parts, self.prior)):
            first = replace(self.start(base.rescaled(scale, shift), parts), scale=scale, shift=shift)
            runs.append(self.climb(first, step, min(self.max_iter, _FIRST_ITERATIONS)))
        best = max(runs, key=lambda run: run.trace[-1])
        if best.converged or self.max_iter <= _FIRST_ITERATIONS:
            return best
        return self.climb(best, step, self.max_iter - _FIRST_ITERATIONS)

    def full(self, run: _Run, anchor: Anchor) -> _Run:
        """Let all parameters move, held by the anchor."""

        def step(run: _Run) -> _Run:
            return replace(run, model=full_step(pooled(run.states), anchor))

        return self.climb(run, step, self.max_iter, anchor)

    def one_class(self, run: _Run) -> float:
        """Return the bound when no trial without label is a target."""
        tiny = float(np.finfo(float).tiny)
        model = run.model
        states = [initial(state.data, 0.0) for state in run.states]
        anchor = Anchor(model=model, strength=1.0)
        trace: list[float] = []
        for _ in range(_FIRST_ITERATIONS):
            states = [infer_location(model, state) for state in states]
            trace.append(bound(model, states, tiny))
            if len(trace) > 1 and self.rests(trace):
                break
            model = full_step(pooled(states), anchor)
        return max(trace)


def _check_options(prior: float, change: str, strength: float, tol: float, max_iter: int) -> None:
    if not 0 < prior < 1:
        raise InputError(f"prior is {prior}, but must lie between 0 and 1")
    if change not in ("all", "affine"):
        raise InputError(f"change is {change!r}, but must be 'all' or 'affine'")
    if not strength > 0:
        raise InputError(f"strength is {strength}, but must be positive")
    if not tol >= 0 or max_iter < 1:
        raise InputError(f"tol is {tol} and max_iter is {max_iter}, but tol must not be negative and max_iter positive")
