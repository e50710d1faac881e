"""What the tests of shared memory need: a device whose memory is the host's."""

from __future__ import annotations

import pytest

import vkdispatch as vd


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
