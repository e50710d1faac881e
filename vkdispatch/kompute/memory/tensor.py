"""Tensors, made by a Manager or, as in Kompute 0.5 and 0.6, by a program."""

import operator
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from vkdispatch.base.context import Context
from vkdispatch.base.errors import ArgumentIndexError, ArgumentTypeError, OutOfDeviceMemoryError
from vkdispatch.base.native_module import native
from vkdispatch.kompute import generation, log
from vkdispatch.kompute.enums import DataTypes, MemoryTypes
from vkdispatch.kompute.errors import KomputeError
from vkdispatch.kompute.memory.memory import (
    HOST_KINDS,
    Array,
    Memory,
    make_memory_error,
    parse_elements,
    parse_floats,
    parse_memory_type,
)

_MOST_BYTES = 1 << 62


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
    if length > _MOST_BYTES:
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
        self._has_list_data = generation.is_before_0_7()
        self._initialized = self._is_borrowed = False
        self._block = self._buffer = None
        self._interface, self._retired = {}, ()

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """The host's values, for NumPy; read-only without device memory."""
        if self._values is None:
            return self._interface
        values = self._values
        return {
            "version": 3,
            "shape": values.shape,
            "typestr": values.dtype.str,
            "data": values.tobytes(),
        }

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
