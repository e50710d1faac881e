"""Expressions of the intermediate representation on NumPy rows, for the invocations that are active."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from vkdispatch.base.dtype import int64, is_array, is_matrix, uint64
from vkdispatch.base.errors import BoundsError, NanError, UnsupportedError, VkDispatchError
from vkdispatch.interpreter import arithmetic
from vkdispatch.interpreter.atomics import run_atomic_function
from vkdispatch.interpreter.functions import call_function
from vkdispatch.interpreter.images import Texels
from vkdispatch.interpreter.memory import (
    Cells,
    Index,
    Place,
    describe_index,
    find_outside,
    signed_index,
)
from vkdispatch.interpreter.program import Lanes, Program
from vkdispatch.interpreter.races import Access
from vkdispatch.interpreter.subgroups import (
    Subgroups,
    make_lane_mask,
    run_subgroup_function,
)
from vkdispatch.interpreter.values import (
    Array,
    Extent,
    broadcast_rows,
    construct,
    host_dtype,
    make_uniform,
    value_shape,
)
from vkdispatch.ir import (
    Argument,
    Builtin,
    Expr,
    ImageBinding,
    Op,
    RawText,
    Register,
    SharedArray,
    Storage,
    place_operands,
)
from vkdispatch.ir.location import Loc, located

_Error = TypeVar("_Error", bound=VkDispatchError)


class Batch:
    """Workgroups that run together: their invocations, registers and shared memory."""

    def __init__(self, program: Program, first_group: int, group_count: int) -> None:
        x, y, z = program.local_size
        self.program = program
        self.local = x * y * z
        self.width = group_count * self.local
        self.first_group = first_group
        self.group_count = group_count
        self.group = np.repeat(np.arange(group_count), self.local)
        self.position = np.tile(np.arange(self.local), group_count)
        self.registers: dict[int, Cells] = {}
        self.shared = {id(array): self._new_shared(array) for array in program.kernel.shared}
        self.epoch = np.zeros(group_count, np.int64)
        self._builtins: dict[Builtin, Array] = {}
        size = program.subgroup_size
        self.subgroups_per_group = -(-self.local // size)
        self._slot = self.group * (self.subgroups_per_group * size) + self.position

    def _new_shared(self, array: SharedArray) -> Cells:
        kind = host_dtype(array.dtype)
        data = np.empty((self.group_count * array.size, *value_shape(array.dtype)), kind)
        # undefined in GLSL: a conspicuous value exposes kernels that rely on it
        data.fill(np.nan if kind.kind == "f" else np.array(0xA5A5A5A5A5A5A5A5, np.uint64).astype(kind))
        return Cells(f"shared buffer {array.name!r}", data, None, array.size)

    # -- which invocation this is

    def builtin(self, which: Builtin) -> Array:
        """Return a built-in value for each invocation, or one row for all."""
        if which not in self._builtins:
            rule = _BUILTINS.get(which.name)
            if rule is None:
                who = self.program.who
                raise UnsupportedError(f"{who}: interpret: the built-in value {which.name} is not known here")
            self._builtins[which] = rule(self)
        return self._builtins[which]

    def invocation(self, position: int) -> Extent:
        """Return the global id of the invocation at a position of the batch."""
        x, y, z = self.builtin(Builtin.GLOBAL_INVOCATION_ID)[position].tolist()
        return (x, y, z)

    def flat_ids(self, lanes: Lanes) -> Array:
        """Return the linear indices of invocations in the whole grid, x fastest."""
        extent = [
            size * count for size, count in zip(self.program.local_size, self.program.groups, strict=True)
        ]
        ids = self.builtin(Builtin.GLOBAL_INVOCATION_ID)[lanes.index].astype(np.int64)
        return (ids[:, 2] * extent[1] + ids[:, 1]) * extent[0] + ids[:, 0]

    # -- values

    def evaluate(self, root: Expr, lanes: Lanes) -> Array:
        """Return the value of an expression for some invocations."""
        known = lanes.known
        stack = [root]
        while stack:
            expr = stack[-1]
            if id(expr) in known:
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

    def select_rows(self, value: Array, lanes: Lanes) -> Array:
        """Return the rows of a value that belong to some invocations."""
        return value if lanes.whole or len(value) == 1 else value[lanes.index]

    def make_error(self, error: type[_Error], message: str, position: int, loc: Loc | None) -> _Error:
        """Make the error for an invocation."""
        where = self.invocation(position)
        return located(error, f"{self.program.who}: {message}, in invocation {where}", loc)

    def check_nan(self, value: Array, what: str, index: Array | None, lanes: Lanes, loc: Loc | None) -> None:
        """Raise FloatingPointError if a value to be stored has a NaN."""
        if not self.program.checks.nan or value.dtype.kind != "f":
            return
        bad = np.isnan(value).reshape(len(value), -1).any(axis=1)
        if bad.any():
            row = int(np.argmax(bad))
            at = "" if index is None else f" at index {int(index[row if len(index) > 1 else 0])}"
            raise self.make_error(NanError, f"NaN stored in {what}{at}", int(lanes.index[row]), loc)

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
            index = broadcast_rows(self._component_index(each, lanes, loc), len(lanes))
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
            cells = self.program.buffers[expr.value.index]
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

    def _component_index(self, expr: Expr, lanes: Lanes, loc: Loc | None) -> Array:
        base, position = expr.args
        index = self.evaluate(position, lanes)
        bad = find_outside(index, base.dtype.child_count)
        if bad is None:
            return index.astype(np.int64)
        if self.program.checks.bounds:
            row = int(np.argmax(bad))
            kind, count = base.dtype, base.dtype.child_count
            chosen = f"the columns of a {kind.name}" if is_matrix(kind) else f"a {kind.name}"
            if isinstance(base.value, Register) and is_array(kind):
                chosen = f"local array {base.value.name!r}"
            text = f"index {describe_index(index, row)} is out of bounds for {chosen} of {count}"
            raise self.make_error(BoundsError, text, int(lanes.index[row]), expr.loc or loc)
        return np.where(bad, 0, index).astype(np.int64)

    def check_texels(
        self, texels: Texels, coordinate: Array, level: Array | None, lanes: Lanes, loc: Loc | None
    ) -> Array | None:
        """Return which texels exist, or None if all do. Coordinates and levels have a row for each lane.

        Raises IndexError for a missing texel if the program checks bounds.
        """
        sizes = texels.sizes()
        good = np.ones(len(lanes), np.bool_)
        if level is not None:
            good = self.check_levels(texels, level, lanes, loc)
            sizes = sizes[np.where(good, level, 0)]
        inside = np.all((coordinate >= 0) & (coordinate < sizes), axis=1)
        if self.program.checks.bounds and not inside.all():
            row = int(np.argmin(inside))
            numbers = (coordinate[row], sizes[row if level is not None else 0])
            texel, size = (", ".join(map(str, part.tolist())) for part in numbers)
            text = f"texel ({texel}) is out of bounds for {texels.what} of ({size})"
            raise self.make_error(BoundsError, text, int(lanes.index[row]), loc)
        good = good & inside
        return None if good.all() else good

    def check_levels(self, texels: Texels, level: Array, lanes: Lanes, loc: Loc | None) -> Array:
        """Return which mip levels exist. Raises IndexError for a missing one if the program checks bounds."""
        count = len(texels.levels)
        good: Array = (level >= 0) & (level < count)
        if self.program.checks.bounds and not good.all():
            row = int(np.argmin(good))
            text = f"mip level {level[row]} is out of bounds for {texels.what} of {count}"
            raise self.make_error(BoundsError, text, int(lanes.index[row]), loc)
        return good

    def describe_access(
        self, cells: Cells, index: Index, lanes: Lanes, rows: Array | None, loc: Loc | None
    ) -> Access:
        """Describe an access for the race detector."""
        mine = lanes.index if rows is None else lanes.index[rows]
        index = tuple(np.broadcast_to(part, len(mine)) for part in index)
        group = self.group[mine]
        number = self.first_group * self.local + mine
        return Access(cells, index, number, self.first_group + group, self.epoch[group], loc)

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


def _unflatten(flat: Array, extent: Extent) -> Array:
    x, y, _ = extent
    return np.stack([flat % x, flat // x % y, flat // (x * y)], axis=1).astype(np.uint32)


def _global_id(batch: Batch) -> Array:
    sizes = np.array(batch.program.local_size, np.uint32)
    return batch.builtin(Builtin.WORKGROUP_ID) * sizes + batch.builtin(Builtin.LOCAL_INVOCATION_ID)


def _lane(batch: Batch) -> Array:
    return batch.position % batch.program.subgroup_size


def _make_mask_rule(rule: Callable[[Array, Array], Array]) -> Callable[[Batch], Array]:
    return lambda batch: make_lane_mask(_lane(batch), batch.program.subgroup_size, rule)


# By the names of `Builtin`.
_BUILTINS: dict[str, Callable[[Batch], Array]] = {
    "LOCAL_INVOCATION_INDEX": lambda batch: batch.position.astype(np.uint32),
    "LOCAL_INVOCATION_ID": lambda batch: _unflatten(batch.position, batch.program.local_size),
    "WORKGROUP_ID": lambda batch: _unflatten(batch.first_group + batch.group, batch.program.groups),
    "GLOBAL_INVOCATION_ID": _global_id,
    "WORKGROUP_SIZE": lambda batch: np.array([batch.program.local_size], np.uint32),
    "NUM_WORKGROUPS": lambda batch: np.array([batch.program.groups], np.uint32),
    "NUM_SUBGROUPS": lambda batch: np.array([batch.subgroups_per_group], np.uint32),
    "SUBGROUP_ID": lambda batch: (batch.position // batch.program.subgroup_size).astype(np.uint32),
    "SUBGROUP_SIZE": lambda batch: np.array([batch.program.subgroup_size], np.uint32),
    "SUBGROUP_INVOCATION_ID": lambda batch: _lane(batch).astype(np.uint32),
    "SUBGROUP_EQ_MASK": _make_mask_rule(np.equal),
    "SUBGROUP_GE_MASK": _make_mask_rule(np.greater_equal),
    "SUBGROUP_GT_MASK": _make_mask_rule(np.greater),
    "SUBGROUP_LE_MASK": _make_mask_rule(np.less_equal),
    "SUBGROUP_LT_MASK": _make_mask_rule(np.less),
}


def _refuse_raw(expr: Expr) -> UnsupportedError:
    return located(UnsupportedError, "interpret: GLSL given as text runs on a device only", expr.loc)


# ---- rules of the kinds of expressions --------------------------------------------------------


def _list_operands(expr: Expr, lanes: Lanes) -> list[Array]:
    return [lanes.known[id(arg)] for arg in expr.args]


def _literal(batch: Batch, expr: Expr, lanes: Lanes) -> Array:
    return make_uniform(expr.value, expr.dtype)


def _argument(batch: Batch, expr: Expr, lanes: Lanes) -> Array:
    assert isinstance(expr.value, Argument)
    return batch.program.arguments[expr.value.name]


def _builtin(batch: Batch, expr: Expr, lanes: Lanes) -> Array:
    assert isinstance(expr.value, Builtin)
    return batch.select_rows(batch.builtin(expr.value), lanes)


def _register(batch: Batch, expr: Expr, lanes: Lanes) -> Array:
    return batch.select_rows(batch.registers[id(expr.value)].data, lanes)


def _element(batch: Batch, expr: Expr, lanes: Lanes) -> Array:
    cells, index, rows = batch.find_element(expr, lanes, None)
    if batch.program.races is not None:
        batch.program.races.read(batch.describe_access(cells, (index,), lanes, rows, expr.loc))
    found = cells.load((index,))
    return _fill_rows(found, rows, len(lanes))


def _index(batch: Batch, expr: Expr, lanes: Lanes) -> Array:
    base = lanes.known[id(expr.args[0])]
    index = batch._component_index(expr, lanes, None)
    if len(index) == 1:
        return base[:, int(index[0])]
    rows = np.arange(len(index)) if len(base) > 1 else np.zeros(len(index), np.int64)
    return base[rows, index]


def _component(batch: Batch, expr: Expr, lanes: Lanes) -> Array:
    return lanes.known[id(expr.args[0])][:, "xyzw".index(str(expr.value))]


def _swizzle(batch: Batch, expr: Expr, lanes: Lanes) -> Array:
    return lanes.known[id(expr.args[0])][:, ["xyzw".index(letter) for letter in str(expr.value)]]


def _unary(batch: Batch, expr: Expr, lanes: Lanes) -> Array:
    return arithmetic.apply_unary(str(expr.value), *_list_operands(expr, lanes))


def _binary(batch: Batch, expr: Expr, lanes: Lanes) -> Array:
    left, right = expr.args
    return arithmetic.apply_binary(str(expr.value), (left.dtype, right.dtype), *_list_operands(expr, lanes))


def _compare(batch: Batch, expr: Expr, lanes: Lanes) -> Array:
    return arithmetic.apply_comparison(str(expr.value), *_list_operands(expr, lanes))


def _logical(batch: Batch, expr: Expr, lanes: Lanes) -> Array:
    both = expr.value == "&&"
    if id(expr) not in batch.program.lazy:
        rule = np.logical_and if both else np.logical_or
        result, *rest = _list_operands(expr, lanes)
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


def _select(batch: Batch, expr: Expr, lanes: Lanes) -> Array:
    truth = lanes.known[id(expr.args[0])]
    if id(expr) not in batch.program.lazy:
        _, chosen, other = _list_operands(expr, lanes)
        return np.where(truth.reshape(len(truth), *(1,) * len(value_shape(expr.dtype))), chosen, other)
    result = np.empty((len(lanes), *value_shape(expr.dtype)), host_dtype(expr.dtype))
    for wanted, arg in ((True, expr.args[1]), (False, expr.args[2])):
        rows = np.flatnonzero(broadcast_rows(truth, len(lanes)) == wanted)
        if len(rows):
            some = lanes if len(rows) == len(lanes) else Lanes(lanes.index[rows], False)
            result[rows] = batch.evaluate(arg, some)
    return result


def _length(batch: Batch, expr: Expr, lanes: Lanes) -> Array:
    if isinstance(expr.value, SharedArray):
        return make_uniform(expr.value.size, expr.dtype)
    assert isinstance(expr.value, Storage)
    return make_uniform(batch.program.buffers[expr.value.index].size, expr.dtype)


def _call(batch: Batch, expr: Expr, lanes: Lanes) -> Array:
    return call_function(str(expr.value), expr.dtype, _list_operands(expr, lanes), expr.loc)


def _subgroup(batch: Batch, expr: Expr, lanes: Lanes) -> Array:
    size = batch.program.subgroup_size
    count = batch.group_count * batch.subgroups_per_group
    groups = Subgroups(size, batch._slot[lanes.index], count)
    return run_subgroup_function(str(expr.value), groups, _list_operands(expr, lanes), expr.loc)


def _construct(batch: Batch, expr: Expr, lanes: Lanes) -> Array:
    return construct(expr.dtype, [arg.dtype for arg in expr.args], _list_operands(expr, lanes))


def _fill_rows(found: Array, rows: Array | None, count: int) -> Array:
    """Return what some invocations found, with 0 for the others; `rows` is None if all found something."""
    if rows is None:
        return found
    value = np.zeros((count, *found.shape[1:]), found.dtype)
    value[rows] = found
    return value


def _find_texels(batch: Batch, expr: Expr) -> Texels:
    assert isinstance(expr.value, ImageBinding)
    return batch.program.images[expr.value.index]


def add_axis(value: Array) -> Array:
    """Return coordinates with an axis for their components, which one-dimensional images lack."""
    return value[:, None] if value.ndim == 1 else value


def _sample(batch: Batch, expr: Expr, lanes: Lanes) -> Array:
    coordinate, lod = _list_operands(expr, lanes)
    rows = max(len(coordinate), len(lod))
    coordinate = add_axis(broadcast_rows(coordinate, rows))
    return _find_texels(batch, expr).sample(coordinate, broadcast_rows(lod, rows))


def _image_load(batch: Batch, expr: Expr, lanes: Lanes) -> Array:
    texels = _find_texels(batch, expr)
    coordinate, *levels = (broadcast_rows(arg, len(lanes)) for arg in _list_operands(expr, lanes))
    coordinate = add_axis(coordinate)
    level = levels[0] if levels else None
    rows = batch.check_texels(texels, coordinate, level, lanes, expr.loc)
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
    return _fill_rows(found, rows, len(lanes))


def _image_size(batch: Batch, expr: Expr, lanes: Lanes) -> Array:
    texels = _find_texels(batch, expr)
    sizes = texels.sizes()
    if expr.args:
        (level,) = _list_operands(expr, lanes)
        good = batch.check_levels(texels, broadcast_rows(level, len(lanes)), lanes, expr.loc)[: len(level)]
        sizes = np.where(good[:, None], sizes[np.where(good, level, 0)], 0)
    else:
        sizes = sizes[:1]
    return sizes if value_shape(expr.dtype) else sizes[:, 0]


def _raw_value(batch: Batch, expr: Expr, lanes: Lanes) -> Array:
    raise _refuse_raw(expr)


def _refuse_unknown(batch: Batch, expr: Expr, lanes: Lanes) -> Array:
    raise located(UnsupportedError, f"interpret: {expr.op.name} is not known here", expr.loc)


_RULES: dict[Op, Callable[[Batch, Expr, Lanes], Array]] = {
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
    Op.SAMPLE: _sample,
    Op.IMAGE_LOAD: _image_load,
    Op.IMAGE_SIZE: _image_size,
    Op.RAW: _raw_value,
}
