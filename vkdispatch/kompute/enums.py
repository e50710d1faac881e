"""Kompute's enumerations: memory types, and types of elements.

They behave like the pybind11 enumerations of Kompute, and can also be iterated. Enumerations of `enum` would
take ten times as long to import.
"""

from collections.abc import Iterator
from typing import Any, ClassVar


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
