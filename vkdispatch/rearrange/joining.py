"""`vd.concatenate`, `vd.stack`, `vd.pad`, `vd.roll`, `vd.flip`, `vd.tile` and `vd.repeat`."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import vkdispatch.codegen as vc
from vkdispatch.base.buffer import Buffer, function_buffer
from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.families.calls import array_function
from vkdispatch.families.kernels import trace_kernel
from vkdispatch.families.operands import (
    ArrayLike,
    Operand,
    Output,
    OutputLike,
    as_tuple,
    parse_axes,
    parse_axis,
    parse_int,
    parse_operand,
    prepare_output,
    split_shape,
)
from vkdispatch.families.stored import store_results
from vkdispatch.families.values import convert_value, promote_dtypes, word_type
from vkdispatch.rearrange.moves import (
    Axis,
    Filler,
    Move,
    Numbers,
    cast_number,
    find_largest_word,
    is_moved_as_words,
    launch_by_axes,
    pack_numbers,
)
from vkdispatch.rearrange.transposing import make_narrow_kernel, plan_interleave
from vkdispatch.shader.map import MappedArray
from vkdispatch.shader.shader_function import ShaderFunction
from vkdispatch.shader.signature import describe

GROUP = 256


@array_function
def concatenate(
    arrays: Sequence[ArrayLike],
    axis: int | None = 0,
    out: Buffer[Any] | None = None,
    *,
    output_map: OutputLike = None,
    graph: CommandGraph | None = None,
) -> Buffer[Any]:
    """Join arrays along an axis, like `numpy.concatenate`.

    Parameters
    ----------
    arrays
        Buffers, or maps called with their arguments, of the same shape except along `axis`. Their dtypes are
        promoted as in NumPy.
    axis
        The axis; None joins the flattened arrays.
    out
        A buffer for the result; None creates one. It must not be one of the arrays.
    output_map
        A map for the results; its index is that in the result.
    graph
        The graph to record into; None means the thread's `vd.global_graph()`.

    Raises
    ------
    TypeError
        An argument is invalid, or the dtypes have no common dtype.
    ValueError
        There are no arrays, their shapes do not match, there is no such axis, or `out` does not match.

    Examples
    --------
    >>> x = vd.asbuffer(np.array([1, 2], np.float32))
    >>> vd.concatenate([x, x]).read(0)
    array([1., 2., 1., 2.], dtype=float32)
    """
    parsed = _parse_arrays(arrays)
    if axis is None:
        shapes: list[tuple[int, ...]] = [(array.size,) for array in parsed]
        chosen = 0
    else:
        shapes = [array.shape for array in parsed]
        if not shapes[0]:
            raise ArgumentValueError(
                "arrays: arrays of no axes cannot be joined along an axis; axis=None joins them"
            )
        chosen = parse_axis(axis, len(shapes[0]))
    first = shapes[0]
    for k, shape in enumerate(shapes):
        others = (*shape[:chosen], *shape[chosen + 1 :])
        if len(shape) != len(first) or others != (*first[:chosen], *first[chosen + 1 :]):
            raise ArgumentValueError(
                f"arrays: to join along axis {chosen}, all other axes must have equal lengths; the first has "
                f"{first}, number {k} has {shape}"
            )
    length = sum(shape[chosen] for shape in shapes)
    joined = (*first[:chosen], length, *first[chosen + 1 :])
    pieces = [math.prod(shape[chosen:]) for shape in shapes]
    outer = math.prod(first[:chosen])
    return _join(parsed, joined, outer, pieces, out, output_map, graph)


@array_function
def stack(
    arrays: Sequence[ArrayLike],
    axis: int = 0,
    out: Buffer[Any] | None = None,
    *,
    output_map: OutputLike = None,
    graph: CommandGraph | None = None,
) -> Buffer[Any]:
    """Join arrays of the same shape along a new axis, like `numpy.stack`.

    Parameters
    ----------
    arrays
        Buffers, or maps called with their arguments, of the same shape.
    axis
        The new axis of the result.
    out, output_map, graph
        As for `concatenate`.

    Raises
    ------
    TypeError, ValueError
        As for `concatenate`.

    Examples
    --------
    >>> x = vd.asbuffer(np.array([1, 2], np.float32))
    >>> vd.stack([x, x]).read(0)
    array([[1., 2.],
           [1., 2.]], dtype=float32)
    """
    parsed = _parse_arrays(arrays)
    first = parsed[0].shape
    for k, array in enumerate(parsed):
        if array.shape != first:
            raise ArgumentValueError(
                f"arrays: expected one shape; the first has {first}, number {k} has {array.shape}"
            )
    chosen = parse_axis(axis, len(first) + 1)
    joined = (*first[:chosen], len(parsed), *first[chosen:])
    outer, _, inner = split_shape(joined, chosen)
    return _join(parsed, joined, outer, [inner] * len(parsed), out, output_map, graph)


def _parse_arrays(arrays: Any) -> list[Operand]:
    if isinstance(arrays, (Buffer, MappedArray)) or not isinstance(arrays, Sequence):
        raise ArgumentTypeError(f"arrays: expected a list or tuple of vd.Buffer, got {describe(arrays)}")
    if not arrays:
        raise ArgumentValueError("arrays: expected at least one")
    return [parse_operand(array, f"arrays[{k}]") for k, array in enumerate(arrays)]


def _join(
    arrays: Sequence[Operand],
    shape: tuple[int, ...],
    outer: int,
    pieces: Sequence[int],
    out: Buffer[Any] | None,
    output_map: OutputLike,
    graph: CommandGraph | None,
) -> Buffer[Any]:
    """Copy pieces one after the other; `pieces` are the elements of each in each of `outer` rows."""
    kind = promote_dtypes([array.var_type for array in arrays], "arrays")
    target, buffer = prepare_output(out, output_map, shape, kind, arrays[0].context, elsewhere=arrays)
    plain = target.sink.mapping is None and all(
        array.source.is_plain and array.var_type is kind for array in arrays
    )
    narrow = plan_interleave(len(arrays), outer, kind.item_size) if plain and set(pieces) == {1} else None
    if narrow is not None:
        form, values = narrow
        make_narrow_kernel(form)(buffer, *(array.arguments[0] for array in arrays), *values, graph=graph)
        return buffer
    offset, row = 0, sum(pieces)
    for source, piece in zip(arrays, pieces, strict=True):
        if source.size:
            _launch(source, target, buffer, kind, (outer, piece, row, offset), graph)
        offset += piece
    return buffer


def _launch(
    x: Operand,
    target: Output,
    buffer: Buffer[Any],
    kind: DType,
    lengths: tuple[int, int, int, int],
    graph: CommandGraph | None,
) -> None:
    outer, piece, row, offset = lengths
    move = Move(None, x.source, target.sink)
    if is_moved_as_words(x, target) and x.var_type is kind:
        item = kind.item_size
        size = find_largest_word(piece * item, offset * item, *([row * item] if outer > 1 else []))
        move = Move(word_type(size))
        piece, row, offset = (length * item // size for length in (piece, row, offset))
    count = outer * piece
    numbers, values = pack_numbers({"count": count, "piece": piece, "row": row, "offset": offset})
    kernel = _make_kernel(move, outer > 1, kind, numbers)
    kernel(buffer, *x.arguments, *target.arguments, *values, graph=graph)


@store_results
def _make_kernel(move: Move, rows: bool, kind: DType, numbers: Numbers) -> ShaderFunction:
    def body(moved: Any, variables: Any) -> None:
        number = numbers.read(variables)
        index = vc.global_invocation_id().x
        place: Any = index
        if rows:
            place = (index // number["piece"]) * number["row"] + index % number["piece"]
        place = (place + number["offset"]).to_register()
        value = move.load(moved, index)
        if move.word is None:
            value = convert_value(value, kind)
        move.store(moved, place, value)

    arguments = [move.arguments, numbers.arguments]
    return trace_kernel(f"join_{move.label}", body, arguments, GROUP, exec_size=numbers.text("count"))


# ---- `vd.pad` --------------------------------------------------------------------------------------------


_MODES = ("constant", "edge", "reflect", "symmetric", "wrap", "empty")
# Those of NumPy that need more than one element of the array for one of the result.
_OTHERS = ("linear_ramp", "maximum", "mean", "median", "minimum")

Pair = tuple[Any, Any]


@array_function
def pad(
    x: ArrayLike,
    pad_width: object,
    mode: str = "constant",
    *,
    constant_values: object = 0,
    out: Buffer[Any] | None = None,
    output_map: OutputLike = None,
    graph: CommandGraph | None = None,
) -> Buffer[Any]:
    """Return an array padded at the ends of its axes, like `numpy.pad`.

    Parameters
    ----------
    x
        A buffer, or a map called with its arguments.
    pad_width
        The number of elements before and after, as in NumPy: an int, `(before, after)`, such a pair for each
        axis, or a dict that maps axes to these. It can exceed the length of the array.
    mode
        "constant", "edge" (the nearest element), "reflect" (mirrored in the first and the last element),
        "symmetric" (mirrored at the ends), "wrap" (the array repeated), or "empty" (undefined).
    constant_values
        For "constant": a number, a pair, or a pair for each axis. The last padded axis fills the corners. All
        components of a vector or matrix become this number.
    out
        A buffer for the result; None creates one. It must not be `x`.
    output_map
        A map for the results, including the padding.
    graph
        The graph to record into; None means the thread's `vd.global_graph()`.

    Raises
    ------
    TypeError
        An argument is invalid.
    ValueError
        A width is negative, an axis without elements would be padded with its elements, there is no such
        mode, or `out` does not match.

    Examples
    --------
    >>> vd.pad(vd.asbuffer(np.array([1, 2], np.float32)), (1, 2)).read(0)
    array([0., 1., 2., 0., 0.], dtype=float32)
    """
    array = parse_operand(x, "x")
    if mode not in _MODES:
        known = f"NumPy's {mode!r} is none of the modes here" if mode in _OTHERS else f"got {mode!r}"
        raise ArgumentValueError(f"mode: expected one of {', '.join(map(repr, _MODES))}; {known}")
    shape = array.shape
    widths = [
        (parse_int(before, "pad_width", least=0), parse_int(after, "pad_width", least=0))
        for before, after in _parse_widths(pad_width, len(shape))
    ]
    kind = "constant" if mode == "empty" else mode
    if kind != "constant":
        for axis, (size, width) in enumerate(zip(shape, widths, strict=True)):
            if not size and any(width):
                raise ArgumentValueError(
                    f"pad_width: axis {axis} has no elements, so {mode!r} has none to pad it with; "
                    'mode="constant" does'
                )
    padded = tuple(size + sum(width) for size, width in zip(shape, widths, strict=True))
    target, buffer = prepare_output(out, output_map, padded, array.var_type, array.context, elsewhere=[array])
    axes = [
        Axis(kind if any(width) else "same", size + sum(width), size, width[0])
        for size, width in zip(shape, widths, strict=True)
    ]
    filler = None
    if kind == "constant":
        numbers = [
            cast_number(value, array.var_type, "constant_values")
            for pair, width in zip(
                _parse_pairs(constant_values, len(shape), "constant_values"), widths, strict=True
            )
            for value in pair
            if any(width)
        ]
        if numbers and mode != "empty":
            same = all(np.array_equal(number, numbers[0]) for number in numbers)
            filler = Filler(array.var_type, tuple(numbers[:1] if same else numbers))
        elif numbers:
            filler = Filler(array.var_type, (cast_number(0, array.var_type, "constant_values"),))
    if buffer.size:
        if not array.size:
            # the kernel reads nothing of it, but needs a buffer
            array = parse_operand(function_buffer((1,) * len(shape), array.var_type, context=array.context))
        launch_by_axes(array, axes, target, buffer, graph, filler)
    return buffer


def _parse_widths(value: Any, dimensions: int) -> Sequence[Pair]:
    if isinstance(value, Mapping):
        pairs: list[Pair] = [(0, 0)] * dimensions
        for axis, width in value.items():
            (pair,) = _parse_pairs(width, 1, "pad_width")
            pairs[parse_axis(axis, dimensions, "pad_width")] = pair
        return pairs
    return _parse_pairs(value, dimensions, "pad_width")


def _parse_pairs(value: Any, dimensions: int, name: str) -> list[Pair]:
    """Return a pair for each axis, value a number, a pair, or pairs for each axis, as in NumPy."""
    try:
        array = np.asarray(value)
        pairs: Any = np.broadcast_to(array, (dimensions, 2))
    except (ValueError, TypeError):
        raise ArgumentValueError(
            f"{name}: expected a number, (before, after), or such a pair for each of {dimensions} axes, got "
            f"{value!r}"
        ) from None
    if array.dtype == object or array.dtype.kind in "USmM":
        raise ArgumentTypeError(f"{name}: expected numbers, got {value!r}")
    return [(before, after) for before, after in pairs]


# ---- `vd.roll`, `vd.flip`, `vd.tile` and `vd.repeat` -----------------------------------------------------


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
    shifts = [parse_int(value, "shift") for value in as_tuple(shift)]
    if axis is None:
        axes = [Axis("roll", array.size, array.size, sum(shifts) % max(array.size, 1))]
    else:
        chosen = [parse_axis(value, len(array.shape)) for value in as_tuple(axis)]
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
    if all(moved.at == 0 for moved in axes):
        axes = [Axis("same", moved.result, moved.x) for moved in axes]
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
        `reps` and the shape.
    out, output_map, graph
        As for `roll`.

    Raises
    ------
    TypeError, ValueError
        As for `roll`; or a count is negative.

    Examples
    --------
    >>> vd.tile(vd.asbuffer(np.array([1, 2], np.float32)), 2).read(0)
    array([1., 2., 1., 2.], dtype=float32)
    """
    array = parse_operand(x, "x")
    counts = [parse_int(value, "reps", least=0) for value in as_tuple(reps)]
    rank = max(len(counts), len(array.shape))
    shape = (1,) * (rank - len(array.shape)) + array.shape
    counts = [1] * (rank - len(counts)) + counts
    axes = [
        Axis("tile" if count != 1 else "same", size * count, size)
        for size, count in zip(shape, counts, strict=True)
    ]
    return _move_by_axes(array, tuple(moved.result for moved in axes), axes, out, output_map, graph)


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
    return _move_by_axes(array, tuple(moved.result for moved in axes), axes, out, output_map, graph)


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
