"""``evenscore demo``: the main job, on data made on the spot."""

from __future__ import annotations

__all__ = ["EXAMPLES", "demo"]

EXAMPLES = """
evenscore demo
"""


def demo() -> None:
    """Show the main job on simulated scores."""
    raise NotImplementedError
