"""A manager for each test, and the kernels that many of them run."""

from collections.abc import Iterator

import pytest

import vkdispatch.kompute as kp


@pytest.fixture
def manager() -> Iterator[kp.Manager]:
    made = kp.Manager()
    yield made
    made.destroy()
