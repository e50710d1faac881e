"""Conversion of host values (numbers, vectors, matrices) to the bytes that kernels read."""

import struct
from collections.abc import Iterable
from typing import Any

from vkdispatch.base import dtype
from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.base.host_numpy import np
from vkdispatch.base.native_module import native

# Format characters of the `struct` module.
SCALAR_CODES: dict[DType, str] = {
    dtype.int16: "h",
    dtype.uint16: "H",
    dtype.int32: "i",
    dtype.uint32: "I",
    dtype.int64: "q",
    dtype.uint64: "Q",
    dtype.float16: "e",
    dtype.float32: "f",
    dtype.float64: "d",
}
_PLAIN: dict[DType, struct.Struct] = {
    kind: struct.Struct(f"={dtype.component_count(kind)}{SCALAR_CODES[dtype.component_type(kind)]}")
    for kind in vars(dtype).values()
    if isinstance(kind, type)
    and issubclass(kind, dtype.dtype)
    and hasattr(kind, "item_size")
    and dtype.component_type(kind) in SCALAR_CODES
}


# The largest integers up to which float types represent all integers.
_MAX_EXACT: dict[DType, int] = {dtype.float16: 1 << 11, dtype.float32: 1 << 24, dtype.float64: 1 << 53}


def component_dtype(kind: DType) -> np.dtype[Any]:
    """Return the NumPy dtype of one component (complex: of its real part; bfloat16: of its bits)."""
    component = dtype.component_type(kind)
    host: np.dtype[Any] = np.dtype(
        dtype.to_numpy_dtype(dtype.uint16 if component is dtype.bfloat16 else component)
    )
    return host


def to_bfloat16(array: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
    """Return the upper halves of float32 values as uint16, rounded to even; nan stays nan."""
    bits = np.ascontiguousarray(array, np.float32).view(np.uint32)
    rounded = (bits + (((bits >> 16) & 1) + np.uint32(0x7FFF))) >> 16
    return np.where(np.isnan(array), (bits >> 16) | 0x40, rounded).astype(np.uint16)


def from_bfloat16(halves: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
    """Return the float32 values with these upper halves, which are uint16."""
    return (halves.astype(np.uint32) << 16).view(np.float32)


def pack(kind: DType, value: object, argument: str) -> bytes:
    """Return one host value as the bytes of `kind`, without padding.

    Parameters
    ----------
    kind
        The dtype that the kernel reads.
    value
        A number, or for vectors and matrices a sequence or array of their shape; an array may have one axis
        of length 1 before it. Real numbers are rounded to float types, but an integer must be exactly
        representable. Integer types accept whole numbers only.
    argument
        The name of the value in error messages.

    Raises
    ------
    TypeError
        `value` is of the wrong kind, such as None, text or complex for a real type.
    ValueError
        `value` has the wrong shape or does not fit.
    """
    quick = _pack_plain(kind, value)
    if quick is not None:
        return quick
    array = _numbers(kind, value, argument)
    shape = kind.true_numpy_shape
    if isinstance(value, np.ndarray) and (array.shape == (1, *shape) or (not shape and array.size == 1)):
        array = array.reshape(shape)  # one row, as programs for 0.1.0 give values
    if array.shape != shape:
        raise ArgumentValueError(f"{argument}: {_expect(kind, 1)}, got {_describe(value)}")
    if dtype.is_placed(kind):
        return _pack_placed(kind, array[np.newaxis], argument)
    return _as_components(kind, array, argument).tobytes()


def _pack_plain(kind: DType, value: object) -> bytes | None:
    """Pack Python numbers, or tuples or lists of them, ten times as fast as NumPy; None for anything else."""
    packer = _PLAIN.get(kind)
    try:
        if packer is None:
            return None
        if type(value) is complex:
            return packer.pack(value.real, value.imag) if dtype.is_complex(kind) else None
        if type(value) is tuple or type(value) is list:
            fits = dtype.is_vector(kind) and not _may_round(kind, value)
            return packer.pack(*value) if fits else None
        if type(value) is float or type(value) is int:
            fits = dtype.is_scalar(kind) and not _may_round(kind, (value,))
            return packer.pack(value) if fits else None
    except (struct.error, OverflowError, TypeError):
        return None
    return None


def _may_round(kind: DType, values: Iterable[Any]) -> bool:
    """Whether one of the integers among these numbers may not be representable in a float type."""
    most = _MAX_EXACT.get(dtype.component_type(kind))
    return most is not None and any(type(value) is not float and abs(value) > most for value in values)


def pack_rows(kind: DType, value: object, rows: int, argument: str) -> bytes:
    """Return `rows` host values as consecutive bytes.

    A single scalar applies to every row. With more than one row, other values need a leading axis of length
    `rows`. Raises as `pack`.
    """
    array = _numbers(kind, value, argument)
    shape = kind.true_numpy_shape
    if array.shape == (rows, *shape):
        pass
    elif array.shape == shape and (rows == 1 or not shape):
        array = np.broadcast_to(array, (rows, *shape))
    else:
        # 0.1.0 refuses one vector for several rows; programs may rely on this
        repeated = f"; pass [value] * {rows} to use it for all {rows}" if array.shape == shape else ""
        raise ArgumentValueError(f"{argument}: {_expect(kind, rows)}, got {_describe(value)}{repeated}")
    if dtype.is_placed(kind):
        return _pack_placed(kind, array, argument)
    return _as_components(kind, array, argument).tobytes()


def _pack_placed(kind: DType, rows: "np.ndarray[Any, Any]", argument: str) -> bytes:
    """Return consecutive rows, with the components at the strides of the type."""
    assert kind.child_type is not None and issubclass(kind, dtype.Placed)
    components = _as_components(kind.child_type, rows, argument)
    packed = np.zeros((len(rows), kind.item_size), np.uint8)
    strides = (kind.item_size, *kind.strides)
    np.ndarray(components.shape, components.dtype, packed, 0, strides)[...] = components
    return packed.tobytes()


def contiguous(view: memoryview) -> memoryview:
    """Return a contiguous view or copy. NumPy copies without the GIL, `view.tobytes()` holds it."""
    if view.c_contiguous:
        return view
    try:
        return np.ascontiguousarray(view).reshape(-1).view(np.uint8).data
    except (ValueError, TypeError, NotImplementedError):  # a format that NumPy does not support
        return memoryview(view.tobytes())


def plain_scalar(kind: DType, value: object, argument: str) -> int | float:
    """Return a host value as the Python number a scalar `kind` holds. Raises as `pack`.

    Numbers that a recorded call knows by their types stay as they are.
    """
    number: int | float = np.frombuffer(pack(kind, value, argument), component_dtype(kind))[0].item()
    return value if isinstance(value, (native.Parameter, native.RealParameter)) else number


def _numbers(kind: DType, value: object, argument: str) -> "np.ndarray[Any, Any]":
    if value is None or callable(value) or isinstance(value, (str, bytes, bytearray, dict, set)):
        raise ArgumentTypeError(f"{argument}: {_expect(kind, 1)}, got {_describe(value)}")
    try:
        array = np.asarray(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise ArgumentValueError(
            f"{argument}: {_expect(kind, 1)}, got {_describe(value)} ({error})"
        ) from error
    if array.dtype.kind == "O" and array.size and all(isinstance(item, int) for item in array.flat):
        raise ArgumentValueError(f"{argument}: {_describe(value)} does not fit {kind.name}")
    allowed = "biufc" if dtype.is_complex(kind) else "biuf"
    if array.dtype.kind not in allowed and array.size:
        raise ArgumentTypeError(f"{argument}: {_expect(kind, 1)}, got {_describe(value)}")
    return array


def _as_components(kind: DType, array: "np.ndarray[Any, Any]", argument: str) -> "np.ndarray[Any, Any]":
    component = component_dtype(kind)
    if dtype.is_complex(kind):
        array = np.stack([array.real, array.imag], axis=-1)
    if component.kind == "f":
        return _as_floats(component, array, kind, argument)
    _check_integers(component, array, kind, argument)
    return array.astype(component)


def _as_floats(
    component: np.dtype[Any], array: "np.ndarray[Any, Any]", kind: DType, argument: str
) -> "np.ndarray[Any, Any]":
    with np.errstate(over="ignore"):
        floats = array.astype(component)
    lost = np.isinf(floats) & ~np.isinf(array) if array.dtype.kind == "f" else _inexact(floats, array)
    if np.any(lost):
        number = array[lost].flat[0].item()
        why = (
            f"; pass float({number}) to round it"
            if isinstance(number, int) and np.all(np.isfinite(floats))
            else ""
        )
        raise ArgumentValueError(f"{argument}: {kind.name} cannot hold {number!r}{why}")
    return floats


def _inexact(floats: "np.ndarray[Any, Any]", integers: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
    """Return a mask of the floats that differ from the integers that they were converted from."""
    # Compare Python numbers: NumPy would compare them as floats.
    pairs = zip(floats.flat, integers.flat, strict=True)
    return np.fromiter((a.item() != b.item() for a, b in pairs), bool, floats.size).reshape(floats.shape)


def _check_integers(
    component: np.dtype[Any], array: "np.ndarray[Any, Any]", kind: DType, argument: str
) -> None:
    limits = np.iinfo(component)
    for number in array.flat:
        # Compare Python numbers: NumPy would compare uint64 and int64 as floats.
        plain = number.item()
        if plain != plain or not limits.min <= plain <= limits.max:
            raise ArgumentValueError(
                f"{argument}: {plain!r} does not fit {kind.name} ({limits.min} to {limits.max})"
            )
        if plain != int(plain):
            raise ArgumentValueError(
                f"{argument}: {plain!r} is not a whole number, as {kind.name} requires; round it"
            )


def _expect(kind: DType, rows: int) -> str:
    shape = kind.true_numpy_shape
    if not shape:
        single = "a number" if not dtype.is_complex(kind) else "a real or complex number"
        return f"expected {single} for {kind.name}" + (f", or {rows} of them" if rows > 1 else "")
    full = shape if rows == 1 else (rows, *shape)
    return f"expected numbers of shape {full} for {kind.name}"


def _describe(value: object) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape} and dtype {value.dtype}"
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) <= 60 else text[:57] + '...'}"
