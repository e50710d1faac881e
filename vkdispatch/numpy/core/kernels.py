"""Kernels of expressions: one for each structure, dtypes and layouts, never for sizes."""

import math
import sys
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

import vkdispatch.codegen as vc
from vkdispatch.base import dtype as dt
from vkdispatch.base.buffer import Buffer
from vkdispatch.base.command_list import ALL_QUEUES
from vkdispatch.base.context import Context, get_context
from vkdispatch.base.dtype import DType, compute_type
from vkdispatch.base.errors import OutOfDeviceMemoryError, UsageError, VulkanError, describe_place
from vkdispatch.base.native_module import native
from vkdispatch.codegen.annotations import buffer, constant
from vkdispatch.codegen.trace.current import precise_math
from vkdispatch.execution_pipeline.timings import is_held, note_source
from vkdispatch.families.kernels import trace_kernel
from vkdispatch.families.stored import store_results
from vkdispatch.families.values import divide, find_multiplier, wrap_integer
from vkdispatch.numpy.core import expressions, memory
from vkdispatch.shader.map import DeferredMap, MappedArray, MappingFunction, mapped_index
from vkdispatch.shader.shader_function import ShaderFunction

compute_plain = native.compute_plain
_GROUP = 256
_MAX_KERNELS = 2048
_MAX_FAST = 1 << 31  # indices below it are divided by multiplication
_OF_NUM: dict[int, memory.Kind] = {np.dtype(code).num: np.dtype(code) for code in "?bhilqBHILQefdFD"}

# How kernels find the elements of a view:
# "whole"      at the index of the result's element; the view begins where the memory does
# "run"        there, beyond an offset
# "single"     at an offset
# other texts  by coordinates; for each axis of the result "0" (repeated), "1" (neighbours) or "s" (a stride)
Layout = str
_WHOLE = [("whole",) * count for count in range(100)]


class _Plan:
    """A program with layouts for its views: `key` is what a kernel depends on, `values` are its constants."""

    __slots__ = ("key", "values")

    def __init__(self, program: expressions.Program, target: memory.View | None) -> None:
        shape = program.shape
        views = program.views
        steps, kinds = tuple(program.steps), tuple(program.kinds)
        is_narrow = program.size < _MAX_FAST
        if target is None and program.is_plain:
            self.values: list[int] = []
            self.key: tuple[Any, ...] = steps, kinds, _WHOLE[len(kinds)], 0, is_narrow
            return
        if target is not None:
            views = [*views, target]
        traits = [(view.shape, view.strides, view.offset != 0, view.is_contiguous) for view in views]
        layouts, constants, axes = _lay_out(shape, tuple(traits), target is not None)
        values: list[int] = []
        for view, layout, own in zip(views, layouts, constants, strict=True):
            if layout != "whole":
                values.append(view.offset)
                values += own
        values += axes
        if is_narrow:
            for length in axes[1:]:
                values += find_multiplier(length)
        self.values = values
        self.key = (steps, kinds, layouts, len(axes), is_narrow)


# Of a view: its shape, its strides, whether it has an offset, and whether it is contiguous.
_Traits = tuple[memory.Shape, memory.Shape, bool, bool]


@lru_cache(4096)
def _lay_out(
    shape: memory.Shape, views: tuple[_Traits, ...], has_target: bool
) -> tuple[tuple[Layout, ...], list[list[int]], list[int]]:
    """Return the layout of each view for a result of a shape, its strides that are constants, and the axes.

    The last view is the target if there is one. Axes that no layout needs are left out.
    """
    axes, strides = _join_axes(shape, views)
    layouts: list[Layout] = []
    constants: list[list[int]] = []
    uses_axes = has_target
    for number, ((own, _, has_offset, is_contiguous), steps) in enumerate(zip(views, strides, strict=True)):
        is_target = has_target and number == len(views) - 1
        kept: list[int] = []
        if is_contiguous and own == shape:
            layout = "run" if has_offset else "whole"
        elif math.prod(own) == 1 and not is_target:
            layout = "single"
        else:
            layout = "".join("0" if s == 0 else "1" if s == 1 else "s" for s in steps)
            kept = [step for step in steps if step not in (0, 1)]
            uses_axes = True
        layouts.append(layout)
        constants.append(kept)
    return tuple(layouts), constants, axes if uses_axes else []


def _join_axes(shape: memory.Shape, views: Sequence[_Traits]) -> tuple[list[int], list[list[int]]]:
    """Join neighbouring axes along which all views go on evenly; return lengths and each view's strides."""
    if 0 in shape:
        return [0], [[1] for _ in views]
    if all(is_contiguous and own == shape for own, _, _, is_contiguous in views):
        return [math.prod(shape)], [[1] for _ in views]
    all_strides = [memory.stretch(shape, own, strides) for own, strides, _, _ in views]
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


def convert(value: Any, source: memory.Kind, target: memory.Kind, index: Any = None) -> Any:
    """Convert a value in a kernel from one dtype of arrays to another, as NumPy's `astype` does.

    `index` is that of the element if it is below 2**31, or None.
    """
    if source == target:
        return value
    kind = memory.kernel_type(target)
    computed = compute_type(kind)
    if target.kind == "c" and source.kind != "c":
        part = memory.part_kind(target)
        # a zero that no compiler knows: drivers take 0 + x for x and 0 * x for 0, also of -0.0 and NaN
        zero = vc.to_dtype(memory.kernel_type(part), 0 if index is None else index >> 31)
        return vc.to_complex(convert(value, source, part, index), zero)
    if source.kind == "c":
        if target.kind == "c":
            return value.to_dtype(computed)
        if target.kind == "b":
            return vc.logical_or(value.real != 0, value.imag != 0)
        return convert(value.real, memory.part_kind(source), target, index)
    if target.kind == "b":
        return value != 0
    if source.kind == "f" and target.kind in "iu" and target.itemsize < 8:
        # as C compilers for the host do: by way of a wider integer, of which the low bits stay
        if target.itemsize < 4 or target.kind == "i":
            wide = vc.to_dtype(dt.int32, value)
        else:
            negative = vc.to_dtype(dt.uint32, vc.to_dtype(dt.int32, value))
            wide = vc.select(value < 0, negative, vc.to_dtype(dt.uint32, value))
        return wrap_integer(vc.to_dtype(computed, wide), kind)
    return wrap_integer(vc.to_dtype(computed, value), kind)


def _hide(value: Any, index: Any) -> Any:
    """Return an integer or boolean that a kernel computed, as an integer that no compiler knows.

    Drivers see that i - i and x > x are 0. llvmpipe then takes 0 * NaN for 0, and x / 0 for undefined.
    """
    number = vc.to_dtype(dt.int32, value) if value.var_type is dt.bool_ else value
    return number + vc.to_dtype(number.var_type, index >> 31)


def _compute(key: Any, reads: list[Any], numbers: list[Any], index: Any) -> Any:
    """Record the steps of a program, and return the value of the last one."""
    steps, kinds, _, _, is_narrow = key
    narrow_index = index if is_narrow else None
    values: list[tuple[Any, memory.Kind]] = []
    remaining = iter(numbers)
    for number, step in enumerate(steps):
        what = step[0]
        if what is expressions.READ:
            values.append((reads[step[1]], _OF_NUM[kinds[step[1]]]))
        elif what is expressions.NUMBER:
            values.append((next(remaining), _OF_NUM[step[1]]))
        elif what is expressions.PLACE:
            kind = _OF_NUM[step[1]]
            values.append((vc.to_dtype(compute_type(memory.kernel_type(kind)), index), kind))
        else:
            kind = what.dtype
            operands = []
            for at, to in zip(step[1:], what.kinds, strict=True):
                value, own = values[at]
                if is_narrow and own.kind in "biu" and to.kind in "fc" and not isinstance(steps[at][0], str):
                    value = _hide(value, index)
                operands.append(convert(value, own, to, narrow_index))
            try:
                result = what.operation.compute(*operands, kind)
            except Exception as error:
                error._step = number  # type: ignore[attr-defined]  # messages name its line
                raise
            if kind.kind in "fc" and result.var_type is not dt.bool_:
                result = vc.precise(result)
            values.append((result, kind))
    return values[-1][0]


def _find_places(
    layouts: Sequence[Layout], constants: Sequence[Any], coordinates: Sequence[Any], index: Any
) -> list[Any]:
    """Return the places of views' elements; the constants of a kernel are taken one after the other."""
    remaining = iter(constants)
    places = []
    for layout in layouts:
        place = index if layout == "whole" else next(remaining)
        if layout == "run":
            place = index + place
        elif layout not in ("whole", "single"):
            for letter, coordinate in zip(layout, coordinates, strict=True):
                if letter != "0":
                    place = place + (coordinate if letter == "1" else coordinate * next(remaining))
        places.append(place)
    return places


def _coordinates(index: Any, sizes: Sequence[Any], multipliers: Sequence[Any]) -> list[Any]:
    """Return the coordinates of a flat index in C order.

    `multipliers` are those of `find_multiplier` for all sizes but the first, or none.
    """
    rest, result = index, []
    if multipliers:
        rest = vc.to_dtype(dt.uint32, rest)
    for axis in reversed(range(1, len(sizes))):
        if multipliers:
            quotient = divide(rest, *multipliers[2 * axis - 2 : 2 * axis]).to_register()
        else:
            quotient = (rest // sizes[axis]).to_register()
        result.append((rest - quotient * sizes[axis]).to_dtype(dt.int32))
        rest = quotient
    result.append(rest.to_dtype(dt.int32))
    return result[::-1]


def _constant_types(layouts: Sequence[Layout], count: int, is_narrow: bool) -> list[Any]:
    types: list[Any] = []
    for layout in layouts:
        if layout != "whole":
            types.append(dt.int32)
        if layout not in ("whole", "run", "single"):
            types += [dt.int32] * layout.count("s")
    return types + [dt.uint32] * (count + _count_multipliers(count, is_narrow))


def _count_multipliers(count: int, is_narrow: bool) -> int:
    return 2 * (count - 1) if is_narrow and count else 0


def _number_types(steps: Sequence[tuple[Any, ...]]) -> list[Any]:
    kinds = [_OF_NUM[step[1]] for step in steps if step[0] is expressions.NUMBER]
    return [compute_type(memory.kernel_type(kind)) for kind in kinds]


_Types = tuple[DType, ...]


def _body(key: Any) -> tuple[_Types, _Types, Callable[[Any, Sequence[Any]], tuple[Any, Any]]]:
    """Return types of a program's buffers and numbers, and what records its value and the target's place."""
    steps, kinds, layouts, count, is_narrow = key
    constants = _constant_types(layouts, count, is_narrow)
    first_size = len(constants) - count - _count_multipliers(count, is_narrow)
    numbers = _number_types(steps)
    stored = tuple(memory.kernel_type(_OF_NUM[kind]) for kind in kinds)

    def record(index: Any, variables: Sequence[Any]) -> tuple[Any, Any]:
        arrays = variables[: len(kinds)]
        own = variables[len(kinds) : len(kinds) + len(constants)]
        sizes, multipliers = own[first_size : first_size + count], own[first_size + count :]
        coordinates = _coordinates(index, sizes, multipliers) if count else []
        places = _find_places(layouts, own, coordinates, index)
        reads = [array[place] for array, place in zip(arrays, places, strict=False)]
        value = _compute(key, reads, list(variables[len(kinds) + len(constants) :]), index)
        return value, places[-1] if places else index

    return stored, (*constants, *numbers), record


@store_results
def _store_kernel(key: Any, num: int, has_target: bool) -> ShaderFunction:
    """Return the kernel that computes a program into new memory, or into a view."""
    dtype = _OF_NUM[num]
    steps, _, _, count, is_narrow = key
    stored, numbers, record = _body(key)
    annotations = [*(buffer[kind] for kind in stored), *(constant[kind] for kind in numbers)]

    def body(result: Any, *variables: Any) -> None:
        index = vc.global_invocation_id().x
        with precise_math():
            value, place = record(index, variables)
        result[place if has_target else index] = value

    names = [f"x{i}" for i in range(len(annotations))]
    behind = len(_number_types(steps)) + _count_multipliers(count, is_narrow)
    sizes = names[len(names) - count - behind :][:count]
    arguments = [("result", buffer[memory.kernel_type(dtype)]), *zip(names, annotations, strict=True)]
    extent = " * ".join(sizes) if has_target else "result.size"
    return trace_kernel(_name(steps), body, arguments, _GROUP, exec_size=extent)


@lru_cache(_MAX_KERNELS)
def _mapping(key: Any, num: int) -> MappingFunction:
    dtype = _OF_NUM[num]
    stored, numbers, record = _body(key)

    def element(*variables: Any) -> Any:
        return record(mapped_index(), variables)[0]

    element.__name__ = _name(key[0])
    element.stands_for = None  # type: ignore[attr-defined]  # it is defined nowhere in the program
    kind = compute_type(memory.kernel_type(dtype))
    return DeferredMap(element, stored, numbers, kind, (key, num), precise_math=True)


def _name(steps: Sequence[tuple[Any, ...]]) -> str:
    names = [step[0].operation.name for step in steps if not isinstance(step[0], str)]
    return "_".join(names[-4:]) if names else "copy"


def new_view(shape: memory.Shape, dtype: memory.Kind, context: Context | None = None) -> memory.View:
    """Return a view of new memory, which is undefined until it is written."""
    storage = memory.Storage.allocate(math.prod(shape), memory.kernel_type(dtype), context or get_context())
    return memory.View(storage, shape, dtype)


def _compute_program(
    program: expressions.Program, kind: memory.Kind, target: memory.View | None, node: expressions.Node | None
) -> memory.View:
    """Compute a program into a view or into new memory; `node` is its expression."""
    memory.refuse_recording()
    if target is None:
        known = None if is_held() else compute_plain(program, kind)
        if known is not None:
            return known
        context = program.views[0].storage.context if program.views else get_context()
        storage = memory.Storage.allocate(program.size, memory.kernel_type(kind), context)
        target = memory.View(storage, program.shape, kind)
        if program.size:
            plan = _Plan(program, None)
            kernel = _store_kernel(plan.key, kind.num, False)
            _launch(kernel, target.storage, program, plan, node)
            if program.is_plain and program.size < _MAX_FAST:
                if len(expressions.plain_kernels) >= _MAX_KERNELS:
                    expressions.plain_kernels.clear()
                expressions.plain_kernels[plan.key[:2]] = kernel, target.storage.var_type
        return target
    if target.size == 0:
        return target
    for view in program.views:
        if view is not target and memory.overlaps(view, target) and not _is_aligned(view, target):
            program = expressions.Program(_compute_program(program, kind, None, node))
            break
    plan = _Plan(program, None if target.is_whole else target)
    kernel = _store_kernel(plan.key, kind.num, not target.is_whole)
    _launch(kernel, target.storage, program, plan, node)
    return target


def _launch(
    kernel: ShaderFunction,
    result: memory.Storage,
    program: expressions.Program,
    plan: _Plan,
    node: expressions.Node | None,
) -> None:
    is_noted = is_held()
    launch = kernel.find_launch()
    storages = [result, *(view.storage for view in program.views)]
    numbers = (*plan.values, *program.numbers)
    if launch is not None and not is_noted:
        try:
            if launch((*(storage.memory for storage in storages), *numbers), program.size, False, ALL_QUEUES):
                return
        except (VulkanError, UsageError, OutOfDeviceMemoryError):
            if result.context.usable:
                raise  # the work may be queued: once more would add to a sum twice
    kernel(*(storage.buffer for storage in storages), *numbers)
    if is_noted and node is not None:
        # let the profile that is running name the kernel by the line of its expression
        for built in kernel._built.values():
            note_source(built.plan, describe_place(*node.line))


def _is_aligned(view: memory.View, target: memory.View) -> bool:
    """Whether each element is read where it is written."""
    first, second = ((v.shape, v.offset, v.strides, v.dtype.itemsize) for v in (view, target))
    return first == second


expressions.compute_with(_compute_program)


def as_operand(value: Any, shape: memory.Shape) -> Buffer[Any] | MappedArray:
    """Return an expression or view as functions on buffers take it, with another shape of its size.

    Memory that lies as it should is passed as it is; all else is computed where it is read.

    Raises
    ------
    UsageError
        A graph records the calls of this thread.
    """
    memory.refuse_recording()
    with expressions.lock:  # another thread may compute it, or write what it reads
        if type(value) is expressions.Node and (value.result is not None or value.is_dear):
            value = expressions.shown_view(value) or expressions.evaluate(value)
        if type(value) is memory.View and value.is_whole:
            return as_buffer(value, shape)
        program = expressions.Program(value, True)
        if not program.views or (type(value) is expressions.Node and _is_exposed(program)):
            return as_buffer(expressions.evaluate(value), shape)
        plan = _Plan(program, None)
        mapped = MappedArray.__new__(MappedArray)
        mapped.mapping = _mapping(plan.key, value.dtype.num)
        buffers = [view.storage.buffer for view in program.views]
        mapped.arguments = (*buffers, *plan.values, *program.numbers)
        mapped.var_type = memory.kernel_type(value.dtype)
        mapped.shape, mapped.size = shape, value.size
        mapped.context = buffers[0].context
        if type(value) is expressions.Node:
            # another thread may write what the expression reads before the function has been called
            for each in program.views:
                each.storage.lend()
    return mapped


def _is_exposed(program: expressions.Program) -> bool:
    """Whether another thread may write what a program reads by other ways than arrays, at any moment."""
    return any(view.storage.is_shared for view in program.views) and len(sys._current_frames()) > 1


def as_buffer(view: memory.View, shape: memory.Shape) -> Buffer[Any]:
    """Return the memory of a whole view as functions on buffers take it, of a shape of its size.

    Raises UsageError while a graph records the calls of this thread.
    """
    memory.refuse_recording()
    return memory_of(view, shape)


def memory_of(view: memory.View, shape: memory.Shape) -> Buffer[Any]:
    """Return the memory of a whole view as a buffer of a shape of its size."""
    own: Buffer[Any] = view.storage.buffer
    if own.shape == shape:
        return own
    return Buffer.of_memory(own.context, own._native, shape, own.var_type)


def gather(view: memory.View) -> memory.View:
    """Return a copy of the elements of a view, one behind the other."""
    turned = None if view.is_contiguous else memory.turn(view)
    return _compute_program(expressions.Program(view), view.dtype, None, None) if turned is None else turned


def whole_view(value: Any) -> memory.View:
    """Return a view of memory that holds these elements and no others."""
    view = expressions.evaluate(value)
    return view if view.is_whole else gather(view)
