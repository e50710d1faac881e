"""What `dask.array` computes with Arrays as chunks: what it looks up by type, and what it does not dispatch.

Some functions of Dask fail with such chunks, or return NumPy's. Each function here that is served in place of
one is called with that one and its arguments. Only `arrays.register_chunks` imports this module, after
`vkdispatch.numpy`.
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

import vkdispatch.numpy as vnp
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.distributed.results import wrap
from vkdispatch.numpy import random
from vkdispatch.numpy.core.array import Array
from vkdispatch.numpy.linalg import solving
from vkdispatch.random.generator import Generator

_Function = Callable[..., Any]
# Transforms of `dask.array.fft` that Arrays support.
_TRANSFORMS = [f"{prefix}fft{axes}" for axes in ("", "2", "n") for prefix in ("", "i", "r", "ir")]


def find_module(name: str) -> Any:
    """Return a module of `dask.array`, whose attribute of this name may be something else."""
    return import_module(f"dask.array.{name}")


def is_array(x: Any) -> bool:
    """Whether a chunk is an Array, or the chunks of a Dask array, or of one of several ones, are Arrays."""
    if isinstance(x, (list, tuple)):
        return any(map(is_array, x))
    return isinstance(getattr(x, "_meta", x), vnp.ndarray)


def replace(home: str, name: str, compute: _Function, place: int = 0) -> None:
    """Have `compute` called, with the function of Dask and its arguments, where an argument is of Arrays.

    `place` is that of the argument.
    """
    original = getattr(find_module(home), name, None)
    if original is None:
        return
    signature = inspect.signature(original)

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError:
            return original(*args, **kwargs)  # which says what is wrong
        names = list(bound.arguments)[: place + 1]
        head = [bound.arguments[name] for name in names]
        if not is_array(head[-1]):
            return original(*args, **kwargs)
        rest = {name: value for name, value in kwargs.items() if name not in names}
        return compute(original, *head, *args[place + 1 :], **rest)

    _put(name, original, call)


def _put(name: str, original: _Function, call: _Function) -> None:
    """Put a function into the place of Dask's own one, in each module that has it."""
    for holder in [each for home, each in sys.modules.items() if home.startswith("dask.array")]:
        if getattr(holder, name, None) is original:
            setattr(holder, name, call)


def serve_routines() -> None:
    """Let `dask.array` compute with Arrays where its chunks are Arrays."""
    for name, function in _FUNCTIONS.items():
        lookup = getattr(find_module("dispatch"), name, None)
        if lookup is not None:
            lookup.register(vnp.ndarray, function)
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
    replace("slicing", "setitem", _set_items)
    replace("chunk", "argtopk_preprocess", lambda original, a, idx: original(a, _upload(idx)))
    replace("reductions", "_custom_nanquantile", _compute_nanquantile)
    _serve_keys()
    _serve_linalg()
    _serve_conversions()
    _serve_permutations()


def _upload(block: Any) -> Any:
    return vnp.asarray(block)


def _upload_blocks(x: Any) -> Any:
    """Return a Dask array whose chunks of NumPy are copied to the device."""
    return x.map_blocks(_upload, dtype=x.dtype, meta=_describe(x.ndim, x.dtype))


def _describe(ndim: int, dtype: Any) -> Any:
    """Return the meta of a Dask array of Arrays."""
    return vnp.empty((0,) * ndim, dtype)


def _serve_keys() -> None:
    """Let keys of tasks that create Arrays differ from those that create the same numbers in NumPy.

    Dask finds keys of some functions from the numbers alone, and computes one of two tasks with equal keys.
    """
    random = find_module("random")
    arange = find_module("creation").arange

    @functools.wraps(arange)
    def create(*args: Any, like: Any = None, **kwargs: Any) -> Any:
        made = arange(*args, like=like, **kwargs)
        # the sum of a start and a range has a key that depends on that of the range
        is_range = like is not None and is_array(like) and made.name.startswith("arange-")
        return _rename(made) if is_range else made

    @wrap(random, "_wrap_func")
    def draw_chunks(draw: _Function, rng: Any, *args: Any, **kwargs: Any) -> Any:
        made = draw(rng, *args, **kwargs)
        return _rename(made) if isinstance(rng, random.RandomState) and is_array(made) else made

    _put("arange", arange, create)


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


def _call_and_mark(original: _Function, *args: Any, **kwargs: Any) -> Any:
    """Call a function whose result Dask takes for NumPy's, as it cannot try it on empty chunks."""
    return _mark(original(*args, **kwargs))


def _select(original: _Function, x: Any, index: Any) -> Any:
    selected, rest = original(x, index)
    return _mark(selected), rest


def _create_with_arrays(original: _Function, *args: Any, **kwargs: Any) -> Any:
    """Have what the function creates beside its argument, indices or random numbers, be Arrays."""
    with config.set({"array.backend": "vkdispatch"}):
        return original(*args, **kwargs)


# ---- histograms ----------------------------------------------------------------------------------


def _histogram(
    original: _Function,
    a: Any,
    bins: Any = None,
    range: Any = None,
    normed: Any = False,
    weights: Any = None,
    density: Any = None,
) -> tuple[Any, Any]:
    counts, edges = original(a, bins, range, normed, weights)
    counts = _mark(counts)
    if not density:
        return counts, edges
    from dask.array import asarray

    widths = asarray(np.diff(edges).astype(float)).rechunk(counts.chunks)
    return counts / _upload_blocks(widths) / counts.sum(), edges


def _histogramdd(original: _Function, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
    counts, edges = original(*args, **kwargs)  # counts of each chunk are small, and are added on the host
    return _upload_blocks(counts), edges


# ---- functions along axes ------------------------------------------------------------------------


def _apply_along_axis(
    original: _Function, function: _Function, axis: int, x: Any, *args: Any, **kwargs: Any
) -> Any:
    @functools.wraps(function)
    def call(line: Any, *others: Any, **options: Any) -> Any:
        # Dask tries it with one of NumPy
        return function(_upload(line), *others, **options)

    return _mark(original(call, axis, x, *args, **kwargs))


def _apply_to_lines(
    _: _Function, x: Any, func1d: _Function, func1d_axis: int, func1d_args: Any, func1d_kwargs: Any
) -> Any:
    """Call a function with each line of a chunk."""
    lines = vnp.moveaxis(x, func1d_axis, -1)
    outer = lines.shape[:-1]
    if not math.prod(outer):
        raise ArgumentValueError(f"arr: expected at least one line, got an array of shape {x.shape}")
    results = [
        vnp.asarray(func1d(line, *func1d_args, **func1d_kwargs))
        for line in lines.reshape(-1, lines.shape[-1])
    ]
    joined = vnp.stack(results).reshape(*outer, *results[0].shape)
    count = results[0].ndim
    places = (tuple(range(start, start + count)) for start in (len(outer), func1d_axis))
    return vnp.moveaxis(joined, *places)


def _apply_over_axes(_: _Function, function: _Function, x: Any, axes: Any) -> Any:
    for axis in axes if isinstance(axes, (list, tuple)) else (axes,):
        place = range(x.ndim)[axis]
        sample = np.ones([2 if other == place else 1 for other in range(x.ndim)], x.dtype)
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
    result = function(block, axis)
    return result if result.ndim == block.ndim else vnp.expand_dims(result, axis)


# ---- unique elements -----------------------------------------------------------------------------


def _unique(
    original: _Function,
    x: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
) -> Any:
    if not (return_index or return_inverse or return_counts):
        return original(x)
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
    return (*vnp.unique(block, return_index=True, return_counts=True), len(block))


def _join_unique(parts: list[tuple[Any, ...]]) -> tuple[Any, ...]:
    """Return the unique elements of all chunks, the first place and the number of each."""
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
    return vnp.searchsorted(unique, block)


# ---- what Dask looks up --------------------------------------------------------------------------


def _concatenate(arrays: Any, axis: Any = 0) -> Any:
    """Concatenate chunks. NumPy arrays are copied to the device."""
    return vnp.concatenate([vnp.asarray(array) for array in arrays], axis=axis)


def _take(x: Any, indices: Any, axis: Any = None) -> Any:
    return vnp.take(x, indices, axis=axis)


def _tensordot(x: Any, y: Any, axes: Any = 2) -> Any:
    return vnp.tensordot(x, y, axes=axes)


def _empty(shape: Any, dtype: Any = None, **_: Any) -> Any:
    return vnp.empty(shape, dtype)


def _einsum(*operands: Any, **options: Any) -> Any:
    for name in ("casting", "order"):  # Dask always gives them
        options.pop(name, None)
    return vnp.einsum(*operands, **options)


def _divide(x: Any, y: Any, out: Any = None, dtype: Any = None) -> Any:
    quotient = vnp.divide(x, y, out=out)
    return quotient if dtype is None else quotient.astype(dtype, copy=False)


def _percentile(x: Any, q: Any, method: str = "linear") -> Any:
    """Return the percentiles and the size of a chunk. The percentiles of an empty chunk are None."""
    count = len(x)
    if not count:
        return None, count
    return vnp.percentile(x, vnp.asarray(q), method=method), count


def _count(x: Any, axis: Any = None, keepdims: bool = False, dtype: Any = np.float64, **_: Any) -> Any:
    """Return how many elements a sum along axes has."""
    axes = range(x.ndim) if axis is None else (axis if isinstance(axis, (tuple, list)) else (axis,))
    places = {number % x.ndim for number in axes}
    count = math.prod(x.shape[number] for number in places)
    shape = tuple(
        1 if place in places else length
        for place, length in enumerate(x.shape)
        if keepdims or place not in places
    )
    return vnp.full(shape, count, dtype, device=x.device)


def _count_numbers(x: Any, **options: Any) -> Any:
    """Return how many elements along axes are not NaN."""
    return vnp.sum(~vnp.isnan(x), **options)


def _to_numpy(x: Any, **_: Any) -> Any:
    return x.numpy()


def _to_cupy(x: Any, **_: Any) -> Any:
    import cupy

    return cupy.asarray(x.numpy())


_FUNCTIONS: dict[str, _Function] = {
    "concatenate_lookup": _concatenate,
    "divide_lookup": _divide,
    "einsum_lookup": _einsum,
    "empty_lookup": _empty,
    "nannumel_lookup": _count_numbers,
    "numel_lookup": _count,
    "percentile_lookup": _percentile,
    "take_lookup": _take,
    "tensordot_lookup": _tensordot,
    "to_cupy_dispatch": _to_cupy,
    "to_numpy_dispatch": _to_numpy,
}


# ---- linear algebra, conversions, permutations and assignments ----------------------------------


def _serve_linalg() -> None:
    """Let `da.linalg` factor and solve with blocks that are Arrays.

    Dask has SciPy do it, which would copy them to the host, with zeros and ones of NumPy beside them.
    """
    linalg = find_module("linalg")

    @wrap(find_module("utils"), "scipy_linalg_safe")
    def solve_block(original: _Function, func_name: str, *args: Any, **kwargs: Any) -> Any:
        if is_array(args[0]) and func_name == "solve_triangular":
            return solving.solve_triangular(*args, **kwargs)
        return original(func_name, *args, **kwargs)

    @wrap(linalg, "lu")
    def factor(lu: _Function, a: Any) -> Any:
        factors = lu(a)
        return tuple(map(_replace_blocks, factors)) if is_array(a._meta) else factors

    @wrap(linalg, "inv")
    def invert(inv: _Function, a: Any) -> Any:
        if not is_array(a._meta):
            return inv(a)
        from dask.array import eye

        return linalg.solve(a, eye(a.shape[0], chunks=a.chunks[0][0]).map_blocks(_upload))


def _replace_blocks(x: Any) -> Any:
    """Return a factor of `da.linalg.lu` whose blocks are Arrays."""
    from dask.array import Array
    from dask.highlevelgraph import HighLevelGraph
    from scipy.linalg import lu

    replaced = {lu: _factor_block, np.zeros: functools.partial(_make_zeros, dtype=x.dtype)}
    layer = {
        key: (replaced.get(task[0], task[0]), *task[1:])
        if isinstance(task, tuple) and callable(task[0])
        else task
        for key, task in x.dask.layers[x.name].items()
    }
    graph = HighLevelGraph({**x.dask.layers, x.name: layer}, x.dask.dependencies)
    return Array(graph, x.name, x.chunks, meta=x._meta)


def _factor_block(x: Any) -> Any:
    return solving.factor_plu(x)


def _make_zeros(shape: Any, dtype: Any) -> Any:
    return vnp.zeros(shape, dtype)


def _serve_conversions() -> None:
    """Let `x.to_backend("numpy")` know the dtype of the result, which Dask would find by reading an array."""
    from dask.array.backends import NumpyBackendEntrypoint

    original = NumpyBackendEntrypoint.to_backend.__func__

    def to_backend(cls: Any, /, data: Any, **kwargs: Any) -> Any:
        if is_array(data._meta):
            kwargs = {"meta": np.empty((0,) * data.ndim, data.dtype), **kwargs}
        return original(cls, data, **kwargs)

    NumpyBackendEntrypoint.to_backend = classmethod(to_backend)


def _serve_permutations() -> None:
    """Let `da.random.Generator.permutation` draw from our generators; the order is one of the host."""
    from dask.array import arange
    from dask.array.slicing import shuffle_slice

    @wrap(find_module("random").Generator, "permutation")
    def permute(original: _Function, generator: Any, x: Any) -> Any:
        stream = generator._bit_generator
        if not isinstance(stream, Generator):
            return original(generator, x)
        if isinstance(x, (int, np.integer)):
            x = arange(x, chunks="auto")
        (seed,) = stream._seed_seq.spawn(1)
        return shuffle_slice(x, np.random.default_rng(seed).permutation(len(x)))


def _set_items(original: Any, x: Any, value: Any, indices: Any) -> Any:
    # Dask marks places of other chunks, and takes them out of NumPy's arrays alone
    return original(
        x, value, [index.numpy() if is_array(index) and index.dtype != bool else index for index in indices]
    )


def _compute_nanquantile(original: Any, x: Any, q: Any, axis: Any = None, **options: Any) -> Any:
    return vnp.nanquantile(x, vnp.asarray(q), axis=tuple(axis), **options)


# ---- The legacy generator that `da.random.RandomState` draws chunks from ---------------------------------


class RandomState(random.Generator):
    """A generator with the names of `numpy.random.RandomState`. Its numbers are not those of NumPy's.

    Parameters
    ----------
    seed
        A nonnegative int or a sequence of these; None is unpredictable.
    """

    def __init__(self, seed: Any = None) -> None:
        numbers = None if seed is None else np.asarray(seed).tolist()
        super().__init__(Generator(np.random.SeedSequence(numbers)))

    def random_sample(self, size: Any = None) -> Array:
        """Return uniformly distributed numbers in [0, 1)."""
        return self.random(size)

    def randint(self, low: Any, high: Any = None, size: Any = None, dtype: Any = np.int64) -> Array:
        """Return integers of [low, high); of [0, low) without `high`."""
        return self.integers(low, high, size, dtype)

    def random_integers(self, low: Any, high: Any = None, size: Any = None) -> Array:
        """Return integers of [low, high]; of [1, low] without `high`."""
        low, high = (1, low) if high is None else (low, high)
        return self.integers(low, high, size, endpoint=True)

    def tomaxint(self, size: Any = None) -> Array:
        """Return integers of [0, 2**63)."""
        return self.integers(0, 2**63, size)
