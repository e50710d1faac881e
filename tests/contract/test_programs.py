"""What programs that others wrote for 0.1.0 rely on, beyond the sentences of the contract."""

from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import Buff, Const, Img3, Var, c64, f32, i32, iv2, m4, u32, v2, v3, v4

RNG = np.random.default_rng(39)


def complex_array(*shape: int) -> Any:
    return (RNG.normal(size=shape) + 1j * RNG.normal(size=shape)).astype(np.complex64)


# ---- components, conversions, values --------------------------------------------------------------------


@pytest.mark.parametrize("kind", [f32, i32])
@pytest.mark.parametrize("name", ["x", "y", "z", "w", "real", "imag"])
def test_a_component_of_a_scalar_stores_nothing(kind: Any, name: str) -> None:
    with pytest.warns(
        vd.KernelWarning, match=rf"{kind.name} has no component \.{name}, so this stores nothing"
    ):

        @vd.shader("out.size")
        def kernel(out: Buff[kind]) -> None:
            i = vc.global_invocation_id().x
            setattr(out[i], name, 0)
            register = vc.new_register(kind, 4)
            setattr(register, name, 1)
            out[i] += register

    out = vd.asbuffer(np.arange(5, dtype=np.dtype(kind.name)))
    kernel(out)
    np.testing.assert_array_equal(out.read(0), np.arange(5) + 4)


@pytest.mark.parametrize(("kind", "name"), [(v2, "w"), (v2, "real"), (c64, "x"), (c64, "z"), (f32, "colour")])
def test_other_missing_components_are_errors(kind: Any, name: str) -> None:
    with pytest.raises((ValueError, AttributeError)):

        @vd.shader("out.size")
        def kernel(out: Buff[kind]) -> None:
            setattr(out[vc.global_invocation_id().x], name, 0)


def test_vectors_become_complex_numbers_and_back() -> None:
    @vd.shader("out.size")
    def kernel(out: Buff[c64], back: Buff[v2], pairs: Buff[v2], rows: Buff[v4], counts: Buff[iv2]) -> None:
        i = vc.global_invocation_id().x
        total = pairs[i].to_dtype(c64) + rows[i].swizzle("wz").to_dtype(c64)
        out[i] = vc.mult_complex(total, rows[i].to_dtype(c64)) + counts[i].to_dtype(c64)
        back[i] = out[i].to_dtype(v2)

    pairs, rows = RNG.normal(size=(2, 70, 4)).astype(np.float32)
    counts = RNG.integers(-9, 9, (70, 2)).astype(np.int32)
    buffers = [vd.Buffer(70, kind) for kind in (vd.complex64, vd.vec2, vd.vec2, vd.vec4, vd.ivec2)]
    for buffer, values in zip(buffers[2:], (pairs[:, :2].copy(), rows, counts), strict=True):
        buffer.write(values)
    kernel(*buffers)
    total = pairs[:, 0] + 1j * pairs[:, 1] + rows[:, 3] + 1j * rows[:, 2]
    expected = total * (rows[:, 0] + 1j * rows[:, 1]) + counts[:, 0] + 1j * counts[:, 1]
    np.testing.assert_allclose(buffers[0].read(0), expected, rtol=2e-5, atol=1e-5)
    np.testing.assert_array_equal(buffers[1].read(0).view(np.complex64)[:, 0], buffers[0].read(0))


@pytest.mark.parametrize("annotation", [Const, Var])
@pytest.mark.parametrize(("kind", "shape"), [(m4, (4, 4)), (v4, (4,)), (v3, (3,))])
def test_values_of_one_row(annotation: Any, kind: Any, shape: tuple[int, ...]) -> None:
    @vd.shader(exec_size=1)
    def kernel(out: Buff[f32], value: annotation[kind]) -> None:
        parts = [value[i] for i in range(shape[0])]
        for i, part in enumerate(
            parts if len(shape) == 1 else [column[i] for column in parts for i in range(4)]
        ):
            out[i] = part

    values = RNG.normal(size=shape).astype(np.float32)
    out = vd.asbuffer(np.zeros(values.size, np.float32))
    for given in (values, values[np.newaxis]):
        kernel(out, given)
        np.testing.assert_array_equal(out.read(0), values.ravel())
    for wrong in (values[np.newaxis, np.newaxis], values[..., np.newaxis], np.stack([values, values])):
        with pytest.raises(ValueError, match=r"'value'.*expected numbers of shape"):
            kernel(out, wrong)


@pytest.mark.parametrize("shape", [(5, 7), (3, 4, 6)])
def test_complex_texels(shape: tuple[int, ...]) -> None:
    data = complex_array(*shape)
    image = vd.Image2D(shape, vd.float32, 2) if len(shape) == 2 else vd.Image3D(shape, vd.float32, 2)
    for given in (data, np.asfortranarray(data), data[::-1][::-1]):
        image.write(np.zeros((*shape, 2), np.float32))
        image.write(given)
        np.testing.assert_array_equal(image.read(0), data.view(np.float32).reshape(*shape, 2))
    for wrong in (data.astype(np.complex128), data[:-1], data[..., np.newaxis]):
        with pytest.raises(ValueError, match="data: expected"):
            image.write(wrong)


def test_samples_of_complex_texels() -> None:
    data = complex_array(4, 4, 4)
    image = vd.Image3D(data.shape, vd.float32, 2)
    image.write(data)

    @vd.shader("out.size")
    def pick(out: Buff[c64], texels: Img3[f32]) -> None:
        i = vc.global_invocation_id().x.to_dtype(i32).to_register()
        place = vc.new_vec4_register(i % 4, (i // 4) % 4, i // 16, 1)
        out[i] = texels.sample(place.swizzle("xyz")).swizzle("xy").to_dtype(c64)

    out = vd.Buffer(64, vd.complex64)
    pick(out, image.sample(address_mode=vd.AddressMode.REPEAT))
    np.testing.assert_allclose(out.read(0), data.ravel(), rtol=1e-5, atol=1e-5)


# ---- buffers of complex numbers as rows of their components ---------------------------------------------


@vd.shader(exec_size=lambda args: args.rows.size * 2)
def halve(rows: Buff[f32]) -> None:
    i = vc.global_invocation_id().x
    rows[i] = rows[i] / 2 + rows.shape.y


@vd.shader(exec_size=lambda args: args.rows.shape[0])
def count(rows: Buff[i32]) -> None:
    vc.atomic_add(rows[2 * vc.global_invocation_id().x * rows.shape.y], 3)


def test_rows_of_an_rfft_buffer(recwarn: pytest.WarningsRecorder) -> None:
    signal = RNG.normal(size=(3, 10)).astype(np.float32)
    buffer = vd.RFFTBuffer(signal.shape)
    for graph in (None, vd.CommandGraph()):
        buffer.write_real(signal)
        halve(buffer, graph=graph)
        if graph is not None:
            graph.submit()
        np.testing.assert_array_equal(buffer.read_real(0), signal / 2 + np.float32(6))
    assert not [each for each in recwarn if issubclass(each.category, vd.KernelWarning)]


def test_a_launch_that_counts_complex_numbers_warns() -> None:
    buffer = vd.RFFTBuffer((3, 10))
    for graph in (None, vd.CommandGraph()):
        with pytest.warns(vd.KernelWarning, match="'rows': .*size and shape count complex64"):
            halve(buffer, exec_size=buffer.size, graph=graph)


def test_components_of_other_buffers_warn() -> None:
    data = complex_array(2, 3)
    buffer = vd.asbuffer(data)
    with pytest.warns(
        vd.KernelWarning, match=r"'rows': .* complex64 one by one, as float32.*\.view\(vd\.float32\)"
    ):
        halve(buffer)
    np.testing.assert_array_equal(buffer.read(0), data / 2 + np.complex64(3 + 3j))
    with pytest.warns(vd.KernelWarning, match="as int32"):
        count(vd.asbuffer(data))
    vectors = vd.Buffer((2, 3), vd.vec4)
    vectors.write(np.ones((2, 3, 4), np.float32))
    with pytest.warns(vd.KernelWarning, match="vec4"):
        halve(vectors, exec_size=24)
    np.testing.assert_array_equal(vectors.read(0), np.full((2, 3, 4), 3.5))


def test_counts_in_an_rfft_buffer() -> None:
    buffer = vd.RFFTBuffer((5, 6))
    buffer.write(np.zeros(buffer.shape, np.complex64))
    with pytest.warns(vd.KernelWarning, match="int32"):
        count(buffer)
    words = buffer.read(0).view(np.int32)
    assert (words[:, 0] == 3).all() and words.sum() == 15


@pytest.mark.parametrize("kind", [np.float64, np.uint32, np.int16, np.complex128])
def test_other_elements_are_refused(kind: Any) -> None:
    buffer = vd.asbuffer(np.zeros((2, 2), kind))
    with pytest.raises(TypeError, match="'rows': expected elements of float32, the buffer has"):
        halve(buffer)
    with pytest.raises(TypeError, match="'rows': expected elements of int32, the buffer has"):
        count(vd.RFFTBuffer((2, 2), vd.complex128))


def test_a_destroyed_buffer_of_other_elements() -> None:
    buffer = vd.RFFTBuffer((2, 2))
    buffer.destroy()
    with pytest.raises(RuntimeError, match="destroyed"):
        halve(buffer)


@pytest.mark.parametrize("recorded", [False, True])
def test_one_memory_as_numbers_and_as_their_parts(recorded: bool) -> None:
    @vd.shader(exec_size=lambda args: args.z.size)
    def kernel(z: Buff[c64], parts: Buff[f32]) -> None:
        i = vc.global_invocation_id().x
        before = parts[2 * i] * 1.0
        z[i] = vc.to_complex64(before + 1, 7)
        parts[2 * i + 1] += before

    data = (np.arange(70) + 0.5j).astype(np.complex64)
    buffer, graph = vd.asbuffer(data.reshape(1, 70)), vd.CommandGraph() if recorded else None
    for _ in range(2):
        buffer.write(data.reshape(1, 70))
        with pytest.warns(vd.KernelWarning):
            kernel(buffer, buffer, graph=graph)
        if graph is not None:
            graph.submit()
            graph.reset()
        np.testing.assert_array_equal(buffer.read(0)[0], data.real + 1 + 1j * (7 + data.real))
    z, apart = vd.asbuffer(data), vd.asbuffer(np.zeros(140, np.float32))
    kernel(z, apart)
    np.testing.assert_array_equal(z.read(0), np.full(70, 1 + 7j))


def test_bits_and_numbers_of_one_memory_stay_apart() -> None:
    @vd.shader(exec_size=1)
    def kernel(z: Buff[c64], words: Buff[u32]) -> None:
        z[0] = words[1].to_dtype(c64)

    buffer = vd.RFFTBuffer((1, 2))
    with pytest.raises(ValueError, match="share memory, as complex64 and as uint32"), pytest.warns():
        kernel(buffer, buffer)


def test_reductions_of_components() -> None:
    @vd.reduce.map_reduce(vd.reduce.SubgroupAdd, axes=[1])
    def areas(rows: Buff[f32]) -> v2:
        i = vd.reduce.mapped_io_index()
        sides = vc.new_vec2_register()
        sides.x = rows[2 * i] * rows[2 * i + 1]
        sides.y = rows.shape.y.to_dtype(f32)
        return sides

    buffer = vd.RFFTBuffer((4, 30))
    signal = RNG.normal(size=(4, 30)).astype(np.float32)
    buffer.write_real(signal)
    found = areas(buffer).read(0).reshape(4, 2)
    np.testing.assert_allclose(found[:, 0], (signal[:, ::2] * signal[:, 1::2]).sum(1), rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(found[:, 1], np.full(4, 256))


# ---- maps of transforms ---------------------------------------------------------------------------------


@vd.map
def load_scaled(source: Buff[f32], factor: Const[f32]) -> None:
    op = vd.fft.read_op()
    op.register.real = source[op.io_index] * factor
    op.register.imag = 0.0


@pytest.mark.parametrize("n", [2, 4, 30, 64, 210, 1024, 8192])
@pytest.mark.parametrize("batch", [1, 5])
def test_real_transform_in_place_by_a_map_of_reals(n: int, batch: int) -> None:
    signal = RNG.normal(size=(batch, n)).astype(np.float32)
    buffer = vd.RFFTBuffer(signal.shape)
    buffer.write_real(signal)
    vd.fft.fft(buffer, buffer, 2.0, buffer_shape=buffer.real_shape, r2c=True, input_map=load_scaled)
    expected = np.fft.rfft(2 * signal.astype(np.float64))
    np.testing.assert_allclose(buffer.read_fourier(0), expected, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize("n", [2, 8, 30, 210, 2048, 8192])
def test_maps_that_move_the_index(n: int) -> None:
    @vd.map
    def reverse(source: Buff[c64]) -> None:
        io_index = vd.fft.read_op().io_index
        io_index[:] = n - 1 - io_index
        vd.fft.read_op().read_from_buffer(source)

    @vd.map
    def swap_pairs(target: Buff[c64]) -> None:
        op = vd.fft.write_op()
        io_index = op.io_index
        with vc.if_block(io_index % 2 == 0):
            io_index[:] = io_index + 1
        with vc.else_block():
            io_index[:] = io_index - 1
        target[vd.fft.write_op().io_index] = op.register

    data = complex_array(1, n)
    source, target = vd.asbuffer(data), vd.Buffer(data.shape, vd.complex64)
    vd.fft.fft(target, source, input_map=reverse, output_map=swap_pairs, buffer_shape=data.shape)
    expected = np.fft.fft(data[:, ::-1])[:, np.arange(n) ^ 1]
    np.testing.assert_allclose(target.read(0), expected, atol=2e-6 * np.abs(expected).max())


def test_mirrored_spectra_by_a_map() -> None:
    @vd.map
    def mirror(spectrum: Buff[c64]) -> None:
        op = vd.fft.read_op()
        io_index = op.io_index
        with vc.if_block(op.fft_index >= op.fft_size // 2 + 1):
            io_index[:] = op.r2c_inverse_offset - io_index
        op.register[:] = spectrum[vd.fft.read_op().io_index]
        with vc.if_block(op.fft_index >= op.fft_size // 2 + 1):
            op.register.imag = -op.register.imag

    signal = RNG.normal(size=(3, 16)).astype(np.float32)
    buffer = vd.asrfftbuffer(signal)
    vd.fft.rfft(buffer)
    vd.fft.fft(
        buffer,
        buffer,
        buffer_shape=buffer.real_shape,
        input_map=mirror,
        r2c=True,
        inverse=True,
        output_map=None,
    )
    np.testing.assert_allclose(buffer.read_real(0), signal, atol=1e-5)


@pytest.mark.parametrize("kernels", [1, 3])
def test_convolution_by_maps_without_names(kernels: int) -> None:
    shape = (kernels, 8, 6)
    weights = [0.5, 2.0, -1.0][:kernels]

    def weigh(value: Any, *given: Any) -> None:
        value[:] = value * given[vd.fft.mapped_kernel_index()]

    data = complex_array(*shape)
    buffer = vd.asbuffer(data)
    vd.fft.convolve(
        buffer,
        buffer,
        *weights,
        buffer_shape=(1, *shape[1:]),
        axis=1,
        kernel_num=kernels,
        normalize=True,
        kernel_map=vd.map(
            func=lambda *given: weigh(vd.fft.read_op().register, *given), input_types=[Const[f32]] * kernels
        ),
        output_map=vd.map(
            func=lambda target: vd.fft.write_op().write_to_buffer(
                buffer=target, io_index=vd.fft.write_op().io_index + 48 * vd.fft.mapped_kernel_index()
            ),
            input_types=[vc.Buffer[c64]],
        ),
    )
    expected = data[0] * np.array(weights).reshape(-1, 1, 1)
    np.testing.assert_allclose(buffer.read(0), expected, rtol=1e-5, atol=1e-5)


# ---- stores through what a helper gets ------------------------------------------------------------------


def scale_all(value: Any, targets: list[Any], factors: tuple[Any, ...]) -> None:
    for target, factor in zip(targets, factors, strict=True):
        target[:] = vc.mult_complex(value, vc.complex_from_euler_angle(factor))


def test_helpers_store_to_elements_that_they_get() -> None:
    types = [Buff[c64], Const[f32], Var[f32]]

    @vd.shader(exec_size=lambda args: args.param0.shape[1], arg_type_annotations=types)
    def kernel(values: Any, *angles: Any) -> None:
        i = vc.global_invocation_id().x
        value = values[i].to_register()
        scale_all(value, [values[i + k * 9] for k in range(2)], angles)

    data = complex_array(2, 9)
    buffer = vd.asbuffer(data)
    kernel(buffer, 0.5, -1.25)
    expected = data[0] * np.exp(1j * np.array([[0.5], [-1.25]]))
    np.testing.assert_allclose(buffer.read(0), expected, rtol=1e-5, atol=1e-5)
