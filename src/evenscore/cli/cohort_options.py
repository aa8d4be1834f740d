"""Options that say how vectors are averaged, and how the members of a cohort are chosen."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Annotated

import typer

from evenscore.errors import InputError

if TYPE_CHECKING:
    from evenscore.tables import Embeddings

__all__ = ["CohortChoices", "LengthNorm", "Unit"]


class LengthNorm(str, Enum):
    """When vectors that are averaged are brought to length 1."""

    none = "none"
    before = "before"
    after = "after"
    both = "both"


class Unit(str, Enum):
    """What a member of the cohort is."""

    utterance = "utterance"
    speaker = "speaker"


class Pick(str, Enum):
    """How some members of a cohort are picked."""

    random = "random"
    kmeans = "kmeans"


@dataclass(frozen=True, kw_only=True)
class CohortChoices:
    """How the members of the cohort are chosen from its embeddings."""

    cohort_unit: Annotated[
        Unit, typer.Option(help="Cohort members: the utterances, or one mean vector per speaker.")
    ] = Unit.utterance
    cohort_length_norm: Annotated[
        LengthNorm, typer.Option(help="Bring cohort vectors to length 1 before they are averaged, after it, or both.")
    ] = LengthNorm.none
    cohort_size: Annotated[int | None, typer.Option(metavar="N", help="Keep only N cohort members.")] = None
    cohort_pick: Annotated[Pick, typer.Option(help="Pick them at random, or those nearest to N cluster centres.")] = (
        Pick.random
    )
    cohort_seed: Annotated[int, typer.Option(metavar="N", help="Seed of the pick.", min=0)] = 0
    exclude_speakers: Annotated[
        str | None, typer.Option(metavar="FILE", help="Speakers that must not be in the cohort, one per line.")
    ] = None

    def chosen(self, embeddings: Embeddings) -> Embeddings:
        """Return the members of the cohort."""
        from evenscore.files.speakers import read_names
        from evenscore.scoring import make_cohort

        members = make_cohort(
            embeddings,
            unit=self.cohort_unit.value,
            length_norm=self.cohort_length_norm.value,
            size=self.cohort_size,
            pick=self.cohort_pick.value,
            seed=self.cohort_seed,
            exclude_speakers=() if self.exclude_speakers is None else read_names(self.exclude_speakers),
        )
        if not len(members):
            raise InputError("nobody is left in the cohort; exclude fewer speakers, or give another cohort")
        return members
