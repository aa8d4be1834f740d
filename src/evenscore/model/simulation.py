"""Labelled scores drawn from a score model, for tests, demonstrations and planning."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from evenscore.data.blocks import ScoreBlocks
from evenscore.data.labels import NONTARGET, TARGET, Labels
from evenscore.data.score_matrix import ScoreMatrix
from evenscore.data.side import IdsLike, Side, as_strings
from evenscore.errors import InputError
from evenscore.model.parameters import ScoreModel

__all__ = ["simulate", "simulate_blocks"]


def simulate(
    model: ScoreModel, enroll_speakers: IdsLike, test_speakers: IdsLike, *, seed: int = 0
) -> tuple[ScoreMatrix, Labels]:
    """Draw a labelled score matrix from a score model; the same seed gives the same scores.

    Takes the speaker of each enrolment (e0, e1, ...) and of each test (t0, t1, ...); pairs of one speaker are targets.

    Examples
    --------
    >>> model = ScoreModel(mu=[-2.0, 3.0], alpha=[[0.5], [1.0]], beta=[[0.1], [0.7]], sigma2=[1.0, 2.0])
    >>> scores, labels = simulate(model, ["ann", "bob"], ["ann", "ann", "eve"], seed=1)
    >>> scores.shape, labels
    ((2, 3), Labels(2 x 3: 2 target, 4 non-target, 0 unknown))
    """
    enroll, test = _side("e", enroll_speakers), _side("t", test_speakers)
    labels = Labels.from_speakers(enroll, test)
    return ScoreMatrix(_draw(model, labels, seed), Side(enroll.ids), Side(test.ids)), labels


def simulate_blocks(
    model: ScoreModel,
    enroll_speakers: IdsLike,
    test_speakers: IdsLike,
    cohort_enroll_speakers: IdsLike,
    cohort_test_speakers: IdsLike,
    *,
    seed: int = 0,
) -> tuple[ScoreBlocks, Labels]:
    """Draw trials together with their cohort scores from a score model.

    Takes the speakers of the trials' and of the cohort's enrolments and tests, and returns the four blocks with all
    speakers, and the labels of the trials. Ids are e0, t0, ... for the trials and ce0, ct0, ... for the cohort.

    Examples
    --------
    >>> model = ScoreModel(mu=[-2.0, 3.0], alpha=[[0.5], [1.0]], beta=[[0.1], [0.7]], sigma2=[1.0, 2.0])
    >>> simulate_blocks(model, ["ann", "bob"], ["ann"], ["eve", "joe"], ["eve", "sam", "sam"])[0]
    ScoreBlocks(trials 2 x 1, enroll 2 x 3, test 2 x 1, cohort 2 x 3)
    """
    enroll, test = _side("e", enroll_speakers), _side("t", test_speakers)
    members_enroll, members_test = _side("ce", cohort_enroll_speakers), _side("ct", cohort_test_speakers)
    rows, cols = ([*a.speakers, *b.speakers] for a, b in ((enroll, members_enroll), (test, members_test)))  # type: ignore[misc]
    whole, m, n = _draw(model, Labels.from_speakers(rows, cols), seed), len(enroll), len(test)
    blocks = ScoreBlocks(
        ScoreMatrix(whole[:m, :n], enroll, test),
        enroll=ScoreMatrix(whole[:m, n:], enroll, members_test),
        test=ScoreMatrix(whole[m:, :n], members_enroll, test),
        cohort=ScoreMatrix(whole[m:, n:], members_enroll, members_test),
    )
    return blocks, Labels.from_speakers(enroll, test)


def _side(prefix: str, speakers: IdsLike) -> Side:
    names = as_strings(speakers, "speakers")
    if any(speaker in (None, "") for speaker in names.tolist()):
        raise InputError("every speaker must be known to simulate scores, but some are None or empty")
    return Side([f"{prefix}{n}" for n in range(len(names))], names)


def _draw(model: ScoreModel, labels: Labels, seed: int) -> npt.NDArray[np.float64]:
    """Draw the hidden variables, then the scores."""
    rng, (n_rows, n_cols) = np.random.default_rng(seed), labels.shape
    x, y = rng.standard_normal((n_rows, model.dim)), rng.standard_normal((n_cols, model.dim))  # (M1)
    noise, scores = rng.standard_normal(labels.shape), np.empty(labels.shape)
    for h in (NONTARGET, TARGET):
        effects = (model.mu[h] + x @ model.alpha[h])[:, None] + y @ model.beta[h]
        np.copyto(scores, effects + np.sqrt(model.sigma2[h]) * noise, where=labels.matrix == h)  # (M2)
    return scores
