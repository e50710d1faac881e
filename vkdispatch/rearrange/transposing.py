"""`vd.transpose`: which kernel does it, and with which numbers.

Axes of one element are left out, and neighbours that stay neighbours are one axis. What is left of three axes
is one of five cases:

    0          a copy
    1 0        rows and columns of one plane: tiles
    0 2 1      of several planes: tiles
    2 1 0      a plane whose rows (or columns) are two axes that swap on the way: tiles
    1 0 2      runs of elements that stay together: elements of another size in a plane, if they are short

Planes too small or too narrow for tiles, and runs of 32 bytes or more, are gathered: each word of the result
by one invocation, which finds where it comes from.
"""

import math
from collections.abc import Sequence
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.arrays.aliasing import check_overlap
from vkdispatch.arrays.axes import parse_axes
from vkdispatch.arrays.calls import array_function
from vkdispatch.arrays.facts import device_facts
from vkdispatch.arrays.kernels import trace_kernel
from vkdispatch.arrays.maps.operand import Operand, parse_operand
from vkdispatch.arrays.maps.output import Output, parse_output
from vkdispatch.arrays.memoize import memoize
from vkdispatch.arrays.results import prepare_result
from vkdispatch.arrays.values.words import word_type
from vkdispatch.base.buffer import Buffer
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.base.record import record
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.rearrange.narrow import NarrowForm, narrow_kernel
from vkdispatch.rearrange.tiles import TileForm, tile_kernel
from vkdispatch.rearrange.words import (
    Moving,
    Numbers,
    largest_word,
    moves_words,
    numbers_of,
)
from vkdispatch.shader.map import MappedArray
from vkdispatch.shader.shader_function import ShaderFunction

# Runs of so many bytes use whole sectors of memory wherever they lie.
_LONG_RUN = 32
# Planes of so few bytes stay in the cache from their first element to their last.
_SMALL_PLANE = 2048
_BLOCK_WORDS = (16, 8, 4)
# Words of so many bytes are stored by whole sectors: smaller ones have to be loaded too often for that.
_SECTORED = (4, 8)
# The first and the last of three axes make planes of their own from here on.
_WIDE_PLANE = 64
GATHER_GROUP = 256


@record
class Tuning:
    """Numbers that were found by measurement, on GPUs.

    Attributes
    ----------
    group
        Most invocations of a workgroup of tiles.
    segment_1 ... segment_16
        Bytes of a row of a tile, of elements of 1 to 16 bytes.
    flat_1
        How many times wider than high a tile of elements of 1 byte is.
    strip
        See `TileForm`.
    sector
        Bytes at whose multiples parts of rows of the result begin, if rows do not; 0: anywhere.
    tall
        How many times higher than wide a tile of cells is.
    narrow
        As many rows or columns make a plane narrow.
    narrow_group
        Invocations of a workgroup for such a plane.
    cells
        Bytes of a row of a tile of cells that are no words of 4 bytes or more.
    most
        Bytes of the largest word that blocks are made of. Processors have 8 at most: their compiler
        takes long for larger blocks of small elements.
    """

    group: int = 256
    segment_1: int = 256
    segment_2: int = 256
    segment_4: int = 256
    segment_8: int = 256
    segment_16: int = 256
    flat_1: int = 2
    strip: int = 1
    sector: int = 32
    tall: int = 1
    narrow: int = 8
    narrow_group: int = 256
    cells: int = 256
    most: int = 16


tuning = Tuning()


@array_function
def transpose(
    x: Buffer[Any] | MappedArray,
    axes: Sequence[int] | None = None,
    *,
    out: Buffer[Any] | None = None,
    output_map: Any = None,
    graph: CommandGraph | None = None,
) -> Buffer[Any]:
    """Return an array with its axes in another order, like `numpy.transpose`; the elements are moved.

    Parameters
    ----------
    x
        A buffer, or a map called with its arguments, of 0 to 3 axes.
    axes
        Axis k of the result is axis `axes[k]` of `x`; negative ones count from the end. None reverses them.
    out
        The buffer for the result; None makes one. It must not be `x`.
    output_map
        A map that each value goes through on its way; its index is that in the result.
    graph
        Where to record; None takes the thread's `vd.global_graph()`.

    Raises
    ------
    TypeError
        An argument is not what it should be.
    ValueError
        `axes` does not name every axis once, or `out` does not fit.
    """
    array = parse_operand(x, "x")
    order = _checked_order(axes, len(array.shape))
    shape = tuple(array.shape[axis] for axis in order)
    target = parse_output(output_map, array.var_type, shape)
    buffer = prepare_result(out, shape, target.out_type, array.context)
    check_overlap([("out", out)], target, elsewhere=[array])
    if array.size:
        launch_transpose(array, order, target, buffer, graph)
    return buffer


def _checked_order(axes: Any, dimensions: int) -> tuple[int, ...]:
    if axes is None:
        return tuple(reversed(range(dimensions)))
    order = parse_axes(axes, dimensions, "axes")
    if len(order) != dimensions:
        raise ArgumentValueError(
            f"axes: expected each of the {dimensions} axes once, got {axes!r}; None reverses them"
        )
    return order


def launch_transpose(
    array: Operand, order: Sequence[int], target: Output, buffer: Buffer[Any], graph: CommandGraph | None
) -> None:
    """Queue the launch that moves all elements."""
    words = moves_words(array, target)
    shape, axes = merged(array.shape, order)
    item = array.var_type.item_size
    if axes == (1, 0, 2) and words and shape[2] * item < _LONG_RUN:
        item, shape, axes = item * shape[2], shape[:2], (1, 0)
    if axes in ((1, 0), (0, 2, 1), (2, 1, 0)) and not (words and item >= _LONG_RUN):
        if axes != (2, 1, 0) and words:
            narrow = _narrow(shape, item)
            if narrow is not None:
                form, numbers = narrow
                narrow_kernel(form)(buffer, *array.arguments, *numbers, graph=graph)
                return
        plane = plane_of(shape, axes)
        if plane.batches == 1 or plane.rows * plane.columns * item > _SMALL_PLANE:
            tiles, numbers = _tiles(Moving(None, array.source, target.sink), words, item, plane)
            tile_kernel(tiles)(buffer, *array.arguments, *target.arguments, *numbers, graph=graph)
            return
    form_, numbers = _gathering(array, target, words, shape, axes, item)
    gather_kernel(*form_)(buffer, *array.arguments, *target.arguments, *numbers, graph=graph)


def merged(shape: Sequence[int], order: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Leave out axes of one element, and join neighbours that stay neighbours.

    Returns
    -------
    The input's shape, and which of its axes each axis of the result is.
    """
    runs: list[list[int]] = []
    kept = [axis for axis in range(len(shape)) if shape[axis] != 1]
    for axis in (axis for axis in order if shape[axis] != 1):
        if runs and kept.index(runs[-1][-1]) + 1 == kept.index(axis):
            runs[-1].append(axis)
        else:
            runs.append([axis])
    inputs = sorted(runs)
    sizes = tuple(math.prod(shape[axis] for axis in run) for run in inputs)
    return sizes, tuple(inputs.index(run) for run in runs)


@record
class Plane:
    """What is transposed by tiles, in elements.

    `rows` x `columns` of the input, `batches` times; from a row (or column) to the next, and from a batch to
    the next, in the input and in the result. `split`: which side is two axes that swap, `outer` x `inner`.
    """

    batches: int
    rows: int
    columns: int
    x_row: int
    x_batch: int
    result_row: int
    result_batch: int
    split: str = ""
    outer: int = 1
    inner: int = 1


def plane_of(shape: tuple[int, ...], axes: tuple[int, ...]) -> Plane:
    """Return the plane of one of the orders (1, 0), (0, 2, 1) and (2, 1, 0)."""
    if axes != (2, 1, 0):
        batches, rows, columns = shape if len(shape) == 3 else (1, *shape)
        return Plane(batches, rows, columns, columns, rows * columns, rows, rows * columns)
    first, middle, last = shape
    if min(first, last) >= _WIDE_PLANE:
        return Plane(middle, first, last, middle * last, last, middle * first, first)
    if first >= last:
        rows, columns = middle * first, last
        return Plane(1, rows, columns, columns, 0, rows, 0, "rows", middle, first)
    rows, columns = first, middle * last
    return Plane(1, rows, columns, columns, 0, rows, 0, "columns", middle, last)


def _narrow(shape: tuple[int, ...], item: int) -> tuple[NarrowForm, tuple[int, ...]] | None:
    """Return the form of the kernel for narrow planes, and its numbers; None where it is none for them."""
    rows, columns = shape[-2:]
    planes, long = min(rows, columns), max(rows, columns)
    if item > 4 or planes > tuning.narrow or long < 4 * planes or not planes % max(2, 4 // item):
        return None
    most = _most_word() if planes <= 4 else 8
    word = next((word for word in _BLOCK_WORDS if word <= most and not long % (word // item)), 0)
    if not word:
        return None
    length = long * item // word
    total = length * (shape[0] if len(shape) == 3 else 1)
    numbers, values = numbers_of({"length": length, "total": total})
    return NarrowForm(item, word, planes, rows < columns, tuning.narrow_group, numbers), values


def _tiles(moving: Moving, words: bool, item: int, plane: Plane) -> tuple[TileForm, tuple[int, ...]]:
    run, block, shift = 1, 0, 0
    if words:
        size = largest_word(item)
        run = item // size
        fitting = (
            word
            for word in _BLOCK_WORDS
            if item <= word <= max(_most_word(), item)
            and not plane.rows % (word // item)
            and not plane.columns % (word // item)
        )
        block = next(fitting, 0) if run == 1 else 0
        if size in _SECTORED and tuning.sector:
            odd = plane.result_row * item % tuning.sector != 0
            shift = tuning.sector // size if odd else 0
            block = 0 if odd or block == item else block
        moving = Moving(word_type(block or size))
    held = moving.held.item_size
    side = block // item if block else 1
    lengths = {
        "columns": plane.columns // side,
        "rows": plane.rows // side,
        "batches": plane.batches,
        "x_row": plane.x_row * run // side,
        "x_batch": plane.x_batch * run // side,
        "result_row": plane.result_row * run // side,
        "result_batch": plane.result_batch * run // side,
    }
    if plane.split:
        lengths |= {"outer": plane.outer, "inner": plane.inner}
    numbers, values = numbers_of(lengths)
    if block:
        width = max(1, getattr(tuning, f"segment_{item}") // block)
        count = width * max(1, width // tuning.flat_1 if item == 1 else width)
    else:
        size = moving.word.item_size if moving.word is not None else held
        width = max(8, (tuning.cells if size < 4 else tuning.segment_4) // max(size, 4))
        width = min(width, 64 if words else 32)
        while width > 8 and width * (width * run + 1) * held > 1 << 15:
            width //= 2
        count = width * width * (tuning.tall if run == 1 else 1)
    across = min(width, _power_above(plane.columns // side))
    down = min(count // across, _power_above(plane.rows // side))
    across = min(count // down, _power_above(plane.columns // side))
    group = _group(across, down, run)
    more = -(-shift // run)
    if more * 2 > down or (down + more) * (across * run + 1) * held > 1 << 15:
        shift = 0
    return TileForm(
        moving,
        item if block else 0,
        run,
        group,
        across,
        down,
        plane.split,
        0 if run > 1 else tuning.strip,
        shift,
        numbers,
    ), values


def _group(across: int, down: int, run: int) -> int:
    """Return how many invocations a workgroup has: it moves whole rows of words of both sides, or they it."""
    group = run * across * down
    while group > max(run, min(tuning.group * 5 // 4, device_facts().max_group)):
        group //= 2
    return group


def _most_word() -> int:
    processor = device_facts().is_cpu
    return min(tuning.most, 8) if processor else tuning.most


def _power_above(number: int) -> int:
    """Return the power of four that is not below a number: in few steps, for each is a kernel."""
    return 1 << (max(number - 1, 0).bit_length() + 1) // 2 * 2


# ---- gathering


def _gathering(
    array: Operand,
    target: Output,
    words: bool,
    shape: tuple[int, ...],
    axes: tuple[int, ...],
    item: int,
) -> tuple[tuple[Moving, int, Numbers], tuple[int, ...]]:
    """Return the form of a gathering kernel, and its numbers."""
    strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    sizes = [shape[axis] for axis in axes]
    steps = [strides[axis] for axis in axes]
    moving = Moving(None, array.source, target.sink)
    if words:
        together = item * sizes[-1] if sizes and steps[-1] == 1 else item
        size = largest_word(together)
        moving = Moving(word_type(size))
        if sizes and steps[-1] == 1:
            sizes[-1] = together // size
            steps[:-1] = [step * item // size for step in steps[:-1]]
        elif item != size:
            sizes, steps = [*sizes, item // size], [*(step * item // size for step in steps), 1]
    count = len(sizes)
    named = {"total": math.prod(sizes)} | {f"size{k}": size for k, size in enumerate(sizes) if k}
    if count > 1 or (steps and steps[-1] != 1):
        named |= {f"step{k}": step for k, step in enumerate(steps)}
    numbers, values = numbers_of(named)
    return (moving, count, numbers), values


@memoize
def gather_kernel(moving: Moving, count: int, numbers: Numbers) -> ShaderFunction:
    """Trace the kernel of which each invocation moves one word; `count` axes of the result have strides."""
    own = len(moving.arguments)

    def body(*variables: Any) -> None:
        number = numbers.read(variables[own:])
        index = vc.global_invocation_id().x
        place: Any = index
        if len(number) > 1:
            rest, parts = index, []
            for k in range(count - 1, 0, -1):
                parts.append((rest % number[f"size{k}"]) * number[f"step{k}"])
                rest = (rest // number[f"size{k}"]).to_register()
            place = rest * number["step0"]
            for part in parts:
                place = place + part
            place = place.to_register()
        moving.store(variables[:own], index, moving.load(variables[:own], place))

    return trace_kernel(
        f"gather_{moving.label}",
        body,
        [*moving.arguments, *numbers.arguments],
        GATHER_GROUP,
        exec_size=numbers.text("total"),
    )
