"""Structures and arrays as a kernel's Python body sees them, in memory and in registers.

`p[i].a.w[k].x` is followed step by step: an element of a buffer, fields, items of arrays. Each step is a
`StructurePlace` or an `ItemArray`, until one leads to a number, vector or matrix, which is read or stored. In
shared memory and in registers each field lies in an array of its own.
"""

import itertools
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from types import FrameType, FunctionType, MethodType
from typing import Any, NoReturn

from vkdispatch.base import derived_dtypes
from vkdispatch.base import dtype as dt
from vkdispatch.base.errors import ArgumentIndexError, ArgumentTypeError, ArgumentValueError, ComponentError
from vkdispatch.base.host_numpy import np
from vkdispatch.base.record import replace
from vkdispatch.codegen.objects.resources import BufferVariable, is_place_in
from vkdispatch.codegen.trace.current import current
from vkdispatch.codegen.trace.operands import parse_index, parse_stored_value
from vkdispatch.codegen.trace.operators import assign
from vkdispatch.codegen.variables import ShaderVariable
from vkdispatch.compiler.ir import Expr, Op, SharedArray, Storage, is_place
from vkdispatch.compiler.ir import expressions as ex
from vkdispatch.compiler.ir.location import here, located

_set = object.__setattr__
# Where each field of memory lies: from the path to the field to the place, which is an array of the field's
# values where there are arrays on the path.
Base = Callable[[tuple[str, ...]], Expr]
Path = tuple[str, ...]
# Beyond, filling or copying an array is a loop of the GPU.
_MAX_STORES = 16


def _place(base: Base, path: Path, indices: tuple[Expr, ...]) -> Expr:
    """Return the place of a field, or of an item of the arrays on its path."""
    place = base(path)
    whole = current().fixed_value(place)
    if whole is not None and indices and all(isinstance(index.value, int) for index in indices):
        # an argument of the kernel
        for index in indices:
            assert isinstance(index.value, int)
            whole = whole.args[index.value]
        return whole
    for index in indices:
        assert place.dtype.child_type is not None
        place = Expr(Op.INDEX, place.dtype.child_type, (place, index), None, here())
    return place


def declare_arrays(kind: dt.DType, name: str | None) -> Base:
    """Declare registers for an array of zeros: one, or of structures one for each field."""
    registers: dict[Path, Expr] = {}
    for path, leaf, _ in derived_dtypes.leaves_of(kind):
        array = dt.compute_type(leaf)
        label = "_".join((*(() if name is None else (name,)), *path)) or None
        zeros = Expr(Op.CONSTRUCT, array, (), None, here())
        registers[path] = current().declare_array(array, zeros, label)
    return registers.__getitem__


def held(value: Expr, name: str) -> Expr:
    """Copy a value, now, to a register."""
    copy = current().declare_around(value.dtype, value, name)
    current().note_origin(copy, value)
    return copy


# ---- arrays --------------------------------------------------------------------------------------


class ItemArray:
    """An array of fixed shape in memory or registers: `a[i, j]`, `a[i][j]`, `a[i] = v`, `a[:] = v`, `len(a)`.

    It is a field of a structure, `p[i].weights`, or a part of an array, `a[i]` of an array of two axes. Names
    share it, as they share a view of NumPy; `a[:]` is a copy in registers. Indices are Python ints, negative
    ones from the end, or integers of the GPU. What is read is the value of then.

    Attributes
    ----------
    var_type
        dtype of an item: a structure where the items are dataclasses.
    shape, size
        Items along each axis, and in all.
    """

    __array_ufunc__ = None
    __slots__ = ("_base", "_indices", "_kind", "_owner", "_path")

    _base: Base
    _path: Path
    _indices: tuple[Expr, ...]
    _kind: dt.DType
    _owner: type[Any] | None

    def __init__(
        self, base: Base, path: Path, indices: tuple[Expr, ...], kind: dt.DType, owner: type[Any] | None
    ) -> None:
        """Take the array of type `kind` at a place; `owner` is the dataclass of its items, if any."""
        self._base, self._path, self._indices, self._kind, self._owner = base, path, indices, kind, owner

    @property
    def var_type(self) -> dt.DType:
        """Dtype of an item."""
        return dt.item_of(self._kind)

    @property
    def shape(self) -> tuple[int, ...]:
        """Count of items along each axis."""
        return dt.array_shape(self._kind)

    @property
    def size(self) -> int:
        """Count of items in all."""
        return math.prod(self.shape)

    def __len__(self) -> int:
        return self._kind.child_count

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            self._check_whole(index)
            return self._copy()
        return self._part(*self._follow(index), sys._getframe(1))

    def __setitem__(self, index: Any, value: object) -> None:
        if isinstance(index, slice):
            self._check_whole(index)
            self._fill(value)
            return
        indices, kind = self._follow(index)
        if dt.is_array(kind) or derived_dtypes.is_structure(kind):
            part = self._part(indices, kind, None)
            if part is not value:
                part._fill(value) if isinstance(part, ItemArray) else part._vd_store(value)
        else:
            assign(_place(self._base, self._path, indices), value)

    def __bool__(self) -> bool:
        raise located(ArgumentValueError, f"{self._noun} has no truth value")

    def _refuse(self, *_: object) -> NoReturn:
        raise located(
            ArgumentTypeError, f"{self._noun} is no number; compute with its items, as in a[k] += 1"
        )

    __eq__ = __lt__ = __le__ = __gt__ = __ge__ = __neg__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _refuse
    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = _refuse
    __hash__ = object.__hash__

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            # Python looks for protocols this way
            raise AttributeError(name)
        raise located(ComponentError, f"{self._noun} has no attribute {name!r}; its items may: a[k].{name}")

    @property
    def _noun(self) -> str:
        """What messages call it."""
        return f"the array {'.'.join(self._path)}" if self._path else "a local array"

    def _check_whole(self, index: slice) -> None:
        if index != slice(None):
            raise located(ArgumentValueError, f"the only valid slice of {self._noun} is a[:]")

    def _part(self, indices: tuple[Expr, ...], kind: dt.DType, frame: FrameType | None) -> Any:
        """Return what lies at indices: a part of the array, a structure, or a value.

        A structure is a copy where the frame uses it as a value, a place without a frame.
        """
        if dt.is_array(kind):
            return ItemArray(self._base, self._path, indices, kind, self._owner)
        if derived_dtypes.is_structure(kind):
            assert self._owner is not None
            place = StructurePlace(self._base, self._path, indices, kind, self._owner)
            return place if frame is None or is_place_in(frame) else place._vd_read()
        return ShaderVariable(current().read(_place(self._base, self._path, indices)))

    def _follow(self, index: Any) -> tuple[tuple[Expr, ...], dt.DType]:
        """Return all indices of a place within the array, and its type."""
        entries = _split_index(index)
        if not 1 <= len(entries) <= len(self.shape):
            most = len(self.shape)
            allowed = "one index" if most == 1 else f"up to {most} indices"
            raise located(ArgumentValueError, f"{self._noun} takes {allowed}, got {len(entries)}")
        kind, indices = self._kind, list(self._indices)
        for axis, entry in enumerate(entries):
            position = parse_index(entry, self._noun, ArgumentTypeError)
            indices.append(self._index(position, axis, kind.child_count))
            assert kind.child_type is not None
            kind = kind.child_type
        return tuple(indices), kind

    def _index(self, position: int | Expr, axis: int, count: int) -> Expr:
        if isinstance(position, Expr):
            return ex.index_value(position)
        if not -count <= position < count:
            where = f"axis {axis} of {self._noun}" if len(self.shape) > 1 else self._noun
            raise located(
                ArgumentIndexError, f"index {position} is out of range for {where} of {count} elements"
            )
        return ex.literal(position % count, dt.int32)

    # -- whole arrays

    def _copy(self, name: str | None = None) -> "ItemArray":
        """Return a copy in registers."""
        copy = ItemArray(declare_arrays(self._kind, name), (), (), self._kind, self._owner)
        copy._take(self)
        return copy

    def _take(self, other: "ItemArray") -> None:
        """Copy the items of an array of the same type."""
        pairs = [(path, leaf) for path, leaf, _ in derived_dtypes.leaves_of(self._kind)]
        places = [
            [_place(array._base, (*array._path, *path), array._indices) for array in (self, other)]
            for path, _ in pairs
        ]
        if all(place.op is Op.REGISTER for pair in places for place in pair):
            for target, source in places:
                current().store(target, source)
            return
        for path, leaf in pairs:
            _visit(dt.array_shape(leaf), partial(self._take_item, other, path))

    def _take_item(self, other: "ItemArray", path: Path, indices: tuple[Expr, ...]) -> None:
        target, source = (
            _place(array._base, (*array._path, *path), (*array._indices, *indices)) for array in (self, other)
        )
        # by `assign`, for elements in memory that are written in another type
        assign(target, ShaderVariable(current().read(source)))

    def _fill(self, value: Any) -> None:
        """Assign one value to all items, or copy a sequence or another array."""
        if isinstance(value, ItemArray):
            if dt.compute_type(value._kind) is not dt.compute_type(self._kind):
                mine, other = self._kind.name, value._kind.name
                raise located(ArgumentValueError, f"{self._noun} of {mine} takes no array of {other}")
            self._take(value)
        elif _is_sequence(value):
            self._fill_from(value)
        elif derived_dtypes.is_structure(item := self.var_type):
            assert self._owner is not None
            parts = _Parts(_hold_parts(value, item, self._owner))
            _visit(
                self.shape, lambda inner: self._part((*self._indices, *inner), item, None)._vd_store(parts)
            )
        else:
            if isinstance(value, ShaderVariable):
                name = getattr(self._base(self._path).value, "name", "array")
                value = held(parse_stored_value(value, dt.compute_type(item)), f"{name}_value")
            _visit(self.shape, lambda indices: self._store((*self._indices, *indices), value))

    def _store(self, indices: tuple[Expr, ...], value: Any) -> None:
        place = _place(self._base, self._path, indices)
        if isinstance(value, Expr) and is_place(place):
            current().store(place, value)
        else:
            assign(place, ShaderVariable(value) if isinstance(value, Expr) else value)

    def _fill_from(self, values: "Sequence[Any] | np.ndarray[Any, Any]") -> None:
        count = len(self)
        if len(values) != count:
            raise located(
                ArgumentValueError, f"{self._noun} of {count} elements takes no {len(values)} values"
            )
        kind = self._kind.child_type
        assert kind is not None
        places = [(*self._indices, ex.literal(position, dt.int32)) for position in range(count)]
        if dt.is_array(kind):
            # all values are read before any of them is overwritten
            rows = [row._copy() if isinstance(row, ItemArray) else row for row in values]
            wrong = next((row for row in rows if not (isinstance(row, ItemArray) or _is_sequence(row))), None)
            if wrong is not None:
                raise located(
                    ArgumentTypeError,
                    f"{self._noun} of the shape {self.shape} takes a sequence for each row, got {wrong!r}",
                )
            for indices, row in zip(places, rows, strict=True):
                self._part(indices, kind, None)._fill(row)
        elif derived_dtypes.is_structure(kind):
            assert self._owner is not None
            parts = [_Parts(_hold_parts(value, kind, self._owner)) for value in values]
            for indices, part in zip(places, parts, strict=True):
                self._part(indices, kind, None)._vd_store(part)
        else:
            stored = [
                parse_stored_value(value, dt.compute_type(kind))
                if isinstance(value, ShaderVariable)
                else value
                for value in values
            ]
            for indices, value in zip(places, stored, strict=True):
                self._store(indices, value)

    def __repr__(self) -> str:
        return f"<{self._noun.removeprefix('a ').removeprefix('the ')}: {self._kind.name}>"


def _split_index(index: Any) -> tuple[Any, ...]:
    """Return the indices of all axes; an integer vector of the GPU is one for each component."""
    if isinstance(index, tuple):
        return index
    if isinstance(index, ShaderVariable):
        kind = index.var_type
        if dt.is_vector(kind) and dt.is_integer_dtype(kind):
            value = index._value()
            return tuple(ShaderVariable(ex.component(value, axis)) for axis in range(kind.child_count))
    return (index,)


def _is_sequence(value: object) -> bool:
    return isinstance(value, (list, tuple, np.ndarray))


def _visit(shape: Sequence[int], action: Callable[[tuple[Expr, ...]], None]) -> None:
    """Record something for each item of an array: one after the other, or in loops of the GPU."""
    if math.prod(shape) <= _MAX_STORES:
        for position in itertools.product(*map(range, shape)):
            action(tuple(ex.literal(number, dt.int32) for number in position))
        return
    recorder, counters = current(), []
    for count in shape:
        start, stop, step = (ex.literal(number, dt.int32) for number in (0, count, 1))
        counters.append(recorder.open_for(start, stop, step))
    action(tuple(counters))
    for _ in shape:
        recorder.close()


# ---- structures ----------------------------------------------------------------------------------


class _Fields:
    """Something with the fields of a structure, and with the methods and properties of its dataclass."""

    __slots__ = ("_vd_kind", "_vd_owner")

    _vd_kind: type[derived_dtypes.Structure]
    _vd_owner: type[Any]

    def _vd_field(self, name: str) -> dt.DType | None:
        return derived_dtypes.field_type(self._vd_kind, name)

    def _vd_member(self, name: str) -> Any:
        """Return what the dataclass has under a name that is no field: a method, a property, a constant."""
        if name.startswith("__"):
            raise AttributeError(name)
        owner = next((kind for kind in self._vd_owner.__mro__ if name in vars(kind)), None)
        if owner is None:
            self._vd_unknown(name)
        member = vars(owner)[name]
        if isinstance(member, property) and member.fget is not None:
            return member.fget(self)
        return MethodType(member, self) if isinstance(member, FunctionType) else getattr(owner, name)

    def _vd_unknown(self, name: str) -> NoReturn:
        known = ", ".join(field for field, _, _ in self._vd_kind.fields)
        raise located(
            ComponentError, f"{self._vd_owner.__name__} has no field {name!r}; its fields are {known}"
        )

    def _vd_check_whole(self, index: Any) -> None:
        if index != slice(None):
            raise located(ArgumentValueError, f"a {self._vd_owner.__name__} takes s[:] = ..., no other index")

    def __bool__(self) -> bool:
        raise located(ArgumentValueError, f"a {self._vd_owner.__name__} has no truth value")

    def __eq__(self, other: object) -> bool:
        raise located(
            ArgumentTypeError, f"a {self._vd_owner.__name__} is not compared as a whole; compare its fields"
        )

    __hash__ = object.__hash__


class StructurePlace(_Fields):
    """The element of an array of structures in `p[i].x`: its fields are read and written in memory."""

    __slots__ = ("_vd_base", "_vd_indices", "_vd_path")

    _vd_base: Base
    _vd_path: Path
    _vd_indices: tuple[Expr, ...]

    def __init__(
        self,
        base: Base,
        path: Path,
        indices: tuple[Expr, ...],
        kind: type[derived_dtypes.Structure],
        owner: type[Any],
    ) -> None:
        _set(self, "_vd_base", base)
        _set(self, "_vd_path", path)
        _set(self, "_vd_indices", indices)
        _set(self, "_vd_kind", kind)
        _set(self, "_vd_owner", owner)

    def __getattr__(self, name: str) -> Any:
        kind = self._vd_field(name)
        if kind is None:
            return self._vd_member(name)
        if dt.is_array(kind):
            return self._vd_array(name, kind)
        if not derived_dtypes.is_structure(kind):
            return ShaderVariable(current().read(self._vd_leaf(name)))
        place = self._vd_inner(name, kind)
        return place if is_place_in(sys._getframe(1)) else place._vd_read()

    def __setattr__(self, name: str, value: object) -> None:
        kind = self._vd_field(name)
        if kind is None:
            self._vd_unknown(name)
        if dt.is_array(kind):
            self._vd_array(name, kind)._fill(value)
        elif derived_dtypes.is_structure(kind):
            self._vd_inner(name, kind)._vd_store(value)
        else:
            ShaderVariable(self._vd_leaf(name))._assign(value)

    def _vd_leaf(self, name: str) -> Expr:
        return _place(self._vd_base, (*self._vd_path, name), self._vd_indices)

    def _vd_array(self, name: str, kind: dt.DType) -> ItemArray:
        owner = _owner_of(self._vd_owner, name) if derived_dtypes.is_structure(dt.item_of(kind)) else None
        return ItemArray(self._vd_base, (*self._vd_path, name), self._vd_indices, kind, owner)

    def _vd_inner(self, name: str, kind: type[derived_dtypes.Structure]) -> "StructurePlace":
        owner = _owner_of(self._vd_owner, name)
        return StructurePlace(self._vd_base, (*self._vd_path, name), self._vd_indices, kind, owner)

    def _vd_read(self) -> "StructureValue":
        """Copy all fields, now, to registers."""
        parts: dict[str, Any] = {}
        for name, kind, _ in self._vd_kind.fields:
            if derived_dtypes.is_structure(kind):
                parts[name] = self._vd_inner(name, kind)._vd_read()
            elif dt.is_array(kind):
                parts[name] = self._vd_array(name, kind)._copy(self._vd_label(name))
            else:
                parts[name] = held(self._vd_leaf(name), self._vd_label(name))
        value = StructureValue(self._vd_kind, self._vd_owner, parts, self)
        value._vd_note()
        return value

    def __setitem__(self, index: Any, value: object) -> None:
        """Assign all fields: `p[i][:] = value`, as `p[i] = value`."""
        self._vd_check_whole(index)
        self._vd_store(value)

    def _vd_label(self, name: str) -> str:
        """Return what the register of a copied field is called."""
        path = (*self._vd_path, name)
        memory: Any = self._vd_base((*path, *_first_leaf(self._vd_kind, name))).value
        return "_".join((memory.label, *path)) if isinstance(memory, Storage) else f"{memory.name}_copy"

    def _vd_store(self, value: object) -> None:
        """Write all fields. What they are made of is read before any of them is written."""
        values = list(_parts_of(value, self._vd_kind, self._vd_owner))
        for (path, _), part in zip(_fields_within(self._vd_kind), values, strict=True):
            place = self
            for name in path[:-1]:
                inner = place._vd_field(name)
                assert derived_dtypes.is_structure(inner)
                place = place._vd_inner(name, inner)
            setattr(place, path[-1], part)


class StructureValue(_Fields):
    """A structure of one invocation: a copy of an element, whose fields change on their own.

    A scalar field is read as the value that it has then.
    """

    __slots__ = ("_vd_origin", "_vd_parts")

    _vd_origin: StructurePlace | None
    _vd_parts: dict[str, Any]

    def __init__(
        self,
        kind: type[derived_dtypes.Structure],
        owner: type[Any],
        parts: dict[str, Any],
        origin: StructurePlace | None = None,
    ) -> None:
        _set(self, "_vd_origin", origin)
        _set(self, "_vd_kind", kind)
        _set(self, "_vd_owner", owner)
        _set(self, "_vd_parts", parts)

    def __getattr__(self, name: str) -> Any:
        if self._vd_field(name) is None:
            return self._vd_member(name)
        part = self._vd_parts[name]
        if not isinstance(part, Expr):
            return part
        if is_place_in(sys._getframe(1)):
            return ShaderVariable(part)
        return ShaderVariable(current().read_register(part))

    def __setattr__(self, name: str, value: object) -> None:
        if self._vd_field(name) is None:
            self._vd_unknown(name)
        _store_part(self._vd_parts[name], value)

    def __setitem__(self, index: Any, value: object) -> None:
        """Assign all fields: `s[:] = p[j]`, also those of the element that `s = p[i]` read."""
        self._vd_check_whole(index)
        self._vd_assign(value)
        if self._vd_origin is not None:
            self._vd_origin._vd_store(self)

    def _vd_assign(self, value: object) -> None:
        values = list(_parts_of(value, self._vd_kind, self._vd_owner))
        for register, part in zip(self._vd_registers(), values, strict=True):
            _store_part(register, part)

    def _vd_note(self) -> None:
        """Note that the fields are one copy: a change of one is read where another is."""
        registers = (part.value for part in self._vd_registers() if isinstance(part, Expr))
        current().note_structure(tuple(registers))  # type: ignore[arg-type]

    def _vd_registers(self) -> Iterator[Expr | ItemArray]:
        for part in self._vd_parts.values():
            if isinstance(part, StructureValue):
                yield from part._vd_registers()
            else:
                yield part

    def __copy__(self) -> "StructureValue":
        parts = {
            name: held(part, name) if isinstance(part, Expr) else _copy_part(part)
            for name, part in self._vd_parts.items()
        }
        value = StructureValue(self._vd_kind, self._vd_owner, parts)
        value._vd_note()
        return value

    def __deepcopy__(self, _: object) -> "StructureValue":
        return self.__copy__()

    def __repr__(self) -> str:
        return f"<{self._vd_owner.__name__} of a kernel>"


class _Parts:
    """The values of all fields of a structure, read already."""

    def __init__(self, values: list[Any]) -> None:
        self.values = values


def _copy_part(part: "StructureValue | ItemArray") -> Any:
    return part._copy() if isinstance(part, ItemArray) else part.__copy__()


def _store_part(part: Any, value: object) -> None:
    """Assign to a field of a structure in registers."""
    if isinstance(part, Expr):
        current().store(part, parse_stored_value(value, part.dtype))
        current().note_copy(part)
    elif isinstance(part, ItemArray):
        part._fill(value)
    else:
        part._vd_assign(value)


def _owner_of(owner: type[Any], name: str) -> type[Any]:
    """Return the dataclass of a field, or of the items of one."""
    annotation: Any = derived_dtypes.field_types(owner)[name]
    kind: type[Any] = annotation.owner if isinstance(annotation, derived_dtypes.FixedArray) else annotation
    return kind


def _first_leaf(kind: type[derived_dtypes.Structure], name: str) -> Path:
    """Return the path to the first leaf within a field."""
    field = derived_dtypes.field_type(kind, name)
    assert field is not None
    return next(path for path, _, _ in derived_dtypes.leaves_of(field))


def _fields_within(kind: type[derived_dtypes.Structure]) -> Iterator[tuple[Path, dt.DType]]:
    """Yield the fields of a structure and of those within it, where they are no structures themselves."""
    for name, field, _ in kind.fields:
        if derived_dtypes.is_structure(field):
            yield from (((name, *path), leaf) for path, leaf in _fields_within(field))
        else:
            yield (name,), field


def _hold_parts(value: object, kind: type[derived_dtypes.Structure], owner: type[Any]) -> list[Any]:
    """Return the values of all fields of a structure in registers, which stay as they are now."""
    return [_hold(part, "item") for part in _parts_of(value, kind, owner)]


def _hold(part: object, name: str) -> object:
    """Copy an array or a GPU value to registers; anything else is returned as it is."""
    if isinstance(part, ItemArray):
        return part._copy()
    return ShaderVariable(held(part._value(), name)) if isinstance(part, ShaderVariable) else part


def _parts_of(value: object, kind: type[derived_dtypes.Structure], owner: type[Any]) -> Iterator[Any]:
    """Yield the values of all fields of a structure that is stored, in the order of `_fields_within`.

    Raises TypeError for what is no such structure.
    """
    if isinstance(value, _Parts):
        yield from value.values
        return
    if isinstance(value, StructurePlace):
        value = value._vd_read()
    if isinstance(value, StructureValue):
        if value._vd_kind is not kind:
            raise _mismatch(value._vd_owner.__name__, owner)
        for register in value._vd_registers():
            yield ShaderVariable(register) if isinstance(register, Expr) else register
        return
    fields = getattr(type(value), "__dataclass_fields__", None)
    if fields is None or list(fields) != [name for name, _, _ in kind.fields]:
        raise _mismatch(type(value).__name__, owner)
    for name, field, _ in kind.fields:
        part = getattr(value, name)
        if derived_dtypes.is_structure(field):
            yield from _parts_of(part, field, _owner_of(owner, name))
        else:
            yield _hold(part, name)


def _mismatch(given: str, owner: type[Any]) -> ArgumentTypeError:
    return located(
        ArgumentTypeError,
        f"cannot store a {given} where there is a {owner.__name__}; pass an element, or "
        f"{owner.__name__}(...)",
    )


# ---- arrays of structures in memory --------------------------------------------------------------


class StructureBuffer(BufferVariable):
    """A buffer of structures, `Buff[SomeDataclass]`, or an array of them in shared memory.

    `p[i].x` is a field of an element, read and written where it lies. `p[i]` by itself is a copy of the whole
    element: `s = p[i]`, `f(p[i])`. Changing the copy leaves the buffer alone; `p[j] = s` stores it.
    """

    __slots__ = ("_fields_apart", "_structure", "owner")

    owner: type[Any]

    def __init__(
        self,
        storage: Storage | SharedArray,
        owner: type[Any],
        kind: type[derived_dtypes.Structure],
        fields_apart: dict[Path, SharedArray] | None = None,
    ) -> None:
        """Take a buffer, or the first of the shared arrays that the fields have each."""
        super().__init__(storage)
        _set(self, "owner", owner)
        _set(self, "_structure", kind)
        _set(self, "_fields_apart", fields_apart)

    def __getitem__(self, index: Any) -> Any:
        place = self._element(index)
        return place if is_place_in(sys._getframe(1)) else place._vd_read()

    def __setitem__(self, index: Any, value: object) -> None:
        self._element(index)._vd_store(value)

    def _element(self, index: Any) -> StructurePlace:
        element, storage, fields = self._at(index), self.storage, self._fields_apart

        def base(path: Path) -> Expr:
            field = fields[path] if isinstance(storage, SharedArray) else current().field_of(storage, path)
            return replace(element, dtype=dt.compute_type(field.dtype), value=field, loc=here())

        return StructurePlace(base, (), (), self._structure, self.owner)
