"""What the cohort scores of trials say about them: the features of the evidence model.

==================  ========================================================================================
``raw``             the score
``s_norm``          the mean over the sides of (score - mean) / shrunk scale of the cohort scores
``as_norm``         the same with mean and scale of the highest fifth of the cohort scores
``score_model``     the score model's log-likelihood ratio
``ls_e``, ``ls_t``  shrunk log-scale of each side's cohort scores, less the usual one
``b``, ``w``        predicted impostor score, and the part of the score where one speaker varies: `PairSpace`
==================  ========================================================================================

The first four are views: scores of the trial, each good by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evenscore.data.blocks import ScoreBlocks
from evenscore.data.score_matrix import ScoreMatrix
from evenscore.data.side import Side
from evenscore.data.trial_list import TrialList
from evenscore.evidence.pair_space import PairSpace
from evenscore.model.parameters import ScoreModel
from evenscore.model.scoring import ScoreModelNormalizer
from evenscore.norms.folds import assign_folds, normalize_by_folds
from evenscore.norms.options import NormOptions
from evenscore.norms.statistics import location_scale
from evenscore.parallel import one_blas_thread

__all__ = ["VIEWS", "ScalePrior", "evidence_features", "measure", "measure_by_folds"]

VIEWS = ("raw", "s_norm", "as_norm", "score_model")
TOP = 0.2  #: share of the cohort that ``as_norm`` takes
_FLOOR = 5.0  # nats below the usual log-scale at which a scale is held
_OPTIONS = NormOptions(ddof=1)

Array = npt.NDArray[np.float64]
Measures = Mapping[str, Array]  #: by name, in the shape of the trials' scores


@dataclass(frozen=True)
class ScalePrior:
    """How log standard deviations of the cohort scores of a side are distributed: N(center, variance)."""

    center: float
    variance: float

    @classmethod
    def estimate(cls, std: Array, speakers: Array) -> ScalePrior:
        """Estimate it from standard deviations, and from how many cohort speakers each of them is.

        The variance is that of the logarithms, less their sampling variance 1 / (2 (n - 1)). Scores of one cohort
        speaker resemble each other, so n counts speakers.
        """
        good = (std > 0) & (speakers > 1)
        if not good.any():
            return cls(0.0, 0.0)
        logs = np.log(std[good])
        noise = np.mean(0.5 / (speakers[good] - 1))
        return cls(float(logs.mean()), max(float(logs.var() - noise), 0.0))

    def shrink(self, std: Array, speakers: Array) -> Array:
        """Return log standard deviations less the usual one, shrunk to 0 by their sampling variance."""
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.maximum(np.log(std) - self.center, -_FLOOR)
            free = self.variance * np.maximum(speakers - 1, 0)
        return np.where(np.isnan(logs), 0.0, free / (free + 0.5) * np.nan_to_num(logs))


#: What depends on the cohort alone, by its ids: both orders of two folds of speakers have the same cohort.
Cache = dict[tuple[str | None, ...], tuple[ScoreModelNormalizer | None, PairSpace | None]]


def measure(blocks: ScoreBlocks, model: ScoreModel | None, prepared: Cache) -> dict[str, Array]:
    """Return what the features are made of, for trials none of whose speakers is in the cohort.

    ``mean_e``, ``std_e``, ``top_mean_e``, ``top_std_e``, ``speakers_e`` of the enrolment's cohort scores, the same of
    the test's (``_t``), ``score_model``, ``b`` and ``w``; those that the blocks allow.
    """
    trials, plain, listed = blocks.trials, blocks.nontargets(), (blocks.trials.rows, blocks.trials.cols)
    found: dict[str, Array] = {}
    if plain.enroll is not None:
        for name, values in _moments(plain.enroll.scores, plain.enroll.test).items():
            found[f"{name}_e"] = values[:, None] if listed[0] is None else values[listed[0]]
    if plain.test is not None:
        for name, values in _moments(plain.test.scores.T, plain.test.enroll).items():
            found[f"{name}_t"] = values[None] if listed[1] is None else values[listed[1]]
    if blocks.enroll is None or blocks.test is None or blocks.cohort is None:
        return found
    cohort = blocks.cohort
    ids = (*cohort.enroll_ids.tolist(), None, *cohort.test_ids.tolist())
    if ids not in prepared:
        large = min(cohort.shape) > 1
        space = PairSpace.from_cohort(np.asarray(cohort.scores), cohort.test.speakers) if large else None
        prepared[ids] = None if model is None else ScoreModelNormalizer(model, blocks), space
    normalizer, space = prepared[ids]
    scores, S_e, S_t = (np.asarray(table.scores, float) for table in (trials, blocks.enroll, blocks.test))
    if normalizer is not None:
        keys = [None if labels is None else labels.matrix for labels in (blocks.enroll_labels, blocks.test_labels)]
        found["score_model"] = normalizer.llr(scores, S_e, S_t, keys[0], keys[1], *listed)
    found["b"] = found["w"] = np.zeros(scores.shape)  # of a cohort that is too small
    if space is not None:
        x, y = space.enroll(S_e[:, : cohort.shape[1]]), space.test(S_t[: cohort.shape[0]].T)
        if listed[0] is None:
            found["b"], found["w"] = (x * space.impostor) @ y.T, (x @ space.within) @ y.T
        else:
            x, y = x[listed[0]], y[listed[1]]
            found["b"], found["w"] = np.vecdot(x * space.impostor, y), np.vecdot(x @ space.within, y)
    return found


def _moments(scores: npt.NDArray[np.floating], cohort: Side) -> dict[str, Array]:
    """Return mean and standard deviation of rows of cohort scores, of all and of the highest, and how many speakers."""
    rows, names = np.array(scores, np.float64), cohort.ids if cohort.speakers is None else cohort.speakers
    if rows.shape[1] < 2:
        empty = np.full(len(rows), np.nan)
        return {"mean": empty, "std": empty, "top_mean": empty, "top_std": empty, "speakers": np.zeros(len(rows))}
    mean, std = location_scale(rows.copy(), _OPTIONS)
    top_mean, top_std = location_scale(rows, _OPTIONS, max(2, round(TOP * rows.shape[1])))
    speakers = np.full(len(rows), float(len({*names.tolist()})))
    return {"mean": mean, "std": std, "top_mean": top_mean, "top_std": top_std, "speakers": speakers}


def measure_by_folds(blocks: ScoreBlocks, model: ScoreModel | None, folds: int) -> dict[str, Array]:
    """Return `measure` of each trial, with the cohort that has none of its own speakers.

    A trial whose speakers are in one fold loses a second one: else the cohort of a target trial would be larger than
    that of a non-target trial, and its size would be a feature that new trials do not have.
    """
    trials, out = blocks.trials, dict[str, Array]()
    prepared: Cache = {}
    sides = (trials.enroll, trials.test, blocks.cohort_enroll, blocks.cohort_test)
    names = [[] if side is None or side.speakers is None else side.speakers.tolist() for side in sides]
    shared = ({*names[0], *names[1]} & {*names[2], *names[3]}) - {None}
    fold = assign_folds([name for part in names[:2] for name in part if name in shared], folds)

    def members(side: Side | None, left_out: int) -> npt.NDArray[np.intp] | None:
        if side is None or side.speakers is None or left_out < 0:
            return None
        return np.flatnonzero([fold.get(name, -1) != left_out for name in side.speakers])

    def collect(part: ScoreBlocks) -> ScoreMatrix | TrialList:
        some = part.trials
        a, b = (-1 if side.speakers is None else fold.get(side.speakers[0], -1) for side in (some.enroll, some.test))
        second = (a + 1) % folds if a == b >= 0 and folds > 2 else -1
        part = part.take_cohort(members(part.cohort_enroll, second), members(part.cohort_test, second))
        at = np.ix_(trials.enroll.find(some.enroll_ids), trials.test.find(some.test_ids))
        if some.rows is not None and trials.rows is not None:
            at = (some.find(trials),)
        for name, values in measure(part, model, prepared).items():
            out.setdefault(name, np.full(np.shape(np.asarray(trials.scores)), np.nan))[at] = values
        return some

    with one_blas_thread():
        normalize_by_folds(collect, blocks, folds)
    return out


def estimate_scales(parts: Sequence[Measures]) -> dict[str, ScalePrior]:
    """Return the distribution of log-scales of each side, of all cohort scores and of the highest."""
    found = {}
    for name in ("std_e", "std_t", "top_std_e", "top_std_t"):
        if all(name in part for part in parts):
            std = np.concatenate([part[name].ravel() for part in parts])
            speakers = np.concatenate([part[f"speakers{name[-2:]}"].ravel() for part in parts])
            found[name] = ScalePrior.estimate(std, speakers)
    return found


def evidence_features(scores: Array, measures: Measures, scales: Mapping[str, ScalePrior]) -> dict[str, Array]:
    """Return the features of trials from what was measured; those that the measures allow."""
    raw = np.asarray(scores, np.float64)
    found: dict[str, Array] = {"raw": raw}
    for view, kind in (("s_norm", ""), ("as_norm", "top_")):
        sides = []
        for side in ("_e", "_t"):
            name = f"{kind}std{side}"
            if name in scales and name in measures:
                log = scales[name].shrink(measures[name], measures[f"speakers{side}"])
                sides.append((raw - measures[f"{kind}mean{side}"]) * np.exp(-log - scales[name].center))
                if not kind:
                    found[f"ls{side}"] = np.broadcast_to(log, raw.shape)
        if sides:
            found[view] = np.mean(sides, axis=0)
    return found | {name: measures[name] for name in ("score_model", "b", "w") if name in measures}
