"""Layout of the argument block of a kernel, and bindings of its resources."""

from vkdispatch.analyses.packed_buffers import packed_buffers
from vkdispatch.base.dtype import DType, component_type, scalar_layout, uint64, uvec2, uvec3
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.base.record import field, record
from vkdispatch.ir import ImageBinding, Kernel, Op, Storage, expressions_in
from vkdispatch.ir.names import FreshNames
from vkdispatch.ir.variant import PLAIN, SHORT_ARGUMENTS, Variant

# Every device takes push constants of this size.
PUSH_CONSTANT_BYTES = 128
GROUP_COUNT = "group_count"


@record(sealed=True)
class StructElement:
    """A member of the argument block: `count` values of type `dtype` at byte `offset`."""

    name: str
    dtype: DType
    count: int = 1
    offset: int = 0


@record(sealed=True)
class ArgumentLayout:
    """The argument block of a kernel.

    Attributes
    ----------
    members, size
        The members, and the bytes of the block.
    uniform
        Whether it is a uniform block at binding 0 instead of push constants.
    exec_offset, group_count_offset
        Byte offsets of the execution limit and of the count of workgroups of a folded kernel (both uvec3), or
        None.
    addresses, lengths
        Names of the members that hold a buffer's device address (uint64) and its size in bytes (uint64, or
        uvec2 if buffers are bound), by position of the buffer among the resources.
    halves
        Members of 16 bits that are packed in words at the end of the block, with the number of the first half
        of each.
    """

    members: tuple[StructElement, ...]
    size: int
    uniform: bool
    exec_offset: int | None
    group_count_offset: int | None
    addresses: dict[int, str] = field(factory=dict)
    lengths: dict[int, str] = field(factory=dict)
    halves: dict[str, int] = field(factory=dict)

    def offset_of(self, name: str) -> int:
        """Byte offset of a member. Raises ValueError if there is none of that name."""
        for member in self.members:
            if member.name == name:
                return member.offset
        names = ", ".join(member.name for member in self.members)
        raise ArgumentValueError(f"the argument block has no member {name!r}; it has: {names or 'none'}")


def argument_layout(kernel: Kernel, variant: Variant = PLAIN) -> ArgumentLayout:
    """Lay out a kernel's arguments: largest components first, so that no padding is needed."""
    fields: list[tuple[str, DType]] = [(argument.name, argument.dtype) for argument in kernel.arguments]
    names = FreshNames.of_arguments(kernel)
    addresses: dict[int, str] = {}
    lengths: dict[int, str] = {}
    if variant.addressed:
        addresses = {index: names.claim(f"buf{index}_address") for index in _buffers(kernel)}
        lengths = {index: names.claim(f"buf{index}_bytes") for index in _find_measured(kernel)}
        fields += [(name, uint64) for name in (*addresses.values(), *lengths.values())]
    elif packed := packed_buffers(kernel, variant):
        lengths = {
            index: names.claim(f"buf{index}_bytes") for index in _find_measured(kernel) if index in packed
        }
        fields += [(name, uvec2) for name in lengths.values()]
    # The folded form must bind like the plain one, so the larger of them decides.
    total = sum(kind.item_size for _, kind in fields) + uvec3.item_size
    if variant.folded:
        fields.append((GROUP_COUNT, uvec3))
    fields.sort(key=lambda item: -component_type(item[1]).item_size)
    offsets, size = scalar_layout([(kind, 1) for _, kind in fields])
    members = tuple(
        StructElement(name, kind, 1, offset) for (name, kind), offset in zip(fields, offsets, strict=True)
    )
    by_name = {member.name: member.offset for member in members}
    limit = None if kernel.exec_count is None else by_name[kernel.exec_count.name]
    # a multiple of 4, as push constant ranges need
    size = -(-size // 4) * 4
    group_count = by_name[GROUP_COUNT] if variant.folded else None
    uniform = total > PUSH_CONSTANT_BYTES
    halves: dict[str, int] = {}
    if SHORT_ARGUMENTS in variant.lacks:
        small = [member for member in members if component_type(member.dtype).item_size == 2]
        halves = {member.name: (member.offset - small[0].offset) // 2 for member in small}
    return ArgumentLayout(members, size, uniform, limit, group_count, addresses, lengths, halves)


def _buffers(kernel: Kernel) -> list[int]:
    return [resource.index for resource in kernel.resources if isinstance(resource, Storage)]


def _find_measured(kernel: Kernel) -> list[int]:
    """Return the positions of the buffers whose length the kernel reads."""
    found = {
        expr.value.index
        for expr in expressions_in(kernel.body)
        if expr.op is Op.LENGTH and isinstance(expr.value, Storage)
    }
    return sorted(found)


def resource_bindings(kernel: Kernel, layout: ArgumentLayout) -> dict[int, int]:
    """Return the binding of each bound resource, by its position."""
    first = 1 if layout.uniform else 0
    # a view has the index of its buffer
    bound = dict.fromkeys(
        resource.index
        for resource in kernel.resources
        if isinstance(resource, ImageBinding) or resource.index not in layout.addresses
    )
    return {index: first + position for position, index in enumerate(bound)}
