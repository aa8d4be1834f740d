"""Norms, compared on one's own data: which to use, what it gains, and how sure that is."""

from evenscore.comparison.comparison import Comparison, Figures, MethodResult, RunFacts
from evenscore.comparison.methods import Method
from evenscore.comparison.run import compare

__all__ = ["Comparison", "Figures", "Method", "MethodResult", "RunFacts", "compare"]
