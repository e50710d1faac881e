"""Streams of random words."""

from functools import cached_property

from vkdispatch.base.record import record


@record(slots=False)
class Stream:
    """A stream of random words.

    Attributes
    ----------
    is_wide
        Whether the generator is Philox4x64, else Philox4x32.
    key
        The two words of the key.
    """

    is_wide: bool
    key: tuple[int, int]

    @cached_property
    def word_bits(self) -> int:
        """Bits of a word of counter and key."""
        return 64 if self.is_wide else 32

    @cached_property
    def block(self) -> int:
        """Words of 32 bits in a block."""
        return 8 if self.is_wide else 4

    @cached_property
    def period(self) -> int:
        """Words of 32 bits before the stream repeats."""
        return self.block << 4 * self.word_bits

    def counter(self, block: int) -> tuple[int, ...]:
        """Return the words of the counter of a block."""
        mask = (1 << self.word_bits) - 1
        bits = self.word_bits
        return block & mask, block >> bits & mask, block >> 2 * bits & mask, block >> 3 * bits & mask
