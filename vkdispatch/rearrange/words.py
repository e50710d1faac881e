"""What is moved: elements through maps, or, where nothing looks at them, as words of up to 16 bytes.

An element that is only moved may be any run of words: a vec3 is three of 4 bytes, and 1000 neighbouring
float16 that keep together are 125 of 16 bytes.
"""

from collections.abc import Sequence
from typing import Any

from vkdispatch.arrays.kernels import buffer, constant
from vkdispatch.arrays.maps.operand import Operand
from vkdispatch.arrays.maps.output import Output, Sink
from vkdispatch.arrays.maps.source import Source
from vkdispatch.arrays.values.elements import wide_type
from vkdispatch.arrays.values.words import word_type as word_type
from vkdispatch.base import dtype
from vkdispatch.base.dtype import DType
from vkdispatch.base.record import record

_LARGEST = 16
# A number that may need more than 32 bits is given as two: its upper part, and this many bits.
_LOW_BITS = 20
_TOO_LARGE = 1 << 32


def largest_word(*sizes: int) -> int:
    """Return the bytes of the largest word of which all these sizes, in bytes, are multiples."""
    word = _LARGEST
    while any(size % word for size in sizes):
        word //= 2
    return word


@record
class Moving:
    """How a kernel gets at what it moves.

    Attributes
    ----------
    word
        The type of the words that are moved; None: elements, through `source` and `sink`.
    source, sink
        Where elements come from and go to.
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
        """What names of kernels say of it."""
        return "mapped" if self.word is None else str(self.word.item_size)

    @property
    def held(self) -> DType:
        """The type of a value in a register, or in workgroup memory."""
        if self.word is not None:
            return dtype.uint32 if self.word.item_size < 4 else self.word
        assert self.source is not None
        return wide_type(self.source.out_type)

    def load(self, variables: Sequence[Any], index: Any) -> Any:
        """Load what lies at an index."""
        if self.word is not None:
            value = variables[1][index].to_register()
            return value if value.var_type is self.held else value.to_dtype(self.held)
        assert self.source is not None
        return self.source.value(variables[1 : 1 + len(self.source.names)], index)

    def store(self, variables: Sequence[Any], index: Any, value: Any) -> None:
        """Store what was loaded."""
        if self.word is not None:
            variables[0][index] = value.to_dtype(dtype.uint16) if self.word is dtype.uint16 else value
            return
        assert self.source is not None and self.sink is not None
        own = variables[1 + len(self.source.names) : len(self.arguments)]
        self.sink.store(variables[0], own, index, value)


def moves_words(x: Operand, target: Output) -> bool:
    """Whether elements reach the result as they are in memory."""
    return x.source.is_plain and target.sink.mapping is None


@record
class Numbers:
    """The numbers that follow a kernel's other arguments, by name; `big` if one needs more than 32 bits."""

    names: tuple[str, ...]
    big: bool

    @property
    def arguments(self) -> list[tuple[str, Any]]:
        """Their names and annotations."""
        kind = constant[dtype.uint32]
        if not self.big:
            return [(f"move_{name}", kind) for name in self.names]
        return [(f"move_{name}_{part}", kind) for name in self.names for part in ("high", "low")]

    def text(self, name: str) -> str:
        """Return one of them as a text for the size of a launch."""
        return f"(move_{name}_high * {1 << _LOW_BITS} + move_{name}_low)" if self.big else f"move_{name}"

    def read(self, variables: Sequence[Any]) -> dict[str, Any]:
        """Return the numbers, given the kernel's last variables."""
        if not self.big:
            return dict(zip(self.names, variables, strict=True))
        # positions, which are computed in 64 bits wherever buffers are so large
        pairs = zip(variables[::2], variables[1::2], strict=True)
        return {
            name: high * (1 << _LOW_BITS) + low for name, (high, low) in zip(self.names, pairs, strict=True)
        }

    def value(self, variables: Sequence[Any], name: str, kind: DType) -> Any:
        """Return one of them as a GPU value of an integer type, which has bits enough."""
        at = self.names.index(name)
        if not self.big:
            return variables[at].to_dtype(kind)
        high, low = (variables[2 * at + part].to_dtype(kind) for part in range(2))
        return high * (1 << _LOW_BITS) + low


def numbers_of(values: dict[str, int]) -> tuple[Numbers, tuple[int, ...]]:
    """Return how a kernel is given numbers, and what a launch gives it."""
    big = max(values.values(), default=0) >= _TOO_LARGE
    names = Numbers(tuple(values), big)
    if not big:
        return names, tuple(values.values())
    low = (1 << _LOW_BITS) - 1
    return names, tuple(part for value in values.values() for part in (value >> _LOW_BITS, value & low))
