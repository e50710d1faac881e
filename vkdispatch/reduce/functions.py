"""Sums, means, extremes and the like of arrays: NumPy's functions, on the device."""

import builtins
from typing import Any

from vkdispatch.arrays.axes import parse_axis
from vkdispatch.arrays.calls import array_function
from vkdispatch.arrays.maps.operand import parse_operand
from vkdispatch.arrays.numbers import is_number
from vkdispatch.arrays.values.elements import wide_type
from vkdispatch.base.buffer import Buffer
from vkdispatch.base.dtype import bool_, component_type, is_complex, is_matrix
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.reduce.arguments import (
    asked,
    check_not_empty,
    counted_or_warned,
    counting_where,
    place_type,
    started,
)
from vkdispatch.reduce.masks import checked_mask, counted, mask_vector
from vkdispatch.reduce.measures import (
    adding,
    counting,
    extreme,
    extreme_place,
    multiplying,
    truth,
)
from vkdispatch.reduce.moments import mean_of_some, moments
from vkdispatch.reduce.operations import identity_of_extreme
from vkdispatch.reduce.reducing import reduced
from vkdispatch.reduce.result_types import (
    check_real,
    index_type,
    mean_type,
    numbers_only,
    ordered,
    real_type,
    sum_type,
)


@array_function
def sum(
    x: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Buffer[Any] | None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
    *,
    output_map: Any = None,
    graph: CommandGraph | None = None,
) -> Buffer[Any]:
    """Add up elements, along axes or all of them.

    Parameters
    ----------
    x
        A buffer, or a map called with its arguments: numbers, vectors or matrices.
    axis
        An axis or several; None: all.
    dtype
        Of the result and of the additions; types of fewer than 32 bits are added in 32 bits. With bool, the
        sum says whether any element is true, and the product whether all are. None: int64 or uint64 for bool
        and integers of fewer than 64 bits, else the dtype of `x`.
    out
        A buffer for the result, of its shape and dtype; None makes one.
    keepdims
        Whether reduced axes stay, with one element.
    initial
        A number to start with; None is 0.
    where
        A mask of bool: only elements where it is true count. It broadcasts to the shape of `x`, as in NumPy.
    output_map
        A `vd.map` for the results, whose first parameter gets the value.
    graph
        Where to record; None takes the thread's `vd.global_graph()`.

    Returns
    -------
    Buffer
        Of the shape of `x` without the reduced axes: `.read(0)` of a sum of all gives an array of no
        dimensions. Work is queued, and not waited for. The sum of nothing is `initial`, or 0.

    Raises
    ------
    TypeError, ValueError
        An argument is not what it should be, or there is no such axis.
    NotImplementedError
        The device lacks the integers of the result; give a `dtype`.
    """
    array, call = asked(x, axis, out, keepdims, output_map, graph)
    total = sum_type("sum", array.var_type, dtype, array.context)
    array = counting_where(array, x, where, 0)
    accumulator = truth(False) if total is bool_ else adding(array.var_type, wide_type(total), total)
    return started(array, accumulator, call, initial, wide_type(total))


@array_function
def prod(
    x: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Buffer[Any] | None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
    *,
    output_map: Any = None,
    graph: CommandGraph | None = None,
) -> Buffer[Any]:
    """Multiply elements, along axes or all of them: of vectors component by component.

    Parameters, dtypes and errors are those of `sum`; `initial` None is 1, and so is the product of nothing.
    """
    array, call = asked(x, axis, out, keepdims, output_map, graph)
    if is_matrix(array.var_type):
        raise ArgumentValueError("x: products of matrices depend on their order, which is not kept")
    total = sum_type("prod", array.var_type, dtype, array.context)
    array = counting_where(array, x, where, 1)
    accumulator = truth(True) if total is bool_ else multiplying(array.var_type, wide_type(total), total)
    return started(array, accumulator, call, initial, wide_type(total))


@array_function
def mean(
    x: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Buffer[Any] | None = None,
    keepdims: bool = False,
    *,
    where: Any = True,
    output_map: Any = None,
    graph: CommandGraph | None = None,
) -> Buffer[Any]:
    """Return the mean of elements, along axes or of all.

    Parameters are those of `sum`. The result's dtype is float64 for integers and truth values, else that of
    the elements; float16 and bfloat16 are added up in float32. The mean of nothing is NaN, with a
    RuntimeWarning where that is known beforehand.
    """
    array, call = asked(x, axis, out, keepdims, output_map, graph)
    kind = mean_type("mean", array.var_type, dtype, array.context)
    total = wide_type(kind)
    mask = checked_mask(where, x)
    if mask is not None:
        numbers_only("mean with where", array.var_type)
        part = component_type(total)
        some = parse_operand(counted(x, mask, part))
        return reduced(some, mean_of_some(mask_vector(array.var_type, part), kind), call)
    count = counted_or_warned(array, call, "Mean of empty slice.", 0)
    return reduced(array, adding(array.var_type, total, kind, True), call, (float(count),))


@array_function
def var(
    x: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Buffer[Any] | None = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: Any = True,
    correction: float | None = None,
    output_map: Any = None,
    graph: CommandGraph | None = None,
) -> Buffer[Any]:
    """Return the variance of elements: the mean square of their distances from the mean.

    One pass over the memory, whose result is as exact as one about the exact mean: a mean that is large
    beside the deviations does no harm.

    Parameters
    ----------
    x, axis, dtype, out, keepdims, where, output_map, graph
        As of `mean`. Complex numbers have a real variance; vectors one of each component.
    ddof, correction
        The sum of squares is divided by the count of elements less this number; `correction` is another name.

    Raises
    ------
    TypeError, ValueError, NotImplementedError
        As `mean`; both names are used.
    """
    return _spread("var", x, axis, dtype, out, ddof, keepdims, where, correction, output_map, graph)


@array_function
def std(
    x: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Buffer[Any] | None = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: Any = True,
    correction: float | None = None,
    output_map: Any = None,
    graph: CommandGraph | None = None,
) -> Buffer[Any]:
    """Return the standard deviation of elements: the square root of `var`, whose parameters it has."""
    return _spread("std", x, axis, dtype, out, ddof, keepdims, where, correction, output_map, graph)


def _spread(
    name: str,
    x: Any,
    axis: Any,
    kind_given: Any,
    out: Any,
    ddof: Any,
    keepdims: bool,
    where: Any,
    correction: Any,
    output_map: Any,
    graph: CommandGraph | None,
) -> Buffer[Any]:
    if correction is not None:
        if ddof != 0:
            raise ArgumentValueError(f"{name}: ddof and correction are names of one number; give one of them")
        ddof = correction
    if not is_number(ddof):
        raise ArgumentTypeError(f"ddof: expected a number, got {ddof!r}")
    array, call = asked(x, axis, out, keepdims, output_map, graph)
    if is_matrix(array.var_type):
        raise ArgumentValueError(f"x: expected numbers or vectors, got {array.var_type.name}")
    check_real(name, array.var_type, kind_given)
    kind = mean_type(name, array.var_type, kind_given, array.context)
    total, result_kind, root = wide_type(kind), real_type(kind), name == "std"
    mask = checked_mask(where, x)
    if mask is not None:
        numbers_only(f"{name} with where", array.var_type)
        part = component_type(total)
        some = parse_operand(counted(x, mask, part))
        vectors = mask_vector(array.var_type, part)
        return reduced(
            some, moments(vectors, total, result_kind, masked=True, root=root), call, (float(ddof),)
        )
    count = counted_or_warned(array, call, "Degrees of freedom <= 0 for slice", ddof)
    accumulator = moments(array.var_type, total, result_kind, root=root, shifted=not array.source.is_writing)
    return reduced(array, accumulator, call, (builtins.max(float(count - ddof), 0.0),))


@array_function
def min(
    x: Any,
    axis: Any = None,
    out: Buffer[Any] | None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
    *,
    output_map: Any = None,
    graph: CommandGraph | None = None,
) -> Buffer[Any]:
    """Return the smallest element, along axes or of all: NaN where there is one.

    Complex numbers are ordered by their real parts, then their imaginary parts; the components of vectors
    are looked at one by one. Parameters are those of `sum`; `initial` is needed for a `where`, and for what
    has no elements.

    Raises
    ------
    TypeError, ValueError
        As `sum`; there are no elements and no `initial`.
    """
    return _extreme("min", x, axis, out, keepdims, initial, where, output_map, graph)


@array_function
def max(
    x: Any,
    axis: Any = None,
    out: Buffer[Any] | None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
    *,
    output_map: Any = None,
    graph: CommandGraph | None = None,
) -> Buffer[Any]:
    """Return the largest element; see `min`."""
    return _extreme("max", x, axis, out, keepdims, initial, where, output_map, graph)


def _extreme(
    name: str,
    x: Any,
    axis: Any,
    out: Any,
    keepdims: bool,
    initial: Any,
    where: Any,
    output_map: Any,
    graph: CommandGraph | None,
) -> Buffer[Any]:
    array, call = asked(x, axis, out, keepdims, output_map, graph)
    kind, largest = array.var_type, name == "max"
    ordered(name, kind)
    word = "maximum" if largest else "minimum"
    if initial is None:
        if checked_mask(where, x) is not None:
            raise ArgumentValueError(
                f"{name}: reduction operation {word!r} does not have an identity, so to use a where mask one "
                "has to specify 'initial'"
            )
        check_not_empty(array, call, f"zero-size array to reduction operation {word} which has no identity")
    worst = identity_of_extreme(kind, largest)
    array = counting_where(array, x, where, (worst, worst) if is_complex(kind) else worst)
    return started(array, extreme(kind, largest), call, initial, wide_type(kind))


@array_function
def argmin(
    x: Any,
    axis: int | None = None,
    out: Buffer[Any] | None = None,
    *,
    keepdims: bool = False,
    dtype: Any = None,
    output_map: Any = None,
    graph: CommandGraph | None = None,
) -> Buffer[Any]:
    """Return where the smallest element is: the first of equal ones, or the first NaN.

    Parameters
    ----------
    axis
        The axis to look along; None: the place is one in the array as one row.
    dtype
        Of the result; None is int64.
    x, out, keepdims, output_map, graph
        As of `sum`.

    Raises
    ------
    TypeError, ValueError
        As `sum`; there are no elements.
    NotImplementedError
        The device lacks 64-bit integers; give a `dtype`.
    """
    return _place("argmin", x, axis, out, keepdims, dtype, output_map, graph)


@array_function
def argmax(
    x: Any,
    axis: int | None = None,
    out: Buffer[Any] | None = None,
    *,
    keepdims: bool = False,
    dtype: Any = None,
    output_map: Any = None,
    graph: CommandGraph | None = None,
) -> Buffer[Any]:
    """Return where the largest element is; see `argmin`."""
    return _place("argmax", x, axis, out, keepdims, dtype, output_map, graph)


def _place(
    name: str,
    x: Any,
    axis: Any,
    out: Any,
    keepdims: bool,
    kind_given: Any,
    output_map: Any,
    graph: CommandGraph | None,
) -> Buffer[Any]:
    if axis is not None:
        axis = parse_axis(axis, len(parse_operand(x).shape))
    array, call = asked(x, axis, out, keepdims, output_map, graph)
    ordered(name, array.var_type, numbers=True)
    kind = index_type(name, array.var_type, kind_given, array.context)
    if call.length(array.shape) == 0:  # as NumPy, also where there are no results
        raise ArgumentValueError(f"x: attempt to get {name} of an empty sequence")
    accumulator = extreme_place(array.var_type, name == "argmax", place_type(array, call), kind)
    return reduced(array, accumulator, call)


@array_function
def any(
    x: Any,
    axis: Any = None,
    out: Buffer[Any] | None = None,
    keepdims: bool = False,
    *,
    where: Any = True,
    output_map: Any = None,
    graph: CommandGraph | None = None,
) -> Buffer[Any]:
    """Return whether any element is true: not 0 (NaN is not). Parameters are those of `sum`."""
    return _truth(False, x, axis, out, keepdims, where, output_map, graph)


@array_function
def all(
    x: Any,
    axis: Any = None,
    out: Buffer[Any] | None = None,
    keepdims: bool = False,
    *,
    where: Any = True,
    output_map: Any = None,
    graph: CommandGraph | None = None,
) -> Buffer[Any]:
    """Return whether all elements are true: not 0 (NaN is not). Parameters are those of `sum`."""
    return _truth(True, x, axis, out, keepdims, where, output_map, graph)


def _truth(
    of_all: bool,
    x: Any,
    axis: Any,
    out: Any,
    keepdims: bool,
    where: Any,
    output_map: Any,
    graph: CommandGraph | None,
) -> Buffer[Any]:
    array, call = asked(x, axis, out, keepdims, output_map, graph)
    numbers_only("all" if of_all else "any", array.var_type)
    array = counting_where(array, x, where, 1 if of_all else 0)
    return reduced(array, truth(of_all), call)


@array_function
def count_nonzero(
    x: Any,
    axis: Any = None,
    *,
    keepdims: bool = False,
    out: Buffer[Any] | None = None,
    dtype: Any = None,
    output_map: Any = None,
    graph: CommandGraph | None = None,
) -> Buffer[Any]:
    """Count the elements that are not 0 (NaN is not).

    Parameters
    ----------
    dtype
        Of the result; None is int64.
    x, axis, out, keepdims, output_map, graph
        As of `sum`.
    """
    array, call = asked(x, axis, out, keepdims, output_map, graph)
    numbers_only("count_nonzero", array.var_type)
    kind = index_type("count_nonzero", array.var_type, dtype, array.context)
    return reduced(array, counting(place_type(array, call), kind), call)
