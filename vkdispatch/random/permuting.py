r"""Permutations whose elements are found independently: no sort, and no memory but for the keys.

Of up to `RANKED` elements, element i takes the rank of its random key of 64 bits among all keys: all orders
are equally probable. For more elements there is a Feistel network, which is a bijection for any function F::

      i, in as many bits as the last place has
      |
    upper half       lower half
      |                  |
     xor <---- F(., key 0) ----
      |                  |
      ---- F(., key 1) -> xor          ROUNDS of these, in turn
      |                  |
      j: a place; while it is beyond the last, it goes through the network again (cycle walking)
      |
      j + a random distance, modulo the count

At least half of all numbers of these bits are places, so that an element takes at most two networks on
average. The last step makes the place of each element exactly uniform, and permutations odd or even: networks
of more than three bits are even. There are 2**(32 * ROUNDS) permutations to choose from.

Luby, Rackoff: "How to construct pseudorandom permutations from pseudorandom functions" (1988); Black,
Rogaway: "Ciphers with arbitrary finite domains" (2002, cycle walking); Mitchell, Stokes, Frank, Holmes:
"Bandwidth-optimal random shuffling for GPUs" (2022, with other networks). F is Wellons' hash lowbias32.
"""

from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base import dtype as dt
from vkdispatch.base.buffer import Buffer
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.codegen.random import own
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.families.kernels import buffers, numbers, trace_kernel
from vkdispatch.families.operands import Operand, Output, Sink, plain_output, plain_source
from vkdispatch.families.sources import Source
from vkdispatch.families.stored import store_results
from vkdispatch.families.tuning import device_facts
from vkdispatch.shader.shader_function import ShaderFunction

RANKED = 1024
ROUNDS = 16
_GROUP = 256


def key_words(count: int) -> int:
    """Return how many words of 32 bits a permutation of `count` elements takes, besides the distance."""
    return 2 * count if count <= RANKED else ROUNDS


def place_type(count: int) -> dt.DType:
    """Return the type that places are computed in."""
    return dt.uint32 if count <= 1 << 32 else dt.uint64


def permute(
    result: Buffer[Any],
    count: int,
    keys: Buffer[Any],
    distance: Buffer[Any] | None,
    output: Output,
    graph: CommandGraph | None,
) -> None:
    """Write a permutation of 0 to count - 1.

    Parameters
    ----------
    result
        A buffer of `count` elements.
    keys
        `key_words(count)` of uint32.
    distance
        One number below `count`, of `place_type(count)`; None for up to `RANKED` elements.
    output
        How places of its `value_type` are stored.
    """
    if distance is None:
        _make_ranking_kernel(output.sink)(result, keys, *output.arguments, exec_size=count, graph=graph)
        return
    bits = (count - 1).bit_length()
    low_bits = bits - bits // 2
    kind = place_type(count)
    last = [count - 1] if kind is dt.uint32 else [count - 1 & 0xFFFFFFFF, count - 1 >> 32]
    _make_network_kernel(output.sink, kind)(
        *(result, keys, distance, *output.arguments),
        *(low_bits, (1 << bits - low_bits) - 1, (1 << low_bits) - 1, *last),
        exec_size=count,
        graph=graph,
    )


def gather(
    result: Buffer[Any],
    source: Operand,
    places: Buffer[Any] | None,
    inner: int,
    output: Output,
    graph: CommandGraph | None,
) -> None:
    """Write the rows at places of an axis with `inner` elements behind it; None copies all rows.

    Raises
    ------
    ValueError
        There are too many elements behind the axis.
    """
    taken, sink, parts = source.source, output.sink, 1
    word = _choose_word(source, output)
    if word is not None:
        taken, sink = plain_source(word), plain_output(word).sink
        parts = source.var_type.item_size // word.item_size
    if inner * parts > 0xFFFFFFFF:
        raise ArgumentValueError(f"axis: rows of {inner} elements are too long; expected less than 2**32")
    given = () if places is None else (places,)
    kernel = _make_gathering_kernel(sink, taken, None if places is None else places.var_type)
    arguments = (*given, *source.arguments, *output.arguments, inner * parts)
    kernel(result, *arguments, exec_size=result.size * parts, graph=graph)


def _choose_word(source: Operand, output: Output) -> dt.DType | None:
    """Return the type of the words as which elements are moved; None if they are moved as elements."""
    if not source.source.is_plain or output.sink.mapping is not None:
        return None
    component = dt.component_type(source.var_type)
    if component in (dt.float16, dt.bfloat16):
        # conversions to float32 and back change the bits of a NaN
        return dt.uint16
    lacking = component is dt.float64 and "shaderFloat64" not in device_facts(source.context).features
    return dt.uint32 if lacking else None


@store_results
def _make_ranking_kernel(sink: Sink) -> ShaderFunction:
    def body(result: Any, keys: Any, mapping: Any) -> None:
        index = vc.global_invocation_id().x
        low, high = keys[2 * index].to_register(), keys[2 * index + 1].to_register()
        rank = vc.new_register(dt.uint32, 0)
        with vc.for_block(keys.shape.w // 2) as other:
            other_low, other_high = keys[2 * other].to_register(), keys[2 * other + 1].to_register()
            same = vc.all(other_high == high, other_low == low, other < index)
            before = vc.any(other_high < high, vc.all(other_high == high, other_low < low), same)
            rank += vc.select(before, vc.to_dtype(dt.uint32, 1), 0)
        sink.store(result, mapping, index, rank.to_dtype(dt.compute_type(sink.value_type)))

    arguments = [*buffers(result=sink.out_type, keys=dt.uint32), sink.parameters]
    return trace_kernel("random_ranks", body, arguments, _GROUP, exec_size=1)


@store_results
def _make_network_kernel(sink: Sink, kind: dt.DType) -> ShaderFunction:
    wide = kind is dt.uint64

    def body(result: Any, keys: Any, distance: Any, mapping: Any, sizes: Any) -> None:
        low_bits, high_mask, low_mask, last, *upper = sizes
        if wide:
            last = ((upper[0].to_dtype(dt.uint64) << 32) | last.to_dtype(dt.uint64)).to_register()
        index = vc.global_invocation_id().x
        place = vc.new_register(kind, _cast_place(kind, index))
        again = vc.new_register(dt.uint32, 1)
        shift = low_bits.to_dtype(kind) if wide else low_bits
        with vc.while_block(again != 0):
            high = vc.new_register(dt.uint32, _cast_place(dt.uint32, place >> shift))
            low = vc.new_register(dt.uint32, _cast_place(dt.uint32, place) & low_mask)
            for turn in range(0, ROUNDS, 2):
                high[:] = (high ^ _hash(low, keys[turn])) & high_mask
                low[:] = (low ^ _hash(high, keys[turn + 1])) & low_mask
            place[:] = (high.to_dtype(kind) << shift) | low.to_dtype(kind)
            again[:] = vc.select(place > last, vc.to_dtype(dt.uint32, 1), 0)
        # modulo the count, without an overflow
        far = distance[0].to_register()
        left = (last - place).to_register()
        moved = vc.select(far > left, far - left - 1, place + far)
        sink.store(result, mapping, index, moved.to_dtype(dt.compute_type(sink.value_type)))

    tables = buffers(result=sink.out_type, keys=dt.uint32, distance=kind)
    sizes = ("low_bits", "high_mask", "low_mask", "last", *(("last_upper",) if wide else ()))
    arguments = [*tables, sink.parameters, numbers(*sizes)]
    return trace_kernel("random_permutation", body, arguments, _GROUP, exec_size=1)


@store_results
def _make_gathering_kernel(sink: Sink, source: Source, places: dt.DType | None) -> ShaderFunction:
    def body(result: Any, order: Any, variables: Any, mapping: Any, inner: Any) -> None:
        index = vc.global_invocation_id().x
        taken = index
        if order is not None:
            row, column = (index // inner).to_register(), (index % inner).to_register()
            length = order.shape.w
            before = row // length * length
            taken = (before + order[row % length].to_register()) * inner + column
        sink.store(result, mapping, index, source.value(variables, taken))

    tables = buffers(result=sink.out_type, order=places)
    arguments = [*tables, source.parameters, sink.parameters, *numbers("inner")]
    return trace_kernel("random_gather", body, arguments, _GROUP, exec_size=1)


def _cast_place(kind: dt.DType, value: Any) -> Any:
    """Return a number in a type, also in kernels whose positions have 64 bits."""
    return own(dt.uint32, value.to_dtype(dt.uint32)) if kind is dt.uint32 else value.to_dtype(dt.uint64)


def _hash(value: Any, key: Any) -> Any:
    mixed = own(dt.uint32, value + key)
    mixed = own(dt.uint32, (mixed ^ (mixed >> 16)) * 0x7FEB352D)
    mixed = own(dt.uint32, (mixed ^ (mixed >> 15)) * 0x846CA68B)
    return own(dt.uint32, mixed ^ (mixed >> 16))
