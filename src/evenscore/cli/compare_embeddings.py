"""Training and evaluation blocks of `evenscore compare` from embeddings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evenscore.cli.combine import with_key
from evenscore.cli.inputs import EmbeddingFiles, of_phrase, phrase_names
from evenscore.cli.norm_options import scorer_of
from evenscore.errors import InputError
from evenscore.files import read_trials
from evenscore.sources.blocks import cohort_matrix
from evenscore.sources.scorers import scored
from evenscore.tables import Embeddings, LabelledBlocks, Labels, ScoreBlocks, ScoreTable, TrialList

if TYPE_CHECKING:
    from evenscore.cli.compare_inputs import Inputs, Sides
    from evenscore.cli.scale_options import ScaleChoices
    from evenscore.sources import Scorer

__all__ = ["sides_from_embeddings"]


def sides_from_embeddings(inputs: Inputs) -> Sides:
    """Score the training and, if wanted, the evaluation side; without cohort embeddings, the former is the cohort.

    If workers or a memory limit are asked for, scores are made tile by tile when they are needed.
    """
    source = inputs.facts.phrase_from
    scorer = scorer_of(inputs.training_vectors.scorer)
    scale = inputs.scale if inputs.scale is not None and inputs.scale.given else None
    trials = _trials(inputs)
    training, cohort = _training_and_cohort(inputs)
    tested = training
    if trials is not None:
        (_, test), listed = trials
        tested = test if listed is None else test.select(listed.test_ids)
    sides: Sides = ([], [])
    for phrase in phrase_names(tested, source):
        own = of_phrase(training, phrase, source, "training")
        others = own if cohort is None else of_phrase(cohort, phrase, source, "cohort", may_lack=True)
        sides[0].append(_labelled(scorer, (own, own), others, None, phrase, scale))
        if trials is not None:
            (enroll, test), listed = trials
            pair = (
                of_phrase(enroll, phrase, source, "enrolment", may_lack=True),
                of_phrase(test, phrase, source, "test"),
            )
            sides[1].append(_labelled(scorer, pair, others, _of_tests(listed, pair[1]), phrase, scale))
    return sides


def _training_and_cohort(inputs: Inputs) -> tuple[Embeddings, Embeddings | None]:
    vectors, facts, everybody = inputs.training_vectors, inputs.facts, inputs.training.speakers
    path = vectors.train_embeddings or ""
    files = EmbeddingFiles(enroll=path, test=path, speakers=facts.train_speakers or everybody)
    training, _ = files.read_trial_sides()
    if training.speakers is None:
        raise InputError(f"the embeddings of {path} have no speakers; give --train-speakers")
    if vectors.cohort_embeddings is None:
        return training, None
    speakers = facts.cohort_speakers or everybody
    others = EmbeddingFiles(enroll=path, test=path, cohort=vectors.cohort_embeddings, cohort_speakers=speakers)
    return training, others.read_cohort(vectors)


def _trials(inputs: Inputs) -> tuple[tuple[Embeddings, Embeddings], TrialList | None] | None:
    """Return the embeddings of the evaluation side, and its trials if they are listed; None if it is not wanted."""
    vectors = inputs.evaluation_vectors
    if vectors is None:
        return None
    if vectors.enroll_embeddings is None or vectors.test_embeddings is None:
        raise InputError("embeddings of both evaluation sides are needed: --enroll-embeddings, --test-embeddings")
    files = EmbeddingFiles(
        enroll=vectors.enroll_embeddings,
        test=vectors.test_embeddings,
        enroll_map=vectors.enroll_map,
        speakers=inputs.training.speakers,
    )
    enroll, test = files.read_trial_sides()
    listed = _listed(inputs)
    if listed is None and (enroll.speakers is None or test.speakers is None):
        raise InputError("the evaluation trials have no labels; give --key, or the speakers with --speakers")
    return (enroll, test), listed


def _listed(inputs: Inputs) -> TrialList | None:
    """Return the trials that are listed, with the labels that are known."""
    paths = {}
    for name in ("trials", "key"):
        given = getattr(inputs.evaluation, name) or [None]
        if len(given) > 1:
            raise InputError(f"with embeddings one file of --{name} is enough; give one")
        paths[name] = given[0]
    key = None if paths["key"] is None else read_trials(paths["key"])
    if key is not None and key.labels is None:
        raise InputError(f"the key {paths['key']} has no labels; give a list of trials with labels")
    if paths["trials"] is None:
        return key
    trials = read_trials(paths["trials"])
    if key is not None:
        return with_key(trials, key, inputs.facts.unmatched.value)
    if trials.labels is None:
        raise InputError(f"the trials of {paths['trials']} have no labels; give a key with --key")
    return trials


def _of_tests(listed: TrialList | None, tests: Embeddings) -> TrialList | None:
    """Return the listed trials of some tests."""
    if listed is None:
        return None
    here = set(tests.ids)
    kept = np.array([name in here for name in listed.test_ids], dtype=bool)
    return listed if kept.all() else listed.select(kept[listed.test_index])


def _labelled(
    scorer: Scorer,
    pair: tuple[Embeddings, Embeddings],
    cohort: Embeddings,
    listed: TrialList | None,
    phrase: str,
    scale: ScaleChoices | None,
) -> LabelledBlocks:
    """Score the trials of one phrase, all of them or those that are listed, and their cohort, each two sides once."""
    enroll, test = pair
    made: dict[tuple[int, int], ScoreTable] = {}

    def table(one: Embeddings, other: Embeddings) -> ScoreTable:
        """Return all scores, but those of an utterance with itself."""
        key = id(one), id(other)
        if key not in made:
            scores = scored(scorer, one, other)
            lazy = None if scale is None else scores.without_itself().in_tiles(scale.tile_bytes)
            made[key] = cohort_matrix(scores) if lazy is None else lazy
        return made[key]

    if listed is None:
        trials = table(enroll, test)
    else:
        enroll, test = enroll.select(listed.enroll_ids), test.select(listed.test_ids)
        scores = scored(scorer, enroll, test)
        known = scores.score_trials(listed).with_axes(enroll.axis, test.axis) if scale is None else None
        trials = scores.of_trials(listed) if known is None else known
    blocks = ScoreBlocks(trials, enroll=table(enroll, cohort), test=table(cohort, test), cohort=table(cohort, cohort))
    return LabelledBlocks(blocks, Labels.of_axes(*pair) if listed is None else None, phrase)
