"""Memory of arrays: storages, and views that show elements of a storage by shape and strides."""

import math
from sys import getrefcount
from threading import Lock, get_ident
from typing import Any
from weakref import ReferenceType

from vkdispatch.base.buffer import Buffer, function_buffer
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.base.native_module import native
from vkdispatch.numpy.core.dtypes import Kind

Shape = tuple[int, ...]
_sharing = Lock()


class Storage:
    """A buffer, and the expressions that will read it.

    Attributes
    ----------
    buffer
        The memory.
    nbytes
        Its bytes.
    readers
        Weak references to the expressions that wait to read it; storages of the same memory have one list.
    watched
        The native buffer, if programs may write it by other ways than arrays: it has its readers computed
        before. None if only arrays write it.
    is_immediate
        Whether the host writes it without a call. Expressions that read it are computed at once.
    lender
        The thread that has given the memory to functions as part of expressions; 0 for none, -1 for several.
    """

    __slots__ = ("buffer", "is_immediate", "lender", "nbytes", "readers", "watched")

    def __init__(self, buffer: Buffer[Any], *, is_shared: bool = False) -> None:
        self.buffer = buffer
        self.nbytes = buffer.mem_size
        self.readers: list[ReferenceType[Any]] = []
        self.watched: native.Buffer | None = None
        self.is_immediate = False
        self.lender = 0
        if is_shared:
            self.share()

    @property
    def is_shared(self) -> bool:
        """Whether programs may write the buffer by other ways than arrays."""
        return self.watched is not None

    def share(self) -> None:
        """Let programs write the buffer by other ways than arrays: by its methods, kernels and graphs."""
        memory = self.buffer._native
        with _sharing:
            known = memory.readers
            if known is None:
                memory.readers = self.readers
            elif known is not self.readers:
                own, count = self.readers, len(self.readers)
                known += own[:count]
                self.readers = known
                known += own[count:]  # which threads have added meanwhile
            self.is_immediate = memory.shared
            self.watched = memory
        if self.readers:
            memory.watch()

    def lend(self) -> None:
        """Note that this thread gives the memory to a function, as part of an expression."""
        own = get_ident()
        if self.lender != own:
            self.lender = -1 if self.lender else own

    def move(self) -> None:
        """Go on with a copy of the memory, if another thread may be about to have a function read it.

        Memory that programs know by other ways stays what it is.
        """
        if not self.lender or self.lender == get_ident():
            return
        if getrefcount(self.buffer) > _ALONE:
            with _sharing:
                if self.watched is None:
                    copy = function_buffer(self.buffer.shape, self.buffer.var_type, self.buffer.context)
                    copy._native.copy_from(self.buffer._native)
                    self.buffer = copy
        self.lender = 0


def _count_alone() -> int:
    holder = [object()]
    return getrefcount(holder[0])


# How many references `getrefcount` finds to a buffer that only its storage refers to.
_ALONE = _count_alone()


class _Refusal(list[Any]):
    """In place of readers of a memory that must not be written: the reason."""

    def __init__(self, reason: str) -> None:
        self.reason = reason


def refuse_writes(storage: Storage, reason: str) -> None:
    """Have every write to a memory raise ValueError with this message."""
    memory = storage.buffer._native
    memory.readers = _Refusal(reason)
    memory.watch()


def require_writable(memory: native.Buffer) -> None:
    """Raise ValueError if `refuse_writes` was called for a memory."""
    if type(memory.readers) is _Refusal:
        raise ArgumentValueError(memory.readers.reason)


class View:
    """Elements of a storage. It never changes; what it shows may.

    Attributes
    ----------
    storage, shape, dtype
        Where the elements lie, their lengths along each axis, and their type.
    offset, strides
        The place of the first element, and how far apart neighbours along each axis are, in elements.
    is_contiguous
        Whether the elements lie one behind the other, in C order.
    size
        How many elements.
    """

    __slots__ = ("dtype", "is_contiguous", "offset", "shape", "size", "storage", "strides")

    def __init__(
        self, storage: Storage, shape: Shape, dtype: Kind, offset: int = 0, strides: Shape | None = None
    ) -> None:
        self.storage = storage
        self.shape = shape
        self.dtype = dtype
        self.offset = offset
        self.size = math.prod(shape)
        if strides is None:
            self.strides = c_strides(shape)
            self.is_contiguous = True
        else:
            self.strides = strides
            self.is_contiguous = is_c_order(shape, strides)

    @property
    def is_whole(self) -> bool:
        """Whether the view shows all elements of its storage, in the order in which they lie."""
        return self.is_contiguous and self.offset == 0 and self.size == self.storage.buffer.size


def c_strides(shape: Shape) -> Shape:
    """Return the strides of an array in C order, in elements."""
    if len(shape) <= 1:
        return (1,) * len(shape)
    strides, step = [], 1
    for length in reversed(shape):
        strides.append(step)
        step *= length
    return tuple(reversed(strides))


def is_c_order(shape: Shape, strides: Shape) -> bool:
    """Whether elements with these strides lie one behind the other."""
    step = 1
    for length, stride in zip(reversed(shape), reversed(strides), strict=True):
        if length == 0:
            return True
        if length != 1:
            if stride != step:
                return False
            step *= length
    return True


def overlaps(first: View, second: View) -> bool:
    """Whether two views may show the same element."""
    if first.storage.buffer._native is not second.storage.buffer._native or not (first.size and second.size):
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
