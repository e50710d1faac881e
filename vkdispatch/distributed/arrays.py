"""Arrays as chunks of `dask.array`: what Dask looks up by the type of chunks, and the backend "vkdispatch"."""

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from dask import config
from dask.array import chunk_types, dispatch
from dask.array.backends import ArrayBackendEntrypoint
from dask.utils import Dispatch

to_vkdispatch_dispatch = Dispatch("to_vkdispatch_dispatch")

_LOOKUPS = (
    *("concatenate_lookup", "take_lookup", "tensordot_lookup", "einsum_lookup", "empty_lookup"),
    *("divide_lookup", "percentile_lookup", "numel_lookup", "nannumel_lookup"),
    *("to_numpy_dispatch", "to_cupy_dispatch"),
)


def register_lookups() -> None:
    """Have `dask.array` ask for our functions when it first meets an Array."""
    for name in _LOOKUPS:
        lookup = getattr(dispatch, name, None)
        if lookup is not None:
            lookup.register_lazy("vkdispatch", _register_functions)


@functools.cache
def _register_functions() -> None:
    """Register the functions of `vkdispatch.numpy` for Arrays."""
    import vkdispatch.numpy as vnp

    functions = {
        "concatenate_lookup": _find("concatenate"),
        "take_lookup": _find("take"),
        "tensordot_lookup": _find("tensordot"),
        "einsum_lookup": _einsum,
        "empty_lookup": _find("empty"),
        "divide_lookup": _divide,
        "percentile_lookup": _percentile,
        "numel_lookup": _count,
        "nannumel_lookup": _count_numbers,
        "to_numpy_dispatch": _to_numpy,
        "to_cupy_dispatch": _to_cupy,
    }
    for name, function in functions.items():
        lookup = getattr(dispatch, name, None)
        if lookup is not None:
            lookup.register(vnp.ndarray, function)


def register_chunks() -> None:
    """Let Arrays be chunks beside Dask's arrays, in operators and NumPy's functions."""
    import vkdispatch.numpy as vnp

    chunk_types.register_chunk_type(vnp.ndarray)
    _serve_linalg()


# ---- what Dask looks up --------------------------------------------------------------------------


def _find(name: str) -> Callable[..., Any]:
    """Return a function that calls the function of the namespace of this name: that of the time of the call."""

    def call(*args: Any, **kwargs: Any) -> Any:
        import vkdispatch.numpy as vnp

        return getattr(vnp, name)(*args, **kwargs)

    call.__name__ = name
    return call


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
        1 if place in places else length for place, length in enumerate(x.shape) if keepdims or place not in places
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


@to_vkdispatch_dispatch.register(object)
def _to_vkdispatch(x: Any, **_: Any) -> Any:
    import vkdispatch.numpy as vnp

    return vnp.asarray(x)


# ---- the backend ---------------------------------------------------------------------------------


class VulkanBackend(ArrayBackendEntrypoint):  # type: ignore[misc]
    """What `dask.config.set({"array.backend": "vkdispatch"})` selects: an entry point of Dask."""

    def __init__(self) -> None:
        _register_functions()

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
    from dask.array import linalg, utils

    solve_block, lu, inv = utils.scipy_linalg_safe, linalg.lu, linalg.inv

    @functools.wraps(solve_block)
    def scipy_linalg_safe(func_name: str, *args: Any, **kwargs: Any) -> Any:
        from vkdispatch.numpy.linalg.triangles import solve_triangular

        if _is_array(args[0]) and func_name == "solve_triangular":
            return solve_triangular(*args, **kwargs)
        return solve_block(func_name, *args, **kwargs)

    @functools.wraps(lu)
    def factor(a: Any) -> Any:
        found = lu(a)
        return tuple(map(_replace_blocks, found)) if _is_array(a._meta) else found

    @functools.wraps(inv)
    def invert(a: Any) -> Any:
        if not _is_array(a._meta):
            return inv(a)
        from dask.array import eye

        return linalg.solve(a, eye(a.shape[0], chunks=a.chunks[0][0]).map_blocks(to_vkdispatch_dispatch))

    utils.scipy_linalg_safe, linalg.lu, linalg.inv = scipy_linalg_safe, factor, invert


def _is_array(x: Any) -> bool:
    from vkdispatch.numpy.core.array import Array

    return isinstance(x, Array)


def _replace_blocks(x: Any) -> Any:
    """Return a factor of `da.linalg.lu` whose blocks are Arrays."""
    from dask.array import Array
    from dask.highlevelgraph import HighLevelGraph
    from scipy.linalg import lu

    replaced = {lu: _factor_block, np.zeros: _zero_block}
    layer = {
        key: (replaced.get(task[0], task[0]), *task[1:]) if isinstance(task, tuple) and callable(task[0]) else task
        for key, task in x.dask.layers[x.name].items()
    }
    graph = HighLevelGraph({**x.dask.layers, x.name: layer}, x.dask.dependencies)
    return Array(graph, x.name, x.chunks, meta=x._meta)


def _factor_block(x: Any) -> Any:
    from vkdispatch.numpy.linalg.triangles import factor_plu

    return factor_plu(x)


def _zero_block(*shape: int) -> Any:
    import vkdispatch.numpy as vnp

    return vnp.zeros(shape)
