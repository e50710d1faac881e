"""What clusters leave behind in the process of the tests."""

import os
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="module")
def keep_environment() -> Iterator[None]:
    """Undo what a nanny sets for its workers, such as OMP_NUM_THREADS."""
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)
