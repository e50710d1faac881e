"""Memory of arrays: storages, and views that show elements of a storage by shape and strides."""

from typing import Any

from vkdispatch.base.buffer import Buffer
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.base.native_module import native
from vkdispatch.numpy.core.dtypes import Kind, kernel_type

Shape = tuple[int, ...]
Storage = native.Storage
View = native.View
c_strides = native.c_strides
is_c_order = native.is_c_order


class _Refusal(list[Any]):
    """In place of readers of a memory that must not be written: the reason."""

    def __init__(self, reason: str) -> None:
        self.reason = reason


def refuse_writes(storage: Storage, reason: str) -> None:
    """Have every write to a memory raise ValueError with this message."""
    memory = storage.memory
    memory.readers = _Refusal(reason)
    memory.watch()


def require_writable(memory: native.Buffer) -> None:
    """Raise ValueError if `refuse_writes` was called for a memory."""
    if type(memory.readers) is _Refusal:
        raise ArgumentValueError(memory.readers.reason)


def share_storage(storage: Storage, kind: Kind | None = None, *, is_read_only: bool = False) -> Storage:
    """Return another storage on the same memory: of elements of another dtype, or read-only for arrays."""
    storage.share()
    own = storage.buffer
    if kind is not None:
        length = storage.nbytes // kind.itemsize
        own = Buffer.of_memory(storage.context, storage.memory, (length,), kernel_type(kind))
    other = Storage(own, is_shared=True)
    other.is_read_only = is_read_only or storage.is_read_only
    return other


def part_of(view: View, number: int, kind: Kind) -> View:
    """Return the view of the real parts of complex numbers (0), or of the imaginary ones (1)."""
    storage = share_storage(view.storage, kind)
    strides = tuple(2 * stride for stride in view.strides)
    return View(storage, view.shape, kind, 2 * view.offset + number, strides)


def is_read_only(view: View) -> bool:
    """Whether a view must not be written: it is one of `broadcast_to`, or it may show an element twice."""
    if view.storage.is_read_only or view.storage.memory.read_only:
        return True
    if view.size == 0:
        return False
    axes = zip(view.shape, view.strides, strict=True)
    reach = 0
    for stride, length in sorted((abs(stride), length) for length, stride in axes if length > 1):
        if stride <= reach:
            return True
        reach += stride * (length - 1)
    return False


def is_f_order(view: View) -> bool:
    """Whether the elements of a view lie one behind the other with the first axis changing fastest."""
    return is_c_order(view.shape[::-1], view.strides[::-1])


def overlaps(first: View, second: View) -> bool:
    """Whether two views may show the same element."""
    if first.storage.memory is not second.storage.memory or not (first.size and second.size):
        return False
    a, b = bounds(first), bounds(second)
    item, other = first.dtype.itemsize, second.dtype.itemsize
    return a[0] * item < (b[1] + 1) * other and b[0] * other < (a[1] + 1) * item


def bounds(view: View) -> tuple[int, int]:
    """Return the places of the first and the last element that a view shows."""
    low = high = view.offset
    for length, stride in zip(view.shape, view.strides, strict=True):
        if stride < 0:
            low += (length - 1) * stride
        else:
            high += (length - 1) * stride
    return low, high


def broadcast_strides(shape: Shape, view: View) -> Shape:
    """Return the strides with which a view has a larger shape: 0 along axes on which it is repeated."""
    return stretch(shape, view.shape, view.strides)


def stretch(shape: Shape, own: Shape, strides: Shape) -> Shape:
    """Return the strides with which elements of one shape have a larger one; see `broadcast_strides`."""
    kept = (0 if length == 1 else stride for length, stride in zip(own, strides, strict=True))
    return (*(0,) * (len(shape) - len(own)), *kept)


def reshape_strides(view: View, shape: Shape) -> Shape | None:
    """Return the strides with which a view has another shape of the same size; None if it has none."""
    if view.is_contiguous or view.size == 0:
        return c_strides(shape)
    # neighbouring axes that lie as one are taken together, and parted again
    runs: list[tuple[int, int]] = []
    for length, stride in zip(view.shape, view.strides, strict=True):
        if length == 1:
            continue
        if runs and runs[-1][1] == stride * length:
            runs[-1] = (runs[-1][0] * length, stride)
        else:
            runs.append((length, stride))
    strides: list[int] = []
    axes = list(reversed(shape))
    position = 0
    for run, stride in reversed(runs):
        step = stride
        rest = run
        while rest > 1:
            if position == len(axes) or rest % axes[position]:
                return None
            strides.append(step)
            step *= axes[position]
            rest //= axes[position]
            position += 1
    strides += [1] * (len(axes) - position)
    return tuple(reversed(strides))
