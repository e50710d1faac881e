"""`vd.roll`, `vd.flip`, `vd.tile` and `vd.repeat`."""

from collections.abc import Sequence
from typing import Any

from vkdispatch.base.buffer import Buffer
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.families.arguments import as_tuple, check_rank, parse_axes, parse_axis, parse_int
from vkdispatch.families.calls import array_function
from vkdispatch.families.operands import ArrayLike, Operand, OutputLike, parse_operand, prepare_output
from vkdispatch.rearrange.axis_kernels import Axis, launch_by_axes


@array_function
def roll(
    x: ArrayLike,
    shift: int | Sequence[int],
    axis: int | Sequence[int] | None = None,
    *,
    out: Buffer[Any] | None = None,
    output_map: OutputLike = None,
    graph: CommandGraph | None = None,
) -> Buffer[Any]:
    """Return an array with its elements shifted circularly along axes, like `numpy.roll`.

    Parameters
    ----------
    x
        A buffer, or a map called with its arguments.
    shift
        The number of places: an int, or one for each axis. Negative shifts move towards the beginning.
    axis
        An axis or several axes, which can be repeated; None rolls the flattened array.
    out
        A buffer for the result; None creates one. It must not be `x`.
    output_map
        A map for the results.
    graph
        The graph to record into; None means the thread's `vd.global_graph()`.

    Raises
    ------
    TypeError
        An argument is invalid.
    ValueError
        There is no such axis, the numbers of shifts and axes differ, or `out` does not match.

    Examples
    --------
    >>> vd.roll(vd.asbuffer(np.array([1, 2, 3], np.float32)), 1).read(0)
    array([3., 1., 2.], dtype=float32)
    """
    array = parse_operand(x, "x")
    shifts = [parse_int(each, "shift") for each in as_tuple(shift)]
    if axis is None:
        axes = [Axis("roll", array.size, array.size, sum(shifts) % max(array.size, 1))]
    else:
        chosen = [parse_axis(each, len(array.shape)) for each in as_tuple(axis)]
        if len(shifts) != len(chosen) and 1 not in (len(shifts), len(chosen)):
            raise ArgumentValueError(f"shift, axis: got {len(shifts)} shifts for {len(chosen)} axes")
        count = max(len(shifts), len(chosen)) if shifts and chosen else 0
        total = [0] * len(array.shape)
        for k in range(count):
            total[chosen[k % len(chosen)]] += shifts[k % len(shifts)]
        axes = [
            Axis("roll" if by % max(size, 1) else "same", size, size, by % max(size, 1))
            for size, by in zip(array.shape, total, strict=True)
        ]
    if all(each.at == 0 for each in axes):
        axes = [Axis("same", each.result, each.x) for each in axes]
    return _move_by_axes(array, array.shape, axes, out, output_map, graph)


@array_function
def flip(
    x: ArrayLike,
    axis: int | Sequence[int] | None = None,
    *,
    out: Buffer[Any] | None = None,
    output_map: OutputLike = None,
    graph: CommandGraph | None = None,
) -> Buffer[Any]:
    """Return an array in reverse order along axes, like `numpy.flip`.

    Parameters
    ----------
    x
        A buffer, or a map called with its arguments.
    axis
        An axis or several axes; None reverses all.
    out, output_map, graph
        As for `roll`.

    Raises
    ------
    TypeError, ValueError
        As for `roll`; or an axis is repeated.

    Examples
    --------
    >>> vd.flip(vd.asbuffer(np.array([1, 2, 3], np.float32))).read(0)
    array([3., 2., 1.], dtype=float32)
    """
    array = parse_operand(x, "x")
    chosen = parse_axes(axis, len(array.shape))
    axes = [Axis("flip" if k in chosen else "same", size, size) for k, size in enumerate(array.shape)]
    return _move_by_axes(array, array.shape, axes, out, output_map, graph)


@array_function
def tile(
    x: ArrayLike,
    reps: int | Sequence[int],
    *,
    out: Buffer[Any] | None = None,
    output_map: OutputLike = None,
    graph: CommandGraph | None = None,
) -> Buffer[Any]:
    """Return an array repeated along axes, like `numpy.tile`.

    Parameters
    ----------
    x
        A buffer, or a map called with its arguments.
    reps
        The number of repetitions, along the last axis or for each axis. Ones are prepended to the shorter of
        `reps` and the shape. The result can have up to three axes.
    out, output_map, graph
        As for `roll`.

    Raises
    ------
    TypeError, ValueError
        As for `roll`; or a count is negative, or there are more than three axes.

    Examples
    --------
    >>> vd.tile(vd.asbuffer(np.array([1, 2], np.float32)), 2).read(0)
    array([1., 2., 1., 2.], dtype=float32)
    """
    array = parse_operand(x, "x")
    counts = [parse_int(each, "reps", least=0) for each in as_tuple(reps)]
    rank = check_rank(max(len(counts), len(array.shape)), "reps")
    shape = (1,) * (rank - len(array.shape)) + array.shape
    counts = [1] * (rank - len(counts)) + counts
    axes = [
        Axis("tile" if count != 1 else "same", size * count, size)
        for size, count in zip(shape, counts, strict=True)
    ]
    return _move_by_axes(array, tuple(each.result for each in axes), axes, out, output_map, graph)


@array_function
def repeat(
    x: ArrayLike,
    repeats: int,
    axis: int | None = None,
    *,
    out: Buffer[Any] | None = None,
    output_map: OutputLike = None,
    graph: CommandGraph | None = None,
) -> Buffer[Any]:
    """Return an array with each element repeated, like `numpy.repeat` with the same number for all elements.

    Parameters
    ----------
    x
        A buffer, or a map called with its arguments.
    repeats
        The number of repetitions.
    axis
        The axis; None repeats the elements of the flattened array, and the result has one axis.
    out, output_map, graph
        As for `roll`.

    Raises
    ------
    TypeError, ValueError
        As for `roll`; or `repeats` is negative.

    Examples
    --------
    >>> vd.repeat(vd.asbuffer(np.array([1, 2], np.float32)), 2).read(0)
    array([1., 1., 2., 2.], dtype=float32)
    """
    array = parse_operand(x, "x")
    times = parse_int(repeats, "repeats", least=0)
    shape = (array.size,) if axis is None else array.shape
    chosen = 0 if axis is None else parse_axis(axis, len(shape))
    axes = [
        Axis("repeat", size * times, size, times) if k == chosen and times != 1 else Axis("same", size, size)
        for k, size in enumerate(shape)
    ]
    return _move_by_axes(array, tuple(each.result for each in axes), axes, out, output_map, graph)


def _move_by_axes(
    array: Operand,
    shape: tuple[int, ...],
    axes: Sequence[Axis],
    out: Buffer[Any] | None,
    output_map: OutputLike,
    graph: CommandGraph | None,
) -> Buffer[Any]:
    target, buffer = prepare_output(out, output_map, shape, array.var_type, array.context, elsewhere=[array])
    if buffer.size:
        launch_by_axes(array, axes, target, buffer, graph)
    return buffer
