"""Why the scale of cohort scores differs: by phrase, by enrolment or test, or because few speakers tell it.

    log sd_pi = m + a_p + b_pi + e_pi                                  (V1)

is the logarithm of the standard deviation of the cohort scores of enrolment (or test) i of phrase p. What varies is
the phrase (a), the enrolment or test (b), and the cohort that was drawn (e). The variance of e is that of a jackknife
over cohort *speakers*: several takes of one speaker are not independent. Only what the cohort does to the difference of
two enrolments counts, as a cohort that makes all scales larger makes none of them differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore import InputError

if TYPE_CHECKING:
    from evenscore.files import ScoreSet

__all__ = ["scale_facts", "scale_variances"]

Array = npt.NDArray[np.float64]


def scale_facts(scores: ScoreSet) -> dict[str, dict[str, dict[str, float]]]:
    """Return `scale_variances` of the evaluation enrolments and tests, with everybody in the cohort."""
    blocks = [part.blocks for part in scores.evaluation]
    enroll = [(part.enroll.scores, np.asarray(part.cohort_test_speakers)) for part in blocks]
    test = [(part.test.scores.T, np.asarray(part.cohort_enroll_speakers)) for part in blocks]
    return {"joint": {"enroll": scale_variances(enroll), "test": scale_variances(test)}}


def scale_variances(phrases: Sequence[tuple[npt.NDArray[Any], Sequence[str] | npt.NDArray[Any]]]) -> dict[str, float]:
    """Return the standard deviation of log-scales, and which shares of its square come from where.

    Parameters
    ----------
    phrases
        For each phrase the scores of its members (rows) against the cohort (columns), and the cohort's speakers.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> speakers = [f"s{n % 20}" for n in range(60)]
    >>> phrases = [(scale * rng.normal(size=(30, 60)), speakers) for scale in (1.0, 1.5, 2.0)]
    >>> found = scale_variances(phrases)
    >>> found["phrase"] > 0.8, abs(found["member"]) < 0.05
    (True, True)
    """
    if min((len(scores) for scores, _ in phrases), default=0) < 2:
        raise InputError("scales are compared within a phrase; give at least two enrolments or tests of each")
    logs = [_log_scales(scores, np.ones(scores.shape[1], dtype=bool)) for scores, _ in phrases]
    names = sorted({name for _, speakers in phrases for name in speakers})
    without = [[_log_scales(scores, np.asarray(who) != name) for name in names] for scores, who in phrases]
    within, within_noise = _within(logs, without)
    member = within - within_noise
    phrase, between_noise = 0.0, 0.0
    if len(phrases) > 1:
        between, between_noise = _between(logs, without)
        phrase = between - between_noise - member * float(np.mean([1 / len(one) for one in logs]))
    total = phrase + member + within_noise + between_noise
    return {
        "spread": float(np.sqrt(total)),
        "phrase": phrase / total,
        "member": member / total,
        "sampling": (within_noise + between_noise) / total,
        "member_spread": float(np.sqrt(max(member, 0.0))),
    }


def _log_scales(scores: npt.NDArray[Any], kept: npt.NDArray[np.bool_]) -> Array:
    return np.asarray(np.log(scores[:, kept].astype(np.float64).std(axis=1)))


def _within(logs: Sequence[Array], without: Sequence[Sequence[Array]]) -> tuple[float, float]:
    """Return the variance around the phrase's mean, and how much of it is the cohort's."""
    degrees = sum(len(one) - 1 for one in logs)
    seen = sum(float(np.square(one - one.mean()).sum()) for one in logs)
    noise = sum(float(_jackknife([one - one.mean() for one in leaving]).sum()) for leaving in without)
    return seen / degrees, noise / degrees


def _between(logs: Sequence[Array], without: Sequence[Sequence[Array]]) -> tuple[float, float]:
    """Return the variance of the phrases' means, and how much of it is the cohort's."""
    means = np.array([one.mean() for one in logs])
    leaving = np.array([[one.mean() for one in phrase] for phrase in without]).T
    noise = _jackknife([one - one.mean() for one in leaving])
    return float(means.var(ddof=1)), float(noise.sum()) / (len(means) - 1)


def _jackknife(replicates: Sequence[Array]) -> Array:
    """Return the variance of each estimate from its values without one speaker after the other."""
    values = np.array(replicates)
    return np.asarray((len(values) - 1) * values.var(axis=0))
