"""Figures, drawn with matplotlib, on the Axes that they are given or on a new figure; they return the Axes."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
