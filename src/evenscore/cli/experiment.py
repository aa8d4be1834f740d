"""``evenscore experiment``: the theory and the paper's experiment, run again."""

from __future__ import annotations

from typing import Annotated

import typer

from evenscore.errors import EvenscoreError

__all__ = ["EXAMPLES", "IDEAL_EXAMPLES", "ideal"]

EXAMPLES = """
evenscore experiment ideal -o ideal/
"""
IDEAL_EXAMPLES = """
evenscore experiment ideal -o ideal/
"""


def ideal(
    output: Annotated[str, typer.Option("--output", "-o", metavar="DIR", help="Directory for the results.")],
) -> None:
    """Show where score normalization cannot help, and where it can.

    Draws embeddings from a known model. Scored with that model, the scores are log-likelihood ratios and no norm gains
    anything; then each assumption is broken, by more and more.
    """
    raise EvenscoreError(f"{output}: the experiment is not there yet")
