"""The modules of the program as Python sees them, each parsed once for all tests of what is in them."""

import ast
import functools
import gc


@functools.cache
def nodes(path):
    """Return all nodes of a module. They stay to the end: to look at so many takes the garbage collector long."""
    gc.disable()
    try:
        return list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    finally:
        gc.freeze()
        gc.enable()
