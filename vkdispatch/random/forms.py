"""What kernels that fill buffers are specialised for, and the measured constants that choose it."""

from vkdispatch.arrays.maps.output import Sink
from vkdispatch.arrays.values.elements import view_type
from vkdispatch.base.dtype import DType, bool_, float32, float64, is_complex, is_scalar, uint32, uint64
from vkdispatch.base.record import record


@record(frozen=False)
class Tuning:
    """Measured constants, to be changed by measurements only.

    Attributes
    ----------
    group
        Invocations of a workgroup.
    unroll
        Blocks that an invocation computes, of Philox4x32; of Philox4x64 half as many. On processors it is
        one, which compiles sooner.
    long_products
        Whether products of 32-bit words are taken in 64 bits, on devices that have them: 0 or 1.
    exchange
        Whether neighbours hand each other words where elements come from two blocks: 0 or 1.
    few
        Blocks up to which one kernel does for all places in the stream, which compiles sooner.
    everywhere
        Whether processors do as GPUs do: 0 or 1.
    """

    group: int = 512
    unroll: int = 4
    long_products: int = 1
    exchange: int = 1
    few: int = 1 << 15
    everywhere: int = 0


tuning = Tuning()


@record
class Form:
    """What a kernel is specialised for.

    Attributes
    ----------
    made
        "raw", "uniform", "normal" or "integers".
    wide
        Whether the generator is Philox4x64.
    bits
        Of the stream for each element: 16, 32 or 64.
    shift
        Words of 32 bits of the first block that are passed over; negative: given at the launch.
    half
        Whether half of a word is passed over beyond that.
    sink
        How values are stored; its `value_type` is theirs.
    scaled
        Whether numbers are scaled; integers are, unless a word has as many values as there are.
    rejecting
        Whether integers need more than one try.
    single
        Whether only one element is made, of a word that is given.
    far
        Whether the counter may carry beyond 64 bits.
    on_device
        Whether the counter lies in a buffer.
    vector
        Whether elements are stored together.
    group, unroll, long_products
        See `Tuning`.
    exchange
        Whether the invocations of a workgroup hand each other words.
    """

    made: str
    wide: bool
    bits: int
    shift: int
    sink: Sink
    half: bool = False
    scaled: bool = False
    rejecting: bool = False
    single: bool = False
    far: bool = False
    on_device: bool = False
    vector: bool = True
    group: int = 256
    unroll: int = 1
    long_products: bool = False
    exchange: bool = False

    @property
    def words(self) -> int:
        """Words of 32 bits in a block."""
        return 8 if self.wide else 4

    @property
    def together(self) -> int:
        """Elements made of a block."""
        return self.words * 32 // self.bits

    @property
    def word_type(self) -> DType:
        """Type of the words of counter and key."""
        return uint64 if self.wide else uint32

    @property
    def numbers(self) -> list[tuple[str, DType]]:
        """Names and types of the numbers that go with a launch, behind those of the stream."""
        kind = self.sink.value_type
        found: list[tuple[str, DType]] = []
        if self.made == "integers":
            drawn = uint64 if self.bits == 64 else uint32
            found = [("low", uint64 if kind.item_size == 8 else uint32)]
            found += [("count", drawn), ("surplus", drawn)] if self.scaled else []
        elif self.scaled:
            real = float64 if kind is float64 else float32
            found = [("low", real), ("width", real)]
        return [*found, ("word", uint32)] if self.single else found

    @property
    def view(self) -> DType | None:
        """Type of the stores of several elements; None where there are none."""
        if not self.vector:
            return None
        kind = self.sink.out_type
        plain = kind is not bool_ and (is_scalar(kind) or is_complex(kind))
        for count in (self.together, self.together // 2, self.together // 4):
            if plain and count > 1 and (view := view_type(kind, count)) is not None:
                return view
        return None
