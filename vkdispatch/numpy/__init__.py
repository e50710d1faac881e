"""NumPy's way of computing on Vulkan devices: arrays, and the functions of the Python array API standard."""

import math
from importlib import import_module
from typing import Any

import numpy as _numpy

from vkdispatch.numpy.core.array import Array
from vkdispatch.numpy.core.dtypes import set_default_dtype

# Modules of which all public functions are the namespace's.
_MODULES = (
    "elementwise",
    "limits",
    "creation",
    "manipulation",
    "indexing",
    "reductions",
    "searching",
    "gathering",
    "differences",
    "inspection",
    "exchange",
    "printing",
    "core.devices",
)

__array_api_version__ = "2024.12"

bool = bool_ = _numpy.bool_
int8, int16, int32, int64 = _numpy.int8, _numpy.int16, _numpy.int32, _numpy.int64
uint8, uint16, uint32, uint64 = _numpy.uint8, _numpy.uint16, _numpy.uint32, _numpy.uint64
float16, float32, float64 = _numpy.float16, _numpy.float32, _numpy.float64
complex64, complex128 = _numpy.complex64, _numpy.complex128
dtype = _numpy.dtype
ndarray = Array
newaxis = None
e, inf, nan, pi = math.e, math.inf, math.nan, math.pi


_SUBMODULES = ("fft", "linalg", "random")
_OF_LINALG = ("matmul", "dot", "inner", "vdot", "outer", "vecdot", "tensordot", "cross", "trace", "kron")


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return import_module(f"{__name__}.{name}")
    if name in _OF_LINALG:
        return getattr(import_module(f"{__name__}.linalg"), name)
    if name.startswith("__") and name != "__array_namespace_info__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    for module in _MODULES:
        found = getattr(import_module(f"{__name__}.{module}"), name, None)
        if found is not None:
            globals()[name] = found
            return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


_ = set_default_dtype
