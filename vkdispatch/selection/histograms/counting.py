"""Counts of the elements of each bin.

    elements  ->  counts of each workgroup, several copies      ->  counts of all   ->  result
                  in its memory: atomics on integers there          atomics             converted, mapped

Counts that are returned as int64, without a map, are added up in the result itself.

Each copy is for some subgroups of the workgroup. Copies reduce the contention of atomics on the same bin. If
the bins do not fit in workgroup memory, elements are counted in the buffer directly. Counts are integers, so
the result does not depend on the order of execution.
"""

from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base import dtype
from vkdispatch.base.buffer import Buffer, function_buffer
from vkdispatch.base.dtype import DType
from vkdispatch.base.record import record
from vkdispatch.codegen.arguments import buffer, constant
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.families.kernels import clear_buffer, trace_kernel
from vkdispatch.families.operands import Operand, Output, Sink
from vkdispatch.families.tuning import device_facts, memoize
from vkdispatch.selection.histograms.binning import Binning, Bins, convert
from vkdispatch.selection.histograms.streaming import Stream, make_stream, stream_values, visit
from vkdispatch.shader.shader_function import ShaderFunction

# Sizes of workgroup memory that kernels are specialised for, in counts.
_WORDS = (4096, 8192, 12288)
# Counts of more elements need 64 bits.
_MOST_NARROW = 0xFFFFFFFF
_FILL = 256


@record(eq=False)
class BinnedTask:
    """Elements to be counted, or summed, by bin.

    Attributes
    ----------
    x
        The elements.
    binning, edges, bins
        How bins are found, the edges (None without any), and the number of bins.
    result, output
        The buffer of the result, and how it is stored.
    graph
        The graph to record into.
    """

    x: Operand
    binning: Binning
    edges: Buffer[Any] | None
    bins: int
    result: Buffer[Any]
    output: Output
    graph: CommandGraph | None


@record
class _Form:
    """What a counting kernel is specialised for.

    Attributes
    ----------
    stream, binning
        How elements are visited, and how bins are found.
    words
        Counts in workgroup memory; 0 for none.
    count, stride
        dtype of the counts in the buffer, and the distance of two bins there.
    """

    stream: Stream
    binning: Binning
    words: int
    count: DType
    stride: int


def shared_words(bins: int, item_size: int = 4) -> int:
    """Return the number of items of workgroup memory for a number of bins; 0 if they do not fit."""
    most = device_facts().shared_memory // item_size
    return next((words for words in _WORDS if bins <= words <= most), 0)


def count_bins(task: BinnedTask) -> Buffer[Any]:
    """Fill the result with the number of elements of each bin."""
    x, bins, result, graph = task.x, task.bins, task.result, task.graph
    kind = dtype.uint32 if x.size <= _MOST_NARROW else dtype.uint64
    words = shared_words(bins)
    # few counts are added up in the lower words of the result; more are denser in a buffer of their own
    is_direct = bool(words) and task.output.sink.mapping is None and result.var_type is dtype.int64
    counts: Buffer[Any] = result if is_direct else function_buffer(bins, kind, context=x.context)
    clear_buffer(counts, graph)
    stream = make_stream(x)
    values = stream_values(stream, (x,))
    copies = max(1, min(words // (bins | 1), stream.group // device_facts().subgroup_size)) if words else 1
    own = () if task.edges is None else (task.edges,)
    stride = 2 if is_direct and kind is dtype.uint32 else 1
    kernel = _make_count_kernel(_Form(stream, task.binning, words, kind, stride))
    kernel(counts, copies, bins, *own, *values, graph=graph)
    return result if is_direct else store_counts(counts, result, task.output, graph)


@memoize
def _make_count_kernel(form: _Form) -> ShaderFunction:
    arguments = [("counts", buffer[form.count]), ("copies", constant[dtype.uint32]), *form.binning.arguments]
    own = len(arguments)
    count = _count_in_shared if form.words else _count_in_buffer

    def trace(*variables: Any) -> None:
        count(form, variables[:own], variables[own:])

    name = f"count_{form.binning.way}" + ("" if form.words else "_many")
    return trace_kernel(name, trace, [*arguments, *form.stream.arguments], form.stream.group, "stream_groups")


def _count_in_buffer(form: _Form, own: Any, variables: Any) -> None:
    counts = own[0]
    bins = Bins(form.binning, own[2:], form.stream.group)

    def act(_: Any, element: Any) -> None:
        is_inside, number = bins.find(element)
        with vc.if_block(is_inside):
            vc.atomic_add(counts[number], 1)

    visit(form.stream, variables, act)


def _count_in_shared(form: _Form, own: Any, variables: Any) -> None:
    counts, copies = own[:2]
    group = form.stream.group
    lane = vc.local_invocation_id().x
    memory = vc.shared_buffer(dtype.uint32, form.words)
    bins = Bins(form.binning, own[2:], form.stream.group)
    # with an odd stride, the same bin of two copies is in different banks
    stride = (bins.count | 1).to_register()
    with vc.for_block(lane, vc.min(stride * copies, form.words), group) as place:
        memory[place] = 0
    vc.barrier()
    base = ((lane // device_facts().subgroup_size) % copies * stride).to_register()

    def act(_: Any, element: Any) -> None:
        is_inside, number = bins.find(element)
        with vc.if_block(is_inside):
            vc.atomic_add(memory[base + number], 1)

    visit(form.stream, variables, act)
    vc.barrier()
    with vc.for_block(lane, bins.count, group) as number:
        total = vc.new_uint_register(0)
        with vc.for_block(0, copies) as copy:
            total += memory[copy * stride + number]
        with vc.if_block(total > 0):
            vc.atomic_add(counts[number * form.stride if form.stride > 1 else number], total)


def store_counts(
    counts: Buffer[Any], result: Buffer[Any], output: Output, graph: CommandGraph | None
) -> Buffer[Any]:
    """Fill the result with counts, converted or mapped."""
    _make_store_kernel(counts.var_type, output.sink)(counts, result, *output.arguments, graph=graph)
    return result


@memoize
def _make_store_kernel(kind: DType, sink: Sink) -> ShaderFunction:
    arguments = [("counts", buffer[kind]), ("result", buffer[sink.out_type])]
    mapped = sink.parameters

    def trace(counts: Any, result: Any, *variables: Any) -> None:
        index = vc.global_invocation_id().x
        sink.store(result, variables, index, convert(counts[index].to_register(), sink.value_type))

    return trace_kernel("store_counts", trace, [*arguments, *mapped], _FILL, exec_size="result.size")
