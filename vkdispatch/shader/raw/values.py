"""The values that a kernel given as GLSL or SPIR-V takes, laid over its push constants and uniform blocks."""

import itertools
from collections.abc import Iterator, Mapping, Sequence

from vkdispatch.base import dtype
from vkdispatch.base.dtype import DType
from vkdispatch.base.dtypes.composite import placed_type
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.base.record import record
from vkdispatch.base.spirv.reflection import Interface, Resource, Type
from vkdispatch.shader.raw.arguments import Field, Place, RawArgument

MOST_BYTES = 16384
"""Of all values of one launch."""
_MOST_LEAVES = 4096
_ALIGNMENT = 16
_SCALARS: dict[tuple[str, int, bool], DType] = {
    ("float", 16, False): dtype.float16,
    ("float", 32, False): dtype.float32,
    ("float", 64, False): dtype.float64,
    ("int", 8, True): dtype.int8,
    ("int", 8, False): dtype.uint8,
    ("int", 16, True): dtype.int16,
    ("int", 16, False): dtype.uint16,
    ("int", 32, True): dtype.int32,
    ("int", 32, False): dtype.uint32,
    ("int", 64, True): dtype.int64,
    ("int", 64, False): dtype.uint64,
}


@record
class Leaf:
    """A number, vector, matrix or array of these in a block: its name, as "lights[1].color", and place."""

    path: str
    offset: int
    type: Type


@record
class Block:
    """Push constants, or a uniform block.

    Attributes
    ----------
    place
        Set and binding; None of push constants.
    names
        As the source calls it and its type.
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


@record
class Laid:
    """A value where it goes: as what dtype, and at which byte of a block."""

    argument: RawArgument
    field: Field
    kind: DType
    block: Block
    offset: int

    @property
    def member(self) -> str:
        """Its name among all values."""
        return f"{self.argument.name}.{self.field.path}" if self.field.path else self.argument.name


def name_place(place: Place) -> str:
    """Return what messages call a set and binding."""
    return f"set {place[0]}, binding {place[1]}"


def value_blocks(name: str, interface: Interface) -> list[Block]:
    """Return all blocks that can take values, the push constants first.

    Raises ValueError for members that are no values.
    """
    blocks: list[tuple[Place | None, tuple[str, ...], Type]] = []
    if interface.push_constants is not None:
        kind = interface.push_constants
        blocks.append((None, (interface.push_name, kind.name), kind))
    for resource in interface.resources:
        if resource.kind == "uniform buffer":
            place = (resource.set, resource.binding)
            blocks.append((place, (resource.name, resource.type.name), resource.type))
    return [Block(place, names, kind, tuple(_leaves(name, kind))) for place, names, kind in blocks]


def lay_values(name: str, arguments: Sequence[RawArgument], blocks: Sequence[Block]) -> list[Laid]:
    """Say where each value of the arguments goes, in their order.

    Parameters
    ----------
    name
        The kernel's.
    arguments
        Those that are passed by value.
    blocks
        All that the code declares, less those that buffers are bound to. A uniform block without any argument
        is left out.

    Raises
    ------
    ValueError
        They do not fit each other; the message says where.
    """
    chosen: dict[int, list[RawArgument]] = {}
    for argument, index in zip(arguments, _choose(name, arguments, blocks), strict=True):
        chosen.setdefault(index, []).append(argument)
    laid: list[Laid] = []
    for index, block in enumerate(blocks):
        if index not in chosen and block.place is not None:
            continue
        laid += _lay(name, block, chosen.get(index, []))
    if -1 in chosen:
        given = ", ".join(map(str, chosen[-1]))
        raise ArgumentValueError(f"{name}: the code has no push constants and no uniform block for {given}")
    order = {id(argument): number for number, argument in enumerate(arguments)}
    return sorted(laid, key=lambda value: order[id(value.argument)])


# -- which block


def _choose(name: str, arguments: Sequence[RawArgument], blocks: Sequence[Block]) -> list[int]:
    """Return the number of the block that each argument goes to; -1 where there is none at all."""
    found = [_find_named_block(name, argument, blocks) for argument in arguments]
    named = [
        number if number is not None or not argument.is_tree else _find_like_named_block(argument, blocks)
        for number, argument in zip(found, arguments, strict=True)
    ]
    free = [number for number in range(len(blocks)) if number not in named]
    rest = free if len(free) == 1 else list(range(len(blocks)))
    return [
        number if number is not None else _default(name, argument, blocks, rest)
        for number, argument in zip(named, arguments, strict=True)
    ]


def _find_named_block(name: str, argument: RawArgument, blocks: Sequence[Block]) -> int | None:
    if argument.place is None:
        return None
    for number, block in enumerate(blocks):
        if argument.place == block.place or (argument.place and argument.place in block.names):
            return number
    known = ", ".join(map(str, blocks)) or "none"
    if isinstance(argument.place, str):
        what = f"there is no {argument.place!r} among the blocks that take values"
    else:
        what = f"{name_place(argument.place)} is no uniform block that takes values"
    raise ArgumentValueError(f"{name}: {argument}: {what}; the code has {known}")


def _find_like_named_block(argument: RawArgument, blocks: Sequence[Block]) -> int | None:
    """Return the one block that is called like an argument, be it in capitals, or whose members are."""
    name = argument.name.lower()
    called = [number for number, block in enumerate(blocks) if name in [each.lower() for each in block.names]]
    if called:
        return called[0] if len(called) == 1 else None
    if argument.fields is None:
        return None
    fitting = [number for number, block in enumerate(blocks) if _prefix(argument, block)[1]]
    return fitting[0] if len(fitting) == 1 else None


def _default(name: str, argument: RawArgument, blocks: Sequence[Block], rest: Sequence[int]) -> int:
    if not blocks:
        return -1
    if blocks[0].place is None and (not argument.is_tree or 0 in rest):
        return 0
    if len(rest) == 1:
        return rest[0]
    raise ArgumentValueError(
        f"{name}: {argument}: say which block it goes to, by name or binding, as in "
        f"({argument.name!r}, ..., {blocks[-1].names[-1] or blocks[-1].place!r}): the code has "
        f"{', '.join(map(str, blocks))}"
    )


# -- which member


def _lay(name: str, block: Block, arguments: Sequence[RawArgument]) -> list[Laid]:
    free = {leaf.path: leaf for leaf in block.leaves}
    laid: list[Laid] = []
    ordered: list[RawArgument] = []
    for argument in arguments:
        if not argument.is_tree:
            ordered.append(argument)
        elif argument.fields is None:
            laid += _lay_all(name, argument, block, free)
        else:
            prefix, complete = _prefix(argument, block)
            if argument.by_name or complete:
                laid += _lay_by_name(name, argument, block, prefix, free)
            else:
                ordered.append(argument)
    return laid + _lay_in_order(name, ordered, block, free, bool(laid))


def _prefix(argument: RawArgument, block: Block) -> tuple[str, bool]:
    """Return where in a block the fields of an argument are, and whether all of them are there."""
    paths = {leaf.path for leaf in block.leaves}
    candidates = ["", f"{argument.name}."]
    if len(block.type.members) == 1 and block.type.members[0][0]:
        candidates.append(f"{block.type.members[0][0]}.")
    fields = argument.fields or ()
    best = max(candidates, key=lambda prefix: sum(prefix + field.path in paths for field in fields))
    return best, all(best + field.path in paths for field in fields)


def _lay_by_name(
    name: str, argument: RawArgument, block: Block, prefix: str, free: dict[str, Leaf]
) -> Iterator[Laid]:
    assert argument.fields is not None
    unknown = [field.path for field in argument.fields if prefix + field.path not in free]
    missing = []
    if argument.by_name:
        inside = [path for path in free if path.startswith(prefix)]
        missing = [path for path in inside if path[len(prefix) :] not in {f.path for f in argument.fields}]
    if unknown:
        parts = [f"{block} has no free member {', '.join(map(repr, unknown))}"]
        parts += [f"nothing is given for {', '.join(map(repr, missing))}"] if missing else []
        stripped = any(not member for member, _, _ in block.type.members)
        parts.append(f"its members are {_list_leaves(block.leaves)}")
        parts += ["the code has no names, so give values in order"] if stripped else []
        raise ArgumentValueError(f"{name}: {argument}: {'; '.join(parts)}")
    for field in argument.fields:
        leaf = free.pop(prefix + field.path)
        yield _fit(name, argument, field, block, leaf)


def _lay_all(name: str, argument: RawArgument, block: Block, free: dict[str, Leaf]) -> Iterator[Laid]:
    """Give an argument all members that no other has by name: those of a structure of its name, if any."""
    prefix = f"{argument.name}."
    if not any(path.startswith(prefix) for path in free):
        prefix = ""
    for path in [path for path in free if path.startswith(prefix)]:
        leaf = free.pop(path)
        scalar, counts, _ = _axes(leaf.type)
        kind = _SCALARS.get((scalar.kind, scalar.width, scalar.signed))
        if kind is None:
            raise ArgumentValueError(
                f"{name}: {argument}: {path!r} of {block} is {leaf.type}, which has no dtype"
            )
        yield _fit(name, argument, Field(path[len(prefix) :], kind, counts), block, leaf)


def _lay_in_order(
    name: str, arguments: Sequence[RawArgument], block: Block, free: Mapping[str, Leaf], others: bool
) -> list[Laid]:
    fields = [(argument, field) for argument in arguments for field in argument.fields or ()]
    leaves = list(free.values())
    if len(fields) != len(leaves):
        given = ", ".join(f"{_label(argument, field)} ({field})" for argument, field in fields) or "none"
        left = " left" if others else ""
        raise ArgumentValueError(
            f"{name}: {block} of the code has {len(leaves)} values{left} ({_list_leaves(leaves) or 'none'}), "
            f"the arguments have {len(fields)} ({given})"
        )
    for (argument, field), leaf in zip(fields, leaves, strict=True):
        _check_order(name, argument, field, block, leaf, free)
    return [
        _fit(name, argument, field, block, leaf)
        for (argument, field), leaf in zip(fields, leaves, strict=True)
    ]


def _check_order(
    name: str, argument: RawArgument, field: Field, block: Block, leaf: Leaf, free: Mapping[str, Leaf]
) -> None:
    """Refuse a dataclass of which some fields are named as members, and would go to others."""
    if not argument.is_tree:
        return
    prefix, _ = _prefix(argument, block)
    own = prefix + field.path
    if own in free and own != leaf.path:
        raise ArgumentValueError(
            f"{name}: {argument}: field {field.path!r} would go to {leaf.path!r} of {block}, by its order: "
            f"give all fields the names of members ({_list_leaves(block.leaves)}), or none"
        )


def _label(argument: RawArgument, field: Field) -> str:
    return f"{argument.name}.{field.path}" if field.path else argument.name


def _list_leaves(leaves: Sequence[Leaf]) -> str:
    shown = ", ".join(f"{leaf.path} {leaf.type}" for leaf in leaves[:16])
    return shown + (f" and {len(leaves) - 16} more" if len(leaves) > 16 else "")


def _fit(name: str, argument: RawArgument, field: Field, block: Block, leaf: Leaf) -> Laid:
    kind = _place_kind(field, leaf.type)
    if kind is None:
        what = f", field {field.path!r}," if field.path and field.path != leaf.path else ""
        raise ArgumentValueError(
            f"{name}: {argument}{what} goes to {leaf.path!r} of {block}, which is {leaf.type} at byte "
            f"{leaf.offset}"
        )
    return Laid(argument, field, kind, block, leaf.offset)


# -- how it lies there


def _leaves(name: str, block: Type) -> list[Leaf]:
    """Return the values in a block by offset, those of structures within it too."""
    found: list[Leaf] = []
    for leaf in _flat(block):
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
    """Raise ValueError where values of a block overlap, as arrays of a specialized size can."""
    ordered = sorted(block.leaves, key=lambda leaf: leaf.offset)
    for leaf, following in itertools.pairwise(ordered):
        end = leaf.offset + _extent(leaf.type)
        if end > following.offset:
            raise ArgumentValueError(
                f"{name}: {leaf.path!r} of {block} ends at byte {end}, behind the start of "
                f"{following.path!r} at {following.offset}: the compiler laid the block out for other "
                "specialization constants; put an array of such a size last, or give it a fixed one"
            )


def _flat(block: Type, prefix: str = "", start: int = 0) -> Iterator[Leaf]:
    for index, (name, offset, kind) in enumerate(block.members):
        yield from _flat_member(kind, f"{prefix}{name or index}", start + offset)


def _flat_member(kind: Type, label: str, start: int) -> Iterator[Leaf]:
    inner = kind
    while inner.kind == "array" and inner.element is not None:
        inner = inner.element
    if inner.kind != "struct":
        yield Leaf(label, start, kind)
    elif kind.kind == "struct":
        yield from _flat(kind, f"{label}.", start)
    else:
        assert kind.element is not None
        for index in range(kind.count):
            yield from _flat_member(kind.element, f"{label}[{index}]", start + index * kind.stride)


def _axes(declared: Type) -> tuple[Type, tuple[int, ...], tuple[int, ...]]:
    """Return the type of the components, and how many there are along each axis at which strides."""
    if declared.element is None:
        return declared, (), ()
    scalar, counts, strides = _axes(declared.element)
    if declared.kind == "vector":
        return scalar, (declared.count, *counts), (scalar.size, *strides)
    if declared.row_major:
        return scalar, (declared.count, *counts), (scalar.size, declared.stride)
    return scalar, (declared.count, *counts), (declared.stride or declared.element.size, *strides)


def _extent(declared: Type) -> int:
    """Return the bytes up to the end of the last component."""
    scalar, counts, strides = _axes(declared)
    return scalar.size + sum((count - 1) * stride for count, stride in zip(counts, strides, strict=True))


def _place_kind(field: Field, declared: Type) -> DType | None:
    """Return what packs a value as a member has it; None where it is something else."""
    scalar, counts, strides = _axes(declared)
    kind = field.kind
    component = dtype.component_type(kind)
    if component is dtype.bool_:  # GLSL has them as integers in memory
        component = kind = dtype.uint32
    family = "float" if dtype.is_float_dtype(component) else "int"
    if component is dtype.bfloat16 or (scalar.kind, scalar.width) != (family, component.item_size * 8):
        return None
    own = (2,) if dtype.is_complex(kind) else kind.true_numpy_shape
    if (*field.shape, *own) != counts:
        return None
    tight, size = [], scalar.size
    for count in reversed(counts):
        tight.append(size)
        size *= count
    if not field.shape and tuple(reversed(tight)) == strides:
        return kind
    of = kind if dtype.is_complex(kind) else component
    host = field.shape if dtype.is_complex(kind) else counts
    return placed_type(str(declared), of, host, strides)


def block_bytes(block: Block) -> int:
    """Return the bytes of a block as it is passed."""
    unit = 4 if block.place is None else _ALIGNMENT
    return -(-block.type.size // unit) * unit


def arrange(name: str, blocks: Sequence[Block]) -> tuple[dict[Place | None, int], int]:
    """Return where each block begins among the bytes of a launch, and how many there are.

    Raises
    ------
    ValueError
        There are more than a launch has.
    """
    starts: dict[Place | None, int] = {}
    end = 0
    for block in blocks:
        starts[block.place] = end = -(-end // _ALIGNMENT) * _ALIGNMENT
        end += block_bytes(block)
    if end > MOST_BYTES:
        sizes = ", ".join(f"{block} {block.type.size}" for block in blocks)
        raise ArgumentValueError(
            f"{name}: the values of a launch take {end} bytes ({sizes}), {MOST_BYTES} are possible; bind a "
            "buffer to the largest block, as in ('params', Buff[f32], binding)"
        )
    return starts, end


def uniform_resources(interface: Interface) -> dict[Place, Resource]:
    """Return the uniform buffers that the code declares."""
    return {
        (resource.set, resource.binding): resource
        for resource in interface.resources
        if resource.kind == "uniform buffer"
    }
