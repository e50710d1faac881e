"""Arrays as chunks of `dask.array`: what Dask looks up by their type, and the backend "vkdispatch"."""

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from dask import config
from dask.array.backends import ArrayBackendEntrypoint, array_creation_dispatch
from dask.array.chunk_types import register_chunk_type
from dask.utils import Dispatch

from vkdispatch.distributed.routines import find_module, is_array, replace, serve_routines

to_vkdispatch_dispatch = Dispatch("to_vkdispatch_dispatch")


def register_backend() -> None:
    """Let `dask.array` know the backend "vkdispatch"."""
    array_creation_dispatch.register_backend("vkdispatch", VulkanBackend())


def register_chunks() -> None:
    """Let `dask.array` know Arrays as chunks, and what computes with them."""
    import vkdispatch.numpy as vnp

    register_chunk_type(vnp.ndarray)
    for name, function in _FUNCTIONS.items():
        lookup = getattr(find_module("dispatch"), name, None)
        if lookup is not None:
            lookup.register(vnp.ndarray, function)
    _serve_linalg()
    _serve_conversions()
    _serve_chunks()
    _serve_permutations()
    serve_routines()


# ---- what Dask looks up --------------------------------------------------------------------------


# Functions of the namespace are found when they are called: others may be in their places then.


def _concatenate(arrays: Any, axis: Any = 0) -> Any:
    """Join chunks: those of NumPy are copied to the device."""
    import vkdispatch.numpy as vnp

    return vnp.concatenate([vnp.asarray(each) for each in arrays], axis=axis)


def _take(x: Any, indices: Any, axis: Any = None) -> Any:
    import vkdispatch.numpy as vnp

    return vnp.take(x, indices, axis=axis)


def _tensordot(x: Any, y: Any, axes: Any = 2) -> Any:
    import vkdispatch.numpy as vnp

    return vnp.tensordot(x, y, axes=axes)


def _empty(shape: Any, dtype: Any = None, **_: Any) -> Any:
    import vkdispatch.numpy as vnp

    return vnp.empty(shape, dtype)


def _einsum(*operands: Any, **options: Any) -> Any:
    import vkdispatch.numpy as vnp

    for name in ("casting", "order"):  # Dask always gives them
        options.pop(name, None)
    return vnp.einsum(*operands, **options)


def _divide(x: Any, y: Any, out: Any = None, dtype: Any = None) -> Any:
    import vkdispatch.numpy as vnp

    quotient = vnp.divide(x, y, out=out)
    return quotient if dtype is None else quotient.astype(dtype, copy=False)


def _percentile(x: Any, q: Any, method: str = "linear") -> Any:
    """Return percentiles of a chunk, and its size; None in place of those of an empty chunk."""
    import vkdispatch.numpy as vnp

    count = len(x)
    if not count:
        return None, count
    return vnp.percentile(x, vnp.asarray(q), method=method), count


def _count(x: Any, axis: Any = None, keepdims: bool = False, dtype: Any = np.float64, **_: Any) -> Any:
    """Return how many elements a sum along axes has."""
    import vkdispatch.numpy as vnp

    axes = range(x.ndim) if axis is None else (axis if isinstance(axis, (tuple, list)) else (axis,))
    places = {each % x.ndim for each in axes}
    count = math.prod(x.shape[each] for each in places)
    shape = tuple(
        1 if place in places else length
        for place, length in enumerate(x.shape)
        if keepdims or place not in places
    )
    return vnp.full(shape, count, dtype, device=x.device)


def _count_numbers(x: Any, **options: Any) -> Any:
    """Return how many elements along axes are not NaN."""
    import vkdispatch.numpy as vnp

    return vnp.sum(~vnp.isnan(x), **options)


def _to_numpy(x: Any, **_: Any) -> Any:
    return x.numpy()


def _to_cupy(x: Any, **_: Any) -> Any:
    import cupy

    return cupy.asarray(x.numpy())


_FUNCTIONS: dict[str, Callable[..., Any]] = {
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


def _to_vkdispatch(x: Any, **_: Any) -> Any:
    import vkdispatch.numpy as vnp

    return vnp.asarray(x)


to_vkdispatch_dispatch.register(object, _to_vkdispatch)


# ---- the backend ---------------------------------------------------------------------------------


class VulkanBackend(ArrayBackendEntrypoint):  # type: ignore[misc]
    """What `dask.config.set({"array.backend": "vkdispatch"})` selects: an entry point of Dask."""

    @classmethod
    def to_backend_dispatch(cls) -> Dispatch:
        """Return Dask's dispatcher of functions that make Arrays of chunks."""
        return to_vkdispatch_dispatch

    @classmethod
    def to_backend(cls, data: Any, **kwargs: Any) -> Any:
        """Return a Dask array with Arrays as chunks: the same one if it has them already."""
        import vkdispatch.numpy as vnp

        if isinstance(data._meta, vnp.ndarray):
            return data
        return data.map_blocks(to_vkdispatch_dispatch, **kwargs)

    @property
    def RandomState(self) -> Any:  # noqa: N802  its name in Dask
        """The class of legacy generators, which `da.random.RandomState` uses."""
        from vkdispatch.distributed.legacy_random import RandomState

        return RandomState

    @property
    def default_bit_generator(self) -> Any:
        """What `da.random.default_rng` draws from: `vd.random.Generator`."""
        from vkdispatch.random.generator import Generator

        return Generator

    @staticmethod
    def ones(*args: Any, **kwargs: Any) -> Any:
        """Return `da.ones` with Arrays as chunks."""
        return _create("ones", args, kwargs)

    @staticmethod
    def zeros(*args: Any, **kwargs: Any) -> Any:
        """Return `da.zeros` with Arrays as chunks."""
        return _create("zeros", args, kwargs)

    @staticmethod
    def empty(*args: Any, **kwargs: Any) -> Any:
        """Return `da.empty` with Arrays as chunks."""
        return _create("empty", args, kwargs)

    @staticmethod
    def full(*args: Any, **kwargs: Any) -> Any:
        """Return `da.full` with Arrays as chunks."""
        return _create("full", args, kwargs)

    @staticmethod
    def arange(*args: Any, like: Any = None, **kwargs: Any) -> Any:
        """Return `da.arange` with Arrays as chunks."""
        import dask.array as da

        with config.set({"array.backend": "numpy"}):
            return da.arange(*args, like=_empty_meta() if like is None else like, **kwargs)


def _create(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    import dask.array as da

    meta = kwargs.pop("meta", None)
    with config.set({"array.backend": "numpy"}):
        return getattr(da, name)(*args, meta=_empty_meta() if meta is None else meta, **kwargs)


def _empty_meta() -> Any:
    import vkdispatch.numpy as vnp

    return vnp.empty((0,))


# ---- what Dask has no dispatch for ---------------------------------------------------------------


def _serve_linalg() -> None:
    """Let `da.linalg` factor and solve with blocks that are Arrays.

    Dask has SciPy do it, which would copy them to the host, with zeros and ones of NumPy beside them.
    """
    linalg, utils = find_module("linalg"), find_module("utils")
    solve_block, lu, inv = utils.scipy_linalg_safe, linalg.lu, linalg.inv

    @functools.wraps(solve_block)
    def scipy_linalg_safe(func_name: str, *args: Any, **kwargs: Any) -> Any:
        from vkdispatch.numpy.linalg.solving import solve_triangular

        if is_array(args[0]) and func_name == "solve_triangular":
            return solve_triangular(*args, **kwargs)
        return solve_block(func_name, *args, **kwargs)

    @functools.wraps(lu)
    def factor(a: Any) -> Any:
        found = lu(a)
        return tuple(map(_replace_blocks, found)) if is_array(a._meta) else found

    @functools.wraps(inv)
    def invert(a: Any) -> Any:
        if not is_array(a._meta):
            return inv(a)
        from dask.array import eye

        return linalg.solve(a, eye(a.shape[0], chunks=a.chunks[0][0]).map_blocks(to_vkdispatch_dispatch))

    utils.scipy_linalg_safe, linalg.lu, linalg.inv = scipy_linalg_safe, factor, invert


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
    from vkdispatch.numpy.linalg.solving import factor_plu

    return factor_plu(x)


def _make_zeros(shape: Any, dtype: Any) -> Any:
    import vkdispatch.numpy as vnp

    return vnp.zeros(shape, dtype)


def _serve_conversions() -> None:
    """Let `x.to_backend("numpy")` know the dtype of the result, which Dask would find by reading an array."""
    from dask.array.backends import NumpyBackendEntrypoint

    own = NumpyBackendEntrypoint.to_backend.__func__

    def to_backend(cls: Any, /, data: Any, **kwargs: Any) -> Any:
        if is_array(data._meta):
            kwargs = {"meta": np.empty((0,) * data.ndim, data.dtype), **kwargs}
        return own(cls, data, **kwargs)

    NumpyBackendEntrypoint.to_backend = classmethod(to_backend)


def _serve_chunks() -> None:
    """Let functions of chunks, which make arrays of NumPy beside them, compute with Arrays."""
    replace("slicing", "setitem", _set_items)
    replace("chunk", "argtopk_preprocess", lambda own, a, idx: own(a, to_vkdispatch_dispatch(idx)))
    replace("reductions", "_custom_nanquantile", _compute_nanquantile)


def _serve_permutations() -> None:
    """Let `da.random.Generator.permutation` draw from our generators; the order is one of the host."""
    from dask.array import arange
    from dask.array.slicing import shuffle_slice

    from vkdispatch.random.generator import Generator

    random = find_module("random")
    own = random.Generator.permutation

    @functools.wraps(own)
    def permutation(self: Any, x: Any) -> Any:
        stream = self._bit_generator
        if not isinstance(stream, Generator):
            return own(self, x)
        if isinstance(x, (int, np.integer)):
            x = arange(x, chunks="auto")
        (seed,) = stream._seed_seq.spawn(1)
        return shuffle_slice(x, np.random.default_rng(seed).permutation(len(x)))

    random.Generator.permutation = permutation


def _set_items(own: Any, x: Any, value: Any, indices: Any) -> Any:
    # Dask marks places of other chunks, and takes them out of NumPy's arrays alone
    return own(
        x, value, [each.numpy() if is_array(each) and each.dtype != bool else each for each in indices]
    )


def _compute_nanquantile(own: Any, x: Any, q: Any, axis: Any = None, **options: Any) -> Any:
    import vkdispatch.numpy as vnp

    return vnp.nanquantile(x, vnp.asarray(q), axis=tuple(axis), **options)
