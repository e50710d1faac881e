"""What `norm` means: which factor a transform of a length is multiplied by."""

import math
from typing import Any, Literal

from vkdispatch.base.errors import ArgumentValueError

Norm = Literal["backward", "ortho", "forward"]


def parse_norm(norm: Any) -> Norm | None:
    """Return a norm, or None. Raises ValueError for anything else."""
    if norm is None or norm == "backward":
        return None if norm is None else "backward"
    if norm == "ortho":
        return "ortho"
    if norm == "forward":
        return "forward"
    raise ArgumentValueError(f'norm: expected "backward", "ortho", "forward" or None, got {norm!r}')


def factor(norm: Norm | None, inverse: bool, length: int) -> float:
    """Return what a transform along an axis is multiplied by, as NumPy does.

    "backward" and None divide inverse transforms by the length, "forward" the others, and "ortho" divides
    both by its square root.
    """
    if norm == "ortho":
        return 1 / math.sqrt(length)
    return 1 / length if inverse is (norm != "forward") else 1.0


def resolve_scaling(norm: Any, inverse: bool, normalize: bool, length: int) -> tuple[bool, float]:
    """Return whether a transform is divided by its length, and what it is multiplied by besides.

    `norm` decides, and where it is None `normalize` does. Raises ValueError for an unknown one.
    """
    norm = parse_norm(norm)
    if norm is None:
        return normalize, 1.0
    if norm == "backward":
        return True, 1.0
    return False, factor(norm, inverse, length)


def reverse_norm(norm: Any) -> Norm:
    """Return the norm that does to one direction what this one does to the other."""
    norm = parse_norm(norm)
    return "ortho" if norm == "ortho" else "backward" if norm == "forward" else "forward"
