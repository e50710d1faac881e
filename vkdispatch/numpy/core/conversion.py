"""From data of the host, buffers and maps to arrays."""

import math
import operator
from typing import Any

import numpy as np

from vkdispatch.base.buffer import Buffer
from vkdispatch.base.buffer import asbuffer as upload
from vkdispatch.base.context import use_context
from vkdispatch.base.dtype import component_count, component_type, is_complex
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.numpy.core.application import cast, make_operation
from vkdispatch.numpy.core.array import Array, array_of, value_of
from vkdispatch.numpy.core.devices import parse_device
from vkdispatch.numpy.core.dtypes import Kind, default_complex, default_real, numpy_type, parse_dtype
from vkdispatch.numpy.core.kernels import new_view
from vkdispatch.numpy.core.memory import Shape, Storage, View
from vkdispatch.numpy.core.operations import COPY
from vkdispatch.shader.map import MappedArray


def parse_shape(shape: Any, name: str = "shape") -> Shape:
    """Return a shape from an int or several ints. Raises TypeError or ValueError for anything else."""
    if isinstance(shape, Array):
        shape = shape.tolist()
    try:
        lengths: tuple[int, ...] = (
            (operator.index(shape),)
            if hasattr(shape, "__index__")
            else tuple(operator.index(n) for n in shape)
        )
    except TypeError:
        raise ArgumentTypeError(f"{name}: expected an int or a tuple of ints, got {shape!r}") from None
    if any(length < 0 for length in lengths):
        raise ArgumentValueError(f"{name}: negative dimensions are not allowed, got {lengths}")
    return lengths


def from_numpy(data: "np.ndarray[Any, Any]", device: Any = None) -> Array:
    """Return an array with the values of a NumPy array, which are copied to the device.

    Raises TypeError for dtypes that arrays cannot have.
    """
    kind = parse_dtype(data.dtype)
    device = parse_device(device)
    values = np.ascontiguousarray(data, kind).reshape(-1)
    if not values.size:
        return array_of(new_view(data.shape, kind, device.context))
    with use_context(device.context):
        return array_of(View(Storage(upload(values)), data.shape, kind))


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
        return array_of(View(Storage(flat, is_shared=True), last, numpy_type(part)))
    return array_of(View(Storage(buffer, is_shared=True), shape, numpy_type(kind)))


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

    Raises
    ------
    TypeError
        Arrays cannot have this dtype.
    ValueError
        See `copy` and `device`.
    """
    kind = None if dtype is None else parse_dtype(dtype)
    if isinstance(obj, Buffer):
        obj = from_buffer(obj)
    elif isinstance(obj, MappedArray):
        made = obj.__vkdispatch_buffer__(None)
        obj = array_of(View(Storage(made), made.shape, numpy_type(made.var_type)))
    if isinstance(obj, Array):
        if device is not None:
            obj = obj.to_device(device)
        if kind is not None and kind != obj.dtype:
            if copy is False:
                raise ArgumentValueError(f"copy: False was given, but {obj.dtype} to {kind} needs a copy")
            return array_of(cast(value_of(obj), kind))
        return copy_array(obj) if copy else obj
    if copy is False:
        raise ArgumentValueError("copy: False was given, but data of the host are copied to the device")
    data = obj if isinstance(obj, (np.ndarray, np.generic)) else np.asarray(read_nested(obj))
    if kind is None:
        kind = default_kind(obj, data)
    if data.dtype.kind in "OUSmMV" and data.size:
        raise ArgumentTypeError(f"obj: expected numbers, got {type(obj).__name__} of dtype {data.dtype}")
    if kind.kind in "iu" and data.dtype.kind in "iu" and not isinstance(obj, (np.ndarray, np.generic)):
        data = np.asarray(read_nested(obj), kind)  # NumPy refuses Python integers that do not fit
    return from_numpy(np.asarray(data).astype(kind, copy=False), device)


def read_nested(obj: Any) -> Any:
    """Return nested sequences with arrays in them read."""
    if isinstance(obj, Array):
        return obj.numpy()
    if isinstance(obj, (list, tuple)):
        return [read_nested(each) for each in obj]
    return obj


def default_kind(obj: Any, data: "np.ndarray[Any, Any] | np.generic") -> Kind:
    """Return the dtype of an array made of `obj`, which NumPy holds as `data`."""
    if isinstance(obj, (np.ndarray, np.generic)) or hasattr(obj, "__array__") or hasattr(obj, "dtype"):
        return parse_dtype(data.dtype)
    if data.dtype.kind == "f":
        return default_real()
    if data.dtype.kind == "c":
        return default_complex()
    return parse_dtype(data.dtype)


def copy_array(a: Array) -> Array:
    """Return a copy of an array, with memory of its own."""
    value = value_of(a)
    return array_of(make_operation(COPY, (value,), (value.dtype,), value.shape, value.dtype))
