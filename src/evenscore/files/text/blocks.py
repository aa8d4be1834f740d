"""The trials of one chunk of a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Block", "CodedIds"]


@dataclass(frozen=True)
class CodedIds:
    """Ids of one side: the distinct ones in order of appearance, and for each trial which of them it has."""

    names: list[str]
    index: npt.NDArray[np.int32]

    def select(self, keep: npt.NDArray[np.bool_]) -> CodedIds:
        """Return the ids of some trials, without those that they do not use."""
        used, index = np.unique(self.index[keep], return_inverse=True)
        return CodedIds([self.names[place] for place in used], index.astype(np.int32))


@dataclass(frozen=True, kw_only=True)
class Block:
    """The trials of one chunk."""

    enroll: CodedIds
    test: CodedIds
    scores: npt.NDArray[np.float64] | None = None
    labels: npt.NDArray[np.int8] | None = None
    measures: Mapping[str, npt.NDArray[np.float64]] = field(default_factory=dict)
    lines: npt.NDArray[Any] | None = None  #: line of each trial in the chunk, from 0; None if one follows the other
    n_lines: int = 0  #: lines of the chunk, blank ones included

    def __len__(self) -> int:
        return len(self.enroll.index)

    def select(self, keep: npt.NDArray[np.bool_]) -> Block:
        """Return the trials that are True in a mask."""
        lines = np.arange(len(self)) if self.lines is None else self.lines
        return Block(
            enroll=self.enroll.select(keep),
            test=self.test.select(keep),
            scores=None if self.scores is None else self.scores[keep],
            labels=None if self.labels is None else self.labels[keep],
            measures={name: values[keep] for name, values in self.measures.items()},
            lines=lines[keep],
            n_lines=self.n_lines,
        )
