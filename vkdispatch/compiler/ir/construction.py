"""Values made of others: calls, casts, vectors, comparisons, choices; and the type of operands."""

from collections.abc import Callable, Sequence
from typing import Any

from vkdispatch.base import dtype as dt
from vkdispatch.base.derived_dtypes import cross_type
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, ComponentError, VkDispatchError
from vkdispatch.compiler.ir import literals
from vkdispatch.compiler.ir.location import located
from vkdispatch.compiler.ir.program import COMPONENTS, INTEGER_POWER, Argument, Expr, Op, Register

# ---- Values made of others -------------------------------------------------------------------------------
#
# Calls, casts, components, vectors, matrices; and the type that operands share.


def call(function: str, kind: dt.DType, *args: Expr) -> Expr:
    """Call a GLSL function without effects."""
    return literals.make_node(Op.CALL, kind, args, function)


def subgroup(function: str, kind: dt.DType, *args: Expr) -> Expr:
    """Call a GLSL subgroup function, whose value depends on which invocations call it."""
    return literals.make_node(Op.SUBGROUP, kind, args, function)


def promote(a: dt.DType, b: dt.DType, what: str) -> dt.DType:
    """Type in which two types meet, with an error that says what was being done and where."""
    return cross_dtypes(cross_type, a, b, what)


def cross_dtypes(rule: Any, a: dt.DType, b: dt.DType, what: str) -> dt.DType:
    """Type that a rule of `base.dtype` gives two types; two booleans go as integers."""
    if is_bool_like(a) and is_bool_like(b):
        return dt.int32
    try:
        kind: dt.DType = rule(a, b)
    except VkDispatchError as error:
        raise located(ArgumentValueError, f"{what}: {error}") from None
    return kind


def is_bool_like(kind: dt.DType) -> bool:
    """Whether a type is the type of booleans."""
    return kind is dt.bool_


# Types that meet in themselves.
_USUAL = frozenset((dt.float32, dt.float64, dt.int32, dt.uint32))
_FLOATS = frozenset((dt.float32, dt.float64))


def meet(
    values: Sequence[literals.Operand], what: str, *, floating: bool = False
) -> tuple[dt.DType, list[Expr]]:
    """Bring operands to one scalar type: returns the promoted type, and all operands with its component type.

    Scalars stay scalars beside vectors and matrices. At least one operand is an expression. `floating` makes
    floats of integers, without a stop at the integer type in which they would meet. Raises ValueError for
    types that do not meet, and for a number that the type does not hold.
    """
    known = [value.dtype for value in values if isinstance(value, Expr)]
    usual = _FLOATS if floating else _USUAL
    if known[0] in usual and len(known) == len(values) and known.count(known[0]) == len(known):
        return known[0], list(values)  # type: ignore[arg-type]
    if known[0] in _FLOATS and len(known) == 1:
        # numbers take the type of a float
        return known[0], [v if isinstance(v, Expr) else literals.literal(v, known[0], what) for v in values]
    kind = dt.int32 if known[0] is dt.bool_ else known[0]
    for other in known[1:]:
        kind = promote(kind, other, what)
    if dt.is_integer_dtype(kind) and not all(
        isinstance(value, Expr) or literals.is_integer_number(value) for value in values
    ):
        kind = promote(kind, dt.float32, what)
    if floating and dt.is_integer_dtype(kind):
        kind = dt.make_floating_dtype(kind)
        # booleans are numbers first
        values = [cast(v, dt.int32) if isinstance(v, Expr) and v.dtype is dt.bool_ else v for v in values]
    return kind, [_fit(value, kind, what) for value in values]


def _fit(value: literals.Operand, kind: dt.DType, what: str = "") -> Expr:
    scalar = dt.component_type(kind)
    if not isinstance(value, Expr):
        value = literals.literal(value, scalar, what)
    if dt.is_scalar(value.dtype) and not dt.is_complex(kind):
        return cast(value, scalar)
    return cast(value, kind)


def cast(value: Expr, kind: dt.DType) -> Expr:
    """Convert a value: between scalars, component by component, or a scalar to every component.

    A real number becomes the real part of a complex one. Raises ValueError for other pairs.
    """
    source = value.dtype
    if source is kind:
        return value
    if dt.is_scalar(source):
        return _cast_scalar(value, kind)
    alike = (dt.is_complex(source) and dt.is_complex(kind)) or (dt.is_vector(source) and dt.is_vector(kind))
    if alike and source.child_count == kind.child_count:
        return Expr(Op.CONSTRUCT, kind, (value,), None, value.loc)
    raise located(ArgumentValueError, f"{source.name} does not convert to {kind.name}")


def _cast_scalar(value: Expr, kind: dt.DType) -> Expr:
    if dt.is_scalar(kind):
        if value.op is Op.LITERAL and isinstance(value.value, (int, float)):
            return literals.wrap_literal(value.value, kind)
        return Expr(Op.CONSTRUCT, kind, (value,), None, value.loc)
    part = cast(value, dt.component_type(kind))
    if dt.is_complex(kind):
        return Expr(Op.CONSTRUCT, kind, (part, literals.literal(0, part.dtype)), None, value.loc)
    copies = dt.component_count(kind) if dt.is_matrix(kind) else 1
    return Expr(Op.CONSTRUCT, kind, (part,) * copies, None, value.loc)


def condition(value: Expr) -> Expr:
    """Truth value of a scalar: numbers hold unless zero."""
    if not dt.is_scalar(value.dtype):
        raise located(
            ArgumentTypeError,
            f"a condition must be a scalar, got {value.dtype.name}; join components with vc.all",
        )
    return value if value.dtype is dt.bool_ else cast(value, dt.bool_)


def component(value: Expr, index: int) -> Expr:
    """Component of a vector or complex value."""
    kind = value.dtype
    if not (dt.is_vector(kind) or dt.is_complex(kind)) or not 0 <= index < kind.child_count:
        raise located(ComponentError, f"{kind.name} has no component {index}")
    if value.op is Op.CONSTRUCT and len(value.args) == kind.child_count:
        part = value.args[index]
        if part.dtype is dt.component_type(kind):
            return part
    return literals.make_node(Op.COMPONENT, dt.component_type(kind), (value,), COMPONENTS[index])


def by_component(rule: Callable[..., Expr], kind: dt.DType, *args: Expr) -> Expr:
    """Make a scalar or vector of type `kind` by a rule for scalars; scalars go with every component."""
    if dt.is_scalar(kind):
        return rule(*args)
    return construct(
        kind,
        [
            rule(*(arg if dt.is_scalar(arg.dtype) else component(arg, i) for arg in args))
            for i in range(kind.child_count)
        ],
    )


def swizzle(value: Expr, letters: str) -> Expr:
    """Rearrange components by letters of "xyzw"; a scalar has only x. Raises ValueError for others."""
    kind = value.dtype
    size = kind.child_count if dt.is_vector(kind) else 1
    if not (dt.is_vector(kind) or dt.is_scalar(kind)):
        raise located(ArgumentValueError, f"swizzle: {kind.name} is neither a vector nor a scalar")
    if not 1 <= len(letters) <= 4 or any(letter not in COMPONENTS[:size] for letter in letters):
        raise located(
            ArgumentValueError,
            f'swizzle: expected 1 to 4 letters of "{COMPONENTS[:size]}" for {kind.name}, got {letters!r}',
        )
    if dt.is_scalar(kind):
        return value if len(letters) == 1 else cast(value, dt.to_vector(kind, len(letters)))
    if len(letters) == 1:
        return component(value, COMPONENTS.index(letters))
    return literals.make_node(
        Op.SWIZZLE, dt.to_vector(dt.component_type(kind), len(letters)), (value,), letters
    )


def index(value: Expr, position: Expr) -> Expr:
    """Index a vector, complex number or matrix by an integer expression."""
    kind = value.dtype
    assert kind.child_type is not None
    return literals.make_node(Op.INDEX, kind.child_type, (value, index_value(position)))


def index_value(position: Expr) -> Expr:
    """Give an integer the type that GLSL wants for an index: int or uint."""
    if position.op is Op.LITERAL:
        assert isinstance(position.value, int)
        return literals.literal(
            position.value, dt.int32 if literals.fits(position.value, dt.int32) else dt.uint32
        )
    if position.dtype.item_size == 4:
        return position
    narrow = position.dtype.item_size < 4 and dt.is_signed_dtype(position.dtype)
    return cast(position, dt.int32 if narrow else dt.uint32)


def construct(kind: dt.DType, args: Sequence[Expr | literals.Number | complex]) -> Expr:
    """Build a value of type `kind` from nothing (zero), one value, or all its components in order.

    Vectors take scalars and vectors that together have the right count of components, or one scalar for all;
    a scalar given to a matrix goes to its diagonal; complex types take a complex value, a real and an
    imaginary part, or a vector that begins with these. Raises ValueError for other shapes.
    """
    if not args:
        return _zero(kind)
    if dt.is_complex(kind):
        return _construct_complex(kind, args)
    scalar = dt.component_type(kind)
    parts: list[Expr] = []
    for arg in args:
        if isinstance(arg, complex):
            raise located(ArgumentTypeError, f"{kind.name}: a complex number cannot become {kind.name}")
        parts.append(arg if isinstance(arg, Expr) else literals.converted_literal(arg, scalar))
    if len(parts) == 1:
        return _construct_from_one(kind, parts[0])
    if dt.is_scalar(kind) or sum(dt.component_count(part.dtype) for part in parts) != dt.component_count(
        kind
    ):
        given = ", ".join(part.dtype.name for part in parts)
        raise located(
            ArgumentValueError, f"{kind.name} has {dt.component_count(kind)} components, got ({given})"
        )
    return literals.make_node(Op.CONSTRUCT, kind, tuple(parts))


def _zero(kind: dt.DType) -> Expr:
    scalar = dt.component_type(kind)
    if dt.is_complex(kind):
        return literals.make_node(
            Op.CONSTRUCT, kind, (literals.literal(0, scalar), literals.literal(0, scalar))
        )
    zero = literals.literal(0, scalar)
    return zero if dt.is_scalar(kind) else literals.make_node(Op.CONSTRUCT, kind, (zero,))


def _construct_from_one(kind: dt.DType, part: Expr) -> Expr:
    if part.dtype is kind:
        return part
    if dt.is_scalar(part.dtype):
        if dt.is_matrix(kind):
            return literals.make_node(Op.CONSTRUCT, kind, (cast(part, dt.component_type(kind)),))
        return cast(part, kind)
    shrinks = dt.component_count(part.dtype) >= dt.component_count(kind)
    if dt.is_matrix(kind) == dt.is_matrix(part.dtype) and (shrinks or dt.is_matrix(kind)):
        return literals.make_node(Op.CONSTRUCT, kind, (part,))
    raise located(ArgumentValueError, f"{part.dtype.name} cannot become {kind.name}")


def _construct_complex(kind: dt.DType, args: Sequence[Expr | literals.Number | complex]) -> Expr:
    if len(args) > 2:
        raise located(
            ArgumentValueError, f"{kind.name} takes a real and an imaginary part, got {len(args)} values"
        )
    scalar = dt.component_type(kind)
    if len(args) == 1:
        (only,) = args
        if isinstance(only, complex):
            return literals.make_node(
                Op.CONSTRUCT, kind, (literals.literal(only.real, scalar), literals.literal(only.imag, scalar))
            )
        if isinstance(only, Expr) and dt.is_complex(only.dtype):
            return cast(only, kind)
        if isinstance(only, Expr) and dt.is_vector(only.dtype):
            pair = only if only.dtype.child_count == 2 else swizzle(only, "xy")
            return literals.make_node(Op.CONSTRUCT, kind, (pair,))
    parts: list[Expr] = []
    for arg in (*args, 0)[:2]:
        if isinstance(arg, complex) or (isinstance(arg, Expr) and not dt.is_scalar(arg.dtype)):
            name = arg.dtype.name if isinstance(arg, Expr) else repr(arg)
            raise located(ArgumentTypeError, f"{kind.name}: the parts must be real scalars, got {name}")
        parts.append(cast(arg, scalar) if isinstance(arg, Expr) else literals.literal(arg, scalar))
    return literals.make_node(Op.CONSTRUCT, kind, tuple(parts))


# ---- Comparisons, logic, choices, and values as they are stored ------------------------------------------


def compare(symbol: str, a: literals.Operand, b: literals.Operand) -> Expr:
    """Compare scalars; `==` and `!=` also compare whole vectors, complex numbers and matrices."""
    both_bool = all(isinstance(value, Expr) and value.dtype is dt.bool_ for value in (a, b))
    if both_bool and symbol in ("==", "!=") and isinstance(a, Expr) and isinstance(b, Expr):
        return literals.make_node(Op.COMPARE, dt.bool_, (a, b), symbol)
    exact = _exact(symbol, a, b)
    if isinstance(exact, Expr):
        return exact
    symbol, a, b = exact
    if isinstance(a, Expr) and isinstance(b, Expr) and _mixes_signs(a, b):
        return _compare_signs(symbol, a, b)
    kind, operands = meet((a, b), symbol)
    if not dt.is_scalar(kind):
        if symbol not in ("==", "!="):
            raise _make_order_error(symbol, kind)
        operands = [cast(value, kind) for value in operands]
    return literals.make_node(Op.COMPARE, dt.bool_, tuple(operands), symbol)


def _mixes_signs(a: Expr, b: Expr) -> bool:
    """Whether the promoted type of two integers does not hold all values of both.

    Ids and sizes count as small enough for the signed type of their width.
    """
    signed, unsigned = (a, b) if dt.is_signed_dtype(a.dtype) else (b, a)
    alike = (dt.is_scalar(a.dtype) and dt.is_scalar(b.dtype)) or (
        dt.is_vector(a.dtype) and dt.is_vector(b.dtype)
    )
    if not alike or not dt.is_signed_dtype(signed.dtype) or dt.is_signed_dtype(unsigned.dtype):
        return False
    if not dt.is_integer_dtype(unsigned.dtype):
        return False
    sizes = [dt.component_type(value.dtype).item_size for value in (signed, unsigned)]
    return sizes[0] < sizes[1] or (sizes[0] == sizes[1] and not is_position(unsigned))


def is_position(value: Expr) -> bool:
    """Whether a value is an id or a size, or a sum or product of few of them: not negative, and not large."""
    waiting, seen = [value], set[int]()
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if len(seen) > _MAX_EXPRESSIONS or not (node.op in _KEEPS_POSITIONS or _is_small(node)):
            return False
        if node.op is Op.BINARY and node.value not in _GROWS_LITTLE:
            return False
        waiting += node.args
    return True


# Operations that make positions of positions; of large expressions nobody looks whether they do.
_GROWS_LITTLE = frozenset("+*/%&") | {">>"}
_KEEPS_POSITIONS = frozenset((Op.BINARY, Op.COMPONENT, Op.SWIZZLE, Op.INDEX, Op.CONSTRUCT))
_MAX_EXPRESSIONS = 32
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
    if dt.is_vector(a.dtype):
        if a.dtype.child_count != b.dtype.child_count or symbol not in ("==", "!="):
            kind, _ = meet((a, b), symbol)
            raise _make_order_error(symbol, kind)
        pairs = [(component(a, i), component(b, i)) for i in range(a.dtype.child_count)]
        parts = [compare(symbol, first, second) for first, second in pairs]
        return logical("&&" if symbol == "==" else "||", parts)
    signed, kind = (a, b.dtype) if dt.is_signed_dtype(a.dtype) else (b, a.dtype)
    same = literals.make_node(Op.COMPARE, dt.bool_, (cast(a, kind), cast(b, kind)), symbol)
    if is_position(signed):
        return same
    if (symbol if signed is a else literals.MIRRORED[symbol]) in ("<", "<=", "!="):
        return logical("||", (compare("<", signed, 0), same))
    return logical("&&", (compare(">=", signed, 0), same))


def _make_order_error(symbol: str, kind: dt.DType) -> ArgumentTypeError:
    return located(
        ArgumentTypeError, f"{symbol}: {kind.name} has no order; compare components and join them with vc.all"
    )


def _exact(
    symbol: str, a: literals.Operand, b: literals.Operand
) -> Expr | tuple[str, literals.Operand, literals.Operand]:
    """Return a comparison with a number of the other side's type, or its outcome: see `exact_comparison`."""
    if isinstance(a, Expr) and not isinstance(b, Expr):
        value, number = a, b
    elif isinstance(b, Expr) and not isinstance(a, Expr):
        value, number = b, a
    else:
        return symbol, a, b
    if not (dt.is_scalar(value.dtype) or symbol in ("==", "!=")):
        return symbol, a, b
    kind = dt.int32 if value.dtype is dt.bool_ else dt.component_type(value.dtype)
    exact = int(number) if literals.is_integer_number(number) else float(number)
    outcome = literals.exact_comparison(symbol if value is a else literals.MIRRORED[symbol], kind, exact)
    if isinstance(outcome, bool):
        return literals.literal(outcome, dt.bool_)
    symbol, number = outcome
    return (symbol, value, number) if value is a else (literals.MIRRORED[symbol], number, value)


def logical(symbol: str, conditions: Sequence[Expr]) -> Expr:
    """Join conditions by `&&` or `||`; a single one stays as it is."""
    if len(conditions) == 1:
        return condition(conditions[0])
    return literals.make_node(Op.LOGICAL, dt.bool_, tuple(condition(value) for value in conditions), symbol)


def select(condition_: Expr, a: literals.Operand, b: literals.Operand) -> Expr:
    """Make `a if condition else b`, of which only the chosen one is evaluated; in their promoted type.

    Raises ValueError where the two do not meet.
    """
    truth = condition(condition_)
    if not isinstance(a, Expr) and not isinstance(b, Expr):
        a = literals.literal(a, literals.dtype_of_numbers(a, b))
    if isinstance(a, Expr) and isinstance(b, Expr) and a.dtype is b.dtype:
        return literals.make_node(Op.SELECT, a.dtype, (truth, a, b))
    kind, values = meet((a, b), "select")
    chosen, other = (cast(value, kind) for value in values)
    return literals.make_node(Op.SELECT, kind, (truth, chosen, other))


def _has_power(value: Expr) -> bool:
    """Whether a value is a sum or product with a power of integers in it."""
    waiting = [value]
    while waiting:
        node = waiting.pop()
        if node.op is Op.CALL and node.value == INTEGER_POWER:
            return True
        if node.op in _KEEPS_POWERS and len(waiting) < _MAX_EXPRESSIONS:
            waiting += node.args
    return False


def storable(value: Expr | literals.Number | complex, kind: dt.DType) -> Expr:
    """Value as it may be stored in a place of type `kind`.

    Numbers become literals, for every component of a vector or matrix; booleans become numbers; other
    values must have exactly that type. Raises ValueError otherwise.
    """
    if isinstance(value, Expr):
        if value.dtype is dt.bool_ and dt.is_scalar(kind):
            return cast(value, kind)
        if value.dtype is not kind and kind is dt.make_floating_dtype(value.dtype) and _has_power(value):
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
        if not dt.is_complex(kind):
            raise located(ArgumentTypeError, f"cannot store the complex number {value!r} in {kind.name}")
        return construct(kind, (value,))
    scalar = dt.component_type(kind)
    literals.check_stored(value, scalar)
    return cast(literals.literal(value, scalar), kind)
