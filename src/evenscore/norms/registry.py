"""All norms by name, and `normalize`, which applies one to score blocks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from difflib import get_close_matches
from functools import partial
from importlib import import_module
from inspect import signature
from typing import Any

import numpy as np

from evenscore.data.blocks import LabelledBlocks, ScoreBlocks
from evenscore.data.score_matrix import ScoreMatrix
from evenscore.data.trial_list import TrialList
from evenscore.errors import InputError
from evenscore.norms.classical import classical_norm, cohort_counts
from evenscore.norms.folds import normalize_by_folds
from evenscore.norms.options import CLASSICAL, NormOptions
from evenscore.norms.select import rankings_by_name
from evenscore.norms.statistics import CohortError
from evenscore.parallel import Progress, one_blas_thread

__all__ = ["METHODS", "FittedNorm", "Method", "fit_norm", "method_named", "normalize", "register_norm"]

Table = ScoreMatrix | TrialList
Fit = Callable[..., Any]  #: called with a list of `LabelledBlocks` and options, returns a model
Options = Mapping[str, Any]

#: The cohort scores that the classical norms need with ``select="own"``.
_NEEDS = {"z": ("enroll",), "az": ("enroll",), "t": ("test",), "at": ("test",), "s": ("enroll", "test")}
_NEEDS |= {"as": ("enroll", "test"), "zt": ("enroll", "test", "cohort"), "tz": ("enroll", "test", "cohort")}
_MEANING = {
    "enroll": "the enrolments against the cohort",
    "test": "the cohort against the tests",
    "cohort": "the cohort against itself",
}


@dataclass(frozen=True)
class Method:
    """A norm: a function of score blocks, how it is prepared, and how it is trained.

    Attributes
    ----------
    norm
        Called as ``norm(blocks, **options)``, returns the trials with normalized scores.
    prepare
        Called once for all folds of speakers as ``prepare(blocks, options)``; returns the blocks that the norm needs
        and its options. None if blocks and options are passed on as they are.
    fit
        Called as ``fit(training, **options)`` with a list of `LabelledBlocks`; returns the trained ``model``, an option
        of the norm. None if there is nothing to train.
    model
        Class of the model of a norm of one's own, a dataclass that `write_model` can write. None for our own norms.
    """

    norm: Callable[..., Table]
    prepare: Callable[[ScoreBlocks, Options], tuple[ScoreBlocks, dict[str, Any]]] | None = None
    fit: Fit | None = None
    model: type | None = None


def normalize(
    blocks: ScoreBlocks,
    method: str = "as",
    *,
    folds: int | None = None,
    condition: str | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Table:
    """Normalize trial scores with their cohort scores.

    Parameters
    ----------
    blocks
        Trials and cohort scores. Z needs ``enroll``, T ``test``, S both, ZT and TZ also ``cohort``. With the speakers
        of trials and cohort, a trial's own speakers are left out of its cohort.
    method
        Name of the norm.
    folds, condition
        See `normalize_by_folds`.
    progress
        Called with the number of pairs of folds that are done, and of all pairs, where own speakers are left out.
    **options
        For the classical norms the fields of `NormOptions`, or ``convention`` with single options that differ from it.

    Returns
    -------
    ScoreMatrix or TrialList
        The normalized trials, in the form of ``blocks.trials``; a dask array is computed when it is used.

    Examples
    --------
    >>> blocks = ScoreBlocks(
    ...     ScoreMatrix([[3.0, 1.0]], ["e"], ["t1", "t2"]),
    ...     enroll=ScoreMatrix([[2.0, 1.0, 0.0]], ["e"], ["c1", "c2", "c3"]),
    ...     test=ScoreMatrix([[1.5, 0.0], [0.5, 2.0], [-0.5, 1.0]], ["c1", "c2", "c3"], ["t1", "t2"]),
    ... )
    >>> normalize(blocks, "as", top_k=2).scores
    array([[ 3.5, -1. ]])
    """
    if not isinstance(blocks, ScoreBlocks):
        raise InputError(f"blocks are a {type(blocks).__name__}, but must be ScoreBlocks")
    found = method_named(method)
    if found.fit is not None and "model" not in options:
        raise InputError(f"the norm {method!r} needs a trained model; give `model`, or use fit_norm")
    if found.prepare is not None:
        blocks, options = found.prepare(blocks, options)
    try:
        signature(found.norm).bind(blocks, **options)
    except TypeError as error:
        raise InputError(f"the norm {method!r} cannot be called so: {error}") from None
    norm = partial(found.norm, **options)
    if condition is None and (blocks.trials.enroll.speakers is None and blocks.trials.test.speakers is None):
        return norm(blocks)
    with one_blas_thread():  # once for all folds
        return normalize_by_folds(norm, blocks, folds, condition, progress)


@dataclass(frozen=True, eq=False)
class FittedNorm:
    """A norm with its options and, if it has one, its trained model; made by `fit_norm`."""

    method: str
    options: Options
    model: Any = None

    def normalize(self, blocks: ScoreBlocks, *, folds: int | None = None, condition: str | None = None) -> Table:
        """Normalize trial scores, as `normalize` does."""
        model = {} if self.model is None else {"model": self.model}
        return normalize(blocks, self.method, folds=folds, condition=condition, **self.options, **model)


def fit_norm(method: str, training: LabelledBlocks | Sequence[LabelledBlocks], **options: Any) -> FittedNorm:
    """Train a norm on labelled trials: a score model or the evidence model; classical norms need no training.

    Parameters
    ----------
    method
        Name of the norm.
    training
        Labelled trials with their cohort scores; several parts, such as phrases, share the model.
    **options
        Of the training, for norms that are trained (``dim``, ``residuals``); of the norm for others (``top_k``).

    Examples
    --------
    >>> from evenscore import Side
    >>> enroll, test = Side(["e1", "e2"], ["ann", "bob"]), Side(["t1", "t2"], ["ann", "bob"])
    >>> scores = ScoreMatrix([[5.0, 0.0], [1.0, 6.0]], enroll, test)
    >>> fit_norm("s", LabelledBlocks.own_cohort(scores), ddof=1).options
    {'ddof': 1}
    """
    found = method_named(method)
    if found.fit is None:
        return FittedNorm(method, options)
    parts = [training] if isinstance(training, LabelledBlocks) else list(training)
    return FittedNorm(method, {}, found.fit(parts, **options))


def register_norm(name: str, norm: Callable[..., Table], *, fit: Fit | None = None, model: type | None = None) -> None:
    """Make a norm available under a name in `normalize`, `fit_norm`, `compare` and `Verifier`.

    Parameters
    ----------
    name
        Name of the norm; not that of another one.
    norm
        Called as ``norm(blocks, **options)`` with `ScoreBlocks`; returns their trials with other scores. It need not
        know of own speakers or conditions.
    fit
        For a norm that is trained: called as ``fit(training, **options)`` with a list of `LabelledBlocks`, returns the
        model that ``norm`` gets as ``model=``. Training trials may be their own cohort: leave own speakers out, as
        `normalize_by_folds` does.
    model
        Class of that model, a dataclass whose fields are numbers, text, arrays and tuples or dictionaries of these;
        `write_model` and `read_model` then know it.

    Examples
    --------
    >>> register_norm("halved", lambda blocks: blocks.trials.map(lambda s: s / 2))
    >>> normalize(ScoreBlocks(ScoreMatrix([[3.0]], ["e"], ["t"])), "halved").scores
    array([[1.5]])
    """
    if name in METHODS:
        raise InputError(f"there is a norm {name!r} already; choose another name")
    if model is not None and not is_dataclass(model):
        raise InputError(f"`model` is {model!r}, but must be a dataclass, so that it can be written to a file")
    METHODS[name] = Method(norm, fit=fit, model=model)


def method_named(name: str) -> Method:
    """Return a norm by its name; the error for an unknown name suggests a similar one."""
    if name in METHODS:
        return METHODS[name]
    plain = name.lower().replace("-", "").replace("_", "").removesuffix("norm")
    close = [plain] if plain in METHODS else get_close_matches(name, METHODS, 1)
    hint = f"; did you mean {close[0]!r}?" if close else f"; there are {', '.join(METHODS)}"
    raise InputError(f"there is no norm {name!r}{hint}")


def _prepare_classical(method: str, blocks: ScoreBlocks, options: Options) -> tuple[ScoreBlocks, dict[str, Any]]:
    """Return the cohort scores that a classical norm uses, and its options, resolved for the whole cohort."""
    given = dict(options)
    how = NormOptions.resolve(given.pop("options", None), given.pop("convention", None), **given).for_method(method)
    needs = {"own": _NEEDS[method], "cross": ("enroll", "test"), "profile": ("enroll", "test", "cohort")}[how.select]
    blocks = blocks.nontargets()
    for name in needs:
        if getattr(blocks, name) is None:
            raise InputError(f"the norm {method!r} needs `{name}`: {_MEANING[name]}")
    names = None
    if how.select == "cross":
        blocks, names = _matching_cohorts(blocks)
    S_e, S_t = blocks.enroll and blocks.enroll.scores, blocks.test and blocks.test.scores
    counts = cohort_counts(method, S_e if "enroll" in needs else None, S_t if "test" in needs else None, how)
    return blocks.only(needs), {"options": how, "counts": counts, "names": names}


def _matching_cohorts(blocks: ScoreBlocks) -> tuple[ScoreBlocks, str]:
    """Match the members of both cohorts for ``select="cross"``: by "ids", which get the same order, or "speakers"."""
    enroll, test = blocks.cohort_enroll, blocks.cohort_test
    if enroll is None or test is None or enroll.same_ids(test):
        return blocks, "ids"
    if set(enroll.ids) == set(test.ids):
        return blocks.take_cohort(None, test.positions(enroll.ids)), "ids"
    if enroll.speakers is None or test.speakers is None or not {*enroll.speakers} & {*test.speakers} - {None}:
        raise InputError("select=cross needs the same cohort, or cohorts of the same speakers, on both sides")
    return blocks, "speakers"


def _classical(
    method: str, blocks: ScoreBlocks, options: NormOptions, counts: tuple[int | None, int | None], names: str | None
) -> Table:
    """Apply a classical norm to the arrays of blocks; an error names the id."""
    trials, rankings = blocks.trials, None
    arrays = [None if block is None else block.scores for block in (blocks.enroll, blocks.test, blocks.cohort)]
    if names is not None:
        enroll, test = blocks.cohort_enroll, blocks.cohort_test
        if enroll is not None and test is not None and not enroll.same_ids(test):
            of_enroll, of_test = getattr(enroll, names), getattr(test, names)
            rankings = rankings_by_name(np.asarray(arrays[0]), np.asarray(arrays[1]), of_enroll, of_test)
    how: dict[str, Any] = {"options": options, "counts": counts, "rankings": rankings}
    try:
        scores = classical_norm(method, trials.scores, *arrays, rows=trials.rows, cols=trials.cols, **how)
    except CohortError as error:
        cohort = {"cohort enrolment": blocks.cohort_enroll, "cohort test": blocks.cohort_test}
        sides = {"enrolment": trials.enroll, "test": trials.test, **cohort}
        side = sides[error.side]
        raise error.with_id(side.ids[error.row] if side is not None else str(error.row)) from None
    return trials.with_normalized(scores)


def _call(module: str, name: str, *args: Any, **options: Any) -> Any:
    """Call a function of a module that is imported only then: norms do not load the models that some of them use."""
    return getattr(import_module(module), name)(*args, **options)


#: Every norm by name; `register_norm` adds to it.
METHODS = {"raw": Method(lambda blocks: blocks.trials, lambda blocks, options: (blocks.only(()), dict(options)))}
METHODS |= {name: Method(partial(_classical, name), partial(_prepare_classical, name)) for name in CLASSICAL}
METHODS["lgsm"] = Method(
    partial(_call, "evenscore.model.scoring", "lgsm_norm"), fit=partial(_call, "evenscore.model.fit", "fit_lgsm")
)
METHODS["evidence"] = Method(
    partial(_call, "evenscore.evidence.fit", "evidence_norm"),
    lambda blocks, options: (blocks, {**options, "prepared": {}}),  # what folds of the same cohort share
    fit=partial(_call, "evenscore.evidence.fit", "fit_evidence"),
)
