"""How many examples hypothesis draws for a law that needs many: all of them in `make test-all`, some in `make test`."""

import os

from hypothesis import settings

FEWEST = 8  #: of any law


def examples(number):
    """Return settings with so many examples, or more, if EVENSCORE_EXAMPLES asks for many of everything."""
    asked = os.environ.get("EVENSCORE_EXAMPLES")
    return settings(max_examples=max(FEWEST, number // 3) if asked is None else max(int(asked), number))
