"""Run transforms and convolutions in vkdispatch 0.1.0 and here, and compare what they give.

``python tests/contract/beside_010.py --original PYTHON [--only TEXT]`` runs the same cases in two processes:
in the interpreter PYTHON, whose environment has vkdispatch 0.1.0, and in this one. It prints a line for
each case that differs, with the factor if it is one. The exit status is 1 if a difference is not in
`DIFFERENCES`, which the page docs/coming_from/vkdispatch_010.rst names too.
"""

import argparse
import hashlib
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

# beside this file, whose folder is the first on the path
from transforms import read_reals, real, signal, write_plainly, write_scaled  # type: ignore[import-not-found]

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import Buff, Const, c64, f32

# Cases that differ on purpose, by a pattern of their names, and why.
DIFFERENCES = {
    r"^fft\.fft \(2,(1|17|34)\)|max_register_count=4": "0.1.0 refuses these lengths",
    r"compute_type=complex128": "0.1.0 ends the process",
    r"transposed=True.* kernel_inner_only": "0.1.0 raises an error",
    r"convolve2D .*output_map|convolve2DR .*kernel_map": "0.1.0 raises an error",
    r"^vkfft\.fft .*axis=-": "0.1.0 refuses negative axes, or takes another axis",
    r"^vkfft\.fft .*complex128": "0.1.0 reads complex128 as complex64",
    r"^vkfft\.irfft \(": "no real signal has these spectra; VkFFT mixes lines",
    r"^vkfft\.convolve2D \(8,16\)": "0.1.0 takes the height of a 2-D buffer for its batch",
    r"^vkfft\.convolve2D .* \(8,16\)": "0.1.0 reads beyond the only kernel",
    r"conjugate_kernel=True": "0.1.0 conjugates the spectrum of the image",
    r"^vkfft\..*onvol.*normalize=False": "0.1.0 leaves out one of two divisions",
    r"padding=": "0.1.0 leaves the elements in the ranges as they are, and ranges that start at 0 are wrong",
    r"convolution \(8,16\) 2": "0.1.0 transforms one kernel of several features",
    r"single_kernel_multiple_batches": "0.1.0 ignores the option",
}

CASES: dict[str, Callable[[], Any]] = {}
RAISED = 3  # the exit status of a worker after an exception


def add(title: str, function: Callable[..., Any], /, *arguments: Any, **options: Any) -> None:
    """Add a case, named by a title, the arguments and the options."""
    words = [title, *(describe(each) for each in arguments)]
    words = [words[0], *(word for word in words[1:] if word not in title.split("."))]
    words += [f"{option}={describe(each)}" for option, each in options.items()]
    assert " ".join(words) not in CASES, words
    CASES[" ".join(words)] = lambda: function(*arguments, **options)


def describe(value: Any) -> str:
    names = [name for name, item in globals().items() if item is value and name[0] != "_"]
    return names[0] if names else str(getattr(value, "__name__", value)).replace(" ", "")


def call(module: str, function: str) -> Any:
    return getattr(getattr(vd, module), function)


# ---- maps -----------------------------------------------------------------------------------------


@vd.map
def read_scaled(source: Buff[c64], scale: Const[f32]) -> None:
    op = vd.fft.read_op()
    op.read_from_buffer(source)
    op.register[:] = op.register * scale


@vd.map
def read_places(scale: Const[f32]) -> None:
    op = vd.fft.read_op()
    op.register.real = op.io_index.to_dtype(vd.float32) * scale
    op.register.imag = op.fft_index * 1.0  # in 0.1.0 it may be a number of Python


@vd.map
def write_places(target: Buff[c64]) -> None:
    op = vd.fft.write_op()
    place = vc.new_complex64_register()
    place.real = op.fft_index * 1.0
    place.imag = op.fft_size
    target[op.io_index] = place


@vd.map
def weigh(weights: Buff[c64]) -> None:
    op = vd.fft.read_op()
    value = vc.new_register(c64)
    op.read_from_buffer(weights, register=value)
    op.register[:] = vc.mult_complex(op.register, value)


@vd.map
def weigh_by_places(scale: Const[f32]) -> None:
    op = vd.fft.read_op()
    op.register[:] = op.register * (op.io_index.to_dtype(vd.float32) + scale)


@vd.map
def weigh_by_indices(scale: Const[f32]) -> None:
    op = vd.fft.read_op()
    op.register[:] = op.register * (op.fft_index * 1.0 + scale)


@vd.map
def weigh_by_numbers(weights: Buff[c64]) -> None:
    op, number = vd.fft.read_op(), vd.fft.mapped_kernel_index()
    op.register[:] = vc.mult_complex(op.register, weights[op.io_index + number * 16])


@vd.map
def write_by_numbers(target: Buff[c64]) -> None:
    op, number = vd.fft.write_op(), vd.fft.mapped_kernel_index()
    target[op.io_index + number * 16] = op.register


# ---- vd.fft and vd.vkfft --------------------------------------------------------------------------


def transform(module: str, function: str, shape: Any, kind: Any = np.complex64, **options: Any) -> Any:
    buffer = vd.asbuffer(signal(*shape, kind=kind))
    call(module, function)(buffer, **options)
    return buffer.read(0)


def transform_real(module: str, functions: Any, shape: Any, kind: Any = np.float32, **options: Any) -> Any:
    buffer = vd.asrfftbuffer(real(*shape, kind=kind))
    for function in functions:
        call(module, function)(buffer, **(options if function == functions[-1] else {}))
    return np.concatenate([buffer.read(0).view(kind).ravel(), np.ravel(buffer.read_real(0))])


def inverse_real(module: str, function: str, shape: Any, **options: Any) -> Any:
    """Invert half spectra that no real signal has: imaginary parts at both ends, without symmetry."""
    buffer = vd.RFFTBuffer(shape)
    buffer.write_fourier(signal(*shape[:-1], shape[-1] // 2 + 1))
    call(module, function)(buffer, **options)
    return buffer.read_real(0)


def padded_real(shape: Any, span: Any) -> Any:
    buffer = vd.asrfftbuffer(real(*shape))
    vd.fft.fft(buffer, buffer_shape=buffer.real_shape, r2c=True, input_signal_range=span)
    return buffer.read_fourier(0)


def transform_by_maps(
    shape: Any, input_map: Any = None, output_map: Any = None, out: Any = None, **options: Any
) -> Any:
    target, source = vd.asbuffer(signal(*(out or shape), seed=9)), vd.asbuffer(signal(*shape))
    arguments = [target]
    if output_map is write_scaled:
        arguments.append(np.float32(0.5))
    if input_map is read_reals:
        arguments.append(vd.asbuffer(real(*shape)))
    elif input_map is not read_places and (input_map or output_map):
        arguments.append(source)
    if input_map in (read_scaled, read_places):
        arguments.append(np.float32(2))
    vd.fft.fft(*arguments, input_map=input_map, output_map=output_map, **options)
    return target.read(0)


def transform_reals_by_map(shape: Any, inverse: bool = False) -> Any:
    """Transform reals, or half spectra, that a map reads."""
    target = vd.RFFTBuffer(shape)
    source = vd.asrfftbuffer(real(*shape))

    def read(data: Buff[c64]) -> None:
        vd.fft.read_op().read_from_buffer(data)

    vd.fft.fft(
        target,
        source,
        buffer_shape=target.real_shape,
        r2c=True,
        inverse=inverse,
        input_map=vd.map(read, input_types=[Buff[c64]]),
    )
    return target.read_real(0) if inverse else target.read_fourier(0)


def convolve(shape: Any, kernel_shape: Any = None, transposed: bool = False, **options: Any) -> Any:
    buffer, kernel = vd.asbuffer(signal(*shape)), vd.asbuffer(signal(*(kernel_shape or shape), seed=1))
    if transposed:
        inner = options.get("kernel_inner_only", False)
        axis = options.get("axis")
        kernel = vd.fft.transpose(kernel, conv_shape=shape, axis=axis, kernel_inner_only=inner)
        options["transposed_kernel"] = True
    vd.fft.convolve(buffer, kernel, **options)
    return buffer.read(0)


def convolve_by_maps(shape: Any, kernel_map: Any, scale: Any = None, **options: Any) -> Any:
    buffer = vd.asbuffer(signal(*shape))
    kernel = vd.asbuffer(signal(*shape, seed=1)) if scale is None else np.float32(scale)
    vd.fft.convolve(buffer, kernel, kernel_map=kernel_map, **options)
    return buffer.read(0)


def convolve_all_maps(shape: Any, **options: Any) -> Any:
    target, source = vd.asbuffer(signal(*shape, seed=9)), vd.asbuffer(signal(*shape))
    kernel = vd.asbuffer(signal(*shape, seed=1))
    arguments = [target, 0.5, source, 2.0, kernel]
    maps = {"input_map": read_scaled, "output_map": write_scaled, "kernel_map": weigh}
    vd.fft.convolve(*arguments, **maps, buffer_shape=shape, **options)
    return target.read(0)


def convolve_with_numbers(count: int, **options: Any) -> Any:
    target, source = vd.asbuffer(signal(count, 16, seed=9)), vd.asbuffer(signal(16))

    def read(data: Buff[c64]) -> None:
        vd.fft.read_op().read_from_buffer(data)

    vd.fft.convolve(
        target,
        source,
        vd.asbuffer(signal(count, 16, seed=1)),
        buffer_shape=(16,),
        kernel_num=count,
        kernel_map=weigh_by_numbers,
        input_map=vd.map(read, input_types=[Buff[c64]]),
        output_map=write_by_numbers,
        **options,
    )
    return target.read(0)


def convolve_planes(shape: Any, kernel_shape: Any = None, transposed: bool = False, **options: Any) -> Any:
    buffer, kernel = vd.asbuffer(signal(*shape)), vd.asbuffer(signal(*(kernel_shape or shape), seed=1))
    if transposed:
        inner = options.get("kernel_inner_only", False)
        kernel = vd.fft.transpose(kernel, conv_shape=shape, axis=len(shape) - 2, kernel_inner_only=inner)
        options["transposed_kernel"] = True
    if options.get("kernel_map") is weigh_by_places:
        kernel = np.float32(1)
    vd.fft.convolve2D(buffer, kernel, **options)
    return buffer.read(0)


def convolve_real_planes(shape: Any, transposed: bool = False, **options: Any) -> Any:
    buffer, kernel = vd.asrfftbuffer(real(*shape)), vd.asrfftbuffer(real(*shape, seed=1))
    vd.fft.rfft2(kernel)
    if transposed:
        kernel = vd.fft.transpose(kernel, axis=len(shape) - 2)
        options["transposed_kernel"] = True
    vd.fft.convolve2DR(buffer, kernel, **options)
    return buffer.read_real(0)


def transposed_size(shape: Any, axis: Any) -> Any:
    """Whether the size holds the elements; the size itself is private."""
    size = vd.fft.get_transposed_size(shape, axis=axis)
    return np.array([size >= np.prod(shape), size % 1 == 0])


def procedure(shape: Any, axis: Any = None, **options: Any) -> Any:
    """Read, transform, weigh by index and number, transform back, write: by `fft_context`."""
    buffer = vd.asbuffer(signal(*shape))
    with vd.fft.fft_context(shape, axis=axis, **options) as ctx:
        (data,) = ctx.declare_shader_args([Buff[c64]])
        for read in ctx.reads_iter():
            read.read_from_buffer(data)
        ctx.execute(inverse=False)
        ctx.register_shuffle()
        for read in ctx.reads_iter():
            read.register[:] = read.register * read.fft_index.to_dtype(vd.float32)
        ctx.execute(inverse=True)
        for write in ctx.writes_iter():
            write.write_to_buffer(data)
    ctx.get_callable()(buffer)
    return buffer.read(0)


def separate(shape: Any, source_shape: Any = None, **options: Any) -> Any:
    """Transform with VkFFT from one buffer to another."""
    buffer, source = vd.asbuffer(signal(*shape, seed=9)), vd.asbuffer(signal(*(source_shape or shape)))
    vd.vkfft.fft(buffer, input_buffer=source, **options)
    return np.stack([buffer.read(0).ravel(), source.read(0).ravel()])


def convolve_by_vkfft(shape: Any, kernel_shape: Any = None, **options: Any) -> Any:
    buffer, kernel = vd.asbuffer(signal(*shape)), vd.asbuffer(signal(*(kernel_shape or shape), seed=1))
    vd.vkfft.transpose_kernel2D(kernel)
    vd.vkfft.convolve2D(buffer, kernel, **options)
    return buffer.read(0)


def kernel_layout(shape: Any, **options: Any) -> Any:
    kernel = vd.asbuffer(signal(*shape, seed=1))
    vd.vkfft.transpose_kernel2D(kernel, **options)
    return kernel.read(0)


def record_plan(transform: Any, *arguments: Any, **options: Any) -> None:
    """Record a plan and submit the graph. In 0.1.0 a plan has to live until then."""
    graph = vd.CommandGraph()
    transform.record(graph, *arguments, **options)
    graph.submit()
    arguments[0].read(0)


def plan(shape: Any, inverse: bool = False, buffer_shape: Any = None, **options: Any) -> Any:
    buffer = vd.asbuffer(signal(*(buffer_shape or shape)))
    record_plan(vd.vkfft.VkFFTPlan(shape, **options), buffer, inverse)
    return buffer.read(0)


def plan_real(shape: Any, inverse: bool = False, **options: Any) -> Any:
    buffer = vd.asrfftbuffer(real(*shape))
    if inverse:
        buffer.write_fourier(np.fft.rfftn(real(*shape)).astype(np.complex64))
    record_plan(vd.vkfft.VkFFTPlan(shape, do_r2c=True, **options), buffer, inverse)
    return buffer.read_real(0) if inverse else buffer.read_fourier(0)


def plan_convolution(shape: Any, features: int, batches: int, kernels: int, **options: Any) -> Any:
    """Convolve by plans, as `convolve2D` does with one feature and one kernel."""
    counts = {"convolution_features": features, "num_batches": batches}
    kernel = vd.asbuffer(signal(kernels * features * batches, *shape, seed=1))
    buffer = vd.asbuffer(signal(kernels * features * batches, *shape))
    both = {**counts, "num_batches": kernels * batches}
    record_plan(vd.vkfft.VkFFTPlan(shape, kernel_convolution=True, **both), kernel)
    record_plan(vd.vkfft.VkFFTPlan(shape, kernel_count=kernels, **counts, **options), buffer, kernel=kernel)
    return buffer.read(0)


def make_cases() -> None:
    """Fill `CASES`."""
    for module in ("fft", "vkfft"):
        name = f"{module}."
        for shape in ((2,), (16,), (60,), (1001,), (4, 6), (3, 5, 7), (2, 16, 12)):
            for axis in (None, *range(len(shape))):
                for function, options in (
                    ("fft", {}),
                    ("ifft", {}),
                    ("ifft", {"normalize": False}),
                    ("fft", {"inverse": True, "normalize_inverse": False}),
                    ("fft", {"inverse": True}),
                    ("fft", {"normalize_inverse": False}),
                ):
                    if axis not in (None, 0) and options:
                        continue
                    add(name + function, transform, module, function, shape, axis=axis, **options)
        # not with vd.fft, where 0.1.0 allocates without end
        for axis in (-1, -2) if module == "vkfft" else ():
            add(name + "fft", transform, module, "fft", (4, 6), axis=axis)
        for shape in ((4, 6), (3, 8, 10)):
            for function in ("fft2", "ifft2"):
                add(name + function, transform, module, function, shape)
        for function in ("fft3", "ifft3"):
            add(name + function, transform, module, function, (4, 6, 10))
        for function in ("fft2", "fft3", "ifft2", "ifft3"):
            add(name + function, transform, module, function, (2, 3, 4, 5))
        for shape in ((2,), (3,), (13,), (16,), (3, 14), (2, 3, 16), (2, 3, 15)):
            add(name + "rfft", transform_real, module, ["rfft"], shape)
            add(name + "irfft", transform_real, module, ["rfft", "irfft"], shape)
            add(name + "irfft", transform_real, module, ["rfft", "irfft"], shape, normalize=False)
            add(name + "irfft", inverse_real, module, "irfft", shape)
        for shape in ((6, 10), (6, 9), (2, 6, 8)):
            add(name + "rfft2", transform_real, module, ["rfft2"], shape)
            add(name + "irfft2", transform_real, module, ["rfft2", "irfft2"], shape)
        add(name + "rfft3", transform_real, module, ["rfft3"], (3, 4, 10))
        add(name + "irfft3", transform_real, module, ["rfft3", "irfft3"], (3, 4, 10))
        add(name + "fft", transform, module, "fft", (60,), buffer_shape=(3, 20), axis=0)
        add(name + "fft", transform, module, "fft", (60,), buffer_shape=(3, 20), axis=1)
        add(name + "fft", transform, module, "fft", (4, 15), buffer_shape=(3, 20))
        add(name + "fft", transform, module, "fft", (70,), buffer_shape=(3, 20), axis=1)
        add(name + "fft", transform, module, "fft", (3, 20), np.complex128)
    for function in ("ifft2", "ifft3"):
        add(f"fft.{function}", transform, "fft", function, (3, 8, 10), normalize=False)
    for function in ("irfft2", "irfft3"):
        forward = function[1:]
        add(f"fft.{function}", transform_real, "fft", [forward, function], (3, 4, 10), normalize=False)
    for shape, axis in (((2, 3, 4, 5), 1), ((2, 3, 4, 5), 3), ((2, 2, 3, 4, 5), 2)):
        add("fft.fft", transform, "fft", "fft", shape, axis=axis)
    add("fft.fft", transform, "fft", "fft", (3, 20), name="transform")
    for kind in (np.complex64, np.complex128):
        for compute in (vd.complex64, vd.complex128):
            add("fft.fft", transform, "fft", "fft", (3, 20), kind, compute_type=compute)
    add("fft.rfft", transform_real, "fft", ["rfft"], (3, 20), np.float64)
    add("fft.irfft", transform_real, "fft", ["rfft", "irfft"], (3, 20), np.float64)
    for span in ((None, None), (3, None), (None, 9), (2, 11), (0, 1), (5, 5)):
        for axis in (0, 1):
            add("fft.fft", transform, "fft", "fft", (16, 16), axis=axis, input_signal_range=span)
            add(
                "fft.fft", transform, "fft", "fft", (16, 16), axis=axis, input_signal_range=span, inverse=True
            )
            add("fft.convolve", convolve, (16, 16), axis=axis, input_signal_range=span)
        add("fft.rfft padded", padded_real, (3, 16), span)
    add("fft.rfft mapped", transform_reals_by_map, (3, 16))
    add("fft.irfft mapped", transform_reals_by_map, (3, 16), inverse=True)
    add("fft.irfft mapped", transform_reals_by_map, (3, 15), inverse=True)
    for axis in (0, 1, 2):
        for inverse in (False, True):
            options = {"axis": axis, "inverse": inverse}
            add("fft.fft mapped", transform_by_maps, (3, 8, 10), read_scaled, **options)
            add("fft.fft mapped", transform_by_maps, (3, 8, 10), None, write_scaled, **options)
            add("fft.fft mapped", transform_by_maps, (3, 8, 10), read_scaled, write_scaled, **options)
        add("fft.fft mapped", transform_by_maps, (3, 8, 10), read_reals, axis=axis)
        add("fft.fft mapped", transform_by_maps, (3, 8, 10), read_places, axis=axis)
        add("fft.fft mapped", transform_by_maps, (3, 8, 10), None, write_places, axis=axis)
    span = {"input_signal_range": (2, 5)}
    add("fft.fft mapped", transform_by_maps, (3, 8, 10), read_scaled, **span)
    add("fft.fft mapped", transform_by_maps, (3, 8, 10), read_reals, **span)
    add("fft.fft mapped", transform_by_maps, (4, 8), read_scaled, None, (6, 10), buffer_shape=(4, 8))
    add("fft.fft mapped", transform_by_maps, (4, 8), None, write_scaled, (6, 10), buffer_shape=(4, 8))
    for shape in ((16,), (4, 24), (2, 6, 10), (2, 3, 4, 5)):
        for axis in (None, *range(len(shape))):
            for normalize in (True, False):
                add("fft.convolve", convolve, shape, axis=axis, normalize=normalize)
            add("fft.convolve", convolve, shape, axis=axis, transposed=True)
    for axis in (1, 2):
        add("fft.convolve", convolve, (2, 6, 10), (6, 10), axis=axis, kernel_inner_only=True)
        inner = {"axis": axis, "kernel_inner_only": True}
        add("fft.convolve", convolve, (2, 6, 10), (6, 10), transposed=True, **inner)
    add("fft.convolve", convolve, (60,), axis=1, buffer_shape=(5, 12))
    for axis in (0, 1, 2):
        for kernel_map, scale in ((weigh, None), (weigh_by_places, 1), (weigh_by_indices, 1)):
            add("fft.convolve mapped", convolve_by_maps, (3, 8, 10), kernel_map, scale, axis=axis)
        add("fft.convolve mapped", convolve_all_maps, (3, 8, 10), axis=axis)
        add("fft.convolve mapped", convolve_all_maps, (3, 8, 10), axis=axis, normalize=False)
    add("fft.convolve mapped", convolve_by_maps, (8, 10), weigh, input_signal_range=(1, 5))
    for count in (1, 3):
        add("fft.convolve numbers", convolve_with_numbers, count)
        add("fft.convolve numbers", convolve_with_numbers, count, normalize=False)
    for shape in ((12, 20), (3, 12, 20)):
        for options in (
            {},
            {"normalize": False},
            {"transposed": True},
            {"kernel_map": weigh},
            {"kernel_map": weigh_by_places},
            {"input_map": write_plainly},
            {"output_map": write_plainly},
            {"buffer_shape": shape},
        ):
            add("fft.convolve2D", convolve_planes, shape, **options)
        for options in ({}, {"normalize": False}, {"transposed": True}, {"kernel_map": weigh}):
            add("fft.convolve2DR", convolve_real_planes, shape, **options)
    for transposed in (False, True):
        options = {"transposed": transposed, "kernel_inner_only": True}
        add("fft.convolve2D", convolve_planes, (3, 12, 20), (12, 20), **options)
    add("fft.convolve2DR", convolve_real_planes, (162, 13))
    for shape, axis in (((16,), None), ((5, 64), 0), ((7, 9, 11), 1)):
        add("fft.get_transposed_size", transposed_size, shape, axis)
    for shape, axis in (((16,), None), ((5, 64), 0), ((5, 64), 1), ((3, 9, 11), 1)):
        add("fft.fft_context", procedure, shape, axis)
        add("fft.fft_context", procedure, shape, axis, max_register_count=4)
    for size in (1, 7, 17, 97, 101, 1009):
        add("fft.pad_dim", lambda size: np.array([vd.fft.pad_dim(size), vd.fft.pad_dim(size, 8)]), size)
    for length in (1, 17, 34, 4096):
        for module in ("fft", "vkfft"):
            add(f"{module}.fft", transform, module, "fft", (2, length))

    for axes in ((0, 1), (1, 2), (0, 2), (2, 0), (0, 1, 2), [1, 0]):
        for function in ("fft", "ifft"):
            add(f"vkfft.{function}", transform, "vkfft", function, (3, 8, 10), axis=axes)
        add("vkfft.ifft", transform, "vkfft", "ifft", (3, 8, 10), axis=axes, normalize=False)
    for axis in (0, 1, (0, 1)):
        add("vkfft.rfft", transform_real, "vkfft", ["rfft"], (6, 10), axis=axis)
    add("vkfft.irfft", inverse_real, "vkfft", "irfft", (6, 10), axis=(0, 1))
    add("vkfft.irfft", inverse_real, "vkfft", "irfft", (6, 10), axis=(0, 1), normalize=False)
    for axis in (None, 0, (0, 1)):
        for inverse in (False, True):
            add("vkfft.fft separate", separate, (6, 10), axis=axis, inverse=inverse)
    add("vkfft.fft separate", separate, (60,), (6, 10), buffer_shape=(6, 10), axis=1)
    for shape in ((2, 8, 16), (1, 16, 8), (2, 5, 7), (2, 17, 6), (8, 16)):
        for normalize in (False, True):
            for conjugate in (False, True):
                options = {"normalize": normalize, "conjugate_kernel": conjugate}
                add("vkfft.convolve2D", convolve_by_vkfft, shape, **options)
    add("vkfft.convolve2D", convolve_by_vkfft, (2, 8, 16), (8, 16), normalize=True)
    for padding in (((5, 8), (0, 0)), ((0, 0), (9, 16)), ((5, 8), (9, 16)), ((0, 3), (0, 0))):
        add("vkfft.convolve2D", convolve_by_vkfft, (2, 8, 16), normalize=True, padding=padding)
    for shape in ((2, 8, 16), (8, 16)):
        add("vkfft.transpose_kernel2D", kernel_layout, shape)
    for shape in ((12,), (6, 10), (3, 4, 10)):
        for inverse in (False, True):
            for normalize in (False, True):
                add("vkfft.VkFFTPlan", plan, shape, inverse, normalize=normalize)
                add("vkfft.VkFFTPlan real", plan_real, shape, inverse, normalize=normalize)
    for axes in ([0], [1], (0, 1)):
        add("vkfft.VkFFTPlan", plan, (6, 10), axes=axes)
    for inverse in (False, True):
        add("vkfft.VkFFTPlan", plan, (6, 10), inverse, (3, 6, 10), num_batches=3)
        for padding in (((4, 6), (0, 0)), ((0, 0), (5, 10)), ((4, 6), (5, 10))):
            for frequency in (False, True):
                options = {"padding": padding, "pad_frequency_domain": frequency}
                add("vkfft.VkFFTPlan", plan, (6, 10), inverse, **options)
        add("vkfft.VkFFTPlan", plan, (12,), inverse, padding=((6, 12),))
    for features, batches, kernels in ((1, 1, 1), (1, 2, 1), (2, 1, 1), (1, 1, 2), (2, 2, 1)):
        for normalize in (False, True):
            sizes = ((8, 16), features, batches, kernels)
            add("vkfft.VkFFTPlan convolution", plan_convolution, *sizes, normalize=normalize)
    shared = {"normalize": True, "single_kernel_multiple_batches": True}
    add("vkfft.VkFFTPlan convolution", plan_convolution, (8, 16), 1, 2, 1, **shared)


# ---- two processes --------------------------------------------------------------------------------


def find_file(folder: Path, name: str) -> Path:
    return folder / f"{hashlib.sha256(name.encode()).hexdigest()[:20]}.npz"


def run_cases(folder: Path, names: list[str]) -> None:
    """Run the cases that have no file in the folder. End at the first error: 0.1.0 does not recover."""
    if not hasattr(vd, "numpy"):
        vd.make_context(use_cpu=True)
    for name in names:
        file = find_file(folder, name)
        if file.exists():
            continue
        try:
            result = np.asarray(CASES[name]())
        except Exception as error:
            np.savez(file, error=f"{type(error).__name__}: {error}".split("\n")[0])
            sys.exit(RAISED)
        np.savez(file, result=result)


def collect(interpreter: str, folder: Path, only: str, names: list[str], paths: str = "") -> list[Any]:
    """Run the cases in an interpreter, again after each case that ends the process."""
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "PYTHONPATH": paths}
    command = [
        interpreter,
        str(Path(__file__).resolve()),
        "--worker",
        "--folder",
        str(folder),
        "--only",
        only,
    ]
    ended: set[str] = set()
    while [name for name in names if not find_file(folder, name).exists()]:
        # in another working directory: a checkout here would come before the installed package
        process = subprocess.run(command, env=environment, cwd=folder, capture_output=True, check=False)
        left = [name for name in names if not find_file(folder, name).exists()]
        if not left or process.returncode == RAISED:
            continue
        if left[0] in ended:
            words = process.stderr.decode(errors="replace")[-300:]
            np.savez(find_file(folder, left[0]), error=f"it ended with {process.returncode}: {words}")
        ended.add(left[0])  # once may be chance: 0.1.0 corrupts its memory after many transforms
    return [dict(np.load(find_file(folder, name))) for name in names]


def compare(original: dict[str, Any], ours: dict[str, Any]) -> str:
    """Return how the results of a case differ, "" if they do not."""
    if "error" in original or "error" in ours:
        if "error" in original and "error" in ours:
            return ""
        return "".join(
            f"{who} raises {values['error']}"
            for who, values in (("0.1.0", original), ("this project", ours))
            if "error" in values
        )
    before, now = original["result"], ours["result"]
    if before.shape != now.shape:
        return f"shape {before.shape} is {now.shape}"
    size = max(float(np.abs(before).max(initial=0)), 1e-30)
    kind = "" if before.dtype == now.dtype else f"dtype {before.dtype} is {now.dtype}"
    if np.allclose(before, now, atol=2e-5 * size, rtol=0):
        return kind
    factor = np.vdot(before, now) / np.vdot(before, before)
    if np.allclose(before * factor, now, atol=2e-5 * float(np.abs(now).max()), rtol=0):
        return f"factor {np.round(factor, 4)} {kind}"
    wrong = np.mean(np.abs(before - now) > 2e-5 * size)
    return f"{wrong:.0%} of the elements {kind}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--original", help="the interpreter that has vkdispatch 0.1.0")
    parser.add_argument("--only", default="", help="a regular expression: the cases to run")
    parser.add_argument("--folder", type=Path, help="keep 0.1.0's results here, and use those that are there")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    make_cases()
    names = [name for name in CASES if re.search(arguments.only, name)]
    if arguments.worker:
        run_cases(arguments.folder, names)
        return 0
    if not arguments.original:
        parser.error("--original is missing")
    with tempfile.TemporaryDirectory() as folder:
        before = collect(arguments.original, arguments.folder or Path(folder) / "0", arguments.only, names)
        root = str(Path(vd.__file__).parents[1])
        now = collect(sys.executable, Path(folder) / "1", arguments.only, names, root)
    unknown = equal = 0
    for name, original, ours in zip(names, before, now, strict=True):
        difference = compare(original, ours)
        reason = next((text for pattern, text in DIFFERENCES.items() if re.search(pattern, name)), "")
        equal += not difference
        unknown += bool(difference) and not reason
        if difference:
            print(f"{'known' if reason else 'DIFFERS':8}{name}: {difference}")
    print(f"{len(names)} cases, {equal} equal, {unknown} differ without a reason")
    return int(unknown > 0)


if __name__ == "__main__":
    sys.exit(main())
