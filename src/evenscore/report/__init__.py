"""The report of a comparison: one HTML file to look at, which opens offline.

`content` says what is on the page, `page` makes it HTML, ``template/`` holds its markup, style and scripts.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
