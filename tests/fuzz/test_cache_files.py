"""A sample of `tests.fuzz.cache_files`."""

from __future__ import annotations

import pytest

from .driving import run

pytest.importorskip("resource", reason="not all of this can be put in the place of files here")


def test_broken_caches() -> None:
    verdicts, failures = run("tests.fuzz.cache_files", range(40), 1, 120)
    assert failures == {}
    # broken, and not all of it
    assert verdicts["some found"] > 10
    assert verdicts["all found"]
    assert verdicts["none found"]
