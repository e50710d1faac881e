"""`vd.scan`: running results of any associative function, as a function on arrays."""

from collections.abc import Callable
from typing import Any, overload

from vkdispatch.arrays.aliasing import check_overlap
from vkdispatch.arrays.axes import parse_axis, split_shape
from vkdispatch.arrays.calls import array_function
from vkdispatch.arrays.maps.operand import Operand, parse_operand
from vkdispatch.arrays.maps.output import Output, parse_output
from vkdispatch.arrays.results import prepare_result
from vkdispatch.arrays.values.elements import wide_type
from vkdispatch.base.buffer import Buffer
from vkdispatch.base.dtype import DType, bool_, is_complex, is_scalar
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.scans.launching import Wish, scan_columns, scan_rows
from vkdispatch.scans.operations import ScanOp, identity_parts, make_operation
from vkdispatch.scans.segments import flags_of
from vkdispatch.shader.references import Home, Referenced, home_of
from vkdispatch.shader.signature import read_return_type


def run_scan(
    name: str,
    operation: ScanOp,
    values: Operand,
    kind: DType,
    axis: int | None,
    out: object,
    wish: Wish,
    segments: object,
    output_map: object,
    graph: CommandGraph | None,
) -> Buffer[Any]:
    """Scan an array; `kind` is the dtype of the results, before an output map."""
    if wish.exclusive and operation.identity is None:
        raise ArgumentValueError(
            f"exclusive: {name!r} has no identity, which its first result would be; give one, such as "
            "@vd.scan(identity=0)"
        )
    shape = values.shape
    if axis is None:
        shape, sizes = (values.size,), (1, values.size, 1)
    else:
        sizes = split_shape(shape, parse_axis(axis, len(shape)))
    target = parse_output(output_map, kind, shape)
    results = prepare_result(out, shape, target.out_type, values.context)
    _check_overlap(out, values, target, segments, wish)
    if (
        segments is not None
        and isinstance(segments, Buffer)
        and axis is None
        and segments.size == values.size
    ):
        shape = segments.shape if segments.var_type is bool_ else shape
    flags = flags_of(name, segments, shape, sizes, values.context, graph)
    if not values.size:
        return results
    outer, length, inner = sizes
    if inner == 1:
        scan_rows(values, target, results, operation, outer, length, wish, flags, graph)
    else:
        scan_columns(values, target, results, operation, sizes, wish, flags, graph)
    return results


def _check_overlap(out: object, values: Operand, target: Output, segments: object, wish: Wish) -> None:
    marks = [parse_operand(segments, "segments")] if isinstance(segments, Buffer) else []
    if marks and marks[0].var_type is not bool_:
        # places become flags before all else
        check_overlap([("out", out)], target, alongside=[values], before=marks)
    elif wish.reverse:
        # whether the element after begins a segment
        check_overlap([("out", out)], target, alongside=[values], elsewhere=marks)
    else:
        check_overlap([("out", out)], target, alongside=[values, *marks])


class ScanFunction(Referenced):
    """A scan. Calling it queues the work, or records it into a graph, and returns the result's buffer.

    It is copied and pickled as Python functions are: by module and name.

    Attributes
    ----------
    name
        How messages call it.
    function
        What combines two values.
    var_type
        dtype of the results.
    identity
        What changes nothing, as given; None if there is none.
    """

    def __init__(self, function: Callable[[Any, Any], Any], identity: Any = None) -> None:
        """See `vd.scan`."""
        if not callable(function):
            raise ArgumentTypeError(f"vd.scan: expected a function of two values, got {function!r}")
        self.name: str = getattr(function, "__name__", "scan")
        self.function = function
        self.var_type = _return_type(function, self.name)
        self.identity = identity
        self._identity = identity_parts(identity, self.var_type)
        self._operation: ScanOp | None = None
        self.__doc__ = function.__doc__ or type(self).__doc__

    def __call__(
        self,
        x: Any,
        axis: int | None = None,
        out: Buffer[Any] | None = None,
        *,
        exclusive: bool = False,
        reverse: bool = False,
        segments: Buffer[Any] | None = None,
        output_map: Any = None,
        graph: CommandGraph | None = None,
    ) -> Buffer[Any]:
        """Scan an array along an axis; returns at once.

        Parameters
        ----------
        x
            A buffer, or a map called with its arguments, of values of `var_type`; numbers are converted.
        axis
            Along which axis; None scans all elements as one row.
        out
            Where the results go: a buffer of the result's shape and dtype. It may be x, or what a map of x
            reads at the mapped index alone.
        exclusive
            Whether each result is of the elements before, without the element itself; the first is the
            identity.
        reverse
            Whether to begin with the last element: the same as the scan of the array turned around, turned
            around.
        segments
            Scan each segment for itself: a buffer of bool, of x's shape, with true where one begins; or, for
            one row, of integers (int32, uint32, int64, uint64): the places where they begin, of which those
            beyond the end do not count.
        output_map
            A `vd.map` of each result.
        graph
            Where to record; None takes the thread's `vd.global_graph()`.

        Returns
        -------
        A buffer of x's shape (of its size, without `axis`) of `var_type`, or what the output map returns.

        Raises
        ------
        TypeError, ValueError
            An argument is not what it should be, or `exclusive` lacks an identity.
        """
        return _called(
            self,
            x,
            axis,
            out,
            Wish(reverse=bool(reverse), exclusive=bool(exclusive)),
            segments,
            output_map,
            graph,
        )

    def _home(self) -> Home | None:
        return home_of(self.function)

    def _described(self) -> str:
        return f"scan {self.name!r}"

    def operation(self) -> ScanOp:
        """Return what the kernels combine values with."""
        if self._operation is None:
            self._operation = make_operation(
                self.name, self.function, wide_type(self.var_type), self._identity
            )
        return self._operation

    def __repr__(self) -> str:
        return f"<scan {self.name!r} of {self.var_type.name}>"


def _called(
    scan: ScanFunction,
    x: Any,
    axis: int | None,
    out: Any,
    wish: Wish,
    segments: Any,
    output_map: Any,
    graph: CommandGraph | None,
) -> Buffer[Any]:
    values = parse_operand(x)
    check_convertible(scan.name, values.var_type, scan.var_type)
    return run_scan(
        scan.name, scan.operation(), values, scan.var_type, axis, out, wish, segments, output_map, graph
    )


_called.__name__ = "scan"
_called = array_function(_called)


def check_convertible(name: str, kind: DType, wanted: DType) -> None:
    """Raise ValueError where values of a dtype are not converted to another."""
    if wide_type(kind) is wide_type(wanted):
        return
    if is_scalar(kind) and is_scalar(wanted):
        return
    if is_complex(kind) and is_complex(wanted):
        return
    raise ArgumentValueError(
        f"x: {name!r} combines {wanted.name}, got {kind.name}; map x to {wanted.name} with a vd.map"
    )


def _return_type(function: Callable[..., Any], name: str) -> DType:
    annotation = read_return_type(function, name)
    if annotation is bool_:
        raise ArgumentValueError(f"{name}: truth values are not combined; return vd.uint32 (0 or 1)")
    return annotation


@overload
def scan(function: Callable[[Any, Any], Any], identity: Any = None) -> ScanFunction: ...


@overload
def scan(
    function: None = None, identity: Any = None
) -> Callable[[Callable[[Any, Any], Any]], ScanFunction]: ...


def scan(function: Any = None, identity: Any = None) -> Any:
    """Make a scan of an associative function; also usable as the decorator `@vd.scan(identity=0)`.

    A scan gives for each element the elements up to it, combined: x0, x0*x1, (x0*x1)*x2 and so on. How they
    are bracketed is fixed for a shape and a device, but not said, so the function must be associative; it
    need not be commutative: the earlier value is its first argument.

    Parameters
    ----------
    function
        Combines two values of its return annotation's dtype: a number, a complex number, a vector or a
        matrix. Values of fewer than 32 bits are combined in 32 (float16 in float32). It may use plain Python
        control flow, as kernels do.
    identity
        What changes nothing when combined with something, which exclusive scans begin with: a number, "inf"
        or "-inf" (of integers the largest and the smallest), or all components of a vector or matrix. None:
        there is none.

    Returns
    -------
    A function on arrays: see `ScanFunction.__call__`.

    Raises
    ------
    TypeError, ValueError
        The function lacks its return annotation, or an argument is not what it should be.
    """
    if function is None:
        return lambda decorated: ScanFunction(decorated, identity)
    if isinstance(function, type) or not callable(function):
        raise ArgumentTypeError(
            f"vd.scan: expected a function of two values, got {function!r}; the identity goes by name: "
            "@vd.scan(identity=0)"
        )
    return ScanFunction(function, identity)
