"""SciPy's FFTs on the device: `scipy.fft.set_backend(vd.fft.scipy_backend)`.

This module is a backend of SciPy's dispatch (the uarray protocol): arguments and results are NumPy arrays
with the shapes, dtypes and values of SciPy's. float16 and float32 are computed in single precision,
everything else in double precision. What the device cannot do is declined, and SciPy computes it: double
precision on devices without float64, long doubles, arrays of other libraries, empty arrays, `plan=`, and what
does not fit into memory. So are arguments that SciPy refuses: it raises its error. `workers` and
`overwrite_x` have no other effect.
"""

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from vkdispatch.base.buffer import Array, Buffer, function_buffer
from vkdispatch.base.buffers.kinds import RFFTBuffer
from vkdispatch.base.dtype import complex64, complex128, float32, float64
from vkdispatch.base.errors import OutOfDeviceMemoryError, UnsupportedError
from vkdispatch.fft.arguments import reverse_norm, supports
from vkdispatch.fft.cosine import CosineOptions, Family, cosine_transform
from vkdispatch.fft.functions import fft, fft2, ifft2
from vkdispatch.fft.kernels.passes import LongLineError

__ua_domain__ = "numpy.scipy.fft"


class _Declined(Exception):
    """SciPy must compute it, or say what is wrong."""


def __ua_function__(method: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:  # noqa: N807
    """Compute a function of `scipy.fft`, or return NotImplemented."""
    function = _FUNCTIONS.get(method.__name__)
    if function is None:
        return NotImplemented
    try:
        return function(*args, **kwargs)
    except (_Declined, LongLineError, OutOfDeviceMemoryError, UnsupportedError):
        return NotImplemented


# ---- arguments -------------------------------------------------------------------------------------


def _parse_numbers(x: Any) -> Array:
    """Return an array of float32, float64, complex64 or complex128."""
    if not isinstance(x, (np.ndarray, list, tuple)) or isinstance(x, np.ma.MaskedArray):
        raise _Declined
    array = np.asarray(x)
    kind = array.dtype
    if array.size == 0 or array.ndim == 0 or kind.kind not in "fciub":
        raise _Declined
    if kind.kind == "f" and kind.itemsize <= 4:
        wanted: Any = np.float32
    elif kind.kind == "c" and kind.itemsize == 8:
        wanted = np.complex64
    else:
        wanted = np.complex128 if kind.kind == "c" else np.float64
        if kind.itemsize > np.dtype(wanted).itemsize or not supports(complex128):
            raise _Declined
    return array.astype(wanted, copy=False)


def _is_single(array: Array) -> bool:
    return array.dtype in (np.float32, np.complex64)


def _parse_complex(x: Any) -> Array:
    array = _parse_numbers(x)
    return array.astype(np.complex64 if _is_single(array) else np.complex128, copy=False)


def _parse_reals(x: Any) -> Array:
    array = _parse_numbers(x)
    if array.dtype.kind == "c":
        raise _Declined
    return array


def _parse_index(value: Any) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise _Declined from None


def _parse_axes_and_lengths(array: Array, s: Any, axes: Any) -> tuple[list[int], list[int | None]]:
    """Return the axes, counted from the front, and the requested lengths along them."""
    many = (list, tuple, np.ndarray)
    lengths = None if s is None else [_parse_index(n) for n in (s if isinstance(s, many) else (s,))]
    if axes is None:
        first = 0 if lengths is None else array.ndim - len(lengths)
        chosen = list(range(first, array.ndim))
    else:
        chosen = [_parse_index(axis) for axis in (axes if isinstance(axes, many) else (axes,))]
    if not chosen or min(chosen) < -array.ndim or max(chosen) >= array.ndim:
        raise _Declined
    chosen = [axis % array.ndim for axis in chosen]
    if len(set(chosen)) != len(chosen) or (lengths is not None and len(lengths) != len(chosen)):
        raise _Declined
    if lengths is None:
        return chosen, [None] * len(chosen)
    return chosen, [None if n == -1 else n for n in lengths]


def _resize(array: Array, length: int | None, axis: int) -> Array:
    """Truncate an axis, or pad it with zeros."""
    if length is None or length == array.shape[axis]:
        return array
    if length < 1:
        raise _Declined
    if length < array.shape[axis]:
        return array[(slice(None),) * axis + (slice(length),)]
    filled = np.zeros((*array.shape[:axis], length, *array.shape[axis + 1 :]), array.dtype)
    filled[(slice(None),) * axis + (slice(array.shape[axis]),)] = array
    return filled


def _check_options(norm: Any, workers: Any, plan: Any = None) -> None:
    if workers is not None and not _parse_index(workers):
        raise _Declined
    if plan is not None or norm not in (None, "backward", "ortho", "forward"):
        raise _Declined


# ---- transforms ------------------------------------------------------------------------------------


def _transform_axes(
    buffer: Buffer[Any], shape: Sequence[int], axes: Sequence[int], inverse: bool, norm: Any
) -> None:
    """Transform a buffer of complex numbers of any number of axes."""
    last = len(shape) - 1
    if last > 0 and {last - 1, last} <= set(axes):
        planes = (math.prod(shape[:-2]), *shape[-2:])
        (ifft2 if inverse else fft2)(buffer, buffer_shape=planes, norm=norm or "backward")
        axes = [axis for axis in axes if axis < last - 1]
    for axis in axes:
        folded = (math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :]))
        fft(buffer, buffer_shape=folded, axis=1, inverse=inverse, norm=norm or "backward")


_Compute = Callable[[Array, list[int], list[int | None], Any], Array]


def _define(read: Callable[[Any], Array], compute: _Compute) -> Callable[..., Array]:
    """Return a function of SciPy's signature; `compute` gets the array, axes, lengths and norm."""

    def run(
        x: Any,
        s: Any = None,
        axes: Any = None,
        norm: Any = None,
        overwrite_x: bool = False,
        workers: Any = None,
        *,
        plan: Any = None,
    ) -> Array:
        _check_options(norm, workers, plan)
        array = read(x)
        chosen, lengths = _parse_axes_and_lengths(array, s, axes)
        return compute(array, chosen, lengths, norm)

    return run


def _resize_axes(array: Array, axes: Sequence[int], lengths: Sequence[int | None]) -> Array:
    for axis, length in zip(axes, lengths, strict=True):
        array = _resize(array, length, axis)
    return array


def _define_complex(inverse: bool) -> Callable[..., Array]:
    """Return fftn or ifftn."""

    def compute(array: Array, axes: list[int], lengths: list[int | None], norm: Any) -> Array:
        array = _resize_axes(array, axes, lengths)
        buffer = function_buffer(array.size, complex64 if _is_single(array) else complex128)
        buffer.write(array.reshape(-1), 0)
        _transform_axes(buffer, array.shape, axes, inverse, norm)
        return buffer.read(0).reshape(array.shape)

    return _define(_parse_complex, compute)


def _define_forward_real(conjugate: bool) -> Callable[..., Array]:
    """Return rfftn, or with `conjugate` ihfftn: its conjugate with the norms reversed."""

    def compute(array: Array, axes: list[int], lengths: list[int | None], norm: Any) -> Array:
        array = _resize_axes(array, axes, lengths)
        norm = reverse_norm(norm) if conjugate else norm
        array = np.moveaxis(array, axes[-1], -1)
        buffer = RFFTBuffer(
            (array.size // array.shape[-1], array.shape[-1]), complex64 if _is_single(array) else complex128
        )
        buffer.write_real(array.reshape(buffer.real_shape), 0)
        fft(buffer, buffer_shape=buffer.real_shape, r2c=True, norm=norm)
        shape = (*array.shape[:-1], buffer.shape[-1])
        _transform_axes(buffer, shape, _shift_axes(axes), False, norm)
        spectrum = np.moveaxis(buffer.read(0).reshape(shape), -1, axes[-1])
        return np.ascontiguousarray(spectrum.conj() if conjugate else spectrum)

    return _define(_parse_reals, compute)


def _define_backward_real(conjugate: bool) -> Callable[..., Array]:
    """Return irfftn, or with `conjugate` hfftn: that of the conjugate with the norms reversed."""

    def compute(array: Array, axes: list[int], lengths: list[int | None], norm: Any) -> Array:
        real_length = lengths[-1] if lengths[-1] is not None else 2 * (array.shape[axes[-1]] - 1)
        if real_length < 1:
            raise _Declined
        array = _resize_axes(array, axes, [*lengths[:-1], real_length // 2 + 1])
        norm = reverse_norm(norm) if conjugate else norm
        array = np.moveaxis(array.conj() if conjugate else array, axes[-1], -1)
        buffer = RFFTBuffer(
            (array.size // array.shape[-1], real_length), complex64 if _is_single(array) else complex128
        )
        buffer.write(array.reshape(-1), 0)
        _transform_axes(buffer, array.shape, _shift_axes(axes), True, norm)
        fft(buffer, buffer_shape=buffer.real_shape, r2c=True, inverse=True, norm=norm or "backward")
        signal = buffer.read_real(0).reshape((*array.shape[:-1], real_length))
        return np.ascontiguousarray(np.moveaxis(signal, -1, axes[-1]))

    return _define(_parse_complex, compute)


def _shift_axes(chosen: Sequence[int]) -> list[int]:
    """Return the other axes after the last of them has become the last of the array."""
    return [axis - (axis > chosen[-1]) for axis in chosen[:-1]]


def _define_cosine(family: Family, inverse: bool) -> Callable[..., Array]:
    def run(
        x: Any,
        type: Any = 2,
        s: Any = None,
        axes: Any = None,
        norm: Any = None,
        overwrite_x: bool = False,
        workers: Any = None,
        orthogonalize: Any = None,
    ) -> Array:
        _check_options(norm, workers)
        number = int(_parse_index(type))
        array = _parse_numbers(x)
        chosen, lengths = _parse_axes_and_lengths(array, s, axes)
        array = np.ascontiguousarray(_resize_axes(array, chosen, lengths))
        least = 2 if family == "dct" and number == 1 else 1
        if number not in (1, 2, 3, 4) or min(array.shape[axis] for axis in chosen) < least:
            raise _Declined
        kind = array.dtype
        if kind.kind == "c":
            # the real and the imaginary parts are transformed separately
            array = array.view(array.real.dtype).reshape(*array.shape, 2)
        buffer = function_buffer(array.size, float32 if _is_single(array) else float64)
        buffer.write(array.reshape(-1), 0)
        options = CosineOptions(number, tuple(chosen), norm, None, buffer, orthogonalize, array.shape)
        cosine_transform(family, inverse, buffer, options)
        outcome = buffer.read(0).reshape(array.shape).view(kind)
        return outcome[..., 0] if kind.kind == "c" else outcome

    return run


def _parse_length(n: Any) -> tuple[int] | None:
    """Return the length along one axis, where -1 has no meaning, as those along some axes."""
    if n is None:
        return None
    if _parse_index(n) < 1:
        raise _Declined
    return (n,)


def _define_for_one_axis(function: Callable[..., Array]) -> Callable[..., Array]:
    """Return the function of one axis, by the function of any axes."""

    def run(x: Any, n: Any = None, axis: Any = -1, *args: Any, **kwargs: Any) -> Array:
        return function(x, _parse_length(n), (axis,), *args, **kwargs)

    return run


def _define_for_two_axes(function: Callable[..., Array]) -> Callable[..., Array]:
    def run(x: Any, s: Any = None, axes: Any = (-2, -1), *args: Any, **kwargs: Any) -> Array:
        return function(x, s, axes, *args, **kwargs)

    return run


def _define_cosine_of_one_axis(function: Callable[..., Array]) -> Callable[..., Array]:
    def run(x: Any, type: Any = 2, n: Any = None, axis: Any = -1, *args: Any, **kwargs: Any) -> Array:
        return function(x, type, _parse_length(n), (axis,), *args, **kwargs)

    return run


_FUNCTIONS: dict[str, Callable[..., Array]] = {}
for _name, _function in {
    "fft": _define_complex(False),
    "ifft": _define_complex(True),
    "rfft": _define_forward_real(False),
    "ihfft": _define_forward_real(True),
    "irfft": _define_backward_real(False),
    "hfft": _define_backward_real(True),
}.items():
    _FUNCTIONS[_name] = _define_for_one_axis(_function)
    _FUNCTIONS[_name + "2"] = _define_for_two_axes(_function)
    _FUNCTIONS[_name + "n"] = _function
for _name, _function in {
    "dct": _define_cosine("dct", False),
    "idct": _define_cosine("dct", True),
    "dst": _define_cosine("dst", False),
    "idst": _define_cosine("dst", True),
}.items():
    _FUNCTIONS[_name] = _define_cosine_of_one_axis(_function)
    _FUNCTIONS[_name + "n"] = _function
