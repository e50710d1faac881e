"""From data of the host, buffers, maps and arguments of functions to arrays."""

import math
import operator
from collections.abc import Sequence
from typing import Any, overload

import numpy as np

from vkdispatch.base.buffer import Buffer, OversizedBufferError
from vkdispatch.base.buffer import asbuffer as upload
from vkdispatch.base.context import use_context
from vkdispatch.base.dtype import component_count, component_type, is_complex
from vkdispatch.base.errors import ArgumentOverflowError, ArgumentTypeError, ArgumentValueError
from vkdispatch.base.native_module import native
from vkdispatch.numpy.core import memory
from vkdispatch.numpy.core.application import assign, cast, make_operation
from vkdispatch.numpy.core.array import (
    Array,
    OfScalar,
    Scalar,
    ScalarT,
    ShapeT,
    array_of,
    parse_operand,
    value_of,
    view_of,
)
from vkdispatch.numpy.core.blanks import find_host_array
from vkdispatch.numpy.core.kernels import gather, new_view
from vkdispatch.numpy.core.operations import COPY
from vkdispatch.shader.map import MappedArray


def parse_shape(shape: Any, name: str = "shape", most: float = native.MOST_ELEMENTS) -> memory.Shape:
    """Return a shape from an int or several ints. Raises TypeError or ValueError for anything else.

    `most` is how many elements it may have at most.
    """
    if isinstance(shape, Array):
        shape = shape.tolist()
    try:
        given = (shape,) if hasattr(shape, "__index__") else shape
        lengths = tuple(operator.index(length) for length in given)
    except TypeError:
        raise ArgumentTypeError(f"{name}: expected an int or a tuple of ints, got {shape!r}") from None
    if any(length < 0 for length in lengths):
        raise ArgumentValueError(f"{name}: negative dimensions are not allowed, got {lengths}")
    if math.prod(max(length, 1) for length in lengths) > most:
        raise OversizedBufferError(f"{name}: {lengths} has more elements than any memory")
    return lengths


def from_numpy(data: "np.ndarray[Any, Any]", device: Any = None) -> Array:
    """Return an array with the values of a NumPy array, which are copied to the device.

    Raises TypeError for dtypes that arrays cannot have.

    Examples
    --------
    >>> vnp.from_numpy(np.array([1, 2, 3]))
    Array([1, 2, 3], dtype=int64)
    """
    kind = memory.parse_dtype(data.dtype)
    on_host = find_host_array(data, kind, device)
    if on_host is not None:
        return on_host
    device = memory.parse_device(device)
    values = np.ascontiguousarray(data, kind).reshape(-1)
    if not values.size:
        return array_of(new_view(data.shape, kind, device.context))
    with use_context(device.context):
        return array_of(memory.View(memory.Storage(upload(values)), data.shape, kind))


def from_buffer(buffer: Buffer[Any]) -> Array:
    """Return an array on the memory of a buffer: no copy is made, and writes to one show in the other.

    Components of vectors and matrices become further axes.
    """
    buffer.require_alive()
    kind, shape = buffer.var_type, buffer.shape
    if component_count(kind) > 1 and not is_complex(kind):
        part = component_type(kind)
        count = kind.item_size // part.item_size
        last = (*shape, count)
        flat = Buffer.of_memory(buffer.context, buffer._native, (math.prod(last),), part)
        flat.register_parent(buffer)
        return array_of(memory.View(memory.Storage(flat, is_shared=True), last, memory.numpy_type(part)))
    return array_of(memory.View(memory.Storage(buffer, is_shared=True), shape, memory.numpy_type(kind)))


_Data = Array[ShapeT, ScalarT] | np.ndarray[ShapeT, np.dtype[ScalarT]]


@overload
def asarray(
    obj: _Data[ShapeT, ScalarT], /, *, device: Any = None, copy: bool | None = None, order: Any = None
) -> Array[ShapeT, ScalarT]: ...
@overload
def asarray(
    obj: _Data[ShapeT, Any],
    /,
    dtype: Scalar[OfScalar],
    *,
    device: Any = None,
    copy: bool | None = None,
    order: Any = None,
) -> Array[ShapeT, OfScalar]: ...
@overload
def asarray(
    obj: Any, /, dtype: Scalar[OfScalar], *, device: Any = None, copy: bool | None = None, order: Any = None
) -> Array[tuple[Any, ...], OfScalar]: ...
@overload
def asarray(
    obj: Any, /, dtype: Any = None, *, device: Any = None, copy: bool | None = None, order: Any = None
) -> Array: ...
def asarray(
    obj: Any, /, dtype: Any = None, *, device: Any = None, copy: bool | None = None, order: Any = None
) -> Array:
    """Return an array of what is given. See `numpy.asarray`.

    Parameters
    ----------
    obj
        An Array, a `vd.Buffer` (whose memory the array shares), a map called with its arguments, an array of
        NumPy or with `__array__`, a number, or nested sequences of numbers.
    dtype
        None: the dtype of the data; of Python numbers int64, or the default real or complex dtype.
    device
        Where; None: where `obj` is, or the current context's device.
    copy
        True always copies; False raises ValueError where a copy is needed, as for data of the host; None
        copies where it is needed.
    order
        "C" or "F": the axis whose neighbours lie side by side in memory is the last or the first one. "A",
        "K" and None: as `obj` if it is an Array, else "C".

    Raises
    ------
    TypeError
        Arrays cannot have this dtype.
    ValueError
        There is no such order, or see `copy`.

    Examples
    --------
    >>> vnp.asarray([1.5, 2.5], dtype=vnp.float32)
    Array([1.5, 2.5], dtype=float32)
    >>> vnp.asarray(np.arange(3))
    Array([0, 1, 2], dtype=int64)
    """
    if order is not None:
        return _arrange(asarray(obj, dtype, device=device, copy=copy), order, copy)
    kind = None if dtype is None else memory.parse_dtype(dtype)
    if isinstance(obj, Buffer):
        obj = from_buffer(obj)
    elif isinstance(obj, MappedArray):
        obj = Array.__vkdispatch_result__(obj.__vkdispatch_buffer__(None))
    if isinstance(obj, Array):
        if device is not None and obj.device != memory.parse_device(device):
            if copy is False:
                raise ArgumentValueError("copy: False was passed, but another device needs a copy")
            obj, copy = obj.to_device(device), None
        if kind is not None and kind != obj.dtype:
            if copy is False:
                raise ArgumentValueError(f"copy: False was passed, but {obj.dtype} to {kind} needs a copy")
            return array_of(cast(value_of(obj), kind))
        return copy_array(obj) if copy else obj
    if copy is False:
        raise ArgumentValueError("copy: False was passed, but host data must be copied to the device")
    is_sequence = isinstance(obj, (list, tuple)) and len(obj) > 0
    if is_sequence and all(isinstance(x, Array) and x.shape == obj[0].shape for x in obj):
        return asarray(_stack(obj), kind, device=device)
    return from_numpy(host_data(obj, kind), device)


def is_fortran(order: Any) -> bool:
    """Whether an argument asks for Fortran's order. Raises ValueError for an unknown order."""
    if order is not None:
        require_choice(order, "order", "C", "F", "A", "K")
    return bool(order == "F")


def _arrange(array: Array, order: Any, copy: bool | None) -> Array:
    """Return an array whose elements lie in C's or Fortran's order, a copy if they do not; see `asarray`."""
    turns = is_fortran(order)
    if order in ("A", "K"):
        return array
    view = view_of(array)
    if memory.is_f_order(view) if turns else view.is_contiguous:
        return array
    if copy is False:
        raise ArgumentValueError(f"copy: False was passed, but the order {order!r} needs a copy")
    return copy_array(array, order)


def _stack(arrays: Sequence[Array]) -> Array:
    shape = arrays[0].shape
    kind: memory.Kind = np.result_type(*(array.dtype for array in arrays))
    made = new_view((len(arrays), *shape), kind, arrays[0].device.context)
    for number, each in enumerate(arrays):
        assign(memory.View(made.storage, shape, kind, number * each.size), value_of(each))
    return array_of(made)


def host_data(obj: Any, kind: memory.Kind | None = None, name: str = "obj") -> "np.ndarray[Any, Any]":
    """Return data of the host as a NumPy array of a dtype that arrays have; see `asarray` for `kind`.

    `name` is what messages call the data.

    Raises
    ------
    TypeError
        Arrays cannot have such elements.
    ValueError
        Sequences in it have different lengths, or a number is not finite where integers are wanted.
    OverflowError
        A Python integer does not fit the dtype, or any dtype of integers.
    """
    if isinstance(obj, (np.ndarray, np.generic)):
        data = np.asarray(obj)
    else:
        nested = read_nested(obj)
        try:
            data = np.asarray(nested)
            numbers = (int, float, complex, np.number)
            if data.dtype.kind == "O" and data.size and all(isinstance(x, numbers) for x in data.flat):
                if kind is None:
                    raise OverflowError(f"a Python integer fits no dtype of integers, in {obj!r:.60}")
                data = np.asarray(nested, kind)
            elif kind is not None and data.dtype.kind in "iufc" and kind.kind in "iuf":
                data = np.asarray(nested, kind)  # NumPy refuses Python numbers that do not fit
        except (TypeError, ValueError, OverflowError) as error:
            raise translate_error(error, name) from None
    if data.dtype.kind not in "biufc" and (data.size or data.dtype.kind != "O"):
        raise ArgumentTypeError(f"{name}: expected numbers, got {type(obj).__name__} of dtype {data.dtype}")
    if kind is None and not isinstance(obj, (np.ndarray, np.generic)):
        kind = default_kind(obj, data)
    return data if kind is None else data.astype(kind, copy=False)


def translate_error(error: Exception, name: str) -> Exception:
    """Return the error of the package that is for an argument what one of NumPy is for data."""
    if isinstance(error, OverflowError):
        return ArgumentOverflowError(f"{name}: {error}")
    kind = ArgumentTypeError if isinstance(error, TypeError) else ArgumentValueError
    return kind(f"{name}: {error}")


def read_nested(obj: Any) -> Any:
    """Return nested sequences with arrays in them read."""
    if isinstance(obj, Array):
        return obj.numpy()
    if isinstance(obj, (list, tuple)):
        return [read_nested(item) if isinstance(item, _NESTED) else item for item in obj]
    if hasattr(obj, "__dlpack__") and not hasattr(obj, "__array__"):
        return np.from_dlpack(obj)
    return obj


_NESTED = (Array, list, tuple)


def default_kind(obj: Any, data: "np.ndarray[Any, Any] | np.generic") -> memory.Kind:
    """Return the dtype of an array made of `obj`, which NumPy holds as `data`.

    It is that of the data, which is never narrowed, but of Python's real and complex numbers the default.
    """
    if data.dtype.kind == "f" and data.dtype.itemsize == 8:
        default = memory.default_real()
    elif data.dtype.kind == "c" and data.dtype.itemsize == 16:
        default = memory.default_complex()
    else:
        return memory.parse_dtype(data.dtype)
    return default if default == data.dtype or is_of_python(obj) else data.dtype


def is_of_python(obj: Any) -> bool:
    """Whether there are only numbers of Python."""
    if isinstance(obj, (list, tuple)):
        return all(is_of_python(item) for item in obj)
    return type(obj) in (int, float, complex, bool)


def copy_array(a: Array, order: Any = None) -> Array:
    """Return a copy of an array, with memory of its own, in Fortran's order or else in C's.

    Raises UsageError while a graph records the calls of this thread.
    """
    memory.refuse_recording()
    if is_fortran(order):
        return copy_array(a.T).T
    value = value_of(a)
    if type(value) is memory.View and not value.is_contiguous:
        return array_of(gather(value))
    return array_of(make_operation(COPY, (value,), (value.dtype,), value.shape, value.dtype))


def require_array(x: Any, name: str = "x") -> Array:
    """Return an argument as an array; numbers are uploaded. Raises TypeError for anything else."""
    if isinstance(x, Array):
        return x
    parse_operand(x, name)
    return asarray(x)


def parse_value(x: Any, name: str = "x") -> Any:
    """Return the expression or view of an array or number. Raises TypeError for anything else."""
    return value_of(require_array(x, name))


def to_array(x: Any, name: str = "x") -> Array:
    """Return an argument as an array; numbers, lists and tuples are uploaded.

    Raises TypeError for anything else. NumPy's arrays are refused: they would be copied to the device in
    silence. All functions do so for elements that they compute with; see docs/reference/arrays/arrays.rst.
    """
    if isinstance(x, Array):
        return x
    return asarray(x) if isinstance(x, (list, tuple)) else require_array(x, name)


def require_choice(value: object, name: str, *choices: str) -> None:
    """Raise ValueError for an argument that is none of some texts."""
    if value not in choices:
        shown = ", ".join(map(repr, choices[:-1]))
        raise ArgumentValueError(f"{name}: expected {shown} or {choices[-1]!r}, got {value!r}")


def to_elements(x: Any, kind: memory.Kind, name: str) -> Array:
    """Return as an array what becomes elements of a dtype.

    Raises OverflowError or TypeError for numbers of Python that the dtype does not hold, and as `to_array`.
    """
    return asarray(host_data(x, kind, name)) if is_of_python(x) else to_array(x, name)


def to_index(x: Any) -> Array:
    """Return indices as an array; those of the host, NumPy's arrays as well, are uploaded."""
    if isinstance(x, Array):
        return x
    data = np.asarray(x)
    return asarray(data.astype(np.int64) if data.size == 0 else data)


def asnumpy(x: Any) -> "np.ndarray[Any, Any]":
    """Return the values of an array, or of data of the host, as a NumPy array.

    Examples
    --------
    >>> vnp.asnumpy(vnp.arange(3))
    array([0, 1, 2])
    """
    return x.numpy() if isinstance(x, Array) else np.asarray(x)


def real_kind(kind: memory.Kind) -> memory.Kind:
    """Return the dtype that real results of arrays of a dtype have: the default one for integers."""
    return memory.default_real() if kind.kind in "biu" else kind
