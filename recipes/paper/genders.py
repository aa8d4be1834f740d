"""The two genders apart: models, cohorts and trials within one gender, as in the paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from evenscore import InputError, LabelledBlocks, Labels, ScoreBlocks, ScoreMatrix

__all__ = ["GENDER_NAMES", "genders_of", "within_gender"]

GENDER_NAMES = {"f": "female", "m": "male", "": "all"}  #: what the groups of trials are called

_FEWEST = {"development": 4, "evaluation": 2}  # a trial has two speakers, and a cohort without them must still vary


def genders_of(gender: Mapping[str, str], sides: Mapping[str, Sequence[LabelledBlocks]]) -> tuple[str, ...]:
    """Return the genders to look at one by one, or ('',) if a speaker's gender is not known: then all are together.

    Parameters
    ----------
    gender
        Of each speaker.
    sides
        The ``development`` and the ``evaluation`` blocks.

    Raises
    ------
    InputError
        If a gender has too few speakers for cohorts or for trials.
    """
    speakers = {side: set().union(*map(_speakers, parts)) for side, parts in sides.items()}
    found = {gender.get(speaker, "") for group in speakers.values() for speaker in group}
    kinds = ("",) if "" in found else tuple(sorted(found))
    for side, group in speakers.items():
        for kind in kinds:
            number = sum(kind in ("", gender.get(speaker)) for speaker in group)
            if number < _FEWEST[side]:
                kind_name = f"{GENDER_NAMES.get(kind, kind)} " if kind else ""
                raise InputError(
                    f"the {side} set has {number} {kind_name}speakers, but at least {_FEWEST[side]} are needed; "
                    "give more speakers, or recordings of one gender only"
                )
    return kinds


def within_gender(part: LabelledBlocks, gender: Mapping[str, str], kind: str) -> LabelledBlocks | None:
    """Return the trials and cohorts of one gender, None if there are no such trials; '' takes everybody.

    Examples
    --------
    >>> from evenscore import ScoreModel, simulate
    >>> model = ScoreModel(mu=[0.0, 4.0], alpha=[[1.0], [1.0]], beta=[[0.5], [0.5]], sigma2=[1.0, 1.0])
    >>> speakers = ["ann", "bob", "cat", "dan", "eve"]
    >>> part = LabelledBlocks.own_cohort(*simulate(model, speakers, speakers * 2, seed=1))
    >>> gender = {"ann": "f", "bob": "m", "cat": "f", "dan": "m", "eve": "f"}
    >>> within_gender(part, gender, "f").blocks
    ScoreBlocks(trials 3 x 6, enroll 3 x 6, test 3 x 6, cohort 3 x 6, speakers of ...)
    """
    if not kind:
        return part
    old = part.blocks
    rows, columns = (_members(side, gender, kind) for side in (old.enroll_speakers, old.test_speakers))
    if not len(rows) or not len(columns):
        return None
    cohort_rows = _members(old.cohort_enroll_speakers, gender, kind)
    cohort_columns = _members(old.cohort_test_speakers, gender, kind)
    trials = _matrix(old.trials).take(rows, columns)
    blocks = ScoreBlocks(
        trials,
        enroll=None if old.enroll is None else old.enroll.take(rows, cohort_columns),
        test=None if old.test is None else old.test.take(cohort_rows, columns),
        cohort=None if old.cohort is None else old.cohort.take(cohort_rows, cohort_columns),
        enroll_speakers=_taken(old.enroll_speakers, rows),
        test_speakers=_taken(old.test_speakers, columns),
        cohort_enroll_speakers=_taken(old.cohort_enroll_speakers, cohort_rows),
        cohort_test_speakers=_taken(old.cohort_test_speakers, cohort_columns),
    )
    labels = Labels.from_speakers(
        _taken(old.enroll_speakers, rows),
        _taken(old.test_speakers, columns),
        enroll_ids=trials.enroll_ids,
        test_ids=trials.test_ids,
    )
    return LabelledBlocks(blocks, labels, part.name)


def _matrix(trials: object) -> ScoreMatrix:
    if not isinstance(trials, ScoreMatrix):
        raise InputError("the trials of a phrase must be a score matrix, every enrolment against every test")
    return trials


def _speakers(part: LabelledBlocks) -> set[str]:
    sides = (part.blocks.enroll_speakers, part.blocks.test_speakers)
    if any(side is None for side in sides):
        raise InputError(f"the speakers of phrase {part.name!r} are not known; give them with the score blocks")
    return {speaker for side in sides if side is not None for speaker in side}


def _members(speakers: np.ndarray | None, gender: Mapping[str, str], kind: str) -> np.ndarray:
    """Return the places of the speakers of one gender."""
    known = [] if speakers is None else speakers.tolist()
    return np.array([at for at, speaker in enumerate(known) if gender.get(speaker) == kind], dtype=np.intp)


def _taken(speakers: np.ndarray | None, places: np.ndarray) -> np.ndarray:
    if speakers is None:
        raise InputError("speakers must be known on all sides of the score blocks")
    return speakers[places]
