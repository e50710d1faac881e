"""Tells Dask about arrays and buffers as soon as a program has both, without an import by the user."""

import sys
from importlib import import_module
from typing import Any


def register(sizeof: Any) -> None:
    """Have `distributed` find our functions for arrays and buffers. Dask calls this when it is loaded.

    Nothing is imported: that happens when the first array or buffer is sent. `sizeof` is Dask's registry,
    which the entry point passes.
    """
    if not _register_when_loaded():
        sys.meta_path.insert(0, _Watcher())


class _Watcher:
    """A finder of modules that finds nothing: it notices that `distributed` is loaded."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        # this module is imported by the package itself, and stands on those that have the registries
        if name == "distributed.worker":
            sys.meta_path.remove(self)
            import_module("distributed.protocol.serialize")
            _register_when_loaded()


def _register_when_loaded() -> bool:
    """Register with `distributed` if it is loaded, and return whether it is."""
    protocol: Any = sys.modules.get("distributed.protocol.serialize")
    if not hasattr(protocol, "register_generic"):  # what it defines last
        return False
    protocol.dask_serialize.register_lazy("vkdispatch", _load)
    protocol.dask_deserialize.register_lazy("vkdispatch", _load)
    return True


def _load() -> None:
    import_module("vkdispatch.distributed.serialization")
