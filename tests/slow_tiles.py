"""A reader that takes its time, so that a test can kill who reads; workers of a cluster can import it."""

import time
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True, eq=False)
class SlowTiles:
    """Another reader, and how many seconds each tile takes."""

    reader: Any
    seconds: float

    def read(self, rows, columns):
        time.sleep(self.seconds)
        return self.reader.read(rows, columns)

    def identity(self):
        return self.reader.identity()


def slowed(scores, seconds=0.05):
    return replace(scores, reader=SlowTiles(scores.reader, seconds))
