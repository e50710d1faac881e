"""Instrumentation: prints, asserts and checks of a kernel become ordinary statements."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from vkdispatch.base import dtype as dt
from vkdispatch.base.record import record, replace
from vkdispatch.compiler import ir
from vkdispatch.compiler.analyses.naming import Numbering
from vkdispatch.compiler.ir.literals import is_long
from vkdispatch.compiler.ir.location import Loc
from vkdispatch.compiler.ir.names import FreshNames
from vkdispatch.compiler.passes import builders as make
from vkdispatch.compiler.passes import diagnostics as words

# ---- Expressions of an instrumented kernel, and the checks of their indices, which come before them ------


class CheckedValues:
    """Rewrites values and places, and remembers what has been checked up to the current statement."""

    def __init__(self, checks: words.Checks, report: words.Report, length: dt.DType) -> None:
        """Prepare for a kernel whose buffers have lengths of type `length`."""
        self._checks = checks
        self._report = report
        self._length = length
        self._numbering = Numbering()
        self._needed: list[bool] = []
        # (what is indexed, numbers of the indices) -> (index, whether it is in bounds): `_known` holds pure
        # indices, valid for the rest of the block, `_local` others, valid within the statement, as `_values`.
        self._known: dict[tuple[object, ...], tuple[ir.Expr, ir.Expr]] = {}
        self._local: dict[tuple[object, ...], tuple[ir.Expr, ir.Expr]] = {}
        self._values: dict[int, ir.Expr] = {}

    def start_statement(self) -> None:
        """Forget results that are valid only within one statement."""
        self._local, self._values = {}, {}

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Limit new results to a nested block."""
        before = self._known, self._local, self._values
        self._known, self._local, self._values = dict(before[0]), dict(before[1]), dict(before[2])
        try:
            yield
        finally:
            self._known, self._local, self._values = before

    # -- places and values

    def rewrite_place(self, place: ir.Expr, out: list[ir.Statement], conditions: list[ir.Expr]) -> ir.Expr:
        """Rewrite a place; the conditions under which it exists are added to `conditions`."""
        if place.op is ir.Op.COMPONENT:
            return replace(place, args=(self.rewrite_place(place.args[0], out, conditions),))
        if place.op not in (ir.Op.INDEX, ir.Op.ELEMENT):
            return place
        base = [self.rewrite_place(place.args[0], out, conditions)] if place.op is ir.Op.INDEX else []
        if self._is_checked(place):
            index, good = self._check_index(place, out)
            conditions.append(good)
        else:
            index = self.rewrite(place.args[-1], out)
        return replace(place, args=(*base, index))

    def _is_checked(self, expr: ir.Expr) -> bool:
        """Whether an expression has an index that may be out of bounds."""
        if not self._checks.bounds or expr.op not in (ir.Op.ELEMENT, ir.Op.INDEX, ir.Op.IMAGE_LOAD):
            return False
        if expr.op is ir.Op.IMAGE_LOAD:
            return True
        if expr.op is ir.Op.INDEX and dt.is_cooperative(expr.args[0].dtype):
            return False  # only the device knows how many elements an invocation holds
        index = expr.args[-1]
        size = _find_static_size(expr)
        known = index.op is ir.Op.LITERAL and isinstance(index.value, int) and size is not None
        return not (known and 0 <= index.value < size)  # type: ignore[operator]

    def needs_check(self, expr: ir.Expr) -> bool:
        """Whether evaluating an expression involves a check."""
        number = self._numbering.number(expr)
        for position in range(len(self._needed), len(self._numbering.exprs)):
            known = self._numbering.exprs[position]
            nested = any(self._needed[arg] for arg in self._numbering.args[position])
            # what raw text mentions is written in the text
            self._needed.append(known.op is not ir.Op.RAW and (nested or self._is_checked(known)))
        return self._needed[number]

    def rewrite(self, expr: ir.Expr, out: list[ir.Statement]) -> ir.Expr:
        """Rewrite an expression; its checks are added to `out`."""
        if not self.needs_check(expr):
            return expr
        # operands have smaller numbers: no recursion, however deep the expression
        pending: dict[int, ir.Expr] = {}
        stack = [expr]
        while stack:
            node = stack.pop()
            number = self._numbering.number(node)
            if number in pending or number in self._values or not self.needs_check(node):
                continue
            pending[number] = node
            stack.extend(node.args[:1] if node.op in (ir.Op.LOGICAL, ir.Op.SELECT) else node.args)
        for number in sorted(pending):
            self._values[number] = self._lower(pending[number], out)
        return self._values[self._numbering.number(expr)]

    def _operand(self, expr: ir.Expr) -> ir.Expr:
        return self._values.get(self._numbering.number(expr), expr)

    def _lower(self, expr: ir.Expr, out: list[ir.Statement]) -> ir.Expr:
        """Rewrite an expression whose unconditionally evaluated operands are rewritten already."""
        if expr.op in (ir.Op.LOGICAL, ir.Op.SELECT) and any(map(self.needs_check, expr.args[1:])):
            return self._unfold(expr, out)
        changed = replace(expr, args=tuple(map(self._operand, expr.args)))
        if not self._is_checked(expr):
            return changed
        if isinstance(expr.value, ir.ImageBinding):
            written, *level = expr.args
            texel, good = self.check_texel(expr.value, written, tuple(level), expr.loc, out)
            safe = ir.Expr(ir.Op.SELECT, texel.dtype, (good, texel, make.zero(texel.dtype)), None, expr.loc)
            return replace(changed, args=(safe, *changed.args[1:]))
        index, good = self._check_index(expr, out)
        safe = ir.Expr(ir.Op.SELECT, index.dtype, (good, index, make.zero(index.dtype)), None, expr.loc)
        return replace(changed, args=(*changed.args[:-1], safe))

    def _unfold(self, expr: ir.Expr, out: list[ir.Statement]) -> ir.Expr:
        register = self._report.register(expr.dtype)

        def store(operand: ir.Expr) -> ir.Block:
            inside: list[ir.Statement] = []
            with self.inside():
                inside.append(make.assign(register, self.rewrite(operand, inside), expr.loc))
            return tuple(inside)

        out += make.unfold(expr, register, self._operand(expr.args[0]), store)
        return make.read(register)

    # -- indices

    def _check_index(self, expr: ir.Expr, out: list[ir.Statement]) -> tuple[ir.Expr, ir.Expr]:
        """Check the index of an ELEMENT or INDEX; returns the index, and whether it is in bounds."""
        written = expr.args[-1]
        number = self._numbering.number(written)
        key = (_find_indexed(expr), number, *(self._numbering.number(index) for index, _ in expr.axes))
        found = self._known.get(key) or self._local.get(key)
        if found is not None:
            return found
        narrowed = written.op is ir.Op.CONSTRUCT and is_long(written.args[0].dtype)
        original = written.args[0] if narrowed and written.dtype.item_size == 4 else written
        wide = is_long(original.dtype)
        value = self._steady_value(self.rewrite(original, out), self._numbering.number(original), out)
        index = make.cast(value, written.dtype)
        size = _find_static_size(expr)
        thing = expr.value
        assert isinstance(thing, (ir.Storage, ir.SharedArray)) or size is not None
        long = self._length if isinstance(thing, ir.Storage) else dt.uint32
        length = ir.Expr(ir.Op.LENGTH, long, (), thing) if size is None else make.uint(size)
        good = self._report.register(dt.bool_)
        unsigned = dt.uint64 if wide or length.dtype is dt.uint64 else dt.uint32
        within = make.less(make.cast(value, unsigned), make.cast(length, unsigned))
        along = self._check_axes(expr, out) if expr.axes else []
        out.append(ir.Declare(good, make.all_of([*along, within]), expr.loc))
        resource = thing.index if isinstance(thing, ir.Storage) else None
        bits = 64 if wide else 32
        site = words.BoundsSite(
            _describe_indexed(expr), resource, dt.is_signed_dtype(original.dtype), bits, expr.loc
        )
        told = self._report.make_violation(
            site, expr.loc, (*words.wide_words(value), *words.wide_words(length))
        )
        out.append(make.when(make.all_of([*along, make.negate(make.read(good))]), *told, loc=expr.loc))
        kept = self._known if self._numbering.pure[number] else self._local
        kept[key] = index, make.read(good)
        return kept[key]

    def _check_axes(self, expr: ir.Expr, out: list[ir.Statement]) -> list[ir.Expr]:
        """Check the index along each axis of an ELEMENT; returns whether all are in bounds."""
        parts, limits, fits = [], [], []
        for index, size in expr.axes:
            value = self._steady_value(self.rewrite(index, out), self._numbering.number(index), out)
            unsigned = dt.uint64 if max(value.dtype.item_size, size.dtype.item_size) == 8 else dt.uint32
            fits.append(make.less(make.cast(value, unsigned), make.cast(size, unsigned)))
            parts.append(words.shown_word(value))
            limits.append(make.cast(size, dt.uint32))
        resource = expr.value.index if isinstance(expr.value, ir.Storage) else None
        site = words.AxesSite(_describe_indexed(expr), resource, len(parts), expr.loc)
        return [self._require(fits, parts, limits, site, out)]

    def _require(
        self,
        conditions: list[ir.Expr],
        parts: list[ir.Expr],
        limits: list[ir.Expr],
        site: words.AxesSite | words.TexelSite,
        out: list[ir.Statement],
    ) -> ir.Expr:
        """Report an index of several axes and their sizes unless it is in bounds; returns whether it is."""
        good = self._report.register(dt.bool_)
        out.append(ir.Declare(good, make.all_of(conditions), site.loc))
        padding = [make.uint(0)] * (3 - len(parts))
        told = self._report.make_violation(site, site.loc, (*parts, *padding, *limits, *padding))
        out.append(make.when(make.negate(make.read(good)), *told, loc=site.loc))
        return make.read(good)

    def check_texel(
        self,
        image: ir.ImageBinding,
        written: ir.Expr,
        level: tuple[ir.Expr, ...],
        loc: Loc | None,
        out: list[ir.Statement],
    ) -> tuple[ir.Expr, ir.Expr]:
        """Check the coordinate of a texel at a mip level, if any; returns it, and whether it is in bounds."""
        texel = self._steady_value(self.rewrite(written, out), self._numbering.number(written), out)
        levels = tuple(self.rewrite(number, out) for number in level)
        size = self._report.register(texel.dtype)
        out.append(ir.Declare(size, ir.Expr(ir.Op.IMAGE_SIZE, size.dtype, levels, image, loc), loc))
        parts = [make.cast(part, dt.uint32) for part in make.components(texel)]
        limits = [make.cast(part, dt.uint32) for part in make.components(make.read(size))]
        inside = [make.less(part, limit) for part, limit in zip(parts, limits, strict=True)]
        site = words.TexelSite(f"image {image.label!r}", len(parts), loc)
        return texel, self._require(inside, parts, limits, site, out)

    def _steady_value(self, value: ir.Expr, number: int, out: list[ir.Statement]) -> ir.Expr:
        """Return a value that may be evaluated several times in this statement."""
        if value.op in (ir.Op.LITERAL, ir.Op.REGISTER) or self._numbering.pure[number]:
            return value
        register = self._report.register(value.dtype)
        out.append(ir.Declare(register, value, value.loc))
        return make.read(register)


def _find_static_size(expr: ir.Expr) -> int | None:
    """Return the length of what an ELEMENT or INDEX indexes, if it is known at compile time."""
    if expr.op is ir.Op.INDEX:
        return expr.args[0].dtype.child_count
    return expr.value.size if isinstance(expr.value, ir.SharedArray) else None


def _find_indexed(expr: ir.Expr) -> object:
    """Return a key of what an ELEMENT or INDEX indexes; equal keys have equal bounds."""
    if expr.op is ir.Op.INDEX:
        return expr.args[0].dtype.child_count
    return expr.value.whole or expr.value if isinstance(expr.value, ir.Storage) else expr.value


def _describe_indexed(expr: ir.Expr) -> str:
    """Describe what an ELEMENT or INDEX indexes."""
    if isinstance(expr.value, ir.Storage):
        return f"buffer {expr.value.label!r}"
    if isinstance(expr.value, ir.SharedArray):
        return f"shared buffer {expr.value.name!r}"
    base = expr.args[0].dtype
    if dt.is_array(base):
        return ir.describe_array(expr)
    return f"a {base.name}" if dt.is_vector(base) or dt.is_complex(base) else f"the columns of a {base.name}"


def describe_place(place: ir.Expr) -> tuple[str, ir.Expr | None]:
    """Describe what a place belongs to; returns also its index there, if it has one."""
    place = ir.root_of(place)
    if place.op is ir.Op.ELEMENT:
        return _describe_indexed(place), place.args[0]
    name = place.value.name if isinstance(place.value, ir.Register) else "the result of raw GLSL"
    return f"register {name!r}", None


# The new kernel writes messages and violations to one more storage buffer, which is bound last; see
# `diagnostics`. Indices are checked just before the statement that uses them, and only where the statement
# evaluates them: `i < n && buf[i] > 0` becomes a branch. A bad read gives element 0 and a bad store is
# skipped. The invocation continues, so that all invocations still reach barriers.


@record
class Instrumented:
    """An instrumented kernel, and the sites that its reports refer to.

    `binding` is the position of the diagnostics buffer among the resources. `launch` is the name of the
    argument (uint32) that numbers launches.
    """

    kernel: ir.Kernel
    sites: tuple[words.Site, ...]
    binding: int
    launch: str

    @property
    def prints(self) -> bool:
        """Whether the kernel may write messages."""
        return any(isinstance(site, words.PrintSite) for site in self.sites)


def instrument(kernel: ir.Kernel, checks: words.Checks) -> Instrumented | None:
    """Lower the prints of a kernel and add checks; None if there is nothing to report."""
    if not checks and not any(isinstance(statement, ir.Print) for statement in ir.walk(kernel.body)):
        return None
    storage = ir.Storage(len(kernel.resources), dt.uint32, "diagnostics")
    launch = ir.Argument(FreshNames.of_arguments(kernel).claim("launch_number"), dt.uint32)
    # for an index and a length of 64 bits, a texel and a size, or several indices and sizes
    wide = kernel.wide or any(isinstance(resource, ir.ImageBinding) for resource in kernel.resources)
    wide = wide or any(expr.axes for expr in ir.expressions_in(kernel.body))
    lowering = _Lowering(
        kernel, checks, words.Report(storage, launch, FreshNames.of_variables(kernel), wide=wide)
    )
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
        kernel, body=body, arguments=(*kernel.arguments, launch), resources=(*kernel.resources, storage)
    )
    return Instrumented(observed, tuple(lowering.report.sites), storage.index, launch.name)


def add_endings(block: ir.Block, make: Callable[[], ir.Block]) -> ir.Block:
    """Insert statements before every return."""
    out: list[ir.Statement] = []
    for statement in block:
        returns = isinstance(statement, ir.Return)
        if isinstance(statement, ir.RawStatement):
            returns = re.search(r"\breturn\b", statement.text) is not None
        if returns:
            out += make()
        out.append(ir.map_statement(statement, block=lambda inner: add_endings(inner, make)))
    return tuple(out)


# ---- the pass ------------------------------------------------------------------------------------


class _Lowering:
    """Rewrites blocks."""

    def __init__(self, kernel: ir.Kernel, checks: words.Checks, report: words.Report) -> None:
        self.report = report
        self._checks = checks
        self._values = CheckedValues(checks, report, dt.uint64 if kernel.wide else dt.uint32)

    # -- statements

    def block(self, block: ir.Block) -> ir.Block:
        """Rewrite a block."""
        out: list[ir.Statement] = []
        with self._values.inside():
            for statement in block:
                self._values.start_statement()
                self._statement(statement, out)
        return tuple(out)

    def _statement(self, statement: ir.Statement, out: list[ir.Statement]) -> None:
        if isinstance(statement, ir.Declare):
            self._declare(statement, out)
        elif isinstance(statement, ir.Store):
            self._store(statement, out)
        elif isinstance(statement, ir.ImageStore):
            self._image_store(statement, out)
        elif isinstance(statement, ir.If):
            values = self._values
            make.rewrite_branches(
                statement, out, values.rewrite, self.block, values.needs_check, values.inside
            )
        elif isinstance(statement, ir.While):
            self._while(statement, out)
        elif isinstance(statement, ir.Assert):
            self._assert(statement, out)
        elif isinstance(statement, ir.Print):
            self._print(statement, out)
        elif isinstance(statement, (ir.For, ir.Switch, ir.Scope)):
            # only the start of a loop may need checks: its other bounds do not change
            out.append(ir.map_statement(statement, lambda expr: self._values.rewrite(expr, out), self.block))
        else:
            out.append(statement)

    def _declare(self, statement: ir.Declare, out: list[ir.Statement]) -> None:
        if statement.value.op is ir.Op.ATOMIC:
            self._atomic(statement, out)
            return
        out.append(replace(statement, value=self._values.rewrite(statement.value, out)))
        register = statement.register
        if self._watches(register.dtype) and not words.is_known_number(statement.value):
            out.append(
                self._nan_check(make.read(register), f"register {register.name!r}", None, statement.loc)
            )

    def _atomic(self, statement: ir.Declare, out: list[ir.Statement]) -> None:
        atomic = statement.value
        conditions: list[ir.Expr] = []
        place = self._values.rewrite_place(atomic.args[0], out, conditions)
        operands = tuple(self._values.rewrite(operand, out) for operand in atomic.args[1:])
        atomic = replace(atomic, args=(place, *operands))
        if not conditions:
            out.append(replace(statement, value=atomic))
            return
        out.append(replace(statement, value=make.zero(atomic.dtype)))
        before = self.report.register(atomic.dtype)
        inside = (
            ir.Declare(before, atomic, statement.loc),
            make.assign(statement.register, make.read(before), statement.loc),
        )
        out.append(make.when(make.all_of(conditions), *inside, loc=statement.loc))

    def _hold(self, value: ir.Expr, out: list[ir.Statement], loc: Loc | None) -> ir.Expr:
        """Compute a value once."""
        register = self.report.register(value.dtype)
        out.append(ir.Declare(register, value, loc))
        return make.read(register)

    def _store(self, statement: ir.Store, out: list[ir.Statement]) -> None:
        conditions: list[ir.Expr] = []
        place = self._values.rewrite_place(statement.place, out, conditions)
        value = self._values.rewrite(statement.value, out)
        inside: list[ir.Statement] = []
        loc = statement.loc
        if self._watches(place.dtype) and (statement.operator or not words.is_known_number(value)):
            if statement.operator is not None:
                value = make.binary(statement.operator, place, value, loc)
            value = self._hold(value, inside, loc)
            what, index = describe_place(place)
            inside.append(self._nan_check(value, what, index, loc))
            inside.append(ir.Store(place, value, None, loc))
        else:
            inside.append(replace(statement, place=place, value=value))
        if conditions:
            out.append(make.when(make.all_of(conditions), *inside, loc=loc))
        elif len(inside) > 1:
            out.append(ir.Scope(tuple(inside), None, loc))
        else:
            out.extend(inside)

    def _image_store(self, statement: ir.ImageStore, out: list[ir.Statement]) -> None:
        loc, image = statement.loc, statement.image
        if self._checks.bounds:
            coordinate, good = self._values.check_texel(image, statement.coordinate, (), loc, out)
        else:
            coordinate, good = self._values.rewrite(statement.coordinate, out), None
        value = self._values.rewrite(statement.value, out)
        inside: list[ir.Statement] = []
        if self._watches(value.dtype) and not words.is_known_number(value):
            value = self._hold(value, inside, loc)
            inside.append(self._nan_check(value, f"image {image.label!r}", None, loc))
        inside.append(replace(statement, coordinate=coordinate, value=value))
        if good is not None:
            out.append(make.when(good, *inside, loc=loc))
        else:
            out.append(ir.Scope(tuple(inside), None, loc))

    def _while(self, statement: ir.While, out: list[ir.Statement]) -> None:
        loc = statement.loc
        head: list[ir.Statement] = []
        condition = statement.condition
        with self._values.inside():
            if self._values.needs_check(condition):
                value = self._values.rewrite(condition, head)
                head.append(make.when(make.negate(value), ir.Break(loc), loc=loc))
                condition = make.truth(True, condition.loc)
            if self._checks.loops:
                rounds = self.report.register(dt.uint32)
                out.append(ir.Declare(rounds, make.uint(0), loc))
                most = self._most_rounds(out, loc)
                broken = (
                    *self.report.make_violation(words.LoopSite(loc), loc, (make.read(rounds),)),
                    ir.Break(loc),
                )
                at_end = make.compare(">=", make.read(rounds), most)
                head.append(make.when(at_end, *broken, loc=loc))
                head.append(ir.Store(make.read(rounds), make.uint(1), "+", loc))
            body = (*head, *self.block(statement.body))
        out.append(ir.While(condition, body, loc, statement.rolled))

    def _most_rounds(self, out: list[ir.Statement], loc: Loc | None) -> ir.Expr:
        if self._checks.rounds is not None:
            return make.uint(self._checks.rounds)
        return self._hold(self.report.word(words.ROUNDS), out, loc)

    def _assert(self, statement: ir.Assert, out: list[ir.Statement]) -> None:
        if not self._checks.asserts:
            return
        loc = statement.loc
        inside: list[ir.Statement] = []
        with self._values.inside():
            for part in statement.body:
                self._values.start_statement()
                self._statement(part, inside)
            self._values.start_statement()
            value = self._values.rewrite(statement.condition, inside)
            told = self.report.make_violation(words.AssertSite(statement.message, loc), loc)
            inside.append(make.when(make.negate(value), *told, loc=loc))
        out.append(ir.Scope(tuple(inside), None, loc))

    def _print(self, statement: ir.Print, out: list[ir.Statement]) -> None:
        loc = statement.loc
        inside: list[ir.Statement] = []
        told: list[ir.Expr] = []
        with self._values.inside():
            for arg in statement.args:
                value = self._values.rewrite(arg, inside)
                if value.op not in (ir.Op.LITERAL, ir.Op.REGISTER):
                    value = self._hold(value, inside, loc)
                told += [word for part in make.components(value) for word in words.words_of(part)]
            kinds = tuple(arg.dtype for arg in statement.args)
            site = words.PrintSite(statement.format, statement.style, kinds, loc)
            assert len(told) == sum(map(words.word_count, kinds))
            inside += self.report.make_message(site, told, loc)
        out.append(ir.Scope(tuple(inside), None, loc))

    # -- NaN

    def _watches(self, kind: dt.DType) -> bool:
        # other invocations hold the other elements of a cooperative matrix; an array starts as zeros
        known = not dt.is_cooperative(kind) and not dt.is_array(kind)
        return self._checks.nan and dt.is_float_dtype(dt.component_type(kind)) and known

    def _nan_check(self, value: ir.Expr, what: str, index: ir.Expr | None, loc: Loc | None) -> ir.If:
        values = () if index is None else (*words.wide_words(index), make.uint(0))
        found = make.logical("||", *(words.is_nan(part) for part in make.components(value)))
        site = words.NanSite(what, index is not None, loc)
        return make.when(found, *self.report.make_violation(site, loc, values), loc=loc)
