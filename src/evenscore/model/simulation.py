"""Labelled scores drawn from a score model, for tests, demonstrations and planning."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.model.parameters import ScoreModel
from evenscore.tables import NONTARGET, TARGET, Labels, ScoreBlocks, ScoreMatrix
from evenscore.tables.ids import Ids, IdsLike, as_speakers

__all__ = ["simulate", "simulate_blocks"]

_SCORES = 1 << 20  # drawn at once


def simulate(
    model: ScoreModel,
    enroll_speakers: IdsLike,
    test_speakers: IdsLike,
    *,
    seed: int = 0,
    dtype: npt.DTypeLike = np.float64,
) -> tuple[ScoreMatrix, Labels]:
    """Draw a labelled score matrix from a score model.

    Parameters
    ----------
    model
        The score model.
    enroll_speakers, test_speakers
        The speaker of each enrolment and of each test; pairs of the same speaker are targets.
    seed
        The same seed gives the same scores.
    dtype
        float64 or float32.

    Returns
    -------
    tuple of ScoreMatrix and Labels
        Enrolments have the ids e0, e1, ..., tests t0, t1, ...

    Examples
    --------
    >>> model = ScoreModel(mu=[-2.0, 3.0], alpha=[[0.5], [1.0]], beta=[[0.1], [0.7]], sigma2=[1.0, 2.0])
    >>> scores, labels = simulate(model, ["ann", "bob"], ["ann", "ann", "eve"], seed=1)
    >>> scores.shape, labels
    ((2, 3), Labels(2 x 3 by speaker: 2 target, 4 non-target, 0 unknown))
    """
    rows = as_speakers(enroll_speakers, "enroll_speakers")
    columns = as_speakers(test_speakers, "test_speakers")
    enroll_ids, test_ids = _numbered("e", len(rows)), _numbered("t", len(columns))
    labels = Labels.from_speakers(rows, columns, enroll_ids=enroll_ids, test_ids=test_ids)
    return ScoreMatrix(_draw(model, labels, seed, dtype), enroll_ids, test_ids), labels


def simulate_blocks(
    model: ScoreModel,
    enroll_speakers: IdsLike,
    test_speakers: IdsLike,
    cohort_enroll_speakers: IdsLike,
    cohort_test_speakers: IdsLike,
    *,
    seed: int = 0,
    dtype: npt.DTypeLike = np.float64,
) -> tuple[ScoreBlocks, Labels]:
    """Draw trials together with their cohort scores from a score model.

    Every enrolment and every test has the same hidden variable in all the blocks that it stands in.

    Parameters
    ----------
    model
        The score model.
    enroll_speakers, test_speakers
        The speaker of each enrolment and of each test of the trials.
    cohort_enroll_speakers, cohort_test_speakers
        The speaker of each enrolment and of each test of the cohort. One who is among the trials too makes target
        scores there, which `ScoreModelNormalizer` leaves out of that speaker's evidence.
    seed, dtype
        As for `simulate`.

    Returns
    -------
    tuple of ScoreBlocks and Labels
        The four blocks with all speakers, and the labels of the trials. Ids are e0, t0, ... for the trials and ce0,
        ct0, ... for the cohort.

    Examples
    --------
    >>> model = ScoreModel(mu=[-2.0, 3.0], alpha=[[0.5], [1.0]], beta=[[0.1], [0.7]], sigma2=[1.0, 2.0])
    >>> blocks, labels = simulate_blocks(model, ["ann", "bob"], ["ann"], ["eve", "joe"], ["eve", "sam", "sam"])
    >>> blocks
    ScoreBlocks(trials 2 x 1, enroll 2 x 3, test 2 x 1, cohort 2 x 3, speakers of enroll, test, cohort_enroll,
    cohort_test)
    """
    rows, columns = as_speakers(enroll_speakers, "enroll_speakers"), as_speakers(test_speakers, "test_speakers")
    cohort_rows = as_speakers(cohort_enroll_speakers, "cohort_enroll_speakers")
    cohort_columns = as_speakers(cohort_test_speakers, "cohort_test_speakers")
    everybody = Labels.from_speakers(np.concatenate([rows, cohort_rows]), np.concatenate([columns, cohort_columns]))
    whole = _draw(model, everybody, seed, dtype)
    m, n = len(rows), len(columns)
    enroll_ids, test_ids = _numbered("e", m), _numbered("t", n)
    cohort_enroll_ids, cohort_test_ids = _numbered("ce", len(cohort_rows)), _numbered("ct", len(cohort_columns))
    blocks = ScoreBlocks(
        ScoreMatrix(whole[:m, :n], enroll_ids, test_ids),
        enroll=ScoreMatrix(whole[:m, n:], enroll_ids, cohort_test_ids),
        test=ScoreMatrix(whole[m:, :n], cohort_enroll_ids, test_ids),
        cohort=ScoreMatrix(whole[m:, n:], cohort_enroll_ids, cohort_test_ids),
        enroll_speakers=rows,
        test_speakers=columns,
        cohort_enroll_speakers=cohort_rows,
        cohort_test_speakers=cohort_columns,
    )
    return blocks, Labels.from_speakers(rows, columns, enroll_ids=enroll_ids, test_ids=test_ids)


def _draw(model: ScoreModel, labels: Labels, seed: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Draw the hidden variables, then the scores, a few rows at a time; the draw does not depend on how many."""
    kind = np.dtype(dtype)
    if kind not in (np.float32, np.float64):
        raise InputError(f"dtype is {kind}, but must be float32 or float64")
    if labels.n_unknown:
        raise InputError("every speaker must be known to simulate scores, but some are None or empty")
    rng = np.random.default_rng(seed)
    n_rows, n_columns = labels.shape
    row_codes, column_codes, _ = labels.speaker_codes
    enroll = model.mu + rng.standard_normal((n_rows, model.dim)) @ model.alpha.T  # (M1)
    test = rng.standard_normal((n_columns, model.dim)) @ model.beta.T
    sigma = np.sqrt(model.sigma2)
    scores = np.empty((n_rows, n_columns), dtype=kind)
    size = max(_SCORES // max(n_columns, 1), 1)
    for first in range(0, n_rows, size):
        rows = slice(first, first + size)
        noise = rng.standard_normal(scores[rows].shape)
        other, same = (
            enroll[rows, h, None] + test[:, h] + sigma[h] * noise
            for h in (NONTARGET, TARGET)  # (M2)
        )
        scores[rows] = np.where(row_codes[rows, None] == column_codes, same, other)
    return scores


def _numbered(prefix: str, count: int) -> Ids:
    return np.array([f"{prefix}{n}" for n in range(count)], dtype=object)
