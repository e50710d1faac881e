"""`vd.transpose`: the choice of a kernel, and the numbers of its launch.

Axes of one element are left out, and neighbours that stay neighbours become one axis. These orders of the
axes that are left have kernels of their own:

    0          a copy
    1 0        rows and columns of one plane: tiles
    0 2 1      of several planes: tiles
    2 1 0      a plane whose rows (or columns) are two axes that also swap: tiles
    1 0 2      runs of elements that stay together; short ones are larger elements of a plane

All others, planes that are too small or too narrow for tiles, and runs of 32 bytes or more are gathered: one
invocation finds and moves each word of the result.
"""

import math
from collections.abc import Sequence
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base.buffer import Buffer
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.base.record import record
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.families.arguments import parse_axes
from vkdispatch.families.calls import array_function
from vkdispatch.families.kernels import trace_kernel
from vkdispatch.families.operands import ArrayLike, Operand, Output, OutputLike, parse_operand, prepare_output
from vkdispatch.families.stored import store_results
from vkdispatch.families.tuning import device_facts
from vkdispatch.families.values import word_type
from vkdispatch.rearrange.moves import Move, Numbers, find_largest_word, is_moved_as_words, pack_numbers
from vkdispatch.rearrange.moves import tile_tuning as tuning
from vkdispatch.rearrange.planes import NarrowForm, TileForm, make_narrow_kernel, make_tile_kernel
from vkdispatch.shader.shader_function import ShaderFunction

# Bytes from which on runs use whole memory sectors wherever they lie.
_LONG_RUN = 32
# Bytes up to which a plane stays in the cache until it is done.
_SMALL_PLANE = 2048
_BLOCK_WORDS = (16, 8, 4)
# Bytes of words that are stored by whole sectors; smaller ones would be loaded too often.
_SECTORED = (4, 8)
# Least length of the first and the last of three axes for planes of their own.
_WIDE_PLANE = 64
GATHER_GROUP = 256


@array_function
def transpose(
    x: ArrayLike,
    axes: Sequence[int] | None = None,
    *,
    out: Buffer[Any] | None = None,
    output_map: OutputLike = None,
    graph: CommandGraph | None = None,
) -> Buffer[Any]:
    """Return an array with its axes permuted, like `numpy.transpose`; the elements are moved.

    Parameters
    ----------
    x
        A buffer, or a map called with its arguments.
    axes
        Axis k of the result is axis `axes[k]` of `x`; negative ones count from the end. None reverses them.
    out
        A buffer for the result; None creates one. It must not be `x`.
    output_map
        A map for the results; its index is that in the result.
    graph
        The graph to record into; None means the thread's `vd.global_graph()`.

    Raises
    ------
    TypeError
        An argument is invalid.
    ValueError
        `axes` does not name every axis once, or `out` does not match.

    Examples
    --------
    >>> vd.transpose(vd.asbuffer(np.array([[1, 2], [3, 4]], np.float32))).read(0)
    array([[1., 3.],
           [2., 4.]], dtype=float32)
    """
    array = parse_operand(x, "x")
    order = _parse_order(axes, len(array.shape))
    shape = tuple(array.shape[axis] for axis in order)
    target, buffer = prepare_output(out, output_map, shape, array.var_type, array.context, elsewhere=[array])
    if array.size:
        launch_transpose(array, order, target, buffer, graph)
    return buffer


def _parse_order(axes: object, dimensions: int) -> tuple[int, ...]:
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
    """Queue the launch that transposes an array."""
    words = is_moved_as_words(array, target)
    shape, axes = merge_axes(array.shape, order)
    item = array.var_type.item_size
    if axes == (1, 0, 2) and words and shape[2] * item < _LONG_RUN:
        item, shape, axes = item * shape[2], shape[:2], (1, 0)
    if axes in ((1, 0), (0, 2, 1), (2, 1, 0)) and not (words and item >= _LONG_RUN):
        if axes != (2, 1, 0) and words:
            narrow = _plan_narrow(shape, item)
            if narrow is not None:
                form, numbers = narrow
                make_narrow_kernel(form)(buffer, *array.arguments, *numbers, graph=graph)
                return
        plane = find_plane(shape, axes)
        if plane.batches == 1 or plane.rows * plane.columns * item > _SMALL_PLANE:
            tiles, numbers = _plan_tiles(Move(None, array.source, target.sink), words, item, plane)
            make_tile_kernel(tiles)(buffer, *array.arguments, *target.arguments, *numbers, graph=graph)
            return
    form_, numbers = _plan_gather(array, target, words, shape, axes, item)
    make_gather_kernel(*form_)(buffer, *array.arguments, *target.arguments, *numbers, graph=graph)


def merge_axes(shape: Sequence[int], order: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Leave out axes of one element and join neighbours that stay neighbours.

    Returns
    -------
    The shape of the input, and for each axis of the result the axis of the input.
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
    """What tiles transpose: `batches` planes of `rows` x `columns`, in elements.

    `x_row`, `x_batch`, `result_row` and `result_batch` are the distances of rows and of batches in the input
    and in the result. `split` names the side ("rows" or "columns") that is two axes, `outer` x `inner`, which
    swap; "" if there is none.
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


def find_plane(shape: tuple[int, ...], axes: tuple[int, ...]) -> Plane:
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


def _plan_narrow(shape: tuple[int, ...], item: int) -> tuple[NarrowForm, tuple[int, ...]] | None:
    """Return the form and the numbers of a launch for narrow planes; None for other planes."""
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
    numbers, values = pack_numbers({"length": length, "total": total})
    return NarrowForm(item, word, planes, rows < columns, tuning.narrow_group, numbers), values


def _plan_tiles(move: Move, words: bool, item: int, plane: Plane) -> tuple[TileForm, tuple[int, ...]]:
    run, block, shift = 1, 0, 0
    if words:
        size = find_largest_word(item)
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
        move = Move(word_type(block or size))
    held = move.register_type.item_size
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
    numbers, values = pack_numbers(lengths)
    if block:
        width = max(1, getattr(tuning, f"segment_{item}") // block)
        count = width * max(1, width // tuning.flat_1 if item == 1 else width)
    else:
        size = move.word.item_size if move.word is not None else held
        width = max(8, (tuning.cells if size < 4 else tuning.segment_4) // max(size, 4))
        width = min(width, 64 if words else 32)
        while width > 8 and width * (width * run + 1) * held > 1 << 15:
            width //= 2
        count = width * width * (tuning.tall if run == 1 else 1)
    across = min(width, _ceil_power_of_four(plane.columns // side))
    down = min(count // across, _ceil_power_of_four(plane.rows // side))
    across = min(count // down, _ceil_power_of_four(plane.columns // side))
    group = _choose_group(across, down, run)
    more = -(-shift // run)
    if more * 2 > down or (down + more) * (across * run + 1) * held > 1 << 15:
        shift = 0
    form = TileForm(
        move=move,
        item=item if block else 0,
        run=run,
        group=group,
        columns=across,
        rows=down,
        split=plane.split,
        strip=0 if run > 1 else tuning.strip,
        shift=shift,
        numbers=numbers,
    )
    return form, values


def _choose_group(across: int, down: int, run: int) -> int:
    """Return the invocations of a workgroup: a multiple or a part of a row of words of both sides."""
    group = run * across * down
    while group > max(run, min(tuning.group * 5 // 4, device_facts().max_group)):
        group //= 2
    return group


def _most_word() -> int:
    return min(tuning.most, 8) if device_facts().is_cpu else tuning.most


def _ceil_power_of_four(number: int) -> int:
    """Return the least power of four that is not below a number. Few sizes mean few kernels."""
    return 1 << (max(number - 1, 0).bit_length() + 1) // 2 * 2


# ---- gathering


def _plan_gather(
    array: Operand, target: Output, words: bool, shape: tuple[int, ...], axes: tuple[int, ...], item: int
) -> tuple[tuple[Move, int, Numbers], tuple[int, ...]]:
    """Return the form of a gathering kernel and the numbers of its launch."""
    strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    sizes = [shape[axis] for axis in axes]
    steps = [strides[axis] for axis in axes]
    move = Move(None, array.source, target.sink)
    if words:
        together = item * sizes[-1] if sizes and steps[-1] == 1 else item
        size = find_largest_word(together)
        move = Move(word_type(size))
        if sizes and steps[-1] == 1:
            sizes[-1] = together // size
            steps[:-1] = [step * item // size for step in steps[:-1]]
        elif item != size:
            sizes, steps = [*sizes, item // size], [*(step * item // size for step in steps), 1]
    count = len(sizes)
    named = {"total": math.prod(sizes)} | {f"size{k}": size for k, size in enumerate(sizes) if k}
    if count > 1 or (steps and steps[-1] != 1):
        named |= {f"step{k}": step for k, step in enumerate(steps)}
    numbers, values = pack_numbers(named)
    return (move, count, numbers), values


@store_results
def make_gather_kernel(move: Move, count: int, numbers: Numbers) -> ShaderFunction:
    """Trace the kernel whose invocations move one word each; `count` axes of the result have strides."""

    def body(moved: Any, variables: Any) -> None:
        number = numbers.read(variables)
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
        move.store(moved, index, move.load(moved, place))

    name, arguments = f"gather_{move.label}", [move.arguments, numbers.arguments]
    return trace_kernel(name, body, arguments, GATHER_GROUP, exec_size=numbers.text("total"))
