"""`vd.put`: values written to places given by an array of indices; the last value for a place counts.

The last value is found before any value is written, so that the result is the same every time:

    indices    5  2  5  7  2           writers 0 1 2 3 4
    slots      [ 5: 2 ] [ 2: 4 ] [ 7: 3 ]              the last writer of each place
    written    x[5] = v[2]   x[2] = v[4]   x[7] = v[3]

The slots are a hash table with twice as many entries as there are writers, or an entry for each element of
the array if these are fewer. An entry holds 1 + the number of a writer, and belongs to the place of that
writer. By atomics a writer takes the first free entry from the hash of its place on, or raises the entry that
belongs to its place already. Which entry a place gets depends on the order of execution, but every place gets
one, and the largest writer in it is the same each time. Only this one writes. No invocation waits for
another.
"""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import vkdispatch.codegen as vc
from vkdispatch.base import dtype
from vkdispatch.base.buffer import Buffer, function_buffer
from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.base.record import record
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.families.arguments import Number
from vkdispatch.families.calls import array_function
from vkdispatch.families.kernels import buffers, clear_buffer, trace_kernel
from vkdispatch.families.operands import ArrayLike, Operand, check_overlap, parse_operand, plain_source
from vkdispatch.families.sources import Source
from vkdispatch.families.stored import store_results
from vkdispatch.families.values import convert_value
from vkdispatch.rearrange import moves
from vkdispatch.rearrange.indices import (
    check_indices,
    find_out_of_bounds,
    is_long,
    note_bad_index,
    parse_mode,
    resolve_index,
)
from vkdispatch.shader.shader_function import ShaderFunction
from vkdispatch.shader.signature import describe

GROUP = 256
_MAX_WRITERS = (1 << 31) - 1
# Spreads places over the entries: an odd number near 2**32 divided by the golden ratio.
_HASH = 2654435769
_NONE = 0xFFFFFFFF


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
        _launch(x, places, given_values, mode, unique, graph)


def _parse_values(values: Any, x: Buffer[Any]) -> Operand:
    if not isinstance(values, (bool, int, float, complex, np.generic)):
        return parse_operand(values, "values")
    single: Buffer[Any] = function_buffer(1, x.var_type, context=x.context)
    single.write(moves.to_bytes(moves.cast_number(values, x.var_type, "values"), x.var_type))
    return parse_operand(single)


def _launch(
    x: Buffer[Any], places: Operand, values: Operand, mode: str, unique: bool, graph: CommandGraph | None
) -> None:
    long = is_long(places, x.size)
    bits = (2 * places.size - 1).bit_length()
    direct = x.size <= 1 << bits
    numbers, given_numbers = moves.pack_numbers(
        {"length": x.size, "values": values.size, "count": places.size, "shift": 32 - bits}
    )
    word, run = None, 1
    if values.source.is_plain and values.var_type is x.var_type:
        size = moves.find_largest_word(x.var_type.item_size)
        word, run = moves.word_type(size), x.var_type.item_size // size
    form = _Form(
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
        numbers=numbers,
    )
    if unique:
        _make_write_kernel(form)(x, *places.arguments, *values.arguments, *given_numbers, graph=graph)
        return
    slots: Buffer[Any] = function_buffer(x.size if direct else 1 << bits, dtype.uint32, context=x.context)
    clear_buffer(slots, graph)
    claiming = _make_claim_kernel(form.indices, mode, long, direct, numbers)
    claiming(slots, *places.arguments, *given_numbers, graph=graph)
    _make_write_kernel(form)(x, slots, *places.arguments, *values.arguments, *given_numbers, graph=graph)


@record
class _Form:
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
        last = (vc.to_dtype(dtype.uint32, _NONE) >> self._number["shift"]).to_register()
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
    return trace_kernel("put_claim", body, arguments, GROUP, exec_size=numbers.text("count"))


@store_results
def _make_write_kernel(form: _Form) -> ShaderFunction:
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
            x[place] = value if value.var_type is stored else value.to_dtype(stored)
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
    return trace_kernel("put_write", body, arguments, GROUP, exec_size=form.numbers.text("count"))
