"""Records: classes with named fields, like dataclasses, at a tenth of their cost at import.

`@record` gives a class slots, an `__init__`, a `__repr__`, and comparison by fields unless `eq=False`. Type
checkers refuse assignments to fields unless `frozen=False`. The functions of the module `dataclasses` accept
records as dataclasses.
"""

import functools
from collections.abc import Callable
from typing import Any, TypeVar, dataclass_transform, overload

_Record = TypeVar("_Record")
_assign = object.__setattr__


class _Default:
    """A default made by `field`: from a factory, or of a field that `repr` and comparison ignore."""

    __slots__ = ("hidden", "make", "value")

    def __init__(self, value: Any, make: Callable[[], Any] | None, hidden: bool) -> None:
        self.value = value
        self.make = make
        self.hidden = hidden


def field(*, default: Any = None, factory: Callable[[], Any] | None = None, hidden: bool = False) -> Any:
    """Return the default of a field.

    Parameters
    ----------
    default
        The value.
    factory
        A function that makes the value for each record, instead of `default`.
    hidden
        Whether `repr` and comparison ignore the field.
    """
    return _Default(default, factory, hidden)


@overload
def record(cls: type[_Record], /) -> type[_Record]: ...
@overload
def record(
    *, eq: bool = True, frozen: bool = True, sealed: bool = False, slots: bool = True
) -> Callable[[type[_Record]], type[_Record]]: ...


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(
    cls: Any = None, /, *, eq: bool = True, frozen: bool = True, sealed: bool = False, slots: bool = True
) -> Any:
    """Make a class a record. Its annotations are the fields in order; its values are their defaults.

    Parameters
    ----------
    eq
        Whether records with equal fields are equal and have the same hash. If not, identity decides.
    frozen
        Whether type checkers refuse assignments.
    sealed
        Whether an assignment raises AttributeError, for classes that users see.
    slots
        Whether records have slots. Classes with cached properties need `slots=False`.
    """
    if cls is not None:
        return _make(cls, eq, sealed, slots)
    return lambda decorated: _make(decorated, eq, sealed, slots)


def replace(item: _Record, **changes: Any) -> _Record:
    """Return a copy of a record with some fields changed."""
    fields: tuple[str, ...] = type(item).__match_args__  # type: ignore[attr-defined]
    return type(item)(**{name: getattr(item, name) for name in fields} | changes)


def _make(cls: type[Any], eq: bool, sealed: bool, slots: bool) -> type[Any]:
    fields = tuple(cls.__annotations__)
    defaults = {name: value for name, value in vars(cls).items() if name in fields}
    body = {
        name: value
        for name, value in vars(cls).items()
        if name not in fields and name not in ("__dict__", "__weakref__")
    }
    shown = tuple(
        name
        for name in fields
        if not (isinstance(default := defaults.get(name), _Default) and default.hidden)
    )
    body |= {
        "__match_args__": fields,
        "__init__": _Initializer(fields, defaults, sealed),
        "__signature__": _Signature(),
        "__dataclass_fields__": _DataclassFields(fields, defaults, cls.__annotations__),
        "_shown": shown,
    }
    if sealed:
        body |= {"__setattr__": _refuse, "__delattr__": _refuse}
    if slots:
        body["__slots__"] = fields
    body.setdefault("__repr__", _repr)
    if not any("__reduce__" in vars(base) for base in cls.__mro__[:-1]):
        body["__reduce__"] = _reduce
    if eq:
        body |= {"__eq__": _Comparison(_EQ), "__hash__": _Comparison(_HASH)}
    made: type[Any] = type(cls.__name__, cls.__bases__, body)
    made.__qualname__ = cls.__qualname__
    return made


# An `__init__` is compiled after this many uses; compiling costs about 30 of them.
_USES_BEFORE_COMPILING = 16


class _Initializer:
    """An `__init__` that is compiled after some uses. Compiling is most of the cost of a class."""

    __slots__ = ("defaults", "fields", "made", "owner", "sealed")

    def __init__(self, fields: tuple[str, ...], defaults: dict[str, Any], sealed: bool) -> None:
        self.fields = fields
        self.defaults = defaults
        self.sealed = sealed
        self.made = 0

    def __set_name__(self, owner: type[Any], name: str) -> None:
        self.owner = owner

    def __get__(self, item: Any, owner: type[Any]) -> Any:
        self.made += 1
        if item is None or self.made > _USES_BEFORE_COMPILING:
            return self.compile().__get__(item, owner)
        return functools.partial(self.fill, item)

    def compile(self) -> Any:
        """Compile the function, and put it in place of this object."""
        made = _initializer(self.fields, self.defaults, self.sealed)
        made.__qualname__ = f"{self.owner.__qualname__}.__init__"
        self.owner.__init__ = made
        return made

    def fill(self, item: Any, /, *args: Any, **kwargs: Any) -> None:
        """Do what the compiled function does."""
        values = dict(zip(self.fields, args, strict=False))
        if len(args) > len(self.fields) or not values.keys().isdisjoint(kwargs):
            self.compile()(item, *args, **kwargs)  # raises the error
            return
        values |= kwargs
        for name in self.fields:
            if name in values:
                value = values.pop(name)
            elif name in self.defaults:
                value = self.defaults[name]
                if isinstance(value, _Default):
                    value = value.make() if value.make else value.value
            else:
                self.compile()(item, *args, **kwargs)
                return
            _assign(item, name, value)
        if values:
            self.compile()(item, *args, **kwargs)


class _Comparison:
    """An `__eq__` or `__hash__` that is compiled when it is first used: most classes are never compared."""

    __slots__ = ("name", "owner", "text")

    def __init__(self, text: str) -> None:
        """Take the source of the function; {fields} and {others} are the fields of the two records."""
        self.text = text

    def __set_name__(self, owner: type[Any], name: str) -> None:
        self.owner = owner
        self.name = name

    def __get__(self, item: Any, owner: type[Any]) -> Any:
        """Compile the function, and put it in place of this object."""
        scope: dict[str, Any] = {}
        fields, others = (
            "".join(f"{item}.{name}, " for name in self.owner._shown) for item in ("self", "other")
        )
        exec(self.text.format(fields=fields, others=others), scope)
        function = scope[self.name]
        function.__qualname__ = f"{self.owner.__qualname__}.{self.name}"
        setattr(self.owner, self.name, function)
        return function.__get__(item, owner)


class _Signature:
    """The signature for `inspect.signature`, which needs functions; `__init__` is not one at first."""

    __slots__ = ()

    def __get__(self, item: Any, owner: type[Any]) -> Any:
        import inspect

        _, *parameters = inspect.signature(owner.__init__).parameters.values()
        return inspect.Signature(parameters)


class _DataclassFields:
    """The fields in the form of the module `dataclasses`, made on first use."""

    __slots__ = ("defaults", "fields", "types")

    def __init__(self, fields: tuple[str, ...], defaults: dict[str, Any], types: dict[str, Any]) -> None:
        self.fields = fields
        self.defaults = defaults
        self.types = types

    def __get__(self, item: Any, owner: type[Any]) -> dict[str, Any]:
        import dataclasses

        body: dict[str, Any] = {"__annotations__": self.types}
        for name, default in self.defaults.items():
            if isinstance(default, _Default):
                source: Any = (
                    {"default_factory": default.make} if default.make else {"default": default.value}
                )
                default = dataclasses.field(**source, repr=not default.hidden, compare=not default.hidden)
            body[name] = default
        twin: Any = dataclasses.dataclass(type(owner.__name__, (), body))
        fields: dict[str, Any] = twin.__dataclass_fields__
        return fields


def _initializer(fields: tuple[str, ...], defaults: dict[str, Any], sealed: bool) -> Any:
    scope: dict[str, Any] = {"unset": _Default, "assign": _assign}
    parameters, lines = ["self"], ["    pass"]
    for name in fields:
        given = name
        if name in defaults:
            default = defaults[name]
            make = default.make if isinstance(default, _Default) else None
            scope[f"{name}_"] = make or (default.value if isinstance(default, _Default) else default)
            parameters.append(f"{name}=unset" if make else f"{name}={name}_")
            given = f"{name}_() if {name} is unset else {name}" if make else name
        else:
            parameters.append(name)
        lines.append(f"    assign(self, {name!r}, {given})" if sealed else f"    self.{name} = {given}")
    exec(f"def __init__({', '.join(parameters)}):\n" + "\n".join(lines), scope)
    return scope["__init__"]


def _refuse(self: Any, name: str, value: Any = None) -> None:
    raise AttributeError(f"{type(self).__name__}.{name}: the fields of this record are read-only")


def _reduce(self: Any) -> tuple[Any, ...]:
    # without properties in a cache
    return type(self), tuple([getattr(self, name) for name in type(self).__match_args__])


def _repr(self: Any) -> str:
    parts = ", ".join(f"{name}={getattr(self, name)!r}" for name in type(self)._shown)
    return f"{type(self).__name__}({parts})"


# Tuples are compared rather than fields, so that fields that are the same object are equal, even NaN.
_EQ = """def __eq__(self, other):
    if self is other:
        return True
    return ({fields}) == ({others}) if type(other) is type(self) else NotImplemented
"""


_HASH = """def __hash__(self):
    return hash((type(self), {fields}))
"""
