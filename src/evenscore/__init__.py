"""evenscore: speaker-verification scores in, normalized and calibrated log-likelihood ratios out.

The public names are in ``__init__.pyi``; a module is imported when one of its names is first used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
