"""The arguments of a kernel given as GLSL or SPIR-V, its blocks, and the values that it takes."""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base import dtype
from vkdispatch.base.derived_dtypes import FixedArray, is_dataclass, placed_type
from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.base.record import record
from vkdispatch.base.spirv.interface import Interface, Resource, Type
from vkdispatch.codegen.arguments import image_binding, is_image, leaf_fields
from vkdispatch.codegen.description import BindingType
from vkdispatch.compiler.ir import ImageBinding

# ---- The arguments of a kernel given as GLSL or SPIR-V, as the user declares them ------------------------


Place = tuple[int, int]
_WANTED = "Buff[...], Const[...], Var[...], Img2[...], a dataclass of dtypes, dict or a dictionary of dtypes"
_MAX_FIELDS = 4096


@record
class Field:
    """A value of an argument: its path in the argument, its dtype, and the shape if it is an array."""

    path: str
    kind: DType
    shape: tuple[int, ...] = ()

    def __str__(self) -> str:
        return self.kind.name + "".join(f"[{count}]" for count in self.shape)


@record
class RawArgument:
    """An argument as the user declares it.

    Attributes
    ----------
    origin
        The annotation's class, such as `vc.Buffer`, or a dataclass, or dict.
    fields
        Its values; None for `dict`, which takes those of the code.
    place
        Set and binding, or the name of a block, if the user gave one.
    """

    name: str
    origin: Any
    fields: tuple[Field, ...] | None
    place: Place | str | None = None

    @property
    def is_resource(self) -> bool:
        """Whether it is bound rather than passed by value."""
        return self.origin is vc.Buffer or is_image(self.origin)

    @property
    def is_tree(self) -> bool:
        """Whether calls give it as a dataclass or a dictionary."""
        return self.by_name or is_dataclass(self.origin)

    @property
    def by_name(self) -> bool:
        """Whether its values go only to members of the same names."""
        return self.origin is dict

    @property
    def kind(self) -> DType:
        """The dtype of a resource's elements, or of a single value."""
        assert self.fields is not None
        return self.fields[0].kind

    @property
    def image(self) -> ImageBinding | None:
        """The image, or None. Raises ValueError for texels that no format has."""
        return image_binding(0, self.name, self.origin, self.kind) if is_image(self.origin) else None

    @property
    def binding_type(self) -> BindingType:
        """How a resource is bound, unless the code has a uniform block there."""
        image = self.image
        if image is None:
            return BindingType.STORAGE_BUFFER
        return BindingType.STORAGE_IMAGE if image.storage else BindingType.SAMPLER

    def __str__(self) -> str:
        kinds = ", ".join(map(str, self.fields or ()))
        called = getattr(self.origin, "__name__", self.origin)
        return f"argument {self.name!r} ({called}{' of ' if kinds else ''}{kinds})"


def read_arguments(arguments: object) -> tuple[RawArgument, ...]:
    """Parse the `arguments` of `glsl_kernel` or `spirv_kernel`.

    Raises
    ------
    TypeError
        They are not pairs of name and annotation, or an annotation has no dtype.
    ValueError
        A name is not a Python name or occurs twice, or an annotation is not supported.
    """
    if isinstance(arguments, Mapping):
        arguments = list(arguments.items())
    if isinstance(arguments, (str, bytes)) or not isinstance(arguments, Sequence):
        raise ArgumentTypeError(
            "arguments: expected a list such as [('data', Buff[f32]), ('alpha', Const[f32])], "
            f"got {arguments!r}"
        )
    declared: list[RawArgument] = []
    for item in arguments:
        if not isinstance(item, (tuple, list)) or len(item) not in (2, 3):
            raise ArgumentTypeError(
                f"arguments: expected (name, annotation) or (name, annotation, binding), got {item!r}"
            )
        name, annotation, *place = item
        if not isinstance(name, str) or not name.isidentifier():
            raise ArgumentValueError(f"arguments: expected a Python name, got {name!r}")
        if name in [argument.name for argument in declared]:
            raise ArgumentValueError(f"arguments: {name!r} is there twice")
        declared.append(_parse_argument(name, annotation, _parse_place(name, place[0]) if place else None))
    return tuple(declared)


def _parse_place(name: str, value: object) -> Place | str:
    if isinstance(value, str) and value:
        return value
    numbers = value if isinstance(value, tuple) else (0, value)
    match numbers:
        case (int(in_set), int(binding)) if in_set >= 0 and binding >= 0:
            return (in_set, binding)
    raise ArgumentValueError(
        f"argument {name!r}: expected a binding, a tuple of set and binding, or the name of a block, got "
        f"{value!r}"
    )


def _parse_argument(name: str, annotation: Any, place: Place | str | None) -> RawArgument:
    if annotation is dict:
        return RawArgument(name, dict, None, place)
    if isinstance(annotation, Mapping):
        fields = tuple(_read_fields(f"argument {name!r}", annotation))
        if not fields:
            raise ArgumentValueError(f"argument {name!r}: expected {_WANTED}, got {annotation!r}")
        return RawArgument(name, dict, fields, place)
    if is_dataclass(annotation):
        return RawArgument(name, annotation, tuple(_read_fields(f"argument {name!r}", annotation)), place)
    origin = getattr(annotation, "__origin__", None)
    kinds: tuple[Any, ...] = getattr(annotation, "__args__", ())
    if origin is None or len(kinds) != 1:
        raise ArgumentTypeError(f"argument {name!r}: expected {_WANTED}, got {annotation!r}")
    if origin not in (vc.Buffer, vc.Constant, vc.Variable) and not is_image(origin):
        raise ArgumentValueError(f"argument {name!r}: expected {_WANTED}, got {annotation!r}")
    return RawArgument(name, origin, (Field("", _parse_kind(f"argument {name!r}", kinds[0])),), place)


def _parse_kind(who: str, kind: Any) -> DType:
    if not (isinstance(kind, type) and dtype.is_dtype(kind) and hasattr(kind, "item_size")):
        raise ArgumentTypeError(f"{who}: expected a dtype such as vd.float32, got {kind!r}")
    return kind


def _read_fields(who: str, annotation: Any, prefix: str = "") -> Iterator[Field]:
    """Yield the values of a dataclass or a dictionary of dtypes."""
    if is_dataclass(annotation):
        for path, kind in leaf_fields(annotation):
            if isinstance(kind, FixedArray):
                yield from _read_member(who, prefix + path, (kind.owner, kind.shape))
                continue
            if isinstance(kind, type) and dtype.is_dtype(kind) and dtype.is_array(kind):
                yield from _read_member(who, prefix + path, (dtype.item_of(kind), dtype.array_shape(kind)))
                continue
            yield Field(prefix + path, _parse_kind(f"{who}: {prefix + path!r}" if prefix else who, kind))
        return
    for key, kind in annotation.items():
        if not isinstance(key, str) or not key.isidentifier():
            raise ArgumentValueError(f"{who}: expected names of members, got {key!r}")
        yield from _read_member(who, prefix + key, kind)


def _read_member(who: str, path: str, kind: Any) -> Iterator[Field]:
    shape: tuple[int, ...] = ()
    if isinstance(kind, tuple) and len(kind) == 2:
        kind, counts = kind
        shape = counts if isinstance(counts, tuple) else (counts,)
        if not all(type(count) is int and count > 0 for count in shape):
            raise ArgumentValueError(
                f"{who}: {path!r}: expected an array as (dtype, length) or (dtype, shape), got {shape!r}"
            )
        if math.prod(shape) > _MAX_FIELDS and (isinstance(kind, Mapping) or is_dataclass(kind)):
            raise ArgumentValueError(f"{who}: {path!r}: {math.prod(shape)} structures; bind a buffer")
    if getattr(kind, "__origin__", None) in (vc.Constant, vc.Variable):
        (kind,) = kind.__args__
    if not isinstance(kind, Mapping) and not is_dataclass(kind):
        yield Field(path, _parse_kind(f"{who}: {path!r}", kind), shape)
    elif not shape:
        yield from _read_fields(who, kind, f"{path}.")
    else:
        for index in range(shape[0]):
            yield from _read_member(who, f"{path}[{index}]", (kind, shape[1:]) if shape[1:] else kind)


# ---- The blocks of a module that take values -------------------------------------------------------------
#
# Push constants and uniform blocks, with their members.


MAX_BYTES = 16384  # of all values of a launch
_MAX_LEAVES = 4096
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
    leaves: list[Leaf] = []
    for leaf in _walk_members(block):
        if len(leaves) == _MAX_LEAVES:
            raise ArgumentValueError(
                f"{name}: a block of the code has more than {_MAX_LEAVES} members; make it a storage buffer"
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
        leaves.append(leaf)
    return leaves


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
    if end > MAX_BYTES:
        sizes = ", ".join(f"{block} {block.type.size}" for block in blocks)
        raise ArgumentValueError(
            f"{name}: the values of a launch take {end} bytes ({sizes}), {MAX_BYTES} are possible; bind a "
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


# ---- The values that a kernel given as GLSL or SPIR-V takes, and their places in its blocks --------------


_FLOATS = (dtype.float16, dtype.float32, dtype.float64)
_SIGNED = (dtype.int8, dtype.int16, dtype.int32, dtype.int64)
_UNSIGNED = (dtype.uint8, dtype.uint16, dtype.uint32, dtype.uint64)
# By kind, bits, and whether integers are signed, as SPIR-V declares them.
_SCALARS: dict[tuple[str, int, bool], DType] = {
    ("float" if kinds is _FLOATS else "int", 8 * kind.item_size, kinds is _SIGNED): kind
    for kinds in (_FLOATS, _SIGNED, _UNSIGNED)
    for kind in kinds
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
    numbers = [_find_named_block(name, argument, blocks) for argument in arguments]
    named = [
        number if number is not None or not argument.is_tree else _find_like_named_block(argument, blocks)
        for number, argument in zip(numbers, arguments, strict=True)
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
    called = [
        number for number, block in enumerate(blocks) if name in [label.lower() for label in block.names]
    ]
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
    path = prefix + field.path
    if path in free and path != leaf.path:
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
    axes = (2,) if dtype.is_complex(kind) else kind.true_numpy_shape
    if (*field.shape, *axes) != counts:
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
