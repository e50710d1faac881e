"""Barriers that a kernel lacks between accesses to shared memory: a warning at the line."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import Buff, Const, f32, i32

SIZE = 64


def warned_lines(body: Callable[..., None], local_size: Any = SIZE) -> list[str]:
    """Source lines that the warnings of a kernel name."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        vd.shader(1, local_size=local_size)(body)
    assert all(each.category is vd.KernelWarning for each in caught)
    assert all("vc.barrier()" in str(each.message) for each in caught)
    return [str(each.message).splitlines()[1].strip() for each in caught]


def own() -> Any:
    return vc.local_invocation_id().x


def reverse(x: Buff[f32]) -> None:
    tile = vc.shared_buffer(f32, SIZE)
    tile[own()] = x[own()]
    x[own()] = tile[63 - own()]  # wrong


def neighbour(x: Buff[f32]) -> None:
    tile = vc.shared_buffer(f32, SIZE + 2)
    tile[own() + 1] = x[own()]
    x[own()] = tile[own() + 1] + x[0]
    x[own()] = tile[own() + 2]  # wrong


def tiles_without_the_first(x: Buff[f32]) -> None:
    tile, total = vc.shared_buffer(f32, SIZE), 0.0
    for start in range(0, x.size, SIZE):
        tile[own()] = x[start + own()]
        for k in range(SIZE):
            total += tile[k]  # wrong
        vc.barrier()
    x[own()] = total


def tiles_without_the_second(x: Buff[f32]) -> None:
    tile, total = vc.shared_buffer(f32, SIZE), 0.0
    for start in range(0, x.size, SIZE):
        tile[own()] = x[start + own()]  # wrong
        vc.barrier()
        for k in range(SIZE):
            total += tile[k]
    x[own()] = total


def filled_with_a_stride(x: Buff[f32]) -> None:
    table, total = vc.shared_buffer(f32, 256), 0.0
    for k in range(own(), 256, SIZE):
        table[k] = x[k]
    for k in range(256):
        total += table[k]  # wrong
    x[own()] = total


def tree(x: Buff[f32]) -> None:
    tile = vc.shared_buffer(f32, SIZE)
    tile[own()] = x[own()]
    vc.barrier()
    for width in (32, 16, 8, 4, 2, 1):
        if own() < width:
            tile[own()] += tile[own() + width]  # wrong


def tree_of_the_device(x: Buff[f32], width: Any) -> None:
    tile = vc.shared_buffer(f32, SIZE)
    tile[own()] = x[own()]
    vc.barrier()
    while width > 0:
        if own() < width:
            tile[own()] += tile[own() + width]  # wrong
        width = width // 2


def one_for_all(x: Buff[f32]) -> None:
    first = vc.shared_buffer(f32, 1)
    if own() == 0:
        first[0] = x[0]
    x[own()] = first[0]  # wrong


def counts(x: Buff[i32]) -> None:
    count = vc.shared_buffer(i32, 16)
    if own() < 16:
        count[own()] = 0
    vc.atomic_add(count[x[own()]], 1)  # wrong
    vc.barrier()
    if own() < 16:
        x[own()] = count[own()]


def counts_read_early(x: Buff[i32]) -> None:
    count = vc.shared_buffer(i32, 16)
    if own() < 16:
        count[own()] = 0
    vc.barrier()
    vc.atomic_add(count[x[own()]], 1)
    if own() < 16:
        x[own()] = count[own()]  # wrong


def in_place(x: Buff[f32]) -> None:
    tile = vc.shared_buffer(f32, SIZE + 1)
    tile[own()] = x[own()]
    vc.barrier()
    tile[own()] = tile[own()] + tile[own() + 1]  # wrong


def scan(x: Buff[f32]) -> None:
    tile = vc.shared_buffer(f32, SIZE)
    tile[own()] = x[own()]
    vc.barrier()
    for distance in (1, 2, 4, 8, 16, 32):
        value = tile[own()]
        if own() >= distance:
            value += tile[own() - distance]
        tile[own()] = value  # wrong
        vc.barrier()


LACKING = [
    *(reverse, neighbour, tiles_without_the_first, tiles_without_the_second, filled_with_a_stride, tree),
    *(one_for_all, counts, counts_read_early, in_place, scan),
]


@pytest.mark.parametrize("body", LACKING, ids=lambda body: body.__name__)
def test_missing_barrier(body: Callable[..., None]) -> None:
    (line,) = warned_lines(body)
    assert line.endswith("# wrong")


def test_missing_barrier_in_a_loop_of_the_device() -> None:
    def body(x: Buff[f32], rounds: Buff[i32]) -> None:
        tree_of_the_device(x, rounds[0])

    assert [line.endswith("# wrong") for line in warned_lines(body)] == [True]


def test_missing_barrier_of_a_matrix() -> None:
    def body(x: Buff[f32]) -> None:
        here = vc.local_invocation_id()
        tile = vc.shared_buffer(f32, (8, 8))
        tile[here.y, here.x] = x[here.y, here.x]
        x[here.x, here.y] = tile[here.x, here.y]  # transposed
        total = 0.0
        for k in range(8):
            total += tile[here.y, k]  # row
        x[here.y, here.x] = total

    assert [line.split("# ")[1] for line in warned_lines(body, (8, 8))] == ["transposed", "row"]


def with_all_barriers(x: Buff[f32]) -> None:
    tile, total = vc.shared_buffer(f32, SIZE), 0.0
    for start in range(0, x.size, SIZE):
        tile[own()] = x[start + own()]
        vc.barrier()
        for k in range(SIZE):
            total += tile[k]
        vc.barrier()
        for width in (32, 16, 8, 4, 2, 1):
            if own() < width:
                tile[own()] += tile[own() + width]
            vc.barrier()
        if own() == 0:
            x[start] = tile[0]
    x[own()] = total


def own_elements_only(x: Buff[f32]) -> None:
    pairs, rows = vc.shared_buffer(f32, 4 * SIZE), vc.shared_buffer(f32, (SIZE, 4))
    halves = vc.shared_buffer(f32, 2 * SIZE)
    halves[own()] = halves[own() + SIZE] = 1.0
    for k in range(4):
        pairs[4 * own() + k] = rows[own(), k] = x[k]
    for k in range(x.size):
        rows[own(), k] = rows[own(), k + 1] + pairs[4 * own() + k] + pairs[4 * own() + 1]
    x[own()] = halves[own()] + halves[own() + SIZE]
    for _ in range(x.size):
        for k in range(2):
            halves[own() + SIZE * k] = x[k]
        for k in range(2):
            x[k] = halves[own() + SIZE * k]


def one_invocation_only(x: Buff[f32]) -> None:
    found = vc.shared_buffer(f32, 4)
    if own() == 0:
        for k in range(4):
            found[k] = x[k]
        x[0] = found[1]
    if own() == 0:
        x[1] = found[2]
    vc.barrier()
    x[own()] = found[0]


def largest(x: Buff[f32]) -> None:
    tile = vc.shared_buffer(f32, SIZE)
    tile[own()] = x[own()]
    vc.barrier()
    for width in (32, 16, 8, 4, 2, 1):
        if own() < width and tile[own() + width] > tile[own()]:
            tile[own()] = tile[own() + width]
        vc.barrier()
    x[own()] = tile[0]


def bitonic_sort(x: Buff[f32]) -> None:
    tile, i = vc.shared_buffer(f32, SIZE), own()
    tile[i] = x[i]
    vc.barrier()
    for size in (2, 4, 8, 16, 32, 64):
        width = size // 2
        while width > 0:
            other = i ^ width
            if other > i:
                a, b = tile[i], tile[other]
                if (a > b) == ((i & size) == 0):
                    tile[i] = b
                    tile[other] = a
            vc.barrier()
            width //= 2
    x[i] = tile[i]


def elimination(x: Buff[f32], n: Const[i32]) -> None:
    tile, i = vc.shared_buffer(f32, SIZE), own().to_dtype(i32)
    tile[i] = x[i]
    vc.barrier()
    for pivot in range(n):
        if i != pivot:
            tile[i] -= tile[pivot] * 0.1
        vc.barrier()
    x[i] = tile[i]


@pytest.mark.parametrize(
    "body", [with_all_barriers, own_elements_only, one_invocation_only, largest, bitonic_sort, elimination]
)
def test_no_barrier_is_missing(body: Callable[..., None]) -> None:
    assert warned_lines(body) == []


def test_a_workgroup_of_one_invocation_needs_none() -> None:
    assert warned_lines(reverse, 1) == []
