"""`vd.take`, `vd.take_along_axis` and `vd.put`: elements at places given by arrays of indices."""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import vkdispatch.codegen as vc
from vkdispatch.base import dtype
from vkdispatch.base.buffer import Buffer, function_buffer
from vkdispatch.base.buffers.kernel_errors import Check, journal_of, read_note, take_ticket
from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, VkDispatchError
from vkdispatch.base.record import record
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.families import kernels
from vkdispatch.families.calls import array_function, is_recorded
from vkdispatch.families.kernels import (
    buffers,
    clear_buffer,
    note_error,
    numbers,
    raise_if_checked,
    trace_kernel,
)
from vkdispatch.families.operands import (
    ArrayLike,
    Number,
    Operand,
    Output,
    OutputLike,
    check_overlap,
    parse_axis,
    parse_operand,
    plain_source,
    prepare_output,
    split_shape,
)
from vkdispatch.families.sources import Source
from vkdispatch.families.stored import store_results
from vkdispatch.families.tuning import device_facts
from vkdispatch.families.values import INTEGERS, LONG_INTEGERS, SIGNED_INTEGERS, convert_value
from vkdispatch.rearrange import moves
from vkdispatch.rearrange.moves import staging_tuning
from vkdispatch.rearrange.moves import take_tuning as tuning
from vkdispatch.shader.shader_function import ShaderFunction
from vkdispatch.shader.signature import describe

# ---- Indices in arrays: the place of each, and what happens to those out of bounds ------------------------


_GROUP = 256
_MODES = ("wrap", "clip", "raise")
_REMEDY = 'mode="wrap" and mode="clip" allow it'
_MAX_NARROW = (1 << 31) - 1


class BadIndexError(VkDispatchError, IndexError):
    """An index is out of bounds."""


def parse_mode(mode: object, graph: CommandGraph | None) -> str:
    """Return what happens to indices out of bounds; None becomes "raise", or "wrap" if the call is recorded.

    Raises
    ------
    ValueError
        There is no such mode, or it is "raise" and the call is recorded.
    """
    recorded = is_recorded(graph)
    if mode is None:
        return "wrap" if recorded else "raise"
    if mode not in _MODES:
        raise ArgumentValueError(f"mode: expected one of {', '.join(map(repr, _MODES))}, got {mode!r}")
    if mode == "raise" and recorded:
        raise ArgumentValueError('mode: "raise" cannot be recorded in a graph; pass "wrap" or "clip"')
    return str(mode)


def check_indices(indices: Operand, length: int, name: str = "indices") -> None:
    """Check what is known of indices before they are read.

    Raises
    ------
    TypeError
        They are not integers.
    IndexError
        There are indices, but no elements.
    """
    if indices.var_type not in INTEGERS:
        raise ArgumentTypeError(f"{name}: expected integers, got {indices.var_type.name}")
    if indices.size and not length:
        raise BadIndexError(f"{name}: cannot take elements from an empty array or an axis of length 0")


def is_long(indices: Operand, length: int) -> bool:
    """Whether places are computed in 64 bits."""
    return indices.var_type in LONG_INTEGERS or length > _MAX_NARROW


def resolve_index(index: Any, length: Callable[[DType], Any], *, mode: str, long: bool, big: bool) -> Any:
    """Return the place of an index, in a register.

    Parameters
    ----------
    length
        Returns the number of places as a GPU value of a type.
    mode
        "clip"; all others wrap.
    long
        Whether to compute in 64 bits.
    big
        Whether a place may need more than 32 bits.
    """
    kind = _choose_place_type(index.var_type, long)
    signed = kind in SIGNED_INTEGERS
    place = index.to_dtype(kind).to_register()
    count = length(kind).to_register()
    if mode == "clip":
        least = vc.max(place, 0) if signed else place
        place = vc.min(least, count - 1).to_register()
    else:
        if signed:
            with vc.if_block(place < 0):
                place += count
            with vc.if_block(vc.any(place < 0, place >= count)):
                place[:] = vc.floor_mod(place, count)
        else:
            with vc.if_block(place >= count):
                place[:] = place % count
    return place if big else place.to_dtype(dtype.uint32).to_register()


@record
class _IndexCheck(Check):
    """The check that indices are within bounds."""

    function: str
    name: str
    what: str
    remedy: str
    shape: tuple[int, ...]
    kind: DType
    queue_count: int

    def error(self, place: int, words: Any, queue: int, call: str) -> BadIndexError:
        # the first bad one, if there are fewer than 2**32 indices
        value = "one" if words is None else str(read_note(words, 0, self.kind))
        where = ", ".join(str(int(coordinate)) for coordinate in np.unravel_index(place, self.shape or (1,)))
        on = f" on queue {queue}" if self.queue_count > 1 else ""
        place_text = f"[{where if self.shape else ''}]{on}"
        return BadIndexError(
            f"{self.name}: {value} at {place_text} is out of bounds for {self.what}, in {call}; {self.remedy}"
        )


def note_bad_index(
    function: str,
    indices: Operand,
    length: int,
    what: str,
    name: str = "indices",
    remedy: str = _REMEDY,
    *,
    negative: bool = True,
) -> None:
    """Let the device check that all indices are in [-length, length), or in [0, length).

    If an index is not, the next wait for the device raises an IndexError that names the first such index and
    its position: this call does if checks are on (VKDISPATCH_CHECK).

    Parameters
    ----------
    function
        The name of the function that was called.
    what
        What has `length` elements, as the error message calls it.
    name
        The name of the argument.
    remedy
        What the error message advises.
    negative
        Whether negative indices are allowed.
    """
    if not indices.size:
        return
    long = is_long(indices, length)
    packed, values = moves.pack_numbers({"count": indices.size, "length": length})
    kernel = _make_check_kernel(indices.source, long, packed, negative)
    journal, ticket = prepare_notes(function, indices, length, what, name, remedy)
    kernel(journal, *indices.arguments, *values, ticket)
    raise_if_checked(indices.context)


def prepare_notes(
    function: str, indices: Operand, length: int, what: str, name: str = "indices", remedy: str = _REMEDY
) -> tuple[Buffer[Any], int]:
    """Return the arguments of a kernel that calls `note_bad_places`; see `note_bad_index`.

    The caller calls `raise_if_checked` after the launch.
    """
    context = indices.context
    kind = _choose_place_type(indices.var_type, is_long(indices, length))
    what = f"{what} of {length} elements"
    check = _IndexCheck(function, name, what, remedy, indices.shape, kind, context.queue_count)
    return journal_of(context), take_ticket(context, check)


def _choose_place_type(index: DType, long: bool) -> DType:
    """Return the type in which the place of an index is computed, and compared with the length."""
    if index in SIGNED_INTEGERS:
        return dtype.int64 if long else dtype.int32
    return dtype.uint64 if long else dtype.uint32


def find_out_of_bounds(
    index: Any, length: Callable[[DType], Any], *, long: bool, negative: bool = True
) -> tuple[Any, Any]:
    """Return an index in a register, and whether it is out of bounds; the rest as of `resolve_index`."""
    kind = _choose_place_type(index.var_type, long)
    place = index.to_dtype(kind).to_register()
    if kind not in SIGNED_INTEGERS:
        return place, place >= length(kind)
    count = length(kind).to_register()
    return place, vc.any(place >= count, place < (-count if negative else 0))


def note_bad_places(
    journal: Any,
    ticket: Any,
    places: Sequence[tuple[Any, Any]],
    length: Callable[[DType], Any],
    *,
    long: bool,
) -> None:
    """Note, in a kernel being traced, which indices are out of bounds.

    `places` are pairs in registers: the position of an index, and the index. The rest as of `resolve_index`.
    """
    checked = []
    for position, index in places:
        place, bad = find_out_of_bounds(index, length, long=long)
        checked.append((position, place, bad.to_register()))
    # one branch for all, which is rarely taken
    with vc.if_block(vc.any(*(bad for _, _, bad in checked)) if len(checked) > 1 else checked[0][2]):
        for position, place, bad in checked:
            with vc.if_block(bad):
                note_error(journal, ticket, position, [place])


@store_results
def _make_check_kernel(source: Source, long: bool, numbers: moves.Numbers, negative: bool) -> ShaderFunction:
    def body(journal: Any, indices: Any, variables: Any, ticket: Any) -> None:
        position = vc.global_invocation_id().x
        index = source.value(indices, position)
        length = functools.partial(numbers.value, variables, "length")
        place, bad = find_out_of_bounds(index, length, long=long, negative=negative)
        with vc.if_block(bad):
            note_error(journal, ticket, position, [place])

    journal, ticket = kernels.buffers(journal=dtype.uint32), kernels.numbers("ticket")
    arguments = [*journal, source.parameters, numbers.arguments, *ticket]
    return trace_kernel("check_indices", body, arguments, _GROUP, exec_size=numbers.text("count"))


# ---- The kernel that takes elements along the last axis from rows in workgroup memory --------------------
#
#     x         [ row of `length` ]  read along ->  workgroup memory  ->  element at indices[j]
#     result    [ row of `count`  ]  written along ->
#
# Indices jump within a row, so loads of single elements would use only a part of each memory sector. A
# workgroup has one row, or several neighbouring rows. Invariants: neighbouring invocations load and store
# neighbouring elements, and each row is read once.


_MEMORY = 1 << 15
_MIN_LENGTH = 32
_MAX_ROWS = 64
_MAX_TAKEN = 1 << 24


@record
class StagedForm:
    """What a kernel is specialised for.

    Attributes
    ----------
    move, indices
        What is moved, and the source of the indices.
    mode, long
        How `resolve_index` finds places.
    along
        Whether every element of the result has its own index.
    rows
        Rows of a workgroup, a power of two.
    group, ahead, memory
        Invocations of a workgroup, the loads that each has in flight, and the bytes of workgroup memory.
    numbers
        The numbers of a launch: `length`, `count`, and `rows` of the array.
    """

    move: moves.Move
    indices: Source
    mode: str
    long: bool
    along: bool
    rows: int
    numbers: moves.Numbers
    group: int
    ahead: int
    memory: int


def plan_staging(
    move: moves.Move, indices: Source, mode: str, long: bool, along: bool, lengths: tuple[int, int, int]
) -> tuple[StagedForm, tuple[int, ...]] | None:
    """Return the form and the numbers of a launch; None if workgroup memory is of no use.

    `lengths` are the rows of the array, their length, and how many elements of each are taken.
    """
    outer, length, count = lengths
    held = move.register_type.item_size
    rows = choose_rows(outer, length, count, held)
    if not rows or (device_facts().is_cpu and not staging_tuning.on_cpus):
        return None
    packed, values = moves.pack_numbers({"length": length, "count": count, "rows": outer})
    memory = max(1 << 10, 1 << (rows * length * held - 1).bit_length())
    form = StagedForm(
        move=move,
        indices=indices,
        mode=mode,
        long=long,
        along=along,
        rows=rows,
        numbers=packed,
        group=staging_tuning.group,
        ahead=staging_tuning.ahead,
        memory=memory,
    )
    return form, values


def choose_rows(rows: int, length: int, count: int, held: int) -> int:
    """Return the rows of a workgroup, a power of two; 0 if workgroup memory is of no use."""
    most = _MEMORY // held
    several = staging_tuning.memory // held
    if rows < 2 or not _MIN_LENGTH <= length <= most or not length <= 2 * count < _MAX_TAKEN:
        return 0
    together = 1
    while together < _MAX_ROWS and 2 * together * max(length, count) <= several:
        together *= 2
    return together


@store_results
def make_staged_kernel(form: StagedForm) -> ShaderFunction:
    """Trace a kernel; its arguments are those of `form.move`, the indices' and `form.numbers`."""
    move, group = form.move, form.group

    def body(moved: Any, indices: Any, variables: Any) -> None:
        number = form.numbers.read(variables)
        memory = vc.shared_buffer(move.register_type, form.memory // move.register_type.item_size)
        lane = vc.local_invocation_index()
        first = (vc.workgroup_id().x * form.rows).to_register("first")
        here = vc.min(number["rows"] - first, form.rows).to_register("here")
        length, count = number["length"], number["count"]
        places = functools.partial(form.numbers.value, variables, "length")
        start, size = (first * length).to_register("start"), (here * length).to_register("size")
        with vc.for_block(0, size, group * form.ahead) as begin:
            offsets = [(begin + (lane + step * group)).to_register() for step in range(form.ahead)]
            loaded = [move.load(moved, start + vc.min(offset, size - 1)).to_register() for offset in offsets]
            for offset, value in zip(offsets, loaded, strict=True):
                with vc.if_block(offset < size):
                    memory[offset] = value
        vc.barrier()
        target, wanted = (first * count).to_register("target"), (here * count).to_register("wanted")
        with vc.for_block(0, wanted, group * form.ahead) as begin:
            offsets = [(begin + (lane + step * group)).to_register() for step in range(form.ahead)]
            rows = [(offset // count).to_register() if form.rows > 1 else None for offset in offsets]
            given = []
            for offset, row in zip(offsets, rows, strict=True):
                safe = vc.min(offset, wanted - 1)
                if form.along:
                    at = target + safe
                else:
                    at = safe if row is None else vc.min(offset - row * count, count - 1)
                index = form.indices.value(indices, at.to_register())
                given.append(index.to_register())
            for offset, row, index in zip(offsets, rows, given, strict=True):
                with vc.if_block(offset < wanted):
                    place = resolve_index(index, places, mode=form.mode, long=form.long, big=False)
                    place = place if row is None else row * length + place
                    move.store(moved, target + offset, memory[place].to_register())

    return trace_kernel(
        "take_from_rows",
        body,
        [move.arguments, form.indices.prefix_parameters("indices"), form.numbers.arguments],
        group,
        workgroups=f"-(-{form.numbers.text('rows')} // {form.rows})",
    )


# ---- `vd.take` and `vd.take_along_axis`: elements at places ----------------------------------------------
#
#     x         outer x length x inner
#     indices   count                        take: one for every row and every element after the axis
#     result    outer x count x inner        result[o, j, n] = x[o, indices[j], n]
#
# Each invocation moves one word of the result, or a few words at a time. The elements after the axis lie
# together; if there are several, words of up to 16 bytes are moved. If indices jump within rows, workgroup
# memory holds the rows (see above).


@array_function
def take(
    x: ArrayLike,
    indices: ArrayLike,
    axis: int | None = None,
    out: Buffer[Any] | None = None,
    mode: str | None = None,
    *,
    output_map: OutputLike = None,
    graph: CommandGraph | None = None,
) -> Buffer[Any]:
    """Return the elements of an array at indices, like `numpy.take`.

    Parameters
    ----------
    x
        A buffer, or a map called with its arguments.
    indices
        A buffer, or a map called with its arguments, of integers. Negative ones count from the end.
    axis
        The axis to take along; None takes from the flattened array. In the result the axes of `indices`
        replace this axis.
    out
        A buffer for the result; None creates one. It must not be `x` or `indices`.
    mode
        What happens to indices out of bounds. "raise": the next wait or read raises an IndexError that names
        the first of them; until then they wrap around; such a call cannot be recorded. "wrap": they wrap
        around. "clip": they become the nearest valid index, negative ones 0. None is "raise", or "wrap" if
        the call is recorded; for indices within bounds both give the same result.
    output_map
        A map for the results; its index is that in the result.
    graph
        The graph to record into; None means the thread's `vd.global_graph()`.

    Raises
    ------
    TypeError
        An argument is invalid.
    ValueError
        There is no such axis or mode, `out` does not match, or a call with "raise" is recorded.
    IndexError
        There are indices but no elements. With "raise", a later wait or read raises it for an index out of
        bounds.

    Examples
    --------
    >>> x = vd.asbuffer(np.array([10, 20, 30], np.float32))
    >>> vd.take(x, vd.asbuffer(np.array([2, 0]))).read(0)
    array([30., 10.], dtype=float32)
    """
    array = parse_operand(x, "x")
    places = parse_operand(indices, "indices")
    if axis is None:
        outer, length, inner = 1, array.size, 1
        shape = places.shape
    else:
        chosen = parse_axis(axis, len(array.shape))
        outer, length, inner = split_shape(array.shape, chosen)
        shape = (*array.shape[:chosen], *places.shape, *array.shape[chosen + 1 :])
    what = "the array" if axis is None else f"axis {axis}"
    call = _Call(array, places, shape, (outer, length, places.size, inner), what, along=False)
    return _take(call, out, mode, output_map, graph)


@array_function
def take_along_axis(
    x: ArrayLike,
    indices: ArrayLike,
    axis: int | None = -1,
    *,
    out: Buffer[Any] | None = None,
    mode: str | None = None,
    output_map: OutputLike = None,
    graph: CommandGraph | None = None,
) -> Buffer[Any]:
    """Return elements along an axis at indices, like `numpy.take_along_axis`.

    With the indices of `vd.argsort(x, axis)` it sorts `x`.

    Parameters
    ----------
    x
        A buffer, or a map called with its arguments.
    indices
        A buffer, or a map called with its arguments, of integers, of the shape of `x` except along `axis`.
    axis
        The axis; None flattens both arrays.
    out, mode, output_map, graph
        As for `take`.

    Raises
    ------
    TypeError, ValueError, IndexError
        As for `take`; or the shapes differ along another axis.

    Examples
    --------
    >>> x = vd.asbuffer(np.array([[3, 1], [2, 5]], np.float32))
    >>> vd.take_along_axis(x, vd.argsort(x)).read(0)
    array([[1., 3.],
           [2., 5.]], dtype=float32)
    """
    array = parse_operand(x, "x")
    places = parse_operand(indices, "indices")
    if axis is None:
        if len(places.shape) != 1:
            raise ArgumentValueError(
                f"indices: with axis=None expected one axis, got the shape {places.shape}"
            )
        outer, length, count, inner = 1, array.size, places.size, 1
    else:
        chosen = parse_axis(axis, len(array.shape))
        wanted = (*array.shape[:chosen], *array.shape[chosen + 1 :])
        if len(places.shape) != len(array.shape) or wanted != (
            *places.shape[:chosen],
            *places.shape[chosen + 1 :],
        ):
            raise ArgumentValueError(
                f"indices: expected the shape of x, {array.shape}, but for axis {chosen}; got {places.shape}"
            )
        outer, length, inner = split_shape(array.shape, chosen)
        count = places.shape[chosen]
    what = "the array" if axis is None else f"axis {axis}"
    call = _Call(array, places, places.shape, (outer, length, count, inner), what, along=True)
    return _take(call, out, mode, output_map, graph)


@record(eq=False)
class _Call:
    """What is taken.

    Attributes
    ----------
    array, places
        The array and the indices.
    shape
        The shape of the result.
    lengths
        Elements before the axis, along it, indices along it, and elements after it.
    what
        What the indices refer to, in error messages.
    along
        Whether every element of the result has its own index.
    """

    array: Operand
    places: Operand
    shape: tuple[int, ...]
    lengths: tuple[int, int, int, int]
    what: str
    along: bool


def _take(
    call: _Call, out: Buffer[Any] | None, mode: str | None, output_map: OutputLike, graph: CommandGraph | None
) -> Buffer[Any]:
    array, places, length = call.array, call.places, call.lengths[1]
    mode = parse_mode(mode, graph)
    check_indices(places, length if math.prod(call.shape) else 1)
    target, buffer = prepare_output(
        out, output_map, call.shape, array.var_type, array.context, elsewhere=[array, places]
    )
    function = "take_along_axis" if call.along else "take"
    check = (function, places, length, call.what) if mode == "raise" else None
    if buffer.size:
        _launch_take(call, "clip" if mode == "clip" else "wrap", check, target, buffer, graph)
    elif check is not None:
        note_bad_index(*check)
    return buffer


def _launch_take(
    call: _Call,
    mode: str,
    check: tuple[str, Operand, int, str] | None,
    target: Output,
    buffer: Buffer[Any],
    graph: CommandGraph | None,
) -> None:
    """Queue the launch that takes elements; `check` are the arguments of `note_bad_index`, or None."""
    array, places, along = call.array, call.places, call.along
    outer, length, count, inner = call.lengths
    # if each index is read once, the kernel that takes elements can check it
    is_read_once = along or outer == inner == 1
    move, run = moves.Move(None, array.source, target.sink), 1
    if moves.is_moved_as_words(array, target):
        item = array.var_type.item_size
        size = moves.find_largest_word(item if along else inner * item)
        move = moves.Move(moves.word_type(size))
        run = item // size if along else 1
        inner = inner if along else inner * item // size
    long = is_long(places, length)
    arguments = (*array.arguments, *target.arguments, *places.arguments)
    staged = None
    if inner == run == 1:
        staged = plan_staging(move, places.source, mode, long, along, (outer, length, count))
    if check is not None and (staged is not None or not is_read_once):
        note_bad_index(*check)
        check = None
    if staged is not None:
        staged_form, values = staged
        make_staged_kernel(staged_form)(buffer, *arguments, *values, graph=graph)
        return
    total = outer * count * inner * run
    packed, values = moves.pack_numbers({"length": length, "count": count, "inner": inner, "total": total})
    form = _TakeForm(
        move=move,
        indices=places.source,
        mode=mode,
        along=along,
        run=run,
        has_rows=outer > 1,
        has_inner=inner > 1,
        long=long,
        ahead=tuning.ahead if move.word is not None and total > tuning.few else 1,
        is_checked=check is not None,
        numbers=packed,
    )
    notes = () if check is None else prepare_notes(*check)
    _make_take_kernel(form)(buffer, *arguments, *values, *notes, graph=graph)
    if check is not None:
        raise_if_checked(places.context)


@record
class _TakeForm:
    """What a kernel is specialised for.

    Attributes
    ----------
    move, indices
        What is moved, and the source of the indices.
    mode, long
        How `resolve_index` finds places.
    along, run
        Whether every element of the result has its own index, and the words of such an element.
    has_rows, has_inner
        Whether there is more than one element before the axis, and after it.
    ahead
        Words that an invocation has in flight.
    is_checked
        Whether the kernel notes indices that are out of bounds.
    numbers
        The numbers of a launch: `length`, `count`, `inner`, and `total` words of the result.
    """

    move: moves.Move
    indices: Source
    mode: str
    along: bool
    run: int
    has_rows: bool
    has_inner: bool
    long: bool
    ahead: int
    is_checked: bool
    numbers: moves.Numbers


@store_results
def _make_take_kernel(form: _TakeForm) -> ShaderFunction:
    move = form.move

    def body(moved: Any, places: Any, variables: Any, notes: Any) -> None:
        number = form.numbers.read(variables)
        length = functools.partial(form.numbers.value, variables, "length")
        begin = vc.workgroup_id().x * (_GROUP * form.ahead) + vc.local_invocation_index()
        words = [(begin + step * _GROUP).to_register() for step in range(form.ahead)]
        parts: list[tuple[Any, Any, Any, Any]] = []
        indices = []
        for word in words:
            index = vc.min(word, number["total"] - 1).to_register()
            element: Any = (index // form.run).to_register() if form.run > 1 else index
            rest: Any = element
            if form.has_inner:
                rest = (element // number["inner"]).to_register()
            after = element - rest * number["inner"] if form.has_inner else None
            row = (rest // number["count"]).to_register() if form.has_rows else None
            position = rest - row * number["count"] if row is not None else rest
            at = element if form.along else position.to_register()
            given = form.indices.value(places, at).to_register()
            parts.append((index, row, after, given))
            indices.append((at, given))
        values = []
        for index, row, after, given in parts:
            is_wide = form.numbers.is_wide
            place: Any = resolve_index(given, length, mode=form.mode, long=form.long, big=is_wide)
            if row is not None:
                place = row * number["length"] + place
            if after is not None:
                place = place * number["inner"] + after
            if form.run > 1:
                place = place * form.run + index % form.run
            values.append(move.load(moved, place.to_register()))
        for word, value in zip(words, values, strict=True):
            with vc.if_block(word < number["total"]):
                move.store(moved, word, value)
        if form.is_checked:
            journal, ticket = notes
            note_bad_places(journal, ticket, indices, length, long=form.long)

    arguments = [
        move.arguments,
        form.indices.prefix_parameters("indices"),
        form.numbers.arguments,
        [*buffers(journal=dtype.uint32), *numbers("ticket")] if form.is_checked else [],
    ]
    groups = f"-(-{form.numbers.text('total')} // {_GROUP * form.ahead})"
    return trace_kernel(f"take_{move.label}", body, arguments, _GROUP, workgroups=groups)


# ---- `vd.put`: values are written to places; the last value for a place counts ---------------------------
#
# The last value is found before any value is written, so that the result is the same every time:
#
#     indices    5  2  5  7  2           writers 0 1 2 3 4
#     slots      [ 5: 2 ] [ 2: 4 ] [ 7: 3 ]              the last writer of each place
#     written    x[5] = v[2]   x[2] = v[4]   x[7] = v[3]
#
# The slots are a hash table with twice as many entries as there are writers, or an entry for each element
# of the array if these are fewer. An entry holds 1 + the number of a writer, and belongs to the place of
# that writer. By atomics a writer takes the first free entry from the hash of its place on, or raises the
# entry that belongs to its place already. Which entry a place gets depends on the order of execution, but
# every place gets one, and the largest writer in it is the same each time. Only this one writes. No
# invocation waits for another.


_MAX_WRITERS = (1 << 31) - 1
# Spreads places over the entries: an odd number near 2**32 divided by the golden ratio.
_HASH = 2654435769


@array_function
def put(
    x: Buffer[Any],
    indices: ArrayLike,
    values: ArrayLike | Number,
    mode: str | None = None,
    *,
    unique: bool = False,
    graph: CommandGraph | None = None,
) -> None:
    """Write values to a flattened array at indices, like `numpy.put`.

    If an index is repeated, the last value is stored.

    Parameters
    ----------
    x
        The buffer that is written.
    indices
        A buffer, or a map called with its arguments, of integers: indices into the flattened `x`. Negative
        ones count from the end.
    values
        A buffer, a map called with its arguments, or a number, converted to the dtype of `x`. If there are
        fewer values than indices, they are repeated; if there are no values, nothing is written.
    mode
        What happens to indices out of bounds, as for `vd.take`. With "raise" they write nothing.
    unique
        Whether the caller guarantees that all indices differ. This takes one launch instead of three.
    graph
        The graph to record into; None means the thread's `vd.global_graph()`.

    Raises
    ------
    TypeError
        An argument is invalid.
    ValueError
        There is no such mode, `x` is read-only, a call with "raise" is recorded, or `x` is one of the other
        arrays.
    IndexError
        There are indices but no elements. With "raise", a later wait or read raises it for an index out of
        bounds.

    Examples
    --------
    >>> x = vd.asbuffer(np.zeros(4, np.float32))
    >>> vd.put(x, vd.asbuffer(np.array([0, 2])), 7)
    >>> x.read(0)
    array([7., 0., 7., 0.], dtype=float32)
    """
    if not isinstance(x, Buffer):
        raise ArgumentTypeError(f"x: expected a vd.Buffer, which is written to, got {describe(x)}")
    x.require_alive()
    if not x.is_writable:
        raise ArgumentValueError("x: the buffer is read-only memory of another library")
    places = parse_operand(indices, "indices")
    given_values = _parse_values(values, x)
    mode = parse_mode(mode, graph)
    check_indices(places, x.size)
    check_overlap([("x", x)], elsewhere=[places, given_values])
    if places.size > _MAX_WRITERS:
        raise ArgumentValueError(f"indices: expected at most {_MAX_WRITERS}, got {places.size}")
    if mode == "raise":
        note_bad_index("put", places, x.size, "an array")
    if places.size and given_values.size:
        _launch_put(x, places, given_values, mode, unique, graph)


def _parse_values(values: Any, x: Buffer[Any]) -> Operand:
    if not isinstance(values, (bool, int, float, complex, np.generic)):
        return parse_operand(values, "values")
    single: Buffer[Any] = function_buffer(1, x.var_type, context=x.context)
    single.write(moves.to_bytes(moves.cast_number(values, x.var_type, "values"), x.var_type))
    return parse_operand(single)


def _launch_put(
    x: Buffer[Any], places: Operand, values: Operand, mode: str, unique: bool, graph: CommandGraph | None
) -> None:
    long = is_long(places, x.size)
    bits = (2 * places.size - 1).bit_length()
    direct = x.size <= 1 << bits
    packed, given_numbers = moves.pack_numbers(
        {"length": x.size, "values": values.size, "count": places.size, "shift": 32 - bits}
    )
    word, run = None, 1
    if values.source.is_plain and values.var_type is x.var_type:
        size = moves.find_largest_word(x.var_type.item_size)
        word, run = moves.word_type(size), x.var_type.item_size // size
    form = _PutForm(
        indices=places.source,
        values=values.source,
        word=word,
        run=run,
        kind=x.var_type,
        mode=mode,
        long=long,
        is_unique=unique,
        is_direct=direct,
        is_enough=values.size >= places.size,
        numbers=packed,
    )
    if unique:
        _make_write_kernel(form)(x, *places.arguments, *values.arguments, *given_numbers, graph=graph)
        return
    slots: Buffer[Any] = function_buffer(x.size if direct else 1 << bits, dtype.uint32, context=x.context)
    clear_buffer(slots, graph)
    claiming = _make_claim_kernel(form.indices, mode, long, direct, packed)
    claiming(slots, *places.arguments, *given_numbers, graph=graph)
    _make_write_kernel(form)(x, slots, *places.arguments, *values.arguments, *given_numbers, graph=graph)


@record
class _PutForm:
    """What a kernel that writes is specialised for.

    Attributes
    ----------
    indices, values
        The sources of both.
    word, run
        The type of the words that are moved, and the words of an element; None if values are converted.
    kind
        dtype of the elements.
    mode, long
        How places are found.
    is_unique, is_direct
        Whether there are no slots, and whether there is one for each element.
    is_enough
        Whether there is a value for every index.
    """

    indices: Source
    values: Source
    word: DType | None
    run: int
    kind: DType
    mode: str
    long: bool
    is_unique: bool
    is_direct: bool
    is_enough: bool
    numbers: moves.Numbers


class _Places:
    """The places of writers and their slots, in a kernel being traced."""

    def __init__(
        self, source: Source, variables: Any, numbers: moves.Numbers, given: Any, mode: str, long: bool
    ) -> None:
        self._source = source
        self._variables = variables
        self._length = functools.partial(numbers.value, given, "length")
        self._number = numbers.read(given)
        self._mode = mode
        self._long = long
        self._is_wide = numbers.is_wide

    def find(self, writer: Any) -> Any:
        """Return the place of a writer."""
        index = self._source.value(self._variables, writer)
        return resolve_index(index, self._length, mode=self._mode, long=self._long, big=self._is_wide)

    def is_refused(self, writer: Any) -> Any:
        """Return whether the index of a writer is out of bounds, in mode "raise"."""
        index = self._source.value(self._variables, writer)
        return find_out_of_bounds(index, self._length, long=self._long)[1]

    def find_entry(self, place: Any) -> Any:
        """Return the first entry for a place, in a register."""
        folded = (place ^ (place >> 32)).to_dtype(dtype.uint32) if self._is_wide else place
        spread = (folded * _HASH) & 0xFFFFFFFF
        return (spread >> self._number["shift"]).to_register()

    def advance(self, entry: Any) -> None:
        """Set a register to the next entry."""
        last = (vc.to_dtype(dtype.uint32, 0xFFFFFFFF) >> self._number["shift"]).to_register()
        entry[:] = vc.select(entry == last, 0, entry + 1)


@store_results
def _make_claim_kernel(
    source: Source, mode: str, long: bool, direct: bool, numbers: moves.Numbers
) -> ShaderFunction:
    def body(slots: Any, indices: Any, variables: Any) -> None:
        places = _Places(source, indices, numbers, variables, mode, long)
        writer = vc.global_invocation_id().x
        if mode != "raise":
            claim(slots, places, writer)
            return
        with vc.if_block(~places.is_refused(writer)):
            claim(slots, places, writer)

    def claim(slots: Any, places: _Places, writer: Any) -> None:
        place = places.find(writer)
        mine = (writer + 1).to_register()
        if direct:
            vc.atomic_max(slots[place], mine)
            return
        entry = places.find_entry(place)
        open_ = vc.new_uint_register(1)
        with vc.while_block(open_ == 1):
            holder = vc.atomic_compare_exchange(slots[entry], 0, mine).to_register()
            with vc.if_block(holder == 0):
                open_[:] = 0
            with vc.else_block():
                with vc.if_block(places.find(holder - 1) == place):
                    vc.atomic_max(slots[entry], mine)
                    open_[:] = 0
                with vc.else_block():
                    places.advance(entry)

    slots = buffers(slots=dtype.uint32)
    arguments = [*slots, source.prefix_parameters("indices"), numbers.arguments]
    return trace_kernel("put_claim", body, arguments, _GROUP, exec_size=numbers.text("count"))


@store_results
def _make_write_kernel(form: _PutForm) -> ShaderFunction:
    values = form.values if form.word is None else plain_source(form.word)

    def body(x: Any, slots: Any, indices: Any, given: Any, variables: Any) -> None:
        number = form.numbers.read(variables)
        places = _Places(form.indices, indices, form.numbers, variables, form.mode, form.long)
        writer = vc.global_invocation_id().x

        def write(place: Any) -> None:
            write_element(x, given, number, writer, place)

        if form.mode != "raise":
            write_last(slots, places, writer, write)
            return
        with vc.if_block(~places.is_refused(writer)):
            write_last(slots, places, writer, write)

    def write_last(slots: Any, places: _Places, writer: Any, write: Callable[[Any], None]) -> None:
        place = places.find(writer)
        if form.is_unique:
            write(place)
            return
        mine = (writer + 1).to_register()
        if form.is_direct:
            with vc.if_block(slots[place] == mine):
                write(place)
            return
        entry = places.find_entry(place)
        holder = slots[entry].to_register()
        open_ = vc.new_uint_register(1)
        with vc.while_block(open_ == 1):
            with vc.if_block(places.find(holder - 1) == place):
                open_[:] = 0
            with vc.else_block():
                places.advance(entry)
                holder[:] = slots[entry]
        with vc.if_block(holder == mine):
            write(place)

    def write_element(x: Any, given: Any, number: dict[str, Any], writer: Any, place: Any) -> None:
        source: Any = writer if form.is_enough else (writer % number["values"]).to_register()
        if form.word is None:
            value = convert_value(form.values.value(given, source), form.kind).to_register()
            stored = dtype.compute_type(form.kind)
            x[place] = value.to_dtype(stored)
            return
        for part in range(form.run):
            word = given[0][source * form.run + part if form.run > 1 else source].to_register()
            x[place * form.run + part if form.run > 1 else place] = word

    arguments = [
        *buffers(x=form.word or form.kind, slots=None if form.is_unique else dtype.uint32),
        form.indices.prefix_parameters("indices"),
        values.prefix_parameters("values"),
        form.numbers.arguments,
    ]
    return trace_kernel("put_write", body, arguments, _GROUP, exec_size=form.numbers.text("count"))
