"""Kompute's enumerations: memory types, and types of elements."""

from enum import Enum


class _Numbered(Enum):
    """Members that can be turned into their number."""

    def __int__(self) -> int:
        return int(self.value)


class MemoryTypes(_Numbered):
    """Where the memory of a tensor or image lies, and whether the host has a copy of it.

    `device`: on the device, with a copy on the host; OpSyncDevice and OpSyncLocal copy between the two.
    `host`: in memory of the host, which the device reaches. `storage`: on the device alone.
    `deviceAndHost`: on the device, within reach of the host.
    """

    device = 0
    host = 1
    storage = 2
    deviceAndHost = 3  # noqa: N815  (a public name)


class DataTypes(_Numbered):
    """Types of elements."""

    bool = 0
    int = 1
    uint = 2
    float = 3
    double = 4
    custom = 5
    short = 6
    ushort = 7
    char = 8
    uchar = 9
