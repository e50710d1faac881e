"""The executable specification of the intermediate representation."""

from collections.abc import Callable

from vkdispatch.base import dtype as dt
from vkdispatch.base.errors import ArgumentValueError, VkDispatchError
from vkdispatch.compiler import ir
from vkdispatch.compiler.analyses.contents import check_scopes, stored_to
from vkdispatch.compiler.ir import nodes as nodes
from vkdispatch.compiler.ir.location import Loc, located

_INDEX_TYPES = (dt.int32, dt.uint32)
# of buffers and loops in a widened kernel
_LONG_INDEX_TYPES = (*_INDEX_TYPES, dt.int64, dt.uint64)
_ARITHMETIC = frozenset("+-*/")
_INTEGER = frozenset(("%", "&", "|", "^", "<<", ">>"))
_ORDER = frozenset(("<", "<=", ">", ">="))
# Operands of atomics beside their target.
_ATOMICS = {
    **{f"atomic{name}": 1 for name in ("Add", "Min", "Max", "And", "Or", "Xor", "Exchange")},
    **{f"atomicStore{order}": 1 for order in ("", "Relaxed")},
    **{f"atomicLoad{order}": 0 for order in ("", "Relaxed")},
    "atomicCompSwap": 2,
}


def verify(kernel: ir.Kernel) -> None:
    """Check every node of a kernel. Raises ValueError or RuntimeError at the first illegal one."""
    check_scopes(kernel)
    _check_jumps(kernel.body, in_loop=False)
    for statement in ir.walk(kernel.body):
        _check_statement(statement)
        atomic = statement.value if isinstance(statement, ir.Declare) else None
        for expr in nodes(ir.expressions_of(statement)):
            if expr.op is ir.Op.ATOMIC:
                _need(expr is atomic, "an atomic stands only as the value of a declaration", expr.loc)
            try:
                legal = _RULES[expr.op](expr)
            except VkDispatchError:
                legal = False
            _need(legal, f"malformed {expr.op.name} of type {expr.dtype.name}", expr.loc)


def _need(legal: bool, message: str, loc: Loc | None) -> None:
    if not legal:
        raise located(ArgumentValueError, message, loc)


def _check_jumps(block: ir.Block, *, in_loop: bool) -> None:
    for statement in block:
        if isinstance(statement, (ir.Break, ir.Continue)):
            _need(in_loop, "only a loop can be left or gone on with", statement.loc)
        for inner in ir.blocks_of(statement):
            _check_jumps(inner, in_loop=in_loop or isinstance(statement, (ir.While, ir.For)))


def _check_statement(statement: ir.Statement) -> None:
    loc = statement.loc
    if isinstance(statement, ir.Declare):
        _need(statement.value.dtype is statement.register.dtype, "a register starts with its own type", loc)
    elif isinstance(statement, ir.Store):
        place, value = statement.place.dtype, statement.value.dtype
        _need(ir.is_place(statement.place), "a store needs a place", loc)
        symbol = statement.operator
        if symbol is None:
            _need(place is value, f"cannot store {value.name} in {place.name}", loc)
        else:
            encoded = ir.is_encoded(statement.place)
            _need(not encoded, "what is stored in another type cannot be updated in place", loc)
            possible = _binary_type(symbol, place, value) is place
            _need(possible, f"{place.name} {symbol}= {value.name} is not possible", loc)
    elif isinstance(statement, ir.ImageStore):
        image = statement.image
        _need(image.storage, "only storage images are stored to", loc)
        _need(_is_texel(statement.coordinate, image), "a store needs the coordinates of a texel", loc)
        _need(statement.value.dtype is image.dtype, "a texel is stored as its own type", loc)
    elif isinstance(statement, (ir.MatrixLoad, ir.MatrixStore)):
        loads = isinstance(statement, ir.MatrixLoad)
        matrix, element = (
            (statement.matrix, statement.source)
            if isinstance(statement, ir.MatrixLoad)
            else (statement.value, statement.place)
        )
        _need(dt.is_cooperative(matrix.dtype), "a cooperative matrix is loaded and stored", loc)
        _need(not loads or ir.is_place(matrix), "a register is loaded", loc)
        _need(
            element.op is ir.Op.ELEMENT and (loads or ir.is_place(element)), "a matrix lies in an array", loc
        )
        _need(statement.stride.dtype in _LONG_INDEX_TYPES, "a stride is an integer", loc)
        sizes = statement.window
        _need(len(sizes) in (0, 4), "a window has two sizes and two starts", loc)
        _need(all(size.dtype in _LONG_INDEX_TYPES for size in sizes), "a window is of integers", loc)
    elif isinstance(statement, (ir.If, ir.While)):
        conditions = ir.expressions_of(statement)
        _need(bool(conditions), "an if needs a branch", loc)
        _need(all(condition.dtype is dt.bool_ for condition in conditions), "a condition is a bool", loc)
    elif isinstance(statement, ir.For):
        kind = statement.counter.dtype
        bounds = (statement.start, statement.stop, statement.step)
        _need(kind in _LONG_INDEX_TYPES and statement.counter.counter, "a loop counts in integers", loc)
        _need(all(bound.dtype is kind for bound in bounds), "the bounds of a loop have its type", loc)
        steady = (ir.Op.LITERAL, ir.Op.ARGUMENT, ir.Op.REGISTER)
        _need(all(bound.op in steady for bound in bounds[1:]), "stop and step of a loop do not change", loc)
    elif isinstance(statement, ir.Switch):
        values = [value for case, _ in statement.cases for value in case]
        _need(statement.value.dtype in _INDEX_TYPES, "a switch takes an int32 or uint32", loc)
        _need(len(values) == len(set(values)), "the cases of a switch differ", loc)


def _literal(expr: ir.Expr) -> bool:
    kind, value = expr.dtype, expr.value
    if kind is dt.bool_:
        return isinstance(value, bool)
    if dt.is_float_dtype(kind):
        return dt.is_scalar(kind) and isinstance(value, float)
    if not dt.is_scalar(kind) or isinstance(value, bool) or not isinstance(value, int):
        return False
    bits = 8 * kind.item_size
    low = 0 if kind.name.startswith("u") else -(1 << (bits - 1))
    return low <= value < low + (1 << bits)


def _holds(expr: ir.Expr, kind: type[ir.Argument] | type[ir.Register]) -> bool:
    return isinstance(expr.value, kind) and expr.value.dtype is expr.dtype


def _element(expr: ir.Expr) -> bool:
    if not isinstance(expr.value, (ir.Storage, ir.SharedArray)) or len(expr.args) != 1:
        return False
    types = _LONG_INDEX_TYPES if isinstance(expr.value, ir.Storage) else _INDEX_TYPES
    return dt.compute_type(expr.value.dtype) is expr.dtype and expr.args[0].dtype in types


def _index(expr: ir.Expr) -> bool:
    base, position = expr.args
    return (
        not dt.is_scalar(base.dtype)
        and expr.dtype is base.dtype.child_type
        and position.dtype in _INDEX_TYPES
    )


def _component(expr: ir.Expr) -> bool:
    (base,) = expr.args
    if not (dt.is_vector(base.dtype) or dt.is_complex(base.dtype)) or not isinstance(expr.value, str):
        return False
    position = "xyzw".find(expr.value)
    return 0 <= position < base.dtype.child_count and expr.dtype is dt.component_type(base.dtype)


def _swizzle(expr: ir.Expr) -> bool:
    (base,) = expr.args
    if not dt.is_vector(base.dtype) or not isinstance(expr.value, str):
        return False
    known = all(letter in "xyzw"[: base.dtype.child_count] for letter in expr.value)
    return known and expr.dtype is dt.to_vector(dt.component_type(base.dtype), len(expr.value))


def _unary(expr: ir.Expr) -> bool:
    (operand,) = expr.args
    if operand.dtype is not expr.dtype:
        return False
    if expr.value == "!":
        return expr.dtype is dt.bool_
    if expr.value == "~":
        return dt.is_integer_dtype(expr.dtype)
    return expr.value == "-" and expr.dtype is not dt.bool_


def _binary_type(symbol: str, left: dt.DType, right: dt.DType) -> dt.DType | None:
    """Type that GLSL gives to `left symbol right`, or None if it refuses."""
    if dt.bool_ in (left, right):
        return None
    if symbol in _INTEGER and not (dt.is_integer_dtype(left) and dt.is_integer_dtype(right)):
        return None
    if symbol not in _INTEGER and symbol not in _ARITHMETIC:
        return None
    if symbol == "*" and dt.is_matrix(left) and right is left.child_type:
        return right
    if symbol == "*" and dt.is_matrix(right) and left is right.child_type:
        return left
    if left is right:
        # two complex numbers multiply by their own rule, which is written out in components
        return None if dt.is_complex(left) and symbol in "*/" else left
    if dt.is_cooperative(left) or dt.is_cooperative(right):
        return left if symbol == "*" and dt.component_type(left) is right else None
    if dt.is_scalar(right) and dt.component_type(left) is right:
        return None if dt.is_complex(left) and symbol in "+-" else left
    if dt.is_scalar(left) and dt.component_type(right) is left and symbol not in ("<<", ">>"):
        return None if dt.is_complex(right) and symbol != "*" else right
    return None


def _binary(expr: ir.Expr) -> bool:
    left, right = expr.args
    return isinstance(expr.value, str) and _binary_type(expr.value, left.dtype, right.dtype) is expr.dtype


def _compare(expr: ir.Expr) -> bool:
    left, right = expr.args
    if left.dtype is not right.dtype or expr.dtype is not dt.bool_:
        return False
    ordered = dt.is_scalar(left.dtype) and left.dtype is not dt.bool_
    return expr.value in ("==", "!=") or (expr.value in _ORDER and ordered)


def _logical(expr: ir.Expr) -> bool:
    if expr.value not in ("&&", "||") or len(expr.args) < 2:
        return False
    return all(arg.dtype is dt.bool_ for arg in (*expr.args, expr))


def _select(expr: ir.Expr) -> bool:
    condition, chosen, other = expr.args
    return condition.dtype is dt.bool_ and chosen.dtype is other.dtype is expr.dtype


def _length(expr: ir.Expr) -> bool:
    if isinstance(expr.value, ir.Register):
        return dt.is_cooperative(expr.value.dtype) and not expr.args and expr.dtype is dt.uint32
    long = isinstance(expr.value, ir.Storage) and expr.dtype is dt.uint64
    return (
        isinstance(expr.value, (ir.Storage, ir.SharedArray))
        and not expr.args
        and (long or expr.dtype is dt.uint32)
    )


def _atomic(expr: ir.Expr) -> bool:
    place, *operands = expr.args
    known = len(operands) == _ATOMICS.get(str(expr.value))
    alike = all(operand.dtype is expr.dtype for operand in operands)
    return known and alike and stored_to(place) and dt.is_scalar(expr.dtype) and place.dtype is expr.dtype


def _construct(expr: ir.Expr) -> bool:
    kind, args = expr.dtype, expr.args
    if dt.is_array(kind):
        return not args or [arg.dtype for arg in args] == [kind.child_type] * kind.child_count
    given = sum(dt.component_count(arg.dtype) for arg in args)
    wanted = dt.component_count(kind)
    if len(args) == 1 and not dt.is_complex(kind):
        alike = dt.is_matrix(kind) and dt.is_matrix(args[0].dtype)
        return given == 1 or alike or (given >= wanted and not dt.is_matrix(args[0].dtype))
    return (
        given == wanted and bool(args) and (dt.is_matrix(kind) or dt.is_vector(kind) or dt.is_complex(kind))
    )


def _sample(expr: ir.Expr) -> bool:
    coordinate, level = expr.args
    image = expr.value
    if not isinstance(image, ir.ImageBinding) or image.storage or level.dtype is not dt.float32:
        return False
    return expr.dtype is image.texel and coordinate.dtype is dt.to_vector(dt.float32, image.coordinates)


def _is_texel(coordinate: ir.Expr, image: ir.ImageBinding) -> bool:
    return coordinate.dtype is dt.to_vector(dt.int32, image.coordinates)


def _image_load(expr: ir.Expr) -> bool:
    coordinate, *level = expr.args
    image = expr.value
    if not isinstance(image, ir.ImageBinding) or len(level) != (0 if image.storage else 1):
        return False
    return (
        expr.dtype is image.texel and _is_texel(coordinate, image) and all(e.dtype is dt.int32 for e in level)
    )


def _image_size(expr: ir.Expr) -> bool:
    image = expr.value
    if not isinstance(image, ir.ImageBinding) or len(expr.args) != (0 if image.storage else 1):
        return False
    return expr.dtype is dt.to_vector(dt.int32, image.coordinates) and all(
        e.dtype is dt.int32 for e in expr.args
    )


_RULES: dict[ir.Op, Callable[[ir.Expr], bool]] = {
    ir.Op.LITERAL: _literal,
    ir.Op.ARGUMENT: lambda expr: _holds(expr, ir.Argument),
    ir.Op.BUILTIN: lambda expr: (
        isinstance(expr.value, ir.Builtin) and expr.dtype in (dt.uint32, dt.uvec3, dt.uvec4)
    ),
    ir.Op.REGISTER: lambda expr: _holds(expr, ir.Register),
    ir.Op.ELEMENT: _element,
    ir.Op.INDEX: _index,
    ir.Op.COMPONENT: _component,
    ir.Op.SWIZZLE: _swizzle,
    ir.Op.UNARY: _unary,
    ir.Op.BINARY: _binary,
    ir.Op.COMPARE: _compare,
    ir.Op.LOGICAL: _logical,
    ir.Op.SELECT: _select,
    ir.Op.LENGTH: _length,
    **dict.fromkeys(
        (ir.Op.CALL, ir.Op.SUBGROUP), lambda expr: isinstance(expr.value, str) and expr.value.isidentifier()
    ),
    ir.Op.ATOMIC: _atomic,
    ir.Op.CONSTRUCT: _construct,
    ir.Op.SAMPLE: _sample,
    ir.Op.IMAGE_LOAD: _image_load,
    ir.Op.IMAGE_SIZE: _image_size,
    ir.Op.RAW: lambda expr: isinstance(expr.value, ir.RawText),
}
