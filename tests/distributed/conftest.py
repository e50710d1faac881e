"""Devices of clusters."""

from __future__ import annotations

import pytest

import vkdispatch as vd


@pytest.fixture(scope="session")
def cpu_driver() -> int:
    """Return the index of a CPU driver, which two workers can share."""
    devices = [info for info in vd.get_devices() if info.is_cpu() and not info.missing]
    if not devices:
        pytest.skip("two workers share a CPU driver, which this machine lacks")
    return int(devices[0].sorted_index)
