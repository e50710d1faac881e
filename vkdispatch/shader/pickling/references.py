"""Copying and pickling of kernels, maps and reductions: by module and name as of functions, or by value."""

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any, Self

from vkdispatch.shader.pickling.errors import UnpicklableError

Home = tuple[str, str]


class Referenced:
    """An object that is pickled as its module and its name there, if it has them, else by value.

    What is defined in a function, in `__main__`, or in a module of `cloudpickle.register_pickle_by_value` is
    pickled by value, which needs cloudpickle. Copies of it are the same object.
    """

    __slots__ = ()

    @property
    def _is_fixed(self) -> bool:
        """Whether nothing can change what it computes, so that it keeps its pickle by value."""
        return False

    def _home(self) -> Home | None:
        """Return the module and the qualified name of the function that it was made from, if known."""
        raise NotImplementedError

    def _describe(self) -> str:
        """Return what messages call it."""
        raise NotImplementedError

    def _get_state(self) -> tuple[Any, ...]:
        """Return what `_set_state` takes: all that it is made of, without what depends on a device."""
        raise NotImplementedError

    def _set_state(self, *state: Any) -> None:
        """Make this object, whose `__init__` was not called, equivalent to the one that the state is of."""
        raise NotImplementedError

    def _get_content(self) -> tuple[Any, ...]:
        """Return what determines the results that it computes."""
        return self._get_state()

    def _arrive(self, key: bytes) -> None:
        """Take note that it was loaded from a pickle by value with this hash."""

    def _reduce_otherwise(self) -> tuple[Any, ...] | None:
        """Return how it is pickled if not by value: by name; None if it has none."""
        found = _find_name(self, self._home())
        return (_load, found) if isinstance(found, tuple) else None

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce__(self) -> str | tuple[Any, ...]:
        otherwise = self._reduce_otherwise()
        if otherwise is not None:
            return otherwise
        # Few programs pickle kernels by value.
        from vkdispatch.shader.pickling.payload import can_pickle_functions, load_payload, make_payload

        if not can_pickle_functions():
            home = self._home()
            if home is not None and _look_up(*home) is self:
                return _load, home
            raise UnpicklableError(
                f"{self._describe()} cannot be pickled by name: {_find_name(self, home)}; define it at the "
                "top level of a module, or install cloudpickle"
            )
        return load_payload, (make_payload(self),)

    def __reduce_ex__(self, protocol: Any) -> str | tuple[Any, ...]:
        return self.__reduce__()

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        from vkdispatch.shader.pickling.payload import hash_content

        return type(self).__name__, hash_content(self)


def find_home(function: Callable[..., Any]) -> Home | None:
    """Return the module and the qualified name of a function, or None if it has none."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    return (module, name) if module and name else None


def _find_name(item: object, home: Home | None) -> Home | str:
    """Return module and name under which a process that imports the module finds an object, or why not."""
    if home is None:
        return "it was not made from a function that a module has by name"
    module, qualified = home
    if _is_pickled_by_value(module):
        return f"{module} is not the same module in another process"
    if _look_up(module, qualified) is item:
        return home
    # Its name may differ from that of its function, as in `scaled = vd.map(multiply)`.
    for name, value in list(vars(sys.modules.get(module, object)).items()):
        if value is item:
            return module, name
    return "it is defined in a function" if "<locals>" in qualified else f"{module}.{qualified} is not it"


def _is_pickled_by_value(module: str) -> bool:
    """Whether functions of a module are pickled by value: of scripts, and where cloudpickle was told so."""
    if module == "__main__":
        return True
    cloudpickle: Any = sys.modules.get("cloudpickle")
    marked = cloudpickle.list_registry_pickle_by_value() if cloudpickle is not None else ()
    return any(module == each or module.startswith(f"{each}.") for each in marked)


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
