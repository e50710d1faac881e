"""Which registers and expressions of a kernel are positions, that is, depend on invocation ids and sizes."""

import re
from collections.abc import Callable, Sequence

from vkdispatch.base.dtype import (
    DType,
    component_type,
    float32,
    float64,
    int32,
    int64,
    is_float_dtype,
    is_scalar,
    is_vector,
    uint32,
    uint64,
)
from vkdispatch.ir import (
    Argument,
    Builtin,
    Declare,
    Expr,
    For,
    Kernel,
    Op,
    RawStatement,
    RawText,
    Register,
    Storage,
    Store,
    expressions_of,
    nodes,
    walk,
)
from vkdispatch.passes.builders import read

WIDE: dict[DType, DType] = {int32: int64, uint32: uint64}
_BITWISE = frozenset("&|^")
_DIVIDING = frozenset(("%", "/", ">>"))
_GROWING = frozenset(("+", "-", "*", "<<"))
BOUNDING = frozenset(("min", "max", "clamp", "abs"))
# Products with an odd factor of at least this size are hashes, which wrap around at 32 bits: no stride is so
# large. In conditions, which are less often about positions, smaller factors are taken for hashes.
HASH_FACTOR = 1 << 30
_HASH_FACTOR_OF_CONDITIONS = 1 << 20


def is_narrow(kind: DType) -> bool:
    """Whether a type is an integer of 32 bits, or a vector of such."""
    return (is_scalar(kind) or is_vector(kind)) and component_type(kind) in WIDE


def is_hashing(expr: Expr, least: int) -> bool:
    """Whether an expression is a product that is meant to wrap around."""
    return expr.value == "*" and any(
        arg.op is Op.LITERAL and isinstance(arg.value, int) and arg.value % 2 == 1 and abs(arg.value) >= least
        for arg in expr.args
    )


class Positions:
    """The registers of a kernel that need companions, and the expressions that need 64-bit operands."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._values: dict[Register, list[Expr]] = {}
        self._counters: set[Register] = set()
        self._gather()
        # registers that hold a position (an id, a size), and those that may need more than 32 bits
        self._positional = self._fixpoint(self._is_position)
        self._growing = self._fixpoint(self._may_grow)
        self.companions = self._find_demanded() & self._growing

    def _gather(self) -> None:
        """Collect the values of each register, without registers that raw GLSL may assign to."""
        left_alone: set[Register] = set()
        texts: list[str] = []
        for statement in walk(self._kernel.body):
            if isinstance(statement, Declare):
                self._note(statement.register, statement.value)
            elif isinstance(statement, For):
                self._counters.add(statement.counter)
                for bound in (statement.start, statement.stop, statement.step):
                    self._note(statement.counter, bound)
            elif isinstance(statement, Store):
                self._note_store(statement, left_alone)
            elif isinstance(statement, RawStatement):
                texts.append(statement.text)
            texts += (
                expr.value.text
                for expr in nodes(expressions_of(statement))
                if isinstance(expr.value, RawText) and expr.value.settable
            )
        mentioned = set(re.findall(r"\w+", " ".join(texts)))
        for register in list(self._values):
            if register in left_alone or register.name in mentioned:
                del self._values[register]

    def _note(self, register: Register, value: Expr) -> None:
        if is_narrow(register.dtype):
            self._values.setdefault(register, []).append(value)

    def _note_store(self, statement: Store, left_alone: set[Register]) -> None:
        place, value = statement.place, statement.value
        if place.op in (Op.COMPONENT, Op.INDEX) and isinstance(place.args[0].value, Register):
            if place.op is Op.INDEX:
                left_alone.add(place.args[0].value)
            place = place.args[0]
        if place.op is Op.REGISTER and isinstance(place.value, Register):
            if statement.operator is not None:
                value = Expr(Op.BINARY, statement.place.dtype, (statement.place, value), statement.operator)
            self._note(place.value, value)

    def _fixpoint(self, rule: Callable[[Expr, set[Register]], bool]) -> set[Register]:
        found = {register for register in self._values if register.position}
        while True:
            more = {
                register
                for register, values in self._values.items()
                if register not in found and any(rule(value, found) for value in values)
            }
            if not more:
                return found
            found |= more

    def _is_source(self, expr: Expr) -> bool:
        """Whether an expression is the id of an invocation or a workgroup, a shape or a length."""
        if expr.op is Op.BUILTIN:
            return expr.value in (Builtin.GLOBAL_INVOCATION_ID, Builtin.WORKGROUP_ID)
        if expr.op is Op.ARGUMENT:
            return isinstance(expr.value, Argument) and (
                expr.value.shape or expr.value is self._kernel.exec_count
            )
        return expr.op is Op.LENGTH and isinstance(expr.value, Storage)

    def _is_position(self, expr: Expr, registers: set[Register]) -> bool:
        return self._reaches(expr, registers, growing=False)

    def _may_grow(self, expr: Expr, registers: set[Register]) -> bool:
        return self._reaches(expr, registers, growing=True)

    def _reaches(self, root: Expr, registers: set[Register], *, growing: bool) -> bool:
        """Whether a value depends on ids, shapes or these registers, or, if `growing`, may exceed 32 bits."""
        stack, seen = [root], set()
        while stack:
            expr = stack.pop()
            if id(expr) in seen or not is_narrow(expr.dtype):
                continue
            seen.add(id(expr))
            if self._is_source(expr) or (expr.op is Op.REGISTER and expr.value in registers):
                return True
            if growing and (
                (expr.op is Op.BINARY and expr.value in _GROWING and not is_hashing(expr, HASH_FACTOR))
                or expr.op is Op.UNARY
                or (expr.op is Op.CONSTRUCT and any(is_float_dtype(arg.dtype) for arg in expr.args))
            ):
                return True
            stack.extend(self._find_passed_on(expr, growing=growing))
        return False

    @staticmethod
    def _find_passed_on(expr: Expr, *, growing: bool) -> Sequence[Expr]:
        """Return the operands whose value reaches the value of an expression."""
        if expr.op in (Op.COMPONENT, Op.SWIZZLE, Op.UNARY, Op.CONSTRUCT):
            return expr.args
        if expr.op is Op.INDEX:
            return expr.args[:1]
        if expr.op is Op.SELECT:
            return expr.args[1:]
        if expr.op is Op.CALL:
            return expr.args if expr.value in BOUNDING else ()
        if expr.op is not Op.BINARY:
            return ()
        if growing:
            return () if is_hashing(expr, HASH_FACTOR) else expr.args
        if expr.value in _BITWISE or is_hashing(expr, _HASH_FACTOR_OF_CONDITIONS):
            return ()
        return expr.args

    # -- expressions that need 64 bits

    def may_grow(self, expr: Expr) -> bool:
        """Whether a position may need 64 bits."""
        return self._may_grow(expr, self.companions)

    def is_comparison(self, expr: Expr) -> bool:
        """Whether a comparison is one of positions."""
        left, right = expr.args
        return left.dtype in WIDE and any(self._is_position(arg, self._positional) for arg in (left, right))

    def is_conversion(self, expr: Expr) -> bool:
        """Whether an expression converts an id, or another whole position, to 64 bits or a float."""
        if expr.op is not Op.CONSTRUCT or len(expr.args) != 1 or expr.args[0].dtype not in WIDE:
            return False
        if expr.dtype not in (int64, uint64, float32, float64):
            return False
        return self._is_whole(expr.args[0])

    def needs_long(self, expr: Expr) -> bool:
        """Whether an expression needs its operands in 64 bits."""
        return (
            (expr.op is Op.COMPARE and self.is_comparison(expr))
            or self.is_conversion(expr)
            or self.is_division(expr)
        )

    def is_division(self, expr: Expr) -> bool:
        """Whether an expression is a quotient, remainder or shift of an id, which depends on all its bits."""
        return self._is_part(expr) and expr.dtype in WIDE and self._is_whole(expr)

    @staticmethod
    def _is_part(expr: Expr) -> bool:
        return expr.op is Op.BINARY and expr.value in _DIVIDING

    def _is_whole(self, value: Expr) -> bool:
        """Whether a value is an id, another whole position, or a part of one, which has not wrapped."""
        while (
            value.op is Op.COMPONENT
            or (value.op is Op.CONSTRUCT and len(value.args) == 1)
            or self._is_part(value)
        ):
            value = value.args[0]
        return self._is_source(value) or (value.op is Op.REGISTER and value.value in self._positional)

    def _find_demanded(self) -> set[Register]:
        """Return the registers whose values are needed in 64 bits."""
        found: set[Register] = set()
        asked: list[Expr] = []
        for statement in walk(self._kernel.body):
            if isinstance(statement, For):
                bounds = (statement.start, statement.stop, statement.step)
                if any(self._is_position(bound, self._positional) for bound in bounds):
                    asked.append(read(statement.counter))
            for expr in nodes(expressions_of(statement)):
                if expr.op is Op.ELEMENT and isinstance(expr.value, Storage):
                    asked += [expr.args[0], *(part for axis in expr.axes for part in axis)]
                elif self.needs_long(expr):
                    asked += expr.args
        while asked:
            for expr in nodes((asked.pop(),)):
                if expr.op is Op.REGISTER and isinstance(expr.value, Register) and expr.value not in found:
                    found.add(expr.value)
                    asked += self._values.get(expr.value, ())
        return found
