"""`vd.topk` and `vd.median`: elements by their rank."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import vkdispatch.codegen as vc
from vkdispatch.base import dtype
from vkdispatch.base.buffer import Buffer, function_buffer
from vkdispatch.base.dtype import DType, is_float_dtype, is_scalar
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.base.record import record
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.families import operands
from vkdispatch.families.calls import array_function
from vkdispatch.families.kernels import buffers, clear_buffer, numbers, trace_kernel
from vkdispatch.families.operands import DTypeLike, parse_axis, parse_int, split_shape
from vkdispatch.families.sources import Source
from vkdispatch.families.stored import store_results
from vkdispatch.families.tuning import device_facts
from vkdispatch.families.values import wide_type
from vkdispatch.rearrange.transposing import launch_transpose
from vkdispatch.reduce.accumulators import make_sum
from vkdispatch.reduce.launching import check_real, count_or_warn, mean_type, parse_call, reduce_array
from vkdispatch.scans.launching import exclusive_sum
from vkdispatch.selection import topk_kernels
from vkdispatch.selection.tuning import choose_group, tuning
from vkdispatch.shader.shader_function import ShaderFunction
from vkdispatch.sorting.keys import Order, is_sortable, unpack_position
from vkdispatch.sorting.launching import MAX_NARROW, Rows, position_type, sort_rows
from vkdispatch.sorting.rearranging import Along, choose_copy, into_rows

# ---- The launches that narrow long rows down to candidates for their first k elements --------------------
#
# See `topk_kernels`.


# Rounds of a loop that llvmpipe does not leave early.
_MAX_ROUNDS = 1 << 15


@record
class Plan:
    """How rows are narrowed down.

    Attributes
    ----------
    samples
        Elements of the sample of each row.
    rank
        The number of the sample, in their order, that is the bound.
    room
        The most candidates of a row.
    """

    samples: int
    rank: int
    room: int


def plan_narrowing(length: int, k: int) -> Plan | None:
    """Return how rows of a length are narrowed down to their first k elements; None to sort them whole.

    If m samples are expected among the first k elements, more than m + 6 sqrt(m) + 8 are found in one of
    billions of cases, unless the order of the array is related to that of the sample. The room is chosen in
    the same way.
    """
    if length < tuning.sample_length or length > MAX_NARROW:
        return None
    samples = min(tuning.samples if length < tuning.many else tuning.many_samples, length // 4)
    among = k * samples / length
    rank = math.ceil(among + 6 * math.sqrt(among) + 8)
    room = math.ceil(length / samples * (rank + 6 * math.sqrt(rank) + 6))
    if room > length // 4 or rank >= samples:
        return None
    return Plan(samples, rank, max(room, k))


def find_candidates(
    keys: Buffer[Any], order: Order, rows: Rows, k: int, plan: Plan, graph: CommandGraph | None
) -> tuple[Buffer[Any], Buffer[Any]]:
    """Return `plan.room` candidates for the first k elements of each row, and their positions."""
    narrowing = (_RunNarrowing if device_facts(keys.context).is_cpu else _Narrowing)(
        keys, order, rows, (k, plan.room), graph
    )
    bounds = _find_bounds(keys, order, rows, plan, graph)
    starts = exclusive_sum(narrowing.count(bounds), graph=graph)
    narrowing.collect(starts)
    # the following launches do nothing in rows whose sample was good
    narrowing.collect_exactly(starts, narrowing.select_code(starts))
    return narrowing.targets


class _Narrowing:
    """The launches that narrow rows down, on GPUs: they flag the candidates of tiles.

    Attributes
    ----------
    form
        What the kernels are specialised for.
    limits
        The number of wanted elements, and the room for candidates of a row.
    targets
        The candidates and their positions.
    """

    def __init__(
        self, keys: Buffer[Any], order: Order, rows: Rows, limits: tuple[int, int], graph: CommandGraph | None
    ) -> None:
        self._keys, self._order, self._rows, self.limits, self._graph = keys, order, rows, limits, graph
        self._together = topk_kernels.choose_together(order, rows.count, rows.length)
        self.form = self._make_form(tuning.sample_group)
        self._shape = self._divide(self.form)
        room = rows.count * limits[1]
        candidates: Buffer[Any] = function_buffer(room, order.raw, context=keys.context)
        self.targets = candidates, self._words(room)

    def _make_form(self, group: int) -> topk_kernels.NarrowForm:
        return topk_kernels.NarrowForm(self._order, choose_group(group), self._together, tuning.sample_loads)

    def _divide(self, form: topk_kernels.NarrowForm) -> tuple[int, int, int]:
        """Return the number of rows, the parts of each, and the length of rows."""
        return self._rows.count, -(-self._rows.length // form.tile), self._rows.length

    def _words(self, count: int) -> Buffer[Any]:
        return function_buffer(count, dtype.uint32, context=self._keys.context)

    def count(self, bounds: Buffer[Any]) -> Buffer[Any]:
        """Return how many elements of each part are up to the bound of their row."""
        parts = self._shape[0] * self._shape[1]
        self._bits, sums = self._words(parts * self.form.group), self._words(parts)
        kernel = topk_kernels.make_flag_kernel(self.form)
        kernel(self._keys, self._keys, self._bits, sums, bounds, *self._shape, graph=self._graph)
        return sums

    def collect(self, starts: Buffer[Any]) -> None:
        """Collect these elements of rows whose sample was good, and fill the room after them."""
        self._pad(starts)
        kernel = topk_kernels.make_collect_kernel(self.form)
        kernel(self._keys, self._bits, starts, *self.targets, *self.limits, *self._shape, graph=self._graph)

    def _pad(self, starts: Buffer[Any]) -> None:
        kernel = topk_kernels.make_pad_kernel(self.form, _last_words(self._order))
        kernel(*self.targets, starts, *self.limits, self._shape[1], graph=self._graph)

    def select_code(self, starts: Buffer[Any]) -> Buffer[Any]:
        """Return the code of the k-th element of each row, and how many candidates have that code."""
        form, graph, (rows, _, length) = self.form, self._graph, self._shape
        states = self._words(rows * (form.parts + 1))
        topk_kernels.make_begin_kernel(form.parts)(states, self.limits[0], graph=graph)
        counts = self._words(rows * topk_kernels.BINS)
        clear_buffer(counts, graph)
        groups = max(1, min(self._limit_groups() // rows, -(-length // (8 * form.group))))
        numbers = (*self.limits, groups, *self._shape)
        for digit in form.digits:
            count = topk_kernels.make_count_kernel(form, digit)
            count(self._keys, counts, states, starts, *numbers, graph=graph)
            topk_kernels.make_choose_kernel(form, digit)(counts, states, rows, graph=graph)
        return states

    def _limit_groups(self) -> int:
        """Return the most workgroups that count digits."""
        return tuning.digit_groups

    def collect_exactly(self, starts: Buffer[Any], states: Buffer[Any]) -> None:
        """Collect the first elements of rows whose sample was not good."""
        form = self._make_form(tuning.sample_exact_group)  # few workgroups, most of which do nothing
        shape = self._divide(form)
        parts = 2 * shape[0] * shape[1]
        flags, sums = self._words(parts * form.group), self._words(parts)
        numbers = (self._shape[1], *self.limits, *shape)
        topk_kernels.make_exact_kernel(form)(
            self._keys, self._keys, flags, sums, states, starts, *numbers, graph=self._graph
        )
        places = exclusive_sum(sums, graph=self._graph)
        collect = topk_kernels.make_collect_exactly_kernel(form)
        collect(self._keys, flags, places, *self.targets, states, starts, *numbers, graph=self._graph)


class _RunNarrowing(_Narrowing):
    """The same on CPU drivers, where workgroups that return at once are expensive: it counts runs."""

    def _divide(self, form: topk_kernels.NarrowForm) -> tuple[int, int, int]:
        return self._rows.count, -(-self._rows.length // topk_kernels.RUN), self._rows.length

    def count(self, bounds: Buffer[Any]) -> Buffer[Any]:
        self._bounds, sums = bounds, self._words(self._shape[0] * self._shape[1])
        kernel = topk_kernels.make_count_runs_kernel(self.form)
        kernel(self._keys, sums, bounds, *self._shape, graph=self._graph)
        return sums

    def collect(self, starts: Buffer[Any]) -> None:
        self._pad(starts)
        kernel = topk_kernels.make_collect_runs_kernel(self.form)
        numbers = (*self.limits, *self._shape)
        kernel(self._keys, starts, *self.targets, self._bounds, *numbers, graph=self._graph)

    def _limit_groups(self) -> int:
        rows, _, length = self._shape
        return max(tuning.digit_groups_cpu, rows * -(-length // (_MAX_ROUNDS * self.form.group)))

    def collect_exactly(self, starts: Buffer[Any], states: Buffer[Any]) -> None:
        sums = self._words(2 * self._shape[0] * self._shape[1])
        numbers = (*self.limits, *self._shape)
        topk_kernels.make_count_runs_exactly_kernel(self.form)(
            self._keys, sums, states, starts, *numbers, graph=self._graph
        )
        places = exclusive_sum(sums, graph=self._graph)
        collect = topk_kernels.make_collect_runs_exactly_kernel(self.form)
        collect(self._keys, places, *self.targets, states, starts, *numbers, graph=self._graph)


def _find_bounds(
    keys: Buffer[Any], order: Order, rows: Rows, plan: Plan, graph: CommandGraph | None
) -> Buffer[Any]:
    """Return the bound of each row: one of its samples."""
    context = keys.context
    samples: Buffer[Any] = function_buffer(rows.count * plan.samples, order.raw, context=context)
    topk_kernels.make_sample_kernel(order)(
        keys, samples, plan.samples, rows.length, rows.length // plan.samples, graph=graph
    )
    sampled = Rows(rows.count, plan.samples)
    if topk_kernels.can_take_rows(order, plan.rank):
        positions, count = (
            topk_kernels.take_first_of_rows(samples, order, sampled, plan.rank, graph),
            plan.rank,
        )
    else:
        positions, count = function_buffer(samples.size, dtype.uint32, context=context), plan.samples
        sort_rows(samples, order, sampled, positions_to=positions, graph=graph)
    bounds: Buffer[Any] = function_buffer(rows.count, order.raw, context=context)
    topk_kernels.make_bound_kernel(order)(
        samples, positions, bounds, plan.samples, count, plan.rank - 1, graph=graph
    )
    return bounds


def _last_words(order: Order) -> tuple[int, ...]:
    """Return an element after all others, as words of 32 bits."""
    kind = dtype.component_type(order.kind)
    if kind is dtype.bool_:
        return (int(not order.descending),)
    if kind is dtype.bfloat16:
        return (0xFF80 if order.descending else 0x7FC0,)
    numbers = np.dtype(dtype.to_numpy_dtype(kind))
    if dtype.is_float_dtype(kind):
        value: Any = -np.inf if order.descending else np.nan
    elif not dtype.is_signed_dtype(kind) and order.descending:
        value = 0
    else:
        value = np.iinfo(numbers).min if order.descending else np.iinfo(numbers).max
    data = np.array([value] * (2 if dtype.is_complex(order.kind) else 1), numbers).tobytes()
    padded = data + b"\0" * (-len(data) % 4)
    return tuple(int(word) for word in np.frombuffer(padded, np.uint32))


#   rows         elements along the axis
#   candidates   long rows are narrowed down to elements that may be among the first k (see above); one
#                workgroup takes the first k of a row of a few thousand elements (see `topk_kernels`)
#   sorted       positions of the candidates, the largest (or smallest) first                 (see `sorting`)
#   taken        the first k of each row: their positions, and the elements there
#
# Candidates are in the order of the row and sorts are stable, so equal elements keep their order.


_GROUP = 128


@array_function
def topk(
    x: operands.ArrayLike,
    k: int,
    axis: int = -1,
    largest: bool = True,
    sorted: bool = True,
    *,
    out: Any = None,
    output_map: operands.ResultMap | None = None,
    graph: CommandGraph | None = None,
) -> tuple[Buffer[Any], Buffer[Any]]:
    """Find the k largest or smallest elements along an axis, like `torch.topk`.

    NaN is larger than any number. Of equal elements, those with smaller indices are taken first.

    Parameters
    ----------
    x
        A buffer of scalars or complex numbers (ordered by their real parts, then their imaginary ones), or a
        map called with its arguments.
    k
        The number of elements, from 0 to the length of the axis.
    axis
        The axis to search along.
    largest
        Whether to find the largest elements; otherwise the smallest.
    sorted
        Accepted for compatibility with torch and ignored: results are always sorted, the largest (or
        smallest) first.
    out
        A pair of buffers to write to, for values and indices; either can be None.
    output_map
        A `vd.map` that is applied to each value.
    graph
        The graph to record into; None means the thread's `vd.global_graph()`.

    Returns
    -------
    values, indices
        Two buffers of the shape of `x`, with k elements along the axis; indices along the axis are int64.

    Raises
    ------
    TypeError
        `x` is not an array of numbers or booleans, or `k` is not an int.
    ValueError
        There is no such axis, or it has fewer elements than k; `out` does not fit.

    Examples
    --------
    >>> values, places = vd.topk(vd.asbuffer(np.array([5, 1, 4, 2], np.float32)), 2)
    >>> values.read(0)
    array([5., 4.], dtype=float32)
    >>> places.read(0)
    array([0, 2])
    """
    values = operands.parse_operand(x, "x")
    if not is_sortable(values.var_type):
        raise ArgumentTypeError(f"x: expected numbers or booleans, got {values.var_type.name}")
    axis = parse_axis(axis, len(values.shape))
    along = Along(*split_shape(values.shape, axis))
    k = parse_int(k, "k", least=0, most=along.length, note=", the length of the axis")
    shape = (*values.shape[:axis], k, *values.shape[axis + 1 :])
    values_out, indices_out = operands.parse_pair(out, "values and indices")
    to = operands.parse_output(output_map, values.var_type, shape)
    top = operands.prepare_result(values_out, shape, to.out_type, values.context, "out[0]")
    indices = operands.prepare_result(indices_out, shape, dtype.int64, values.context, "out[1]")
    operands.check_overlap([("out[0]", values_out), ("out[1]", indices_out)], to, elsewhere=[values])
    if top.size == 0:
        return top, indices
    order = Order(values.var_type, descending=bool(largest))
    has_rows = values.source.is_plain and along.in_place
    source = values.arguments[0] if has_rows else into_rows(values, along, graph)
    rows, through = along.rows, None
    plan = plan_narrowing(along.length, k)
    takes_rows = topk_kernels.suits_rows(order, along.length, k)
    if plan is not None:
        source, through = find_candidates(source, order, rows, k, plan, graph)
        rows = Rows(rows.count, plan.room)
        takes_rows = topk_kernels.can_take_rows(order, k) and rows.length <= tuning.row_candidates
    if takes_rows:
        positions, pitch = topk_kernels.take_first_of_rows(source, order, rows, k, graph), k
    else:
        positions, pitch = (
            function_buffer(rows.size, position_type(rows.length), context=values.context),
            rows.length,
        )
        sort_rows(source, order, rows, positions_to=positions, graph=graph)
    choice = _Choice(positions, pitch, through, rows.length, k)
    _take(values, along, choice, (top, indices), to, graph)
    return top, indices


@record(eq=False)
class _Choice:
    """Which elements of each row are taken.

    Attributes
    ----------
    positions, pitch
        Their positions, and the distance of two rows of positions.
    through, candidates
        The positions of candidates, if `positions` are places among these, and the candidates of a row.
    k
        The number of elements.
    """

    positions: Buffer[Any]
    pitch: int
    through: Buffer[Any] | None
    candidates: int
    k: int


@record
class _TakeForm:
    """What the kernel that takes elements is specialised for.

    Attributes
    ----------
    source, sink
        Where elements come from and go.
    positions
        The type of positions.
    has_candidates
        Whether positions are places among candidates.
    has_rows
        Whether there are several rows.
    """

    source: Source
    sink: operands.Sink
    positions: dtype.DType
    has_candidates: bool
    has_rows: bool


def _take(
    x: operands.Operand,
    along: Along,
    choice: _Choice,
    results: tuple[Buffer[Any], Buffer[Any]],
    to: operands.Output,
    graph: CommandGraph | None,
) -> None:
    """Store the first k elements of each row, and their indices."""
    source, sink = choose_copy(x, to)
    has_rows = along.rows.count > 1
    # numbers that the kernel does not use may exceed 32 bits
    sizes = (choice.pitch, choice.candidates, along.length, choice.k, along.after) if has_rows else (1,) * 5
    positions, through = choice.positions, choice.through
    kernel = _make_take_kernel(_TakeForm(source, sink, positions.var_type, through is not None, has_rows))
    tables = (positions,) if through is None else (positions, through)
    kernel(*results, *tables, *x.arguments, *to.arguments, *sizes, graph=graph)


@store_results
def _make_take_kernel(form: _TakeForm) -> ShaderFunction:
    sink, source = form.sink, form.source
    arguments = [
        buffers(
            top_values=sink.out_type,
            top_indices=dtype.int64,
            top_positions=form.positions,
            top_through=dtype.uint32 if form.has_candidates else None,
        ),
        source.parameters,
        sink.parameters,
        numbers("top_pitch", "top_candidates", "top_length", "top_k", "top_after"),
    ]

    def trace(tables: Any, inputs: Any, extras: Any, values_of_rows: Any) -> None:
        values, indices, positions, through = tables
        pitch, among, length, k, after = values_of_rows
        element = vc.global_invocation_id().x
        if not form.has_rows:
            position = unpack_position(positions[element], "top_position")
            if through is not None:
                position = through[position].to_register("top_position")
            sink.store(values, extras, element, source.value(inputs, position))
            indices[element] = position.to_dtype(dtype.int64)
            return
        block = (element // after).to_register("top_block")
        column = (element - block * after).to_register("top_column")
        outer = (block // k).to_register("top_outer")
        rank = block - outer * k
        row = (outer * after + column).to_register("top_row")
        position = unpack_position(positions[row * pitch + rank], "top_position")
        if through is not None:
            position = through[row * among + position].to_register("top_position")
        place = (outer * length + position) * after + column
        sink.store(values, extras, element, source.value(inputs, place))
        indices[element] = position.to_dtype(dtype.int64)

    return trace_kernel("topk", trace, arguments, _GROUP, exec_size="top_values.size")


_LONGEST = 0xFFFFFFFF


# ---- `vd.median`: the middle of each sorted row ----------------------------------------------------------
#
# array      elements along the axes; axes that are not neighbours are moved together first (see `rearrange`)
# rows       one for each element of the result, in its order
# sorted     rows in ascending order, NaN last                                           (see `sorting`)
# middle     the mean of the two elements in the middle, or the element there; the last one if it is NaN


@array_function
def median(
    x: operands.ArrayLike,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    dtype: DTypeLike = None,
    out: Buffer[Any] | None = None,
    output_map: operands.OutputLike = None,
    graph: CommandGraph | None = None,
) -> Buffer[Any]:
    """Return the median along axes, like `numpy.median`; NaN if an element is NaN.

    For an even number of elements it is the mean of the middle two. The median of no elements is NaN, with a
    RuntimeWarning.

    Parameters
    ----------
    x
        A buffer of integers, floats or booleans, or a map called with its arguments.
    axis
        An axis or several; None: all.
    keepdims
        Whether to keep the reduced axes, with length one.
    dtype
        The dtype of the result, a float. None is float64 for integers and booleans, else the dtype of `x`.
        The mean of two elements is computed in this dtype, or in float32 for float16 and bfloat16.
    out
        A buffer for the result, with its shape and dtype; None creates one.
    output_map
        A `vd.map` that is applied to each result; its first parameter is the value.
    graph
        The graph to record into; None means the thread's `vd.global_graph()`.

    Returns
    -------
    Buffer
        Of the shape of `x` without the reduced axes.

    Raises
    ------
    TypeError
        `x` is complex or has vectors or matrices, or another argument has a wrong type.
    ValueError
        There is no such axis, there are 2**32 or more elements for one median, or `dtype` or `out` does not
        fit.
    NotImplementedError
        The result is float64, which the device lacks; pass a `dtype`.

    Examples
    --------
    >>> float(vd.median(vd.asbuffer(np.array([5, 1, 3], np.float32))))
    3.0
    """
    array, call = parse_call(x, axis, out, keepdims, output_map, graph)
    if not is_scalar(array.var_type):
        raise ArgumentTypeError(
            f"x: expected integers, floats or booleans, got {array.var_type.name}; map them to numbers"
        )
    check_real("median", array.var_type, dtype)
    kind = mean_type("median", array.var_type, dtype, array.context)
    if array.size == 0:
        count = count_or_warn(array, call, "Mean of empty slice.", 0)
        return reduce_array(
            array, make_sum(array.var_type, wide_type(kind), kind, True), call, (float(count),)
        )
    length = call.length(array.shape)
    if length > _LONGEST:
        raise ArgumentValueError(f"axis: {length} elements for one median are too many; at most 2**32 - 1")
    to, result = operands.prepare_output(
        out, output_map, call.shape(array.shape), kind, array.context, before=[array]
    )
    rows = _sort(array, sorted(call.axes), length, graph)
    _make_middle_kernel(array.var_type, to.sink)(result, rows, *to.arguments, length, graph=graph)
    return result


def _sort(
    array: operands.Operand, axes: Sequence[int], length: int, graph: CommandGraph | None
) -> Buffer[Any]:
    """Return the elements along the axes as sorted rows."""
    shape = array.shape
    if axes and axes[-1] - axes[0] >= len(axes):
        order = [*(axis for axis in range(len(shape)) if axis not in axes), *axes]
        moved: Buffer[Any] = function_buffer(array.size, array.var_type, context=array.context)
        launch_transpose(array, order, operands.parse_output(None, array.var_type), moved, graph)
        array, along = operands.parse_operand(moved), Along(array.size // length, length, 1)
    else:
        after = math.prod(shape[axes[-1] + 1 :]) if axes else 1
        along = Along(array.size // (length * after), length, after)
    kind = array.var_type
    if array.source.is_plain and along.in_place:
        source: Buffer[Any] = array.arguments[0]
        rows: Buffer[Any] = function_buffer(array.size, kind, context=array.context)
    else:
        source = rows = into_rows(array, along, graph)
    sort_rows(source, Order(kind), Rows(along.rows.count, length), keys_to=rows, graph=graph)
    return rows


@store_results
def _make_middle_kernel(kind: DType, sink: operands.Sink) -> ShaderFunction:
    """Return the kernel that stores the middle of sorted rows.

    Its arguments are the result, the rows, those of the sink, and the length of a row.
    """
    source = operands.plain_source(kind).elementwise()
    wide = wide_type(sink.value_type)

    def body(result: Any, rows: Any, extras: Any, length: Any) -> None:
        row = vc.global_invocation_id().x
        first = (row * length).to_register("median_first")

        def element(place: Any) -> Any:
            value = source.value([rows], first + place)
            return value.to_dtype(wide).to_register()

        low, high = element((length - 1) >> 1), element(length >> 1)
        # one element is not added to itself: the sum might overflow
        middle = vc.select((length & 1) == 1, low, (low + high) * 0.5)
        if is_float_dtype(kind):
            last = element(length - 1)
            middle = vc.select(vc.isnan(last), last, middle)
        sink.store(result, extras, row, middle)

    tables = buffers(median_result=sink.out_type, median_rows=kind)
    arguments = [*tables, sink.parameters, *numbers("median_length")]
    return trace_kernel("median", body, arguments, _GROUP, exec_size="median_result.size")
