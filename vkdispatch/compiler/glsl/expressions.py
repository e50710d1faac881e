"""Expressions as GLSL text: how each operation, literal and built-in value is written."""

from collections.abc import Callable

from vkdispatch.base import dtype as dt
from vkdispatch.base.derived_dtypes import strides_along
from vkdispatch.compiler import ir
from vkdispatch.compiler.forms import emulates
from vkdispatch.compiler.glsl import emulation as emulation
from vkdispatch.compiler.glsl import spelling
from vkdispatch.compiler.glsl.emulation import goes_by_lanes, write_by_lanes
from vkdispatch.compiler.glsl.helpers import narrows_float
from vkdispatch.compiler.glsl.packing import Names
from vkdispatch.compiler.ir.literals import is_long
from vkdispatch.compiler.ir.program import HALF_OF_DOUBLE, HALF_OF_FLOAT


def expression_text(expr: ir.Expr) -> str:
    """Write one expression, with the names of an unfolded kernel that takes push constants."""
    return write_expression(expr, Names())[0]


def write_expression(expr: ir.Expr, names: Names) -> tuple[str, int]:
    """Text of an expression and how strongly it holds together."""
    if names.of_number:
        name = names.name_of(expr)
        if name is not None:
            return name, spelling.POSTFIX
    return value_text(expr, names)


def value_text(expr: ir.Expr, names: Names) -> tuple[str, int]:
    """Text of an expression that has no name, and how strongly it holds together."""
    if names.lacks:
        if expr.op is ir.Op.SUBGROUP and goes_by_lanes(expr, names.lacks):
            return write_by_lanes(
                expr, [full_text(arg, names) for arg in expr.args], names.lacks
            ), spelling.POSTFIX
        kinds = (expr.dtype, *(arg.dtype for arg in expr.args))
        if any(emulates(kind, names.lacks) for kind in kinds):
            text = _write_emulated(expr, names)
            if text is not None:
                return text, spelling.PREFIX if text[0] in "-!~" else spelling.POSTFIX
    return WRITERS[expr.op](expr, names)


def _write_emulated(expr: ir.Expr, names: Names) -> str | None:
    """Write an expression of types that the device lacks; None: as any other."""
    op, kind = expr.op, expr.dtype
    if op is ir.Op.LITERAL:
        assert isinstance(expr.value, (int, float))
        return emulation.emulated_literal(expr.value, kind, spelling.literal_text)
    if op is ir.Op.BINARY:
        left, right = (_operand(arg, names, spelling.PREFIX) for arg in expr.args)
        return emulation.write_operation(str(expr.value), kind, left, right)
    if op is ir.Op.COMPARE and is_long(expr.args[0].dtype):
        left, right = (_operand(arg, names, spelling.PREFIX) for arg in expr.args)
        return emulation.write_comparison(str(expr.value), expr.args[0].dtype, left, right)
    if op is ir.Op.UNARY:
        text = _operand(expr.args[0], names, spelling.POSTFIX)
        if is_long(kind):
            return f"~{text}" if expr.value == "~" else f"long_negate({text})"
        return emulation.back(f"{expr.value}{text}", kind)
    if op not in (ir.Op.CALL, ir.Op.SUBGROUP, ir.Op.CONSTRUCT):
        return None
    write = emulation.write_construction if op is ir.Op.CONSTRUCT else emulation.write_call
    texts = [full_text(arg, names) for arg in expr.args]
    text = write(expr, texts, names.lacks)
    # what keeps its words holds together as its argument does
    return _operand(expr.args[0], names, spelling.PREFIX) if texts and text is texts[0] else text


def full_text(expr: ir.Expr, names: Names) -> str:
    """Write an expression that stands alone."""
    return write_expression(expr, names)[0]


def _operand(expr: ir.Expr, names: Names, strength: int) -> str:
    """Text of an operand, in parentheses if it holds together less than `strength`."""
    text, binding = write_expression(expr, names)
    return text if binding >= strength else f"({text})"


def _list(args: tuple[ir.Expr, ...], names: Names) -> str:
    return ", ".join(full_text(arg, names) for arg in args)


def _literal(expr: ir.Expr, names: Names) -> tuple[str, int]:
    assert isinstance(expr.value, (int, float))
    text = spelling.literal_text(expr.value, expr.dtype)
    return text, spelling.PREFIX if text.startswith("-") else spelling.POSTFIX


def _argument(expr: ir.Expr, names: Names) -> tuple[str, int]:
    assert isinstance(expr.value, ir.Argument)
    if expr.value.name in names.halves:
        return _write_packed_argument(expr.value, names), spelling.POSTFIX
    return f"{names.block}.{expr.value.name}", spelling.POSTFIX


def _write_packed_argument(argument: ir.Argument, names: Names) -> str:
    """Write an argument of 16 bits, or a vector of such, whose words hold several."""
    scalar, start = dt.component_type(argument.dtype), names.halves[argument.name]
    parts = []
    for place in range(start, start + dt.component_count(argument.dtype)):
        word = f"bitfieldExtract({names.block}.{spelling.HALVES}[{place // 2}], {16 * (place % 2)}, 16)"
        parts.append(names.packing.value(scalar, word))
    return parts[0] if len(parts) == 1 else f"{argument.dtype.glsl_type}({', '.join(parts)})"


def _builtin(expr: ir.Expr, names: Names) -> tuple[str, int]:
    assert isinstance(expr.value, ir.Builtin)
    return names.builtins[expr.value], spelling.POSTFIX


def _register(expr: ir.Expr, names: Names) -> tuple[str, int]:
    assert isinstance(expr.value, ir.Register)
    return expr.value.name, spelling.POSTFIX


def _element(expr: ir.Expr, names: Names) -> tuple[str, int]:
    packed = find_packed_place(expr, names)
    if packed is not None:
        return names.packing.load(*packed), spelling.POSTFIX
    text = _item_text(expr, names)
    kind = stored_as(expr)
    return (text if kind is None else spelling.STORED[kind].load.format(text)), spelling.POSTFIX


def element_place(expr: ir.Expr, names: Names, indices: tuple[ir.Expr, ...] = ()) -> str:
    """Write where an element lies, without reading it, or an item of the array that the element is."""
    assert isinstance(expr.value, (ir.Storage, ir.SharedArray))
    within = [full_text(index, names) for index in indices]
    if isinstance(expr.value, ir.Storage) and expr.value.index in names.addresses:
        # NVIDIA's compiler (580.159) takes remainders of 64-bit values by 2 for 1 here, but not their minimum
        within = [
            text if index.op is ir.Op.LITERAL else f"min({text}, {index.dtype.glsl_type}({count - 1}))"
            for text, index, count in zip(within, indices, dt.array_shape(expr.dtype), strict=False)
        ]
        return _write_addressed_place(expr.value, expr.args[0], names) + spelling.field_text(
            expr.value, within
        )
    if isinstance(expr.value, ir.SharedArray):
        return f"{expr.value.name}[{full_text(expr.args[0], names)}]" + "".join(f"[{i}]" for i in within)
    return (
        f"{expr.value.name}.data[{_index_text(expr.args[0], names)}]{spelling.field_text(expr.value, within)}"
    )


def _item_text(place: ir.Expr, names: Names) -> str:
    element, indices = ir.split_array_indices(place)
    return element_place(element, names, indices)


def stored_as(place: ir.Expr) -> dt.DType | None:
    """Return the type that a place of a buffer holds, if `STORED` has it; None for other places."""
    element, _ = ir.split_array_indices(place)
    if element.op is not ir.Op.ELEMENT or not isinstance(element.value, ir.Storage):
        return None
    kind = dt.item_of(element.value.dtype)
    return kind if kind in spelling.STORED else None


def _index_text(index: ir.Expr, names: Names) -> str:
    text = full_text(index, names)
    return f"({text}).x" if names.lacks and emulates(index.dtype, names.lacks) else text


def find_packed_place(place: ir.Expr, names: Names) -> tuple[ir.Storage, dt.DType, dt.DType, str] | None:
    """Return where a place lies that is, or is part of, an element packed in words; None for any other.

    Its buffer, the type that lies there and the one that kernels compute with, and the place in bytes.
    """
    if place.op is ir.Op.ELEMENT:
        storage = place.value
        if not isinstance(storage, ir.Storage) or storage.index not in names.packing.words:
            return None
        at = names.packing.at(storage, _index_text(place.args[0], names), place.args[0].dtype)
        return storage, storage.dtype, place.dtype, at
    if place.op not in (ir.Op.COMPONENT, ir.Op.INDEX):
        return None
    if dt.is_array(place.args[0].dtype):
        return _find_packed_item(place, names)
    whole = find_packed_place(place.args[0], names)
    if whole is None:
        return None
    storage, kind, _, at = whole
    part = dt.component_type(kind) if kind.child_type is None else kind.child_type
    if place.op is ir.Op.COMPONENT:
        offset = str("xyzw".index(str(place.value)) * part.item_size)
    else:
        offset = f"{_operand(place.args[1], names, spelling.PRODUCT)} * {part.item_size}"
    return storage, part, place.dtype, names.packing.beyond(at, offset)


def _find_packed_item(place: ir.Expr, names: Names) -> tuple[ir.Storage, dt.DType, dt.DType, str] | None:
    """Return where an item of an array lies that is a field of an element packed in words."""
    element, indices = ir.split_array_indices(place)
    packed = find_packed_place(element, names)
    if packed is None:
        return None
    storage, kind, _, at = packed
    assert storage.whole is not None
    for index, stride in zip(indices, strides_along(storage.whole.dtype, storage.path), strict=True):
        at = names.packing.beyond(at, f"{_operand(index, names, spelling.PRODUCT)} * {stride}")
    return storage, dt.item_of(kind), place.dtype, at


def place_text(place: ir.Expr, names: Names) -> str:
    """Write what is stored to: never a name, which stands for the value that was read there."""
    if ir.is_item_in_memory(place):
        return _item_text(place, names)
    if place.op is ir.Op.COMPONENT:
        return f"{place_text(place.args[0], names)}.{place.value}"
    if place.op is ir.Op.INDEX:
        return f"{place_text(place.args[0], names)}[{full_text(place.args[1], names)}]"
    if place.op is ir.Op.ELEMENT:
        return element_place(place, names)
    return WRITERS[place.op](place, names)[0]


def array_text(element: ir.Expr, names: Names) -> tuple[str, str]:
    """Write the array that an element lies in, and the index of the element."""
    array, index = element.value, element.args[0]
    assert isinstance(array, (ir.Storage, ir.SharedArray))
    if isinstance(array, ir.SharedArray):
        return array.name, full_text(index, names)
    if array.index in names.addresses:
        return element_place(element, names).removesuffix("[0]"), "0u"
    return f"{array.name}.data", f"uint({full_text(index, names)})"


def _write_addressed_place(buffer: ir.Storage, index: ir.Expr, names: Names) -> str:
    """Write where an element of a buffer lies that is reached by its address."""
    address = f"{names.block}.{names.addresses[buffer.index]}"
    size = buffer.element_size
    if index.op is ir.Op.LITERAL and isinstance(index.value, int):
        offset = f"{index.value * size}ul"
    else:
        # Offsets have 64 bits, as 2^32 bytes are passed soon; GLSL's own indexing is only sure of 31.
        text = full_text(index, names)
        if index.dtype is dt.uint64:
            text = _operand(index, names, spelling.PRODUCT)
        elif index.dtype is dt.int32:
            text = f"uint64_t(int64_t({text}))"
        else:
            text = f"uint64_t({text})"
        offset = f"{text} * {size}ul" if size > 1 else text
    return f"{spelling.reference_name(buffer)}({address} + {offset}).data[0]"


def _index(expr: ir.Expr, names: Names) -> tuple[str, int]:
    if ir.is_item_in_memory(expr):
        return _element(expr, names)
    base, position = expr.args
    return f"{_operand(base, names, spelling.POSTFIX)}[{full_text(position, names)}]", spelling.POSTFIX


def _component(expr: ir.Expr, names: Names) -> tuple[str, int]:
    return f"{_operand(expr.args[0], names, spelling.POSTFIX)}.{expr.value}", spelling.POSTFIX


def _unary(expr: ir.Expr, names: Names) -> tuple[str, int]:
    text, strength = write_expression(expr.args[0], names)
    # "--x" would be a decrement
    safe = strength >= spelling.PREFIX and not (expr.value == "-" and text.startswith("-"))
    return f"{expr.value}{text}" if safe else f"{expr.value}({text})", spelling.PREFIX


def _binary(expr: ir.Expr, names: Names) -> tuple[str, int]:
    symbol = str(expr.value)
    strength = spelling.STRENGTH[symbol]
    left, right = expr.args
    left_text = _write_mixed(left, names, symbol, strength)
    text = f"{left_text} {symbol} {_write_mixed(right, names, symbol, strength + 1)}"
    zero = unknown_zero(symbol, left, right, names)
    return (text, strength) if zero is None else (f"({text}) ^ {zero}", spelling.BIT_XOR)


def unknown_zero(symbol: str, left: ir.Expr, right: ir.Expr, names: Names) -> str | None:
    """Write a zero that a quotient has to be xor-ed with where buffers are reached by address, or None.

    NVIDIA's compiler (580.159) takes the addresses that (e + 256) / 12 and e / 12 lead to for a constant
    apart. So none may know the quotient: bit 63 of a device address is 0, but compilers cannot tell.
    """
    kind = left.dtype
    if symbol not in ("/", "%") or not is_long(kind) or not names.addresses:
        return None
    if right.op is ir.Op.LITERAL and isinstance(right.value, int):
        power_of_two = right.value > 0 and right.value & (right.value - 1) == 0
        if power_of_two or left.op is ir.Op.LITERAL:
            return None
    zero = f"{names.block}.{next(iter(names.addresses.values()))} >> 63ul"
    return f"({zero})" if kind is dt.uint64 else f"int64_t({zero})"


def update_text(place: str, symbol: str, left: ir.Expr, right: ir.Expr, names: Names) -> str:
    """Write the statement that combines what lies in a place with a value, and leaves the result there."""
    zero = unknown_zero(symbol, left, right, names)
    if zero is None:
        return f"{place} {symbol}= {full_text(right, names)}"
    return f"{place} = ({place} {symbol} {_operand(right, names, spelling.PREFIX)}) ^ {zero}"


def _write_mixed(expr: ir.Expr, names: Names, symbol: str, strength: int) -> str:
    text, binding = write_expression(expr, names)
    compound = binding < spelling.PREFIX
    other = expr.op is ir.Op.BINARY and expr.value != symbol
    unfamiliar = symbol in spelling.UNFAMILIAR or (
        expr.op is ir.Op.BINARY and expr.value in spelling.UNFAMILIAR
    )
    return f"({text})" if binding < strength or (compound and other and unfamiliar) else text


def _logical(expr: ir.Expr, names: Names) -> tuple[str, int]:
    strength = spelling.STRENGTH[str(expr.value)]
    parts = []
    for arg in expr.args:
        text, binding = write_expression(arg, names)
        nested = binding <= spelling.AND
        parts.append(f"({text})" if nested else text)
    return f" {expr.value} ".join(parts), strength


def _call(expr: ir.Expr, names: Names) -> tuple[str, int]:
    return f"{expr.value}({_list(expr.args, names)})", spelling.POSTFIX


def _atomic(expr: ir.Expr, names: Names) -> tuple[str, int]:
    place, *operands = expr.args
    texts = [place_text(place, names), *(full_text(operand, names) for operand in operands)]
    function = str(expr.value)
    if function.startswith(("atomicLoad", "atomicStore")):
        texts += _order(function, shared=isinstance(ir.root_of(place).value, ir.SharedArray))
        function = function.removesuffix("Relaxed")
    return f"{function}({', '.join(texts)})", spelling.POSTFIX


def _order(function: str, *, shared: bool) -> tuple[str, str, str]:
    """Return who sees an atomic load or store, and what else it orders."""
    scope = "gl_ScopeWorkgroup" if shared else "gl_ScopeDevice"
    if function.endswith("Relaxed"):
        return scope, "gl_StorageSemanticsNone", "gl_SemanticsRelaxed"
    semantics = "gl_SemanticsAcquire" if function == "atomicLoad" else "gl_SemanticsRelease"
    return scope, "gl_StorageSemanticsShared" if shared else "gl_StorageSemanticsBuffer", semantics


def _select(expr: ir.Expr, names: Names) -> tuple[str, int]:
    condition, chosen, other = (_operand(arg, names, spelling.OR) for arg in expr.args)
    return f"{condition} ? {chosen} : {other}", spelling.CHOICE


def _length(expr: ir.Expr, names: Names) -> tuple[str, int]:
    if isinstance(expr.value, ir.SharedArray):
        return spelling.literal_text(
            names.shared.get(id(expr.value), expr.value.size or 0), dt.uint32
        ), spelling.POSTFIX
    kind = expr.dtype.glsl_type
    if isinstance(expr.value, ir.Register):
        return f"{kind}({expr.value.name}.length())", spelling.POSTFIX
    assert isinstance(expr.value, ir.Storage)
    if expr.value.index in names.packing.words:
        size = f"{names.block}.{names.lengths[expr.value.index]}"
        low = size if expr.value.index in names.addresses else f"{size}.x"
        return f"{kind}({low} / {expr.value.element_size})", spelling.POSTFIX
    if expr.value.index in names.lengths:
        size = f"{names.block}.{names.lengths[expr.value.index]} / {expr.value.element_size}ul"
        return f"{kind}({size})", spelling.POSTFIX
    return f"{kind}({expr.value.name}.data.length())", spelling.POSTFIX


def _construct(expr: ir.Expr, names: Names) -> tuple[str, int]:
    if dt.is_array(expr.dtype) and not expr.args:
        return "{}", spelling.POSTFIX  # all zero
    if expr.dtype is dt.int64 and expr.args[0].dtype is dt.int32:
        # int64_t(x) says the same; llvmpipe of Mesa 22.3 compares that with constants wrongly
        text = full_text(expr.args[0], names)
        return f"int64_t(uint({text}) ^ 2147483648u) - 2147483648l", spelling.SUM
    texts = [_part_text(arg, dt.component_type(expr.dtype), names) for arg in expr.args]
    return f"{expr.dtype.glsl_type}({', '.join(texts)})", spelling.POSTFIX


def _part_text(arg: ir.Expr, kind: dt.DType, names: Names) -> str:
    """Write a part of a value whose components have a type; what is float64 becomes it by rounding once."""
    text = full_text(arg, names)
    if kind is dt.float16 and names.rounds_halves and narrows_float(arg):
        return f"{HALF_OF_FLOAT}({text})"
    if dt.component_type(arg.dtype) is not dt.float64 or dt.is_matrix(arg.dtype):
        return text
    if kind is dt.float16:
        return f"{HALF_OF_DOUBLE}({text})"
    if kind is dt.float32 and names.rounds_integers:
        # llvmpipe takes float(double(i)) for float(i), but not with signs between
        return f"-{dt.to_vector(kind, dt.component_count(arg.dtype)).glsl_type}(-({text}))"
    return text


def _sample(expr: ir.Expr, names: Names) -> tuple[str, int]:
    assert isinstance(expr.value, ir.ImageBinding)
    coordinate, level = expr.args
    texture, kind = expr.value.name, coordinate.dtype.glsl_type
    # Layers are counted, not measured: theirs is the only coordinate that is not divided.
    half = "vec3(0.5f, 0.5f, 0.0f)" if expr.value.arrayed else "0.5f"
    size = f"textureSize({texture}, 0)"
    extent = f"vec3({size}.xy, 1)" if expr.value.arrayed else f"{kind}({size})"
    position = f"({_operand(coordinate, names, spelling.SUM)} + {half}) / {extent}"
    return f"textureLod({texture}, {position}, {full_text(level, names)})", spelling.POSTFIX


def _image_load(expr: ir.Expr, names: Names) -> tuple[str, int]:
    assert isinstance(expr.value, ir.ImageBinding)
    name, args = expr.value.name, _list(expr.args, names)
    if not expr.value.storage:
        return f"texelFetch({name}, {args})", spelling.POSTFIX
    swizzle = {1: ".x", 2: ".xy"}.get(dt.component_count(expr.dtype), "")
    return f"imageLoad({name}, {args}){swizzle}", spelling.POSTFIX


def _image_size(expr: ir.Expr, names: Names) -> tuple[str, int]:
    assert isinstance(expr.value, ir.ImageBinding)
    if expr.value.storage:
        return f"imageSize({expr.value.name})", spelling.POSTFIX
    return f"textureSize({expr.value.name}, {full_text(expr.args[0], names)})", spelling.POSTFIX


def _raw(expr: ir.Expr, names: Names) -> tuple[str, int]:
    assert isinstance(expr.value, ir.RawText)
    return names.raw(expr.value.text), spelling.POSTFIX if expr.value.lexical_unit else 0


WRITERS: dict[ir.Op, Callable[[ir.Expr, Names], tuple[str, int]]] = {
    ir.Op.LITERAL: _literal,
    ir.Op.ARGUMENT: _argument,
    ir.Op.BUILTIN: _builtin,
    ir.Op.REGISTER: _register,
    ir.Op.ELEMENT: _element,
    ir.Op.INDEX: _index,
    ir.Op.COMPONENT: _component,
    ir.Op.SWIZZLE: _component,
    ir.Op.UNARY: _unary,
    ir.Op.BINARY: _binary,
    ir.Op.COMPARE: _binary,
    ir.Op.LOGICAL: _logical,
    ir.Op.CALL: _call,
    ir.Op.SUBGROUP: _call,
    ir.Op.SELECT: _select,
    ir.Op.LENGTH: _length,
    ir.Op.ATOMIC: _atomic,
    ir.Op.CONSTRUCT: _construct,
    ir.Op.SAMPLE: _sample,
    ir.Op.IMAGE_LOAD: _image_load,
    ir.Op.IMAGE_SIZE: _image_size,
    ir.Op.RAW: _raw,
}
