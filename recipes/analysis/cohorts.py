"""What smaller cohorts do to each system, and which cohort scores the score model uses."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from evenscore import LabelledBlocks, Labels, LogisticCalibration, ScoreBlocks, ScoreMatrix
from evenscore.progress import Progress, silent
from recipes.analysis.systems import MODELS, PENALTY, measured, scored
from recipes.paper.metrics import spread
from recipes.paper.systems import TrainedSystem

if TYPE_CHECKING:
    from evenscore.files import ScoreSet

__all__ = [
    "BLOCKS",
    "SIZES",
    "among_others",
    "draw_orders",
    "ids_of",
    "run_blocks",
    "run_sizes",
    "sizes_of",
    "with_cohort",
]

SIZES = (2, 3, 5, 8, 12, 20)  #: speakers of a cohort
_FEWEST = 4  # development speakers outside of a cohort that a calibration can be trained on
_LEAST = {"AS": 3}  # half of a cohort of two is one speaker, whose scores may have no standard deviation

#: Which of a trial's cohort scores the score model sees: S_e, S_t, and those of the cohort against itself, S_I.
BLOCKS: Mapping[str, tuple[str, ...]] = {
    "none": (),
    "S_e": ("enroll",),
    "S_t": ("test",),
    "S_e + S_t": ("enroll", "test"),
    "S_e + S_t + S_I": ("enroll", "test", "cohort"),
}

Order = Mapping[tuple[str, ...], Sequence[str]]  #: cohort speakers of a part: the same in the order of a draw
Rows = list[dict[str, Any]]


def sizes_of(scores: ScoreSet, sizes: Iterable[int] = SIZES) -> list[int]:
    """Return the sizes that are smaller than the smallest cohort, and its own."""
    whole = min(len(_speakers(part)) for part in scores.evaluation)
    return [*sorted({size for size in sizes if size < whole}), whole]


def draw_orders(scores: ScoreSet, draws: int, seed: int) -> list[Order]:
    """Return random orders of the cohort speakers; the first n of an order are its cohort of n speakers.

    So cohorts of one draw are nested, and all systems meet the same ones. Parts with the same speakers share them.
    """
    rng = np.random.default_rng(seed)
    kinds = list(dict.fromkeys(_speakers(part) for part in scores.evaluation))
    return [{kind: [kind[place] for place in rng.permutation(len(kind))] for kind in kinds} for _ in range(draws)]


def ids_of(table: ScoreMatrix, speakers: Collection[str], *, inside: bool = True) -> tuple[list[str], list[str]]:
    """Return the enrolments and the tests of these speakers, or of all others."""
    rows, columns = (
        [str(name) for name, who in zip(axis.ids, axis.speakers, strict=True) if (who in speakers) == inside]
        for axis in (table.enroll_axis, table.test_axis)
        if axis.speakers is not None
    )
    return rows, columns


def with_cohort(blocks: ScoreBlocks, speakers: Iterable[str]) -> ScoreBlocks:
    """Return the blocks with these speakers as cohort."""
    kept = set(speakers)
    rows, columns = ids_of(blocks.cohort, kept)
    return blocks.replace(
        enroll=blocks.enroll.select(None, columns),
        test=blocks.test.select(rows),
        cohort=blocks.cohort.select(rows, columns),
        cohort_labels=None,  # they follow from the speakers
    )


def among_others(part: LabelledBlocks, cohort: Iterable[str]) -> LabelledBlocks:
    """Return the trials of development speakers who are not in a cohort, with that cohort."""
    kept = set(cohort)
    trials = part.blocks.trials
    trials = trials.select(*ids_of(trials, kept, inside=False))
    blocks = with_cohort(part.blocks.replace(trials=trials), kept)
    return LabelledBlocks(blocks, Labels.of_axes(trials.enroll_axis, trials.test_axis), part.name)


def run_sizes(
    scores: ScoreSet,
    trained: Mapping[str, TrainedSystem],
    *,
    sizes: Sequence[int],
    orders: Sequence[Order],
    progress: Progress = silent,
) -> Rows:
    """Measure every system with cohorts of several sizes; nothing but the cohort at run time changes.

    Parameters
    ----------
    scores
        Development and evaluation scores.
    trained
        The systems, trained with all development speakers.
    sizes
        Numbers of cohort speakers; the last is the whole cohort, of which there is one draw only.
    orders
        See `draw_orders`.
    progress
        Called with a stage name and the fraction done.

    Returns
    -------
    list of dict
        For each size and system the `spread` over draws of ``eer``, ``min_cllr``, ``cllr`` (None for scores that are no
        log-likelihood ratios), ``cllr_whole`` (calibrated on development trials with the whole cohort but for their own
        speakers) and ``cllr_same`` (calibrated on trials of the development speakers who are not in the cohort, with
        the same cohort; None if there are fewer than four of them).
    """
    rows: Rows = []
    for place, size in enumerate(sizes):
        found: dict[str, Rows] = {}
        used = orders[:1] if size == sizes[-1] else orders
        for draw, order in enumerate(used):
            progress("cohort sizes", (place + draw / len(used)) / len(sizes))
            for name, figures in _with_size(scores, trained, order, size).items():
                found.setdefault(name, []).append(figures)
        rows += [{"size": size, "draws": len(runs), "system": name, **_spread(runs)} for name, runs in found.items()]
    return rows


def run_blocks(
    scores: ScoreSet, trained: Mapping[str, TrainedSystem], *, sizes: Sequence[int], orders: Sequence[Order]
) -> Rows:
    """Measure the score models' own log-likelihood ratios when they see only some blocks of cohort scores."""
    rows: Rows = []
    models = [name for dim, name in MODELS.items() if dim]
    for size in sizes:
        used = orders[:1] if size == sizes[-1] else orders
        cohorts = [_evaluation(scores, order, size) for order in used]
        for model in models:
            normalizer = trained[model].fitted.normalizer
            for name, kept in BLOCKS.items():
                runs = []
                for parts in cohorts:
                    seen = [LabelledBlocks(_only(part.blocks, kept), part.labels, part.name) for part in parts]
                    runs.append(measured(scored(normalizer, seen), {}, is_llr=True))
                rows.append({"size": size, "draws": len(runs), "system": model, "blocks": name, **_spread(runs)})
    return rows


def _with_size(scores: ScoreSet, trained: Mapping[str, TrainedSystem], order: Order, size: int) -> dict[str, Any]:
    evaluation = _evaluation(scores, order, size)
    others = _outside(scores, order, size)
    found = {}
    for name, system in trained.items():
        if size < _LEAST.get(name, 0):
            continue
        normalizer, same = system.fitted.normalizer, None
        if others:
            same = LogisticCalibration.fit(scored(normalizer, others), l2=PENALTY)
        calibrations = {"cllr_whole": system.calibration, "cllr_same": same}
        found[name] = measured(scored(normalizer, evaluation), calibrations, system.fitted.is_llr)
    return found


def _evaluation(scores: ScoreSet, order: Order, size: int) -> list[LabelledBlocks]:
    made = []
    for part in scores.evaluation:
        cohort = order[_speakers(part)][:size]
        made.append(LabelledBlocks(with_cohort(part.blocks, cohort), part.labels, part.name))
    return made


def _outside(scores: ScoreSet, order: Order, size: int) -> list[LabelledBlocks]:
    """Return the trials of development speakers outside of the cohort; none if they are too few."""
    if min(map(len, order)) - size < _FEWEST:
        return []
    return [among_others(part, order[_speakers(part)][:size]) for part in scores.development]


def _only(blocks: ScoreBlocks, kept: Sequence[str]) -> ScoreBlocks:
    return blocks.replace(**{name: None for name in ("enroll", "test", "cohort") if name not in kept})


def _spread(runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {name: None if first is None else spread([run[name] for run in runs]) for name, first in runs[0].items()}


def _speakers(part: LabelledBlocks) -> tuple[str, ...]:
    blocks = part.blocks
    sides = (blocks.cohort_enroll_speakers, blocks.cohort_test_speakers)
    return tuple(sorted({str(name) for side in sides if side is not None for name in side}))
