"""The blocks of a module that take values: push constants and uniform blocks, with their members."""

import itertools
from collections.abc import Iterator, Sequence

from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.base.record import record
from vkdispatch.base.spirv.reflection import Interface, Resource, Type
from vkdispatch.shader.raw.arguments import Place

MOST_BYTES = 16384  # of all values of a launch
_MOST_LEAVES = 4096
_ALIGNMENT = 16


@record
class Leaf:
    """A number, vector, matrix or array of these in a block: its path, as "lights[1].color", and offset."""

    path: str
    offset: int
    type: Type


@record
class Block:
    """Push constants, or a uniform block.

    Attributes
    ----------
    place
        Set and binding; None for push constants.
    names
        The names of the block and of its type in the source.
    """

    place: Place | None
    names: tuple[str, ...]
    type: Type
    leaves: tuple[Leaf, ...]

    def __str__(self) -> str:
        if self.place is None:
            return "the push constant block"
        called = next((f" ({name})" for name in self.names if name), "")
        return f"the uniform block at {name_place(self.place)}{called}"


def name_place(place: Place) -> str:
    """Return what messages call a set and binding."""
    return f"set {place[0]}, binding {place[1]}"


def read_blocks(name: str, interface: Interface) -> list[Block]:
    """Return all blocks that can take values, the push constants first.

    Raises ValueError for members that are not values.
    """
    blocks: list[tuple[Place | None, tuple[str, ...], Type]] = []
    if interface.push_constants is not None:
        kind = interface.push_constants
        blocks.append((None, (interface.push_name, kind.name), kind))
    for resource in interface.resources:
        if resource.kind == "uniform buffer":
            place = (resource.set, resource.binding)
            blocks.append((place, (resource.name, resource.type.name), resource.type))
    return [Block(place, names, kind, tuple(_read_leaves(name, kind))) for place, names, kind in blocks]


def _read_leaves(name: str, block: Type) -> list[Leaf]:
    """Return the values in a block, including those of structures in it."""
    found: list[Leaf] = []
    for leaf in _walk_members(block):
        if len(found) == _MOST_LEAVES:
            raise ArgumentValueError(
                f"{name}: a block of the code has more than {_MOST_LEAVES} members; make it a storage buffer"
            )
        kind = leaf.type
        while kind.kind == "array" and kind.element is not None and kind.count:
            kind = kind.element
        if kind.kind == "pointer":
            raise ArgumentValueError(
                f"{name}: {leaf.path!r} of a block is a buffer_reference, which is not supported; bind the "
                "buffer itself"
            )
        if kind.kind == "array":
            raise ArgumentValueError(
                f"{name}: the size of {leaf.path!r} of a block cannot be followed; write a number"
            )
        found.append(leaf)
    return found


def check_apart(name: str, block: Block) -> None:
    """Raise ValueError if values of a block overlap, as arrays of a specialized size can."""
    ordered = sorted(block.leaves, key=lambda leaf: leaf.offset)
    for leaf, following in itertools.pairwise(ordered):
        end = leaf.offset + _find_end(leaf.type)
        if end > following.offset:
            raise ArgumentValueError(
                f"{name}: {leaf.path!r} of {block} ends at byte {end}, behind the start of "
                f"{following.path!r} at {following.offset}: the compiler placed the block out for other "
                "specialization constants; put an array of such a size last, or make its size fixed"
            )


def _walk_members(block: Type, prefix: str = "", start: int = 0) -> Iterator[Leaf]:
    for index, (name, offset, kind) in enumerate(block.members):
        yield from _walk_member(kind, f"{prefix}{name or index}", start + offset)


def _walk_member(kind: Type, label: str, start: int) -> Iterator[Leaf]:
    inner = kind
    while inner.kind == "array" and inner.element is not None:
        inner = inner.element
    if inner.kind != "struct":
        yield Leaf(label, start, kind)
    elif kind.kind == "struct":
        yield from _walk_members(kind, f"{label}.", start)
    else:
        assert kind.element is not None
        for index in range(kind.count):
            yield from _walk_member(kind.element, f"{label}[{index}]", start + index * kind.stride)


def find_axes(declared: Type) -> tuple[Type, tuple[int, ...], tuple[int, ...]]:
    """Return the type of the components, and their count and stride along each axis."""
    if declared.element is None:
        return declared, (), ()
    scalar, counts, strides = find_axes(declared.element)
    if declared.kind == "vector":
        return scalar, (declared.count, *counts), (scalar.size, *strides)
    if declared.row_major:
        return scalar, (declared.count, *counts), (scalar.size, declared.stride)
    return scalar, (declared.count, *counts), (declared.stride or declared.element.size, *strides)


def _find_end(declared: Type) -> int:
    """Return the offset of the end of the last component."""
    scalar, counts, strides = find_axes(declared)
    return scalar.size + sum((count - 1) * stride for count, stride in zip(counts, strides, strict=True))


def count_block_bytes(block: Block) -> int:
    """Return the bytes that are passed for a block."""
    unit = 4 if block.place is None else _ALIGNMENT
    return -(-block.type.size // unit) * unit


def arrange_blocks(name: str, blocks: Sequence[Block]) -> tuple[dict[Place | None, int], int]:
    """Return the offset of each block in the bytes of a launch, and their number.

    Raises
    ------
    ValueError
        They exceed the limit of a launch.
    """
    starts: dict[Place | None, int] = {}
    end = 0
    for block in blocks:
        starts[block.place] = end = -(-end // _ALIGNMENT) * _ALIGNMENT
        end += count_block_bytes(block)
    if end > MOST_BYTES:
        sizes = ", ".join(f"{block} {block.type.size}" for block in blocks)
        raise ArgumentValueError(
            f"{name}: the values of a launch take {end} bytes ({sizes}), {MOST_BYTES} are possible; bind a "
            "buffer to the largest block, as in ('params', Buff[f32], binding)"
        )
    return starts, end


def find_uniform_resources(interface: Interface) -> dict[Place, Resource]:
    """Return the uniform buffers that the code declares."""
    return {
        (resource.set, resource.binding): resource
        for resource in interface.resources
        if resource.kind == "uniform buffer"
    }
