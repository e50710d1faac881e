"""The backend "vkdispatch" of `dask.array`, and the registration of Arrays as its chunks."""

import functools
from typing import Any

from dask import config
from dask.array.backends import ArrayBackendEntrypoint, array_creation_dispatch
from dask.array.chunk_types import register_chunk_type
from dask.utils import Dispatch

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
        from vkdispatch.distributed.legacy_random import RandomState

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
