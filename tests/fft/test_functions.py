"""Transforms of buffers against NumPy: types, shapes, edges, graphs, and what is refused."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from tests.fft.signals import bound, complex_signal, device_has, error, filled, real_signal
from vkdispatch.codegen.abbreviations import Buff, Const, c64, f32

TYPES = (vd.complex32, vd.complex64, vd.complex128)


@vd.map
def read_it(source: Buff[c64]) -> None:
    vd.fft.read_op().read_from_buffer(source)


@vd.map
def write_it(target: Buff[c64], scale: Const[f32]) -> None:
    op = vd.fft.write_op()
    op.register[:] = op.register * scale
    op.write_to_buffer(target)


def read(buffer: Any) -> Any:
    return buffer.read(0).astype(np.complex128)


@pytest.mark.parametrize("kind", TYPES)
def test_types(kind: type[vd.dtype]) -> None:
    if not device_has(kind):
        pytest.skip(f"the device has no {kind.name}")
    for shape, axis in (((3, 60), 1), ((12, 10), 0)):
        buffer = filled(complex_signal(*shape, dtype=np.complex128), kind)
        a = read(buffer)
        vd.fft.fft(buffer, axis=axis)
        assert error(read(buffer), np.fft.fft(a, axis=axis)) < bound(60, kind)
        vd.fft.ifft(buffer, axis=axis)
        assert error(read(buffer), a) < 2 * bound(60, kind)


@pytest.mark.parametrize("kind", TYPES)
def test_real_types(kind: type[vd.dtype]) -> None:
    if not device_has(kind):
        pytest.skip(f"the device has no {kind.name}")
    a = real_signal(4, 15, dtype=np.float64)
    buffer = vd.RFFTBuffer(a.shape, kind)
    buffer.write_real(a)
    a = buffer.read_real(0).astype(np.float64)
    vd.fft.rfft2(buffer)
    assert error(buffer.read_fourier(0), np.fft.rfft2(a)) < 2 * bound(60, kind)
    vd.fft.irfft2(buffer)
    assert error(buffer.read_real(0), a) < 4 * bound(60, kind)


def test_compute_types() -> None:
    buffer = filled(complex_signal(4, 240), vd.complex64)
    a = read(buffer)
    if device_has(vd.complex128):
        vd.fft.fft(buffer, compute_type=vd.complex128)
        assert error(read(buffer), np.fft.fft(a)) < 1e-7
        wide = filled(complex_signal(4, 240), vd.complex128)
        vd.fft.fft(wide, compute_type=vd.complex64)
        assert error(read(wide), np.fft.fft(a)) < bound(240)
    if device_has(vd.complex32):
        half = filled(complex_signal(4, 240), vd.complex32)
        a = read(half)
        vd.fft.fft(half)
        assert error(read(half), np.fft.fft(a)) < 6e-4  # rounded once
        vd.fft.fft(half, inverse=True, compute_type=vd.complex32)
        assert error(read(half), a) < 4e-3


@pytest.mark.parametrize("shape", [(1,), (1, 1, 1), (7, 1, 3), (1, 300), (300, 1), (275, 3), (2, 3, 125)])
def test_edges(shape: tuple[int, ...]) -> None:
    for axis in range(len(shape)):
        a = complex_signal(*shape)
        buffer = vd.asbuffer(a)
        vd.fft.fft(buffer, axis=axis)
        assert error(buffer.read(0), np.fft.fft(a, axis=axis)) < bound(shape[axis])


def test_more_axes_than_a_buffer_has() -> None:
    a = complex_signal(2, 3, 4, 5, 6)
    buffer: Any = vd.Buffer((a.size,), vd.complex64)
    for axis in range(-5, 5):
        buffer.write(a.reshape(-1))
        vd.fft.fft(buffer, buffer_shape=a.shape, axis=axis)
        assert error(buffer.read(0).reshape(a.shape), np.fft.fft(a, axis=axis)) < bound(6)
    buffer.write(a.reshape(-1))
    vd.fft.fft2(buffer, buffer_shape=a.shape)
    assert error(buffer.read(0).reshape(a.shape), np.fft.fft2(a)) < bound(30)
    vd.fft.ifft3(buffer, buffer_shape=a.shape)
    assert error(buffer.read(0).reshape(a.shape), np.fft.ifft(a, axis=2)) < 3 * bound(30)


def test_random_shapes() -> None:
    generator = np.random.default_rng(5)
    for _ in range(12):
        shape = tuple(int(n) for n in generator.choice([1, 2, 3, 4, 5, 6, 8, 9, 11, 13, 16, 22], 3))
        axis = int(generator.integers(3))
        a = complex_signal(*shape)
        buffer = vd.asbuffer(a)
        vd.fft.fft(buffer, axis=axis, inverse=bool(generator.integers(2)), normalize_inverse=False)
        truths = [np.fft.fft(a, axis=axis), np.fft.ifft(a, axis=axis) * shape[axis]]
        assert min(error(buffer.read(0), truth) for truth in truths) < bound(22)


def test_graphs_keep_the_buffer_between_passes() -> None:
    """Of a transform with maps at both ends only the recording knows the memory between the passes."""
    a = complex_signal(6, 10)
    source, out = vd.asbuffer(a), vd.Buffer((6, 10), vd.complex64)
    graph = vd.CommandGraph()
    vd.fft.fft2(out, 2.0, source, input_map=read_it, output_map=write_it, graph=graph)
    gc.collect()
    others = [vd.asbuffer(np.full((6, 10), 7, np.complex64)) for _ in range(4)]
    for number in range(3):
        source.write(a * (number + 1))
        graph.submit()
        assert error(out.read(0), 2 * (number + 1) * np.fft.fft2(a)) < bound(60)
    assert all((other.read(0) == 7).all() for other in others)


def test_global_graph() -> None:
    a = complex_signal(6, 10)
    buffer, graph = vd.asbuffer(a), vd.CommandGraph()
    vd.set_global_graph(graph)
    try:
        vd.fft.fft(buffer)
    finally:
        vd.set_global_graph()
    assert np.array_equal(buffer.read(0), a)
    graph.submit()
    assert error(buffer.read(0), np.fft.fft(a)) < bound(10)


def test_maps_over_vectors_and_halves() -> None:
    """What a map reads or writes may be pairs of floats, or complex numbers of another width."""
    a = complex_signal(5, 12)
    pairs: Any = vd.Buffer((5, 12), vd.vec2)
    pairs.write(a.view(np.float32).reshape(5, 12, 2))

    def load(source: Buff[vd.vec2]) -> None:
        vd.fft.read_op().read_from_buffer(source)

    def store(target: Buff[vd.vec2], reals: Buff[f32]) -> None:
        op = vd.fft.write_op()
        op.write_to_buffer(target)
        op.write_to_buffer(reals)

    out: Any = vd.Buffer((5, 12), vd.vec2)
    reals: Any = vd.Buffer((5, 12), vd.float32)
    annotations = {"input_map": [Buff[vd.vec2]], "output_map": [Buff[vd.vec2], Buff[f32]]}
    maps = {
        name: vd.map(function, input_types=annotations[name])
        for name, function in (("input_map", load), ("output_map", store))
    }
    vd.fft.fft(out, reals, pairs, **maps)
    truth = np.fft.fft(a)
    assert error(out.read(0).view(np.complex64)[..., 0], truth) < bound(12)
    assert error(reals.read(0), truth.real) < bound(12)


@pytest.mark.parametrize("n", [1, 2, 9, 14])
def test_real_transforms_with_maps(n: int) -> None:
    a = real_signal(4, n)
    spectrum = np.fft.rfft(a).astype(np.complex64)
    out: Any = vd.Buffer((4, n // 2 + 1), vd.complex64)

    def load(source: Buff[f32]) -> None:
        op = vd.fft.read_op()
        assert op.r2c
        op.read_from_buffer(source, io_index=op.fft_index + op.fft_offset)

    def store(target: Buff[f32]) -> None:
        op = vd.fft.write_op()
        op.write_to_buffer(target, io_index=op.fft_index + op.fft_offset)

    input_map = vd.map(load, input_types=[Buff[f32]])
    vd.fft.fft(out, vd.asbuffer(a), buffer_shape=(4, n), r2c=True, input_map=input_map)
    assert error(out.read(0), spectrum) < bound(n)
    back: Any = vd.Buffer((4, n), vd.float32)
    output_map = vd.map(store, input_types=[Buff[f32]])
    options = {"buffer_shape": (4, n), "r2c": True, "inverse": True}
    vd.fft.fft(back, vd.asbuffer(spectrum), output_map=output_map, **options)
    assert error(back.read(0), a) < 2 * bound(n)


def test_wrong_arguments() -> None:
    buffer = vd.asbuffer(complex_signal(4, 8))
    with pytest.raises(TypeError, match="RFFTBuffer"):
        vd.fft.rfft(buffer)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="rfft3"):
        vd.fft.rfft3(vd.RFFTBuffer((4, 8)))
    with pytest.raises(TypeError, match="input_map"):
        vd.fft.fft(buffer, buffer, input_map=print)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="axis"):
        vd.fft.fft(buffer, axis=1.5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="buffer_shape"):
        vd.fft.fft(buffer, buffer_shape=("a",))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="buffer_shape"):
        vd.fft.fft(buffer, buffer_shape=(0, 4))
    with pytest.raises(TypeError, match="output buffer"):
        vd.fft.fft(a for a in ())
    with pytest.raises(ValueError, match="CommandGraph"):
        vd.fft.fft(buffer, graph=7)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="kernel_num"):
        vd.fft.convolve(buffer, buffer, kernel_num=1.5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="kernel_num"):
        vd.fft.convolve(buffer, buffer, kernel_num=0)
    with pytest.raises(ValueError, match="kernel buffer"):
        vd.fft.convolve(buffer, vd.asbuffer(complex_signal(8)))
    with (
        pytest.raises(ValueError, match="max_register_count"),
        vd.fft.fft_context((8,), max_register_count=0),
    ):
        pass
    # nothing of that was half done
    a = buffer.read(0)
    vd.fft.fft(buffer)
    assert error(buffer.read(0), np.fft.fft(a)) < bound(8)


def test_errors_in_maps_leave_no_current_operation() -> None:
    def broken(source: Buff[c64]) -> None:
        raise RuntimeError("mine")

    a = complex_signal(8)
    buffer = vd.asbuffer(a)
    with pytest.raises(RuntimeError, match="mine"):
        vd.fft.fft(buffer, buffer, input_map=vd.map(broken, input_types=[Buff[c64]]))
    with pytest.raises(ValueError, match="read_op"):
        vd.fft.read_op()
    vd.fft.fft(buffer)
    assert error(buffer.read(0), np.fft.fft(a)) < bound(8)


def test_similar_calls_have_their_own_kernels() -> None:
    """A call that was checked once launches at once: only what equals it may."""
    a = complex_signal(4, 12)
    for _ in range(2):
        for axis in (0, 1):
            for inverse in (False, True):
                buffer = vd.asbuffer(a)
                vd.fft.fft(buffer, axis=axis, inverse=inverse, normalize_inverse=False)
                truth = np.fft.ifft(a, axis=axis) * a.shape[axis] if inverse else np.fft.fft(a, axis=axis)
                assert error(buffer.read(0), truth) < bound(12)
        buffer = vd.asbuffer(a)
        vd.fft.fft2(buffer)
        vd.fft.ifft2(buffer, normalize=False)
        assert error(buffer.read(0), a * a.size) < 3 * bound(48)
        vd.fft.fft(buffer, buffer_shape=[4, 12])
        with pytest.raises(ValueError, match="bytes"):
            vd.fft.fft(vd.asbuffer(a[:2]), buffer_shape=(4, 12))
    layout = vd.fft.transpose(vd.asbuffer(a), axis=0)
    for _ in range(2):
        vd.fft.convolve(buffer, layout, axis=0, transposed_kernel=True)
    other: Any = vd.Buffer(layout.shape, vd.complex64)
    vd.fft.transpose(vd.asbuffer(a), conv_shape=(2, 4, 6), axis=1, out_buffer=other)
    with pytest.raises(ValueError, match="another convolution"):
        vd.fft.convolve(buffer, other, axis=0, transposed_kernel=True)


@vd.map
def write_each(target: Buff[c64]) -> None:
    op, number = vd.fft.write_op(), vd.fft.mapped_kernel_index()
    assert number is not None
    target[op.io_index + 120 * number] = op.register


@pytest.mark.parametrize("inner_only", [False, True])
def test_several_kernels_in_a_buffer(inner_only: bool) -> None:
    """Without a kernel map they lie one behind another."""
    a = complex_signal(2, 12, 5)
    kernels = complex_signal(3, 1 if inner_only else 2, 12, 5, seed=1)
    out: Any = vd.Buffer((3 * 120,), vd.complex64)
    flat = vd.asbuffer(kernels.reshape(-1))
    options: Any = {"kernel_num": 3, "kernel_inner_only": inner_only, "buffer_shape": a.shape, "axis": 1}
    vd.fft.convolve(out, vd.asbuffer(a), flat, output_map=write_each, **options)
    outcome = out.read(0).reshape(3, *a.shape)
    for number in range(3):
        truth = np.fft.ifft(np.fft.fft(a, axis=1) * np.conj(kernels[number]), axis=1)
        assert error(outcome[number], truth) < 2 * bound(12)
    # and each of them in the layout that invocations read
    layouts = [
        vd.fft.transpose(
            vd.asbuffer(kernel if not inner_only else kernel[0]),
            conv_shape=a.shape,
            axis=1,
            kernel_inner_only=inner_only,
        ).read(0)
        for kernel in kernels
    ]
    vd.fft.convolve(
        out,
        vd.asbuffer(a),
        vd.asbuffer(np.concatenate(layouts)),
        output_map=write_each,
        transposed_kernel=True,
        **options,
    )
    assert error(out.read(0).reshape(3, *a.shape), outcome) < bound(12)


@vd.map
def multiplied(spectrum: Buff[c64], factor: Const[f32]) -> None:
    op = vd.fft.read_op()
    op.register[:] = op.register * spectrum[op.io_index] * factor


def test_arguments_of_kernel_maps_by_position() -> None:
    a, k = complex_signal(3, 8, 12), complex_signal(3, 8, 12, seed=1)
    wanted = np.fft.ifft2(np.fft.fft2(a.astype(np.complex128)) * k * 0.5)
    convolve: Any = vd.fft.convolve2D
    for arguments in ((vd.asbuffer(k), 0.5), ((vd.asbuffer(k), 0.5),)):
        buffer = vd.asbuffer(a)
        convolve(buffer, *arguments, kernel_map=multiplied)
        assert error(buffer.read(0), wanted) < 8 * bound(96)
    buffer = vd.asbuffer(a)
    convolve(buffer, (vd.asbuffer(k), 0.5), multiplied)
    assert error(buffer.read(0), wanted) < 8 * bound(96)


def test_wrong_kernels_do_not_change_the_signal() -> None:
    a = complex_signal(8, 12)
    buffer, kernel = vd.asbuffer(a), vd.asbuffer(a)
    reals = vd.asrfftbuffer(a.real)
    convolve: Any = vd.fft.convolve2D
    for arguments in ((kernel,), (kernel, 1.0, 2.0), (None,)):
        with pytest.raises(ValueError, match=r"convolve2D: kernel: expected 2 arguments for kernel_map, got"):
            convolve(buffer, *arguments, kernel_map=multiplied)
        with pytest.raises(
            ValueError, match=r"convolve2DR: kernel: expected 2 arguments for kernel_map, got"
        ):
            vd.fft.convolve2DR(reals, arguments, kernel_map=multiplied)
    with pytest.raises(TypeError, match="kernel_map: expected a function"):
        convolve(buffer, kernel, kernel_map=3)
    for given in (1e-3, "kernel", (kernel, 1.0), None):
        with pytest.raises(TypeError, match=r"kernel: expected a vd\.Buffer"):
            convolve(buffer, given)
    np.testing.assert_array_equal(buffer.read(0), a)
    np.testing.assert_array_equal(reals.read_real(0), a.real)


@vd.map
def assign_real(source: Buff[f32]) -> None:
    op = vd.fft.read_op()
    op.register = source[op.io_index].to_dtype(vd.complex64)


@vd.map
def rotate_in_place(spectrum: Buff[c64]) -> None:
    op = vd.fft.read_op()
    op.register *= spectrum[op.io_index]


@pytest.mark.parametrize("n", [60, 101])
def test_assigning_the_register_of_a_map_assigns_its_value(n: int) -> None:
    a, k = real_signal(3, n), complex_signal(3, n)
    out: Any = vd.Buffer((3, n), vd.complex64)
    vd.fft.fft(out, vd.asbuffer(a), input_map=assign_real)
    truth = np.fft.fft(a.astype(np.float64))
    assert error(out.read(0), truth) < 2 * bound(n)
    buffer = vd.asbuffer(a, vd.complex64)
    vd.fft.convolve(buffer, vd.asbuffer(k), kernel_map=rotate_in_place)
    assert error(buffer.read(0), np.fft.ifft(truth * k)) < 10 * bound(n)


@vd.map
def forget_to_assign(source: Buff[c64]) -> None:
    value = vd.fft.read_op().register
    value = source[vd.fft.read_op().io_index]  # noqa: F841


@vd.map
def read_at_the_element(source: Buff[c64]) -> None:
    vd.fft.read_op().register[:] = source[vd.mapped_index()]


@vd.map
def read_at_the_invocation(source: Buff[c64]) -> None:
    vd.fft.read_op().register[:] = source[vc.global_invocation_id().x]


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        (
            forget_to_assign,
            r"input_map 'forget_to_assign': it never assigns the value; write op.register\[:\]",
        ),
        (read_at_the_element, r"mapped_index: .* vd.fft has vd.fft.read_op\(\).io_index"),
        (read_at_the_invocation, "global_invocation_id: .* by op.io_index"),
    ],
)
def test_maps_that_would_read_something_else_are_refused(mapping: Any, message: str) -> None:
    out: Any = vd.Buffer((2, 8), vd.complex64)
    with pytest.raises(vd.VkDispatchError, match=message):
        vd.fft.fft(out, vd.asbuffer(complex_signal(2, 8)), input_map=mapping)
