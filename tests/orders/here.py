"""The models that this machine must run, by the package's own search for compilers."""

from __future__ import annotations

import pytest

from vkdispatch.orders.compilers import BuildFailure, find_compilers
from vkdispatch.orders.models import TABLE
from vkdispatch.orders.models.native import NativeModel


def missing(model: str) -> str | None:
    """Return what a model lacks on this machine, a compiler or a device. None: it must work."""
    found = TABLE[model]
    if not isinstance(found, NativeModel):
        return None
    try:
        compilers = [item for item in find_compilers(found.search, None) if item.vendor in found.flags]
    except BuildFailure as failure:
        return f"{model}: {failure}"
    return found.find_obstacle() if compilers else f"{model}: none of the compilers here is known for it"


def require(model: str) -> None:
    """Skip a test of a model without a compiler or a device on this machine."""
    reason = missing(model)
    if reason is not None:
        pytest.skip(reason)


def available(*models: str) -> list[str]:
    """Return the models that must run on this machine."""
    return [model for model in models if missing(model) is None]


def other_model() -> str:
    """Return another model than `cpp`, in another language if there is a compiler for it."""
    return (available("fortran") or ["openmp_cpp"])[0]
