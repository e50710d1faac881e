"""Small expressions and statements that passes build: literals, registers, comparisons, components."""

from collections.abc import Callable
from contextlib import AbstractContextManager

from vkdispatch.base import dtype as dt
from vkdispatch.base.record import replace
from vkdispatch.compiler.ir import Block, Builtin, Declare, Expr, If, Op, Register, Statement, Store
from vkdispatch.compiler.ir.location import Loc


def uint(value: int) -> Expr:
    """Make a uint32 literal."""
    return Expr(Op.LITERAL, dt.uint32, (), value)


def read(register: Register) -> Expr:
    """Name a register."""
    return Expr(Op.REGISTER, register.dtype, (), register)


def truth(value: bool, loc: Loc | None = None) -> Expr:
    """Make a literal condition."""
    return Expr(Op.LITERAL, dt.bool_, (), value, loc)


def assign(register: Register, value: Expr, loc: Loc | None = None) -> Store:
    """Assign to a register."""
    return Store(read(register), value, None, loc)


def when(condition: Expr, *body: Statement, loc: Loc | None = None) -> If:
    """Run statements if a condition holds."""
    return If(((condition, body),), None, loc)


def unfold(
    expr: Expr, register: Register, first: Expr, store: Callable[[Expr], Block]
) -> tuple[Statement, ...]:
    """Return statements that compute a LOGICAL or a SELECT in a register.

    `first` is the operand that is evaluated in any case; `store` returns what stores another one.
    """
    result, loc, others = read(register), expr.loc, expr.args[1:]
    if expr.op is Op.SELECT:
        chosen, other = map(store, others)
        return Declare(register, zero(expr.dtype), loc), If(((first, chosen),), other, loc)
    condition = result if expr.value == "&&" else negate(result)
    return (Declare(register, first, loc), *(when(condition, *store(operand), loc=loc) for operand in others))


def rewrite_branches(
    statement: If,
    out: list[Statement],
    value: Callable[[Expr, list[Statement]], Expr],
    block: Callable[[Block], Block],
    needs_statements: Callable[[Expr], bool],
    inside: Callable[[], AbstractContextManager[None]],
) -> None:
    """Append an if with other conditions, which `value` may precede by statements.

    Those of a later condition stand in an `else`, within `inside`, as it is evaluated only if the conditions
    before it do not hold.
    """
    done: list[tuple[Expr, Block]] = []
    orelse = statement.orelse
    for position, (condition, body) in enumerate(statement.branches):
        if position and needs_statements(condition):
            rest: list[Statement] = []
            with inside():
                others = replace(statement, branches=statement.branches[position:])
                rewrite_branches(others, rest, value, block, needs_statements, inside)
            out.append(If(tuple(done), tuple(rest), statement.loc))
            return
        done.append((value(condition, out), block(body)))
    out.append(If(tuple(done), None if orelse is None else block(orelse), statement.loc))


def cast(value: Expr, kind: dt.DType) -> Expr:
    """Convert a scalar."""
    return value if value.dtype is kind else Expr(Op.CONSTRUCT, kind, (value,))


def call(function: str, kind: dt.DType, *args: Expr) -> Expr:
    """Call a function."""
    return Expr(Op.CALL, kind, args, function)


def less(left: Expr, right: Expr) -> Expr:
    """Compare two scalars of one type by `<`."""
    return compare("<", left, right)


def negate(value: Expr, loc: Loc | None = None) -> Expr:
    """Negate a condition."""
    return Expr(Op.UNARY, dt.bool_, (value,), "!", loc)


def all_of(conditions: list[Expr]) -> Expr:
    """Join conditions, of which there is at least one."""
    return logical("&&", *conditions)


def zero(kind: dt.DType) -> Expr:
    """Make the zero of a type."""
    scalar = dt.component_type(kind)
    value: bool | int | float = False if scalar is dt.bool_ else 0.0 if dt.is_float_dtype(scalar) else 0
    part = Expr(Op.LITERAL, scalar, (), value)
    if dt.is_scalar(kind):
        return part
    return Expr(Op.CONSTRUCT, kind, (part, part) if dt.is_complex(kind) else (part,))


def component(value: Expr, position: int) -> Expr:
    """Return a scalar component of a vector or a complex value."""
    return Expr(Op.COMPONENT, dt.component_type(value.dtype), (value,), "xyzw"[position])


def components(value: Expr) -> list[Expr]:
    """Return the scalar components of a value that may be evaluated several times."""
    kind = value.dtype
    if dt.is_scalar(kind):
        return [value]
    if dt.is_matrix(kind):
        assert kind.child_type is not None
        columns = (
            Expr(Op.INDEX, kind.child_type, (value, Expr(Op.LITERAL, dt.int32, (), position)))
            for position in range(kind.child_count)
        )
        return [part for column in columns for part in components(column)]
    return [component(value, position) for position in range(kind.child_count)]


def id_part(builtin: Builtin, axis: str) -> Expr:
    """Component of an id or a size."""
    return part_of(Expr(Op.BUILTIN, dt.uvec3, value=builtin), axis)


def part_of(vector: Expr, axis: str) -> Expr:
    """Component of a vector of uint32."""
    return Expr(Op.COMPONENT, dt.uint32, (vector,), axis)


def binary(operator: str, left: Expr, right: Expr, loc: Loc | None = None) -> Expr:
    """Combine two values by an operator, to one of the type of the first."""
    return Expr(Op.BINARY, left.dtype, (left, right), operator, loc)


def is_zero(value: Expr) -> Expr:
    """Compare a uint32 with zero."""
    return compare("==", value, uint(0))


def is_nonzero(value: Expr) -> Expr:
    """Compare a uint32 with zero."""
    return compare("!=", value, uint(0))


def compare(operator: str, left: Expr, right: Expr) -> Expr:
    """Compare two values."""
    return Expr(Op.COMPARE, dt.bool_, (left, right), operator)


def logical(operator: str, *operands: Expr) -> Expr:
    """Join conditions; one is itself."""
    return Expr(Op.LOGICAL, dt.bool_, operands, operator) if len(operands) > 1 else operands[0]
