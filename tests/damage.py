"""Damaging files on purpose: a reader must parse what is left, or raise the project's own error."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import strategies as st

from evenscore import FileError

__all__ = ["cuts_and_flips", "must_parse_or_refuse"]


@st.composite
def cuts_and_flips(draw, data: bytes) -> bytes:
    """The bytes cut off somewhere, or with up to four of them changed."""
    if draw(st.booleans()):
        return data[: draw(st.integers(0, len(data) - 1))]
    damaged = bytearray(data)
    for _ in range(draw(st.integers(1, 4))):
        damaged[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
    return bytes(damaged)


def must_parse_or_refuse(read: Callable[[Path], object], path: Path) -> None:
    """Read a damaged file; any exception but `FileError` fails the test."""
    try:
        read(path)
    except FileError as error:
        assert str(path) in str(error)  # noqa: PT017
    except Exception as error:
        pytest.fail(f"{type(error).__name__} instead of FileError: {error}")
