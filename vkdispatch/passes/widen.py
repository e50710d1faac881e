"""Widening: a kernel with 32-bit ids and indices becomes one with 64-bit positions.

Values that are used as indices of buffers are computed in 64 bits: invocation ids, shapes, and arithmetic on
them. So are comparisons of such positions, bounds of loops, and conversions of an id to 64 bits or a float.
Each register that holds a position gets 64-bit companions, one for each component, which are assigned along
with it. Quotients, remainders and right shifts of an id use all its bits, since ids do not wrap around. All
else keeps its 32 bits, so a hash of an id, for example, stays the same.
"""

from collections.abc import Iterator
from typing import Any

from vkdispatch.base.dtype import (
    DType,
    bool_,
    component_type,
    int64,
    is_float_dtype,
    is_scalar,
    uint32,
    uint64,
    uvec3,
)
from vkdispatch.base.record import replace
from vkdispatch.ir import (
    Argument,
    Block,
    Builtin,
    Declare,
    Expr,
    For,
    If,
    Kernel,
    Op,
    Register,
    Return,
    Statement,
    Storage,
    Store,
    map_statement,
    postorder,
    with_args,
)
from vkdispatch.ir.names import FreshNames
from vkdispatch.passes.builders import read
from vkdispatch.passes.positions import BOUNDING, HASH_FACTOR, WIDE, Positions, is_hashing, is_narrow

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
