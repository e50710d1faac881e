"""Widening: a kernel with 32-bit ids and indices becomes one with 64-bit positions."""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from vkdispatch.base.dtype import (
    DType,
    bool_,
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
    uvec3,
)
from vkdispatch.base.record import replace
from vkdispatch.compiler.ir import (
    Argument,
    Block,
    Builtin,
    Declare,
    Expr,
    For,
    If,
    Kernel,
    Op,
    RawStatement,
    RawText,
    Register,
    Return,
    Statement,
    Storage,
    Store,
    expressions_of,
    map_statement,
    postorder,
    walk,
    with_args,
)
from vkdispatch.compiler.ir import nodes as nodes
from vkdispatch.compiler.ir.names import FreshNames
from vkdispatch.compiler.passes.builders import read

# ---- Which registers and expressions of a kernel are positions -------------------------------------------
#
# That is, depend on invocation ids and sizes.


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


# Values that are used as indices of buffers are computed in 64 bits: invocation ids, shapes, and arithmetic
# on them. So are comparisons of such positions, bounds of loops, and conversions of an id to 64 bits or a
# float. Each register that holds a position gets 64-bit companions, one for each component, which are
# assigned along with it. Quotients, remainders and right shifts of an id use all its bits, since ids do not
# wrap around. All else keeps its 32 bits, so a hash of an id, for example, stays the same.


_LETTERS = "xyzw"

Parts = tuple[Expr, ...]


def widen(kernel: Kernel, *, bounded: bool = True) -> Kernel:
    """Return the form of a kernel whose positions have 64 bits.

    Each shape becomes four int64 arguments, the first of which has the name of the shape. The limit becomes
    three uint64 arguments likewise. If `bounded`, the kernel itself ends invocations beyond the limit. A wide
    kernel is returned as it is.
    """
    if kernel.wide:
        return kernel
    return _Widening(kernel).kernel(bounded=bounded)


# ---- small expressions ---------------------------------------------------------------------------


def _cast(value: Expr, kind: DType) -> Expr:
    if value.dtype is kind:
        return value
    if value.op is Op.LITERAL and isinstance(value.value, int):
        bits = 8 * kind.item_size
        low = 0 if kind in (uint32, uint64) else -(1 << (bits - 1))
        return replace(value, dtype=kind, value=(value.value - low) % (1 << bits) + low)
    return Expr(Op.CONSTRUCT, kind, (value,), None, value.loc)


def _read_argument(argument: Argument) -> Expr:
    return Expr(Op.ARGUMENT, argument.dtype, (), argument)


def _part(value: Expr, position: int) -> Expr:
    """Scalar component of a value."""
    if is_scalar(value.dtype):
        return value
    return Expr(Op.COMPONENT, component_type(value.dtype), (value,), _LETTERS[position], value.loc)


def _width(kind: DType) -> int:
    return 1 if is_scalar(kind) else kind.child_count


def _is_long(kind: DType) -> bool:
    return kind in (int64, uint64)


# ---- the rewriting -------------------------------------------------------------------------------


class _Widening:
    """Rewrites statements, and each expression once in its own type and once in 64 bits."""

    def __init__(self, kernel: Kernel) -> None:
        self._source = kernel
        self._positions = Positions(kernel)
        self._names = FreshNames.of_variables(kernel)
        members = FreshNames.of_arguments(kernel)
        self._members: dict[Argument, tuple[Argument, ...]] = {
            argument: _split(argument, members)
            for argument in kernel.arguments
            if argument.shape or argument is kernel.exec_count
        }
        self._companions: dict[Register, tuple[Register, ...]] = {}
        self._counters: dict[Register, Register] = {}
        self._ids: dict[int, Register] = {}
        self._narrow: dict[int, Expr] = {}
        self._wide: dict[int, Parts] = {}
        # keeps the expressions alive whose identities are keys
        self._kept: list[Expr] = []

    def kernel(self, *, bounded: bool) -> Kernel:
        """Return the widened kernel."""
        kernel = self._source
        body = self._block(kernel.body)
        count = kernel.exec_count
        bound = None
        if count is not None and bounded:
            limits = map(_read_argument, self._members[count])
            beyond = tuple(
                Expr(Op.COMPARE, bool_, (self._id(axis), limit), ">=") for axis, limit in enumerate(limits)
            )
            bound = If(((Expr(Op.LOGICAL, bool_, beyond, "||"), (Return(),)),))
        start = tuple(Declare(register, global_id(axis)) for axis, register in sorted(self._ids.items()))
        arguments = tuple(
            part for argument in kernel.arguments for part in self._members.get(argument, (argument,))
        )
        return replace(
            kernel,
            arguments=arguments,
            body=(*start, *((bound,) if bound is not None else ()), *body),
            exec_count=None if count is None else self._members[count][0],
            wide=True,
        )

    def _register(self, name: str, kind: DType, *, counter: bool = False, fixed: bool = False) -> Register:
        return Register(self._names.claim(name), kind, counter, fixed)

    def _id(self, axis: int) -> Expr:
        if axis not in self._ids:
            self._ids[axis] = self._register(f"long_gid_{_LETTERS[axis]}", uint64, fixed=True)
        return read(self._ids[axis])

    # -- expressions

    def _value(self, expr: Expr) -> Expr:
        """Rewrite an expression in its own type."""
        if id(expr) not in self._narrow:
            self._visit(expr)
        return self._narrow[id(expr)]

    def _long(self, expr: Expr) -> Parts:
        """Return the components of an expression in 64 bits."""
        if id(expr) not in self._wide:
            self._visit(expr)
        return self._wide[id(expr)]

    def _visit(self, root: Expr) -> None:
        for expr in postorder(root, self._narrow):
            self._kept.append(expr)
            narrow = self._narrow[id(expr)] = self._rewrite(expr)
            if is_narrow(expr.dtype):
                found = self._widen(expr)
                self._wide[id(expr)] = self._extend(narrow) if found is None else found

    @staticmethod
    def _extend(narrow: Expr) -> Parts:
        kind = WIDE[component_type(narrow.dtype)]
        return tuple(_cast(_part(narrow, position), kind) for position in range(_width(narrow.dtype)))

    def _rewrite(self, expr: Expr) -> Expr:
        if expr.op is Op.ARGUMENT and isinstance(expr.value, Argument) and expr.value in self._members:
            parts = (
                _cast(_read_argument(each), component_type(expr.dtype)) for each in self._members[expr.value]
            )
            return Expr(Op.CONSTRUCT, expr.dtype, tuple(parts), None, expr.loc)
        args = tuple(self._narrow[id(arg)] for arg in expr.args)
        if expr.op is Op.ELEMENT and isinstance(expr.value, Storage):
            axes = tuple((self._position(index), self._position(size)) for index, size in expr.axes)
            return replace(expr, args=(self._position(expr.args[0]),), axes=axes)
        if self._positions.is_division(expr) and not _is_of_low_bits(expr):
            found = self._widen(expr)
            return replace(expr, args=args) if found is None else _cast(found[0], expr.dtype)
        if self._positions.needs_long(expr) and not _is_of_low_bits(expr):
            return replace(expr, args=tuple(self._wide[id(arg)][0] for arg in expr.args))
        return with_args(expr, args)

    def _position(self, index: Expr) -> Expr:
        """Return an index in 64 bits if it may need them."""
        outermost = index.op is Op.CONSTRUCT and _is_long(index.args[0].dtype)
        if outermost:
            # the front end truncated an index that the user computed in 64 bits
            return self._value(index.args[0])
        if not is_narrow(index.dtype) or not self._positions.may_grow(index):
            return self._value(index)
        return self._long(index)[0]

    def _widen(self, expr: Expr) -> Parts | None:
        """Return the components of an expression in 64 bits; None if its value is one of 32 bits."""
        kind = WIDE[component_type(expr.dtype)]
        op = expr.op
        if op is Op.LITERAL:
            return (replace(expr, dtype=kind),)
        if op is Op.BUILTIN:
            ids = expr.value is Builtin.GLOBAL_INVOCATION_ID
            return tuple(map(self._id, range(3))) if ids else None
        if op is Op.ARGUMENT and isinstance(expr.value, Argument) and expr.value in self._members:
            return tuple(map(_read_argument, self._members[expr.value]))
        if op is Op.REGISTER and isinstance(expr.value, Register):
            if expr.value in self._positions.companions:
                return tuple(map(read, self._companions_of(expr.value)))
            return None
        if op is Op.LENGTH and isinstance(expr.value, Storage):
            return (replace(expr, dtype=kind),)
        if op in (Op.COMPONENT, Op.SWIZZLE):
            base = expr.args[0]
            if id(base) not in self._wide:
                return None
            return tuple(self._wide[id(base)][_LETTERS.index(letter)] for letter in str(expr.value))
        if op is Op.INDEX:
            return self._widen_index(expr)
        if op is Op.CONSTRUCT:
            return self._widen_construct(expr, kind)
        rule = {
            Op.UNARY: self._widen_operands,
            Op.BINARY: self._widen_operands,
            Op.CALL: self._widen_call,
        }.get(op)
        if op is Op.SELECT:
            condition = self._narrow[id(expr.args[0])]
            parts = zip(*(self._spread(arg, expr) for arg in expr.args[1:]), strict=True)
            return tuple(replace(expr, dtype=kind, args=(condition, *pair)) for pair in parts)
        return None if rule is None else rule(expr, kind)

    def _widen_index(self, expr: Expr) -> Parts | None:
        base, position = expr.args
        if position.op is not Op.LITERAL or id(base) not in self._wide:
            return None
        assert isinstance(position.value, int)
        parts = self._wide[id(base)]
        return (parts[position.value],) if position.value < len(parts) else None

    def _widen_construct(self, expr: Expr, kind: DType) -> Parts | None:
        parts: list[Expr] = []
        for arg in expr.args:
            if id(arg) in self._wide:
                parts += (_cast(part, kind) for part in self._wide[id(arg)])
            elif is_scalar(arg.dtype) and is_float_dtype(arg.dtype):
                parts.append(Expr(Op.CONSTRUCT, kind, (self._narrow[id(arg)],), None, expr.loc))
            else:
                return None
        width = _width(expr.dtype)
        return tuple(parts * width if len(parts) == 1 else parts[:width])

    def _spread(self, arg: Expr, expr: Expr) -> Parts:
        """Return the components of an operand in 64 bits; a scalar beside a vector is repeated."""
        parts = self._wide[id(arg)]
        return parts if len(parts) > 1 else parts * _width(expr.dtype)

    def _widen_operands(self, expr: Expr, kind: DType) -> Parts | None:
        if expr.op is Op.BINARY and is_hashing(expr, HASH_FACTOR):
            return None
        operands = [self._spread(arg, expr) for arg in expr.args]
        if expr.value == ">>" and kind is int64:
            # a shift by 31 gives the sign
            operands[1] = tuple(
                replace(part, value=63) if part.op is Op.LITERAL and part.value == 31 else part
                for part in operands[1]
            )
        return tuple(replace(expr, dtype=kind, args=tuple(parts)) for parts in zip(*operands, strict=True))

    def _widen_call(self, expr: Expr, kind: DType) -> Parts | None:
        known = expr.value in BOUNDING and all(id(arg) in self._wide for arg in expr.args)
        return self._widen_operands(expr, kind) if known else None

    # -- registers

    def _companions_of(self, register: Register) -> tuple[Register, ...]:
        if register not in self._companions:
            kind, width = WIDE[component_type(register.dtype)], _width(register.dtype)
            names = [""] if width == 1 else [f"_{letter}" for letter in _LETTERS[:width]]
            self._companions[register] = tuple(
                self._register(
                    f"long_{register.name}{name}", kind, counter=register.counter, fixed=register.fixed
                )
                for name in names
            )
        return self._companions[register]

    def _has_companions(self, register: object) -> bool:
        return isinstance(register, Register) and register in self._positions.companions

    # -- statements

    def _block(self, block: Block) -> Block:
        return tuple(new for statement in block for new in self._statement(statement))

    def _statement(self, statement: Statement) -> Iterator[Statement]:
        if isinstance(statement, Declare):
            yield from self._declare(statement)
        elif isinstance(statement, Store):
            yield from self._store(statement)
        elif isinstance(statement, For):
            yield from self._for(statement)
        else:
            yield map_statement(statement, self._value, self._block)

    def _declare(self, statement: Declare) -> Iterator[Statement]:
        register, value = statement.register, statement.value
        declared = replace(statement, value=self._value(value))
        if not self._has_companions(register):
            yield declared
            return
        companions = self._companions_of(register)
        if value.op is Op.ATOMIC or not self._positions.may_grow(value):
            yield declared
            parts = self._extend(read(register))
        else:
            parts = self._long(value)
        for companion, part in zip(companions, parts, strict=True):
            yield Declare(companion, part, statement.loc)
        if value.op is not Op.ATOMIC and self._positions.may_grow(value):
            yield declared

    def _store(self, statement: Store) -> Iterator[Statement]:
        place, value, loc = statement.place, statement.value, statement.loc
        base = place.args[0] if place.op is Op.COMPONENT else place
        stored = replace(statement, place=self._value(place), value=self._value(value))
        if base.op is not Op.REGISTER or not self._has_companions(base.value):
            yield stored
            return
        assert isinstance(base.value, Register)
        targets = self._companions_of(base.value)
        if place.op is Op.COMPONENT:
            targets = (targets[_LETTERS.index(str(place.value))],)
        if statement.operator is not None:
            value = Expr(Op.BINARY, place.dtype, (place, value), statement.operator, loc)
        elif not self._positions.may_grow(value):
            yield stored
            for target, part in zip(targets, self._extend(stored.place), strict=True):
                yield Store(read(target), part, None, loc)
            return
        # The new value may depend on the register itself.
        parts = self._long(value)
        held = [self._register(f"{target.name}_next", target.dtype, fixed=True) for target in targets]
        for register, part in zip(held, parts, strict=True):
            yield Declare(register, part, loc)
        yield stored
        for target, register in zip(targets, held, strict=True):
            yield Store(read(target), read(register), None, loc)

    def _for(self, statement: For) -> Iterator[Statement]:
        counter, loc = statement.counter, statement.loc
        names = ("start", "stop", "step")
        bounds: dict[str, Any] = {name: self._value(getattr(statement, name)) for name in names}
        if not self._has_companions(counter):
            yield replace(statement, **bounds, body=self._block(statement.body))
            return
        (companion,) = self._companions_of(counter)
        for name in names:
            (bound,) = self._long(getattr(statement, name))
            if bound.op is not Op.LITERAL:
                register = self._register(f"{companion.name}_{name}", companion.dtype, fixed=True)
                yield Declare(register, bound, loc)
                bound = read(register)
            bounds[name] = bound
        first = Declare(counter, _cast(read(companion), counter.dtype), loc)
        yield replace(statement, counter=companion, **bounds, body=(first, *self._block(statement.body)))


def _is_of_low_bits(expr: Expr) -> bool:
    """Whether the low 32 bits decide: an unsigned remainder by a power of two, which NVIDIA 580 gets wrong.

    Its 64-bit form as the index of an array in a structure selects another item.
    """
    divisor = expr.args[1].value if expr.op is Op.BINARY and expr.value == "%" else None
    is_power = isinstance(divisor, int) and divisor > 0 and divisor & (divisor - 1) == 0
    return is_power and component_type(expr.dtype) is uint32


def _split(argument: Argument, members: FreshNames) -> tuple[Argument, ...]:
    """Return the 64-bit arguments that replace a vector; the first one keeps its name."""
    kind = WIDE[component_type(argument.dtype)]
    letters = _LETTERS[1 : _width(argument.dtype)]
    names = (argument.name, *(members.claim(f"{argument.name}_{letter}") for letter in letters))
    return tuple(Argument(name, kind) for name in names)


def global_id(axis: int) -> Expr:
    """Return the id of the invocation along an axis: workgroup id * workgroup size + local id."""
    group, size, local = (
        _cast(_part(Expr(Op.BUILTIN, uvec3, (), which), axis), uint64)
        for which in (Builtin.WORKGROUP_ID, Builtin.WORKGROUP_SIZE, Builtin.LOCAL_INVOCATION_ID)
    )
    before = Expr(Op.BINARY, uint64, (group, size), "*")
    return Expr(Op.BINARY, uint64, (before, local), "+")
