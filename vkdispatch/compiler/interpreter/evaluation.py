"""Expressions of the intermediate representation on NumPy rows, for the invocations that are active."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from vkdispatch.base.dtype import is_array, is_matrix
from vkdispatch.base.errors import BoundsError, UnsupportedError
from vkdispatch.compiler import ir
from vkdispatch.compiler.interpreter import memory, operations
from vkdispatch.compiler.interpreter.memory import Texels
from vkdispatch.compiler.interpreter.operations import call_function
from vkdispatch.compiler.interpreter.program import Batch, Lanes, list_operands
from vkdispatch.compiler.interpreter.subgroups import Subgroups, run_atomic_function, run_subgroup_function
from vkdispatch.compiler.ir.literals import is_long
from vkdispatch.compiler.ir.location import Loc, located

# ---- Expressions that read images: texels, samples and sizes ---------------------------------------------


def check_texels(
    batch: Batch,
    texels: Texels,
    coordinate: memory.Array,
    level: memory.Array | None,
    lanes: Lanes,
    loc: Loc | None,
) -> memory.Array | None:
    """Return which texels exist, or None if all do. Coordinates and levels have a row for each lane.

    Raises IndexError for a missing texel if the program checks bounds.
    """
    sizes = texels.sizes()
    good = np.ones(len(lanes), np.bool_)
    if level is not None:
        good = check_levels(batch, texels, level, lanes, loc)
        sizes = sizes[np.where(good, level, 0)]
    inside = np.all((coordinate >= 0) & (coordinate < sizes), axis=1)
    if batch.program.checks.bounds and not inside.all():
        row = int(np.argmin(inside))
        numbers = (coordinate[row], sizes[row if level is not None else 0])
        texel, size = (", ".join(map(str, part.tolist())) for part in numbers)
        text = f"texel ({texel}) is out of bounds for {texels.what} of ({size})"
        raise batch.make_error(BoundsError, text, int(lanes.index[row]), loc)
    good = good & inside
    return None if good.all() else good


def check_levels(
    batch: Batch, texels: Texels, level: memory.Array, lanes: Lanes, loc: Loc | None
) -> memory.Array:
    """Return which mip levels exist. Raises IndexError for a missing one if the program checks bounds."""
    count = len(texels.levels)
    good: memory.Array = (level >= 0) & (level < count)
    if batch.program.checks.bounds and not good.all():
        row = int(np.argmin(good))
        text = f"mip level {level[row]} is out of bounds for {texels.what} of {count}"
        raise batch.make_error(BoundsError, text, int(lanes.index[row]), loc)
    return good


def fill_rows(found: memory.Array, rows: memory.Array | None, count: int) -> memory.Array:
    """Return what some invocations found, with 0 for the others; `rows` is None if all found something."""
    if rows is None:
        return found
    value = np.zeros((count, *found.shape[1:]), found.dtype)
    value[rows] = found
    return value


def _find_texels(batch: Batch, expr: ir.Expr) -> Texels:
    assert isinstance(expr.value, ir.ImageBinding)
    return batch.program.memory.images[expr.value.index]


def add_axis(value: memory.Array) -> memory.Array:
    """Return coordinates with an axis for their components, which one-dimensional images lack."""
    return value[:, None] if value.ndim == 1 else value


def sample(batch: Batch, expr: ir.Expr, lanes: Lanes) -> memory.Array:
    """Return the value of a SAMPLE."""
    coordinate, lod = list_operands(expr, lanes)
    rows = max(len(coordinate), len(lod))
    coordinate = add_axis(memory.broadcast_rows(coordinate, rows))
    return _find_texels(batch, expr).sample(coordinate, memory.broadcast_rows(lod, rows))


def load_texels(batch: Batch, expr: ir.Expr, lanes: Lanes) -> memory.Array:
    """Return the value of an IMAGE_LOAD. Missing texels are 0 if the program does not check bounds."""
    texels = _find_texels(batch, expr)
    coordinate, *levels = (memory.broadcast_rows(arg, len(lanes)) for arg in list_operands(expr, lanes))
    coordinate = add_axis(coordinate)
    level = levels[0] if levels else None
    rows = check_texels(batch, texels, coordinate, level, lanes, expr.loc)
    reached = slice(None) if rows is None else rows
    found: memory.Array
    if texels.cells is None:
        assert level is not None
        found = texels.load(coordinate[reached], level[reached])
    else:
        place = (texels.flatten_coordinates(coordinate[reached]),)
        if batch.program.races is not None:
            batch.program.races.read(batch.describe_access(texels.cells, place, lanes, rows, expr.loc))
        found = texels.cells.load(place)
    return fill_rows(found, rows, len(lanes))


def find_image_size(batch: Batch, expr: ir.Expr, lanes: Lanes) -> memory.Array:
    """Return the value of an IMAGE_SIZE. The size of a missing level is 0."""
    texels = _find_texels(batch, expr)
    sizes = texels.sizes()
    if expr.args:
        (level,) = list_operands(expr, lanes)
        good = check_levels(batch, texels, memory.broadcast_rows(level, len(lanes)), lanes, expr.loc)[
            : len(level)
        ]
        sizes = np.where(good[:, None], sizes[np.where(good, level, 0)], 0)
    else:
        sizes = sizes[:1]
    return sizes if memory.value_shape(expr.dtype) else sizes[:, 0]


class Evaluator(Batch):
    """Workgroups that evaluate expressions and find the places that statements access."""

    def evaluate(self, root: ir.Expr, lanes: Lanes) -> memory.Array:
        """Return the value of an expression for some invocations."""
        known = lanes.known
        for expr in ir.postorder(root, known, self._find_operands):
            rule = Evaluator._load_item if ir.is_item_in_memory(expr) else _RULES[expr.op]
            known[id(expr)] = rule(self, expr, lanes)
        return known[id(root)]

    def _find_operands(self, expr: ir.Expr) -> tuple[ir.Expr, ...]:
        """Return what is evaluated before an expression in any case."""
        if ir.is_item_in_memory(expr):
            return ()
        return expr.args[:1] if id(expr) in self.program.lazy else expr.args

    def _load_item(self, expr: ir.Expr, lanes: Lanes) -> memory.Array:
        """Return the values of an item of an array in memory, without reading the others."""
        place = self.find_place(expr, lanes, expr.loc)
        if self.program.races is not None:
            self.program.races.read(
                self.describe_access(place.cells, place.index, lanes, place.rows, expr.loc)
            )
        return fill_rows(place.load(), place.rows, len(lanes))

    # -- places

    def find_place(self, expr: ir.Expr, lanes: Lanes, loc: Loc | None) -> memory.Place:
        """Return the place that each invocation accesses. Raises IndexError for an index out of range."""
        selections: list[ir.Expr] = []
        root = expr
        while root.op in (ir.Op.INDEX, ir.Op.COMPONENT):
            selections.append(root)
            root = root.args[0]
        for operand in ir.place_operands(expr):
            self.evaluate(operand, lanes)
        if isinstance(root.value, ir.RawText):
            raise _refuse_raw(root)
        if isinstance(root.value, ir.Register):
            cells, rows, first = self.registers[id(root.value)], None, lanes.index
        else:
            cells, first, rows = self.find_element(root, lanes, loc)
        parts: list[memory.Array | int] = [
            memory.broadcast_rows(first, len(lanes)) if rows is None else first
        ]
        for part in reversed(selections):
            if part.op is ir.Op.COMPONENT:
                parts.append("xyzw".index(str(part.value)))
                continue
            index = memory.broadcast_rows(self.find_component(part, lanes, loc), len(lanes))
            parts.append(index if rows is None else index[rows])
        return memory.Place(cells, tuple(parts), rows, isinstance(root.value, ir.Register))

    def find_element(
        self, expr: ir.Expr, lanes: Lanes, loc: Loc | None
    ) -> tuple[memory.Cells, memory.Array, memory.Array | None]:
        """Return the memory of an ELEMENT, the indices in it, and the invocations that are in range.

        An index out of range raises IndexError, or is omitted if the program does not check bounds.
        """
        index = self.evaluate(_undo_narrowing(expr.args[0]), lanes)
        if isinstance(expr.value, ir.SharedArray):
            cells = self.shared[id(expr.value)]
        else:
            assert isinstance(expr.value, ir.Storage)
            cells = self.program.memory.buffers[expr.value.index]
            if expr.value.path:
                cells = cells.fields[expr.value.path]
        if expr.axes and self.program.checks.bounds:
            self._check_axes(expr, cells, lanes, loc)
        bad = memory.find_outside(index, cells.size)
        rows: memory.Array | None = None
        if bad is not None:
            row = int(np.argmax(bad))
            if self.program.checks.bounds:
                shown = memory.describe_index(index, row)
                text = f"index {shown} is out of bounds for {cells.what} of {cells.extent}"
                raise self.make_error(BoundsError, text, int(lanes.index[row]), expr.loc or loc)
            rows = ~memory.broadcast_rows(bad, len(lanes))
            index = memory.broadcast_rows(index, len(lanes))[rows]
        flat = index.astype(np.int64)
        if isinstance(expr.value, ir.SharedArray):
            group = self.group[lanes.index]
            flat = flat + cells.size * (group if rows is None else group[rows])
        return cells, flat, rows

    def _check_axes(self, expr: ir.Expr, cells: memory.Cells, lanes: Lanes, loc: Loc | None) -> None:
        """Raise IndexError if an index is out of range for its axis."""
        indices = [self.evaluate(index, lanes) for index, _ in expr.axes]
        sizes = [int(self.evaluate(size, lanes)[0]) for _, size in expr.axes]
        for axis, (index, size) in enumerate(zip(indices, sizes, strict=True)):
            bad = memory.find_outside(index, size)
            if bad is None:
                continue
            row = int(np.argmax(bad))
            shown = ", ".join(str(memory.signed_index(index, row)) for index in indices)
            of = f"axis {axis} of {cells.what} of shape {cells.shape or tuple(sizes)}"
            text = f"index ({shown}) is out of bounds for {of}"
            raise self.make_error(BoundsError, text, int(lanes.index[row]), expr.loc or loc)

    def find_component(self, expr: ir.Expr, lanes: Lanes, loc: Loc | None) -> memory.Array:
        """Return the index of an INDEX. One out of range raises IndexError, or becomes 0 without checks."""
        base, position = expr.args
        index = self.evaluate(position, lanes)
        bad = memory.find_outside(index, base.dtype.child_count)
        if bad is None:
            return index.astype(np.int64)
        if self.program.checks.bounds:
            row = int(np.argmax(bad))
            kind, count = base.dtype, base.dtype.child_count
            chosen = f"the columns of a {kind.name}" if is_matrix(kind) else f"a {kind.name}"
            if is_array(kind):
                chosen = ir.describe_array(expr)
            text = f"index {memory.describe_index(index, row)} is out of bounds for {chosen} of {count}"
            raise self.make_error(BoundsError, text, int(lanes.index[row]), expr.loc or loc)
        return np.where(bad, 0, index).astype(np.int64)

    def run_atomic(self, expr: ir.Expr, lanes: Lanes, loc: Loc | None) -> memory.Array:
        """Run an atomic, and return the previous values."""
        target, *operands = expr.args
        place = self.find_place(target, lanes, loc)
        values = [self.evaluate(operand, lanes) for operand in operands]
        return run_atomic_function(str(expr.value), place, values, len(lanes), expr.loc or loc)


def _undo_narrowing(index: ir.Expr) -> ir.Expr:
    """Return a 64-bit index before its conversion to 32 bits, which GLSL needs."""
    wide = index.args[0] if index.op is ir.Op.CONSTRUCT else index
    return wide if is_long(wide.dtype) else index


def _refuse_raw(expr: ir.Expr) -> UnsupportedError:
    return located(UnsupportedError, "interpret: GLSL given as text runs on a device only", expr.loc)


# ---- rules of the kinds of expressions --------------------------------------------------------


def _argument(batch: Evaluator, expr: ir.Expr, lanes: Lanes) -> memory.Array:
    assert isinstance(expr.value, ir.Argument)
    return batch.program.memory.arguments[expr.value.name]


def _builtin(batch: Evaluator, expr: ir.Expr, lanes: Lanes) -> memory.Array:
    assert isinstance(expr.value, ir.Builtin)
    return batch.select_rows(batch.builtin(expr.value), lanes)


def _element(batch: Evaluator, expr: ir.Expr, lanes: Lanes) -> memory.Array:
    cells, index, rows = batch.find_element(expr, lanes, None)
    if batch.program.races is not None:
        batch.program.races.read(batch.describe_access(cells, (index,), lanes, rows, expr.loc))
    found = cells.load((index,))
    return fill_rows(found, rows, len(lanes))


def _index(batch: Evaluator, expr: ir.Expr, lanes: Lanes) -> memory.Array:
    base = lanes.known[id(expr.args[0])]
    index = batch.find_component(expr, lanes, None)
    if len(index) == 1:
        return base[:, int(index[0])]
    rows = np.arange(len(index)) if len(base) > 1 else np.zeros(len(index), np.int64)
    return base[rows, index]


def _select_components(batch: Evaluator, expr: ir.Expr, lanes: Lanes) -> memory.Array:
    positions = ["xyzw".index(letter) for letter in str(expr.value)]
    return lanes.known[id(expr.args[0])][:, positions[0] if len(positions) == 1 else positions]


def _apply_operator(batch: Evaluator, expr: ir.Expr, lanes: Lanes) -> memory.Array:
    symbol, operands = str(expr.value), list_operands(expr, lanes)
    if expr.op is ir.Op.UNARY:
        return operations.apply_unary(symbol, *operands)
    if expr.op is ir.Op.COMPARE:
        return operations.apply_comparison(symbol, *operands)
    left, right = expr.args
    return operations.apply_binary(symbol, (left.dtype, right.dtype), *operands)


def _logical(batch: Evaluator, expr: ir.Expr, lanes: Lanes) -> memory.Array:
    both = expr.value == "&&"
    if id(expr) not in batch.program.lazy:
        rule = np.logical_and if both else np.logical_or
        result, *rest = list_operands(expr, lanes)
        for operand in rest:
            result = rule(result, operand)
        return result
    result = memory.broadcast_rows(lanes.known[id(expr.args[0])], len(lanes)).copy()
    for arg in expr.args[1:]:
        open_ = np.flatnonzero(result if both else ~result)
        if not len(open_):
            break
        some = lanes if len(open_) == len(lanes) else Lanes(lanes.index[open_], False)
        result[open_] = batch.evaluate(arg, some)
    return result


def _select(batch: Evaluator, expr: ir.Expr, lanes: Lanes) -> memory.Array:
    truth = lanes.known[id(expr.args[0])]
    if id(expr) not in batch.program.lazy:
        _, chosen, other = list_operands(expr, lanes)
        return np.where(truth.reshape(len(truth), *(1,) * len(memory.value_shape(expr.dtype))), chosen, other)
    result = np.empty((len(lanes), *memory.value_shape(expr.dtype)), memory.host_dtype(expr.dtype))
    for wanted, arg in ((True, expr.args[1]), (False, expr.args[2])):
        rows = np.flatnonzero(memory.broadcast_rows(truth, len(lanes)) == wanted)
        if len(rows):
            some = lanes if len(rows) == len(lanes) else Lanes(lanes.index[rows], False)
            result[rows] = batch.evaluate(arg, some)
    return result


def _length(batch: Evaluator, expr: ir.Expr, lanes: Lanes) -> memory.Array:
    if isinstance(expr.value, ir.SharedArray):
        return memory.make_uniform(batch.program.shared_sizes[id(expr.value)], expr.dtype)
    assert isinstance(expr.value, ir.Storage)
    return memory.make_uniform(batch.program.memory.buffers[expr.value.index].size, expr.dtype)


def _subgroup(batch: Evaluator, expr: ir.Expr, lanes: Lanes) -> memory.Array:
    size = batch.program.subgroup_size
    count = batch.group_count * batch.subgroups_per_group
    groups = Subgroups(size, batch.slot[lanes.index], count)
    return run_subgroup_function(str(expr.value), groups, list_operands(expr, lanes), expr.loc)


def _construct(batch: Evaluator, expr: ir.Expr, lanes: Lanes) -> memory.Array:
    return memory.construct(expr.dtype, [arg.dtype for arg in expr.args], list_operands(expr, lanes))


def _refuse_unknown(batch: Evaluator, expr: ir.Expr, lanes: Lanes) -> memory.Array:
    if expr.op is ir.Op.RAW:
        raise _refuse_raw(expr)
    raise located(UnsupportedError, f"interpret: {expr.op.name} is not known here", expr.loc)


_RULES: dict[ir.Op, Callable[[Evaluator, ir.Expr, Lanes], memory.Array]] = {
    **dict.fromkeys(ir.Op, _refuse_unknown),
    ir.Op.LITERAL: lambda batch, expr, lanes: memory.make_uniform(expr.value, expr.dtype),
    ir.Op.ARGUMENT: _argument,
    ir.Op.BUILTIN: _builtin,
    ir.Op.REGISTER: lambda batch, expr, lanes: batch.select_rows(batch.registers[id(expr.value)].data, lanes),
    ir.Op.ELEMENT: _element,
    ir.Op.INDEX: _index,
    **dict.fromkeys((ir.Op.COMPONENT, ir.Op.SWIZZLE), _select_components),
    **dict.fromkeys((ir.Op.UNARY, ir.Op.BINARY, ir.Op.COMPARE), _apply_operator),
    ir.Op.LOGICAL: _logical,
    ir.Op.SELECT: _select,
    ir.Op.LENGTH: _length,
    ir.Op.CALL: lambda batch, expr, lanes: call_function(
        str(expr.value), expr.dtype, list_operands(expr, lanes), expr.loc
    ),
    ir.Op.SUBGROUP: _subgroup,
    ir.Op.CONSTRUCT: _construct,
    ir.Op.SAMPLE: sample,
    ir.Op.IMAGE_LOAD: load_texels,
    ir.Op.IMAGE_SIZE: find_image_size,
}
