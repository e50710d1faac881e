"""Bytes estimated from the IR, against closed forms or against the set of elements that Python touches."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import vkdispatch.codegen as vc
from vkdispatch.base.dtype import float32, int32, ivec2, ivec3
from vkdispatch.codegen.abbreviations import Buff, Const, SImg2, f32, f64, i32, u8, v4
from vkdispatch.compiler.analyses.launch_values import Linear, Ranges, linear
from vkdispatch.compiler.analyses.traffic import Known, Launch, Traffic, count_values, estimate_traffic

from .tracing import trace

HUGE = 1 << 40


def count(
    body: Callable[..., Any],
    *annotations: Any,
    extent: tuple[int, ...] = (1000,),
    local: tuple[int, int, int] = (64, 1, 1),
    arguments: dict[str, tuple[int | float, ...]] | None = None,
    sizes: dict[int, int] | None = None,
    texels: dict[int, int] | None = None,
) -> Traffic:
    description = trace(body, annotations)
    x, y, z = (*extent, 1, 1)[:3]
    groups = (-(-x // local[0]), -(-y // local[1]), -(-z // local[2]))
    bound = sizes or dict.fromkeys(range(len(annotations)), HUGE)
    launch = Launch((x, y, z), groups, local, arguments or {}, bound, texels or {})
    return estimate_traffic(description.kernel, launch)


def gid() -> Any:
    return vc.global_invocation_id().x


def exact(read: int, written: int) -> Traffic:
    return Traffic(read, written, Known.EXACT)


# ---- closed forms


def test_saxpy() -> None:
    def body(y: Any, x: Any, a: Any) -> None:
        i = gid()
        y[i] = a * x[i] + y[i]

    assert count(body, Buff[f32], Buff[f32], Const[f32]) == exact(8000, 4000)


def test_in_place_operator_reads_too() -> None:
    def body(y: Any) -> None:
        y[gid()] += 1

    assert count(body, Buff[f32]) == exact(4000, 4000)


def test_element_sizes() -> None:
    def body(y: Any, x: Any, z: Any) -> None:
        y[gid()].x = x[gid()].to_dtype(float32)
        z[gid()] = 1

    assert count(body, Buff[v4], Buff[u8], Buff[f64]) == exact(1000, 24000)


def test_broadcast_counts_once() -> None:
    def body(y: Any, x: Any) -> None:
        y[gid()] = x[3]

    assert count(body, Buff[f32], Buff[f32]) == exact(4, 4000)


def test_rows_and_columns() -> None:
    def body(y: Any, a: Any, b: Any) -> None:
        g = vc.global_invocation_id()
        y[g.y * 40 + g.x] = a[g.y] + b[g.x]

    assert count(body, *[Buff[f32]] * 3, extent=(40, 25), local=(8, 8, 1)) == exact(4 * 65, 4000)


def test_stencil_neighbours_count_once() -> None:
    def body(y: Any, x: Any) -> None:
        i = gid()
        y[i] = x[i] + x[i + 1] + x[i + 2]

    assert count(body, Buff[f32], Buff[f32]) == exact(4 * 1002, 4000)


def test_traffic_is_limited_by_the_buffer_size() -> None:
    def body(y: Any, x: Any) -> None:
        i = gid()
        y[i] = x[i - 1] + x[i] + x[i + 1]

    assert count(body, Buff[f32], Buff[f32], sizes={0: 4000, 1: 4000}) == exact(4000, 4000)


def test_interleaved_and_planes() -> None:
    def pairs(y: Any, x: Any) -> None:
        i = gid()
        y[i] = x[2 * i] + x[2 * i + 1]

    def planes(y: Any, x: Any) -> None:
        i = gid()
        y[i] = x[i] + x[i + 5000] + x[i + 10000]

    def every_second(y: Any, x: Any) -> None:
        y[gid()] = x[2 * gid()]

    assert count(pairs, Buff[f32], Buff[f32]) == exact(8000, 4000)
    assert count(planes, Buff[f32], Buff[f32]) == exact(12000, 4000)
    assert count(every_second, Buff[f32], Buff[f32]) == exact(4000, 4000)


@pytest.mark.parametrize("bounds", [(9,), (2, 9), (0, 20, 3), (9, 2, -1), (5, 5)])
def test_loops_of_known_length(bounds: tuple[int, ...]) -> None:
    def body(y: Any, x: Any) -> None:
        total = vc.new_float_register(0)
        with vc.for_block(*bounds) as k:
            total += x[gid().to_dtype(int32) * 100 + k]
        y[gid()] = total

    assert count(body, Buff[f32], Buff[f32]) == exact(4000 * len(range(*bounds)), 4000)


def test_loop_bounds_from_arguments() -> None:
    def matmul(y: Any, a: Any, b: Any, inner: Any, width: Any) -> None:
        g = vc.global_invocation_id().to_dtype(ivec3)
        total = vc.new_float_register(0)
        with vc.for_block(inner) as k:
            total += a[g.y * inner + k] * b[k * width + g.x]
        y[g.y * width + g.x] = total

    annotations = (*[Buff[f32]] * 3, Const[i32], Const[i32])
    names = [argument.name for argument in trace(matmul, annotations).kernel.arguments]
    values = dict(zip(names, ((100,), (64,)), strict=False))
    moved = count(matmul, *annotations, extent=(64, 32), local=(8, 8, 1), arguments=values)
    assert moved == exact(4 * (32 * 100 + 100 * 64), 4 * 32 * 64)


def test_convolution_windows_overlap() -> None:
    def body(y: Any, x: Any) -> None:
        total = vc.new_float_register(0)
        with vc.for_block(7) as k:
            total += x[gid().to_dtype(int32) + k]
        y[gid()] = total

    assert count(body, Buff[f32], Buff[f32]) == exact(4 * 1006, 4000)


def test_workgroup_indices() -> None:
    def body(y: Any, x: Any) -> None:
        y[vc.workgroup_id().x] = x[vc.workgroup_id().x * 64 + vc.local_invocation_id().x]

    moved = count(body, Buff[f32], Buff[f32], extent=(640,))
    assert moved == exact(4 * 640, 4 * 10)


def test_shared_memory_and_sizes_are_not_counted() -> None:
    def body(y: Any) -> None:
        tile = vc.shared_buffer(f32, 64)
        tile[vc.local_invocation_id().x] = 1
        vc.barrier()
        y[gid()] = tile[0] + y.shape.x

    assert count(body, Buff[f32]) == exact(0, 4000)


def test_images() -> None:
    def body(y: Any, image: Any) -> None:
        g = vc.global_invocation_id()
        at = vc.to_dtype(ivec2, g.x, g.y)
        y[at] = image[at] + image[at + vc.to_dtype(ivec2, 1, 0)]

    annotations = (SImg2[f32], SImg2[f32])
    moved = count(body, *annotations, extent=(30, 20), local=(8, 8, 1), texels={0: 2, 1: 4})
    assert moved == exact(4 * 31 * 20, 2 * 30 * 20)


# ---- conditions


def test_conditions_on_ids_count_as_if_they_held() -> None:
    def guarded(y: Any, x: Any) -> None:
        i = gid()
        with vc.if_block(vc.all(i > 0, i < 999)):
            y[i] = x[i - 1] + x[i + 1]

    def returning(y: Any, x: Any) -> None:
        i = gid()
        with vc.if_block(vc.any(i < 1, i >= 999)):
            vc.return_statement()
        y[i] = x[i - 1] + x[i] + x[i + 1]

    sizes = {0: 4000, 1: 4000}
    assert count(guarded, Buff[f32], Buff[f32]) == Traffic(4008, 4000, Known.ABOUT)
    assert count(returning, Buff[f32], Buff[f32], sizes=sizes) == Traffic(4000, 4000, Known.ABOUT)


def test_else_of_a_condition_on_ids() -> None:
    def body(y: Any, x: Any) -> None:
        i = gid()
        with vc.if_block(i < 250):
            y[i] = x[i]
        with vc.else_block():
            y[i] = 0

    assert count(body, Buff[f32], Buff[f32]) == Traffic(4000, 4000, Known.ABOUT)


def test_conditions_that_always_or_never_hold() -> None:
    def body(y: Any, x: Any) -> None:
        with vc.if_block(gid() < 1000):
            y[gid()] = 1
        with vc.else_block():
            y[gid()] = x[gid()]

    assert count(body, Buff[f32], Buff[f32]) == exact(0, 4000)


def test_intricate_conditions_are_marked() -> None:
    def body(y: Any) -> None:
        with vc.if_block(gid() % 3 == 0):
            y[gid()] = 1

    assert count(body, Buff[f32]) == Traffic(0, 4000, Known.ABOUT)


def test_conditions_on_data_count_as_if_they_held() -> None:
    def one(y: Any, x: Any) -> None:
        with vc.if_block(x[gid()] > 0):
            y[gid()] = 1

    def both(y: Any, x: Any) -> None:
        with vc.if_block(x[gid()] > 0):
            y[gid()] = 1
        with vc.else_block():
            y[gid()] = 2

    def returning(y: Any, x: Any) -> None:
        with vc.if_block(x[gid()] > 0):
            vc.return_statement()
        y[gid()] = 2

    def chosen(y: Any, x: Any) -> None:
        y[gid()] = vc.select(x[gid()] > 0, x[gid() + 5000], 0.0)

    buffers = [Buff[f32]] * 2
    assert count(one, *buffers) == Traffic(4000, 4000, Known.ABOUT)
    assert count(both, *buffers) == Traffic(4000, 4000, Known.ABOUT)
    assert count(returning, *buffers) == Traffic(4000, 4000, Known.ABOUT)
    assert count(chosen, *buffers) == Traffic(8000, 4000, Known.ABOUT)


def test_data_as_indices_and_loops() -> None:
    def gather(y: Any, x: Any, where: Any) -> None:
        y[gid()] = x[where[gid()]]

    def histogram(bins: Any, keys: Any) -> None:
        vc.atomic_add(bins[keys[gid()]], 1)

    def rows(y: Any, x: Any, ends: Any) -> None:
        total = vc.new_float_register(0)
        with vc.for_block(ends[gid()]) as k:
            total += x[k]
        y[gid()] = total

    def endless(y: Any, x: Any) -> None:
        with vc.while_block(x[0] > 0):
            y[gid()] = 1

    moved = count(gather, Buff[f32], Buff[f32], Buff[i32])
    assert moved == Traffic(8000, 4000, Known.ABOUT)
    small = {0: 256, 1: 4000}
    assert count(histogram, Buff[i32], Buff[i32], sizes=small) == Traffic(4256, 256, Known.ABOUT)
    assert count(rows, Buff[f32], Buff[f32], Buff[i32]) == Traffic(8000, 4000, Known.AT_LEAST)
    assert count(endless, Buff[f32], Buff[f32]) == Traffic(4, 4000, Known.AT_LEAST)


def test_a_loop_that_data_may_end_counts_all_rounds() -> None:
    def body(y: Any, x: Any) -> None:
        with vc.for_block(50) as k, vc.if_block(x[gid().to_dtype(int32) * 50 + k] > 0):
            vc.break_statement()
        y[gid()] = 1

    assert count(body, Buff[f32], Buff[f32]) == Traffic(200000, 4000, Known.ABOUT)


def test_raw_code_is_marked() -> None:
    def body(y: Any) -> None:
        vc.get_builder().append_contents("buf0.data[0] = 1.0;")
        y[gid()] = 1

    assert count(body, Buff[f32]) == Traffic(0, 4000, Known.AT_LEAST)


def test_asserts_do_not_count() -> None:
    def body(y: Any, x: Any) -> None:
        y[gid()] = 1

    assert count(body, Buff[f32], Buff[f32]) == exact(0, 4000)


# ---- sums, against the sets that Python counts


def elements(forms: list[Linear], ranges: Ranges) -> set[int]:
    found = set()
    for form in forms:
        spans = [range(ranges.of(variable)) for variable, _ in form.terms]
        factors = [factor for _, factor in form.terms]
        for values in itertools.product(*spans):
            found.add(form.constant + sum(f * v for f, v in zip(factors, values, strict=True)))
    return found


@pytest.mark.parametrize("seed", range(200))
def test_touched_bytes_agree_with_a_count_in_python(seed: int) -> None:
    rng = np.random.default_rng(seed)
    variables = [("global", axis) for axis in range(3)]
    ranges = Ranges({variable: int(rng.integers(1, 7)) for variable in variables})
    steps = [int(rng.integers(-12, 13)) for _ in variables]
    terms = dict(zip(variables, steps, strict=True))
    forms = [linear(int(rng.integers(-9, 10)), terms) for _ in range(int(rng.integers(1, 4)))]
    truth = len(elements(forms, ranges))
    estimate, _ = count_values(forms, ranges)
    single, certain = count_values(forms[:1], ranges)
    if certain:
        assert single == len(elements(forms[:1], ranges))
    # never too few, and overlaps between forms may count twice
    assert truth <= estimate <= sum(count_values([form], ranges)[0] for form in forms)


def test_sums_and_multiples() -> None:
    x, y = (linear(0, {("global", axis): 1}) for axis in range(2))
    assert x.plus(y, 3).plus(x, -1) == y.times(3)
    assert x.plus(x, -1).is_constant
    assert Ranges({("global", 0): 10}).bounds(x.times(-2).plus(Linear(5))) == (-13, 5)
