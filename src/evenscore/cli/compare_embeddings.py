"""Training and evaluation blocks of `evenscore compare` from embeddings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from evenscore.cli.cohort_options import CohortChoices
from evenscore.cli.combine import with_key
from evenscore.cli.embedding_sets import EmbeddingFiles
from evenscore.cli.phrases import phrases_of_embeddings
from evenscore.cli.scale_options import ScaleChoices
from evenscore.errors import InputError
from evenscore.files import read_trials
from evenscore.sources.blocks import cohort_matrix
from evenscore.sources.scorers import scored
from evenscore.tables import Embeddings, LabelledBlocks, Labels, ScoreBlocks, ScoreTable, TrialList

if TYPE_CHECKING:
    from evenscore.sources import Scorer

__all__ = ["VectorFiles", "blocks_from_embeddings"]


@dataclass(frozen=True, kw_only=True)
class VectorFiles:
    """The embeddings of both sides, and where labels and speakers come from: names of files."""

    train: str
    enroll: str | None = None  #: None, like the tests, if only the training side is wanted
    test: str | None = None
    cohort: str | None = None
    trials: str | None = None
    key: str | None = None
    enroll_map: str | None = None
    speakers: str | None = None
    train_speakers: str | None = None
    cohort_speakers: str | None = None
    phrase_from: str | None = None
    unmatched: Any = "error"
    members: CohortChoices = field(default_factory=CohortChoices)


def blocks_from_embeddings(
    files: VectorFiles, scorer: Scorer, scale: ScaleChoices | None = None
) -> tuple[list[LabelledBlocks], list[LabelledBlocks]]:
    """Score the training and, if wanted, the evaluation side; without cohort embeddings, the former is the cohort.

    With ``scale``, scores are made tile by tile when they are needed.
    """
    training, cohort = _training_side(files), _cohort(files)
    trials = _Trials.read(files)
    phrases = _phrases(training, files.phrase_from) if trials is None else trials.phrases(files.phrase_from)
    sides: tuple[list[LabelledBlocks], list[LabelledBlocks]] = ([], [])
    for phrase in phrases:
        own = _of_phrase(training, phrase, files.phrase_from, "training")
        others = None if cohort is None else _of_phrase(cohort, phrase, files.phrase_from, "cohort", may_lack=True)
        cohort_of_phrase = own if others is None else others
        sides[0].append(_labelled(scorer, (own, own), cohort_of_phrase, None, phrase, scale))
        if trials is not None:
            pair, listed = trials.of_phrase(phrase, files.phrase_from)
            sides[1].append(_labelled(scorer, pair, cohort_of_phrase, listed, phrase, scale))
    return sides


@dataclass(frozen=True, kw_only=True, eq=False)
class _Trials:
    """The evaluation side: its embeddings, and the trials if they are listed."""

    enroll: Embeddings
    test: Embeddings
    listed: TrialList | None

    @classmethod
    def read(cls, files: VectorFiles) -> _Trials | None:
        if files.enroll is None or files.test is None:
            return None
        enroll, test = EmbeddingFiles(
            enroll=files.enroll,
            test=files.test,
            enroll_map=files.enroll_map,
            speakers=files.speakers,
        ).read_trial_sides()
        listed = _listed(files)
        if listed is None and (enroll.speakers is None or test.speakers is None):
            raise InputError("the evaluation trials have no labels; give --key, or the speakers with --speakers")
        return cls(enroll=enroll, test=test, listed=listed)

    def phrases(self, source: str | None) -> Sequence[str]:
        """Return the phrases in which there are trials."""
        return _phrases(self.test if self.listed is None else self.test.select(self.listed.test_ids), source)

    def of_phrase(self, phrase: str, source: str | None) -> tuple[tuple[Embeddings, Embeddings], TrialList | None]:
        """Return the embeddings of both sides, and the listed trials, of one phrase."""
        pair = (
            _of_phrase(self.enroll, phrase, source, "enrolment", may_lack=True),
            _of_phrase(self.test, phrase, source, "test"),
        )
        if self.listed is None:
            return pair, None
        here = set(pair[1].ids)
        kept = np.array([name in here for name in self.listed.test_ids], dtype=bool)
        return pair, self.listed if kept.all() else self.listed.select(kept[self.listed.test_index])


def _training_side(files: VectorFiles) -> Embeddings:
    one = EmbeddingFiles(enroll=files.train, test=files.train, speakers=files.train_speakers or files.speakers)
    training, _ = one.read_trial_sides()
    if training.speakers is None:
        raise InputError(f"the embeddings of {files.train} have no speakers; give --train-speakers")
    return training


def _cohort(files: VectorFiles) -> Embeddings | None:
    if files.cohort is None:
        return None
    return EmbeddingFiles(
        enroll=files.train,
        test=files.train,
        cohort=files.cohort,
        cohort_speakers=files.cohort_speakers or files.speakers,
    ).read_cohort(files.members)


def _listed(files: VectorFiles) -> TrialList | None:
    """Return the trials that are listed, with the labels that are known."""
    key = None if files.key is None else read_trials(files.key)
    if key is not None and key.labels is None:
        raise InputError(f"the key {files.key} has no labels; give a list of trials with labels")
    if files.trials is None:
        return key
    trials = read_trials(files.trials)
    if key is not None:
        return with_key(trials, key, files.unmatched)
    if trials.labels is None:
        raise InputError(f"the trials of {files.trials} have no labels; give a key with --key")
    return trials


def _phrases(embeddings: Embeddings, source: str | None) -> Sequence[str]:
    """Return the phrases of embeddings; one without a name if phrases are not known."""
    if source is None:
        return [""]
    return list(dict.fromkeys(str(phrase) for phrase in phrases_of_embeddings(embeddings, source, "test")))


def _of_phrase(
    embeddings: Embeddings, phrase: str, source: str | None, side: str, *, may_lack: bool = False
) -> Embeddings:
    """Return the vectors of one phrase; those of no phrase belong to all."""
    if source is None:
        return embeddings
    phrases = phrases_of_embeddings(embeddings, source, side, may_lack=may_lack)
    here = np.array([found in (None, phrase) for found in phrases], dtype=bool)
    if not here.any():
        raise InputError(f"there is no {side} vector of phrase {phrase!r}, but there are tests of it; leave them out")
    return embeddings.take(here)


def _labelled(
    scorer: Scorer,
    pair: tuple[Embeddings, Embeddings],
    cohort: Embeddings,
    listed: TrialList | None,
    phrase: str,
    scale: ScaleChoices | None,
) -> LabelledBlocks:
    """Return the trials of one phrase, all of them or those that are listed, with their cohort."""
    labels = Labels.of_axes(*pair) if listed is None else None
    return LabelledBlocks(_blocks(scorer, *pair, cohort, listed, scale), labels, phrase)


def _blocks(
    scorer: Scorer,
    enroll: Embeddings,
    test: Embeddings,
    cohort: Embeddings,
    listed: TrialList | None,
    scale: ScaleChoices | None,
) -> ScoreBlocks:
    """Score trials and their cohort, each two sides once; an utterance has no score with itself."""
    made: dict[tuple[int, int], ScoreTable] = {}

    def table(one: Embeddings, other: Embeddings) -> ScoreTable:
        key = id(one), id(other)
        if key not in made:
            scores = scored(scorer, one, other)
            lazy = scale is not None
            made[key] = scores.without_itself().in_tiles(scale.tile_bytes) if lazy else cohort_matrix(scores)  # type: ignore[union-attr]
        return made[key]

    if listed is None:
        trials = table(enroll, test)
    else:
        enroll, test = enroll.select(listed.enroll_ids), test.select(listed.test_ids)
        scores = scored(scorer, enroll, test)
        known = scores.score_trials(listed).with_axes(enroll.axis, test.axis) if scale is None else None
        trials = scores.of_trials(listed) if known is None else known
    return ScoreBlocks(trials, enroll=table(enroll, cohort), test=table(cohort, test), cohort=table(cohort, cohort))
