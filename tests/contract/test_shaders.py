"""Kernels: launch sizes, annotations, calls, values, manual tracing and maps."""

from __future__ import annotations

import dataclasses
import threading
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import (
    Buff,
    Const,
    Var,
    c32,
    c64,
    dv3,
    f16,
    f32,
    f64,
    hv3,
    i16,
    i32,
    i64,
    m3,
    u32,
    uhv3,
    v3,
)


def zeros(count: int = 8, kind: Any = vd.float32) -> Any:
    buffer = vd.Buffer(count, kind)
    buffer.write(bytes(buffer.mem_size))
    return buffer


def counting(**options: Any) -> Any:
    @vd.shader(**options)
    def kernel(a: Buff[u32], n: Const[u32] = 5) -> None:
        vc.atomic_add(a[0], 1)

    return kernel


def invocations(kernel: Any, **options: Any) -> int:
    a = zeros(8, vd.uint32)
    kernel(a, **options)
    return int(a.read(0)[0])


SIZES = [
    (7, 7),
    (np.int64(7), 7),
    ((7,), 7),
    ((7, 3), 21),
    ((2, 3, 4), 24),
    ("a.size", 8),
    ("a.shape", 8),
    ("(a.shape[0], 4)", 32),
    ("a.size, 1", 8),
    ("n * 2", 10),
    (lambda args: args.a.size, 8),
    (lambda args: (args.n, 2), 10),
]


@pytest.mark.parametrize(("size", "expected"), SIZES)
def test_launch_sizes(size: Any, expected: int) -> None:
    assert invocations(counting(exec_size=size)) == expected
    assert invocations(counting(), exec_size=size) == expected
    assert invocations(counting(local_size=4, workgroups=size)) == 4 * expected
    # what a call says beats the decorator
    assert invocations(counting(local_size=(4, 1, 1), exec_size=3), workgroups=size) == 4 * expected


@pytest.mark.parametrize(
    ("size", "error"),
    [
        ([7], ValueError),
        (7.0, ValueError),
        ((), ValueError),
        ((1, 2, 3, 4), ValueError),
        ("other.size", NameError),
        (lambda args: args.other, KeyError),
    ],
)
def test_bad_launch_sizes(size: Any, error: type[Exception]) -> None:
    for option in ("exec_size", "workgroups"):
        with pytest.raises(error):
            invocations(counting(**{option: size}))
        with pytest.raises(error):
            invocations(counting(), **{option: size})


@pytest.mark.parametrize("size", [0, (3, 0), (0, 2, 5)])
def test_launch_sizes_of_nothing(size: Any) -> None:
    """They were refused, and now do nothing."""
    for option in ("exec_size", "workgroups"):
        assert invocations(counting(**{option: size})) == 0
        assert invocations(counting(), **{option: size}) == 0


def test_no_launch_size() -> None:
    for options in ({}, {"exec_size": None}):
        with pytest.raises(ValueError):
            invocations(counting(), **options)
    with pytest.raises(ValueError):
        vd.shader(exec_size=1, workgroups=1)
    with pytest.raises((TypeError, ValueError)):
        vd.shader(lambda a: None)(lambda args: 1)(1)


def test_default_workgroup_is_the_largest_where_a_kernel_can_tell() -> None:
    most = vd.get_context().max_workgroup_size[0]

    def total(out: Buff[f32], data: Buff[f32]) -> None:
        shared = vc.shared_buffer(f32, most)
        i = vc.local_invocation_id().x
        shared[i] = data[vc.global_invocation_id().x]
        vc.barrier()
        step = most // 2
        while step > 0:
            with vc.if_block(i < step):
                shared[i] += shared[i + step]
            vc.barrier()
            step //= 2
        with vc.if_block(i == 0):
            out[0] = shared[0]

    kernel, out = vd.shader(exec_size=most)(total), zeros(1)
    kernel(out, vd.asbuffer(np.arange(most, dtype=np.float32)))
    assert out.read(0)[0] == most * (most - 1) // 2
    assert kernel.bounds is not None and kernel.bounds.local_size == (most, 1, 1)

    @vd.shader(exec_size=3 * most)
    def groups(out: Buff[u32]) -> None:
        vc.atomic_add(out[vc.workgroup_id().x], 1)

    counts = zeros(8, vd.uint32)
    groups(counts)
    assert counts.read(0).tolist() == [most] * 3 + [0] * 5


def test_annotations_given_to_the_decorator() -> None:
    def body(*args: Any) -> None:
        args[0][0] = args[1]

    types = [Buff[f32], Const[f32]]
    kernel = vd.shader(1, None, None, vc.ShaderFlags.NONE, types, ["buf", "val"], [None, 3.5])(body)
    a = zeros()
    for arguments, named, expected in (
        ((a,), {}, 3.5),
        ((a, 2.0), {}, 2.0),
        ((), {"val": 4.0, "buf": a}, 4.0),
    ):
        kernel(*arguments, **named)
        assert a.read(0)[0] == expected
    vd.shader("param0.size", arg_type_annotations=types)(body)(a, param1=9.0)
    assert a.read(0)[0] == 9
    for alone in ({"arg_names": ["a"]}, {"arg_defaults": [1]}):
        with pytest.raises(ValueError):
            vd.shader(1, **alone)(body)


@pytest.mark.parametrize(
    ("annotation", "error"),
    [
        (None, ValueError),
        (vd.float32, TypeError),
        (int, TypeError),
        (vc.Buffer, TypeError),
        (list[int], ValueError),
        (vd.Buffer[vd.float32], ValueError),
    ],
)
def test_bad_annotations(annotation: Any, error: type[Exception]) -> None:
    def body(a):
        pass

    body.__annotations__ = {} if annotation is None else {"a": annotation}
    with pytest.raises(error):
        vd.shader(1)(body)


def test_annotations_are_generic_aliases() -> None:
    assert vc.Buff[f32].__origin__ is vc.Buffer and vc.Buff[f32].__args__ == (f32,)
    assert vc.Const[v3].__origin__ is vc.Constant and vc.Img2[f32].__origin__ is vc.Image2D
    with pytest.raises(RuntimeError):
        vd.Image2D[vd.float32]


@dataclasses.dataclass
class Parameters:
    x: f32
    v: v3
    d: f64
    n: i32 = 7


@dataclasses.dataclass
class HostParameters:
    n: int
    d: float
    v: Any
    x: float
    unused: int = 0


def test_dataclasses() -> None:
    @vd.shader(1)
    def kernel(out: Buff[f64], p: Parameters) -> None:
        assert isinstance(p, Parameters)
        for i, value in enumerate((p.x, p.v.y, p.d, p.n)):
            out[i] = vc.to_float64(value)

    out = zeros(4, vd.float64)
    kernel(out, Parameters(1.5, (2, 3, 4), 0.1))
    assert out.read(0).tolist() == [1.5, 3, 0.1, 7]
    kernel(out, p=HostParameters(1, 2, [3, 4, 5], 6))
    assert out.read(0).tolist() == [6, 4, 2, 1]


@vd.shader("a.size")
def fill(a: Buff[f32], c: Const[f32], v: Var[v3] = (1, 2, 3), n: Const[i32] = 4) -> None:
    a[vc.global_invocation_id().x] = c + v.y + vc.to_float(n)


BAD_CALLS = [
    ((), {}, ValueError),
    ((1.0, (1, 2, 3), 4, 5), {}, TypeError),
    ((1.0,), {"other": 3}, TypeError),
    ((lambda: 1,), {}, ValueError),
    ((1.0, lambda: 1), {}, ValueError),
    (((1, 2),), {}, ValueError),
    ((None,), {}, (TypeError, ValueError)),
    (("x",), {}, (TypeError, ValueError)),
    ((1.0, (1, 2)), {}, ValueError),
    ((1.0,), {"graph": 3}, ValueError),
]


@pytest.mark.parametrize(("arguments", "named", "error"), BAD_CALLS)
def test_a_bad_call_spoils_nothing(arguments: Any, named: Any, error: Any) -> None:
    a = zeros()
    with pytest.raises(error):
        fill(a, *arguments, **named)
    fill(a, 1.0)
    assert a.read(0)[0] == 7
    with pytest.raises(ValueError):
        fill([0.0] * 8, 1.0)


@pytest.mark.parametrize("value", [True, 2, 2.5, np.float64(2), np.float16(6), np.array(3), np.array([[4]])])
def test_values_of_scalars(value: Any) -> None:
    a = zeros()
    fill(a, value, (0, 0, 0), n=0)
    assert a.read(0)[0] == float(np.ravel(value)[0])


def test_values_of_other_kinds() -> None:
    @vd.shader(1)
    def kernel(out: Buff[c64], n: Const[i32], z: Const[c64], y: Var[c32]) -> None:
        out[0] = z
        out[1] = vc.to_complex64(y.real, y.imag)
        out[2] = vc.to_complex64(vc.to_float(n))

    out = zeros(3, vd.complex64)
    for z in (1 + 2j, 3, 2.5, np.complex64(1j), np.float32(2), np.complex128(1 + 1j)):
        kernel(out, -2.0, z, z)
        assert out.read(0).tolist() == [z, z, -2]


def test_layout_of_mixed_arguments() -> None:
    """Members of 2, 6, 12 and 8 bytes next to each other, as constants and as variables."""

    @vd.shader(1)
    def kernel(
        out: Buff[f64],
        a: Const[v3],
        b: Const[f64],
        c: Const[i64],
        d: Const[uhv3],
        e: Var[v3],
        f: Var[f64],
        g: Const[f16],
        h: Var[i16],
        i: Const[m3],
        j: Const[dv3],
        k: Var[hv3],
    ) -> None:
        values = (a.x, a.z, b, c, d.x, d.z, e.x, e.z, f, g, h, i[0].x, i[2].z, j.x, j.z, k.x, k.z)
        for at, value in enumerate(values):
            out[at] = value.to_dtype(vd.float64)

    device = vd.get_devices()[0]
    if not (device.storage_push_constant_16 and device.uniform_and_storage_buffer_16_bit_access):
        pytest.skip("the device takes no 16-bit arguments")
    out = zeros(17, vd.float64)
    matrix = np.arange(9).reshape(3, 3) + 15
    values = ((1, 2, 3), 4.5, -5, (6, 7, 8), (9, 10, 11), 12.25, 13, -14, matrix, (30, 31, 32), (33, 34, 35))
    kernel(out, *values)
    assert out.read(0).tolist() == [1, 3, 4.5, -5, 6, 8, 9, 11, 12.25, 13, -14, 15, 23, 30, 32, 33, 35]


def test_shader_function_and_source() -> None:
    @vd.shader("a.size")
    def kernel(a: Buff[f32]) -> None:
        a[vc.global_invocation_id().x] = 1.0

    assert isinstance(kernel, vd.ShaderFunction) and kernel.plan is None and not kernel.ready
    assert (kernel.name, kernel.exec_size, kernel.workgroups, kernel.local_size) == (
        "kernel",
        "a.size",
        None,
        None,
    )
    assert kernel.get_src(build=False) is not None and not kernel.ready
    assert kernel.get_src(True).code.startswith("   1: #version 450\n   2: ")
    assert kernel.ready and kernel.plan is not None and "void main" in (kernel.source or "")
    assert repr(kernel) == repr(kernel.get_src())
    assert repr(vd.ShaderSource("n", "code", (1, 2, 1))).splitlines()[1:] == ["code"]
    assert dataclasses.is_dataclass(vd.ShaderSource) and vd.ShaderSource("n", "", (1, 1, 1))


def test_manual_tracing() -> None:
    with vc.shader_context() as context:
        assert context.builder is vc.get_builder()
        data, c = context.declare_input_arguments([Buff[f32], Const[f32]], ["x", "y"], [None, 2.0])
        with pytest.raises(RuntimeError):
            context.declare_input_arguments([Buff[f32]])
        for nested in (lambda: vc.set_builder(vc.ShaderBuilder()), lambda: vd.shader(1)(lambda: None)):
            with pytest.raises(RuntimeError):
                nested()
        data[vc.global_invocation_id().x] = c * 2
    with pytest.raises(RuntimeError):
        vc.get_builder()
    description = context.get_description("mine")
    assert description is context.get_description("other") is context.shader_description
    assert description.name == "mine" and description.exec_count_name == "exec_count"
    assert description.get_arg_names_and_defaults() == [("x", None), ("y", 2.0)]
    assert len(description.binding_type_list) == len(description.binding_access)
    assert "void main" in description.body and "#version 450" in description.header
    a = zeros()
    vd.make_shader_function(description, exec_count="x.size")(a)
    assert a.read(0).tolist() == [4.0] * 8
    vd.ShaderFunction(description, (4, 1, 1), 1)(a, 3.0)
    assert a.read(0).tolist() == [6.0] * 4 + [4.0] * 4


def test_builder() -> None:
    builder = vc.ShaderBuilder()
    vc.set_builder(builder)
    try:
        (data,) = builder.declare_shader_arguments([Buff[f32]])
        assert builder.new_name() != builder.new_name()
        builder.shared_buffer(vd.float32, 8, "shm")
        builder.append_contents("// raw")
        builder.scope_increment()
        data[0] = 1.0
        builder.scope_decrement()
    finally:
        vc.set_builder(None)
    assert "// raw" in builder.contents and len(builder.shared_buffers) == len(builder.binding_list) == 1
    assert builder.shader_arg_infos[0].name == "param0" and len(builder.get_shader_arguments()) == 1
    assert builder.build("built").name == "built"
    builder.reset()
    assert not builder.contents.strip()


def test_threads_trace_at_the_same_time() -> None:
    descriptions: dict[int, Any] = {}
    builders = set()
    together = threading.Barrier(4)

    def trace(k: int) -> None:
        with vc.shader_context() as context:
            builders.add(id(vc.get_builder()))
            together.wait()
            (data,) = context.declare_input_arguments([Buff[f32]])
            for _ in range(20):
                data[0] = data[0] + float(k)
            together.wait()
        descriptions[k] = context.get_description()

    threads = [threading.Thread(target=trace, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(builders) == 4
    for k, description in descriptions.items():
        a = zeros(1)
        vd.make_shader_function(description, exec_count=1)(a)
        assert a.read(0)[0] == 20 * k


def test_maps() -> None:
    @vd.map
    def product(x: Buff[f32], c: Const[f32]) -> f32:
        return x[0] * c

    @vd.map
    def write(x: Buff[f32]) -> None:
        x[1] = 5.0

    sum_ = vd.map(lambda a, b: a + b, vd.float32, [Var[f32], Var[f32]])
    assert product.buffer_types == [Buff[f32], Const[f32]] and product.return_type is f32
    assert write.return_type is None and product != write and product in {product}
    assert dataclasses.replace(product, return_type=None) == product

    @vd.shader(1)
    def kernel(a: Buff[f32], c: Const[f32]) -> None:
        register = product.callback(a, c)
        assert register.is_register() and write.callback(a) is None
        a[2] = sum_.callback(register, c)

    a = vd.asbuffer(np.full(3, 2, np.float32))
    kernel(a, 3.0)
    assert a.read(0).tolist() == [2, 5, 9]
    with pytest.raises(ValueError):
        vd.map(lambda x: None)
