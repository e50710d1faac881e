"""Functions given by samples: interpolation, derivatives, integrals, convolutions, windows."""

import math
from typing import Any

import numpy as np

import vkdispatch.codegen as vc
from vkdispatch.base import dtype as dt
from vkdispatch.base.buffer import function_buffer
from vkdispatch.base.dtype import compute_type
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.codegen.annotations import buffer, constant
from vkdispatch.families.kernels import trace_kernel
from vkdispatch.families.stored import store_results
from vkdispatch.families.values import wrap_integer
from vkdispatch.numpy import fft
from vkdispatch.numpy.basics import manipulation
from vkdispatch.numpy.basics.creation import empty
from vkdispatch.numpy.basics.elementwise import absolute, choose, clip, conjugate, isnan, real
from vkdispatch.numpy.basics.joining import concatenate
from vkdispatch.numpy.basics.manipulation import flip, parse_axis, reshape, result_type
from vkdispatch.numpy.basics.reductions import cumsum, diff
from vkdispatch.numpy.basics.reductions import sum as total
from vkdispatch.numpy.core import complex_operations as of_complex
from vkdispatch.numpy.core.array import Array, array_from, check_cast, parse_index, value_of
from vkdispatch.numpy.core.conversion import asarray, real_kind, require_choice, to_array
from vkdispatch.numpy.core.kernels import as_buffer, whole_view
from vkdispatch.numpy.core.memory import Kind, default_complex, default_real, kernel_type
from vkdispatch.numpy.core.repeating import repeat_calls
from vkdispatch.numpy.searching import argsort, searchsorted
from vkdispatch.shader.shader_function import ShaderFunction

# ---- Direct convolution: one invocation for each result, over the products that it has -------------------


_GROUP = 256


def slide(signal: Array, taps: Array, start: int, length: int) -> Array:
    """Return `length` elements, from that at `start` on, of the convolution of vectors of one dtype."""
    kind = signal.dtype
    first, second = (as_buffer(whole_view(value_of(vector)), (vector.size,)) for vector in (signal, taps))
    result = function_buffer((length,), kernel_type(kind), first.context)
    _sliding_kernel(kind)(result, first, second, start, signal.size, taps.size)
    return array_from(result)


@store_results
def _sliding_kernel(kind: Kind) -> ShaderFunction:
    stored = kernel_type(kind)
    summed: Any = compute_type(stored)
    if kind == np.dtype(np.float16):
        summed = dt.float32

    def body(result: Any, signal: Any, taps: Any, start: Any, longest: Any, count: Any) -> None:
        index = vc.global_invocation_id().x
        place = (index + start).to_register()
        first = vc.select(place >= longest, place + 1 - longest, vc.to_dtype(dt.uint32, 0)).to_register()
        end = (vc.min(place, count - 1) + 1).to_register()
        total = vc.new_register(summed, 0)
        with vc.for_block(first, end, 1) as k:
            x, y = signal[place - k], taps[k]
            if kind.kind == "b":
                total[:] = vc.logical_or(total, vc.logical_and(x, y))
            elif kind.kind == "c":
                total[:] = total + of_complex.multiply(x, y)
            else:
                total[:] = total + vc.to_dtype(summed, x) * vc.to_dtype(summed, y)
        value = total if kind.kind in "bc" else wrap_integer(vc.to_dtype(compute_type(stored), total), stored)
        result[index] = value

    arguments = [(name, buffer[stored]) for name in ("result", "signal", "taps")]
    numbers = [(name, constant[dt.uint32]) for name in ("start", "longest", "count")]
    return trace_kernel("convolve", body, [*arguments, *numbers], _GROUP, exec_size="result.size")


# ---- Windows for spectra: computed on the host, and uploaded in the default real dtype -------------------


def _upload(values: "np.ndarray[Any, Any]") -> Array:
    return asarray(values.astype(default_real()))


def bartlett(M: int) -> Array:  # noqa: N803
    """Return the triangular window of `M` points. See `numpy.bartlett`.

    Examples
    --------
    >>> vnp.bartlett(5)
    Array([0. , 0.5, 1. , 0.5, 0. ], dtype=float64)
    """
    return _upload(np.bartlett(parse_index(M, "M")))


def blackman(M: int) -> Array:  # noqa: N803
    """Return Blackman's window of `M` points. See `numpy.blackman`.

    Examples
    --------
    >>> vnp.blackman(5)
    Array([-1.38777878e-17,  3.40000000e-01,  1.00000000e+00,  3.40000000e-01,
           -1.38777878e-17], dtype=float64)
    """
    return _upload(np.blackman(parse_index(M, "M")))


def hamming(M: int) -> Array:  # noqa: N803
    """Return Hamming's window of `M` points. See `numpy.hamming`.

    Examples
    --------
    >>> vnp.hamming(5)
    Array([0.08, 0.54, 1.  , 0.54, 0.08], dtype=float64)
    """
    return _upload(np.hamming(parse_index(M, "M")))


def hanning(M: int) -> Array:  # noqa: N803
    """Return von Hann's window of `M` points. See `numpy.hanning`.

    Examples
    --------
    >>> vnp.hanning(5)
    Array([0. , 0.5, 1. , 0.5, 0. ], dtype=float64)
    """
    return _upload(np.hanning(parse_index(M, "M")))


def kaiser(M: int, beta: float) -> Array:  # noqa: N803
    """Return Kaiser's window of `M` points. See `numpy.kaiser`.

    Examples
    --------
    >>> vnp.kaiser(5, 14)
    Array([7.72686684e-06, 1.64932188e-01, 1.00000000e+00, 1.64932188e-01,
           7.72686684e-06], dtype=float64)
    """
    return _upload(np.kaiser(parse_index(M, "M"), beta))


# ---- Functions given by samples: interpolation, derivatives, integrals, convolutions ---------------------


# Longer ones of real and complex numbers are convolved by Fourier transforms.
_MAX_DIRECT = 512


# ---- interpolation -------------------------------------------------------------------------------


@repeat_calls
def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Array:
    """Return a function at places between those where it is known. See `numpy.interp`.

    Parameters
    ----------
    x
        Where to find the function.
    xp, fp
        Where it is known, ascending, and its values there.
    left, right
        The values below and above all of `xp`; None: the first and the last value.
    period
        The period of a periodic function, whose `xp` may have any order.

    Raises
    ------
    ValueError
        `xp` is empty, or of another shape than `fp`, or `period` is zero.

    Examples
    --------
    >>> vnp.interp(vnp.asarray([1.5, 2.5]), vnp.asarray([1, 2, 3]), vnp.asarray([10, 20, 40]))
    Array([15., 30.], dtype=float64)
    """
    places, known, values = to_array(x), to_array(xp, "xp"), to_array(fp, "fp")
    if known.ndim != 1 or known.shape != values.shape:
        raise ArgumentValueError(
            f"xp, fp: expected vectors of one length, got the shapes {known.shape} and {values.shape}"
        )
    if known.size == 0:
        raise ArgumentValueError("xp: expected at least one place")
    if any(coordinates.dtype.kind == "c" for coordinates in (places, known)):
        raise ArgumentTypeError("x, xp: expected real numbers")
    wide = result_type(places, known, default_real())
    kind = result_type(values, default_complex() if values.dtype.kind == "c" else default_real())
    places, known, values = places.astype(wide), known.astype(wide), values.astype(kind)
    if period is not None:
        length = abs(float(period))
        if length == 0:
            raise ArgumentValueError("period: expected a number other than zero, got 0")
        places, known = places % length, known % length
        order = argsort(known)
        known, values = known[order], values[order]
        known = concatenate([known[-1:] - length, known, known[:1] + length])
        values = concatenate([values[-1:], values, values[:1]])
        left = right = None
    above = searchsorted(known, places, side="right")
    if kind.kind != "c":
        if any(end is not None and asarray(end).dtype.kind == "c" for end in (left, right)):
            raise ArgumentTypeError(f"left, right: expected real numbers, as fp, got {left!r} and {right!r}")
        return _interpolate(places, known, values, above, left, right)
    # each part alone: products of infinite numbers with complex ones are not numbers
    found = empty(places.shape, kind, device=places.device)
    for part in ("real", "imag"):
        ends = (None if end is None else getattr(asarray(end), part) for end in (left, right))
        line = _interpolate(places, known, getattr(values, part), above, *ends)
        getattr(found, part)[...] = choose(isnan(places), 0, line) if part == "imag" else line
    return found


def _interpolate(places: Array, known: Array, values: Array, above: Array, left: Any, right: Any) -> Array:
    """Return real numbers between those at known places, of which so many are not above each place."""
    last = known.size - 1
    low = clip(above - 1, 0, max(last - 1, 0))
    high = clip(low + 1, 0, last)
    x0, x1, y0, y1 = known[low], known[high], values[low], values[high]
    slope = (y1 - y0) / (x1 - x0)
    found = slope * (places - x0) + y0
    # infinite values give NaN from one side, and may do so from both
    found = choose(isnan(found), slope * (places - x1) + y1, found)
    found = choose(isnan(found) & (y0 == y1), y0, found)
    found = choose(places == x0, y0, found)
    below = values[0] if left is None else left
    beyond = values[last] if right is None else right
    found = choose(places >= known[last], choose(places == known[last], values[last], beyond), found)
    found = choose(places < known[0], below, found)
    return choose(isnan(places), math.nan, found).astype(values.dtype, copy=False)


@repeat_calls
def unwrap(p: Any, discont: Any = None, axis: int = -1, *, period: Any = 2 * math.pi) -> Array:
    """Return phases without jumps of periods along an axis. See `numpy.unwrap`.

    Examples
    --------
    >>> vnp.unwrap(vnp.asarray([0.0, 3.0, -3.0]))
    Array([0.        , 3.        , 3.28318531], dtype=float64)
    """
    array = to_array(p, "p")
    place = parse_axis(axis, array.ndim)
    kind = result_type(array, period)
    whole = kind.kind in "iu"
    steps = diff(array, axis=place)
    least = period / 2 if discont is None else discont
    half, odd = divmod(period, 2) if whole else (period / 2, 0)
    ambiguous = odd == 0
    low = -half
    moved = (steps - low) % period + low
    if ambiguous:
        moved = choose((moved == low) & (steps > 0), half, moved)
    correction = choose(absolute(steps) < least, 0, moved - steps)
    first = manipulation.slice_axis(array, place, 0, 1).astype(kind, copy=False)
    rest = manipulation.slice_axis(array, place, 1) + cumsum(correction.astype(kind, copy=False), axis=place)
    return concatenate([first, rest.astype(kind, copy=False)], axis=place)


@repeat_calls
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Array:
    """Return differences of neighbours of the flattened array, between other values. See `numpy.ediff1d`.

    Raises TypeError if the values at the ends do not go into the array's dtype.

    Examples
    --------
    >>> vnp.ediff1d(vnp.asarray([1, 4, 9]))
    Array([3, 5], dtype=int64)
    """
    array = reshape(to_array(ary, "ary"), -1)
    parts = []
    for name, edge in (("to_begin", to_begin), (None, array), ("to_end", to_end)):
        if name is None:
            parts.append(array[1:] - array[:-1])
        elif edge is not None:
            own = reshape(to_array(edge, name), -1)
            check_cast(own.dtype, array.dtype, name)
            parts.append(own)
    return concatenate(parts, dtype=array.dtype)


# ---- derivatives and integrals -------------------------------------------------------------------


@repeat_calls
def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """Return derivatives along axes, by second-order differences inside. See `numpy.gradient`.

    Parameters
    ----------
    varargs
        The distance of samples: one for all axes, or for each axis a number or an array of coordinates.
    axis
        None: all axes. For other than one axis, the result is a tuple.
    edge_order
        1 or 2: the order of the differences at both ends.

    Raises
    ------
    TypeError
        There are more distances than axes.
    ValueError
        An axis has no more elements than `edge_order`, or coordinates do not fit.

    Examples
    --------
    >>> vnp.gradient(vnp.asarray([1.0, 4.0, 9.0]))
    Array([3., 4., 5.], dtype=float64)
    """
    array = to_array(f, "f")
    given_axes = range(array.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    axes = [parse_axis(each, array.ndim) for each in given_axes]
    if len(varargs) not in (0, 1, len(axes)):
        raise ArgumentTypeError(f"varargs: expected none, one or {len(axes)} distances, got {len(varargs)}")
    given = varargs or (1.0,)
    if len(given) == 1 and not _is_number(given[0]) and len(axes) != 1:
        raise ArgumentTypeError(f"varargs: expected coordinates for each of {len(axes)} axes, got one array")
    distances = given * len(axes) if len(given) == 1 else given
    if edge_order not in (1, 2):
        raise ArgumentValueError(f"edge_order: expected 1 or 2, got {edge_order!r}")
    if array.dtype.kind == "b":
        raise ArgumentTypeError("f: booleans have no differences; convert them with astype")
    kind = real_kind(array.dtype)
    array = array.astype(kind, copy=False)
    found = []
    for place, each in zip(axes, distances, strict=True):
        if array.shape[place] < edge_order + 1:
            raise ArgumentValueError(
                f"f: expected at least {edge_order + 1} elements along axis {place}, got {array.shape[place]}"
            )
        found.append(_derive(array, place, each, edge_order, kind))
    return found[0] if len(found) == 1 else tuple(found)


def _is_number(value: Any) -> bool:
    return np.ndim(value) == 0 if not isinstance(value, Array) else value.ndim == 0


def _derive(f: Array, axis: int, distance: Any, edge_order: int, kind: Kind) -> Array:
    length = f.shape[axis]

    def part(start: int | None, stop: int | None) -> Array:
        return manipulation.slice_axis(f, axis, start, stop)

    def at(place: int) -> Array:
        return part(place, place + 1 if place != -1 else None)

    after = (1,) * (f.ndim - axis - 1)
    if _is_number(distance):
        own = float(distance) if not isinstance(distance, complex) else distance
        inner = (part(2, None) - part(None, -2)) / (2.0 * own)
        steps: list[Any] = [own, own, own, own]
    else:
        places = to_array(distance, "varargs")
        if places.ndim != 1 or places.shape[0] != length:
            raise ArgumentValueError(
                f"varargs: expected {length} coordinates for axis {axis}, got the shape {places.shape}"
            )
        if places.dtype.kind in "biu":
            places = places.astype(default_real())
        apart = places[1:] - places[:-1]
        before, behind = reshape(apart[:-1], (-1, *after)), reshape(apart[1:], (-1, *after))
        a = -behind / (before * (before + behind))
        b = (behind - before) / (before * behind)
        c = before / (behind * (before + behind))
        inner = a * part(None, -2) + b * part(1, -1) + c * part(2, None)
        steps = [apart[min(i, length - 2)] for i in (0, 1)] + [apart[max(i, -length + 1)] for i in (-2, -1)]
    if edge_order == 1:
        first, last = (at(1) - at(0)) / steps[0], (at(-1) - at(-2)) / steps[3]
    else:
        u, v = steps[0], steps[1]
        first = -(2.0 * u + v) / (u * (u + v)) * at(0) + (u + v) / (u * v) * at(1) - u / (v * (u + v)) * at(2)
        u, v = steps[2], steps[3]
        last = v / (u * (u + v)) * at(-3) - (v + u) / (u * v) * at(-2)
        last = last + (2.0 * v + u) / (v * (u + v)) * at(-1)
    return concatenate([first, inner, last], axis=axis, dtype=result_type(first, kind))


@repeat_calls
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Array:
    """Return integrals along an axis by the trapezoidal rule. See `numpy.trapezoid`.

    Parameters
    ----------
    x
        The coordinates of samples: along the axis, or for each sample. None: they are `dx` apart.

    Examples
    --------
    >>> vnp.trapezoid(vnp.asarray([1, 2, 3]))
    Array(4., dtype=float64)
    """
    array = to_array(y, "y")
    place = parse_axis(axis, array.ndim)
    width: Any = dx
    if x is not None:
        width = diff(to_array(x), axis=-1 if to_array(x).ndim == 1 else place)
        if width.ndim == 1:
            width = reshape(width, (-1, *(1,) * (array.ndim - place - 1)))
    low, high = manipulation.slice_axis(array, place, None, -1), manipulation.slice_axis(array, place, 1)
    return total(width * (high + low) / 2.0, axis=place)


# ---- convolutions --------------------------------------------------------------------------------


@repeat_calls
def convolve(a: Any, v: Any, mode: str = "full") -> Array:
    """Return the convolution of two vectors. See `numpy.convolve`.

    Where both have more than 512 real or complex numbers, it is computed by Fourier transforms: errors are
    then relative to the largest results, and a NaN or an infinity spreads to all of them.

    Parameters
    ----------
    mode
        "full", "same" (as long as the longer one) or "valid" (where both overlap completely).

    Raises
    ------
    ValueError
        There is no such mode, or an operand is empty or no vector.

    Examples
    --------
    >>> vnp.convolve(vnp.asarray([1, 2, 3]), vnp.asarray([0, 1]))
    Array([0, 1, 2, 3], dtype=int64)
    """
    first, second = _vectors(a, v, mode)
    if second.size > first.size:
        first, second = second, first
    start, length = _extent(first.size, second.size, mode)
    return _convolve(first, second, start, length)


@repeat_calls
def correlate(a: Any, v: Any, mode: str = "valid") -> Array:
    """Return the correlation of two vectors: of `a` with the conjugate of `v`. See `numpy.correlate`.

    See `convolve` for how long ones are computed.

    Examples
    --------
    >>> vnp.correlate(vnp.asarray([1, 2, 3]), vnp.asarray([0, 1]))
    Array([2, 3], dtype=int64)
    """
    first, second = _vectors(a, v, mode, least=1)
    turned = flip(conjugate(second) if second.dtype.kind == "c" else second)
    if turned.size <= first.size:
        start, length = _extent(first.size, turned.size, mode)
        return _convolve(first, turned, start, length)
    # NumPy correlates the shorter one with the longer, and turns the result
    start, length = _extent(turned.size, first.size, mode)
    start = first.size + turned.size - 1 - start - length
    return _convolve(turned, first, start, length)


def _vectors(a: Any, v: Any, mode: str, least: int = 0) -> tuple[Array, Array]:
    require_choice(mode, "mode", "full", "same", "valid")
    found = []
    for name, each in (("a", a), ("v", v)):
        own = to_array(each, name)
        if not least <= own.ndim <= 1 or own.size == 0:
            raise ArgumentValueError(f"{name}: expected a vector with elements, got the shape {own.shape}")
        found.append(reshape(own, -1))
    return found[0], found[1]


def _extent(longer: int, shorter: int, mode: str) -> tuple[int, int]:
    """Return where the results of a mode begin among all of a convolution, and how many there are."""
    if mode == "full":
        return 0, longer + shorter - 1
    if mode == "same":
        return (shorter - 1) // 2, longer
    return shorter - 1, longer - shorter + 1


def _convolve(longer: Array, shorter: Array, start: int, length: int) -> Array:
    kind = result_type(longer, shorter)
    longer, shorter = longer.astype(kind, copy=False), shorter.astype(kind, copy=False)
    count = shorter.size
    if count > _MAX_DIRECT and kind.kind in "fc":
        found = _convolve_by_transforms(longer, shorter)[start : start + length]
        return found.astype(kind)
    return slide(longer, shorter, start, length)


def _convolve_by_transforms(a: Array, b: Array) -> Array:
    size = a.size + b.size - 1
    length = 1 << (size - 1).bit_length()
    if a.dtype.kind == "c":
        return fft.ifft(fft.fft(a, n=length) * fft.fft(b, n=length))[:size]
    return real(fft.irfft(fft.rfft(a, n=length) * fft.rfft(b, n=length), n=length))[:size]
