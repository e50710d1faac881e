"""Elements whose places are quotients of ids, in every form of a kernel: some compilers lose them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import Buff, Const, f32, i64, u32
from vkdispatch.shader import building

Array = np.ndarray[Any, Any]
# several workgroups, each with elements left over
COUNT = 1003
TABLE = np.random.default_rng(3).standard_normal(COUNT + 300).astype(np.float32)
PLACES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "remainder": lambda i, n, m: i % 12,
    "quotient": lambda i, n, m: i // 12,
    "nested": lambda i, n, m: (i // 12) % 5 * 3 + i % 3,
    "unknown": lambda i, n, m: i % n + (i + 256) // n,
    "power of two": lambda i, n, m: i // 8 + i % 16,
    "64 bits": lambda i, n, m: (long(i) + 256) // 12 + long(i) % m,
}


def long(i: Any) -> Any:
    return i if isinstance(i, np.ndarray) else i.to_dtype(vd.int64)


@pytest.fixture(params=["addressed,coarse", "wide", "wide,coarse"])
def form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Give every launch of new kernels a form."""
    text: str = request.param
    monkeypatch.setattr(building, "_FORCED", frozenset(text.split(",")))
    return text


@pytest.mark.usefixtures("form")
@pytest.mark.parametrize("name", PLACES)
def test_loads(name: str) -> None:
    place = PLACES[name]

    @vd.shader("out.size")
    def kernel(out: Buff[f32], x: Buff[f32], n: Const[u32], m: Const[i64]) -> None:
        i = vc.global_invocation_id().x
        out[i] = x[place(i, n, m)]

    out = vd.Buffer(COUNT, vd.float32)
    kernel(out, vd.asbuffer(TABLE), 13, 7)
    np.testing.assert_array_equal(out.read(0), TABLE[place(np.arange(COUNT), 13, 7)])


@pytest.mark.usefixtures("form")
def test_axes_of_an_odd_width_and_stores() -> None:
    table, count = TABLE[: 37 * 13].reshape(37, 13), 13 * 40

    @vd.shader("out.size")
    def kernel(out: Buff[f32], table: Buff[f32]) -> None:
        i = vc.global_invocation_id().x
        out[i // 13 * 13 + i * 5 % 13] = table[i % 37, i % 13] - table[i // 13 % 37, i % table.shape.y]

    out = vd.Buffer(count, vd.float32)
    kernel(out, vd.asbuffer(table))
    i, wanted = np.arange(count), np.empty(count, np.float32)
    wanted[i // 13 * 13 + i * 5 % 13] = table[i % 37, i % 13] - table[i // 13 % 37, i % 13]
    np.testing.assert_array_equal(out.read(0), wanted)


@pytest.mark.usefixtures("form")
def test_registers_that_are_divided_in_place() -> None:
    @vd.shader("out.size")
    def kernel(out: Buff[f32], x: Buff[f32], n: Const[i64]) -> None:
        i = vc.global_invocation_id().x
        place = i.to_dtype(vd.int64).to_register()
        place %= n - 1
        row = (i + 5).to_register()
        row //= 12
        out[i] = x[place] + place.to_dtype(vd.float32) - x[row]

    out, i = vd.Buffer(COUNT, vd.float32), np.arange(COUNT)
    kernel(out, vd.asbuffer(TABLE), 13)
    wanted = TABLE[i % 12] + (i % 12).astype(np.float32) - TABLE[(i + 5) // 12]
    np.testing.assert_allclose(out.read(0), wanted, rtol=1e-5, atol=1e-5)
