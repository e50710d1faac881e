"""Hand-overs with random work on both sides; `python -m tests.sharing.hand_overs` makes more of them."""

from __future__ import annotations

import pytest

from .hand_overs import hand_over, measure, open_library


@pytest.mark.parametrize("name", ["numpy", "torch", "jax"])
def test_random_work_on_both_sides(takes_host: None, name: str) -> None:
    try:
        library = open_library(name, cuda=False)
    except ImportError:
        pytest.skip(f"could not import {name!r}")
    done = hand_over(library, 400, 1)
    assert done["all"] >= 400 and len(done) > 15
    before = measure()["objects"]
    assert hand_over(library, 400, 1) == done  # with the same kernels, and buffers of the same sizes
    assert measure()["objects"] <= before + 2
