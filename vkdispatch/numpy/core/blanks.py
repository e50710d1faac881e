"""Blanks: arrays in a process without a Vulkan device, which have a shape and a dtype and no values.

Dask describes the chunks of an array by one without elements, and finds the dtypes of results by calling
functions with it, also where nothing is computed: in clients and schedulers. There, arrays without elements
are expressions that are never computed, and functions of the namespace are NumPy's of the same name. Small
data for graphs, such as the percentiles to compute, stay on the host. A result has values if all arguments
have; to read or to send other results raises BackendUnavailableError.

In a process with a device, nothing of this is in the way.
"""

import functools
import hashlib
import inspect
import math
import operator
import sys
import warnings
import weakref
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import numpy as np

from vkdispatch.base.context import is_context_initialized
from vkdispatch.base.errors import BackendUnavailableError, UsageError
from vkdispatch.base.init import get_devices
from vkdispatch.numpy.core.application import make_operation
from vkdispatch.numpy.core.array import Array, array_of, namespace
from vkdispatch.numpy.core.expressions import Operation
from vkdispatch.numpy.core.memory import Kind, Shape, c_strides, parse_dtype
from vkdispatch.numpy.core.operations import COPY

_Function = Callable[..., Any]
# Of larger arrays, NumPy's functions get one element that is repeated.
_MAX_ELEMENTS = 4096
# The values of arrays that have some in a process without a device, by the arrays' identities.
_values: dict[int, "np.ndarray[Any, Any]"] = {}


def _refuse(value: Any, kind: Any) -> Any:
    raise UsageError("the array was made in a process without a device, where it got no values")


_BLANK = Operation("blank", _refuse)


def make_blank(shape: Shape, kind: Kind) -> Array:
    """Return an array without values. No device is asked."""
    return array_of(make_operation(_BLANK, (0,), (kind,), shape, kind))


def find_blank(shape: Shape, kind: Kind, device: object = None) -> Array | None:
    """Return an array without elements if this process has no device to make it on, else None."""
    if math.prod(shape) or device is not None or has_device():
        return None
    return make_blank(shape, kind)


def find_host_array(data: "np.ndarray[Any, Any]", kind: Kind, device: object = None) -> Array | None:
    """Return an array of data of the host if this process has no device, and functions accept blanks."""
    if (
        is_context_initialized()
        or device is not None
        or (data.size and not _serve_blanks.cache_info().currsize)
    ):
        return None
    return None if has_device() else _make_host_array(np.array(data, kind))


def _make_host_array(data: "np.ndarray[Any, Any]") -> Array:
    made = make_blank(data.shape, parse_dtype(data.dtype))
    _values[id(made)] = data
    weakref.finalize(made, _values.pop, id(made), None)
    return made


def has_device() -> bool:
    """Whether this process has a Vulkan device. Without one, functions begin to accept blanks."""
    if is_context_initialized():
        return True
    try:
        found = bool(get_devices())
    except BackendUnavailableError:
        found = False
    if not found:
        _serve_blanks()
    return found


def reduce_array(x: Array) -> tuple[Any, ...]:
    """Return what pickles an array. Without elements or axes, it can be restored without a device.

    Raises BackendUnavailableError if it has no values.
    """
    if not x.size or _is_valueless_number(x):
        return restore_blank, (x.shape, x.dtype.str)
    data = x.numpy()
    data.flags.writeable = False  # so that an out-of-band buffer needs no copy when it is loaded
    return restore_array if x.shape else restore_number, (data,)


def _is_valueless_number(x: Array) -> bool:
    return not x.shape and not is_context_initialized() and id(x) not in _values


def identify_array(x: Array) -> tuple[Any, ...]:
    """Return the dtype, the shape and a hash of the elements of an array."""
    facts = "vkdispatch.numpy.Array", x.dtype.str, x.shape
    if not x.size or _is_valueless_number(x):
        return facts
    return *facts, hashlib.blake2b(x.numpy().data, digest_size=16).hexdigest()


def restore_blank(shape: Shape, kind: str) -> Array:
    """Return an array without elements, or without values: what `reduce_array` refers to."""
    dtype = parse_dtype(kind)
    if has_device() and not math.prod(shape):
        return array_of(make_operation(COPY, (0,), (dtype,), shape, dtype))
    return make_blank(shape, dtype)


def restore_array(data: "np.ndarray[Any, Any]") -> Array:
    """Return an array of data: what `reduce_array` refers to."""
    return namespace().asarray(data)  # type: ignore[no-any-return]


def restore_number(data: "np.ndarray[Any, Any]") -> Array:
    """Return an array without axes: what `reduce_array` refers to. It is a constant until it is needed."""
    dtype = parse_dtype(data.dtype)
    if has_device():
        return array_of(make_operation(COPY, (data[()],), (dtype,), (), dtype))
    return _make_host_array(data)


# ---- functions of blanks -------------------------------------------------------------------------


@functools.cache
def _serve_blanks() -> None:
    """Have the functions of the namespace, and methods of arrays and generators, accept blanks."""
    space = namespace()
    for name in (*dir(space), *_TWINS):
        if name not in _OWN:
            _serve(space, name, _TWINS.get(name) or getattr(np, name, None))
    for module in ("linalg", "fft"):
        own, theirs = getattr(space, module), getattr(np, module)
        for name in own.__all__:
            _serve(own, name, getattr(theirs, name, None))
    triangles = import_module(f"{space.__name__}.linalg.solving")
    _serve(triangles, "solve_triangular", _solve)
    for name in dir(space.random.Generator):
        if not name.startswith("_") and callable(getattr(np.random.Generator, name, None)):
            _serve(space.random.Generator, name, functools.partial(_draw, name))
    _serve(Array, "numpy", _read)
    arrays: Any = Array
    arrays.strides = property(_find_strides)


# Functions that accept blanks by now.
_served: set[_Function] = set()
# Functions that neither need a device nor have a counterpart.
_OWN = ("set_default_dtype", "eval")
# Functions that need no data.
_CREATIONS = ("arange", "empty", "eye", "full", "identity", "linspace", "ones", "tri", "zeros")


def _solve(a: Any, b: Any, lower: bool = False) -> Any:
    return np.linalg.solve(np.eye(len(a), dtype=a.dtype), b)


def _draw(name: str, generator: Any, *args: Any, **kwargs: Any) -> Any:
    return getattr(np.random.default_rng(0), name)(*args, **kwargs)


def _find_strides(x: Array) -> Shape:
    return tuple(stride * x.itemsize for stride in c_strides(x.shape))


def _read(x: Any) -> Any:
    return x


def _set(x: Any, index: Any, value: Any) -> None:
    x[index] = value


# What functions are for NumPy's arrays that have another name there.
_TWINS: dict[str, _Function] = {
    "get_items": operator.getitem,
    "set_items": _set,
    "array_flags": operator.attrgetter("flags"),
    "view_part": lambda x, part: x.imag if part else x.real,
    "view_as": lambda x, kind: x if kind is None else x.view(kind),
    "call_ufunc": lambda ufunc, method, inputs, kwargs: getattr(ufunc, method)(*inputs, **kwargs),
    "call_function": lambda function, types, args, kwargs: function(*args, **kwargs),
}


def _serve(space: Any, name: str, theirs: _Function | None) -> None:
    own = getattr(space, name)
    if theirs is not None and inspect.isfunction(own) and own not in _served:
        served = _accept_blanks(own, theirs)
        _served.add(served)
        setattr(space, name, served)
        # it is pickled by its name there
        home = sys.modules[own.__module__]
        if getattr(home, served.__name__, None) is own:
            setattr(home, served.__name__, served)


def _accept_blanks(own: _Function, theirs: _Function) -> _Function:
    """Return a function that is `own` where there is a device, and else computes with shapes and dtypes."""
    # None, where it means that nothing is given, is something else for NumPy's function
    unset = {name for name, each in inspect.signature(own).parameters.items() if each.default is None}

    @functools.wraps(own)
    def call(*args: Any, **kwargs: Any) -> Any:
        if is_context_initialized():
            return own(*args, **kwargs)
        found_arrays = list(_find_arrays((args, kwargs)))
        if not found_arrays and type(theirs) is not functools.partial and own.__name__ not in _CREATIONS:
            return own(*args, **kwargs)
        has_values = all(id(array) in _values for array in found_arrays)
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            given = {
                name: _as_host(each) for name, each in kwargs.items() if each is not None or name not in unset
            }
            found = theirs(*_as_host(args), **given)
        if theirs is _read:
            return found if has_values or not found.size else own(*args, **kwargs)
        if not found_arrays and np.size(found) > (_MAX_ELEMENTS if own.__name__ in _CREATIONS else 0):
            return own(*args, **kwargs)  # it needs a device
        return _as_arrays(found, has_values)

    return call


def _find_arrays(value: Any) -> Iterator[Array]:
    if isinstance(value, Array):
        yield value
    elif isinstance(value, (list, tuple, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _find_arrays(item)


def _as_host(value: Any) -> Any:
    """Return arguments with NumPy arrays in place of Arrays."""
    if isinstance(value, Array):
        known = _values.get(id(value))
        if known is not None:
            return known
        if value.size <= _MAX_ELEMENTS:
            return np.zeros(value.shape, value.dtype)
        return np.broadcast_to(np.zeros((), value.dtype), value.shape)
    if type(value) in (list, tuple):
        return type(value)(map(_as_host, value))
    return {key: _as_host(each) for key, each in value.items()} if type(value) is dict else value


def _as_arrays(value: Any, has_values: bool) -> Any:
    """Return results with arrays in place of NumPy's."""
    if isinstance(value, (np.ndarray, np.generic)):
        kind = parse_dtype(value.dtype)
        return _make_host_array(np.array(value)) if has_values else make_blank(value.shape, kind)
    if isinstance(value, tuple):
        parts = [_as_arrays(item, has_values) for item in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return [_as_arrays(each, has_values) for each in value] if isinstance(value, list) else value
