"""Norms, compared on one's own data: which to use, what it gains, and how sure that is; and the cohort they need."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
