"""Sums, means, extremes and the like of arrays: NumPy's functions, on the device."""

import builtins
from collections.abc import Sequence
from typing import Any

from vkdispatch.base.buffer import Buffer
from vkdispatch.base.dtype import bool_, component_type, is_complex, is_matrix
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.families.calls import array_function, variant_of
from vkdispatch.families.operands import (
    ArrayLike,
    DTypeLike,
    Number,
    OutputLike,
    is_number,
    parse_axis,
    parse_operand,
)
from vkdispatch.families.values import wide_type
from vkdispatch.reduce import accumulators, launching
from vkdispatch.reduce.accumulators import find_extreme_identity
from vkdispatch.reduce.launching import reduce_array
from vkdispatch.reduce.moments import make_extreme, make_extreme_index, make_masked_mean, make_moments


# the signature of `sum` and `prod`
def _reduce_total(  # noqa: PLR0913
    name: str,
    x: ArrayLike,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike = None,
    out: Buffer[Any] | None = None,
    keepdims: bool = False,
    initial: Number | None = None,
    where: accumulators.Mask = True,
    *,
    output_map: OutputLike = None,
    graph: CommandGraph | None = None,
) -> Buffer[Any]:
    array, call = launching.parse_call(x, axis, out, keepdims, output_map, graph)
    is_product = name == "prod"
    if is_product and is_matrix(array.var_type):
        raise ArgumentValueError("x: products of matrices depend on their order, which is not kept")
    total = launching.sum_type(name, array.var_type, dtype, array.context)
    array = launching.apply_mask(array, x, where, int(is_product))
    wide = wide_type(total)
    make = accumulators.make_product if is_product else accumulators.make_sum
    accumulator = accumulators.make_truth(is_product) if total is bool_ else make(array.var_type, wide, total)
    return launching.reduce_from(array, accumulator, call, initial, wide)


@variant_of(_reduce_total)
def sum() -> None:
    """Return the sum along axes.

    Parameters
    ----------
    x
        A buffer, or a map called with its arguments: numbers, vectors or matrices.
    axis
        An axis or several; None: all.
    dtype
        The dtype of the result and of the additions; types of fewer than 32 bits are accumulated in 32 bits.
        With bool, the sum is true if any element is, and the product if all are. None is int64 or uint64 for
        bool and integers of fewer than 64 bits, else the dtype of `x`.
    out
        A buffer for the result, with its shape and dtype; None creates one.
    keepdims
        Whether to keep the reduced axes, with length one.
    initial
        A start value; None is 0.
    where
        A boolean mask, which broadcasts to the shape of `x`. Only elements where it is true are reduced.
    output_map
        A `vd.map` that is applied to each result; its first parameter is the value.
    graph
        The graph to record into; None means the thread's `vd.global_graph()`.

    Returns
    -------
    Buffer
        Has the shape of `x` without the reduced axes; the sum of all elements has no axes. The call queues
        the work and does not wait for it. The sum of no elements is `initial`, or 0.

    Raises
    ------
    TypeError, ValueError
        An argument is invalid, or there is no such axis.
    NotImplementedError
        The device lacks the integer type of the result; pass a `dtype`.

    Examples
    --------
    >>> x = vd.asbuffer(np.array([[1, 2], [3, 4]], np.float32))
    >>> vd.sum(x, axis=0).read(0)
    array([4., 6.], dtype=float32)
    >>> float(vd.sum(x))
    10.0
    """


@variant_of(_reduce_total)
def prod() -> None:
    """Return the product along axes; vectors are multiplied component by component.

    Parameters, dtypes and errors are those of `sum`. `initial` None is 1, and so is the product of no
    elements.

    Examples
    --------
    >>> x = vd.asbuffer(np.array([[1, 2], [3, 4]], np.float32))
    >>> vd.prod(x, axis=0).read(0)
    array([3., 8.], dtype=float32)
    """


@array_function
def mean(
    x: ArrayLike,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike = None,
    out: Buffer[Any] | None = None,
    keepdims: bool = False,
    *,
    where: accumulators.Mask = True,
    output_map: OutputLike = None,
    graph: CommandGraph | None = None,
) -> Buffer[Any]:
    """Return the mean along axes.

    Parameters are those of `sum`. The dtype of the result is float64 for integers and booleans, else that of
    the elements; float16 and bfloat16 are accumulated in float32. The mean of no elements is NaN, with a
    RuntimeWarning unless `where` is a mask.

    Examples
    --------
    >>> x = vd.asbuffer(np.array([[1, 2], [3, 4]], np.float32))
    >>> vd.mean(x, axis=0).read(0)
    array([2., 3.], dtype=float32)
    """
    array, call = launching.parse_call(x, axis, out, keepdims, output_map, graph)
    kind = launching.mean_type("mean", array.var_type, dtype, array.context)
    total = wide_type(kind)
    mask = accumulators.parse_mask(where, x)
    if mask is not None:
        launching.require_numbers("mean with where", array.var_type)
        part = component_type(total)
        some = parse_operand(accumulators.pair_with_mask(x, mask, part))
        return reduce_array(
            some, make_masked_mean(accumulators.mask_vector_type(array.var_type, part), kind), call
        )
    count = launching.count_or_warn(array, call, "Mean of empty slice.", 0)
    return reduce_array(
        array, accumulators.make_sum(array.var_type, total, kind, True), call, (float(count),)
    )


def _parse_ddof(name: str, ddof: float, correction: float | None) -> float:
    if correction is not None:
        if ddof != 0:
            raise ArgumentValueError(
                f"{name}: ddof and correction are the same argument; pass only one of them"
            )
        ddof = correction
    if not is_number(ddof):
        raise ArgumentTypeError(f"ddof: expected a number, got {ddof!r}")
    return ddof


# the signature of `var` and `std`
def _reduce_moments(  # noqa: PLR0913
    name: str,
    x: ArrayLike,
    axis: int | Sequence[int] | None = None,
    dtype: DTypeLike = None,
    out: Buffer[Any] | None = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: accumulators.Mask = True,
    correction: float | None = None,
    output_map: OutputLike = None,
    graph: CommandGraph | None = None,
) -> Buffer[Any]:
    ddof = _parse_ddof(name, ddof, correction)
    array, call = launching.parse_call(x, axis, out, keepdims, output_map, graph)
    if is_matrix(array.var_type):
        raise ArgumentValueError(f"x: expected numbers or vectors, got {array.var_type.name}")
    launching.check_real(name, array.var_type, dtype)
    kind = launching.mean_type(name, array.var_type, dtype, array.context)
    total, result_kind, root = wide_type(kind), launching.real_type(kind), name == "std"
    mask = accumulators.parse_mask(where, x)
    if mask is not None:
        launching.require_numbers(f"{name} with where", array.var_type)
        part = component_type(total)
        pairs = parse_operand(accumulators.pair_with_mask(x, mask, part))
        vector = accumulators.mask_vector_type(array.var_type, part)
        masked_moments = make_moments(vector, total, result_kind, masked=True, root=root)
        return reduce_array(pairs, masked_moments, call, (float(ddof),))
    count = launching.count_or_warn(array, call, "Degrees of freedom <= 0 for slice", ddof)
    shifted = not array.source.is_writing
    moments = make_moments(array.var_type, total, result_kind, root=root, shifted=shifted)
    return reduce_array(array, moments, call, (builtins.max(float(count - ddof), 0.0),))


@variant_of(_reduce_moments)
def var() -> None:
    """Return the variance along axes.

    It takes one pass over the memory, and is accurate even if the mean is much larger than the deviations.

    Parameters
    ----------
    x, axis, dtype, out, keepdims, where, output_map, graph
        As for `mean`. The variance of complex numbers is real; vectors have one for each component.
    ddof, correction
        The divisor is the number of elements minus `ddof`; `correction` is another name for `ddof`.

    Raises
    ------
    TypeError, ValueError, NotImplementedError
        As for `mean`; or both `ddof` and `correction` are passed.

    Examples
    --------
    >>> x = vd.asbuffer(np.array([1, 3, 5, 7], np.float32))
    >>> float(vd.var(x))
    5.0
    """


@variant_of(_reduce_moments)
def std() -> None:
    """Return the standard deviation along axes, the square root of `var`, with the same parameters.

    Examples
    --------
    >>> x = vd.asbuffer(np.array([1, 3, 1, 3], np.float32))
    >>> float(vd.std(x))
    1.0
    """


# the signature of `min` and `max`
def _reduce_extreme(  # noqa: PLR0913
    name: str,
    x: ArrayLike,
    axis: int | Sequence[int] | None = None,
    out: Buffer[Any] | None = None,
    keepdims: bool = False,
    initial: Number | None = None,
    where: accumulators.Mask = True,
    *,
    output_map: OutputLike = None,
    graph: CommandGraph | None = None,
) -> Buffer[Any]:
    array, call = launching.parse_call(x, axis, out, keepdims, output_map, graph)
    kind, largest = array.var_type, name == "max"
    launching.require_order(name, kind)
    word = "maximum" if largest else "minimum"
    if initial is None:
        if accumulators.parse_mask(where, x) is not None:
            raise ArgumentValueError(
                f"{name}: reduction operation {word!r} does not have an identity, so to use a where mask one "
                "has to specify 'initial'"
            )
        launching.check_not_empty(
            array, call, f"zero-size array to reduction operation {word} which has no identity"
        )
    worst = find_extreme_identity(kind, largest)
    array = launching.apply_mask(array, x, where, (worst, worst) if is_complex(kind) else worst)
    return launching.reduce_from(array, make_extreme(kind, largest), call, initial, wide_type(kind))


@variant_of(_reduce_extreme)
def min() -> None:
    """Return the minimum along axes; NaN if an element is NaN.

    Complex numbers are ordered by their real parts, then by their imaginary parts. Vectors are compared
    component by component. Parameters are those of `sum`; `where` and empty arrays require `initial`.

    Raises
    ------
    TypeError, ValueError
        As for `sum`; or there are no elements and no `initial`.

    Examples
    --------
    >>> x = vd.asbuffer(np.array([[1, 5], [7, 0]], np.float32))
    >>> vd.min(x, axis=1).read(0)
    array([1., 0.], dtype=float32)
    """


@variant_of(_reduce_extreme)
def max() -> None:
    """Return the maximum along axes; see `min`.

    Examples
    --------
    >>> x = vd.asbuffer(np.array([[1, 5], [7, 0]], np.float32))
    >>> vd.max(x, axis=1).read(0)
    array([5., 7.], dtype=float32)
    """


def _find_extreme(
    name: str,
    x: ArrayLike,
    axis: int | None = None,
    out: Buffer[Any] | None = None,
    *,
    keepdims: bool = False,
    dtype: DTypeLike = None,
    output_map: OutputLike = None,
    graph: CommandGraph | None = None,
) -> Buffer[Any]:
    along = None if axis is None else parse_axis(axis, len(parse_operand(x).shape))
    array, call = launching.parse_call(x, along, out, keepdims, output_map, graph)
    launching.require_order(name, array.var_type, numbers=True)
    kind = launching.index_type(name, array.var_type, dtype, array.context)
    if call.length(array.shape) == 0:  # as NumPy, also where there are no results
        raise ArgumentValueError(f"x: attempt to get {name} of an empty sequence")
    accumulator = make_extreme_index(
        array.var_type, name == "argmax", launching.choose_index_type(array, call), kind
    )
    return reduce_array(array, accumulator, call)


@variant_of(_find_extreme)
def argmin() -> None:
    """Return the index of the smallest element: the first of equal ones, or the first NaN.

    Parameters
    ----------
    axis
        The axis to search along; None searches the flattened array.
    dtype
        The dtype of the result; None is int64.
    x, out, keepdims, output_map, graph
        As for `sum`.

    Raises
    ------
    TypeError, ValueError
        As for `sum`; or there are no elements.
    NotImplementedError
        The device lacks 64-bit integers; pass a `dtype`.

    Examples
    --------
    >>> x = vd.asbuffer(np.array([[1, 5], [7, 0]], np.float32))
    >>> vd.argmin(x, axis=1).read(0)
    array([0, 1])
    """


@variant_of(_find_extreme)
def argmax() -> None:
    """Return the index of the largest element; see `argmin`.

    Examples
    --------
    >>> x = vd.asbuffer(np.array([[1, 5], [7, 0]], np.float32))
    >>> vd.argmax(x, axis=1).read(0)
    array([1, 0])
    """


def _reduce_truth(
    name: str,
    x: ArrayLike,
    axis: int | Sequence[int] | None = None,
    out: Buffer[Any] | None = None,
    keepdims: bool = False,
    *,
    where: accumulators.Mask = True,
    output_map: OutputLike = None,
    graph: CommandGraph | None = None,
) -> Buffer[Any]:
    array, call = launching.parse_call(x, axis, out, keepdims, output_map, graph)
    launching.require_numbers(name, array.var_type)
    array = launching.apply_mask(array, x, where, 1 if name == "all" else 0)
    return reduce_array(array, accumulators.make_truth(name == "all"), call)


@variant_of(_reduce_truth)
def any() -> None:
    """Return whether any element is nonzero; NaN is nonzero. See `sum` for the parameters.

    Examples
    --------
    >>> x = vd.asbuffer(np.array([[0, 0], [0, 1]], np.int32))
    >>> vd.any(x, axis=1).read(0)
    array([False,  True])
    """


@variant_of(_reduce_truth)
def all() -> None:
    """Return whether all elements are nonzero; NaN is nonzero. See `sum` for the parameters.

    Examples
    --------
    >>> x = vd.asbuffer(np.array([[1, 0], [1, 1]], np.int32))
    >>> vd.all(x, axis=1).read(0)
    array([False,  True])
    """


@array_function
def count_nonzero(
    x: ArrayLike,
    axis: int | Sequence[int] | None = None,
    *,
    keepdims: bool = False,
    out: Buffer[Any] | None = None,
    dtype: DTypeLike = None,
    output_map: OutputLike = None,
    graph: CommandGraph | None = None,
) -> Buffer[Any]:
    """Count the nonzero elements; NaN is nonzero.

    Parameters
    ----------
    dtype
        The dtype of the result; None is int64.
    x, axis, out, keepdims, output_map, graph
        As for `sum`.

    Examples
    --------
    >>> int(vd.count_nonzero(vd.asbuffer(np.array([0, 3, 0, 5], np.int32))))
    2
    """
    array, call = launching.parse_call(x, axis, out, keepdims, output_map, graph)
    launching.require_numbers("count_nonzero", array.var_type)
    kind = launching.index_type("count_nonzero", array.var_type, dtype, array.context)
    return reduce_array(array, accumulators.make_count(launching.choose_index_type(array, call), kind), call)
