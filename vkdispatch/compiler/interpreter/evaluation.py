"""Expressions of the intermediate representation on NumPy rows, for the invocations that are active."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from vkdispatch.base.dtype import int64, is_array, is_matrix, uint64
from vkdispatch.base.errors import BoundsError, UnsupportedError
from vkdispatch.compiler.interpreter import operations as arithmetic
from vkdispatch.compiler.interpreter.images import Texels
from vkdispatch.compiler.interpreter.memory import (
    Array,
    Cells,
    Place,
    broadcast_rows,
    construct,
    describe_index,
    find_outside,
    host_dtype,
    make_uniform,
    signed_index,
    value_shape,
)
from vkdispatch.compiler.interpreter.operations import call_function
from vkdispatch.compiler.interpreter.program import Batch, Lanes, list_operands
from vkdispatch.compiler.interpreter.subgroups import Subgroups, run_atomic_function, run_subgroup_function
from vkdispatch.compiler.ir import (
    Argument,
    Builtin,
    Expr,
    ImageBinding,
    Op,
    RawText,
    Register,
    SharedArray,
    Storage,
    describe_array,
    is_item_in_memory,
    place_operands,
)
from vkdispatch.compiler.ir.location import Loc, located

# ---- Expressions that read images: texels, samples and sizes ---------------------------------------------


def check_texels(
    batch: Batch, texels: Texels, coordinate: Array, level: Array | None, lanes: Lanes, loc: Loc | None
) -> Array | None:
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


def check_levels(batch: Batch, texels: Texels, level: Array, lanes: Lanes, loc: Loc | None) -> Array:
    """Return which mip levels exist. Raises IndexError for a missing one if the program checks bounds."""
    count = len(texels.levels)
    good: Array = (level >= 0) & (level < count)
    if batch.program.checks.bounds and not good.all():
        row = int(np.argmin(good))
        text = f"mip level {level[row]} is out of bounds for {texels.what} of {count}"
        raise batch.make_error(BoundsError, text, int(lanes.index[row]), loc)
    return good


def fill_rows(found: Array, rows: Array | None, count: int) -> Array:
    """Return what some invocations found, with 0 for the others; `rows` is None if all found something."""
    if rows is None:
        return found
    value = np.zeros((count, *found.shape[1:]), found.dtype)
    value[rows] = found
    return value


def _find_texels(batch: Batch, expr: Expr) -> Texels:
    assert isinstance(expr.value, ImageBinding)
    return batch.program.memory.images[expr.value.index]


def add_axis(value: Array) -> Array:
    """Return coordinates with an axis for their components, which one-dimensional images lack."""
    return value[:, None] if value.ndim == 1 else value


def sample(batch: Batch, expr: Expr, lanes: Lanes) -> Array:
    """Return the value of a SAMPLE."""
    coordinate, lod = list_operands(expr, lanes)
    rows = max(len(coordinate), len(lod))
    coordinate = add_axis(broadcast_rows(coordinate, rows))
    return _find_texels(batch, expr).sample(coordinate, broadcast_rows(lod, rows))


def load_texels(batch: Batch, expr: Expr, lanes: Lanes) -> Array:
    """Return the value of an IMAGE_LOAD. Missing texels are 0 if the program does not check bounds."""
    texels = _find_texels(batch, expr)
    coordinate, *levels = (broadcast_rows(arg, len(lanes)) for arg in list_operands(expr, lanes))
    coordinate = add_axis(coordinate)
    level = levels[0] if levels else None
    rows = check_texels(batch, texels, coordinate, level, lanes, expr.loc)
    reached = slice(None) if rows is None else rows
    found: Array
    if texels.cells is None:
        assert level is not None
        found = texels.load(coordinate[reached], level[reached])
    else:
        place = (texels.flatten_coordinates(coordinate[reached]),)
        if batch.program.races is not None:
            batch.program.races.read(batch.describe_access(texels.cells, place, lanes, rows, expr.loc))
        found = texels.cells.load(place)
    return fill_rows(found, rows, len(lanes))


def find_image_size(batch: Batch, expr: Expr, lanes: Lanes) -> Array:
    """Return the value of an IMAGE_SIZE. The size of a missing level is 0."""
    texels = _find_texels(batch, expr)
    sizes = texels.sizes()
    if expr.args:
        (level,) = list_operands(expr, lanes)
        good = check_levels(batch, texels, broadcast_rows(level, len(lanes)), lanes, expr.loc)[: len(level)]
        sizes = np.where(good[:, None], sizes[np.where(good, level, 0)], 0)
    else:
        sizes = sizes[:1]
    return sizes if value_shape(expr.dtype) else sizes[:, 0]


class Evaluator(Batch):
    """Workgroups that evaluate expressions and find the places that statements access."""

    def evaluate(self, root: Expr, lanes: Lanes) -> Array:
        """Return the value of an expression for some invocations."""
        known = lanes.known
        stack = [root]
        while stack:
            expr = stack[-1]
            if id(expr) in known:
                stack.pop()
                continue
            if is_item_in_memory(expr):
                known[id(expr)] = self._load_item(expr, lanes)
                stack.pop()
                continue
            operands = expr.args[:1] if id(expr) in self.program.lazy else expr.args
            pending = [operand for operand in operands if id(operand) not in known]
            if pending:
                stack.extend(reversed(pending))
                continue
            known[id(expr)] = _RULES[expr.op](self, expr, lanes)
            stack.pop()
        return known[id(root)]

    def _load_item(self, expr: Expr, lanes: Lanes) -> Array:
        """Return the values of an item of an array in memory, without reading the others."""
        place = self.find_place(expr, lanes, expr.loc)
        if self.program.races is not None:
            self.program.races.read(
                self.describe_access(place.cells, place.index, lanes, place.rows, expr.loc)
            )
        return fill_rows(place.load(), place.rows, len(lanes))

    # -- places

    def find_place(self, expr: Expr, lanes: Lanes, loc: Loc | None) -> Place:
        """Return the place that each invocation accesses. Raises IndexError for an index out of range."""
        selections: list[Expr] = []
        root = expr
        while root.op in (Op.INDEX, Op.COMPONENT):
            selections.append(root)
            root = root.args[0]
        for operand in place_operands(expr):
            self.evaluate(operand, lanes)
        if isinstance(root.value, RawText):
            raise _refuse_raw(root)
        if isinstance(root.value, Register):
            cells, rows, first = self.registers[id(root.value)], None, lanes.index
        else:
            cells, first, rows = self.find_element(root, lanes, loc)
        parts: list[Array | int] = [broadcast_rows(first, len(lanes)) if rows is None else first]
        for each in reversed(selections):
            if each.op is Op.COMPONENT:
                parts.append("xyzw".index(str(each.value)))
                continue
            index = broadcast_rows(self.find_component(each, lanes, loc), len(lanes))
            parts.append(index if rows is None else index[rows])
        return Place(cells, tuple(parts), rows, isinstance(root.value, Register))

    def find_element(self, expr: Expr, lanes: Lanes, loc: Loc | None) -> tuple[Cells, Array, Array | None]:
        """Return the memory of an ELEMENT, the indices in it, and the invocations that are in range.

        An index out of range raises IndexError, or is omitted if the program does not check bounds.
        """
        index = self.evaluate(_undo_narrowing(expr.args[0]), lanes)
        if isinstance(expr.value, SharedArray):
            cells = self.shared[id(expr.value)]
        else:
            assert isinstance(expr.value, Storage)
            cells = self.program.memory.buffers[expr.value.index]
            if expr.value.path:
                cells = cells.fields[expr.value.path]
        if expr.axes and self.program.checks.bounds:
            self._check_axes(expr, cells, lanes, loc)
        bad = find_outside(index, cells.size)
        rows: Array | None = None
        if bad is not None:
            row = int(np.argmax(bad))
            if self.program.checks.bounds:
                shown = describe_index(index, row)
                text = f"index {shown} is out of bounds for {cells.what} of {cells.extent}"
                raise self.make_error(BoundsError, text, int(lanes.index[row]), expr.loc or loc)
            rows = ~broadcast_rows(bad, len(lanes))
            index = broadcast_rows(index, len(lanes))[rows]
        flat = index.astype(np.int64)
        if isinstance(expr.value, SharedArray):
            group = self.group[lanes.index]
            flat = flat + cells.size * (group if rows is None else group[rows])
        return cells, flat, rows

    def _check_axes(self, expr: Expr, cells: Cells, lanes: Lanes, loc: Loc | None) -> None:
        """Raise IndexError if an index is out of range for its axis."""
        indices = [self.evaluate(index, lanes) for index, _ in expr.axes]
        sizes = [int(self.evaluate(size, lanes)[0]) for _, size in expr.axes]
        for axis, (index, size) in enumerate(zip(indices, sizes, strict=True)):
            bad = find_outside(index, size)
            if bad is None:
                continue
            row = int(np.argmax(bad))
            shown = ", ".join(str(signed_index(each, row)) for each in indices)
            of = f"axis {axis} of {cells.what} of shape {cells.shape or tuple(sizes)}"
            text = f"index ({shown}) is out of bounds for {of}"
            raise self.make_error(BoundsError, text, int(lanes.index[row]), expr.loc or loc)

    def find_component(self, expr: Expr, lanes: Lanes, loc: Loc | None) -> Array:
        """Return the index of an INDEX. One out of range raises IndexError, or becomes 0 without checks."""
        base, position = expr.args
        index = self.evaluate(position, lanes)
        bad = find_outside(index, base.dtype.child_count)
        if bad is None:
            return index.astype(np.int64)
        if self.program.checks.bounds:
            row = int(np.argmax(bad))
            kind, count = base.dtype, base.dtype.child_count
            chosen = f"the columns of a {kind.name}" if is_matrix(kind) else f"a {kind.name}"
            if is_array(kind):
                chosen = describe_array(expr)
            text = f"index {describe_index(index, row)} is out of bounds for {chosen} of {count}"
            raise self.make_error(BoundsError, text, int(lanes.index[row]), expr.loc or loc)
        return np.where(bad, 0, index).astype(np.int64)

    def run_atomic(self, expr: Expr, lanes: Lanes, loc: Loc | None) -> Array:
        """Run an atomic, and return the previous values."""
        target, *operands = expr.args
        place = self.find_place(target, lanes, loc)
        values = [self.evaluate(operand, lanes) for operand in operands]
        return run_atomic_function(str(expr.value), place, values, len(lanes), expr.loc or loc)


def _undo_narrowing(index: Expr) -> Expr:
    """Return a 64-bit index before its conversion to 32 bits, which GLSL needs."""
    wide = index.args[0] if index.op is Op.CONSTRUCT else index
    return wide if wide.dtype in (int64, uint64) else index


def _refuse_raw(expr: Expr) -> UnsupportedError:
    return located(UnsupportedError, "interpret: GLSL given as text runs on a device only", expr.loc)


# ---- rules of the kinds of expressions --------------------------------------------------------


def _literal(batch: Evaluator, expr: Expr, lanes: Lanes) -> Array:
    return make_uniform(expr.value, expr.dtype)


def _argument(batch: Evaluator, expr: Expr, lanes: Lanes) -> Array:
    assert isinstance(expr.value, Argument)
    return batch.program.memory.arguments[expr.value.name]


def _builtin(batch: Evaluator, expr: Expr, lanes: Lanes) -> Array:
    assert isinstance(expr.value, Builtin)
    return batch.select_rows(batch.builtin(expr.value), lanes)


def _register(batch: Evaluator, expr: Expr, lanes: Lanes) -> Array:
    return batch.select_rows(batch.registers[id(expr.value)].data, lanes)


def _element(batch: Evaluator, expr: Expr, lanes: Lanes) -> Array:
    cells, index, rows = batch.find_element(expr, lanes, None)
    if batch.program.races is not None:
        batch.program.races.read(batch.describe_access(cells, (index,), lanes, rows, expr.loc))
    found = cells.load((index,))
    return fill_rows(found, rows, len(lanes))


def _index(batch: Evaluator, expr: Expr, lanes: Lanes) -> Array:
    base = lanes.known[id(expr.args[0])]
    index = batch.find_component(expr, lanes, None)
    if len(index) == 1:
        return base[:, int(index[0])]
    rows = np.arange(len(index)) if len(base) > 1 else np.zeros(len(index), np.int64)
    return base[rows, index]


def _component(batch: Evaluator, expr: Expr, lanes: Lanes) -> Array:
    return lanes.known[id(expr.args[0])][:, "xyzw".index(str(expr.value))]


def _swizzle(batch: Evaluator, expr: Expr, lanes: Lanes) -> Array:
    return lanes.known[id(expr.args[0])][:, ["xyzw".index(letter) for letter in str(expr.value)]]


def _unary(batch: Evaluator, expr: Expr, lanes: Lanes) -> Array:
    return arithmetic.apply_unary(str(expr.value), *list_operands(expr, lanes))


def _binary(batch: Evaluator, expr: Expr, lanes: Lanes) -> Array:
    left, right = expr.args
    return arithmetic.apply_binary(str(expr.value), (left.dtype, right.dtype), *list_operands(expr, lanes))


def _compare(batch: Evaluator, expr: Expr, lanes: Lanes) -> Array:
    return arithmetic.apply_comparison(str(expr.value), *list_operands(expr, lanes))


def _logical(batch: Evaluator, expr: Expr, lanes: Lanes) -> Array:
    both = expr.value == "&&"
    if id(expr) not in batch.program.lazy:
        rule = np.logical_and if both else np.logical_or
        result, *rest = list_operands(expr, lanes)
        for each in rest:
            result = rule(result, each)
        return result
    result = broadcast_rows(lanes.known[id(expr.args[0])], len(lanes)).copy()
    for arg in expr.args[1:]:
        open_ = np.flatnonzero(result if both else ~result)
        if not len(open_):
            break
        some = lanes if len(open_) == len(lanes) else Lanes(lanes.index[open_], False)
        result[open_] = batch.evaluate(arg, some)
    return result


def _select(batch: Evaluator, expr: Expr, lanes: Lanes) -> Array:
    truth = lanes.known[id(expr.args[0])]
    if id(expr) not in batch.program.lazy:
        _, chosen, other = list_operands(expr, lanes)
        return np.where(truth.reshape(len(truth), *(1,) * len(value_shape(expr.dtype))), chosen, other)
    result = np.empty((len(lanes), *value_shape(expr.dtype)), host_dtype(expr.dtype))
    for wanted, arg in ((True, expr.args[1]), (False, expr.args[2])):
        rows = np.flatnonzero(broadcast_rows(truth, len(lanes)) == wanted)
        if len(rows):
            some = lanes if len(rows) == len(lanes) else Lanes(lanes.index[rows], False)
            result[rows] = batch.evaluate(arg, some)
    return result


def _length(batch: Evaluator, expr: Expr, lanes: Lanes) -> Array:
    if isinstance(expr.value, SharedArray):
        return make_uniform(batch.program.shared_sizes[id(expr.value)], expr.dtype)
    assert isinstance(expr.value, Storage)
    return make_uniform(batch.program.memory.buffers[expr.value.index].size, expr.dtype)


def _call(batch: Evaluator, expr: Expr, lanes: Lanes) -> Array:
    return call_function(str(expr.value), expr.dtype, list_operands(expr, lanes), expr.loc)


def _subgroup(batch: Evaluator, expr: Expr, lanes: Lanes) -> Array:
    size = batch.program.subgroup_size
    count = batch.group_count * batch.subgroups_per_group
    groups = Subgroups(size, batch.slot[lanes.index], count)
    return run_subgroup_function(str(expr.value), groups, list_operands(expr, lanes), expr.loc)


def _construct(batch: Evaluator, expr: Expr, lanes: Lanes) -> Array:
    return construct(expr.dtype, [arg.dtype for arg in expr.args], list_operands(expr, lanes))


def _raw_value(batch: Evaluator, expr: Expr, lanes: Lanes) -> Array:
    raise _refuse_raw(expr)


def _refuse_unknown(batch: Evaluator, expr: Expr, lanes: Lanes) -> Array:
    raise located(UnsupportedError, f"interpret: {expr.op.name} is not known here", expr.loc)


_RULES: dict[Op, Callable[[Evaluator, Expr, Lanes], Array]] = {
    **dict.fromkeys(Op, _refuse_unknown),
    Op.LITERAL: _literal,
    Op.ARGUMENT: _argument,
    Op.BUILTIN: _builtin,
    Op.REGISTER: _register,
    Op.ELEMENT: _element,
    Op.INDEX: _index,
    Op.COMPONENT: _component,
    Op.SWIZZLE: _swizzle,
    Op.UNARY: _unary,
    Op.BINARY: _binary,
    Op.COMPARE: _compare,
    Op.LOGICAL: _logical,
    Op.SELECT: _select,
    Op.LENGTH: _length,
    Op.CALL: _call,
    Op.SUBGROUP: _subgroup,
    Op.CONSTRUCT: _construct,
    Op.SAMPLE: sample,
    Op.IMAGE_LOAD: load_texels,
    Op.IMAGE_SIZE: find_image_size,
    Op.RAW: _raw_value,
}
