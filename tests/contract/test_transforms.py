"""FFTs: the contract's sentences one by one, as a program written for 0.1.0 would rely on them."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import Buff, c64
from vkdispatch.fft import functions as fft_functions

from .transforms import (
    close,
    read_plainly,
    read_reals,
    real,
    scale_spectrum,
    signal,
    write_plainly,
    write_scaled,
)

# ---- 1.5 ------------------------------------------------------------------------------------------

_NAMES = """
fft fft2 fft3 ifft ifft2 ifft3 rfft rfft2 rfft3 irfft irfft2 irfft3 convolve convolve2D convolve2DR transpose
convolve_src convolve2D_src convolve2DR_src transpose_src convolve_print_src convolve2D_print_src
convolve2DR_print_src make_fft_shader make_convolution_shader make_transpose_shader get_transposed_size
get_cache_info print_cache_info cache_clear fft_context read_op write_op mapped_kernel_index
memory_reads_iterator memory_writes_iterator MemoryOp global_reads_iterator GlobalReadOp
global_writes_iterator GlobalWriteOp global_trasposed_write_iterator GlobalTransposedWriteOp IOProxy IOManager
FFTConfig FFTGridManager FFTSDataManager FFTRegisters FFTResources pad_dim
"""


def test_names() -> None:
    names = _NAMES.split()
    transforms = names[:12]
    suffixed = [f"{name}{suffix}" for name in transforms for suffix in ("_src", "_print_src")]
    for name in names + suffixed:
        assert callable(getattr(vd.fft, name)), name
        assert name in vd.fft.__all__, name
    assert "fft" in dir(vd)


# ---- 11.1 and 11.2 ---------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [None, 0, 1, 2, -1, -2, -3])
def test_one_axis(axis: int | None) -> None:
    a = signal(4, 6, 10)
    numpy_axis = -1 if axis is None else axis
    buffer = vd.asbuffer(a)
    assert vd.fft.fft(buffer, axis=axis) is None
    close(buffer.read(0), np.fft.fft(a, axis=numpy_axis))
    vd.fft.ifft(buffer, axis=axis)
    close(buffer.read(0), a)
    vd.fft.ifft(buffer, axis=axis, normalize=False)
    close(buffer.read(0), np.fft.ifft(a, axis=numpy_axis) * a.shape[numpy_axis])


def test_several_axes() -> None:
    for a in (signal(8, 12), signal(3, 8, 12)):
        buffer = vd.asbuffer(a)
        vd.fft.fft2(buffer)
        close(buffer.read(0), np.fft.fft2(a))
        vd.fft.ifft2(buffer)
        close(buffer.read(0), a)
    a = signal(3, 8, 12)
    buffer = vd.asbuffer(a)
    vd.fft.fft3(buffer)
    close(buffer.read(0), np.fft.fftn(a))
    vd.fft.ifft3(buffer, normalize=False)
    close(buffer.read(0), a * a.size)
    for function in (vd.fft.fft2, vd.fft.ifft2, vd.fft.fft3, vd.fft.ifft3):
        with pytest.raises(ValueError, match="axes"):
            function(vd.asbuffer(signal(16)))
    with pytest.raises(ValueError, match="fft3"):
        vd.fft.fft3(vd.asbuffer(signal(4, 4)))


def test_options_by_position() -> None:
    a = signal(6, 10)
    graph = vd.CommandGraph()
    buffer = vd.asbuffer(a)
    vd.fft.fft2(buffer, graph)
    vd.fft.ifft2(buffer, graph, False, False)
    vd.fft.ifft(buffer, graph, False, 0, None, True)
    vd.fft.fft2(buffer=buffer, graph=graph)
    close(buffer.read(0), a)
    graph.submit()
    close(buffer.read(0), np.fft.fft2(np.fft.ifft(a, axis=0) * a.size))
    with pytest.raises(TypeError, match="twice"):
        vd.fft.fft2(buffer, graph, graph=graph)
    with pytest.raises(TypeError, match="positional"):
        vd.fft.fft3(buffer, None, False, None, None, None, None, None, None)


def test_axis_beyond_the_shape() -> None:
    buffer = vd.asbuffer(signal(4, 4))
    for axis in (2, -3, 100):
        with pytest.raises(IndexError, match="axis"):
            vd.fft.fft(buffer, axis=axis)


@pytest.mark.parametrize("n", [1, 2, 5, 8, 13, 30])
def test_real_transforms(n: int) -> None:
    for shape in ((n,), (3, n), (2, 6, n)):
        a = real(*shape)
        buffer = vd.asrfftbuffer(a)
        vd.fft.rfft(buffer)
        close(buffer.read_fourier(0), np.fft.rfft(a))
        vd.fft.irfft(buffer)
        close(buffer.read_real(0), a)
    a = real(4, 6, n)
    buffer = vd.asrfftbuffer(a)
    vd.fft.rfft2(buffer)
    close(buffer.read_fourier(0), np.fft.rfft2(a))
    vd.fft.irfft2(buffer)
    close(buffer.read_real(0), a)
    vd.fft.rfft3(buffer)
    close(buffer.read_fourier(0), np.fft.rfftn(a))
    vd.fft.irfft3(buffer)
    close(buffer.read_real(0), a)
    vd.fft.rfft(buffer)
    vd.fft.irfft(buffer, normalize=False)
    close(buffer.read_real(0), a * n)


def test_real_transform_needs_neighbours() -> None:
    buffer = vd.RFFTBuffer((4, 6))
    with pytest.raises(ValueError, match="last axis"):
        vd.fft.fft(buffer, buffer_shape=buffer.real_shape, r2c=True, axis=0)


def test_padded_real_transform() -> None:
    a = np.zeros((3, 20), np.float32)
    a[:, :7] = real(3, 7)
    dirty = a.copy()
    dirty[:, 7:] = 99
    buffer = vd.asrfftbuffer(dirty)
    vd.fft.fft(buffer, buffer_shape=buffer.real_shape, r2c=True, input_signal_range=(0, 7))
    close(buffer.read_fourier(0), np.fft.rfft(a))


def test_printing(capsys: pytest.CaptureFixture[str]) -> None:
    vd.fft.fft(vd.asbuffer(signal(16)), print_shader=True, name="ignored")
    assert "#version 450" in capsys.readouterr().out


@pytest.mark.parametrize("n", [2, 3, 4, 7, 11, 13, 2 * 3 * 5 * 7, 11 * 13, 1001, 512, 720])
def test_lengths(n: int) -> None:
    a = signal(2, n)
    buffer = vd.asbuffer(a)
    vd.fft.fft(buffer)
    close(buffer.read(0), np.fft.fft(a))


def test_padding_of_lengths() -> None:
    assert [vd.fft.pad_dim(n) for n in (1, 2, 16, 17, 101, 1009)] == [1, 2, 16, 18, 104, 1014]
    assert vd.fft.pad_dim(11, 10) == 12 and vd.fft.pad_dim(17, 17) == 17
    for bad in (0, -3):
        with pytest.raises(ValueError, match="dim"):
            vd.fft.pad_dim(bad)


# ---- 11.3 ------------------------------------------------------------------------------------------


def test_input_map_only() -> None:
    a = signal(3, 16)
    out: Any = vd.Buffer((3, 16), vd.complex64)
    vd.fft.fft(out, vd.asbuffer(a), input_map=read_plainly)
    close(out.read(0), np.fft.fft(a))
    vd.fft.fft(out, vd.asbuffer(a.real.copy()), input_map=read_reals)
    close(out.read(0), np.fft.fft(a.real))


def test_output_map_only() -> None:
    a = signal(3, 16)
    source, out = vd.asbuffer(a), vd.Buffer((3, 16), vd.complex64)
    vd.fft.fft(out, np.float32(0.5), source, output_map=write_scaled)
    close(out.read(0), np.fft.fft(a) * 0.5)
    close(source.read(0), a)
    with pytest.raises(ValueError, match="input buffer argument must be provided"):
        vd.fft.fft(out, np.float32(0.5), output_map=write_scaled)


def test_both_maps() -> None:
    a = signal(3, 16)
    out: Any = vd.Buffer((3, 16), vd.complex64)
    vd.fft.fft(out, 2.0, vd.asbuffer(a), input_map=read_plainly, output_map=write_scaled)
    close(out.read(0), np.fft.fft(a) * 2)
    vd.fft.ifft(out, 2.0, vd.asbuffer(a), input_map=read_plainly, output_map=write_scaled, axis=0)
    close(out.read(0), np.fft.ifft(a, axis=0) * 2)


def test_wrong_buffers_and_types() -> None:
    buffer = vd.asbuffer(signal(16))
    for function in (vd.fft.fft, vd.fft.ifft, vd.fft.fft2, vd.fft.ifft3):
        with pytest.raises(ValueError, match="at least one buffer"):
            function()
    with pytest.raises(ValueError, match="expected 1 arguments"):
        vd.fft.fft(buffer, buffer)
    with pytest.raises(ValueError, match="output_type"):
        vd.fft.fft(buffer, buffer, output_map=write_plainly, output_type=vd.complex64)
    with pytest.raises(ValueError, match="input_type"):
        vd.fft.fft(buffer, buffer, input_map=read_plainly, input_type=vd.complex64)
    with pytest.raises(ValueError, match="kernel_type"):
        vd.fft.convolve(buffer, buffer, kernel_map=scale_spectrum, kernel_type=vd.complex64)
    with pytest.raises(ValueError, match="complex"):
        vd.fft.fft(vd.asbuffer(np.zeros(16, np.float32)))
    with pytest.raises(ValueError, match="compute_type"):
        vd.fft.fft(buffer, compute_type=vd.float32)
    with pytest.raises(ValueError, match="same"):
        vd.fft.fft(buffer, input_type=vd.complex32)
    with pytest.raises(ValueError, match="bytes"):
        vd.fft.fft(buffer, output_type=vd.complex128)
    with pytest.raises(ValueError, match="bytes"):
        vd.fft.fft(buffer, buffer_shape=(17,))


def test_several_axes_with_maps() -> None:
    a = signal(4, 6, 10)
    out: Any = vd.Buffer(a.shape, vd.complex64)
    source = vd.asbuffer(a)
    for forward, back, numpy_forward, numpy_back in (
        (vd.fft.fft2, vd.fft.ifft2, np.fft.fft2, np.fft.ifft2),
        (vd.fft.fft3, vd.fft.ifft3, np.fft.fftn, np.fft.ifftn),
    ):
        forward(out, source, input_map=read_plainly)
        close(out.read(0), numpy_forward(a))
        forward(out, 0.5, source, output_map=write_scaled)
        close(out.read(0), numpy_forward(a) * 0.5)
        back(out, 0.5, source, input_map=read_plainly, output_map=write_scaled)
        close(out.read(0), numpy_back(a) * 0.5)
        close(source.read(0), a)
        with pytest.raises(ValueError, match="expected 3 arguments"):
            forward(out, source, source, source, source, output_map=write_scaled, input_map=scale_spectrum)


# ---- 11.4 and 11.5 ---------------------------------------------------------------------------------


def test_operations_outside_of_maps() -> None:
    for function in (vd.fft.read_op, vd.fft.write_op):
        with pytest.raises(ValueError, match="_op"):
            function()
    assert vd.fft.mapped_kernel_index() is None


def test_what_operations_tell() -> None:
    seen: list[Any] = []

    def look(source: Buff[c64]) -> None:
        op = vd.fft.read_op()
        seen.append(op)
        assert op.io_index.var_type is vd.uint32
        for name in ("fft_index", "fft_offset", "io_index_2", "r2c_inverse_offset"):
            assert getattr(op, name).var_type is vd.uint32
        assert (op.fft_stride, op.fft_size, op.r2c, op.inverse) == (5, 12, False, False)
        assert op.format_transposed is False and op.signal_range is None
        op.read_from_buffer(source)

    def look_at_write(target: Buff[c64]) -> None:
        op = vd.fft.write_op()
        seen.append(op)
        assert (op.fft_stride, op.fft_size, op.r2c, op.inverse) == (5, 12, False, False)
        op.write_to_buffer(target)

    a = signal(3, 12, 5)
    out: Any = vd.Buffer(a.shape, vd.complex64)
    maps = {
        "input_map": vd.map(look, input_types=[Buff[c64]]),
        "output_map": vd.map(look_at_write, input_types=[Buff[c64]]),
    }
    vd.fft.fft(out, vd.asbuffer(a), axis=1, **maps)
    close(out.read(0), np.fft.fft(a, axis=1))
    reads = [op for op in seen if isinstance(op, vd.fft.GlobalReadOp)]
    writes = [op for op in seen if isinstance(op, vd.fft.GlobalWriteOp)]
    assert len(reads) == reads[0].register_count and len(writes) == writes[0].register_count
    for ops in (reads, writes):
        assert [op.register_id for op in ops] == list(range(len(ops)))
        for op in ops:
            assert op.register_id == op.instance_id * op.element_count + op.element_id
            assert op.instance_count * op.element_count == op.register_count


def test_maps_that_remap() -> None:
    """A small picture is transformed within a larger buffer."""
    small, big = (6, 10), (9, 16)

    def read_corner(source: Buff[c64]) -> None:
        op = vd.fft.read_op()
        op.read_from_buffer(
            source, io_index=vc.unravel_index(vc.ravel_index(op.io_index, small).to_register(), big)
        )

    a = signal(*big)
    out: Any = vd.Buffer(small, vd.complex64)
    vd.fft.fft(out, vd.asbuffer(a), input_map=vd.map(read_corner, input_types=[Buff[c64]]))
    close(out.read(0), np.fft.fft(a[:6, :10]))


@pytest.mark.parametrize("span", [(None, None), (3, None), (None, 9), (2, 11), (5, 5), (0, 1), (0, 100)])
def test_signal_range(span: tuple[int | None, int | None]) -> None:
    for axis in (0, 1):
        a = signal(16, 16)
        kept = np.zeros_like(a)
        where: Any = [slice(None)] * 2
        where[axis] = slice(*span)
        kept[tuple(where)] = a[tuple(where)]
        buffer = vd.asbuffer(a)
        vd.fft.fft(buffer, axis=axis, input_signal_range=span)
        close(buffer.read(0), np.fft.fft(kept, axis=axis))


def test_signal_range_holds_for_reads_of_maps() -> None:
    a = signal(16)
    kept = a.copy()
    kept[4:] = 0
    out: Any = vd.Buffer((16,), vd.complex64)
    vd.fft.fft(out, vd.asbuffer(a), input_map=read_plainly, input_signal_range=(None, 4))
    close(out.read(0), np.fft.fft(kept))
    vd.fft.fft(out, vd.asbuffer(a.real.copy()), input_map=read_reals, input_signal_range=(None, 4))
    close(out.read(0), np.fft.fft(a.real))
    for bad in ((0,), 4, (-1, 3)):
        with pytest.raises(ValueError, match="input_signal_range"):
            vd.fft.fft(out, input_signal_range=bad)


# ---- 11.7 ------------------------------------------------------------------------------------------


def test_caches(capsys: pytest.CaptureFixture[str]) -> None:
    vd.fft.cache_clear()
    first = vd.fft.make_fft_shader((4, 8), axis=1)
    assert vd.fft.make_fft_shader((4, 8)) is first and vd.fft.make_fft_shader([4, 8], -1) is first
    assert vd.fft.make_fft_shader((4, 8), inverse=True) is not first
    info = vd.fft.get_cache_info()
    assert (info.hits, info.misses, info.currsize) == (2, 2, 2)
    mapped = vd.fft.make_fft_shader((4, 8), input_map=read_plainly)
    assert vd.fft.make_fft_shader((4, 8), input_map=read_plainly) is mapped
    assert vd.fft.make_fft_shader((4, 8), input_map=vd.map(read_plainly.mapping_function)) is mapped
    convolution = vd.fft.make_convolution_shader((4, 8))
    assert vd.fft.make_convolution_shader((4, 8)) is convolution
    transposition = vd.fft.make_transpose_shader((4, 8))
    assert vd.fft.make_transpose_shader((4, 8)) is transposition
    vd.fft.print_cache_info()
    assert "CacheInfo" in capsys.readouterr().out
    vd.fft.cache_clear()
    assert vd.fft.get_cache_info().currsize == 0
    assert vd.fft.make_fft_shader((4, 8)) is not first
    assert vd.fft.make_convolution_shader((4, 8)) is not convolution
    assert isinstance(first, vd.ShaderFunction) and isinstance(convolution, vd.ShaderFunction)


def test_made_shaders_run() -> None:
    a, k = signal(4, 8), signal(4, 8, seed=1)
    buffer, kernel = vd.asbuffer(a), vd.asbuffer(k)
    vd.fft.make_fft_shader((4, 8), axis=0)(buffer)
    close(buffer.read(0), np.fft.fft(a, axis=0))
    buffer.write(a)
    vd.fft.make_convolution_shader((4, 8))(buffer, kernel)
    close(buffer.read(0), np.fft.ifft(np.fft.fft(a) * np.conj(k)))
    layout: Any = vd.Buffer((vd.fft.get_transposed_size((4, 8), axis=0),), vd.complex64)
    vd.fft.make_transpose_shader((4, 8), axis=0)(layout, kernel)
    buffer.write(a)
    vd.fft.make_convolution_shader((4, 8), axis=0, transposed_kernel=True)(buffer, layout)
    close(buffer.read(0), np.fft.ifft(np.fft.fft(a, axis=0) * np.conj(k), axis=0))


def test_sources(capsys: pytest.CaptureFixture[str]) -> None:
    f = vd.fft
    for source in (
        f.fft_src((4, 8), axis=0, input_signal_range=(0, 2)),
        f.ifft_src((4, 8), 1, False),
        f.rfft_src((4, 8)),
        f.irfft_src((4, 8), False),
        f.convolve_src((4, 8), axis=0, transposed_kernel=True),
        f.transpose_src((4, 8), axis=0, kernel_inner_only=True),
        f.fft_src((4, 8), input_map=read_plainly, output_map=write_plainly),
    ):
        assert isinstance(source, vd.ShaderSource) and source.code.startswith("#version 450")
    assert f.fft_src((4, 8), line_numbers=True).code.startswith("   1: #version")
    for sources, count in (
        (f.fft2_src((4, 8)), 2),
        (f.ifft2_src((4, 8)), 2),
        (f.rfft2_src((4, 8)), 2),
        (f.irfft2_src((4, 8)), 2),
        (f.fft3_src((4, 8, 3)), 3),
        (f.ifft3_src((4, 8, 3)), 3),
        (f.rfft3_src((4, 8, 3)), 3),
        (f.irfft3_src((4, 8, 3)), 3),
        (f.convolve2D_src((4, 8)), 3),
        (f.convolve2DR_src((4, 8)), 3),
    ):
        assert isinstance(sources, tuple) and len(sources) == count
        assert all(isinstance(source, vd.ShaderSource) for source in sources)
    f.fft2_print_src((4, 8))
    assert capsys.readouterr().out.count("#version") == 2
    f.convolve2DR_print_src((4, 8))
    assert capsys.readouterr().out.count("#version") == 3
    f.fft_print_src((4, 8), line_numbers=True)
    assert "   1: #version" in capsys.readouterr().out
    import vkdispatch.fft.src_functions as src

    src.transpose_print_src((4, 8))
    assert "#version" in capsys.readouterr().out


# ---- 11.8 ------------------------------------------------------------------------------------------


def test_step_by_step() -> None:
    a = signal(6, 40)
    for axis in (0, 1):
        with vd.fft.fft_context(a.shape, axis=axis) as ctx:
            (buffer,) = ctx.declare_shader_args([Buff[c64]])
            with pytest.raises(ValueError, match="already"):
                ctx.make_io_manager(None)
            for op in ctx.reads_iter():
                op.read_from_buffer(buffer)
            ctx.execute(inverse=False)
            for write in vd.fft.global_writes_iterator(ctx.registers):
                write.write_to_buffer(buffer)
            with pytest.raises(ValueError, match="ended"):
                ctx.get_callable()
        kernel = ctx.get_callable()
        assert isinstance(kernel, vd.ShaderFunction)
        data = vd.asbuffer(a)
        kernel(data)
        close(data.read(0), np.fft.fft(a, axis=axis))


@pytest.mark.parametrize("n", [16, 24, 60, 64, 77])
def test_there_and_back(n: int) -> None:
    a, k = signal(3, n), signal(3, n, seed=1)
    with vd.fft.fft_context((3, n)) as ctx:
        io = ctx.make_io_manager(output_map=None, kernel_map=vd.complex64)
        io.read_input()
        ctx.execute(inverse=False)
        ctx.register_shuffle()
        kept = ctx.allocate_registers("kernel")
        io.read_kernel(registers=kept)
        for i in range(ctx.registers.count):
            ctx.registers[i] = vc.mult_complex(ctx.registers[i], kept[i])
        ctx.execute(inverse=True)
        ctx.registers.normalize()
        io.write_output()
    data = vd.asbuffer(a)
    ctx.get_callable()(data, vd.asbuffer(k))
    close(data.read(0), np.fft.ifft(np.fft.fft(a) * k))


@pytest.mark.parametrize(("shape", "axis"), [((256,), None), ((3, 45), 1), ((24, 5), 0), ((1,), 0)])
def test_two_branches(shape: tuple[int, ...], axis: int | None) -> None:
    """A smoothed signal and a derivative, of one transform forward."""
    with vd.fft.fft_context(shape, axis=axis) as ctx:
        source, smooth, slope = ctx.declare_shader_args([Buff[c64]] * 3)
        omega = 2 * np.pi / ctx.config.N
        ctx.read_from_buffer(buffer=source)
        ctx.execute(inverse=False)
        ctx.register_shuffle()
        other = ctx.allocate_registers("slope")
        for op in ctx.reads_iter():
            register, k = ctx.registers[op.register_id], op.fft_index_shifted
            assert k.var_type is vd.int32
            other[op.register_id] = k * omega * vc.mult_complex(register, 1j)
            register *= vc.exp(-(k * k) * 0.5 / (10.0 * 10.0))
        ctx.execute(inverse=True)
        ctx.registers.normalize()
        ctx.write_to_buffer(buffer=smooth)
        ctx.registers.read_from_registers(other)
        ctx.execute(inverse=True)
        ctx.registers.normalize()
        ctx.write_to_buffer(slope)
    a = signal(*shape)
    results = [vd.Buffer(shape, vd.complex64) for _ in range(2)]
    ctx.get_callable()(vd.asbuffer(a), *results)
    along = -1 if axis is None else axis
    n = shape[along]
    k = np.expand_dims(
        np.fft.fftfreq(n, 1 / n), tuple(i for i in range(len(shape)) if i != along % len(shape))
    )
    spectrum = np.fft.fft(a, axis=along)
    weights = np.exp(-(k**2) / 200), 2j * np.pi / n * k
    for result, weight in zip(results, weights, strict=True):
        close(result.read(0), np.fft.ifft(spectrum * weight, axis=along))


def test_reads_and_writes_of_whole_lines() -> None:
    n = 30
    a = np.random.default_rng(5).standard_normal((4, n)).astype(np.float32)
    with vd.fft.fft_context(a.shape) as ctx:
        (buffer,) = ctx.declare_shader_args([Buff[c64]])
        ctx.read_from_buffer(buffer, r2c=True, inverse=False, signal_range=(0, 20))
        ctx.execute(inverse=False)
        ctx.write_to_buffer(buffer, r2c=True, inverse=False)
    data = vd.asrfftbuffer(a)
    ctx.get_callable()(data)
    close(data.read_fourier(0), np.fft.rfft(np.where(np.arange(n) < 20, a, 0)))


def test_maps_without_arguments() -> None:
    @vd.map
    def turned() -> None:
        op = vd.fft.read_op()
        op.register[:] = op.register * 1j

    @vd.map
    def ones() -> None:
        op = vd.fft.read_op()
        op.register[:] = vc.to_complex(op.fft_index_shifted.to_dtype(vd.float32), 0)

    a = signal(3, 20)
    data = vd.asbuffer(a)
    vd.fft.convolve(data, kernel_map=turned)
    close(data.read(0), 1j * a)
    vd.fft.fft(data, input_map=ones)
    close(data.read(0), np.tile(np.fft.fft(np.fft.fftfreq(20, 1 / 20)), (3, 1)))


def test_configuration_and_registers() -> None:
    config = vd.fft.FFTConfig((3, 60, 5), axis=1)
    assert (config.N, config.fft_stride, config.compute_type) == (60, 5, vd.complex64)
    assert (config.batch_outer_count, config.batch_inner_count, config.batch_outer_stride) == (3, 5, 300)
    assert config.max_prime_radix == 5 and len(config.thread_counts) == len(config.stages)
    assert config.register_count >= 1 and config.batch_threads >= 1
    assert config.sdata_row_size_padded >= config.sdata_row_size and config.sdata_allocation >= 0
    with pytest.raises(ValueError, match="compute_type"):
        vd.fft.FFTConfig((8,), compute_type=vd.float32)
    with pytest.raises(ValueError, match="pad_dim"):
        vd.fft.FFTConfig((8, 1 << 20))
    with vd.fft.fft_context((4, 16), max_register_count=8, name="mine") as ctx:
        (buffer,) = ctx.declare_shader_args([Buff[c64]])
        assert isinstance(ctx.config, vd.fft.FFTConfig) and ctx.name == "mine"
        assert isinstance(ctx.grid, vd.fft.FFTGridManager) and isinstance(ctx.sdata, vd.fft.FFTSDataManager)
        assert isinstance(ctx.resources, vd.fft.FFTResources)
        registers = ctx.registers
        assert isinstance(registers, vd.fft.FFTRegisters)
        registers.clear()
        other = ctx.allocate_registers("other")
        assert other.count == registers.count
        other.read_from_registers(registers)
        other.slice_set(slice(0, 2), other.register_slice(slice(0, 2)))
        with pytest.raises(ValueError, match="registers"):
            other.read_from_registers(ctx.allocate_registers("few", 1))
        for memory in vd.fft.memory_reads_iterator(ctx.resources):
            assert isinstance(memory, vd.fft.MemoryOp)
            registers[memory.register_id] = vc.to_complex(memory.fft_index.to_dtype(vd.float32))
        ctx.execute(inverse=False)
        for memory in vd.fft.memory_writes_iterator(ctx.resources):
            assert memory.fft_size == 16
        for op in ctx.writes_iter():
            op.write_to_buffer(buffer)
    data: Any = vd.Buffer((4, 16), vd.complex64)
    ctx.get_callable()(data)
    close(data.read(0), np.tile(np.fft.fft(np.arange(16)), (4, 1)))


# ---- 11.9 ------------------------------------------------------------------------------------------


def test_the_private_function(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def ensure(dtype: Any, role: str = "") -> None:
        asked.append((dtype, role))

    monkeypatch.setattr(fft_functions, "ensure_supported_complex_precision", ensure)
    output_map: Any = SimpleNamespace(buffer_types=[object(), object()])
    buffers: Any = tuple(SimpleNamespace(var_type=kind) for kind in (vd.float32, 7, vd.complex32))
    options = {"input_map": None, "output_map": output_map, "input_type": None, "output_precision": None}
    assert fft_functions._resolve_input_precision(buffers, **options) is vd.complex32
    assert [kind for kind, _ in asked] == [vd.complex32]
    with pytest.raises(ValueError, match="input buffer argument must be provided"):
        fft_functions._resolve_input_precision(buffers[:2], **options)


def test_threads() -> None:
    """Kernels may be made in several threads at once."""
    failures: list[BaseException] = []

    def work(n: int) -> None:
        try:
            a = signal(2, n)
            buffer: Any = vd.asbuffer(a)
            vd.fft.fft(buffer)
            close(buffer.read(0), np.fft.fft(a))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in (18, 20, 22, 26)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
