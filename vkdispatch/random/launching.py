"""Launches of the kernels that fill buffers, for a stream and a place in it."""

from typing import Any

from vkdispatch.arrays.output import Output
from vkdispatch.base.buffer import Buffer
from vkdispatch.base.context import Context
from vkdispatch.base.record import record
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.random.kernels import MOST_BLOCKS, Form, fill_kernel, tuning


@record
class Stream:
    """A stream of random words.

    Attributes
    ----------
    wide
        Whether it is Philox4x64's, else Philox4x32's.
    key
        Two words.
    """

    wide: bool
    key: tuple[int, int]

    @property
    def word_bits(self) -> int:
        """Bits of a word of counter and key."""
        return 64 if self.wide else 32

    @property
    def block(self) -> int:
        """Words of 32 bits in a block."""
        return 8 if self.wide else 4

    @property
    def period(self) -> int:
        """Words of 32 bits before the stream begins anew."""
        return self.block << 4 * self.word_bits

    def counter(self, block: int) -> tuple[int, ...]:
        """Return the words of the counter of a block."""
        mask = (1 << self.word_bits) - 1
        return tuple(block >> self.word_bits * i & mask for i in range(4))


def fill(
    made: str,
    stream: Stream,
    place: int,
    bits: int,
    result: Buffer[Any],
    output: Output,
    numbers: tuple[Any, ...] = (),
    *,
    rejecting: bool = False,
    position: Buffer[Any] | None = None,
    graph: CommandGraph | None = None,
) -> None:
    """Fill a buffer.

    Parameters
    ----------
    made, bits, rejecting
        See `Form`.
    place
        Where in the stream the words begin, counted in words of 32 bits.
    output, numbers
        How what is made is stored; what scales it.
    position
        Where the device finds how many blocks come before `place`.
    """
    place %= stream.period
    block, shift = divmod(place, stream.block)
    context = result.context
    long = all("shaderInt64" in info.features for info in context.device_infos)
    form = Form(
        made,
        stream.wide,
        bits,
        shift,
        output.sink,
        scaled=bool(numbers) and made in ("uniform", "normal"),
        rejecting=rejecting,
        on_device=position is not None,
        group=_group(context),
        unroll=1 if rejecting or made == "word" else max(1, tuning.unroll // (2 if stream.wide else 1)),
        long_products=bool(tuning.long_products) and long,
    )
    count = -(-result.size // form.together)
    # a buffer that is shorter than one vector has no room for it
    vector = result.size >= form.together and form.made != "word"
    position_arguments = () if position is None else (position,)
    turn = 0
    while turn * MOST_BLOCKS < count:
        first, blocks = block + turn * MOST_BLOCKS, min(count - turn * MOST_BLOCKS, MOST_BLOCKS)
        far = position is None and (first & _LOW) + blocks > _LOW
        kernel = fill_kernel(_replaced(form, far, vector))
        views = (result,) if _replaced(form, far, vector).view is not None else ()
        each = form.group * form.unroll
        kernel(
            *(result, *views, *position_arguments, *output.arguments),
            *(*stream.counter(first), *stream.key, turn, *numbers),
            workgroups=1 if made == "word" else -(-blocks // each),
            graph=graph,
        )
        turn += 1


_LOW = (1 << 64) - 1


def _replaced(form: Form, far: bool, vector: bool) -> Form:
    from vkdispatch.base.record import replace

    return replace(form, far=far, vector=vector)


def _group(context: Context) -> int:
    return min(tuning.group, context.max_workgroup_size[0], context.max_workgroup_invocations)
