"""`vd.concatenate` and `vd.stack`: one launch copies each array into the result.

Arrays whose single elements alternate, like the colours of pixels, take one launch (see `planes`).
"""

import math
from collections.abc import Sequence
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base.buffer import Buffer
from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.families.arguments import parse_axis, split_shape
from vkdispatch.families.calls import array_function
from vkdispatch.families.kernels import trace_kernel
from vkdispatch.families.operands import ArrayLike, Operand, Output, OutputLike, parse_operand, prepare_output
from vkdispatch.families.stored import store_results
from vkdispatch.families.values import convert_value, promote_dtypes, word_type
from vkdispatch.rearrange.moves import Move, Numbers, find_largest_word, is_moved_as_words, pack_numbers
from vkdispatch.rearrange.planes import make_narrow_kernel, plan_interleave
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
