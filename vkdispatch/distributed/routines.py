"""Functions of `dask.array` that fail with Arrays as chunks, or return NumPy's: here they return Arrays.

Dask dispatches none of them. Each function here is called with Dask's own one and its arguments.
"""

import functools
import inspect
import math
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
from dask import config
from dask._task_spec import GraphNode
from dask.base import tokenize
from dask.highlevelgraph import HighLevelGraph

from vkdispatch.base.errors import ArgumentValueError

_Function = Callable[..., Any]
# Transforms of `dask.array.fft` that Arrays support.
_TRANSFORMS = [f"{prefix}fft{axes}" for axes in ("", "2", "n") for prefix in ("", "i", "r", "ir")]


def find_module(name: str) -> Any:
    """Return a module of `dask.array`, whose attribute of this name may be something else."""
    return import_module(f"dask.array.{name}")


def is_array(x: Any) -> bool:
    """Whether a chunk is an Array, or the chunks of a Dask array, or of one of several ones, are Arrays."""
    from vkdispatch.numpy.core.array import Array

    if isinstance(x, (list, tuple)):
        return any(map(is_array, x))
    return isinstance(getattr(x, "_meta", x), Array)


def replace(home: str, name: str, compute: _Function, place: int = 0) -> None:
    """Have `compute` called, with the function of Dask and its arguments, where an argument is of Arrays.

    `place` is that of the argument.
    """
    own = getattr(find_module(home), name, None)
    if own is None:
        return
    signature = inspect.signature(own)

    @functools.wraps(own)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError:
            return own(*args, **kwargs)  # which says what is wrong
        names = list(bound.arguments)[: place + 1]
        head = [bound.arguments[name] for name in names]
        if not is_array(head[-1]):
            return own(*args, **kwargs)
        rest = {name: value for name, value in kwargs.items() if name not in names}
        return compute(own, *head, *args[place + 1 :], **rest)

    _put(name, own, call)


def _put(name: str, own: _Function, call: _Function) -> None:
    """Put a function into the place of Dask's own one, in each module that has it."""
    for holder in [each for home, each in sys.modules.items() if home.startswith("dask.array")]:
        if getattr(holder, name, None) is own:
            setattr(holder, name, call)


def serve_routines() -> None:
    """Let functions of `dask.array` return Arrays where their chunks are Arrays."""
    replace("routines", "apply_along_axis", _apply_along_axis, 2)
    replace("routines", "_inner_apply_along_axis", _apply_to_lines)
    replace("routines", "apply_over_axes", _apply_over_axes, 1)
    replace("routines", "argwhere", _create_with_arrays)
    replace("routines", "histogram", _histogram)
    replace("routines", "histogramdd", _histogramdd)
    replace("routines", "unique", _unique)
    replace("linalg", "compression_matrix", _create_with_arrays)
    replace("slicing", "slice_with_bool_dask_array", _select)
    replace("routines", "coarsen", _call_and_mark, 1)
    replace("routines", "gradient", _call_and_mark)
    replace("routines", "ravel_multi_index", _call_and_mark)
    replace("reductions", "quantile", _call_and_mark)
    replace("reductions", "prefixscan_blelloch", _call_and_mark, 3)
    for name in (*_TRANSFORMS, "hfft", "ihfft"):
        replace("fft", name, _call_and_mark)
    _serve_keys()


def _upload(block: Any) -> Any:
    import vkdispatch.numpy as vnp

    return vnp.asarray(block)


def _upload_blocks(x: Any) -> Any:
    """Return a Dask array whose chunks of NumPy are copied to the device."""
    return x.map_blocks(_upload, dtype=x.dtype, meta=_describe(x.ndim, x.dtype))


def _describe(ndim: int, dtype: Any) -> Any:
    """Return the meta of a Dask array of Arrays."""
    import vkdispatch.numpy as vnp

    return vnp.empty((0,) * ndim, dtype)


def _serve_keys() -> None:
    """Let keys of tasks that create Arrays differ from those that create the same numbers in NumPy.

    Dask finds keys of some functions from the numbers alone, and computes one of two tasks with equal keys.
    """
    random = find_module("random")
    arange, draw = find_module("creation").arange, random._wrap_func

    @functools.wraps(arange)
    def create(*args: Any, like: Any = None, **kwargs: Any) -> Any:
        made = arange(*args, like=like, **kwargs)
        # the sum of a start and a range has a key that depends on that of the range
        is_range = like is not None and is_array(like) and made.name.startswith("arange-")
        return _rename(made) if is_range else made

    @functools.wraps(draw)
    def draw_chunks(rng: Any, *args: Any, **kwargs: Any) -> Any:
        made = draw(rng, *args, **kwargs)
        return _rename(made) if isinstance(rng, random.RandomState) and is_array(made) else made

    _put("arange", arange, create)
    random._wrap_func = draw_chunks


def _rename(x: Any) -> Any:
    """Return a Dask array with keys of its own for its chunks, which are always the same."""
    array = find_module("core").Array
    if not isinstance(x, array):
        return x
    kind, _, token = x.name.rpartition("-")
    name = f"{kind}-{tokenize('vkdispatch', token)}"
    layer = {}
    for (_, *place), task in x.dask.layers[x.name].items():
        key = (name, *place)
        layer[key] = task.substitute({}, key=key) if isinstance(task, GraphNode) else task
    layers = {**x.dask.layers, name: layer}
    needed = {**x.dask.dependencies, name: x.dask.dependencies[x.name]}
    del layers[x.name], needed[x.name]
    return array(HighLevelGraph(layers, needed), name, x.chunks, meta=x._meta)


def _mark(x: Any) -> Any:
    """Return a Dask array, or several ones, whose chunks are Arrays, with metas that say so."""
    if isinstance(x, (list, tuple)):
        return type(x)(map(_mark, x))
    array = find_module("core").Array
    if not isinstance(x, array) or is_array(x):
        return x
    return array(x.dask, x.name, x.chunks, meta=_describe(x.ndim, x.dtype))


def _call_and_mark(own: _Function, *args: Any, **kwargs: Any) -> Any:
    """Call a function whose result Dask takes for NumPy's, as it cannot try it on empty chunks."""
    return _mark(own(*args, **kwargs))


def _select(own: _Function, x: Any, index: Any) -> Any:
    selected, rest = own(x, index)
    return _mark(selected), rest


def _create_with_arrays(own: _Function, *args: Any, **kwargs: Any) -> Any:
    """Have what the function creates beside its argument, indices or random numbers, be Arrays."""
    with config.set({"array.backend": "vkdispatch"}):
        return own(*args, **kwargs)


# ---- histograms ----------------------------------------------------------------------------------


def _histogram(
    own: _Function,
    a: Any,
    bins: Any = None,
    range: Any = None,
    normed: Any = False,
    weights: Any = None,
    density: Any = None,
) -> tuple[Any, Any]:
    counts, edges = own(a, bins, range, normed, weights)
    counts = _mark(counts)
    if not density:
        return counts, edges
    from dask.array import asarray

    widths = asarray(np.diff(edges).astype(float)).rechunk(counts.chunks)
    return counts / _upload_blocks(widths) / counts.sum(), edges


def _histogramdd(own: _Function, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
    counts, edges = own(*args, **kwargs)  # counts of each chunk are small, and are added on the host
    return _upload_blocks(counts), edges


# ---- functions along axes ------------------------------------------------------------------------


def _apply_along_axis(
    own: _Function, function: _Function, axis: int, x: Any, *args: Any, **kwargs: Any
) -> Any:
    @functools.wraps(function)
    def call(line: Any, *others: Any, **options: Any) -> Any:
        # Dask tries it with one of NumPy
        return function(_upload(line), *others, **options)

    return _mark(own(call, axis, x, *args, **kwargs))


def _apply_to_lines(
    _: _Function, x: Any, func1d: _Function, func1d_axis: int, func1d_args: Any, func1d_kwargs: Any
) -> Any:
    """Call a function with each line of a chunk."""
    import vkdispatch.numpy as vnp

    lines = vnp.moveaxis(x, func1d_axis, -1)
    outer = lines.shape[:-1]
    if not math.prod(outer):
        raise ArgumentValueError(f"arr: expected at least one line, got an array of shape {x.shape}")
    found = [
        vnp.asarray(func1d(line, *func1d_args, **func1d_kwargs))
        for line in lines.reshape(-1, lines.shape[-1])
    ]
    joined = vnp.stack(found).reshape(*outer, *found[0].shape)
    count = found[0].ndim
    places = (tuple(range(start, start + count)) for start in (len(outer), func1d_axis))
    return vnp.moveaxis(joined, *places)


def _apply_over_axes(_: _Function, function: _Function, x: Any, axes: Any) -> Any:
    for axis in axes if isinstance(axes, (list, tuple)) else (axes,):
        place = range(x.ndim)[axis]
        sample = np.ones([2 if each == place else 1 for each in range(x.ndim)], x.dtype)
        tried = function(_upload(sample), place)
        if tried.ndim not in (x.ndim, x.ndim - 1):
            raise ArgumentValueError(
                f"func: expected a result with {x.ndim} axes, as its input, or one less, got {tried.ndim}"
            )
        whole = x.rechunk({place: -1})
        chunks = list(whole.chunks)
        if tried.ndim < x.ndim or tried.shape[place] == 1:
            chunks[place] = (1,)
        x = whole.map_blocks(
            _apply_over_axis,
            function,
            place,
            chunks=tuple(chunks),
            dtype=tried.dtype,
            meta=_describe(x.ndim, tried.dtype),
        )
    return x


def _apply_over_axis(block: Any, function: _Function, axis: int) -> Any:
    import vkdispatch.numpy as vnp

    found = function(block, axis)
    return found if found.ndim == block.ndim else vnp.expand_dims(found, axis)


# ---- unique elements -----------------------------------------------------------------------------


def _unique(
    own: _Function,
    x: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
) -> Any:
    if not (return_index or return_inverse or return_counts):
        return own(x)
    from dask import delayed
    from dask.array import from_delayed

    flat = x.ravel()
    parts = [delayed(_find_unique)(block) for block in flat.to_delayed().ravel()]
    whole = delayed(_join_unique)(parts)

    def pick(place: int, dtype: Any) -> Any:
        return from_delayed(whole[place], (np.nan,), dtype, meta=_describe(1, dtype))

    results = [pick(0, x.dtype)]
    if return_index:
        results.append(pick(1, np.int64))
    if return_inverse:
        places = flat.map_blocks(_locate, whole[0], dtype=np.int64, meta=_describe(1, np.int64))
        results.append(places if x.ndim == 1 else places.reshape(x.shape))
    if return_counts:
        results.append(pick(2, np.int64))
    return tuple(results)


def _find_unique(block: Any) -> tuple[Any, ...]:
    """Return the unique elements of a chunk, the first place and number of each, and its length."""
    import vkdispatch.numpy as vnp

    return (*vnp.unique(block, return_index=True, return_counts=True), len(block))


def _join_unique(parts: list[tuple[Any, ...]]) -> tuple[Any, ...]:
    """Return the unique elements of all chunks, the first place and the number of each."""
    import vkdispatch.numpy as vnp

    starts = np.cumsum([0, *(length for *_, length in parts)]).tolist()
    values, counts = (vnp.concatenate([part[place] for part in parts]) for place in (0, 2))
    places = vnp.concatenate([part[1] + start for part, start in zip(parts, starts, strict=False)])
    unique, first, inverse, repeats = vnp.unique(
        values, return_index=True, return_inverse=True, return_counts=True
    )
    # in this order, the counts of one value are neighbors
    running = vnp.cumsum(counts[vnp.argsort(inverse, stable=True)])
    ends = running[vnp.cumsum(repeats) - 1]
    return unique, places[first], vnp.diff(ends, prepend=vnp.zeros(1, ends.dtype))


def _locate(block: Any, unique: Any) -> Any:
    import vkdispatch.numpy as vnp

    return vnp.searchsorted(unique, block)
