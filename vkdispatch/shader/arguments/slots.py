"""What launchers take: buffers, images and values, each with its place in the kernel."""

from collections.abc import Callable, Sequence
from typing import Any

from vkdispatch.base import dtype
from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import VkDispatchError
from vkdispatch.base.host.packing import SCALAR_CODES, pack
from vkdispatch.base.images.format import image_view_type, numeric_kind, select_format
from vkdispatch.base.record import record
from vkdispatch.ir import ImageBinding

# The launcher packs these scalars by itself; C++ has no half.
_LAUNCHER_CODES = {kind: code for kind, code in SCALAR_CODES.items() if kind is not dtype.float16}
_VIEW_TYPES = {
    1: image_view_type.VIEW_TYPE_1D,
    2: image_view_type.VIEW_TYPE_2D,
    3: image_view_type.VIEW_TYPE_3D,
}
# Elements that a kernel of 32-bit indices takes: shapes are int32, and so may be indices. If none is signed,
# there is room for what comes behind the last element.
MOST_NARROW = 0x7FFFFFFF
MOST_UNSIGNED = 0xFFFFFFFF - (1 << 16)


@record
class BufferSlot:
    """A buffer that a launcher takes: its binding, and the member that gets its shape if any does.

    A `planar` one is indexed by two axes; `item_size` is how many bytes the kernel takes for an element.
    `kind` is what its elements must be, or None where the kernel reinterprets memory on purpose. A kernel of
    32-bit indices takes `most` elements, if it reaches them by address; else at most MOST_NARROW. The buffer
    has `least_bytes` or more, which are what is bound of a `uniform` one.
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
    """A number, vector or matrix that a launcher takes, and the member that gets it."""

    label: str
    member: str
    kind: DType

    @property
    def scalar_code(self) -> str | None:
        """The `struct` letter, if the launcher packs it by itself."""
        return _LAUNCHER_CODES.get(self.kind)


@record
class ImageSlot:
    """A sampler or a storage image that a launcher takes, and how the kernel declares it."""

    label: str
    binding: int
    image: ImageBinding
    reads: bool
    writes: bool

    @property
    def view_type(self) -> image_view_type:
        """What the image must be."""
        if self.image.arrayed:
            return image_view_type.VIEW_TYPE_2D_ARRAY
        return _VIEW_TYPES[self.image.dimensions]

    @property
    def native_kind(self) -> int:
        """The format of a storage image; of a sampled one whether its texels are floats or integers."""
        scalar = dtype.component_type(self.image.dtype)
        if not self.image.storage:
            return numeric_kind(scalar)
        return select_format(scalar, dtype.component_count(self.image.dtype)).value


Slot = BufferSlot | ImageSlot | ValueSlot


def zero_of(kind: DType) -> Any:
    """Return the zero of a dtype as launchers take it."""
    zero: Any = 0
    for count in reversed(kind.true_numpy_shape):
        zero = (zero,) * count
    return zero


def make_packer(slots: Sequence[Slot]) -> Callable[[int, Any], bytes]:
    """Return the function by which a launcher packs what it cannot pack itself."""

    def pack_slot(position: int, value: Any) -> bytes:
        slot = slots[position]
        assert isinstance(slot, ValueSlot)
        try:
            return pack(slot.kind, value, slot.label)
        except VkDispatchError:
            # Of no slot's size: the launcher refuses it, and the checking path says why.
            return b""

    return pack_slot
