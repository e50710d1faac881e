"""Dask arrays whose chunks are Arrays: the backend "vkdispatch" of `dask.array`, and rechunking."""

import functools
import math
import sys
from collections.abc import Sequence
from contextvars import ContextVar
from importlib import import_module
from itertools import accumulate
from typing import Any

from dask import config
from dask.array.backends import ArrayBackendEntrypoint, array_creation_dispatch
from dask.array.chunk_types import register_chunk_type
from dask.utils import Dispatch

from vkdispatch.distributed.results import wrap

to_vkdispatch_dispatch = Dispatch("to_vkdispatch_dispatch")


def register_backend() -> None:
    """Let `dask.array` know the backend "vkdispatch"."""
    array_creation_dispatch.register_backend("vkdispatch", VulkanBackend())


def register_chunks() -> None:
    """Let `dask.array` know Arrays as chunks, and what computes with them."""
    import vkdispatch.numpy as vnp
    from vkdispatch.distributed import routines

    register_chunk_type(vnp.ndarray)
    routines.serve_routines()


def _to_vkdispatch(x: Any, **_: Any) -> Any:
    import vkdispatch.numpy as vnp

    return vnp.asarray(x)


to_vkdispatch_dispatch.register(object, _to_vkdispatch)


# ---- the backend ---------------------------------------------------------------------------------


def _create(name: str, /, *args: Any, **kwargs: Any) -> Any:
    """Call a function of `dask.array` for Arrays as chunks."""
    import dask.array as da

    meta = kwargs.pop("meta", None)
    with config.set({"array.backend": "numpy"}):
        return getattr(da, name)(*args, meta=_empty_meta() if meta is None else meta, **kwargs)


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
        from vkdispatch.distributed.routines import RandomState

        return RandomState

    @property
    def default_bit_generator(self) -> Any:
        """What `da.random.default_rng` draws from: `vd.random.Generator`."""
        from vkdispatch.random.generator import Generator

        return Generator

    ones = staticmethod(functools.partial(_create, "ones"))
    zeros = staticmethod(functools.partial(_create, "zeros"))
    empty = staticmethod(functools.partial(_create, "empty"))
    full = staticmethod(functools.partial(_create, "full"))

    @staticmethod
    def arange(*args: Any, like: Any = None, **kwargs: Any) -> Any:
        """Return `da.arange` with Arrays as chunks."""
        import dask.array as da

        with config.set({"array.backend": "numpy"}):
            return da.arange(*args, like=_empty_meta() if like is None else like, **kwargs)


def _empty_meta() -> Any:
    import vkdispatch.numpy as vnp

    return vnp.empty((0,))


# ---- Rechunking of arrays whose chunks are Arrays: by which method, and what its pieces are --------------
#
# With `method="tasks"`, pieces are Arrays, which workers of one machine send as in `frames`. With
# `method="p2p"`, `distributed` cuts chunks into pieces, sends these, stores them on disk, and joins them once
# all are there. Pieces that are Arrays would be copied from and to a device at each of these steps. So a
# chunk is read once, before it is cut, and a new chunk is copied to the device once, after it is joined.


_Chunks = Sequence[Sequence[float]]

# Bytes: a task costs about a millisecond, in which a gigabyte per second goes through the host.
_MIN_PIECE = 1e6

_rechunked: ContextVar[Any] = ContextVar("rechunked", default=None)


class Place(tuple[int, ...]):
    """Where a piece lies in its new chunk, which becomes an Array."""

    __slots__ = ()


def _is_array(value: Any) -> bool:
    # whoever has made one has loaded its module
    module = sys.modules.get("vkdispatch.numpy.core.array")
    return module is not None and isinstance(value, module.Array)


def watch_rechunking() -> None:
    """Have the workers of `distributed` in this process cut and join chunks on the host."""
    from distributed.shuffle import _rechunk

    @wrap(_rechunk.ArrayRechunkRun, "_shard_partition")
    def cut_chunk(cut: Any, run: Any, data: Any, partition_id: Any) -> Any:
        if not _is_array(data):
            return cut(run, data, partition_id)
        return {
            worker: (source, [(chunk, (Place(place), piece)) for chunk, (place, piece) in pieces])
            for worker, (source, pieces) in cut(run, data.numpy(), partition_id).items()
        }

    @wrap(_rechunk, "convert_chunk")
    def join_chunk(join: Any, shards: Any) -> Any:
        joined = join(shards)
        if not any(isinstance(place, Place) for pieces in shards for place, _ in pieces):
            return joined
        from vkdispatch.numpy.core.conversion import from_numpy

        return from_numpy(joined)


def watch_choice() -> None:
    """Have Dask rechunk Arrays by tasks where that is faster, unless somebody says how."""
    # the name in `dask.array` is the function's
    module: Any = sys.modules["dask.array.rechunk"]

    @wrap(module, "rechunk")
    def rechunk_array(rechunk: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        token = _rechunked.set(x)
        try:
            return rechunk(x, *args, **kwargs)
        finally:
            _rechunked.reset(token)

    @wrap(module, "_choose_rechunk_method")
    def choose_method(choose: Any, old: _Chunks, new: _Chunks, *args: Any, **kwargs: Any) -> str:
        method, x = str(choose(old, new, *args, **kwargs)), _rechunked.get()
        if method != "p2p" or config.get("array.rechunk.method", None):
            return method
        if x is None or not _is_array(x._meta):
            return method
        # sizes that are not known compare as false
        return "tasks" if x.nbytes > _count_pieces(old, new) * _MIN_PIECE else method

    array: Any = import_module("dask.array")
    array.rechunk = module.rechunk


def _count_pieces(old: _Chunks, new: _Chunks) -> int:
    """Return the number of pieces that lie in one old chunk and in one new chunk."""
    return math.prod(len({*accumulate(a), *accumulate(b)}) for a, b in zip(old, new, strict=True))
