"""Reading and writing the files of the field; this is the only part of evenscore that opens files.

`read` reads any file and finds out its format, `write` writes any table; `read_scores`, `read_trials` and
`read_speakers` also check that the file holds what is asked for. `FORMATS` lists all formats.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
