"""Records: classes of named fields, as `dataclasses` makes them, at a tenth of what those cost an import.

`@record` gives a class slots, an `__init__`, a `__repr__`, and comparison by fields unless `eq=False`. Fields
are not to be assigned to, which type checkers see to, unless `frozen=False`.
"""

from collections.abc import Callable
from typing import Any, TypeVar, dataclass_transform, overload

_Record = TypeVar("_Record")


class _Factory:
    """A default that is made anew for each record."""

    __slots__ = ("make",)

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make


def field(*, factory: Callable[[], Any]) -> Any:
    """Return the default of a field that `factory` makes for each record."""
    return _Factory(factory)


@overload
def record(cls: type[_Record], /) -> type[_Record]: ...
@overload
def record(*, eq: bool = True, frozen: bool = True) -> Callable[[type[_Record]], type[_Record]]: ...


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(cls: Any = None, /, *, eq: bool = True, frozen: bool = True) -> Any:
    """Make a record of a class: its annotations are the fields, in order, its values their defaults.

    Parameters
    ----------
    eq
        Whether records of equal fields are equal, and have one hash; without, each equals itself alone.
    frozen
        Whether a type checker is to refuse assignments.
    """
    return _made(cls, eq) if cls is not None else lambda decorated: _made(decorated, eq)


def replace(item: _Record, **changes: Any) -> _Record:
    """Return a copy of a record with some fields changed."""
    fields: tuple[str, ...] = type(item).__match_args__  # type: ignore[attr-defined]
    return type(item)(**{name: getattr(item, name) for name in fields} | changes)


def _made(cls: type[Any], eq: bool) -> type[Any]:
    fields = tuple(cls.__annotations__)
    body = {
        name: value
        for name, value in vars(cls).items()
        if name not in fields and name not in ("__dict__", "__weakref__")
    }
    body |= {"__slots__": fields, "__match_args__": fields, "__init__": _initializer(cls, fields)}
    body.setdefault("__repr__", _repr)
    if eq:
        body |= {"__eq__": _eq, "__hash__": _hash}
    made: type[Any] = type(cls.__name__, cls.__bases__, body)
    made.__qualname__ = cls.__qualname__
    return made


def _initializer(cls: type[Any], fields: tuple[str, ...]) -> Any:
    defaults = vars(cls)
    scope: dict[str, Any] = {"unset": _Factory}
    parameters, lines = ["self"], ["    pass"]
    for name in fields:
        given = name
        if name in defaults:
            default = defaults[name]
            made_anew = isinstance(default, _Factory)
            scope[f"{name}_"] = default.make if made_anew else default
            parameters.append(f"{name}=unset" if made_anew else f"{name}={name}_")
            given = f"{name}_() if {name} is unset else {name}" if made_anew else name
        else:
            parameters.append(name)
        lines.append(f"    self.{name} = {given}")
    exec(f"def __init__({', '.join(parameters)}):\n" + "\n".join(lines), scope)
    return scope["__init__"]


def _values(item: Any) -> tuple[Any, ...]:
    return tuple([getattr(item, name) for name in type(item).__match_args__])


def _repr(self: Any) -> str:
    parts = ", ".join(f"{name}={getattr(self, name)!r}" for name in type(self).__match_args__)
    return f"{type(self).__name__}({parts})"


def _eq(self: Any, other: object) -> Any:
    return _values(self) == _values(other) if type(other) is type(self) else NotImplemented


def _hash(self: Any) -> int:
    return hash((type(self), *_values(self)))
