"""Conversions between host values, arrays and the bytes of buffers and images; shapes and layouts."""

import math
import operator
import struct
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

from vkdispatch.base import derived_dtypes, dtype
from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, OutOfDeviceMemoryError
from vkdispatch.base.host_numpy import np
from vkdispatch.base.native_module import native
from vkdispatch.base.record import record

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


# ---- Conversions between host arrays and the elements of buffers and images ------------------------------


Array = np.ndarray[Any, Any]
Casting = Literal["no", "equiv", "safe", "same_kind"]

_CASTINGS = ("no", "equiv", "safe", "same_kind")


@record(eq=False)
class Form:
    """One form in which host arrays hold elements of a dtype.

    Attributes
    ----------
    host
        dtype of the array.
    tail
        Axes of the array after those of the buffer.
    convert
        Converts such an array to the content of memory. None if they are the same.
    direct
        Whether the array can be copied to memory unchanged.
    note
        A remark for messages.
    """

    host: np.dtype[Any]
    tail: tuple[int, ...]
    convert: Callable[[Array], Array] | None = None
    direct: bool = True
    note: str = ""


class _Forms(dict[DType, tuple[Form, ...]]):
    """The forms of each dtype, the usual one first. They are made on first use."""

    def __missing__(self, kind: DType) -> tuple[Form, ...]:
        forms = self[kind] = _make_forms(kind)
        if forms[0].direct:
            DIRECT[kind] = forms[0].host, forms[0].tail
        return forms


# dtype -> `host` and `tail` of its usual form, for the dtypes that were written and need no conversion.
DIRECT: dict[DType, tuple[np.dtype[Any], tuple[int, ...]]] = {}
_FORMS = _Forms()


def _make_forms(kind: DType) -> tuple[Form, ...]:
    if derived_dtypes.is_structure(kind):
        return (Form(kind.host, (), direct=False),)
    component = component_dtype(kind)
    if kind is dtype.bfloat16:
        rounded = Form(np.dtype(np.float32), (), to_bfloat16, direct=False, note=" to be rounded")
        return rounded, Form(component, (), note=" with its bits")
    if kind is dtype.complex32:
        rounded = Form(np.dtype(np.complex64), (), _pairs_of_complex, direct=False, note=" to be rounded")
        return rounded, Form(component, (2,))
    parts = Form(component, (2,) if dtype.is_complex(kind) else kind.true_numpy_shape)
    number = {"f": "c8", "d": "c16"}.get(component.char)
    if number is None or parts.tail != (2,):
        return (parts,)
    # A complex number and a vector of two have the same bytes.
    whole = Form(np.dtype(number), ())
    return (whole, parts) if dtype.is_complex(kind) else (parts, whole)


def _pairs_of_complex(array: Array) -> Array:
    return np.stack([array.real, array.imag], axis=-1).astype(np.float16)


def _complex_of_pairs(pairs: Array) -> Array:
    return pairs.astype(np.float32).view(np.complex64)[..., 0]


# For the dtypes that NumPy lacks: functions that convert the content of memory to an array.
WIDENED: dict[DType, Callable[[Array], Array]] = {
    dtype.complex32: _complex_of_pairs,
    dtype.bfloat16: from_bfloat16,
}


def layout_in_memory(kind: DType, shape: tuple[int, ...]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Return shape and dtype of an array with the memory content of elements of this shape."""
    form = next(form for form in _FORMS[kind] if form.convert is None)
    return shape + form.tail, form.host


def to_octets(kind: DType, data: object, shape: tuple[int, ...] | None, casting: str) -> Any:
    """Return host data as contiguous bytes of elements.

    Parameters
    ----------
    kind
        dtype of the elements.
    data
        An array, or bytes.
    shape
        The shape of the elements that an array must have. None allows any number of elements.
    casting
        Which conversions are allowed, as in `numpy.can_cast`.

    Raises
    ------
    TypeError
        `data` is neither an array nor bytes, or has other fields than a structure.
    ValueError
        An array has another dtype or shape, or `casting` is not a casting rule.
    """
    check_casting(casting)
    if not isinstance(data, np.ndarray):
        return raw_octets(data)
    array = plain_array(data, "data")
    forms = _FORMS[kind]
    if kind is dtype.bfloat16 and array.dtype.name == "bfloat16":  # of ml_dtypes
        array = array.view(np.uint16)
    if derived_dtypes.is_structure(kind) and array.dtype.names is not None:
        array = derived_dtypes.as_structure(kind, array, "data")
    choices = [_choice(form, kind, array, shape) for form in forms]
    chosen, array = fit(array, choices, casting)
    convert = forms[chosen].convert
    return as_octets(array if convert is None else convert(array))


def as_octets(array: Array) -> Array:
    """Return the bytes of an array in C order."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def raw_octets(data: object) -> Any:
    """Return bytes or a memoryview as contiguous bytes. Raises TypeError for anything else."""
    if isinstance(data, memoryview):
        return contiguous(data)
    if isinstance(data, (bytes, bytearray)):
        return data
    raise ArgumentTypeError(
        f"data: expected a NumPy array or bytes, got {type(data).__name__}; use np.asarray(...)"
    )


def plain_array(data: Array, name: str) -> Array:
    """Return an array as an `np.ndarray` proper.

    Raises
    ------
    TypeError
        It holds Python objects, or has a mask.
    """
    if data.dtype.hasobject:
        raise ArgumentTypeError(f"{name}: an array of dtype {data.dtype} holds Python objects, not numbers")
    if type(data) is np.ndarray:
        return data
    masked = getattr(sys.modules.get("numpy.ma"), "MaskedArray", None)
    if masked is not None and isinstance(data, masked):
        raise ArgumentTypeError(f"{name}: a masked array's mask cannot be written; use {name}.filled(...)")
    return np.asarray(data)


def check_casting(casting: object) -> None:
    """Raise ValueError unless `casting` is an allowed casting rule."""
    if casting not in _CASTINGS:
        raise ArgumentValueError(
            f"casting: expected one of {', '.join(map(repr, _CASTINGS))}, got {casting!r}; data.astype(...) "
            "makes any other conversion"
        )


@record(eq=False)
class Choice:
    """A form that an array may have: the dtype, whether the shape fits, and a description for messages."""

    host: np.dtype[Any]
    fits: bool
    text: str
    shape: tuple[int, ...] | None


def choice(
    host: np.dtype[Any], shape: tuple[int, ...], *shapes: tuple[int, ...], note: str = "", usable: bool = True
) -> Choice:
    """Return the choice of an array of one of some shapes, or of one axis with all their elements."""
    fits = usable and (shape in shapes or shape == (math.prod(shapes[0]),))
    return Choice(host, fits, f"shape {shapes[0]} of {host}{note}", shapes[0])


def _choice(form: Form, kind: DType, array: Array, shape: tuple[int, ...] | None) -> Choice:
    # A cast to complex would turn a number into the first component of a vector.
    usable = array.dtype.kind == "c" or form.host.kind != "c" or not dtype.is_vector(kind)
    if shape is not None:
        return choice(form.host, array.shape, shape + form.tail, note=form.note, usable=usable)
    axes_given = array.shape
    whole = axes_given[len(axes_given) - len(form.tail) :] == form.tail
    flat = len(axes_given) == 1 and axes_given[0] % math.prod(form.tail) == 0
    axes = ", ".join(("n", *map(str, form.tail))) if form.tail else "n,"
    text = f"shape ({axes}) of {form.host}{form.note}"
    return Choice(form.host, usable and (whole or flat), text, None)


def fit(data: Array, choices: "list[Choice]", casting: str) -> tuple[int, Array]:
    """Return the position of the first choice that an array fits, and the array in its dtype.

    Raises
    ------
    ValueError
        It fits none of them with conversions that `casting` allows.
    """
    exact = "no" if casting == "no" else "equiv"
    for rule in dict.fromkeys((exact, casting)):
        for place, wanted in enumerate(choices):
            if wanted.fits and np.can_cast(data.dtype, wanted.host, rule):  # type: ignore[arg-type]
                return place, data.astype(wanted.host, copy=False)
    texts = " or ".join(wanted.text for wanted in choices)
    raise ArgumentValueError(
        f"data: expected {texts}, got shape {data.shape} of {data.dtype}{_advice(data, choices, casting)}"
    )


def _advice(data: Array, choices: "Iterable[Choice]", casting: str) -> str:
    """Return a hint for messages about what to pass instead."""
    fitting = next((wanted for wanted in choices if wanted.fits), None)
    if fitting is None:
        for wanted in choices:
            if (
                wanted.shape is not None
                and math.prod(wanted.shape) == data.size
                and data.dtype == wanted.host
            ):
                return f"; use data.reshape({wanted.shape})"
        return ""
    if data.dtype.names is not None or fitting.host.names is not None:
        return ""
    if casting != "same_kind" and np.can_cast(data.dtype, fitting.host, "same_kind"):
        advice = '; casting="same_kind" converts it'
    else:
        advice = f"; data.astype(np.{fitting.host}) converts it"
    same = data.dtype.itemsize == fitting.host.itemsize
    return advice + (", and data.tobytes() writes its bytes as they are" if same else "")


def check_out(out: object, shape: tuple[int, ...], component: np.dtype[Any]) -> Array:
    """Check an array to fill, and return it.

    Raises
    ------
    TypeError
        It is not an array.
    ValueError
        It has another shape or dtype, or is not contiguous and writable.
    """
    if not isinstance(out, np.ndarray):
        raise ArgumentTypeError(f"out: expected a NumPy array, got {type(out).__name__}")
    if out.shape != shape or out.dtype != component:
        raise ArgumentValueError(
            f"out: expected shape {shape} of {component}, got shape {out.shape} of {out.dtype}"
        )
    if not (out.flags.c_contiguous and out.flags.writeable):
        raise ArgumentValueError("out: expected a C-contiguous, writable array; use np.empty(...)")
    return out


# ---- New arrays for data from the device -----------------------------------------------------------------


# From this size on, page faults of new memory take longer than the copy.
_LARGE = 4 << 20


def fresh_array(shape: tuple[int, ...], dtype: "np.dtype[Any]") -> Array:
    """Return a new array with undefined contents. Large arrays use huge pages, which are reused.

    Raises
    ------
    MemoryError
        The system does not have enough memory.
    """
    size = math.prod(shape) * dtype.itemsize
    if size < _LARGE:
        return np.empty(shape, dtype)
    pages: Any = native.HostPages(size)
    return np.ndarray(shape, dtype, pages)


# ---- The shape and dtype of a buffer: parsed, and laid out in memory -------------------------------------


Shape = int | Sequence[int]
# Of a buffer: var_type, shape, size, mem_size and shader_shape.
Layout = tuple[DType, tuple[int, ...], int, int, tuple[int, ...]]

_PADDING = ((1, 1, 1), (1, 1), (1,), ())  # by the number of axes
_MAX_BYTES = 1 << 62


class OversizedBufferError(OutOfDeviceMemoryError, ValueError):
    """The device has no memory for a buffer of more than 2**30 elements."""


def layout_of(shape: Shape, var_type: "DType | np.dtype[Any]") -> Layout:
    """Return the layout of a buffer of this shape and dtype. Raises as `Buffer`."""
    kind = parse_dtype(var_type)
    axes = parse_shape(shape)
    size = math.prod(axes)
    octets = size * kind.item_size
    if octets > _MAX_BYTES:
        raise OversizedBufferError(f"shape: {octets} bytes are more than any device has")
    in_kernels = axes + _PADDING[len(axes)] if len(axes) < len(_PADDING) else (size, 1, 1)
    return kind, axes, size, octets, (*in_kernels, size)


def parse_dtype(value: object, name: str = "var_type") -> DType:
    """Return the dtype of elements in memory, from a dtype, a dataclass or a NumPy dtype.

    Raises
    ------
    TypeError
        `value` is none of these. The message calls it `name`.
    ValueError
        There is no matching dtype.
    """
    if isinstance(value, type) and issubclass(value, dtype.dtype):
        if not hasattr(value, "name"):
            raise ArgumentTypeError(
                f"{name}: {value.__name__} cannot be stored in memory; use vd.float32 or the like"
            )
        if dtype.is_array(value):
            raise ArgumentTypeError(
                f"{name}: {value.name} is a type of fields of structures; make a buffer of "
                f"{dtype.item_of(value).name} with more axes"
            )
        return derived_dtypes.memory_type(value) if derived_dtypes.is_structure(value) else value
    if derived_dtypes.is_dataclass(value):
        return derived_dtypes.memory_type(derived_dtypes.structure_of(value))
    if isinstance(value, np.dtype) and value.names is not None:
        return derived_dtypes.structure_from_numpy(value)
    if isinstance(value, (np.dtype, str)) or (isinstance(value, type) and issubclass(value, np.generic)):
        return dtype.from_numpy_dtype(value, name)
    twin = dtype.find_twin(value)
    hint = "" if twin is None else f"; write vd.{twin}"
    raise ArgumentTypeError(f"{name}: expected a vkdispatch dtype such as vd.float32, got {value!r}{hint}")


def parse_shape(shape: object) -> tuple[int, ...]:
    """Return a shape as a tuple of ints.

    Raises
    ------
    TypeError
        It is neither an int nor a sequence of ints.
    ValueError
        It has a negative length.
    """
    if type(shape) is int and shape >= 0:
        return (shape,)
    if type(shape) is tuple:
        for axis in shape:
            if type(axis) is not int or axis < 0:
                break
        else:
            return shape
    try:
        axes = tuple(shape) if hasattr(shape, "__iter__") else (shape,)
        if any(isinstance(axis, (bool, np.bool_)) for axis in axes):
            raise TypeError
        result = tuple(operator.index(axis) for axis in axes)
    except TypeError:
        raise ArgumentTypeError(f"shape: expected an int or a sequence of ints, got {shape!r}") from None
    if any(axis < 0 for axis in result):
        raise ArgumentValueError(f"shape: sizes cannot be negative, got {result}")
    return result
