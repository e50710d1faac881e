"""`vd.matmul`, and operands evaluated into buffers."""

import math
from typing import Any

import numpy as np

import vkdispatch.codegen as vc
from vkdispatch.base import dtype as dt
from vkdispatch.base.buffer import Buffer, function_buffer
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.families.calls import array_function
from vkdispatch.families.kernels import buffers, numbers, trace_kernel
from vkdispatch.families.operands import (
    ArrayLike,
    Operand,
    Output,
    OutputLike,
    parse_dtype,
    parse_operand,
    prepare_output,
    stride_operand,
)
from vkdispatch.families.sources import Source
from vkdispatch.families.stored import store_results
from vkdispatch.families.tuning import device_facts
from vkdispatch.families.values import convert_value, promote_dtypes
from vkdispatch.matrices.cooperative import WORD
from vkdispatch.matrices.factors import Sizes, check_numbers, make_zero, sum_type
from vkdispatch.matrices.panels import queue_panels
from vkdispatch.matrices.plans import Plan, Request, find_plan
from vkdispatch.shader.shader_function import ShaderFunction

# ---- Operands evaluated into buffers ---------------------------------------------------------------------
#
# Maps that write run once for each element, so they are evaluated into buffers of the same shape. Halves
# for cooperative matrices become rows of whole words of 16 bytes, padded with zeros.


_GROUP = 256
_MAX_UINT32 = 0xFFFFFFFF


def evaluate(array: Operand, graph: CommandGraph | None) -> Operand:
    """Queue a launch that evaluates an operand into a buffer, and return this as an operand."""
    target: Buffer[Any] = function_buffer(array.shape, array.var_type)
    make_packing_kernel(array.source.elementwise())(target, *array.arguments, graph=graph)
    return parse_operand(target)


@store_results
def make_packing_kernel(source: Source) -> ShaderFunction:
    """Trace a kernel; its arguments are the buffer and those of the source."""

    def body(target: Any, arguments: Any) -> None:
        index = (vc.workgroup_id().x * _GROUP + vc.local_invocation_index()).to_register("index")
        with vc.if_block(index.to_dtype(dt.int32) < target.shape.w):
            value = source.value(arguments, index)
            target[index] = value.to_dtype(dt.compute_type(source.out_type))

    named = [*buffers(matmul_packed=source.out_type), source.parameters]
    groups = f"-(-matmul_packed.size // {_GROUP})"
    return trace_kernel("matmul_pack", body, named, _GROUP, workgroups=groups)


def _has_words(array: Operand, width: int) -> bool:
    """Whether rows of `width` halves are whole words in memory."""
    return array.source.is_plain and width % WORD == 0


def _words_across(width: int) -> int:
    """Return the number of words of a row of `width` halves."""
    return -(-width // WORD)


def _queue_words(
    array: Operand, kind: dt.DType, count: int, width: int, target: Buffer[Any], graph: CommandGraph | None
) -> None:
    """Queue a launch that copies rows of halves into rows of whole words.

    Parameters
    ----------
    kind
        float16 or bfloat16.
    count, width
        Words in all, and elements of a row.
    target
        A buffer for at least `count` words.
    """
    if count > _MAX_UINT32:
        raise ArgumentValueError("matmul: an operand that must be copied has more than 2**35 elements")
    kernel = _make_words_kernel(array.source.elementwise(), kind)
    kernel(target, count, width, _words_across(width), *array.arguments, graph=graph)


@store_results
def _make_words_kernel(source: Source, kind: dt.DType) -> ShaderFunction:
    """Trace a kernel; its arguments are the words, three sizes and those of the source."""

    def body(target: Any, count: Any, width: Any, pitch: Any, arguments: Any) -> None:
        word = (vc.workgroup_id().x * _GROUP + vc.local_invocation_index()).to_register("word")
        with vc.if_block(word < count):
            column = ((word % pitch) * WORD).to_register("column")
            start = ((word // pitch) * width).to_register("start")
            halves = [vc.new_register(dt.float32) for _ in range(WORD)]
            for i, half in enumerate(halves):
                place = vc.min(column + i, width - 1)
                value = convert_value(source.value(arguments, start + place), dt.float32)
                half[:] = vc.select(column + i < width, value, make_zero(dt.float32))
            pairs = [_pack_pair(kind, halves[i], halves[i + 1]) for i in range(0, WORD, 2)]
            target[word] = vc.to_uvec4(*pairs)

    sizes = numbers("matmul_count", "matmul_width", "matmul_pitch")
    named = [*buffers(matmul_words=dt.uvec4), *sizes, source.parameters]
    groups = f"-(-matmul_count // {_GROUP})"
    return trace_kernel(f"matmul_words_{kind.name}", body, named, _GROUP, workgroups=groups)


def _pack_pair(kind: dt.DType, low: Any, high: Any) -> Any:
    """Return two halves in 32 bits; a bfloat16 is an exact float32 already."""
    if kind is dt.float16:
        return vc.pack_half2x16(vc.to_vec2(low, high))
    return (vc.float_bits_to_uint(low) >> 16) | (vc.float_bits_to_uint(high) & 0xFFFF0000)


# ---- `vd.matmul` -----------------------------------------------------------------------------------------


@array_function
def matmul(
    a: ArrayLike,
    b: ArrayLike,
    out: Buffer[Any] | None = None,
    *,
    transpose_a: bool = False,
    transpose_b: bool = False,
    dtype: dt.DType | None = None,
    output_map: OutputLike = None,
    graph: CommandGraph | None = None,
) -> Buffer[Any]:
    """Return the product of two matrices, like `numpy.matmul`.

    Parameters
    ----------
    a, b
        Buffers of numbers, or maps called with their arguments. The last two axes are those of the matrices,
        and axes in front of them are batch axes, which broadcast. A one-dimensional `a` is a row vector, and
        a one-dimensional `b` a column vector; that axis is removed from the result.
    out
        A buffer for the result; None creates one. It must not be an operand.
    transpose_a, transpose_b
        Swap rows and columns of an operand of at least 2 axes, without a copy.
    dtype
        The dtype to which the operands are converted, and that of the result; None is NumPy's promotion.
        Sums have this type, but at least 32 bits: products of float16 and bfloat16 are accumulated in
        float32, and with `dtype=vd.float32` the result is not rounded. Integers wrap around, booleans are
        combined with "or", complex numbers are not conjugated.
    output_map
        A map that is applied to the sums, such as `relu(bias)`; its index is that in the result. It gets the
        sums before they are rounded to `dtype`.
    graph
        The graph to record into; None means the thread's `vd.global_graph()`.

    Raises
    ------
    TypeError
        An argument is invalid.
    ValueError
        The shapes do not match, an operand has no axes, or `out` does not match.

    See Also
    --------
    vkdispatch.codegen.matrix_multiply_add : multiplies matrices in kernels.

    Examples
    --------
    >>> a = vd.asbuffer(np.array([[1, 2], [3, 4]], np.float32))
    >>> b = vd.asbuffer(np.array([[1, 0], [0, 2]], np.float32))
    >>> vd.matmul(a, b).read(0)
    array([[1., 4.],
           [3., 8.]], dtype=float32)
    """
    left, right = parse_operand(a, "a"), parse_operand(b, "b")
    check_numbers(left.var_type, "a")
    check_numbers(right.var_type, "b")
    swap_a, swap_b = _parse_flag(transpose_a, "transpose_a"), _parse_flag(transpose_b, "transpose_b")
    sizes, shape = _find_sizes(left.shape, right.shape, swap_a, swap_b)
    kind = (
        promote_dtypes([left.var_type, right.var_type], "a, b")
        if dtype is None
        else _parse_number_dtype(dtype)
    )
    _check_converts((left.var_type, right.var_type), kind)
    target, buffer = prepare_output(out, output_map, shape, kind, left.context, elsewhere=[left, right])
    if sizes.size == 0:
        return buffer
    if max(sizes.rows, sizes.columns, sizes.batches) > _MAX_UINT32:
        raise ArgumentValueError(f"a, b: sides of more than {_MAX_UINT32} elements are not supported")
    # a map that writes must run once for each element
    left, right = (evaluate(array, graph) if array.source.is_writing else array for array in (left, right))
    batches = _broadcast_batches(left.shape, right.shape)
    left, right = _fill_batches(left, batches), _fill_batches(right, batches)
    device = device_facts()
    sources = left.source, right.source, swap_a, swap_b
    request = Request(*sources, sizes, sum_type(kind), target.sink, device)
    _queue(left, right, request, target, buffer, graph)
    return buffer


def _queue(
    a: Operand, b: Operand, request: Request, target: Output, buffer: Buffer[Any], graph: CommandGraph | None
) -> None:
    """Queue the launches of a product."""
    plan = find_plan(request)
    rest = target.arguments
    operands = _operands(a, b, plan, graph)
    if plan.parts is None:
        assert plan.kernel is not None
        plan.kernel(buffer, *plan.numbers, *operands, *rest, graph=graph)
        return
    scratch: Buffer[Any] = function_buffer(plan.splits * buffer.size, request.kind, context=buffer.context)
    if plan.kernel is not None:
        plan.kernel(scratch, *plan.numbers, *operands, graph=graph)
    plan.parts(buffer, scratch, plan.splits, *rest, graph=graph)


def _operands(a: Operand, b: Operand, plan: Plan, graph: CommandGraph | None) -> list[Any]:
    """Return the operands as arguments of the kernel."""
    if plan.words is not None:
        return _queue_operand_words(a, b, plan, graph)
    if plan.panels is not None:
        request = plan.request
        return [
            queue_panels(a, plan.panels, request.sizes, of_b=False, swapped=request.transpose_a, graph=graph),
            queue_panels(b, plan.panels, request.sizes, of_b=True, swapped=request.transpose_b, graph=graph),
        ]
    first = [*a.arguments, *(a.views if plan.views[0] else ())]
    return [*first, *b.arguments, *(b.views if plan.views[1] else ())]


def _queue_operand_words(a: Operand, b: Operand, plan: Plan, graph: CommandGraph | None) -> list[Any]:
    """Return the operands with rows of whole words: as they are, or in scratch buffers."""
    sizes, request = plan.request.sizes, plan.request
    of_a, of_b = (sizes.rows, sizes.length), (sizes.length, sizes.columns)
    words: list[Any] = []
    for array, matrices, sides in (
        (a, sizes.a_batches, of_a[::-1] if request.transpose_a else of_a),
        (b, sizes.b_batches, of_b[::-1] if request.transpose_b else of_b),
    ):
        assert plan.words is not None
        if _has_words(array, sides[1]):
            words.append(array.arguments[0])
            continue
        count = matrices * sides[0] * _words_across(sides[1])
        target: Buffer[Any] = function_buffer(count, dt.uvec4, context=array.context)
        _queue_words(array, plan.words, count, sides[1], target, graph)
        words.append(target)
    return words


# ---- Arguments -------------------------------------------------------------------------------------------


def _parse_flag(value: object, name: str) -> bool:
    if not isinstance(value, bool):
        raise ArgumentTypeError(f"{name}: expected True or False, got {value!r}")
    return value


def _parse_number_dtype(kind: object) -> dt.DType:
    parsed = parse_dtype(kind)
    if not (dt.is_scalar(parsed) or dt.is_complex(parsed)):
        raise ArgumentTypeError(f"dtype: expected a dtype of numbers such as vd.float32, got {parsed.name}")
    return parsed


def _check_converts(kinds: tuple[dt.DType, ...], kind: dt.DType) -> None:
    """Raise TypeError where complex numbers would become real."""
    if not dt.is_complex(kind) and any(map(dt.is_complex, kinds)):
        raise ArgumentTypeError(f"dtype: products of complex numbers do not fit into {kind.name}")


def _find_sizes(
    a: tuple[int, ...], b: tuple[int, ...], swap_a: bool, swap_b: bool
) -> tuple[Sizes, tuple[int, ...]]:
    """Return the sizes of a product, and the shape of its result."""
    for shape, swap, name in ((a, swap_a, "a"), (b, swap_b, "b")):
        if not shape:
            raise ArgumentValueError(
                f"{name}: expected a matrix or a vector, got an array of no dimensions; multiply by it in "
                "a vd.map"
            )
        if swap and len(shape) == 1:
            raise ArgumentValueError(f"transpose_{name}: {name} has one axis; there are no two axes to swap")
    first = a if len(a) > 1 else (1, *a)
    second = b if len(b) > 1 else (*b, 1)
    rows, length = (first[-1], first[-2]) if swap_a else (first[-2], first[-1])
    inner, columns = (second[-1], second[-2]) if swap_b else (second[-2], second[-1])
    if inner != length:
        raise ArgumentValueError(
            f"a, b: a of the shape {a}{_describe_swap(swap_a)} has rows of {length} elements, b of the shape "
            f"{b}{_describe_swap(swap_b)} columns of {inner}; they must have as many"
        )
    shape = _broadcast_batches(a, b)
    batches = math.prod(shape)
    a_batches, b_batches = (1 if math.prod(own[:-2]) == 1 else batches for own in (first, second))
    shape += (rows,) * (len(a) > 1) + (columns,) * (len(b) > 1)
    if swap_a is swap_b is False and batches > 1 and b_batches == 1 and a_batches == batches:
        # many matrices times one: their rows are the rows of one matrix
        return Sizes(1, batches * rows, columns, length, 1, 1), shape
    return Sizes(batches, rows, columns, length, a_batches, b_batches), shape


def _broadcast_batches(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """Return the batch axes of the product of arrays of these shapes."""
    try:
        return np.broadcast_shapes(a[:-2], b[:-2])
    except ValueError:
        raise ArgumentValueError(
            f"a, b: a of the shape {a} has {math.prod(a[:-2])} matrices, b of the shape {b} has "
            f"{math.prod(b[:-2])}; one must have as many as the other, or 1, along each axis in front of them"
        ) from None


def _fill_batches(x: Operand, shape: tuple[int, ...]) -> Operand:
    """Return an operand with the batch axes of the product, where it has some of them."""
    have = x.shape[:-2]
    if math.prod(have) in (1, math.prod(shape)):
        return x
    missing = (0,) * (len(shape) - len(have))
    steps = [math.prod(x.shape[k + 1 :]) * (have[k] > 1) for k in range(len(have))]
    return stride_operand(x, (*shape, *x.shape[-2:]), (*missing, *steps, x.shape[-1], 1))


def _describe_swap(swap: bool) -> str:
    return ", transposed," if swap else ""
