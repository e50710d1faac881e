"""Element-wise functions: NumPy's ufuncs, and others that compute by element."""

import builtins
import math
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np

from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.base.native_module import native
from vkdispatch.numpy.core import application, memory
from vkdispatch.numpy.core.array import (
    COMPARISONS,
    Array,
    array_of,
    bound_integer,
    check_cast,
    parse_index,
    parse_operand,
    require_out,
    store,
    value_of,
)
from vkdispatch.numpy.core.conversion import asarray, parse_value, to_array
from vkdispatch.numpy.core.expressions import IMAG, REAL, Node, Operation, find_loop, make_node, make_part
from vkdispatch.numpy.core.operations import COPY, JOIN, OPERATIONS, WHERE, ZEROS_LIKE

EXAMPLES = {
    "add": ("vnp.asarray([1, 2]), 3", "Array([4, 5], dtype=int64)"),
    "subtract": ("vnp.asarray([5, 7]), vnp.asarray([1, 2])", "Array([4, 5], dtype=int64)"),
    "multiply": ("vnp.asarray([1, 2]), vnp.asarray([3, 4])", "Array([3, 8], dtype=int64)"),
    "divide": ("vnp.asarray([1, 2]), 4", "Array([0.25, 0.5 ], dtype=float64)"),
    "floor_divide": ("vnp.asarray([7, -7]), 2", "Array([ 3, -4], dtype=int64)"),
    "remainder": ("vnp.asarray([7, -7]), 3", "Array([1, 2], dtype=int64)"),
    "fmod": ("vnp.asarray([7, -7]), 3", "Array([ 1, -1], dtype=int64)"),
    "power": ("vnp.asarray([2, 3]), 2", "Array([4, 9], dtype=int64)"),
    "float_power": ("vnp.asarray([2, 3]), 2", "Array([4., 9.], dtype=float64)"),
    "negative": ("vnp.asarray([1, -2])", "Array([-1,  2], dtype=int64)"),
    "positive": ("vnp.asarray([1, -2])", "Array([ 1, -2], dtype=int64)"),
    "absolute": ("vnp.asarray([-1.5, 2.0])", "Array([1.5, 2. ], dtype=float64)"),
    "fabs": ("vnp.asarray([-1.5, 2.0])", "Array([1.5, 2. ], dtype=float64)"),
    "sign": ("vnp.asarray([-3, 0, 5])", "Array([-1,  0,  1], dtype=int64)"),
    "square": ("vnp.asarray([2, 3])", "Array([4, 9], dtype=int64)"),
    "reciprocal": ("vnp.asarray([2.0, 4.0])", "Array([0.5 , 0.25], dtype=float64)"),
    "gcd": ("vnp.asarray([12, 7]), 8", "Array([4, 1], dtype=int64)"),
    "lcm": ("vnp.asarray([4, 6]), 10", "Array([20, 30], dtype=int64)"),
    "equal": ("vnp.asarray([1, 2]), 2", "Array([False,  True], dtype=bool)"),
    "not_equal": ("vnp.asarray([1, 2]), 2", "Array([ True, False], dtype=bool)"),
    "less": ("vnp.asarray([1, 2, 3]), 2", "Array([ True, False, False], dtype=bool)"),
    "less_equal": ("vnp.asarray([1, 2, 3]), 2", "Array([ True,  True, False], dtype=bool)"),
    "greater": ("vnp.asarray([1, 2, 3]), 2", "Array([False, False,  True], dtype=bool)"),
    "greater_equal": ("vnp.asarray([1, 2, 3]), 2", "Array([False,  True,  True], dtype=bool)"),
    "logical_and": (
        "vnp.asarray([True, False]), vnp.asarray([True, True])",
        "Array([ True, False], dtype=bool)",
    ),
    "logical_or": (
        "vnp.asarray([True, False]), vnp.asarray([False, False])",
        "Array([ True, False], dtype=bool)",
    ),
    "logical_xor": (
        "vnp.asarray([True, False]), vnp.asarray([True, True])",
        "Array([False,  True], dtype=bool)",
    ),
    "logical_not": ("vnp.asarray([True, False])", "Array([False,  True], dtype=bool)"),
    "bitwise_and": ("vnp.asarray([6, 5]), 3", "Array([2, 1], dtype=int64)"),
    "bitwise_or": ("vnp.asarray([6, 5]), 3", "Array([7, 7], dtype=int64)"),
    "bitwise_xor": ("vnp.asarray([6, 5]), 3", "Array([5, 6], dtype=int64)"),
    "invert": ("vnp.asarray([0, 1])", "Array([-1, -2], dtype=int64)"),
    "left_shift": ("vnp.asarray([1, 2]), 3", "Array([ 8, 16], dtype=int64)"),
    "right_shift": ("vnp.asarray([8, 16]), 2", "Array([2, 4], dtype=int64)"),
    "bitwise_count": ("vnp.asarray([7, 8])", "Array([3, 1], dtype=uint8)"),
    "maximum": ("vnp.asarray([1.0, vnp.nan]), 2.0", "Array([ 2., nan], dtype=float64)"),
    "minimum": ("vnp.asarray([3.0, vnp.nan]), 2.0", "Array([ 2., nan], dtype=float64)"),
    "fmax": ("vnp.asarray([1.0, vnp.nan]), 2.0", "Array([2., 2.], dtype=float64)"),
    "fmin": ("vnp.asarray([3.0, vnp.nan]), 2.0", "Array([2., 2.], dtype=float64)"),
    "isnan": ("vnp.asarray([1.0, vnp.nan])", "Array([False,  True], dtype=bool)"),
    "isinf": ("vnp.asarray([1.0, vnp.inf])", "Array([False,  True], dtype=bool)"),
    "isfinite": ("vnp.asarray([1.0, vnp.inf])", "Array([ True, False], dtype=bool)"),
    "signbit": ("vnp.asarray([-0.0, 1.0])", "Array([ True, False], dtype=bool)"),
    "copysign": ("vnp.asarray([1.0, 2.0]), -1.0", "Array([-1., -2.], dtype=float64)"),
    "nextafter": ("vnp.asarray([1.0], dtype=vnp.float32), 2.0", "Array([1.0000001], dtype=float32)"),
    "heaviside": ("vnp.asarray([-1.0, 0.0, 2.0]), 0.5", "Array([0. , 0.5, 1. ], dtype=float64)"),
    "rint": ("vnp.asarray([0.5, 1.5, 2.7])", "Array([0., 2., 3.], dtype=float64)"),
    "logaddexp": ("vnp.asarray([0.0]), 0.0", "Array([0.69314718], dtype=float64)"),
    "logaddexp2": ("vnp.asarray([3.0]), 3.0", "Array([4.], dtype=float64)"),
    "sqrt": ("vnp.asarray([4.0, 9.0])", "Array([2., 3.], dtype=float64)"),
    "cbrt": ("vnp.asarray([8.0, 27.0])", "Array([2., 3.], dtype=float64)"),
    "exp": ("vnp.asarray([0.0, 1.0])", "Array([1.        , 2.71828183], dtype=float64)"),
    "exp2": ("vnp.asarray([3.0, 0.5])", "Array([8.        , 1.41421356], dtype=float64)"),
    "expm1": ("vnp.asarray([0.0, 1.0])", "Array([0.        , 1.71828183], dtype=float64)"),
    "log": ("vnp.asarray([1.0, 10.0])", "Array([0.        , 2.30258509], dtype=float64)"),
    "log2": ("vnp.asarray([8.0, 10.0])", "Array([3.        , 3.32192809], dtype=float64)"),
    "log10": ("vnp.asarray([100.0, 2.0])", "Array([2.     , 0.30103], dtype=float64)"),
    "log1p": ("vnp.asarray([0.0, 1.0])", "Array([0.        , 0.69314718], dtype=float64)"),
    "sin": ("vnp.asarray([0.0, 1.0])", "Array([0.        , 0.84147098], dtype=float64)"),
    "cos": ("vnp.asarray([0.0, 1.0])", "Array([1.        , 0.54030231], dtype=float64)"),
    "tan": ("vnp.asarray([0.0, 1.0])", "Array([0.        , 1.55740772], dtype=float64)"),
    "arcsin": ("vnp.asarray([0.0, 1.0])", "Array([0.        , 1.57079633], dtype=float64)"),
    "arccos": ("vnp.asarray([0.0, 1.0])", "Array([1.57079633, 0.        ], dtype=float64)"),
    "arctan": ("vnp.asarray([0.0, 1.0])", "Array([0.        , 0.78539816], dtype=float64)"),
    "arctan2": (
        "vnp.asarray([1.0, -1.0]), vnp.asarray([1.0, 1.0])",
        "Array([ 0.78539816, -0.78539816], dtype=float64)",
    ),
    "sinh": ("vnp.asarray([0.0, 1.0])", "Array([0.        , 1.17520119], dtype=float64)"),
    "cosh": ("vnp.asarray([0.0, 1.0])", "Array([1.        , 1.54308063], dtype=float64)"),
    "tanh": ("vnp.asarray([0.0, 1.0])", "Array([0.        , 0.76159416], dtype=float64)"),
    "arcsinh": ("vnp.asarray([0.0, 1.0])", "Array([0.        , 0.88137359], dtype=float64)"),
    "arccosh": ("vnp.asarray([1.0, 2.0])", "Array([0.       , 1.3169579], dtype=float64)"),
    "arctanh": ("vnp.asarray([0.0, 0.5])", "Array([0.        , 0.54930614], dtype=float64)"),
    "hypot": ("vnp.asarray([3.0, 5.0]), vnp.asarray([4.0, 12.0])", "Array([ 5., 13.], dtype=float64)"),
    "degrees": ("vnp.asarray([0.0, 1.0])", "Array([ 0.        , 57.29577951], dtype=float64)"),
    "radians": ("vnp.asarray([0.0, 180.0])", "Array([0.        , 3.14159265], dtype=float64)"),
    "conjugate": ("vnp.asarray([1 + 2j, 3])", "Array([1.-2.j, 3.-0.j], dtype=complex128)"),
    "floor": ("vnp.asarray([-1.5, 1.5])", "Array([-2.,  1.], dtype=float64)"),
    "ceil": ("vnp.asarray([-1.5, 1.5])", "Array([-1.,  2.], dtype=float64)"),
    "trunc": ("vnp.asarray([-1.5, 1.5])", "Array([-1.,  1.], dtype=float64)"),
    "special.erf": ("vnp.asarray([0.0, 1.0])", "Array([0.        , 0.84270079], dtype=float64)"),
    "special.erfc": ("vnp.asarray([0.0, 1.0])", "Array([1.        , 0.15729921], dtype=float64)"),
    "special.gamma": ("vnp.asarray([5.0, 0.5])", "Array([24.        ,  1.77245385], dtype=float64)"),
    "special.gammaln": ("vnp.asarray([5.0, 0.5])", "Array([3.17805383, 0.57236494], dtype=float64)"),
    "special.i0": ("vnp.asarray([0.0, 1.0])", "Array([1.        , 1.26606588], dtype=float64)"),
    "special.i0e": ("vnp.asarray([0.0, 1.0])", "Array([1.        , 0.46575961], dtype=float64)"),
}


def write_example(name: str) -> str:
    """Return the section of a docstring that shows the example of a function."""
    arguments, result = EXAMPLES[name]
    return f"Examples\n    --------\n    >>> vnp.{name}({arguments})\n    {result}\n    "


bool_ = np.dtype(np.bool_)


class ElementwiseFunction(Protocol):
    """A function that computes element by element. It has the methods of NumPy's ufuncs.

    These take Arrays: `vnp.add.at(x, indices, values)` is `numpy.add.at`.
    """

    __name__: str
    accumulate: Callable[..., Any]
    at: Callable[..., None]
    outer: Callable[..., Any]
    reduce: Callable[..., Any]
    reduceat: Callable[..., Any]

    def __call__(
        self, *operands: Any, out: Any = None, where: Any = None, dtype: Any = None, casting: str = ...
    ) -> Array:
        """Compute; see `finish` for `out`, `where` and `casting`."""
        ...


def finish(value: Any, out: Any, where: Any = None, name: str = "out", casting: str = "same_kind") -> Array:
    """Return an expression as an array, or store it in `out`, where a mask holds.

    `casting` says, in NumPy's words, to which dtypes of `out` the values may be converted.

    Raises
    ------
    TypeError
        `out` is no Array, or its dtype does not hold the values.
    ValueError
        `out` has another shape; `where` is given without `out`, so that elements would be undefined.
    """
    if isinstance(out, tuple):
        (out,) = out
    if out is None:
        if where is not None and where is not True:
            raise ArgumentValueError("where: pass out= as well, for the elements where it is False")
        return array_of(value)
    target = require_out(out)
    check_cast(value.dtype, target.dtype, name, casting)
    value = application.cast(value, target.dtype)
    if where is not None and where is not True:
        mask = parse_operand(where, "where")
        kinds = (bool_, target.dtype, target.dtype)
        shape = application.broadcast_shapes([target.shape, value.shape, getattr(mask, "shape", ())], name)
        value = application.make_operation(WHERE, (mask, value, value_of(target)), kinds, shape, target.dtype)
    if value.shape != target.shape:
        if value.shape == application.broadcast_shapes([value.shape, target.shape], name):
            raise ArgumentValueError(f"out: expected the shape {value.shape}, got {target.shape}")
        value = application.broadcast_to(value, target.shape)
    store(target, value, name)
    return target


def _make_functions(names: str) -> Iterator[ElementwiseFunction]:
    return map(_make_function, names.split())


def _make_function(name: str) -> ElementwiseFunction:
    """Return the function of the namespace for one of NumPy's ufuncs."""
    count = getattr(np, name).nin
    compares = name in COMPARISONS

    def function(
        *operands: Any, out: Any = None, where: Any = None, dtype: Any = None, casting: str = "same_kind"
    ) -> Array:
        if out is None and where is None and dtype is None and len(operands) == count:
            known = native.operate_known(name, operands)
            if known is not None:
                return known  # type: ignore[no-any-return]
        elif len(operands) == count + 1 and out is None:
            *operands_, out = operands
            operands = tuple(operands_)
        if len(operands) != count:
            raise ArgumentTypeError(f"{name}: takes {count} arguments, got {len(operands)}")
        values = [parse_operand(each, f"{name}: x{i + 1}") for i, each in enumerate(operands)]
        if not any(type(value) is Node or type(value) is memory.View for value in values):
            values[0] = value_of(asarray(values[0]))
        elif compares and int in map(type, values):
            compared = next(each.dtype for each in values if type(each) is Node or type(each) is memory.View)
            values = [bound_integer(each, compared) if type(each) is int else each for each in values]
        kind = None if dtype is None else memory.parse_dtype(dtype)
        if name == "power" and (isinstance(where, Array) or where is False):
            # the exponents elsewhere may be negative
            values[1] = value_of(choose(asarray(where), operands[1], 1))
        node = application.apply_ufunc(name, tuple(values), kind, casting)
        return array_of(node) if out is None and where is None else finish(node, out, where, name, casting)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"Return `numpy.{name}` of arrays or numbers, element by element.\n\n"
        f"    Raises as the other element-wise functions: TypeError for dtypes that numpy.{name} does\n"
        "    not take, ValueError for shapes that do not broadcast.\n\n"
        f"    {write_example(name)}"
    )
    made: Any = function
    for method in ("accumulate", "at", "outer", "reduce", "reduceat"):
        setattr(made, method, getattr(getattr(np, name), method))
    return made  # type: ignore[no-any-return]


add, subtract, multiply, divide = _make_functions("add subtract multiply divide")
floor_divide, remainder, fmod = _make_functions("floor_divide remainder fmod")
power, float_power, gcd, lcm = _make_functions("power float_power gcd lcm")
negative, positive, absolute, fabs = _make_functions("negative positive absolute fabs")
sign, square, reciprocal, logical_not = _make_functions("sign square reciprocal logical_not")
equal, not_equal = _make_functions("equal not_equal")
less, less_equal, greater, greater_equal = _make_functions("less less_equal greater greater_equal")
logical_and, logical_or, logical_xor = _make_functions("logical_and logical_or logical_xor")
bitwise_and, bitwise_or, bitwise_xor, invert = _make_functions("bitwise_and bitwise_or bitwise_xor invert")
left_shift, right_shift, bitwise_count = _make_functions("left_shift right_shift bitwise_count")
maximum, minimum, fmax, fmin = _make_functions("maximum minimum fmax fmin")
isnan, isinf, isfinite, signbit = _make_functions("isnan isinf isfinite signbit")
copysign, nextafter, heaviside, rint = _make_functions("copysign nextafter heaviside rint")
sqrt, cbrt, exp, exp2, expm1 = _make_functions("sqrt cbrt exp exp2 expm1")
log, log2, log10, log1p, logaddexp, logaddexp2 = _make_functions("log log2 log10 log1p logaddexp logaddexp2")
sin, cos, tan, arcsin, arccos, arctan = _make_functions("sin cos tan arcsin arccos arctan")
sinh, cosh, tanh, arcsinh, arccosh, arctanh = _make_functions("sinh cosh tanh arcsinh arccosh arctanh")
arctan2, hypot, degrees, radians, conjugate = _make_functions("arctan2 hypot degrees radians conjugate")
_floor, _ceil, _trunc = _make_functions("floor ceil trunc")

# other names of the array API standard and of NumPy
abs = absolute
acos, acosh, asin, asinh, atan, atanh, atan2 = arccos, arccosh, arcsin, arcsinh, arctan, arctanh, arctan2
bitwise_invert = bitwise_not = invert
bitwise_left_shift = left_shift
bitwise_right_shift = right_shift
conj = conjugate
deg2rad, rad2deg = radians, degrees
mod = remainder
pow = power
true_divide = divide


def _copy(value: Any) -> Node:
    return application.make_operation(COPY, (value,), (value.dtype,), value.shape, value.dtype)


def _keep_integers(function: ElementwiseFunction, name: str) -> Callable[..., Any]:
    def round_to(x: Any, /, out: Any = None, *, where: Any = None, dtype: Any = None) -> Array:
        value = parse_operand(x, f"{name}: x")
        if isinstance(x, Array) and value.dtype.kind in "biu" and dtype is None:
            return finish(value, out, where, name) if out is not None else array_of(_copy(value))
        return function(x, out=out, where=where, dtype=dtype)

    round_to.__name__ = round_to.__qualname__ = name
    round_to.__doc__ = (
        f"Return `numpy.{name}` of an array, element by element. Integers stay as they are.\n\n"
        f"    {write_example(name)}"
    )
    return round_to


floor = _keep_integers(_floor, "floor")
ceil = _keep_integers(_ceil, "ceil")
trunc = _keep_integers(_trunc, "trunc")


def real(x: Any, /) -> Array:
    """Return the real parts of complex numbers: a view. Other arrays are returned. See `numpy.real`.

    Examples
    --------
    >>> vnp.real(vnp.asarray([1 + 2j, 3]))
    Array([1., 3.], dtype=float64)
    """
    value = parse_value(x, "real: x")
    if value.dtype.kind != "c":
        return x if isinstance(x, Array) else array_of(value)
    return _show_part(value, REAL)


def imag(x: Any, /) -> Array:
    """Return the imaginary parts of complex numbers: a view. Of others: zeros. See `numpy.imag`.

    Examples
    --------
    >>> vnp.imag(vnp.asarray([1 + 2j, 3]))
    Array([2., 0.], dtype=float64)
    """
    value = parse_value(x, "imag: x")
    return imag_of(array_of(value)) if value.dtype.kind != "c" else _show_part(value, IMAG)


def _show_part(value: Any, operation: Operation) -> Array:
    kind = memory.part_kind(value.dtype)
    if type(value) is memory.View and value.size:
        return array_of(memory.part_of(value, int(operation is IMAG), kind))
    return array_of(make_part(operation, value, kind))


def real_of(x: Array) -> Array:
    """Return the real parts by an element-wise operation: never a view of complex numbers."""
    value = value_of(x)
    if value.dtype.kind != "c":
        return x
    return _compute_part(value, REAL)


def imag_of(x: Array) -> Array:
    """Return the imaginary parts by an element-wise operation, zeros of other than complex numbers."""
    value = value_of(x)
    if value.dtype.kind != "c":
        zero, kinds = value.dtype.type(0), (value.dtype, value.dtype)
        made = application.make_operation(ZEROS_LIKE, (value, zero), kinds, value.shape, value.dtype)
        return array_of(made)
    return _compute_part(value, IMAG)


def _compute_part(value: Any, operation: Operation) -> Array:
    kind = memory.part_kind(value.dtype)
    return array_of(application.make_operation(operation, (value,), (value.dtype,), value.shape, kind))


def angle(z: Any, deg: bool = False) -> Array:
    """Return the angles of complex numbers in radians, or in degrees. See `numpy.angle`.

    Examples
    --------
    >>> vnp.angle(vnp.asarray([1, 1j, -1]), deg=True)
    Array([  0.,  90., 180.], dtype=float64)
    """
    z = to_array(z, "angle: z")
    if z.dtype.kind == "b":
        z = z * 1.0
    turned = arctan2(imag_of(z), real_of(z))
    return degrees(turned) if deg else turned


def choose(condition: Any, x: Any, y: Any) -> Array:
    """Return `x` where a condition holds, and `y` elsewhere."""
    known = native.operate_known("where", (condition, x, y))
    if known is not None:
        return known  # type: ignore[no-any-return]
    test = parse_operand(condition, "where: condition")
    operands = [parse_operand(each, f"where: {name}") for name, each in (("x", x), ("y", y))]
    kinds = [application.describe_operand(operand) for operand in operands]
    kind = application.promote(*kinds)
    shapes = [each.shape for each in (test, *operands) if isinstance(each, (Node, memory.View))]
    if not shapes:
        test = value_of(asarray(test))
        shapes = [test.shape]
    loop = find_loop(WHERE, (bool_, kind, kind), kind)
    # what the default dtype does not decide
    if kind not in memory.NARROWER or any(each in memory.NARROWER for each in kinds):
        application.loops["where", *map(_kind_of, (test, *operands))] = loop
    values = application.make_values((test, *operands), loop.kinds, "where")
    shape = application.broadcast_shapes(shapes, "where")
    return array_of(make_node(loop, values, shape, math.prod(shape)))


def _kind_of(value: Any) -> Any:
    """Return what stands for a value in the keys of loops."""
    return value.dtype.num if isinstance(value, (Node, memory.View)) else type(value)


def clip(
    x: Any, /, min: Any = None, max: Any = None, out: Any = None, *, a_min: Any = None, a_max: Any = None
) -> Array:
    """Return the elements limited to an interval; None: no limit. See `numpy.clip`.

    The result has the dtype of `x`, as the array API standard asks for, unless a limit is an array of a wider
    one, or a number of another kind. `a_min` and `a_max` are NumPy's other names of the limits.

    Examples
    --------
    >>> vnp.clip(vnp.arange(6), 1, 4)
    Array([1, 1, 2, 3, 4, 4], dtype=int64)
    """
    value = parse_value(x, "clip: x")
    min = a_min if min is None else min
    max = a_max if max is None else max
    result = value
    for name, limit, function in (("min", min, "maximum"), ("max", max, "minimum")):
        if limit is None:
            continue
        operand = parse_operand(limit, f"clip: {name}")
        if isinstance(operand, int) and value.dtype.kind in "iu":
            info = np.iinfo(value.dtype)
            if operand < info.min if name == "min" else operand > info.max:
                continue
        result = application.apply_ufunc(function, (result, operand))
    if result is value:
        result = application.apply_ufunc("positive", (value,)) if value.dtype.kind != "b" else value
    return finish(result, out, None, "clip")


def round(x: Any, /, decimals: int = 0, out: Any = None) -> Array:
    """Return the elements rounded to a number of decimals, halves to even. See `numpy.round`.

    Raises TypeError for decimals of booleans.

    Examples
    --------
    >>> vnp.round(vnp.asarray([1.234, 5.678]), 1)
    Array([1.2, 5.7], dtype=float64)
    """
    value, places = parse_value(x, "round: x"), parse_index(decimals, "decimals")
    if places and out is None and value.dtype.kind == "b":
        raise ArgumentTypeError(f"decimals: expected 0 for booleans, got {places}; use astype")
    if isinstance(out, Array) and out.size != value.size:
        raise ArgumentValueError(f"out: expected the shape {value.shape}, got {out.shape}")
    rounded = _round(value, places)
    return array_of(rounded) if out is None else finish(rounded, out, None, "round")


def _round(value: Any, places: int) -> Any:
    kind = value.dtype
    if kind.kind == "c" and places:
        return _join(*(_round(value_of(part(array_of(value))), places) for part in (real_of, imag_of)))
    if kind.kind in "iu":
        return _copy(value) if places >= 0 else _round_integers(value, 10**-places)
    if places == 0 or kind.kind == "b":
        return application.apply_ufunc("rint", (value,))
    # as NumPy, which gives NaN beyond the range of float64
    scale = 10.0 ** builtins.abs(places) if builtins.abs(places) < 309 else math.inf
    there, back = ("multiply", "divide") if places > 0 else ("divide", "multiply")
    whole = application.apply_ufunc("rint", (application.apply_ufunc(there, (value, scale)),))
    return application.apply_ufunc(back, (whole, scale))


def _round_integers(value: Any, scale: int) -> Any:
    x = array_of(value)
    if scale > np.iinfo(value.dtype).max:
        return value_of(x * 0)
    whole = x // scale
    rest = x - whole * scale
    up = logical_or(logical_and(rest == scale // 2, whole & 1), rest > scale // 2)
    return value_of((whole + up) * scale)


def _join(x: Any, y: Any) -> Node:
    kind = np.dtype(f"c{x.dtype.itemsize * 2}")
    return application.make_operation(JOIN, (x, y), (x.dtype, y.dtype), x.shape, kind)


around = round


def isclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> Array:
    """Return where two arrays are equal within tolerances. See `numpy.isclose`.

    Examples
    --------
    >>> vnp.isclose(vnp.asarray([1.0, 2.0]), vnp.asarray([1.0 + 1e-9, 2.1]))
    Array([ True, False], dtype=bool)
    """
    x = to_array(a, "isclose: a")
    y = to_array(b, "isclose: b")
    if y.dtype.kind in "biu":
        y = y * 1.0  # as NumPy: differences and magnitudes of integers may overflow
    near: Array = absolute(x - y) <= atol + rtol * absolute(y)
    near = logical_or(logical_and(near, isfinite(y)), x == y)
    if equal_nan and x.dtype.kind in "fc" and y.dtype.kind in "fc":
        near = near | (isnan(x) & isnan(y))
    return near


def iscomplexobj(x: Any) -> bool:
    """Whether an array or number has a complex dtype.

    Examples
    --------
    >>> vnp.iscomplexobj(vnp.asarray([1, 2j]))
    True
    """
    return x.dtype.kind == "c" if isinstance(x, Array) else bool(np.iscomplexobj(x))


def isrealobj(x: Any) -> bool:
    """Whether an array or number has no complex dtype.

    Examples
    --------
    >>> vnp.isrealobj(vnp.arange(3))
    True
    """
    return not iscomplexobj(x)


def nan_to_num(x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Array:
    """Return the array with numbers in place of NaN and infinities. See `numpy.nan_to_num`.

    Examples
    --------
    >>> vnp.nan_to_num(vnp.asarray([1.0, vnp.nan]))
    Array([1., 0.], dtype=float64)
    """
    array = to_array(x, "nan_to_num: x")
    kind = array.dtype
    if kind.kind not in "fc":
        return array.copy() if copy else array
    if kind.kind == "c":
        parts = (nan_to_num(part, True, nan, posinf, neginf) for part in (real_of(array), imag_of(array)))
        result = array_of(_join(*(value_of(part) for part in parts)))
    else:
        info = np.finfo(kind)
        for number in (nan, posinf, neginf):
            if isinstance(number, (complex, np.complexfloating)):
                raise ArgumentTypeError(
                    f"nan, posinf, neginf: expected real numbers for {kind}, got {number!r}"
                )
        above = float(info.max) if posinf is None else posinf
        below = float(info.min) if neginf is None else neginf
        result = choose(array == math.inf, above, choose(array == -math.inf, below, array))
        result = choose(isnan(array), nan, result)
    if not copy:
        array[...] = result
        return array
    return result


def isposinf(x: Any, /, out: Any = None) -> Array:
    """Return where elements are positive infinity. See `numpy.isposinf`; TypeError for complex numbers.

    Examples
    --------
    >>> vnp.isposinf(vnp.asarray([-vnp.inf, 0, vnp.inf]))
    Array([False, False,  True], dtype=bool)
    """
    return _is_infinite(x, out, "isposinf", math.inf)


def isneginf(x: Any, /, out: Any = None) -> Array:
    """Return where elements are negative infinity. See `numpy.isneginf`; TypeError for complex numbers.

    Examples
    --------
    >>> vnp.isneginf(vnp.asarray([-vnp.inf, 0, vnp.inf]))
    Array([ True, False, False], dtype=bool)
    """
    return _is_infinite(x, out, "isneginf", -math.inf)


def _is_infinite(x: Any, out: Any, name: str, limit: float) -> Array:
    value = parse_value(x, f"{name}: x")
    if value.dtype.kind == "c":
        raise ArgumentTypeError(f"{name}: expected real numbers, got {value.dtype}")
    return finish(application.apply_ufunc("equal", (value, limit)), out, None, name)


def fix(x: Any, /, out: Any = None) -> Array:
    """Return the elements rounded towards zero. See `numpy.fix`.

    Examples
    --------
    >>> vnp.fix(vnp.asarray([-1.7, 1.7]))
    Array([-1.,  1.], dtype=float64)
    """
    return trunc(x, out=out)  # type: ignore[no-any-return]


def sinc(x: Any) -> Array:
    """Return sin(pi x) / (pi x), 1 at 0. See `numpy.sinc`.

    Examples
    --------
    >>> vnp.sinc(vnp.asarray([0.0, 0.5]))
    Array([1.        , 0.63661977], dtype=float64)
    """
    y = x * math.pi
    safe = choose(y == 0, 1.0, y)
    return choose(y == 0, 1.0, sin(safe) / safe)


UFUNCS: dict[str, ElementwiseFunction] = {
    name: function for name in OPERATIONS if (function := globals().get(name)) is not None
}
