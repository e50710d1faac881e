"""Tensors as of Kompute 0.5 and 0.6: made without a Manager, and used like a list."""

import operator
import weakref
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import vkdispatch_native as native
from vkdispatch.base.context import Context
from vkdispatch.base.errors import ArgumentIndexError, ArgumentTypeError
from vkdispatch.kompute import generations
from vkdispatch.kompute.enums import DataTypes, MemoryTypes
from vkdispatch.kompute.errors import KomputeError
from vkdispatch.kompute.memory import Memory, Tensor, as_floats, checked_memory_type, make_tensor
from vkdispatch.kompute.operations import OpBase

if TYPE_CHECKING:
    from vkdispatch.kompute.commands import Commands

Array = np.ndarray[Any, Any]
_FLOAT = np.dtype(np.float32)


class ListTensor(Tensor):
    """A tensor of float32 that is made without a Manager: `kp.Tensor(data)`, as in 0.5 and 0.6.

    The host has its values from the start. `eval_tensor_create_def([tensor])` of a Manager gives it device
    memory and copies them there. When that Manager ends, the device memory goes and the values stay.

    It is used like a list: `tensor[i]`, `tensor[i] = value`, `iter`, `in`, `reversed`, `len`. `data()`
    returns an array, and a list where `kp.use("0.6")` was called before it was made.
    """

    __slots__ = ("_gives_list", "_values")

    _values: Array | None  # what the host has, where no device memory has a view

    def __init__(self, data: object, tensor_type: MemoryTypes = MemoryTypes.device) -> None:
        """Take data.

        Parameters
        ----------
        data
            What NumPy can turn into float32, flattened in C order.
        tensor_type
            Where the device memory is to lie.

        Raises
        ------
        TypeError
            `data` are no numbers, or `tensor_type` is none.
        RuntimeError
            `data` is empty.
        """
        values = as_floats("data", data)
        if not values.size:
            raise KomputeError("data: a tensor needs at least one element, got none")
        self._memory_type = checked_memory_type(tensor_type, "tensor_type")
        self._data_type, self._dtype, self._size = DataTypes.float, _FLOAT, values.size
        self._values = values
        self._gives_list = generations.is_before_0_7()
        self._initialized = self._is_borrowed = False
        self._block = self._buffer = None
        self._interface, self._retired = {}, ()

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """What the host has, for NumPy; read-only while there is no device memory."""
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
        """Return what the host has: an array, or a list after `kp.use("0.6")`.

        The array is on the memory that operations copy from and to. While there is no device memory, it is a
        read-only copy.
        """
        return self._host_values().tolist() if self._gives_list else np.asarray(self)

    def numpy(self) -> Array:
        """Return what the host has as a new array."""
        return self._host_values().copy()

    def __getitem__(self, index: int) -> float:
        """Return an element. Raises IndexError and TypeError as a list."""
        return float(self._host_values()[self._index(index)])

    def __setitem__(self, index: int, value: float) -> None:
        """Set an element of what the host has. Raises IndexError and TypeError as a list."""
        position = self._index(index)
        try:
            self._host_values()[position] = float(value)
        except (TypeError, ValueError) as error:
            raise ArgumentTypeError(f"value: expected a number, got {value!r}: {error}") from None

    def __iter__(self) -> Iterator[float]:
        return iter(self.vector())

    def __contains__(self, value: object) -> bool:
        """Whether a number, rounded to float32, is among the elements. Raises TypeError for anything else."""
        return bool((self._host_values() == as_floats("value", value)).any())

    def __reversed__(self) -> list[float]:
        return self.vector()[::-1]

    def size(self) -> int:
        """Return the number of elements."""
        return self._size

    def map_data_from_host(self) -> None:
        """Copy what the host has to the device, at once. Raises RuntimeError without device memory."""
        from vkdispatch.kompute.operations import OpSyncDevice

        self._copy_now(OpSyncDevice)

    def map_data_into_host(self) -> None:
        """Copy what the device has to the host, at once. Raises RuntimeError without device memory."""
        from vkdispatch.kompute.operations import OpSyncLocal

        self._copy_now(OpSyncLocal)

    def _copy_now(self, operation: Any) -> None:
        from vkdispatch.kompute.sequence import make_sequence

        self._require()
        require_transfers([self])
        make_sequence(self._context, 0, 0).eval(operation([self]))

    def rebuild(self, data: object, memory_type: MemoryTypes | None = None) -> None:
        """Take other data, of any number of elements; as `kp.Tensor.rebuild`."""
        super().rebuild(data, memory_type)
        on_host = self._memory_type is MemoryTypes.storage
        self._values = as_floats("data", data) if on_host else None

    def destroy(self) -> None:
        """Free the device memory as soon as the device is done with it; the values stay. Idempotent."""
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
                "this kp.Tensor has no device memory: give it some with "
                "manager.eval_tensor_create_def([tensor])"
            )

    def _noun(self) -> str:
        return "kp.Tensor"


def require_transfers(tensors: Sequence[Memory]) -> None:
    """Raise RuntimeError where a tensor is of type `storage`, which 0.5 and 0.6 do not copy from or to."""
    for tensor in tensors:
        if tensor._memory_type is MemoryTypes.storage:
            raise KomputeError("tensors: one is of type storage, which is not copied from or to the host")


class OpTensorCreate(OpBase):
    """Gives tensors device memory where it is recorded, and fills it where it is evaluated.

    What it copies there are the values of when it was recorded, at every evaluation.
    """

    __slots__ = ("_blocks", "_context", "_owners", "_tensors")

    def __init__(
        self, context: Context, owners: "weakref.WeakSet[Any]", tensors: Sequence[ListTensor]
    ) -> None:
        """Take tensors that have no device memory.

        Parameters
        ----------
        owners
            The set of what the Manager destroys when it ends: the tensors are added to it.

        Raises
        ------
        TypeError
            Something else is given.
        RuntimeError
            There are none, or one has device memory.
        """
        if not isinstance(tensors, (list, tuple)):
            raise ArgumentTypeError(f"tensors: expected a list of tensors, got {tensors!r}")
        if not tensors:
            raise KomputeError("tensors: expected at least one tensor, got none")
        for index, tensor in enumerate(tensors):
            if not isinstance(tensor, Tensor):
                raise ArgumentTypeError(f"tensors: expected tensors, got {tensor!r}")
            if tensor._initialized or any(tensor is other for other in tensors[:index]):
                raise KomputeError(f"tensors: number {index} has device memory already, or is given twice")
            if not isinstance(tensor, ListTensor):
                raise KomputeError(
                    f"tensors: number {index} was destroyed; only those of kp.Tensor(data) have values"
                )
        self._context, self._owners, self._tensors = context, owners, tuple(tensors)
        self._blocks: tuple[Any, ...] | None = None

    def init(self) -> None:
        """Make the memory, for all of the tensors or none. Raises RuntimeError where there is too little."""
        if self._blocks is not None:
            return
        made: list[Tensor] = []
        blocks: list[Any] = []
        for tensor in self._tensors:
            values = tensor._host_values()
            made.append(make_tensor(self._context, values, _FLOAT, tensor._memory_type))
            block: Any = None
            if tensor._memory_type is MemoryTypes.device:
                block = native.HostBlock(self._context._native, 0, values.nbytes, "upload")
                np.frombuffer(block, _FLOAT)[:] = values
            blocks.append(block)
        for tensor, new in zip(self._tensors, made, strict=True):
            tensor._take_over(new)
            if tensor._memory_type is not MemoryTypes.storage:
                tensor._values = None
            self._owners.add(tensor)
        self._blocks = tuple(blocks)

    def record(self, commands: "Commands") -> None:
        """Record the copies."""
        assert self._blocks is not None
        for tensor, block in zip(self._tensors, self._blocks, strict=True):
            if block is not None:
                commands.fill(tensor, block)
