"""The development trials as a calibration should see them: their cohorts are of one size, whatever their label.

A trial's own speakers are left out of its cohort. Those are two for a non-target trial and one for a target trial, so
that the size of the cohort would follow the label, as it never does in the evaluation. So a target trial leaves out a
second speaker, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from evenscore import InputError, LabelledBlocks, ScoreBlocks, TrialList
from evenscore.norms import FittedNorm

__all__ = ["calibration_trials", "second_speakers"]


def calibration_trials(fitted: FittedNorm, parts: Sequence[LabelledBlocks]) -> TrialList:
    """Return the trials that a norm was trained on, normalized without two speakers each, with labels."""
    found: list[TrialList] = []
    for part, own in zip(parts, fitted.training_scores, strict=True):
        trials = part.labelled(own)
        found += [trials.select(trials.labels == 0), _targets(fitted, part)]
    return TrialList.concat(found)


def _targets(fitted: FittedNorm, part: LabelledBlocks) -> TrialList:
    """Return the normalized target trials: their tests pass for those of a second speaker, who then is left out."""
    targets = part.trials.select(part.trials.labels == 1)
    second = dict(zip(part.blocks.trials.test_ids, second_speakers(part.blocks), strict=True))
    blocks = part.blocks.replace(trials=targets.with_speakers(test={name: second[name] for name in targets.test_ids}))
    normalized: Any = fitted.normalizer.normalize(blocks)
    return targets.with_scores(normalized.scores)


def second_speakers(blocks: ScoreBlocks) -> list[str]:
    """Return for each test another speaker of the cohort: the others in turn, so that nobody is chosen more often.

    Examples
    --------
    >>> from evenscore import LabelledBlocks, ScoreModel, simulate
    >>> model = ScoreModel(mu=[0.0, 4.0], alpha=[[1.0], [1.0]], beta=[[0.5], [0.5]], sigma2=[1.0, 1.0])
    >>> speakers = ["ann", "bob", "cat", "dan"]
    >>> part = LabelledBlocks.own_cohort(*simulate(model, speakers, ["bob", "bob", "bob", "bob", "dan"], seed=1))
    >>> second_speakers(part.blocks)
    ['cat', 'dan', 'ann', 'cat', 'ann']
    """
    if blocks.test_speakers is None or blocks.cohort_enroll_speakers is None:
        raise InputError("speakers must be known on all sides of the score blocks")
    names = sorted(set(blocks.cohort_enroll_speakers))
    place = {name: at for at, name in enumerate(names)}
    seen: Counter[str] = Counter()
    found = []
    for name in blocks.test_speakers:
        found.append(names[(place[name] + 1 + seen[name] % (len(names) - 1)) % len(names)])
        seen[name] += 1
    return found
