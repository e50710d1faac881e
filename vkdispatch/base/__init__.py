"""Runtime objects: devices, contexts, buffers and what runs on them."""

from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING


def submodules_of(package: str) -> Callable[[str], ModuleType]:
    """Return a `__getattr__` for a package that imports its submodules when they are used as attributes."""

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


def names_elsewhere(module: str, homes: dict[str, str]) -> Callable[[str], object]:
    """Return a `__getattr__` for a module of 0.1.0 whose names have moved to other modules.

    `homes` maps each module, relative to `vkdispatch`, to the names that it defines, separated by spaces.
    """
    places = {name: home for home, names in homes.items() for name in names.split()}

    def find(name: str) -> object:
        if name not in places:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        return getattr(import_module(f"vkdispatch.{places[name]}"), name)

    return find


if not TYPE_CHECKING:  # type checkers would accept any name
    __getattr__ = submodules_of(__name__)
