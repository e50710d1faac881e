"""A sample of `tests.fuzz.cache_files`."""

from __future__ import annotations

import pytest

from . import cache_files
from .driving import run

pytest.importorskip("resource", reason="not all of this can be put in the place of files here")


def test_broken_caches() -> None:
    verdicts, failures = run(cache_files.__name__, range(60), 1, 120)
    assert failures == {}
    # broken, and not all of it
    assert verdicts["some found"] > 20
    assert verdicts["all found"]
    assert verdicts["none found"]
