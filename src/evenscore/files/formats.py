"""The registry of file formats: what each is called, how to recognize, read and write it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from evenscore.files.streams import PathLike
from evenscore.tables import Embeddings, ScoreMatrix, TrialList

__all__ = ["ArrayTable", "Format", "Kind", "ReadOptions", "SpeakerMap", "Table", "held_as", "kind_of_table"]

Kind = Literal["scores", "trials", "embeddings", "speakers"]  #: "trials" are lists and keys without scores
SpeakerMap = dict[str, str]  #: from utterance (or model) id to speaker
ArrayTable = ScoreMatrix | TrialList | Embeddings  #: what named arrays can hold
Table = ArrayTable | SpeakerMap

_HELD_AS: dict[type, tuple[Kind, ...]] = {
    ScoreMatrix: ("scores", "trials"),
    TrialList: ("scores", "trials"),
    Embeddings: ("embeddings",),
    dict: ("speakers",),
}


def held_as(table: object) -> tuple[Kind, ...]:
    """Return the kinds of files that hold such a table; some of them want more of it, and say so."""
    return next((kinds for kind, kinds in _HELD_AS.items() if isinstance(table, kind)), ())


def kind_of_table(table: Table) -> Kind:
    """Return what a table holds."""
    return "trials" if isinstance(table, TrialList) and table.scores is None else (*held_as(table), "scores")[0]


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """What a reader does where there is a choice."""

    missing: Literal["error", "skip"] = "error"  #: a score that is absent, nan or infinite: refuse, or skip the trial
    infinite: Literal["error", "accept"] = "error"  #: an infinite score: as `missing` says, or a score like others
    duplicates: Literal["error", "drop"] = "error"  #: a trial listed twice: refuse, or drop identical repeats
    score_column: str | None = None  #: name of the score column, for formats with a header
    ids: PathLike | None = None  #: list of ids, one per line, for npy embeddings
    kind: Kind | None = None  #: what the caller wants, where a file can be understood in two ways

    @property
    def accepts_infinite(self) -> bool:
        """Whether an infinite score is a score."""
        return self.infinite == "accept"

    def usable(self, scores: npt.NDArray[np.floating]) -> npt.NDArray[np.bool_]:
        """Tell which numbers are scores: those that are finite, and infinite ones where they are accepted."""
        found: npt.NDArray[np.bool_] = ~np.isnan(scores) if self.accepts_infinite else np.isfinite(scores)
        return found


@dataclass(frozen=True, kw_only=True)
class Format:
    """A file format; `read` or `write` is None where evenscore does not do it."""

    name: str  #: what it is called
    kinds: tuple[Kind, ...]  #: what it can hold
    layout: str  #: one line for people: the columns, or what the file contains
    extensions: tuple[str, ...] = ()  #: file names that suggest it, such as ".npz"
    read: Callable[[PathLike, ReadOptions], Table] | None = None
    write: Callable[[Any, PathLike], None] | None = None  #: it gets tables of its kinds only
