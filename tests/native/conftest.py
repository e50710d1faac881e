"""An engine of their own for the native tests, on the first device that can run one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import vkdispatch  # noqa: F401  (installs the error classes)
import vkdispatch_native as native
from vkdispatch.base.init import initialize


def first_device() -> int:
    """Return the index of the first usable device."""
    initialize()
    return next(i for i, p in enumerate(native.device_properties()) if not p["missing"])


@pytest.fixture(params=["mapped", "staged"])
def engine(request: pytest.FixtureRequest) -> Iterator[native.Engine]:
    """Yield an engine in debug mode: the hazard checker watches every test."""
    engine = native.Engine([first_device()], [[0]], True, request.param == "staged")
    native.take_messages()
    yield engine
    engine.close()
    assert native.take_messages() == []
