"""NumPy's way of computing on Vulkan devices: arrays, and the functions of the Python array API standard."""

import math
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as _numpy

from vkdispatch import installation as _installation

if not _installation.is_whole():
    _installation.refuse_mixture()

# Where public names live. `make format` writes them to `__init__.pyi`, for type checkers and editors.
_NAMES = {
    "basics.elementwise": (
        "abs absolute acos acosh add angle arccos arccosh arcsin arcsinh arctan arctan2 arctanh around asin "
        "asinh atan atan2 atanh bitwise_and bitwise_count bitwise_invert bitwise_left_shift bitwise_not "
        "bitwise_or bitwise_right_shift bitwise_xor cbrt ceil clip conj conjugate copysign cos cosh deg2rad "
        "degrees divide equal exp exp2 expm1 fabs fix float_power floor floor_divide fmax fmin fmod gcd "
        "greater greater_equal heaviside hypot imag invert isclose iscomplexobj isfinite isinf isnan "
        "isneginf isposinf isrealobj lcm left_shift less less_equal log log1p log2 log10 logaddexp "
        "logaddexp2 logical_and logical_not logical_or logical_xor maximum minimum mod multiply nan_to_num "
        "negative nextafter not_equal positive pow power rad2deg radians real reciprocal remainder "
        "right_shift rint round sign signbit sin sinc sinh sqrt square subtract tan tanh true_divide trunc"
    ),
    "core.conversion": "asarray asnumpy from_numpy",
    "basics.creation": (
        "array asanyarray asarray_chkfinite ascontiguousarray asfortranarray copy empty empty_like "
        "frombuffer fromiter fromstring full full_like ones ones_like require zeros zeros_like"
    ),
    "basics.sequences": "arange eye fromfunction geomspace identity linspace logspace tri tril triu",
    "basics.manipulation": (
        "astype atleast_1d atleast_2d atleast_3d broadcast_arrays broadcast_to diagonal expand_dims flip "
        "fliplr flipud matrix_transpose meshgrid moveaxis permute_dims ravel reshape result_type rollaxis "
        "rot90 sliding_window_view squeeze swapaxes transpose"
    ),
    "basics.joining": (
        "array_split column_stack concat concatenate dsplit dstack hsplit hstack repeat roll split stack "
        "tile unstack vsplit vstack"
    ),
    "indexing": "nonzero",
    "basics.reductions": (
        "all amax amin any apply_over_axes argmax argmin count_nonzero cumprod cumsum cumulative_prod "
        "cumulative_sum diff max mean min prod ptp std sum trace var"
    ),
    "searching": (
        "argpartition argsort argwhere flatnonzero isin lexsort partition searchsorted sort take "
        "take_along_axis topk unique unique_all unique_counts unique_inverse unique_values where"
    ),
    "quantiles": "median nanmedian nanpercentile nanquantile percentile quantile",
    "averages": (
        "average corrcoef cov nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmin nanprod nanstd "
        "nansum nanvar"
    ),
    "counting": "bincount digitize histogram histogram2d histogram_bin_edges histogramdd",
    "calculus": (
        "bartlett blackman convolve correlate ediff1d gradient hamming hanning interp kaiser trapezoid unwrap"
    ),
    "editing": (
        "append copyto delete fill_diagonal insert pad place put put_along_axis putmask resize trim_zeros"
    ),
    "selections": (
        "allclose array_equal array_equiv block choose compress extract intersect1d iscomplex isreal "
        "packbits piecewise real_if_close select setdiff1d setxor1d sort_complex union1d unpackbits"
    ),
    "index_arrays": (
        "broadcast_shapes c_ diag diag_indices diag_indices_from diagflat index_exp indices isfortran ix_ "
        "mask_indices mgrid ogrid r_ ravel_multi_index s_ tril_indices tril_indices_from triu_indices "
        "triu_indices_from unravel_index"
    ),
    "polynomials": "poly polyadd polyder polydiv polyfit polyint polymul polysub polyval roots vander",
    "interchange.inspection": (
        "__array_namespace_info__ apply_along_axis array2string array_repr array_str asmatrix bmat broadcast "
        "can_cast common_type finfo frompyfunc isdtype isscalar may_share_memory memmap min_scalar_type "
        "ndenumerate ndim ndindex nditer poly1d promote_types shape shares_memory size"
    ),
    "interchange.exchange": (
        "asbuffer from_dlpack fromfile genfromtxt load loadtxt save savetxt savez savez_compressed to_device"
    ),
    "basics.parts": "divmod frexp ldexp modf spacing",
    "core.memory": "Device",
    "interchange.lazy": "eval explain",
    "interchange.vectorizing": "vectorize",
    "special": "i0",
    "linalg.products": "einsum einsum_path",
    "linalg": "cross dot inner kron matmul matvec outer tensordot vdot vecdot vecmat",
}

__array_api_version__ = "2025.12"

bool = bool_ = _numpy.bool_
int8, int16, int32, int64 = _numpy.int8, _numpy.int16, _numpy.int32, _numpy.int64
uint8, uint16, uint32, uint64 = _numpy.uint8, _numpy.uint16, _numpy.uint32, _numpy.uint64
float16, float32, float64 = _numpy.float16, _numpy.float32, _numpy.float64
complex64, complex128 = _numpy.complex64, _numpy.complex128
dtype = _numpy.dtype
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
# What has its own place in the reference.
_CORE = {"core.array": "Array ndarray", "core.memory": "set_default_dtype"}
# What the class Array asks for, and programs do not.
_OF_ARRAYS = {
    "indexing": "get_items set_items",
    "core.blanks": "identify_array reduce_array",
    "interchange.protocols": "call_function call_ufunc",
    "interchange.exchange": (
        "array_flags as_argument base_of cuda_interface dlpack_device lend_elements to_dlpack view_as "
        "view_part"
    ),
    "interchange.inspection": "array_html",
    "editing": "FlatIterator",
}
_PUBLIC, _LISTED, _OWN = (
    {name: home for home, names in table.items() for name in names.split()}
    for table in (_CORE, _NAMES, _OF_ARRAYS)
)
_PUBLIC |= _LISTED
# Names of this file that are not the namespace's.
_HIDDEN = ("Any", "ModuleType", "import_module", "math")


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return import_module(f"{__name__}.{name}")
    if name == "__all__":
        return [each for each in __dir__() if not each.startswith("__")]
    home = _PUBLIC.get(name) or _OWN.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found = getattr(import_module(f"{__name__}.{home}"), name)
    return found


def __dir__() -> list[str]:
    own = {name for name, value in globals().items() if not isinstance(value, ModuleType)}
    hidden = {name for name in own if name.startswith("_") and not name.startswith("__")}
    return sorted({*own, *_PUBLIC, *_SUBMODULES} - hidden - {*_HIDDEN, *_OWN})
