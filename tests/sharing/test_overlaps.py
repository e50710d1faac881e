"""Slices of one shared array as arguments of one call: refused, or right as NumPy has it."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import Buff, f32, u32

from .arrays import add, aligned

LENGTH, STEP = 3000, 1024
# Where the second slice begins: at the first one, within it, and behind it.
STARTS = (0, STEP, LENGTH - LENGTH % STEP, LENGTH + STEP - LENGTH % STEP)


def slices(start: int, host: Any = np.float32) -> tuple[Any, Any]:
    """Return the array and two slices of it, as long as each other."""
    whole = aligned(np.random.default_rng(start).integers(0, 90, LENGTH + STARTS[-1]).astype(host))
    return whole[:LENGTH], whole[start : start + LENGTH]


IN_PLACE: dict[str, Callable[[Any, Any], object]] = {
    "cumsum": lambda x, out: vd.cumsum(x, out=out),
    "cumsum, 2 axes": lambda x, out: vd.cumsum(x, out=out, reverse=True),
    "sort": lambda x, out: vd.sort(x, out=out),
    "fftshift": lambda x, out: vd.fft.fftshift(x, out=out),
    "dct": lambda x, out: vd.fft.dct(x, out=out),
}
APART: dict[str, Callable[[Any, Any], object]] = {
    "flip": lambda x, out: vd.flip(x, out=out),
    "roll": lambda x, out: vd.roll(x, 7, out=out),
    "copyto": lambda x, out: vd.copyto(out, x),
}


def result_of(call: Callable[[Any, Any], object], x: Any) -> Any:
    out = vd.Buffer(x.shape, vd.float32)
    call(vd.asbuffer(x), out)
    return out.read(0)


@pytest.mark.parametrize("name", [*IN_PLACE, *APART])
def test_functions_refuse_slices_that_overlap(takes_host: None, name: str) -> None:
    call = IN_PLACE.get(name) or APART[name]
    for _, start in itertools.product(range(3), reversed(STARTS)):  # later calls repeat recorded ones
        source, target = slices(start)
        expected = result_of(call, source)
        before = source.copy(), target.copy()
        overlap = 0 < start < LENGTH
        if (
            name == "sort"
            or (name == "copyto" and not start)
            or not (overlap or (name in APART and not start))
        ):
            call(vd.share(source), vd.share(target))
            np.testing.assert_array_equal(target, expected)
        else:
            with pytest.raises(vd.OverlapError, match="shares"):
                call(vd.share(source), vd.share(target))
            np.testing.assert_array_equal(source, before[0])
            np.testing.assert_array_equal(target, before[1])


def test_a_slice_of_memory_that_numpy_shows_is_memory_of_the_buffer(takes_host: None) -> None:
    host = np.arange(4 * STEP, dtype=np.float32)
    buffer = vd.asbuffer(host)
    shown = np.asarray(vd.share(buffer))
    for call in (lambda x, out: vd.flip(x, out=out), lambda x, out: vd.copyto(out, x)):
        with pytest.raises(vd.OverlapError):
            call(vd.share(shown[STEP:]), vd.share(shown[:-STEP]))
    with pytest.raises(vd.OverlapError):
        vd.flip(vd.share(shown), out=buffer)
    np.testing.assert_array_equal(buffer.read(0), host)


@vd.shader("words.size")
def flip_signs(words: Buff[u32], numbers: Buff[f32]) -> None:
    i = vc.global_invocation_id().x
    words[i] = words[i] ^ 0x80000000
    numbers[i] = numbers[i] + 1


def test_kernels_refuse_memory_of_two_types(takes_host: None) -> None:
    for start in (*STARTS, *STARTS):
        source, target = slices(start)
        if start < LENGTH:
            with pytest.raises(ValueError, match="'words' and argument 'numbers' share memory"):
                flip_signs(vd.share(source.view(np.uint32)), vd.share(target))
        else:
            expected = -source, target + 1
            flip_signs(vd.share(source.view(np.uint32)), vd.share(target))
            np.testing.assert_array_equal(source, expected[0])
            np.testing.assert_array_equal(target, expected[1])


def test_fused_dispatches_read_what_slices_wrote(takes_host: None) -> None:
    source, target = slices(STEP)
    expected = source.copy(), target.copy()
    graph = vd.CommandGraph()
    first, second = vd.share(source, ordered=False), vd.share(target, ordered=False)
    other = vd.asbuffer(np.ones(LENGTH, np.float32))
    add(first, other, graph=graph)
    add(other, second, graph=graph)
    add(second, first, graph=graph)
    graph.optimize()
    graph.submit()
    vd.queue_wait_idle()
    whole = np.concatenate((expected[0][:STEP], expected[1]))
    whole[:LENGTH] += 1
    np.testing.assert_array_equal(other.read(0), 1 + whole[STEP : STEP + LENGTH])
