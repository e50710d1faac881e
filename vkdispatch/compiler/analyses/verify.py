"""The executable specification of the intermediate representation."""

from collections.abc import Callable

from vkdispatch.base.dtype import (
    DType,
    bool_,
    component_count,
    component_type,
    compute_type,
    float32,
    int32,
    int64,
    is_array,
    is_complex,
    is_cooperative,
    is_float_dtype,
    is_integer_dtype,
    is_matrix,
    is_scalar,
    is_vector,
    to_vector,
    uint32,
    uint64,
    uvec3,
    uvec4,
)
from vkdispatch.base.errors import ArgumentValueError, VkDispatchError
from vkdispatch.compiler.analyses.contents import check_scopes, stored_to
from vkdispatch.compiler.ir import (
    Argument,
    Block,
    Break,
    Builtin,
    Continue,
    Declare,
    Expr,
    For,
    If,
    ImageBinding,
    ImageStore,
    Kernel,
    MatrixLoad,
    MatrixStore,
    Op,
    RawText,
    Register,
    SharedArray,
    Statement,
    Storage,
    Store,
    Switch,
    While,
    blocks_of,
    expressions_of,
    is_encoded,
    is_place,
    walk,
)
from vkdispatch.compiler.ir import nodes as nodes
from vkdispatch.compiler.ir.location import Loc, located

_INDEX_TYPES = (int32, uint32)
# of buffers and loops in a widened kernel
_LONG_INDEX_TYPES = (*_INDEX_TYPES, int64, uint64)
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


def verify(kernel: Kernel) -> None:
    """Check every node of a kernel. Raises ValueError or RuntimeError at the first illegal one."""
    check_scopes(kernel)
    _check_jumps(kernel.body, in_loop=False)
    for statement in walk(kernel.body):
        _check_statement(statement)
        atomic = statement.value if isinstance(statement, Declare) else None
        for expr in nodes(expressions_of(statement)):
            if expr.op is Op.ATOMIC:
                _need(expr is atomic, "an atomic stands only as the value of a declaration", expr.loc)
            try:
                legal = _RULES[expr.op](expr)
            except VkDispatchError:
                legal = False
            _need(legal, f"malformed {expr.op.name} of type {expr.dtype.name}", expr.loc)


def _need(legal: bool, message: str, loc: Loc | None) -> None:
    if not legal:
        raise located(ArgumentValueError, message, loc)


def _check_jumps(block: Block, *, in_loop: bool) -> None:
    for statement in block:
        if isinstance(statement, (Break, Continue)):
            _need(in_loop, "only a loop can be left or gone on with", statement.loc)
        for inner in blocks_of(statement):
            _check_jumps(inner, in_loop=in_loop or isinstance(statement, (While, For)))


def _check_statement(statement: Statement) -> None:
    loc = statement.loc
    if isinstance(statement, Declare):
        _need(statement.value.dtype is statement.register.dtype, "a register starts with its own type", loc)
    elif isinstance(statement, Store):
        place, value = statement.place.dtype, statement.value.dtype
        _need(is_place(statement.place), "a store needs a place", loc)
        _need(
            statement.operator is None or not is_encoded(statement.place),
            "what is stored in another type cannot be updated in place",
            loc,
        )
        if statement.operator is None:
            _need(place is value, f"cannot store {value.name} in {place.name}", loc)
        else:
            _need(
                _binary_type(statement.operator, place, value) is place,
                f"{place.name} {statement.operator}= {value.name} is not possible",
                loc,
            )
    elif isinstance(statement, ImageStore):
        image = statement.image
        _need(image.storage, "only storage images are stored to", loc)
        _need(_is_texel(statement.coordinate, image), "a store needs the coordinates of a texel", loc)
        _need(statement.value.dtype is image.dtype, "a texel is stored as its own type", loc)
    elif isinstance(statement, (MatrixLoad, MatrixStore)):
        loads = isinstance(statement, MatrixLoad)
        matrix, element = (
            (statement.matrix, statement.source)
            if isinstance(statement, MatrixLoad)
            else (statement.value, statement.place)
        )
        _need(is_cooperative(matrix.dtype), "a cooperative matrix is loaded and stored", loc)
        _need(not loads or is_place(matrix), "a register is loaded", loc)
        _need(element.op is Op.ELEMENT and (loads or is_place(element)), "a matrix lies in an array", loc)
        _need(statement.stride.dtype in _LONG_INDEX_TYPES, "a stride is an integer", loc)
        sizes = statement.window
        _need(len(sizes) in (0, 4), "a window has two sizes and two starts", loc)
        _need(all(size.dtype in _LONG_INDEX_TYPES for size in sizes), "a window is of integers", loc)
    elif isinstance(statement, If):
        _need(bool(statement.branches), "an if needs a branch", loc)
        _need(
            all(condition.dtype is bool_ for condition, _ in statement.branches), "a condition is a bool", loc
        )
    elif isinstance(statement, While):
        _need(statement.condition.dtype is bool_, "a condition is a bool", loc)
    elif isinstance(statement, For):
        kind = statement.counter.dtype
        bounds = (statement.start, statement.stop, statement.step)
        _need(kind in _LONG_INDEX_TYPES and statement.counter.counter, "a loop counts in integers", loc)
        _need(all(bound.dtype is kind for bound in bounds), "the bounds of a loop have its type", loc)
        steady = (Op.LITERAL, Op.ARGUMENT, Op.REGISTER)
        _need(all(bound.op in steady for bound in bounds[1:]), "stop and step of a loop do not change", loc)
    elif isinstance(statement, Switch):
        values = [value for case, _ in statement.cases for value in case]
        _need(statement.value.dtype in _INDEX_TYPES, "a switch takes an int32 or uint32", loc)
        _need(len(values) == len(set(values)), "the cases of a switch differ", loc)
    if isinstance(statement, Store) and isinstance(statement.place.value, Register):
        _need(is_place(statement.place), "the counter of a loop is not assigned to", loc)


def _literal(expr: Expr) -> bool:
    kind, value = expr.dtype, expr.value
    if kind is bool_:
        return isinstance(value, bool)
    if is_float_dtype(kind):
        return is_scalar(kind) and isinstance(value, float)
    if not is_scalar(kind) or isinstance(value, bool) or not isinstance(value, int):
        return False
    bits = 8 * kind.item_size
    low = 0 if kind.name.startswith("u") else -(1 << (bits - 1))
    return low <= value < low + (1 << bits)


def _argument(expr: Expr) -> bool:
    return isinstance(expr.value, Argument) and expr.value.dtype is expr.dtype


def _builtin(expr: Expr) -> bool:
    return isinstance(expr.value, Builtin) and expr.dtype in (uint32, uvec3, uvec4)


def _register(expr: Expr) -> bool:
    return isinstance(expr.value, Register) and expr.value.dtype is expr.dtype


def _element(expr: Expr) -> bool:
    if not isinstance(expr.value, (Storage, SharedArray)) or len(expr.args) != 1:
        return False
    types = _LONG_INDEX_TYPES if isinstance(expr.value, Storage) else _INDEX_TYPES
    return compute_type(expr.value.dtype) is expr.dtype and expr.args[0].dtype in types


def _index(expr: Expr) -> bool:
    base, position = expr.args
    return (
        not is_scalar(base.dtype) and expr.dtype is base.dtype.child_type and position.dtype in _INDEX_TYPES
    )


def _component(expr: Expr) -> bool:
    (base,) = expr.args
    if not (is_vector(base.dtype) or is_complex(base.dtype)) or not isinstance(expr.value, str):
        return False
    position = "xyzw".find(expr.value)
    return 0 <= position < base.dtype.child_count and expr.dtype is component_type(base.dtype)


def _swizzle(expr: Expr) -> bool:
    (base,) = expr.args
    if not is_vector(base.dtype) or not isinstance(expr.value, str):
        return False
    known = all(letter in "xyzw"[: base.dtype.child_count] for letter in expr.value)
    return known and expr.dtype is to_vector(component_type(base.dtype), len(expr.value))


def _unary(expr: Expr) -> bool:
    (operand,) = expr.args
    if operand.dtype is not expr.dtype:
        return False
    if expr.value == "!":
        return expr.dtype is bool_
    if expr.value == "~":
        return is_integer_dtype(expr.dtype)
    return expr.value == "-" and expr.dtype is not bool_


def _binary_type(symbol: str, left: DType, right: DType) -> DType | None:
    """Type that GLSL gives to `left symbol right`, or None if it refuses."""
    if bool_ in (left, right):
        return None
    if symbol in _INTEGER and not (is_integer_dtype(left) and is_integer_dtype(right)):
        return None
    if symbol not in _INTEGER and symbol not in _ARITHMETIC:
        return None
    if symbol == "*" and is_matrix(left) and right is left.child_type:
        return right
    if symbol == "*" and is_matrix(right) and left is right.child_type:
        return left
    if left is right:
        # two complex numbers multiply by their own rule, which is written out in components
        return None if is_complex(left) and symbol in "*/" else left
    if is_cooperative(left) or is_cooperative(right):
        return left if symbol == "*" and component_type(left) is right else None
    if is_scalar(right) and component_type(left) is right:
        return None if is_complex(left) and symbol in "+-" else left
    if is_scalar(left) and component_type(right) is left and symbol not in ("<<", ">>"):
        return None if is_complex(right) and symbol != "*" else right
    return None


def _binary(expr: Expr) -> bool:
    left, right = expr.args
    return isinstance(expr.value, str) and _binary_type(expr.value, left.dtype, right.dtype) is expr.dtype


def _compare(expr: Expr) -> bool:
    left, right = expr.args
    if left.dtype is not right.dtype or expr.dtype is not bool_:
        return False
    ordered = is_scalar(left.dtype) and left.dtype is not bool_
    return expr.value in ("==", "!=") or (expr.value in _ORDER and ordered)


def _logical(expr: Expr) -> bool:
    if expr.value not in ("&&", "||") or len(expr.args) < 2:
        return False
    return all(arg.dtype is bool_ for arg in (*expr.args, expr))


def _call(expr: Expr) -> bool:
    return isinstance(expr.value, str) and expr.value.isidentifier()


def _select(expr: Expr) -> bool:
    condition, chosen, other = expr.args
    return condition.dtype is bool_ and chosen.dtype is other.dtype is expr.dtype


def _length(expr: Expr) -> bool:
    if isinstance(expr.value, Register):
        return is_cooperative(expr.value.dtype) and not expr.args and expr.dtype is uint32
    long = isinstance(expr.value, Storage) and expr.dtype is uint64
    return isinstance(expr.value, (Storage, SharedArray)) and not expr.args and (long or expr.dtype is uint32)


def _atomic(expr: Expr) -> bool:
    place, *operands = expr.args
    known = len(operands) == _ATOMICS.get(str(expr.value))
    alike = all(operand.dtype is expr.dtype for operand in operands)
    return known and alike and stored_to(place) and is_scalar(expr.dtype) and place.dtype is expr.dtype


def _construct(expr: Expr) -> bool:
    kind, args = expr.dtype, expr.args
    if is_array(kind):
        return not args or [arg.dtype for arg in args] == [kind.child_type] * kind.child_count
    given = sum(component_count(arg.dtype) for arg in args)
    wanted = component_count(kind)
    if len(args) == 1 and not is_complex(kind):
        alike = is_matrix(kind) and is_matrix(args[0].dtype)
        return given == 1 or alike or (given >= wanted and not is_matrix(args[0].dtype))
    return given == wanted and bool(args) and (is_matrix(kind) or is_vector(kind) or is_complex(kind))


def _sample(expr: Expr) -> bool:
    coordinate, level = expr.args
    image = expr.value
    if not isinstance(image, ImageBinding) or image.storage or level.dtype is not float32:
        return False
    return expr.dtype is image.texel and coordinate.dtype is to_vector(float32, image.coordinates)


def _is_texel(coordinate: Expr, image: ImageBinding) -> bool:
    return coordinate.dtype is to_vector(int32, image.coordinates)


def _image_load(expr: Expr) -> bool:
    coordinate, *level = expr.args
    image = expr.value
    if not isinstance(image, ImageBinding) or len(level) != (0 if image.storage else 1):
        return False
    return expr.dtype is image.texel and _is_texel(coordinate, image) and all(e.dtype is int32 for e in level)


def _image_size(expr: Expr) -> bool:
    image = expr.value
    if not isinstance(image, ImageBinding) or len(expr.args) != (0 if image.storage else 1):
        return False
    return expr.dtype is to_vector(int32, image.coordinates) and all(e.dtype is int32 for e in expr.args)


def _raw(expr: Expr) -> bool:
    return isinstance(expr.value, RawText)


_RULES: dict[Op, Callable[[Expr], bool]] = {
    Op.LITERAL: _literal,
    Op.ARGUMENT: _argument,
    Op.BUILTIN: _builtin,
    Op.REGISTER: _register,
    Op.ELEMENT: _element,
    Op.INDEX: _index,
    Op.COMPONENT: _component,
    Op.SWIZZLE: _swizzle,
    Op.UNARY: _unary,
    Op.BINARY: _binary,
    Op.COMPARE: _compare,
    Op.LOGICAL: _logical,
    Op.SELECT: _select,
    Op.LENGTH: _length,
    Op.CALL: _call,
    Op.SUBGROUP: _call,
    Op.ATOMIC: _atomic,
    Op.CONSTRUCT: _construct,
    Op.SAMPLE: _sample,
    Op.IMAGE_LOAD: _image_load,
    Op.IMAGE_SIZE: _image_size,
    Op.RAW: _raw,
}
