"""Shapes in the signatures of the maths are checked at run time, in the tests only.

A check costs more than what many of these functions do, and EM calls them thousands of times with the same shapes. So
in every test each function is checked in its first calls, then only where it meets arrays of other shapes, and after
many checks it runs as it is. To make the check of a function takes longest, and one within another function is made
again and again: it is checked in the first call of every test.
"""

import builtins
import functools
import inspect

import jaxtyping

__all__ = ["check_shapes", "forget_calls"]

_ALL = 3  #: of each function, the first calls in each test
_MOST = 25  #: checks of each function in each test

_NONE = (0, frozenset())
_seen = {}  # of each function, by the address of its code: how many calls of this test were checked, and their shapes


def check_shapes(modules):
    """Check the shapes of all functions of these modules, which are still to be imported."""
    for name in ("Bool", "Float", "Int", "Num"):  # elsewhere jaxtyping is not loaded, so that they have no such names
        setattr(builtins, name, getattr(jaxtyping, name))
    jaxtyping.jaxtyped = functools.partial(_checked_at_first, jaxtyping.jaxtyped)
    jaxtyping.install_import_hook(modules, "beartype.beartype")


def forget_calls():
    """Begin to count anew, as for another test."""
    _seen.clear()


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
    """Return a function that is the checked one in the first calls of a test, and in those with other shapes."""
    code, checked = bare.__code__, None
    key, within = id(code), bool(code.co_flags & inspect.CO_NESTED)
    first, most = (1, 1) if within else (_ALL, _MOST)

    @functools.wraps(bare)
    def run(*arguments, **named):
        nonlocal checked
        checks, seen = _seen.get(key, _NONE)
        if checks >= most:
            return bare(*arguments, **named)
        shapes = tuple([getattr(each, "shape", None) for each in (*arguments, *named.values())])
        if checks >= first and shapes in seen:
            return bare(*arguments, **named)
        _seen[key] = checks + 1, seen | {shapes}
        checked = checked or check()
        return checked(*arguments, **named)

    return run
