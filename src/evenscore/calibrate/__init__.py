"""From scores to natural-log likelihood ratios: one interface, six calibrations, and honest cross-validation."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
