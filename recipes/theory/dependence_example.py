"""A world so small that every probability can be written down: what the cohort scores tell, exactly.

Speakers, enrolments and tests are numbers from 0 to 3. A world Theta says how often each speaker comes,
p(y), and what is heard of it, p(o | y). Everything else is enumeration.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from evenscore import InputError
from recipes.theory.dependence import COHORT_SCORES

if TYPE_CHECKING:
    from jaxtyping import Float, Int

__all__ = ["CASES", "Case", "World", "cohort_information", "conditional_information"]

_DIGITS = 9  # scores that agree to so many digits are one score
_P_TARGET = 0.3


@dataclass(frozen=True, eq=False)
class World:
    """The parameters Theta: speakers p(y), and what is heard of each, p(o | y).

    Examples
    --------
    >>> World(speakers=[0.5, 0.5], heard=[[0.9, 0.1], [0.1, 0.9]]).llr.round(3)
    array([[ 0.495, -1.022],
           [-1.022,  0.495]])
    """

    speakers: npt.ArrayLike
    heard: npt.ArrayLike

    @property
    def target(self) -> Float[np.ndarray, "n n"]:
        """P(e, t) if both are of one speaker."""
        heard = np.asarray(self.heard)
        return np.asarray(heard.T @ (np.asarray(self.speakers)[:, None] * heard))

    @property
    def nontarget(self) -> Float[np.ndarray, "n n"]:
        """P(e, t) if they are of two speakers."""
        alone = np.asarray(self.speakers) @ np.asarray(self.heard)
        return np.outer(alone, alone)

    @property
    def llr(self) -> Float[np.ndarray, "n n"]:
        """The ideal score of every pair."""
        return np.asarray(np.log(self.target) - np.log(self.nontarget))


@dataclass(frozen=True, eq=False)
class Case:
    """A way to score a world.

    Attributes
    ----------
    name
        In words.
    worlds
        The worlds that may be the true one, all equally likely; one world alone is known.
    scores
        The score of every pair (e, t), for each world.
    """

    name: str
    worlds: Sequence[World]
    scores: Sequence[Float[np.ndarray, "n n"]]


def conditional_information(
    p: Float[np.ndarray, " n"], a: npt.ArrayLike, b: npt.ArrayLike, given: npt.ArrayLike
) -> float:
    """Return the conditional mutual information I(a; b | given) in nats, exactly.

    Parameters
    ----------
    p
        Probability of each outcome.
    a, b, given
        The value of each variable in each outcome: n numbers, or n x k numbers of k variables.

    Examples
    --------
    >>> a, b = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    >>> round(conditional_information(np.full(4, 0.25), a, b, a ^ b), 4), round(float(np.log(2)), 4)
    (0.6931, 0.6931)
    """
    codes = [_codes(values, len(p)) for values in (a, b, given)]
    joint = np.zeros([code.max() + 1 for code in codes])
    np.add.at(joint, tuple(codes), p)
    top = joint * joint.sum(axis=(0, 1))
    bottom = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    there = joint > 0
    return float(np.sum(joint[there] * np.log(top[there] / bottom[there])))


def cohort_information(case: Case) -> dict[str, float]:
    """Return what cohort scores tell about the hypothesis when the score is known, in nats.

    Returns
    -------
    dict
        ``all``: I(h; S_e, S_t, S_I | s); ``S_e``, ``S_t``, ``S_I``: each alone, I(h; S_e | s) and so on;
        ``S_I given the rest``: I(h; S_I | s, S_e, S_t); ``data``: I(h; e, t, Theta, all cohort scores | s);
        ``score``: I(h; s), for comparison.

    Examples
    --------
    >>> found = {case.name: cohort_information(case)["all"] for case in CASES}
    >>> found["ideal score"] < 1e-12 < found["approximate score"]
    True
    """
    p, v = _outcomes(case)
    cohort = np.stack([v[name] for name in COHORT_SCORES], axis=1)
    data = np.column_stack([v["e"], v["t"], v["Theta"], cohort])
    nothing = np.zeros(len(p), dtype=np.intp)
    alone = {name: conditional_information(p, v["h"], v[name], v["s"]) for name in COHORT_SCORES}
    rest = np.column_stack([v["s"], v["S_e"], v["S_t"]])
    return {
        "score": conditional_information(p, v["h"], v["s"], nothing),
        "all": conditional_information(p, v["h"], cohort, v["s"]),
        **alone,
        "S_I given the rest": conditional_information(p, v["h"], v["S_I"], rest),
        "data": conditional_information(p, v["h"], data, v["s"]),
    }


def _outcomes(case: Case) -> tuple[Float[np.ndarray, " n"], dict[str, Int[np.ndarray, " n"]]]:
    """Return all outcomes of (Theta, h, e, t, E, T): their probabilities, and the values of all variables."""
    size = len(np.asarray(case.worlds[0].speakers))
    shape = (len(case.worlds), 2, *[size] * 4)
    theta, h, e, t, cohort_e, cohort_t = (axis.ravel() for axis in np.indices(shape))
    trial = np.stack([[(1 - _P_TARGET) * world.nontarget, _P_TARGET * world.target] for world in case.worlds])
    others = np.stack([world.nontarget for world in case.worlds])  # the cohort's speakers are different people
    p = trial[theta, h, e, t] * others[theta, cohort_e, cohort_t] / len(case.worlds)
    scores = np.unique(np.round(np.stack(case.scores), _DIGITS), return_inverse=True)[1].reshape(-1, size, size)
    values = {"Theta": theta, "h": h, "e": e, "t": t}
    values |= {"s": scores[theta, e, t], "S_e": scores[theta, e, cohort_t]}
    values |= {"S_t": scores[theta, cohort_e, t], "S_I": scores[theta, cohort_e, cohort_t]}
    return p, values


def _codes(values: npt.ArrayLike, length: int) -> Int[np.ndarray, " n"]:
    table = np.asarray(values).reshape(length, -1)
    if table.shape[1] == 0:
        raise InputError("there is no variable; give at least one column")
    return np.unique(table, axis=0, return_inverse=True)[1].reshape(-1)


# Two kinds of speakers: 0 and 1 are heard clearly, 2 and 3 are not. Different pairs have the same ideal score, so
# that the score does not give the pair away.
_HERE = World(
    speakers=[0.15, 0.15, 0.35, 0.35],
    heard=[[0.85, 0.1, 0.025, 0.025], [0.1, 0.85, 0.025, 0.025], [0.05, 0.05, 0.6, 0.3], [0.05, 0.05, 0.3, 0.6]],
)
# Another language: each speaker is heard as one of its neighbours, and all speakers alike.
_ELSEWHERE = World(speakers=[0.25] * 4, heard=[np.roll([0.7, 0.125, 0.05, 0.125], shift) for shift in range(4)])

#: The ideal score, and each way to miss it that the paper names.
CASES = (
    Case("ideal score", [_HERE], [_HERE.llr]),
    Case("ideal score, one of two worlds", [_HERE, _ELSEWHERE], [_HERE.llr, _ELSEWHERE.llr]),
    Case("approximate score", [_HERE], [np.eye(4)]),
    Case("score of another world", [_HERE], [_ELSEWHERE.llr]),
    Case("score of one world, one of two worlds", [_HERE, _ELSEWHERE], [_HERE.llr, _HERE.llr]),
)
