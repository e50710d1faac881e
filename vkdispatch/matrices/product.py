"""`vd.matmul`."""

from collections.abc import Callable
from typing import Any

from vkdispatch.arrays.calls import array_function
from vkdispatch.arrays.mapping import Source
from vkdispatch.arrays.operand import Operand, operand, plain_source
from vkdispatch.arrays.output import Output, output
from vkdispatch.arrays.results import result
from vkdispatch.base.buffer import Buffer
from vkdispatch.base.context import get_context
from vkdispatch.base.devices import MatrixProduct
from vkdispatch.base.dtype import DType, bfloat16, float16, float32, is_complex, is_dtype, is_scalar, uvec4
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.base.record import record, replace
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.matrices import planning
from vkdispatch.matrices.arithmetic import check_numbers, result_type, sum_type
from vkdispatch.matrices.cooperative import CooperativeForm, cooperative_kernel
from vkdispatch.matrices.factors import Factors, Sizes
from vkdispatch.matrices.packing import packed, words_of
from vkdispatch.matrices.partials import PartialsForm, partials_kernel
from vkdispatch.matrices.planning import (
    cooperative_tile_for,
    is_processor,
    is_small,
    lanes_across,
    lanes_along,
    lanes_of_parts,
    subgroup_product,
    tile_for,
    whole_loads,
)
from vkdispatch.matrices.small import small_kernel
from vkdispatch.matrices.tiles import TileForm, tile_kernel
from vkdispatch.matrices.vectors import VectorForm, vector_kernel
from vkdispatch.shader.map import MappedArray
from vkdispatch.shader.shader_function import ShaderFunction

_MOST = 0xFFFFFFFF
_HALVES = (float16, bfloat16)


@array_function
def matmul(
    a: Buffer[Any] | MappedArray,
    b: Buffer[Any] | MappedArray,
    out: Buffer[Any] | None = None,
    *,
    transpose_a: bool = False,
    transpose_b: bool = False,
    dtype: DType | None = None,
    output_map: Any = None,
    graph: CommandGraph | None = None,
) -> Buffer[Any]:
    """Return the product of two matrices, like `numpy.matmul`.

    Parameters
    ----------
    a, b
        Buffers of numbers, or maps called with their arguments, of 1 to 3 axes. The last two are the
        matrix's; a third in front counts matrices, and where one operand has 1 (or no such axis), its matrix
        is multiplied by all of the other's. One axis is a row in front, a column behind, and is left out of
        the result.
    out
        The buffer for the result; None makes one. It must be none of the operands'.
    transpose_a, transpose_b
        Take the matrices of an operand of 2 or 3 axes with rows and columns swapped; nothing is copied.
    dtype
        dtype that the operands are converted to, and that of the result; None is NumPy's for the two. Sums
        are kept in that type, and in 32 bits where it has fewer: products of float16 and bfloat16 are added
        up in float32, and with `dtype=vd.float32` the result is not rounded. Integers wrap around, truth
        values have "or" for a sum; complex numbers are not conjugated.
    output_map
        A map that each sum goes through, such as `relu(bias)`; its index is that in the result. It is part
        of the kernel: what it is given is not rounded to `dtype`.
    graph
        Where to record; None takes the thread's `vd.global_graph()`.

    Raises
    ------
    TypeError
        An argument is not what it should be.
    ValueError
        The shapes do not go together, an operand has no axes, or `out` does not fit.

    See Also
    --------
    vkdispatch.codegen.matrix_multiply_add : what kernels of your own multiply matrices with.
    """
    left, right = operand(a, "a"), operand(b, "b")
    check_numbers(left.var_type, "a")
    check_numbers(right.var_type, "b")
    swap_a, swap_b = _flag(transpose_a, "transpose_a"), _flag(transpose_b, "transpose_b")
    sizes, shape = _sizes(left.shape, right.shape, swap_a, swap_b)
    kind = result_type(left.var_type, right.var_type) if dtype is None else _checked_dtype(dtype)
    check_converts((left.var_type, right.var_type), kind)
    target = output(output_map, kind)
    buffer = result(out, shape, target.out_type, left.context)
    for array, name in ((left, "a"), (right, "b")):
        if any(argument is buffer for argument in array.arguments):
            raise ArgumentValueError(f"out: {name} is read while out is written; give another buffer")
    if sizes.size:
        product = Product(left, right, swap_a, swap_b, sizes, sum_type(kind), target, buffer, graph)
        launch_product(product)
    return buffer


@record(eq=False)
class Product:
    """A product that is to be queued."""

    a: Operand
    b: Operand
    transpose_a: bool
    transpose_b: bool
    sizes: Sizes
    kind: DType
    target: Output
    result: Buffer[Any]
    graph: CommandGraph | None


def launch_product(product: Product) -> None:
    """Queue the launches of a product that has elements."""
    sizes = product.sizes
    if sizes.length == 0:
        # the sum of nothing: of no parts
        scratch: Buffer[Any] = Buffer(1, product.kind)
        _add_parts(product, replace(sizes, splits=0), scratch)
        return
    if max(sizes.rows, sizes.columns, sizes.batches) > _MOST:
        raise ArgumentValueError(f"matmul: sides of more than {_MOST} elements are not supported")
    product = _without_writing_maps(product)
    if is_small(sizes):
        kernel = small_kernel(_factors(product, sizes, 1, 1))
        kernel(*_arguments(product, product.result, sizes, 1, 1), graph=product.graph)
    elif min(sizes.rows, sizes.columns) == 1:
        _vector(product)
    elif (device := _cooperative_product(product)) is not None:
        _cooperative(product, device)
    else:
        _tiles(product)


def _cooperative_product(product: Product) -> MatrixProduct | None:
    """Return the device's product of cooperative matrices for this one, if it has one."""
    kind = product.a.var_type
    sizes = product.sizes
    fits = kind in _HALVES and product.b.var_type is kind and product.kind is float32
    if not fits or min(sizes.rows, sizes.columns, sizes.length) < planning.tuning.least_cooperative:
        return None
    return subgroup_product(get_context().device_infos[0], kind)


def _cooperative(product: Product, device: MatrixProduct) -> None:
    context = get_context()
    sizes, kind, graph = product.sizes, product.a.var_type, product.graph
    height, width = (sizes.length, sizes.rows) if product.transpose_a else (sizes.rows, sizes.length)
    a = words_of(product.a, kind, sizes.a_batches, height, width, graph)
    height, width = (sizes.columns, sizes.length) if product.transpose_b else (sizes.length, sizes.columns)
    b = words_of(product.b, kind, sizes.b_batches, height, width, graph)
    tile, sizes = cooperative_tile_for(sizes, cpu=is_processor(context))
    words = plain_source(uvec4)
    swapped = product.transpose_a, product.transpose_b
    factors = Factors(words, words, *swapped, product.kind, product.target.sink, sizes.splits > 1)
    stored = factors.sink.mapping is None and factors.sink.out_type in (float16, float32)
    form = CooperativeForm(
        *(factors, kind, tile.rows, tile.columns, tile.step, tile.height, tile.width),
        *(device.m, device.n, device.k, context.device_infos[0].sub_group_size),
        ragged=any(size % tile.step for size in (sizes.length, sizes.chunk)),
        whole=(stored or factors.partial) and not (sizes.rows % tile.rows or sizes.columns % tile.columns),
    )
    rest = () if factors.partial else product.target.arguments

    def arguments(target: Buffer[Any]) -> list[Any]:
        return [target, *sizes.numbers, a.buffer, b.buffer, *rest, a.pitch, b.pitch]

    _queue(product, cooperative_kernel(form), sizes, arguments)


def _tiles(product: Product) -> None:
    cpu = is_processor(get_context())
    tile, sizes = tile_for(product.sizes, product.kind.item_size, cpu=cpu)
    together = [
        _together(array.source, sizes, along=along, side=side, most=most)
        for array, along, side, most in (
            (product.a, not product.transpose_a, sizes.rows, tile.rows),
            (product.b, product.transpose_b, sizes.columns, tile.columns),
        )
    ]
    factors = _factors(product, sizes, *together)
    ragged = any(size % tile.step for size in (sizes.length, sizes.chunk))
    sides = tile.rows, tile.columns, tile.step, tile.height, tile.width
    kernel = tile_kernel(TileForm(factors, *sides, tile.unroll, ragged))
    _launch(product, kernel, sizes, *together)


def _together(source: Source, sizes: Sizes, *, along: bool, side: int, most: int) -> int:
    """Return how many elements of a matrix a load takes."""
    fits = whole_loads(sizes, along=along, side=side, together=source.together)
    return source.together if fits and source.together <= most else 1


def _vector(product: Product) -> None:
    cpu = is_processor(get_context())
    turned = product.sizes.rows == 1 and product.sizes.columns > 1
    matrix, vector = (product.b, product.a) if turned else (product.a, product.b)
    along = product.transpose_b if turned else not product.transpose_a
    sizes = product.sizes
    side = sizes.columns if turned else sizes.rows
    together = matrix.source.together
    if not whole_loads(sizes, along=along, side=side, together=together) or (
        along and vector.source.together != together
    ):
        together = 1
    lanes, sizes = (lanes_along if along else lanes_across)(sizes, together, cpu=cpu)
    of_vector = together if along else 1
    both = (of_vector, together) if turned else (together, of_vector)
    factors = _factors(product, sizes, *both)
    kernel = vector_kernel(VectorForm(factors, turned, along, lanes, 4))
    _launch(product, kernel, sizes, *both)


def _launch(product: Product, kernel: ShaderFunction, sizes: Sizes, *together: int) -> None:
    """Queue a kernel that takes the operands as they are."""
    _queue(product, kernel, sizes, lambda target: _arguments(product, target, sizes, *together))


def _queue(
    product: Product, kernel: ShaderFunction, sizes: Sizes, arguments: Callable[[Buffer[Any]], list[Any]]
) -> None:
    """Queue a kernel, and the one that adds up its parts."""
    if sizes.splits == 1:
        kernel(*arguments(product.result), graph=product.graph)
        return
    scratch: Buffer[Any] = Buffer((sizes.splits, sizes.size), product.kind)
    kernel(*arguments(scratch), graph=product.graph)
    _add_parts(product, sizes, scratch)


def _add_parts(product: Product, sizes: Sizes, scratch: Buffer[Any]) -> None:
    factors = _factors(product, sizes, 1, 1)
    kernel = partials_kernel(PartialsForm(replace(factors, partial=False), lanes_of_parts(sizes)))
    kernel(product.result, scratch, sizes.splits, *product.target.arguments, graph=product.graph)


def _factors(product: Product, sizes: Sizes, *together: int) -> Factors:
    a, b = (
        array.source if count > 1 else array.source.elementwise()
        for array, count in zip((product.a, product.b), together, strict=True)
    )
    swapped = product.transpose_a, product.transpose_b
    return Factors(a, b, *swapped, product.kind, product.target.sink, sizes.splits > 1)


def _arguments(product: Product, target: Buffer[Any], sizes: Sizes, *together: int) -> list[Any]:
    given: list[Any] = [target, *sizes.numbers]
    for array, count in zip((product.a, product.b), together, strict=True):
        given += array.arguments
        given += array.views if count > 1 else ()
    return [*given, *(product.target.arguments if sizes.splits == 1 else ())]


def _without_writing_maps(product: Product) -> Product:
    """Return the product with operands whose maps write to buffers evaluated, once for each element."""
    a, b = (
        packed(array, product.graph) if array.source.stores else array for array in (product.a, product.b)
    )
    return replace(product, a=a, b=b)


# ---- what is given -------------------------------------------------------------------------------


def _flag(value: object, name: str) -> bool:
    if not isinstance(value, bool):
        raise ArgumentTypeError(f"{name}: expected True or False, got {value!r}")
    return value


def _checked_dtype(kind: Any) -> DType:
    if not is_dtype(kind) or not (is_scalar(kind) or is_complex(kind)):
        raise ArgumentTypeError(f"dtype: expected a dtype of numbers such as vd.float32, got {kind!r}")
    checked: DType = kind
    return checked


def check_converts(kinds: tuple[DType, ...], kind: DType) -> None:
    """Raise TypeError where complex numbers would become real."""
    if not is_complex(kind) and any(map(is_complex, kinds)):
        raise ArgumentTypeError(f"dtype: products of complex numbers do not fit into {kind.name}")


def _sizes(
    a: tuple[int, ...], b: tuple[int, ...], swap_a: bool, swap_b: bool
) -> tuple[Sizes, tuple[int, ...]]:
    """Return the sizes of a product, and the shape of its result."""
    for shape, swap, name in ((a, swap_a, "a"), (b, swap_b, "b")):
        if not shape:
            raise ArgumentValueError(f"{name}: a number is no matrix; multiply by it in a vd.map")
        if swap and len(shape) == 1:
            raise ArgumentValueError(f"transpose_{name}: {name} has one axis, and nothing to swap")
    first = a if len(a) > 1 else (1, *a)
    second = b if len(b) > 1 else (*b, 1)
    rows, length = (first[-1], first[-2]) if swap_a else (first[-2], first[-1])
    inner, columns = (second[-1], second[-2]) if swap_b else (second[-2], second[-1])
    if inner != length:
        raise ArgumentValueError(
            f"matmul: a of the shape {a}{_swapped(swap_a)} has rows of {length} elements, b of the shape "
            f"{b}{_swapped(swap_b)} columns of {inner}; they must have as many"
        )
    a_batches, b_batches = (shape[0] if len(shape) == 3 else 1 for shape in (first, second))
    if a_batches != b_batches and 1 not in (a_batches, b_batches):
        raise ArgumentValueError(
            f"matmul: a of the shape {a} has {a_batches} matrices, b of the shape {b} has {b_batches}; one "
            "must have as many as the other, or 1"
        )
    batches = b_batches if a_batches == 1 else a_batches
    shape = (batches,) if max(len(first), len(second)) == 3 else ()
    shape += (rows,) * (len(a) > 1) + (columns,) * (len(b) > 1)
    if swap_a is swap_b is False and batches > 1 and b_batches == 1 and a_batches == batches:
        # many matrices by the same one: their rows are those of one
        return Sizes(1, batches * rows, columns, length, 1, 1), shape
    return Sizes(batches, rows, columns, length, a_batches, b_batches), shape


def _swapped(swap: bool) -> str:
    return ", transposed," if swap else ""
