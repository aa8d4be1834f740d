"""Trials that come one by one: scorer, cohort, norm and calibration in one object that never changes."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
