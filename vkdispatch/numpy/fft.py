"""Fourier transforms: `vkdispatch.numpy.fft`."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import vkdispatch.fft as transforms
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.numpy.core.array import Array, array_of, parse_operand, value_of
from vkdispatch.numpy.core.dtypes import Kind, default_complex, default_real
from vkdispatch.numpy.core.expressions import evaluate
from vkdispatch.numpy.core.kernels import as_buffer, gather
from vkdispatch.numpy.creation import arange, asarray, zeros
from vkdispatch.numpy.elementwise import conjugate, real
from vkdispatch.numpy.manipulation import concatenate, flip, parse_axes, parse_axis, roll

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

_NORMS = ("backward", "ortho", "forward")


def _check_norm(norm: Any) -> str:
    chosen = "backward" if norm is None else norm
    if chosen not in _NORMS:
        raise ArgumentValueError(f"norm: expected 'backward', 'ortho' or 'forward', got {norm!r}")
    return str(chosen)


def _array(x: Any) -> Array:
    parse_operand(x)
    return x if isinstance(x, Array) else asarray(x)


def _complex_kind(kind: Kind) -> Kind:
    if kind.kind == "c":
        return kind
    if kind.kind == "f":
        return np.dtype(np.complex128) if kind.itemsize == 8 else np.dtype(np.complex64)
    return default_complex()


def _resize(x: Array, length: int, axis: int) -> Array:
    """Return the array cut, or filled up with zeros, to a length along an axis."""
    own = x.shape[axis]
    if length < 1:
        raise ArgumentValueError(f"n: expected at least 1 element, got {length}")
    if own == length:
        return x
    if own > length:
        return x[(*(slice(None),) * axis, slice(0, length))]
    rest = (*x.shape[:axis], length - own, *x.shape[axis + 1 :])
    return concatenate([x, zeros(rest, x.dtype)], axis=axis)


def _transform(x: Array, n: int | None, axis: int, norm: Any, inverse: bool) -> Array:
    """Transform a complex copy of an array along an axis."""
    scale = _check_norm(norm)
    place = parse_axis(axis, x.ndim)
    line = _resize(x, x.shape[place] if n is None else n, place).astype(_complex_kind(x.dtype))
    length = line.shape[place]
    if line.size == 0:
        return line
    view = evaluate(value_of(line))
    if not view.is_whole:
        view = gather(view)
    shape = (math.prod(line.shape[:place]), length, math.prod(line.shape[place + 1 :]))
    data = as_buffer(view, shape)
    if inverse:
        transforms.ifft(data, axis=1, normalize=False)
    else:
        transforms.fft(data, axis=1)
    result = array_of(view)
    divisor = {
        "backward": length if inverse else 1,
        "ortho": math.sqrt(length),
        "forward": 1 if inverse else length,
    }
    by = divisor[scale]
    return result if by == 1 else result * (1 / by)


def fft(x: Any, /, n: int | None = None, axis: int = -1, norm: str | None = "backward") -> Array:
    """Return the discrete Fourier transform along an axis. See `numpy.fft.fft`."""
    return _transform(_array(x), n, axis, norm, False)


def ifft(x: Any, /, n: int | None = None, axis: int = -1, norm: str | None = "backward") -> Array:
    """Return the inverse transform along an axis. See `numpy.fft.ifft`."""
    return _transform(_array(x), n, axis, norm, True)


def _several(x: Array, s: Sequence[int] | None, axes: Any) -> list[tuple[int, int | None]]:
    if axes is None:
        axes = range(x.ndim) if s is None else range(x.ndim - len(s), x.ndim)
    places = parse_axes(tuple(axes), x.ndim, "axes")
    lengths: Sequence[int | None] = [None] * len(places) if s is None else s
    if len(lengths) != len(places):
        raise ArgumentValueError(f"s, axes: expected as many lengths as axes, got {s} and {axes}")
    return list(zip(places, lengths, strict=True))


def fftn(
    x: Any,
    /,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = "backward",
) -> Array:
    """Return the transform along several axes. See `numpy.fft.fftn`."""
    array = _array(x)
    for axis, length in _several(array, s, axes):
        array = fft(array, n=length, axis=axis, norm=norm)
    return array


def ifftn(
    x: Any,
    /,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = "backward",
) -> Array:
    """Return the inverse transform along several axes. See `numpy.fft.ifftn`."""
    array = _array(x)
    for axis, length in _several(array, s, axes):
        array = ifft(array, n=length, axis=axis, norm=norm)
    return array


def fft2(x: Any, s: Any = None, axes: Any = (-2, -1), norm: str | None = "backward") -> Array:
    """Return the transform along two axes. See `numpy.fft.fft2`."""
    return fftn(x, s=s, axes=axes, norm=norm)


def ifft2(x: Any, s: Any = None, axes: Any = (-2, -1), norm: str | None = "backward") -> Array:
    """Return the inverse transform along two axes. See `numpy.fft.ifft2`."""
    return ifftn(x, s=s, axes=axes, norm=norm)


def rfft(x: Any, /, n: int | None = None, axis: int = -1, norm: str | None = "backward") -> Array:
    """Return the first half of the transform of real numbers. See `numpy.fft.rfft`."""
    array = _array(x)
    if array.dtype.kind == "c":
        raise ArgumentValueError(f"x: expected real numbers, got {array.dtype}")
    place = parse_axis(axis, array.ndim)
    whole = fft(array, n=n, axis=place, norm=norm)
    half = whole.shape[place] // 2 + 1
    return whole[(*(slice(None),) * place, slice(0, half))]


def _full_spectrum(x: Array, length: int, axis: int) -> Array:
    """Return the whole spectrum of real numbers from its first half."""
    half = _resize(x.astype(_complex_kind(x.dtype)), length // 2 + 1, axis)
    before = (slice(None),) * axis
    rest = half[(*before, slice(1, (length + 1) // 2))]
    whole = concatenate([half, conjugate(flip(rest, axis=axis))], axis=axis)
    # what C's inverse of real numbers ignores
    edges = [0] if length % 2 else [0, length // 2]
    for edge in edges:
        at = (*before, slice(edge, edge + 1))
        whole[at] = real(whole[at]).astype(whole.dtype)
    return whole


def irfft(x: Any, /, n: int | None = None, axis: int = -1, norm: str | None = "backward") -> Array:
    """Return the real numbers of which `rfft` makes `x`. See `numpy.fft.irfft`."""
    array = _array(x)
    place = parse_axis(axis, array.ndim)
    length = 2 * (array.shape[place] - 1) if n is None else n
    if length < 1:
        raise ArgumentValueError(f"n: expected at least 1 element, got {length}")
    return real(ifft(_full_spectrum(array, length, place), axis=place, norm=norm)).copy()


def rfftn(
    x: Any,
    /,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = "backward",
) -> Array:
    """Return half of the transform of real numbers along several axes. See `numpy.fft.rfftn`."""
    array = _array(x)
    pairs = _several(array, s, axes)
    if not pairs:
        raise ArgumentValueError("axes: expected at least one axis")
    array = rfft(array, n=pairs[-1][1], axis=pairs[-1][0], norm=norm)
    for axis, length in pairs[:-1]:
        array = fft(array, n=length, axis=axis, norm=norm)
    return array


def irfftn(
    x: Any,
    /,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = "backward",
) -> Array:
    """Return the real numbers of which `rfftn` makes `x`. See `numpy.fft.irfftn`."""
    array = _array(x)
    pairs = _several(array, s, axes)
    if not pairs:
        raise ArgumentValueError("axes: expected at least one axis")
    for axis, length in pairs[:-1]:
        array = ifft(array, n=length, axis=axis, norm=norm)
    return irfft(array, n=pairs[-1][1], axis=pairs[-1][0], norm=norm)


def rfft2(x: Any, s: Any = None, axes: Any = (-2, -1), norm: str | None = "backward") -> Array:
    """Return half of the transform of real numbers along two axes. See `numpy.fft.rfft2`."""
    return rfftn(x, s=s, axes=axes, norm=norm)


def irfft2(x: Any, s: Any = None, axes: Any = (-2, -1), norm: str | None = "backward") -> Array:
    """Return the real numbers of which `rfft2` makes `x`. See `numpy.fft.irfft2`."""
    return irfftn(x, s=s, axes=axes, norm=norm)


_SWAPPED = {"backward": "forward", "forward": "backward", "ortho": "ortho"}


def hfft(x: Any, /, n: int | None = None, axis: int = -1, norm: str | None = "backward") -> Array:
    """Return the transform of a signal with Hermitian symmetry. See `numpy.fft.hfft`."""
    return irfft(conjugate(_array(x)), n=n, axis=axis, norm=_SWAPPED[_check_norm(norm)])


def ihfft(x: Any, /, n: int | None = None, axis: int = -1, norm: str | None = "backward") -> Array:
    """Return the inverse transform to a signal with Hermitian symmetry. See `numpy.fft.ihfft`."""
    return conjugate(rfft(x, n=n, axis=axis, norm=_SWAPPED[_check_norm(norm)]))


def fftfreq(n: int, /, d: float = 1.0, *, dtype: Any = None, device: Any = None) -> Array:
    """Return the frequencies of a transform of n elements. See `numpy.fft.fftfreq`."""
    places = (arange(n, device=device) + n // 2) % n - n // 2
    return (places / (n * d)).astype(default_real() if dtype is None else dtype, copy=False)


def rfftfreq(n: int, /, d: float = 1.0, *, dtype: Any = None, device: Any = None) -> Array:
    """Return the frequencies of a transform of n real elements. See `numpy.fft.rfftfreq`."""
    return (arange(n // 2 + 1, device=device) / (n * d)).astype(
        default_real() if dtype is None else dtype, copy=False
    )


def fftshift(x: Any, /, axes: Any = None) -> Array:
    """Return the array with frequency zero in the middle. See `numpy.fft.fftshift`."""
    array = _array(x)
    places = parse_axes(axes, array.ndim, "axes")
    return roll(array, tuple(array.shape[i] // 2 for i in places), axis=places) if places else array.copy()


def ifftshift(x: Any, /, axes: Any = None) -> Array:
    """Return the array with frequency zero at the front. See `numpy.fft.ifftshift`."""
    array = _array(x)
    places = parse_axes(axes, array.ndim, "axes")
    return roll(array, tuple(-(array.shape[i] // 2) for i in places), axis=places) if places else array.copy()
