"""What the tests of shared memory need: a device whose memory is the host's."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

import vkdispatch as vd
from tests.runtime.by_hand import Foreign


@pytest.fixture
def on_host() -> None:
    """Skip where other libraries cannot use the device's memory in place."""
    context = vd.get_context()
    if not context._native.host_mapped or context.queue_count > 1:
        pytest.skip("the device's memory is not the host's, or each queue has a copy")


@pytest.fixture
def takes_host(on_host: None) -> None:
    """Skip where the device cannot use memory of other libraries."""
    if not vd.get_context()._native.imports_host_memory:
        pytest.skip("the device does not import memory of the host")


@pytest.fixture
def foreign() -> Iterator[tuple[Foreign, vd.Context]]:
    """Make another Vulkan program with a device of its own, and a context on that device."""
    maker = Foreign()
    context = vd.make_context_from_handles(**maker.handles)
    yield maker, context
    context.close()
    gc.collect()
    maker.destroy()
