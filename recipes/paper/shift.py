"""Dataset shift of controlled strength: which degradations a text such as ``telephone,noise:20`` asks for."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evenscore import InputError
from recipes.text_dependent import (
    AdditiveNoise,
    Codec,
    Degradation,
    Recording,
    TelephoneBand,
    with_background,
)

__all__ = ["CLEAN", "DEFAULT_SHIFTS", "MIXED", "Mixed", "check_shifts", "shift_of"]

CLEAN = "clean"  #: the evaluation without a shift
MIXED = "mixed"  #: one of the other conditions for every recording, by chance
DEFAULT_SHIFTS = ("telephone", "gsm", "noise:20", "noise:10", "noise:0", MIXED)

_NOISES = {"noise": "white", "speech-shaped": "speech-shaped", "babble": "babble"}
_CODECS = ("mu-law", "a-law", "gsm", "opus")


@dataclass(frozen=True)
class Mixed:
    """One of several degradations for every recording, by chance; None leaves it as it is.

    Examples
    --------
    >>> mixed = Mixed((None, AdditiveNoise(0.0)))
    >>> silence = np.ones(100)
    >>> sorted({bool((mixed.apply(silence, f"take {n}") == silence).all()) for n in range(20)})
    [False, True]
    """

    choices: tuple[Degradation | None, ...]
    seed: int = 0

    @property
    def name(self) -> str:
        """Short name for tables."""
        return MIXED

    def apply(self, samples: np.ndarray, recording: str) -> np.ndarray:
        """Return the recording with the degradation that its name draws."""
        digest = hashlib.sha256(f"mixed {self.seed} {recording}".encode()).digest()
        choice = self.choices[int.from_bytes(digest[:8], "little") % len(self.choices)]
        return samples if choice is None else choice.apply(samples, recording)


def check_shifts(names: Sequence[str]) -> None:
    """Refuse names of shifts that are not known, or that stand twice.

    Examples
    --------
    >>> check_shifts(["telephone", "noise:loud"])
    Traceback (most recent call last):
    ...
    evenscore.errors.InputError: the shift 'noise:loud' has no level in decibels; write it as noise:10
    """
    for name in names:
        if name != MIXED:
            _single(name, 0)
        if list(names).count(name) > 1:
            raise InputError(f"the shift {name!r} stands twice; keep one of them")
    if list(names) == [MIXED]:
        raise InputError("mixed draws one of the other shifts; name some, such as telephone,noise:10,mixed")


def shift_of(name: str, names: Sequence[str], background: Sequence[Recording], seed: int) -> Degradation:
    """Return the degradation that a name asks for; ``names`` are all shifts, which ``"mixed"`` draws from."""
    if name != MIXED:
        return with_background(_single(name, seed), background)
    others = [with_background(_single(other, seed), background) for other in names if other != MIXED]
    return Mixed((None, *others), seed)


def _single(name: str, seed: int) -> Degradation:
    kind, colon, level = name.partition(":")
    if kind in _NOISES:
        try:
            return AdditiveNoise(float(level), _NOISES[kind], seed)  # type: ignore[arg-type]
        except ValueError:  # our own InputError is one, too
            raise InputError(f"the shift {name!r} has no level in decibels; write it as {kind}:10") from None
    if not colon and kind == "telephone":
        return TelephoneBand()
    if not colon and kind in _CODECS:
        return Codec(kind)  # type: ignore[arg-type]
    known = ["telephone", *(f"{noise}:DB" for noise in _NOISES), *_CODECS, MIXED]
    raise InputError(f"there is no shift {name!r}; there are {', '.join(known)}")
