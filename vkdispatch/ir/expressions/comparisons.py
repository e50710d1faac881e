"""Comparisons, logic, choices, and values as they are stored."""

from collections.abc import Sequence

from vkdispatch.base.dtype import (
    DType,
    bool_,
    component_type,
    int32,
    is_complex,
    is_integer_dtype,
    is_scalar,
    is_signed_dtype,
    is_vector,
    make_floating_dtype,
)
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.ir import Argument, Expr, Op, Register
from vkdispatch.ir.expressions.construction import cast, component, condition, construct, meet
from vkdispatch.ir.expressions.literals import (
    Number,
    Operand,
    check_stored,
    dtype_of_numbers,
    is_integer_number,
    literal,
    make_node,
)
from vkdispatch.ir.location import located
from vkdispatch.ir.numbers import (
    MIRRORED,
    exact_comparison,
)
from vkdispatch.ir.own_functions import INTEGER_POWER


def compare(symbol: str, a: Operand, b: Operand) -> Expr:
    """Compare scalars; `==` and `!=` also compare whole vectors, complex numbers and matrices."""
    both_bool = all(isinstance(value, Expr) and value.dtype is bool_ for value in (a, b))
    if both_bool and symbol in ("==", "!=") and isinstance(a, Expr) and isinstance(b, Expr):
        return make_node(Op.COMPARE, bool_, (a, b), symbol)
    exact = _exact(symbol, a, b)
    if isinstance(exact, Expr):
        return exact
    symbol, a, b = exact
    if isinstance(a, Expr) and isinstance(b, Expr) and _mixes_signs(a, b):
        return _compare_signs(symbol, a, b)
    kind, operands = meet((a, b), symbol)
    if not is_scalar(kind):
        if symbol not in ("==", "!="):
            raise _make_order_error(symbol, kind)
        operands = [cast(value, kind) for value in operands]
    return make_node(Op.COMPARE, bool_, tuple(operands), symbol)


def _mixes_signs(a: Expr, b: Expr) -> bool:
    """Whether the promoted type of two integers does not hold all values of both.

    Ids and sizes count as small enough for the signed type of their width.
    """
    signed, unsigned = (a, b) if is_signed_dtype(a.dtype) else (b, a)
    alike = (is_scalar(a.dtype) and is_scalar(b.dtype)) or (is_vector(a.dtype) and is_vector(b.dtype))
    if not alike or not is_signed_dtype(signed.dtype) or is_signed_dtype(unsigned.dtype):
        return False
    if not is_integer_dtype(unsigned.dtype):
        return False
    sizes = [component_type(value.dtype).item_size for value in (signed, unsigned)]
    return sizes[0] < sizes[1] or (sizes[0] == sizes[1] and not is_position(unsigned))


def is_position(value: Expr) -> bool:
    """Whether a value is an id or a size, or a sum or product of few of them: not negative, and not large."""
    waiting, seen = [value], set[int]()
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if len(seen) > _FEW or not (node.op in _KEEPS_POSITIONS or _is_small(node)):
            return False
        if node.op is Op.BINARY and node.value not in _GROWS_LITTLE:
            return False
        waiting += node.args
    return True


# Operations that make positions of positions; of large expressions nobody looks whether they do.
_GROWS_LITTLE = frozenset("+*/%&") | {">>"}
_KEEPS_POSITIONS = frozenset((Op.BINARY, Op.COMPONENT, Op.SWIZZLE, Op.INDEX, Op.CONSTRUCT))
_FEW = 32
_KEEPS_POWERS = frozenset((Op.BINARY, Op.UNARY, Op.CONSTRUCT))


def _is_small(leaf: Expr) -> bool:
    if leaf.op is Op.LITERAL:
        # a larger factor makes a hash
        return isinstance(leaf.value, int) and 0 <= leaf.value <= 1 << 20
    if isinstance(leaf.value, Register):
        return leaf.value.counter
    return leaf.op in (Op.BUILTIN, Op.LENGTH) or (isinstance(leaf.value, Argument) and leaf.value.shape)


def _compare_signs(symbol: str, a: Expr, b: Expr) -> Expr:
    """Compare a signed and an unsigned integer as mathematics does."""
    if is_vector(a.dtype):
        if a.dtype.child_count != b.dtype.child_count or symbol not in ("==", "!="):
            kind, _ = meet((a, b), symbol)
            raise _make_order_error(symbol, kind)
        pairs = [(component(a, i), component(b, i)) for i in range(a.dtype.child_count)]
        parts = [compare(symbol, first, second) for first, second in pairs]
        return logical("&&" if symbol == "==" else "||", parts)
    signed, kind = (a, b.dtype) if is_signed_dtype(a.dtype) else (b, a.dtype)
    same = make_node(Op.COMPARE, bool_, (cast(a, kind), cast(b, kind)), symbol)
    if is_position(signed):
        return same
    if (symbol if signed is a else MIRRORED[symbol]) in ("<", "<=", "!="):
        return logical("||", (compare("<", signed, 0), same))
    return logical("&&", (compare(">=", signed, 0), same))


def _make_order_error(symbol: str, kind: DType) -> ArgumentTypeError:
    return located(
        ArgumentTypeError, f"{symbol}: {kind.name} has no order; compare components and join them with vc.all"
    )


def _exact(symbol: str, a: Operand, b: Operand) -> Expr | tuple[str, Operand, Operand]:
    """Return a comparison with a number of the other side's type, or its outcome: see `exact_comparison`."""
    if isinstance(a, Expr) and not isinstance(b, Expr):
        value, number = a, b
    elif isinstance(b, Expr) and not isinstance(a, Expr):
        value, number = b, a
    else:
        return symbol, a, b
    if not (is_scalar(value.dtype) or symbol in ("==", "!=")):
        return symbol, a, b
    kind = int32 if value.dtype is bool_ else component_type(value.dtype)
    own = int(number) if is_integer_number(number) else float(number)
    found = exact_comparison(symbol if value is a else MIRRORED[symbol], kind, own)
    if isinstance(found, bool):
        return literal(found, bool_)
    return (found[0], value, found[1]) if value is a else (MIRRORED[found[0]], found[1], value)


def logical(symbol: str, conditions: Sequence[Expr]) -> Expr:
    """Join conditions by `&&` or `||`; a single one stays as it is."""
    if len(conditions) == 1:
        return condition(conditions[0])
    return make_node(Op.LOGICAL, bool_, tuple(condition(value) for value in conditions), symbol)


def select(condition_: Expr, a: Operand, b: Operand) -> Expr:
    """Make `a if condition else b`, of which only the chosen one is evaluated; in their promoted type.

    Raises ValueError where the two do not meet.
    """
    truth = condition(condition_)
    if not isinstance(a, Expr) and not isinstance(b, Expr):
        a = literal(a, dtype_of_numbers(a, b))
    if isinstance(a, Expr) and isinstance(b, Expr) and a.dtype is b.dtype:
        return make_node(Op.SELECT, a.dtype, (truth, a, b))
    kind, values = meet((a, b), "select")
    chosen, other = (cast(value, kind) for value in values)
    return make_node(Op.SELECT, kind, (truth, chosen, other))


def _has_power(value: Expr) -> bool:
    """Whether a value is a sum or product with a power of integers in it."""
    waiting = [value]
    while waiting:
        node = waiting.pop()
        if node.op is Op.CALL and node.value == INTEGER_POWER:
            return True
        if node.op in _KEEPS_POWERS and len(waiting) < _FEW:
            waiting += node.args
    return False


def storable(value: Expr | Number | complex, kind: DType) -> Expr:
    """Value as it may be stored in a place of type `kind`.

    Numbers become literals, for every component of a vector or matrix; booleans become numbers; other
    values must have exactly that type. Raises ValueError otherwise.
    """
    if isinstance(value, Expr):
        if value.dtype is bool_ and is_scalar(kind):
            return cast(value, kind)
        if value.dtype is not kind and kind is make_floating_dtype(value.dtype) and _has_power(value):
            # powers of integers were floats in vkdispatch 0.1.0
            return cast(value, kind)
        if value.dtype is not kind:
            raise located(
                ArgumentValueError,
                f"cannot store {value.dtype.name} in {kind.name}; "
                f"convert it with .to_dtype(vd.{kind.__name__})",
            )
        return value
    if isinstance(value, complex):
        if not is_complex(kind):
            raise located(ArgumentTypeError, f"cannot store the complex number {value!r} in {kind.name}")
        return construct(kind, (value,))
    scalar = component_type(kind)
    check_stored(value, scalar)
    return cast(literal(value, scalar), kind)
