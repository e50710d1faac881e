"""Where each host value lies in a kernel's argument block."""

from vkdispatch.base.dtype import DType, component_type, scalar_layout, uvec3
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.base.record import record
from vkdispatch.codegen.ir import Kernel
from vkdispatch.codegen.variant import PLAIN, Variant

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

    `size` is in bytes. `uniform` says that it is a uniform block at binding 0 instead of push constants.
    `exec_offset` and `group_count_offset` are those of the execution limit and of a folded kernel's count of
    workgroups (both uvec3), or None.
    """

    members: tuple[StructElement, ...]
    size: int
    uniform: bool
    exec_offset: int | None
    group_count_offset: int | None

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
    # All variants of a kernel must bind alike, so the larger one decides.
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
    return ArgumentLayout(members, size, total > PUSH_CONSTANT_BYTES, limit, group_count)
