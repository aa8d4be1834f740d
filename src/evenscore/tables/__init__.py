"""The tables that flow through the program: immutable, checked once where they are made."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
