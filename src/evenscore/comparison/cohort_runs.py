"""One way to choose the cohort, measured by cross-validation over speakers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.calibrate import calibration_class
from evenscore.comparison.comparison import METRICS
from evenscore.comparison.methods import Method
from evenscore.comparison.restricted import Chooser, cohort_members, restricted
from evenscore.comparison.trials import ComparedTrials, compared_trials
from evenscore.errors import InputError
from evenscore.metrics import OperatingPoint, bootstrap, evaluate
from evenscore.norms import fit_norm
from evenscore.tables import LabelledBlocks
from evenscore.tables.ids import Ids

__all__ = ["Run", "Search", "Way", "measured_runs"]


@dataclass(frozen=True, kw_only=True)
class Way:
    """One way to choose the cohort."""

    cohort: str
    size: int | None
    top_k: int | float | None


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """What one drawn cohort gave: figures, metrics in each draw of the trials' speakers, and members on a side."""

    figures: Mapping[str, Any]
    replicates: Mapping[str, npt.NDArray[np.float64]]
    members: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Search:
    """What all ways are measured on, and how."""

    training: Sequence[LabelledBlocks]
    method: Method
    folds: Sequence[frozenset[str]]  #: the speakers of each fold
    members: Mapping[str, Collection[str] | None]  #: ids or speakers of each cohort; None is everybody
    order: Sequence[Sequence[str]]  #: for each draw, whom to take first
    by_speaker: bool  #: whether speakers are drawn, or members
    calibration: str
    calibration_options: Mapping[str, Any]
    points: tuple[OperatingPoint, ...]
    replicates: int
    seed: int

    @property
    def unit(self) -> str:
        """What sizes count."""
        return "speakers" if self.by_speaker else "members"


def measured_runs(search: Search, way: Way, method: Method) -> list[Run]:
    """Measure one way to choose the cohort, as often as there is something to draw."""
    orders: Sequence[Sequence[str] | None] = [None] if way.size is None else search.order
    return [_run(search, way, method, order) for order in orders]


def _run(search: Search, way: Way, method: Method, order: Sequence[str] | None) -> Run:
    everybody = frozenset().union(*search.folds)
    place = {name: at for at, name in enumerate(sorted(everybody))}
    llrs, labels, members = [], [], []
    sides: tuple[list[npt.NDArray[np.int64]], list[npt.NDArray[np.int64]]] = ([], [])
    for fold in search.folds:
        stays = _chooser(search, way, order, fold)
        train, test = (
            [found for part in search.training if (found := restricted(part, who, stays)) is not None]
            for who in (everybody - fold, fold)
        )
        trials = compared_trials(test)
        llrs.append(trials.known(_llrs(search, method, train, test, trials)))
        labels.append(trials.known(trials.labels))
        codes = np.array([place[name] for name in trials.speakers], dtype=np.int64)
        for side, index in zip(sides, (trials.enroll_speaker, trials.test_speaker), strict=True):
            side.append(codes[trials.known(index)])
        members += [len(ids) for part in test for ids, _ in cohort_members(part.blocks)]
    values, key = np.concatenate(llrs), np.concatenate(labels)
    first = 10 ** len(str(len(place)))  # numbers of equal length sort like the names
    enroll, test_side = (first + np.concatenate(side) for side in sides)
    drawn = bootstrap(
        values,
        key,
        enroll_speakers=enroll,
        test_speakers=test_side,
        replicates=search.replicates,
        points=search.points,
        seed=search.seed,
    )
    return Run(
        figures=evaluate(values, key, points=search.points),
        replicates={metric: drawn.replicates(metric) for metric in METRICS},
        members=float(np.mean(members)),
    )


def _chooser(search: Search, way: Way, order: Sequence[str] | None, fold: Collection[str]) -> Chooser:
    """Return who stays in the cohort: nobody of the fold, and of the others those who were named and drawn."""
    named = search.members[way.cohort]

    def eligible(ids: Ids, who: Ids | None) -> npt.NDArray[np.bool_]:
        speakers = [None] * len(ids) if who is None else who.tolist()
        pairs = zip(ids.tolist(), speakers, strict=True)
        return np.array(
            [who not in fold and (named is None or name in named or who in named) for name, who in pairs], dtype=bool
        )

    drawn = None
    if order is not None and search.by_speaker:
        drawn = _first(order, _eligible_speakers(search, eligible), way, search.unit)

    def stays(ids: Ids, who: Ids | None) -> npt.NDArray[np.bool_]:
        kept = eligible(ids, who)
        if drawn is not None and who is not None:
            kept &= np.array([name in drawn for name in who.tolist()], dtype=bool)
        elif order is not None:
            chosen = _first(order, set(ids[kept].tolist()), way, search.unit)
            kept = np.array([name in chosen for name in ids.tolist()], dtype=bool)
        if not kept.any():
            raise InputError("nobody is left in the cohort; name other members, or give fewer folds")
        return kept

    return stays


def _eligible_speakers(search: Search, eligible: Chooser) -> set[str]:
    sides = [side for part in search.training for side in cohort_members(part.blocks)]
    return {name for ids, who in sides if who is not None for name in who[eligible(ids, who)].tolist()}


def _first(order: Sequence[str], possible: Collection[str], way: Way, unit: str) -> frozenset[str]:
    """Return the first in order who are possible, as many as the way says."""
    assert way.size is not None  # noqa: S101
    if len(possible) < way.size:
        count = f"{len(possible)} {unit}"
        raise InputError(f"outside a fold there are only {count} to draw from; take fewer, or more folds")
    return frozenset([name for name in order if name in possible][: way.size])


def _llrs(
    search: Search,
    method: Method,
    train: Sequence[LabelledBlocks],
    test: Sequence[LabelledBlocks],
    trials: ComparedTrials,
) -> npt.NDArray[np.float64]:
    """Return the LLRs of one fold, by what was fitted to the others."""
    fitted = fit_norm(method.norm, train, **dict(method.options))
    lists = [part.labelled(table) for part, table in zip(train, fitted.training_scores, strict=True)]
    scores = np.concatenate([part.scores for part in lists])
    labels = np.concatenate([part.labels for part in lists])
    kind: Any = calibration_class(search.calibration)
    calibration = kind.fit(scores, labels, **dict(search.calibration_options))
    found = trials.pooled([fitted.normalizer.normalize(part.blocks) for part in test])
    return np.asarray(calibration(found), dtype=np.float64)
