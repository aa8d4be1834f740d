"""Figures, drawn with matplotlib (``pip install 'evenscore[plot]'``), which loads when the first one is drawn.

Every function draws on the ``Axes`` that it is given, or on those of a new figure, and returns them. Several systems
are a mapping from name to scores.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
