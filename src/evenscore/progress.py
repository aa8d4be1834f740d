"""How long work tells how far it is: one small callback."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["Progress", "silent"]

Progress = Callable[[str, float], None]  #: called with the name of the stage and the fraction of it that is done


def silent(stage: str, fraction: float) -> None:
    """Report nothing; the default wherever a `Progress` can be given.

    Examples
    --------
    >>> silent("reading", 0.5)
    """
