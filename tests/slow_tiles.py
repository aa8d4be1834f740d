"""A source that takes its time, so that a test can kill who reads; workers of a cluster can import it."""

import time
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, eq=False)
class SlowTiles:
    """Another source, and how many seconds each tile takes."""

    source: Any
    seconds: float

    def read(self, place):
        time.sleep(self.seconds)
        return self.source.read(place)

    def identity(self):
        return self.source.identity()


def slowed(scores, seconds=0.05):
    return scores.with_source(SlowTiles(scores.source, seconds))
