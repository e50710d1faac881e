"""`vd.histogram`: how many elements lie between edges."""

from typing import Any

import numpy as np

import vkdispatch.codegen as vc
from vkdispatch.arrays.aliasing import check_overlap
from vkdispatch.arrays.calls import array_function, is_recorded
from vkdispatch.arrays.elements import wide_type
from vkdispatch.arrays.facts import device_facts
from vkdispatch.arrays.kernels import buffer, traced
from vkdispatch.arrays.mapping import identity_map
from vkdispatch.arrays.numbers import checked_int
from vkdispatch.arrays.operand import Operand, operand
from vkdispatch.arrays.output import Output, Sink, output
from vkdispatch.arrays.remembering import remembered
from vkdispatch.arrays.results import result
from vkdispatch.base import dtype
from vkdispatch.base.buffer import Buffer, asbuffer, function_buffer
from vkdispatch.base.dtype import DType, from_numpy_dtype, is_float_dtype, is_scalar, to_numpy_dtype
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.reduce.operations import SubgroupAdd
from vkdispatch.reduce.reduce_function import ReduceFunction
from vkdispatch.selection.histograms.binning import Binning, searched
from vkdispatch.selection.histograms.counting import counted, stored
from vkdispatch.selection.histograms.device_edges import spaced
from vkdispatch.selection.histograms.extremes import extremes, extremes_read
from vkdispatch.selection.histograms.weighing import weighed
from vkdispatch.shader.copying import copyto
from vkdispatch.shader.parameters import given
from vkdispatch.shader.shader_function import ShaderFunction

_GROUP = 256
_MOST_BINS = 1 << 31
# Edges, those that elements are compared with, and the dtype in which bins are guessed. A context keeps so
# many of them, of up to so many bins, under a name.
_Edges = tuple[Buffer[Any], Buffer[Any], DType]
_KEPT = "selection.edges"
_MOST_KEPT = 64
_LONGEST = 4096


@array_function
def histogram(
    x: Any,
    bins: Any = 10,
    range: Any = None,
    density: bool | None = None,
    weights: Any = None,
    *,
    output_map: Any = None,
    graph: CommandGraph | None = None,
) -> tuple[Buffer[Any], Buffer[Any]]:
    """Count how many elements lie between edges: `np.histogram`, bin by bin the same.

    A bin holds its left edge, and the last one both of its edges. Elements outside, and NaN, are not counted.

    Parameters
    ----------
    x
        A buffer, or a map called with its arguments; of integers, floats or truth values, of any shape.
    bins
        How many bins of equal width; or the edges, rising, as a sequence or a buffer of one axis (whose
        values are not looked at).
    range
        The outer edges, two finite numbers, for bins of equal width. None: the smallest and the largest
        element, for which the call waits. In a graph nothing is waited for, and the edges stay on the device.
    density
        Whether the result is that of a density, of which the integral is 1.
    weights
        An array of the shape of `x`: what each element counts for. Sums of floats are exact but for one
        rounding, as far as their float64 can tell, and the same bits each time.
    output_map
        A map that is given each count, of the type said below.
    graph
        Where to record; None takes the thread's `vd.global_graph()`.

    Returns
    -------
    counts
        int64; with weights their type (int64 of truth values); float64 with `density`.
    edges
        float64, but of the type of `x` where that is a float and bins are of equal width; edges that were
        given as a buffer are that buffer.

    Raises
    ------
    TypeError
        `x` or `weights` is no array of real numbers, or `bins` is of another kind.
    ValueError
        Shapes differ, `bins` is not positive or not rising, `range` is not finite or falling; the smallest or
        largest element is not finite (not in graphs); or there are more bins than numbers between the edges.
    NotImplementedError
        The device has no float64, and edges of 64-bit elements, edges in a graph, `density` or sums of floats
        need it.
    """
    values = _real(operand(x, "x"), "x")
    if weights is not None:
        weighing = _real(operand(weights, "weights"), "weights")
        if weighing.shape != values.shape:
            raise ArgumentValueError(
                f"weights: expected an array of the shape of x, {values.shape}, got {weighing.shape}"
            )
    edges, compared, binning, count = _binned(values, bins, range, graph)
    counts = _counts(x, weights, edges, compared, binning, count, bool(density), output_map, graph)
    return counts, edges


def _counts(
    x: Any,
    weights: Any,
    edges: Buffer[Any],
    compared: Buffer[Any],
    binning: Binning,
    count: int,
    density: bool,
    output_map: Any,
    graph: CommandGraph | None,
) -> Buffer[Any]:
    """Return counts of bins between edges, sums of weights or densities; waits for nothing."""
    values = operand(x, "x")
    weighing = None if weights is None else operand(weights, "weights")
    kind = dtype.float64 if density else _count_type(weighing)
    last = output(output_map, kind, (count,))
    check_overlap((), last, elsewhere=[values] if weighing is None else [values, weighing])
    sink = output(None, kind, (count,)) if density else last
    counts = result(None, (count,), sink.out_type, values.context)
    if values.size == 0:
        _cleared(counts, sink, graph)
    elif weighing is None:
        counted(values, binning, compared, count, counts, sink, graph)
    else:
        weighed(values, weighing, binning, compared, count, counts, sink, graph)
    return _density(counts, edges, last, graph) if density else counts


def _real(values: Operand, name: str) -> Operand:
    if not is_scalar(values.var_type):
        raise ArgumentTypeError(
            f"{name}: expected integers, floats or truth values, got {values.var_type.name}; map its parts"
        )
    return values


def _count_type(weights: Operand | None) -> DType:
    if weights is None or weights.var_type is dtype.bool_:
        return dtype.int64
    return weights.var_type


def host_type(kind: DType) -> "np.dtype[Any]":
    """Return NumPy's type for values of a dtype, as NumPy promotes them."""
    if kind is dtype.bfloat16:
        return np.dtype(np.float32)
    return np.dtype(np.uint8) if kind is dtype.bool_ else np.dtype(to_numpy_dtype(kind))


def _binned(
    x: Operand, bins: Any, range: Any, graph: CommandGraph | None
) -> tuple[Buffer[Any], Buffer[Any], Binning, int]:
    """Return the edges, those that elements are compared with, how, and the number of bins."""
    if isinstance(bins, Buffer):
        edges, compared = _given_on_device(x, bins, graph)
        return edges, compared, searched(compared), edges.size - 1
    if np.ndim(bins) == 0:
        return _equal(x, bins, range, graph)
    host = np.asarray(bins)
    if host.ndim != 1 or host.dtype.kind not in "biuf" or host.size < 2:
        raise ArgumentValueError(
            f"bins: expected how many, or at least 2 edges along one axis, got {given(bins)} of the shape "
            f"{host.shape}"
        )
    if np.any(host[:-1] > host[1:]):
        raise ArgumentValueError("bins: expected edges that rise")
    common = np.result_type(host_type(x.var_type), host.dtype)
    kind = wide_type(from_numpy_dtype(common))
    if _has_to_narrow(x, kind) and not np.isnan(host).any():
        compared = asbuffer(_narrowed([host], x)[0], context=x.context)
        return asbuffer(host, context=x.context), compared, searched(compared), host.size - 1
    compared = asbuffer(host.astype(to_numpy_dtype(kind)), context=x.context)
    edges = (
        compared if compared.var_type is from_numpy_dtype(host.dtype) else asbuffer(host, context=x.context)
    )
    return edges, compared, searched(compared), host.size - 1


def _given_on_device(
    x: Operand, edges: Buffer[Any], graph: CommandGraph | None
) -> tuple[Buffer[Any], Buffer[Any]]:
    if len(edges.shape) != 1 or edges.size < 2 or not is_scalar(edges.var_type):
        raise ArgumentValueError(
            f"bins: expected at least 2 edges along one axis, got a buffer of the shape {edges.shape} of "
            f"{edges.var_type.name}"
        )
    common = np.result_type(host_type(x.var_type), host_type(edges.var_type))
    kind = wide_type(from_numpy_dtype(common))
    if edges.var_type is kind:
        return edges, edges
    compared: Buffer[Any] = function_buffer(edges.shape, kind, context=x.context)
    return edges, stored(edges, compared, output(None, kind), graph)


def _equal(
    x: Operand, bins: Any, range: Any, graph: CommandGraph | None
) -> tuple[Buffer[Any], Buffer[Any], Binning, int]:
    count = checked_int(bins, "bins", least=1, most=_MOST_BINS - 1, wanted="an int, or edges")
    numbers = host_type(x.var_type)
    if range is None and x.size and is_recorded(graph):
        guess: DType = dtype.float64 if x.var_type is dtype.float64 else dtype.float32
        kind = from_numpy_dtype(np.result_type(numbers, np.float64 if numbers.kind in "iu" else numbers))
        edges = spaced(extremes(x, graph), x.var_type, count, kind, graph)
        binning = Binning("uniform", edges.var_type, guess, _grid(kind))
        if kind is edges.var_type:
            return edges, edges, binning, count
        narrow: Buffer[Any] = function_buffer(edges.shape, kind, context=x.context)
        return stored(edges, narrow, output(None, kind), graph), edges, binning, count
    outer = _checked_range(range)
    # what a graph has recorded with is its own
    key = None if is_recorded(graph) else _key(x, count, outer)
    if key is None:
        edges, compared, guess = _uploaded_edges(x, count, outer)
    else:
        kept, compared, guess = _kept_edges(x, count, outer, key)
        edges = function_buffer(kept.shape, kept.var_type, context=x.context)
        copyto(edges, kept)
    if not is_float_dtype(compared.var_type):
        return edges, compared, searched(compared), count
    return edges, compared, Binning("uniform", compared.var_type, guess, _grid(edges.var_type)), count


def _key(x: Operand, bins: int, outer: tuple[Any, Any] | None) -> object:
    """Return what edges depend on; None where they are not worth keeping, or depend on elements."""
    if outer is None or bins > _LONGEST or not all(type(each) in (int, float) for each in outer):
        return None
    return x.var_type, bins, repr(outer)


def _kept_edges(x: Operand, bins: int, outer: tuple[Any, Any] | None, key: object) -> _Edges:
    """Return edges as the context keeps them, from call to call."""
    kept: dict[object, _Edges] = x.context._keep(_KEPT, dict)
    found = kept.get(key)
    if found is None or any(each._native.poisoned for each in found[:2]):
        found = _uploaded_edges(x, bins, outer)
        if len(kept) >= _MOST_KEPT:
            kept.clear()
        kept[key] = found
    return found


def _uploaded_edges(x: Operand, bins: int, outer: tuple[Any, Any] | None) -> _Edges:
    """Return new edges from the outer ones; of None, between the extremes, for which it waits."""
    hosts = _host_edges(x, bins, outer)
    edges = _uploaded(hosts, x)
    kind = wide_type(edges.var_type)
    if _has_to_narrow(x, kind):
        return edges, _uploaded(_narrowed(hosts, x), x), dtype.float32
    compared = edges if kind is edges.var_type else _uploaded([each.astype(np.float32) for each in hosts], x)
    # float64 is needed where the guess in float32 would be wrong for many elements
    fine = any(np.diff(each).min() < 2.0**-20 * np.abs(each).max() for each in hosts)
    is_double = x.var_type is dtype.float64 or (kind is dtype.float64 and fine)
    return edges, compared, dtype.float64 if is_double else dtype.float32


def _has_to_narrow(x: Operand, kind: DType) -> bool:
    """Whether edges are of a type that the device lacks, where others tell elements apart as they do."""
    lacking = kind is dtype.float64 and "shaderFloat64" not in device_facts(x.context).features
    return lacking and x.var_type.item_size <= 4


def _narrowed(hosts: "list[np.ndarray[Any, Any]]", x: Operand) -> "list[np.ndarray[Any, Any]]":
    """Return edges of elements' own kind: the least that are not below each, and not above the last one."""
    if host_type(x.var_type).kind == "f":
        return [_rounded_outwards(host.astype(np.float64)) for host in hosts]
    found = [np.concatenate([np.ceil(host[:-1]), np.floor(host[-1:])]) for host in hosts]
    fits = x.var_type is not dtype.uint32 and all(np.abs(each).max() < 2.0**31 for each in found)
    wide = [np.clip(each, -(2.0**62), 2.0**62).astype(np.int64) for each in found]
    return [each.astype(np.int32) for each in wide] if fits else wide


def _rounded_outwards(host: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
    with np.errstate(over="ignore"):
        near = host.astype(np.float32)
    up = np.where(near < host, np.nextafter(near, np.float32(np.inf)), near)
    down = np.where(near > host, np.nextafter(near, np.float32(-np.inf)), near)
    return np.concatenate([up[:-1], down[-1:]])


def _grid(kind: DType) -> DType | None:
    return kind if wide_type(kind) is not kind else None


def _uploaded(hosts: "list[np.ndarray[Any, Any]]", x: Operand) -> Buffer[Any]:
    """Return a buffer with an array for each queue, or with one for all."""
    buffer = asbuffer(hosts[0], context=x.context)
    for queue, host in enumerate(hosts[1:], 1):
        buffer.write(host, queue)
    return buffer


def _checked_range(range: Any) -> tuple[Any, Any] | None:
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
        raise ArgumentValueError(f"range: the last edge lies before the first: {range!r}")
    return first, last


def _host_edges(x: Operand, bins: int, range: tuple[Any, Any] | None) -> "list[np.ndarray[Any, Any]]":
    """Return the edges as NumPy computes them: from the range, or from the extremes that each queue has."""
    numbers = host_type(x.var_type)
    samples = [np.empty(0, numbers)]
    if range is None and x.size:
        found = extremes_read(extremes(x, None), x.var_type)
        for low, high in found:
            if not (np.isfinite(low) and np.isfinite(high)):
                raise ArgumentValueError(
                    f"x: its elements range from {low} to {high}, which is no range for bins; give range="
                )
        samples = [np.array(each).astype(numbers) for each in found]
    try:
        return [np.histogram_bin_edges(sample, bins, range) for sample in samples]
    except ValueError as error:
        raise ArgumentValueError(f"bins: {error}") from None


def _cleared(counts: Buffer[Any], sink: Output, graph: CommandGraph | None) -> None:
    zeros = asbuffer(np.zeros(counts.size, np.uint32), context=counts.context)
    stored(zeros, counts, sink, graph)


def _density(
    counts: Buffer[Any], edges: Buffer[Any], sink: Output, graph: CommandGraph | None
) -> Buffer[Any]:
    total = _total()(counts, graph=graph)
    dense = result(None, counts.shape, sink.out_type, counts.context)
    _dividing(edges.var_type, sink.sink)(counts, edges, total, dense, *sink.arguments, graph=graph)
    return dense


@remembered
def _total() -> ReduceFunction:
    return ReduceFunction(SubgroupAdd, None, None, identity_map(dtype.float64), name="total", plain=True)


@remembered
def _dividing(kind: DType, sink: Sink) -> ShaderFunction:
    arguments = [
        ("counts", buffer[dtype.float64]),
        ("edges", buffer[kind]),
        ("total", buffer[dtype.float64]),
        ("dense", buffer[sink.out_type]),
    ]
    mapped = sink.parameters

    def trace(counts: Any, edges: Any, total: Any, dense: Any, *variables: Any) -> None:
        index = vc.global_invocation_id().x
        wide = dtype.float64
        if is_float_dtype(kind):
            # the difference is rounded as the edges are
            width = (edges[index + 1] - edges[index]).to_dtype(wide)
        else:
            width = edges[index + 1].to_dtype(wide) - edges[index].to_dtype(wide)
        sink.store(dense, variables, index, (counts[index] / width / total[0]).to_register())

    return traced("density", trace, [*arguments, *mapped], _GROUP, exec_size="dense.size")
