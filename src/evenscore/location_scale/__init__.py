"""The location-scale score model: hidden variables move the mean and the spread of scores."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
