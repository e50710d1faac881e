"""Which models this machine has to run: what the package's own search for compilers says."""

from __future__ import annotations

import pytest

from vkdispatch.orders.compilation.compilers import BuildFailure, find_compilers
from vkdispatch.orders.models import TABLE
from vkdispatch.orders.models.native import NativeModel


def missing(model: str) -> str | None:
    """Say what a model lacks here, a compiler that could build it or a device. None: it has to work."""
    found = TABLE[model]
    if not isinstance(found, NativeModel):
        return None
    try:
        compilers = [item for item in find_compilers(found.search, None) if item.vendor in found.flags]
    except BuildFailure as failure:
        return f"{model}: {failure}"
    return found.find_obstacle() if compilers else f"{model}: none of the compilers here is known for it"


def require(model: str) -> None:
    """Skip a test of a model that this machine has no compiler or no device for, and no other test."""
    reason = missing(model)
    if reason is not None:
        pytest.skip(reason)


def available(*models: str) -> list[str]:
    """Return those of some models that have to run here."""
    return [model for model in models if missing(model) is None]


def other_model() -> str:
    """Name a model to go with `cpp`: of another language, where there is a compiler of it."""
    return (available("fortran") or ["openmp_cpp"])[0]
