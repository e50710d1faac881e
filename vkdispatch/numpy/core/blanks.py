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
from vkdispatch.numpy.core.dtypes import Kind, parse_dtype
from vkdispatch.numpy.core.expressions import Operation
from vkdispatch.numpy.core.memory import Shape, c_strides
from vkdispatch.numpy.core.operations import COPY

_Function = Callable[..., Any]
# Of larger arrays, NumPy's functions get one element that is repeated.
_MOST_ELEMENTS = 4096
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
