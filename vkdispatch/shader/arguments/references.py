"""Copying and pickling of kernels, maps and reductions: by module and name, as of functions."""

import pickle
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any, Self

from vkdispatch.base.errors import ArgumentTypeError

Home = tuple[str, str]


class UnpicklableError(ArgumentTypeError, pickle.PicklingError):
    """An object that is pickled by name is not found under that name."""


class Referenced:
    """An object that is pickled as its module and its name there. Copies of it are the same object."""

    __slots__ = ()

    def _home(self) -> Home | None:
        """Return the module and the qualified name of the function that it was made from, if known."""
        raise NotImplementedError

    def _describe(self) -> str:
        """Return what messages call it."""
        raise NotImplementedError

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce__(self) -> str | tuple[Any, ...]:
        return _load, _find_name(self, self._home(), self._describe())

    def __reduce_ex__(self, protocol: Any) -> str | tuple[Any, ...]:
        return self.__reduce__()


def find_home(function: Callable[..., Any]) -> Home | None:
    """Return the module and the qualified name of a function, or None if it has none."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    return (module, name) if module and name else None


def _find_name(item: object, home: Home | None, described: str) -> Home:
    """Return module and name under which a process that imports the module finds an object.

    Raises
    ------
    UnpicklableError
        There is no such name.
    """
    if home is None:
        raise UnpicklableError(
            f"{described} cannot be pickled: it was not made from a function that a module has by name"
        )
    module, qualified = home
    if _look_up(module, qualified) is item:
        return home
    # Its name may differ from that of its function, as in `scaled = vd.map(multiply)`.
    for name, value in list(vars(sys.modules.get(module, object)).items()):
        if value is item:
            return module, name
    reason = "it is defined in a function" if "<locals>" in qualified else f"{module}.{qualified} is not it"
    raise UnpicklableError(
        f"{described} cannot be pickled by name: {reason}; define it at the top level of a module"
    )


def _look_up(module: str, qualified: str) -> object:
    """Return the object that a loaded module has under a name, or None."""
    found: Any = sys.modules.get(module)
    for part in qualified.split("."):
        found = getattr(found, part, None)
    return found


def _load(module: str, qualified: str) -> Any:
    """Return an object that was pickled by name.

    Raises
    ------
    UnpicklableError
        The module has no such name here.
    """
    import_module(module)
    found = _look_up(module, qualified)
    if found is None:
        raise UnpicklableError(
            f"a pickle refers to {module}.{qualified}, which this process does not have; define it at the "
            "top level of that module"
        )
    return found
