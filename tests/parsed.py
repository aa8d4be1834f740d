"""The modules of the program as Python sees them, each parsed once for all tests of what is in them."""

import ast
import functools


@functools.cache
def nodes(path):
    """Return all nodes of a module."""
    return list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
