"""Which features and penalties a head gets: those that do best on speakers it has not met."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.calibrate.saturating import SHARES, saturated
from evenscore.evidence.head import BEND, EvidenceHead, Penalties, fit_head, log_loss
from evenscore.evidence.own_pairs import Ridges
from evenscore.evidence.training_trials import TrainingTrials

__all__ = ["Choice", "Judge", "best_choice", "bounded", "clearly_better", "cross_fitted"]

Array = npt.NDArray[np.float64]
Table = Mapping[Any, Array]
HeldOut = list[tuple[Array, npt.NDArray[np.int8]]]  #: log-likelihood ratios and labels, fold by fold

#: Candidates of each choice; the first is the default, which another one must clearly beat. Penalties can only grow:
#: vectors are often centred on the training speakers, which makes cohort scores of training trials tell a little about
#: their targets that those of new trials do not, and cross-validation within these speakers cannot see it. Those of
#: ``views`` are multiples of the penalty for so many speakers (`Penalties.of`).
CANDIDATES: Mapping[str, Sequence[Any]] = {
    "extras": (0.03, 0.1, 0.3),
    "views": (1, 10, 100),
    "impostor ridge": (0.3, 0.1, 1.0),
    "within ridge": (0.1, 0.03, 0.3),
    "rank": (128, 16),
}
_NOTICEABLE = 1e-6  # of a loss


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What can be chosen: the features, their penalties and their ridges."""

    views: tuple[str, ...]
    extras: tuple[str, ...]
    penalties: Penalties = field(default_factory=Penalties)
    ridges: Ridges = field(default_factory=Ridges)

    def having(self, name: str, value: Any) -> Choice:
        """Return the choice with another value of one of the `CANDIDATES`."""
        if name == "views":
            return replace(self, penalties=replace(self.penalties, views=value * self.penalties.views))
        if name == "extras":
            return replace(self, penalties=replace(self.penalties, extras=value))
        return replace(self, ridges=replace(self.ridges, **{name.split()[0]: value}))

    def without(self, name: str) -> Choice:
        """Return the choice without one feature."""
        if name == BEND:
            return replace(self, penalties=replace(self.penalties, bend=1e9))
        kept = (tuple(one for one in names if one != name) for names in (self.views, self.extras))
        views, extras = kept
        return replace(self, views=views, extras=extras)

    def features(self, table: Table) -> dict[str, Array]:
        """Return the features, with b and w for the chosen ridges; a table keeps them by name, ridge and rank."""
        found = {name: table[name] for name in ("raw", *self.views, *self.extras) if name not in ("b", "w")}
        for name, ridge in (("b", self.ridges.impostor), ("w", self.ridges.within)):
            if name in self.extras:
                found[name] = table[name, ridge, self.ridges.rank]
        return found

    def fit(
        self,
        table: Table,
        labels: npt.NDArray[np.int8],
        calibrated: dict[str, tuple[float, float]] | None = None,
    ) -> EvidenceHead:
        """Fit a head with these choices."""
        return fit_head(self.features(table), labels, self.views, self.extras, self.penalties, calibrated)


class Judge:
    """Judges choices by speaker folds: a head is fitted without the speakers of a fold, and judged within it."""

    def __init__(self, table: Table, trials: TrainingTrials, at: npt.NDArray[np.intp]) -> None:
        key, enroll, test = trials.key[at], trials.enroll_fold[at], trials.test_fold[at]
        self._parts, self._speakers, self._n_speakers = [], [], trials.n_speakers
        for fold in range(trials.n_folds):
            use, held = (
                np.flatnonzero(m) for m in ((enroll != fold) & (test != fold), (enroll == fold) & (test == fold))
            )
            if all((key[rows] == label).any() for rows in (use, held) for label in (0, 1)):
                self._parts.append((_rows(table, at[use]), key[use], _rows(table, at[held]), key[held]))
                self._speakers.append((trials.enroll[at[held]], trials.test[at[held]]))
        self._calibrated: list[dict[str, tuple[float, float]]] = [{} for _ in self._parts]
        self._known: dict[Choice, HeldOut] = {}

    def __bool__(self) -> bool:
        return len(self._parts) >= 2

    def losses(self, choice: Choice) -> Array:
        """Return the loss in each fold."""
        return np.array([log_loss(z, key) for z, key in self.held_out(choice)])

    def gain(self, choice: Choice, over: Choice) -> tuple[float, float]:
        """Return by how much the loss is below that of another choice, and the standard error over speakers.

        A speaker moves the mean by all of the trials that it takes part in.
        """
        gain, moved = 0.0, np.zeros(self._n_speakers)
        for label, sign in ((1, -1.0), (0, 1.0)):
            falls, shares, sides = [], [], []
            folds = zip(self.held_out(choice), self.held_out(over), self._speakers, strict=True)
            for (mine, key), (other, _), (enroll, test) in folds:
                at = np.flatnonzero(key == label)
                falls.append(np.logaddexp(0.0, sign * other[at]) - np.logaddexp(0.0, sign * mine[at]))
                shares.append(np.full(len(at), 0.5 / (np.log(2) * len(at) * len(self._parts))))
                sides.append((enroll[at], test[at]))
            fall, share = np.concatenate(falls), np.concatenate(shares)
            gain += float(fall @ share)
            part = share * (fall - fall @ share / share.sum())
            enroll, test = (np.concatenate(side) for side in zip(*sides, strict=True))
            moved += np.bincount(enroll, part, minlength=self._n_speakers)
            moved += np.bincount(test, part * (enroll != test), minlength=self._n_speakers)
        return gain, float(np.sqrt((moved**2).sum() * self._n_speakers / (self._n_speakers - 1)))

    def held_out(self, choice: Choice) -> HeldOut:
        """Return for each fold the log-likelihood ratios of its trials by a head that has not met them, and labels."""
        if choice in self._known:
            return self._known[choice]
        found: HeldOut = []
        for (table, key, held, held_key), calibrated in zip(self._parts, self._calibrated, strict=True):
            head = choice.fit(table, key, calibrated)
            found.append((head.llr(choice.features(held)), held_key))
        self._known[choice] = found
        return found


def clearly_better(losses: Array, than: Array) -> bool:
    """Tell whether the mean loss falls by more than two standard errors of its difference over the folds.

    What rounding can do does not count, so that a feature which says nothing stays.
    """
    gain = than - losses
    least = max(2 * gain.std(ddof=1) / np.sqrt(len(gain)), _NOTICEABLE * than.mean())
    return bool(gain.mean() > least)


def best_choice(judge: Judge, start: Choice) -> tuple[Choice, dict[str, dict[str, float]]]:
    """Go through the candidates one choice after the other; return the best, and all losses that were measured."""
    choice, tried = start, dict[str, dict[str, float]]()
    for name, values in CANDIDATES.items():
        if name in ("impostor ridge", "rank") and "b" not in choice.extras:
            continue
        if name == "within ridge" and "w" not in choice.extras:
            continue
        if name == "extras" and not choice.extras:
            continue
        now = judge.losses(choice)
        options = [choice.having(name, value) for value in values]
        tried[name] = {str(value): float(judge.losses(one).mean()) for value, one in zip(values, options, strict=True)}
        best = min(options, key=lambda one: float(judge.losses(one).mean()))
        if clearly_better(judge.losses(best), now):
            choice = best
    for name in choice.extras:
        fewer = choice.without(name)
        if clearly_better(judge.losses(fewer), judge.losses(choice)):
            choice = fewer
    return choice, tried


def bounded(head: EvidenceHead, held_out: HeldOut) -> EvidenceHead:
    """Return the head with the bounds that do best on held-out trials, none if none does clearly better."""
    shares = (0.0, 0.0)

    def losses(pair: tuple[float, float]) -> Array:
        return np.array([log_loss(saturated(z, *pair), key) for z, key in held_out])

    for at in (0, 1):
        options = [(share, shares[1]) if at == 0 else (shares[0], share) for share in SHARES]
        best = min(options, key=lambda pair: float(losses(pair).mean()))
        if clearly_better(losses(best), losses(shares)):
            shares = best
    return replace(head, target_outliers=shares[0], nontarget_outliers=shares[1])


def cross_fitted(
    choice: Choice, table: Table, trials: TrainingTrials, at: npt.NDArray[np.intp], head: EvidenceHead
) -> Array:
    """Return the log-likelihood ratio of every trial by a head that was fitted without the folds of its speakers."""
    out = head.llr(choice.features(table))
    first = np.minimum(trials.enroll_fold, trials.test_fold)
    second = np.maximum(trials.enroll_fold, trials.test_fold)
    enroll, test = trials.enroll_fold[at], trials.test_fold[at]
    for low in range(trials.n_folds):
        for high in range(low, trials.n_folds):
            mine = np.flatnonzero((first == low) & (second == high))
            use = at[~np.isin(enroll, (low, high)) & ~np.isin(test, (low, high))]
            if not len(mine) or not all((trials.key[use] == label).any() for label in (0, 1)):
                continue
            other = choice.fit(_rows(table, use), trials.key[use])
            other = replace(other, target_outliers=head.target_outliers, nontarget_outliers=head.nontarget_outliers)
            out[mine] = other.llr(choice.features(_rows(table, mine)))
    return out


def _rows(table: Table, at: npt.NDArray[np.intp]) -> dict[Any, Array]:
    return {name: values[at] for name, values in table.items()}
