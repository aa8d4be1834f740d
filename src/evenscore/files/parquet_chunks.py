"""The parts of a parquet dataset that is written chunk by chunk, as `zarr_chunks` has them for zarr."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from evenscore.files.parquet import write_parquet
from evenscore.tables import Axis, Place, ScoreMatrix, Tile, TrialList

__all__ = ["ParquetChunks"]

_PART = "part-{:06d}.parquet"


@dataclass(frozen=True, eq=False)
class ParquetChunks:
    """Where the trials of a place go: to a file of their own."""

    folder: str
    enroll: Axis
    test: Axis

    def write(self, place: Place, tile: Tile) -> None:
        """Write a tile; its file appears under its name only when all of it is written."""
        if tile.listed:
            trials = TrialList.of_tiles(self.enroll, self.test, [tile])
        else:
            axes = self.enroll.take(tile.rows), self.test.take(tile.columns)
            trials = ScoreMatrix(tile.scores, *axes, missing="nan").to_trials()
        write_parquet(trials, self._file(place))

    def is_written(self, place: Place) -> bool:
        """Tell whether the file is there."""
        return self._file(place).is_file()

    def _file(self, place: Place) -> Path:
        return Path(self.folder) / _PART.format(place.number)
