"""Quality measures that `evenscore normalize` writes: as columns of a list of trials, or in a table of their own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

import typer

from evenscore.cli import options as opt
from evenscore.cli.output import check_output
from evenscore.errors import InputError

if TYPE_CHECKING:
    from evenscore.calibrate import Quality
    from evenscore.cli.output import ScoredOutput
    from evenscore.tables import ScoreTable

__all__ = ["QualityOutput"]


@dataclass(frozen=True, kw_only=True)
class QualityOutput:
    """Which quality measures are written, and where."""

    PANEL: ClassVar[str] = "Quality measures"

    quality: Annotated[
        list[str] | None,
        typer.Option(
            "--quality",
            metavar="MEASURE",
            help="Quality measures to write as columns beside the scores of a list: mag (lengths of vectors), mu and "
            "sigma (mean and deviation of cohort scores), numbers in columns of the embeddings; of both sides, or "
            "min:mag, max:mag, diff:mag, ratio:mag. Can be repeated, or a list with commas.",
        ),
    ] = None
    quality_out: Annotated[
        str | None, opt.file("Table of all measures, a row per id (CSV, TSV), for 'calibrate --metadata'.")
    ] = None

    @property
    def names(self) -> list[str]:
        """The measures that become columns."""
        return [name for text in self.quality or () for name in text.split(",")]

    def refuse_resumed(self, resume: bool) -> None:
        """Refuse what cannot be done, before the work is."""
        if resume and self.names:
            raise InputError("--resume goes on with scores only; leave out --quality, or give --quality-out instead")
        check_output(self.quality_out)

    def refuse_matrix(self, listed: bool) -> None:
        """Refuse columns of a matrix."""
        if self.names and not listed:
            raise InputError("a matrix has no columns for --quality; give --quality-out FILE for a table of measures")

    def write(self, scores: ScoreTable, place: ScoredOutput, found: Callable[[], Quality]) -> None:
        """Write scores with the measures that are asked for, then the table of measures."""
        if not self.names and self.quality_out is None:
            place.write(scores)
            return
        quality = found()
        place.write(quality.added(scores, self.names) if self.names else scores)
        if self.quality_out is not None:
            from evenscore.files.metadata import write_metadata

            write_metadata(quality.table(), self.quality_out)
