"""Buffers and workgroup memory as NumPy arrays, and places in them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vkdispatch.interpreter.values import Array

Index = tuple[Any, ...]
Coder = Callable[[Array], Array]


@dataclass(eq=False, slots=True)
class Cells:
    """Memory of elements, shared by several invocations.

    Attributes
    ----------
    what
        The name in messages, such as "buffer 'data'".
    data
        One row for each element, in the type of the memory.
    shape
        The shape that the user knows; None if there is only a size.
    size
        The number of elements that indices may reach.
    decode, encode
        Conversion from the type of the memory to that of kernels, and back; None if both are the same.
    fields
        For structures: the memory of each field.
    """

    what: str
    data: Array
    shape: tuple[int, ...] | None
    size: int
    decode: Coder | None = None
    encode: Coder | None = None
    fields: dict[tuple[str, ...], "Cells"] = field(default_factory=dict)

    @property
    def extent(self) -> str:
        """The shape or size, for messages."""
        if self.shape is None:
            return str(self.size)
        flat = "" if self.shape == (self.size,) else f" ({self.size} elements)"
        return f"shape {self.shape}{flat}"

    def load(self, index: Index) -> Array:
        """Return the components at an index, in the type of kernels."""
        value: Array = self.data[index]
        return value if self.decode is None else self.decode(value)

    def store(self, index: Index, value: Array) -> None:
        """Write components. If several invocations write an element, the last one wins."""
        self.data[index] = value if self.encode is None else self.encode(value)


@dataclass(eq=False, slots=True)
class Place:
    """The places that some invocations access.

    Attributes
    ----------
    cells
        The memory; a register is memory of one element for each invocation.
    index
        The NumPy index of the components.
    rows
        Which of the invocations are in range; None for all of them.
    owned
        Whether the place is a register, which no other invocation can access.
    """

    cells: Cells
    index: Index
    rows: Array | None
    owned: bool

    def load(self) -> Array:
        """Return the components."""
        return self.cells.load(self.index)

    def select_rows(self, value: Array) -> Array:
        """Return the rows of a value that are in range."""
        return value if self.rows is None or len(value) == 1 else value[self.rows]

    def store(self, value: Array) -> None:
        """Write a value."""
        self.cells.store(self.index, self.select_rows(value))


def describe_index(index: Array, row: int) -> str:
    """Describe an index for messages; one that wrapped around below zero is shown as negative too."""
    number, meant = int(index[row if len(index) > 1 else 0]), signed_index(index, row)
    return str(number) if meant == number else f"{meant} (as {index.dtype.name}: {number})"


def signed_index(index: Array, row: int) -> int:
    """Return an index as a signed number, negative if it wrapped around below zero."""
    number, bits = int(index[row if len(index) > 1 else 0]), 8 * index.dtype.itemsize
    return number - (1 << bits) if number >= 1 << (bits - 1) else number


def find_outside(index: Array, size: int) -> Array | None:
    """Return which rows of an index are outside 0 to size - 1, or None if there are none."""
    bad: Array = index >= size
    if index.dtype.kind == "i":
        bad = bad | (index < 0)
    return bad if np.any(bad) else None
