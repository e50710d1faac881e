"""Runtime objects: devices, contexts, buffers and what runs on them."""

from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING


def submodules_of(package: str) -> Callable[[str], ModuleType]:
    """Return a `__getattr__` for a package whose modules programs reach as attributes, imported or not."""

    def get(name: str) -> ModuleType:
        if not name.startswith("_"):
            path = f"{package}.{name}"
            try:
                return import_module(path)
            except ModuleNotFoundError as error:
                if error.name != path:
                    raise
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return get


if not TYPE_CHECKING:  # which then finds no name that is not there
    __getattr__ = submodules_of(__name__)
