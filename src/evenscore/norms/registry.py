"""The one table of methods: how each is prepared, how it is trained, and which record it leaves.

A new norm is one module and one entry here (or a call of `register_norm`): command line, tiles, clusters, embeddings,
`compare` and model files find everything they need in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.metadata import entry_points
from inspect import signature
from typing import Any, Protocol

from evenscore.errors import InputError
from evenscore.norms.options import CLASSICAL_METHODS, NormOptions
from evenscore.tables.blocks import ScoreBlocks
from evenscore.tables.ids import shown
from evenscore.tables.score_matrix import ScoreMatrix
from evenscore.tables.trial_list import TrialList

__all__ = [
    "METHODS",
    "Method",
    "Normalizer",
    "check_options",
    "method_named",
    "norm_methods",
    "prepare_as_given",
    "register_norm",
]


class Normalizer(Protocol):
    """A norm that is ready to use.

    If it has a method ``parts(blocks, how)``, which returns a `Parts` or None, large data need no whole blocks: a few
    numbers for each enrolment and each test, then one pass over the trials.
    """

    def normalize(self, blocks: ScoreBlocks) -> ScoreMatrix | TrialList:
        """Return the normalized trials of blocks in memory, as a matrix or a list just as they came."""
        ...


ENTRY_POINTS = "evenscore.norms"  #: the group under which packages bring norms
#: What functions of methods take besides.
NO_OPTIONS = ("method", "training", "data", "client", "progress", "keep_self_pairs")
#: Options that are objects.
OBJECTS = (
    *("cohort", "cohort_labels", "cohort_enroll_speakers", "cohort_test_speakers"),
    *("conditions", "options", "score_model"),
)
Named = Callable[..., Any] | str  #: a function, or "module:function" of one, which is imported when it is first used


@dataclass(frozen=True, kw_only=True)
class Method:
    """What is known about a norm.

    Attributes
    ----------
    prepare
        Called as ``prepare(method, **options)``, returns a `Normalizer`, and refuses options that it does not know.
    train
        Called as ``train(method, training, progress=..., client=..., **options)`` with a list of `LabelledBlocks`;
        returns a `FittedNorm`. None if there is nothing to learn.
    record
        The class of what is trained, with ``to_dict()`` and ``from_dict(values)`` (unless `evenscore.files` has a
        format for it): so it becomes a file. None if nothing is trained.
    options
        A function whose arguments are options, too, if `train` only hands them on to it.
    version
        A text that changes when the norm does, so that results of another one are not used again.
    """

    prepare: Named | None = None
    train: Named | None = None
    record: Named | None = None
    options: Named | None = None
    version: str = ""


METHODS: dict[str, Method] = {
    "raw": Method(train="evenscore.norms.fitting:fit_raw"),
    **dict.fromkeys(CLASSICAL_METHODS, Method(prepare="evenscore.norms.classical:prepare_classical")),
    "lgsm": Method(
        prepare="evenscore.norms.score_model:prepare_score_model",
        train="evenscore.norms.score_model:fit_score_model_norm",
        record="evenscore.model.parameters:ScoreModel",
        options="evenscore.model.fit:fit_score_model",
    ),
    "evidence": Method(
        prepare="evenscore.evidence.normalizer:prepare_evidence",
        train="evenscore.evidence.normalizer:fit_evidence_norm",
        record="evenscore.evidence.model:CohortEvidence",
        options="evenscore.evidence.fit:train_evidence",
    ),
}


def loaded(function: Named) -> Any:
    """Return a function, imported if it is given by name."""
    if not isinstance(function, str):
        return function
    module, _, name = function.partition(":")
    return getattr(import_module(module), name)


def register_norm(
    method: str, prepare: Named | None = None, *, train: Named | None = None, record: Named | None = None
) -> None:
    """Make a norm known under a name.

    Parameters
    ----------
    method
        The name; a name that is taken is an error.
    prepare, train, record
        See `Method`; one of the first two is needed. Each may be ``"package.module:name"``, imported when it is first
        used.

    Examples
    --------
    >>> class Halved:
    ...     def normalize(self, blocks):
    ...         return blocks.trials.with_scores(blocks.trials.scores / 2)
    >>> register_norm("halved", lambda method: Halved())
    >>> from evenscore import ScoreMatrix, normalize
    >>> normalize(ScoreBlocks(ScoreMatrix([[3.0]], ["e"], ["t"])), "halved").scores
    array([[1.5]])
    """
    if method in METHODS:
        raise InputError(f"there is a norm {method!r} already; take another name")
    if prepare is None and train is None:
        raise InputError(f"nothing says how the norm {method!r} is made; give `prepare`, or `train`")
    METHODS[method] = Method(prepare=prepare, train=train, record=record)


def norm_methods() -> tuple[str, ...]:
    """Return the names of all norms that `normalize` knows.

    Examples
    --------
    >>> norm_methods()[:3]
    ('z', 't', 'zt')
    """
    return tuple(name for name, method in METHODS.items() if method.prepare is not None)


def method_named(name: str) -> Method:
    """Return what is known about a method; a name that is not known is an error that lists those that are.

    An installed package may bring norms of its own: entry points of the group ``evenscore.norms``, each a `Method`, or
    a function to prepare the norm. They are looked for when a name is not known.
    """
    if name not in METHODS:
        for point in entry_points(group=ENTRY_POINTS, name=name):
            found = point.load()
            method = found if isinstance(found, Method) else Method(prepare=found)
            METHODS[name] = replace(method, version=method.version or getattr(point.dist, "version", ""))
    if name not in METHODS:
        raise InputError(f"there is no method {name!r}; there are {', '.join(METHODS)}")
    return METHODS[name]


def prepare_as_given(method: str = "as", **options: Any) -> Any:
    """Prepare a norm as `evenscore.prepare_norm` does, but for one thing: ``top_k`` is left as it is given.

    An adaptive norm without it takes 300, or the whole cohort if that is smaller. The cohort-evidence model is made of
    such norms, and its files must keep their meaning; for users there is one default, see `NormOptions`.
    """
    prepare = METHODS[method].prepare if method in METHODS else _installed(method)
    if prepare is None:
        raise InputError(f"there is no norm {method!r}; there are {', '.join(norm_methods())}")
    made = loaded(prepare)
    if method in CLASSICAL_METHODS:
        NormOptions.of(**no_objects(options))
    refuse_unknown_options(method, made, options)
    return made(method, **options)


def _installed(name: str) -> Named | None:
    try:
        return method_named(name).prepare
    except InputError:
        return None


def check_options(method: str, options: Mapping[str, Any]) -> None:
    """Refuse options that a method cannot have, whatever the scores are.

    Examples
    --------
    >>> check_options("lgsm", {"tol": "low"})
    Traceback (most recent call last):
    evenscore.errors.InputError: tol is 'low', but must be a number
    """
    known = method_named(method)
    if known.train is None:
        prepare_as_given(method, **options)
        return
    train, inner = loaded(known.train), loaded(known.options or known.train)
    own = {name: one.default for name, one in signature(train).parameters.items()}
    refuse_unknown_options(method, inner, {name: value for name, value in options.items() if name not in own})
    usual = own | {name: one.default for name, one in signature(inner).parameters.items()}
    for name, value in options.items():
        if isinstance(usual.get(name), int | float) and isinstance(value, str):
            raise InputError(f"{name} is {value!r}, but must be a number")


def no_objects(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return those options that only Python can give, but whose value is a number or a text."""
    return {name: options[name] for name in OBJECTS if isinstance(options.get(name), str | int | float)}


def refuse_unknown_options(method: str, function: Callable[..., Any], options: Mapping[str, Any]) -> None:
    """Refuse options of a method that a function does not take by name, and list those that it takes.

    Numbers and texts in place of objects, such as ``cohort=3`` from a command line, are no options, either.

    Examples
    --------
    >>> refuse_unknown_options("mine", lambda method, *, share=0.5: None, {"part": 3})
    Traceback (most recent call last):
    evenscore.errors.InputError: the method 'mine' has no option 'part'; it has share
    """
    parameters = signature(function).parameters.values()
    if any(one.kind is one.VAR_KEYWORD for one in parameters):  # it looks at them by itself
        return
    known = [one.name for one in parameters if one.name not in (*NO_OPTIONS, *no_objects(options))]
    odd = [name for name in options if name not in known]
    if odd:
        raise InputError(f"the method {method!r} has no option {shown(odd)}; it has {', '.join(known) or 'none'}")
