"""Scores that do not fit into memory, or into one machine: the same functions, tile by tile."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
