"""Reading and writing the files of the field; this is the only place where evenscore opens files.

`read` takes any file and finds out what it is, `write` takes any table; `read_scores`, `read_trials`,
`read_embeddings` and `read_speakers` also check that the file holds what is asked for.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
