"""`vd.histogram` and `vd.bincount`, and the edges of bins."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import vkdispatch.codegen as vc
from vkdispatch.base import dtype
from vkdispatch.base.buffer import Buffer, asbuffer, function_buffer
from vkdispatch.base.dtype import DType, is_float_dtype, is_integer_dtype, is_scalar
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.base.record import record, replace
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.families import operands
from vkdispatch.families.calls import agree_on_size, array_function, is_recorded, read_queues, repeatable
from vkdispatch.families.kernels import buffers, numbers, trace_kernel
from vkdispatch.families.operands import Operand, parse_int, parse_output
from vkdispatch.families.stored import store_results
from vkdispatch.families.tuning import device_facts, memoize
from vkdispatch.families.values import LONG_INTEGERS, wide_type
from vkdispatch.reduce.accumulators import Accumulator, Place, State, cast_value, make_sum
from vkdispatch.reduce.launching import Call, reduce_array
from vkdispatch.reduce.moments import make_extreme
from vkdispatch.selection.counting import (
    BinnedTask,
    Binning,
    count_bins,
    search_edges,
    store_counts,
    sum_weights,
)
from vkdispatch.selection.tuning import parse_size
from vkdispatch.shader.copying import copyto
from vkdispatch.shader.shader_function import ShaderFunction
from vkdispatch.shader.signature import describe

# ---- The smallest and the largest element of an array, in one pass, for the range of a histogram ---------


def _reverse_order(value: Any) -> Any:
    """Return a value so that comparisons are reversed. Applied twice, it returns the value."""
    return -value if dtype.is_float_dtype(value.var_type) else ~value


@memoize
def _make_extremes(kind: dtype.DType) -> Accumulator:
    """Return the smallest and the largest value, in one pass; both are NaN if there is a NaN."""
    pair = dtype.to_vector(kind, 2)
    smallest = make_extreme(pair, largest=False)

    def gather(values: Sequence[Any], _: Place) -> State:
        numbers = [cast_value(value, kind).to_register() for value in values]
        return smallest.merge_all([(number, _reverse_order(number)) for number in numbers])

    def finish(state: State, _: Sequence[Any]) -> Any:
        return vc.to_dtype(pair, state[0], _reverse_order(state[1]))

    return replace(smallest, name="extremes", gather=gather, finish=finish)


def find_extremes(x: Operand, graph: CommandGraph | None) -> Buffer[Any]:
    """Return a buffer with the smallest and the largest element, for `read_extremes` or a kernel.

    They are the two components of one element; for 64-bit integers, two elements. Both are NaN if there is a
    NaN.
    """
    kind = wide_type(x.var_type)
    call = Call(tuple(range(len(x.shape))), graph=graph)
    if kind not in LONG_INTEGERS:
        return reduce_array(x, _make_extremes(dtype.uint32 if kind is dtype.bool_ else kind), call)
    least, most = (reduce_array(x, make_extreme(kind, largest), call) for largest in (False, True))
    both: Buffer[Any] = function_buffer(2, kind, context=x.context)
    _make_join_kernel(kind)(both, least, most, graph=graph)
    return both


@store_results
def _make_join_kernel(kind: dtype.DType) -> ShaderFunction:
    """Return the kernel that copies two numbers to one buffer, so that one read is enough."""

    def trace(both: Any, low: Any, high: Any) -> None:
        both[0] = low[0]
        both[1] = high[0]

    return trace_kernel("both_extremes", trace, buffers(both=kind, low=kind, high=kind), 1, 1)


def read_extremes(extremes: Buffer[Any]) -> list[tuple[Any, Any]]:
    """Wait for the extremes on each queue, and return them as NumPy scalars of `wide_type`."""
    return [tuple(pair.ravel()) for pair in read_queues(extremes)]


# ---- Edges of bins of equal width ------------------------------------------------------------------------
#
# Computed on the device for graphs, with the same bits as NumPy's.
#
#   extremes  ->  first, last  ->  number * step   ->  + first   ->  the last edge is exactly the last extreme
#                                  one kernel          another
#
# The product is stored in memory, so that no compiler fuses it with the sum. float32 and float16 are
# computed in float64 and rounded after each operation. This gives the same bits as their own arithmetic,
# also on devices whose division is less accurate. Edges of float16 are stored as float32, in which elements
# are compared.


_GROUP = 256


def make_edges(
    extremes: Buffer[Any], bins: int, kind: dtype.DType, graph: CommandGraph | None
) -> Buffer[Any]:
    """Return the edges of bins of equal width between the extremes of elements.

    They are numbers of `kind` (float16, float32 or float64) in a buffer of `wide_type(kind)`. If the extremes
    are not finite, the edges are not finite either.
    """
    context = extremes.context
    outer: Buffer[Any] = function_buffer(2, wide_type(kind), context=context)
    edges: Buffer[Any] = function_buffer(bins + 1, wide_type(kind), context=context)
    _make_outer_kernel(extremes.var_type, kind)(extremes, outer, graph=graph)
    _make_steps_kernel(kind)(outer, edges, bins, graph=graph)
    _make_edges_kernel(kind)(outer, edges, bins, graph=graph)
    return edges


@store_results
def _make_outer_kernel(stored: dtype.DType, kind: dtype.DType) -> ShaderFunction:
    wide = wide_type(kind)

    def trace(extremes: Any, outer: Any) -> None:
        if dtype.is_vector(stored):
            pair = extremes[0].to_register()
            low, high = pair.x, pair.y
        else:
            low, high = extremes[0], extremes[1]
        first = low.to_dtype(wide).to_register()
        last = high.to_dtype(wide).to_register()
        with vc.if_block(first == last):
            first[:] = _round(first.to_dtype(dtype.float64) - 0.5, kind).to_dtype(wide)
            last[:] = _round(last.to_dtype(dtype.float64) + 0.5, kind).to_dtype(wide)
        outer[0] = first
        outer[1] = last

    return trace_kernel("outer_edges", trace, buffers(extremes=stored, outer=wide), 1, 1)


def _round(value: Any, kind: dtype.DType) -> Any:
    """Return a float64 rounded to a dtype, as a float64."""
    if kind is dtype.float64:
        return value
    # rounding twice is exact here: float32 has more than twice the bits of float16
    narrow = value.to_dtype(dtype.float32).to_register()
    return (_round_to_half(narrow) if kind is dtype.float16 else narrow).to_dtype(dtype.float64)


def _round_to_half(value: Any) -> Any:
    """Return a float32 rounded to the nearest float16, as a float32. Conversions of devices may truncate."""
    bits = vc.reinterpret(dtype.uint32, value) & 0x7F800000
    power = vc.max(vc.reinterpret(dtype.float32, bits), 2.0**-14).to_register()
    # a sum with it has as many fraction bits as float16 has for this exponent
    large = (power * (1.5 * 2.0**13)).to_register()
    rounded = vc.precise(vc.precise(value + large) - large)
    beyond = vc.select(value > 0, vc.to_dtype(dtype.float32, math.inf), vc.to_dtype(dtype.float32, -math.inf))
    return vc.select(vc.abs(rounded) > 65504.0, beyond, rounded).to_register()


@store_results
def _make_steps_kernel(kind: dtype.DType) -> ShaderFunction:
    wide = wide_type(kind)

    def trace(outer: Any, edges: Any, bins: Any) -> None:
        index = vc.global_invocation_id().x
        first, last = (outer[i].to_dtype(dtype.float64) for i in range(2))
        delta = _round(last - first, kind).to_register()
        step = _round(delta / bins.to_dtype(dtype.float64), kind).to_register()
        number = index.to_dtype(dtype.float64)
        product = (number * step).to_register()
        with vc.if_block(step == 0.0):
            product[:] = _round(number / bins.to_dtype(dtype.float64), kind) * delta
        edges[index] = _round(product, kind).to_dtype(wide)

    arguments = [*buffers(outer=wide, edges=wide), *numbers("bins")]
    return trace_kernel("edge_steps", trace, arguments, _GROUP, exec_size="edges.size")


@store_results
def _make_edges_kernel(kind: dtype.DType) -> ShaderFunction:
    wide = wide_type(kind)

    def trace(outer: Any, edges: Any, bins: Any) -> None:
        index = vc.global_invocation_id().x
        edge = edges[index].to_dtype(dtype.float64) + outer[0].to_dtype(dtype.float64)
        edges[index] = vc.select(index == bins, outer[1], _round(edge, kind).to_dtype(wide))

    arguments = [*buffers(outer=wide, edges=wide), *numbers("bins")]
    return trace_kernel("edges", trace, arguments, _GROUP, exec_size="edges.size")


# ---- The edges of a histogram's bins ---------------------------------------------------------------------
#
# As given, from a range, or from the extremes of the elements.


_MAX_EQUAL_BINS = 1 << 31
# Edges that a context caches, under this name: the most of them, and the most bins of each.
_CACHE = "selection.histogram"
_MAX_CACHED = 64
_MAX_CACHED_BINS = 4096
# Edges, those that elements are compared with, and the dtype in which bins are guessed.
_Edges = tuple[Buffer[Any], Buffer[Any], dtype.DType]


@record(eq=False)
class Bins:
    """The bins of a histogram.

    Attributes
    ----------
    edges, compared
        The edges, and those that elements are compared with.
    binning
        How the bin of an element is found.
    count
        The number of bins.
    """

    edges: Buffer[Any]
    compared: Buffer[Any]
    binning: Binning
    count: int


def host_type(kind: dtype.DType) -> "np.dtype[Any]":
    """Return the NumPy dtype that represents a dtype in promotions."""
    if kind is dtype.bfloat16:
        return np.dtype(np.float32)
    return np.dtype(np.uint8) if kind is dtype.bool_ else np.dtype(dtype.to_numpy_dtype(kind))


def make_bins(x: Operand, bins: Any, range: Any, graph: CommandGraph | None) -> Bins:
    """Return the bins of a histogram; see `vd.histogram`."""
    if isinstance(bins, Buffer):
        return _use_device_edges(x, bins, graph)
    if np.ndim(bins) == 0:
        return _make_equal_bins(x, bins, range, graph)
    host = np.asarray(bins)
    if host.ndim != 1 or host.dtype.kind not in "biuf" or host.size < 2:
        raise ArgumentValueError(
            f"bins: expected how many, or at least 2 edges along one axis, got {describe(bins)} of the shape "
            f"{host.shape}"
        )
    if np.any(host[:-1] > host[1:]):
        raise ArgumentValueError("bins: expected ascending edges")
    common = np.result_type(host_type(x.var_type), host.dtype)
    kind = wide_type(dtype.from_numpy_dtype(common))
    if _must_narrow(x, kind) and not np.isnan(host).any():
        compared = asbuffer(_narrow([host], x)[0], context=x.context)
        edges = asbuffer(host, context=x.context)
        return Bins(edges, compared, search_edges(compared), host.size - 1)
    compared = asbuffer(host.astype(dtype.to_numpy_dtype(kind)), context=x.context)
    edges = (
        compared
        if compared.var_type is dtype.from_numpy_dtype(host.dtype)
        else asbuffer(host, context=x.context)
    )
    return Bins(edges, compared, search_edges(compared), host.size - 1)


def _use_device_edges(x: Operand, edges: Buffer[Any], graph: CommandGraph | None) -> Bins:
    if len(edges.shape) != 1 or edges.size < 2 or not dtype.is_scalar(edges.var_type):
        raise ArgumentValueError(
            f"bins: expected at least 2 edges along one axis, got a buffer of the shape {edges.shape} of "
            f"{edges.var_type.name}"
        )
    common = np.result_type(host_type(x.var_type), host_type(edges.var_type))
    kind = wide_type(dtype.from_numpy_dtype(common))
    compared = edges
    if edges.var_type is not kind:
        wide: Buffer[Any] = function_buffer(edges.shape, kind, context=x.context)
        compared = store_counts(edges, wide, parse_output(None, kind), graph)
    return Bins(edges, compared, search_edges(compared), edges.size - 1)


def _make_equal_bins(x: Operand, bins: Any, range: Any, graph: CommandGraph | None) -> Bins:
    """Return bins of equal width."""
    count = parse_int(bins, "bins", least=1, most=_MAX_EQUAL_BINS - 1, wanted="an int, or edges")
    numbers = host_type(x.var_type)
    if range is None and x.size and is_recorded(graph):
        guess: dtype.DType = dtype.float64 if x.var_type is dtype.float64 else dtype.float32
        kind = dtype.from_numpy_dtype(
            np.result_type(numbers, np.float64 if numbers.kind in "iu" else numbers)
        )
        edges = make_edges(find_extremes(x, graph), count, kind, graph)
        binning = Binning("uniform", edges.var_type, guess, _grid(kind))
        compared = edges
        if kind is not edges.var_type:
            narrow: Buffer[Any] = function_buffer(edges.shape, kind, context=x.context)
            edges = store_counts(edges, narrow, parse_output(None, kind), graph)
        return Bins(edges, compared, binning, count)
    outer = _parse_range(range)
    # a recorded graph keeps edges of its own
    key = None if is_recorded(graph) else _cache_key(x, count, outer)
    if key is None:
        edges, compared, guess = _upload_edges(x, count, outer)
    else:
        cached, compared, guess = _cached_edges(x, count, outer, key)
        edges = function_buffer(cached.shape, cached.var_type, context=x.context)
        copyto(edges, cached)
    if not dtype.is_float_dtype(compared.var_type):
        return Bins(edges, compared, search_edges(compared), count)
    binning = Binning("uniform", compared.var_type, guess, _grid(edges.var_type))
    return Bins(edges, compared, binning, count)


def _cache_key(x: Operand, bins: int, outer: tuple[Any, Any] | None) -> object:
    """Return the key of cached edges; None if edges are too many, or depend on elements."""
    if outer is None or bins > _MAX_CACHED_BINS or not all(type(edge) in (int, float) for edge in outer):
        return None
    return x.var_type, bins, repr(outer)


def _cached_edges(x: Operand, bins: int, outer: tuple[Any, Any] | None, key: object) -> _Edges:
    """Return edges from the cache of the context."""
    cache: dict[object, _Edges] = x.context._keep(_CACHE, dict)
    cached = cache.get(key)
    if cached is None or any(buffer._native.poisoned for buffer in cached[:2]):
        cached = _upload_edges(x, bins, outer)
        if len(cache) >= _MAX_CACHED:
            cache.clear()
        cache[key] = cached
    return cached


def _upload_edges(x: Operand, bins: int, outer: tuple[Any, Any] | None) -> _Edges:
    """Return new edges between the outer ones, or without these between the extremes, for which it waits."""
    hosts = _host_edges(x, bins, outer)
    edges = _upload(hosts, x)
    kind = wide_type(edges.var_type)
    if _must_narrow(x, kind):
        return edges, _upload(_narrow(hosts, x), x), dtype.float32
    compared = edges if kind is edges.var_type else _upload([host.astype(np.float32) for host in hosts], x)
    # a guess in float32 would be wrong for many elements of fine bins
    is_fine = any(np.diff(host).min() < 2.0**-20 * np.abs(host).max() for host in hosts)
    is_double = x.var_type is dtype.float64 or (kind is dtype.float64 and is_fine)
    return edges, compared, dtype.float64 if is_double else dtype.float32


def _must_narrow(x: Operand, kind: dtype.DType) -> bool:
    """Whether the device lacks the dtype of edges, and edges of the elements' dtype give the same bins."""
    is_missing = kind is dtype.float64 and "shaderFloat64" not in device_facts(x.context).features
    return is_missing and x.var_type.item_size <= 4


def _narrow(hosts: "list[np.ndarray[Any, Any]]", x: Operand) -> "list[np.ndarray[Any, Any]]":
    """Return edges of the elements' dtype: the least that are not below each edge, or above the last one."""
    if host_type(x.var_type).kind == "f":
        return [_round_edges(host.astype(np.float64)) for host in hosts]
    whole = [np.concatenate([np.ceil(host[:-1]), np.floor(host[-1:])]) for host in hosts]
    is_narrow = x.var_type is not dtype.uint32 and all(np.abs(host).max() < 2.0**31 for host in whole)
    wide = [np.clip(host, -(2.0**62), 2.0**62).astype(np.int64) for host in whole]
    return [host.astype(np.int32) for host in wide] if is_narrow else wide


def _round_edges(host: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
    with np.errstate(over="ignore"):
        nearest = host.astype(np.float32)
    up = np.where(nearest < host, np.nextafter(nearest, np.float32(np.inf)), nearest)
    down = np.where(nearest > host, np.nextafter(nearest, np.float32(-np.inf)), nearest)
    return np.concatenate([up[:-1], down[-1:]])


def _grid(kind: dtype.DType) -> dtype.DType | None:
    return kind if wide_type(kind) is not kind else None


def _upload(hosts: "list[np.ndarray[Any, Any]]", x: Operand) -> Buffer[Any]:
    """Return a buffer with one array for each queue, or one for all queues."""
    buffer = asbuffer(hosts[0], context=x.context)
    for queue, host in enumerate(hosts[1:], 1):
        buffer.write(host, queue)
    return buffer


def _parse_range(range: Any) -> tuple[Any, Any] | None:
    if range is None:
        return None
    try:
        first, last = range
        finite = bool(np.isfinite(first) and np.isfinite(last))
    except (TypeError, ValueError):
        raise ArgumentTypeError(f"range: expected two numbers, got {range!r}") from None
    if not finite:
        raise ArgumentValueError(f"range: expected finite numbers, got {range!r}")
    if first > last:
        raise ArgumentValueError(f"range: the last edge is less than the first: {range!r}")
    return first, last


def _host_edges(x: Operand, bins: int, range: tuple[Any, Any] | None) -> "list[np.ndarray[Any, Any]]":
    """Return the edges as NumPy computes them: from the range, or from the extremes on each queue."""
    numbers = host_type(x.var_type)
    samples = [np.empty(0, numbers)]
    if range is None and x.size:
        pairs = read_extremes(find_extremes(x, None))
        for low, high in pairs:
            if not (np.isfinite(low) and np.isfinite(high)):
                raise ArgumentValueError(
                    f"x: its elements range from {low} to {high}, which cannot be divided into bins; "
                    "pass range="
                )
        samples = [np.array(pair).astype(numbers) for pair in pairs]
    try:
        return [np.histogram_bin_edges(sample, bins, range) for sample in samples]
    except ValueError as error:
        raise ArgumentValueError(f"bins: {error}") from None


# ---- `vd.bincount`: how often each number occurs ---------------------------------------------------------


_BINS = Binning("value")
_MAX_BINS = 1 << 32
_UNKNOWN = "how many counts there are"
_NARROW = (dtype.int8, dtype.uint8, dtype.int16, dtype.uint16, dtype.bool_)


@array_function
def bincount(
    x: operands.ArrayLike,
    weights: operands.ArrayLike | None = None,
    minlength: int = 0,
    size: int | None = None,
    *,
    output_map: operands.ResultMap | None = None,
    graph: CommandGraph | None = None,
) -> Buffer[Any]:
    """Count the occurrences of each number from 0 on, like `numpy.bincount`.

    Parameters
    ----------
    x
        A buffer, or a map called with its arguments, of integers or booleans. Several axes are flattened.
    weights
        An array of the shape of `x`: the weight of each element. Sums of floats are rounded once, and are
        accurate to within float64; the same input gives the same bits.
    minlength
        The minimum number of counts.
    size
        The number of counts. Larger and negative numbers are then not counted, and the call does not wait.
        None: one more than the largest number, for which the call waits. Graphs need a size.
    output_map
        A `vd.map` that is applied to each count.
    graph
        The graph to record into; None means the thread's `vd.global_graph()`.

    Returns
    -------
    Counts as int64, or with weights their sums as float64.

    Raises
    ------
    TypeError
        `x` is not an array of integers, or `weights` is not an array of real numbers.
    ValueError
        A number is negative and there is no `size`; shapes differ; `minlength` or `size` is negative.
    RuntimeError
        `size` is None in a graph.
    NotImplementedError
        There are `weights`, and the device has no float64.

    Examples
    --------
    >>> vd.bincount(vd.asbuffer(np.array([0, 1, 1, 3], np.int32))).read(0)
    array([1, 2, 0, 1])
    """
    least = parse_int(minlength, "minlength", least=0)
    if size is not None or getattr(x, "size", None) == 0:
        _parse(x, weights)
        bins = least if size is None else max(parse_int(size, "size", least=0), least)
    else:
        parse_size(size, graph, _UNKNOWN)
        bins = _read_bins(_find_extremes(x, weights), least)
    return _count_numbers(x, weights, bins, output_map, graph)


def _parse(x: operands.ArrayLike, weights: operands.ArrayLike | None) -> operands.Operand:
    values = operands.parse_operand(x, "x")
    kind = values.var_type
    if kind is not dtype.bool_ and not (is_scalar(kind) and is_integer_dtype(kind)) and kind not in _NARROW:
        raise ArgumentTypeError(f"x: expected integers, got {kind.name}; convert them with a map")
    if weights is None:
        return values
    parsed = operands.parse_operand(weights, "weights")
    if not is_scalar(parsed.var_type):
        raise ArgumentTypeError(f"weights: expected real numbers, got {parsed.var_type.name}; map parts")
    _check_weights(parsed, values)
    return values


def _check_weights(weights: operands.Operand, values: operands.Operand) -> None:
    if weights.shape != values.shape:
        raise ArgumentValueError(
            f"weights: expected an array of the shape of x, {values.shape}, got {weights.shape}"
        )


@repeatable
def _find_extremes(x: operands.ArrayLike, weights: operands.ArrayLike | None) -> Buffer[Any]:
    """Check the arrays, and return the extremes that decide the number of counts. It does not wait."""
    return find_extremes(_parse(x, weights), None)


def _read_bins(extremes: Buffer[Any], least: int) -> int:
    """Wait for the largest number, and return the number of counts."""
    sizes = []
    for low, high in read_extremes(extremes):
        if low < 0:
            raise ArgumentValueError(f"x: expected numbers from 0 on, got {int(low)}")
        if int(high) >= _MAX_BINS - 1:
            raise ArgumentValueError(
                f"x: {int(high)} would need as many counts; expected numbers below 2**32 - 1"
            )
        sizes.append(max(int(high) + 1, least))
    return agree_on_size(sizes, "x", "size=")


@repeatable
def _count_numbers(
    x: operands.ArrayLike,
    weights: operands.ArrayLike | None,
    bins: int,
    output_map: operands.ResultMap | None,
    graph: CommandGraph | None,
) -> Buffer[Any]:
    """Return `bins` counts, or sums of weights. It does not wait."""
    values = operands.parse_operand(x, "x")
    arrays = [values] if weights is None else [values, operands.parse_operand(weights, "weights")]
    kind = dtype.int64 if weights is None else dtype.float64
    sink, counts = operands.prepare_output(None, output_map, (bins,), kind, values.context, elsewhere=arrays)
    if bins == 0:
        return counts
    if values.size == 0:
        return _store_zeros(counts, sink, graph)
    task = BinnedTask(values, _BINS, None, bins, counts, sink, graph)
    return count_bins(task) if weights is None else sum_weights(task, arrays[1])


# ---- `vd.histogram`: counts of the elements between edges ------------------------------------------------


@array_function
def histogram(
    x: operands.ArrayLike,
    bins: int | Sequence[float] | np.ndarray[Any, Any] | Buffer[Any] = 10,
    range: Sequence[float] | None = None,
    density: bool | None = None,
    weights: operands.ArrayLike | None = None,
    *,
    output_map: operands.ResultMap | None = None,
    graph: CommandGraph | None = None,
) -> tuple[Buffer[Any], Buffer[Any]]:
    """Count the elements between edges, with the same counts as `numpy.histogram`.

    A bin includes its left edge; the last one includes both. Elements outside, and NaN, are not counted.

    Parameters
    ----------
    x
        A buffer, or a map called with its arguments, of integers, floats or booleans, of any shape.
    bins
        The number of bins of equal width; or the ascending edges, as a sequence, or as a buffer of one axis,
        whose values are not checked.
    range
        The outer edges, two finite numbers, for bins of equal width. None: the smallest and the largest
        element, for which the call waits. In a graph it does not wait, and the edges stay on the device.
    density
        Whether to return a density, whose integral is 1.
    weights
        An array of the shape of `x`: the weight of each element. Sums of floats are rounded once, and are
        accurate to within float64; the same input gives the same bits.
    output_map
        A `vd.map` that is applied to each count.
    graph
        The graph to record into; None means the thread's `vd.global_graph()`.

    Returns
    -------
    counts
        int64; with weights, their dtype (int64 for booleans); with `density`, float64.
    edges
        float64; for bins of equal width and floating-point `x`, the dtype of `x`. If `bins` is a buffer, that
        buffer.

    Raises
    ------
    TypeError
        `x` or `weights` is not an array of real numbers, or `bins` has another type.
    ValueError
        Shapes differ, `bins` is not positive or not ascending, `range` is not finite or descending; the
        smallest or largest element is not finite (not in graphs); or there are more bins than numbers between
        the edges.
    NotImplementedError
        The device has no float64, and edges of 64-bit elements, edges in a graph, `density` or sums of floats
        need it.

    Examples
    --------
    >>> counts, edges = vd.histogram(vd.asbuffer(np.array([1, 2, 1, 4], np.float32)), bins=3)
    >>> counts.read(0)
    array([2, 1, 1])
    """
    values = _check_real(operands.parse_operand(x, "x"), "x")
    if weights is not None:
        _check_weights(_check_real(operands.parse_operand(weights, "weights"), "weights"), values)
    made = make_bins(values, bins, range, graph)
    return _count(x, weights, made, bool(density), output_map, graph), made.edges


def _count(
    x: operands.ArrayLike,
    weights: operands.ArrayLike | None,
    bins: Bins,
    has_density: bool,
    output_map: operands.ResultMap | None,
    graph: CommandGraph | None,
) -> Buffer[Any]:
    """Return the counts of bins, sums of weights, or densities. It does not wait."""
    values = operands.parse_operand(x, "x")
    weighting = None if weights is None else operands.parse_operand(weights, "weights")
    kind = dtype.float64 if has_density else _count_type(weighting)
    last = operands.parse_output(output_map, kind, (bins.count,))
    operands.check_overlap((), last, elsewhere=[values] if weighting is None else [values, weighting])
    sink = operands.parse_output(None, kind, (bins.count,)) if has_density else last
    counts = operands.prepare_result(None, (bins.count,), sink.out_type, values.context)
    task = BinnedTask(values, bins.binning, bins.compared, bins.count, counts, sink, graph)
    if values.size == 0:
        _store_zeros(counts, sink, graph)
    elif weighting is None:
        count_bins(task)
    else:
        sum_weights(task, weighting)
    return _divide(counts, bins.edges, last, graph) if has_density else counts


def _check_real(values: operands.Operand, name: str) -> operands.Operand:
    if not is_scalar(values.var_type):
        raise ArgumentTypeError(
            f"{name}: expected integers, floats or booleans, got {values.var_type.name}; map its parts"
        )
    return values


def _count_type(weights: operands.Operand | None) -> DType:
    if weights is None or weights.var_type is dtype.bool_:
        return dtype.int64
    return weights.var_type


def _store_zeros(counts: Buffer[Any], sink: operands.Output, graph: CommandGraph | None) -> Buffer[Any]:
    zeros = asbuffer(np.zeros(counts.size, np.uint32), context=counts.context)
    return store_counts(zeros, counts, sink, graph)


def _divide(
    counts: Buffer[Any], edges: Buffer[Any], sink: operands.Output, graph: CommandGraph | None
) -> Buffer[Any]:
    wide = dtype.float64
    total = reduce_array(operands.parse_operand(counts), make_sum(wide, wide, wide), Call((0,), graph=graph))
    dense = operands.prepare_result(None, counts.shape, sink.out_type, counts.context)
    _make_divide_kernel(edges.var_type, sink.sink)(counts, edges, total, dense, *sink.arguments, graph=graph)
    return dense


@store_results
def _make_divide_kernel(kind: DType, sink: operands.Sink) -> ShaderFunction:
    def trace(counts: Any, edges: Any, total: Any, dense: Any, mapping: Any) -> None:
        index = vc.global_invocation_id().x
        wide = dtype.float64
        if is_float_dtype(kind):
            # the difference is rounded to the dtype of edges, as NumPy's is
            width = (edges[index + 1] - edges[index]).to_dtype(wide)
        else:
            width = edges[index + 1].to_dtype(wide) - edges[index].to_dtype(wide)
        sink.store(dense, mapping, index, (counts[index] / width / total[0]).to_register())

    tables = buffers(counts=dtype.float64, edges=kind, total=dtype.float64, dense=sink.out_type)
    return trace_kernel("density", trace, [*tables, sink.parameters], _GROUP, exec_size="dense.size")
