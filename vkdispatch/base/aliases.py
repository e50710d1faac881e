"""Names that modules of 0.1.0 had and that live in other modules now: programs import them from both."""

from collections.abc import Callable
from importlib import import_module


def names_elsewhere(module: str, homes: dict[str, str]) -> Callable[[str], object]:
    """Return a module's `__getattr__`: it finds the names of each home, a module of this package."""
    places = {name: home for home, names in homes.items() for name in names.split()}

    def find(name: str) -> object:
        if name not in places:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        return getattr(import_module(f"vkdispatch.{places[name]}"), name)

    return find
