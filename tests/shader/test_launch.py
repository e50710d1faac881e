"""Kernels called in every way: launch sizes, arguments, defaults, graphs of other tests aside."""

from __future__ import annotations

import math
import subprocess
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import Buff, Const, Var, c64, f32, f64, i32, i64, iv2, u32, v2, v3, v4

RunPython = Callable[..., subprocess.CompletedProcess[str]]

SIZES = [1, 2, 7, 255, 256, 257, 1000, 4099]


def zeros(size: Any, host: Any = np.float32) -> vd.Buffer[Any]:
    return vd.asbuffer(np.zeros(size, host))


def ones_written(buffer: vd.Buffer[Any]) -> int:
    return int(np.count_nonzero(buffer.read(0)))


@vd.shader("data.size")
def increment(data: Buff[f32]) -> None:
    i = vc.global_invocation_id().x
    data[i] = data[i] + 1


@vd.shader()
def mark(data: Buff[f32]) -> None:
    gid = vc.global_invocation_id()
    data[gid.x + gid.y * 64 + gid.z * 4096] = 1


@vd.shader("out.size")
def affine(out: Buff[f32], a: Buff[f32], scale: Const[f32], offset: Var[f32] = 0.5) -> None:
    i = vc.global_invocation_id().x
    out[i] = a[i] * scale + offset


# -- launch sizes


@pytest.mark.parametrize("size", SIZES)
def test_sizes(size: int) -> None:
    data = vd.asbuffer(np.arange(size, dtype=np.float32))
    increment(data)
    increment(data)
    np.testing.assert_array_equal(data.read(0), np.arange(size) + 2)


@pytest.mark.parametrize(
    ("exec_size", "count"),
    [
        (5, 5),
        (np.int64(5), 5),
        ((5,), 5),
        ((5, 3), 15),
        ((5, 3, 2), 30),
        ((np.uint8(5), 3), 15),
        ("data.size - 8192", 1000),
        ("5", 5),
        ("(5, 3)", 15),
        ("5, 3", 15),
        ("\n  5,\n  3", 15),
        ("min(data.shape[0], 7)", 7),
        (lambda args: args.data.size - 8192, 1000),
        (lambda args: (5, 3), 15),
        (lambda args: args["data"].size - 9182, 10),
    ],
)
@pytest.mark.parametrize("where", ["call", "decorator"])
def test_exec_size(exec_size: Any, count: int, where: str) -> None:
    data = zeros(9192)
    if where == "call":
        mark(data, exec_size=exec_size)
    else:
        kernel = vd.shader(exec_size)(_mark_body)
        kernel(data)
        kernel(data)
    assert ones_written(data) == count


def _mark_body(data: Buff[f32]) -> None:
    gid = vc.global_invocation_id()
    data[gid.x + gid.y * 64 + gid.z * 4096] = 1


@pytest.mark.parametrize(
    ("workgroups", "local_size", "count"),
    [
        (2, 16, 32),
        ((2,), (16,), 32),
        ((2, 3), (4, 2), 8 * 6),
        ((1, 2, 2), (4, 4, 1), 4 * 8 * 2),
        ("len(data.shape) * 2", [16, 1, 1], 32),
        (lambda args: len(args.data.shape), (8, 8, 1), 64),
    ],
)
def test_workgroups(workgroups: Any, local_size: Any, count: int) -> None:
    data = zeros(9192)
    vd.shader(workgroups=workgroups, local_size=local_size)(_mark_body)(data)
    assert ones_written(data) == count
    again = zeros(9192)
    vd.shader(local_size=local_size)(_mark_body)(again, workgroups=workgroups)
    assert ones_written(again) == count


def test_workgroups_without_local_size_fill_the_device() -> None:
    most = vd.get_context().max_workgroup_size[0]

    @vd.shader(workgroups=2)
    def count(data: Buff[u32]) -> None:
        data[vc.global_invocation_id().x] = vc.workgroup_size().x

    data = zeros(2 * most + 5, np.uint32)
    count(data)
    read = data.read(0)
    assert (read[: 2 * most] == most).all() and not read[2 * most :].any()
    assert count.bounds is not None and count.bounds.local_size == (most, 1, 1)


def test_both_kinds_of_size_on_one_kernel() -> None:
    @vd.shader("data.size")
    def sizes(data: Buff[u32]) -> None:
        data[vc.global_invocation_id().x] = vc.workgroup_size().x

    data = zeros(5000, np.uint32)
    sizes(data)
    most = vd.get_context().max_workgroup_size[0]
    assert (data.read(0) == most).all()
    data = zeros(5000, np.uint32)
    sizes(data, workgroups=1)
    np.testing.assert_array_equal(data.read(0) == most, np.arange(5000) < most)


def test_call_beats_decorator() -> None:
    data = zeros(100)
    increment(data, exec_size=7)
    assert ones_written(data) == 7
    data = zeros(9192)
    kernel = vd.shader("data.size", local_size=4)(_mark_body)
    kernel(data, workgroups=3)
    assert ones_written(data) == 12


def test_no_exec_bounds() -> None:
    kernel = vd.shader(5, local_size=8, flags=vc.ShaderFlags.NO_EXEC_BOUNDS)(_mark_body)
    data = zeros(9192)
    kernel(data)
    assert ones_written(data) == 8


@pytest.mark.parametrize(
    "size",
    [
        -1,
        (0, -1),
        "-data.size",
        1.5,
        "1.5",
        "'a'",
        (),
        (1, 2, 3, 4),
        [4],
        ("4",),
        True,
        b"4",
        lambda args: None,
        lambda args: [1],
    ],
)
@pytest.mark.parametrize("option", ["exec_size", "workgroups"])
def test_bad_sizes(size: Any, option: str) -> None:
    data = zeros(4)
    with pytest.raises(ValueError, match=option):
        mark(data, **{option: size})
    with pytest.raises(ValueError, match=option):
        vd.shader(**{option: size})(_mark_body)(data)
    assert not data.read(0).any()


@vd.shader("data.size", check=True)
def increment_checked(data: Buff[f32]) -> None:
    i = vc.global_invocation_id().x
    data[i] = data[i] + 1


@pytest.mark.parametrize(
    "size", [0, (0,), (4, 0), (1, 1, 0), np.int64(0), "data.size - 4", lambda args: (4, args.data.size - 4)]
)
@pytest.mark.parametrize("option", ["exec_size", "workgroups"])
def test_a_launch_of_no_invocations_does_nothing(size: Any, option: str) -> None:
    data, graph, host = zeros(4), vd.CommandGraph(), np.zeros(4, np.float32)
    engine = data.context._native
    mark(data, exec_size=1)
    before = engine.statistics()["commands"]
    for kernel in (mark, increment_checked, vd.shader(**{option: size})(_mark_body)):
        for _ in range(2):
            kernel(data, **{option: size})
            kernel(data, graph=graph, **{option: size})
            kernel.interpret(host, **{option: size})
    assert engine.statistics()["commands"] == before and graph.length == 0
    assert ones_written(data) == 1 and not host.any()
    with pytest.raises(TypeError, match="data"):  # the arguments are checked all the same
        mark(3, **{option: 0})
    mark(data, graph=graph, exec_size=4)
    graph.submit()
    assert ones_written(data) == 4


def test_kernels_on_no_elements_do_nothing() -> None:
    empty, graph = zeros(0), vd.CommandGraph()
    for kernel in (increment, increment_checked):
        kernel(empty)
        kernel(empty, graph=graph)
        kernel.interpret(np.zeros(0, np.float32))
    affine(empty, empty, 1.0)
    assert graph.length == 0


def test_size_errors_of_the_user_come_through() -> None:
    data = zeros(4)
    with pytest.raises(NameError):
        mark(data, exec_size="nothing")
    with pytest.raises(KeyError, match="nothing"):
        mark(data, exec_size=lambda args: args.nothing)
    with pytest.raises(AttributeError):
        mark(data, exec_size="data.nothing")
    with pytest.raises(ZeroDivisionError) as caught:
        mark(data, exec_size=lambda args: 1 // 0)
    assert "exec_size of mark" in caught.value.__notes__[0]
    with pytest.raises(ValueError, match="not a Python expression"):
        mark(data, exec_size="1 +")


@pytest.mark.parametrize("option", ["exec_size", "workgroups"])
def test_names_in_a_size_that_are_no_arguments(option: str) -> None:
    message = rf"{option}: 'dat\.size' names 'dat', which is no argument .*: its arguments are data; did you"
    with pytest.raises(NameError, match=message) as caught:
        vd.shader(**{option: "dat.size"})(_mark_body)
    assert isinstance(caught.value, vd.VkDispatchError) and "(test_launch.py:" in str(caught.value)
    with pytest.raises(NameError, match=message):
        mark(zeros(4), **{option: "dat.size"})
    with pytest.raises(
        AttributeError, match=rf"{option}: argument 'data' \(Buffer\) has no attribute 'sizes'"
    ):
        mark(zeros(4), **{option: "data.sizes"})
    # names that it binds itself, and Python's
    mark(zeros(4), **{option: "max(k for k in data.shape) + (lambda n: n * 0)(1)"})


def test_size_must_be_given_once() -> None:
    data = zeros(4)
    with pytest.raises(ValueError, match="no launch size"):
        mark(data)
    with pytest.raises(ValueError, match="not both"):
        mark(data, exec_size=1, workgroups=1)
    with pytest.raises(ValueError, match="not both"):
        vd.shader(exec_size=1, workgroups=1)
    with pytest.raises(ValueError, match="exec_size"):
        mark(data, exec_size=None)


@pytest.mark.parametrize(
    ("local_size", "error"),
    [
        ("8", TypeError),
        (1.5, TypeError),
        ((0,), ValueError),
        ((1, 2, 3, 4), ValueError),
        ((), ValueError),
        ((1.5,), ValueError),
    ],
)
def test_bad_local_sizes(local_size: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="local_size"):
        vd.shader(4, local_size=local_size)


def test_local_size_beyond_the_device() -> None:
    for size in ((1 << 20,), (1, 1, 1 << 20), (1024, 1024, 1)):
        kernel = vd.shader(4, local_size=size)(_mark_body)
        with pytest.raises(ValueError, match=r"local_size.*at most"):
            kernel(zeros(4))


# -- grids beyond the device's


@pytest.mark.parametrize("shape", [(100,), (17, 5), (5, 17), (2, 3, 19), (1, 40), (29, 1, 1)])
@pytest.mark.parametrize("local_size", [1, 4, (2, 2), (1, 2, 3)])
def test_folded_grids(shape: tuple[int, ...], local_size: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y, z = (*shape, 1, 1)[:3]
    # As if the device took only a few workgroups per axis.
    few = math.isqrt(x * y * z) + 1
    monkeypatch.setattr(vd.get_context(), "max_workgroup_count", (few, few, few))

    def count(data: Buff[u32]) -> None:
        gid, counts = vc.global_invocation_id(), vc.num_workgroups()
        i = gid.x + gid.y * x + gid.z * x * y
        data[i] = data[i] + counts.x * 100 + vc.workgroup_id().x + 1

    data = zeros(x * y * z + 10, np.uint32)
    vd.shader(shape, local_size=local_size)(count)(data)
    lx = local_size if isinstance(local_size, int) else local_size[0]
    ids = np.broadcast_to(np.arange(x) // lx, (z, y, x)).reshape(-1)
    expected = -(-x // lx) * 100 + ids + 1
    np.testing.assert_array_equal(data.read(0)[:-10], expected)
    assert not data.read(0)[-10:].any()


def test_a_truly_folded_grid() -> None:
    size = 65535 * 2 + 77
    data = zeros(size)
    kernel = vd.shader("data.size", local_size=1)(_increment_body)
    kernel(data)
    kernel(data)
    assert (data.read(0) == 2).all()


def _increment_body(data: Buff[f32]) -> None:
    i = vc.global_invocation_id().x
    data[i] = data[i] + 1


def test_folded_graph() -> None:
    size = 65535 * 2 + 77
    data = zeros(size)
    graph = vd.CommandGraph()
    kernel = vd.shader("data.size", local_size=1)(_increment_body)
    kernel(data, graph=graph)
    graph.submit(3)
    assert (data.read(0) == 3).all()


def test_grids_beyond_what_can_be_launched() -> None:
    data = zeros(4)
    for size in ((1, 2**33), (2**44,), (2**60,)):
        with pytest.raises(ValueError, match="exec_size"):
            mark(data, exec_size=size)
    with pytest.raises(ValueError, match="workgroups"):
        mark(data, workgroups=2**33)
    with pytest.raises(ValueError, match="at most"):
        mark(data, exec_size=(2**31, 2**31))


# -- arguments


def test_positions_names_and_defaults() -> None:
    a, out = vd.asbuffer(np.arange(5, dtype=np.float32)), zeros(5)
    expected = np.arange(5) * 2 + 0.5
    for call in (
        lambda: affine(out, a, 2.0),
        lambda: affine(out, a, 2.0, 0.5),
        lambda: affine(out=out, a=a, scale=2.0),
        lambda: affine(out, scale=2, a=a),
        lambda: affine(out, a, np.float64(2)),
        lambda: affine(out, a, np.array(2, np.int8)),
        lambda: affine(out, a, True, exec_size=1) or affine(out, a, 2, offset=0.5),
    ):
        out.write(np.zeros(5, np.float32))
        call()
        np.testing.assert_array_equal(out.read(0), expected)


@pytest.mark.parametrize(
    ("arguments", "named", "error", "text"),
    [
        ((), {}, ValueError, "'out' is missing"),
        (("OUT", "A"), {}, ValueError, "'scale' is missing"),
        (("OUT", "A", 1.0, 2.0, 3.0), {}, TypeError, "takes 4 arguments"),
        (("OUT", "A", 1.0), {"sacle": 1.0}, TypeError, "no argument 'sacle'"),
        (("OUT", "A", 1.0), {"scale": 1.0}, TypeError, "twice"),
        ((1.0, "A", 1.0), {}, ValueError, "'out'.*expected a vd.Buffer, got float 1.0"),
        ((np.zeros(8, np.float32)[::2], "A", 1.0), {}, ValueError, "from_dlpack"),
        (([0.0] * 4, "A", 1.0), {}, ValueError, "asbuffer"),
        (("OUT", None, 1.0), {}, ValueError, "'a'"),
        (("OUT", "A", None), {}, TypeError, "'scale'.*float32"),
        (("OUT", "A", "2"), {}, TypeError, "'scale'"),
        (("OUT", "A", 2j), {}, TypeError, "'scale'"),
        (("OUT", "A", (1.0, 2.0)), {}, ValueError, "'scale'"),
        (("OUT", "A", [1.0]), {}, ValueError, "'scale'"),
        (("OUT", "A", "OUT"), {}, (TypeError, ValueError), "'scale'"),
        (("OUT", "A", len), {}, ValueError, "'scale'"),
        (("OUT", "A", 1.0, None), {}, TypeError, "'offset'"),
        (("OUT", "A", 1.0), {"graph": 3}, ValueError, "graph"),
    ],
)
def test_bad_arguments(arguments: Any, named: Any, error: Any, text: str) -> None:
    buffers = {"OUT": zeros(4), "A": zeros(4)}
    values = [buffers.get(value, value) if isinstance(value, str) else value for value in arguments]
    for _ in range(2):
        with pytest.raises(error, match=text) as caught:
            affine(*values, **named)
        assert "affine (test_launch.py:" in str(caught.value)
        assert isinstance(caught.value, vd.VkDispatchError)
        # Bad values never poison: a good call works right after.
        affine(buffers["OUT"], buffers["A"], 1.0)
    np.testing.assert_array_equal(buffers["OUT"].read(0), np.full(4, 0.5))


def test_destroyed_buffers_are_refused() -> None:
    data = zeros(4)
    increment(data)
    data.destroy()
    with pytest.raises(RuntimeError, match=r"'data'.*destroyed"):
        increment(data)


def test_buffers_of_another_dtype() -> None:
    for host in (np.zeros(4, np.uint32), np.zeros(4), np.zeros(4, np.complex128)):
        other = vd.asbuffer(host)
        for graph in (None, vd.CommandGraph()):
            with pytest.raises(
                TypeError, match=r"'\w+': expected elements of float32, the buffer has "
            ) as caught:
                increment(other, graph=graph)
            assert f"has {other.var_type.name}" in str(caught.value)
        np.testing.assert_array_equal(other.read(0), host)


def test_views_reinterpret() -> None:
    bits = vd.asbuffer(np.zeros(4, np.uint32))
    increment(bits.view(vd.float32))
    np.testing.assert_array_equal(bits.read(0).view(np.float32), np.ones(4))


def test_complex_numbers_are_pairs() -> None:
    @vd.shader("data.size")
    def swap(data: Buff[v2]) -> None:
        i = vc.global_invocation_id().x
        data[i] = vc.to_vec2(data[i].y, data[i].x)

    host = np.arange(70) + 2j * np.arange(70)
    numbers = vd.asbuffer(host.astype(np.complex64))
    swap(numbers)
    np.testing.assert_array_equal(numbers.read(0), (host.imag + 1j * host.real).astype(np.complex64))


def test_components_count() -> None:
    @vd.shader("data.size")
    def first(data: Buff[v4]) -> None:
        data[vc.global_invocation_id().x].x = 7

    rows = vd.asbuffer(np.zeros((1024, 4), np.float32))
    with pytest.raises(TypeError, match=r"'data': expected elements of vec4, the buffer has float32.*\.view"):
        first(rows)
    first(rows.view(vd.vec4))
    np.testing.assert_array_equal(rows.read(0), np.tile(np.float32([7, 0, 0, 0]), (1024, 1)))


def test_one_memory_as_two_types() -> None:
    @vd.shader("a.size")
    def mix(a: Buff[f32], b: Buff[u32]) -> None:
        i = vc.global_invocation_id().x
        a[i] = b[i].to_dtype(vd.float32)

    data = vd.asbuffer(np.arange(5, dtype=np.float32))
    for _ in range(2):
        with pytest.raises(ValueError, match="'a' and argument 'b' share memory, as float32 and as uint32"):
            mix(data, data.view(vd.uint32))
    mix(data, vd.asbuffer(np.arange(5, dtype=np.uint32)))
    with pytest.raises(ValueError, match="share memory"):
        mix(data, data.view(vd.uint32))
    np.testing.assert_array_equal(data.read(0), np.arange(5))


def test_the_same_buffer_twice() -> None:
    data = vd.asbuffer(np.arange(300, dtype=np.float32))
    affine(data, data, 3.0, 1.0)
    affine(data, data, 2.0, 0.0)
    np.testing.assert_array_equal(data.read(0), (np.arange(300) * 3 + 1) * 2)


def test_shapes_in_kernels() -> None:
    @vd.shader("data.size")
    def shapes(data: Buff[f32], out: Buff[i32]) -> None:
        with vc.if_block(vc.global_invocation_id().x == 0):
            for axis in range(4):
                out[axis] = data.shape[axis]

    for shape in ((), (7,), (2, 3), (2, 3, 4)):
        out = zeros(4, np.int32)
        shapes(zeros(shape), out)
        np.testing.assert_array_equal(out.read(0), (*(*shape, 1, 1, 1)[:3], int(np.prod(shape))))


# -- constants and variables of every dtype

VALUES: dict[str, Any] = {
    "int16": -5,
    "uint16": 65535,
    "int32": -(2**31),
    "uint32": 2**32 - 1,
    "int64": -(2**63),
    "uint64": 2**64 - 1,
    "float16": 0.5,
    "float32": 1.25,
    "float64": 0.1,
    "complex64": 1 + 2j,
    "complex128": 0.1 - 0.2j,
    "vec2": (1, 2),
    "vec3": (1, 2, 3),
    "vec4": [1, 2, 3, 4],
    "dvec3": np.array([0.1, 0.2, 0.3]),
    "ivec2": (-1, 2),
    "ivec3": (-1, 2, -3),
    "ivec4": (-1, 2, -3, 4),
    "uvec2": (1, 2),
    "uvec3": (1, 2, 3),
    "uhvec3": (1, 2, 3),
    "ihvec3": (-1, 2, -3),
    "hvec3": (0.5, 1, 2),
    "mat2": [[1, 2], [3, 4]],
    "mat3": np.arange(9).reshape(3, 3),
    "mat4": np.arange(16).reshape(4, 4),
}


def _host(kind: Any, value: Any) -> np.ndarray[Any, Any]:
    buffer = vd.Buffer(1, kind)
    return np.asarray(value).astype(buffer.read(0).dtype)


def supported(*names: str) -> bool:
    """Whether the device has these types, also as arguments."""
    info = vd.get_context().device_infos[0]
    for name in names:
        short = "16" in name or name.startswith(("h", "ih", "uh"))
        if short and not (
            info.storage_push_constant_16
            and info.uniform_and_storage_buffer_16_bit_access
            and info.storage_buffer_16_bit_access
            and (info.float_16_support if "float" in name or name.startswith("h") else info.int_16_support)
        ):
            return False
        if name.startswith(("float64", "complex128", "dvec")) and not info.float_64_support:
            return False
        if name in ("int64", "uint64") and not info.int_64_support:
            return False
    return True


@pytest.mark.parametrize(
    "kinds",
    [(name,) for name in VALUES]
    + [
        ("vec3", "float64"),
        ("float64", "vec3", "float64"),
        ("vec3", "int64", "ivec3", "uint64"),
        ("int16", "float64", "vec3", "int16", "mat3"),
        ("hvec3", "dvec3", "uhvec3", "float32"),
        ("mat4", "mat4"),
        ("mat4", "mat3", "vec3", "float64"),
        tuple(VALUES),
    ],
    ids="-".join,
)
@pytest.mark.parametrize("annotation", [vc.Constant, vc.Variable], ids=["Const", "Var"])
def test_values_arrive(kinds: tuple[str, ...], annotation: Any) -> None:
    if not supported(*kinds):
        pytest.skip("the device lacks a type")
    dtypes = [getattr(vd, name) for name in kinds]
    count = len(kinds)

    def store(*variables: Any) -> None:
        for buffer, value in zip(variables[:count], variables[count:], strict=True):
            buffer[0] = value

    kernel = vd.shader(
        1, arg_type_annotations=[Buff[kind] for kind in dtypes] + [annotation[kind] for kind in dtypes]
    )(store)
    buffers = [vd.Buffer(1, kind) for kind in dtypes]
    for _ in range(2):
        for buffer in buffers:
            buffer.write(bytes(buffer.mem_size))
        kernel(*buffers, *(VALUES[name] for name in kinds))
        for name, kind, buffer in zip(kinds, dtypes, buffers, strict=True):
            np.testing.assert_array_equal(buffer.read(0)[0], _host(kind, VALUES[name]), err_msg=name)


def test_many_arguments_go_through_uniform_memory() -> None:
    def store(out: Any, *values: Any) -> None:
        for index, value in enumerate(values):
            out[index] = value

    kernel = vd.shader(1, arg_type_annotations=[Buff[f32]] + [Const[f32]] * 40)(store)
    out = zeros(40)
    for shift in range(50):
        kernel(out, *(float(i + shift) for i in range(40)))
        if shift % 10 == 0:
            np.testing.assert_array_equal(out.read(0), np.arange(40) + shift)
    np.testing.assert_array_equal(out.read(0), np.arange(40) + 49)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (i32, 2**31),
        (i32, -(2**31) - 1),
        (u32, -1),
        (u32, 2**32),
        (i64, 2**63),
        (i32, float("nan")),
        (v3, (1, 2)),
        (v2, 1.0),
        (i32, 3.9),
        (i32, np.float32(-7.5)),
        (v2, (1.0, 1e39)),
        (v2, (1, 2**24 + 1)),
        (iv2, np.array([1.0, 2.5])),
        (f32, 1e39),
        (f32, 2**24 + 1),
        (f32, np.int64(2**40 + 1)),
        (c64, 1e39j),
    ],
)
def test_values_that_do_not_fit(kind: Any, value: Any) -> None:
    kernel = vd.shader(1, arg_type_annotations=[Buff[kind], Const[kind]], arg_names=["out", "x"])(_store_body)
    with pytest.raises(ValueError, match="argument 'x'"):
        kernel(vd.Buffer(1, kind), value)


@pytest.mark.parametrize("kind", [vd.int16, u32, i32, i64, vd.uint64])
@pytest.mark.parametrize("value", [2.9, np.float32(2.5), np.array(2.9)])
def test_later_calls_check_numbers_too(kind: Any, value: Any) -> None:
    kernel = vd.shader(1, arg_type_annotations=[Buff[kind], Const[kind]], arg_names=["out", "x"])(_store_body)
    out = vd.Buffer(1, kind)
    for right in (2, np.int64(3), True, 4.0):
        kernel(out, right)
        assert out.read(0)[0] == right
    with pytest.raises(ValueError, match=r"argument 'x'.*whole number"):
        kernel(out, value)
    assert out.read(0)[0] == 4


def _store_body(out: Any, value: Any) -> None:
    out[0] = value


def test_whole_numbers_and_bools_are_integers() -> None:
    kernel = vd.shader(1, arg_type_annotations=[Buff[i32], Const[i32]])(_store_body)
    out = zeros(1, np.int32)
    for value, expected in ((3.0, 3), (-3.0, -3), (True, 1), (np.float32(7), 7), (np.array([8]), 8)):
        kernel(out, value)
        assert out.read(0)[0] == expected


def test_floats_are_rounded() -> None:
    kernel = vd.shader(1, arg_type_annotations=[Buff[f32], Const[f32]])(_store_body)
    out = zeros(1)
    for value in (
        0.1,
        2**24,
        2**25,
        np.int64(2**40),
        float(2**24 + 1),
        1e-60,
        -math.inf,
        math.nan,
        np.float64(1 / 3),
    ):
        kernel(out, value)
        np.testing.assert_array_equal(out.read(0)[0], np.float32(value))


@dataclass
class Parameters:
    """Constants of a kernel in one object."""

    scale: f32  # type: ignore[valid-type]
    shift: v3  # type: ignore[valid-type]
    count: u32  # type: ignore[valid-type]


def test_dataclass_arguments() -> None:
    @vd.shader("out.size")
    def use(out: Buff[f32], p: Parameters) -> None:
        out[vc.global_invocation_id().x] = p.scale * 10 + p.shift.y + p.count.to_dtype(vd.float32)  # type: ignore[attr-defined]

    out = zeros(3)
    use(out, Parameters(2.0, (1, 2, 3), 4))  # type: ignore[arg-type]
    use(out, p=Parameters(2.0, np.array([1, 2, 3]), 4))  # type: ignore[arg-type]
    np.testing.assert_array_equal(out.read(0), np.full(3, 26))
    for bad in (3, None, Parameters, object()):
        with pytest.raises(TypeError, match="argument 'p'"):
            use(out, bad)
    with pytest.raises((TypeError, ValueError), match=r"shift"):
        use(out, Parameters(2.0, 1.0, 4))  # type: ignore[arg-type]


# -- eager calls


def test_many_eager_calls() -> None:
    statistics = vd.get_context()._native.statistics
    data = zeros(10)
    increment(data)
    vd.queue_wait_idle()
    before = statistics()
    for _ in range(20_000):
        increment(data)
    assert (data.read(0) == 20_001).all()
    after = statistics()
    assert after["live_objects"] <= before["live_objects"] + 8
    assert after["device_memory"] <= before["device_memory"] + (16 << 20)


def test_memory_stays_flat_over_eager_calls(run_python: RunPython) -> None:
    code = """
import numpy as np, resource, vkdispatch as vd, vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import *
@vd.shader("data.size")
def add(data: Buff[f32], x: Const[f32]):
    i = vc.global_invocation_id().x
    data[i] = data[i] + x
data = vd.asbuffer(np.zeros(16, np.float32))
def calls(n):
    for _ in range(n): add(data, 1.0)
    vd.queue_wait_idle()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
first = calls(5000)
grown = calls(20000) - first
assert data.read(0)[0] == 25000
assert grown < 8 << 10, grown
print("good")
"""
    done = run_python(code, timeout=300)
    assert done.stdout.strip().endswith("good"), done.stderr


def test_buffers_may_be_dropped_while_in_use() -> None:
    total = zeros(1000)
    for value in range(200):
        affine(total, vd.asbuffer(np.full(1000, value, np.float32)), 1.0, 0.0)
    np.testing.assert_array_equal(total.read(0), np.full(1000, 199))
    for value in range(100):
        temporary = vd.asbuffer(np.full(1000, value, np.float32))
        affine(total, temporary, 1.0, 0.0)
        temporary.destroy()
    np.testing.assert_array_equal(total.read(0), np.full(1000, 99))


def test_threads_launch_on_one_context() -> None:
    shared = zeros(64)
    lock = threading.Lock()

    def work(seed: int) -> np.ndarray[Any, Any]:
        own = zeros(97)
        for step in range(300):
            affine(own, own, 1.0, float(seed))
            if step % 50 == 0:
                own.read(0)
            with lock:
                increment(shared)
        return own.read(0)

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(work, range(8)))
    for seed, result in enumerate(results):
        np.testing.assert_array_equal(result, np.full(97, 300 * seed))
    assert (shared.read(0) == 8 * 300).all()


def test_threads_build_one_kernel_together() -> None:
    kernel = vd.shader("data.size")(_increment_body)
    buffers = [zeros(50) for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(kernel, buffers))
    assert all((buffer.read(0) == 1).all() for buffer in buffers)


def test_f64_and_i64() -> None:
    if not supported("float64", "int64"):
        pytest.skip("the device lacks 64-bit types")

    @vd.shader("out.size")
    def wide(out: Buff[f64], a: Const[f64], b: Const[i64]) -> None:
        out[vc.global_invocation_id().x] = a * 2 + b.to_dtype(vd.float64)

    out = zeros(3, np.float64)
    wide(out, 0.1, -(2**40))
    np.testing.assert_array_equal(out.read(0), np.full(3, 0.2 - 2**40))
