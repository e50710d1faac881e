"""`vd.cumsum`, `vd.cumprod`, `vd.cummax`, `vd.cummin`, and `vd.scan` by any associative function."""

from collections.abc import Callable
from typing import Any, overload

from vkdispatch.base.buffer import Buffer
from vkdispatch.base.dtype import DType, bool_, is_complex, is_scalar, uint32
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.base.record import record
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.families import operands
from vkdispatch.families.calls import array_function, variant_of
from vkdispatch.families.operands import DTypeLike, parse_axis, parse_dtype, split_shape
from vkdispatch.families.tuning import memoize
from vkdispatch.families.values import sum_type, wide_type
from vkdispatch.scans.arguments import ACCUMULATIONS, ScanOp, check_dtype, make_operation, parse_identity
from vkdispatch.scans.launching import Direction, ScanTask, make_flags, scan_columns, scan_rows
from vkdispatch.shader.dependencies import Edition
from vkdispatch.shader.map import MappingFunction
from vkdispatch.shader.pickling import Home, Referenced, find_home
from vkdispatch.shader.signature import read_return_type

# ---- `vd.scan`: scans by any associative function --------------------------------------------------------


@record(eq=False)
class ScanOptions:
    """The options of a call; see `ScanFunction.__call__`."""

    axis: int | None
    out: object
    direction: Direction
    segments: object
    output_map: object
    graph: CommandGraph | None


def run_scan(
    name: str, operation: ScanOp, x: operands.Operand, kind: DType, options: ScanOptions
) -> Buffer[Any]:
    """Scan an array; `kind` is the dtype of the results, before an output map."""
    direction, segments, graph = options.direction, options.segments, options.graph
    if direction.is_exclusive and operation.identity is None:
        raise ArgumentValueError(
            f"exclusive: {name!r} has no identity, which is the first result; pass one, such as "
            "@vd.scan(identity=0)"
        )
    shape = x.shape
    if options.axis is None:
        shape, sizes = (x.size,), (1, x.size, 1)
    else:
        sizes = split_shape(shape, parse_axis(options.axis, len(shape)))
    target = operands.parse_output(options.output_map, kind, shape)
    results = operands.prepare_result(options.out, shape, target.out_type, x.context)
    _check_overlap(x, target, options)
    if (
        isinstance(segments, Buffer)
        and options.axis is None
        and segments.size == x.size
        and segments.var_type is bool_
    ):
        shape = segments.shape
    flags = make_flags(name, segments, shape, sizes, x.context, graph)
    if not x.size:
        return results
    task = ScanTask(x, target, results, operation, direction, flags, graph)
    outer, length, inner = sizes
    if inner == 1:
        scan_rows(task, outer, length)
    else:
        scan_columns(task, sizes)
    return results


def _check_overlap(x: operands.Operand, target: operands.Output, options: ScanOptions) -> None:
    segments, outputs = options.segments, [("out", options.out)]
    marks = [operands.parse_operand(segments, "segments")] if isinstance(segments, Buffer) else []
    if marks and marks[0].var_type is not bool_:
        # positions are turned into flags before anything is written
        operands.check_overlap(outputs, target, alongside=[x], before=marks)
    elif options.direction.is_reverse:
        # a reverse scan reads the flag of the element after
        operands.check_overlap(outputs, target, alongside=[x], elsewhere=marks)
    else:
        operands.check_overlap(outputs, target, alongside=[x, *marks])


class ScanFunction(Referenced):
    """A scan. A call queues the work, or records it into a graph, and returns the buffer of the result.

    It is pickled by module and name, like Python functions, or by value if it has no importable name.

    Attributes
    ----------
    name
        Its name in messages.
    function
        The function that combines two values.
    var_type
        dtype of the results.
    identity
        The identity of the function, as given; None if it has none.
    """

    def __init__(self, function: Callable[[Any, Any], Any], identity: Any = None) -> None:
        """See `vd.scan`."""
        if not callable(function):
            raise ArgumentTypeError(f"vd.scan: expected a function of two values, got {function!r}")
        self._fill(function, identity, _return_type(function, getattr(function, "__name__", "scan")))

    def _fill(self, function: Callable[[Any, Any], Any], identity: Any, kind: DType) -> None:
        self.name: str = getattr(function, "__name__", "scan")
        self.function = function
        self.var_type = kind
        self.identity = identity
        self._identity = parse_identity(identity, self.var_type)
        self._operation: ScanOp | None = None
        self._edition = Edition(function, first=None)
        self.__doc__ = function.__doc__ or type(self).__doc__

    def __call__(
        self,
        x: operands.ArrayLike,
        axis: int | None = None,
        out: Buffer[Any] | None = None,
        *,
        exclusive: bool = False,
        reverse: bool = False,
        segments: Buffer[Any] | None = None,
        output_map: operands.ResultMap | None = None,
        graph: CommandGraph | None = None,
    ) -> Buffer[Any]:
        """Scan an array along an axis. The call does not wait for the device.

        Parameters
        ----------
        x
            A buffer, or a map called with its arguments, of values of `var_type`. Numbers are converted.
        axis
            The axis to scan along. None scans all elements as one row.
        out
            A buffer for the result, with its shape and dtype. It can be x, or a buffer that a map of x reads
            only at the mapped index.
        exclusive
            Whether each result combines only the elements before it. The first result is then the identity.
        reverse
            Whether to start with the last element: the flipped scan of the flipped array.
        segments
            Where segments begin; each is scanned separately. Either a buffer of bool with x's shape, or, for
            one row, a buffer of int32, uint32, int64 or uint64 with the indices. Indices beyond the end are
            ignored. So are negative ones, but a later wait or read raises a ValueError for them, unless the
            call is recorded.
        output_map
            A `vd.map` that is applied to each result.
        graph
            The graph to record into; None means the thread's `vd.global_graph()`.

        Returns
        -------
        A buffer of x's shape, or of x's size if `axis` is None. Its dtype is `var_type`, or that of the
        output map.

        Raises
        ------
        TypeError, ValueError
            An argument is invalid, or `exclusive` is set and the function has no identity.
        """
        direction = Direction(is_reverse=bool(reverse), is_exclusive=bool(exclusive))
        return _call(self, x, axis, out, direction, segments, output_map, graph)

    def _home(self) -> Home | None:
        return find_home(self.function)

    def _describe(self) -> str:
        return f"scan {self.name!r}"

    def _get_state(self) -> tuple[Any, ...]:
        # the names in annotations given as text are not pickled with a function
        return self.function, self.identity, self.var_type

    def _set_state(self, *state: Any) -> None:
        self._fill(*state)

    def operation(self) -> ScanOp:
        """Return the operation of the kernels."""
        edition, operation = self._edition.find(), self._operation
        if operation is None or operation.edition != edition:
            kind = wide_type(self.var_type)
            operation = make_operation(self.name, self.function, kind, self._identity, edition=edition)
            self._edition.settle()
            self._operation = operation
        return operation

    def __repr__(self) -> str:
        return f"<scan {self.name!r} of {self.var_type.name}>"


def _call(
    scan: ScanFunction,
    x: operands.ArrayLike,
    axis: int | None,
    out: Buffer[Any] | None,
    direction: Direction,
    segments: Buffer[Any] | None,
    output_map: object,
    graph: CommandGraph | None,
) -> Buffer[Any]:
    values = operands.parse_operand(x)
    check_convertible(scan.name, values.var_type, scan.var_type)
    options = ScanOptions(axis, out, direction, segments, output_map, graph)
    result = run_scan(scan.name, scan.operation(), values, scan.var_type, options)
    scan._edition.settle()
    return result


_call.__name__ = "scan"
_call = array_function(_call)


def check_convertible(name: str, kind: DType, wanted: DType) -> None:
    """Raise ValueError if values of a dtype are not converted to another implicitly."""
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
        raise ArgumentValueError(f"{name}: booleans are not combined; return vd.uint32 (0 or 1)")
    return annotation


@overload
def scan(function: Callable[[Any, Any], Any], identity: Any = None) -> ScanFunction: ...


@overload
def scan(
    function: None = None, identity: Any = None
) -> Callable[[Callable[[Any, Any], Any]], ScanFunction]: ...


def scan(function: Any = None, identity: Any = None) -> Any:
    """Make a scan of an associative function; also usable as the decorator `@vd.scan(identity=0)`.

    A scan combines the elements up to each element: x0, x0*x1, (x0*x1)*x2 and so on. The grouping is fixed
    for a shape and a device, but unspecified, so the function must be associative. It need not be
    commutative: the earlier value is its first argument.

    Parameters
    ----------
    function
        Combines two values of the dtype of its return annotation: a number, a complex number, a vector or a
        matrix. Values of fewer than 32 bits are combined in 32 bits, float16 in float32. It can use Python's
        control flow, like kernels.
    identity
        The identity of the function, with which exclusive scans start: a number, "inf" or "-inf" (for
        integers the largest and the smallest number), or all components of a vector or matrix. None: the
        function has none.

    Returns
    -------
    A function on arrays: see `ScanFunction.__call__`.

    Raises
    ------
    TypeError, ValueError
        The function has no return annotation, or an argument is invalid.

    Examples
    --------
    >>> @vd.scan(identity=1)
    ... def running_product(a: f32, b: f32) -> f32:
    ...     return a * b
    >>> running_product(vd.asbuffer(np.array([1, 2, 3, 4], np.float32))).read(0)
    array([ 1.,  2.,  6., 24.], dtype=float32)
    """
    if function is None:
        return lambda decorated: ScanFunction(decorated, identity)
    if isinstance(function, type) or not callable(function):
        raise ArgumentTypeError(
            f"vd.scan: expected a function of two values, got {function!r}; pass the identity by name: "
            "@vd.scan(identity=0)"
        )
    return ScanFunction(function, identity)


# ---- `vd.cumsum`, `vd.cumprod`, `vd.cummax`, `vd.cummin` -------------------------------------------------
#
# Running sums, products and extremes, as NumPy's.


# sums of booleans tell whether any was true, products whether all were
_BOOLEAN_NAMES = {"cumsum": "cummax", "cumprod": "cummin"}


@memoize
def _make_operation(name: str, kind: DType) -> ScanOp:
    function, identity = ACCUMULATIONS[name]
    # the identity is that of the dtype, which may be narrower than the one that is combined
    parts = (int(name == "cummin"),) if kind is bool_ else parse_identity(identity, kind)
    combined = uint32 if kind is bool_ else wide_type(kind)
    # extremes depend on the order of their operands: of 0.0 and -0.0 the first one is returned
    return make_operation(name, function, combined, parts, is_commutative=name in ("cumsum", "cumprod"))


@memoize
def _boolean_map(kind: DType) -> MappingFunction:
    """Return a map that compares numbers with 0. A conversion to integers would drop fractions first."""
    return MappingFunction([kind], bool_, lambda value: value != 0)


# the signature of `cumsum` and the others
def _accumulate(  # noqa: PLR0913
    name: str,
    x: operands.ArrayLike,
    axis: int | None = None,
    dtype: DTypeLike = None,
    out: Buffer[Any] | None = None,
    *,
    exclusive: bool = False,
    reverse: bool = False,
    segments: Buffer[Any] | None = None,
    output_map: operands.OutputLike = None,
    graph: CommandGraph | None = None,
) -> Buffer[Any]:
    direction = Direction(is_reverse=bool(reverse), is_exclusive=bool(exclusive))
    options = ScanOptions(axis, out, direction, segments, output_map, graph)
    values = operands.parse_operand(x)
    if dtype is not None:
        kind = parse_dtype(dtype)
    elif name in ("cumsum", "cumprod"):
        kind = sum_type(values.var_type)
    else:
        kind = values.var_type
    if kind is bool_ and is_scalar(values.var_type) and values.var_type is not bool_:
        values = operands.parse_operand(_boolean_map(values.var_type)(x))
    check_dtype(name, kind)
    check_convertible(name, values.var_type, kind)
    operation = _make_operation(_BOOLEAN_NAMES.get(name, name) if kind is bool_ else name, kind)
    return run_scan(name, operation, values, kind, options)


@variant_of(_accumulate)
def cumsum() -> None:
    """Return running sums, as `numpy.cumsum`.

    Parameters
    ----------
    x
        A buffer, or a map called with its arguments.
    axis
        The axis to scan along. None scans all elements as one row.
    dtype
        dtype of the sums. Default: that of x, but int64 or uint64 for booleans and narrower integers.
    out
        A buffer for the result, with its shape and dtype. It can be x, or a buffer that a map of x reads only
        at the mapped index.
    exclusive
        Whether each result combines only the elements before it. The first result is then 0.
    reverse
        Whether to start with the last element.
    segments
        Where segments begin; the scan restarts there. Either a buffer of bool with x's shape, or, for one
        row, a buffer of integers: the indices, in any order. Indices beyond the end are ignored. So are
        negative ones, but a later wait or read raises a ValueError for them, unless the call is recorded.
    output_map
        A `vd.map` that is applied to each result.
    graph
        The graph to record into; None means the thread's `vd.global_graph()`.

    Returns
    -------
    A buffer of x's shape, or of x's size if `axis` is None, of `dtype`, or of what the output map returns.

    Raises
    ------
    TypeError, ValueError
        An argument is invalid, or the dtype has no such sums.

    Examples
    --------
    >>> vd.cumsum(vd.asbuffer(np.array([1, 2, 3, 4], np.float32))).read(0)
    array([ 1.,  3.,  6., 10.], dtype=float32)
    """


@variant_of(_accumulate)
def cumprod() -> None:
    """Return running products, as `numpy.cumprod`.

    Parameters, dtypes and errors are those of `cumsum`. With `exclusive` the first result is 1.

    Examples
    --------
    >>> vd.cumprod(vd.asbuffer(np.array([1, 2, 3, 4], np.float32))).read(0)
    array([ 1.,  2.,  6., 24.], dtype=float32)
    """


@variant_of(_accumulate)
def cummax() -> None:
    """Return the largest element so far, as `numpy.maximum.accumulate`: NaN from the first NaN on.

    Parameters and errors are those of `cumsum`, but the default of `dtype` is that of x. With `exclusive` the
    first result is -infinity, or the smallest number.

    Examples
    --------
    >>> vd.cummax(vd.asbuffer(np.array([1, 3, 2, 5], np.float32))).read(0)
    array([1., 3., 3., 5.], dtype=float32)
    """


@variant_of(_accumulate)
def cummin() -> None:
    """Return the smallest element so far, as `numpy.minimum.accumulate`: NaN from the first NaN on.

    Parameters and errors are those of `cummax`. With `exclusive` the first result is infinity, or the largest
    number.

    Examples
    --------
    >>> vd.cummin(vd.asbuffer(np.array([4, 3, 5, 1], np.float32))).read(0)
    array([4., 3., 3., 1.], dtype=float32)
    """
