"""Programs in the style of vkdispatch 0.1.0's documentation and examples."""

from __future__ import annotations

import contextlib
import io

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from tests.compatibility.programs import Collection
from vkdispatch.codegen.abreviations import Buff, Const, Img2, Var, c64, f32, i32, v2

PROGRAMS = Collection()
program = PROGRAMS.add


def _random(*shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return np.random.default_rng(7).random(shape, dtype=np.float32)


@program("Kernels with `Buff` and `Const` arguments; `exec_size` as a text, a function, a number or a tuple")
def kernels() -> None:
    def add(buff: Buff[f32], bias: Const[f32]) -> None:
        tid = vc.global_invocation_id().x
        buff[tid] = buff[tid] + bias

    for size in ("buff.size", lambda args: args.buff.size, 37, (37, 1)):
        buff = vd.asbuffer(np.arange(37, dtype=np.float32))
        vd.shader(exec_size=size)(add)(buff, 2.5)
        assert (buff.read(0) == np.arange(37) + 2.5).all()


@program(
    "Kernels launched by `workgroups` and `local_size`, in the decorator or in the call",
    "`workgroups=` and `exec_size=` of a call override those of the decorator; 0.1.0 ignored some",
)
def workgroups() -> None:
    @vd.shader(local_size=(8, 1, 1), workgroups=(3, 1, 1))
    def count(buff: Buff[i32]) -> None:
        vc.atomic_add(buff[0], 1)

    buff = vd.asbuffer(np.zeros(1, np.int32))
    count(buff)
    count(buff, workgroups=2)
    assert buff.read(0)[0] == 24 + 16


@program(
    "Control flow by blocks: `if_block`, `else_block`, `while_block`; by statements: `if_statement`, `end`",
    "Python's own `if` and `while` work as well",
)
def control_flow() -> None:
    @vd.shader("buff.size")
    def collatz(buff: Buff[i32]) -> None:
        tid = vc.global_invocation_id().x
        n = buff[tid].to_register()
        steps = vc.new_int_register(0)
        with vc.while_block(n > 1):
            with vc.if_block(n % 2 == 0):
                n[:] = n // 2
            with vc.else_block():
                n[:] = 3 * n + 1
            steps += 1
        vc.if_statement(tid == 0)
        steps[:] = -1
        vc.end()
        buff[tid] = steps

    buff = vd.asbuffer(np.arange(1, 11, dtype=np.int32))
    collatz(buff)
    assert buff.read(0).tolist() == [-1, 1, 7, 2, 5, 8, 16, 3, 19, 6]


@program("Registers, vectors, swizzles, matrices, conversions")
def values() -> None:
    @vd.shader("out.size")
    def turn(points: Buff[v2], out: Buff[v2]) -> None:
        tid = vc.global_invocation_id().x
        point = points[tid].to_register()
        point.x += 1
        out[tid] = vc.to_vec2(-point.y, point.x) * vc.to_float(2)

    points = _random(19, 2)
    out = vd.Buffer((19,), vd.vec2)
    turn(vd.asbuffer(points.view(np.complex64)), out)
    assert np.allclose(out.read(0), 2 * np.stack([-points[:, 1], points[:, 0] + 1], 1))


@program("0.1.0's keyword names: `vc.clamp(var, min_val=, max_val=)`, `vc.if_block(arg=)`, ...")
def keyword_names() -> None:
    @vd.shader("buff.size")
    def squash(buff: Buff[f32]) -> None:
        tid = vc.global_invocation_id().x
        with vc.if_block(arg=tid < 7):
            buff[tid] = vc.clip(vc.sin(var=buff[tid]), min_val=0.25, max_val=0.5)

    data = _random(11)
    buff = vd.asbuffer(data)
    squash(buff)
    expected = data.copy()
    expected[:7] = np.clip(np.sin(data[:7]), 0.25, 0.5)
    assert np.allclose(buff.read(0), expected)


@program("Shared memory, barriers, subgroup operations, atomics")
def workgroup_memory() -> None:
    @vd.shader(exec_size=256, local_size=(64, 1, 1))
    def reverse(buff: Buff[i32], total: Buff[i32]) -> None:
        shared = vc.shared_buffer(vd.int32, 64)
        lane = vc.local_invocation_id().x
        tid = vc.global_invocation_id().x
        shared[lane] = buff[tid]
        vc.barrier()
        buff[tid] = shared[63 - lane]
        part = vc.subgroup_add(shared[lane])
        with vc.if_block(vc.subgroup_elect()):
            vc.atomic_add(total[0], part)

    data = np.arange(256, dtype=np.int32)
    buff, total = vd.asbuffer(data), vd.asbuffer(np.zeros(1, np.int32))
    reverse(buff, total)
    assert (buff.read(0) == data.reshape(4, 64)[:, ::-1].ravel()).all()
    assert total.read(0)[0] == data.sum()


@program(
    "Complex numbers: `mult_complex`, `conjugate`, `.real`, `.imag`",
    "sums with real numbers change the real part alone, products are complex products, "
    "conjugates stay conjugates when they are stored",
)
def complex_numbers() -> None:
    @vd.shader("buff.size")
    def rotate(buff: Buff[c64], angle: Const[f32]) -> None:
        tid = vc.global_invocation_id().x
        buff[tid] = vc.mult_complex(buff[tid].conjugate(), vc.complex_from_euler_angle(angle)) + 1

    data = (_random(9) + 1j * _random(9)).astype(np.complex64)
    buff = vd.asbuffer(data)
    rotate(buff, 0.5)
    assert np.allclose(buff.read(0), data.conj() * np.exp(0.5j) + 1)


@program(
    "Command graphs: `graph=`, `bind_var`, `set_var`, `submit(instance_count)`",
    "a graph may be recorded into after it was submitted",
)
def command_graphs() -> None:
    @vd.shader("buff.size")
    def scale(buff: Buff[f32], factor: Var[f32], bias: Const[f32] = 0.5) -> None:
        tid = vc.global_invocation_id().x
        buff[tid] = buff[tid] * factor + bias

    data = _random(100)
    buff = vd.asbuffer(data)
    graph = vd.CommandGraph()
    scale(buff, graph.bind_var("factor"), graph=graph)
    graph.set_var("factor", [2, 3])
    graph.submit(2)
    expected = (data * 2 + 0.5) * 3 + 0.5
    assert np.allclose(buff.read(0), expected)
    scale(buff, factor=graph.bind_var("factor"), bias=1, graph=graph)
    graph.set_var("factor", 2)
    graph.submit()
    assert np.allclose(buff.read(0), (expected * 2 + 0.5) * 2 + 1)


@program("The global graph: `set_global_graph`, `global_graph`, `default_graph`")
def global_graph() -> None:
    @vd.shader("buff.size")
    def increment(buff: Buff[f32]) -> None:
        tid = vc.global_invocation_id().x
        buff[tid] += 1

    buff = vd.asbuffer(np.zeros(5, np.float32))
    graph = vd.CommandGraph(reset_on_submit=True)
    old = vd.set_global_graph(graph)
    increment(buff)
    increment(buff)
    vd.set_global_graph(old)
    assert vd.global_graph() is vd.default_graph()
    graph.submit_any()
    assert (buff.read(0) == 2).all()


@program(
    "Buffers: `asbuffer`, `read`, `write`, `buffer_f32`, `buf.shape` in kernels, shapes of up to three axes",
    "`read(0)` returns a writable array; after an error the context stays usable",
)
def buffers() -> None:
    @vd.shader("buff.size")
    def fill(buff: Buff[f32]) -> None:
        tid = vc.global_invocation_id().x
        place = vc.ravel_index(tid, buff.shape)
        buff[tid] = vc.to_float(place.x * 100 + place.y * 10 + place.z)

    buff = vd.buffer_f32((2, 3, 4))
    fill(buff)
    i, j, k = np.indices((2, 3, 4))
    assert (buff.read(0) == 100 * i + 10 * j + k).all()
    assert (buff.read() == buff.read(0)[None]).all()
    with pytest.raises(ValueError, match="data"):
        buff.write(np.zeros(5, np.float32))
    buff.write(np.ones((2, 3, 4), np.float32).tobytes())
    assert (buff.read(0) == 1).all()


@program(
    "Images and samplers",
    "an array of rows and columns is an image of that height and width; 0.1.0 mixed up the two unless they "
    "were equal",
)
def images() -> None:
    @vd.shader("out.size")
    def halfway(image: Img2[f32], out: Buff[f32]) -> None:
        place = vc.ravel_index(vc.global_invocation_id().x, out.shape).to_register()
        out[vc.global_invocation_id().x] = image.sample(vc.to_vec2(place.y + 0.5, place.x)).x

    data = _random(4, 7)
    image = vd.Image2D(shape=(4, 7), dtype=vd.float32)
    image.write(data)
    out = vd.Buffer((4, 6), vd.float32)
    halfway(image.sample(), out)
    assert np.allclose(out.read(0), (data[:, 1:] + data[:, :-1]) / 2, atol=1e-2)


@program(
    "`vd.map`, `vd.reduce.reduce`, `vd.reduce.map_reduce`, over all axes or the last ones",
    "the result has the shape of the batch alone; `read(0)[0]` is what it was",
)
def reductions() -> None:
    @vd.reduce.reduce(0)
    def add(a: f32, b: f32) -> f32:
        return a + b

    @vd.reduce.map_reduce(vd.reduce.SubgroupMax, axes=[1])
    def largest(buff: Buff[f32], scale: Const[f32]) -> f32:
        return buff[vd.reduce.mapped_io_index()] * scale

    data = _random(3, 1001)
    assert np.isclose(add(vd.asbuffer(data)).read(0)[0], data.sum(dtype=np.float64), rtol=1e-5)
    assert np.allclose(largest(vd.asbuffer(data), 2.0).read(0)[0], 2 * data.max(1))


@program(
    "`vd.fft`: `fft`, `ifft`, `fft2`, `fft3`, `rfft`, `irfft`, normalization, axes",
    "any length, primes beyond 13 included; negative axes count from the end",
)
def transforms() -> None:
    data = (_random(6, 15, 34) + 1j).astype(np.complex64)
    for axis in (0, 1, 2, -1):
        buff = vd.asbuffer(data)
        vd.fft.fft(buff, axis=axis)
        assert np.allclose(buff.read(0), np.fft.fft(data, axis=axis), atol=1e-3)
        vd.fft.ifft(buff, axis=axis)
        assert np.allclose(buff.read(0), data, atol=1e-5)
    buff = vd.asbuffer(data)
    vd.fft.fft3(buffer=buff)
    assert np.allclose(buff.read(0), np.fft.fftn(data), atol=1e-2)
    real = vd.asrfftbuffer(data.real)
    vd.fft.rfft(real)
    assert np.allclose(real.read_fourier(0), np.fft.rfft(data.real), atol=1e-3)
    vd.fft.irfft(real)
    assert np.allclose(real.read_real(0), data.real, atol=1e-5)


@program(
    "Transforms with maps at the input and the output, and `vd.fft.convolve2D`",
    "maps work in transforms of two and three axes, too",
)
def transform_maps() -> None:
    @vd.map
    def window(signal: Buff[c64], weights: Buff[f32]) -> None:
        op = vd.fft.read_op()
        op.register[:] = signal[op.io_index] * weights[op.io_index]

    @vd.map
    def double(buff: Buff[c64]) -> None:
        op = vd.fft.write_op()
        buff[op.io_index] = op.register * 2

    data, weights = (_random(4, 16) - 0.5j).astype(np.complex64), _random(4, 16)
    out = vd.Buffer((4, 16), vd.complex64)
    vd.fft.fft(out, vd.asbuffer(data), vd.asbuffer(weights), output_map=double, input_map=window)
    assert np.allclose(out.read(0), 2 * np.fft.fft(data * weights), atol=1e-4)

    image, kernel = _random(8, 8).astype(np.complex64), _random(8, 8).astype(np.complex64)
    correlated, spectrum = vd.asbuffer(image), vd.asbuffer(kernel)
    vd.fft.fft2(spectrum)
    vd.fft.convolve2D(correlated, spectrum)
    expected = np.fft.ifft2(np.fft.fft2(image) * np.fft.fft2(kernel).conj())
    assert np.allclose(correlated.read(0), expected, atol=1e-3)


@program(
    "`vd.vkfft`: transforms of several axes, `convolve2D`, `transpose_kernel2D`, plans",
    "`convolve2D(normalize=False)` is H * W times the convolution, in 0.1.0 W times; `conjugate_kernel` "
    "conjugates the kernel; negative axes count from the end; complex128 is computed as complex128",
)
def vkfft() -> None:
    data = (_random(12, 17) + 0j).astype(np.complex64)
    buff = vd.asbuffer(data)
    vd.vkfft.fft(buff, axis=[0, 1])
    assert np.allclose(buff.read(0), np.fft.fft2(data), atol=1e-3)
    vd.vkfft.ifft2(buff)
    assert np.allclose(buff.read(0), data, atol=1e-5)
    kernel = (_random(12, 17) + 0j).astype(np.complex64)
    weights = vd.asbuffer(kernel)
    vd.vkfft.transpose_kernel2D(weights)
    vd.vkfft.convolve2D(buff, weights, normalize=True)
    expected = np.fft.ifft2(np.fft.fft2(data) * np.fft.fft2(kernel))
    assert np.allclose(buff.read(0), expected, atol=1e-3)


@program("`shader_context`, `declare_input_arguments`, `make_shader_function`, `get_src`, `print_src`")
def tracing_by_hand() -> None:
    with vc.shader_context() as context:
        buff, factor = context.declare_input_arguments([Buff[f32], Const[f32]], names=["buff", "factor"])
        tid = vc.global_invocation_id().x
        buff[tid] = buff[tid] * factor
    scale = vd.make_shader_function(context.get_description("scale"), exec_count="buff.size")
    data = _random(33)
    out = vd.asbuffer(data)
    scale(out, 3.0)
    assert np.allclose(out.read(0), data * 3)
    assert "void main()" in scale.get_src().code
    assert "#version 450" in str(scale.get_src(line_numbers=True))


@program(
    "`vc.printf`, `vc.print`, `vd.log_info`, `vd.set_log_level`",
    "printing from kernels needs neither debug mode nor the validation layer",
)
def printing() -> None:
    @vd.shader(1)
    def show(value: Const[i32]) -> None:
        vc.print("value:", value)

    show(5)
    vd.queue_wait_idle()
    told = io.StringIO()
    vd.set_log_level(vd.LogLevel.INFO)
    with contextlib.redirect_stdout(told):
        vd.log_info("here")
    vd.set_log_level(vd.LogLevel.WARNING)
    assert "here" in told.getvalue()


@program(
    "Devices and contexts: `initialize`, `get_devices`, `make_context`, `get_context`, `queue_wait_idle`",
    "a machine with a CPU driver alone needs no `use_cpu=True`",
)
def devices() -> None:
    vd.initialize()
    assert vd.is_initialized() and vd.is_vulkan() and vd.get_backend() == "vulkan"
    context = vd.get_context()
    assert vd.make_context() is context
    assert len(vd.get_devices()) >= 1 and context.max_workgroup_size[0] >= 64
    vd.queue_wait_idle()


@program(
    "The CUDA and OpenCL backends",
    "not part of this package: asking for one raises an error that says so. Vulkan reaches the same device",
)
def other_backends() -> None:
    vd.initialize()
    for backend in ("cuda", "opencl"):
        with pytest.raises(Exception, match="Vulkan"):
            vd.initialize(backend=backend)
