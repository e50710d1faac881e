"""Transforms over any axes, and those of half spectra whose spectrum is real."""

from collections.abc import Sequence
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.arrays.axes import checked_axes
from vkdispatch.arrays.calls import array_function
from vkdispatch.base.buffer import Buffer
from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.base.rfft_buffer import RFFTBuffer
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.fft.api.transforms import fft, fft2, ifft2
from vkdispatch.fft.arguments.buffers import require_buffer, require_rfft_buffer
from vkdispatch.fft.arguments.norms import Norm, checked_norm
from vkdispatch.fft.arguments.shapes import checked_shape
from vkdispatch.fft.trace.ops import read_op, write_op
from vkdispatch.shader.map import MappingFunction, map


@array_function
def fftn(
    buffer: Buffer[Any],
    axes: Sequence[int] | int | None = None,
    norm: Norm | None = None,
    graph: CommandGraph | None = None,
    *,
    print_shader: bool = False,
    compute_type: DType | None = None,
    buffer_shape: Sequence[int] | None = None,
) -> None:
    """Transform a complex buffer along some axes, in place, as `numpy.fft.fftn`.

    Parameters
    ----------
    buffer
        Complex64, complex128 or complex32.
    axes
        Which; default: all.
    norm
        "backward" (as None), "ortho" or "forward", as in NumPy.
    graph, print_shader, compute_type
        As for `fft`.
    buffer_shape
        Shape of the data, of any number of axes; default: the buffer's.

    Raises
    ------
    TypeError, ValueError
        As `fft`; also if an axis is named twice.
    AxisError
        There is no such axis.
    """
    _many(buffer, axes, norm, False, graph, print_shader, compute_type, buffer_shape)


@array_function
def ifftn(
    buffer: Buffer[Any],
    axes: Sequence[int] | int | None = None,
    norm: Norm | None = None,
    graph: CommandGraph | None = None,
    *,
    print_shader: bool = False,
    compute_type: DType | None = None,
    buffer_shape: Sequence[int] | None = None,
) -> None:
    """Transform a complex buffer back along some axes, in place, as `numpy.fft.ifftn`; see `fftn`."""
    _many(buffer, axes, norm, True, graph, print_shader, compute_type, buffer_shape)


def _many(
    buffer: Any,
    axes: Any,
    norm: Any,
    inverse: bool,
    graph: CommandGraph | None,
    shown: bool,
    compute_type: DType | None,
    buffer_shape: Sequence[int] | None,
) -> None:
    shape = checked_shape(require_buffer(buffer, "buffer").shape if buffer_shape is None else buffer_shape)
    norm = checked_norm(norm)
    chosen = checked_axes(axes, len(shape), "axes")
    if len(shape) > 1 and {len(shape) - 2, len(shape) - 1} <= set(chosen):
        # planes that fit into a workgroup are done in one go
        options: dict[str, Any] = {"graph": graph, "print_shader": shown, "compute_type": compute_type}
        (ifft2 if inverse else fft2)(buffer, buffer_shape=shape, norm=norm or "backward", **options)
        chosen = tuple(axis for axis in chosen if axis < len(shape) - 2)
    for axis in reversed(chosen):
        fft(
            buffer,
            buffer_shape=shape,
            axis=axis,
            inverse=inverse,
            norm=norm,
            graph=graph,
            print_shader=shown,
            compute_type=compute_type,
        )


@array_function
def rfftn(
    buffer: RFFTBuffer,
    axes: Sequence[int] | int | None = None,
    norm: Norm | None = None,
    graph: CommandGraph | None = None,
    *,
    print_shader: bool = False,
    compute_type: DType | None = None,
) -> None:
    """Transform the reals of an RFFTBuffer along some axes, in place, as `numpy.fft.rfftn`.

    Parameters
    ----------
    buffer
        Its reals become their half spectrum.
    axes
        Which; default: all. The last one named is that of the real transform, which is the last of the
        buffer.
    norm
        "backward" (as None), "ortho" or "forward", as in NumPy.
    graph, print_shader, compute_type
        As for `fft`.

    Raises
    ------
    TypeError
        `buffer` is no RFFTBuffer.
    ValueError
        As `fft`; also if an axis is named twice, or the last one named is not the buffer's last.
    AxisError
        There is no such axis.
    """
    chosen = _real_axes(buffer, axes)
    options: dict[str, Any] = {"norm": checked_norm(norm), "graph": graph, "print_shader": print_shader}
    options["compute_type"] = compute_type
    fft(buffer, buffer_shape=buffer.real_shape, r2c=True, **options)
    for axis in reversed(chosen[:-1]):
        fft(buffer, axis=axis, **options)


@array_function
def irfftn(
    buffer: RFFTBuffer,
    axes: Sequence[int] | int | None = None,
    norm: Norm | None = None,
    graph: CommandGraph | None = None,
    *,
    print_shader: bool = False,
    compute_type: DType | None = None,
) -> None:
    """Transform the half spectrum of an RFFTBuffer into reals, as `numpy.fft.irfftn`; see `rfftn`."""
    chosen = _real_axes(buffer, axes)
    options: dict[str, Any] = {"norm": checked_norm(norm), "graph": graph, "print_shader": print_shader}
    options |= {"compute_type": compute_type, "inverse": True}
    for axis in chosen[:-1]:
        fft(buffer, axis=axis, **options)
    fft(buffer, buffer_shape=buffer.real_shape, r2c=True, **options)


def _real_axes(buffer: Any, axes: Any) -> tuple[int, ...]:
    dimensions = len(require_rfft_buffer(buffer).real_shape)
    chosen = checked_axes(axes, dimensions, "axes")
    if chosen[-1:] != (dimensions - 1,):
        raise ArgumentValueError(
            f"axes: an RFFTBuffer has its reals along the last axis, so {dimensions - 1} must be named last; "
            f"got {axes!r}"
        )
    return chosen


# ---- spectra that are real ---------------------------------------------------------------------------


@array_function
def hfft(
    buffer: RFFTBuffer,
    norm: Norm | None = None,
    graph: CommandGraph | None = None,
    *,
    print_shader: bool = False,
    compute_type: DType | None = None,
) -> None:
    """Transform the half of a Hermitian signal that an RFFTBuffer holds into its real spectrum, in place.

    As `numpy.fft.hfft` along the last axis.

    Parameters
    ----------
    buffer
        n // 2 + 1 complex numbers become n reals.
    norm, graph, print_shader, compute_type
        As for `rfftn`.

    Raises
    ------
    TypeError, ValueError
        As `rfftn`.
    """
    # The transform back of the conjugate: what normalizes one direction is the other one's factor.
    shape = require_rfft_buffer(buffer).real_shape
    fft(
        buffer,
        buffer,
        buffer_shape=shape,
        r2c=True,
        inverse=True,
        norm=reversed_norm(norm),
        input_map=_read_conjugate(buffer.var_type),
        graph=graph,
        print_shader=print_shader,
        compute_type=compute_type,
    )


@array_function
def ihfft(
    buffer: RFFTBuffer,
    norm: Norm | None = None,
    graph: CommandGraph | None = None,
    *,
    print_shader: bool = False,
    compute_type: DType | None = None,
) -> None:
    """Transform the reals of an RFFTBuffer into half of the Hermitian signal whose spectrum they are.

    As `numpy.fft.ihfft` along the last axis; the rest is as in `hfft`.
    """
    shape = require_rfft_buffer(buffer).real_shape
    fft(
        buffer,
        buffer,
        buffer_shape=shape,
        r2c=True,
        norm=reversed_norm(norm),
        output_map=_write_conjugate(buffer.var_type),
        graph=graph,
        print_shader=print_shader,
        compute_type=compute_type,
    )


def reversed_norm(norm: Any) -> Norm:
    """Return the norm that does to one direction what this one does to the other."""
    norm = checked_norm(norm)
    return "ortho" if norm == "ortho" else "backward" if norm == "forward" else "forward"


_maps: dict[tuple[str, DType], MappingFunction] = {}


def _read_conjugate(kind: DType) -> MappingFunction:
    def read_conjugate(buffer: Any) -> None:
        op = read_op()
        op.read_from_buffer(buffer)
        op.register.imag = -op.register.imag

    return _maps.setdefault(
        ("read", kind),
        map(read_conjugate, input_types=[vc.Buffer[kind]]),  # type: ignore[valid-type]
    )


def _write_conjugate(kind: DType) -> MappingFunction:
    def write_conjugate(buffer: Any) -> None:
        op = write_op()
        op.register.imag = -op.register.imag
        op.write_to_buffer(buffer)

    return _maps.setdefault(
        ("write", kind),
        map(write_conjugate, input_types=[vc.Buffer[kind]]),  # type: ignore[valid-type]
    )
