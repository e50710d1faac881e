"""Counts of elements by bin, and sums of their weights, in one pass over arrays."""

from collections.abc import Callable, Sequence
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base import dtype
from vkdispatch.base.buffer import Buffer, function_buffer
from vkdispatch.base.dtype import DType, is_float_dtype, is_signed_dtype
from vkdispatch.base.errors import UnsupportedError
from vkdispatch.base.record import record
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.families.kernels import Argument, buffers, clear_buffer, numbers, trace_kernel
from vkdispatch.families.operands import Operand, Output, Sink
from vkdispatch.families.sources import Source
from vkdispatch.families.stored import store_results
from vkdispatch.families.tuning import device_facts
from vkdispatch.families.values import wide_type
from vkdispatch.selection.tuning import choose_group, find_planner, tuning
from vkdispatch.shader.shader_function import ShaderFunction

# ---- The bin of an element, in kernels -------------------------------------------------------------------
#
# value      bins are the numbers 0, 1, 2, ...; an element is the number of its bin
# uniform    bins of equal width: a guess from the distance to the first edge, corrected by comparing with
#            edges
# search     bins between any edges: binary search
#
# A bin includes its left edge; the last one includes both. A guess is used if its distance from an integer
# is larger than the bound of its rounding errors, which `_prepare_guess` computes. Otherwise comparisons
# with edges decide. So the bin is that of exact comparisons with the edges, as NumPy's is, however the
# device rounds.


# Sizes of workgroup memory for edges that kernels are specialised for.
_SHARED = (128, 512)


@record
class Binning:
    """How a kernel finds bins.

    Attributes
    ----------
    way
        "value", "uniform" or "search".
    edges
        dtype of the edges, in which elements are compared with them; None without edges.
    guess
        dtype of the guess.
    grid
        dtype that edges of equal width are rounded to if it is narrower than `edges`; else None.
    shared
        Edges for which there is room in workgroup memory; 0 if they are not there.
    """

    way: str
    edges: DType | None = None
    guess: DType | None = None
    grid: DType | None = None
    shared: int = 0

    @property
    def arguments(self) -> list[Argument]:
        """The kernel's arguments: the number of bins, and the edges."""
        return [*numbers("bins"), *buffers(edges=self.edges)]


def search_edges(edges: Buffer[Any]) -> Binning:
    """Return how the bins between any edges are found."""
    shared = next((size for size in _SHARED if edges.size <= size), 0)
    return Binning("search", edges.var_type, shared=shared)


class Bins:
    """The bins of a kernel, in a trace: made before the pass, and used for each element."""

    def __init__(self, binning: Binning, variables: Any, group: int) -> None:
        self._binning = binning
        self.count = variables[0]
        if binning.way == "value":
            return
        self._edges = variables[1]
        self._first = self._edges[0].to_register()
        self._last = self._edges[self.count].to_register()
        if binning.way == "uniform":
            self._prepare_guess()
        if binning.shared and binning.edges:
            memory = vc.shared_buffer(binning.edges, binning.shared)
            with vc.for_block(vc.local_invocation_id().x, self.count + 1, group) as number:
                memory[number] = self._edges[number]
            vc.barrier()
            self._edges = memory

    def _prepare_guess(self) -> None:
        guess = self._binning.guess
        assert guess is not None
        first, last = self._first.to_dtype(guess), self._last.to_dtype(guess)
        bins = self.count.to_dtype(guess)
        width = (last - first).to_register()
        self._origin = first.to_register()
        self._scale = (bins / width).to_register()
        # A bound of the errors of the guess, in bins: those of the element's conversion, the difference, the
        # product, the quotient in `_scale` and the edges, each below 2**-23 (2**-52) of the magnitude.
        largest = vc.max(vc.abs(first), vc.abs(last))
        unit = 2.0**-20 if guess is dtype.float32 else 2.0**-49
        if self._binning.grid is dtype.float16:
            # edges and steps are rounded three times to 11 bits, and to fewer below 2**-14
            largest, unit = vc.max(largest, bins * 2.0**-14), 2.0**-9
        self._margin = (bins * (1.0 + largest / width) * unit).to_register()

    def find(self, element: Any) -> tuple[Any, Any]:
        """Return whether an element is in a bin, and the number of the bin, which is else undefined."""
        if self._binning.way == "value":
            return self._convert_number(element)
        edges = self._binning.edges
        assert edges is not None
        if element.var_type is dtype.bool_:
            element = vc.select(element, 1, 0)
        compared = element.to_dtype(edges).to_register()
        if self._binning.way == "uniform":
            inside = vc.all(compared >= self._first, compared <= self._last)
            return inside, self._guess(element, compared, inside)
        below_first = is_below(compared, self._first)
        above_last = is_below(self._last, compared)
        inside = ~vc.any(below_first, above_last)
        return inside, self._search(compared)

    def _convert_number(self, element: Any) -> tuple[Any, Any]:
        kind = element.var_type
        if kind is dtype.bool_:
            element = vc.select(element, 1, 0).to_dtype(dtype.uint32)
        elif is_signed_dtype(kind):
            # negative numbers become larger than any number of bins
            wide = dtype.uint64 if kind is dtype.int64 else dtype.uint32
            element = element.to_dtype(wide)
        element = element.to_register()
        bins = self.count if element.var_type is not dtype.uint64 else self.count.to_dtype(dtype.uint64)
        return element < bins, element.to_dtype(dtype.uint32)

    def _guess(self, element: Any, compared: Any, inside: Any) -> Any:
        guess = self._binning.guess
        assert guess is not None
        offset = (element.to_dtype(guess) - self._origin) * self._scale
        # NaN and elements outside have no bin, and must not be converted
        place = vc.select(inside, offset, 0.0).to_register()
        # the guess may be slightly too large
        last = self.count - 1
        index = vc.min(place.to_dtype(dtype.uint32), last).to_register("bin")
        part = (place - index.to_dtype(guess)).to_register()
        with vc.if_block(vc.all(inside, vc.any(part < self._margin, part > 1.0 - self._margin))):
            # few rounds: written out, they take CPU drivers seconds to compile
            with vc.while_block(vc.all(index > 0, compared < self._edges[index]), rolled=True):
                index -= 1
            with vc.while_block(vc.all(index < last, compared >= self._edges[index + 1]), rolled=True):
                index += 1
        return index

    def _search(self, compared: Any) -> Any:
        """Return the last bin whose left edge is not above the element."""
        base = vc.new_uint_register(0)
        length = (self.count + 0).to_register()

        def halve() -> None:
            half = (length >> 1).to_register()
            middle = (base + half).to_register()
            base[:] = vc.select(is_below(compared, self._edges[middle].to_register()), base, middle)
            length[:] = length - half

        if self._binning.shared:
            # a step with one bin left changes nothing
            for _ in range(self._binning.shared.bit_length() - 1):
                halve()
        else:
            with vc.while_block(length > 1):
                halve()
        return base


def is_below(a: Any, b: Any) -> Any:
    """Whether one value is before another, with NaN after all numbers."""
    if not is_float_dtype(a.var_type):
        return a < b
    return vc.any(a < b, vc.all(vc.isnan(b), ~vc.isnan(a)))


# ---- One pass over all elements of some arrays, in any order ---------------------------------------------
#
# The frame of kernels that count and sum.
#
#     elements    |. . . . . . . . . . . . . . . . . . . . . . . . . . . . . . . . . . .|. . .|.|
#     chunks      |    0    |    1    |    2    |    3    |    4    |    5    |   6    | rest | tail
#     workgroup        0         1         2         0         1         2        0       1     0
#
# A chunk is what a workgroup has in flight at once: `unroll` loads of up to 16 bytes for each invocation.
# Each workgroup visits every n-th chunk. Loads that do not fill a chunk, and elements that do not fill a
# load, come last. Every element is visited once.


@record
class Stream:
    """Arrays of one size, as a kernel visits them.

    Attributes
    ----------
    sources
        The arrays.
    group, unroll
        Invocations of a workgroup, and the loads that each has in flight.
    """

    sources: tuple[Source, ...]
    group: int
    unroll: int

    @property
    def together(self) -> int:
        """Elements of each array that one load takes."""
        return self.sources[0].together

    @property
    def arguments(self) -> list[list[Argument]]:
        """The kernel's arguments: those of each array, the views of each, the numbers."""
        return [
            *(source.parameters for source in self.sources),
            *(
                buffers(**{f"{source.names[position]}_{view.name}": view for position, view in source.views})
                for source in self.sources
            ),
            numbers("stream_groups", "stream_full", "stream_rest", "stream_tail"),
        ]


def make_stream(*operands: Operand) -> Stream:
    """Return how a kernel visits arrays of one size. A load takes several elements if all arrays agree."""
    sources = [operand.source for operand in operands]
    if len({source.together for source in sources}) > 1:
        sources = [source.elementwise() for source in sources]
    unroll = find_planner().choose_stream_loads(sources[0].together)
    return Stream(tuple(sources), choose_group(tuning.stream_group), unroll)


def stream_values(stream: Stream, operands: Sequence[Operand]) -> tuple[Any, ...]:
    """Return what a kernel is launched with for `stream.arguments`."""
    size = operands[0].size
    loads = size // stream.together
    chunk = stream.group * stream.unroll
    full, rest = divmod(loads, chunk)
    groups = max(1, min(full + (rest > 0), find_planner().stream_groups))
    arrays = [argument for operand in operands for argument in operand.arguments]
    views = [
        operand.arguments[position]
        for operand, source in zip(operands, stream.sources, strict=True)
        for position, _ in source.views
    ]
    return (*arrays, *views, groups, full, rest, size - loads * stream.together)


def visit(stream: Stream, variables: Sequence[Any], act: Callable[..., None]) -> None:
    """Trace a pass: `act(index, *values)` for each element, with a value of each array.

    `variables` are those of `stream.arguments`. `act` must not have barriers: invocations reach it in
    different rounds.
    """
    count = len(stream.sources)
    arrays, views, (groups, full, rest, tail) = variables[:count], variables[count:-1], variables[-1]
    lane = vc.local_invocation_id().x
    mine = vc.workgroup_id().x
    group, unroll, together = stream.group, stream.unroll, stream.together

    def loads(places: Sequence[Any]) -> list[list[list[Any]]]:
        words = [
            [source.load(view, place) for source, view in zip(stream.sources, views, strict=True)]
            for place in places
        ]
        if together > 1:
            return words
        # without vector loads: all loads come before the first use
        return [
            [
                [source.value(array, place)] if source.is_plain else []
                for source, array in zip(stream.sources, arrays, strict=True)
            ]
            for place in places
        ]

    def consume(place: Any, words: Sequence[list[Any]]) -> None:
        values = [
            word if together == 1 and source.is_plain else source.values(array, place, word)
            for source, array, word in zip(stream.sources, arrays, words, strict=True)
        ]
        for i in range(together):
            act(place * together + i if together > 1 else place, *(value[i] for value in values))

    chunks = full + vc.select(rest > 0, 1, 0) if unroll == 1 else full
    rounds = ((chunks + (groups - 1) - mine) // groups).to_register()
    with vc.for_block(0, rounds) as number:
        chunk = mine + number * groups
        places = [chunk * (group * unroll) + (lane + u * group) for u in range(unroll)]
        if unroll == 1:
            # the last chunk may be short
            place = places[0].to_register()
            with vc.if_block(place < full * group + rest):
                consume(place, loads([place])[0])
        else:
            for place, words in zip(places, loads(places), strict=True):
                consume(place, words)
    if unroll > 1:
        with vc.if_block(mine == full % groups), vc.for_block(lane, rest, group) as offset:
            place = full * (group * unroll) + offset
            consume(place, loads([place])[0])
    if together > 1:
        with vc.if_block(vc.all(mine == 0, lane < tail)):
            index = (full * (group * unroll) + rest) * together + lane
            singles = [source.elementwise() for source in stream.sources]
            values = [single.value(array, index) for single, array in zip(singles, arrays, strict=True)]
            act(index, *values)


# ---- Counts of the elements of each bin ------------------------------------------------------------------
#
#     elements  ->  counts of each workgroup, several copies      ->  counts of all   ->  result
#                   in its memory: atomics on integers there          atomics             converted, mapped
#
# Counts that are returned as int64, without a map, are added up in the result itself.
#
# Each copy is for some subgroups of the workgroup. Copies reduce the contention of atomics on the same bin.
# If the bins do not fit in workgroup memory, elements are counted in the buffer directly. Counts are
# integers, so the result does not depend on the order of execution.


# Sizes of workgroup memory that kernels are specialised for, in counts.
_WORDS = (4096, 8192, 12288)
# Counts of more elements need 64 bits.
_MAX_NARROW = 0xFFFFFFFF
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


def shared_words(bins: int) -> int:
    """Return the number of words of workgroup memory for a number of bins; 0 if they do not fit."""
    most = device_facts().shared_memory // 4
    return next((words for words in _WORDS if bins <= words <= most), 0)


def count_bins(task: BinnedTask) -> Buffer[Any]:
    """Fill the result with the number of elements of each bin."""
    x, bins, result, graph = task.x, task.bins, task.result, task.graph
    kind = dtype.uint32 if x.size <= _MAX_NARROW else dtype.uint64
    words = shared_words(bins)
    # few counts are added up in the lower words of the result; more are denser in a buffer of their own
    is_direct = bool(words) and task.output.sink.mapping is None and result.var_type is dtype.int64
    counts: Buffer[Any] = result if is_direct else function_buffer(bins, kind, context=x.context)
    clear_buffer(counts, graph)
    stream = make_stream(x)
    values = stream_values(stream, (x,))
    copies = max(1, min(words // (bins | 1), stream.group // device_facts().subgroup_size)) if words else 1
    edges = () if task.edges is None else (task.edges,)
    stride = 2 if is_direct and kind is dtype.uint32 else 1
    kernel = _make_count_kernel(_Form(stream, task.binning, words, kind, stride))
    kernel(counts, copies, bins, *edges, *values, graph=graph)
    return result if is_direct else store_counts(counts, result, task.output, graph)


@store_results
def _make_count_kernel(form: _Form) -> ShaderFunction:
    tables = [*buffers(counts=form.count), *numbers("copies")]
    count = _count_in_shared if form.words else _count_in_buffer

    def trace(counts: Any, copies: Any, binning: Any, *variables: Any) -> None:
        count(form, counts, copies, binning, variables)

    name = f"count_{form.binning.way}" + ("" if form.words else "_many")
    arguments = [*tables, form.binning.arguments, *form.stream.arguments]
    return trace_kernel(name, trace, arguments, form.stream.group, "stream_groups")


def _count_in_buffer(form: _Form, counts: Any, _: Any, binning: Any, variables: Any) -> None:
    bins = Bins(form.binning, binning, form.stream.group)

    def act(_: Any, element: Any) -> None:
        is_inside, number = bins.find(element)
        with vc.if_block(is_inside):
            vc.atomic_add(counts[number], 1)

    visit(form.stream, variables, act)


def _count_in_shared(form: _Form, counts: Any, copies: Any, binning: Any, variables: Any) -> None:
    group = form.stream.group
    lane = vc.local_invocation_id().x
    memory = vc.shared_buffer(dtype.uint32, form.words)
    bins = Bins(form.binning, binning, group)
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


@store_results
def _make_store_kernel(kind: DType, sink: Sink) -> ShaderFunction:
    def trace(counts: Any, result: Any, mapping: Any) -> None:
        index = vc.global_invocation_id().x
        sink.store(result, mapping, index, counts[index].to_register().to_dtype(sink.value_type))

    arguments = [*buffers(counts=kind, result=sink.out_type), sink.parameters]
    return trace_kernel("store_counts", trace, arguments, _FILL, exec_size="result.size")


# ---- Sums of weights by bin, in fixed point: their bits do not depend on the order of execution ----------
#
#     weight         = mantissa (an integer)        * 2 ** exponent
#     top of a bin   = the largest exponent of its weights                          first pass: atomic maximum
#     fixed point    = |.... upper: H bits ....|.... lower: H bits ....|            second pass: atomic sums
#                       ^ the leading bit of the top                                of two int64 each
#     sum of a bin   = (upper + lower * 2 ** -H) * 2 ** (position of its top)       rounded once
#
# H is 62 minus the binary logarithm of the number of elements, so no sum overflows. Weights are truncated 2 H
# bits below the largest weight of their bin. With 2**26 elements 2 H is 72; a float64 has 53 bits. Sums of
# integers do not depend on their order, unlike sums of floats. Integer weights are summed as int64. Devices
# without 64-bit atomics add words, with a carry.


# Bins in workgroup memory that kernels are specialised for, of five words each.
_BIN_SIZES = (256, 1024, 2048)
_SUM_WORDS = 5
_MAX_SHARED = 1 << 16
_FINISH_GROUP = 256
# Vulkan's names of the features that atomics on int64 need.
_HAS_LONGS = {"shaderInt64", "shaderBufferInt64Atomics"}
# Flags of a bin with weights that are not finite.
_PLUS, _MINUS, _NAN = 1, 2, 4


@record
class _Layout:
    """How a float is stored: bits of the fraction, largest exponent, bias for an integer mantissa."""

    word: DType
    fraction: int
    special: int
    bias: int


_FLOAT32 = _Layout(dtype.uint32, 23, 0xFF, 150)
_FLOAT64 = _Layout(dtype.uint64, 52, 0x7FF, 1075)


@record
class _SumForm:
    """What a kernel is specialised for.

    Attributes
    ----------
    stream, binning
        How elements are visited, and how bins are found.
    weight
        dtype of the weights, as they are combined.
    shared
        Bins in workgroup memory; 0 for none.
    upper
        Bits of the upper part of a sum.
    has_words
        Whether int64 are added word by word.
    """

    stream: Stream
    binning: Binning
    weight: DType
    shared: int
    upper: int
    has_words: bool = False


def _find_layout(kind: DType) -> _Layout:
    return _FLOAT64 if kind is dtype.float64 else _FLOAT32


def sum_weights(task: BinnedTask, weights: Operand) -> Buffer[Any]:
    """Fill the result with the sum of the weights of each bin.

    Raises
    ------
    NotImplementedError
        The sums need float64, and the device has none.
    """
    x, bins, binning, output, graph = task.x, task.bins, task.binning, task.output, task.graph
    context = x.context
    _check_float64(weights, output)
    stream = make_stream(x, weights)
    values = stream_values(stream, (x, weights))
    binning_arguments = (bins,) if task.edges is None else (bins, task.edges)
    kind = wide_type(weights.var_type)
    upper = 62 - max(1, (x.size - 1).bit_length())
    sums: Buffer[Any] = function_buffer(2 * bins, dtype.int64, context=context)
    clear_buffer(sums, graph)
    tops: Buffer[Any] = function_buffer(2 * bins, dtype.uint32, context=context)
    clear_buffer(tops, graph)
    if is_float_dtype(kind):
        form = _SumForm(stream, binning, kind, shared_words(bins), 0)
        _make_top_kernel(form)(tops, *binning_arguments, *values, graph=graph)
    has_words = not device_facts().features >= _HAS_LONGS
    form = _SumForm(stream, binning, kind, _shared_bins(bins), upper, has_words)
    _make_sum_kernel(form)(sums, tops, *binning_arguments, *values, graph=graph)
    _make_finish_kernel(kind, upper, output.sink)(sums, tops, task.result, *output.arguments, graph=graph)
    return task.result


def _check_float64(weights: Operand, output: Output) -> None:
    facts = device_facts(weights.context)
    floats = is_float_dtype(wide_type(weights.var_type)) or output.sink.value_type is dtype.float64
    if floats and "shaderFloat64" not in facts.features:
        device = weights.context.device_infos[0].device_name
        raise UnsupportedError(
            f"weights: their sums are computed in float64 ({weights.var_type.name} was passed), and the "
            f"device {device!r} has no float64; vd.histogram sums only integers there; otherwise use NumPy"
        )


def _shared_bins(bins: int) -> int:
    """Return how many bins workgroup memory holds, with two sums and a top each; 0 for none."""
    if not find_planner().copies_tables:
        return 0
    most = min(device_facts().shared_memory, _MAX_SHARED) // (4 * _SUM_WORDS)
    return next((size for size in _BIN_SIZES if bins <= size <= most), 0)


def _split_float(kind: DType, weight: Any) -> tuple[Any, Any, Any]:
    """Return the sign bit, the biased exponent and the mantissa of a float, in registers."""
    layout = _find_layout(kind)
    bits = vc.reinterpret(layout.word, weight).to_register()
    exponent = ((bits >> layout.fraction) & layout.special).to_dtype(dtype.uint32).to_register()
    hidden = vc.select(exponent > 0, 1 << layout.fraction, 0)
    mantissa = ((bits & ((1 << layout.fraction) - 1)) | hidden.to_dtype(layout.word)).to_register()
    negative = (bits >> (8 * layout.word.item_size - 1)).to_dtype(dtype.uint32)
    # subnormal numbers have the exponent of the smallest normal number
    return negative, vc.max(exponent, 1).to_register(), mantissa


@store_results
def _make_top_kernel(form: _SumForm) -> ShaderFunction:
    """Return the kernel that finds the top of each bin, and flags weights that are not finite."""
    layout, group = _find_layout(form.weight), form.stream.group

    def trace(tops: Any, binning: Any, *variables: Any) -> None:
        lane = vc.local_invocation_id().x
        bins = Bins(form.binning, binning, group)
        memory = vc.shared_buffer(dtype.uint32, form.shared) if form.shared else tops
        if form.shared:
            with vc.for_block(lane, bins.count, group) as place:
                memory[place] = 0
            vc.barrier()

        def act(_: Any, element: Any, weight: Any) -> None:
            is_inside, number = bins.find(element)
            with vc.if_block(is_inside):
                negative, exponent, mantissa = _split_float(form.weight, weight.to_register())
                with vc.if_block(exponent == layout.special):
                    number_flag = vc.select(negative > 0, _MINUS, _PLUS)
                    is_infinite = mantissa == (1 << layout.fraction)
                    vc.atomic_or(tops[bins.count + number], vc.select(is_infinite, number_flag, _NAN))
                # most weights do not change the maximum
                is_larger = vc.all(exponent < layout.special, mantissa > 0, exponent > memory[number])
                with vc.if_block(is_larger):
                    vc.atomic_max(memory[number], exponent)

        visit(form.stream, variables, act)
        if form.shared:
            vc.barrier()
            with vc.for_block(lane, bins.count, group) as place:
                top = memory[place].to_register()
                with vc.if_block(top > 0):
                    vc.atomic_max(tops[place], top)

    arguments = [*buffers(tops=dtype.uint32), form.binning.arguments, *form.stream.arguments]
    return trace_kernel(f"weigh_tops_{form.binning.way}", trace, arguments, group, "stream_groups")


@store_results
def _make_sum_kernel(form: _SumForm) -> ShaderFunction:
    """Return the kernel that adds up the weights of each bin, in fixed point from its top."""
    group = form.stream.group

    def trace(sums: Any, tops: Any, binning: Any, *variables: Any) -> None:
        lane = vc.local_invocation_id().x
        bins = Bins(form.binning, binning, group)
        add_to_buffer = _make_word_adder(sums) if form.has_words else _make_adder(sums)
        top_of, add = tops, add_to_buffer
        if form.shared:
            memory = vc.shared_buffer(dtype.uint32, 4 * form.shared)
            add = _make_word_adder(memory)
            top_of = vc.shared_buffer(dtype.uint32, form.shared)
            with vc.for_block(lane, bins.count, group) as place:
                for word in range(4):
                    memory[4 * place + word] = 0
                top_of[place] = tops[place]
            vc.barrier()

        def act(_: Any, element: Any, weight: Any) -> None:
            is_inside, number = bins.find(element)
            with vc.if_block(is_inside):
                if is_float_dtype(form.weight):
                    _add_float(form, add, top_of[number], number, weight.to_register())
                else:
                    if form.weight is dtype.bool_:
                        weight = vc.select(weight, 1, 0)
                    add(2 * number, weight.to_dtype(dtype.int64))

        visit(form.stream, variables, act)
        if form.shared:
            vc.barrier()
            with vc.for_block(lane, 2 * bins.count, group) as place:
                pair = vc.to_uvec2(memory[2 * place], memory[2 * place + 1])
                total = vc.pack_uint2x32(pair).to_dtype(dtype.int64).to_register()
                with vc.if_block(total != 0):
                    add_to_buffer(place, total)

    tables = buffers(sums=dtype.uint32 if form.has_words else dtype.int64, tops=dtype.uint32)
    arguments = [*tables, form.binning.arguments, *form.stream.arguments]
    return trace_kernel(f"weigh_{form.binning.way}", trace, arguments, group, "stream_groups")


def _make_adder(sums: Any) -> Any:
    def add(place: Any, value: Any) -> None:
        vc.atomic_add(sums[place], value)

    return add


def _make_word_adder(memory: Any) -> Any:
    """Return a function that adds to an int64 in two words by atomics of 32 bits.

    The lower word tells whether there is a carry. A sum is right once all numbers have been added.
    """

    def add(place: Any, value: Any) -> None:
        pair = vc.unpack_uint2x32(value.to_dtype(dtype.uint64)).to_register()
        before = vc.atomic_add(memory[2 * place], pair.x).to_register()
        carry = vc.select(before + pair.x < before, 1, 0).to_dtype(dtype.uint32)
        upper = (pair.y + carry).to_register()
        with vc.if_block(upper != 0):
            vc.atomic_add(memory[2 * place + 1], upper)

    return add


def _add_float(form: _SumForm, add: Any, top: Any, number: Any, weight: Any) -> None:
    layout, upper = _find_layout(form.weight), form.upper
    negative, exponent, mantissa = _split_float(form.weight, weight)
    with vc.if_block(exponent < layout.special):
        wide = mantissa.to_dtype(dtype.uint64).to_register()
        # the place of the mantissa's last bit, counted from the last bit of the upper part
        at = (exponent - top).to_dtype(dtype.int32) + (upper - layout.fraction - 1)
        at = at.to_register()
        high = vc.new_uint64_register(0)
        low = vc.new_uint64_register(0)
        with vc.if_block(at >= 0):
            high[:] = wide << at.to_dtype(dtype.uint32)
        with vc.else_block():
            down = (-at).to_dtype(dtype.uint32).to_register()
            high[:] = _shift_right(wide, down)
            with vc.if_block(down < 64):
                rest = (wide - (high << down)).to_register()
                with vc.if_block(down <= upper):
                    low[:] = rest << (upper - down)
                with vc.else_block():
                    low[:] = rest >> (down - upper)
            with vc.else_block():
                low[:] = _shift_right(wide, down - upper)
        for place, part in ((2 * number, high), (2 * number + 1, low)):
            with vc.if_block(part != 0):
                signed = part.to_dtype(dtype.int64)
                add(place, vc.select(negative > 0, -signed, signed))


def _shift_right(value: Any, count: Any) -> Any:
    return vc.select(count < 64, value >> vc.min(count, 63), 0)


@store_results
def _make_finish_kernel(kind: DType, upper: int, sink: Sink) -> ShaderFunction:
    def trace(sums: Any, tops: Any, result: Any, mapping: Any) -> None:
        index = vc.global_invocation_id().x
        high = sums[2 * index].to_register()
        total = _round_sum(kind, upper, sums, tops, index) if is_float_dtype(kind) else high
        sink.store(result, mapping, index, total.to_dtype(wide_type(sink.value_type)))

    tables = buffers(sums=dtype.int64, tops=dtype.uint32, result=sink.out_type)
    return trace_kernel(
        "store_sums", trace, [*tables, sink.parameters], _FINISH_GROUP, exec_size="result.size"
    )


def _round_sum(kind: DType, upper: int, sums: Any, tops: Any, index: Any) -> Any:
    layout = _find_layout(kind)
    bins = tops.shape.w // 2
    # carry from the lower sum to the upper one, so that both are rounded together
    low = sums[2 * index + 1].to_register()
    carry = (low >> upper).to_register()
    high = (sums[2 * index] + carry).to_dtype(dtype.float64)
    rest = (low - (carry << upper)).to_dtype(dtype.float64)
    total = high + rest * 2.0**-upper
    exponent = tops[index].to_dtype(dtype.int32) + (layout.fraction + 1 - layout.bias - upper)
    half = (exponent >> 1).to_register()
    total = (total * _power(half) * _power(exponent - half)).to_register()
    flags = tops[bins + index].to_register()
    with vc.if_block(flags != 0):
        infinity = vc.reinterpret(dtype.float64, vc.to_dtype(dtype.uint64, 0x7FF0000000000000))
        nan = vc.reinterpret(dtype.float64, vc.to_dtype(dtype.uint64, 0x7FF8000000000000))
        total[:] = vc.select(flags == _PLUS, infinity, vc.select(flags == _MINUS, -infinity, nan))
    return total


def _power(exponent: Any) -> Any:
    """Return a power of two; the exponent is one of normal numbers."""
    bits = (exponent + 1023).to_dtype(dtype.uint64) << 52
    return vc.reinterpret(dtype.float64, bits)
