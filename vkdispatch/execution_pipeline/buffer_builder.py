"""Rows of tightly packed structures: the bytes of push constants or uniform blocks, filled by name."""

import enum
from collections.abc import Sequence
from typing import Any

from vkdispatch.base.context import get_context
from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import ArgumentValueError, UsageError
from vkdispatch.base.host_numpy import np
from vkdispatch.base.memory.data import pack_rows
from vkdispatch.base.record import record


class BufferUsage(enum.Enum):
    """The use of the bytes, which determines the alignment of each structure."""

    PUSH_CONSTANT = 0
    UNIFORM_BUFFER = 1


@record(sealed=True)
class BufferedStructEntry:
    """The place of a member within a row: its bytes, dtype and count."""

    memory_slice: slice
    dtype: DType
    count: int


class BufferBuilder:
    """Lay out structures one after another, and fill one row of them for each instance.

    Attributes
    ----------
    instance_bytes
        Bytes of one row.
    instance_count
        The number of rows; 0 before `prepare`.
    element_map
        The place of each member, by (structure, member).
    backing_buffer
        The rows, a (instance_count, instance_bytes) array of bytes, or None before `prepare`.
    """

    def __init__(self, struct_alignment: int | None = None, usage: BufferUsage | None = None) -> None:
        """Make an empty builder. Structures are padded to `struct_alignment` bytes, or as `usage` requires.

        Raises
        ------
        ValueError
            Neither is given.
        """
        if struct_alignment is None and usage is None:
            raise ArgumentValueError("struct_alignment, usage: pass one of the two")
        if struct_alignment is None:
            uniform = usage is BufferUsage.UNIFORM_BUFFER
            struct_alignment = get_context().uniform_buffer_alignment if uniform else 0
        self.struct_alignment = struct_alignment
        self.reset()

    def reset(self) -> None:
        """Forget all structures and rows."""
        self.instance_bytes = 0
        self.instance_count = 0
        self.element_map: dict[tuple[str, str], BufferedStructEntry] = {}
        self.backing_buffer: np.ndarray[Any, np.dtype[np.uint8]] | None = None

    def register_struct(self, name: str, elements: Sequence[Any]) -> tuple[int, int]:
        """Append a structure of `StructElement`s (name, dtype, count); return its offset and padded size."""
        offset = end = self.instance_bytes
        for element in elements:
            size = element.dtype.item_size * element.count
            self.element_map[name, element.name] = BufferedStructEntry(
                slice(end, end + size), element.dtype, element.count
            )
            end += size
        if self.struct_alignment:
            end = -(-end // self.struct_alignment) * self.struct_alignment
        self.instance_bytes = end
        return offset, end - offset

    def prepare(self, instance_count: int) -> None:
        """Allocate `instance_count` rows of zeros, unless there are as many already."""
        if self.backing_buffer is None or self.backing_buffer.shape != (instance_count, self.instance_bytes):
            self.backing_buffer = np.zeros((instance_count, self.instance_bytes), np.uint8)
        self.instance_count = instance_count

    def set_item(self, key: tuple[str, str], value: object) -> None:
        """Fill a member in every row, from one value or from one per row.

        Raises
        ------
        ValueError
            There is no such member, or the value has the wrong shape.
        RuntimeError
            `prepare` was not called.
        """
        if self.backing_buffer is None:
            raise UsageError("set_item: call prepare(instance_count) first")
        entry = self.element_map.get(key)
        if entry is None:
            raise ArgumentValueError(f"key: no member {key!r}; there are {list(self.element_map)}")
        rows = self.instance_count * entry.count
        if entry.count > 1:
            value = self._flatten_arrays(entry, value)
        packed = pack_rows(entry.dtype, value, rows, f"{key[0]}.{key[1]}")
        self.backing_buffer[:, entry.memory_slice] = np.frombuffer(packed, np.uint8).reshape(
            self.instance_count, -1
        )

    __setitem__ = set_item

    def _flatten_arrays(self, entry: BufferedStructEntry, value: Any) -> Any:
        """Flatten the values of an array: one array for every row, or one array per row."""
        shape = (entry.count, *entry.dtype.true_numpy_shape)
        given = np.shape(value)
        if given == shape:
            return np.broadcast_to(value, (self.instance_count, *shape)).reshape(-1, *shape[1:])
        if given == (self.instance_count, *shape):
            return np.reshape(value, (-1, *shape[1:]))
        return value

    def tobytes(self) -> bytes:
        """Return all rows as bytes. Raises RuntimeError before `prepare`."""
        if self.backing_buffer is None:
            raise UsageError("tobytes: call prepare(instance_count) first")
        return self.backing_buffer.tobytes()

    def toints(self) -> list[int]:
        """Return all rows as 32-bit unsigned integers."""
        return [int(word) for word in np.frombuffer(self.tobytes(), np.uint32)]
