"""Fourier transforms: `vkdispatch.numpy.fft`."""

from collections.abc import Sequence
from typing import Any

import numpy as np

import vkdispatch.fft as transforms
from vkdispatch.base.buffer import Buffer
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.numpy.basics.elementwise import conjugate
from vkdispatch.numpy.basics.joining import roll
from vkdispatch.numpy.basics.manipulation import moveaxis, parse_axes, parse_axis
from vkdispatch.numpy.basics.sequences import arange
from vkdispatch.numpy.core import memory
from vkdispatch.numpy.core.application import assign, make_operation
from vkdispatch.numpy.core.array import Array, array_of, parse_index, store_result, value_of
from vkdispatch.numpy.core.conversion import require_array, require_choice
from vkdispatch.numpy.core.expressions import evaluate
from vkdispatch.numpy.core.kernels import as_buffer, new_view
from vkdispatch.numpy.core.memory import Kind, View
from vkdispatch.numpy.core.operations import COPY
from vkdispatch.numpy.core.repeating import repeat_calls

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]


def _check_norm(norm: Any) -> str:
    chosen = "backward" if norm is None else norm
    require_choice(chosen, "norm", "backward", "ortho", "forward")
    return str(chosen)


def _complex_kind(kind: Kind) -> Kind:
    return np.result_type(kind, np.complex64) if kind.kind in "fc" else memory.default_complex()


def _check_length(length: Any) -> int:
    count = parse_index(length, "n")
    if count < 1:
        raise ArgumentValueError(f"n: a transform needs at least 1 element, got {count}")
    return count


def _of_one(n: Any) -> tuple[int] | None:
    """Return the length along one axis as the functions of several axes take it."""
    return None if n is None else (_check_length(n),)


def _copy(x: Array, lengths: dict[int, int], kind: Kind) -> View:
    """Return new memory with the elements, cut or filled up with zeros to lengths along axes."""
    cut: tuple[Any, ...] = tuple(slice(0, lengths.get(axis, n)) for axis, n in enumerate(x.shape))
    if any(lengths[axis] < x.shape[axis] for axis in lengths):
        x = x[cut]
    shape = tuple(lengths.get(axis, n) for axis, n in enumerate(x.shape))
    if shape == x.shape:
        return evaluate(make_operation(COPY, (value_of(x),), (kind,), shape, kind))
    made = new_view(shape, kind, x.device.context)
    if made.size:
        assign(made, 0)
        _write_copy(View(made.storage, x.shape, kind, 0, made.strides), x)
    return made


def _write_copy(target: View, x: Array) -> None:
    """Write the elements to memory that is transformed in place next, which must not become that of `x`."""
    assign(target, make_operation(COPY, (value_of(x),), (target.dtype,), x.shape, target.dtype))


def _several(x: Array, s: Any, axes: Any, halved: bool = False) -> tuple[tuple[int, ...], list[int]]:
    """Return the axes, which may repeat, and the length of the transform along each of them.

    `halved` says that the last one is that of half a spectrum.
    """
    s, axes = ((numbers,) if isinstance(numbers, int) else numbers for numbers in (s, axes))
    if axes is None:
        axes = range(x.ndim) if s is None else range(x.ndim - len(s), x.ndim)
    places = tuple(parse_axis(axis, x.ndim, "axes") for axis in axes)
    own = [x.shape[axis] for axis in places]
    if s is None:
        lengths = [*own[:-1], 2 * (own[-1] - 1)] if halved and own else own
    else:
        s = [parse_index(n, "s") for n in s]
        if len(s) != len(places):
            raise ArgumentValueError(f"s, axes: expected as many lengths as axes, got {s} and {axes}")
        lengths = [length if n == -1 else n for n, length in zip(s, own, strict=True)]
    return places, [_check_length(n) for n in lengths]


def _transform_axes(view: View, axes: Sequence[int], inverse: bool, norm: str) -> None:
    """Transform complex numbers that lie one behind the other along axes, in place."""
    if view.size and axes:
        data = as_buffer(view, (view.size,))
        function = transforms.ifftn if inverse else transforms.fftn
        function(data, axes=tuple(axes), norm=norm, buffer_shape=view.shape)  # type: ignore[arg-type]


def _complex_transform(x: Any, s: Any, axes: Any, norm: Any, inverse: bool, out: Any) -> Array:
    array, scale = require_array(x), _check_norm(norm)
    places, lengths = _several(array, s, axes)
    if len(set(places)) < len(places):
        for place, n in zip(reversed(places), reversed(lengths), strict=True):
            array = _complex_transform(array, (n,), (place,), norm, inverse, None)
        return store_result(out, array)
    view = _copy(array, dict(zip(places, lengths, strict=True)), _complex_kind(array.dtype))
    _transform_axes(view, places, inverse, scale)
    return store_result(out, array_of(view))


@repeat_calls
def fft(x: Any, /, n: int | None = None, axis: int = -1, norm: Any = "backward", out: Any = None) -> Array:
    """Return the discrete Fourier transform along an axis. See `numpy.fft.fft`.

    Examples
    --------
    >>> vnp.fft.fft(vnp.asarray([1.0, 0.0, 0.0, 0.0]))
    Array([1.+0.j, 1.+0.j, 1.+0.j, 1.+0.j], dtype=complex128)
    """
    return _complex_transform(x, _of_one(n), (axis,), norm, False, out)


@repeat_calls
def ifft(x: Any, /, n: int | None = None, axis: int = -1, norm: Any = "backward", out: Any = None) -> Array:
    """Return the inverse transform along an axis. See `numpy.fft.ifft`.

    Examples
    --------
    >>> vnp.fft.ifft(vnp.asarray([4.0, 0.0, 0.0, 0.0]))
    Array([1.+0.j, 1.+0.j, 1.+0.j, 1.+0.j], dtype=complex128)
    """
    return _complex_transform(x, _of_one(n), (axis,), norm, True, out)


@repeat_calls
def fftn(x: Any, /, s: Any = None, axes: Any = None, norm: Any = "backward", out: Any = None) -> Array:
    """Return the transform along several axes. See `numpy.fft.fftn`.

    Examples
    --------
    >>> vnp.fft.fftn(vnp.ones((2, 2)))
    Array([[4.+0.j, 0.+0.j],
           [0.+0.j, 0.+0.j]], dtype=complex128)
    """
    return _complex_transform(x, s, axes, norm, False, out)


@repeat_calls
def ifftn(x: Any, /, s: Any = None, axes: Any = None, norm: Any = "backward", out: Any = None) -> Array:
    """Return the inverse transform along several axes. See `numpy.fft.ifftn`.

    Examples
    --------
    >>> vnp.fft.ifftn(vnp.ones((2, 2)))
    Array([[1.+0.j, 0.+0.j],
           [0.+0.j, 0.+0.j]], dtype=complex128)
    """
    return _complex_transform(x, s, axes, norm, True, out)


@repeat_calls
def fft2(x: Any, /, s: Any = None, axes: Any = (-2, -1), norm: Any = "backward", out: Any = None) -> Array:
    """Return the transform along two axes. See `numpy.fft.fft2`.

    Examples
    --------
    >>> vnp.fft.fft2(vnp.ones((2, 2)))
    Array([[4.+0.j, 0.+0.j],
           [0.+0.j, 0.+0.j]], dtype=complex128)
    """
    return fftn(x, s, axes, norm, out)


@repeat_calls
def ifft2(x: Any, /, s: Any = None, axes: Any = (-2, -1), norm: Any = "backward", out: Any = None) -> Array:
    """Return the inverse transform along two axes. See `numpy.fft.ifft2`.

    Examples
    --------
    >>> vnp.fft.ifft2(vnp.ones((2, 2)))
    Array([[1.+0.j, 0.+0.j],
           [0.+0.j, 0.+0.j]], dtype=complex128)
    """
    return ifftn(x, s, axes, norm, out)


# ---- real numbers --------------------------------------------------------------------------------


def _real_rows(spectrum: View, length: int) -> View:
    """Return the view of the real numbers of which, or to which, spectra are transformed in their memory."""
    buffer = spectrum.storage.buffer
    kind = memory.part_kind(spectrum.dtype)
    reals = Buffer.of_memory(buffer.context, buffer._native, (2 * buffer.size,), memory.kernel_type(kind))
    strides = (*(2 * stride for stride in spectrum.strides[:-1]), 1)
    return View(memory.Storage(reals), (*spectrum.shape[:-1], length), kind, 0, strides)


def _transform_rows(spectrum: View, length: int, inverse: bool, norm: str) -> None:
    rows = spectrum.size // spectrum.shape[-1]
    data = as_buffer(spectrum, (rows, spectrum.shape[-1]))
    transforms.fft(data, buffer_shape=(rows, length), r2c=True, inverse=inverse, norm=norm)  # type: ignore[arg-type]


def _forward_real(x: Any, s: Any, axes: Any, norm: Any, out: Any) -> Array:
    array, scale = require_array(x), _check_norm(norm)
    if array.dtype.kind == "c":
        raise ArgumentTypeError(f"x: expected real numbers, got {array.dtype}")
    places, lengths = _several(array, s, axes)
    if not places:
        raise ArgumentValueError("axes: expected at least one axis")
    last, length = places[-1], lengths[-1]
    moved = moveaxis(array, last, -1)
    count = min(length, moved.shape[-1])
    halves = (*moved.shape[:-1], length // 2 + 1)
    spectrum = new_view(halves, _complex_kind(array.dtype), array.device.context)
    if spectrum.size:
        rows = _real_rows(spectrum, length)
        if count < length:
            assign(rows, 0)
            rows = View(rows.storage, (*rows.shape[:-1], count), rows.dtype, 0, rows.strides)
        _write_copy(rows, moved[..., :count] if count < moved.shape[-1] else moved)
        _transform_rows(spectrum, length, False, scale)
    if len(set(places)) < len(places):
        half = moveaxis(array_of(spectrum), -1, last)
        return _complex_transform(half, lengths[:-1], places[:-1], norm, False, out)
    others = {axis - (axis > last): n for axis, n in zip(places[:-1], lengths[:-1], strict=True)}
    if any(spectrum.shape[axis] != n for axis, n in others.items()):
        spectrum = _copy(array_of(spectrum), others, spectrum.dtype)
    _transform_axes(spectrum, tuple(others), False, scale)
    return store_result(out, _in_order(moveaxis(array_of(spectrum), -1, last)))


def _in_order(x: Array) -> Array:
    """Return the array, or an expression that copies it where its elements do not lie in order."""
    view = evaluate(value_of(x))
    if view.is_contiguous:
        return x
    return array_of(make_operation(COPY, (view,), (view.dtype,), x.shape, x.dtype))


def _backward_real(x: Any, s: Any, axes: Any, norm: Any, out: Any) -> Array:
    array, scale = require_array(x), _check_norm(norm)
    places, lengths = _several(array, s, axes, halved=True)
    if not places:
        raise ArgumentValueError("axes: expected at least one axis")
    last, length, end = places[-1], lengths[-1], array.ndim - 1
    if len(set(places)) < len(places):
        for place, n in zip(places[:-1], lengths[:-1], strict=True):
            array = _complex_transform(array, (n,), (place,), norm, True, None)
        places, lengths = places[-1:], lengths[-1:]
    others = {axis - (axis > last): n for axis, n in zip(places[:-1], lengths[:-1], strict=True)}
    sides = {**others, end: length // 2 + 1}
    spectrum = _copy(moveaxis(array, last, -1), sides, _complex_kind(array.dtype))
    _transform_axes(spectrum, tuple(others), True, scale)
    if spectrum.size:
        _transform_rows(spectrum, length, True, scale)
    rows = _real_rows(spectrum, length)
    return store_result(out, _in_order(moveaxis(array_of(rows), -1, last)))


@repeat_calls
def rfft(x: Any, /, n: int | None = None, axis: int = -1, norm: Any = "backward", out: Any = None) -> Array:
    """Return the first half of the transform of real numbers. See `numpy.fft.rfft`.

    Examples
    --------
    >>> vnp.fft.rfft(vnp.asarray([1.0, 1.0, 1.0, 1.0]))
    Array([4.-0.j, 0.-0.j, 0.-0.j], dtype=complex128)
    """
    return _forward_real(x, _of_one(n), (axis,), norm, out)


@repeat_calls
def irfft(x: Any, /, n: int | None = None, axis: int = -1, norm: Any = "backward", out: Any = None) -> Array:
    """Return the real numbers of which `rfft` makes `x`. See `numpy.fft.irfft`.

    Examples
    --------
    >>> vnp.fft.irfft(vnp.asarray([4, 0, 0], dtype=vnp.complex64))
    Array([1., 1., 1., 1.], dtype=float32)
    """
    return _backward_real(x, _of_one(n), (axis,), norm, out)


@repeat_calls
def rfftn(x: Any, /, s: Any = None, axes: Any = None, norm: Any = "backward", out: Any = None) -> Array:
    """Return half of the transform of real numbers along several axes. See `numpy.fft.rfftn`.

    Examples
    --------
    >>> vnp.fft.rfftn(vnp.ones((2, 2)))
    Array([[4.-0.j, 0.-0.j],
           [0.+0.j, 0.+0.j]], dtype=complex128)
    """
    return _forward_real(x, s, axes, norm, out)


@repeat_calls
def irfftn(x: Any, /, s: Any = None, axes: Any = None, norm: Any = "backward", out: Any = None) -> Array:
    """Return the real numbers of which `rfftn` makes `x`. See `numpy.fft.irfftn`.

    Examples
    --------
    >>> vnp.fft.irfftn(vnp.asarray([[4, 0], [0, 0]], dtype=vnp.complex64))
    Array([[1., 1.],
           [1., 1.]], dtype=float32)
    """
    return _backward_real(x, s, axes, norm, out)


@repeat_calls
def rfft2(x: Any, /, s: Any = None, axes: Any = (-2, -1), norm: Any = "backward", out: Any = None) -> Array:
    """Return half of the transform of real numbers along two axes. See `numpy.fft.rfft2`.

    Examples
    --------
    >>> vnp.fft.rfft2(vnp.ones((2, 2)))
    Array([[4.-0.j, 0.-0.j],
           [0.+0.j, 0.+0.j]], dtype=complex128)
    """
    return rfftn(x, s, axes, norm, out)


@repeat_calls
def irfft2(x: Any, /, s: Any = None, axes: Any = (-2, -1), norm: Any = "backward", out: Any = None) -> Array:
    """Return the real numbers of which `rfft2` makes `x`. See `numpy.fft.irfft2`.

    Examples
    --------
    >>> vnp.fft.irfft2(vnp.asarray([[4, 0], [0, 0]], dtype=vnp.complex64))
    Array([[1., 1.],
           [1., 1.]], dtype=float32)
    """
    return irfftn(x, s, axes, norm, out)


_SWAPPED = {"backward": "forward", "forward": "backward", "ortho": "ortho"}


@repeat_calls
def hfft(x: Any, /, n: int | None = None, axis: int = -1, norm: Any = "backward", out: Any = None) -> Array:
    """Return the transform of a signal with Hermitian symmetry. See `numpy.fft.hfft`.

    Examples
    --------
    >>> vnp.fft.hfft(vnp.asarray([4, 0, 0], dtype=vnp.complex64))
    Array([4., 4., 4., 4.], dtype=float32)
    """
    return irfft(conjugate(require_array(x)), n, axis, _SWAPPED[_check_norm(norm)], out)


@repeat_calls
def ihfft(x: Any, /, n: int | None = None, axis: int = -1, norm: Any = "backward", out: Any = None) -> Array:
    """Return the inverse transform to a signal with Hermitian symmetry. See `numpy.fft.ihfft`.

    Examples
    --------
    >>> vnp.fft.ihfft(vnp.ones(4))
    Array([1.+0.j, 0.+0.j, 0.+0.j], dtype=complex128)
    """
    return store_result(out, conjugate(rfft(x, n, axis, _SWAPPED[_check_norm(norm)])))


def fftfreq(n: int, d: float = 1.0, device: Any = None, *, dtype: Any = None) -> Array:
    """Return the frequencies of a transform of n elements. See `numpy.fft.fftfreq`.

    Examples
    --------
    >>> vnp.fft.fftfreq(4, d=0.5)
    Array([ 0. ,  0.5, -1. , -0.5], dtype=float64)
    """
    n = _check_length(n)
    places = (arange(n, device=device) + n // 2) % n - n // 2
    return (places * (1 / (n * d))).astype(memory.parse_real(dtype), copy=False)


def rfftfreq(n: int, d: float = 1.0, device: Any = None, *, dtype: Any = None) -> Array:
    """Return the frequencies of a transform of n real elements. See `numpy.fft.rfftfreq`.

    Examples
    --------
    >>> vnp.fft.rfftfreq(4, d=0.5)
    Array([0. , 0.5, 1. ], dtype=float64)
    """
    n = _check_length(n)
    frequencies = arange(n // 2 + 1, device=device) * (1 / (n * d))
    return frequencies.astype(memory.parse_real(dtype), copy=False)


@repeat_calls
def fftshift(x: Any, /, axes: Any = None) -> Array:
    """Return the array with frequency zero in the middle. See `numpy.fft.fftshift`.

    Examples
    --------
    >>> vnp.fft.fftshift(vnp.arange(4))
    Array([2, 3, 0, 1], dtype=int64)
    """
    return _turn(x, axes, 1)


@repeat_calls
def ifftshift(x: Any, /, axes: Any = None) -> Array:
    """Return the array with frequency zero at the front. See `numpy.fft.ifftshift`.

    Examples
    --------
    >>> vnp.fft.ifftshift(vnp.asarray([2, 3, 0, 1]))
    Array([0, 1, 2, 3], dtype=int64)
    """
    return _turn(x, axes, -1)


def _turn(x: Any, axes: Any, sign: int) -> Array:
    """Return an array rolled by half its length along axes. An axis that is given twice is rolled twice."""
    array = require_array(x)
    several = axes if isinstance(axes, (tuple, list)) else parse_axes(axes, array.ndim, "axes")
    places = [parse_axis(axis, array.ndim, "axes") for axis in several]
    return roll(array, [sign * (array.shape[i] // 2) for i in places], places) if places else array.copy()
