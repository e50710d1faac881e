"""Norms of vectors and matrices, and dot products."""

import math
from collections.abc import Sequence
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base import dtype as dtypes
from vkdispatch.base.buffer import Buffer
from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, UnsupportedError
from vkdispatch.base.record import replace
from vkdispatch.codegen.annotations import buffer, constant
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.families.calls import array_function
from vkdispatch.families.operands import ArrayLike, DTypeLike, Operand, OutputLike, parse_operand
from vkdispatch.families.tuning import memoize
from vkdispatch.families.values import wide_type
from vkdispatch.reduce import launching
from vkdispatch.reduce.accumulators import cast_value, make_sum, make_truth
from vkdispatch.reduce.launching import Call, reduce_array
from vkdispatch.reduce.moments import find_short_power, magnitude, make_extreme, make_norm, raise_to
from vkdispatch.shader.map import MappingFunction, mapped_index


@array_function
def norm(
    x: ArrayLike,
    ord: float | str | None = None,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    dtype: DTypeLike = None,
    out: Buffer[Any] | None = None,
    output_map: OutputLike = None,
    graph: CommandGraph | None = None,
) -> Buffer[Any]:
    """Return a norm of vectors or matrices, like `numpy.linalg.norm`, except those of singular values.

    Parameters
    ----------
    x
        A buffer of numbers, or a map called with its arguments.
    ord
        None is the root of the sum of squared magnitudes, over any axes. For vectors (one axis): `inf` and
        `-inf` are the largest and the smallest magnitude, 0 is the number of nonzero elements, and any other
        number p is the sum of magnitudes to the power p, to the power 1/p. For matrices (two axes): "fro" is
        the same as None; 1 and -1 are the largest and the smallest sum of magnitudes of a column, `inf` and
        `-inf` of a row.
    axis
        The axis of vectors, or the axes of the rows and the columns of matrices; None for all.
    keepdims
        Whether to keep these axes, with length one.
    dtype
        The dtype of the result, a float. None is that of the magnitudes, float64 for integers.
    out, output_map, graph
        As for `vd.sum`.

    Returns
    -------
    Buffer
        A norm for each vector or matrix. Sums are not scaled: as in NumPy, squares of numbers larger than the
        square root of the largest float are infinite.

    Raises
    ------
    TypeError, ValueError
        An argument is invalid, or there are no elements for a minimum.
    NotImplementedError
        The norm needs singular values, or the device lacks float64; pass a `dtype` then.

    Examples
    --------
    >>> float(vd.norm(vd.asbuffer(np.array([3, 4], np.float32))))
    5.0
    """
    array, call = launching.parse_call(x, axis, out, keepdims, output_map, graph)
    launching.require_numbers("norm", array.var_type)
    kind = launching.norm_type(array.var_type, dtype, array.context)
    total = wide_type(kind)
    if ord is None:
        return reduce_array(array, make_norm(array.var_type, total, kind, "2"), call)
    if len(call.axes) == 1:
        return _reduce_vectors(x, array, call, _parse_power(ord, "vectors"), kind)
    if len(call.axes) == 2:
        return _reduce_matrices(array, call, ord, kind)
    raise ArgumentValueError(
        f"ord: over {len(call.axes)} axes only the norm None is defined; name one axis for norms of "
        "vectors, or two for norms of matrices"
    )


def _parse_power(ord: Any, what: str) -> float:
    if isinstance(ord, (bool, str, complex)) or not hasattr(ord, "__float__"):
        choices = "None, a number, or inf" if what == "vectors" else "None, 'fro', 1, -1, inf or -inf"
        kind = ArgumentValueError if isinstance(ord, str) else ArgumentTypeError
        raise kind(f"ord: expected {choices} for {what}, got {ord!r}")
    return float(ord)


def _reduce_vectors(x: Any, array: Operand, call: Call, power: float, kind: DType) -> Buffer[Any]:
    total = wide_type(kind)
    if math.isnan(power):
        raise ArgumentValueError("ord: expected a number, got nan")
    if math.isinf(power):
        if power < 0:
            launching.check_not_empty(
                array, call, "zero-size array to reduction operation minimum which has no identity"
            )
        largest = power > 0
        return launching.reduce_from(
            parse_operand(_make_magnitudes(array.var_type, kind)(x)),
            make_extreme(kind, largest),
            call,
            0 if largest else None,
            total,
        )
    if power in (0, 1, 2):
        return reduce_array(array, make_norm(array.var_type, total, kind, str(int(power))), call)
    short = find_short_power(power)
    powers = _make_powers(array.var_type, total, short)
    mapped = powers(x) if short is not None else powers(x, power)
    return reduce_array(parse_operand(mapped), make_norm(total, total, kind, "p"), call, (1 / power,))


def _reduce_matrices(array: Operand, call: Call, ord: Any, kind: DType) -> Buffer[Any]:
    total = wide_type(kind)
    if isinstance(ord, str) and ord in ("fro", "f"):
        return reduce_array(array, make_norm(array.var_type, total, kind, "2"), call)
    if (isinstance(ord, str) and ord == "nuc") or (
        not isinstance(ord, str) and abs(_parse_power(ord, "")) == 2
    ):
        raise UnsupportedError(
            f"norm: ord={ord!r} of matrices needs singular values, which vkdispatch does not compute; "
            "use 'fro', 1 or inf, or numpy.linalg.norm(x.read(0), ...)"
        )
    power = _parse_power(ord, "matrices")
    if abs(power) != 1 and not math.isinf(power):
        raise ArgumentValueError(f"ord: expected None, 'fro', 1, -1, inf or -inf for matrices, got {ord!r}")
    row, column = call.axes
    summed, largest = (row if abs(power) == 1 else column), power > 0
    inner = replace(call, axes=(summed,), keepdims=True, out=None, output_map=None)
    if not largest:
        shape: tuple[int, ...] = inner.shape(array.shape)
        results: int = math.prod(call.shape(array.shape))
        if call.length(shape) == 0 and results:
            raise ArgumentValueError(
                "x: zero-size array to reduction operation minimum which has no identity"
            )
    sums = reduce_array(array, make_norm(array.var_type, total, total, "1"), inner)
    return launching.reduce_from(
        parse_operand(sums), make_extreme(total, largest, kind), call, 0 if largest else None, total
    )


@memoize
def _make_magnitudes(kind: DType, out_type: DType) -> MappingFunction:
    total = wide_type(out_type)
    return MappingFunction([kind], out_type, lambda value: magnitude(value, total))


@memoize
def _make_powers(kind: DType, total: DType, short: float | None) -> MappingFunction:
    if short is not None:
        return MappingFunction(
            [kind], total, lambda value: raise_to(magnitude(value, total).to_register(), short)
        )

    def powers(value: Any, power: Any) -> Any:
        return raise_to(magnitude(value, total).to_register(), power)

    return MappingFunction([kind, constant[total]], total, powers)


@array_function
def dot(
    a: ArrayLike,
    b: ArrayLike,
    out: Buffer[Any] | None = None,
    *,
    output_map: OutputLike = None,
    graph: CommandGraph | None = None,
) -> Buffer[Any]:
    """Return the dot product of two vectors, or of each row of an array with a vector.

    Parameters
    ----------
    a
        A buffer of numbers with one axis or more, or a map called with its arguments.
    b
        A one-dimensional array of the length of the last axis of `a`; a buffer if `a` has several axes.
        Complex numbers are not conjugated.
    out, output_map, graph
        As for `vd.sum`.

    Returns
    -------
    Buffer
        Has the shape of `a` without its last axis, and NumPy's dtype for products of the two. Integers wrap
        around, and booleans are combined with "or". Products of float16 and bfloat16 are accumulated in
        float32.

    Raises
    ------
    TypeError, ValueError
        An argument is not an array of numbers, or the shapes do not match. `vd.matmul` multiplies matrices.

    Examples
    --------
    >>> a = vd.asbuffer(np.array([1, 2, 3], np.float32))
    >>> b = vd.asbuffer(np.array([4, 5, 6], np.float32))
    >>> float(vd.dot(a, b))
    32.0
    """
    first, second = parse_operand(a, "a"), parse_operand(b, "b")
    launching.require_numbers("dot", first.var_type)
    launching.require_numbers("dot", second.var_type)
    if len(second.shape) > 1:
        raise ArgumentValueError(
            f"b: expected a vector, got an array of the shape {second.shape}; vd.matmul multiplies matrices"
        )
    if not first.shape or not second.shape:
        raise ArgumentValueError(
            "a, b: expected vectors, got an array of no dimensions; multiply by it in a vd.map"
        )
    if first.shape[-1] != second.shape[0]:
        raise ArgumentValueError(
            f"a, b: the last axis of a, of the shape {first.shape}, and b, of the shape {second.shape}, "
            "differ in length"
        )
    kind = launching.common_type(first.var_type, second.var_type)
    several = len(first.shape) > 1
    if several and not isinstance(b, Buffer):
        raise ArgumentTypeError("b: expected a vd.Buffer if a has several axes, got a map")
    array = parse_operand(_make_products(first.var_type, second.var_type, kind, several)(a, b), "dot")
    call = Call((len(first.shape) - 1,), out=out, output_map=output_map, graph=graph)
    if kind is dtypes.bool_:
        return reduce_array(array, make_truth(False), call)
    return reduce_array(array, make_sum(kind, wide_type(kind), kind), call)


@memoize
def _make_products(a: DType, b: DType, kind: DType, several: bool) -> MappingFunction:
    wide = wide_type(kind)

    def product(x: Any, y: Any) -> Any:
        if kind is dtypes.bool_:
            return vc.all(x, y)
        return cast_value(x, wide).to_register() * cast_value(y, wide).to_register()

    # error messages name the parameters as the caller does
    def dot(a: Any, b: Any) -> Any:
        return product(a, b)

    def dot_rows(a: Any, b: Any) -> Any:
        return product(a, b[mapped_index() % b.shape.w])

    if several:
        return MappingFunction([a, buffer[b]], kind, dot_rows)
    return MappingFunction([a, b], kind, dot)
