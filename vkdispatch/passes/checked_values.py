"""Expressions of an instrumented kernel, and the checks of their indices, which come before them."""

from collections.abc import Iterator
from contextlib import contextmanager

from vkdispatch.analyses.naming import Numbering
from vkdispatch.base.dtype import (
    DType,
    bool_,
    int64,
    is_array,
    is_complex,
    is_cooperative,
    is_signed_dtype,
    is_vector,
    uint32,
    uint64,
)
from vkdispatch.base.record import replace
from vkdispatch.ir import (
    Block,
    Declare,
    Expr,
    If,
    ImageBinding,
    Op,
    Register,
    SharedArray,
    Statement,
    Storage,
    Store,
    describe_array,
    root_of,
)
from vkdispatch.ir.location import Loc
from vkdispatch.passes.builders import all_of, cast, components, less, negate, read, uint, zero
from vkdispatch.passes.diagnostics import (
    AxesSite,
    BoundsSite,
    Checks,
    TexelSite,
)
from vkdispatch.passes.reports import Report, shown_word, wide_words


class CheckedValues:
    """Rewrites values and places, and remembers what has been checked up to the current statement."""

    def __init__(self, checks: Checks, report: Report, length: DType) -> None:
        """Prepare for a kernel whose buffers have lengths of type `length`."""
        self._checks = checks
        self._report = report
        self._length = length
        self._numbering = Numbering()
        self._needed: list[bool] = []
        # (what is indexed, numbers of the indices) -> (index, whether it is in bounds): `_known` holds pure
        # indices, valid for the rest of the block, `_local` others, valid within the statement, as `_values`.
        self._known: dict[tuple[object, ...], tuple[Expr, Expr]] = {}
        self._local: dict[tuple[object, ...], tuple[Expr, Expr]] = {}
        self._values: dict[int, Expr] = {}

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

    def rewrite_place(self, place: Expr, out: list[Statement], conditions: list[Expr]) -> Expr:
        """Rewrite a place; the conditions under which it exists are added to `conditions`."""
        if place.op is Op.COMPONENT:
            return replace(place, args=(self.rewrite_place(place.args[0], out, conditions),))
        if place.op not in (Op.INDEX, Op.ELEMENT):
            return place
        base = [self.rewrite_place(place.args[0], out, conditions)] if place.op is Op.INDEX else []
        if self._is_checked(place):
            index, good = self._check_index(place, out)
            conditions.append(good)
        else:
            index = self.rewrite(place.args[-1], out)
        return replace(place, args=(*base, index))

    def _is_checked(self, expr: Expr) -> bool:
        """Whether an expression has an index that may be out of bounds."""
        if not self._checks.bounds or expr.op not in (Op.ELEMENT, Op.INDEX, Op.IMAGE_LOAD):
            return False
        if expr.op is Op.IMAGE_LOAD:
            return True
        if expr.op is Op.INDEX and is_cooperative(expr.args[0].dtype):
            return False  # only the device knows how many elements an invocation holds
        index = expr.args[-1]
        size = _find_static_size(expr)
        known = index.op is Op.LITERAL and isinstance(index.value, int) and size is not None
        return not (known and 0 <= index.value < size)  # type: ignore[operator]

    def needs_check(self, expr: Expr) -> bool:
        """Whether evaluating an expression involves a check."""
        number = self._numbering.number(expr)
        for position in range(len(self._needed), len(self._numbering.exprs)):
            known = self._numbering.exprs[position]
            nested = any(self._needed[arg] for arg in self._numbering.args[position])
            # what raw text mentions is written in the text
            self._needed.append(known.op is not Op.RAW and (nested or self._is_checked(known)))
        return self._needed[number]

    def rewrite(self, expr: Expr, out: list[Statement]) -> Expr:
        """Rewrite an expression; its checks are added to `out`."""
        if not self.needs_check(expr):
            return expr
        # operands have smaller numbers: no recursion, however deep the expression
        pending: dict[int, Expr] = {}
        stack = [expr]
        while stack:
            node = stack.pop()
            number = self._numbering.number(node)
            if number in pending or number in self._values or not self.needs_check(node):
                continue
            pending[number] = node
            stack.extend(node.args[:1] if node.op in (Op.LOGICAL, Op.SELECT) else node.args)
        for number in sorted(pending):
            self._values[number] = self._lower(pending[number], out)
        return self._values[self._numbering.number(expr)]

    def _operand(self, expr: Expr) -> Expr:
        return self._values.get(self._numbering.number(expr), expr)

    def _lower(self, expr: Expr, out: list[Statement]) -> Expr:
        """Rewrite an expression whose unconditionally evaluated operands are rewritten already."""
        if expr.op is Op.LOGICAL and any(map(self.needs_check, expr.args[1:])):
            return self._lower_logical(expr, out)
        if expr.op is Op.SELECT and any(map(self.needs_check, expr.args[1:])):
            return self._lower_select(expr, out)
        changed = replace(expr, args=tuple(map(self._operand, expr.args)))
        if not self._is_checked(expr):
            return changed
        if isinstance(expr.value, ImageBinding):
            written, *level = expr.args
            texel, good = self.check_texel(expr.value, written, tuple(level), expr.loc, out)
            safe = Expr(Op.SELECT, texel.dtype, (good, texel, zero(texel.dtype)), None, expr.loc)
            return replace(changed, args=(safe, *changed.args[1:]))
        index, good = self._check_index(expr, out)
        safe = Expr(Op.SELECT, index.dtype, (good, index, zero(index.dtype)), None, expr.loc)
        return replace(changed, args=(*changed.args[:-1], safe))

    def _lower_logical(self, expr: Expr, out: list[Statement]) -> Expr:
        loc = expr.loc
        register = self._report.register(bool_)
        result = read(register)
        out.append(Declare(register, self._operand(expr.args[0]), loc))
        for arg in expr.args[1:]:
            inside: list[Statement] = []
            with self.inside():
                inside.append(Store(result, self.rewrite(arg, inside), None, loc))
            out.append(If(((result if expr.value == "&&" else negate(result), tuple(inside)),), None, loc))
        return result

    def _lower_select(self, expr: Expr, out: list[Statement]) -> Expr:
        loc = expr.loc
        register = self._report.register(expr.dtype)
        result = read(register)
        arms: list[Block] = []
        for arg in expr.args[1:]:
            inside: list[Statement] = []
            with self.inside():
                inside.append(Store(result, self.rewrite(arg, inside), None, loc))
            arms.append(tuple(inside))
        out.append(Declare(register, zero(expr.dtype), loc))
        out.append(If(((self._operand(expr.args[0]), arms[0]),), arms[1], loc))
        return result

    # -- indices

    def _check_index(self, expr: Expr, out: list[Statement]) -> tuple[Expr, Expr]:
        """Check the index of an ELEMENT or INDEX; returns the index, and whether it is in bounds."""
        written = expr.args[-1]
        number = self._numbering.number(written)
        key = (_find_indexed(expr), number, *(self._numbering.number(index) for index, _ in expr.axes))
        found = self._known.get(key) or self._local.get(key)
        if found is not None:
            return found
        narrowed = written.op is Op.CONSTRUCT and written.args[0].dtype in (int64, uint64)
        original = written.args[0] if narrowed and written.dtype.item_size == 4 else written
        wide = original.dtype in (int64, uint64)
        value = self._steady_value(self.rewrite(original, out), self._numbering.number(original), out)
        index = cast(value, written.dtype)
        size = _find_static_size(expr)
        thing = expr.value
        assert isinstance(thing, (Storage, SharedArray)) or size is not None
        long = self._length if isinstance(thing, Storage) else uint32
        length = Expr(Op.LENGTH, long, (), thing) if size is None else uint(size)
        good = self._report.register(bool_)
        unsigned = uint64 if wide or length.dtype is uint64 else uint32
        within = less(cast(value, unsigned), cast(length, unsigned))
        along = self._check_axes(expr, out) if expr.axes else []
        out.append(Declare(good, all_of([*along, within]), expr.loc))
        resource = thing.index if isinstance(thing, Storage) else None
        bits = 64 if wide else 32
        site = BoundsSite(_describe_indexed(expr), resource, is_signed_dtype(original.dtype), bits, expr.loc)
        told = self._report.make_violation(site, expr.loc, (*wide_words(value), *wide_words(length)))
        out.append(If(((all_of([*along, negate(read(good))]), told),), None, expr.loc))
        kept = self._known if self._numbering.pure[number] else self._local
        kept[key] = index, read(good)
        return kept[key]

    def _check_axes(self, expr: Expr, out: list[Statement]) -> list[Expr]:
        """Check the index along each axis of an ELEMENT; returns whether all are in bounds."""
        parts, limits, fits = [], [], []
        for index, size in expr.axes:
            value = self._steady_value(self.rewrite(index, out), self._numbering.number(index), out)
            unsigned = uint64 if max(value.dtype.item_size, size.dtype.item_size) == 8 else uint32
            fits.append(less(cast(value, unsigned), cast(size, unsigned)))
            parts.append(shown_word(value))
            limits.append(cast(size, uint32))
        good = self._report.register(bool_)
        out.append(Declare(good, all_of(fits), expr.loc))
        padding = [uint(0)] * (3 - len(parts))
        resource = expr.value.index if isinstance(expr.value, Storage) else None
        site = AxesSite(_describe_indexed(expr), resource, len(parts), expr.loc)
        told = self._report.make_violation(site, expr.loc, (*parts, *padding, *limits, *padding))
        out.append(If(((negate(read(good)), told),), None, expr.loc))
        return [read(good)]

    def check_texel(
        self,
        image: ImageBinding,
        written: Expr,
        level: tuple[Expr, ...],
        loc: Loc | None,
        out: list[Statement],
    ) -> tuple[Expr, Expr]:
        """Check the coordinate of a texel at a mip level, if any; returns it, and whether it is in bounds."""
        texel = self._steady_value(self.rewrite(written, out), self._numbering.number(written), out)
        levels = tuple(self.rewrite(each, out) for each in level)
        size = self._report.register(texel.dtype)
        out.append(Declare(size, Expr(Op.IMAGE_SIZE, size.dtype, levels, image, loc), loc))
        parts = [cast(part, uint32) for part in components(texel)]
        limits = [cast(part, uint32) for part in components(read(size))]
        inside = [less(part, limit) for part, limit in zip(parts, limits, strict=True)]
        good = self._report.register(bool_)
        out.append(Declare(good, all_of(inside), loc))
        padding = [uint(0)] * (3 - len(parts))
        site = TexelSite(f"image {image.label!r}", len(parts), loc)
        told = self._report.make_violation(site, loc, (*parts, *padding, *limits, *padding))
        out.append(If(((negate(read(good)), told),), None, loc))
        return texel, read(good)

    def _steady_value(self, value: Expr, number: int, out: list[Statement]) -> Expr:
        """Return a value that may be evaluated several times in this statement."""
        if value.op in (Op.LITERAL, Op.REGISTER) or self._numbering.pure[number]:
            return value
        register = self._report.register(value.dtype)
        out.append(Declare(register, value, value.loc))
        return read(register)


def _find_static_size(expr: Expr) -> int | None:
    """Return the length of what an ELEMENT or INDEX indexes, if it is known at compile time."""
    if expr.op is Op.INDEX:
        return expr.args[0].dtype.child_count
    return expr.value.size if isinstance(expr.value, SharedArray) else None


def _find_indexed(expr: Expr) -> object:
    """Return a key of what an ELEMENT or INDEX indexes; equal keys have equal bounds."""
    if expr.op is Op.INDEX:
        return expr.args[0].dtype.child_count
    return expr.value.whole or expr.value if isinstance(expr.value, Storage) else expr.value


def _describe_indexed(expr: Expr) -> str:
    """Describe what an ELEMENT or INDEX indexes."""
    if isinstance(expr.value, Storage):
        return f"buffer {expr.value.label!r}"
    if isinstance(expr.value, SharedArray):
        return f"shared buffer {expr.value.name!r}"
    base = expr.args[0].dtype
    if is_array(base):
        return describe_array(expr)
    return f"a {base.name}" if is_vector(base) or is_complex(base) else f"the columns of a {base.name}"


def describe_place(place: Expr) -> tuple[str, Expr | None]:
    """Describe what a place belongs to; returns also its index there, if it has one."""
    place = root_of(place)
    if place.op is Op.ELEMENT:
        return _describe_indexed(place), place.args[0]
    name = place.value.name if isinstance(place.value, Register) else "the result of raw GLSL"
    return f"register {name!r}", None
