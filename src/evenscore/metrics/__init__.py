import lazy_loader

from evenscore.metrics.cllr import cllr as cllr  # before the module of this name can take the place of the function

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
