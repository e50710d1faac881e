"""Memory of a Manager: tensors and images."""

import math
import operator
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from vkdispatch.base.context import Context
from vkdispatch.base.errors import ArgumentIndexError, ArgumentTypeError, OutOfDeviceMemoryError
from vkdispatch.base.native_module import native
from vkdispatch.kompute import enums, log
from vkdispatch.kompute.enums import DataTypes, KomputeError, MemoryTypes, Opaque

# ---- What tensors and images have in common: device memory and the host's view of it ---------------------


Array = np.ndarray[Any, Any]


HOST_KINDS = {MemoryTypes.host: "host", MemoryTypes.staging: "host", MemoryTypes.deviceAndHost: "device_host"}


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
    return parse_elements(argument, data, np.dtype(np.float32), copy=True)


def parse_elements(argument: str, data: object, dtype: "np.dtype[Any]", copy: bool = False) -> Array:
    """Convert `data` with NumPy to a flat array of a dtype. Raises TypeError if it is not numeric."""
    try:
        return np.asarray(data).ravel().astype(dtype, copy=copy)
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


# ---- Tensors, made by a Manager or, as in Kompute 0.5 and 0.6, by a program ------------------------------


_MAX_BYTES = 1 << 62


class Tensor(Memory):
    """A flat array in device memory.

    `kp.Manager.tensor` and `tensor_t` make tensors. `kp.Tensor(data)` makes a tensor without a Manager, as in
    Kompute 0.5 and 0.6; see `kp.ListTensor`.
    """

    __slots__ = ("_buffer", "_retired")

    _maker = "kp.Manager.tensor or tensor_t"
    _buffer: Any  # the vd.Buffer on this memory, made at the first access
    _retired: tuple[Any, ...]  # host memory from before `rebuild`, which arrays of `data` may use

    def __new__(cls, *_: object, **__: object) -> "ListTensor":
        """Return a `kp.ListTensor` for `kp.Tensor(...)`."""
        return object.__new__(ListTensor if cls is Tensor else cls)

    def rebuild(self, data: object, memory_type: MemoryTypes | None = None) -> None:
        """Replace the data by any number of elements of the same dtype, in new memory.

        Algorithms use the new memory from the next `record` on. Earlier recordings must be recorded again,
        for example by `kp.Sequence.rerecord`; evaluating them raises an error. Arrays returned by `data()`
        before keep the old values, and their memory is freed with the tensor.

        Parameters
        ----------
        data
            Numbers, or an array. As for `kp.Manager.tensor`, an OpSyncDevice copies them to the device.
        memory_type
            The type of memory. None: the current type.

        Raises
        ------
        TypeError
            `data` are not numbers, or `memory_type` is invalid.
        RuntimeError
            `data` is empty, the device is out of memory, or the tensor was destroyed or is on a `vd.Buffer`.
        """
        self._require()
        if self._is_borrowed:
            raise KomputeError("rebuild: this kp.Tensor uses the memory of a vd.Buffer")
        kind = self._memory_type if memory_type is None else parse_memory_type(memory_type)
        other = make_tensor(self._context, parse_elements("data", data, self._dtype), self._dtype, kind)
        before = self._native
        self._replace_with(other)
        before.destroy()

    def _replace_with(self, other: "Tensor") -> None:
        """Take all attributes of another tensor, which is not used afterwards."""
        if self._block is not None:
            self._retired = (*self._retired, self._block)
        for name in (*Memory.__slots__, "_buffer"):
            setattr(self, name, getattr(other, name))

    @property
    def buffer(self) -> Any:
        """The device memory as a `vd.Buffer` of one axis, without a copy, for example to pass to kernels.

        Writes to one are visible in the other. Writes to `data()` become visible with the next OpSyncDevice.

        Raises
        ------
        RuntimeError
            The tensor was destroyed.
        """
        self._require()
        if self._buffer is None:
            from vkdispatch.base.buffer import Buffer  # most programs for Kompute do not need it

            self._buffer = Buffer.of_memory(self._context, self._native, (self._size,), self._dtype)
        return self._buffer

    def set_data(self, data: object) -> None:
        """Write to the host view.

        Raises
        ------
        TypeError
            `data` are not numbers.
        RuntimeError
            The tensor has no host view, or `data` has another number of elements.
        """
        view = self._host_values()
        values = parse_elements("data", data, view.dtype)
        if values.size != view.size:
            raise KomputeError(f"data: expected {view.size} elements, got {values.size}")
        view[:] = values

    def vector(self) -> list[Any]:
        """Return the host view as a list. Raises as `data`."""
        values: list[Any] = self._host_values().tolist()
        return values

    def _host_values(self) -> Array:
        """Return the host's values as a writable array."""
        return Memory.data(self)


def make_tensor(context: Context, data: "Array | int", dtype: Any, memory_type: MemoryTypes) -> Tensor:
    """Make a tensor from an array, or with a number of uninitialized elements.

    Raises
    ------
    RuntimeError
        The size is 0, or the device is out of memory.
    """
    size = data if isinstance(data, int) else data.size
    if size == 0:
        raise KomputeError("data: a tensor needs at least one element, got none")
    kind = np.dtype(dtype)
    length = size * kind.itemsize
    if length > _MAX_BYTES:
        raise KomputeError(f"data: {length} bytes are more memory than any device has")
    tensor: Tensor = object.__new__(Tensor)
    tensor._set_up(context, kind, size, memory_type)
    tensor._buffer, tensor._retired = None, ()
    engine = context._native
    try:
        if memory_type in HOST_KINDS:
            tensor._native = native.Buffer.over(tensor._host_block(HOST_KINDS[memory_type]))
        else:
            tensor._native = native.Buffer(engine, length, shared=context.queue_count > 1)
            if memory_type is MemoryTypes.device:
                tensor._host_block("upload")
    except OutOfDeviceMemoryError as error:
        raise make_memory_error(length, error) from None
    if tensor._interface:
        np.asarray(tensor)[:] = 0 if isinstance(data, int) else data
    log.debug("tensor made: number of elements %d, %s, %s, %d bytes", size, kind, memory_type, length)
    return tensor


def make_tensor_on(buffer: Any, kind: "np.dtype[Any]") -> Tensor:
    """Make a tensor of type `device` on the memory of a `vd.Buffer`, without a copy.

    The host view starts as a copy of the buffer.
    """
    tensor: Tensor = object.__new__(Tensor)
    tensor._set_up(buffer.context, kind, buffer.mem_size // kind.itemsize, MemoryTypes.device)
    tensor._buffer, tensor._retired = buffer, ()
    tensor._native = buffer._native
    tensor._is_borrowed = True
    tensor._host_block("upload")
    buffer._native.read_into(0, np.asarray(tensor).view(np.uint8))
    log.debug("tensor made on a vd.Buffer: number of elements %d, %s", tensor._size, kind)
    return tensor


class ListTensor(Tensor):
    """A tensor of float32 made without a Manager, by `kp.Tensor(data)`, as in Kompute 0.5 and 0.6.

    Its values are in host memory at first. `eval_tensor_create_def([tensor])` of a Manager allocates device
    memory and copies them there. Destroying that Manager frees the device memory; the host keeps the values.

    It supports `tensor[i]`, `tensor[i] = value`, `iter`, `in`, `reversed` and `len`. `data()` returns an
    array, or a list if `kp.use("0.6")` was called before the tensor was made.
    """

    __slots__ = ("_has_list_data", "_values")

    _values: Array | None  # the host's values, unless device memory has a host view

    def __init__(self, data: object, tensor_type: MemoryTypes = MemoryTypes.device) -> None:
        """Make a tensor in host memory.

        Parameters
        ----------
        data
            Anything that NumPy converts to float32, flattened in C order.
        tensor_type
            The type of device memory to allocate later.

        Raises
        ------
        TypeError
            `data` are not numbers, or `tensor_type` is invalid.
        RuntimeError
            `data` is empty.
        """
        values = parse_floats("data", data)
        if not values.size:
            raise KomputeError("data: a tensor needs at least one element, got none")
        self._memory_type = parse_memory_type(tensor_type, "tensor_type")
        self._data_type, self._dtype, self._size = DataTypes.float, values.dtype, values.size
        self._values = values
        self._has_list_data = enums.is_before_0_7()
        self._initialized = self._is_borrowed = False
        self._block = self._buffer = None
        self._interface, self._retired = {}, ()

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """The host's values, for NumPy; read-only without device memory."""
        if self._values is None:
            return self._interface
        values = self._values
        return {"version": 3, "shape": values.shape, "typestr": values.dtype.str, "data": values.tobytes()}

    def data(self) -> Any:
        """Return the host's values: an array, or a list after `kp.use("0.6")`.

        The array is a view of the memory that operations copy from and to. Without device memory it is a
        read-only copy.
        """
        return self._host_values().tolist() if self._has_list_data else np.asarray(self)

    def numpy(self) -> Array:
        """Return the host's values as a new array."""
        return self._host_values().copy()

    def __getitem__(self, index: int) -> float:
        """Return an element. Raises IndexError and TypeError like a list."""
        return float(self._host_values()[self._index(index)])

    def __setitem__(self, index: int, value: float) -> None:
        """Set an element of the host's values. Raises IndexError and TypeError like a list."""
        position = self._index(index)
        try:
            self._host_values()[position] = float(value)
        except (TypeError, ValueError) as error:
            raise ArgumentTypeError(f"value: expected a number, got {value!r}: {error}") from None

    def __iter__(self) -> Iterator[float]:
        return iter(self.vector())

    def __contains__(self, value: object) -> bool:
        """Whether a number, rounded to float32, is among the elements. Raises TypeError for anything else."""
        return bool((self._host_values() == parse_floats("value", value)).any())

    def __reversed__(self) -> list[float]:
        return self.vector()[::-1]

    def size(self) -> int:
        """Return the number of elements."""
        return self._size

    def map_data_from_host(self) -> None:
        """Copy the host's values to the device immediately.

        Raises RuntimeError if there is no device memory, or if it has the type `storage`.
        """
        self._require()
        require_transfers([self])
        if self._is_staged:
            self._native.write(0, np.asarray(self).view(np.uint8))

    def map_data_into_host(self) -> None:
        """Copy the device's values to the host immediately. Raises as `map_data_from_host`."""
        self._require()
        require_transfers([self])
        if self._is_staged:
            self._native.read_into(0, np.asarray(self).view(np.uint8))

    def rebuild(self, data: object, memory_type: MemoryTypes | None = None) -> None:
        """Replace the data by any number of elements. See `kp.Tensor.rebuild`."""
        super().rebuild(data, memory_type)
        on_host = self._memory_type is MemoryTypes.storage
        self._values = parse_floats("data", data) if on_host else None

    def destroy(self) -> None:
        """Free the device memory once the device no longer uses it. The host keeps the values. Idempotent."""
        if self._initialized and self._values is None:
            self._values = np.array(np.asarray(self))
        super().destroy()

    def _index(self, index: object) -> int:
        try:
            position = operator.index(index)  # type: ignore[arg-type]
        except TypeError:
            raise ArgumentTypeError(f"index: expected an int, got {index!r}") from None
        if not -self._size <= position < self._size:
            raise ArgumentIndexError(f"index: {position} is beyond the {self._size} elements of this tensor")
        return position

    def _host_values(self) -> Array:
        return np.asarray(self) if self._values is None else self._values

    def _require(self) -> None:
        if not self._initialized:
            raise KomputeError(
                "this kp.Tensor has no device memory; allocate it with "
                "manager.eval_tensor_create_def([tensor])"
            )

    def _class_name(self) -> str:
        return "kp.Tensor"


def require_transfers(tensors: Sequence[Memory]) -> None:
    """Raise RuntimeError for a tensor of type `storage`, which Kompute 0.5 and 0.6 do not copy."""
    for tensor in tensors:
        if tensor._memory_type is MemoryTypes.storage:
            raise KomputeError("tensors: a tensor of type storage cannot be copied from or to the host")


def upload_block(context: Context, values: Array) -> Any:
    """Return host memory that contains `values`, for copies to the device."""
    block: Any = native.HostBlock(context._native, 0, values.nbytes, "upload")
    np.frombuffer(block, values.dtype)[:] = values
    return block


# ---- Storage images --------------------------------------------------------------------------------------


_STORAGE_IMAGE = 0x2  # VkFormatFeatureFlagBits


_VIEW_2D = 1


# VkFormat of 1, 2 and 4 channels.
IMAGE_FORMATS = {
    "uint8": (13, 20, 41),
    "int8": (14, 21, 42),
    "uint16": (74, 81, 95),
    "int16": (75, 82, 96),
    "uint32": (98, 101, 107),
    "int32": (99, 102, 108),
    "float32": (100, 103, 109),
}


_CHANNELS = (1, 2, 4)


class Image(Memory):
    """A two-dimensional storage image: rows of texels of 1, 2 or 4 channels."""

    __slots__ = ("_channels", "_extent")

    _maker = "kp.Manager.image or image_t"
    _channels: int
    _extent: tuple[int, int]

    def width(self) -> int:
        """Return the number of texels in a row."""
        return self._extent[0]

    def height(self) -> int:
        """Return the number of rows."""
        return self._extent[1]

    def num_channels(self) -> int:
        """Return the number of values in a texel."""
        return self._channels

    @property
    def _is_host_mirrored(self) -> bool:
        """Whether every dispatch copies the texels from the host view, and back.

        The host cannot view the texels themselves.
        """
        return self._memory_type in HOST_KINDS


def make_image(
    context: Context, data: Array, width: int, height: int, channels: int, memory_type: MemoryTypes
) -> Image:
    """Make an image of the first elements of a flat array.

    Raises
    ------
    RuntimeError
        The device does not support images of this kind or size, or `data` has too few elements.
    """
    if channels not in _CHANNELS:
        raise KomputeError(f"num_channels: expected 1, 2 or 4, got {channels}")
    if width < 1 or height < 1:
        raise KomputeError(f"width, height: expected 1 or more, got {width} and {height}")
    size = math.prod((width, height, channels))
    if data.size < size:
        raise KomputeError(
            f"data: {width} x {height} texels of {channels} channels take {size} elements, got {data.size}"
        )
    engine = context._native
    name = data.dtype.name
    texel = IMAGE_FORMATS[name][_CHANNELS.index(channels)]
    if not engine.image_features(texel) & _STORAGE_IMAGE:
        raise KomputeError(
            f"num_channels: this device has no storage images of {channels} channels of {name}"
        )
    image = Image.__new__(Image)
    image._set_up(context, data.dtype, size, memory_type)
    image._extent, image._channels = (width, height), channels
    try:
        image._native = native.Image(
            engine, _VIEW_2D, texel, (width, height, 1), 1, 1, True, shared=context.queue_count > 1
        )
        if memory_type is not MemoryTypes.storage:
            image._host_block("upload")
    except OutOfDeviceMemoryError as error:
        raise make_memory_error(data.nbytes, error) from None
    except (ValueError, OverflowError) as error:
        raise KomputeError(f"width, height: {error}") from None
    if image._interface:
        np.asarray(image)[:] = data[:size]
    what = (width, height, channels, name, memory_type)
    log.debug("image made: %d x %d texels, number of channels %d, %s, %s", *what)
    return image
