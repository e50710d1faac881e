"""Expressions as GLSL text: how each operation, literal and built-in value is written."""

from collections.abc import Callable

from vkdispatch.base.derived_dtypes import strides_along
from vkdispatch.base.dtype import (
    DType,
    array_shape,
    component_count,
    component_type,
    float16,
    float32,
    float64,
    int32,
    int64,
    is_array,
    is_matrix,
    item_of,
    to_vector,
    uint32,
    uint64,
)
from vkdispatch.compiler.glsl import emulation as emulation
from vkdispatch.compiler.glsl.emulation import goes_by_lanes, write_by_lanes
from vkdispatch.compiler.glsl.helpers import narrows_float
from vkdispatch.compiler.glsl.packing import Names
from vkdispatch.compiler.glsl.spelling import (
    AND,
    BIT_XOR,
    CHOICE,
    HALVES,
    OR,
    POSTFIX,
    PREFIX,
    PRODUCT,
    STORED,
    STRENGTH,
    SUM,
    UNFAMILIAR,
    field_text,
    literal_text,
    reference_name,
)
from vkdispatch.compiler.ir import (
    Argument,
    Builtin,
    Expr,
    ImageBinding,
    Op,
    RawText,
    Register,
    SharedArray,
    Storage,
    is_item_in_memory,
    root_of,
    split_array_indices,
)
from vkdispatch.compiler.ir.statements import HALF_OF_DOUBLE, HALF_OF_FLOAT, emulates


def expression_text(expr: Expr) -> str:
    """Write one expression, with the names of an unfolded kernel that takes push constants."""
    return write_expression(expr, Names())[0]


def write_expression(expr: Expr, names: Names) -> tuple[str, int]:
    """Text of an expression and how strongly it holds together."""
    name = names.name_of(expr)
    return (name, POSTFIX) if name is not None else value_text(expr, names)


def value_text(expr: Expr, names: Names) -> tuple[str, int]:
    """Text of an expression that has no name, and how strongly it holds together."""
    if names.lacks:
        if expr.op is Op.SUBGROUP and goes_by_lanes(expr, names.lacks):
            return write_by_lanes(expr, [full_text(arg, names) for arg in expr.args], names.lacks), POSTFIX
        kinds = (expr.dtype, *(arg.dtype for arg in expr.args))
        if any(emulates(kind, names.lacks) for kind in kinds):
            text = _write_emulated(expr, names)
            if text is not None:
                return text, PREFIX if text[0] in "-!~" else POSTFIX
    return WRITERS[expr.op](expr, names)


def _write_emulated(expr: Expr, names: Names) -> str | None:
    """Write an expression of types that the device lacks; None: as any other."""
    op, kind = expr.op, expr.dtype
    if op is Op.LITERAL:
        assert isinstance(expr.value, (int, float))
        return emulation.emulated_literal(expr.value, kind, literal_text)
    if op is Op.BINARY:
        left, right = (_operand(arg, names, PREFIX) for arg in expr.args)
        return emulation.write_operation(str(expr.value), kind, left, right)
    if op is Op.COMPARE and expr.args[0].dtype in (int64, uint64):
        left, right = (_operand(arg, names, PREFIX) for arg in expr.args)
        return emulation.write_comparison(str(expr.value), expr.args[0].dtype, left, right)
    if op is Op.UNARY:
        text = _operand(expr.args[0], names, POSTFIX)
        if kind in (int64, uint64):
            return f"~{text}" if expr.value == "~" else f"long_negate({text})"
        return emulation.back(f"{expr.value}{text}", kind)
    if op not in (Op.CALL, Op.SUBGROUP, Op.CONSTRUCT):
        return None
    write = emulation.write_construction if op is Op.CONSTRUCT else emulation.write_call
    texts = [full_text(arg, names) for arg in expr.args]
    text = write(expr, texts, names.lacks)
    # what keeps its words holds together as its argument does
    return _operand(expr.args[0], names, PREFIX) if texts and text is texts[0] else text


def full_text(expr: Expr, names: Names) -> str:
    """Write an expression that stands alone."""
    return write_expression(expr, names)[0]


def _operand(expr: Expr, names: Names, strength: int) -> str:
    """Text of an operand, in parentheses if it holds together less than `strength`."""
    text, own = write_expression(expr, names)
    return text if own >= strength else f"({text})"


def _list(args: tuple[Expr, ...], names: Names) -> str:
    return ", ".join(full_text(arg, names) for arg in args)


def _literal(expr: Expr, names: Names) -> tuple[str, int]:
    assert isinstance(expr.value, (int, float))
    text = literal_text(expr.value, expr.dtype)
    return text, PREFIX if text.startswith("-") else POSTFIX


def _argument(expr: Expr, names: Names) -> tuple[str, int]:
    assert isinstance(expr.value, Argument)
    if expr.value.name in names.halves:
        return _packed_argument(expr.value, names), POSTFIX
    return f"{names.block}.{expr.value.name}", POSTFIX


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
    return names.builtins[expr.value], POSTFIX


def _register(expr: Expr, names: Names) -> tuple[str, int]:
    assert isinstance(expr.value, Register)
    return expr.value.name, POSTFIX


def _element(expr: Expr, names: Names) -> tuple[str, int]:
    packed = packed_place(expr, names)
    if packed is not None:
        return names.packing.load(*packed), POSTFIX
    text = _item_text(expr, names)
    kind = stored_as(expr)
    return (text if kind is None else STORED[kind].load.format(text)), POSTFIX


def element_place(expr: Expr, names: Names, indices: tuple[Expr, ...] = ()) -> str:
    """Write where an element lies, without reading it, or an item of the array that the element is."""
    assert isinstance(expr.value, (Storage, SharedArray))
    within = [full_text(index, names) for index in indices]
    if isinstance(expr.value, Storage) and expr.value.index in names.addresses:
        # NVIDIA's compiler (580.159) takes remainders of 64-bit values by 2 for 1 here, but not their minimum
        within = [
            text if index.op is Op.LITERAL else f"min({text}, {index.dtype.glsl_type}({count - 1}))"
            for text, index, count in zip(within, indices, array_shape(expr.dtype), strict=False)
        ]
        return _addressed_place(expr.value, expr.args[0], names) + field_text(expr.value, within)
    if isinstance(expr.value, SharedArray):
        return f"{expr.value.name}[{full_text(expr.args[0], names)}]" + "".join(f"[{i}]" for i in within)
    return f"{expr.value.name}.data[{_index_text(expr.args[0], names)}]{field_text(expr.value, within)}"


def _item_text(place: Expr, names: Names) -> str:
    element, indices = split_array_indices(place)
    return element_place(element, names, indices)


def stored_as(place: Expr) -> DType | None:
    """Return the type that a place of a buffer holds, if `STORED` has it; None for other places."""
    element, _ = split_array_indices(place)
    if element.op is not Op.ELEMENT or not isinstance(element.value, Storage):
        return None
    kind = item_of(element.value.dtype)
    return kind if kind in STORED else None


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
    if is_array(place.args[0].dtype):
        return _packed_item(place, names)
    whole = packed_place(place.args[0], names)
    if whole is None:
        return None
    storage, kind, _, at = whole
    part = component_type(kind) if kind.child_type is None else kind.child_type
    if place.op is Op.COMPONENT:
        offset = str("xyzw".index(str(place.value)) * part.item_size)
    else:
        offset = f"{_operand(place.args[1], names, PRODUCT)} * {part.item_size}"
    return storage, part, place.dtype, names.packing.beyond(at, offset)


def _packed_item(place: Expr, names: Names) -> tuple[Storage, DType, DType, str] | None:
    """Return where an item of an array lies that is a field of an element packed in words."""
    element, indices = split_array_indices(place)
    packed = packed_place(element, names)
    if packed is None:
        return None
    storage, kind, _, at = packed
    assert storage.whole is not None
    for index, stride in zip(indices, strides_along(storage.whole.dtype, storage.path), strict=True):
        at = names.packing.beyond(at, f"{_operand(index, names, PRODUCT)} * {stride}")
    return storage, item_of(kind), place.dtype, at


def place_text(place: Expr, names: Names) -> str:
    """Write what is stored to: never a name, which stands for the value that was read there."""
    if is_item_in_memory(place):
        return _item_text(place, names)
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
            text = _operand(index, names, PRODUCT)
        elif index.dtype is int32:
            text = f"uint64_t(int64_t({text}))"
        else:
            text = f"uint64_t({text})"
        offset = f"{text} * {size}ul" if size > 1 else text
    return f"{reference_name(buffer)}({address} + {offset}).data[0]"


def _index(expr: Expr, names: Names) -> tuple[str, int]:
    if is_item_in_memory(expr):
        return _element(expr, names)
    base, position = expr.args
    return f"{_operand(base, names, POSTFIX)}[{full_text(position, names)}]", POSTFIX


def _component(expr: Expr, names: Names) -> tuple[str, int]:
    return f"{_operand(expr.args[0], names, POSTFIX)}.{expr.value}", POSTFIX


def _unary(expr: Expr, names: Names) -> tuple[str, int]:
    text, strength = write_expression(expr.args[0], names)
    # "--x" would be a decrement
    safe = strength >= PREFIX and not (expr.value == "-" and text.startswith("-"))
    return f"{expr.value}{text}" if safe else f"{expr.value}({text})", PREFIX


def _binary(expr: Expr, names: Names) -> tuple[str, int]:
    symbol = str(expr.value)
    strength = STRENGTH[symbol]
    left, right = expr.args
    left_text = _write_mixed(left, names, symbol, strength)
    text = f"{left_text} {symbol} {_write_mixed(right, names, symbol, strength + 1)}"
    zero = unknown_zero(symbol, left, right, names)
    return (text, strength) if zero is None else (f"({text}) ^ {zero}", BIT_XOR)


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
    return f"{place} = ({place} {symbol} {_operand(right, names, PREFIX)}) ^ {zero}"


def _write_mixed(expr: Expr, names: Names, symbol: str, strength: int) -> str:
    text, own = write_expression(expr, names)
    compound = own < PREFIX
    other = expr.op is Op.BINARY and expr.value != symbol
    unfamiliar = symbol in UNFAMILIAR or (expr.op is Op.BINARY and expr.value in UNFAMILIAR)
    return f"({text})" if own < strength or (compound and other and unfamiliar) else text


def _logical(expr: Expr, names: Names) -> tuple[str, int]:
    strength = STRENGTH[str(expr.value)]
    parts = []
    for arg in expr.args:
        text, own = write_expression(arg, names)
        nested = own <= AND
        parts.append(f"({text})" if nested else text)
    return f" {expr.value} ".join(parts), strength


def _call(expr: Expr, names: Names) -> tuple[str, int]:
    return f"{expr.value}({_list(expr.args, names)})", POSTFIX


def _atomic(expr: Expr, names: Names) -> tuple[str, int]:
    place, *operands = expr.args
    texts = [place_text(place, names), *(full_text(operand, names) for operand in operands)]
    function = str(expr.value)
    if function.startswith(("atomicLoad", "atomicStore")):
        texts += _order(function, shared=isinstance(root_of(place).value, SharedArray))
        function = function.removesuffix("Relaxed")
    return f"{function}({', '.join(texts)})", POSTFIX


def _order(function: str, *, shared: bool) -> tuple[str, str, str]:
    """Return who sees an atomic load or store, and what else it orders."""
    scope = "gl_ScopeWorkgroup" if shared else "gl_ScopeDevice"
    if function.endswith("Relaxed"):
        return scope, "gl_StorageSemanticsNone", "gl_SemanticsRelaxed"
    semantics = "gl_SemanticsAcquire" if function == "atomicLoad" else "gl_SemanticsRelease"
    return scope, "gl_StorageSemanticsShared" if shared else "gl_StorageSemanticsBuffer", semantics


def _select(expr: Expr, names: Names) -> tuple[str, int]:
    condition, chosen, other = (_operand(arg, names, OR) for arg in expr.args)
    return f"{condition} ? {chosen} : {other}", CHOICE


def _length(expr: Expr, names: Names) -> tuple[str, int]:
    if isinstance(expr.value, SharedArray):
        return literal_text(names.shared.get(id(expr.value), expr.value.size or 0), uint32), POSTFIX
    kind = expr.dtype.glsl_type
    if isinstance(expr.value, Register):
        return f"{kind}({expr.value.name}.length())", POSTFIX
    assert isinstance(expr.value, Storage)
    if expr.value.index in names.packing.words:
        size = f"{names.block}.{names.lengths[expr.value.index]}"
        low = size if expr.value.index in names.addresses else f"{size}.x"
        return f"{kind}({low} / {expr.value.element_size})", POSTFIX
    if expr.value.index in names.lengths:
        size = f"{names.block}.{names.lengths[expr.value.index]} / {expr.value.element_size}ul"
        return f"{kind}({size})", POSTFIX
    return f"{kind}({expr.value.name}.data.length())", POSTFIX


def _construct(expr: Expr, names: Names) -> tuple[str, int]:
    if is_array(expr.dtype) and not expr.args:
        return "{}", POSTFIX  # all zero
    if expr.dtype is int64 and expr.args[0].dtype is int32:
        # int64_t(x) says the same; llvmpipe of Mesa 22.3 compares that with constants wrongly
        text = full_text(expr.args[0], names)
        return f"int64_t(uint({text}) ^ 2147483648u) - 2147483648l", SUM
    texts = [_part_text(arg, component_type(expr.dtype), names) for arg in expr.args]
    return f"{expr.dtype.glsl_type}({', '.join(texts)})", POSTFIX


def _part_text(arg: Expr, kind: DType, names: Names) -> str:
    """Write a part of a value whose components have a type; what is float64 becomes it by rounding once."""
    text = full_text(arg, names)
    if kind is float16 and names.rounds_halves and narrows_float(arg):
        return f"{HALF_OF_FLOAT}({text})"
    if component_type(arg.dtype) is not float64 or is_matrix(arg.dtype):
        return text
    if kind is float16:
        return f"{HALF_OF_DOUBLE}({text})"
    if kind is float32 and names.rounds_integers:
        # llvmpipe takes float(double(i)) for float(i), but not with signs between
        return f"-{to_vector(kind, component_count(arg.dtype)).glsl_type}(-({text}))"
    return text


def _sample(expr: Expr, names: Names) -> tuple[str, int]:
    assert isinstance(expr.value, ImageBinding)
    coordinate, level = expr.args
    texture, kind = expr.value.name, coordinate.dtype.glsl_type
    # Layers are counted, not measured: theirs is the only coordinate that is not divided.
    half = "vec3(0.5f, 0.5f, 0.0f)" if expr.value.arrayed else "0.5f"
    size = f"textureSize({texture}, 0)"
    extent = f"vec3({size}.xy, 1)" if expr.value.arrayed else f"{kind}({size})"
    position = f"({_operand(coordinate, names, SUM)} + {half}) / {extent}"
    return f"textureLod({texture}, {position}, {full_text(level, names)})", POSTFIX


def _image_load(expr: Expr, names: Names) -> tuple[str, int]:
    assert isinstance(expr.value, ImageBinding)
    name, args = expr.value.name, _list(expr.args, names)
    if not expr.value.storage:
        return f"texelFetch({name}, {args})", POSTFIX
    swizzle = {1: ".x", 2: ".xy"}.get(component_count(expr.dtype), "")
    return f"imageLoad({name}, {args}){swizzle}", POSTFIX


def _image_size(expr: Expr, names: Names) -> tuple[str, int]:
    assert isinstance(expr.value, ImageBinding)
    if expr.value.storage:
        return f"imageSize({expr.value.name})", POSTFIX
    return f"textureSize({expr.value.name}, {full_text(expr.args[0], names)})", POSTFIX


def _raw(expr: Expr, names: Names) -> tuple[str, int]:
    assert isinstance(expr.value, RawText)
    return names.raw(expr.value.text), POSTFIX if expr.value.lexical_unit else 0


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
