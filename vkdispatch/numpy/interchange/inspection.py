"""What the namespace can do and refuses, and arrays as text and pictures."""

import math
import struct
import zlib
from base64 import b64encode
from collections.abc import Callable
from html import escape
from typing import Any

import numpy as np

from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, UnsupportedError
from vkdispatch.numpy.basics.joining import concatenate
from vkdispatch.numpy.basics.manipulation import parse_axes, slice_axis
from vkdispatch.numpy.core import memory
from vkdispatch.numpy.core.array import Array, value_of, view_of
from vkdispatch.numpy.core.memory import Device, parse_device

# ---- What the namespace can do, and rules of dtypes ------------------------------------------------------
#
# For code that is written for the array API standard.


# The dtypes of the standard, and its names of their kinds with NumPy's letters.
_DTYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float32", "float64", "complex64", "complex128"),
)
_LETTERS = {
    "bool": "b",
    "signed integer": "i",
    "unsigned integer": "u",
    "integral": "iu",
    "real floating": "f",
    "complex floating": "c",
    "numeric": "iufc",
}


class NamespaceInfo:
    """See `__array_namespace_info__`."""

    def capabilities(self) -> dict[str, Any]:
        """Return what the standard leaves open."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": None}

    def default_device(self) -> Device:
        """Return the current context's device."""
        return parse_device(None)

    def devices(self) -> tuple[Device, ...]:
        """Return the devices that `device=` takes."""
        return (parse_device(None),)

    def default_dtypes(self, *, device: Any = None) -> dict[str, Any]:
        """Return the dtypes of what has none of its own."""
        return {
            "real floating": memory.default_real(),
            "complex floating": memory.default_complex(),
            "integral": memory.int64,
            "indexing": memory.int64,
        }

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, Any]:
        """Return the dtypes that the device has, of a kind or of several."""
        parse_device(device)
        if isinstance(kind, tuple):
            return {name: dtype for part in kind for name, dtype in self.dtypes(kind=part).items()}
        if kind is not None and kind not in _LETTERS:
            raise ArgumentValueError(f"kind: expected one of {sorted(_LETTERS)}, got {kind!r}")
        missing = () if memory.has_float64() else ("float64", "complex128")
        dtypes = {name: np.dtype(name) for name in _DTYPES if name not in missing}
        return {name: own for name, own in dtypes.items() if kind is None or own.kind in _LETTERS[kind]}


def __array_namespace_info__() -> NamespaceInfo:  # noqa: N807
    """Return what the namespace can do, as the array API standard asks for.

    Examples
    --------
    >>> vnp.__array_namespace_info__().default_dtypes()["integral"]
    dtype('int64')
    """
    return NamespaceInfo()


class finfo:  # noqa: N801
    """Limits of a real or complex dtype, also of an array's. See `numpy.finfo`.

    Attributes
    ----------
    bits
        How many bits a real number occupies.
    eps, max, min, smallest_normal, tiny, smallest_subnormal, resolution, epsneg
        As in NumPy, but Python floats for all dtypes, as the array API standard asks for.
    dtype
        The dtype of a real number; of complex dtypes that of their parts.

    All else is `numpy.finfo`'s.

    Raises
    ------
    ValueError
        It is a dtype of no real or complex numbers.
    """

    def __init__(self, dtype: Any, /) -> None:
        self._found = found = np.finfo(dtype.dtype if isinstance(dtype, (Array, np.ndarray)) else dtype)
        self.bits = int(found.bits)
        self.dtype: memory.Kind = found.dtype
        self.eps, self.epsneg = float(found.eps), float(found.epsneg)
        self.max, self.min = float(found.max), float(found.min)
        self.smallest_normal = self.tiny = float(found.smallest_normal)
        self.smallest_subnormal = float(found.smallest_subnormal)
        self.resolution = float(found.resolution)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._found, name)

    def __repr__(self) -> str:
        return repr(self._found)


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether a dtype is another dtype, or of a kind such as "integral". See `numpy.isdtype`.

    Raises TypeError for an unknown kind.

    Examples
    --------
    >>> vnp.isdtype(vnp.float32, "real floating")
    True
    """
    own = memory.parse_dtype(dtype)
    if isinstance(kind, tuple):
        return any(isdtype(own, each) for each in kind)
    if isinstance(kind, str):
        if kind not in _LETTERS:
            raise ArgumentTypeError(f"kind: expected one of {sorted(_LETTERS)}, got {kind!r}")
        return own.kind in _LETTERS[kind]
    return own == memory.parse_dtype(kind, "kind")


def can_cast(from_: Any, to: Any, /, casting: Any = "safe") -> bool:
    """Whether a dtype, or that of an array, can be cast to another. See `numpy.can_cast`.

    Examples
    --------
    >>> vnp.can_cast(vnp.int32, vnp.float64)
    True
    """
    source = from_.dtype if isinstance(from_, Array) else memory.parse_dtype(from_)
    return bool(np.can_cast(source, memory.parse_dtype(to), casting))


def shape(a: Any) -> tuple[int, ...]:
    """Return the shape of an array. See `numpy.shape`.

    Examples
    --------
    >>> vnp.shape(vnp.zeros((2, 3)))
    (2, 3)
    """
    return a.shape if isinstance(a, Array) else np.shape(a)


def ndim(a: Any) -> int:
    """Return the number of axes of an array. See `numpy.ndim`.

    Examples
    --------
    >>> vnp.ndim(vnp.zeros((2, 3)))
    2
    """
    return a.ndim if isinstance(a, Array) else np.ndim(a)


def size(a: Any, axis: int | tuple[int, ...] | None = None) -> int:
    """Return the number of elements of an array, or along its axes. See `numpy.size`.

    Examples
    --------
    >>> vnp.size(vnp.zeros((2, 3)))
    6
    """
    if axis is None:
        return a.size if isinstance(a, Array) else np.size(a)
    lengths = shape(a)
    return math.prod(lengths[i] for i in parse_axes(axis, len(lengths)))


def isscalar(element: Any) -> bool:
    """Whether something is a number, and no array. See `numpy.isscalar`.

    Examples
    --------
    >>> vnp.isscalar(3.0)
    True
    """
    return bool(np.isscalar(element))


def common_type(*arrays: Any) -> Any:
    """Return the real or complex type that all arrays fit into. See `numpy.common_type`.

    Examples
    --------
    >>> vnp.common_type(vnp.zeros(1, dtype=vnp.float32), vnp.zeros(1, dtype=vnp.int32))
    <class 'numpy.float64'>
    """
    return np.common_type(*(np.empty(0, array.dtype) for array in arrays))


def min_scalar_type(a: Any, /) -> Any:
    """Return the dtype of an array; of a number the smallest that holds it. See `numpy.min_scalar_type`.

    Examples
    --------
    >>> vnp.min_scalar_type(300)
    dtype('uint16')
    """
    if isinstance(a, Array) and a.ndim:
        return a.dtype
    return np.min_scalar_type(np.asarray(a) if isinstance(a, Array) else a)


def promote_types(type1: Any, type2: Any) -> Any:
    """Return the dtype to which two dtypes promote. See `numpy.promote_types`.

    Examples
    --------
    >>> vnp.promote_types(vnp.int32, vnp.float32)
    dtype('float64')
    """
    return np.promote_types(memory.parse_dtype(type1), memory.parse_dtype(type2))


def may_share_memory(a: Any, b: Any, /, max_work: Any = None) -> bool:
    """Whether two arrays may show the same memory. See `numpy.may_share_memory`.

    Examples
    --------
    >>> x = vnp.arange(6)
    >>> vnp.may_share_memory(x, x[2:])
    True
    """
    if not (isinstance(a, Array) and isinstance(b, Array)):
        return False
    if a is b:
        return a.size > 0
    first, second = value_of(a), value_of(b)
    if not (isinstance(first, memory.View) and isinstance(second, memory.View)):
        return False
    return memory.overlaps(first, second)


def shares_memory(a: Any, b: Any, /, max_work: Any = None) -> bool:
    """Whether two arrays show an element both: exact, so it takes time. See `numpy.shares_memory`.

    Examples
    --------
    >>> x = vnp.arange(6)
    >>> vnp.shares_memory(x[:2], x[4:])
    False
    """
    if not may_share_memory(a, b):
        return False
    first, second = view_of(a), view_of(b)
    low = min(memory.bounds(first)[0], memory.bounds(second)[0])
    base = np.empty(max(memory.bounds(first)[1], memory.bounds(second)[1]) - low + 1, np.uint8)

    def show(view: memory.View) -> Any:
        return np.lib.stride_tricks.as_strided(base[view.offset - low :], view.shape, view.strides)

    return np.shares_memory(show(first), show(second))


# ---- Names of NumPy that arrays of a device do not have: what to use instead -----------------------------


def _refuse(name: str, advice: str) -> Callable[..., Any]:
    def refuse(*arguments: Any, **options: Any) -> Any:
        raise UnsupportedError(f"{name}: not supported for arrays on a device; {advice}")

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = f"Raise NotImplementedError: {advice}."
    return refuse


_BY_ELEMENT = (
    "it would call Python for each line of the array; use functions with axis=, or broadcasting, "
    "or a kernel made with vd.shader"
)
_BY_LOOP = "it would read each element; use functions of whole arrays, or loop over x.numpy()"

apply_along_axis = _refuse("apply_along_axis", _BY_ELEMENT)
frompyfunc = _refuse("frompyfunc", "use functions of whole arrays, or a kernel made with vd.shader")
nditer = _refuse("nditer", _BY_LOOP)
ndenumerate = _refuse("ndenumerate", _BY_LOOP)
ndindex = _refuse("ndindex", "use numpy.ndindex, which needs no array")
memmap = _refuse("memmap", "use numpy.memmap, and upload parts of it with asarray")
asmatrix = _refuse("asmatrix", "use arrays of two axes, and @ for products")
bmat = _refuse("bmat", "use block")
broadcast = _refuse("broadcast", "use broadcast_arrays or broadcast_shapes")
poly1d = _refuse("poly1d", "use polyval, polyfit and other functions of coefficients")


# ---- Arrays as text, and as pictures in notebooks --------------------------------------------------------


# Most pixels of a thumbnail along an axis; and the least, as people read smaller arrays as text.
_MAX_PIXELS = 256
_MIN_PIXELS = 12


def _read_edges(x: Array, edgeitems: int, threshold: int) -> "np.ndarray[Any, Any]":
    """Return the values; of an array that is abbreviated one of those at its edges, which alone are read."""
    if x.size <= threshold:
        return x.numpy()
    for axis, length in enumerate(x.shape):
        # one more than is shown, so that NumPy writes dots
        if length > 2 * edgeitems + 1:
            first, last = slice_axis(x, axis, 0, edgeitems + 1), slice_axis(x, axis, length - edgeitems)
            x = concatenate([first, last], axis=axis)
    return x.numpy()


def array2string(a: Any, max_line_width: int | None = None, precision: Any = None, **options: Any) -> str:
    """Return the elements as text. See `numpy.array2string`.

    Of an abbreviated array only the elements that are shown are read.

    Examples
    --------
    >>> vnp.array2string(vnp.asarray([1.5, 2.25]), precision=1)
    '[1.5 2.2]'
    """
    settings = np.get_printoptions()
    edges = _default_to(options.pop("edgeitems", None), settings["edgeitems"])
    threshold = _default_to(options.pop("threshold", None), settings["threshold"])
    values = _read_edges(a, edges, threshold) if isinstance(a, Array) else np.asarray(a)
    limit = threshold if values.size == a.size else 0
    options |= {"edgeitems": edges, "threshold": limit}
    return np.array2string(values, max_line_width, precision, **options)


def _default_to(value: Any, default: Any) -> Any:
    return default if value is None else value


def array_str(
    a: Array,
    max_line_width: int | None = None,
    precision: int | None = None,
    suppress_small: bool | None = None,
) -> str:
    """Return the elements as text. See `numpy.array_str`.

    Examples
    --------
    >>> vnp.array_str(vnp.arange(3))
    '[0 1 2]'
    """
    if not a.ndim:
        return str(a.numpy()[()])
    return array2string(a, max_line_width, precision, suppress_small=suppress_small, separator=" ", prefix="")


def array_repr(
    arr: Array,
    max_line_width: int | None = None,
    precision: int | None = None,
    suppress_small: bool | None = None,
) -> str:
    """Return the array as text that names its dtype, and its shape where the elements do not show it.

    See `numpy.array_repr`.

    Examples
    --------
    >>> vnp.array_repr(vnp.arange(3))
    'Array([0, 1, 2], dtype=int64)'
    """
    options = {"suppress_small": suppress_small, "separator": ", ", "prefix": "Array("}
    body = array2string(arr, max_line_width, precision, **options)
    is_abbreviated = arr.size > np.get_printoptions()["threshold"]
    tail = f", shape={arr.shape}" if is_abbreviated or not arr.size else ""
    tail += f", dtype={arr.dtype})"
    width = _default_to(max_line_width, np.get_printoptions()["linewidth"])
    last = body.rpartition("\n")[2] if "\n" in body else f"Array({body}"
    gap = "\n" + " " * len("Array(") if len(last) + len(tail) > width else ""
    return f"Array({body}{tail.replace(', ', ',' + gap, 1) if gap else tail}"


# ---- notebooks -----------------------------------------------------------------------------------


def array_html(x: Array) -> str:
    """Return the array as HTML: its shape and dtype, and its elements, or a thumbnail of an image."""
    shape = " &times; ".join(str(length) for length in x.shape) or "no axes"
    title = f"Array, {shape}, {x.dtype}, {_count_bytes(x.nbytes)}"
    if _is_image(x):
        pixels = thumbnail(x)
        data = b64encode(encode_png(pixels)).decode()
        height, width = pixels.shape[:2]
        body = (
            f'<img src="data:image/png;base64,{data}" width="{width}" height="{height}" '
            f'alt="{title}" style="image-rendering: pixelated">'
        )
    else:
        body = f"<pre>{escape(array_str(x))}</pre>"
    return f"<div><div><small>{title}</small></div>{body}</div>"


def _count_bytes(count: float) -> str:
    for unit in ("bytes", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.4g} {unit}"
        count /= 1024
    return f"{count:.4g} GiB"


def _is_image(x: Array) -> bool:
    planes = x.ndim == 2 or (x.ndim == 3 and x.shape[2] in (3, 4))
    numbers = x.dtype == np.uint8 or x.dtype.kind in "bf"
    return planes and numbers and min(x.shape[:2]) >= _MIN_PIXELS


def thumbnail(x: Array) -> "np.ndarray[Any, Any]":
    """Return a small image of an array of shape `(h, w)`, `(h, w, 3)` or `(h, w, 4)`, of uint8.

    Rows and columns are left out. Of real numbers the interval from the least to the largest becomes 0 to
    255, or the one from 0 to 1 if all colours lie there. NaN becomes 0.
    """
    step = max(1, -(-max(x.shape[:2]) // _MAX_PIXELS))
    values: np.ndarray[Any, Any] = x[::step, ::step].numpy()
    if values.dtype == np.uint8:
        return values
    if values.dtype.kind == "b":
        return np.where(values, np.uint8(255), np.uint8(0))
    wide = values.astype(np.float64)
    finite = wide[np.isfinite(wide)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    if low >= 0 and high <= 1 and (wide.ndim == 3 or low == high):
        low, high = 0.0, 1.0
    span = (high - low) or 1.0
    level = np.clip((np.nan_to_num(wide, nan=low, posinf=high, neginf=low) - low) / span, 0, 1)
    pixels: np.ndarray[Any, Any] = np.rint(level * 255).astype(np.uint8)
    return pixels


_COLOUR_TYPES = {1: 0, 3: 2, 4: 6}


def encode_png(pixels: "np.ndarray[Any, Any]") -> bytes:
    """Return a PNG file of uint8 pixels of shape `(h, w)`, `(h, w, 3)` or `(h, w, 4)`."""
    height, width = pixels.shape[:2]
    depth = 1 if pixels.ndim == 2 else pixels.shape[2]
    rows = pixels.reshape(height, width * depth)
    # each row starts with the number of its filter: none
    lines = np.concatenate([np.zeros((height, 1), np.uint8), rows], axis=1).tobytes()
    header = struct.pack(">IIBBBBB", width, height, 8, _COLOUR_TYPES[depth], 0, 0, 0)
    chunks = (b"IHDR", header), (b"IDAT", zlib.compress(lines)), (b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )
