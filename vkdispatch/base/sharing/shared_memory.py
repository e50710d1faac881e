"""Memory on the host as Python's, NumPy's and DLPack's protocols show it."""

from typing import Any

from vkdispatch.base.dtype import DType, complex32, complex64, complex128
from vkdispatch.base.host.packing import component_dtype
from vkdispatch.base.host_numpy import np
from vkdispatch.base.native_module import native
from vkdispatch.base.sharing.exports import (
    HOST,
    IS_COPY,
    READ_ONLY,
    Elements,
    Place,
    export,
    parse_request,
)
from vkdispatch.base.sharing.formats import buffer_format

Array = np.ndarray[Any, Any]


# What strides in Python's buffer protocol are less than.
_MOST = 1 << 63


class HostElements(native.HostView):
    """Elements in memory of the host, with Python's buffer protocol and NumPy's `__array_interface__`."""

    def __init__(self, elements: Elements) -> None:
        size = elements.kind.item_size
        super().__init__(
            elements.owner,
            elements.address,
            buffer_format(elements.kind),
            size,
            elements.shape,
            # that of an axis of one element may be any number
            tuple(stride * size if abs(stride * size) < _MOST else 0 for stride in elements.strides),
            bool(elements.flags & READ_ONLY),
        )
        self._elements = elements

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """The memory in NumPy's protocol: bfloat16 as uint16, complex32 as pairs of float16."""
        kind, shape, strides = self._elements.kind, self.shape, self.strides
        if kind is complex32:
            shape, strides = (*shape, 2), (*strides, 2)
        return {
            "version": 3,
            "shape": shape,
            "typestr": np.dtype(_COMPLEX.get(kind) or component_dtype(kind)).str,
            "data": (self.address, self.read_only),
            "strides": strides,
        }


# As NumPy writes them.
_COMPLEX: dict[DType, str] = {complex64: "c8", complex128: "c16"}


def as_numpy(elements: Elements) -> Array:
    """Return an array that shows elements in memory of the host, and keeps their owner."""
    return np.asarray(HostElements(elements))


class SharedMemory(HostElements):
    """The memory of a buffer or array on the host: `vd.share` makes it.

    It has Python's buffer protocol, NumPy's `__array_interface__` and DLPack, none of which copies:
    `np.asarray(shared)`, `memoryview(shared)` and `torch.from_dlpack(shared)` are views of the memory. The
    memory lives as long as this object or a view of it is referenced, even if the buffer is destroyed or its
    context closed. A kernel takes it for the buffer or array that it was made of.

    Attributes
    ----------
    shape, strides
        The lengths of the axes, and how many bytes neighbours along them are apart. Vectors and matrices add
        their axes after the buffer's.
    source
        The buffer or array.
    ordered
        Whether calls that use the memory return when the device is done with it.
    read_only
        Whether views of it can only be read.
    """

    def __init__(self, source: Any, elements: Elements, ordered: bool) -> None:
        super().__init__(elements)
        self.source = source
        self.ordered = ordered

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[Any, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """Return a DLPack capsule of the memory. See `Buffer.__dlpack__`."""
        request = parse_request(stream, max_version, dl_device, copy)
        return export(request, self.__dlpack_device__, lambda: self._elements, self._copy, self._copy)

    def __dlpack_device__(self) -> Place:
        """Return DLPack's type and number of the device: the CPU."""
        return HOST

    def _copy(self) -> Elements:
        return copy_of(np.asarray(self), self._elements.kind, self.shape)

    def __vkdispatch_argument__(self, is_recorded: bool, is_mapped: bool) -> Any:
        """Return the buffer to use in calls that take buffers."""
        take = getattr(self.source, "__vkdispatch_argument__", None)
        return self.source if take is None else take(is_recorded, is_mapped)

    @staticmethod
    def __vkdispatch_result__(buffer: Any) -> Any:
        """Return what a function on buffers returns for such arguments: a buffer."""
        return buffer


def copy_of(array: Array, kind: DType, shape: tuple[int, ...]) -> Elements:
    """Return a copy in C order of what an array holds as `as_numpy` shows it: elements of this shape."""
    data = np.array(array, order="C")
    return Elements(data, data.ctypes.data, HOST, kind, shape, native.c_strides(shape), IS_COPY)
