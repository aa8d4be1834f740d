"""evenscore: speaker-verification scores in, normalized and calibrated log-likelihood ratios out.

The names that people use most, and the modules with all the others: `evenscore.metrics.p_fa_at`. `__init__.pyi` is the
table of both; a module loads when one of its names is first used, so ``import evenscore`` is quick.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
