"""Values that types, terminals and encodings stumble over."""

from __future__ import annotations

__all__ = ["EDGES", "SIZES", "TEXTS"]

#: Numbers at the edges of what types can hold, and other things in the place of a number.
EDGES = (
    b"0", b"-0.0", b"1e-320", b"5e-324", b"1e154", b"-1e155", b"1e308", b"1e309", b"-1e999", b"nan", b"inf",
    b"-Infinity", b"9" * 400, b"-" + b"9" * 400, b"1" + b"0" * 30, b"2147483648", b"9223372036854775808", b"-1",
    b"3,5", b"0x10", b"1_0", b"null", b"true", b'"1"', b"[]", b"{}", b"",
)  # fmt: skip
#: Text of all kinds.
TEXTS = (
    "\x00", "\x1b[31m", "\u202e", "\ud800", "\ufeff", "\u2028", "<script>", "é", "e\u0301", "../..", "*", "%s", "\t",
    "\r", "\n", " ", "'", '"', ",", "a" * 5000, "😀",
)  # fmt: skip
#: Sizes, counts and places that a header may claim.
SIZES = (
    0, 1, 2, 3, 7, 255, 1000, 65535, 10**6, 2**27, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**62, 2**63 - 1, 2**63,
    2**64 - 1, -1, -2, -(2**31), -(2**63),
)  # fmt: skip
