"""From a kernel that prints, or whose accesses are to be checked, to one of ordinary statements.

The outcome writes what it has to say into one more storage buffer (see `diagnostics`), bound last. Writers,
analyses and verifier know nothing of it. Indices are looked at just before the statement that uses them, and
only where that statement would evaluate them: `i < n && buf[i] > 0` becomes a branch. A bad read gives
element 0, a bad store is left out, and the invocation goes on, so that barriers are still reached by all.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from vkdispatch.analyses.naming import Numbering
from vkdispatch.base.dtype import (
    DType,
    bool_,
    component_type,
    int64,
    is_array,
    is_complex,
    is_cooperative,
    is_float_dtype,
    is_signed_dtype,
    is_vector,
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
    Register,
    Return,
    Scope,
    SharedArray,
    Statement,
    Storage,
    Store,
    Switch,
    While,
    expressions_in,
    map_statement,
    root_of,
    walk,
)
from vkdispatch.ir.location import Loc
from vkdispatch.ir.names import FreshNames
from vkdispatch.passes import diagnostics as words
from vkdispatch.passes.diagnostics import (
    AssertSite,
    AxesSite,
    BoundsSite,
    Checks,
    LoopSite,
    NanSite,
    PrintSite,
    Site,
    TexelSite,
)
from vkdispatch.passes.messages import word_count
from vkdispatch.passes.reports import (
    Report,
    all_of,
    cast,
    components,
    is_constant,
    is_nan,
    less,
    negation,
    read,
    shown_word,
    uint,
    wide_words,
    words_of,
    zero,
)


@record
class Instrumented:
    """A kernel that reports, and what its reports mean.

    `binding` is the position of the diagnostics buffer among the resources, `launch` the name of the argument
    (uint32) that tells launches apart.
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
    """Lower the prints of a kernel and add checks. None where there is nothing to report."""
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
    if lowering.report.violations:
        body = (*lowering.report.start(), *_with_endings(body, lowering.report), *lowering.report.ending())
    observed = replace(
        kernel,
        body=body,
        arguments=(*kernel.arguments, launch),
        resources=(*kernel.resources, storage),
    )
    return Instrumented(observed, tuple(lowering.report.sites), storage.index, launch.name)


def _with_endings(block: Block, report: Report) -> Block:
    """Put what an invocation does in the end before every return."""
    out: list[Statement] = []
    for statement in block:
        returns = isinstance(statement, Return)
        if isinstance(statement, RawStatement):
            returns = re.search(r"\breturn\b", statement.text) is not None
        if returns:
            out += report.ending()
        out.append(map_statement(statement, block=lambda inner: _with_endings(inner, report)))
    return tuple(out)


# ---- the pass ------------------------------------------------------------------------------------


class _Lowering:
    """Rewrites blocks. State is what has been checked already at the current place."""

    def __init__(self, kernel: Kernel, checks: Checks, report: Report) -> None:
        self.report = report
        self._checks = checks
        self._length = uint64 if kernel.wide else uint32
        self._numbering = Numbering()
        self._needed: list[bool] = []
        # Checked indices, (what is indexed, numbers of the indices) -> (index, whether it is good): of pure
        # indices for the rest of the block, of others within the statement. Values by number, likewise.
        self._known: dict[tuple[object, ...], tuple[Expr, Expr]] = {}
        self._local: dict[tuple[object, ...], tuple[Expr, Expr]] = {}
        self._values: dict[int, Expr] = {}

    # -- statements

    def block(self, block: Block) -> Block:
        """Rewrite a block."""
        out: list[Statement] = []
        with self._inside():
            for statement in block:
                self._local, self._values = {}, {}
                self._statement(statement, out)
        return tuple(out)

    @contextmanager
    def _inside(self) -> Iterator[None]:
        """Forget in the end what was learnt since: it holds in a nested block only."""
        before = self._known, self._local, self._values
        self._known, self._local, self._values = dict(before[0]), dict(before[1]), dict(before[2])
        try:
            yield
        finally:
            self._known, self._local, self._values = before

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
            out.append(map_statement(statement, lambda expr: self._value(expr, out), self.block))
        else:
            out.append(statement)

    def _declare(self, statement: Declare, out: list[Statement]) -> None:
        if statement.value.op is Op.ATOMIC:
            self._atomic(statement, out)
            return
        out.append(replace(statement, value=self._value(statement.value, out)))
        register = statement.register
        if self._watches(register.dtype) and not is_constant(statement.value):
            out.append(self._nan_check(read(register), f"register {register.name!r}", None, statement.loc))

    def _atomic(self, statement: Declare, out: list[Statement]) -> None:
        atomic = statement.value
        conditions: list[Expr] = []
        place = self._place(atomic.args[0], out, conditions)
        operands = tuple(self._value(operand, out) for operand in atomic.args[1:])
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
        place = self._place(statement.place, out, conditions)
        value = self._value(statement.value, out)
        inside: list[Statement] = []
        loc = statement.loc
        if self._watches(place.dtype) and (statement.operator or not is_constant(value)):
            if statement.operator is not None:
                value = Expr(Op.BINARY, place.dtype, (place, value), statement.operator, loc)
            register = self.report.register(place.dtype)
            inside.append(Declare(register, value, loc))
            value = read(register)
            what, index = _described(place)
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
            coordinate, good = self._checked_texel(image, statement.coordinate, (), loc, out)
        else:
            coordinate, good = self._value(statement.coordinate, out), None
        value = self._value(statement.value, out)
        inside: list[Statement] = []
        if self._watches(value.dtype) and not is_constant(value):
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
            if position and self._needs(condition):
                # looked at only if the conditions before did not hold
                nested: list[Statement] = []
                with self._inside():
                    self._if(branches[position:], orelse, loc, nested)
                out.append(If(tuple(done), tuple(nested), loc))
                return
            done.append((self._value(condition, out), self.block(body)))
        out.append(If(tuple(done), None if orelse is None else self.block(orelse), loc))

    def _while(self, statement: While, out: list[Statement]) -> None:
        loc = statement.loc
        head: list[Statement] = []
        condition = statement.condition
        with self._inside():
            if self._needs(condition):
                value = self._value(condition, head)
                head.append(If(((negation(value), (Break(loc),)),), None, loc))
                condition = Expr(Op.LITERAL, bool_, (), True, condition.loc)
            if self._checks.loops:
                rounds = self.report.register(uint32)
                out.append(Declare(rounds, uint(0), loc))
                most = self._most_rounds(out, loc)
                broken = (*self.report.violation(LoopSite(loc), loc, (read(rounds),)), Break(loc))
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
        with self._inside():
            for part in statement.body:
                self._local, self._values = {}, {}
                self._statement(part, inside)
            self._local, self._values = {}, {}
            value = self._value(statement.condition, inside)
            told = self.report.violation(AssertSite(statement.message, loc), loc)
            inside.append(If(((negation(value), told),), None, loc))
        out.append(Scope(tuple(inside), None, loc))

    def _print(self, statement: Print, out: list[Statement]) -> None:
        loc = statement.loc
        inside: list[Statement] = []
        told: list[Expr] = []
        with self._inside():
            for arg in statement.args:
                value = self._value(arg, inside)
                if value.op not in (Op.LITERAL, Op.REGISTER):
                    register = self.report.register(value.dtype)
                    inside.append(Declare(register, value, loc))
                    value = read(register)
                told += [word for part in components(value) for word in words_of(part)]
            kinds = tuple(arg.dtype for arg in statement.args)
            site = PrintSite(statement.format, statement.style, kinds, loc)
            assert len(told) == sum(map(word_count, kinds))
            inside += self.report.message(site, told, loc)
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
        return If(((found, self.report.violation(site, loc, values)),), None, loc)

    # -- places and values

    def _place(self, place: Expr, out: list[Statement], conditions: list[Expr]) -> Expr:
        """Rewrite a place; `conditions` gets what must hold for it to exist."""
        if place.op is Op.COMPONENT:
            return replace(place, args=(self._place(place.args[0], out, conditions),))
        if place.op not in (Op.INDEX, Op.ELEMENT):
            return place
        base = [self._place(place.args[0], out, conditions)] if place.op is Op.INDEX else []
        if self._is_checked(place):
            index, good = self._checked(place, out)
            conditions.append(good)
        else:
            index = self._value(place.args[-1], out)
        return replace(place, args=(*base, index))

    def _is_checked(self, expr: Expr) -> bool:
        """Whether an expression indexes something by what may be out of bounds."""
        if not self._checks.bounds or expr.op not in (Op.ELEMENT, Op.INDEX, Op.IMAGE_LOAD):
            return False
        if expr.op is Op.IMAGE_LOAD:
            return True
        if expr.op is Op.INDEX and is_cooperative(expr.args[0].dtype):
            return False  # only the device knows how many elements an invocation holds
        index = expr.args[-1]
        size = _static_size(expr)
        known = index.op is Op.LITERAL and isinstance(index.value, int) and size is not None
        return not (known and 0 <= index.value < size)  # type: ignore[operator]

    def _needs(self, expr: Expr) -> bool:
        """Whether evaluating an expression involves a check."""
        number = self._numbering.number(expr)
        for position in range(len(self._needed), len(self._numbering.exprs)):
            known = self._numbering.exprs[position]
            nested = any(self._needed[arg] for arg in self._numbering.args[position])
            # what raw text mentions is written in the text
            self._needed.append(known.op is not Op.RAW and (nested or self._is_checked(known)))
        return self._needed[number]

    def _value(self, expr: Expr, out: list[Statement]) -> Expr:
        """Rewrite an expression; `out` gets the checks to be made before."""
        if not self._needs(expr):
            return expr
        # operands have smaller numbers: no recursion, however deep the expression
        pending: dict[int, Expr] = {}
        stack = [expr]
        while stack:
            node = stack.pop()
            number = self._numbering.number(node)
            if number in pending or number in self._values or not self._needs(node):
                continue
            pending[number] = node
            stack.extend(node.args[:1] if node.op in (Op.LOGICAL, Op.SELECT) else node.args)
        for number in sorted(pending):
            self._values[number] = self._lowered(pending[number], out)
        return self._values[self._numbering.number(expr)]

    def _operand(self, expr: Expr) -> Expr:
        return self._values.get(self._numbering.number(expr), expr)

    def _lowered(self, expr: Expr, out: list[Statement]) -> Expr:
        """Rewrite an expression whose operands that are evaluated in any case are rewritten already."""
        if expr.op is Op.LOGICAL and any(map(self._needs, expr.args[1:])):
            return self._lowered_logical(expr, out)
        if expr.op is Op.SELECT and any(map(self._needs, expr.args[1:])):
            return self._lowered_select(expr, out)
        changed = replace(expr, args=tuple(map(self._operand, expr.args)))
        if not self._is_checked(expr):
            return changed
        if isinstance(expr.value, ImageBinding):
            written, *level = expr.args
            texel, good = self._checked_texel(expr.value, written, tuple(level), expr.loc, out)
            safe = Expr(Op.SELECT, texel.dtype, (good, texel, zero(texel.dtype)), None, expr.loc)
            return replace(changed, args=(safe, *changed.args[1:]))
        index, good = self._checked(expr, out)
        safe = Expr(Op.SELECT, index.dtype, (good, index, zero(index.dtype)), None, expr.loc)
        return replace(changed, args=(*changed.args[:-1], safe))

    def _lowered_logical(self, expr: Expr, out: list[Statement]) -> Expr:
        loc = expr.loc
        register = self.report.register(bool_)
        result = read(register)
        out.append(Declare(register, self._operand(expr.args[0]), loc))
        for arg in expr.args[1:]:
            inside: list[Statement] = []
            with self._inside():
                inside.append(Store(result, self._value(arg, inside), None, loc))
            out.append(If(((result if expr.value == "&&" else negation(result), tuple(inside)),), None, loc))
        return result

    def _lowered_select(self, expr: Expr, out: list[Statement]) -> Expr:
        loc = expr.loc
        register = self.report.register(expr.dtype)
        result = read(register)
        arms: list[Block] = []
        for arg in expr.args[1:]:
            inside: list[Statement] = []
            with self._inside():
                inside.append(Store(result, self._value(arg, inside), None, loc))
            arms.append(tuple(inside))
        out.append(Declare(register, zero(expr.dtype), loc))
        out.append(If(((self._operand(expr.args[0]), arms[0]),), arms[1], loc))
        return result

    # -- indices

    def _checked(self, expr: Expr, out: list[Statement]) -> tuple[Expr, Expr]:
        """Check the index of an ELEMENT or INDEX; returns the index, and whether it is good."""
        written = expr.args[-1]
        number = self._numbering.number(written)
        key = (_indexed(expr), number, *(self._numbering.number(index) for index, _ in expr.axes))
        found = self._known.get(key) or self._local.get(key)
        if found is not None:
            return found
        narrowed = written.op is Op.CONSTRUCT and written.args[0].dtype in (int64, uint64)
        original = written.args[0] if narrowed and written.dtype.item_size == 4 else written
        wide = original.dtype in (int64, uint64)
        value = self._steady(self._value(original, out), self._numbering.number(original), out)
        index = cast(value, written.dtype)
        size = _static_size(expr)
        thing = expr.value
        assert isinstance(thing, (Storage, SharedArray)) or size is not None
        length = Expr(Op.LENGTH, self._length, (), thing) if size is None else uint(size)
        good = self.report.register(bool_)
        unsigned = uint64 if wide or length.dtype is uint64 else uint32
        within = less(cast(value, unsigned), cast(length, unsigned))
        along = self._check_axes(expr, out) if expr.axes else []
        out.append(Declare(good, all_of([*along, within]), expr.loc))
        resource = thing.index if isinstance(thing, Storage) else None
        bits = 64 if wide else 32
        site = BoundsSite(_noun(expr), resource, is_signed_dtype(original.dtype), bits, expr.loc)
        told = self.report.violation(site, expr.loc, (*wide_words(value), *wide_words(length)))
        out.append(If(((all_of([*along, negation(read(good))]), told),), None, expr.loc))
        kept = self._known if self._numbering.pure[number] else self._local
        kept[key] = index, read(good)
        return kept[key]

    def _check_axes(self, expr: Expr, out: list[Statement]) -> list[Expr]:
        """Check the index along each axis of an ELEMENT; returns whether all are good."""
        parts, limits, fits = [], [], []
        for index, size in expr.axes:
            value = self._steady(self._value(index, out), self._numbering.number(index), out)
            unsigned = uint64 if max(value.dtype.item_size, size.dtype.item_size) == 8 else uint32
            fits.append(less(cast(value, unsigned), cast(size, unsigned)))
            parts.append(shown_word(value))
            limits.append(cast(size, uint32))
        good = self.report.register(bool_)
        out.append(Declare(good, all_of(fits), expr.loc))
        padding = [uint(0)] * (3 - len(parts))
        resource = expr.value.index if isinstance(expr.value, Storage) else None
        site = AxesSite(_noun(expr), resource, len(parts), expr.loc)
        told = self.report.violation(site, expr.loc, (*parts, *padding, *limits, *padding))
        out.append(If(((negation(read(good)), told),), None, expr.loc))
        return [read(good)]

    def _checked_texel(
        self,
        image: ImageBinding,
        written: Expr,
        level: tuple[Expr, ...],
        loc: Loc | None,
        out: list[Statement],
    ) -> tuple[Expr, Expr]:
        """Check a texel's coordinate at a mip level, if one is given; returns it, and whether it is good."""
        texel = self._steady(self._value(written, out), self._numbering.number(written), out)
        levels = tuple(self._value(each, out) for each in level)
        size = self.report.register(texel.dtype)
        out.append(Declare(size, Expr(Op.IMAGE_SIZE, size.dtype, levels, image, loc), loc))
        parts = [cast(part, uint32) for part in components(texel)]
        limits = [cast(part, uint32) for part in components(read(size))]
        inside = [less(part, limit) for part, limit in zip(parts, limits, strict=True)]
        good = self.report.register(bool_)
        out.append(Declare(good, all_of(inside), loc))
        padding = [uint(0)] * (3 - len(parts))
        site = TexelSite(f"image {image.label!r}", len(parts), loc)
        told = self.report.violation(site, loc, (*parts, *padding, *limits, *padding))
        out.append(If(((negation(read(good)), told),), None, loc))
        return texel, read(good)

    def _steady(self, value: Expr, number: int, out: list[Statement]) -> Expr:
        """Return a value that is the same however often it is evaluated in this statement."""
        if value.op in (Op.LITERAL, Op.REGISTER) or self._numbering.pure[number]:
            return value
        register = self.report.register(value.dtype)
        out.append(Declare(register, value, value.loc))
        return read(register)


def _static_size(expr: Expr) -> int | None:
    """Return the count of what an ELEMENT or INDEX chooses from, where that is known."""
    if expr.op is Op.INDEX:
        return expr.args[0].dtype.child_count
    return expr.value.size if isinstance(expr.value, SharedArray) else None


def _indexed(expr: Expr) -> object:
    """Return what an ELEMENT or INDEX chooses from, as far as bounds are concerned."""
    if expr.op is Op.INDEX:
        return expr.args[0].dtype.child_count
    return expr.value.whole or expr.value if isinstance(expr.value, Storage) else expr.value


def _noun(expr: Expr) -> str:
    """Say what an ELEMENT or INDEX chooses from, in words."""
    if isinstance(expr.value, Storage):
        return f"buffer {expr.value.label!r}"
    if isinstance(expr.value, SharedArray):
        return f"shared buffer {expr.value.name!r}"
    array = expr.args[0].value
    if isinstance(array, Register) and is_array(array.dtype):
        return f"local array {array.name!r}"
    base = expr.args[0].dtype
    return f"a {base.name}" if is_vector(base) or is_complex(base) else f"the columns of a {base.name}"


def _described(place: Expr) -> tuple[str, Expr | None]:
    """Say what a place belongs to; also returns its index there if it has one."""
    place = root_of(place)
    if place.op is Op.ELEMENT:
        return _noun(place), place.args[0]
    name = place.value.name if isinstance(place.value, Register) else "the result of raw GLSL"
    return f"register {name!r}", None
