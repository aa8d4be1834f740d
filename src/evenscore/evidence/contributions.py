"""What each feature contributes to the log-likelihood ratio of a trial."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from evenscore.errors import InputError
from evenscore.evidence.features import pattern_of, with_cohort_speakers
from evenscore.evidence.model import CohortEvidence
from evenscore.evidence.normalizer import EvidenceNormalizer
from evenscore.tables import ScoreBlocks, ScoreMatrix

__all__ = ["MEANING", "Contributions", "contributions"]

#: What the features mean, in a few words.
MEANING: Mapping[str, str] = {
    "raw": "raw score",
    "s": "S-norm",
    "as": "adaptive S-norm, 300 highest cohort scores",
    "z": "Z-norm",
    "t": "T-norm",
    "s_norm": "S-norm with shrunk scales",
    "as_norm": "adaptive S-norm, highest fifth of the cohort",
    "score_model": "score model's LLR",
    "bend": "steeper above 0",
    "ls_e": "spread of the enrolment's cohort scores",
    "ls_t": "spread of the test's cohort scores",
    "b": "impostor score predicted for this pair",
    "w": "part of the score where one speaker varies",
    "offset": "constant",
    "bounds": "bounds of the LLR",
}


@dataclass(frozen=True, kw_only=True)
class Contributions:
    """The log-likelihood ratio of one trial, taken apart.

    Attributes
    ----------
    enroll, test
        The trial.
    llr
        Its log-likelihood ratio, the sum of ``terms``.
    terms
        What each feature adds, with ``"offset"`` and ``"bounds"``.
    features
        The values of the features.

    Examples
    --------
    >>> terms = {"s_norm": 2.5, "w": -0.5, "offset": 0.25, "bounds": 0.0}
    >>> Contributions(enroll="ann", test="t1", llr=2.25, terms=terms, features={"s_norm": 3.1, "w": 0.2}).rows()[0]
    ('s_norm', 'S-norm with shrunk scales', 3.1, 2.5)
    """

    enroll: str
    test: str
    llr: float
    terms: Mapping[str, float]
    features: Mapping[str, float]

    def rows(self) -> list[tuple[str, str, float | None, float]]:
        """Return name, meaning, value and contribution, the largest contribution first."""
        order = sorted(self.terms, key=lambda name: -abs(self.terms[name]))
        return [(name, MEANING[name], self.features.get(name), self.terms[name]) for name in order]


def contributions(model: CohortEvidence, blocks: ScoreBlocks, trial: tuple[str, str]) -> Contributions:
    """Return what each feature contributes to a trial's log-likelihood ratio.

    Parameters
    ----------
    model
        The cohort-evidence model.
    blocks
        Blocks that have the trial.
    trial
        Its enrolment and its test.

    Examples
    --------
    >>> from evenscore import LabelledBlocks, ScoreModel, fit_evidence, simulate
    >>> model = ScoreModel(mu=[0.0, 4.0], alpha=[[1.0], [1.0]], beta=[[0.5], [0.5]], sigma2=[1.0, 1.0])
    >>> speakers = [f"s{n % 12}" for n in range(36)]
    >>> dev = LabelledBlocks.own_cohort(*simulate(model, speakers[:12], speakers, seed=1))
    >>> evidence = fit_evidence([dev])
    >>> ids = dev.blocks.trials.enroll_ids[0], dev.blocks.trials.test_ids[1]
    >>> found = contributions(evidence, dev.blocks, ids)
    >>> bool(np.isclose(sum(found.terms.values()), found.llr))
    True
    """
    one = with_cohort_speakers(_one_trial(blocks, *trial))
    normalizer = EvidenceNormalizer(model, one)
    found = normalizer.features(one)
    _, head = model.head_for(pattern_of(one))
    values = {name: float(np.ravel(array)[0]) for name, array in found.items()}
    single = {name: np.array([value]) for name, value in values.items()}
    terms = {name: float(array[0]) for name, array in head.terms(single).items()}
    terms["offset"] = head.offset
    llr = float(head.llr(single)[0])
    bounded = head.target_outliers > 0 or head.nontarget_outliers > 0
    terms["bounds"] = llr - sum(terms.values()) if bounded else 0.0
    return Contributions(enroll=trial[0], test=trial[1], llr=llr, terms=terms, features=values)


def _one_trial(blocks: ScoreBlocks, enroll: str, test: str) -> ScoreBlocks:
    """Return the blocks with a single trial."""
    trials = blocks.trials
    row, column = _place(trials.enroll_ids.tolist(), enroll), _place(trials.test_ids.tolist(), test)
    here = trials.tile.pair(*(np.arange(size) == at for size, at in zip(trials.shape, (row, column), strict=True)))
    [score] = trials.tile.scores[here[0] & here[1]] if (here[0] & here[1]).any() else [np.nan]
    if np.isnan(score):
        raise InputError(f"there is no trial of {enroll!r} and {test!r} with a score in the blocks")
    axes = trials.enroll_axis.take([row]), trials.test_axis.take([column])
    return blocks.replace(trials=ScoreMatrix([[score]], *axes))


def _place(ids: list[str], name: str) -> int:
    if name not in ids:
        raise InputError(f"{name!r} is not in the blocks")
    return ids.index(name)
