"""Scores that are made from embeddings, where a command could read them from a file."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from evenscore.cli.embedding_sets import EmbeddingFiles
from evenscore.cli.scorers import EmbeddingChoices, TrainingChoices, scorer_of
from evenscore.errors import InputError
from evenscore.files import read_trials
from evenscore.tables.ids import shown

if TYPE_CHECKING:
    from evenscore.cli.labelled import LabelSources, SpeakerMap
    from evenscore.sources import Bilinear, Scorer
    from evenscore.tables import Embeddings, LazyScores, ScoreMatrix, TrialList

__all__ = ["EmbeddedScores", "Source", "embedded_scores", "label_sources"]


@dataclass(frozen=True, kw_only=True, eq=False)
class EmbeddedScores:
    """Scores of listed trials, or of all pairs, but those of an utterance with itself; nothing is read before use.

    Attributes
    ----------
    files
        The embeddings and the maps of speakers.
    scoring
        The options that name the scorer.
    trials
        The file that lists the trials, if any.
    is_key
        Whether that file is a key, which must have labels.
    unmatched
        What to do with listed trials that have no embeddings.
    """

    files: EmbeddingFiles
    scoring: EmbeddingChoices
    trials: str | None = None
    is_key: bool = False
    unmatched: Literal["error", "drop"] = "error"

    def __str__(self) -> str:
        enroll, test = self.files.enroll, self.files.test
        return enroll if enroll == test else f"{enroll} and {test}"

    @cached_property
    def scorer(self) -> Scorer:
        """What makes a score from two embeddings."""
        return scorer_of(self.scoring.scorer)

    @cached_property
    def sides(self) -> tuple[Embeddings, Embeddings]:
        """The embeddings of enrolments and tests."""
        return self.files.read_trial_sides()

    @cached_property
    def listed(self) -> TrialList | None:
        """The trials to be scored; None if they are all pairs."""
        if self.trials is None:
            return None
        listed = read_trials(self.trials, infinite="accept")
        if self.is_key and listed.labels is None:
            raise InputError(f"the key {self.trials} has no labels; give a list of trials with labels")
        here = np.ones(len(listed), dtype=bool)
        for side, ids, index, what, path in (
            (self.sides[0], listed.enroll_ids, listed.enroll_index, "enrolment", self.files.enroll),
            (self.sides[1], listed.test_ids, listed.test_index, "test", self.files.test),
        ):
            known = set(side.ids)
            absent = [name for name in ids if name not in known]
            if absent and self.unmatched == "error":
                raise InputError(
                    f"{self.trials}: {path} has no embedding of {what} {shown(absent)}; add it, or leave out such "
                    "trials (--unmatched drop)"
                )
            here &= np.array([name in known for name in ids], dtype=bool)[index]
        if not here.any():
            raise InputError(f"{self.trials} lists no trial of the embeddings of {self}; do they belong together?")
        return listed if here.all() else listed.select(here)

    @cached_property
    def scores(self) -> Bilinear:
        """All scores, as vectors that make them."""
        try:
            return self.scorer.score(*self.sides)
        except InputError as error:
            raise InputError(f"{self}: {error}") from None

    @property
    def size(self) -> int:
        """Number of trials."""
        return len(self.sides[0]) * len(self.sides[1]) if self.listed is None else len(self.listed)

    def table(self) -> ScoreMatrix | TrialList:
        """Return all scores in memory, with the labels of the list, if any."""
        from evenscore.sources.blocks import cohort_matrix

        return cohort_matrix(self.scores) if self.listed is None else self.scores.score_trials(self.listed)

    def lazy(self) -> LazyScores:
        """Return the same scores, made tile by tile when they are read."""
        if self.listed is None:
            return self.scores.without_itself()
        return self.scores.align(self.listed.enroll_ids, self.listed.test_ids).of_trials(self.listed)

    def labels_from(self, sources: LabelSources) -> LabelSources:
        """Return where labels and speakers come from: the list, the maps, or else the embeddings themselves."""
        sources = replace(sources, keys=())
        enroll, test = _speakers(self.files.enroll, self.sides[0]), _speakers(self.files.test, self.sides[1])
        if enroll is None or test is None:
            return sources
        labelled = self.listed is not None and self.listed.labels is not None
        if labelled and (None in enroll[1].values() or None in test[1].values()):
            return sources  # the target trials tell more
        return replace(sources, speaker_maps=(enroll, test))

    def warnings(self) -> list[str]:
        """Say which pairs have no scores, where that is not plain."""
        if self.listed is not None or self.sides[0] is self.sides[1]:
            return []
        both = sorted(set(self.sides[0].ids) & set(self.sides[1].ids))
        if not both:
            return []
        what = f"{len(both)} ids stand" if len(both) > 1 else "an id stands"
        return [f"{what} on both sides of {self}, and utterances are not scored against themselves: {shown(both)}"]


Source: TypeAlias = str | EmbeddedScores  #: the name of a score file, or embeddings


def _speakers(path: str, side: Embeddings) -> SpeakerMap | None:
    return None if side.speakers is None else (path, dict(zip(side.ids.tolist(), side.speakers.tolist(), strict=True)))


def embedded_scores(
    choices: EmbeddingChoices,
    sources: LabelSources,
    *,
    training: TrainingChoices | None = None,
    key: str | None = None,
    trials: str | None = None,
) -> EmbeddedScores | None:
    """Return what the options describe, None if they name no embeddings.

    With ``training``, those to train on; with a key its trials, else those of the file ``trials``.
    """
    sides = choices.sides if training is None else training.sides
    if sides is None:
        return None
    files = EmbeddingFiles(
        enroll=sides[0],
        test=sides[1],
        enroll_map=choices.enroll_map if training is None else training.train_enroll_map,
        speakers=sources.enroll_speakers or sources.test_speakers,
        test_speakers=sources.test_speakers,
    )
    return EmbeddedScores(
        files=files,
        scoring=choices,
        trials=key or trials,
        is_key=key is not None,
        unmatched=sources.unmatched,
    )


def label_sources(source: Source, sources: LabelSources, key: str | None) -> LabelSources:
    """Return where the labels of scores come from, given the key of them."""
    if isinstance(source, EmbeddedScores):
        return source.labels_from(sources)
    return replace(sources, keys=(key,) if key else ())
