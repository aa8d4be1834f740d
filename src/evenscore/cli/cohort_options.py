"""Options that say how the members of a cohort are chosen from its embeddings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from evenscore.errors import InputError
from evenscore.spelling import checked_options, name_and_options

if TYPE_CHECKING:
    from evenscore.tables import Embeddings

__all__ = ["EMBEDDINGS", "CohortChoices"]

EMBEDDINGS = "Embeddings in place of scores"  #: a panel of the help

_OPTIONS = {"size": int, "pick": str, "seed": int, "length_norm": str}


@dataclass(frozen=True, kw_only=True)
class CohortChoices:
    """How the members of the cohort are chosen from its embeddings."""

    PANEL: ClassVar[str] = EMBEDDINGS

    cohort_unit: Annotated[
        str,
        typer.Option(
            metavar="NAME[:OPTION=VALUE]",
            help="Cohort members: each utterance, or one mean vector per speaker. Options: size=300 keeps so many, "
            "pick=random (with seed=0) or pick=kmeans, those nearest to cluster centres; length_norm=before, after or "
            "both: bring vectors to length 1 before or after they are averaged.",
        ),
    ] = "utterance"
    exclude_speakers: Annotated[
        str | None, typer.Option(metavar="FILE", help="Speakers that must not be in the cohort, one per line.")
    ] = None

    @property
    def by_speaker(self) -> bool:
        """Whether the members are speakers, not utterances."""
        return name_and_options(self.cohort_unit, "cohort unit")[0] == "speaker"

    def chosen(self, embeddings: Embeddings) -> Embeddings:
        """Return the members of the cohort."""
        from evenscore.files.speakers import read_names
        from evenscore.scoring import make_cohort

        unit, given = name_and_options(self.cohort_unit, "cohort unit")
        how: dict[str, Any] = checked_options("a cohort unit", given, _OPTIONS)
        excluded = () if self.exclude_speakers is None else read_names(self.exclude_speakers)
        members = make_cohort(embeddings, unit=unit, **how, exclude_speakers=excluded)  # type: ignore[arg-type]
        if not len(members):
            raise InputError("nobody is left in the cohort; exclude fewer speakers, or give another cohort")
        return members
