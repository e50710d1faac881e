"""The argument `norm`: the factor of a transform."""

import math
from typing import Literal

from vkdispatch.base.errors import ArgumentValueError

Norm = Literal["backward", "ortho", "forward"]


def parse_norm(norm: object) -> Norm | None:
    """Return a norm or None. Raises ValueError for anything else."""
    if norm is None or norm == "backward":
        return None if norm is None else "backward"
    if norm == "ortho":
        return "ortho"
    if norm == "forward":
        return "forward"
    raise ArgumentValueError(f'norm: expected "backward", "ortho", "forward" or None, got {norm!r}')


def factor(norm: Norm | None, inverse: bool, length: int) -> float:
    """Return the factor of a transform along an axis, as in NumPy.

    "backward" and None divide inverse transforms by the length, "forward" divides forward transforms, and
    "ortho" divides both by the square root of the length.
    """
    if norm == "ortho":
        return 1 / math.sqrt(length)
    return 1 / length if inverse is (norm != "forward") else 1.0


def resolve_scaling(norm: object, inverse: bool, normalize: bool, length: int) -> tuple[bool, float]:
    """Return whether a transform is divided by its length, and its other factor.

    If `norm` is None, `normalize` decides. Raises ValueError for an unknown norm.
    """
    norm = parse_norm(norm)
    if norm is None:
        return normalize, 1.0
    if norm == "backward":
        return True, 1.0
    return False, factor(norm, inverse, length)


def reverse_norm(norm: object) -> Norm:
    """Return the norm whose factors are those of the opposite direction."""
    norm = parse_norm(norm)
    return "ortho" if norm == "ortho" else "backward" if norm == "forward" else "forward"
