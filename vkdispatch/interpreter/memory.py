"""Buffers and workgroup memory as NumPy arrays, and where in them a place lies."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vkdispatch.interpreter.values import Array

Index = tuple[Any, ...]
Coder = Callable[[Array], Array]


@dataclass(eq=False, slots=True)
class Cells:
    """Elements that several invocations reach.

    Attributes
    ----------
    what
        How messages call them, such as "buffer 'data'".
    data
        One row for each element, in the type that memory has.
    shape
        Their shape as the user knows it; None for what has only a size.
    size
        How many elements an index may reach.
    decode, encode
        From what memory holds to what kernels compute with, and back; None where that is the same.
    fields
        Of structures: the memory of each field.
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
        """Shape or size, as messages say it."""
        if self.shape is None:
            return str(self.size)
        flat = "" if self.shape == (self.size,) else f" ({self.size} elements)"
        return f"shape {self.shape}{flat}"

    def load(self, index: Index) -> Array:
        """Return the components at an index, as kernels see them."""
        value: Array = self.data[index]
        return value if self.decode is None else self.decode(value)

    def store(self, index: Index, value: Array) -> None:
        """Write components; of several invocations that write one element the last wins."""
        self.data[index] = value if self.encode is None else self.encode(value)


@dataclass(eq=False, slots=True)
class Place:
    """Where each of some invocations reads or writes.

    Attributes
    ----------
    cells
        The memory; a register is memory of one element for each invocation.
    index
        What NumPy takes to find the components.
    rows
        Which of the invocations reach an element at all; None for all of them.
    owned
        Whether no other invocation can reach it: a register.
    """

    cells: Cells
    index: Index
    rows: Array | None
    owned: bool

    def load(self) -> Array:
        """Return the components that are there."""
        return self.cells.load(self.index)

    def select_rows(self, value: Array) -> Array:
        """Return the rows of a value that reach an element."""
        return value if self.rows is None or len(value) == 1 else value[self.rows]

    def store(self, value: Array) -> None:
        """Write a value."""
        self.cells.store(self.index, self.select_rows(value))


def describe_index(index: Array, row: int) -> str:
    """Return an index as the user thinks of it: what wrapped around below zero is shown as negative too."""
    number, meant = int(index[row if len(index) > 1 else 0]), signed_index(index, row)
    return str(number) if meant == number else f"{meant} (as {index.dtype.name}: {number})"


def signed_index(index: Array, row: int) -> int:
    """Return an index as a number with a sign: what wrapped around below zero lies there again."""
    number, bits = int(index[row if len(index) > 1 else 0]), 8 * index.dtype.itemsize
    return number - (1 << bits) if number >= 1 << (bits - 1) else number


def find_outside(index: Array, size: int) -> Array | None:
    """Return which rows of an index lie outside 0 to size - 1, or None if none does."""
    bad: Array = index >= size
    if index.dtype.kind == "i":
        bad = bad | (index < 0)
    return bad if np.any(bad) else None
