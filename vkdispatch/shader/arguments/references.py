"""Kernels, maps and reductions are copied and pickled as functions are: by module and name."""

import pickle
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any, Self

from vkdispatch.base.errors import ArgumentTypeError

Home = tuple[str, str]


class UnpicklableError(ArgumentTypeError, pickle.PicklingError):
    """What is pickled by name is not found by that name."""


class Referenced:
    """What is pickled as its module and its name there; copies of it are the same object."""

    __slots__ = ()

    def _home(self) -> Home | None:
        """Return the module and the qualified name of the function that it was made of, where known."""
        raise NotImplementedError

    def _describe(self) -> str:
        """Return how messages call it."""
        raise NotImplementedError

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce__(self) -> str | tuple[Any, ...]:
        return _find, _name_of(self, self._home(), self._describe())

    def __reduce_ex__(self, protocol: Any) -> str | tuple[Any, ...]:
        return self.__reduce__()


def home_of(function: Callable[..., Any]) -> Home | None:
    """Return the module and the qualified name of a function, where it has them."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    return (module, name) if module and name else None


def _name_of(item: object, home: Home | None, described: str) -> Home:
    """Return module and name under which a process that imports the module finds an object.

    Raises
    ------
    UnpicklableError
        There is no such name.
    """
    if home is None:
        raise UnpicklableError(
            f"{described} cannot be pickled: it was made of no function that a module has by name"
        )
    module, qualified = home
    if _look_up(module, qualified) is item:
        return home
    # it may have another name than its function, as in `scaled = vd.map(multiply)`
    for name, value in list(vars(sys.modules.get(module, object)).items()):
        if value is item:
            return module, name
    reason = "it is defined in a function" if "<locals>" in qualified else f"{module}.{qualified} is not it"
    raise UnpicklableError(
        f"{described} cannot be pickled: it travels by name, and {reason}; define it at the top level of a "
        "module"
    )


def _look_up(module: str, qualified: str) -> object:
    """Return what a loaded module has under a name, None for nothing."""
    found: Any = sys.modules.get(module)
    for part in qualified.split("."):
        found = getattr(found, part, None)
    return found


def _find(module: str, qualified: str) -> Any:
    """Return what was pickled by name.

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
