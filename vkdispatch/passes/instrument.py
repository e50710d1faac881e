"""Instrumentation: prints, asserts and checks of a kernel become ordinary statements.

The new kernel writes messages and violations to one more storage buffer, which is bound last; see
`diagnostics`. Indices are checked just before the statement that uses them, and only where the statement
evaluates them: `i < n && buf[i] > 0` becomes a branch. A bad read gives element 0 and a bad store is skipped.
The invocation continues, so that all invocations still reach barriers.
"""

import re
from collections.abc import Callable

from vkdispatch.base.dtype import (
    DType,
    bool_,
    component_type,
    is_array,
    is_cooperative,
    is_float_dtype,
    uint32,
    uint64,
)
from vkdispatch.base.record import record, replace
from vkdispatch.ir import (
    Argument,
    Assert,
    Block,
    Break,
    Declare,
    Expr,
    For,
    If,
    ImageBinding,
    ImageStore,
    Kernel,
    Op,
    Print,
    RawStatement,
    Return,
    Scope,
    Statement,
    Storage,
    Store,
    Switch,
    While,
    expressions_in,
    map_statement,
    walk,
)
from vkdispatch.ir.location import Loc
from vkdispatch.ir.names import FreshNames
from vkdispatch.passes import diagnostics as words
from vkdispatch.passes.builders import all_of, components, negate, read, uint, zero
from vkdispatch.passes.checked_values import CheckedValues, describe_place
from vkdispatch.passes.diagnostics import (
    AssertSite,
    Checks,
    LoopSite,
    NanSite,
    PrintSite,
    Site,
)
from vkdispatch.passes.messages import word_count
from vkdispatch.passes.reports import Report, is_known_number, is_nan, wide_words, words_of


@record
class Instrumented:
    """An instrumented kernel, and the sites that its reports refer to.

    `binding` is the position of the diagnostics buffer among the resources. `launch` is the name of the
    argument (uint32) that numbers launches.
    """

    kernel: Kernel
    sites: tuple[Site, ...]
    binding: int
    launch: str

    @property
    def prints(self) -> bool:
        """Whether the kernel may write messages."""
        return any(isinstance(site, PrintSite) for site in self.sites)


def instrument(kernel: Kernel, checks: Checks) -> Instrumented | None:
    """Lower the prints of a kernel and add checks; None if there is nothing to report."""
    if not checks and not any(isinstance(statement, Print) for statement in walk(kernel.body)):
        return None
    storage = Storage(len(kernel.resources), uint32, "diagnostics")
    launch = Argument(FreshNames.of_arguments(kernel).claim("launch_number"), uint32)
    # for an index and a length of 64 bits, a texel and a size, or several indices and sizes
    wide = kernel.wide or any(isinstance(resource, ImageBinding) for resource in kernel.resources)
    wide = wide or any(expr.axes for expr in expressions_in(kernel.body))
    lowering = _Lowering(kernel, checks, Report(storage, launch, FreshNames.of_variables(kernel), wide=wide))
    body = lowering.block(kernel.body)
    if not lowering.report.sites:
        return None
    if lowering.report.has_violations:
        body = (
            *lowering.report.declare_registers(),
            *add_endings(body, lowering.report.write_violations),
            *lowering.report.write_violations(),
        )
    observed = replace(
        kernel,
        body=body,
        arguments=(*kernel.arguments, launch),
        resources=(*kernel.resources, storage),
    )
    return Instrumented(observed, tuple(lowering.report.sites), storage.index, launch.name)


def add_endings(block: Block, make: Callable[[], Block]) -> Block:
    """Insert statements before every return."""
    out: list[Statement] = []
    for statement in block:
        returns = isinstance(statement, Return)
        if isinstance(statement, RawStatement):
            returns = re.search(r"\breturn\b", statement.text) is not None
        if returns:
            out += make()
        out.append(map_statement(statement, block=lambda inner: add_endings(inner, make)))
    return tuple(out)


# ---- the pass ------------------------------------------------------------------------------------


class _Lowering:
    """Rewrites blocks."""

    def __init__(self, kernel: Kernel, checks: Checks, report: Report) -> None:
        self.report = report
        self._checks = checks
        self._values = CheckedValues(checks, report, uint64 if kernel.wide else uint32)

    # -- statements

    def block(self, block: Block) -> Block:
        """Rewrite a block."""
        out: list[Statement] = []
        with self._values.inside():
            for statement in block:
                self._values.start_statement()
                self._statement(statement, out)
        return tuple(out)

    def _statement(self, statement: Statement, out: list[Statement]) -> None:
        if isinstance(statement, Declare):
            self._declare(statement, out)
        elif isinstance(statement, Store):
            self._store(statement, out)
        elif isinstance(statement, ImageStore):
            self._image_store(statement, out)
        elif isinstance(statement, If):
            self._if(statement.branches, statement.orelse, statement.loc, out)
        elif isinstance(statement, While):
            self._while(statement, out)
        elif isinstance(statement, Assert):
            self._assert(statement, out)
        elif isinstance(statement, Print):
            self._print(statement, out)
        elif isinstance(statement, (For, Switch, Scope)):
            # only the start of a loop may need checks: its other bounds do not change
            out.append(map_statement(statement, lambda expr: self._values.rewrite(expr, out), self.block))
        else:
            out.append(statement)

    def _declare(self, statement: Declare, out: list[Statement]) -> None:
        if statement.value.op is Op.ATOMIC:
            self._atomic(statement, out)
            return
        out.append(replace(statement, value=self._values.rewrite(statement.value, out)))
        register = statement.register
        if self._watches(register.dtype) and not is_known_number(statement.value):
            out.append(self._nan_check(read(register), f"register {register.name!r}", None, statement.loc))

    def _atomic(self, statement: Declare, out: list[Statement]) -> None:
        atomic = statement.value
        conditions: list[Expr] = []
        place = self._values.rewrite_place(atomic.args[0], out, conditions)
        operands = tuple(self._values.rewrite(operand, out) for operand in atomic.args[1:])
        atomic = replace(atomic, args=(place, *operands))
        if not conditions:
            out.append(replace(statement, value=atomic))
            return
        out.append(replace(statement, value=zero(atomic.dtype)))
        before = self.report.register(atomic.dtype)
        inside = (
            Declare(before, atomic, statement.loc),
            Store(read(statement.register), read(before), None, statement.loc),
        )
        out.append(If(((all_of(conditions), inside),), None, statement.loc))

    def _store(self, statement: Store, out: list[Statement]) -> None:
        conditions: list[Expr] = []
        place = self._values.rewrite_place(statement.place, out, conditions)
        value = self._values.rewrite(statement.value, out)
        inside: list[Statement] = []
        loc = statement.loc
        if self._watches(place.dtype) and (statement.operator or not is_known_number(value)):
            if statement.operator is not None:
                value = Expr(Op.BINARY, place.dtype, (place, value), statement.operator, loc)
            register = self.report.register(place.dtype)
            inside.append(Declare(register, value, loc))
            value = read(register)
            what, index = describe_place(place)
            inside.append(self._nan_check(value, what, index, loc))
            inside.append(Store(place, value, None, loc))
        else:
            inside.append(replace(statement, place=place, value=value))
        if conditions:
            out.append(If(((all_of(conditions), tuple(inside)),), None, loc))
        elif len(inside) > 1:
            out.append(Scope(tuple(inside), None, loc))
        else:
            out.extend(inside)

    def _image_store(self, statement: ImageStore, out: list[Statement]) -> None:
        loc, image = statement.loc, statement.image
        if self._checks.bounds:
            coordinate, good = self._values.check_texel(image, statement.coordinate, (), loc, out)
        else:
            coordinate, good = self._values.rewrite(statement.coordinate, out), None
        value = self._values.rewrite(statement.value, out)
        inside: list[Statement] = []
        if self._watches(value.dtype) and not is_known_number(value):
            register = self.report.register(value.dtype)
            inside.append(Declare(register, value, loc))
            value = read(register)
            inside.append(self._nan_check(value, f"image {image.label!r}", None, loc))
        inside.append(replace(statement, coordinate=coordinate, value=value))
        if good is not None:
            out.append(If(((good, tuple(inside)),), None, loc))
        else:
            out.append(Scope(tuple(inside), None, loc))

    def _if(
        self,
        branches: tuple[tuple[Expr, Block], ...],
        orelse: Block | None,
        loc: Loc | None,
        out: list[Statement],
    ) -> None:
        done: list[tuple[Expr, Block]] = []
        for position, (condition, body) in enumerate(branches):
            if position and self._values.needs_check(condition):
                # looked at only if the conditions before did not hold
                nested: list[Statement] = []
                with self._values.inside():
                    self._if(branches[position:], orelse, loc, nested)
                out.append(If(tuple(done), tuple(nested), loc))
                return
            done.append((self._values.rewrite(condition, out), self.block(body)))
        out.append(If(tuple(done), None if orelse is None else self.block(orelse), loc))

    def _while(self, statement: While, out: list[Statement]) -> None:
        loc = statement.loc
        head: list[Statement] = []
        condition = statement.condition
        with self._values.inside():
            if self._values.needs_check(condition):
                value = self._values.rewrite(condition, head)
                head.append(If(((negate(value), (Break(loc),)),), None, loc))
                condition = Expr(Op.LITERAL, bool_, (), True, condition.loc)
            if self._checks.loops:
                rounds = self.report.register(uint32)
                out.append(Declare(rounds, uint(0), loc))
                most = self._most_rounds(out, loc)
                broken = (*self.report.make_violation(LoopSite(loc), loc, (read(rounds),)), Break(loc))
                at_end = Expr(Op.COMPARE, bool_, (read(rounds), most), ">=")
                head.append(If(((at_end, broken),), None, loc))
                head.append(Store(read(rounds), uint(1), "+", loc))
            body = (*head, *self.block(statement.body))
        out.append(While(condition, body, loc, statement.rolled))

    def _most_rounds(self, out: list[Statement], loc: Loc | None) -> Expr:
        if self._checks.rounds is not None:
            return uint(self._checks.rounds)
        register = self.report.register(uint32)
        out.append(Declare(register, self.report.word(words.ROUNDS), loc))
        return read(register)

    def _assert(self, statement: Assert, out: list[Statement]) -> None:
        if not self._checks.asserts:
            return
        loc = statement.loc
        inside: list[Statement] = []
        with self._values.inside():
            for part in statement.body:
                self._values.start_statement()
                self._statement(part, inside)
            self._values.start_statement()
            value = self._values.rewrite(statement.condition, inside)
            told = self.report.make_violation(AssertSite(statement.message, loc), loc)
            inside.append(If(((negate(value), told),), None, loc))
        out.append(Scope(tuple(inside), None, loc))

    def _print(self, statement: Print, out: list[Statement]) -> None:
        loc = statement.loc
        inside: list[Statement] = []
        told: list[Expr] = []
        with self._values.inside():
            for arg in statement.args:
                value = self._values.rewrite(arg, inside)
                if value.op not in (Op.LITERAL, Op.REGISTER):
                    register = self.report.register(value.dtype)
                    inside.append(Declare(register, value, loc))
                    value = read(register)
                told += [word for part in components(value) for word in words_of(part)]
            kinds = tuple(arg.dtype for arg in statement.args)
            site = PrintSite(statement.format, statement.style, kinds, loc)
            assert len(told) == sum(map(word_count, kinds))
            inside += self.report.make_message(site, told, loc)
        out.append(Scope(tuple(inside), None, loc))

    # -- NaN

    def _watches(self, kind: DType) -> bool:
        # other invocations hold the other elements of a cooperative matrix; an array starts as zeros
        known = not is_cooperative(kind) and not is_array(kind)
        return self._checks.nan and is_float_dtype(component_type(kind)) and known

    def _nan_check(self, value: Expr, what: str, index: Expr | None, loc: Loc | None) -> If:
        values = () if index is None else (*wide_words(index), uint(0))
        parts = [is_nan(part) for part in components(value)]
        found = parts[0] if len(parts) == 1 else Expr(Op.LOGICAL, bool_, tuple(parts), "||")
        site = NanSite(what, index is not None, loc)
        return If(((found, self.report.make_violation(site, loc, values)),), None, loc)
