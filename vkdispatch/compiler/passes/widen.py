"""Widening: a kernel with 32-bit ids and indices becomes one with 64-bit positions."""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from vkdispatch.base import dtype as dt
from vkdispatch.base.record import replace
from vkdispatch.compiler import ir
from vkdispatch.compiler.ir import nodes as nodes
from vkdispatch.compiler.ir.literals import is_long, wrap
from vkdispatch.compiler.ir.names import FreshNames
from vkdispatch.compiler.passes.builders import assign, binary, compare, logical, read, when

# ---- Which registers and expressions of a kernel are positions -------------------------------------------
#
# That is, depend on invocation ids and sizes.


WIDE: dict[dt.DType, dt.DType] = {dt.int32: dt.int64, dt.uint32: dt.uint64}
_BITWISE = frozenset("&|^")
_DIVIDING = frozenset(("%", "/", ">>"))
_GROWING = frozenset(("+", "-", "*", "<<"))
BOUNDING = frozenset(("min", "max", "clamp", "abs"))
# Products with an odd factor of at least this size are hashes, which wrap around at 32 bits: no stride is so
# large. In conditions, which are less often about positions, smaller factors are taken for hashes.
HASH_FACTOR = 1 << 30
_HASH_FACTOR_OF_CONDITIONS = 1 << 20


def is_narrow(kind: dt.DType) -> bool:
    """Whether a type is an integer of 32 bits, or a vector of such."""
    return (dt.is_scalar(kind) or dt.is_vector(kind)) and dt.component_type(kind) in WIDE


def is_hashing(expr: ir.Expr, least: int) -> bool:
    """Whether an expression is a product that is meant to wrap around."""
    return expr.value == "*" and any(
        arg.op is ir.Op.LITERAL
        and isinstance(arg.value, int)
        and arg.value % 2 == 1
        and abs(arg.value) >= least
        for arg in expr.args
    )


class Positions:
    """The registers of a kernel that need companions, and the expressions that need 64-bit operands."""

    def __init__(self, kernel: ir.Kernel) -> None:
        self._kernel = kernel
        self._values: dict[ir.Register, list[ir.Expr]] = {}
        self._counters: set[ir.Register] = set()
        self._gather()
        # registers that hold a position (an id, a size), and those that may need more than 32 bits
        self._positional = self._fixpoint(self._is_position)
        self._growing = self._fixpoint(self._may_grow)
        self.companions = self._find_demanded() & self._growing

    def _gather(self) -> None:
        """Collect the values of each register, without registers that raw GLSL may assign to."""
        left_alone: set[ir.Register] = set()
        texts: list[str] = []
        for statement in ir.walk(self._kernel.body):
            if isinstance(statement, ir.Declare):
                self._note(statement.register, statement.value)
            elif isinstance(statement, ir.For):
                self._counters.add(statement.counter)
                for bound in (statement.start, statement.stop, statement.step):
                    self._note(statement.counter, bound)
            elif isinstance(statement, ir.Store):
                self._note_store(statement, left_alone)
            elif isinstance(statement, ir.RawStatement):
                texts.append(statement.text)
            texts += (
                expr.value.text
                for expr in nodes(ir.expressions_of(statement))
                if isinstance(expr.value, ir.RawText) and expr.value.settable
            )
        mentioned = set(re.findall(r"\w+", " ".join(texts)))
        for register in list(self._values):
            if register in left_alone or register.name in mentioned:
                del self._values[register]

    def _note(self, register: ir.Register, value: ir.Expr) -> None:
        if is_narrow(register.dtype):
            self._values.setdefault(register, []).append(value)

    def _note_store(self, statement: ir.Store, left_alone: set[ir.Register]) -> None:
        place, value = statement.place, statement.value
        if place.op in (ir.Op.COMPONENT, ir.Op.INDEX) and isinstance(place.args[0].value, ir.Register):
            if place.op is ir.Op.INDEX:
                left_alone.add(place.args[0].value)
            place = place.args[0]
        if place.op is ir.Op.REGISTER and isinstance(place.value, ir.Register):
            if statement.operator is not None:
                value = binary(statement.operator, statement.place, value)
            self._note(place.value, value)

    def _fixpoint(self, rule: Callable[[ir.Expr, set[ir.Register]], bool]) -> set[ir.Register]:
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

    def _is_source(self, expr: ir.Expr) -> bool:
        """Whether an expression is the id of an invocation or a workgroup, a shape or a length."""
        if expr.op is ir.Op.BUILTIN:
            return expr.value in (ir.Builtin.GLOBAL_INVOCATION_ID, ir.Builtin.WORKGROUP_ID)
        if expr.op is ir.Op.ARGUMENT:
            return isinstance(expr.value, ir.Argument) and (
                expr.value.shape or expr.value is self._kernel.exec_count
            )
        return expr.op is ir.Op.LENGTH and isinstance(expr.value, ir.Storage)

    def _is_position(self, expr: ir.Expr, registers: set[ir.Register]) -> bool:
        return self._reaches(expr, registers, growing=False)

    def _may_grow(self, expr: ir.Expr, registers: set[ir.Register]) -> bool:
        return self._reaches(expr, registers, growing=True)

    def _reaches(self, root: ir.Expr, registers: set[ir.Register], *, growing: bool) -> bool:
        """Whether a value depends on ids, shapes or these registers, or, if `growing`, may exceed 32 bits."""
        for expr in ir.reach((root,), partial(self._find_passed_on, growing=growing)):
            if not is_narrow(expr.dtype):
                continue
            if self._is_source(expr) or (expr.op is ir.Op.REGISTER and expr.value in registers):
                return True
            if growing and (
                (expr.op is ir.Op.BINARY and expr.value in _GROWING and not is_hashing(expr, HASH_FACTOR))
                or expr.op is ir.Op.UNARY
                or (expr.op is ir.Op.CONSTRUCT and any(dt.is_float_dtype(arg.dtype) for arg in expr.args))
            ):
                return True
        return False

    @staticmethod
    def _find_passed_on(expr: ir.Expr, *, growing: bool) -> Sequence[ir.Expr]:
        """Return the operands whose value reaches the value of an expression."""
        if not is_narrow(expr.dtype):
            return ()
        if expr.op in (ir.Op.COMPONENT, ir.Op.SWIZZLE, ir.Op.UNARY, ir.Op.CONSTRUCT):
            return expr.args
        if expr.op is ir.Op.INDEX:
            return expr.args[:1]
        if expr.op is ir.Op.SELECT:
            return expr.args[1:]
        if expr.op is ir.Op.CALL:
            return expr.args if expr.value in BOUNDING else ()
        if expr.op is not ir.Op.BINARY:
            return ()
        if growing:
            return () if is_hashing(expr, HASH_FACTOR) else expr.args
        if expr.value in _BITWISE or is_hashing(expr, _HASH_FACTOR_OF_CONDITIONS):
            return ()
        return expr.args

    # -- expressions that need 64 bits

    def may_grow(self, expr: ir.Expr) -> bool:
        """Whether a position may need 64 bits."""
        return self._may_grow(expr, self.companions)

    def is_comparison(self, expr: ir.Expr) -> bool:
        """Whether a comparison is one of positions."""
        left, right = expr.args
        return left.dtype in WIDE and any(self._is_position(arg, self._positional) for arg in (left, right))

    def is_conversion(self, expr: ir.Expr) -> bool:
        """Whether an expression converts an id, or another whole position, to 64 bits or a float."""
        if expr.op is not ir.Op.CONSTRUCT or len(expr.args) != 1 or expr.args[0].dtype not in WIDE:
            return False
        if expr.dtype not in (dt.int64, dt.uint64, dt.float32, dt.float64):
            return False
        return self._is_whole(expr.args[0])

    def needs_long(self, expr: ir.Expr) -> bool:
        """Whether an expression needs its operands in 64 bits."""
        return (
            (expr.op is ir.Op.COMPARE and self.is_comparison(expr))
            or self.is_conversion(expr)
            or self.is_division(expr)
        )

    def is_division(self, expr: ir.Expr) -> bool:
        """Whether an expression is a quotient, remainder or shift of an id, which depends on all its bits."""
        return self._is_part(expr) and expr.dtype in WIDE and self._is_whole(expr)

    @staticmethod
    def _is_part(expr: ir.Expr) -> bool:
        return expr.op is ir.Op.BINARY and expr.value in _DIVIDING

    def _is_whole(self, value: ir.Expr) -> bool:
        """Whether a value is an id, another whole position, or a part of one, which has not wrapped."""
        while (
            value.op is ir.Op.COMPONENT
            or (value.op is ir.Op.CONSTRUCT and len(value.args) == 1)
            or self._is_part(value)
        ):
            value = value.args[0]
        return self._is_source(value) or (value.op is ir.Op.REGISTER and value.value in self._positional)

    def _find_demanded(self) -> set[ir.Register]:
        """Return the registers whose values are needed in 64 bits."""
        found: set[ir.Register] = set()
        asked: list[ir.Expr] = []
        for statement in ir.walk(self._kernel.body):
            if isinstance(statement, ir.For):
                bounds = (statement.start, statement.stop, statement.step)
                if any(self._is_position(bound, self._positional) for bound in bounds):
                    asked.append(read(statement.counter))
            for expr in nodes(ir.expressions_of(statement)):
                if expr.op is ir.Op.ELEMENT and isinstance(expr.value, ir.Storage):
                    asked += [expr.args[0], *(part for axis in expr.axes for part in axis)]
                elif self.needs_long(expr):
                    asked += expr.args
        while asked:
            for expr in nodes((asked.pop(),)):
                if (
                    expr.op is ir.Op.REGISTER
                    and isinstance(expr.value, ir.Register)
                    and expr.value not in found
                ):
                    found.add(expr.value)
                    asked += self._values.get(expr.value, ())
        return found


# Values that are used as indices of buffers are computed in 64 bits: invocation ids, shapes, and arithmetic
# on them. So are comparisons of such positions, bounds of loops, and conversions of an id to 64 bits or a
# float. Each register that holds a position gets 64-bit companions, one for each component, which are
# assigned along with it. Quotients, remainders and right shifts of an id use all its bits, since ids do not
# wrap around. All else keeps its 32 bits, so a hash of an id, for example, stays the same.


_LETTERS = "xyzw"

Parts = tuple[ir.Expr, ...]


def widen(kernel: ir.Kernel, *, bounded: bool = True) -> ir.Kernel:
    """Return the form of a kernel whose positions have 64 bits.

    Each shape becomes four int64 arguments, the first of which has the name of the shape. The limit becomes
    three uint64 arguments likewise. If `bounded`, the kernel itself ends invocations beyond the limit. A wide
    kernel is returned as it is.
    """
    if kernel.wide:
        return kernel
    return _Widening(kernel).kernel(bounded=bounded)


# ---- small expressions ---------------------------------------------------------------------------


def _cast(value: ir.Expr, kind: dt.DType) -> ir.Expr:
    if value.dtype is kind:
        return value
    if value.op is ir.Op.LITERAL and isinstance(value.value, int):
        return replace(value, dtype=kind, value=wrap(value.value, kind))
    return ir.Expr(ir.Op.CONSTRUCT, kind, (value,), None, value.loc)


def _read_argument(argument: ir.Argument) -> ir.Expr:
    return ir.Expr(ir.Op.ARGUMENT, argument.dtype, (), argument)


def _part(value: ir.Expr, position: int) -> ir.Expr:
    """Scalar component of a value."""
    if dt.is_scalar(value.dtype):
        return value
    return ir.Expr(ir.Op.COMPONENT, dt.component_type(value.dtype), (value,), _LETTERS[position], value.loc)


# ---- the rewriting -------------------------------------------------------------------------------


class _Widening:
    """Rewrites statements, and each expression once in its own type and once in 64 bits."""

    def __init__(self, kernel: ir.Kernel) -> None:
        self._source = kernel
        self._positions = Positions(kernel)
        self._names = FreshNames.of_variables(kernel)
        members = FreshNames.of_arguments(kernel)
        self._members: dict[ir.Argument, tuple[ir.Argument, ...]] = {
            argument: _split(argument, members)
            for argument in kernel.arguments
            if argument.shape or argument is kernel.exec_count
        }
        self._companions: dict[ir.Register, tuple[ir.Register, ...]] = {}
        self._counters: dict[ir.Register, ir.Register] = {}
        self._ids: dict[int, ir.Register] = {}
        self._narrow: dict[int, ir.Expr] = {}
        self._wide: dict[int, Parts] = {}
        # keeps the expressions alive whose identities are keys
        self._kept: list[ir.Expr] = []

    def kernel(self, *, bounded: bool) -> ir.Kernel:
        """Return the widened kernel."""
        kernel = self._source
        body = self._block(kernel.body)
        count = kernel.exec_count
        bound = None
        if count is not None and bounded:
            limits = map(_read_argument, self._members[count])
            beyond = tuple(compare(">=", self._id(axis), limit) for axis, limit in enumerate(limits))
            bound = when(logical("||", *beyond), ir.Return())
        start = tuple(ir.Declare(register, global_id(axis)) for axis, register in sorted(self._ids.items()))
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

    def _register(
        self, name: str, kind: dt.DType, *, counter: bool = False, fixed: bool = False
    ) -> ir.Register:
        return ir.Register(self._names.claim(name), kind, counter, fixed)

    def _id(self, axis: int) -> ir.Expr:
        if axis not in self._ids:
            self._ids[axis] = self._register(f"long_gid_{_LETTERS[axis]}", dt.uint64, fixed=True)
        return read(self._ids[axis])

    # -- expressions

    def _value(self, expr: ir.Expr) -> ir.Expr:
        """Rewrite an expression in its own type."""
        if id(expr) not in self._narrow:
            self._visit(expr)
        return self._narrow[id(expr)]

    def _long(self, expr: ir.Expr) -> Parts:
        """Return the components of an expression in 64 bits."""
        if id(expr) not in self._wide:
            self._visit(expr)
        return self._wide[id(expr)]

    def _visit(self, root: ir.Expr) -> None:
        for expr in ir.postorder(root, self._narrow):
            self._kept.append(expr)
            narrow = self._narrow[id(expr)] = self._rewrite(expr)
            if is_narrow(expr.dtype):
                found = self._widen(expr)
                self._wide[id(expr)] = self._extend(narrow) if found is None else found

    @staticmethod
    def _extend(narrow: ir.Expr) -> Parts:
        kind = WIDE[dt.component_type(narrow.dtype)]
        count = dt.component_count(narrow.dtype)
        return tuple(_cast(_part(narrow, position), kind) for position in range(count))

    def _rewrite(self, expr: ir.Expr) -> ir.Expr:
        if expr.op is ir.Op.ARGUMENT and isinstance(expr.value, ir.Argument) and expr.value in self._members:
            parts = (
                _cast(_read_argument(member), dt.component_type(expr.dtype))
                for member in self._members[expr.value]
            )
            return ir.Expr(ir.Op.CONSTRUCT, expr.dtype, tuple(parts), None, expr.loc)
        args = tuple(self._narrow[id(arg)] for arg in expr.args)
        if expr.op is ir.Op.ELEMENT and isinstance(expr.value, ir.Storage):
            axes = tuple((self._position(index), self._position(size)) for index, size in expr.axes)
            return replace(expr, args=(self._position(expr.args[0]),), axes=axes)
        if self._positions.is_division(expr) and not _is_of_low_bits(expr):
            found = self._widen(expr)
            return replace(expr, args=args) if found is None else _cast(found[0], expr.dtype)
        if self._positions.needs_long(expr) and not _is_of_low_bits(expr):
            return replace(expr, args=tuple(self._wide[id(arg)][0] for arg in expr.args))
        return ir.with_args(expr, args)

    def _position(self, index: ir.Expr) -> ir.Expr:
        """Return an index in 64 bits if it may need them."""
        outermost = index.op is ir.Op.CONSTRUCT and is_long(index.args[0].dtype)
        if outermost:
            # the front end truncated an index that the user computed in 64 bits
            return self._value(index.args[0])
        if not is_narrow(index.dtype) or not self._positions.may_grow(index):
            return self._value(index)
        return self._long(index)[0]

    def _widen(self, expr: ir.Expr) -> Parts | None:
        """Return the components of an expression in 64 bits; None if its value is one of 32 bits."""
        kind = WIDE[dt.component_type(expr.dtype)]
        op = expr.op
        if op is ir.Op.LITERAL or (op is ir.Op.LENGTH and isinstance(expr.value, ir.Storage)):
            return (replace(expr, dtype=kind),)
        if op is ir.Op.BUILTIN:
            ids = expr.value is ir.Builtin.GLOBAL_INVOCATION_ID
            return tuple(map(self._id, range(3))) if ids else None
        if op is ir.Op.ARGUMENT and isinstance(expr.value, ir.Argument) and expr.value in self._members:
            return tuple(map(_read_argument, self._members[expr.value]))
        if op is ir.Op.REGISTER and isinstance(expr.value, ir.Register):
            if expr.value in self._positions.companions:
                return tuple(map(read, self._companions_of(expr.value)))
            return None
        if op in (ir.Op.COMPONENT, ir.Op.SWIZZLE):
            base = expr.args[0]
            if id(base) not in self._wide:
                return None
            return tuple(self._wide[id(base)][_LETTERS.index(letter)] for letter in str(expr.value))
        if op is ir.Op.INDEX:
            return self._widen_index(expr)
        if op is ir.Op.CONSTRUCT:
            return self._widen_construct(expr, kind)
        if op in (ir.Op.UNARY, ir.Op.BINARY):
            return self._widen_operands(expr, kind)
        if op is ir.Op.CALL:
            known = expr.value in BOUNDING and all(id(arg) in self._wide for arg in expr.args)
            return self._widen_operands(expr, kind) if known else None
        if op is ir.Op.SELECT:
            condition = self._narrow[id(expr.args[0])]
            parts = zip(*(self._spread(arg, expr) for arg in expr.args[1:]), strict=True)
            return tuple(replace(expr, dtype=kind, args=(condition, *pair)) for pair in parts)
        return None

    def _widen_index(self, expr: ir.Expr) -> Parts | None:
        base, position = expr.args
        if position.op is not ir.Op.LITERAL or id(base) not in self._wide:
            return None
        assert isinstance(position.value, int)
        parts = self._wide[id(base)]
        return (parts[position.value],) if position.value < len(parts) else None

    def _widen_construct(self, expr: ir.Expr, kind: dt.DType) -> Parts | None:
        parts: list[ir.Expr] = []
        for arg in expr.args:
            if id(arg) in self._wide:
                parts += (_cast(part, kind) for part in self._wide[id(arg)])
            elif dt.is_scalar(arg.dtype) and dt.is_float_dtype(arg.dtype):
                parts.append(ir.Expr(ir.Op.CONSTRUCT, kind, (self._narrow[id(arg)],), None, expr.loc))
            else:
                return None
        width = dt.component_count(expr.dtype)
        return tuple(parts * width if len(parts) == 1 else parts[:width])

    def _spread(self, arg: ir.Expr, expr: ir.Expr) -> Parts:
        """Return the components of an operand in 64 bits; a scalar beside a vector is repeated."""
        parts = self._wide[id(arg)]
        return parts if len(parts) > 1 else parts * dt.component_count(expr.dtype)

    def _widen_operands(self, expr: ir.Expr, kind: dt.DType) -> Parts | None:
        if expr.op is ir.Op.BINARY and is_hashing(expr, HASH_FACTOR):
            return None
        operands = [self._spread(arg, expr) for arg in expr.args]
        if expr.value == ">>" and kind is dt.int64:
            # a shift by 31 gives the sign
            operands[1] = tuple(
                replace(part, value=63) if part.op is ir.Op.LITERAL and part.value == 31 else part
                for part in operands[1]
            )
        return tuple(replace(expr, dtype=kind, args=tuple(parts)) for parts in zip(*operands, strict=True))

    # -- registers

    def _companions_of(self, register: ir.Register) -> tuple[ir.Register, ...]:
        if register not in self._companions:
            kind, width = WIDE[dt.component_type(register.dtype)], dt.component_count(register.dtype)
            names = [""] if width == 1 else [f"_{letter}" for letter in _LETTERS[:width]]
            self._companions[register] = tuple(
                self._register(
                    f"long_{register.name}{name}", kind, counter=register.counter, fixed=register.fixed
                )
                for name in names
            )
        return self._companions[register]

    def _has_companions(self, register: object) -> bool:
        return isinstance(register, ir.Register) and register in self._positions.companions

    # -- statements

    def _block(self, block: ir.Block) -> ir.Block:
        return tuple(new for statement in block for new in self._statement(statement))

    def _statement(self, statement: ir.Statement) -> Iterator[ir.Statement]:
        if isinstance(statement, ir.Declare):
            yield from self._declare(statement)
        elif isinstance(statement, ir.Store):
            yield from self._store(statement)
        elif isinstance(statement, ir.For):
            yield from self._for(statement)
        else:
            yield ir.map_statement(statement, self._value, self._block)

    def _declare(self, statement: ir.Declare) -> Iterator[ir.Statement]:
        register, value = statement.register, statement.value
        declared = replace(statement, value=self._value(value))
        if not self._has_companions(register):
            yield declared
            return
        companions = self._companions_of(register)
        if value.op is ir.Op.ATOMIC or not self._positions.may_grow(value):
            yield declared
            parts = self._extend(read(register))
        else:
            parts = self._long(value)
        for companion, part in zip(companions, parts, strict=True):
            yield ir.Declare(companion, part, statement.loc)
        if value.op is not ir.Op.ATOMIC and self._positions.may_grow(value):
            yield declared

    def _store(self, statement: ir.Store) -> Iterator[ir.Statement]:
        place, value, loc = statement.place, statement.value, statement.loc
        base = place.args[0] if place.op is ir.Op.COMPONENT else place
        stored = replace(statement, place=self._value(place), value=self._value(value))
        if base.op is not ir.Op.REGISTER or not self._has_companions(base.value):
            yield stored
            return
        assert isinstance(base.value, ir.Register)
        targets = self._companions_of(base.value)
        if place.op is ir.Op.COMPONENT:
            targets = (targets[_LETTERS.index(str(place.value))],)
        if statement.operator is not None:
            value = binary(statement.operator, place, value, loc)
        elif not self._positions.may_grow(value):
            yield stored
            for target, part in zip(targets, self._extend(stored.place), strict=True):
                yield assign(target, part, loc)
            return
        # The new value may depend on the register itself.
        parts = self._long(value)
        held = [self._register(f"{target.name}_next", target.dtype, fixed=True) for target in targets]
        for register, part in zip(held, parts, strict=True):
            yield ir.Declare(register, part, loc)
        yield stored
        for target, register in zip(targets, held, strict=True):
            yield assign(target, read(register), loc)

    def _for(self, statement: ir.For) -> Iterator[ir.Statement]:
        counter, loc = statement.counter, statement.loc
        names = ("start", "stop", "step")
        bounds: dict[str, Any] = {name: self._value(getattr(statement, name)) for name in names}
        if not self._has_companions(counter):
            yield replace(statement, **bounds, body=self._block(statement.body))
            return
        (companion,) = self._companions_of(counter)
        for name in names:
            (bound,) = self._long(getattr(statement, name))
            if bound.op is not ir.Op.LITERAL:
                register = self._register(f"{companion.name}_{name}", companion.dtype, fixed=True)
                yield ir.Declare(register, bound, loc)
                bound = read(register)
            bounds[name] = bound
        first = ir.Declare(counter, _cast(read(companion), counter.dtype), loc)
        yield replace(statement, counter=companion, **bounds, body=(first, *self._block(statement.body)))


def _is_of_low_bits(expr: ir.Expr) -> bool:
    """Whether the low 32 bits decide: an unsigned remainder by a power of two, which NVIDIA 580 gets wrong.

    Its 64-bit form as the index of an array in a structure selects another item.
    """
    divisor = expr.args[1].value if expr.op is ir.Op.BINARY and expr.value == "%" else None
    is_power = isinstance(divisor, int) and divisor > 0 and divisor & (divisor - 1) == 0
    return is_power and dt.component_type(expr.dtype) is dt.uint32


def _split(argument: ir.Argument, members: FreshNames) -> tuple[ir.Argument, ...]:
    """Return the 64-bit arguments that replace a vector; the first one keeps its name."""
    kind = WIDE[dt.component_type(argument.dtype)]
    letters = _LETTERS[1 : dt.component_count(argument.dtype)]
    names = (argument.name, *(members.claim(f"{argument.name}_{letter}") for letter in letters))
    return tuple(ir.Argument(name, kind) for name in names)


def global_id(axis: int) -> ir.Expr:
    """Return the id of the invocation along an axis: workgroup id * workgroup size + local id."""
    group, size, local = (
        _cast(_part(ir.Expr(ir.Op.BUILTIN, dt.uvec3, (), which), axis), dt.uint64)
        for which in (ir.Builtin.WORKGROUP_ID, ir.Builtin.WORKGROUP_SIZE, ir.Builtin.LOCAL_INVOCATION_ID)
    )
    return binary("+", binary("*", group, size), local)
