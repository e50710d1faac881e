"""What functions on arrays say where a device does not compute with a dtype."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.base.errors import UnsupportedError
from vkdispatch.families.calls import array_function


def refuse() -> None:
    error = UnsupportedError("kernel: the device has no float64; use another dtype or device")
    error._dtypes = (vd.float64,)
    raise error


@array_function
def inner(values: Any, *, dtype: Any = None) -> None:
    refuse()


@array_function
def outer(x: Any, weights: Any = None, out: Any = None) -> None:
    inner(vd.asbuffer(np.ones(3, np.float32)))


@vd.map
def doubled(value: vd.float64) -> vd.float64:
    return value + value


def test_the_argument_of_the_dtype_is_named() -> None:
    floats, doubles = vd.asbuffer(np.ones(3, np.float32)), vd.asbuffer(np.ones(3))
    has = "kernel: the device has no float64"
    for call, told in (
        (lambda: inner(doubles), f"values: float64 was passed, but {has}; pass float32"),
        (lambda: inner(doubled(doubles)), f"values: float64 was passed, but {has}; pass float32"),
        (
            lambda: inner(floats, dtype=vd.complex128),
            f"dtype: complex128 was passed, but {has}; pass complex64",
        ),
        (lambda: outer(floats, doubles), f"weights: float64 was passed, but {has}; pass float32"),
        (lambda: outer((floats, doubles)), f"x: float64 was passed, but {has}; pass float32"),
    ):
        with pytest.raises(UnsupportedError) as caught:
            call()
        assert str(caught.value) == told


def test_arguments_that_lead_to_a_missing_dtype_are_named() -> None:
    floats, whole = vd.asbuffer(np.ones(3, np.float32)), vd.asbuffer(np.ones(3, np.int32))
    with pytest.raises(UnsupportedError, match=r"^values: the call needs more than the device has for int32"):
        inner(whole)
    # nothing of the outer call is to blame beside what the inner one names
    with pytest.raises(UnsupportedError, match=r"^values: .* for float32"):
        outer(floats, whole)


def test_kernels_name_the_argument() -> None:
    if vd.get_devices()[0].float_64_support:
        pytest.skip("the device has float64")

    @vd.shader(exec_size=lambda args: args.b.size)
    def copied(a: vc.Buff[vc.f32], b: vc.Buff[vc.f64]) -> None:  # type: ignore[name-defined]
        b[vc.global_invocation_id().x] = a[vc.global_invocation_id().x].to_dtype(vd.float64)

    with pytest.raises(UnsupportedError, match="has no float64, which 'b' is of; use another dtype"):
        copied(vd.asbuffer(np.ones(3, np.float32)), vd.asbuffer(np.ones(3)))
