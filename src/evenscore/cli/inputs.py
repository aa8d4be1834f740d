"""Reading what commands work on: scores, whole or tile by tile; embeddings and what is known about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from evenscore.errors import FileError, InputError
from evenscore.files import (
    ReadOptions,
    open_scores as open_file,
    read,
    read_embeddings,
    read_scores,
    read_speakers,
    read_trials,
    sniff,
    spooled,
)
from evenscore.files.numpy_files import is_score_npy
from evenscore.files.streams import ZARR_MARKS
from evenscore.tables import Axis, Embeddings, ScoreTable, TrialList
from evenscore.tables.ids import Ids, shown

if TYPE_CHECKING:
    from evenscore.cli.norm_options import CohortChoices
    from evenscore.cli.options import ScaleChoices
    from evenscore.cli.output import ScoredOutput
    from evenscore.cli.quality import QualityOutput
    from evenscore.sources import Scorer

__all__ = [
    "CONDITION",
    "TRIALS",
    "EmbeddingFiles",
    "kind_of",
    "open_matrix",
    "open_scores",
    "open_tiles",
    "read_conditions",
    "write_scores_of",
]

CONDITION = "condition"  #: the column of the embeddings that are returned, if there are conditions
_UNKNOWN = "-"  # in a map of conditions
_LENGTH_NORM = ":length_norm="  # after the name of a map
_LOOKED_AT = 5000  # scores that are made anew, to see whether the scorer is that of the scores
_ENOUGH = 10  # of them, to tell
_ALIKE = 0.9  # correlation of scores of one scorer, but for rounding and the like
_Map = Mapping[str, str | None]
TRIALS = ("scores", "trials")  #: the kinds of tables that have trials
COLUMN = "column:"  #: what the name of a column begins with


def kind_of(table: Any) -> str:
    """Return what a table that was read holds: scores, trials without scores, embeddings or speakers."""
    if isinstance(table, Embeddings):
        return "embeddings"
    if isinstance(table, Mapping):
        return "speakers"
    return "trials" if isinstance(table, TrialList) and table.scores is None else "scores"


def open_scores(source: str, scale: ScaleChoices | None = None, *, infinite: bool = False) -> ScoreTable:
    """Read scores; with ``scale``, those that can be read tile by tile stay where they are.

    ``infinite`` tells whether infinite scores are scores like others, as those of log-likelihood ratios are.
    """
    options = ReadOptions(kind="scores", infinite="accept" if infinite else "error")
    found = None if scale is None else _opened(source, options)
    if found is None or scale is None:
        return read_scores(source, infinite=options.infinite)
    return found.in_tiles(scale.tile_bytes)


def open_tiles(source: str, scale: ScaleChoices | None = None, *, infinite: bool = False) -> ScoreTable:
    """Read scores; with ``scale``, those that had to be read whole are cut into tiles, too."""
    scores = open_scores(source, scale, infinite=infinite)
    return scores.in_tiles(scale.tile_bytes) if scale is not None and scores.is_in_memory else scores


def open_matrix(path: str, scale: ScaleChoices | None = None) -> ScoreTable:
    """Read scores, such as those of a cohort, that must be a matrix; pairs that are not listed are missing."""
    from evenscore.cli.labelled import as_matrix

    scores = open_scores(path, scale)
    return as_matrix(scores.in_memory()) if scores.listed else scores


def _opened(path: str, options: ReadOptions) -> ScoreTable | None:
    """Open scores that can be read tile by tile; None if this file's cannot."""
    file = Path(path)
    store = file.is_dir() and any((file / mark).exists() for mark in ZARR_MARKS)
    if file.suffix.lower() not in (".parquet", ".pq") and not store and not is_score_npy(path):
        return None
    try:
        return open_file(path, options)
    except FileError as error:
        if error.part not in ("scores", "enroll_ids", "test_ids"):
            raise
        return None  # a store of listed trials, for instance


@dataclass(frozen=True, kw_only=True)
class EmbeddingFiles:
    """Where embeddings and what is known about them come from: names of files."""

    enroll: str
    test: str
    cohort: str | None = None
    enroll_map: str | None = None  #: with its option, as `EnrollMap` explains it
    speakers: str | None = None
    cohort_speakers: str | None = None
    conditions: str | None = None
    cohort_conditions: str | None = None

    def read_trial_sides(self, scorer: Scorer | None = None) -> tuple[Embeddings, Embeddings]:
        """Read the enrolments and the tests; they are one object if both are the same file.

        Enrolments of several utterances are what the scorer takes for such, by default mean vectors.
        """
        from evenscore.files.speakers import read_members
        from evenscore.scoring import enroll_models
        from evenscore.sources import Cosine

        utterances = read_embeddings(self.enroll)
        if self.enroll_map is None:
            enroll = self._with_facts(utterances, utterances, {}, "enrolment")
            if self.test == self.enroll:
                return enroll, enroll
        else:
            path, _, length_norm = self.enroll_map.partition(_LENGTH_NORM)
            if not path:
                raise InputError(f"{self.enroll_map!r} tells how to average, not what; name a file of --enroll-map")
            models = read_members(path)
            how: Any = length_norm or "none"
            means = enroll_models(scorer or Cosine(), utterances, models, length_norm=how)
            enroll = self._with_facts(means, utterances, models, "enrolment")
        tests = utterances if self.test == self.enroll else read_embeddings(self.test)
        return enroll, self._with_facts(tests, tests, {}, "test")

    def read_cohort(self, choices: CohortChoices | None = None) -> Embeddings:
        """Read the cohort and choose its members."""
        assert self.cohort is not None  # noqa: S101
        utterances = read_embeddings(self.cohort)
        path = self.cohort_speakers or self.speakers
        if path is not None:
            known = read_speakers(path)
            utterances = utterances.with_speakers(_values(utterances.ids, {}, known, path, "speaker", "cohort member"))
        members = utterances if choices is None else choices.chosen(utterances)
        source = self.cohort_conditions or self.conditions
        if source is None:
            return members
        by_speaker: dict[str, list[str]] = {}
        if choices is not None and choices.by_speaker and utterances.speakers is not None:
            for name, speaker in zip(utterances.ids, utterances.speakers, strict=True):
                by_speaker.setdefault(speaker, []).append(name)
        return _with_conditions(members, utterances, by_speaker, source, "cohort member")

    def _with_facts(
        self, sides: Embeddings, utterances: Embeddings, models: Mapping[str, Sequence[str]], what: str
    ) -> Embeddings:
        if self.speakers is not None:
            known = read_speakers(self.speakers)
            sides = sides.with_speakers(_values(sides.ids, models, known, self.speakers, "speaker", what))
        if self.conditions is not None:
            sides = _with_conditions(sides, utterances, models, self.conditions, what)
        return sides


def write_scores_of(
    files: EmbeddingFiles,
    trials: str | None,
    place: ScoredOutput,
    scale: ScaleChoices | None,
    *,
    members: CohortChoices | None = None,
    measures: QualityOutput | None = None,
    phrase_from: str | None = None,
    **norm: Any,
) -> None:
    """Write the scores of embeddings, normalized if a norm is among the options of `score_embeddings`.

    With ``scale`` they are made tile by tile when they are written.
    """
    from evenscore.scoring import embedding_quality, score_embeddings, score_lazily

    found: Any = None
    if trials is not None:
        found = read_trials(trials) if files.cohort is None else _trials_or_scores(trials, scale)
    if measures is not None:
        measures.refuse_matrix(found is not None and found.listed)
    enroll, test = files.read_trial_sides(norm.get("scorer"))
    if trials is not None:
        refuse_strangers(found, trials, "--trials", (enroll, test), files)
    if files.cohort is not None:
        norm["cohort"] = cohort = files.read_cohort(members)
        refuse_other_dimension({"enroll": enroll, "test": test, "cohort": cohort}, files)
        ids = (enroll.ids, test.ids) if found is None else (found.enroll_ids, found.test_ids)
        used = [side.axis.take(side.find(names)) for side, names in zip((enroll, test), ids, strict=True)]
        warn_of_own_utterances(used, (cohort,))
        if found is not None and kind_of(found) == "scores":
            _warn_of_another_scorer(trials, found, norm["scorer"], enroll, test)
    scores: ScoreTable
    if phrase_from is not None:
        place.write(_scored_by_phrase((enroll, test), found, phrase_from, progress=place.progress, **norm))
        return
    if scale is not None:
        place.check(found is not None and found.listed)
        scores = score_lazily(enroll, test, found, **norm, **place.how, keep=place.store).in_tiles(scale.tile_bytes)
    else:
        scores = score_embeddings(enroll, test, found, progress=place.progress, **norm)
    if measures is None:
        place.write(scores)
    else:
        measures.write(scores, place, lambda: embedding_quality(enroll, test, scores, **norm, **place.how))


def _scored_by_phrase(
    sides: tuple[Embeddings, Embeddings],
    trials: Any,
    phrase_from: str,
    *,
    scorer: Scorer,
    cohort: Embeddings,
    method: str,
    condition: str | None = None,
    **options: Any,
) -> ScoreTable:
    from evenscore.cli.phrases import phrases_of_vectors
    from evenscore.norms import normalize_by_phrase
    from evenscore.sources import score_blocks

    listed = trials if trials is None or trials.listed else trials.to_trials()
    tests = sides[1] if listed is None else sides[1].select(listed.test_ids)
    blocks = score_blocks(scorer, *sides, cohort, trials=listed)
    return normalize_by_phrase(blocks, phrases_of_vectors(tests, cohort, phrase_from), method, **options)


def refuse_strangers(
    trials: ScoreTable, path: str, option: str, sides: tuple[Embeddings, Embeddings], files: EmbeddingFiles
) -> None:
    """Refuse trials whose ids are not among the embeddings; the message names files and options."""
    where = f"the embeddings of {files.enroll} (--enroll-embeddings)"
    if files.enroll_map is not None:
        where = f"the enrolments of {files.enroll_map} (--enroll-map)"
    named = ((where, "enrolment", trials.enroll_ids), (f"{files.test} (--test-embeddings)", "test", trials.test_ids))
    for place, (where, side, ids) in enumerate(named):
        sides[place].positions(ids, f"{path} ({option}): {side}", where, sides[1 - place])


def refuse_other_dimension(vectors: Mapping[str, Embeddings], files: EmbeddingFiles) -> None:
    """Refuse embeddings that are not of one dimension; the message names files and options."""
    named = {side: f"{getattr(files, side)} (--{side}-embeddings)" for side in vectors}
    for side, one in vectors.items():
        if one.dim != vectors["enroll"].dim:
            raise InputError(
                f"{named[side]}: its embeddings have {one.dim} dimensions, but those of {named['enroll']} have "
                f"{vectors['enroll'].dim}; all must come from the same extractor"
            )


def warn_of_own_utterances(trials: Sequence[Axis], cohort: Sequence[Axis]) -> None:
    """Say so if the cohort has utterances of the trials, and nobody knows whose other utterances they are."""
    if all(axis.speakers is not None for axis in (*trials, *cohort)):
        return
    here = {name for axis in trials for name in axis.ids}
    own = list(dict.fromkeys(name for axis in cohort for name in axis.ids if name in here))
    if own:
        typer.echo(
            f"warning: {len(own)} cohort members are utterances of the trials ({shown(own)}), and as speakers are not "
            "known, scores of the trials' own speakers count as those of impostors; give --speakers, or a cohort of "
            "others",
            err=True,
        )


def _trials_or_scores(path: str, scale: ScaleChoices | None) -> ScoreTable:
    """Read trials, with their scores if they have some; 0 and 1 beside two ids are labels."""
    opened = None if scale is None else _opened(path, ReadOptions(kind="scores"))
    if opened is not None and scale is not None:
        return opened.in_tiles(scale.tile_bytes)
    with spooled(path) as local:
        table: Any = read(local, format=sniff(local, kind="trials").name)
    if kind_of(table) not in TRIALS:
        raise FileError(path, f"it holds {kind_of(table)}, but must hold scores to normalize, or trials to score")
    return table


def _warn_of_another_scorer(
    path: Any, scores: ScoreTable, scorer: Scorer, enroll: Embeddings, test: Embeddings
) -> None:
    """Say so if scores that are normalized are unlike those that the scorer makes, as it makes the cohort's."""
    from evenscore.sources.scorers import scored

    at = enroll.find(scores.enroll_ids), test.find(scores.test_ids)
    tile = scores.read(scores.places()[0])
    pairs = [part.ravel() for part in np.broadcast_arrays(*tile.pair(*at))]
    given = tile.scores.ravel()
    some = np.flatnonzero(np.isfinite(given))
    some = some[:: -(-len(some) // _LOOKED_AT) or 1]
    if len(some) < _ENOUGH:
        return
    given, made = given[some], scored(scorer, enroll, test).pairs(pairs[0][some], pairs[1][some])
    likeness = np.corrcoef(given, made)[0, 1] if given.std() and made.std() else 1.0
    if likeness < _ALIKE or abs(given.mean() - made.mean()) > max(given.std(), made.std()):
        typer.echo(
            f"warning: {path}: these scores are unlike those that --scorer makes of the same trials (correlation "
            f"{likeness:.2f}, mean {given.mean():.3g} against {made.mean():.3g}), and it makes the cohort scores; "
            "give the scorer that they come from, or trials without scores",
            err=True,
        )


def read_conditions(path: str) -> dict[str, str | None]:
    """Read a map from id to condition, None where it is not known."""
    if path.startswith(COLUMN):
        raise InputError(f"{path!r}: scores have no columns; give a file with lines 'id condition'")
    known = read_speakers(path, format="utt2spk")
    return {name: None if value == _UNKNOWN else value for name, value in known.items()}


def _with_conditions(
    members: Embeddings, utterances: Embeddings, averaged: Mapping[str, Sequence[str]], source: str, what: str
) -> Embeddings:
    known: _Map
    if source.startswith(COLUMN):
        column = source.removeprefix(COLUMN)
        if column not in utterances.columns:
            have = shown(utterances.columns, most=20) if utterances.columns else "none"
            raise InputError(f"the embeddings of each {what} have no column {column!r}; their columns: {have}")
        values = utterances.columns[column].tolist()
        known = {
            name: None if value is None else str(value) for name, value in zip(utterances.ids, values, strict=True)
        }
    else:
        known = read_conditions(source)
    found = _values(members.ids, averaged, known, source, "condition", what)
    return Embeddings(
        members.ids,
        members.vectors,
        members.speakers,
        columns={**members.columns, CONDITION: np.array(found, dtype=object)},
    )


def _values(
    ids: Ids, averaged: Mapping[str, Sequence[str]], known: _Map, path: str, fact: str, what: str
) -> list[str | None]:
    """Return the value of each id: its own in the map, else the one that the utterances it was averaged from share."""
    values, absent = [], []
    for name in ids:
        if name in known:
            values.append(known[name])
            continue
        parts = averaged.get(name, ())
        if not parts or any(part not in known for part in parts):
            absent.append(name)
        shared = {known[part] for part in parts if part in known}
        values.append(shared.pop() if len(shared) == 1 else None)
    if absent:
        raise InputError(f"{path} has no {fact} for {what} {shown(absent)}; add it to the map")
    return values
