"""Shapes in the signatures of the maths are checked at run time, in the tests only.

A check costs more than what many of these functions do, and EM calls them thousands of times with the same shapes. So
each function is checked in its first calls of every test, and runs as it is after them.
"""

import builtins
import functools
import types
from collections import Counter

import jaxtyping

__all__ = ["check_shapes", "forget_calls"]

_CALLS = 25  # of each function, in each test

_calls: Counter[types.CodeType] = Counter()


def check_shapes(modules):
    """Check the shapes of all functions of these modules, which are still to be imported."""
    for name in ("Bool", "Float", "Int", "Num"):  # elsewhere jaxtyping is not loaded, so that they have no such names
        setattr(builtins, name, getattr(jaxtyping, name))
    jaxtyping.jaxtyped = functools.partial(_checked_at_first, jaxtyping.jaxtyped)
    jaxtyping.install_import_hook(modules, "beartype.beartype")


def forget_calls():
    """Begin to count anew, as for another test."""
    _calls.clear()


def _checked_at_first(jaxtyped, *used, **how):
    if used:  # by a test itself
        return jaxtyped(*used, **how)

    def decorate(thing):
        if isinstance(thing, type):  # a record is checked when it is made
            bare = thing.__init__
            checked = jaxtyped(**how)(thing)
            if thing.__init__ is not bare:
                made = thing.__init__
                thing.__init__ = _at_first(bare, lambda: made)
            return checked
        return _at_first(thing, lambda: jaxtyped(**how)(thing))

    return decorate


def _at_first(bare, check):
    """Return a function that is the checked one in the first calls of a test."""
    code, checked = bare.__code__, None

    @functools.wraps(bare)
    def run(*arguments, **named):
        nonlocal checked
        if _calls[code] >= _CALLS:
            return bare(*arguments, **named)
        _calls[code] += 1
        checked = checked or check()  # a function within another one is made again and again
        return checked(*arguments, **named)

    return run
