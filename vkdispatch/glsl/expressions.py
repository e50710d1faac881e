"""Expressions as GLSL text: how each operation, literal and built-in value is written."""

import math
import re
from collections.abc import Callable

from vkdispatch.analyses.naming import NamingPlan
from vkdispatch.base.dtype import (
    DType,
    bfloat16,
    bool_,
    component_count,
    component_type,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    is_array,
    uint8,
    uint16,
    uint32,
    uint64,
)
from vkdispatch.base.record import field, record
from vkdispatch.base.structures import Structure, is_structure
from vkdispatch.glsl import emulation
from vkdispatch.glsl.lanes import goes_by_lanes, write_by_lanes
from vkdispatch.glsl.packing import Packing
from vkdispatch.ir import (
    Argument,
    Builtin,
    Expr,
    ImageBinding,
    Op,
    RawText,
    Register,
    SharedArray,
    Storage,
    root_of,
)
from vkdispatch.ir.names import legal_name
from vkdispatch.ir.numbers import digits, rounded
from vkdispatch.ir.variant import emulates

# ---- tables --------------------------------------------------------------------------------------

# Binding strength of operators, weakest first.
(
    _CHOICE,
    _OR,
    _AND,
    _BIT_OR,
    _BIT_XOR,
    _BIT_AND,
    _EQUAL,
    _ORDER,
    _SHIFT,
    _SUM,
    _PRODUCT,
    _PREFIX,
    _POSTFIX,
) = range(13)
_STRENGTH = {
    "||": _OR,
    "&&": _AND,
    "|": _BIT_OR,
    "^": _BIT_XOR,
    "&": _BIT_AND,
    "==": _EQUAL,
    "!=": _EQUAL,
    "<": _ORDER,
    "<=": _ORDER,
    ">": _ORDER,
    ">=": _ORDER,
    "<<": _SHIFT,
    ">>": _SHIFT,
    "+": _SUM,
    "-": _SUM,
    "*": _PRODUCT,
    "/": _PRODUCT,
    "%": _PRODUCT,
}
# Nobody remembers how these bind, so mixtures of them keep their parentheses.
_UNFAMILIAR = frozenset(("|", "^", "&", "<<", ">>"))

_SUFFIXES: dict[DType, str] = {
    uint16: "us",
    int16: "s",
    uint32: "u",
    int32: "",
    uint64: "ul",
    int64: "l",
    float16: "hf",
    float32: "f",
    float64: "lf",
}
_LOWEST: dict[DType, str] = {
    int16: "int16_t(0x8000us)",
    int32: "int(0x80000000u)",
    int64: "int64_t(0x8000000000000000ul)",
}
_LARGEST_FLOAT: dict[DType, float] = {float16: 65519.99, float32: 3.4028235677973366e38, float64: math.inf}

BUILTINS: dict[Builtin, str] = {
    Builtin.GLOBAL_INVOCATION_ID: "gl_GlobalInvocationID",
    Builtin.LOCAL_INVOCATION_ID: "gl_LocalInvocationID",
    Builtin.LOCAL_INVOCATION_INDEX: "gl_LocalInvocationIndex",
    Builtin.WORKGROUP_ID: "gl_WorkGroupID",
    Builtin.WORKGROUP_SIZE: "gl_WorkGroupSize",
    Builtin.NUM_WORKGROUPS: "gl_NumWorkGroups",
    Builtin.NUM_SUBGROUPS: "gl_NumSubgroups",
    Builtin.SUBGROUP_ID: "gl_SubgroupID",
    Builtin.SUBGROUP_SIZE: "gl_SubgroupSize",
    Builtin.SUBGROUP_INVOCATION_ID: "gl_SubgroupInvocationID",
    Builtin.SUBGROUP_EQ_MASK: "gl_SubgroupEqMask",
    Builtin.SUBGROUP_GE_MASK: "gl_SubgroupGeMask",
    Builtin.SUBGROUP_GT_MASK: "gl_SubgroupGtMask",
    Builtin.SUBGROUP_LE_MASK: "gl_SubgroupLeMask",
    Builtin.SUBGROUP_LT_MASK: "gl_SubgroupLtMask",
}
# A folded kernel runs a grid of any shape in a launch of another one; see _fold_prologue.
FOLDED_GLOBAL_ID, FOLDED_WORKGROUP_ID = "global_id", "workgroup_id"

# The member of the argument block that has the arguments of 16 bits, where these are packed in words.
HALVES = "halves_"

# Names of components of built-in values, where they get one.
COMPONENT_NAMES: dict[Builtin, str] = {
    Builtin.GLOBAL_INVOCATION_ID: "gid",
    Builtin.LOCAL_INVOCATION_ID: "lid",
    Builtin.WORKGROUP_ID: "group",
    Builtin.WORKGROUP_SIZE: "group_size",
    Builtin.NUM_WORKGROUPS: "groups",
}


@record
class Stored:
    """How a type that kernels do not compute with lies in a buffer, is read and is stored."""

    glsl: str
    load: str
    store: str


STORED: dict[DType, Stored] = {
    bool_: Stored("uint8_t", "bool(uint({}))", "uint8_t(uint({}))"),
    int8: Stored("int8_t", "int({})", "int8_t({})"),
    uint8: Stored("uint8_t", "uint({})", "uint8_t({})"),
    bfloat16: Stored("uint16_t", "uintBitsToFloat(uint({}) << 16)", "bfloat16_bits({})"),
}
BFLOAT16_BITS = """
uint16_t bfloat16_bits(float value) {
    uint bits = floatBitsToUint(value);
    uint rounded = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
    return uint16_t(isnan(value) ? (bits >> 16) | 0x40u : rounded);
}
"""


# How the names of image and vector types start, by what a texel is made of, and the letter of their formats.
GVEC: dict[DType, str] = {float32: "", int32: "i", uint32: "u"}
FORMAT_LETTERS: dict[DType, str] = {float32: "f", int32: "i", uint32: "ui"}


# ---- literals ------------------------------------------------------------------------------------


# Digits of a float that float32's own never are shorter than.
_SHORT = 7


def literal_text(value: int | float | bool, kind: DType) -> str:
    """Write a scalar literal of type `kind`."""
    if kind is bool_:
        return "true" if value else "false"
    if kind in _LARGEST_FLOAT:
        return _float_text(float(value), kind)
    if kind in _LOWEST and value == -(1 << (8 * kind.item_size - 1)):
        # the digits without the sign would not fit
        return _LOWEST[kind]
    return f"{value}{_SUFFIXES[kind]}"


def _float_text(value: float, kind: DType) -> str:
    if not math.isfinite(value) or abs(value) > _LARGEST_FLOAT[kind]:
        bits = "0x7FC00000u" if math.isnan(value) else "0x7F800000u" if value > 0 else "0xFF800000u"
        text = f"uintBitsToFloat({bits})"
        return text if kind is float32 else f"{kind.glsl_type}({text})"
    text = repr(value)
    if kind is float32 and len(text) > _SHORT and rounded(value, float32) == value:
        # a value that came from float32 is written with float32's shorter digits
        text = min(text, digits(value, float32), key=len)
    if not any(letter in text for letter in ".e"):
        text += ".0"
    return text + _SUFFIXES[kind]


# ---- expressions ---------------------------------------------------------------------------------


@record(eq=False, frozen=False)
class Names:
    """How leaves are called: built-in values, the argument block, and expressions that have a name."""

    builtins: dict[Builtin, str] = field(factory=lambda: BUILTINS)
    block: str = "PC"
    plan: NamingPlan | None = None
    of_number: dict[int, str] = field(factory=dict)
    # of buffers that are reached by address: members of the argument block, by position of the resource
    addresses: dict[int, str] = field(factory=dict)
    lengths: dict[int, str] = field(factory=dict)
    # buffers whose elements are packed in words
    packing: Packing = field(factory=Packing)
    # features that the form does without
    lacks: frozenset[str] = frozenset()
    # where arguments of 16 bits lie that are packed in words, by name
    halves: dict[str, int] = field(factory=dict)

    def name_of(self, expr: Expr) -> str | None:
        """Return the name that an expression was given, if any."""
        if not self.of_number or self.plan is None:
            return None
        number = self.plan.numbering.by_id.get(id(expr))
        if number is None:
            number = self.plan.numbering.number(expr)
        return self.of_number.get(number)

    def raw(self, text: str) -> str:
        """Adapt raw GLSL, which was written against the default names."""
        renamed = {BUILTINS[key]: name for key, name in self.builtins.items() if BUILTINS[key] != name}
        if self.block != "PC":
            renamed["PC"] = self.block
        if not renamed:
            return text
        pattern = r"\b(" + "|".join(renamed) + r")\b"
        return re.sub(pattern, lambda match: renamed[match[0]], text)


def expression_text(expr: Expr) -> str:
    """Write one expression, with the names of an unfolded kernel that takes push constants."""
    return written(expr, Names())[0]


def written(expr: Expr, names: Names) -> tuple[str, int]:
    """Text of an expression and how strongly it holds together."""
    name = names.name_of(expr)
    return (name, _POSTFIX) if name is not None else value_text(expr, names)


def value_text(expr: Expr, names: Names) -> tuple[str, int]:
    """Text of an expression that has no name, and how strongly it holds together."""
    if names.lacks:
        if expr.op is Op.SUBGROUP and goes_by_lanes(expr, names.lacks):
            return write_by_lanes(expr, [full_text(arg, names) for arg in expr.args], names.lacks), _POSTFIX
        kinds = (expr.dtype, *(arg.dtype for arg in expr.args))
        if any(emulates(kind, names.lacks) for kind in kinds):
            text = _write_emulated(expr, names)
            if text is not None:
                return text, _PREFIX if text[0] in "-!~" else _POSTFIX
    return WRITERS[expr.op](expr, names)


def _write_emulated(expr: Expr, names: Names) -> str | None:
    """Write an expression of types that the device lacks; None: as any other."""
    op, kind = expr.op, expr.dtype
    if op is Op.LITERAL:
        assert isinstance(expr.value, (int, float))
        return emulation.literal(expr.value, kind, literal_text)
    if op is Op.BINARY:
        left, right = (_operand(arg, names, _PREFIX) for arg in expr.args)
        return emulation.write_operation(str(expr.value), kind, left, right)
    if op is Op.COMPARE and expr.args[0].dtype in (int64, uint64):
        left, right = (_operand(arg, names, _PREFIX) for arg in expr.args)
        return emulation.write_comparison(str(expr.value), expr.args[0].dtype, left, right)
    if op is Op.UNARY:
        text = _operand(expr.args[0], names, _POSTFIX)
        if kind in (int64, uint64):
            return f"~{text}" if expr.value == "~" else f"long_negate({text})"
        return emulation.back(f"{expr.value}{text}", kind)
    if op in (Op.CALL, Op.SUBGROUP):
        return emulation.write_call(expr, [full_text(arg, names) for arg in expr.args], names.lacks)
    if op is Op.CONSTRUCT:
        return emulation.write_construction(expr, [full_text(arg, names) for arg in expr.args], names.lacks)
    return None


def full_text(expr: Expr, names: Names) -> str:
    """Write an expression that stands alone."""
    return written(expr, names)[0]


def _operand(expr: Expr, names: Names, strength: int) -> str:
    """Text of an operand, in parentheses if it holds together less than `strength`."""
    text, own = written(expr, names)
    return text if own >= strength else f"({text})"


def _list(args: tuple[Expr, ...], names: Names) -> str:
    return ", ".join(full_text(arg, names) for arg in args)


def _literal(expr: Expr, names: Names) -> tuple[str, int]:
    assert isinstance(expr.value, (int, float))
    text = literal_text(expr.value, expr.dtype)
    return text, _PREFIX if text.startswith("-") else _POSTFIX


def _argument(expr: Expr, names: Names) -> tuple[str, int]:
    assert isinstance(expr.value, Argument)
    if expr.value.name in names.halves:
        return _packed_argument(expr.value, names), _POSTFIX
    return f"{names.block}.{expr.value.name}", _POSTFIX


def _packed_argument(argument: Argument, names: Names) -> str:
    """Write an argument of 16 bits, or a vector of such, whose words hold several."""
    scalar, start = component_type(argument.dtype), names.halves[argument.name]
    parts = []
    for place in range(start, start + component_count(argument.dtype)):
        word = f"bitfieldExtract({names.block}.{HALVES}[{place // 2}], {16 * (place % 2)}, 16)"
        parts.append(names.packing.value(scalar, word))
    return parts[0] if len(parts) == 1 else f"{argument.dtype.glsl_type}({', '.join(parts)})"


def _builtin(expr: Expr, names: Names) -> tuple[str, int]:
    assert isinstance(expr.value, Builtin)
    return names.builtins[expr.value], _POSTFIX


def _register(expr: Expr, names: Names) -> tuple[str, int]:
    assert isinstance(expr.value, Register)
    return expr.value.name, _POSTFIX


def _element(expr: Expr, names: Names) -> tuple[str, int]:
    packed = packed_place(expr, names)
    if packed is not None:
        return names.packing.load(*packed), _POSTFIX
    text = element_place(expr, names)
    if isinstance(expr.value, Storage) and expr.value.dtype in STORED:
        return STORED[expr.value.dtype].load.format(text), _POSTFIX
    return text, _POSTFIX


def element_place(expr: Expr, names: Names) -> str:
    """Write where an element lies, without reading it."""
    assert isinstance(expr.value, (Storage, SharedArray))
    if isinstance(expr.value, Storage) and expr.value.index in names.addresses:
        return _addressed_place(expr.value, expr.args[0], names)
    if isinstance(expr.value, SharedArray):
        return f"{expr.value.name}[{full_text(expr.args[0], names)}]"
    return f"{expr.value.name}.data[{_index_text(expr.args[0], names)}]{_field_text(expr.value)}"


def _index_text(index: Expr, names: Names) -> str:
    text = full_text(index, names)
    return f"({text}).x" if names.lacks and emulates(index.dtype, names.lacks) else text


def packed_place(place: Expr, names: Names) -> tuple[Storage, DType, DType, str] | None:
    """Return where a place lies that is, or is part of, an element packed in words; None for any other.

    Its buffer, the type that lies there and the one that kernels compute with, and the place in bytes.
    """
    if place.op is Op.ELEMENT:
        storage = place.value
        if not isinstance(storage, Storage) or storage.index not in names.packing.words:
            return None
        at = names.packing.at(storage, _index_text(place.args[0], names), place.args[0].dtype)
        return storage, storage.dtype, place.dtype, at
    if place.op not in (Op.COMPONENT, Op.INDEX):
        return None
    whole = packed_place(place.args[0], names)
    if whole is None:
        return None
    storage, kind, _, at = whole
    part = component_type(kind) if kind.child_type is None else kind.child_type
    if place.op is Op.COMPONENT:
        offset = str("xyzw".index(str(place.value)) * part.item_size)
    else:
        offset = f"{_operand(place.args[1], names, _PRODUCT)} * {part.item_size}"
    return storage, part, place.dtype, names.packing.beyond(at, offset)


def _field_text(storage: Storage) -> str:
    """Write which field of an element a storage is: ".inner.x", or "" for the whole element."""
    if storage.whole is None:
        return ""
    kind: DType = storage.whole.dtype
    text = ""
    for name in storage.path:
        assert is_structure(kind)
        members = member_names(kind)
        text += f".{members[name]}"
        kind = next(field for each, field, _ in kind.fields if each == name)
    return text


def member_names(kind: type[Structure]) -> dict[str, str]:
    """Return the names in GLSL of the fields of a structure."""
    found: dict[str, str] = {}
    taken: set[str] = set()
    for name, _, _ in kind.fields:
        legal = legal_name(name, member=True)
        while legal in taken:
            legal += "_"
        taken.add(legal)
        found[name] = legal
    return found


def place_text(place: Expr, names: Names) -> str:
    """Write what is stored to: never a name, which stands for the value that was read there."""
    if place.op is Op.COMPONENT:
        return f"{place_text(place.args[0], names)}.{place.value}"
    if place.op is Op.INDEX:
        return f"{place_text(place.args[0], names)}[{full_text(place.args[1], names)}]"
    if place.op is Op.ELEMENT:
        return element_place(place, names)
    return WRITERS[place.op](place, names)[0]


def array_text(element: Expr, names: Names) -> tuple[str, str]:
    """Write the array that an element lies in, and the index of the element."""
    array, index = element.value, element.args[0]
    assert isinstance(array, (Storage, SharedArray))
    if isinstance(array, SharedArray):
        return array.name, full_text(index, names)
    if array.index in names.addresses:
        return element_place(element, names).removesuffix("[0]"), "0u"
    return f"{array.name}.data", f"uint({full_text(index, names)})"


def reference_name(buffer: Storage) -> str:
    """Name of a buffer's block, which is a type of reference where the buffer is reached by address."""
    return f"View{buffer.index}" if buffer.view else f"Buffer{buffer.index}"


def _addressed_place(buffer: Storage, index: Expr, names: Names) -> str:
    """Write where an element of a buffer lies that is reached by its address."""
    address = f"{names.block}.{names.addresses[buffer.index]}"
    size = buffer.element_size
    if index.op is Op.LITERAL and isinstance(index.value, int):
        offset = f"{index.value * size}ul"
    else:
        # Offsets have 64 bits, as 2^32 bytes are passed soon; GLSL's own indexing is only sure of 31.
        text = full_text(index, names)
        if index.dtype is uint64:
            text = _operand(index, names, _PRODUCT)
        elif index.dtype is int32:
            text = f"uint64_t(int64_t({text}))"
        else:
            text = f"uint64_t({text})"
        offset = f"{text} * {size}ul" if size > 1 else text
    return f"{reference_name(buffer)}({address} + {offset}).data[0]{_field_text(buffer)}"


def _index(expr: Expr, names: Names) -> tuple[str, int]:
    base, position = expr.args
    return f"{_operand(base, names, _POSTFIX)}[{full_text(position, names)}]", _POSTFIX


def _component(expr: Expr, names: Names) -> tuple[str, int]:
    return f"{_operand(expr.args[0], names, _POSTFIX)}.{expr.value}", _POSTFIX


def _unary(expr: Expr, names: Names) -> tuple[str, int]:
    text, strength = written(expr.args[0], names)
    # "--x" would be a decrement
    safe = strength >= _PREFIX and not (expr.value == "-" and text.startswith("-"))
    return f"{expr.value}{text}" if safe else f"{expr.value}({text})", _PREFIX


def _binary(expr: Expr, names: Names) -> tuple[str, int]:
    symbol = str(expr.value)
    strength = _STRENGTH[symbol]
    left, right = expr.args
    left_text = _mixed(left, names, symbol, strength)
    text = f"{left_text} {symbol} {_mixed(right, names, symbol, strength + 1)}"
    zero = unknown_zero(symbol, left, right, names)
    return (text, strength) if zero is None else (f"({text}) ^ {zero}", _BIT_XOR)


def unknown_zero(symbol: str, left: Expr, right: Expr, names: Names) -> str | None:
    """Write a zero that a quotient has to be xor-ed with where buffers are reached by address, or None.

    NVIDIA's compiler (580.159) takes the addresses that (e + 256) / 12 and e / 12 lead to for a constant
    apart. So none may know the quotient: bit 63 of a device address is 0, but compilers cannot tell.
    """
    kind = left.dtype
    if symbol not in ("/", "%") or kind not in (int64, uint64) or not names.addresses:
        return None
    if right.op is Op.LITERAL and isinstance(right.value, int):
        power_of_two = right.value > 0 and right.value & (right.value - 1) == 0
        if power_of_two or left.op is Op.LITERAL:
            return None
    zero = f"{names.block}.{next(iter(names.addresses.values()))} >> 63ul"
    return f"({zero})" if kind is uint64 else f"int64_t({zero})"


def updated_text(place: str, symbol: str, left: Expr, right: Expr, names: Names) -> str:
    """Write the statement that combines what lies in a place with a value, and leaves the result there."""
    zero = unknown_zero(symbol, left, right, names)
    if zero is None:
        return f"{place} {symbol}= {full_text(right, names)}"
    return f"{place} = ({place} {symbol} {_operand(right, names, _PREFIX)}) ^ {zero}"


def _mixed(expr: Expr, names: Names, symbol: str, strength: int) -> str:
    text, own = written(expr, names)
    compound = own < _PREFIX
    other = expr.op is Op.BINARY and expr.value != symbol
    unfamiliar = symbol in _UNFAMILIAR or (expr.op is Op.BINARY and expr.value in _UNFAMILIAR)
    return f"({text})" if own < strength or (compound and other and unfamiliar) else text


def _logical(expr: Expr, names: Names) -> tuple[str, int]:
    strength = _STRENGTH[str(expr.value)]
    parts = []
    for arg in expr.args:
        text, own = written(arg, names)
        nested = own <= _AND
        parts.append(f"({text})" if nested else text)
    return f" {expr.value} ".join(parts), strength


def _call(expr: Expr, names: Names) -> tuple[str, int]:
    return f"{expr.value}({_list(expr.args, names)})", _POSTFIX


def _atomic(expr: Expr, names: Names) -> tuple[str, int]:
    place, *operands = expr.args
    texts = [place_text(place, names), *(full_text(operand, names) for operand in operands)]
    function = str(expr.value)
    if function.startswith(("atomicLoad", "atomicStore")):
        texts += _order(function, shared=isinstance(root_of(place).value, SharedArray))
        function = function.removesuffix("Relaxed")
    return f"{function}({', '.join(texts)})", _POSTFIX


def _order(function: str, *, shared: bool) -> tuple[str, str, str]:
    """Return who sees an atomic load or store, and what else it orders."""
    scope = "gl_ScopeWorkgroup" if shared else "gl_ScopeDevice"
    if function.endswith("Relaxed"):
        return scope, "gl_StorageSemanticsNone", "gl_SemanticsRelaxed"
    semantics = "gl_SemanticsAcquire" if function == "atomicLoad" else "gl_SemanticsRelease"
    return scope, "gl_StorageSemanticsShared" if shared else "gl_StorageSemanticsBuffer", semantics


def _select(expr: Expr, names: Names) -> tuple[str, int]:
    condition, chosen, other = (_operand(arg, names, _OR) for arg in expr.args)
    return f"{condition} ? {chosen} : {other}", _CHOICE


def _length(expr: Expr, names: Names) -> tuple[str, int]:
    if isinstance(expr.value, SharedArray):
        return literal_text(expr.value.size, uint32), _POSTFIX
    kind = expr.dtype.glsl_type
    if isinstance(expr.value, Register):
        return f"{kind}({expr.value.name}.length())", _POSTFIX
    assert isinstance(expr.value, Storage)
    if expr.value.index in names.packing.words:
        size = f"{names.block}.{names.lengths[expr.value.index]}"
        low = size if expr.value.index in names.addresses else f"{size}.x"
        return f"{kind}({low} / {expr.value.element_size})", _POSTFIX
    if expr.value.index in names.lengths:
        size = f"{names.block}.{names.lengths[expr.value.index]} / {expr.value.element_size}ul"
        return f"{kind}({size})", _POSTFIX
    return f"{kind}({expr.value.name}.data.length())", _POSTFIX


def _construct(expr: Expr, names: Names) -> tuple[str, int]:
    if is_array(expr.dtype):
        return "{}", _POSTFIX  # all zero
    if expr.dtype is int64 and expr.args[0].dtype is int32:
        # int64_t(x) says the same; llvmpipe of Mesa 22.3 compares that with constants wrongly
        text = full_text(expr.args[0], names)
        return f"int64_t(uint({text}) ^ 2147483648u) - 2147483648l", _SUM
    return f"{expr.dtype.glsl_type}({_list(expr.args, names)})", _POSTFIX


def _sample(expr: Expr, names: Names) -> tuple[str, int]:
    assert isinstance(expr.value, ImageBinding)
    coordinate, level = expr.args
    texture, kind = expr.value.name, coordinate.dtype.glsl_type
    # Layers are counted, not measured: theirs is the only coordinate that is not divided.
    half = "vec3(0.5f, 0.5f, 0.0f)" if expr.value.arrayed else "0.5f"
    size = f"textureSize({texture}, 0)"
    extent = f"vec3({size}.xy, 1)" if expr.value.arrayed else f"{kind}({size})"
    position = f"({_operand(coordinate, names, _SUM)} + {half}) / {extent}"
    return f"textureLod({texture}, {position}, {full_text(level, names)})", _POSTFIX


def _image_load(expr: Expr, names: Names) -> tuple[str, int]:
    assert isinstance(expr.value, ImageBinding)
    name, args = expr.value.name, _list(expr.args, names)
    if not expr.value.storage:
        return f"texelFetch({name}, {args})", _POSTFIX
    swizzle = {1: ".x", 2: ".xy"}.get(component_count(expr.dtype), "")
    return f"imageLoad({name}, {args}){swizzle}", _POSTFIX


def _image_size(expr: Expr, names: Names) -> tuple[str, int]:
    assert isinstance(expr.value, ImageBinding)
    if expr.value.storage:
        return f"imageSize({expr.value.name})", _POSTFIX
    return f"textureSize({expr.value.name}, {full_text(expr.args[0], names)})", _POSTFIX


def _raw(expr: Expr, names: Names) -> tuple[str, int]:
    assert isinstance(expr.value, RawText)
    return names.raw(expr.value.text), _POSTFIX if expr.value.lexical_unit else 0


WRITERS: dict[Op, Callable[[Expr, Names], tuple[str, int]]] = {
    Op.LITERAL: _literal,
    Op.ARGUMENT: _argument,
    Op.BUILTIN: _builtin,
    Op.REGISTER: _register,
    Op.ELEMENT: _element,
    Op.INDEX: _index,
    Op.COMPONENT: _component,
    Op.SWIZZLE: _component,
    Op.UNARY: _unary,
    Op.BINARY: _binary,
    Op.COMPARE: _binary,
    Op.LOGICAL: _logical,
    Op.CALL: _call,
    Op.SUBGROUP: _call,
    Op.SELECT: _select,
    Op.LENGTH: _length,
    Op.ATOMIC: _atomic,
    Op.CONSTRUCT: _construct,
    Op.SAMPLE: _sample,
    Op.IMAGE_LOAD: _image_load,
    Op.IMAGE_SIZE: _image_size,
    Op.RAW: _raw,
}
