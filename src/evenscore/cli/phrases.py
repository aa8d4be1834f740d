"""Phrases of tests and embeddings: from a pattern of the ids, from a file, or from a column of the embeddings."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from evenscore.cli.inputs import COLUMN
from evenscore.errors import InputError
from evenscore.files import read_speakers
from evenscore.tables import Embeddings, ScoreBlocks
from evenscore.tables.ids import Ids, shown

__all__ = ["of_phrase", "phrase_names", "phrases_of", "phrases_of_blocks", "phrases_of_vectors"]

PATTERN = "re:"  #: what a regular expression begins with, to tell it from the name of a file


def phrases_of(tests: Ids, source: str) -> dict[str, str]:
    """Return the phrase of each test id.

    They come from ``re:`` and a regular expression with one group, which is the phrase; or from a file with an id and
    its phrase in each line.
    """
    if source.startswith(COLUMN):
        raise InputError(f"--phrase-from {source}: scores have no columns; give 're:' and a pattern, or a file")
    found = _found(tests, source)
    _refuse_absent([name for name in tests if name not in found], source, "test")
    return {name: found[name] for name in tests}


def phrases_of_blocks(blocks: ScoreBlocks, source: str) -> dict[str, str]:
    """Return the phrase of each test of trials and cohort, and of the cohort's enrolments if they have some."""
    cohort = blocks.cohort_test_axis
    found = phrases_of(blocks.trials.test_ids, source) | ({} if cohort is None else phrases_of(cohort.ids, source))
    members = blocks.cohort_enroll_axis
    return found if members is None else found | dict(_found(members.ids, source))


def phrases_of_vectors(tests: Embeddings, cohort: Embeddings, source: str) -> dict[str, str]:
    """Return the phrase of each test embedding and of each cohort member."""
    sides = (tests, "test"), (cohort, "cohort")
    return {
        name: str(phrase)
        for side, what in sides
        for name, phrase in zip(side.ids, _of_embeddings(side, source, what), strict=True)
    }


def phrase_names(tests: Embeddings, source: str | None) -> list[str]:
    """Return the phrases of test embeddings; one without a name if phrases are not known."""
    return [""] if source is None else list(dict.fromkeys(map(str, _of_embeddings(tests, source, "test"))))


def of_phrase(
    embeddings: Embeddings, phrase: str, source: str | None, side: str, *, may_lack: bool = False
) -> Embeddings:
    """Return the embeddings of one phrase; with ``may_lack``, all of them if none has a phrase."""
    if source is None:
        return embeddings
    phrases = _of_embeddings(embeddings, source, side, may_lack=may_lack)
    here = [found in (None, phrase) for found in phrases]
    if not any(here):
        raise InputError(f"there is no {side} vector of phrase {phrase!r}, but there are tests of it; leave them out")
    return embeddings.take(np.array(here))


def _of_embeddings(embeddings: Embeddings, source: str, side: str, *, may_lack: bool = False) -> list[str | None]:
    """Return the phrase of each embedding; with ``may_lack``, all of them None if none has a phrase."""
    if source.startswith(COLUMN):
        name = source.removeprefix(COLUMN)
        if name in embeddings.columns:
            return [str(value) for value in embeddings.columns[name]]
        if may_lack:
            return [None] * len(embeddings)
        raise InputError(
            f"--phrase-from {source}: the {side} embeddings have no such column, but {shown(embeddings.columns)}"
        )
    found = _found(embeddings.ids, source)
    absent = [name for name in embeddings.ids if name not in found]
    if may_lack and len(absent) == len(embeddings):
        return [None] * len(embeddings)
    _refuse_absent(absent, source, side)
    return [found[name] for name in embeddings.ids]


def _found(ids: Ids, source: str) -> Mapping[str, str]:
    if source.startswith(PATTERN):
        pattern = _compiled(source.removeprefix(PATTERN))
        return {name: match[1] for name in ids if (match := pattern.search(name)) and match[1] is not None}
    return read_speakers(source, format="utt2spk")


def _refuse_absent(absent: list[str], source: str, side: str) -> None:
    if absent:
        remedy = "correct the pattern" if source.startswith(PATTERN) else "add it to the file"
        raise InputError(f"--phrase-from {source}: no phrase for {side} {shown(absent)}; {remedy}")


def _compiled(text: str) -> re.Pattern[str]:
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise InputError(f"--phrase-from: {text!r} is not a regular expression: {error}") from None
    if pattern.groups != 1:
        raise InputError(
            f"--phrase-from: {text!r} has {pattern.groups} groups, but needs one pair of parentheses: the phrase"
        )
    return pattern
