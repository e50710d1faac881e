"""Arrays as text, and as pictures in notebooks."""

import struct
import zlib
from base64 import b64encode
from html import escape
from typing import Any

import numpy as np

from vkdispatch.numpy.basics.joining import concatenate
from vkdispatch.numpy.core.array import Array

__all__ = ["array2string", "array_repr", "array_str"]

# Most pixels of a thumbnail along an axis; and the least, as people read smaller arrays as text.
_MOST_PIXELS = 256
_LEAST_PIXELS = 12


def _read_edges(x: Array, edgeitems: int, threshold: int) -> "np.ndarray[Any, Any]":
    """Return the values; of an array that is abbreviated one of those at its edges, which alone are read."""
    if x.size <= threshold:
        return x.numpy()
    for axis, length in enumerate(x.shape):
        # one more than is shown, so that NumPy writes dots
        if length > 2 * edgeitems + 1:
            before = (slice(None),) * axis
            first, last = slice(0, edgeitems + 1), slice(length - edgeitems, None)
            x = concatenate([x[(*before, first)], x[(*before, last)]], axis=axis)
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
    return planes and numbers and min(x.shape[:2]) >= _LEAST_PIXELS


def thumbnail(x: Array) -> "np.ndarray[Any, Any]":
    """Return a small image of an array of shape `(h, w)`, `(h, w, 3)` or `(h, w, 4)`, of uint8.

    Rows and columns are left out. Of real numbers the interval from the least to the largest becomes 0 to
    255, or the one from 0 to 1 if all colours lie there. NaN becomes 0.
    """
    step = max(1, -(-max(x.shape[:2]) // _MOST_PIXELS))
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
