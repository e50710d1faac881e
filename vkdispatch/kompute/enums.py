"""Kompute's enumerations, errors, generations, and checks that several calls share."""

import operator
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, NoReturn

from vkdispatch.base.errors import ArgumentTypeError, VkDispatchError

# ---- The error of invalid calls, for which Kompute raises RuntimeError, crashes or continues -------------


class KomputeError(VkDispatchError, RuntimeError):
    """An invalid value, or a call at the wrong time. A wrong type is a TypeError."""


# ---- Checks of arguments that several calls share --------------------------------------------------------


def require_iterable(argument: str, value: object, expected: str) -> Iterable[Any]:
    """Return an iterable other than a string. Raises TypeError, with `expected` in the message."""
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise ArgumentTypeError(f"{argument}: expected {expected}, got {value!r}")
    return value


def parse_index(argument: str, value: object) -> int:
    """Return an int of 0 or more. Raises TypeError for anything else."""
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = -1
    if number < 0:
        raise ArgumentTypeError(f"{argument}: expected an int, 0 or more, got {value!r}")
    return number


def parse_indices(argument: str, value: object) -> list[int]:
    """Return a list of ints of 0 or more. Raises TypeError for anything else."""
    return [parse_index(argument, item) for item in require_iterable(argument, value, "a list of ints")]


def parse_names(argument: str, value: object) -> list[str]:
    """Return a list of strings. Raises TypeError for anything else."""
    names = list(require_iterable(argument, value, "a list of names"))
    if not all(isinstance(name, str) for name in names):
        raise ArgumentTypeError(f"{argument}: expected a list of names, got {names!r}")
    return names


# ---- The generation of Kompute's Python module that objects follow where the generations disagree --------


_BEFORE_0_7 = ("0.5", "0.6")
_GENERATIONS = (*_BEFORE_0_7, "0.7", "0.8", "0.9", "newest")
_current = "newest"


def use(generation: str = "newest") -> None:
    """Choose the generation of Kompute that new objects of this process follow.

    The names of all generations are always available. The choice matters where the generations disagree. For
    "0.5" and "0.6", `data()` of tensors made without a Manager returns a list. With sequences of
    `create_sequence`, `eval_async()` does not wait, and calls that return the sequence in other generations
    return whether they had an effect. The generations from 0.7 on agree.

    Parameters
    ----------
    generation
        "0.5", "0.6", "0.7", "0.8", "0.9", a release of these such as "0.6.0", or "newest".

    Raises
    ------
    TypeError
        `generation` is not a string.
    RuntimeError
        There is no such generation.
    """
    global _current
    if not isinstance(generation, str):
        raise ArgumentTypeError(f'generation: expected text such as "0.6", got {generation!r}')
    release = ".".join(generation.split(".")[:2])
    if release not in _GENERATIONS:
        raise KomputeError(f"generation: expected one of {', '.join(_GENERATIONS)}, got {generation!r}")
    _current = release


def is_before_0_7() -> bool:
    """Whether the generation in use is 0.5 or 0.6."""
    return _current in _BEFORE_0_7


# ---- The base class of the objects that a Manager makes --------------------------------------------------


class Opaque:
    """An object that only a Manager makes. It is compared by identity and cannot be pickled."""

    __slots__ = ("__weakref__",)

    _maker = "kp.Manager"

    def __init__(self, *_: object, **__: object) -> None:
        """Raise TypeError: a Manager makes these objects."""
        name = type(self).__name__
        raise ArgumentTypeError(f"kp.{name} has no constructor: {self._maker} makes it")

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        """Raise TypeError: the object cannot be pickled."""
        raise ArgumentTypeError(f"kp.{type(self).__name__} cannot be pickled: it lies on a device")


# ---- Kompute's enumerations: memory types, and types of elements -----------------------------------------
#
# They behave like the pybind11 enumerations of Kompute, and can also be iterated. Enumerations of `enum`
# would take ten times as long to import.


class _EnumerationType(type):
    __members__: dict[str, Any]

    def __iter__(cls) -> Iterator[Any]:
        return iter(cls.__members__.values())

    def __len__(cls) -> int:
        return len(cls.__members__)

    def __contains__(cls, item: object) -> bool:
        return isinstance(item, cls)


class _Enumeration(metaclass=_EnumerationType):
    """Members with a name and a number. Each member is a single object."""

    __slots__ = ("name", "value")

    _names: ClassVar[tuple[str, ...]]
    # Earlier names, with their numbers.
    _older: ClassVar[dict[str, int]] = {}

    name: str
    value: int

    def __init_subclass__(cls) -> None:
        cls.__members__ = {}
        numbered = [(name, value) for value, name in enumerate(cls._names)]
        for name, value in [*numbered, *cls._older.items()]:
            member = object.__new__(cls)
            object.__setattr__(member, "name", name)
            object.__setattr__(member, "value", value)
            if name not in cls._older:
                cls.__members__[name] = member
            setattr(cls, name, member)

    def __new__(cls, value: object) -> Any:
        """Return the member of a number. Raises ValueError if there is none."""
        if isinstance(value, cls):
            return value
        for member in cls.__members__.values():
            if member.value == value:
                return member
        raise ValueError(f"{value!r} is not a valid {cls.__name__}")

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__}.{name} cannot be set")

    def __int__(self) -> int:
        return self.value

    def __hash__(self) -> int:
        return self.value

    def __reduce__(self) -> Any:
        return getattr, (type(self), self.name)

    def __repr__(self) -> str:
        return f"<{self}: {self.value}>"

    def __str__(self) -> str:
        return f"{type(self).__name__}.{self.name}"


class MemoryTypes(_Enumeration):
    """The location of a tensor's or image's memory, and whether the host has a view of it.

    `device`: device memory with a copy on the host; OpSyncDevice and OpSyncLocal copy between the two.
    `host`: host memory that the device can access. `storage`: device memory only. `deviceAndHost`: device
    memory that the host can access. `staging` is the name of `host` in Kompute 0.5 and 0.6.
    """

    __slots__ = ()
    _names = ("device", "host", "storage", "deviceAndHost")
    _older: ClassVar = {"staging": 1}

    device: ClassVar["MemoryTypes"]
    host: ClassVar["MemoryTypes"]
    storage: ClassVar["MemoryTypes"]
    deviceAndHost: ClassVar["MemoryTypes"]  # noqa: N815  (a public name)
    staging: ClassVar["MemoryTypes"]


class DataTypes(_Enumeration):
    """Types of elements."""

    __slots__ = ()
    _names = ("bool", "int", "uint", "float", "double", "custom", "short", "ushort", "char", "uchar")

    bool: ClassVar["DataTypes"]
    int: ClassVar["DataTypes"]
    uint: ClassVar["DataTypes"]
    float: ClassVar["DataTypes"]
    double: ClassVar["DataTypes"]
    custom: ClassVar["DataTypes"]
    short: ClassVar["DataTypes"]
    ushort: ClassVar["DataTypes"]
    char: ClassVar["DataTypes"]
    uchar: ClassVar["DataTypes"]
