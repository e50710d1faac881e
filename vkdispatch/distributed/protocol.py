"""Registration with `distributed.protocol`, which sends what we send when the first of it is sent."""

from importlib import import_module

from distributed.protocol.serialize import dask_deserialize, dask_serialize


def register_messages() -> None:
    """Have `distributed` find our functions for arrays and buffers when it meets one."""
    dask_serialize.register_lazy("vkdispatch", _load)
    dask_deserialize.register_lazy("vkdispatch", _load)


def _load() -> None:
    import_module("vkdispatch.distributed.serialization")
