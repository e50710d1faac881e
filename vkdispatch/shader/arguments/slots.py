"""The slots of launchers: buffers, images and values, each with its place in the kernel."""

from collections.abc import Callable, Sequence
from typing import Any

from vkdispatch.base import dtype as dt
from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import VkDispatchError
from vkdispatch.base.memory.image_formats import image_view_type, numeric_kind, select_format
from vkdispatch.base.memory.packing import SCALAR_CODES, pack
from vkdispatch.base.record import record
from vkdispatch.compiler.ir import ImageBinding

# The launcher packs these scalars by itself; C++ has no half.
_LAUNCHER_CODES = {kind: code for kind, code in SCALAR_CODES.items() if kind is not dt.float16}
_VIEW_TYPES = {
    1: image_view_type.VIEW_TYPE_1D,
    2: image_view_type.VIEW_TYPE_2D,
    3: image_view_type.VIEW_TYPE_3D,
}
# The most elements of a buffer for kernels with 32-bit indices. Shapes are int32, and so may be indices. If
# no index is signed, the limit leaves room for indices beyond the last element.
MOST_NARROW = 0x7FFFFFFF
MOST_UNSIGNED = 0xFFFFFFFF - (1 << 16)


@record
class BufferSlot:
    """A slot for a buffer.

    Attributes
    ----------
    binding, shape_member
        Its binding, and the member of the argument block that gets its shape, or None.
    reads, writes
        Whether the kernel reads from it, and writes to it.
    planar
        Whether the kernel indexes it by two axes.
    item_size
        Bytes of an element in the kernel.
    kind
        The dtype that its elements must have; None if the kernel reinterprets memory on purpose.
    most
        The most elements for a kernel with 32-bit indices that accesses them by address. Without addresses
        the limit is MOST_NARROW.
    least_bytes
        The smallest size. Of a `uniform` buffer, this many bytes are bound.
    """

    label: str
    binding: int
    shape_member: str | None
    reads: bool
    writes: bool
    planar: bool = False
    item_size: int = 1
    kind: DType | None = None
    most: int = MOST_NARROW
    least_bytes: int = 0
    uniform: bool = False


@record
class ValueSlot:
    """A slot for a number, vector or matrix, and the member of the argument block that gets it."""

    label: str
    member: str
    kind: DType

    @property
    def scalar_code(self) -> str | None:
        """The `struct` letter if the launcher packs the value by itself, else None."""
        return _LAUNCHER_CODES.get(self.kind)


@record
class ImageSlot:
    """A slot for a sampler or a storage image, and its declaration in the kernel."""

    label: str
    binding: int
    image: ImageBinding
    reads: bool
    writes: bool

    @property
    def view_type(self) -> image_view_type:
        """The view type that the image must have."""
        if self.image.arrayed:
            return image_view_type.VIEW_TYPE_2D_ARRAY
        return _VIEW_TYPES[self.image.dimensions]

    @property
    def native_kind(self) -> int:
        """The format of a storage image, or whether the texels of a sampled one are floats or integers."""
        scalar = dt.component_type(self.image.dtype)
        if not self.image.storage:
            return numeric_kind(scalar)
        return select_format(scalar, dt.component_count(self.image.dtype)).value


Slot = BufferSlot | ImageSlot | ValueSlot


def make_zero(kind: DType) -> Any:
    """Return the zero of a dtype in the form that launchers take."""
    zero: Any = 0
    for count in reversed(kind.true_numpy_shape):
        zero = (zero,) * count
    return zero


def make_packer(slots: Sequence[Slot]) -> Callable[[int, Any], bytes]:
    """Return the function that packs the values that a launcher cannot pack itself."""

    def pack_slot(position: int, value: Any) -> bytes:
        slot = slots[position]
        assert isinstance(slot, ValueSlot)
        try:
            return pack(slot.kind, value, slot.label)
        except VkDispatchError:
            # No slot has this size: the launcher refuses it, and the checking path raises the error.
            return b""

    return pack_slot
