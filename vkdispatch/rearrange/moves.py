"""What kernels move: elements through maps or, if nothing converts them, words of up to 16 bytes.

A run of elements that stay together is a run of words: a vec3 is three words of 4 bytes, and 1000 float16 are
125 words of 16 bytes.
"""

from collections.abc import Sequence
from typing import Any

from vkdispatch.base import dtype
from vkdispatch.base.dtype import DType
from vkdispatch.base.record import record
from vkdispatch.codegen.arguments import buffer, constant
from vkdispatch.families.operands import Operand, Output, Sink
from vkdispatch.families.sources import Source
from vkdispatch.families.values import wide_type
from vkdispatch.families.values import word_type as word_type

_LARGEST = 16
# A number of more than 32 bits is passed as two: its upper part, and so many lower bits.
_LOW_BITS = 20
_TOO_LARGE = 1 << 32


def find_largest_word(*sizes: int) -> int:
    """Return the bytes of the largest word that divides all these sizes in bytes."""
    word = _LARGEST
    while any(size % word for size in sizes):
        word //= 2
    return word


@record
class Move:
    """What a kernel moves.

    Attributes
    ----------
    word
        The type of the words that are moved; None for elements, through `source` and `sink`.
    source, sink
        Where elements come from, and how they are stored.
    """

    word: DType | None = None
    source: Source | None = None
    sink: Sink | None = None

    @property
    def arguments(self) -> list[tuple[str, Any]]:
        """The kernel's first arguments: the result, the source's, and the sink's."""
        if self.word is not None:
            return [("result", buffer[self.word]), ("x", buffer[self.word])]
        assert self.source is not None and self.sink is not None
        return [
            ("result", buffer[self.sink.out_type]),
            *self.source.parameters,
            *self.sink.parameters,
        ]

    @property
    def label(self) -> str:
        """A part of the names of kernels."""
        return "mapped" if self.word is None else str(self.word.item_size)

    @property
    def register_type(self) -> DType:
        """The type of a moved value in registers and in workgroup memory."""
        if self.word is not None:
            return dtype.uint32 if self.word.item_size < 4 else self.word
        assert self.source is not None
        return wide_type(self.source.out_type)

    def load(self, variables: Sequence[Any], index: Any) -> Any:
        """Load the value at an index."""
        if self.word is not None:
            value = variables[1][index].to_register()
            return value if value.var_type is self.register_type else value.to_dtype(self.register_type)
        assert self.source is not None
        return self.source.value(variables[1 : 1 + len(self.source.names)], index)

    def store(self, variables: Sequence[Any], index: Any, value: Any) -> None:
        """Store a loaded value at an index."""
        if self.word is not None:
            variables[0][index] = value.to_dtype(dtype.uint16) if self.word is dtype.uint16 else value
            return
        assert self.source is not None and self.sink is not None
        own = variables[1 + len(self.source.names) : len(self.arguments)]
        self.sink.store(variables[0], own, index, value)


def is_moved_as_words(x: Operand, target: Output) -> bool:
    """Whether elements are stored in the result as they are in memory."""
    return x.source.is_plain and target.sink.mapping is None


@record
class Numbers:
    """The numbers behind the other arguments of a kernel; `is_wide` if one needs more than 32 bits."""

    names: tuple[str, ...]
    is_wide: bool

    @property
    def arguments(self) -> list[tuple[str, Any]]:
        """Names and annotations of the numbers."""
        kind = constant[dtype.uint32]
        if not self.is_wide:
            return [(f"move_{name}", kind) for name in self.names]
        return [(f"move_{name}_{part}", kind) for name in self.names for part in ("high", "low")]

    def text(self, name: str) -> str:
        """Return a number as text for the size of a launch."""
        return f"(move_{name}_high * {1 << _LOW_BITS} + move_{name}_low)" if self.is_wide else f"move_{name}"

    def read(self, variables: Sequence[Any]) -> dict[str, Any]:
        """Return the numbers by name, given the last variables of the kernel."""
        if not self.is_wide:
            return dict(zip(self.names, variables, strict=True))
        # positions, which have 64 bits in kernels for such large buffers
        pairs = zip(variables[::2], variables[1::2], strict=True)
        return {
            name: high * (1 << _LOW_BITS) + low for name, (high, low) in zip(self.names, pairs, strict=True)
        }

    def value(self, variables: Sequence[Any], name: str, kind: DType) -> Any:
        """Return a number as a GPU value of an integer type, which must hold it."""
        at = self.names.index(name)
        if not self.is_wide:
            return variables[at].to_dtype(kind)
        high, low = (variables[2 * at + part].to_dtype(kind) for part in range(2))
        return high * (1 << _LOW_BITS) + low


def pack_numbers(values: dict[str, int]) -> tuple[Numbers, tuple[int, ...]]:
    """Return how a kernel takes numbers, and the arguments of its launch."""
    is_wide = max(values.values(), default=0) >= _TOO_LARGE
    names = Numbers(tuple(values), is_wide)
    if not is_wide:
        return names, tuple(values.values())
    low = (1 << _LOW_BITS) - 1
    return names, tuple(part for value in values.values() for part in (value >> _LOW_BITS, value & low))


def split_index(index: Any, sizes: Sequence[Any]) -> list[Any]:
    """Return the position along each axis for a flat index; `sizes` are those of all axes but the first."""
    positions: list[Any] = []
    rest = index
    for size in reversed(sizes):
        positions.insert(0, (rest % size).to_register())
        rest = (rest // size).to_register()
    return [rest, *positions]
