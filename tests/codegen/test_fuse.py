"""Fusing kernels as programs: index forms, what makes a kernel fusible, what the interpreter makes of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import Buff, Const, c64, f16, f32, f64, i32, m2, u8, u32, v3
from vkdispatch.compiler.analyses.launch_values import Linear, Space, linear
from vkdispatch.compiler.analyses.verify import verify
from vkdispatch.compiler.glsl.writer import write_kernel
from vkdispatch.compiler.interpreter.execution import run_kernel
from vkdispatch.compiler.interpreter.memory import Cells
from vkdispatch.compiler.interpreter.program import Checks, Memory
from vkdispatch.compiler.ir import Argument, Expr, Kernel, Op, Return, Storage, Store, walk
from vkdispatch.compiler.passes.elementwise import (
    Part,
    decide_branches,
    elementwise,
    is_kept_in_registers,
    resolve_branches,
)
from vkdispatch.compiler.passes.fuse import Fused, fuse

from .tracing import compile_glsl, trace

Array = np.ndarray[Any, Any]
AXES = "xyz"


def gid() -> Any:
    return vc.global_invocation_id().x


# -- forms


def index_of(build: Callable[..., Any], annotations: Sequence[Any] = ()) -> tuple[Kernel, Expr]:
    """Trace a kernel that stores to the element that `build` says; returns it and the index."""

    def body(out: Any, *arguments: Any) -> None:
        out[build(*arguments)] = 0

    kernel = trace(body, [Buff[i32], *annotations]).kernel
    (statement,) = (each for each in kernel.body if isinstance(each, Store))
    return kernel, statement.place.args[0]


def space_of(kernel: Kernel, extent: tuple[int, int, int], values: dict[str, tuple[int, ...]]) -> Space:
    element = elementwise(kernel)
    assert element is not None

    def value_of(argument: Argument) -> tuple[int, ...] | None:
        return values.get(argument.name)

    return Space(extent, value_of, element.definitions)


def axes(constant: int, **factors: int) -> Linear:
    return linear(
        constant, {("GLOBAL_INVOCATION_ID", AXES.index(axis)): factor for axis, factor in factors.items()}
    )


def at() -> Any:
    return vc.global_invocation_id()


W = Const[u32]


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (lambda: at().x, axes(0, x=1)),
        (lambda: at().x * 3 + 7, axes(7, x=3)),
        (lambda: vc.to_int(at().x) - 0, axes(0, x=1)),
        (lambda: (at().x << 2) + at().y, axes(0, x=4, y=1)),
        (lambda: at().y * 100 + at().x, axes(0, x=1, y=100)),
        (lambda: at().xy.y, axes(0, y=1)),
        (lambda: at().z, axes(0)),
        (lambda: at().x % 100, axes(0, x=1)),
        (lambda: at().x // 100, axes(0)),
        (lambda: at().x // 8 * 8 + at().x % 8, axes(0, x=1)),
        (lambda: (at().x >> 3 << 3) + (at().x & 7), axes(0, x=1)),
        (lambda: at().x - at().x + 5, axes(5)),
        (lambda: -vc.to_int(at().x) + 99, axes(99, x=-1)),
        # may leave the range of uint32
        (lambda: at().x - 1, None),
        (lambda: at().x * 0x10000000, None),
        (lambda: vc.min(at().x, 5), None),
        (lambda: at().x * at().y, None),
        (lambda: vc.to_uint(vc.to_float(at().x)), None),
    ],
)
def test_index_forms(build: Callable[[], Any], expected: Linear | None) -> None:
    kernel, index = index_of(build)
    assert space_of(kernel, (100, 7, 1), {}).form(index) == expected


def test_index_forms_with_arguments() -> None:
    kernel, index = index_of(lambda w: at().y * w + at().x, [W])
    assert space_of(kernel, (10, 5, 1), {"param1": (10,)}).form(index) == axes(0, x=1, y=10)
    assert space_of(kernel, (10, 5, 1), {}).form(index) is None


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    st.tuples(*[st.integers(1, 6)] * 3),
    st.tuples(*[st.integers(-7, 7)] * 3),
    st.integers(1, 5),
    st.integers(1, 5),
)
def test_injective_forms_never_meet(
    extent: tuple[int, int, int], factors: tuple[int, int, int], by: int, then: int
) -> None:
    def build() -> Any:
        ids = [vc.to_int(getattr(at(), axis)) for axis in AXES]
        flat = ids[0] * factors[0] + ids[1] * factors[1] + ids[2] * factors[2] + 300
        return flat // by // then * by * then + flat // by % then * by + flat % by

    kernel, index = index_of(build)
    space = space_of(kernel, extent, {})
    form = space.form(index)
    # divided and put together again is the same
    assert form == linear(
        300, {("GLOBAL_INVOCATION_ID", axis): factors[axis] for axis in range(3) if extent[axis] > 1}
    )
    x, y, z = np.meshgrid(*(np.arange(size) for size in extent), indexing="ij")
    values = (x * factors[0] + y * factors[1] + z * factors[2] + 300).ravel()
    assert space.ranges.bounds(form) == (values.min(), values.max())
    if space.is_injective(form):
        assert len(np.unique(values)) == values.size


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (lambda: at().x < 100, True),
        (lambda: at().x < 99, None),
        (lambda: at().x >= 100, False),
        (lambda: at().x != 200, True),
        (lambda: (at().x < 100) & (at().y < 7), True),
        (lambda: (at().x > 100) | (at().y > 7), False),
        (lambda: ~(at().x < 100), False),
        (lambda: at().x * 1.0 < 200.0, None),
    ],
)
def test_conditions(build: Callable[[], Any], expected: bool | None) -> None:
    def body(out: Any) -> None:
        with vc.if_block(build()):
            out[gid()] = 1

    element = elementwise(trace(body, [Buff[i32]]).kernel)
    assert element is not None
    known = decide_branches(element, Space((100, 7, 1), lambda _: None, element.definitions))
    assert known == (expected,)
    result = resolve_branches(element.kernel, known)
    assert result is not None
    assert len(result.conditions) == (expected is None)
    assert len(result.elements) == (expected is not False)


# -- kernels


def test_kernels_that_are_not_element_wise() -> None:
    def barrier(a: Any) -> None:
        vc.barrier()

    def shared(a: Any) -> None:
        vc.shared_buffer(i32, 8)[0] = a[gid()]

    def group(a: Any) -> None:
        a[vc.workgroup_id().x] = 1

    def atomic(a: Any) -> None:
        vc.atomic_add(a[0], 1)

    def subgroup(a: Any) -> None:
        a[gid()] = vc.subgroup_add(a[gid()])

    def printed(a: Any) -> None:
        vc.print("a")

    def raw(a: Any) -> None:
        vc.get_builder().append_contents("buf0.data[0] = 1;")

    for body in (barrier, shared, group, atomic, subgroup, printed, raw):
        assert elementwise(trace(body, [Buff[i32]]).kernel) is None, body.__name__
    endless = trace(lambda a: a.__setitem__(gid(), 1), [Buff[i32]], flags=vc.ShaderFlags.NO_EXEC_BOUNDS)
    assert elementwise(endless.kernel) is None


def test_returns_become_branches() -> None:
    def early(a: Any) -> None:
        with vc.if_block(a[gid()] > 3):
            vc.return_statement()
        a[gid()] = 5
        with vc.if_block(a[gid()] > 4):
            a[gid()] = 6
            vc.return_statement()
        a[gid()] = 7

    def in_a_loop(a: Any) -> None:
        with vc.while_block(a[gid()] > 3):
            vc.return_statement()

    element = elementwise(trace(early, [Buff[i32]]).kernel)
    assert element is not None
    assert not element.returns
    assert not any(isinstance(statement, Return) for statement in walk(element.kernel.body))
    left = elementwise(trace(in_a_loop, [Buff[i32]]).kernel)
    assert left is not None
    assert left.returns


def test_values_passed_in_registers() -> None:
    assert all(map(is_kept_in_registers, (f32, f64, i32, v3, c64)))
    assert not any(map(is_kept_in_registers, (f16, u8, m2, vd.bool_, vd.int8, vd.bfloat16)))


# -- fused kernels


def chain(
    calls: Sequence[tuple[Callable[..., Any], Sequence[int]]], kinds: Sequence[Any], count: int
) -> tuple[list[Kernel], Fused]:
    """Fuse kernels that take buffers alone: (body, numbers of its buffers) each."""
    kernels: list[Kernel] = []
    parts: list[Part] = []
    places: dict[tuple[int, Linear], int] = {}
    for body, numbers in calls:
        kernel = trace(body, [Buff[kinds[number]] for number in numbers]).kernel
        element = elementwise(kernel)
        assert element is not None
        space = Space((count, 1, 1), lambda _: None, element.definitions)
        found: list[int | None] = []
        for expr in element.elements:
            assert isinstance(expr.value, Storage)
            form = space.form(expr.args[0])
            number = numbers[expr.value.index]
            place = form == axes(0, x=1) and is_kept_in_registers(kinds[number])
            found.append(places.setdefault((number, axes(0)), len(places)) if place else None)
        kernels.append(kernel)
        parts.append(Part(element, tuple(numbers), tuple(found), ()))
    fused = fuse("fused", parts)
    verify(fused.kernel)
    compile_glsl(write_kernel(fused.kernel).source((8, 1, 1))[0])
    return kernels, fused


def run(kernel: Kernel, arrays: Sequence[Array], count: int) -> None:
    """Run a kernel of buffers alone by the interpreter; what it is not given is zero."""
    assert kernel.exec_count is not None
    values = {kernel.exec_count.name: np.array([[count, 1, 1]], np.uint32)}
    values |= {
        argument.name: np.zeros(1, np.uint32)
        for argument in kernel.arguments
        if argument is not kernel.exec_count
    }
    run_kernel(
        kernel.name,
        kernel,
        Memory(
            values,
            {
                number: Cells(str(number), array, array.shape, len(array))
                for number, array in enumerate(arrays)
            },
        ),
        groups=(-(-count // 8), 1, 1),
        local_size=(8, 1, 1),
        subgroup_size=8,
        checks=Checks(True, False, 10000, True),
        races=True,
    )


def compare(
    calls: Sequence[tuple[Callable[..., Any], Sequence[int]]], kinds: Sequence[Any], arrays: Sequence[Array]
) -> Fused:
    """Run kernels one after another, and fused; returns the fused one."""
    count = len(arrays[0])
    kernels, fused = chain(calls, kinds, count)
    expected = [array.copy() for array in arrays]
    for kernel, (_, numbers) in zip(kernels, calls, strict=True):
        run(kernel, [expected[number] for number in numbers], count)
    got = [array.copy() for array in arrays]
    run(fused.kernel, [got[number] for number in fused.resources], count)
    for a, b in zip(expected, got, strict=True):
        assert a.tobytes() == b.tobytes()
    return fused


def counted(kernel: Kernel) -> tuple[int, int]:
    """Return how many elements of buffers a kernel's statements load and store."""
    stores = sum(
        isinstance(statement, Store) and statement.place.op is Op.ELEMENT for statement in walk(kernel.body)
    )
    text = "\n".join(write_kernel(kernel).body)
    return text.count(".data[") - stores, stores


def add(a: Any, b: Any, out: Any) -> None:
    out[gid()] = a[gid()] + b[gid()]


def twice(a: Any, out: Any) -> None:
    out[gid()] = a[gid()] * 2


def guarded(a: Any, out: Any) -> None:
    with vc.if_block(a[gid()] > 10):
        out[gid()] = a[gid()] - 1
    with vc.else_if_block(a[gid()] > 5):
        a[gid()] = 3


def summed(a: Any, out: Any) -> None:
    with vc.while_block(out[gid()] < 50):
        out[gid()] = out[gid()] + vc.abs(a[gid()]) + 1
        with vc.if_block(out[gid()] == 20):
            vc.break_statement()


def reversed_(a: Any, out: Any) -> None:
    out[gid()] = a[40 - vc.to_int(gid())]


INTEGERS = [np.arange(41, dtype=np.int32) * (k + 1) % 17 - 3 for k in range(4)]


def test_each_element_is_loaded_and_stored_once() -> None:
    fused = compare(
        [(add, (0, 1, 2)), (twice, (2, 3)), (add, (3, 2, 3)), (add, (1, 3, 2))], [i32] * 4, INTEGERS
    )
    assert counted(fused.kernel) == (2, 2)
    assert fused.kernel.name == "fused"


def test_passed_floats_are_rounded_to_their_type() -> None:
    arrays = [np.linspace(0, k + 1, 41, dtype=np.float32) for k in range(3)]
    fused = compare([(twice, (0, 1)), (twice, (1, 2))], [f32] * 3, arrays)
    text = "\n".join(write_kernel(fused.kernel).body)
    # what is stored last is passed on to nobody
    assert text.count("uintBitsToFloat") == 1
    wide = [np.linspace(0, k + 1, 41) for k in range(3)]
    text = "\n".join(write_kernel(compare([(twice, (0, 1)), (add, (1, 1, 2))], [f64] * 3, wide).kernel).body)
    assert text.count("packDouble2x32") == 2


def test_places_next_to_other_elements() -> None:
    fused = compare([(reversed_, (0, 1)), (twice, (1, 2)), (add, (0, 2, 3))], [i32] * 4, INTEGERS)
    assert counted(fused.kernel) == (2, 3)


@settings(max_examples=20, deadline=None, derandomize=True)
@given(
    st.lists(
        st.tuples(st.sampled_from([add, twice, guarded, summed]), st.permutations(range(4))),
        min_size=1,
        max_size=7,
    )
)
def test_random_chains(calls: list[Any]) -> None:
    with_buffers = [(body, tuple(order[: 3 if body is add else 2])) for body, order in calls]
    compare(with_buffers, [i32] * 4, INTEGERS)


def test_names_do_not_clash() -> None:
    def registers(buf1: Any, zero: Any) -> None:
        t0 = vc.new_register(i32, var_name="t0")
        t0[:] = buf1[gid()]
        zero[gid()] = t0 + 1

    with vc.shader_context() as context:
        registers(*context.declare_input_arguments([Buff[i32]] * 2, ["buf1", "zero"]))
    kernel = context.get_description("k").kernel
    element = elementwise(kernel)
    assert element is not None
    part = Part(element, (0, 1), (0, 1) if element.elements[0].value.index == 0 else (1, 0), ())  # type: ignore[union-attr]
    again = Part(element, (1, 0), part.places[::-1], ())
    fused = fuse("k", [part, again, part])
    verify(fused.kernel)
    compile_glsl(write_kernel(fused.kernel).source((8, 1, 1))[0])
    arrays = [np.arange(5, dtype=np.int32), np.zeros(5, np.int32)]
    run(fused.kernel, arrays, 5)
    assert (arrays[0] == np.arange(5) + 2).all()
    assert (arrays[1] == np.arange(5) + 3).all()
