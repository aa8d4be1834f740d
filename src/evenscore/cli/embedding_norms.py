"""Raw and normalized scores of embeddings, for `evenscore score` and `evenscore normalize`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from evenscore.errors import InputError
from evenscore.model.parameters import ScoreModel
from evenscore.progress import Progress, silent
from evenscore.scoring import EmbeddingScores, score_embeddings
from evenscore.scoring.embeddings import meet
from evenscore.sources import BilinearNormalizer
from evenscore.tables import Embeddings, Labels, TrialList

if TYPE_CHECKING:
    from evenscore.sources import Scorer

__all__ = ["normalize_embeddings"]


def normalize_embeddings(
    method: str,
    options: Mapping[str, Any],
    scorer: Scorer,
    sides: tuple[Embeddings, Embeddings, Embeddings],
    trials: TrialList | None,
    *,
    condition: str | None = None,
    memory: float = 2e9,
    progress: Progress = silent,
) -> EmbeddingScores:
    """Score trials and normalize them; the score model does it without cohort scores where it can.

    The parameters are those of `score_embeddings`, with the options of the norm as one mapping and the embeddings of
    enrolments, tests and cohort together.
    """
    enroll, test, cohort = sides
    if not isinstance(options.get("model"), ScoreModel) or meet(*sides):
        chosen: dict[str, Any] = {"cohort": cohort, "method": method, "condition": condition, "memory": memory}
        return score_embeddings(enroll, test, trials, scorer=scorer, progress=progress, **chosen, **options)
    if condition is not None:
        raise InputError(f"the norm {method!r} knows no conditions; leave out --conditions")
    labels = None
    if cohort.speakers is not None:
        labels = Labels.from_speakers(cohort.speakers, cohort.speakers, enroll_ids=cohort.ids, test_ids=cohort.ids)
    normalizer = BilinearNormalizer(options["model"], scorer.score(cohort, cohort), labels)
    scores = scorer.score(enroll, test)
    raw = score_embeddings(enroll, test, trials, scorer=scorer).raw
    return EmbeddingScores(
        raw, normalizer.normalize(scores) if trials is None else normalizer.normalize_trials(scores, trials)
    )
