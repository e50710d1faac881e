"""Bits of integers, values seen as another type of the same size, several small values in one word."""

import struct

from vkdispatch.base import dtype as dt
from vkdispatch.base.derived_dtypes import vector_like
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.codegen.functions.trigonometry import Operand, as_value, describe
from vkdispatch.codegen.trace.operands import check_dtype, mismatch
from vkdispatch.codegen.trace.operators import split_components
from vkdispatch.codegen.variables import ShaderVariable
from vkdispatch.compiler.ir import Expr
from vkdispatch.compiler.ir import expressions as ex
from vkdispatch.compiler.ir.location import located

__all__ = [
    "bit_count",
    "bitfield_extract",
    "bitfield_insert",
    "bitfield_reverse",
    "find_lsb",
    "find_msb",
    "pack_int4x8",
    "pack_uint2x32",
    "pack_uint4x8",
    "pack_uint8x8",
    "reinterpret",
    "unpack_int4x8",
    "unpack_uint2x32",
    "unpack_uint4x8",
    "unpack_uint8x8",
]


# ---- Bits of integers, and values seen as another type of the same size ----------------------------------


_UNSIGNED: dict[int, dt.DType] = {2: dt.uint16, 4: dt.uint32, 8: dt.uint64}
# Letters of `struct`, by bytes: unsigned, signed and floating.
_LETTERS = {2: "Hhe", 4: "Iif", 8: "Qqd"}
_BITS_OF: dict[dt.DType, tuple[str, str, dt.DType]] = {
    **ex.BITS_OF,
    dt.float16: ("float16BitsToUint16", "uint16BitsToFloat16", dt.uint16),
}


def _integer(name: str, x: Operand) -> Expr | int:
    if isinstance(x, ShaderVariable):
        value = x._value()
        if dt.is_integer_dtype(value.dtype):
            return value
    elif ex.is_integer_number(x):
        return int(x)
    raise mismatch(f"{name}: expected integers", x)


def _width(value: int) -> int:
    """Bits of the type that a Python int has by itself: 32 or 64."""
    return 8 * ex.literal_dtype(value).item_size


def _as_unsigned(value: Expr) -> Expr:
    return ex.cast(value, vector_like(_UNSIGNED[dt.component_type(value.dtype).item_size], value.dtype))


def _as_uint(value: Expr) -> Expr:
    """Widen the bits of a 16- or 32-bit integer, without its sign, to uint32."""
    return ex.cast(_as_unsigned(value), vector_like(dt.uint32, value.dtype))


def split_halves(value: Expr) -> tuple[Expr, Expr]:
    """Lower and upper 32 bits of a 64-bit integer."""
    return _split_word(_as_unsigned(value))


def bit_count(x: Operand) -> ShaderVariable:
    """Count of bits that are set: int32 or ivecN.

    A Python int gives an int; a negative one has 32 bits, or 64 if it needs them.
    """
    value = _integer("bit_count", x)
    if isinstance(value, int):
        return as_value((value % (1 << _width(value))).bit_count())
    kind = vector_like(dt.int32, value.dtype)
    if dt.component_type(value.dtype).item_size == 8:
        low, high = split_halves(value)
        total = ex.add("+", ex.call("bitCount", dt.int32, low), ex.call("bitCount", dt.int32, high))
        return ShaderVariable(total)
    return ShaderVariable(ex.call("bitCount", kind, _as_uint(value)))


def bitfield_reverse(x: Operand) -> ShaderVariable:
    """Bits in reverse order, in the type of x. A Python int has 32 bits, or 64 if it needs them."""
    value = _integer("bitfield_reverse", x)
    if isinstance(value, int):
        width = _width(value)
        return as_value(int(f"{value % (1 << width):0{width}b}"[::-1], 2))
    kind = value.dtype
    size = dt.component_type(kind).item_size
    if size == 8:
        low, high = (ex.call("bitfieldReverse", dt.uint32, half) for half in split_halves(value))
        return ShaderVariable(ex.cast(join_words(high, low), kind))
    turned = ex.call("bitfieldReverse", vector_like(dt.uint32, kind), _as_uint(value))
    return ShaderVariable(ex.cast(turned if size == 4 else ex.bitwise(">>", turned, 16), kind))


def find_lsb(x: Operand) -> ShaderVariable:
    """Position of the lowest bit that is set, -1 for zero: int32 or ivecN. A Python int gives an int."""
    value = _integer("find_lsb", x)
    if isinstance(value, int):
        return as_value((value & -value).bit_length() - 1)
    if dt.component_type(value.dtype).item_size < 8:
        return ShaderVariable(ex.call("findLSB", vector_like(dt.int32, value.dtype), _as_uint(value)))
    low, high = split_halves(value)
    upper = ex.add("+", ex.call("findLSB", dt.int32, high), 32)
    upper = ex.select(ex.compare("==", high, 0), ex.literal(-1, dt.int32), upper)
    return ShaderVariable(ex.select(ex.compare("!=", low, 0), ex.call("findLSB", dt.int32, low), upper))


def find_msb(x: Operand) -> ShaderVariable:
    """Position of the highest bit that is set, or of a negative value the highest that is not; -1 for none.

    int32 or ivecN; a Python int gives an int.
    """
    value = _integer("find_msb", x)
    if isinstance(value, int):
        return as_value((~value if value < 0 else value).bit_length() - 1)
    kind = value.dtype
    scalar = dt.component_type(kind)
    if scalar.item_size < 8:
        wide = ex.cast(value, vector_like(dt.int32 if dt.is_signed_dtype(scalar) else dt.uint32, kind))
        return ShaderVariable(ex.call("findMSB", vector_like(dt.int32, kind), wide))
    if dt.is_signed_dtype(scalar):
        value = ex.bitwise("^", value, ex.bitwise(">>", value, 63))
    low, high = split_halves(value)
    upper = ex.add("+", ex.call("findMSB", dt.int32, high), 32)
    return ShaderVariable(ex.select(ex.compare("!=", high, 0), upper, ex.call("findMSB", dt.int32, low)))


def _field(name: str, offset: Operand, bits: Operand, width: int) -> tuple[Expr, Expr]:
    """Check offset and length of a bit field; both as int32."""
    limits: list[Expr] = []
    for label, value in (("offset", offset), ("bits", bits)):
        number = _integer(name, value)
        if isinstance(number, Expr):
            if not dt.is_scalar(number.dtype):
                raise located(ArgumentTypeError, f"{name}: {label} must be a scalar, got {number.dtype.name}")
            limits.append(ex.cast(number, dt.int32))
        elif not 0 <= number <= width:
            raise located(ArgumentValueError, f"{name}: {label} must be of 0 to {width}, got {number}")
        else:
            limits.append(ex.literal(number, dt.int32))
    if ex.is_integer_number(offset) and ex.is_integer_number(bits) and offset + bits > width:
        raise located(
            ArgumentValueError, f"{name}: offset {offset} and {bits} bits are more than the {width} there are"
        )
    return limits[0], limits[1]


def bitfield_extract(x: Operand, offset: Operand, bits: Operand) -> ShaderVariable:
    """Take `bits` bits from position `offset` on, in the type of x; of signed types with the field's sign.

    Python ints give an int: without sign, unless x is negative. Raises ValueError for a field that x does
    not have; for GPU values that is undefined.
    """
    name = "bitfield_extract"
    value = _integer(name, x)
    if isinstance(value, int):
        if ex.is_integer_number(offset) and ex.is_integer_number(bits):
            _field(name, offset, bits, _width(value))
            field = value >> offset & (1 << bits) - 1
            is_negative = value < 0 and bits and field >> (bits - 1)
            return as_value(field - (1 << bits) if is_negative else field)
        value = ex.literal(value, ex.literal_dtype(value))
    kind = value.dtype
    scalar = dt.component_type(kind)
    start, length = _field(name, offset, bits, 8 * scalar.item_size)
    if scalar.item_size < 8:
        wide = ex.cast(value, vector_like(dt.int32 if dt.is_signed_dtype(scalar) else dt.uint32, kind))
        return ShaderVariable(ex.cast(ex.call("bitfieldExtract", wide.dtype, wide, start, length), kind))
    # to the top and back; a shift by 64 is undefined, so the empty field stands apart
    up = ex.bitwise("&", ex.add("-", ex.add("-", 64, start), length), 63)
    down = ex.bitwise("&", ex.add("-", 64, length), 63)
    field_ = ex.bitwise(">>", ex.bitwise("<<", value, ex.cast(up, kind)), ex.cast(down, kind))
    return ShaderVariable(ex.select(ex.compare("==", length, 0), ex.literal(0, kind), field_))


def bitfield_insert(base: Operand, insert: Operand, offset: Operand, bits: Operand) -> ShaderVariable:
    """Replace `bits` bits of base from position `offset` on by the lowest bits of insert, in base's type.

    `insert` is a Python int or a GPU value of base's type. Python ints give an int. Raises ValueError for a
    field that base does not have; for GPU values that is undefined.
    """
    name = "bitfield_insert"
    value, field = _integer(name, base), _integer(name, insert)
    if isinstance(value, int):
        if isinstance(field, int) and ex.is_integer_number(offset) and ex.is_integer_number(bits):
            _field(name, offset, bits, _width(value))
            mask = ((1 << bits) - 1) << offset
            return as_value(value & ~mask | field << offset & mask)
        kind = dt.component_type(field.dtype) if isinstance(field, Expr) else ex.literal_dtype(value)
        value = ex.converted_literal(value, kind)
        if isinstance(field, Expr):
            value = ex.cast(value, field.dtype)
    kind = value.dtype
    scalar = dt.component_type(kind)
    if isinstance(field, int):
        field = ex.cast(ex.converted_literal(field, scalar), kind)
    if field.dtype is not kind:
        raise located(ArgumentTypeError, f"{name}: base is {kind.name}, insert is {field.dtype.name}")
    start, length = _field(name, offset, bits, 8 * scalar.item_size)
    if scalar.item_size < 8:
        wide = vector_like(dt.uint32, kind)
        return ShaderVariable(
            ex.cast(ex.call("bitfieldInsert", wide, _as_uint(value), _as_uint(field), start, length), kind)
        )
    low = ex.add("-", ex.bitwise("<<", 1, ex.cast(ex.bitwise("&", length, 63), kind)), 1)
    ones = ex.select(ex.compare("==", length, 64), ex.converted_literal(-1, kind), low)
    shift = ex.cast(ex.bitwise("&", start, 63), kind)
    kept = ex.bitwise("&", value, ex.invert(ex.bitwise("<<", ones, shift)))
    return ShaderVariable(ex.bitwise("|", kept, ex.bitwise("<<", ex.bitwise("&", field, ones), shift)))


# ---- the same bits as another type ---------------------------------------------------------------


def reinterpret(var_type: dt.DType, x: Operand) -> ShaderVariable:
    """See the bits of a value as another type of the same size: `vc.reinterpret(vd.uint32, a_float)`.

    Any scalar, complex, vector or matrix type will do; the lowest bits are the first component. A Python
    number, whose type is the integer or float of that size, gives a number.

    Raises
    ------
    TypeError
        `var_type` is no dtype, or x is neither a GPU value nor a number.
    ValueError
        The sizes differ.
    """
    check_dtype(var_type, "reinterpret")
    if var_type is dt.bool_:
        raise located(ArgumentValueError, "reinterpret: booleans have no bits; use .to_dtype(vd.int32)")
    if not isinstance(x, ShaderVariable):
        return as_value(_parse_number(var_type, x))
    value = x._value()
    kind = value.dtype
    if kind is dt.bool_ or kind.item_size != var_type.item_size:
        size = "no size" if kind is dt.bool_ else f"{kind.item_size} bytes"
        raise located(
            ArgumentValueError,
            f"reinterpret: {kind.name} has {size}, {var_type.name} has {var_type.item_size}",
        )
    if kind is var_type:
        return x
    source, target = dt.component_type(kind), dt.component_type(var_type)
    plain = (dt.is_scalar(kind) and dt.is_scalar(var_type)) or (dt.is_vector(kind) and dt.is_vector(var_type))
    if plain and source.item_size == target.item_size and (dt.is_scalar(kind) or source.item_size < 8):
        return ShaderVariable(_from_word(_word(value), var_type))
    words = [_word(part) for part in split_components(value)]
    parts = [_from_word(word, target) for word in _regroup(words, target.item_size)]
    return ShaderVariable(ex.construct(var_type, parts))


def _parse_number(kind: dt.DType, x: Operand) -> int | float:
    if not ex.is_number(x):
        raise mismatch("reinterpret: expected a GPU value or a number", x)
    if not dt.is_scalar(kind):
        raise located(ArgumentValueError, f"reinterpret: a Python number does not become {kind.name}")
    letters = _LETTERS[kind.item_size]
    given = int(x < 0) if ex.is_integer_number(x) else 2
    wanted = 2 if dt.is_float_dtype(kind) else int(dt.is_signed_dtype(kind))
    try:
        packed = struct.pack(f"<{letters[given]}", x)
    except (struct.error, OverflowError):
        raise located(
            ArgumentValueError, f"reinterpret: {x} does not fit in {kind.item_size} bytes"
        ) from None
    result: int | float = struct.unpack(f"<{letters[wanted]}", packed)[0]
    return result


def _word(value: Expr) -> Expr:
    """Bits of a scalar, or of each component of a vector, as unsigned integers."""
    scalar = dt.component_type(value.dtype)
    if not dt.is_float_dtype(scalar):
        return _as_unsigned(value)
    to_bits, _, word = _BITS_OF[scalar]
    return ex.call(to_bits, vector_like(word, value.dtype), value)


def _from_word(word: Expr, kind: dt.DType) -> Expr:
    scalar = dt.component_type(kind)
    return ex.call(_BITS_OF[scalar][1], kind, word) if dt.is_float_dtype(scalar) else ex.cast(word, kind)


def _regroup(words: list[Expr], size: int) -> list[Expr]:
    """Cut or join unsigned integers to ones of `size` bytes, the lowest bits first."""
    while words[0].dtype.item_size > size:
        words = [half for word in words for half in _split_word(word)]
    while words[0].dtype.item_size < size:
        words = [join_words(low, high) for low, high in zip(words[::2], words[1::2], strict=True)]
    return words


def _split_word(word: Expr) -> tuple[Expr, Expr]:
    half = word.dtype.item_size // 2
    kind = _UNSIGNED[half]
    return ex.cast(word, kind), ex.cast(ex.bitwise(">>", word, 8 * half), kind)


def join_words(low: Expr, high: Expr) -> Expr:
    """Make an unsigned integer of its lower and upper half."""
    size = low.dtype.item_size
    kind = _UNSIGNED[2 * size]
    return ex.bitwise("|", ex.bitwise("<<", ex.cast(high, kind), 8 * size), ex.cast(low, kind))


# ---- Several small values in one word, and back ----------------------------------------------------------


def _parse_as(name: str, x: Operand, kind: dt.DType) -> Expr:
    """Return x as a value of `kind`. Raises TypeError for another shape, or a float instead of an integer."""
    if isinstance(x, ShaderVariable):
        value = x._value()
        alike = dt.is_scalar(kind) if dt.is_scalar(value.dtype) else dt.is_vector(value.dtype)
        if alike and dt.component_count(value.dtype) == dt.component_count(kind):
            is_number = dt.is_float_dtype(kind) and value.dtype is not dt.bool_
            if is_number or dt.is_integer_dtype(value.dtype):
                return ex.cast(value, kind)
        raise mismatch(f"{name}: expected {kind.name}", value)
    if dt.is_scalar(kind) and (ex.is_integer_number(x) or (dt.is_float_dtype(kind) and ex.is_number(x))):
        return ex.storable(x, kind)
    raise mismatch(f"{name}: expected a GPU {kind.name}", x)


def _define_packing(name: str, source: dt.DType, target: dt.DType, doc: str) -> None:
    direction, layout = name.split("_")
    glsl = direction + layout.capitalize()

    def function(x: Operand) -> ShaderVariable:
        return ShaderVariable(ex.call(glsl, target, _parse_as(name, x, source)))

    globals()[name] = describe(function, name, doc)
    __all__.append(name)


# Functions that GLSL has too, by their arguments and results: `typed_names.pyi` shows them to type checkers.
_PACKINGS: dict[str, tuple[dt.DType, dt.DType, str]] = {
    "pack_half2x16": (dt.vec2, dt.uint32, "Pack a vec2 as two halves in a uint32."),
    "unpack_half2x16": (dt.uint32, dt.vec2, "Unpack two halves in a uint32 as a vec2."),
    "pack_unorm2x16": (dt.vec2, dt.uint32, "Pack a vec2 of [0, 1] as two 16-bit steps."),
    "unpack_unorm2x16": (dt.uint32, dt.vec2, "Unpack two 16-bit steps as a vec2 of [0, 1]."),
    "pack_snorm2x16": (dt.vec2, dt.uint32, "Pack a vec2 of [-1, 1] as two 16-bit steps."),
    "unpack_snorm2x16": (dt.uint32, dt.vec2, "Unpack two 16-bit steps as a vec2 of [-1, 1]."),
    "pack_unorm4x8": (dt.vec4, dt.uint32, "Pack a vec4 of [0, 1] as four 8-bit steps in a uint32."),
    "unpack_unorm4x8": (dt.uint32, dt.vec4, "Unpack four 8-bit steps as a vec4 of [0, 1]."),
    "pack_snorm4x8": (dt.vec4, dt.uint32, "Pack a vec4 of [-1, 1] as four 8-bit steps in a uint32."),
    "unpack_snorm4x8": (dt.uint32, dt.vec4, "Unpack four 8-bit steps as a vec4 of [-1, 1]."),
    "pack_double2x32": (dt.uvec2, dt.float64, "Make a float64 of two words, low half first."),
    "unpack_double2x32": (dt.float64, dt.uvec2, "Bits of a float64 as a uvec2, low half first."),
}
for _name, _packing in _PACKINGS.items():
    _define_packing(_name, *_packing)


def pack_uint2x32(x: Operand) -> ShaderVariable:
    """Make a uint64 of a uvec2, low half first."""
    value = _parse_as("pack_uint2x32", x, dt.uvec2)
    return ShaderVariable(join_words(ex.component(value, 0), ex.component(value, 1)))


def unpack_uint2x32(x: Operand) -> ShaderVariable:
    """Halves of a uint64 as a uvec2, low half first."""
    return ShaderVariable(ex.construct(dt.uvec2, split_halves(_parse_as("unpack_uint2x32", x, dt.uint64))))


def _bytes_of(value: Expr) -> Expr:
    """Lowest bytes of four integers, joined in a uint32."""
    first, *rest = (ex.bitwise("&", ex.cast(ex.component(value, i), dt.uint32), 0xFF) for i in range(4))
    for position, byte in enumerate(rest, 1):
        first = ex.bitwise("|", first, ex.bitwise("<<", byte, 8 * position))
    return first


def _cut_bytes(word: Expr) -> Expr:
    parts = [ex.bitwise("&", ex.bitwise(">>", word, 8 * i), 0xFF) for i in range(4)]
    return ex.construct(dt.uvec4, parts)


def pack_uint4x8(x: Operand) -> ShaderVariable:
    """Lowest bytes of a uvec4 in a uint32, the first component lowest."""
    return ShaderVariable(_bytes_of(_parse_as("pack_uint4x8", x, dt.uvec4)))


def unpack_uint4x8(x: Operand) -> ShaderVariable:
    """Bytes of a uint32 as a uvec4, the lowest first."""
    return ShaderVariable(_cut_bytes(_parse_as("unpack_uint4x8", x, dt.uint32)))


def pack_int4x8(x: Operand) -> ShaderVariable:
    """Lowest bytes of an ivec4 in a uint32, the first component lowest."""
    return ShaderVariable(_bytes_of(_parse_as("pack_int4x8", x, dt.ivec4)))


def unpack_int4x8(x: Operand) -> ShaderVariable:
    """Bytes of a uint32, with their signs, as an ivec4, the lowest first."""
    word = ex.cast(_parse_as("unpack_int4x8", x, dt.uint32), dt.int32)
    parts = [ex.bitwise(">>", ex.bitwise("<<", word, 24 - 8 * i), 24) for i in range(4)]
    return ShaderVariable(ex.construct(dt.ivec4, parts))


def pack_uint8x8(low: Operand, high: Operand) -> ShaderVariable:
    """Lowest bytes of two uvec4 in a uint64, the first component of `low` lowest."""
    words = [_bytes_of(_parse_as("pack_uint8x8", value, dt.uvec4)) for value in (low, high)]
    return ShaderVariable(join_words(*words))


def unpack_uint8x8(x: Operand) -> tuple[ShaderVariable, ShaderVariable]:
    """Bytes of a uint64 as two uvec4, the lowest first."""
    low, high = split_halves(_parse_as("unpack_uint8x8", x, dt.uint64))
    return ShaderVariable(_cut_bytes(low)), ShaderVariable(_cut_bytes(high))
