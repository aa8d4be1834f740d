"""How large a training side each method needs: the one place that says so."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from evenscore.comparison.methods import RAW, listed
from evenscore.norms.options import CLASSICAL_METHODS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from evenscore.comparison.trials import SideSummary

__all__ = ["Need", "need_of", "size_warnings", "too_few"]


@dataclass(frozen=True, order=True)
class Need:
    """The fewest training speakers and target trials with which a method can be trusted; more for what learns more.

    Speakers: the fewest of 4, 6, 8, 10, 12, 16, 20 with which at most 5 % of 40 draws of a training side made a method
    worse than raw scores, in scores from a score model (S-norm: 52 % with 4 speakers, 10 % with 6, 2 % with 8; score
    model: 40 % with 6, 8 % with 12, 0 with 16). Targets: about five for each number that is learned from them.
    """

    speakers: int
    targets: int


_CALIBRATION = Need(8, 10)  # offset and scale
_SCORE_MODEL = Need(16, 30)  # six numbers of each class, four of which are how much enrolments and tests differ
_EVIDENCE = Need(
    20, 60
)  # a score model, and weights of some ten features: 16 would do in that simulation, real sets want more
_ONLY_CALIBRATED = (RAW, *CLASSICAL_METHODS)


class _Named(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def norm(self) -> str: ...
    @property
    def options(self) -> Mapping[str, Any]: ...


def need_of(method: _Named) -> Need:
    """Return what a method needs; of one that is not known here, as much as of the largest.

    Examples
    --------
    >>> from evenscore.comparison import Method
    >>> [need_of(Method.of(name)).speakers for name in ("s", "lgsm:dim=0", "lgsm", "evidence")]
    [8, 8, 16, 20]
    """
    if method.norm == "lgsm":
        return _CALIBRATION if method.options.get("dim") == 0 else _SCORE_MODEL
    return _CALIBRATION if method.norm in _ONLY_CALIBRATED else _EVIDENCE


def too_few(methods: Iterable[_Named], training: SideSummary) -> dict[str, str]:
    """Return the methods for which the training side is too small, each with the reason."""
    found = {}
    for method in methods:
        need = need_of(method)
        if training.speakers < need.speakers:
            found[method.name] = f"{training.speakers} training speakers, {need.speakers} needed"
        elif training.targets < need.targets:
            found[method.name] = f"{training.targets} training targets, {need.targets} needed"
    return found


def size_warnings(few: Mapping[str, str]) -> list[str]:
    """Return what to say about methods for which the training side is too small: a sentence for each reason.

    Examples
    --------
    >>> size_warnings(dict.fromkeys(["lgsm", "lgsm:dim=1"], "8 training speakers, 16 needed"))
    ['the training side is too small to trust lgsm and lgsm:dim=1: 8 training speakers, 16 needed']
    """
    reasons = dict.fromkeys(few.values())
    names = {reason: tuple(name for name, own in few.items() if own == reason) for reason in reasons}
    return [f"the training side is too small to trust {listed(names[reason])}: {reason}" for reason in reasons]
