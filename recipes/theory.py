"""When does a norm help? Embeddings drawn from a known PLDA, scored exactly, then with broken assumptions.

On ideal scores (log-likelihood ratios of the true parameters) no norm can help: whatever the recordings tell about the
hypothesis, the score tells (the paper's "normalization killer"). Each way to be wrong is then made worse step by step,
and the Cllr of every norm, after logistic calibration on development speakers, is compared with raw scores.

    python -m recipes.theory                       # all breaks, five draws of everything, about two minutes
    python -m recipes.theory --breaks noise --seeds 2 --speakers 40
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from evenscore import (
    Embeddings,
    EvenscoreError,
    LabelledBlocks,
    Labels,
    LogisticCalibration,
    ScoreBlocks,
    ScoreMatrix,
    Side,
    TrialList,
    cllr,
    fit_norm,
)
from evenscore.scoring import PLDA, CosineScorer, Projection, Scorer, fit_plda

__all__ = ["BREAKS", "NORMS", "cllr_of_norms", "draw_embeddings", "draw_truth", "main"]

Array = npt.NDArray[np.float64]
DIM = 20  #: components of an embedding

#: What is compared. LGSM 0D is the score model without hidden variables: its two Gaussians, and no norm.
NORMS: dict[str, tuple[str, dict[str, float | str]]] = {
    "raw": ("raw", {}),
    "Z": ("z", {}),
    "T": ("t", {}),
    "ZT": ("zt", {}),
    "S": ("s", {}),
    "AS": ("as", {"top_k": 0.3}),
    "LGSM 0D": ("lgsm", {"dim": 0, "residuals": "gaussian"}),
    "LGSM": ("lgsm", {"dim": 2, "tol": 1e-6, "residuals": "gaussian"}),
}


@dataclass(frozen=True, eq=False)
class World:
    """Who scores, and what the recordings of each session are really like: development (the cohort), and trials."""

    scorer: Scorer
    sessions: Sequence[tuple[PLDA, PLDA]]


def draw_truth(seed: int) -> PLDA:
    """Draw a mean and two covariances whose axes do not agree.

    Examples
    --------
    >>> np.linalg.eigvalsh(draw_truth(0).within).round(1)[[0, -1]]
    array([0.5, 4. ])
    """
    rng = np.random.default_rng((seed, 0))
    covariances = []
    for ends in ((4.0, 1.0), (4.0, 0.5)):
        axes = np.linalg.qr(rng.normal(size=(DIM, DIM)))[0]
        covariances.append((axes * np.geomspace(*ends, DIM)) @ axes.T)
    return PLDA(mean=rng.normal(size=DIM), between=covariances[0], within=covariances[1])


def draw_embeddings(truth: PLDA, n_speakers: int, each: int, seed: Sequence[int], name: str) -> Embeddings:
    """Draw recordings of new speakers; the same seed draws the same numbers, which the parameters stretch and shift."""
    rng = np.random.default_rng(seed)
    voices = truth.mean + rng.normal(size=(n_speakers, DIM)) @ _root(truth.between)
    noise = rng.normal(size=(n_speakers * each, DIM)) @ _root(truth.within)
    speakers = np.repeat([f"{name}-{at}" for at in range(n_speakers)], each)
    return Embeddings(
        [f"{name}-u{at}" for at in range(len(noise))], np.repeat(voices, each, axis=0) + noise, speakers.tolist()
    )


def _root(covariance: Array) -> Array:
    values, axes = np.linalg.eigh(covariance)
    return (axes * np.sqrt(np.maximum(values, 0.0))) @ axes.T


def _changed(truth: PLDA, mean: Array | None = None, within: Array | None = None) -> PLDA:
    return PLDA(
        mean=truth.mean if mean is None else mean,
        between=truth.between,
        within=truth.within if within is None else within,
    )


def _approximate(level: int, seed: int) -> World:
    """Exact PLDA; diagonal covariances; equal variances; cosine of centred embeddings; cosine without a centre."""
    truth = draw_truth(seed)
    between, within, equal = truth.between, truth.within, np.eye(DIM) / DIM
    scorers: list[Scorer] = [
        truth,
        PLDA(mean=truth.mean, between=np.diag(np.diag(between)), within=np.diag(np.diag(within))),
        PLDA(mean=truth.mean, between=np.trace(between) * equal, within=np.trace(within) * equal),
        CosineScorer(Projection(center=truth.mean)),
        CosineScorer(),
    ]
    return World(scorers[level], [(truth, truth)])


def _little_data(level: int, seed: int) -> World:
    """PLDA that is trained on 400, 100, 50 or 30 speakers."""
    truth = draw_truth(seed)
    count = (0, 400, 100, 50, 30)[level]
    if not count:
        return World(truth, [(truth, truth)])
    everybody = draw_embeddings(truth, 400, 4, (seed, 2), "b")
    first = everybody.take(np.arange(4 * count))
    return World(fit_plda(first, length_normalize=False, shrinkage=0).model, [(truth, truth)])


def _noise(level: int, seed: int) -> World:
    """Let recordings vary 1.5 to 4 times as much as the recognizer believes."""
    truth = draw_truth(seed)
    actual = _changed(truth, within=truth.within * (1.0, 1.5, 2.0, 3.0, 4.0)[level])
    return World(truth, [(actual, actual)])


def _rotated(level: int, seed: int) -> World:
    """Let recordings vary in directions that are turned by up to 45 degrees."""
    truth = draw_truth(seed)
    angle = np.radians((0, 10, 20, 30, 45)[level])
    axes, turn = np.linalg.eigh(truth.within)[1], np.cos(angle) * np.eye(DIM)
    for place in range(DIM // 2):
        turn[place, DIM - 1 - place], turn[DIM - 1 - place, place] = -np.sin(angle), np.sin(angle)
    turn = axes @ turn @ axes.T
    actual = _changed(truth, within=turn @ truth.within @ turn.T)
    return World(truth, [(actual, actual)])


def _shift(level: int, seed: int, elsewhere: bool = False) -> World:
    """Five sessions whose recordings are shifted; the cohort is of the same session, or of others."""
    truth = draw_truth(seed)
    size = (0.25 if elsewhere else 0.5) * level * np.sqrt(np.trace(truth.within) / DIM)
    here, there = size * np.random.default_rng((seed, 3)).normal(size=(2, 5, DIM))
    cohort = there if elsewhere else here
    return World(
        truth,
        [(_changed(truth, truth.mean + cohort[at]), _changed(truth, truth.mean + here[at])) for at in range(5)],
    )


#: Ways to be wrong, each with five levels, of which the first is ideal.
BREAKS: dict[str, Callable[[int, int], World]] = {
    "approximate": _approximate,
    "little-data": _little_data,
    "noise": _noise,
    "rotated": _rotated,
    "shift": _shift,
    "other-shift": partial(_shift, elsewhere=True),
}


def cllr_of_norms(world: World, seed: int, n_development: int = 100, n_evaluation: int = 150) -> dict[str, float]:
    """Return the Cllr of each norm in a world, after a logistic calibration; ``truth`` knows the true parameters.

    Examples
    --------
    >>> found = cllr_of_norms(BREAKS["noise"](0, 1), seed=1, n_development=20, n_evaluation=20)
    >>> found["raw"] < found["ZT"]
    True
    """
    training, evaluation, ideal = [], [], []
    share = (1, 1) if len(world.sessions) == 1 else (2, 3)
    for session, (cohort_truth, trial_truth) in enumerate(world.sessions):
        count = -(-n_development // share[0]), -(-n_evaluation // share[1])
        cohort = draw_embeddings(cohort_truth, count[0], 3, (seed, 1, session, 0), f"d{session}")
        trials = draw_embeddings(trial_truth, count[1], 4, (seed, 1, session, 1), f"e{session}")
        (dev_enroll, dev_test), (enroll, test) = _halves(cohort, 3), _halves(trials, 4)
        score = partial(_scores, world.scorer)
        training.append(LabelledBlocks.own_cohort(score(dev_enroll, dev_test)))
        scores = score(enroll, test)
        blocks = ScoreBlocks(scores, score(enroll, dev_test), score(dev_enroll, test), score(dev_enroll, dev_test))
        labels = Labels.from_speakers(scores.enroll, scores.test)
        evaluation.append(LabelledBlocks(blocks, labels))
        ideal.append(_scores(trial_truth, enroll, test).to_trials(labels))
    best = TrialList.concat(ideal)
    found = {"truth": cllr(best.scores, best.labels)}
    for name, (method, options) in NORMS.items():
        norm = fit_norm(method, training, **options)
        seen = TrialList.concat([part.labelled(norm.normalize(part.blocks, folds=10)) for part in training])
        new = TrialList.concat([part.labelled(norm.normalize(part.blocks)) for part in evaluation])
        calibration = LogisticCalibration.fit(seen.scores, seen.labels, l2=1e-6)
        found[name] = cllr(calibration(new.scores), new.labels)
    return found


def _scores(scorer: Scorer, enroll: Embeddings, test: Embeddings) -> ScoreMatrix:
    scores = np.asarray(scorer.bilinear(enroll, test))
    return ScoreMatrix(scores, Side(enroll.ids, enroll.speakers), Side(test.ids, test.speakers))


def _halves(embeddings: Embeddings, each: int) -> tuple[Embeddings, Embeddings]:
    """Return the first recording of every speaker, and the others."""
    first = np.arange(len(embeddings)) % each == 0
    return embeddings.take(np.flatnonzero(first)), embeddings.take(np.flatnonzero(~first))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table for each break: Cllr of raw scores and of the true parameters, and what each norm adds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--breaks", default=",".join(BREAKS), help="some of " + ", ".join(BREAKS))
    parser.add_argument("--seeds", type=int, default=5, help="draws of everything")
    parser.add_argument("--levels", type=int, default=5, help="levels of each break, from ideal")
    parser.add_argument("--speakers", type=int, default=100, help="development speakers; half as many more are judged")
    given = parser.parse_args(arguments)
    odd = [name for name in given.breaks.split(",") if name not in BREAKS]
    if odd:
        sys.stderr.write(f"error: there is no break {odd[0]!r}; there are {', '.join(BREAKS)}\n")
        return 2
    norms = [name for name in NORMS if name != "raw"]
    for name in given.breaks.split(","):
        print(f"| {name} | raw | truth | " + " | ".join(norms) + " |")
        print("|---" * (len(norms) + 3) + "|")
        for level in range(given.levels):
            try:
                runs = [
                    cllr_of_norms(BREAKS[name](level, seed), seed, given.speakers, 3 * given.speakers // 2)
                    for seed in range(1, given.seeds + 1)
                ]
            except EvenscoreError as error:
                sys.stderr.write(f"error: {error}\n")
                return 2
            means = {key: np.mean([run[key] for run in runs]) for key in runs[0]}
            added = [f"{means[norm] - means['raw']:+.3f}" for norm in norms]
            print(f"| {level} | {means['raw']:.3f} | {means['truth']:.3f} | " + " | ".join(added) + " |", flush=True)
        print()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
