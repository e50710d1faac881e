"""A Manager for each test, and kernels for several tests."""

from collections.abc import Iterator

import pytest

import vkdispatch.kompute as kp


@pytest.fixture
def manager() -> Iterator[kp.Manager]:
    made = kp.Manager()
    yield made
    made.destroy()
