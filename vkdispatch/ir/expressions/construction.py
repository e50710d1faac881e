"""Values made of others: calls, casts, components, vectors, matrices; and the type that operands share."""

from collections.abc import Callable, Sequence
from typing import Any

from vkdispatch.base.dtype import (
    DType,
    bool_,
    component_count,
    component_type,
    float32,
    float64,
    int32,
    is_complex,
    is_integer_dtype,
    is_matrix,
    is_scalar,
    is_signed_dtype,
    is_vector,
    make_floating_dtype,
    to_vector,
    uint32,
)
from vkdispatch.base.dtypes.promotion import cross_type
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, ComponentError, VkDispatchError
from vkdispatch.ir import Expr, Op
from vkdispatch.ir.attributes import COMPONENTS
from vkdispatch.ir.expressions.literals import (
    Number,
    Operand,
    converted_literal,
    is_integer_number,
    literal,
    make_node,
    wrap_literal,
)
from vkdispatch.ir.location import located
from vkdispatch.ir.numbers import (
    fits,
)


def call(function: str, kind: DType, *args: Expr) -> Expr:
    """Call a GLSL function without effects."""
    return make_node(Op.CALL, kind, args, function)


def subgroup(function: str, kind: DType, *args: Expr) -> Expr:
    """Call a GLSL subgroup function, whose value depends on which invocations call it."""
    return make_node(Op.SUBGROUP, kind, args, function)


def promote(a: DType, b: DType, what: str) -> DType:
    """Type in which two types meet, with an error that says what was being done and where."""
    return cross_dtypes(cross_type, a, b, what)


def cross_dtypes(rule: Any, a: DType, b: DType, what: str) -> DType:
    """Type that a rule of `base.dtype` gives two types; two booleans go as integers."""
    if is_bool_like(a) and is_bool_like(b):
        return int32
    try:
        kind: DType = rule(a, b)
    except VkDispatchError as error:
        raise located(ArgumentValueError, f"{what}: {error}") from None
    return kind


def is_bool_like(kind: DType) -> bool:
    """Whether a type is the type of booleans."""
    return kind is bool_


# Types that meet in themselves.
_USUAL = frozenset((float32, float64, int32, uint32))
_FLOATS = frozenset((float32, float64))


def meet(values: Sequence[Operand], what: str, *, floating: bool = False) -> tuple[DType, list[Expr]]:
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
        return known[0], [v if isinstance(v, Expr) else literal(v, known[0], what) for v in values]
    kind = int32 if known[0] is bool_ else known[0]
    for other in known[1:]:
        kind = promote(kind, other, what)
    if is_integer_dtype(kind) and not all(
        isinstance(value, Expr) or is_integer_number(value) for value in values
    ):
        kind = promote(kind, float32, what)
    if floating and is_integer_dtype(kind):
        kind = make_floating_dtype(kind)
        # booleans are numbers first
        values = [cast(v, int32) if isinstance(v, Expr) and v.dtype is bool_ else v for v in values]
    return kind, [_fit(value, kind, what) for value in values]


def _fit(value: Operand, kind: DType, what: str = "") -> Expr:
    scalar = component_type(kind)
    if not isinstance(value, Expr):
        value = literal(value, scalar, what)
    if is_scalar(value.dtype) and not is_complex(kind):
        return cast(value, scalar)
    return cast(value, kind)


def cast(value: Expr, kind: DType) -> Expr:
    """Convert a value: between scalars, component by component, or a scalar to every component.

    A real number becomes the real part of a complex one. Raises ValueError for other pairs.
    """
    source = value.dtype
    if source is kind:
        return value
    if is_scalar(source):
        return _cast_scalar(value, kind)
    alike = (is_complex(source) and is_complex(kind)) or (is_vector(source) and is_vector(kind))
    if alike and source.child_count == kind.child_count:
        return Expr(Op.CONSTRUCT, kind, (value,), None, value.loc)
    raise located(ArgumentValueError, f"{source.name} does not convert to {kind.name}")


def _cast_scalar(value: Expr, kind: DType) -> Expr:
    if is_scalar(kind):
        if value.op is Op.LITERAL and isinstance(value.value, (int, float)):
            return wrap_literal(value.value, kind)
        return Expr(Op.CONSTRUCT, kind, (value,), None, value.loc)
    part = cast(value, component_type(kind))
    if is_complex(kind):
        return Expr(Op.CONSTRUCT, kind, (part, literal(0, part.dtype)), None, value.loc)
    copies = component_count(kind) if is_matrix(kind) else 1
    return Expr(Op.CONSTRUCT, kind, (part,) * copies, None, value.loc)


def condition(value: Expr) -> Expr:
    """Truth value of a scalar: numbers hold unless zero."""
    if not is_scalar(value.dtype):
        raise located(
            ArgumentTypeError,
            f"a condition must be a scalar, got {value.dtype.name}; join components with vc.all",
        )
    return value if value.dtype is bool_ else cast(value, bool_)


def component(value: Expr, index: int) -> Expr:
    """Component of a vector or complex value."""
    kind = value.dtype
    if not (is_vector(kind) or is_complex(kind)) or not 0 <= index < kind.child_count:
        raise located(ComponentError, f"{kind.name} has no component {index}")
    if value.op is Op.CONSTRUCT and len(value.args) == kind.child_count:
        part = value.args[index]
        if part.dtype is component_type(kind):
            return part
    return make_node(Op.COMPONENT, component_type(kind), (value,), COMPONENTS[index])


def by_component(rule: Callable[..., Expr], kind: DType, *args: Expr) -> Expr:
    """Make a scalar or vector of type `kind` by a rule for scalars; scalars go with every component."""
    if is_scalar(kind):
        return rule(*args)
    return construct(
        kind,
        [
            rule(*(arg if is_scalar(arg.dtype) else component(arg, i) for arg in args))
            for i in range(kind.child_count)
        ],
    )


def swizzle(value: Expr, letters: str) -> Expr:
    """Rearrange components by letters of "xyzw"; a scalar has only x. Raises ValueError for others."""
    kind = value.dtype
    size = kind.child_count if is_vector(kind) else 1
    if not (is_vector(kind) or is_scalar(kind)):
        raise located(ArgumentValueError, f"swizzle: {kind.name} is neither a vector nor a scalar")
    if not 1 <= len(letters) <= 4 or any(letter not in COMPONENTS[:size] for letter in letters):
        raise located(
            ArgumentValueError,
            f'swizzle: expected 1 to 4 letters of "{COMPONENTS[:size]}" for {kind.name}, got {letters!r}',
        )
    if is_scalar(kind):
        return value if len(letters) == 1 else cast(value, to_vector(kind, len(letters)))
    if len(letters) == 1:
        return component(value, COMPONENTS.index(letters))
    return make_node(Op.SWIZZLE, to_vector(component_type(kind), len(letters)), (value,), letters)


def index(value: Expr, position: Expr) -> Expr:
    """Index a vector, complex number or matrix by an integer expression."""
    kind = value.dtype
    assert kind.child_type is not None
    return make_node(Op.INDEX, kind.child_type, (value, index_value(position)))


def index_value(position: Expr) -> Expr:
    """Give an integer the type that GLSL wants for an index: int or uint."""
    if position.op is Op.LITERAL:
        assert isinstance(position.value, int)
        return literal(position.value, int32 if fits(position.value, int32) else uint32)
    if position.dtype.item_size == 4:
        return position
    narrow = position.dtype.item_size < 4 and is_signed_dtype(position.dtype)
    return cast(position, int32 if narrow else uint32)


def construct(kind: DType, args: Sequence[Expr | Number | complex]) -> Expr:
    """Build a value of type `kind` from nothing (zero), one value, or all its components in order.

    Vectors take scalars and vectors that together have the right count of components, or one scalar for all;
    a scalar given to a matrix goes to its diagonal; complex types take a complex value, a real and an
    imaginary part, or a vector that begins with these. Raises ValueError for other shapes.
    """
    if not args:
        return _zero(kind)
    if is_complex(kind):
        return _construct_complex(kind, args)
    scalar = component_type(kind)
    parts: list[Expr] = []
    for arg in args:
        if isinstance(arg, complex):
            raise located(ArgumentTypeError, f"{kind.name}: a complex number cannot become {kind.name}")
        parts.append(arg if isinstance(arg, Expr) else converted_literal(arg, scalar))
    if len(parts) == 1:
        return _construct_from_one(kind, parts[0])
    if is_scalar(kind) or sum(component_count(part.dtype) for part in parts) != component_count(kind):
        given = ", ".join(part.dtype.name for part in parts)
        raise located(
            ArgumentValueError, f"{kind.name} has {component_count(kind)} components, got ({given})"
        )
    return make_node(Op.CONSTRUCT, kind, tuple(parts))


def _zero(kind: DType) -> Expr:
    scalar = component_type(kind)
    if is_complex(kind):
        return make_node(Op.CONSTRUCT, kind, (literal(0, scalar), literal(0, scalar)))
    zero = literal(0, scalar)
    return zero if is_scalar(kind) else make_node(Op.CONSTRUCT, kind, (zero,))


def _construct_from_one(kind: DType, part: Expr) -> Expr:
    if part.dtype is kind:
        return part
    if is_scalar(part.dtype):
        if is_matrix(kind):
            return make_node(Op.CONSTRUCT, kind, (cast(part, component_type(kind)),))
        return cast(part, kind)
    shrinks = component_count(part.dtype) >= component_count(kind)
    if is_matrix(kind) == is_matrix(part.dtype) and (shrinks or is_matrix(kind)):
        return make_node(Op.CONSTRUCT, kind, (part,))
    raise located(ArgumentValueError, f"{part.dtype.name} cannot become {kind.name}")


def _construct_complex(kind: DType, args: Sequence[Expr | Number | complex]) -> Expr:
    if len(args) > 2:
        raise located(
            ArgumentValueError, f"{kind.name} takes a real and an imaginary part, got {len(args)} values"
        )
    scalar = component_type(kind)
    if len(args) == 1:
        (only,) = args
        if isinstance(only, complex):
            return make_node(Op.CONSTRUCT, kind, (literal(only.real, scalar), literal(only.imag, scalar)))
        if isinstance(only, Expr) and is_complex(only.dtype):
            return cast(only, kind)
        if isinstance(only, Expr) and is_vector(only.dtype):
            pair = only if only.dtype.child_count == 2 else swizzle(only, "xy")
            return make_node(Op.CONSTRUCT, kind, (pair,))
    parts: list[Expr] = []
    for arg in (*args, 0)[:2]:
        if isinstance(arg, complex) or (isinstance(arg, Expr) and not is_scalar(arg.dtype)):
            name = arg.dtype.name if isinstance(arg, Expr) else repr(arg)
            raise located(ArgumentTypeError, f"{kind.name}: the parts must be real scalars, got {name}")
        parts.append(cast(arg, scalar) if isinstance(arg, Expr) else literal(arg, scalar))
    return make_node(Op.CONSTRUCT, kind, tuple(parts))
