"""Kernels of expressions: one for each structure, dtypes and layouts, never for sizes."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

import vkdispatch.codegen as vc
from vkdispatch.arrays.kernels import trace_kernel
from vkdispatch.arrays.values.annotations import buffer, constant
from vkdispatch.arrays.values.elements import wrap_integer
from vkdispatch.base import dtype as dt
from vkdispatch.base.buffer import Buffer, function_buffer
from vkdispatch.base.context import Context, get_context
from vkdispatch.base.dtype import compute_type
from vkdispatch.codegen.trace.recording import precise_math
from vkdispatch.numpy.core.dtypes import Kind, kernel_type
from vkdispatch.numpy.core.expressions import NUMBER, PLACE, READ, Program, compute_with, evaluate
from vkdispatch.numpy.core.memory import (
    Shape,
    Storage,
    View,
    broadcast_strides,
    c_strides,
    overlaps,
)
from vkdispatch.shader.map import MappedArray, MappingFunction, mapped_index
from vkdispatch.shader.shader_function import ShaderFunction

_GROUP = 256
_OF_NUM: dict[int, Kind] = {np.dtype(code).num: np.dtype(code) for code in "?bhilqBHILQefdFD"}

# How kernels find the elements of a view:
# "whole"      at the index of the result's element; the view begins where the memory does
# "run"        there, beyond an offset
# "single"     at an offset
# other texts  by coordinates; for each axis of the result "0" (repeated), "1" (neighbours) or "s" (a stride)
Layout = str


class _Plan:
    """A program with layouts for its views: `key` is what a kernel depends on, `values` are its constants."""

    __slots__ = ("buffers", "key", "values")

    def __init__(self, program: Program, target: View | None) -> None:
        shape = program.shape
        self.buffers = [view.storage.buffer for view in program.views]
        if target is None and all(
            view.is_contiguous and view.offset == 0 and view.shape == shape for view in program.views
        ):
            self.values: list[int] = []
            kinds = tuple([view.dtype.num for view in program.views])
            self.key: tuple[Any, ...] = (tuple(program.steps), kinds, ("whole",) * len(kinds), 0)
            return
        views = program.views if target is None else [*program.views, target]
        axes, strides = _join_axes(program.shape, views)
        values: list[int] = []
        layouts: list[Layout] = []
        uses_axes = False
        for view, steps in zip(views, strides, strict=True):
            if view.is_contiguous and view.shape == program.shape:
                layout = "run" if view.offset else "whole"
            elif view.size == 1 and view is not target:
                layout = "single"
            else:
                layout = "".join("0" if s == 0 else "1" if s == 1 else "s" for s in steps)
                uses_axes = True
            layouts.append(layout)
            if layout != "whole":
                values.append(view.offset)
            if layout not in ("whole", "run", "single"):
                values += [step for step in steps if step not in (0, 1)]
        if uses_axes or target is not None:
            values += axes
        count = len(axes) if uses_axes or target is not None else 0
        self.values = values
        kinds = tuple([view.dtype.num for view in program.views])
        self.key = (tuple(program.steps), kinds, tuple(layouts), count)


def _join_axes(shape: Shape, views: Sequence[View]) -> tuple[list[int], list[list[int]]]:
    """Join neighbouring axes along which all views go on evenly; return lengths and each view's strides."""
    if 0 in shape:
        return [0], [[1] for _ in views]
    if all(view.is_contiguous and view.shape == shape for view in views):
        return [_product(shape)], [[1] for _ in views]
    all_strides = [broadcast_strides(shape, view) for view in views]
    axes: list[int] = []
    joined: list[list[int]] = [[] for _ in views]
    for axis, length in enumerate(shape):
        if length == 1:
            continue
        if axes and all(
            own[-1] == strides[axis] * length for own, strides in zip(joined, all_strides, strict=True)
        ):
            axes[-1] *= length
            for own, strides in zip(joined, all_strides, strict=True):
                own[-1] = strides[axis]
        else:
            axes.append(length)
            for own, strides in zip(joined, all_strides, strict=True):
                own.append(strides[axis])
    if not axes:
        return [1], [[1] for _ in views]
    return axes, joined


def _product(shape: Sequence[int]) -> int:
    size = 1
    for length in shape:
        size *= length
    return size


def convert(value: Any, source: Kind, target: Kind, index: Any = None) -> Any:
    """Convert a value in a kernel from one dtype of arrays to another, as NumPy's `astype` does.

    `index` is that of the element, if there is one.
    """
    if source == target:
        return value
    kind = kernel_type(target)
    computed = compute_type(kind)
    if target.kind == "c" and source.kind != "c":
        part = np.dtype(f"f{target.itemsize // 2}")
        # a zero that no compiler knows: drivers take 0 + x for x and 0 * x for 0, also of -0.0 and NaN
        zero = vc.to_dtype(kernel_type(part), 0 if index is None else index >> 31)
        return vc.to_complex(convert(value, source, part, index), zero)
    if source.kind == "c":
        if target.kind == "c":
            return value.to_dtype(computed)
        if target.kind == "b":
            return vc.logical_or(value.real != 0, value.imag != 0)
        return convert(value.real, np.dtype(f"f{source.itemsize // 2}"), target, index)
    if target.kind == "b":
        return value != 0
    if source.kind == "f" and target.kind in "iu" and target.itemsize < 8:
        # as C compilers for the host do: by way of a wider integer, of which the low bits stay
        wide = vc.to_dtype(dt.int32, value) if target.itemsize < 4 or target.kind == "i" else None
        if wide is None:
            negative = vc.to_dtype(dt.uint32, vc.to_dtype(dt.int32, value))
            wide = vc.select(value < 0, negative, vc.to_dtype(dt.uint32, value))
        return wrap_integer(vc.to_dtype(computed, wide), kind)
    return wrap_integer(vc.to_dtype(computed, value), kind)


def _compute(
    steps: Sequence[tuple[Any, ...]], reads: list[Any], numbers: list[Any], kinds: Any, index: Any
) -> Any:
    """Record the steps of a program, and return the value of the last one."""
    values: list[tuple[Any, Kind]] = []
    remaining = iter(numbers)
    for step in steps:
        what = step[0]
        if what is READ:
            values.append((reads[step[1]], _OF_NUM[kinds[step[1]]]))
        elif what is NUMBER:
            values.append((next(remaining), _OF_NUM[step[1]]))
        elif what is PLACE:
            kind = _OF_NUM[step[1]]
            values.append((vc.to_dtype(compute_type(kernel_type(kind)), index), kind))
        else:
            kind = what.dtype
            pairs = [(*values[at], to) for at, to in zip(step[1:], what.kinds, strict=True)]
            operands = [convert(value, own, to, index) for value, own, to in pairs]
            result = what.operation.compute(*operands, kind)
            if kind.kind in "fc" and result.var_type is not dt.bool_:
                result = vc.precise(result)
            values.append((result, kind))
    return values[-1][0]


class _Reader:
    """The constants of a kernel, taken one after the other; finds the places of a view's elements."""

    def __init__(self, constants: Sequence[Any], count: int) -> None:
        self.constants = iter(constants)
        self.count = count

    def places(self, layouts: Sequence[Layout], sizes: Sequence[Any], index: Any) -> list[Any]:
        coordinates = _coordinates(index, sizes) if self.count else []
        return [self._place(layout, coordinates, index) for layout in layouts]

    def _place(self, layout: Layout, coordinates: Sequence[Any], index: Any) -> Any:
        if layout == "whole":
            return index
        place = next(self.constants)
        if layout == "run":
            return index + place
        if layout != "single":
            for letter, coordinate in zip(layout, coordinates, strict=True):
                if letter != "0":
                    place = place + (coordinate if letter == "1" else coordinate * next(self.constants))
        return place


def _coordinates(index: Any, sizes: Sequence[Any]) -> list[Any]:
    """Return the coordinates of a flat index in C order."""
    rest, result = index, []
    for size in reversed(sizes[1:]):
        quotient = (rest // size).to_register()
        result.append((rest - quotient * size).to_dtype(dt.int32))
        rest = quotient
    result.append(rest.to_dtype(dt.int32))
    return result[::-1]


def _constant_types(layouts: Sequence[Layout], count: int) -> list[Any]:
    types: list[Any] = []
    for layout in layouts:
        if layout != "whole":
            types.append(dt.int32)
        if layout not in ("whole", "run", "single"):
            types += [dt.int32] * layout.count("s")
    return types + [dt.uint32] * count


def _number_types(steps: Sequence[tuple[Any, ...]]) -> list[Any]:
    return [compute_type(kernel_type(_OF_NUM[step[1]])) for step in steps if step[0] is NUMBER]


def _body(key: Any) -> tuple[list[Any], Callable[[Any, Sequence[Any]], tuple[Any, Any]]]:
    """Return the annotations of a program's arguments, and what records the value and the target's place."""
    steps, kinds, layouts, count = key
    constants = _constant_types(layouts, count)
    numbers = _number_types(steps)
    annotations = [buffer[kernel_type(_OF_NUM[kind])] for kind in kinds]
    annotations += [constant[each] for each in (*constants, *numbers)]

    def record(index: Any, variables: Sequence[Any]) -> tuple[Any, Any]:
        arrays = variables[: len(kinds)]
        own = variables[len(kinds) : len(kinds) + len(constants)]
        reader = _Reader(own, count)
        places = reader.places(layouts, own[len(own) - count :], index)
        reads = [array[place] for array, place in zip(arrays, places, strict=False)]
        value = _compute(steps, reads, list(variables[len(kinds) + len(constants) :]), kinds, index)
        return value, places[-1] if places else index

    return annotations, record


@lru_cache(2048)
def _store_kernel(key: Any, num: int, has_target: bool) -> ShaderFunction:
    """Return the kernel that computes a program into new memory, or into a view."""
    dtype = _OF_NUM[num]
    annotations, record = _body(key)
    count = key[3]

    def body(result: Any, *variables: Any) -> None:
        index = vc.global_invocation_id().x
        with precise_math():
            value, place = record(index, variables)
        result[place if has_target else index] = value

    names = [f"x{i}" for i in range(len(annotations))]
    sizes = names[len(names) - count - len(_number_types(key[0])) :][:count]
    arguments = [("result", buffer[kernel_type(dtype)]), *zip(names, annotations, strict=True)]
    extent = " * ".join(sizes) if has_target else "result.size"
    return trace_kernel(_name(key[0]), body, arguments, _GROUP, exec_size=extent)


@lru_cache(2048)
def _mapping(key: Any, num: int) -> MappingFunction:
    """Return the map that gives the elements of a program."""
    dtype = _OF_NUM[num]
    annotations, record = _body(key)

    def element(*variables: Any) -> Any:
        return record(mapped_index(), variables)[0]

    element.__name__ = _name(key[0])
    return MappingFunction(annotations, compute_type(kernel_type(dtype)), element, precise_math=True)


def _name(steps: Sequence[tuple[Any, ...]]) -> str:
    names = [step[0].operation.name for step in steps if not isinstance(step[0], str)]
    return "_".join(names[-4:]) if names else "copy"


def new_view(shape: Shape, dtype: Kind, context: Context | None = None) -> View:
    """Return a view of new memory, which is undefined until it is written."""
    made = function_buffer((_product(shape),), kernel_type(dtype), context)
    return View(Storage(made), shape, dtype)


def _compute_program(program: Program, dtype: Kind, target: View | None, line: tuple[str, int]) -> View:
    if target is None:
        context = program.views[0].storage.buffer.context if program.views else get_context()
        size = program.size
        memory = function_buffer((size,), kernel_type(dtype), context)
        if size:
            plan = _Plan(program, None)
            kernel = _store_kernel(plan.key, dtype.num, False)
            kernel(memory, *plan.buffers, *plan.values, *program.numbers)
        return View(Storage(memory), program.shape, dtype)
    if target.size == 0:
        return target
    if any(overlaps(view, target) and not _is_aligned(view, target) for view in program.views):
        program = Program(_compute_program(program, dtype, None, line))
    plan = _Plan(program, target)
    kernel = _store_kernel(plan.key, dtype.num, True)
    kernel(target.storage.buffer, *plan.buffers, *plan.values, *program.numbers)
    return target


def _is_aligned(view: View, target: View) -> bool:
    """Whether each element is read where it is written."""
    return view.shape == target.shape and view.offset == target.offset and view.strides == target.strides


compute_with(_compute_program)


def as_operand(value: Any, shape: Shape) -> Buffer[Any] | MappedArray:
    """Return an expression or view as functions on buffers take it, with another shape of its size.

    Memory that lies as it should is passed as it is; all else is computed where it is read.
    """
    view = value if type(value) is View else value.result
    if view is not None and view.is_whole:
        return as_buffer(view, shape)
    program = Program(value)
    if not program.views:
        return as_buffer(evaluate(value), shape)
    plan = _Plan(program, None)
    mapped = MappedArray.__new__(MappedArray)
    mapped.mapping = _mapping(plan.key, value.dtype.num)
    mapped.arguments = (*plan.buffers, *plan.values, *program.numbers)
    mapped.var_type = kernel_type(value.dtype)
    mapped.shape, mapped.size = shape, value.size
    mapped.context = plan.buffers[0].context
    return mapped


def as_buffer(view: View, shape: Shape) -> Buffer[Any]:
    """Return the memory of a whole view as a buffer of a shape of at most three axes."""
    own = view.storage.buffer
    if own.shape == shape:
        return own
    return Buffer.of_memory(own.context, own._native, shape, own.var_type)


def strides_in_bytes(view: View) -> Shape:
    """Return the strides of a view in bytes, as NumPy counts them."""
    return tuple(stride * view.dtype.itemsize for stride in (view.strides or c_strides(view.shape)))


def gather(view: View) -> View:
    """Return a copy of the elements of a view, one behind the other."""
    return _compute_program(Program(view), view.dtype, None, ("", 0))
