"""What kernels that fill buffers are specialised for."""

from vkdispatch.base.dtype import DType, bool_, float32, float64, is_complex, is_scalar, uint32, uint64
from vkdispatch.base.record import record
from vkdispatch.families.operands import Sink
from vkdispatch.families.values import view_type


@record
class Form:
    """What a kernel is specialised for.

    Attributes
    ----------
    distribution
        "raw", "uniform", "normal" or "integers".
    is_wide
        Whether the generator is Philox4x64.
    bits
        Bits of the stream for each element: 16, 32 or 64.
    shift
        Words of 32 bits of the first block that are skipped; negative if the launch passes their number.
    half
        Whether half of a word is skipped behind them.
    sink
        How values are stored; its `value_type` is their dtype.
    is_scaled
        Whether numbers are scaled. Integers are, unless each value of a word is one of them.
    is_rejecting
        Whether integers may need several tries.
    is_single
        Whether the kernel makes only one element, of a word that the launch passes.
    is_far
        Whether the counter may carry beyond 64 bits.
    on_device
        Whether the counter lies in a buffer.
    has_vectors
        Whether several elements are stored at once.
    group, unroll, long_products
        See `Tuning`.
    has_exchange
        Whether the invocations of a workgroup exchange words.
    """

    distribution: str
    is_wide: bool
    bits: int
    shift: int
    sink: Sink
    half: bool = False
    is_scaled: bool = False
    is_rejecting: bool = False
    is_single: bool = False
    is_far: bool = False
    on_device: bool = False
    has_vectors: bool = True
    group: int = 256
    unroll: int = 1
    long_products: bool = False
    has_exchange: bool = False

    @property
    def words(self) -> int:
        """Words of 32 bits in a block."""
        return 8 if self.is_wide else 4

    @property
    def together(self) -> int:
        """Elements that a block makes."""
        return self.words * 32 // self.bits

    @property
    def word_type(self) -> DType:
        """Type of the words of the counter and the key."""
        return uint64 if self.is_wide else uint32

    @property
    def numbers(self) -> list[tuple[str, DType]]:
        """Names and types of the numbers of a launch behind those of the stream."""
        kind = self.sink.value_type
        found: list[tuple[str, DType]] = []
        if self.distribution == "integers":
            drawn = uint64 if self.bits == 64 else uint32
            found = [("low", uint64 if kind.item_size == 8 else uint32)]
            found += [("count", drawn), ("surplus", drawn)] if self.is_scaled else []
        elif self.is_scaled:
            real = float64 if kind is float64 else float32
            found = [("low", real), ("width", real)]
        return [*found, ("word", uint32)] if self.is_single else found

    @property
    def view(self) -> DType | None:
        """Type of a store of several elements; None if elements are stored one by one."""
        if not self.has_vectors:
            return None
        kind = self.sink.out_type
        plain = kind is not bool_ and (is_scalar(kind) or is_complex(kind))
        for count in (self.together, self.together // 2, self.together // 4):
            if plain and count > 1 and (view := view_type(kind, count)) is not None:
                return view
        return None
