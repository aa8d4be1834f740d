"""What evaluations found: records with names, which can be read as mappings, too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from evenscore.metrics.detection_cost import DetectionCost
from evenscore.tables.html_table import html_table

__all__ = ["Evaluation", "EvaluationBy", "NotEvaluated"]

_FIGURES = (
    *("eer", "eer_threshold", "min_dcf", "act_dcf", "min_c_primary", "act_c_primary"),
    *("cllr", "min_cllr", "calibration_loss", "auc", "n_target", "n_nontarget"),
)
_Row = tuple[str, str]  # what a figure is called, and how it is written


class _Record(Mapping[str, Any]):
    """A record whose figures can also be had by key, and which equals what ``to_dict`` returns."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, ready for JSON."""
        raise NotImplementedError

    def __getitem__(self, name: str) -> Any:
        return self.to_dict()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.to_dict())

    def __len__(self) -> int:
        return len(self.to_dict())


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Evaluation(_Record):
    """All metrics of one set of trials, as `evaluate` returns them.

    Attributes
    ----------
    eer, eer_threshold
        Equal error rate, a fraction, and a threshold near it.
    costs
        Detection costs at each operating point; ``min_dcf`` and ``act_dcf`` are those at the first one.
    cllr, min_cllr, auc
        Cross-entropy in bits, that after the best monotone calibration, and the area under the ROC.
    n_target, n_nontarget
        Numbers of trials.
    order_bounds
        Where scores were counted in bins: the least and the largest possible ``eer``, ``min_cllr`` and ``auc``, of
        which the figures are the middle; else empty. ``bounds`` has those of what follows from them, too.

    Examples
    --------
    >>> from evenscore import evaluate
    >>> result = evaluate([-3.0, -1.0, 0.0, 4.0], [0, 1, 0, 1], points=[0.5, 0.1])
    >>> result.eer, result["eer"], result.costs[1].min_dcf
    (0.25, 0.25, 0.5)
    >>> result.min_c_primary == (result.costs[0].min_dcf + result.costs[1].min_dcf) / 2
    True
    """

    eer: float
    eer_threshold: float
    costs: tuple[DetectionCost, ...]
    cllr: float
    min_cllr: float
    auc: float
    n_target: int
    n_nontarget: int
    order_bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    @property
    def min_dcf(self) -> float:
        """Detection cost at the first operating point with the best threshold."""
        return self.costs[0].min_dcf

    @property
    def act_dcf(self) -> float:
        """Detection cost at the first operating point with the Bayes threshold."""
        return self.costs[0].act_dcf

    @property
    def min_c_primary(self) -> float:
        """Mean of the minimum detection costs at all operating points, as in the NIST evaluations."""
        return sum(cost.min_dcf for cost in self.costs) / len(self.costs)

    @property
    def act_c_primary(self) -> float:
        """Mean of the actual detection costs at all operating points: NIST's primary metric."""
        return sum(cost.act_dcf for cost in self.costs) / len(self.costs)

    @property
    def calibration_loss(self) -> float:
        """Cllr - minCllr: what is lost because the scores are not calibrated LLRs."""
        return self.cllr - self.min_cllr

    @property
    def bounds(self) -> dict[str, tuple[float, float]]:
        """The least and the largest possible value of each figure that is not exact; empty if all are."""
        if not self.order_bounds:
            return {}
        low, high = self.order_bounds["min_cllr"]
        costs = [cost.min_dcf_bounds or (cost.min_dcf, cost.min_dcf) for cost in self.costs]
        least, most = (sum(ends) / len(costs) for ends in zip(*costs, strict=True))
        of_costs = {"min_dcf": costs[0], "min_c_primary": (least, most)}
        return {**self.order_bounds, **of_costs, "calibration_loss": (self.cllr - high, self.cllr - low)}

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, ready for JSON but for infinite ones; ``dcf`` has a dictionary for each point.

        ``bounds`` are there only where figures are not exact.
        """
        figures = {name: getattr(self, name) for name in _FIGURES} | {"dcf": [cost.to_dict() for cost in self.costs]}
        return figures | ({"bounds": self.bounds} if self.order_bounds else {})

    def __repr__(self) -> str:
        figures = ", ".join(f"{name} {value}" for name, value in self._rows())
        return f"Evaluation({figures}; {self.n_target} targets, {self.n_nontarget} non-targets)"

    def _repr_html_(self) -> str:
        """Return a table for notebooks."""
        counts = [("targets", str(self.n_target)), ("non-targets", str(self.n_nontarget))]
        header, cells = zip(("", ""), *self._rows(), *counts, strict=True)
        return html_table(header, [cells])

    def _rows(self) -> list[_Row]:
        """Return what people read, in the order in which they read it."""
        costs: list[_Row] = []
        for cost in self.costs:
            mark = f" at {cost.point.name}" if len(self.costs) > 1 else ""
            costs += [(f"minDCF{mark}", f"{cost.min_dcf:.3f}"), (f"actDCF{mark}", f"{cost.act_dcf:.3f}")]
        if len(self.costs) > 1:
            costs += [("minCprimary", f"{self.min_c_primary:.3f}"), ("actCprimary", f"{self.act_c_primary:.3f}")]
        cllrs = [("minCllr", f"{self.min_cllr:.3f}"), ("Cllr", f"{self.cllr:.3f}")]
        return [("EER", f"{100 * self.eer:.2f} %"), *costs, *cllrs]


@dataclass(frozen=True, kw_only=True, eq=False)
class NotEvaluated(_Record):
    """A condition without targets or without non-targets, of which nothing can be measured.

    Attributes
    ----------
    n_target, n_nontarget
        Numbers of trials.
    problem
        A sentence that says what is missing.
    """

    n_target: int
    n_nontarget: int
    problem: str

    def to_dict(self) -> dict[str, Any]:
        """Return the counts and the problem."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class EvaluationBy(_Record):
    """All metrics of all trials together and of each condition, as `evaluate_by` returns them.

    Attributes
    ----------
    pooled
        Of all trials.
    conditions
        Of each condition, by name, sorted.
    equalized
        Whether every condition weighs the same in the pooled figures.
    """

    pooled: Evaluation
    conditions: Mapping[str, Evaluation | NotEvaluated]
    equalized: bool

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers: ``pooled``, with ``equalized``, and ``conditions`` by name."""
        pooled = self.pooled.to_dict() | {"equalized": self.equalized}
        return {"pooled": pooled, "conditions": {name: found.to_dict() for name, found in self.conditions.items()}}

    def __repr__(self) -> str:
        return f"EvaluationBy({self.pooled!r}, conditions {', '.join(map(repr, self.conditions))})"

    def _repr_html_(self) -> str:
        """Return a table for notebooks."""
        rows = {"all": self.pooled, **self.conditions}
        header = [name for name, _ in self.pooled._rows()]
        absent = ["-"] * len(header)
        cells = {
            name: [value for _, value in found._rows()] if isinstance(found, Evaluation) else absent
            for name, found in rows.items()
        }
        counts = {name: [str(found.n_target), str(found.n_nontarget)] for name, found in rows.items()}
        head = ["", *header, "targets", "non-targets"]
        return html_table(head, [[name, *cells[name], *counts[name]] for name in rows])
