"""Errors of sorts for invalid arguments, which are raised before anything reaches the device."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
from vkdispatch.codegen.abbreviations import *  # noqa: F403
from vkdispatch.sorting.rearranging import parse_position_type


def buffer(shape: Any = (3, 8), kind: Any = vd.int32) -> Any:
    return vd.Buffer(shape, kind)


def starts(*places: int, kind: Any = np.int32) -> Any:
    return vd.asbuffer(np.array(places, kind))


@vd.map
def two(value: f32, other: f32) -> f32:  # noqa: F405
    return value + other


@vd.map
def nothing(value: f32):  # type: ignore[no-untyped-def]  # noqa: F405
    return value


CASES: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: vd.sort([0.0]), TypeError, "x: expected a vd.Buffer or a map called with its arguments"),
    (lambda: vd.argsort([1, 2]), TypeError, "vd.asbuffer"),
    (lambda: vd.sort(buffer(5, vd.vec3)), TypeError, "x: vec3 has no order; sort by a component of it"),
    (lambda: vd.sort(buffer(), 2), ValueError, "axis: 2 is out of bounds for an array of 2 dimensions"),
    (lambda: vd.sort(buffer(), -3), ValueError, "axis: -3 is out of bounds"),
    (lambda: vd.sort(buffer(), 1.0), TypeError, "axis: expected an int, got float 1.0"),
    (lambda: vd.sort(buffer(), descending=1), TypeError, "descending: expected True or False, got int 1"),
    (lambda: vd.sort(buffer(), stable="yes"), TypeError, "stable: expected True or False, got str 'yes'"),
    (lambda: vd.sort(buffer(), out=buffer((8, 3))), ValueError, "out: expected a buffer of the shape (3, 8)"),
    (lambda: vd.sort(buffer(), out=buffer(kind=vd.uint32)), ValueError, "of int32, got (3, 8) of uint32"),
    (lambda: vd.sort(buffer(), out=[0.0]), TypeError, "out: expected a vd.Buffer"),
    (lambda: vd.sort(buffer(), None, out=buffer()), ValueError, "of the shape (24,)"),
    (lambda: vd.argsort(buffer(), dtype=vd.float32), TypeError, "dtype: expected (u)int32 or (u)int64"),
    (lambda: vd.argsort(buffer(), dtype="words"), TypeError, "dtype: expected (u)int32 or (u)int64"),
    (lambda: vd.argsort(buffer(), out=buffer(kind=vd.uint8)), TypeError, "dtype: expected (u)int32"),
    (lambda: vd.argsort(buffer(), dtype=vd.int32, out=buffer(kind=vd.int64)), ValueError, "of int32, got"),
    (
        lambda: vd.sort(buffer(), segments=[3, 2]),
        ValueError,
        "segments: expected ints from 0 to 8 in ascending",
    ),
    (lambda: vd.sort(buffer(), segments=[-1, 2]), ValueError, "segments: expected ints from 0 to 8"),
    (lambda: vd.sort(buffer(), segments=[9]), ValueError, "segments: expected ints from 0 to 8"),
    (lambda: vd.sort(buffer(), segments=[0.5]), TypeError, "segments: expected where segments begin"),
    (lambda: vd.sort(buffer(), segments=[[1], [2, 3]]), TypeError, "segments: expected where segments begin"),
    (
        lambda: vd.sort(buffer(), segments=buffer(kind=vd.float32)),
        TypeError,
        "segments: expected a buffer of",
    ),
    (lambda: vd.sort(buffer(), segments=buffer()), ValueError, "segments: expected one axis"),
    (
        lambda: vd.sort(buffer(), segments=starts(0, 4, 3)).read(0),
        ValueError,
        "segments: expected ints from 0 to 8 in ascending order, got 3 at [2], behind 4",
    ),
    (lambda: vd.argsort(buffer(), segments=starts(0, -1)).read(0), ValueError, "got -1 at [1], behind 0"),
    (lambda: vd.sort(buffer(), segments=starts(9, kind=np.uint64)).read(0), ValueError, "got 9 at [0]"),
    (
        lambda: vd.sort_by_key(buffer(), buffer(), segments=starts(*range(5), 4, 300, kind=np.int64))[0].read(
            0
        ),
        ValueError,
        "got 300 at [6], behind 4",
    ),
    (lambda: vd.sort(buffer(), output_map=two), TypeError, "output_map: 'two' takes more than the value"),
    (lambda: vd.sort(buffer(), output_map=nothing), ValueError, "needs a return annotation"),
    (lambda: vd.sort_by_key(buffer(), buffer((8, 3))), ValueError, "values: expected the shape of the keys"),
    (lambda: vd.sort_by_key(buffer(), [buffer(), buffer(4)]), ValueError, "values[1]: expected the shape"),
    (lambda: vd.sort_by_key(buffer(), 3), TypeError, "values: expected a vd.Buffer"),
    (lambda: vd.sort_by_key([0.0], buffer(3)), TypeError, "keys: expected a vd.Buffer"),
    (lambda: vd.sort_by_key(buffer(), buffer(), out=buffer()), TypeError, "out: expected a pair"),
    (lambda: vd.sort_by_key(buffer(), [buffer()], out=(None, buffer())), TypeError, "expected 1 buffers"),
    (
        lambda: vd.sort_by_key(buffer(), buffer(), out=(None, buffer(4))),
        ValueError,
        "out[1]: expected a buffer",
    ),
]


@pytest.mark.parametrize("number", range(len(CASES)))
def test_invalid_arguments(number: int) -> None:
    call, kind, message = CASES[number]
    with pytest.raises(kind, match=re.escape(message)):
        call()


def test_dtype_too_small_for_positions() -> None:
    with pytest.raises(ValueError, match="dtype: positions up to 4294967296 do not fit uint32"):
        parse_position_type(vd.uint32, None, (1 << 32) + 1)
