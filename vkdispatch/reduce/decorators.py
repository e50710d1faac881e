"""`@vd.reduce.reduce` and `@vd.reduce.map_reduce`."""

from collections.abc import Callable, Sequence
from typing import Any

from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.families.sources import identity_map
from vkdispatch.reduce.operations import ReduceOp
from vkdispatch.reduce.reduce_function import ReduceFunction
from vkdispatch.shader.map import MappingFunction, map
from vkdispatch.shader.pickling import find_home
from vkdispatch.shader.signature import read_return_type


def reduce(
    identity: Any,
    axes: int | Sequence[int] | None = None,
    group_size: int | None = None,
    mapping_function: MappingFunction | None = None,
) -> Callable[[Callable[..., Any]], ReduceFunction]:
    """Turn the decorated function, which combines two values, into a reduction.

    Its return annotation is the dtype of the result. Values of fewer than 32 bits are combined in 32 bits
    (float16 in float32), and the result is stored as annotated. The order in which values are combined is
    fixed for a shape and a device, but unspecified: the function must be associative and commutative. The
    first call tries it on a few numbers, and warns if it is not associative, or if the identity is wrong.

    Parameters
    ----------
    identity
        The identity of the function, the number that does not change others. "inf" and "-inf" are infinities;
        for integers, the largest and the smallest number.
    axes
        The axes to reduce, negative ones from the end; None reduces all.
    group_size
        Invocations of a workgroup, a multiple of the subgroup size of the device; None chooses.
    mapping_function
        A `vd.map` that computes a value for each element; None means the elements themselves.

    Raises
    ------
    TypeError, ValueError
        The function has no return annotation, or a different one than the mapping function, or an argument
        is invalid.

    Examples
    --------
    >>> @vd.reduce.reduce(identity="-inf")
    ... def larger(a: f32, b: f32) -> f32:
    ...     return vc.max(a, b)
    >>> larger(vd.asbuffer(np.array([3, 9, 4], np.float32))).read(0)
    array([9.], dtype=float32)
    """

    def decorate(function: Callable[..., Any]) -> ReduceFunction:
        if not callable(function):
            raise ArgumentTypeError(f"@vd.reduce.reduce(...): expected a function, got {function!r}")
        name = getattr(function, "__name__", "reduction")
        kind = read_return_type(function, name)
        if mapping_function is None:
            mapping = identity_map(kind)
        elif not isinstance(mapping_function, MappingFunction):
            raise ArgumentTypeError(f"mapping_function: expected a vd.map(...), got {mapping_function!r}")
        elif mapping_function.return_type is not kind:
            mapped = mapping_function.return_type
            raise ArgumentValueError(
                f"mapping_function: it returns {mapped.name if mapped else 'nothing'}, but {name!r} combines "
                f"{kind.name}"
            )
        else:
            mapping = mapping_function
        operation = ReduceOp(name, function, identity)
        plain = mapping_function is None
        reduction_function = ReduceFunction(operation, group_size, axes, mapping, name=name, plain=plain)
        reduction_function._defined = find_home(function)
        return reduction_function

    if callable(identity) and not isinstance(identity, type):
        raise ArgumentTypeError(
            "@vd.reduce.reduce needs parentheses and an identity, such as @vd.reduce.reduce(0)"
        )
    return decorate


def map_reduce(
    reduction: ReduceOp, axes: int | Sequence[int] | None = None, group_size: int | None = None
) -> Callable[[Callable[..., Any] | MappingFunction], ReduceFunction]:
    """Turn the decorated function, which maps an element to a value, into a reduction of these values.

    Its parameters are annotated as for `vd.map`. The first one is a buffer, and the return annotation is the
    dtype of the result. `vd.reduce.mapped_io_index()` is the element's index in the first buffer.

    Parameters
    ----------
    reduction
        How values are combined, such as `vd.reduce.SubgroupAdd`.
    axes, group_size
        As for `reduce`.

    Raises
    ------
    TypeError, ValueError
        The function lacks an annotation, or an argument is invalid.

    Examples
    --------
    >>> @vd.reduce.map_reduce(vd.reduce.SubgroupAdd)
    ... def sum_of_squares(data: Buff[f32]) -> f32:
    ...     x = data[vd.reduce.mapped_io_index()]
    ...     return x * x
    >>> sum_of_squares(vd.asbuffer(np.array([1, 2, 3], np.float32))).read(0)
    array([14.], dtype=float32)
    """
    if not isinstance(reduction, ReduceOp):
        raise ArgumentTypeError(
            "@vd.reduce.map_reduce(...): expected a ReduceOp such as vd.reduce.SubgroupAdd, "
            f"got {reduction!r}"
        )

    def decorate(function: Callable[..., Any] | MappingFunction) -> ReduceFunction:
        mapping = function if isinstance(function, MappingFunction) else map(function)
        reduction_function = ReduceFunction(reduction, group_size, axes, mapping)
        reduction_function._defined = find_home(mapping.mapping_function)
        return reduction_function

    return decorate
