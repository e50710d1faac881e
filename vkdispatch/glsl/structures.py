"""Names of the blocks of buffers, and structures: their declarations and the fields of their elements."""

from collections.abc import Sequence

from vkdispatch.base.dtype import DType, array_shape, item_of
from vkdispatch.base.structures import Structure, field_type, is_structure
from vkdispatch.glsl.spelling import INDENT, STORED
from vkdispatch.ir import Storage
from vkdispatch.ir.names import FreshNames, legal_name


def reference_name(buffer: Storage) -> str:
    """Name of a buffer's block, which is a type of reference where the buffer is reached by address."""
    return f"View{buffer.index}" if buffer.view else f"Buffer{buffer.index}"


def field_text(storage: Storage, indices: Sequence[str] = ()) -> str:
    """Write which field of an element a storage is: ".inner.x", or "" for the whole element.

    `indices` are those of the arrays on the way, as in ".inner[i].x".
    """
    if storage.whole is None:
        return ""
    kind: DType = storage.whole.dtype
    text, rest = "", list(indices)
    for name in storage.path:
        assert is_structure(kind)
        text += f".{member_names(kind)[name]}"
        field = field_type(kind, name)
        assert field is not None
        text += "".join(f"[{rest.pop(0)}]" for _ in array_shape(field))
        kind = item_of(field)
    return text


def member_names(kind: type[Structure]) -> dict[str, str]:
    """Return the names in GLSL of the fields of a structure."""
    names = FreshNames()
    return {name: names.claim(legal_name(name, member=True)) for name, _, _ in kind.fields}


def memory_type(kind: DType) -> str:
    """Return the type in GLSL of a field or an element as it lies in a buffer."""
    return STORED[kind].glsl if kind in STORED else kind.glsl_type


def structure_declaration(name: str, kind: type[Structure]) -> list[str]:
    """Declare a structure, after those within it."""
    lines: list[str] = []
    members: list[str] = []
    for (_, field, _), member in zip(kind.fields, member_names(kind).values(), strict=True):
        item = item_of(field)
        text = memory_type(item)
        if is_structure(item):
            text = f"{name}_{member}".replace("__", "_")
            lines += structure_declaration(text, item)
        axes = "".join(f"[{count}]" for count in array_shape(field))
        members.append(f"{INDENT}{text} {member}{axes};")
    return [*lines, f"struct {name} {{", *members, "};"]
