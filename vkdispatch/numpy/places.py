"""Kernels that read and write elements at arrays of indices: one launch, whatever the axes and strides.

    index       before x at x after      the axes before the indices, those of the indices, those after them
    place       offset + sum(coordinate * stride) + sum(index[at] * stride)

Indices are read through maps, so that expressions of indices are computed where they are needed. What is
read lies one behind the other in the result; what is written takes values in that order.
"""

import math
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base import dtype
from vkdispatch.base.buffer import Buffer, function_buffer
from vkdispatch.base.dtype import DType, compute_type
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.base.record import record
from vkdispatch.codegen.annotations import buffer, constant
from vkdispatch.families.kernels import clear_buffer, note_error, raise_if_checked, trace_kernel
from vkdispatch.families.operands import Operand, parse_operand
from vkdispatch.families.sources import Source
from vkdispatch.families.stored import store_results
from vkdispatch.families.tuning import memoize
from vkdispatch.families.values import word_type
from vkdispatch.numpy.core.kernels import as_operand
from vkdispatch.numpy.core.memory import Shape, View, join_axes, kernel_type
from vkdispatch.rearrange import taking
from vkdispatch.rearrange.moves import find_largest_word
from vkdispatch.rearrange.taking import put
from vkdispatch.shader.map import MappedArray, MappingFunction, mapped_index
from vkdispatch.shader.shader_function import ShaderFunction

_GROUP = 256
_COUNT_LIMIT = 1 << 32
_NONE = 0xFFFFFFFF
_REMEDY = 'vnp.take with mode="wrap" or mode="clip" allows it'

# The length of an axis, and how far apart its elements are.
Axis = tuple[int, int]


@record(eq=False)
class Index:
    """Indices along an axis.

    Attributes
    ----------
    value
        An expression or view of integers, of the shape of all indices.
    length, stride
        Of the axis.
    axis
        The number of the axis in messages.
    is_valid
        Whether all indices are known to be from 0 to `length` - 1.
    """

    value: Any
    length: int
    stride: int
    axis: int
    is_valid: bool


@record(eq=False)
class Selection:
    """Elements of a memory at arrays of indices.

    Attributes
    ----------
    view
        A view of the memory; its shape and strides do not matter.
    offset
        The place of the element at which all indices and coordinates are 0.
    before, after
        The axes before those of the indices, and after them.
    shape
        The shape of the indices.
    indices
        At least one.
    """

    view: View
    offset: int
    before: tuple[Axis, ...]
    shape: Shape
    after: tuple[Axis, ...]
    indices: tuple[Index, ...]

    @property
    def result_shape(self) -> Shape:
        """The shape of the elements that are read or written."""
        return (*(n for n, _ in self.before), *self.shape, *(n for n, _ in self.after))


@record
class _Form:
    """What kernels depend on.

    Attributes
    ----------
    sources
        Of the indices; for each, whether it is valid, and whether it is compared in 64 bits.
    before, after
        How many axes there are; 0 after the indices if there is one element.
    is_noting
        Whether the kernel that reads or writes notes indices out of bounds: if it reads each index once.
        Else another kernel has done so.
    """

    sources: tuple[tuple[Source, bool, bool], ...]
    before: int
    after: int
    is_noting: bool

    @property
    def checked(self) -> int:
        """How many indices the kernel that reads or writes checks."""
        return sum(not valid for _, valid, _ in self.sources) if self.is_noting else 0

    def arguments(self, *, notes: bool) -> list[tuple[str, Any]]:
        """Return the parameters of kernels: those of the indices, numbers, and tickets of notes."""
        found: list[tuple[str, Any]] = []
        for number, (source, _, _) in enumerate(self.sources):
            found += source.prefix_parameters(f"index{number}")
        found += [(name, constant[dtype.uint32]) for name in self.names]
        if notes and self.checked:
            found.append(("journal", buffer[dtype.uint32]))
            found += [(f"ticket{number}", constant[dtype.uint32]) for number in range(self.checked)]
        return found

    @property
    def names(self) -> list[str]:
        """The names of the numbers."""
        names = ["total", "offset"]
        for number in range(len(self.sources)):
            names += [f"length{number}", f"stride{number}"]
        for group, count in (("before", self.before), ("after", self.after)):
            for number in range(count):
                names += [f"{group}_size{number}", f"{group}_step{number}"]
        if self.before:
            names.append("count")
        return names


class _Places:
    """The places of elements, in a kernel being traced."""

    def __init__(self, form: _Form, variables: Sequence[Any]) -> None:
        self.form = form
        position = 0
        self.own: list[Sequence[Any]] = []
        for source, _, _ in form.sources:
            self.own.append(variables[position : position + len(source.names)])
            position += len(source.names)
        names = form.names
        self.number = dict(zip(names, variables[position : position + len(names)], strict=True))
        self.rest = variables[position + len(names) :]

    def find(self, index: Any) -> tuple[Any, Any, list[Any]]:
        """Return the place of an element, that of its indices, and whether each of these is out of bounds."""
        form, number = self.form, self.number
        rest, place = index, number["offset"]
        for axis in reversed(range(form.after)):
            rest, place = self._go(rest, place, "after", axis, is_last=False)
        at = rest
        if form.before:
            quotient = (rest // number["count"]).to_register()
            at = (rest - quotient * number["count"]).to_register()
            rest = quotient
            for axis in reversed(range(form.before)):
                rest, place = self._go(rest, place, "before", axis, is_last=axis == 0)
        combined, bad = self.combine(at)
        return (place + combined).to_register(), at, bad

    def _go(self, rest: Any, place: Any, group: str, axis: int, is_last: bool) -> tuple[Any, Any]:
        size, step = self.number[f"{group}_size{axis}"], self.number[f"{group}_step{axis}"]
        if is_last:
            return rest, place + rest * step
        quotient = (rest // size).to_register()
        return quotient, place + (rest - quotient * size) * step

    def combine(self, at: Any, strides: Sequence[Any] | None = None) -> tuple[Any, list[Any]]:
        """Return the sum of indices times strides, and the indices with whether they are out of bounds."""
        total: Any = None
        bad = []
        for order, (source, is_valid, long) in enumerate(self.form.sources):
            index = source.value(self.own[order], at)
            length = self.number[f"length{order}"]
            if is_valid:
                place = index.to_dtype(dtype.uint32)
            else:
                found, wrong = taking.find_out_of_bounds(index, length.to_dtype, long=long)
                wrong = wrong.to_register()
                bad.append((found, wrong))
                narrow = found.to_dtype(dtype.uint32).to_register()
                if found.var_type in (dtype.int32, dtype.int64):
                    narrow = vc.select(found < 0, narrow + length, narrow)
                place = vc.select(wrong, 0, narrow)
            step = place * (self.number[f"stride{order}"] if strides is None else strides[order])
            total = step if total is None else total + step
        return total.to_register(), bad

    def note(self, at: Any, bad: list[Any]) -> None:
        """Note indices that are out of bounds."""
        if not self.form.is_noting:
            return
        for (found, wrong), ticket in zip(bad, self.rest[1:], strict=True):
            with vc.if_block(wrong):
                note_error(self.rest[0], ticket, at, [found])


def _operands(selection: Selection) -> list[Operand]:
    shape = selection.shape if len(selection.shape) <= 3 else (math.prod(selection.shape),)
    return [parse_operand(as_operand(index.value, shape), "index") for index in selection.indices]


def _wrap(number: int) -> int:
    return number & _NONE


class _Plan:
    """The form of a selection, and the arguments of launches."""

    def __init__(self, selection: Selection, scale: int = 1) -> None:
        """`scale` is how many words an element has, or with a negative sign how many elements a word has."""
        self.selection = selection
        self.operands = _operands(selection)
        self.count = math.prod(selection.shape)

        def words(places: int) -> int:
            return places * scale if scale > 0 else places // -scale

        before, after = join_axes(selection.before), join_axes(selection.after)
        before = [(n, words(step)) for n, step in before]
        if scale > 1:
            after = join_axes([*((n, words(step)) for n, step in after), (scale, 1)])
        elif scale < -1:
            length = after[-1][0]
            after = join_axes([*((n, words(step)) for n, step in after[:-1]), (words(length), 1)])
        self.width = math.prod(n for n, _ in after)
        self.total = self.count * self.width * math.prod(n for n, _ in before)
        if self.total >= _COUNT_LIMIT or selection.view.storage.size * max(scale, 1) >= _COUNT_LIMIT:
            raise ArgumentValueError(
                "index: arrays of 2**32 elements or more support only slices and integers"
            )
        sources = tuple(
            (operand.source, each.is_valid, taking.is_long(operand, each.length))
            for operand, each in zip(self.operands, selection.indices, strict=True)
        )
        self.form = _Form(sources, len(before), len(after), self.total == self.count)
        self.arguments: list[Any] = []
        for operand in self.operands:
            self.arguments += operand.arguments
        self.arguments += [self.total, _wrap(words(selection.offset))]
        for index in selection.indices:
            self.arguments += [index.length, _wrap(words(index.stride))]
        for length, step in (*before, *after):
            self.arguments += [length, _wrap(step)]
        if before:
            self.arguments.append(self.count)

    def notes(self) -> list[Any]:
        """Return the arguments for notes of indices out of bounds, which another kernel may take now."""
        found: list[Any] = []
        if not self.form.is_noting:
            note_indices(self.selection)
            return found
        for operand, each in zip(self.operands, self.selection.indices, strict=True):
            if not each.is_valid:
                what = f"axis {each.axis}"
                notes = taking.prepare_notes("indexing", operand, each.length, what, "index", _REMEDY)
                found += notes[1:] if found else notes
        return found


def _word(selection: Selection, item: int) -> tuple[int, int]:
    """Return the bytes of the words in which elements are moved, and the scale of `_Plan`."""
    after = join_axes(selection.after)
    if after and after[-1][1] == 1:
        steps = [step for _, step in (*join_axes(selection.before), *after[:-1])]
        steps += [index.stride for index in selection.indices]
        word = find_largest_word(*(item * n for n in (after[-1][0], selection.offset, *steps)))
        if word > item:
            return word, -(word // item)
    word = find_largest_word(item)
    return word, item // word


def check_lengths(selection: Selection) -> bool:
    """Return whether there are elements to be moved.

    Raises IndexError for indices along an axis without elements. If nothing is to be moved, a later wait
    raises it for indices out of bounds.
    """
    count = math.prod(selection.shape)
    for index in selection.indices:
        if count and not index.length:
            raise taking.BadIndexError(f"index: axis {index.axis} has no elements")
    if math.prod(selection.result_shape):
        return True
    if count:
        note_indices(selection)
    return False


def note_indices(selection: Selection) -> None:
    """Let the device check the indices; a later wait raises IndexError for those out of bounds."""
    for operand, each in zip(_operands(selection), selection.indices, strict=True):
        if not each.is_valid:
            taking.note_bad_index("indexing", operand, each.length, f"axis {each.axis}", "index", _REMEDY)


def read_places(selection: Selection, result: Buffer[Any]) -> None:
    """Read elements into a buffer, which has as many."""
    word, scale = _word(selection, selection.view.dtype.itemsize)
    plan = _Plan(selection, scale)
    kernel = _read_kernel(plan.form, word_type(word))
    kernel(result, selection.view.storage.buffer, *plan.arguments, *plan.notes())
    if plan.form.checked:
        raise_if_checked(result.context)


@store_results
def _read_kernel(form: _Form, word: DType) -> ShaderFunction:
    def body(result: Any, x: Any, *variables: Any) -> None:
        places = _Places(form, variables)
        index = vc.global_invocation_id().x
        place, at, bad = places.find(index)
        result[index] = x[place]
        places.note(at, bad)

    arguments = [("result", buffer[word]), ("x", buffer[word]), *form.arguments(notes=True)]
    return trace_kernel(f"read_at_indices_{word.item_size}", body, arguments, _GROUP, exec_size="total")


def write_places(selection: Selection, value: Any, *, is_unique: bool) -> None:
    """Write values to elements; of several for one the last counts.

    Parameters
    ----------
    value
        An expression or view of the shape and dtype of the elements, or a number.
    is_unique
        Whether all elements are known to be different, or it does not matter.
    """
    memory = selection.view.storage.buffer
    kind = kernel_type(selection.view.dtype)
    plan = _Plan(selection)
    source, arguments = None, (value,)
    if hasattr(value, "shape"):
        operand = parse_operand(as_operand(value, (value.size,)), "value")
        source, arguments = operand.source, operand.arguments
    domain = math.prod(index.length for index in selection.indices)
    is_direct = domain <= 4 * plan.total and domain < _COUNT_LIMIT
    if not is_unique and not is_direct:
        assert hasattr(value, "shape")
        note_indices(selection)
        put(memory, _places_map(plan), as_operand(value, (value.size,)))
        return
    slots: list[Any] = []
    notes = plan.notes()
    if not is_unique:
        slots.append(function_buffer(domain, dtype.uint32, context=memory.context))
        clear_buffer(slots[0], None)
        _claim_kernel(plan.form)(slots[0], *plan.arguments, plan.count)
    kernel = _write_kernel(plan.form, kind, source, is_unique)
    kernel(memory, *slots, *arguments, *plan.arguments, *notes)
    if notes:
        raise_if_checked(memory.context)


def _slot(places: _Places, at: Any) -> tuple[Any, list[Any]]:
    """Return the place of indices as if their axes were one."""
    steps: list[Any] = []
    step: Any = vc.to_dtype(dtype.uint32, 1)
    for order in reversed(range(len(places.form.sources))):
        steps.insert(0, step)
        if order:
            step = (step * places.number[f"length{order}"]).to_register()
    return places.combine(at, steps)


def _is_good(bad: list[Any]) -> Any:
    # registers hold truth values as 0 and 1
    return vc.all(*(wrong == 0 for _, wrong in bad))


@store_results
def _claim_kernel(form: _Form) -> ShaderFunction:
    def body(slots: Any, *variables: Any) -> None:
        places = _Places(form, variables[:-1])
        at = vc.global_invocation_id().x
        slot, bad = _slot(places, at)
        with vc.if_block(_is_good(bad)) if bad else nullcontext():
            vc.atomic_max(slots[slot], at + 1)

    slots, writers = ("slots", buffer[dtype.uint32]), ("writers", constant[dtype.uint32])
    arguments = [slots, *form.arguments(notes=False), writers]
    return trace_kernel("claim_indices", body, arguments, _GROUP, exec_size="writers")


@store_results
def _write_kernel(form: _Form, kind: DType, source: Source | None, is_unique: bool) -> ShaderFunction:
    stored = compute_type(kind)
    values = [("value", constant[stored])] if source is None else source.prefix_parameters("value")
    first = 0 if is_unique else 1

    def body(x: Any, *variables: Any) -> None:
        places = _Places(form, variables[first + len(values) :])
        index = vc.global_invocation_id().x
        place, at, bad = places.find(index)

        def is_last() -> Any:
            return variables[0][_slot(places, at)[0]] == at + 1

        good = vc.if_block(_is_good(bad)) if bad else nullcontext()
        with good, nullcontext() if is_unique else vc.if_block(is_last()):
            parts = variables[first : first + len(values)]
            value = parts[0] if source is None else source.value(parts, index)
            x[place] = value.to_dtype(stored)
        if bad:
            places.note(at, bad)

    slots = [] if is_unique else [("slots", buffer[dtype.uint32])]
    arguments = [("x", buffer[kind]), *slots, *values, *form.arguments(notes=True)]
    return trace_kernel("write_at_indices", body, arguments, _GROUP, exec_size="total")


def _places_map(plan: _Plan) -> MappedArray:
    """Return the places of elements as an array, the largest integer where an index is out of bounds."""
    mapped = MappedArray.__new__(MappedArray)
    mapped.mapping = _places_mapping(plan.form)
    mapped.arguments = tuple(plan.arguments)
    mapped.var_type = dtype.uint32
    mapped.shape, mapped.size = (plan.total,), plan.total
    mapped.context = plan.operands[0].context
    return mapped


@memoize
def _places_mapping(form: _Form) -> MappingFunction:
    annotations = [annotation for _, annotation in form.arguments(notes=False)]

    def place_of(*variables: Any) -> Any:
        place, _, bad = _Places(form, variables).find(mapped_index())
        return vc.select(_is_good(bad), place, vc.to_dtype(dtype.uint32, _NONE)) if bad else place

    return MappingFunction(annotations, dtype.uint32, place_of)
