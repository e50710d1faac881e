"""What GLSL operators and functions compute, on NumPy rows."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from vkdispatch.base.dtype import DType, is_matrix, is_vector
from vkdispatch.base.errors import UnsupportedError
from vkdispatch.compiler.interpreter.memory import Array, align, as_unsigned, convert, host_dtype, reinterpret
from vkdispatch.compiler.ir import literals as host
from vkdispatch.compiler.ir.location import Loc, located
from vkdispatch.compiler.ir.program import DOUBLE, SINGLE

# ---- Operators of GLSL on NumPy rows, in the precision of their operands ---------------------------------


def divide_truncated(a: Array, b: Array) -> Array:
    """Return the quotient of integers, rounded towards zero. A division by zero gives an arbitrary number."""
    # the remainder has the sign of `a`, so this division is exact
    result: Array = np.floor_divide(a - np.fmod(a, b), b)
    return result


def _divide(a: Array, b: Array) -> Array:
    return np.divide(a, b) if a.dtype.kind == "f" else divide_truncated(a, b)


_ARITHMETIC: dict[str, Callable[[Array, Array], Array]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": _divide,
    # SPIR-V's OpSMod, which GLSL's % becomes: the sign of the divisor
    "%": np.mod,
    "&": np.bitwise_and,
    "|": np.bitwise_or,
    "^": np.bitwise_xor,
    "<<": np.left_shift,
    ">>": np.right_shift,
}
_COMPARISONS: dict[str, Callable[[Array, Array], Array]] = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "==": np.equal,
    "!=": np.not_equal,
}


def apply_binary(symbol: str, kinds: tuple[DType, DType], a: Array, b: Array) -> Array:
    """Compute `a symbol b`."""
    if symbol == "*" and any(is_matrix(kind) for kind in kinds):
        product = _multiply_matrices(kinds, a, b)
        if product is not None:
            return product
    if symbol in ("<<", ">>"):
        b = b.astype(a.dtype)
    a, b = align(a, b)
    return _ARITHMETIC[symbol](a, b)


def _multiply_matrices(kinds: tuple[DType, DType], a: Array, b: Array) -> Array | None:
    # a row holds columns, so what NumPy sees is the transposed matrix
    left, right = kinds
    product: Array | None = None
    if is_matrix(left) and is_matrix(right):
        product = np.matmul(b, a)
    elif is_matrix(left) and is_vector(right):
        product = np.matmul(b[:, None, :], a)[:, 0, :]
    elif is_vector(left) and is_matrix(right):
        product = np.matmul(b, a[:, :, None])[:, :, 0]
    return product


def apply_unary(symbol: str, a: Array) -> Array:
    """Compute `symbol a`."""
    if symbol == "-":
        return np.negative(a)
    return np.logical_not(a) if a.dtype.kind == "b" else np.invert(a)


def apply_comparison(symbol: str, a: Array, b: Array) -> Array:
    """Compare scalars. Vectors and matrices are equal if all components are."""
    result = _COMPARISONS[symbol](a, b)
    if result.ndim == 1:
        return result
    axes = tuple(range(1, result.ndim))
    whole: Array = np.any(result, axis=axes) if symbol == "!=" else np.all(result, axis=axes)
    return whole


# ---- GLSL's functions of bits: counting, fields, reinterpreting and packing ------------------------------


Rule = Callable[..., Array]

_LITTLE = "<"
# The number of ones in each byte. `np.bitwise_count` needs NumPy 2.0.
_ONES = np.array([n.bit_count() for n in range(256)], np.uint8)


def _width(value: Array) -> int:
    return 8 * int(value.dtype.itemsize)


def bit_count(value: Array) -> Array:
    """Return the number of one bits."""
    octets = np.ascontiguousarray(value).view(np.uint8).reshape(*value.shape, value.dtype.itemsize)
    ones: Array = _ONES[octets].sum(axis=-1, dtype=np.int32)
    return ones


def find_msb(value: Array) -> Array:
    """Return the position of the highest one bit, or for negative numbers zero bit; -1 if there is none."""
    bits = as_unsigned(np.where(value < 0, ~value, value))
    # set all bits below the highest one, then count
    shift = 1
    while shift < _width(value):
        bits = bits | (bits >> bits.dtype.type(shift))
        shift *= 2
    return bit_count(bits) - np.int32(1)


def find_lsb(value: Array) -> Array:
    """Return the position of the lowest one bit; -1 if there is none."""
    bits = as_unsigned(value)
    lowest = bits & (~bits + bits.dtype.type(1))
    return np.where(bits == 0, -1, bit_count(lowest - bits.dtype.type(1))).astype(np.int32)


def bitfield_reverse(value: Array) -> Array:
    """Return the bits in reverse order."""
    bits = as_unsigned(value)
    result = np.zeros_like(bits)
    one = bits.dtype.type(1)
    for _ in range(_width(value)):
        result = (result << one) | (bits & one)
        bits = bits >> one
    return result.view(value.dtype)


def _field_mask(count: Array) -> Array:
    wide = count.astype(np.uint64)
    # a shift by 64 gives 0 in NumPy, so that 64 bits work too
    return np.left_shift(np.uint64(1), wide) - np.uint64(1)


def bitfield_extract(value: Array, offset: Array, count: Array) -> Array:
    """Return `count` bits from bit `offset` on; signed numbers are sign-extended."""
    value, offset, count = align(value, offset, count)
    mask = _field_mask(count)
    field = np.right_shift(as_unsigned(value).astype(np.uint64), offset.astype(np.uint64)) & mask
    if value.dtype.kind == "i":
        top = (mask >> np.uint64(1)) + np.uint64(1)
        negative = (field & top != 0) & (count > 0)
        field = np.where(negative, field | ~mask, field)
    return field.astype(value.dtype)


def bitfield_insert(base: Array, insert: Array, offset: Array, count: Array) -> Array:
    """Return `base` with the lowest `count` bits of `insert` at bit `offset`."""
    base, insert, offset, count = align(base, insert, offset, count)
    mask = np.left_shift(_field_mask(count), offset.astype(np.uint64))
    moved = np.left_shift(as_unsigned(insert).astype(np.uint64), offset.astype(np.uint64))
    result = (as_unsigned(base).astype(np.uint64) & ~mask) | (moved & mask)
    return result.astype(base.dtype)


def _make_cast(name: str) -> Rule:
    target = np.dtype(name)
    return lambda value: reinterpret(value, target)


def _make_joiner(target: str) -> Rule:
    """Make the rule that joins the components of a vector to one number, the first lowest."""
    kind = np.dtype(_LITTLE + target)
    return lambda value: np.ascontiguousarray(value).view(kind)[:, 0]


def _make_splitter(target: str, count: int) -> Rule:
    """Make the rule that splits a number into the components of a vector, the lowest first."""
    kind = np.dtype(_LITTLE + target)
    return lambda value: np.ascontiguousarray(value).view(kind).reshape(-1, count)


def _make_norm_packer(target: str, low: float, scale: float) -> Rule:
    def pack(value: Array) -> Array:
        limited = np.where(value > low, value, np.float32(low))
        limited = np.where(limited < 1, limited, np.float32(1))
        whole = np.rint(limited * np.float32(scale)).astype(np.dtype(target))
        return np.ascontiguousarray(whole).view(np.uint32)[:, 0]

    return pack


def _make_norm_unpacker(target: str, count: int, scale: float) -> Rule:
    def unpack(value: Array) -> Array:
        whole = np.ascontiguousarray(value).view(np.dtype(target)).reshape(-1, count)
        result: Array = np.maximum(whole.astype(np.float32) / np.float32(scale), np.float32(-1))
        return result

    return unpack


BIT_RULES: dict[str, Rule] = {
    "bitCount": bit_count,
    "findLSB": find_lsb,
    "findMSB": find_msb,
    "bitfieldReverse": bitfield_reverse,
    "bitfieldExtract": bitfield_extract,
    "bitfieldInsert": bitfield_insert,
    "floatBitsToInt": _make_cast("i4"),
    "floatBitsToUint": _make_cast("u4"),
    **dict.fromkeys(("intBitsToFloat", "uintBitsToFloat"), _make_cast("f4")),
    "doubleBitsToInt64": _make_cast("i8"),
    "doubleBitsToUint64": _make_cast("u8"),
    **dict.fromkeys(("int64BitsToDouble", "uint64BitsToDouble"), _make_cast("f8")),
    **dict.fromkeys(("float16BitsToInt16", "halfBitsToInt16"), _make_cast("i2")),
    **dict.fromkeys(("float16BitsToUint16", "halfBitsToUint16"), _make_cast("u2")),
    **dict.fromkeys(("int16BitsToFloat16", "uint16BitsToFloat16"), _make_cast("f2")),
    **dict.fromkeys(("int16BitsToHalf", "uint16BitsToHalf"), _make_cast("f2")),
    "packHalf2x16": lambda value: _make_joiner("u4")(value.astype(np.float16)),
    "unpackHalf2x16": lambda value: _make_splitter("f2", 2)(value).astype(np.float32),
    "packUnorm2x16": _make_norm_packer("u2", 0, 65535),
    "packSnorm2x16": _make_norm_packer("i2", -1, 32767),
    "packUnorm4x8": _make_norm_packer("u1", 0, 255),
    "packSnorm4x8": _make_norm_packer("i1", -1, 127),
    "unpackUnorm2x16": _make_norm_unpacker("u2", 2, 65535),
    "unpackSnorm2x16": _make_norm_unpacker("i2", 2, 32767),
    "unpackUnorm4x8": _make_norm_unpacker("u1", 4, 255),
    "unpackSnorm4x8": _make_norm_unpacker("i1", 4, 127),
    "packDouble2x32": _make_joiner("f8"),
    "unpackDouble2x32": _make_splitter("u4", 2),
    "packUint2x32": _make_joiner("u8"),
    "unpackUint2x32": _make_splitter("u4", 2),
    "packInt2x32": _make_joiner("i8"),
    "unpackInt2x32": _make_splitter("i4", 2),
    "packFloat2x16": _make_joiner("u4"),
    "unpackFloat2x16": _make_splitter("f2", 2),
    "packUint2x16": _make_joiner("u4"),
    "unpackUint2x16": _make_splitter("u2", 2),
    "packInt2x16": _make_joiner("i4"),
    "unpackInt2x16": _make_splitter("i2", 2),
    "packUint4x16": _make_joiner("u8"),
    "unpackUint4x16": _make_splitter("u2", 4),
    "packInt4x16": _make_joiner("i8"),
    "unpackInt4x16": _make_splitter("i2", 4),
}


# ---- Mathematical functions that GLSL lacks, computed in float64 with NumPy and the host functions -------


def _apply_each(rule: Callable[[float], float]) -> Rule:
    return lambda x: np.array([rule(value) for value in x.ravel().tolist()]).reshape(x.shape)


def _convert_to_double(rule: Rule) -> Rule:
    return lambda *args: rule(*(arg.astype(np.float64) for arg in align(*args)))


def _take_from_numpy(*names: str) -> dict[str, Rule]:
    """Return functions that NumPy has by the same name, or for inverses by one with "arc"."""
    return {name: getattr(np, name, None) or getattr(np, f"arc{name[1:]}") for name in names}


_ELEMENTARY = _take_from_numpy(
    *("sin", "cos", "tan", "sinh", "cosh", "tanh", "asin", "acos", "asinh", "acosh", "atanh"),
    *("exp", "exp2", "log", "log2", "trunc"),
)
_NAMED: dict[str, Rule] = {
    **_ELEMENTARY,
    **_take_from_numpy("atan", "atan2", "expm1", "log10", "log1p", "cbrt", "hypot"),
    "pow": np.power,
    "round": np.rint,
    "round_even": np.rint,
}
# NumPy lacks the others
_HOST_RULES = {name: _apply_each(rule) for name, rule in vars(host).items() if inspect.isroutine(rule)}
MATHEMATICAL_RULES: dict[str, Rule] = {
    prefix + name: _convert_to_double(rule)
    for name, rule in (_HOST_RULES | _NAMED).items()
    for prefix in (SINGLE, DOUBLE)
}


# ---- GLSL functions without side effects on NumPy rows, in the precision of their operands ---------------


def call_function(name: str, kind: DType, args: Sequence[Array], loc: Loc | None) -> Array:
    """Call a GLSL function whose result has type `kind`. Raises UnsupportedError for unknown functions."""
    rule = _RULES.get(name)
    if rule is None:
        raise located(UnsupportedError, f"interpret: the GLSL function {name} is not known here", loc)
    return convert(rule(*args), host_dtype(kind))


# ---- component by component ----------------------------------------------------------------------


def _align_operands(rule: Rule) -> Rule:
    return lambda *args: rule(*align(*args))


def _keep_first_type(rule: Rule) -> Rule:
    """Convert the result to the type of the first operand, which constants may widen."""

    def apply(*args: Array) -> Array:
        args = align(*args)
        return rule(*args).astype(args[0].dtype, copy=False)

    return apply


def _min(a: Array, b: Array) -> Array:
    return np.where(b < a, b, a)


def _max(a: Array, b: Array) -> Array:
    return np.where(a < b, b, a)


def _clamp(value: Array, low: Array, high: Array) -> Array:
    return _min(_max(value, low), high)


def _mix(a: Array, b: Array, at: Array) -> Array:
    if at.dtype.kind == "b":
        return np.where(at, b, a)
    result: Array = a * (1 - at) + b * at
    return result


def _smoothstep(low: Array, high: Array, value: Array) -> Array:
    t = np.clip((value - low) / (high - low), 0, 1)
    result: Array = t * t * (3 - 2 * t)
    return result


def _fma(a: Array, b: Array, c: Array) -> Array:
    wide = np.float32 if a.dtype == np.float16 else np.float64
    return (a.astype(wide) * b + c).astype(a.dtype)


def _umul_high(a: Array, b: Array) -> Array:
    a, b = align(a, b)
    return (a.astype(np.uint64) * b >> np.uint64(32)).astype(np.uint32)


def _integer_power(base: Array, exponent: Array) -> Array:
    square, left = align(base, exponent)
    unit = np.where(square == 1, 1, np.where((square + 1 == 0) & (square < 1), 1 - 2 * (left & 1), 0))
    negative, power = left < 0, np.ones_like(square)
    while np.any(left > 0):
        power = np.where(left & 1, power * square, power)
        square, left = square * square, left >> 1
    return np.where(negative, unit.astype(power.dtype), power)


def _remainder_of_bits(kind: np.dtype[Any]) -> Rule:
    return lambda a, b: np.fmod(*(x.view(kind) for x in align(a, b))).view(a.dtype)


def _atan(y: Array, x: Array | None = None) -> Array:
    return np.arctan(y) if x is None else np.arctan2(*align(y, x))


# ---- geometry ------------------------------------------------------------------------------------


def _dot(a: Array, b: Array) -> Array:
    product = a * b
    return product if product.ndim == 1 else product.sum(axis=1, dtype=product.dtype)


def _length(value: Array) -> Array:
    return np.abs(value) if value.ndim == 1 else np.sqrt(_dot(value, value))


def _cross(a: Array, b: Array) -> Array:
    result: Array = np.roll(a, -1, 1) * np.roll(b, 1, 1) - np.roll(a, 1, 1) * np.roll(b, -1, 1)
    return result


def _add_axes(value: Array, beside: Array) -> Array:
    return value.reshape(value.shape + (1,) * (beside.ndim - value.ndim))


def _refract(incident: Array, normal: Array, ratio: Array) -> Array:
    along = _dot(normal, incident)
    under = 1 - ratio * ratio * (1 - along * along)
    bent = _add_axes(ratio, incident) * incident - _add_axes(ratio * along + np.sqrt(under), normal) * normal
    return np.where(_add_axes(under, incident) < 0, 0, bent)


def _inverse(matrix: Array) -> Array:
    # the inverse of the transpose is the transposed inverse, so columns stay columns
    with np.errstate(all="ignore"):
        singular = np.linalg.det(matrix.astype(np.float64)) == 0
        safe = np.where(singular[:, None, None], np.eye(matrix.shape[1]), matrix)
        inverse = np.linalg.inv(safe.astype(np.float64))
        return np.where(singular[:, None, None], np.nan, inverse).astype(matrix.dtype)


def _ldexp(value: Array, exponent: Array) -> Array:
    value, exponent = align(value, exponent)
    return np.ldexp(value, exponent.astype(np.int32))


_ROUNDED: dict[str, Rule] = {
    "radians": lambda x: x * (np.pi / 180),
    "degrees": lambda x: x * (180 / np.pi),
    "inversesqrt": lambda x: 1 / np.sqrt(x),
    "fract": lambda x: x - np.floor(x),
    "mod": lambda x, y: x - y * np.floor(x / y),
    "mix": _mix,
    "smoothstep": _smoothstep,
    "step": lambda edge, x: np.where(x < edge, 0, 1),
    "sign": lambda x: np.sign(x),
    "pow": np.power,
}
_PLAIN: dict[str, Rule] = {
    **_ELEMENTARY,
    **_take_from_numpy("abs", "floor", "ceil", "isnan", "isinf", "sqrt"),
    "round": np.rint,
    "roundEven": np.rint,
    "min": _min,
    "max": _max,
    "clamp": _clamp,
    "fma": _fma,
    "not": np.logical_not,
}
_RULES: dict[str, Rule] = {
    **BIT_RULES,
    **MATHEMATICAL_RULES,
    "umul_high": _umul_high,
    "wrapped": lambda value: value,
    "integer_power": _integer_power,
    "float_remainder": _remainder_of_bits(np.dtype(np.float32)),
    "double_remainder": _remainder_of_bits(np.dtype(np.float64)),
    **{name: _keep_first_type(rule) for name, rule in _ROUNDED.items()},
    **{name: _align_operands(rule) for name, rule in _PLAIN.items()},
    "atan": _atan,
    "ldexp": _ldexp,
    "length": _length,
    "distance": lambda a, b: _length(a - b),
    "dot": _dot,
    "cross": _cross,
    "normalize": lambda value: value / _add_axes(_length(value), value),
    "faceforward": lambda value, incident, reference: np.where(
        _add_axes(_dot(reference, incident), value) < 0, value, -value
    ),
    "reflect": lambda value, normal: value - 2 * _add_axes(_dot(normal, value), normal) * normal,
    "refract": _refract,
    "matrixCompMult": np.multiply,
    "outerProduct": lambda column, row: row[:, :, None] * column[:, None, :],
    "transpose": lambda matrix: matrix.swapaxes(1, 2),
    "determinant": lambda matrix: np.linalg.det(matrix.astype(np.float64)).astype(matrix.dtype),
    "inverse": _inverse,
}
