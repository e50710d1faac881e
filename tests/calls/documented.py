"""Refusals of calls that NumPy computes, and that the documentation states."""

from __future__ import annotations

import re

# function, message, where it is said
_STATED: tuple[tuple[str, str, str], ...] = (
    (r"vd\.(min|max)", "does not have an identity", "min: `initial` is needed for a `where`"),
    (r"vd\.", "in a graph; pass size=", "selection: in a graph size= is the only way"),
    (
        r"vd\.asrfftbuffer",
        "expected real numbers of 16, 32 or 64 bits",
        "dtypes with no matching complex one",
    ),
    (r"vd\.cum(max|min)", "has no order", "scans: the dtype has no such maxima"),
    (r"vd\.histogram", "x: its elements range from", "selection: NaN without `range` is an error"),
)


def is_documented(function: str, message: str) -> bool:
    """Whether a refusal is stated in the documentation."""
    return any(re.match(name, function) and re.search(pattern, message) for name, pattern, _ in _STATED)
