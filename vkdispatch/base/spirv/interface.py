"""What a SPIR-V compute shader declares, as records: types, resources, constants."""

import operator
import struct
from collections.abc import Mapping
from typing import SupportsIndex

from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.base.record import record

Value = bool | int | float


@record
class Type:
    """A type: `kind` is float, int, bool, vector, matrix, array, struct, image, pointer or other.

    Attributes
    ----------
    width
        Bits of a scalar.
    count
        Components, columns or elements; 0 of an array whose length only the buffer knows.
    element
        Type of the elements of a vector, matrix, array or pointer.
    stride
        Bytes from one element of an array, or column of a matrix, to the next; 0 without a layout.
    members
        Of a struct: (name, byte offset, type) of each.
    read_only, write_only
        Of a struct: whether all its members are decorated so.
    signed
        Of an int.
    row_major
        Of a matrix: whether rows, rather than columns, lie `stride` bytes apart.
    name
        Of a struct: as the source called it, or empty.
    """

    kind: str
    width: int = 0
    count: int = 1
    element: "Type | None" = None
    stride: int = 0
    members: tuple[tuple[str, int, "Type"], ...] = ()
    read_only: bool = False
    write_only: bool = False
    signed: bool = False
    row_major: bool = False
    name: str = ""

    @property
    def size(self) -> int:
        """Bytes, without the part of a buffer that has no fixed length."""
        if self.kind in ("float", "int", "bool"):
            return max(self.width, 8) // 8
        if self.kind == "struct":
            return max((offset + kind.size for _, offset, kind in self.members), default=0)
        if self.element is None:
            return 0
        if self.kind == "vector":
            return self.count * self.element.size
        if self.row_major:
            return self.element.count * self.stride
        return self.count * (self.stride or self.element.size)

    def __str__(self) -> str:
        if self.kind in ("float", "int", "bool"):
            unsigned = "u" if self.kind == "int" and not self.signed else ""
            return f"{unsigned}{self.kind}{self.width or ''}"
        if self.kind == "array":
            return f"{self.element}[{self.count or ''}]"
        if self.element is not None:
            return f"{self.kind} of {self.count} {self.element}"
        return self.kind


@record
class Resource:
    """A bound resource.

    Attributes
    ----------
    set, binding
        Where it is bound.
    kind
        "storage buffer", "uniform buffer", "sampled image" (with its sampler) or "storage image"; or what
        is not bound here: "texture without a sampler", "sampler without a texture", "texel buffer",
        "subpass input", "multisampled image", "cube or rectangle image", "array of ..." any of these,
        "other resource".
    name
        As the source called it, or its block; or empty.
    type
        Of a buffer: its block.
    axes
        Of an image: how many, less that of its layers.
    layered
        Of an image: whether it has layers.
    readable, writable
        Not decorated otherwise.
    set_at, binding_at
        Words of the module that hold `set` (-1: none does) and `binding`.
    """

    set: int
    binding: int
    kind: str
    name: str
    type: Type
    readable: bool
    writable: bool
    set_at: int
    binding_at: int
    axes: int = 0
    layered: bool = False


@record
class SpecConstant:
    """A specialization constant; `kind` is float, int or bool."""

    id: int
    name: str
    kind: str
    width: int
    signed: bool
    default: Value

    def pack(self, value: object) -> bytes:
        """Return a value as the bytes of this constant.

        Raises
        ------
        TypeError, ValueError
            It is of another kind, or does not fit.
        """
        label = f"specialization: constant {self.id}" + (f" ({self.name})" if self.name else "")
        if self.kind == "bool":
            if not isinstance(value, (bool, int)) and not hasattr(value, "__bool__"):
                raise ArgumentTypeError(f"{label}: expected True or False, got {value!r}")
            return struct.pack("<I", bool(value))
        if self.kind == "int":
            return self._pack_int(value, label)
        try:
            return struct.pack({16: "<e", 32: "<f", 64: "<d"}[self.width], value)
        except (struct.error, OverflowError, TypeError):
            raise ArgumentTypeError(
                f"{label}: expected a number for float{self.width}, got {value!r}"
            ) from None

    def _pack_int(self, value: object, label: str) -> bytes:
        if not isinstance(value, SupportsIndex) or isinstance(value, bool):
            raise ArgumentTypeError(f"{label}: expected an int, got {value!r}")
        try:
            return operator.index(value).to_bytes(self.width // 8, "little", signed=self.signed)
        except OverflowError:
            kind = "a signed" if self.signed else "an unsigned"
            raise ArgumentValueError(
                f"{label}: {value!r} does not fit {kind} int of {self.width} bits"
            ) from None


@record
class Interface:
    """What a compute shader declares.

    Attributes
    ----------
    entry_point
        The function that is run.
    local_size
        Size of a workgroup along each axis; None if the module computes it in an unsupported way.
    local_size_ids
        Id of the specialization constant that sets each axis; None where it is fixed.
    resources
        By set and binding.
    push_constants
        The block, or None.
    push_name
        As the source called the push constants, or empty; their block has a name of its own.
    spec_constants
        By id.
    shared_bytes
        Bytes of shared memory.
    capabilities
        Numbers of the SPIR-V capabilities.
    version
        The version of SPIR-V.
    """

    entry_point: str
    local_size: tuple[int, int, int] | None
    local_size_ids: tuple[int | None, int | None, int | None]
    resources: tuple[Resource, ...]
    push_constants: Type | None
    spec_constants: Mapping[int, SpecConstant]
    shared_bytes: int
    capabilities: frozenset[int]
    push_name: str = ""
    version: tuple[int, int] = (1, 0)
