"""Mistakes that Python and the device allow, and that compute something else: they warn."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import Buff, f32, i32


def test_text_of_a_value_that_is_not_printed_by_the_kernel() -> None:
    with pytest.warns(vd.KernelWarning, match=r"vc\.print shows values") as caught:

        @vd.shader("x.size")
        def show(x: Buff[f32]) -> None:
            i = vc.global_invocation_id().x
            vc.print(f"printed {x[i]}")
            print(f"traced {x[i]}")

    assert len(caught) == 1 and "traced" in str(caught[0].message)


def lacks_sequence(x: Buff[f32]) -> None:
    x[vc.global_invocation_id().x] = vc.random.Philox(7).normal()


def has_sequence(x: Buff[f32]) -> None:
    i = vc.global_invocation_id().x
    x[i] = vc.random.Philox(7, i).normal() + vc.random.Philox(7, sequence=0).uniform()


def has_seeds(x: Buff[f32]) -> None:
    i = vc.global_invocation_id().x
    x[i] = vc.random.Philox(7 + i).normal() + vc.random.Philox(7, offset=100 * i).uniform()


@pytest.mark.parametrize(
    ("body", "sizes", "count"),
    [
        (lacks_sequence, {"exec_size": "x.size"}, 1),
        (lacks_sequence, {"workgroups": 1, "local_size": 64}, 1),
        (lacks_sequence, {"exec_size": 1}, 0),
        (has_sequence, {"exec_size": "x.size"}, 0),
        (has_seeds, {"exec_size": "x.size"}, 0),
    ],
)
def test_equal_random_numbers(body: Callable[..., None], sizes: dict[str, Any], count: int) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        vd.shader(**sizes)(body)
    assert ["sequence=vc.global_invocation_id().x" in str(one.message) for one in caught] == [True] * count


def test_exceptions_that_only_python_raises() -> None:
    def divide(x: Buff[f32]) -> None:
        i = vc.global_invocation_id().x
        try:
            x[i] = 1 / x[i]
        except (ValueError, ZeroDivisionError):
            x[i] = 0

    def decide(x: Buff[f32]) -> None:
        try:
            scale = 1 / len([])
        except ZeroDivisionError:
            scale = 2.0
        x[vc.global_invocation_id().x] = scale

    with pytest.warns(vd.KernelWarning, match="except ZeroDivisionError: .* test them by an `if`"):
        vd.shader("x.size")(divide)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kernel = vd.shader("x.size")(decide)
    x = vd.Buffer(3, vd.float32)
    kernel(x)
    assert x.read(0).tolist() == [2, 2, 2]


def test_rows_of_invocations_that_are_counted_along_one_axis() -> None:
    def body(x: Buff[f32]) -> None:
        here = vc.global_invocation_id()
        x[here.y, here.x] = 1

    with pytest.warns(vd.KernelWarning, match=r"exec_size 'x.size' .* y is 0.*'x.shape\[::-1\]'"):
        vd.shader("x.size")(body)


def test_recursion_of_the_device_has_a_short_traceback() -> None:
    def factorial(n: Any) -> Any:
        return 1 if n < 2 else n * factorial(n - 1)

    def body(x: Buff[i32]) -> None:
        i = vc.global_invocation_id().x
        if x[i] > 0:
            x[i] = factorial(x[i])

    with pytest.raises(vd.UsageError, match="use a loop") as caught:
        vd.shader("x.size")(body)
    assert len(traceback.extract_tb(caught.value.__traceback__)) < 10
