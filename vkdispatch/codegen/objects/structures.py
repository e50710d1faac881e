"""Buffers of structures as a kernel's Python body sees them."""

import sys
from collections.abc import Iterator
from types import FunctionType, MethodType
from typing import Any, NoReturn

from vkdispatch.base.dtype import DType, compute_type
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, ComponentError
from vkdispatch.base.record import replace
from vkdispatch.base.structures import Structure, field_types, is_structure
from vkdispatch.codegen.objects.buffers import BufferVariable
from vkdispatch.codegen.objects.place_reads import is_place_in
from vkdispatch.codegen.trace.current import current
from vkdispatch.codegen.trace.operands import parse_stored_value
from vkdispatch.codegen.variables import ShaderVariable
from vkdispatch.ir import Expr, Storage
from vkdispatch.ir.location import here, located

_set = object.__setattr__
# ---- places and values -----------------------------------------------------------------------------


class _Fields:
    """Something with the fields of a structure, and with the methods and properties of its dataclass."""

    __slots__ = ("_vd_kind", "_vd_owner")

    _vd_kind: type[Structure]
    _vd_owner: type[Any]

    def _vd_field(self, name: str) -> DType | None:
        return next((kind for each, kind, _ in self._vd_kind.fields if each == name), None)

    def _vd_member(self, name: str) -> Any:
        """Return what the dataclass has under a name that is no field: a method, a property, a constant."""
        if name.startswith("__"):
            raise AttributeError(name)
        owner = next((each for each in self._vd_owner.__mro__ if name in vars(each)), None)
        if owner is None:
            self._vd_unknown(name)
        member = vars(owner)[name]
        if isinstance(member, property) and member.fget is not None:
            return member.fget(self)
        return MethodType(member, self) if isinstance(member, FunctionType) else getattr(owner, name)

    def _vd_unknown(self, name: str) -> NoReturn:
        known = ", ".join(each for each, _, _ in self._vd_kind.fields)
        raise located(
            ComponentError, f"{self._vd_owner.__name__} has no field {name!r}; its fields are {known}"
        )

    def _vd_check_whole(self, index: Any) -> None:
        if index != slice(None):
            raise located(ArgumentValueError, f"a {self._vd_owner.__name__} takes s[:] = ..., no other index")

    def __bool__(self) -> bool:
        raise located(ArgumentValueError, f"a {self._vd_owner.__name__} has no truth value")


class StructurePlace(_Fields):
    """The element of a buffer of structures in `p[i].x`: its fields are read and written in memory."""

    __slots__ = ("_vd_element", "_vd_path")

    _vd_element: Expr
    _vd_path: tuple[str, ...]

    def __init__(self, element: Expr, path: tuple[str, ...], kind: type[Structure], owner: type[Any]) -> None:
        _set(self, "_vd_element", element)
        _set(self, "_vd_path", path)
        _set(self, "_vd_kind", kind)
        _set(self, "_vd_owner", owner)

    def __getattr__(self, name: str) -> Any:
        kind = self._vd_field(name)
        if kind is None:
            return self._vd_member(name)
        if not is_structure(kind):
            return ShaderVariable(current().read(self._vd_leaf(name, kind)))
        place = self._vd_inner(name, kind)
        return place if is_place_in(sys._getframe(1)) else place._vd_read()

    def __setattr__(self, name: str, value: object) -> None:
        kind = self._vd_field(name)
        if kind is None:
            self._vd_unknown(name)
        if is_structure(kind):
            self._vd_inner(name, kind)._vd_store(value)
        else:
            ShaderVariable(self._vd_leaf(name, kind))._assign(value)

    def _vd_leaf(self, name: str, kind: DType) -> Expr:
        storage = self._vd_element.value
        assert isinstance(storage, Storage)
        field = current().field_of(storage, (*self._vd_path, name), kind)
        return replace(self._vd_element, dtype=compute_type(kind), value=field, loc=here())

    def _vd_inner(self, name: str, kind: type[Structure]) -> "StructurePlace":
        return StructurePlace(self._vd_element, (*self._vd_path, name), kind, _owner_of(self._vd_owner, name))

    def _vd_read(self) -> "StructureValue":
        """Copy all fields, now, to registers."""
        storage = self._vd_element.value
        assert isinstance(storage, Storage)
        parts: dict[str, Any] = {}
        for name, kind, _ in self._vd_kind.fields:
            if is_structure(kind):
                parts[name] = self._vd_inner(name, kind)._vd_read()
            else:
                label = "_".join((storage.label, *self._vd_path, name))
                parts[name] = held(self._vd_leaf(name, kind), label)
        value = StructureValue(self._vd_kind, self._vd_owner, parts, self)
        value._vd_note()
        return value

    def __setitem__(self, index: Any, value: object) -> None:
        """Assign all fields: `p[i][:] = value`, as `p[i] = value`."""
        self._vd_check_whole(index)
        self._vd_store(value)

    def _vd_store(self, value: object) -> None:
        """Write all fields. What they are made of is read before any of them is written."""
        values = list(_parts_of(value, self._vd_kind, self._vd_owner))
        for (path, kind), part in zip(_leaves(self._vd_kind), values, strict=True):
            place = self
            for name in path[:-1]:
                inner = place._vd_field(name)
                assert is_structure(inner)
                place = place._vd_inner(name, inner)
            ShaderVariable(place._vd_leaf(path[-1], kind))._assign(part)


class StructureValue(_Fields):
    """A structure of one invocation: a copy of an element, whose fields change on their own.

    A scalar field is read as the value that it has then.
    """

    __slots__ = ("_vd_origin", "_vd_parts")

    _vd_origin: StructurePlace | None
    _vd_parts: dict[str, Any]

    def __init__(
        self,
        kind: type[Structure],
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
        kind = self._vd_field(name)
        if kind is None:
            self._vd_unknown(name)
        if not is_structure(kind):
            part = self._vd_parts[name]
            current().store(part, parse_stored_value(value, part.dtype))
            current().note_copy(part)
            return
        self._vd_parts[name]._vd_assign(value)

    def __setitem__(self, index: Any, value: object) -> None:
        """Assign all fields: `s[:] = p[j]`, also those of the element that `s = p[i]` read."""
        self._vd_check_whole(index)
        self._vd_assign(value)
        if self._vd_origin is not None:
            self._vd_origin._vd_store(self)

    def _vd_assign(self, value: object) -> None:
        values = list(_parts_of(value, self._vd_kind, self._vd_owner))
        for register, part in zip(self._vd_registers(), values, strict=True):
            current().store(register, parse_stored_value(part, register.dtype))
            current().note_copy(register)

    def _vd_note(self) -> None:
        """Note that the fields are one copy: a change of one is read where another is."""
        current().note_structure(tuple(part.value for part in self._vd_registers()))  # type: ignore[misc]

    def _vd_registers(self) -> Iterator[Expr]:
        for part in self._vd_parts.values():
            if isinstance(part, Expr):
                yield part
            else:
                yield from part._vd_registers()

    def __copy__(self) -> "StructureValue":
        parts = {
            name: held(part, name) if isinstance(part, Expr) else part.__copy__()
            for name, part in self._vd_parts.items()
        }
        value = StructureValue(self._vd_kind, self._vd_owner, parts)
        value._vd_note()
        return value

    def __deepcopy__(self, _: object) -> "StructureValue":
        return self.__copy__()

    def __repr__(self) -> str:
        return f"<{self._vd_owner.__name__} of a kernel>"


def held(value: Expr, name: str) -> Expr:
    """Copy a value, now, to a register."""
    copy = current().declare_around(value.dtype, value, name)
    current().note_origin(copy, value)
    return copy


def _owner_of(owner: type[Any], name: str) -> type[Any]:
    """Return the dataclass of a field."""
    found: type[Any] = field_types(owner)[name]
    return found


def _leaves(kind: type[Structure]) -> Iterator[tuple[tuple[str, ...], DType]]:
    for name, field, _ in kind.fields:
        if is_structure(field):
            yield from (((name, *path), leaf) for path, leaf in _leaves(field))
        else:
            yield (name,), field


def _parts_of(value: object, kind: type[Structure], owner: type[Any]) -> Iterator[Any]:
    """Yield the values of all leaves of a structure that is stored.

    Raises TypeError for what is no such structure.
    """
    if isinstance(value, StructurePlace):
        value = value._vd_read()
    if isinstance(value, StructureValue):
        if value._vd_kind is not kind:
            raise _mismatch(value._vd_owner.__name__, owner)
        yield from (ShaderVariable(part) for part in value._vd_registers())
        return
    fields = getattr(type(value), "__dataclass_fields__", None)
    if fields is None or list(fields) != [name for name, _, _ in kind.fields]:
        raise _mismatch(type(value).__name__, owner)
    for name, field, _ in kind.fields:
        part = getattr(value, name)
        if is_structure(field):
            yield from _parts_of(part, field, _owner_of(owner, name))
        elif isinstance(part, ShaderVariable):
            yield ShaderVariable(held(part._value(), name))
        else:
            yield part


def _mismatch(given: str, owner: type[Any]) -> ArgumentTypeError:
    return located(
        ArgumentTypeError,
        f"cannot store a {given} where the buffer has a {owner.__name__}; pass an element, or "
        f"{owner.__name__}(...)",
    )


class StructureBuffer(BufferVariable):
    """A buffer of structures: `Buff[SomeDataclass]`.

    `p[i].x` is a field of an element, read and written where it lies. `p[i]` by itself is a copy of the whole
    element: `s = p[i]`, `f(p[i])`. Changing the copy leaves the buffer alone; `p[j] = s` stores it.
    """

    __slots__ = ("owner",)

    owner: type[Any]

    def __init__(self, storage: Storage, owner: type[Any]) -> None:
        super().__init__(storage)
        self.owner = owner

    def __getitem__(self, index: Any) -> Any:
        place = self._element(index)
        return place if is_place_in(sys._getframe(1)) else place._vd_read()

    def __setitem__(self, index: Any, value: object) -> None:
        self._element(index)._vd_store(value)

    def _element(self, index: Any) -> StructurePlace:
        kind = self.storage.dtype
        assert is_structure(kind)
        return StructurePlace(self._at(index), (), kind, self.owner)
