"""Spoofing-aware verification: trials of targets, of other speakers, and of spoofed targets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.metrics.detection_cost import detection_costs
from evenscore.metrics.error_rates import EerMethod, eer
from evenscore.metrics.operating_points import OperatingPoint
from evenscore.metrics.trials import sort_scores
from evenscore.tables.arrays import as_scores

__all__ = ["SPOOF_COSTS", "SpoofCosts", "SpoofingEvaluation", "evaluate_spoofing"]

CLASSES = ("target", "nontarget", "spoof")


@dataclass(frozen=True)
class SpoofCosts:
    """Priors of the three classes, which add up to 1, and costs of errors; by default those of ASVspoof 5, track 2.

    Examples
    --------
    >>> SpoofCosts(0.9, 0.05, 0.05, 1, 10, 20).default_cost
    0.9
    """

    p_target: float = 0.9405
    p_nontarget: float = 0.0095
    p_spoof: float = 0.05
    c_miss: float = 1.0
    c_fa: float = 10.0  #: of accepting a non-target
    c_fa_spoof: float = 10.0

    def __post_init__(self) -> None:
        priors = (self.p_target, self.p_nontarget, self.p_spoof)
        if min(priors) <= 0 or abs(sum(priors) - 1) > 1e-9:
            raise InputError(f"the priors are {priors}, but must be above 0 and add up to 1")
        if min(self.c_miss, self.c_fa, self.c_fa_spoof) <= 0:
            raise InputError("the costs of errors must be above 0")

    @property
    def weights(self) -> tuple[float, float, float]:
        """What a rate of 1 costs: of misses, of accepted non-targets, and of accepted spoofs."""
        return self.c_miss * self.p_target, self.c_fa * self.p_nontarget, self.c_fa_spoof * self.p_spoof

    @property
    def default_cost(self) -> float:
        """Cost of the better of the two systems that do not listen."""
        return min(self.weights[0], sum(self.weights[1:]))


#: By name: those of the challenge, and those of the paper that defines the a-DCF.
SPOOF_COSTS: Mapping[str, SpoofCosts] = {
    "asvspoof5": SpoofCosts(),
    "a-dcf": SpoofCosts(0.9, 0.05, 0.05, 1.0, 10.0, 20.0),
}


@dataclass(frozen=True, kw_only=True)
class SpoofingEvaluation:
    """Metrics of trials of three classes.

    Attributes
    ----------
    sasv_eer, sv_eer, spf_eer
        Equal error rates of targets against all others, against non-targets, and against spoofs.
    min_a_dcf, min_threshold
        Architecture-agnostic detection cost (Shim et al., Odyssey 2024) at the best threshold, divided by the cost of
        the better system that does not listen.
    act_a_dcf, act_threshold
        The same at the Bayes threshold of a log-likelihood ratio between targets and all others, mixed by their costs.
    n_target, n_nontarget, n_spoof
        Numbers of trials.
    """

    sasv_eer: float
    sv_eer: float
    spf_eer: float
    min_a_dcf: float
    min_threshold: float
    act_a_dcf: float
    act_threshold: float
    n_target: int
    n_nontarget: int
    n_spoof: int

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, ready for JSON."""
        return asdict(self)


def evaluate_spoofing(
    scores: npt.ArrayLike,
    classes: npt.ArrayLike,
    *,
    costs: SpoofCosts = SPOOF_COSTS["asvspoof5"],
    eer_method: EerMethod = "rocch",
) -> SpoofingEvaluation:
    """Return the metrics of spoofing-aware verification.

    a-DCF(t) = c_miss p_target Pmiss(t) + c_fa p_nontarget Pfa(t) + c_fa_spoof p_spoof Pfa_spoof(t), one threshold for
    one score, whatever the system behind it. With the two kinds of non-targets weighted by what they cost, it is an
    ordinary detection cost.

    Parameters
    ----------
    scores
        One number for each trial; higher means more like the target speaker in person.
    classes
        ``target``, ``nontarget`` or ``spoof`` for each trial.
    costs
        Priors and costs.
    eer_method
        Convention of the EER, see `equal_error_rate`.

    Examples
    --------
    >>> found = evaluate_spoofing([3.0, 1.0, -2.0, 2.0], ["target", "target", "nontarget", "spoof"])
    >>> found.sv_eer, found.spf_eer, round(found.min_a_dcf, 3)
    (0.0, 0.3333333333333333, 0.79)
    """
    values, kinds = as_scores(scores, "scores", ndim=1), np.asarray(classes).astype(str)
    if kinds.shape != values.shape:
        raise InputError(f"there are {kinds.size} classes for {values.size} scores; give one for each")
    odd = ~np.isin(kinds, CLASSES)
    if odd.any():
        raise InputError(f"the class {str(kinds[odd][0])!r} is not known; use {', '.join(CLASSES)}")
    member = {name: kinds == name for name in CLASSES}
    counts = {f"n_{name}": int(np.count_nonzero(mask)) for name, mask in member.items()}
    absent = [name for name in CLASSES if not counts[f"n_{name}"]]
    if absent:
        raise InputError(f"there are no {absent[0]} trials, but all three classes are needed; check the key")
    _, alarm, spoofed = costs.weights
    share = {"target": 1.0, "nontarget": alarm, "spoof": spoofed}
    mass = sum(member[name] * (share[name] / counts[f"n_{name}"]) for name in CLASSES)
    weighted = sort_scores(values, member["target"], weights=mass)
    point = OperatingPoint(costs.p_target, costs.c_miss, (alarm + spoofed) / (1 - costs.p_target))
    (cost,) = detection_costs(weighted, points=[point])

    def rate(*names: str) -> float:
        used = member["target"] | np.any([member[name] for name in names], axis=0)
        return eer(values[used], member["target"][used], method=eer_method)

    return SpoofingEvaluation(
        sasv_eer=rate("nontarget", "spoof"),
        sv_eer=rate("nontarget"),
        spf_eer=rate("spoof"),
        min_a_dcf=cost.min_dcf,
        min_threshold=cost.min_threshold,
        act_a_dcf=cost.act_dcf,
        act_threshold=cost.act_threshold,
        **counts,
    )
