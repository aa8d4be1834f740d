"""`evenscore normalize` from embeddings: scores and cohort scores are made on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evenscore.cli.labelled import speakers_for
from evenscore.errors import InputError
from evenscore.files import read_embeddings, read_speakers, read_trials
from evenscore.model import ScoreModel
from evenscore.sources import BilinearNormalizer, score_blocks
from evenscore.tables import Embeddings, Labels, ScoreMatrix, TrialList

if TYPE_CHECKING:
    from evenscore.norms import Normalizer
    from evenscore.sources import Scorer

__all__ = ["normalize_embeddings", "read_sides"]


def read_sides(
    paths: tuple[str | None, str | None, str | None], speakers: str | None, cohort_speakers: str | None
) -> tuple[Embeddings, Embeddings, Embeddings]:
    """Read the embeddings of enrolments, tests and cohort, with the speakers of the maps."""
    for path, name in zip(paths, ("enroll", "test", "cohort"), strict=True):
        if path is None:
            raise InputError(f"to normalize scores of embeddings, --{name}-embeddings is needed too")
    sides = [read_embeddings(path) for path in paths if path is not None]
    maps = (speakers, speakers, cohort_speakers or speakers)
    for at, (side, path, what) in enumerate(zip(sides, maps, ("enrolment", "test", "cohort member"), strict=True)):
        if path is not None:
            sides[at] = side.with_speakers(speakers_for(side.ids, path, read_speakers(path), what))
    return sides[0], sides[1], sides[2]


def normalize_embeddings(
    norm: Normalizer,
    model: ScoreModel | None,
    scorer: Scorer,
    sides: tuple[Embeddings, Embeddings, Embeddings],
    trials: str | None,
    format: str | None,
) -> ScoreMatrix | TrialList:
    """Score trials and normalize them; the score model does it without cohort scores where it can."""
    enroll, test, cohort = sides
    listed: TrialList | None = None if trials is None else read_trials(trials, format=format)
    if model is None or _meet(sides):
        return norm.normalize(score_blocks(scorer, enroll, test, cohort, trials=listed))
    labels = None
    if cohort.speakers is not None:
        labels = Labels.from_speakers(cohort.speakers, cohort.speakers, enroll_ids=cohort.ids, test_ids=cohort.ids)
    normalizer = BilinearNormalizer(model, scorer.score(cohort, cohort), labels)
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
