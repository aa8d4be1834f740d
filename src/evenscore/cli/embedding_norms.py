"""`evenscore normalize` from embeddings: scores and cohort scores are made on the way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from evenscore.cli.labelled import speakers_for
from evenscore.errors import InputError
from evenscore.files import read_embeddings, read_speakers, read_trials
from evenscore.scoring import score_embeddings
from evenscore.sources import BilinearNormalizer
from evenscore.tables import Embeddings, Labels, ScoreMatrix, TrialList

if TYPE_CHECKING:
    from evenscore.sources import Scorer

__all__ = ["normalize_embeddings", "read_sides"]


def read_sides(
    paths: tuple[str | None, str | None, str | None], speakers: str | None, cohort_speakers: str | None
) -> tuple[Embeddings, Embeddings, Embeddings]:
    """Read the embeddings of enrolments, tests and cohort, with the speakers of the maps."""
    for path, name in zip(paths, ("enroll", "test", "cohort"), strict=True):
        if path is None:
            raise InputError(f"to normalize scores of embeddings, --{name}-embeddings is needed too")
    read: dict[tuple[str | None, str | None], Embeddings] = {}
    maps = (speakers, speakers, cohort_speakers or speakers)
    for path, known, what in zip(paths, maps, ("enrolment", "test", "cohort member"), strict=True):
        if (path, known) in read:
            continue  # the same vectors on both sides are scored once
        side = read_embeddings(path or "")
        if known is not None:
            side = side.with_speakers(speakers_for(side.ids, known, read_speakers(known), what))
        read[path, known] = side
    enroll, test, cohort = (read[pair] for pair in zip(paths, maps, strict=True))
    return enroll, test, cohort


def normalize_embeddings(
    method: str,
    options: Mapping[str, Any],
    scorer: Scorer,
    sides: tuple[Embeddings, Embeddings, Embeddings],
    trials: str | None,
    format: str | None,
) -> ScoreMatrix | TrialList:
    """Score trials and normalize them; the score model does it without cohort scores where it can."""
    enroll, test, cohort = sides
    listed: TrialList | None = None if trials is None else read_trials(trials, format=format)
    if "model" not in options or _meet(sides):
        scored = score_embeddings(enroll, test, listed, scorer=scorer, cohort=cohort, method=method, **options)
        assert scored.normalized is not None  # noqa: S101
        return scored.normalized
    labels = None
    if cohort.speakers is not None:
        labels = Labels.from_speakers(cohort.speakers, cohort.speakers, enroll_ids=cohort.ids, test_ids=cohort.ids)
    normalizer = BilinearNormalizer(options["model"], scorer.score(cohort, cohort), labels)
    scores = scorer.score(enroll, test)
    return normalizer.normalize(scores) if listed is None else normalizer.normalize_trials(scores, listed)


def _meet(sides: tuple[Embeddings, Embeddings, Embeddings]) -> bool:
    """Tell whether an utterance or a speaker of the trials is in the cohort."""

    def known(values: Any) -> set[str]:
        return set() if values is None else {name for name in values if name is not None}

    enroll, test, cohort = sides
    ids = known(enroll.ids) | known(test.ids)
    speakers = known(enroll.speakers) | known(test.speakers)
    return bool(ids & known(cohort.ids) or speakers & known(cohort.speakers))
