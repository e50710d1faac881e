"""What tensors and images have in common: device memory and the host's view of it."""

from typing import Any

import numpy as np

from vkdispatch.base.context import Context
from vkdispatch.base.errors import ArgumentTypeError
from vkdispatch.base.native_module import native
from vkdispatch.kompute import log
from vkdispatch.kompute.enums import DataTypes, MemoryTypes
from vkdispatch.kompute.errors import KomputeError
from vkdispatch.kompute.opaque import Opaque

Array = np.ndarray[Any, Any]


HOST_KINDS = {
    MemoryTypes.host: "host",
    MemoryTypes.staging: "host",
    MemoryTypes.deviceAndHost: "device_host",
}


TENSOR_TYPES = {
    "bool": DataTypes.bool,
    "int32": DataTypes.int,
    "uint32": DataTypes.uint,
    "float32": DataTypes.float,
    "float64": DataTypes.double,
    "int16": DataTypes.short,
    "uint16": DataTypes.ushort,
    "int8": DataTypes.char,
    "uint8": DataTypes.uchar,
}


class Memory(Opaque):
    """A tensor or an image: device memory and, except for the type `storage`, a host view of it."""

    __slots__ = (
        "_block",
        "_context",
        "_data_type",
        "_dtype",
        "_initialized",
        "_interface",
        "_is_borrowed",
        "_memory_type",
        "_native",
        "_size",
    )

    _context: Context
    _native: Any  # native.Buffer or native.Image
    _block: Any  # native.HostBlock, or None
    _dtype: "np.dtype[Any]"

    def _set_up(self, context: Context, dtype: "np.dtype[Any]", size: int, memory_type: MemoryTypes) -> None:
        self._context = context
        self._dtype = dtype
        self._data_type = TENSOR_TYPES[dtype.name]
        self._size = size
        self._memory_type = memory_type
        self._initialized = True
        self._is_borrowed = False
        self._block = None
        self._interface: dict[str, Any] = {}

    def _host_block(self, kind: str) -> Any:
        """Allocate the host view, uninitialized: the memory itself, or a copy that operations transfer."""
        block: Any = native.HostBlock(self._context._native, 0, self._size * self._dtype.itemsize, kind)
        values = np.frombuffer(block, self._dtype, self._size)
        self._interface = {
            "version": 3,
            "shape": (self._size,),
            "typestr": self._dtype.str,
            "data": values.__array_interface__["data"],
        }
        self._block = block
        return block

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """The host view, for NumPy. Raises as `data`."""
        self._require_view()
        return self._interface

    def data(self) -> Array:
        """Return the host view: a flat array on the memory that operations copy from and to.

        The next OpSyncDevice copies it to the device. For the types `host` and `deviceAndHost` it is the
        device's memory itself. The array stays valid after `destroy`.

        Raises
        ------
        RuntimeError
            The memory was destroyed, or has the type `storage`, which has no host view.
        """
        self._require_view()
        return np.asarray(self)

    def _require_view(self) -> None:
        self._require()
        if not self._interface:
            raise KomputeError(
                f"data: a {self._class_name()} of type storage has no host view; copy it to type device "
                "with kp.OpCopy"
            )

    def size(self) -> int:
        """Return the number of elements; 0 after `destroy`."""
        return self._size if self._initialized else 0

    def __len__(self) -> int:
        return self.size()

    def memory_type(self) -> MemoryTypes:
        """Return the type of memory."""
        return self._memory_type

    tensor_type = memory_type

    def data_type(self) -> DataTypes:
        """Return the type of an element."""
        return self._data_type

    def is_init(self) -> bool:
        """Whether the object can be used: neither it nor its Manager was destroyed."""
        return self._initialized

    def destroy(self) -> None:
        """Free the device memory once the device no longer uses it. Idempotent.

        Arrays returned by `data()` stay valid. A `vd.Buffer` that the tensor was made on keeps its memory.
        """
        if self._initialized:
            self._initialized = False
            if not self._is_borrowed:
                self._native.destroy()
            log.debug("%s destroyed: number of elements %d", self._class_name(), self._size)

    def _require(self) -> None:
        """Raise RuntimeError if the object was destroyed."""
        if not self._initialized:
            raise KomputeError(f"this {self._class_name()} was destroyed, or its Manager was; make a new one")

    def _class_name(self) -> str:
        return f"kp.{type(self).__name__}"

    @property
    def _byte_size(self) -> int:
        return self._size * self._dtype.itemsize

    @property
    def _is_staged(self) -> bool:
        """Whether the host view is a copy of the device memory."""
        return self._memory_type is MemoryTypes.device


def parse_memory_type(value: object, argument: str = "memory_type") -> MemoryTypes:
    """Return a memory type. Raises TypeError for anything else, numbers included."""
    if not isinstance(value, MemoryTypes):
        raise ArgumentTypeError(f"{argument}: expected a member of kp.MemoryTypes, got {value!r}")
    return value


def parse_floats(argument: str, data: object) -> Array:
    """Convert `data` with NumPy to flat float32, in C order.

    Raises
    ------
    TypeError
        NumPy cannot convert it.
    """
    try:
        return np.asarray(data).astype(np.float32).ravel()
    except (TypeError, ValueError, OverflowError) as error:
        raise ArgumentTypeError(f"{argument}: expected numbers, got {type(data).__name__}: {error}") from None


def parse_elements(argument: str, data: object, dtype: "np.dtype[Any]") -> Array:
    """Convert `data` with NumPy to a flat array of a dtype. Raises TypeError if it is not numeric."""
    try:
        return np.asarray(data).ravel().astype(dtype, copy=False)
    except (TypeError, ValueError, OverflowError) as error:
        raise ArgumentTypeError(f"{argument}: expected numbers, got {type(data).__name__}: {error}") from None


def parse_array(argument: str, data: object, known: "dict[str, Any]") -> Array:
    """Flatten an array in C order, if its dtype is one of `known`.

    Raises
    ------
    TypeError
        `data` is not an array.
    RuntimeError
        The dtype or the byte order is not supported.
    """
    if not isinstance(data, np.ndarray):
        raise ArgumentTypeError(f"{argument}: expected a NumPy array, got {type(data).__name__}")
    if data.dtype.name not in known or not data.dtype.isnative:
        raise KomputeError(
            f"{argument}: expected an array of {', '.join(known)} (native byte order), got {data.dtype}"
        )
    return data.ravel()


def make_memory_error(size: int, error: Exception) -> KomputeError:
    """Return the error of a failed allocation of `size` bytes."""
    return KomputeError(f"there is no memory of this type for {size} bytes: {error}")
