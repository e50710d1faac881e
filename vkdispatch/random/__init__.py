"""Random numbers in bulk: the same streams on every device, and, of Philox4x64, the same as NumPy's."""

from importlib import import_module
from typing import Any

from vkdispatch.random.generator import Generator

__all__ = ["Generator"]


def __getattr__(name: str) -> Any:
    if name == "default_rng":
        # Dask takes it from the package that a bit generator is of
        return import_module("vkdispatch.numpy.random").default_rng
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*(name for name in globals() if name.startswith("__")), *__all__} - {"__getattr__"})
