"""How many elements each bin has.

    elements  ->  counts of each workgroup, several copies      ->  counts of all   ->  result
                  in its memory: atomics on integers there          atomics             converted, mapped

Counts that are returned as they are, int64, are added up in the result itself.

Several copies, each of some subgroups of the workgroup, keep those apart that would wait for one another at
the same bin. Where the bins do not fit in workgroup memory, elements are counted in the buffer at once.
Counts are integers, so that the order in which they are added up, which is the device's choice, is nothing
that the result could depend on.
"""

from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.arrays.clearing import cleared
from vkdispatch.arrays.facts import device_facts
from vkdispatch.arrays.kernels import buffer, constant, traced
from vkdispatch.arrays.operand import Operand
from vkdispatch.arrays.output import Output, Sink
from vkdispatch.arrays.remembering import remembered
from vkdispatch.base import dtype
from vkdispatch.base.buffer import Buffer, function_buffer
from vkdispatch.base.dtype import DType
from vkdispatch.base.record import record
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.selection.histograms.binning import Binning, Bins, converted
from vkdispatch.selection.histograms.streaming import Streamed, stream_arguments, streamed, visit
from vkdispatch.shader.shader_function import ShaderFunction

# Sizes of workgroup memory that kernels are written for, in counts.
_WORDS = (4096, 8192, 12288)
# Counts of more elements than this need 64 bits.
_MOST_NARROW = 0xFFFFFFFF
_FILL = 256


@record
class _Form:
    """What a counting kernel is specialised for.

    `words` is its workgroup memory, 0 for none; `stride` how many numbers of type `count` a count takes, the
    first of which is added to.
    """

    stream: Streamed
    binning: Binning
    words: int
    count: DType
    stride: int


def shared_words(bins: int, item_size: int = 4) -> int:
    """Return the size of workgroup memory, in items, that holds so many; 0 where they do not fit."""
    most = device_facts().memory // item_size
    return next((words for words in _WORDS if bins <= words <= most), 0)


def counted(
    x: Operand,
    binning: Binning,
    edges: Buffer[Any] | None,
    bins: int,
    result: Buffer[Any],
    output: Output,
    graph: CommandGraph | None,
) -> Buffer[Any]:
    """Fill the result with how many elements each bin has, as its type or mapped."""
    kind = dtype.uint32 if x.size <= _MOST_NARROW else dtype.uint64
    words = shared_words(bins)
    # few counts are added up in the lower words of the result; many are denser apart
    direct = bool(words) and output.sink.mapping is None and result.var_type is dtype.int64
    counts: Buffer[Any] = result if direct else function_buffer(bins, kind, context=x.context)
    cleared(counts, graph)
    stream = streamed(x)
    _, arguments = stream_arguments(stream, (x,))
    copies = max(1, min(words // (bins | 1), stream.group // device_facts().subgroup)) if words else 1
    own = () if edges is None else (edges,)
    stride = 2 if direct and kind is dtype.uint32 else 1
    kernel = _counting(_Form(stream, binning, words, kind, stride))
    kernel(counts, copies, bins, *own, *arguments, graph=graph)
    return result if direct else stored(counts, result, output, graph)


@remembered
def _counting(form: _Form) -> ShaderFunction:
    arguments = [("counts", buffer[form.count]), ("copies", constant[dtype.uint32]), *form.binning.arguments]
    own = len(arguments)
    body = _shared_body if form.words else _direct_body

    def trace(*variables: Any) -> None:
        body(form, variables[:own], variables[own:])

    name = f"count_{form.binning.way}" + ("" if form.words else "_many")
    return traced(name, trace, [*arguments, *form.stream.arguments], form.stream.group, "stream_groups")


def _direct_body(form: _Form, own: Any, variables: Any) -> None:
    counts = own[0]
    bins = Bins(form.binning, own[2:], form.stream.group)

    def act(_: Any, element: Any) -> None:
        inside, number = bins.of(element)
        with vc.if_block(inside):
            vc.atomic_add(counts[number], 1)

    visit(form.stream, variables, act)


def _shared_body(form: _Form, own: Any, variables: Any) -> None:
    counts, copies = own[:2]
    group = form.stream.group
    lane = vc.local_invocation_id().x
    memory = vc.shared_buffer(dtype.uint32, form.words)
    bins = Bins(form.binning, own[2:], form.stream.group)
    # an odd stride: the same bin of two copies lies in two banks
    stride = (bins.count | 1).to_register()
    with vc.for_block(lane, vc.min(stride * copies, form.words), group) as place:
        memory[place] = 0
    vc.barrier()
    base = ((lane // device_facts().subgroup) % copies * stride).to_register()

    def act(_: Any, element: Any) -> None:
        inside, number = bins.of(element)
        with vc.if_block(inside):
            vc.atomic_add(memory[base + number], 1)

    visit(form.stream, variables, act)
    vc.barrier()
    with vc.for_block(lane, bins.count, group) as number:
        total = vc.new_uint_register(0)
        with vc.for_block(0, copies) as copy:
            total += memory[copy * stride + number]
        with vc.if_block(total > 0):
            vc.atomic_add(counts[number * form.stride if form.stride > 1 else number], total)


# -- small kernels around it


def stored(
    counts: Buffer[Any], result: Buffer[Any], output: Output, graph: CommandGraph | None
) -> Buffer[Any]:
    """Fill the result with counts, as its type or mapped."""
    _storing(counts.var_type, output.sink)(counts, result, *output.arguments, graph=graph)
    return result


@remembered
def _storing(kind: DType, sink: Sink) -> ShaderFunction:
    arguments = [("counts", buffer[kind]), ("result", buffer[sink.out_type])]
    mapped = sink.parameters

    def trace(counts: Any, result: Any, *variables: Any) -> None:
        index = vc.global_invocation_id().x
        sink.store(result, variables, index, converted(counts[index].to_register(), sink.value_type))

    return traced("store_counts", trace, [*arguments, *mapped], _FILL, exec_size="result.size")
