"""Typed arrays in device memory."""

import math
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar, overload

import numpy as np

import vkdispatch_native as native
from vkdispatch.base import dtype
from vkdispatch.base.context import Context, as_int, checked_queue
from vkdispatch.base.cuda_capture import require_cuda
from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    OutOfDeviceMemoryError,
    VkDispatchError,
)
from vkdispatch.base.event import Event, ReadFuture
from vkdispatch.base.fresh import fresh_array
from vkdispatch.base.handle import Handle
from vkdispatch.base.listing import internal
from vkdispatch.base.packing import component_dtype, contiguous, from_bfloat16, to_bfloat16
from vkdispatch.base.pinned import pinned_array
from vkdispatch.base.signal import Signal
from vkdispatch.base.structures import (
    as_structure,
    is_dataclass,
    is_structure,
    structure_from_numpy,
    structure_of,
)

Shape = int | Sequence[int]
Array = np.ndarray[Any, Any]
_D = TypeVar("_D", bound=dtype.dtype)

_MAX_DIMENSIONS = 3
_MAX_BYTES = 1 << 62
_USUAL_ELEMENTS = 1 << 30
_NUMBERS = "fiucb"  # kinds of NumPy dtypes whose arrays show their memory


class EmptyBufferError(VkDispatchError, ValueError, RuntimeError):
    """A buffer of no elements was asked for."""


class OversizedBufferError(OutOfDeviceMemoryError, ValueError):
    """A buffer of more than 2**30 elements was asked for, and the device cannot hold it."""


class Buffer(Handle, Generic[_D]):
    """An array of 0 to 3 dimensions in device memory, one copy for each queue of the context.

    Its contents are undefined until written.

    Attributes
    ----------
    shape
        Elements along each axis.
    var_type
        dtype of an element.
    size
        Number of elements.
    mem_size
        Bytes of one copy.
    shader_shape
        What kernels see as `.shape`: the axes padded with 1 to three, then `size`.
    """

    if TYPE_CHECKING:
        # `Buff[D]` tells by these that a kernel's argument is a buffer of dtype D
        def __getitem__(self, index: Any, /) -> NoReturn: ...
        def __setitem__(self, index: Any, value: Any, /) -> NoReturn: ...
        def _element(self) -> _D: ...

    is_external = False
    owns_memory = True
    is_writable = True
    cuda_ptr = None
    cuda_source = None
    cuda_array_stream = None

    @overload
    def __init__(
        self,
        shape: Shape,
        var_type: "type[_D]",
        external_buffer: None = None,
        *,
        context: Context | None = None,
    ) -> None: ...

    @overload
    def __init__(
        self: "Buffer[Any]",
        shape: Shape,
        var_type: "np.dtype[Any] | type[Any]",
        external_buffer: None = None,
        *,
        context: Context | None = None,
    ) -> None: ...

    def __init__(
        self,
        shape: Shape,
        var_type: "type[_D] | np.dtype[Any] | type[Any]",
        external_buffer: object = None,
        *,
        context: Context | None = None,
    ) -> None:
        """Allocate device memory.

        Parameters
        ----------
        shape
            An int or up to 3 ints.
        var_type
            A dtype such as `vd.float32` (a NumPy dtype is understood too), or a dataclass whose fields are
            dtypes.
        external_buffer
            Memory to be aliased; only the CUDA backend could do that, so it must be None.
        context
            Where; None: the current context.

        Raises
        ------
        TypeError
            `var_type` is no dtype, or `shape` holds something that is no int.
        ValueError
            Too many axes, or a negative or zero size.
        MemoryError
            The device has no room. Beyond 2**30 elements it is a ValueError as well.
        RuntimeError
            `external_buffer` is given, or the backend is the dummy one.
        """
        if external_buffer is not None:
            raise require_cuda("external_buffer", "leave it out and write the data into the buffer")
        self._set_shape(shape, var_type)
        if self.size == 0:
            raise EmptyBufferError(f"shape: a buffer needs at least one element, got {self.shape}")
        super().__init__(context)
        try:
            self._native = native.Buffer(self.context._native, self.mem_size)
        except OutOfDeviceMemoryError as error:
            if self.size <= _USUAL_ELEMENTS:
                raise
            raise OversizedBufferError(f"shape: {error}") from None

    def _set_shape(self, shape: Shape, var_type: Any) -> None:
        self.var_type: DType = checked_dtype(var_type)
        self.shape = checked_shape(shape)
        self.size = math.prod(self.shape)
        self.mem_size = self.size * self.var_type.item_size
        if self.mem_size > _MAX_BYTES:
            raise OversizedBufferError(f"shape: {self.mem_size} bytes are more memory than any device has")
        self.shader_shape = (*self.shape, *(1,) * (_MAX_DIMENSIONS - len(self.shape)), self.size)

    @classmethod
    def empty(
        cls, shape: Shape, var_type: "DType | np.dtype[Any]", *, context: Context | None = None
    ) -> "Buffer[Any]":
        """Return a buffer of no elements: what functions on arrays take and give where there is nothing.

        Raises
        ------
        TypeError, ValueError
            As for a new buffer, or the shape has elements.
        """
        made: Buffer[Any] = cls.__new__(cls)
        made._set_shape(shape, var_type)
        if made.size:
            raise ArgumentValueError(f"shape: expected one of no elements, got {made.shape}")
        Handle.__init__(made, context)
        # bindings need memory
        made._native = native.Buffer(made.context._native, made.var_type.item_size)
        return made

    @internal
    @classmethod
    def of_memory(
        cls, context: Context, memory: native.Buffer, shape: Shape, var_type: "DType | np.dtype[Any]"
    ) -> "Buffer[Any]":
        """Return a buffer on device memory that is there already; both are freed together.

        Raises
        ------
        TypeError, ValueError
            As for a new buffer.
        """
        made: Buffer[Any] = cls.__new__(cls)
        made._set_shape(shape, var_type)
        if made.size == 0:
            raise EmptyBufferError(f"shape: a buffer needs at least one element, got {made.shape}")
        Handle.__init__(made, context)
        made._native = memory
        return made

    @property
    def signals(self) -> list[Signal]:
        """One signal per queue, for the last work given to it so far that writes this buffer."""
        self.require_alive()
        return [Signal._of(self.context, self._native.last_write) for _ in range(self.context.queue_count)]

    def copy_between_queues(self, source: int, target: int | None = None) -> None:
        """Copy what queue `source` has of this buffer to queue `target`, or with None to every other queue.

        It takes its place in the work of both queues: it comes after what was given to `source` and to
        `target` before, and before what is given to either of them later. Between queues of one device the
        copy is the device's, and this call returns at once; between devices it goes through host memory.

        Raises
        ------
        ValueError
            There is no such queue.
        """
        self.require_alive()
        start = checked_queue(source, self.context, "source")
        if target is None:
            ends = [queue for queue in range(self.context.queue_count) if queue != start]
        else:
            ends = [checked_queue(target, self.context, "target")]
        for end in ends:
            self._native.copy_between(start, end)

    def write(self, data: "Array | bytes | bytearray | memoryview", index: int | None = None) -> None:
        """Copy host data in, after the work already given to the queue; `data` may be reused on return.

        Parameters
        ----------
        data
            An array of exactly `mem_size` bytes (its dtype and shape are not looked at), or at most
            `mem_size` bytes, which go to the start of the buffer. A bfloat16 buffer also takes an array of
            `size` floats, and rounds them. A structured array must have the fields of a buffer of structures,
            wherever in its elements.
        index
            The queue whose copy is written; None writes every copy.

        Raises
        ------
        TypeError
            `data` is neither an array nor bytes.
        ValueError
            `data` has the wrong size, there is no such queue, or the buffer is read-only.
        """
        queue = self._writable_queue(index)
        self._native.write(queue, self._checked_bytes(data))

    def write_async(self, data: "Array | bytes | bytearray | memoryview", index: int | None = None) -> Event:
        """Copy host data in without waiting for the device, in the order of the work given to the queue.

        It comes after all that was given to the queue before and uses the buffer, and before what is given to
        it later. Where the device has a queue of its own for copies, it runs beside other work.

        Parameters
        ----------
        data, index
            As for `write`. An array in pinned memory (`vd.empty_pinned`) is copied from where it is: leave it
            alone until the event is done. Any other data is copied to pinned memory first, and may be reused
            on return.

        Returns
        -------
        An event that is done when the buffer has the data.

        Raises
        ------
        TypeError, ValueError
            As `write`.
        MemoryError
            There is no pinned memory left for the data.
        """
        queue = self._writable_queue(index)
        return Event(self.context, self._native.write_async(queue, self._checked_bytes(data)))

    def _writable_queue(self, index: int | None) -> int:
        self.require_alive()
        if not self.is_writable:
            raise ArgumentValueError("the buffer is read-only memory of another library")
        return -1 if index is None else checked_queue(index, self.context, "index")

    def _checked_bytes(self, data: object) -> Any:
        if (
            type(data) is np.ndarray
            and data.nbytes == self.mem_size
            and data.dtype.kind in _NUMBERS
            and data.flags.c_contiguous
            and self.var_type is not dtype.bfloat16
        ):
            return data  # the usual case, without detours
        rounds = isinstance(data, np.ndarray) and data.size == self.size
        octets = self._octets(data, rounds=rounds)
        length = memoryview(octets).nbytes
        if isinstance(data, np.ndarray) and length != self.mem_size:
            raise ArgumentValueError(
                f"data: expected {self.mem_size} bytes ({self._summary()}), got {data.nbytes} "
                f"(shape {data.shape}, {data.dtype})"
            )
        if length > self.mem_size:
            raise ArgumentValueError(
                f"data: expected at most {self.mem_size} bytes ({self._summary()}), got {length}"
            )
        return octets

    def _octets(self, data: object, *, rounds: bool) -> Any:
        """Return host data as contiguous bytes; floats for a bfloat16 buffer rounded if `rounds`."""
        if isinstance(data, np.ndarray):
            if data.dtype.hasobject:
                raise ArgumentTypeError(
                    f"data: an array of dtype {data.dtype} holds Python objects, not numbers"
                )
            if rounds and self.var_type is dtype.bfloat16 and data.dtype.kind == "f":
                data = to_bfloat16(data)
            if data.dtype.names is not None and is_structure(self.var_type):
                data = as_structure(self.var_type, data, "data")
            # As bytes: some dtypes, such as datetimes, do not export their memory.
            return np.ascontiguousarray(data).reshape(-1).view(np.uint8)
        if isinstance(data, memoryview):
            return contiguous(data)
        if isinstance(data, (bytes, bytearray)):
            return data
        raise ArgumentTypeError(
            f"data: expected a NumPy array or bytes, got {type(data).__name__}; use np.asarray(...)"
        )

    def read(self, index: int | None = None, out: "Array | None" = None) -> Array:
        """Wait for the work that writes this buffer, and return its contents.

        Parameters
        ----------
        index
            The queue whose copy is read; None stacks every queue's copy along a new leading axis.
        out
            A C-contiguous, writable array of the result's shape and dtype to fill and return
            (complex32: float16 with a last axis of 2; bfloat16: uint16).

        Returns
        -------
        An array of shape `shape` plus the element's own axes; complex32 is widened to complex64, bfloat16 to
        float32. Structures give a structured array.

        Raises
        ------
        ValueError
            There is no such queue, or `out` does not match.
        """
        self.require_alive()
        return self._read(0, self.shape, index, out)

    def _read(self, start: int, elements: tuple[int, ...], index: int | None, out: "Array | None") -> Array:
        """Read elements of this shape, from the flat index `start` on."""
        shape, component = self._host_layout(elements)
        queues: Sequence[int]
        if index is None:
            queues = range(self.context.queue_count)
            shape = (len(queues), *shape)
        else:
            queues = (checked_queue(index, self.context, "index"),)
        host = fresh_array(shape, component) if out is None else _checked_out(out, shape, component)
        if host.size:
            offset = start * self.var_type.item_size
            for queue in queues:
                memory: Any = host if index is not None else host[queue : queue + 1]
                self._native.read_into(queue, memory, offset)
        # What NumPy lacks is widened, unless the caller's own memory was filled.
        widened = _WIDENED.get(self.var_type) if out is None else None
        return host if widened is None else widened(host)

    def read_async(self, index: int = 0, out: "Array | None" = None) -> ReadFuture:
        """Have the contents copied to the host, and return at once.

        They are those of now, so to speak: what is given to the queue later does not show. Where the device
        has a queue of its own for copies, the copy runs beside other work.

        Parameters
        ----------
        index
            The queue whose copy is read.
        out
            A C-contiguous array in pinned memory (`vd.empty_pinned`, or a part of one) of the result's shape
            and dtype, to be filled; leave it alone until the future is done. None makes one.

        Returns
        -------
        A future of what `read(index)` returns: `future.result()`, or `await future` in an asyncio program.

        Raises
        ------
        TypeError, ValueError
            There is no such queue, or `out` does not match or is not pinned.
        MemoryError
            There is no pinned memory left.
        """
        self.require_alive()
        queue = checked_queue(index, self.context, "index")
        shape, component = self._host_layout(self.shape)
        if out is None:
            host = pinned_array(self.context, queue, shape, component)
        else:
            host = _checked_out(out, shape, component)
        memory: Any = host.reshape(-1).view(np.uint8)
        try:
            points = self._native.read_async(queue, memory)
        except ValueError as error:
            raise ArgumentValueError(str(error)) from None
        convert = _WIDENED.get(self.var_type) if out is None else None
        if convert is None and out is None and self.context.borrowed:
            convert = np.copy  # pinned memory ends with a device that is somebody else's
        return ReadFuture(self.context, points, host, convert)

    def write_range(
        self, data: "Array | bytes | bytearray | memoryview", start: int = 0, index: int | None = None
    ) -> None:
        """Copy host data into a part of the buffer, after the work already given to the queue.

        Parameters
        ----------
        data
            An array, or bytes, of whole elements; its dtype and shape are not looked at. A bfloat16 buffer
            also takes an array of floats, and rounds them.
        start
            The flat index of the first element to write.
        index
            The queue whose copy is written; None writes every copy.

        Raises
        ------
        TypeError
            `data` is neither an array nor bytes, or `start` no int.
        ValueError
            `data` is no count of whole elements, or reaches beyond the buffer, or there is no such queue.
        """
        queue = self._writable_queue(index)
        octets = self._octets(data, rounds=True)
        size = memoryview(octets).nbytes
        if size % self.var_type.item_size:
            raise ArgumentValueError(
                f"data: {size} bytes are no whole elements of {self.var_type.name}, which take "
                f"{self.var_type.item_size} each"
            )
        flat = as_int(start)
        if flat is None:
            raise ArgumentTypeError(f"start: expected an int, got {start!r}")
        first, _ = self._checked_range(flat, flat + size // self.var_type.item_size)
        if size:
            self._native.write(queue, octets, first * self.var_type.item_size)

    def read_range(
        self, start: int, stop: int, index: int | None = None, out: "Array | None" = None
    ) -> Array:
        """Wait for the work that writes this buffer, and return a part of its contents.

        Parameters
        ----------
        start, stop
            Flat indices: the first element to read, and the one after the last.
        index, out
            As in `read`.

        Returns
        -------
        As of `read`, with `stop - start` elements in place of `shape`.

        Raises
        ------
        TypeError
            `start` or `stop` is no int.
        ValueError
            They are no range of the buffer's elements, there is no such queue, or `out` does not match.
        """
        self.require_alive()
        start, stop = self._checked_range(start, stop)
        return self._read(start, (stop - start,), index, out)

    def _checked_range(self, start: int, stop: int) -> tuple[int, int]:
        try:
            first, last = operator.index(start), operator.index(stop)
        except TypeError:
            raise ArgumentTypeError(f"start, stop: expected ints, got {start!r} and {stop!r}") from None
        if not 0 <= first <= last <= self.size:
            raise ArgumentValueError(
                f"start, stop: elements {first} to {last} are no range of a buffer of {self.size}"
            )
        return first, last

    def _host_layout(self, elements: tuple[int, ...]) -> tuple[tuple[int, ...], np.dtype[Any]]:
        """Return shape and dtype of the array that takes elements of this shape."""
        if is_structure(self.var_type):
            return elements, self.var_type.host
        if self.var_type is dtype.complex32:
            return (*elements, 2), np.dtype(np.float16)
        if dtype.is_complex(self.var_type):
            return elements, np.dtype(dtype.to_numpy_dtype(self.var_type))
        return (*elements, *self.var_type.true_numpy_shape), component_dtype(self.var_type)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if copy is False:
            raise ArgumentValueError("copy: a buffer lies in device memory; its array is always a copy")
        array = self.read(0)
        return array if dtype is None else array.astype(dtype, copy=False)

    def _summary(self) -> str:
        return f"shape {self.shape}, {self.var_type.name}"

    def _release(self) -> None:
        # Absent when the allocation failed.
        memory = getattr(self, "_native", None)
        if memory is not None:
            memory.destroy()

    def __repr__(self) -> str:
        return (
            f"Buffer {self._handle}:\n"
            f"\tShape: {self.shape}\n"
            f"\tType: {self.var_type.name}\n"
            f"\tSize: {self.size} elements, {self.mem_size} bytes\n"
            f"\tQueues: {self.context.queue_count}\n"
        )


def _complex_of_pairs(pairs: Array) -> Array:
    return pairs.astype(np.float32).view(np.complex64)[..., 0]


_WIDENED: dict[DType, Callable[[Array], Array]] = {
    dtype.complex32: _complex_of_pairs,
    dtype.bfloat16: from_bfloat16,
}


def _checked_out(out: object, shape: tuple[int, ...], component: np.dtype[Any]) -> Array:
    if not isinstance(out, np.ndarray):
        raise ArgumentTypeError(f"out: expected a NumPy array, got {type(out).__name__}")
    if out.shape != shape or out.dtype != component:
        raise ArgumentValueError(
            f"out: expected shape {shape} of {component}, got shape {out.shape} of {out.dtype}"
        )
    if not (out.flags.c_contiguous and out.flags.writeable):
        raise ArgumentValueError("out: expected a C-contiguous, writable array; use np.empty(...)")
    return out


def checked_dtype(value: object) -> DType:
    """Return a dtype that memory can hold, from a dtype or a NumPy dtype.

    Raises
    ------
    TypeError
        `value` is neither.
    ValueError
        There is no matching dtype.
    """
    if isinstance(value, type) and issubclass(value, dtype.dtype):
        if not hasattr(value, "name"):
            raise ArgumentTypeError(
                f"var_type: {value.__name__} cannot be stored in memory; use vd.float32 or the like"
            )
        return value
    if is_dataclass(value):
        return structure_of(value)
    if isinstance(value, np.dtype) and value.names is not None:
        return structure_from_numpy(value)
    if isinstance(value, (np.dtype, str)) or (isinstance(value, type) and issubclass(value, np.generic)):
        return dtype.from_numpy_dtype(value)
    raise ArgumentTypeError(f"var_type: expected a vkdispatch dtype such as vd.float32, got {value!r}")


def checked_shape(shape: object) -> tuple[int, ...]:
    """Return a shape as a tuple of ints.

    Raises
    ------
    TypeError
        It is neither an int nor a sequence of ints.
    ValueError
        It has more than 3 axes or a negative one.
    """
    if isinstance(shape, (str, bytes)):
        raise ArgumentTypeError(f"shape: expected an int or up to 3 ints, got {shape!r}")
    try:
        axes = tuple(shape) if hasattr(shape, "__iter__") else (shape,)
        if any(isinstance(axis, (bool, np.bool_)) for axis in axes):
            raise TypeError
        result = tuple(operator.index(axis) for axis in axes)
    except TypeError:
        raise ArgumentTypeError(f"shape: expected an int or up to 3 ints, got {shape!r}") from None
    if len(result) > _MAX_DIMENSIONS:
        raise ArgumentValueError(
            f"shape: a buffer has at most {_MAX_DIMENSIONS} axes, got {len(result)} in {result}"
        )
    if any(axis < 0 for axis in result):
        raise ArgumentValueError(f"shape: sizes cannot be negative, got {result}")
    return result


def asbuffer(array: Array, *, context: Context | None = None) -> "Buffer[Any]":
    """Make a buffer of an array's shape and dtype and write the array to it.

    In the current context, unless `context` is given.

    Raises
    ------
    TypeError
        `array` is no NumPy array.
    ValueError
        No dtype matches the array's, or it has more than 3 axes.
    """
    if hasattr(array, "__cuda_array_interface__"):
        return from_cuda_array(array)
    if not isinstance(array, np.ndarray):
        raise ArgumentTypeError(
            f"array: expected a NumPy array, got {type(array).__name__}; use np.asarray(...)"
        )
    if array.dtype.names is not None:
        kind: DType = structure_from_numpy(array.dtype)
    else:
        kind = dtype.from_numpy_dtype(array.dtype.newbyteorder("="))
    if not array.size:
        return Buffer.empty(array.shape, kind, context=context)
    buffer: Buffer[Any] = Buffer(array.shape, kind, context=context)
    # Device memory is in native byte order.
    buffer.write(array.astype(array.dtype.newbyteorder("="), copy=False))
    return buffer


def from_cuda_array(
    obj: object,
    var_type: "type[dtype.dtype] | None" = None,
    require_contiguous: bool = True,
    writable: bool | None = None,
    keepalive: bool = True,
) -> "Buffer[Any]":
    """Alias memory of a CUDA array as a buffer; the CUDA backend alone can do so.

    Raises
    ------
    RuntimeError
        The backend is not CUDA.
    """
    raise require_cuda("from_cuda_array", "copy with vd.asbuffer(array.get())")
