"""The values that a kernel given as GLSL or SPIR-V takes, and their places in its blocks."""

from collections.abc import Iterator, Mapping, Sequence

from vkdispatch.base import dtype
from vkdispatch.base.derived_dtypes import placed_type
from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.base.record import record
from vkdispatch.base.spirv.reflection import Type
from vkdispatch.shader.raw.arguments import Field, RawArgument
from vkdispatch.shader.raw.blocks import Block, Leaf, find_axes, name_place

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
class PlacedValue:
    """A value in its place: with the dtype that packs it, and its offset in a block."""

    argument: RawArgument
    field: Field
    kind: DType
    block: Block
    offset: int

    @property
    def member(self) -> str:
        """The name of the value."""
        return f"{self.argument.name}.{self.field.path}" if self.field.path else self.argument.name


def place_values(name: str, arguments: Sequence[RawArgument], blocks: Sequence[Block]) -> list[PlacedValue]:
    """Return the place of each value of the arguments, in their order.

    Parameters
    ----------
    name
        The name of the kernel.
    arguments
        The arguments passed by value.
    blocks
        The blocks that the code declares, without those that buffers are bound to. A uniform block without
        any argument is left out.

    Raises
    ------
    ValueError
        They do not match; the message says where.
    """
    chosen: dict[int, list[RawArgument]] = {}
    for argument, index in zip(arguments, _choose_blocks(name, arguments, blocks), strict=True):
        chosen.setdefault(index, []).append(argument)
    placed: list[PlacedValue] = []
    for index, block in enumerate(blocks):
        if index not in chosen and block.place is not None:
            continue
        placed += _place_in_block(name, block, chosen.get(index, []))
    if -1 in chosen:
        given = ", ".join(map(str, chosen[-1]))
        raise ArgumentValueError(f"{name}: the code has no push constants and no uniform block for {given}")
    order = {id(argument): number for number, argument in enumerate(arguments)}
    return sorted(placed, key=lambda value: order[id(value.argument)])


# -- which block


def _choose_blocks(name: str, arguments: Sequence[RawArgument], blocks: Sequence[Block]) -> list[int]:
    """Return the number of the block of each argument; -1 if there are no blocks."""
    found = [_find_named_block(name, argument, blocks) for argument in arguments]
    named = [
        number if number is not None or not argument.is_tree else _find_like_named_block(argument, blocks)
        for number, argument in zip(found, arguments, strict=True)
    ]
    free = [number for number in range(len(blocks)) if number not in named]
    rest = free if len(free) == 1 else list(range(len(blocks)))
    return [
        number if number is not None else _choose_default_block(name, argument, blocks, rest)
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
    """Return the one block with the name of an argument, ignoring case, or with its fields as members."""
    name = argument.name.lower()
    called = [number for number, block in enumerate(blocks) if name in [each.lower() for each in block.names]]
    if called:
        return called[0] if len(called) == 1 else None
    if argument.fields is None:
        return None
    fitting = [number for number, block in enumerate(blocks) if _find_prefix(argument, block)[1]]
    return fitting[0] if len(fitting) == 1 else None


def _choose_default_block(
    name: str, argument: RawArgument, blocks: Sequence[Block], rest: Sequence[int]
) -> int:
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


def _place_in_block(name: str, block: Block, arguments: Sequence[RawArgument]) -> list[PlacedValue]:
    free = {leaf.path: leaf for leaf in block.leaves}
    placed: list[PlacedValue] = []
    ordered: list[RawArgument] = []
    for argument in arguments:
        if not argument.is_tree:
            ordered.append(argument)
        elif argument.fields is None:
            placed += _place_all(name, argument, block, free)
        else:
            prefix, complete = _find_prefix(argument, block)
            if argument.by_name or complete:
                placed += _place_by_name(name, argument, block, prefix, free)
            else:
                ordered.append(argument)
    return placed + _place_in_order(name, ordered, block, free, bool(placed))


def _find_prefix(argument: RawArgument, block: Block) -> tuple[str, bool]:
    """Return the prefix of an argument's fields in a block, and whether all of them are there."""
    paths = {leaf.path for leaf in block.leaves}
    candidates = ["", f"{argument.name}."]
    if len(block.type.members) == 1 and block.type.members[0][0]:
        candidates.append(f"{block.type.members[0][0]}.")
    fields = argument.fields or ()
    best = max(candidates, key=lambda prefix: sum(prefix + field.path in paths for field in fields))
    return best, all(best + field.path in paths for field in fields)


def _place_by_name(
    name: str, argument: RawArgument, block: Block, prefix: str, free: dict[str, Leaf]
) -> Iterator[PlacedValue]:
    assert argument.fields is not None
    unknown = [field.path for field in argument.fields if prefix + field.path not in free]
    missing = []
    if argument.by_name:
        inside = [path for path in free if path.startswith(prefix)]
        missing = [path for path in inside if path[len(prefix) :] not in {f.path for f in argument.fields}]
    if unknown:
        parts = [f"{block} has no free member {', '.join(map(repr, unknown))}"]
        parts += [f"no value is passed for {', '.join(map(repr, missing))}"] if missing else []
        stripped = any(not member for member, _, _ in block.type.members)
        parts.append(f"its members are {_list_leaves(block.leaves)}")
        parts += ["the code has no names, so pass values in order"] if stripped else []
        raise ArgumentValueError(f"{name}: {argument}: {'; '.join(parts)}")
    for field in argument.fields:
        leaf = free.pop(prefix + field.path)
        yield _place_value(name, argument, field, block, leaf)


def _place_all(
    name: str, argument: RawArgument, block: Block, free: dict[str, Leaf]
) -> Iterator[PlacedValue]:
    """Give an argument the free members: those of a structure of its name, if there is one, else all."""
    prefix = f"{argument.name}."
    if not any(path.startswith(prefix) for path in free):
        prefix = ""
    for path in [path for path in free if path.startswith(prefix)]:
        leaf = free.pop(path)
        scalar, counts, _ = find_axes(leaf.type)
        kind = _SCALARS.get((scalar.kind, scalar.width, scalar.signed))
        if kind is None:
            raise ArgumentValueError(
                f"{name}: {argument}: {path!r} of {block} is {leaf.type}, which has no dtype"
            )
        yield _place_value(name, argument, Field(path[len(prefix) :], kind, counts), block, leaf)


def _place_in_order(
    name: str, arguments: Sequence[RawArgument], block: Block, free: Mapping[str, Leaf], others: bool
) -> list[PlacedValue]:
    fields = [(argument, field) for argument in arguments for field in argument.fields or ()]
    leaves = list(free.values())
    if len(fields) != len(leaves):
        given = ", ".join(f"{_name_value(argument, field)} ({field})" for argument, field in fields) or "none"
        left = " left" if others else ""
        raise ArgumentValueError(
            f"{name}: {block} of the code has {len(leaves)} values{left} ({_list_leaves(leaves) or 'none'}), "
            f"the arguments have {len(fields)} ({given})"
        )
    for (argument, field), leaf in zip(fields, leaves, strict=True):
        _check_order(name, argument, field, block, leaf, free)
    return [
        _place_value(name, argument, field, block, leaf)
        for (argument, field), leaf in zip(fields, leaves, strict=True)
    ]


def _check_order(
    name: str, argument: RawArgument, field: Field, block: Block, leaf: Leaf, free: Mapping[str, Leaf]
) -> None:
    """Raise ValueError if a field of a dataclass has the name of a member and would go to another."""
    if not argument.is_tree:
        return
    prefix, _ = _find_prefix(argument, block)
    own = prefix + field.path
    if own in free and own != leaf.path:
        raise ArgumentValueError(
            f"{name}: {argument}: field {field.path!r} would go to {leaf.path!r} of {block}, by its order: "
            f"name all fields like members ({_list_leaves(block.leaves)}), or none"
        )


def _name_value(argument: RawArgument, field: Field) -> str:
    return f"{argument.name}.{field.path}" if field.path else argument.name


def _list_leaves(leaves: Sequence[Leaf]) -> str:
    shown = ", ".join(f"{leaf.path} {leaf.type}" for leaf in leaves[:16])
    return shown + (f" and {len(leaves) - 16} more" if len(leaves) > 16 else "")


def _place_value(name: str, argument: RawArgument, field: Field, block: Block, leaf: Leaf) -> PlacedValue:
    kind = _find_kind(field, leaf.type)
    if kind is None:
        what = f", field {field.path!r}," if field.path and field.path != leaf.path else ""
        raise ArgumentValueError(
            f"{name}: {argument}{what} goes to {leaf.path!r} of {block}, which is {leaf.type} at byte "
            f"{leaf.offset}"
        )
    return PlacedValue(argument, field, kind, block, leaf.offset)


def _find_kind(field: Field, declared: Type) -> DType | None:
    """Return the dtype that packs a value as a member declares it; None if they differ."""
    scalar, counts, strides = find_axes(declared)
    kind = field.kind
    component = dtype.component_type(kind)
    if component is dtype.bool_:  # integers in memory in GLSL
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
