"""Training and evaluation blocks of `evenscore compare` from embeddings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from evenscore.cli.cohort_options import CohortChoices
from evenscore.cli.combine import with_key
from evenscore.cli.compare_blocks import AnyBlocks
from evenscore.cli.compare_chunks import scored_chunks
from evenscore.cli.embedding_sets import EmbeddingFiles
from evenscore.cli.phrases import phrases_of_embeddings
from evenscore.cli.scale_options import ScaleChoices
from evenscore.errors import InputError
from evenscore.files import read_trials
from evenscore.scale import ChunkedBlocks, LabelledChunks, score_chunks
from evenscore.sources import score_blocks
from evenscore.sources.blocks import cohort_matrix
from evenscore.tables import Embeddings, LabelledBlocks, Labels, ScoreBlocks, TrialList

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
    key_format: str | None = None
    enroll_map: str | None = None
    speakers: str | None = None
    train_speakers: str | None = None
    cohort_speakers: str | None = None
    phrase_from: str | None = None
    format: str | None = None
    unmatched: Any = "error"
    members: CohortChoices = field(default_factory=CohortChoices)


def blocks_from_embeddings(
    files: VectorFiles, scorer: Scorer, scale: ScaleChoices | None = None
) -> tuple[list[AnyBlocks], list[AnyBlocks]]:
    """Score the training and, if wanted, the evaluation side; without cohort embeddings, the former is the cohort.

    With ``scale``, scores are made tile by tile when they are needed.
    """
    training, cohort = _training_side(files), _cohort(files)
    trials = _Trials.read(files)
    phrases = _phrases(training, files.phrase_from) if trials is None else trials.phrases(files.phrase_from)
    sides: tuple[list[AnyBlocks], list[AnyBlocks]] = ([], [])
    for phrase in phrases:
        own = _of_phrase(training, phrase, files.phrase_from, "training")
        others = None if cohort is None else _of_phrase(cohort, phrase, files.phrase_from, "cohort", may_lack=True)
        sides[0].append(_training_blocks(scorer, own, others, phrase, scale))
        if trials is not None:
            pair, listed = trials.of_phrase(phrase, files.phrase_from)
            sides[1].append(_evaluation_blocks(scorer, pair, own if others is None else others, listed, phrase, scale))
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
            format=files.format,
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
    one = EmbeddingFiles(
        enroll=files.train, test=files.train, format=files.format, speakers=files.train_speakers or files.speakers
    )
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
        format=files.format,
        cohort_speakers=files.cohort_speakers or files.speakers,
    ).read_cohort(files.members)


def _listed(files: VectorFiles) -> TrialList | None:
    """Return the trials that are listed, with the labels that are known."""
    key = None if files.key is None else read_trials(files.key, format=files.key_format)
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


def _by_speaker(enroll: Embeddings, test: Embeddings) -> Labels:
    assert enroll.speakers is not None and test.speakers is not None  # noqa: S101, PT018
    return Labels.from_speakers(enroll.speakers, test.speakers, enroll_ids=enroll.ids, test_ids=test.ids)


def _evaluation_blocks(
    scorer: Scorer,
    pair: tuple[Embeddings, Embeddings],
    cohort: Embeddings,
    listed: TrialList | None,
    phrase: str,
    scale: ScaleChoices | None,
) -> AnyBlocks:
    """Return the trials of one phrase with their cohort."""
    labels = _by_speaker(*pair) if listed is None else None
    if scale is not None:
        return LabelledChunks(_chunked_blocks(scorer, pair, cohort, listed, scale), labels, phrase)
    if listed is not None:
        return LabelledBlocks(score_blocks(scorer, *pair, cohort, trials=listed), name=phrase)
    blocks = _with_trials(score_blocks(scorer, *pair, cohort), cohort_matrix(scorer.score(*pair)))
    return LabelledBlocks(blocks, labels, phrase)


def _training_blocks(
    scorer: Scorer, own: Embeddings, cohort: Embeddings | None, name: str, scale: ScaleChoices | None
) -> AnyBlocks:
    """Return every training utterance against every other one, with their cohort."""
    labels = _by_speaker(own, own)
    if scale is not None:
        return LabelledChunks(_chunked_blocks(scorer, (own, own), cohort or own, None, scale), labels, name)
    scores = cohort_matrix(scorer.score(own, own))
    if cohort is None:
        return LabelledBlocks.own_cohort(scores, labels, name=name)
    return LabelledBlocks(_with_trials(score_blocks(scorer, own, own, cohort), scores), labels, name)


def _chunked_blocks(
    scorer: Scorer,
    pair: tuple[Embeddings, Embeddings],
    cohort: Embeddings,
    listed: TrialList | None,
    scale: ScaleChoices,
) -> ChunkedBlocks:
    """Return blocks whose scores are made when they are read; an utterance has none with itself."""
    enroll, test = pair if listed is None else (pair[0].select(listed.enroll_ids), pair[1].select(listed.test_ids))
    made = {
        (id(one), id(other)): scored_chunks(scorer.score(one, other), scale)
        for one, other in ((enroll, cohort), (cohort, test), (cohort, cohort))
    }
    trials: Any = score_chunks(enroll, test, listed, scorer=scorer)
    if listed is None:
        trials = made.get((id(enroll), id(test))) or scored_chunks(scorer.score(enroll, test), scale)
    return ChunkedBlocks(
        trials,
        enroll=made[id(enroll), id(cohort)],
        test=made[id(cohort), id(test)],
        cohort=made[id(cohort), id(cohort)],
        enroll_speakers=_speakers(enroll, listed),
        test_speakers=_speakers(test, listed),
        cohort_enroll_speakers=cohort.speakers,
        cohort_test_speakers=cohort.speakers,
    )


def _speakers(side: Embeddings, listed: TrialList | None) -> Any:
    if side.speakers is None or listed is None:
        return side.speakers
    return dict(zip(side.ids.tolist(), side.speakers.tolist(), strict=True))


def _with_trials(blocks: ScoreBlocks, trials: Any) -> ScoreBlocks:
    """Return the blocks with trials that no utterance has with itself."""
    names = ("enroll", "test", "cohort", "cohort_labels")
    speakers = ("enroll_speakers", "test_speakers", "cohort_enroll_speakers", "cohort_test_speakers")
    return ScoreBlocks(trials, **{name: getattr(blocks, name) for name in (*names, *speakers)})
