"""The cohort-evidence model: everything that the cohort scores say about a trial, weighed into one LLR."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
