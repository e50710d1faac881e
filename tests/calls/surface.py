"""The public functions, and which module writes calls of each."""

from __future__ import annotations

import functools
from collections.abc import Callable
from importlib import import_module
from typing import Any

import vkdispatch as vd

FAMILIES = ("reductions", "scans", "sorts", "selection", "rearranging", "products")


def resolve(name: str) -> Any:
    """Return what a name such as "vd.fft.fft" stands for."""
    found: Any = vd
    for part in name.split(".")[1:]:
        found = getattr(found, part)
    return found


@functools.cache
def writers(family: str) -> dict[str, Callable[[Any], Any]]:
    """Return the writers of a family's functions."""
    functions: dict[str, Callable[[Any], Any]] = import_module(f"{__package__}.{family}").FUNCTIONS
    return functions
