"""NumPy's way of computing on Vulkan devices: arrays, and the functions of the Python array API standard."""

import math
from importlib import import_module
from itertools import chain
from types import ModuleType
from typing import Any

import numpy as _numpy

from vkdispatch import installation as _installation

if not _installation.is_whole():
    _installation.refuse_mixture()

from vkdispatch.numpy.core.array import Array
from vkdispatch.numpy.core.memory import set_default_dtype as set_default_dtype

# Modules whose `__all__` is the namespace's; `__init__.pyi` says the same to type checkers and editors.
_MODULES = (
    "basics.elementwise",
    "basics.creation",
    "basics.sequences",
    "basics.manipulation",
    "basics.joining",
    "indexing",
    "basics.reductions",
    "searching",
    "quantiles",
    "averages",
    "counting",
    "calculus",
    "editing",
    "selections",
    "index_arrays",
    "polynomials",
    "interchange.inspection",
    "interchange.exchange",
    "basics.parts",
    "core.memory",
    "interchange.lazy",
    "interchange.vectorizing",
    "linalg.products",
)

__array_api_version__ = "2025.12"

bool = bool_ = _numpy.bool_
int8, int16, int32, int64 = _numpy.int8, _numpy.int16, _numpy.int32, _numpy.int64
uint8, uint16, uint32, uint64 = _numpy.uint8, _numpy.uint16, _numpy.uint32, _numpy.uint64
float16, float32, float64 = _numpy.float16, _numpy.float32, _numpy.float64
complex64, complex128 = _numpy.complex64, _numpy.complex128
dtype = _numpy.dtype
ndarray = Array
newaxis = None
e, inf, nan, pi = math.e, math.inf, math.nan, math.pi
euler_gamma = _numpy.euler_gamma
iinfo = _numpy.iinfo

# What NumPy calls types and their kinds, and settings of text, which arrays share with it.
byte, short, intc, intp, longlong = _numpy.byte, _numpy.short, _numpy.intc, _numpy.intp, _numpy.longlong
ubyte, ushort, uintc, uintp = _numpy.ubyte, _numpy.ushort, _numpy.uintc, _numpy.uintp
ulonglong, int_, uint = _numpy.ulonglong, _numpy.int_, _numpy.uint
half, single, double = _numpy.half, _numpy.single, _numpy.double
csingle, cdouble = _numpy.csingle, _numpy.cdouble
generic, number, inexact = _numpy.generic, _numpy.number, _numpy.inexact
integer, signedinteger, unsignedinteger = _numpy.integer, _numpy.signedinteger, _numpy.unsignedinteger
floating, complexfloating = _numpy.floating, _numpy.complexfloating
issubdtype, iterable = _numpy.issubdtype, _numpy.iterable
get_printoptions, set_printoptions = _numpy.get_printoptions, _numpy.set_printoptions
printoptions, errstate = _numpy.printoptions, _numpy.errstate


_SUBMODULES = ("fft", "lib", "linalg", "random", "special")
_OF_LINALG = (
    *("matmul", "dot", "inner", "vdot", "outer", "vecdot", "tensordot", "cross", "kron", "matvec", "vecmat"),
)
# What the class Array asks for, and programs do not.
_OF_ARRAYS = {
    **dict.fromkeys(("get_items", "set_items"), "indexing"),
    **dict.fromkeys(("identify_array", "reduce_array"), "core.blanks"),
    **dict.fromkeys(("call_ufunc", "call_function"), "interchange.protocols"),
    **dict.fromkeys(("as_argument", "to_dlpack", "dlpack_device", "lend_elements"), "interchange.exchange"),
    **dict.fromkeys(("cuda_interface", "array_flags", "base_of"), "interchange.exchange"),
    **dict.fromkeys(("view_as", "view_part"), "interchange.exchange"),
    "array_html": "interchange.inspection",
    "FlatIterator": "editing",
}
# Names of this file that are not the namespace's.
_HIDDEN = ("Any", "ModuleType", "chain", "import_module", "math")


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return import_module(f"{__name__}.{name}")
    if name == "__all__":
        return [each for each in __dir__() if not each.startswith("__")]
    home = "linalg" if name in _OF_LINALG else _OF_ARRAYS.get(name) or _find_home(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found = getattr(import_module(f"{__name__}.{home}"), name)
    return found


def _find_home(name: str) -> str | None:
    """Return the module that has a name in its `__all__`."""
    if name.startswith("__") and name != "__array_namespace_info__":
        return None
    for module in _MODULES:
        if name in import_module(f"{__name__}.{module}").__all__:
            return module
    return None


def __dir__() -> list[str]:
    own = {name for name, value in globals().items() if not isinstance(value, ModuleType)}
    hidden = {name for name in own if name.startswith("_") and not name.startswith("__")}
    of_modules = (import_module(f"{__name__}.{module}").__all__ for module in _MODULES)
    names = {*own, *_OF_LINALG, *_SUBMODULES, *chain.from_iterable(of_modules)}
    return sorted(names - hidden - {*_HIDDEN, *_OF_ARRAYS})
