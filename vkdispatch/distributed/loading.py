"""Registration with Dask when it is loaded.

Dask calls `register_sizes`, an entry point of this package, when it is imported. What else has to be told
to its modules waits until they are imported as well. Nothing here imports Dask or `vkdispatch.numpy`.
"""

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec

# Functions of modules of this package to call once all modules of a set are loaded.
_waiting: dict[tuple[str, str], frozenset[str]] = {
    ("loading", "register_sizes_lazily"): frozenset(("dask.sizeof",)),
    ("arrays", "register_backend"): frozenset(("dask.array",)),
    ("arrays", "register_chunks"): frozenset(("dask.array", "vkdispatch.numpy")),
    ("loading", "register_messages"): frozenset(("distributed.protocol.serialize",)),
    ("arrays", "watch_choice"): frozenset(("dask.array",)),
    ("arrays", "watch_rechunking"): frozenset(("distributed.shuffle._rechunk",)),
    ("results", "watch_local"): frozenset(("dask.local",)),
    ("results", "watch_workers"): frozenset(("distributed.worker",)),
    ("frames", "watch_handshakes"): frozenset(("distributed.comm.core", "distributed.protocol")),
    ("frames", "watch_messages"): frozenset(
        ("distributed.comm.tcp", "distributed.protocol", "distributed.utils")
    ),
}
# Modules that were imported through the finder, and may not look finished yet.
_loaded: set[str] = set()


def register_sizes(sizeof: Any) -> None:
    """Tell `dask.sizeof` the sizes of Arrays, and have the rest registered: an entry point of Dask.

    Parameters
    ----------
    sizeof
        Dask's dispatcher, `dask.sizeof.sizeof`.
    """
    _waiting.pop(("loading", "register_sizes_lazily"), None)
    _register_lazily(sizeof)
    register()


def register_sizes_lazily() -> None:
    """Tell `dask.sizeof` the sizes of Arrays, where this package's entry points are not installed."""
    _register_lazily(sys.modules["dask.sizeof"].sizeof)


def _register_lazily(sizeof: Any) -> None:
    def register_types() -> None:
        from vkdispatch.base.buffer import Buffer
        from vkdispatch.numpy.core.array import Array, view_of
        from vkdispatch.numpy.core.blanks import has_device

        @sizeof.register(Array)  # type: ignore[untyped-decorator]
        def measure_array(x: Array) -> int:
            # which is computed where there is a device
            if has_device():
                view_of(x)
            return x.nbytes

        @sizeof.register(Buffer)  # type: ignore[untyped-decorator]
        def measure_buffer(buffer: Buffer[Any]) -> int:
            return buffer.mem_size

    sizeof.register_lazy("vkdispatch", register_types)


def register_messages() -> None:
    """Have `distributed` find our functions for arrays and buffers when it meets one."""
    serialize = sys.modules["distributed.protocol.serialize"]
    for lookup in (serialize.dask_serialize, serialize.dask_deserialize):
        lookup.register_lazy("vkdispatch", lambda: import_module("vkdispatch.distributed.serialization"))


def register() -> None:
    """Register with the modules of Dask that are loaded, and with the others once they are."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
    _call_ready()


def _is_loaded(name: str) -> bool:
    module = sys.modules.get(name)
    if module is None:
        return False
    return name in _loaded or not getattr(module.__spec__, "_initializing", False)


def _call_ready() -> None:
    for (home, function), names in list(_waiting.items()):
        module = f"vkdispatch.distributed.{home}"
        if module in sys.modules and not _is_loaded(module):
            continue  # it is being imported, and this is called again at its end
        # the first of several threads takes it
        if all(map(_is_loaded, names)) and _waiting.pop((home, function), None) is not None:
            try:
                getattr(import_module(module), function)()
            except Exception as error:
                # Dask itself is to work, whatever its version
                warnings.warn(
                    f"vkdispatch cannot register with this version of Dask, in {home}.{function}: {error!r}",
                    RuntimeWarning,
                    stacklevel=2,
                )


def _has_waiting_names(name: str) -> bool:
    return any(
        name in names or name == f"vkdispatch.distributed.{home}" for (home, _), names in _waiting.items()
    )


class _Finder:
    """Finds the modules that are waited for, by the other finders, and notices when they are loaded."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> "ModuleSpec | None":
        if fullname in _loaded or not _has_waiting_names(fullname):
            return None
        for finder in sys.meta_path:
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = None if find is None else find(fullname, path, target)
            if spec is not None:
                loader: Any = spec.loader
                if loader is not None:
                    loader = _Notice(loader)
                    spec.loader = loader
                return spec
        return None


class _Notice:
    """Loads a module by its own loader, and then registers what waited for it."""

    def __init__(self, own: Any) -> None:
        self._own = own

    def create_module(self, spec: "ModuleSpec") -> ModuleType | None:
        made: ModuleType | None = self._own.create_module(spec)
        return made

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None
        module.__spec__.loader = module.__loader__ = self._own
        self._own.exec_module(module)
        _loaded.add(module.__name__)
        _call_ready()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own, name)
