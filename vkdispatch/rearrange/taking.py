"""`vd.take` and `vd.take_along_axis`: elements at places given by an array of indices."""

import functools
import math
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base import dtype
from vkdispatch.base.buffer import Buffer
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.base.record import record
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.families.arguments import parse_axis, split_shape
from vkdispatch.families.calls import array_function
from vkdispatch.families.kernels import buffers, numbers, raise_if_checked, trace_kernel
from vkdispatch.families.operands import ArrayLike, Operand, Output, OutputLike, parse_operand, prepare_output
from vkdispatch.families.sources import Source
from vkdispatch.families.stored import store_results
from vkdispatch.families.tuning import device_facts
from vkdispatch.rearrange import moves
from vkdispatch.rearrange.indices import (
    check_indices,
    is_long,
    note_bad_index,
    note_bad_places,
    parse_mode,
    prepare_notes,
    resolve_index,
)
from vkdispatch.rearrange.moves import staging_tuning as staging_tuning
from vkdispatch.rearrange.moves import take_tuning as tuning
from vkdispatch.shader.shader_function import ShaderFunction

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


#     x         outer x length x inner
#     indices   count                        take: one for every row and every element after the axis
#     result    outer x count x inner        result[o, j, n] = x[o, indices[j], n]
#
# Each invocation moves one word of the result, or a few words at a time. The elements after the axis lie
# together; if there are several, words of up to 16 bytes are moved. If indices jump within rows, workgroup
# memory holds the rows (see above).


GROUP = 256


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
        _launch(call, "clip" if mode == "clip" else "wrap", check, target, buffer, graph)
    elif check is not None:
        note_bad_index(*check)
    return buffer


def _launch(
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
    form = _Form(
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
    _make_kernel(form)(buffer, *arguments, *values, *notes, graph=graph)
    if check is not None:
        raise_if_checked(places.context)


@record
class _Form:
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
def _make_kernel(form: _Form) -> ShaderFunction:
    move = form.move

    def body(moved: Any, places: Any, variables: Any, notes: Any) -> None:
        number = form.numbers.read(variables)
        length = functools.partial(form.numbers.value, variables, "length")
        begin = vc.workgroup_id().x * (GROUP * form.ahead) + vc.local_invocation_index()
        words = [(begin + step * GROUP).to_register() for step in range(form.ahead)]
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
    groups = f"-(-{form.numbers.text('total')} // {GROUP * form.ahead})"
    return trace_kernel(f"take_{move.label}", body, arguments, GROUP, workgroups=groups)
