"""Constant arrays: what kernels read of them, in every form and by every way to launch; who shares a copy."""

from __future__ import annotations

import gc
import inspect
import subprocess
import threading
import warnings
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.base.context import destroy_context
from vkdispatch.base.dtype import from_numpy_dtype
from vkdispatch.codegen.abbreviations import Buff, Const, c64, f32, i32, u32
from vkdispatch.shader import building
from vkdispatch.shader import launching as autotune

Array = np.ndarray[Any, Any]
RunPython = Callable[..., subprocess.CompletedProcess[str]]
random = np.random.default_rng(11)
COUNT = 1003


@pytest.fixture(autouse=True)
def _usual_forms(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "_FORCED", frozenset())


def gid() -> Any:
    return vc.global_invocation_id().x


def gather(table: Any, **options: Any) -> vd.ShaderFunction:
    """Make a kernel that takes element i * 3 + 1, modulo the size."""

    @vd.shader("out.size", **options)
    def gather(out: Buff[f32]) -> None:
        known = vc.constant_array(table)
        out[gid()] = known[(gid() * 3 + 1) % known.shape.w]

    return gather


def gathered(table: Array, count: int = COUNT) -> Array:
    found: Array = table.reshape(-1)[(np.arange(count) * 3 + 1) % table.size]
    return found


def floats(*shape: int) -> Array:
    return random.standard_normal(shape).astype(np.float32)


# ---- what a kernel reads


@pytest.mark.parametrize("size", [1, 2, 7, 256, 4099])
def test_sizes(size: int) -> None:
    table, out = floats(size), vd.Buffer(COUNT, vd.float32)
    kernel = gather(table)
    for _ in range(3):
        kernel(out)
    np.testing.assert_array_equal(out.read(0), gathered(table))


@pytest.mark.parametrize("shape", [(), (5,), (3, 7), (2, 3, 4), (2, 3, 2, 5)])
def test_shapes(shape: tuple[int, ...]) -> None:
    table = np.asarray(floats(*shape))
    out, seen = vd.Buffer(COUNT, vd.float32), vd.Buffer(4, vd.int32)
    gather(table)(out)
    np.testing.assert_array_equal(out.read(0), gathered(table))

    @vd.shader(1)
    def look(seen: Buff[i32]) -> None:
        for axis in range(4):
            seen[axis] = vc.constant_array(table).shape[axis]

    look(seen)
    axes = shape if len(shape) <= 3 else (table.size,)
    assert seen.read(0).tolist() == [*(*axes, 1, 1, 1)[:3], table.size]


def test_an_index_for_each_axis() -> None:
    flat, cube = floats(4, 6), floats(2, 3, 4)

    @vd.shader("out.size")
    def pick(out: Buff[f32]) -> None:
        i = gid()
        a, b = vc.constant_array(flat), vc.constant_array(cube)
        out[i] = a[i % 4, i % 6] + b[i % 2, i % 3, i % 4] * a[3, 5]

    out, i = vd.Buffer(COUNT, vd.float32), np.arange(COUNT)
    pick(out)
    wanted = flat[i % 4, i % 6] + cube[i % 2, i % 3, i % 4] * flat[3, 5]
    np.testing.assert_allclose(out.read(0), wanted, rtol=1e-6, atol=1e-6)  # a * b + c may round once


@pytest.mark.parametrize(
    "kind",
    [
        "bool",
        "int8",
        "uint8",
        "int16",
        "uint16",
        "int32",
        "uint32",
        "int64",
        "uint64",
        "float16",
        "float32",
        "float64",
        "complex64",
        "complex128",
    ],
)
def test_dtypes(kind: str) -> None:
    table = (random.standard_normal(50) * 40).astype(np.int64).astype(kind)
    if kind.startswith("complex"):
        table = (table * (1 + 0.5j)).astype(kind)
    ours = from_numpy_dtype(kind)

    def copy(out: Any) -> None:
        out[gid()] = vc.constant_array(table)[gid()]

    kernel = vd.shader("out.size", arg_type_annotations=[Buff[ours]], arg_names=["out"])(copy)
    try:
        out = vd.Buffer(table.size, ours)
        kernel(out)
    except vd.UnsupportedError:
        pytest.skip(f"the device has no {ours.name}")
    np.testing.assert_array_equal(out.read(0), table)


@pytest.mark.parametrize("table", [floats(6, 8)[::2, ::-1], floats(5, 4).T, floats(9).astype(">f4")])
def test_arrays_of_other_layouts(table: Array) -> None:
    out = vd.Buffer(COUNT, vd.float32)
    gather(table)(out)
    np.testing.assert_array_equal(out.read(0), gathered(np.ascontiguousarray(table, np.float32)))


def test_the_array_is_copied_when_the_kernel_is_traced() -> None:
    table, out = floats(20), vd.Buffer(COUNT, vd.float32)
    wanted = gathered(table.copy())
    kernel = gather(table)
    table[:] = 0
    kernel(out)
    np.testing.assert_array_equal(out.read(0), wanted)

    @vd.map
    def first(x: f32) -> f32:
        return x + vc.constant_array(table)[0]

    for number in (0, 1):
        assert vd.asbuffer(first(out)).read(0)[1] == wanted[1]
        table[:] = number + 1


def test_another_array_under_the_name_is_noticed() -> None:
    tables, out = [floats(20), floats(20)], vd.Buffer(COUNT, vd.float32)
    table, factor = tables[0], np.ones(1, np.float32)

    @vd.shader("out.size")
    def gather(out: Buff[f32]) -> None:
        out[gid()] = vc.constant_array(table)[(gid() * 3 + 1) % table.size] * float(factor[0])

    for number in (0, 1, 0, 1):
        table, factor[0] = tables[number], number + 1
        gather(out)
        np.testing.assert_array_equal(out.read(0), gathered(tables[number]) * factor)


def test_copies_of_large_arrays_need_no_warning() -> None:
    table, out = floats(70_000), vd.Buffer(COUNT, vd.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gather(table)(out)
    np.testing.assert_array_equal(out.read(0), gathered(table))


def test_an_array_that_changes_while_the_kernel_is_traced_is_two() -> None:
    table = np.arange(4, dtype=np.int32)

    @vd.shader(4)
    def kernel(out: Buff[i32]) -> None:
        first = vc.constant_array(table)
        assert vc.constant_array(table).binding == first.binding
        table[:] += 10
        second = vc.constant_array(table)
        assert second.binding != first.binding
        out[gid()] = first[gid()] * 100 + second[gid()]

    out = vd.Buffer(4, vd.int32)
    kernel(out)
    assert out.read(0).tolist() == [10, 111, 212, 313]


def test_many_in_blocks_and_branches() -> None:
    tables = [vc.ConstantArray(np.arange(8, dtype=np.float32) * 10**power) for power in range(4)]

    @vd.shader("out.size")
    def kernel(out: Buff[f32]) -> None:
        i = gid()
        total = vc.new_float_register()
        for table in tables:
            total += vc.constant_array(table)[i % 8]
        if i % 2 == 0:
            total += vc.constant_array(tables[0])[0] + vc.constant_array(tables[3])[1]
        else:
            for j in range(i % 3):
                total += vc.constant_array(tables[2])[vc.to_uint(j)]
        out[i] = total

    assert len(kernel.shader_description.shader_arg_infos) == 1 + len(tables)
    out, i = vd.Buffer(40, vd.float32), np.arange(40)
    kernel(out)
    odd = np.array([sum(100 * j for j in range(k % 3)) for k in i])
    np.testing.assert_array_equal(out.read(0), i % 8 * 1111 + np.where(i % 2 == 0, 1000, odd))


def test_before_the_arguments_are_declared() -> None:
    table = floats(16)
    with vc.shader_context() as context:
        known = vc.constant_array(table, "table")
        (out,) = context.declare_input_arguments([Buff[f32]], ["out"])
        out[gid()] = known[gid() % 16]
    description = context.get_description("early")
    assert [info.name for info in description.shader_arg_infos] == ["out", "table"]
    assert [info.binding for info in description.shader_arg_infos] == [1, 0]
    kernel, out = vd.make_shader_function(description), vd.Buffer(COUNT, vd.float32)
    for _ in range(2):
        kernel(out, exec_size=COUNT)
    np.testing.assert_array_equal(out.read(0), np.resize(table, COUNT))


# ---- how it is called


@dataclass
class Scale:
    factor: vd.float32
    offset: vd.float32


def test_arguments_by_position_by_name_and_by_default() -> None:
    table = floats(10)

    @vd.shader(lambda args: args.out.size, local_size=17)
    def kernel(out: Buff[f32], factor: Const[f32] = 2.0, offset: Const[f32] = 0.0) -> None:
        out[gid()] = vc.constant_array(table)[gid() % 10] * factor + offset

    out, base = vd.Buffer(COUNT, vd.float32), np.resize(table, COUNT)
    for args, options, wanted in [
        ((out,), {}, base * 2),
        ((out, 3.0), {}, base * 3),
        ((out, 3.0, 1.0), {}, base * 3 + 1),
        ((out,), {"offset": 1.0, "factor": 1.0}, base + 1),
        ((), {"out": out, "queue_index": 0}, base * 2),
        ((out, 1.0, 2.0), {"exec_size": COUNT}, base + 2),
        ((out, 1.0, 2.0), {"workgroups": COUNT // 17}, base + 2),
    ]:
        for _ in range(2):
            out.write(np.zeros(COUNT, np.float32))
            kernel(*args, **options)
            np.testing.assert_allclose(out.read(0), wanted, rtol=1e-6, atol=1e-6)
    for args, options in [((out, 1.0, 1.0, out), {}), ((out,), {"constant0": out}), ((), {})]:
        with pytest.raises((TypeError, ValueError)) as caught:
            kernel(*args, **options)
        assert "3 arguments" in str(caught.value) or "argument" in str(caught.value)
    with pytest.raises(TypeError, match="takes 3 arguments"):
        kernel(out, 1.0, 1.0, vd.asbuffer(table))


def test_later_calls_take_the_fast_path() -> None:
    table, out = floats(10), vd.Buffer(COUNT, vd.float32)
    kernel: Any = gather(table)
    kernel.build()
    assert kernel._kernel.fast().run((out,), kernel._kernel.size, None)
    np.testing.assert_array_equal(out.read(0), gathered(table))
    graph = vd.CommandGraph()
    assert kernel._kernel.fast().run((out,), kernel._kernel.size, graph)
    out.write(np.zeros(COUNT, np.float32))
    graph.submit()
    np.testing.assert_array_equal(out.read(0), gathered(table))


def test_dataclasses_and_names_that_are_taken() -> None:
    table = floats(10)

    @vd.shader("constant0.size")
    def kernel(constant0: Buff[f32], scale: Scale) -> None:
        constant0[gid()] = vc.constant_array(table)[gid() % 10] * scale.factor + scale.offset

    assert [info.name for info in kernel.shader_description.shader_arg_infos][2] == "constant0_1"
    out = vd.Buffer(COUNT, vd.float32)
    kernel(out, Scale(2, 1))
    np.testing.assert_allclose(out.read(0), np.resize(table, COUNT) * 2 + 1, rtol=1e-6)


def test_a_default_that_is_a_constant_array_stays_an_argument() -> None:
    default: Any = vc.ConstantArray(floats(3))

    @vd.shader("out.size")
    def kernel(out: Buff[f32], other: Buff[f32] = default) -> None:
        out[gid()] = other[gid() % 3]

    with pytest.raises(ValueError, match=r"other.*expected a vd\.Buffer"):
        kernel(vd.Buffer(3, vd.float32))


@pytest.mark.parametrize("form", ["", "addressed", "wide", "coarse", "wide,coarse"])
def test_forms(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "_FORCED", frozenset(filter(None, form.split(","))))
    table, square = floats(12), floats(3, 4)

    @vd.shader("out.size")
    def kernel(out: Buff[f32], x: Buff[f32]) -> None:
        i = gid()
        out[i] = x[i] * vc.constant_array(table)[i % 12] + vc.constant_array(square)[i % 3, i % 4]

    x, i = floats(COUNT), np.arange(COUNT)
    out, data = vd.Buffer(COUNT, vd.float32), vd.asbuffer(x)
    for _ in range(2):
        kernel(out, data)
        np.testing.assert_allclose(
            out.read(0), x * table[i % 12] + square[i % 3, i % 4], rtol=1e-5, atol=1e-6
        )
    (built,) = {variant for _, variant in kernel._built}
    assert built.wide == ("wide" in form and building.can_address(vd.get_context()))
    assert (built.coarse > 1) == ("coarse" in form)


def test_more_arguments_than_push_constants_hold() -> None:
    table = floats(12)

    @vd.shader("out.size")
    def kernel(out: Buff[f32], a: Const[vd.mat4], b: Const[vd.mat4], x: Const[f32]) -> None:
        out[gid()] = vc.constant_array(table)[gid() % 12] + a[0][0] + b[1][1] + x

    assert kernel.shader_description.resource_binding_base == 1
    out = vd.Buffer(COUNT, vd.float32)
    for _ in range(2):
        kernel(out, np.eye(4), np.eye(4), 1.0)
    np.testing.assert_allclose(out.read(0), np.resize(table, COUNT) + 3, rtol=1e-6)


# ---- graphs, checks, tools


@pytest.mark.parametrize("check", [False, True])
def test_graphs_keep_the_arrays_alive(check: bool) -> None:
    table, out = floats(21), vd.Buffer(COUNT, vd.float32)
    graph = vd.CommandGraph()
    kernel: Any = gather(table, check=check)
    kernel(out, graph=graph)
    vd.set_global_graph(graph)
    try:
        kernel(out)
    finally:
        vd.set_global_graph(None)
    array, copy = weakref.ref(kernel._kernel.constants[0]), weakref.ref(copies(kernel._kernel.constants[0]))
    del kernel
    gc.collect()
    assert copy() is not None
    # what is recorded of a checked kernel is no kernel that could be fused
    assert (array() is None) == check
    for _ in range(2):
        out.write(np.zeros(COUNT, np.float32))
        # whoever takes the memory of the array, if it was given back
        others = [vd.asbuffer(np.full(21, 7, np.float32)) for _ in range(20)]
        graph.submit(2)
        np.testing.assert_array_equal(out.read(0), gathered(table))
        del others
    graph.reset()
    gc.collect()
    assert copy() is None


def test_bound_variables_and_instances() -> None:
    table = floats(COUNT)

    @vd.shader("out.size")
    def kernel(out: Buff[f32], factor: vc.Var[f32]) -> None:
        out[gid()] += vc.constant_array(table)[gid()] * factor

    out, graph = vd.asbuffer(np.zeros(COUNT, np.float32)), vd.CommandGraph()
    kernel(out, graph.bind_var("factor"), graph=graph)
    graph.set_var("factor", [1.0, 2.0, 4.0])
    graph.submit(3)
    np.testing.assert_allclose(out.read(0), table * 7, rtol=1e-5, atol=1e-6)


def test_fusion() -> None:
    table, other = vc.ConstantArray(floats(16)), vc.ConstantArray(floats(COUNT))

    @vd.shader("out.size")
    def first(x: Buff[f32], out: Buff[f32]) -> None:
        out[gid()] = x[gid()] * vc.constant_array(table)[gid() % 16]

    @vd.shader("out.size")
    def second(x: Buff[f32], out: Buff[f32], offset: Const[f32]) -> None:
        i = gid()
        out[i] = x[i] + vc.constant_array(other)[i] * vc.constant_array(table)[(i * 5) % 16] + offset

    x = floats(COUNT)
    data, between, out = vd.asbuffer(x), vd.Buffer(COUNT, vd.float32), vd.Buffer(COUNT, vd.float32)
    graph, i = vd.CommandGraph(), np.arange(COUNT)
    first(data, between, graph=graph)
    second(between, out, 0.5, graph=graph)
    second(out, out, 1.0, graph=graph)
    assert graph.optimize([between]) == 2
    graph.submit()
    added = other.array * table.array[i * 5 % 16]
    wanted = x * table.array[i % 16] + added + 0.5 + added + 1.0
    np.testing.assert_allclose(out.read(0), wanted, rtol=1e-5, atol=1e-5)
    (recorded,) = graph._recorded.dispatches()
    code = str(recorded[0].description.make_source(1, 1, 1))  # type: ignore[union-attr]
    # the table that both use is bound once
    assert code.count("readonly buffer") == 2


def test_interpreter() -> None:
    table, square, waves = floats(12), floats(3, 4), (floats(5) + 1j * floats(5)).astype(np.complex64)

    @vd.shader(lambda args: args.out.size)
    def kernel(out: Buff[c64], factor: Const[f32]) -> None:
        i = gid()
        real = vc.constant_array(table)[i % 12] + vc.constant_array(square)[i % 3, i % 4]
        out[i] = vc.constant_array(waves)[i % 5] * real * factor

    i, out = np.arange(COUNT), np.zeros(COUNT, np.complex64)
    kernel.interpret(out, 2.0, check=True, races=True)
    wanted = waves[i % 5] * (table[i % 12] + square[i % 3, i % 4]) * 2
    np.testing.assert_allclose(out, wanted, rtol=1e-5)


def _line(marker: str) -> int:
    lines = Path(__file__).read_text().splitlines()
    (found,) = [number for number, text in enumerate(lines, 1) if text.endswith(f"# {marker}")]
    return found


@pytest.mark.parametrize("interpreted", [False, True])
def test_checks(interpreted: bool) -> None:
    table = floats(10)

    @vd.shader("out.size", check=True)
    def kernel(out: Buff[f32], shift: Const[u32]) -> None:
        out[gid()] = vc.constant_array(table, "weights")[gid() + shift]  # beyond

    buffer, host = vd.Buffer(6, vd.float32), np.zeros(6, np.float32)
    given: Any = host if interpreted else buffer
    call: Callable[..., None] = kernel.interpret if interpreted else kernel
    for _ in range(2):
        call(given, 4)
    np.testing.assert_array_equal(host if interpreted else buffer.read(0), table[4:])
    with pytest.raises(vd.BoundsError) as caught:
        call(given, 5)
    assert "index 10" in str(caught.value) and "'weights'" in str(caught.value)
    assert f":{_line('beyond')}" in str(caught.value)
    graph = vd.CommandGraph()
    kernel(buffer, 3, graph=graph)
    graph.submit()
    np.testing.assert_array_equal(buffer.read(0), table[3:9])


def test_checks_of_axes() -> None:
    square = floats(3, 4)

    @vd.shader("out.size", check=True)
    def kernel(out: Buff[f32]) -> None:
        out[gid()] = vc.constant_array(square)[gid(), 1]

    out = vd.Buffer(3, vd.float32)
    kernel(out)
    np.testing.assert_array_equal(out.read(0), square[:, 1])
    with pytest.raises(vd.BoundsError, match=r"shape \(3, 4\)"):
        kernel(vd.Buffer(4, vd.float32))


def test_autotune(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VKDISPATCH_CACHE", str(tmp_path))
    monkeypatch.setattr(autotune, "_SECONDS", 0.0)
    table, out = floats(33), vd.Buffer(COUNT, vd.float32)
    kernel = gather(table)
    assert kernel.autotune(out) in autotune.list_candidates(vd.get_context())
    kernel(out)
    np.testing.assert_array_equal(out.read(0), gathered(table))


def test_profile() -> None:
    table, out = floats(COUNT), vd.Buffer(COUNT, vd.float32)

    @vd.shader("out.size")
    def kernel(out: Buff[f32]) -> None:
        out[gid()] = vc.constant_array(table)[gid()]

    kernel(out)
    with vd.profile() as profile:
        kernel(out)
    (record,) = profile.records
    assert (record.bytes_read, record.bytes_written, record.precision) == (4 * COUNT, 4 * COUNT, "exact")


def test_the_source_and_the_description() -> None:
    kernel = gather(np.arange(3, dtype=np.float32))
    assert "readonly buffer Buffer1 { float data[]; } buf1;  // constant0" in kernel.get_src(build=False).code
    (out, table) = kernel.shader_description.shader_arg_infos
    assert (out.arg_type, table.arg_type) == (vc.ArgType.BUFFER, vc.ArgType.CONSTANT_ARRAY)
    assert isinstance(table.default_value, vc.ConstantArray) and table.dtype is vd.float32
    assert kernel.shader_description.get_arg_names_and_defaults()[1][0] == "constant0"
    assert kernel.shader_description.binding_access == [(False, True), (True, False)]
    assert "<vc.ConstantArray of float32, shape (3,)>" in repr(kernel.shader_description)
    assert "constant0" in repr(kernel)


# ---- one copy for each context


def copies(constant: vc.ConstantArray) -> Any:
    return vd.get_context()._states.get(constant)


def test_kernels_share_a_copy_that_goes_with_the_array() -> None:
    constant: Any = vc.ConstantArray(floats(12))
    first, second = gather(constant), gather(constant)
    assert copies(constant) is None
    out = vd.Buffer(COUNT, vd.float32)
    first(out)
    copy = copies(constant)
    second(out)
    assert copies(constant) is copy
    states = vd.get_context()._states
    known, alive = len(states), weakref.ref(copy)
    del copy, first, second, constant
    gc.collect()
    assert alive() is None and len(states) < known


def test_a_context_made_again() -> None:
    table = floats(12)
    kernel, checked = gather(table), gather(table, check=True)
    for _ in range(3):
        out = vd.Buffer(COUNT, vd.float32)
        for each in (kernel, kernel, checked):
            out.write(np.zeros(COUNT, np.float32))
            each(out)
            np.testing.assert_array_equal(out.read(0), gathered(table))
        destroy_context()


def test_threads() -> None:
    constant = vc.ConstantArray(floats(1000))
    kernels = [gather(constant) for _ in range(4)]
    results: list[Array] = []
    start = threading.Barrier(len(kernels))

    def work(kernel: vd.ShaderFunction) -> None:
        out = vd.Buffer(COUNT, vd.float32)
        start.wait()
        for _ in range(5):
            kernel(out)
        results.append(out.read(0))

    threads = [threading.Thread(target=work, args=(kernel,)) for kernel in kernels]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == len(kernels)
    for result in results:
        np.testing.assert_array_equal(result, gathered(constant.array))


KERNEL = """
import numpy as np, vkdispatch as vd, vkdispatch.codegen as vc
table = np.arange(10, dtype=np.float32)
@vd.shader("out.size")
def kernel(out: vc.Buff[vc.f32]):
    out[vc.global_invocation_id().x] += vc.constant_array(table)[vc.global_invocation_id().x]
"""


def test_every_queue_has_the_array(run_python: RunPython) -> None:
    done = run_python(
        KERNEL + "vd.make_context(device_ids=0, queue_counts=3)\n"
        "out = vd.asbuffer(np.zeros(10, np.float32))\n"
        "kernel(out); kernel(out, queue_index=1); kernel(out); kernel(out, queue_index=2)\n"
        "kernel(out, queue_index=2); kernel(out, queue_index=None)\n"
        "for queue in range(3):\n"
        "    assert np.array_equal(out.read(queue), table * (3 + queue)), (queue, out.read(queue))\n"
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_dummy_backend(run_python: RunPython) -> None:
    done = run_python(
        KERNEL + "vd.initialize(backend='dummy')\n"
        "assert 'readonly buffer Buffer1' in kernel.get_src().code\n"
        "host = np.zeros(10, np.float32); kernel.interpret(host); assert (host == table).all()\n"
    )
    assert (done.returncode, done.stderr) == (0, "")


# ---- errors


@pytest.mark.parametrize(
    ("array", "error", "text"),
    [
        ([1, 2, 3], TypeError, "expected a NumPy array, got list"),
        (None, TypeError, "NoneType"),
        (np.float32(3), TypeError, "float32"),
        (np.zeros(0, np.float32), ValueError, "at least one element"),
        (np.zeros((3, 0), np.float32), ValueError, r"\(3, 0\)"),
        (np.array(["a"]), ValueError, "dtype"),
        (np.array([object()]), ValueError, "no plain numbers"),
        (np.zeros(3, [("a", "f4")]), ValueError, "no plain numbers"),
        (np.zeros(3, np.longdouble), ValueError, "no vkdispatch dtype"),
        (np.zeros(3, "M8[s]"), ValueError, "no vkdispatch dtype"),
    ],
)
def test_arrays_that_are_none(array: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text) as caught:
        gather(array)
    assert "test_constant_array.py:" in str(caught.value)
    with pytest.raises(error, match=text):
        vc.ConstantArray(array)


STORES: list[Callable[[Any], Any]] = [
    lambda table: table.__setitem__(0, 1),
    lambda table: table.__setitem__((1, 2), 1),
    lambda table: table.__setitem__(gid(), table[1] + 1),
    lambda table: table[0].__setattr__("real", 1),
    lambda table: vc.atomic_add(vc.constant_array(np.arange(3, dtype=np.int32))[0], 1),
    lambda table: vc.constant_array(np.zeros(3, np.float32))[1].__iadd__(1) and table.__setitem__(0, 2),
]


@pytest.mark.parametrize("store", STORES)
def test_nothing_is_stored(store: Callable[[Any], Any]) -> None:
    def kernel(out: Buff[f32]) -> None:
        table = vc.constant_array(np.zeros((2, 3), np.complex64))
        assert not table.settable and not table[0].settable and out.settable
        store(table)

    with pytest.raises((ValueError, TypeError), match="constant"):
        vd.shader("out.size")(kernel)


def test_an_element_is_a_value_to_compute_with() -> None:
    table = np.arange(8, dtype=np.float32)

    @vd.shader(8)
    def kernel(out: Buff[f32]) -> None:
        element = vc.constant_array(table)[gid()]
        element += 1
        out[gid()] = element * vc.constant_array(table)[gid()]

    out = vd.Buffer(8, vd.float32)
    kernel(out)
    np.testing.assert_array_equal(out.read(0), (table + 1) * table)


@pytest.mark.parametrize("index", [12, -1, (3, 0), (0, 4), (0, 0, 0), slice(2)])
def test_constant_indices_are_checked(index: Any) -> None:
    def kernel(out: Buff[f32]) -> None:
        out[0] = vc.constant_array(np.zeros((3, 4), np.float32))[index]

    with pytest.raises((IndexError, ValueError)):
        vd.shader("out.size")(kernel)


@pytest.mark.parametrize("name", ["", 3])
def test_names(name: Any) -> None:
    with vc.shader_context(), pytest.raises(TypeError, match="var_name"):
        vc.constant_array(np.zeros(3), name)


def test_outside_of_a_kernel() -> None:
    with pytest.raises(RuntimeError, match="while a kernel is traced"):
        vc.constant_array(np.zeros(3))
    assert "Parameters" in (inspect.getdoc(vc.constant_array) or "")
