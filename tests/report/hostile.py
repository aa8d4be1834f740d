"""A comparison in which every text that comes from a user's file or command is an attack or a nuisance."""

import dataclasses
from types import SimpleNamespace

NAMES = (
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(2)>",
    "\"' onmouseover='alert(3)' x=\"",
    '<a href="javascript:alert(4)">click</a>',
    "%{meta} $x^2$ {{ 7 * 7 }} {% raw %} &lt;b&gt; <b>bold</b>",
    "\u202eright to left \u05e9\u05dc\u05d5\u05dd",
    "line\u2028end -->]]><!--",
    "x" * 500,
)

AS_SHOWN = tuple(name.replace("\u202e", "\\u202e").replace("\u2028", "\\u2028") for name in NAMES)


def spoiled(comparison):
    """Return the same comparison with other texts."""
    renamed = {
        method.name: NAMES[place % len(NAMES)]
        for place, method in enumerate(m for m in comparison.methods if m.name != "raw")
    }
    conditions = dict(zip(comparison.trials.names, NAMES, strict=False))
    methods = tuple(
        dataclasses.replace(
            method,
            name=renamed.get(method.name, method.name),
            norm=NAMES[0],
            options={NAMES[1]: NAMES[2]},
            notes=NAMES,
            conditions={conditions[name]: figures for name, figures in method.conditions.items()},
        )
        for method in comparison.methods
    )
    object.__setattr__(methods[0], "contributions", SimpleNamespace(features=NAMES, trials=NAMES, values=values()))
    return dataclasses.replace(
        comparison,
        methods=methods,
        not_run=dict(zip(NAMES, reversed(NAMES), strict=True)),
        trials=dataclasses.replace(comparison.trials, names=tuple(conditions.values())),
        how=dataclasses.replace(comparison.how, calibration=NAMES[0]),
        cohorts=tuple(spoiled_cohort(cohort) for cohort in comparison.cohorts),
        data=dataclasses.replace(comparison.data, training_speakers_from=NAMES[1]),
        warnings=NAMES,
        run=dataclasses.replace(comparison.run, command=" ".join(NAMES), versions={NAMES[0]: NAMES[1]}, time=NAMES[2]),
    )


def values():
    return [[float(row - column) for column in range(len(NAMES))] for row in range(len(NAMES))]


def spoiled_cohort(cohort):
    from evenscore.comparison.cohorts import CohortMember, HiddenTarget

    member = CohortMember(side="enroll", id=NAMES[0], speaker=NAMES[1], mean=0.0, std=1.0, mean_z=9.0, std_z=0.0)
    hidden = HiddenTarget(side="test", trial_id=NAMES[2], cohort_id=NAMES[3], score=5.0, z=8.0)
    return dataclasses.replace(
        cohort, name=NAMES[4], shared_with_evaluation=NAMES, outliers=(member,), hidden_targets=(hidden,)
    )


def harmless(comparison):
    """Return the spoiled comparison with a letter instead of each text, for comparing the two pages."""
    letters = dict(zip(NAMES, "abcdefgh", strict=True))

    def plain(value):
        if isinstance(value, str):
            for name, letter in letters.items():
                value = value.replace(name, letter)
            return value
        if isinstance(value, tuple | list):
            return type(value)(plain(item) for item in value)
        if isinstance(value, dict):
            return {plain(key): plain(item) for key, item in value.items()}
        if isinstance(value, SimpleNamespace):
            return SimpleNamespace(**plain(vars(value)))
        if dataclasses.is_dataclass(value) and type(value).__module__.startswith("evenscore.comparison"):
            made = object.__new__(type(value))
            for name, item in vars(value).items():
                object.__setattr__(made, name, plain(item))
            return made
        return value

    return plain(spoiled(comparison))
