"""Copies between the host and a buffer, and pinned memory, waiting or not."""

import math
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from vkdispatch.base import process
from vkdispatch.base.context import Context, Handle, get_context, parse_queue
from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, OutOfDeviceMemoryError
from vkdispatch.base.host_numpy import np
from vkdispatch.base.memory import data as conversions
from vkdispatch.base.memory.protocols import HostProtocols
from vkdispatch.base.native_module import native
from vkdispatch.base.process import LARGE, as_int, show_wait
from vkdispatch.base.synchronization import Event, ReadFuture

if TYPE_CHECKING:
    from numpy.typing import DTypeLike


# ---- Arrays in pinned host memory, which the device accesses directly ------------------------------------


Array = np.ndarray[Any, Any]
_MAX_BYTES = 1 << 62


class _Block(native.HostBlock):
    """Pinned memory. On a device of another library it keeps the context, and so the device, alive."""

    __slots__ = ("context",)


def empty_pinned(shape: "int | tuple[int, ...]", dtype: "DTypeLike" = np.float32) -> Array:
    """Return a new array in pinned memory, with undefined contents.

    `Buffer.write`, `read(out=...)`, `write_async` and `read_async(out=...)` copy directly between device
    memory and this array or any contiguous part of it, at about the speed of the bus. Otherwise it is an
    ordinary array. The memory is kept while an array uses it, even after the context is gone. Pinned memory
    is limited and slow to allocate: reuse it.

    Parameters
    ----------
    shape
        An int or a sequence of ints: elements along each axis.
    dtype
        Any dtype that `np.empty` accepts, except Python objects.

    Raises
    ------
    TypeError
        `dtype` is not a dtype or has Python objects, or `shape` holds something other than ints.
    ValueError
        A size is negative.
    MemoryError
        The system has not enough pinned memory, or the device limits an allocation (NVIDIA: 4 GiB).

    Examples
    --------
    >>> array = vd.empty_pinned((2, 3), np.float32)
    >>> array.shape
    (2, 3)
    """
    return pinned_array(get_context(), 0, conversions.parse_shape(shape), _parse_dtype(dtype))


def pinned_array(context: Context, queue: int, shape: tuple[int, ...], dtype: "np.dtype[Any]") -> Array:
    """Return an array in memory pinned for the device of a queue."""
    count = math.prod(shape)
    if count * dtype.itemsize == 0:
        return np.empty(shape, dtype)
    if count * dtype.itemsize > _MAX_BYTES:
        raise OutOfDeviceMemoryError(f"shape: {count * dtype.itemsize} bytes are more than any system has")
    block: Any = _Block(context._native, queue, count * dtype.itemsize)
    if context.borrowed:
        block.context = context
    return np.frombuffer(block, dtype, count).reshape(shape + dtype.shape)


def _parse_dtype(value: "DTypeLike") -> "np.dtype[Any]":
    try:
        dtype = np.dtype(value)
    except TypeError as error:
        raise ArgumentTypeError(f"dtype: expected a NumPy dtype, got {value!r}") from error
    if dtype.hasobject:
        raise ArgumentTypeError(f"dtype: an array of {dtype} holds Python objects, not numbers")
    return dtype


# ---- Copies between the host and a buffer ----------------------------------------------------------------
#
# Writes and reads, whole or in part, waiting or asynchronous.


class Transfers(HostProtocols, Handle):
    """The methods of a buffer that copy between host and device, and what NumPy and Python ask of arrays."""

    shape: tuple[int, ...]
    var_type: DType
    size: int
    mem_size: int
    is_writable = True
    _native: native.Buffer

    def _summary(self) -> str:
        return f"shape {self.shape}, {self.var_type.name}"

    def write(
        self,
        data: "Array | bytes | bytearray | memoryview",
        index: int | None = None,
        *,
        casting: conversions.Casting = "equiv",
    ) -> None:
        """Copy data from the host, after all earlier work of the queue; `data` can be reused on return.

        Parameters
        ----------
        data
            An array or bytes.

            An array must have the buffer's shape and dtype, or one axis with all elements in C order. Byte
            order and memory layout are free. Vectors and matrices add their own axes after the buffer's. For
            complex dtypes and vectors of two components, an array may hold complex numbers, or their
            components in a last axis of length 2. A bfloat16 buffer takes float32, which is rounded, or
            uint16, which holds its bits. A complex32 buffer takes complex64, which is rounded, or float16
            with a last axis of length 2. For a buffer of structures, a structured array must have the same
            fields, at any offsets.

            Bytes, and the bytes of a memoryview of any format, are copied unchanged to the start of the
            buffer; there may be at most `mem_size` of them.
        index
            The queue whose copy is written; None writes every copy.
        casting
            Which conversions are allowed, as in `numpy.can_cast`: "no", "equiv" (byte order), "safe" or
            "same_kind".

        Raises
        ------
        TypeError
            `data` is neither an array nor bytes, holds Python objects, has a mask, or has other fields than
            the buffer.
        ValueError
            `data` has another shape or dtype, or too many bytes; `index` or `casting` has no such value; or
            the buffer is read-only.

        Examples
        --------
        >>> buffer = vd.Buffer((3,), f32)
        >>> buffer.write(np.array([1, 2, 3], np.float32))
        >>> buffer.read(0)
        array([1., 2., 3.], dtype=float32)
        """
        queue = self._parse_writable_queue(index)
        octets = self._parse_bytes(data, casting)
        if self.mem_size < LARGE:
            self._native.write(queue, octets)
        else:
            self._write_large(queue, octets, 0)

    def _write_large(self, queue: int, octets: Any, offset: int) -> None:
        with show_wait(f"copying {memoryview(octets).nbytes / LARGE:.1f} GiB to the device"):
            self._native.write(queue, octets, offset)

    def write_async(
        self,
        data: "Array | bytes | bytearray | memoryview",
        index: int | None = None,
        *,
        casting: conversions.Casting = "equiv",
    ) -> Event:
        """Copy data from the host without waiting for the device, in the order of the work of the queue.

        The copy runs after all earlier work of the queue that uses the buffer, and before all later work. If
        the device has a separate queue for copies, it runs in parallel with other work.

        Parameters
        ----------
        data, index, casting
            As for `write`. An array in pinned memory (`vd.empty_pinned`) is read in place: do not change it
            until the event is done. Any other data is first copied to pinned memory, and can be reused on
            return.

        Returns
        -------
        An event that is done when the buffer holds the data.

        Raises
        ------
        TypeError, ValueError
            As `write`.
        MemoryError
            There is not enough pinned memory.

        Examples
        --------
        >>> buffer = vd.Buffer((3,), f32)
        >>> event = buffer.write_async(np.array([1, 2, 3], np.float32))
        >>> event.wait()
        True
        >>> buffer.read(0)
        array([1., 2., 3.], dtype=float32)
        """
        queue = self._parse_writable_queue(index)
        return Event._of(self.context, self._native.write_async(queue, self._parse_bytes(data, casting)))

    def _parse_writable_queue(self, index: int | None) -> int:
        self.require_alive()
        if not self.is_writable:
            raise ArgumentValueError("the buffer is read-only memory of another library")
        return -1 if index is None else parse_queue(index, self.context, "index")

    def _parse_bytes(self, data: object, casting: str) -> Any:
        usual = conversions.DIRECT.get(self.var_type)
        if (
            usual is not None
            and type(data) is np.ndarray
            and data.dtype is usual[0]
            and data.shape == self.shape + usual[1]
            and data.flags.c_contiguous
            and casting == "equiv"
        ):
            return data  # the common case, without conversion
        octets = conversions.to_octets(self.var_type, data, self.shape, casting)
        length = memoryview(octets).nbytes
        if length > self.mem_size:
            raise ArgumentValueError(
                f"data: expected at most {self.mem_size} bytes ({self._summary()}), got {length}"
            )
        return octets

    def read(self, index: int | None = None, out: "Array | None" = None) -> Array:
        """Wait for the work that writes this buffer, and return its contents.

        Parameters
        ----------
        index
            The queue whose copy is read; None stacks the copies of all queues along a new leading axis.
        out
            A C-contiguous, writable array of the result's shape and dtype to fill and return
            (complex32: float16 with a last axis of 2; bfloat16: uint16).

        Returns
        -------
        An array of shape `shape` plus the axes of an element. complex32 is widened to complex64, bfloat16 to
        float32. Structures give a structured array.

        Raises
        ------
        ValueError
            There is no such queue, or `out` does not match.

        Examples
        --------
        >>> vd.asbuffer(np.array([1, 2, 3], np.float32)).read(0)
        array([1., 2., 3.], dtype=float32)
        """
        self.require_alive()
        return self._read(0, self.shape, index, out)

    def _read(
        self,
        start: int,
        elements: tuple[int, ...],
        index: int | None,
        out: "Array | None" = None,
        raise_findings: bool = True,
    ) -> Array:
        """Read elements of this shape, from the flat index `start` on.

        With `raise_findings`, errors that the device has found so far are raised, once in each thread.
        """
        shape, component = conversions.layout_in_memory(self.var_type, elements)
        queues: Sequence[int]
        if index is None:
            queues = range(self.context.queue_count)
            shape = (len(queues), *shape)
        else:
            queues = (parse_queue(index, self.context, "index"),)
        host = (
            conversions.fresh_array(shape, component)
            if out is None
            else conversions.check_out(out, shape, component)
        )
        if host.size:
            offset = start * self.var_type.item_size
            read: Any
            if self.mem_size >= LARGE:
                read = self._read_large
            elif process.has_new_kernels:
                read = self._read_first
            else:
                read = self._native.read_into
            for queue in queues:
                memory: Any = host if index is not None else host[queue : queue + 1]
                read(queue, memory, offset, raise_findings)
        # Types that NumPy lacks are widened, except in the caller's own array.
        widened = conversions.WIDENED.get(self.var_type) if out is None else None
        return host if widened is None else widened(host)

    def _read_large(self, queue: int, memory: Any, offset: int, raise_findings: bool) -> None:
        with show_wait(f"copying {memory.nbytes / LARGE:.1f} GiB from the device"):
            self._native.read_into(queue, memory, offset, raise_findings)

    def _read_first(self, queue: int, memory: Any, offset: int, raise_findings: bool) -> None:
        with process.show_first_run():
            self._native.read_into(queue, memory, offset, raise_findings)

    def read_async(self, index: int = 0, out: "Array | None" = None) -> ReadFuture:
        """Start a copy of the contents to the host, and return at once.

        The copy has the results of all earlier work of the queue, and of no later work. If the device has a
        separate queue for copies, it runs in parallel with other work.

        Parameters
        ----------
        index
            The queue whose copy is read.
        out
            A C-contiguous array in pinned memory (`vd.empty_pinned`, or a part of one) of the result's shape
            and dtype, to fill. Do not use it until the future is done. None creates one.

        Returns
        -------
        A future for the result of `read(index)`: call `future.result()`, or `await future` in an asyncio
        program.

        Raises
        ------
        TypeError, ValueError
            There is no such queue, or `out` does not match or is not pinned.
        MemoryError
            There is not enough pinned memory.

        Examples
        --------
        >>> future = vd.asbuffer(np.array([1, 2, 3], np.float32)).read_async()
        >>> future.result()
        array([1., 2., 3.], dtype=float32)
        """
        self.require_alive()
        queue = parse_queue(index, self.context, "index")
        shape, component = conversions.layout_in_memory(self.var_type, self.shape)
        if out is None:
            host = pinned_array(self.context, queue, shape, component)
        else:
            host = conversions.check_out(out, shape, component)
        memory: Any = host.reshape(-1).view(np.uint8)
        try:
            points = self._native.read_async(queue, memory)
        except ValueError as error:
            raise ArgumentValueError(str(error)) from None
        convert = conversions.WIDENED.get(self.var_type) if out is None else None
        if convert is None and out is None and self.context.borrowed:
            convert = np.copy  # pinned memory ends with the device of another library
        return ReadFuture(self.context, points, host, convert)

    def write_range(
        self,
        data: "Array | bytes | bytearray | memoryview",
        start: int = 0,
        index: int | None = None,
        *,
        casting: conversions.Casting = "equiv",
    ) -> None:
        """Copy data from the host to a part of the buffer, after all earlier work of the queue.

        Parameters
        ----------
        data
            An array of the buffer's dtype, as for `write`, of any shape; its elements are written in C order.
            Or the bytes of whole elements.
        start
            The flat index of the first element to write.
        index, casting
            As for `write`.

        Raises
        ------
        TypeError
            As for `write`, or `start` is not an int.
        ValueError
            `data` has another dtype, does not consist of whole elements, or reaches beyond the buffer; or
            `index` or `casting` has no such value.

        Examples
        --------
        >>> buffer = vd.asbuffer(np.zeros(4, np.float32))
        >>> buffer.write_range(np.array([5, 6], np.float32), 1)
        >>> buffer.read(0)
        array([0., 5., 6., 0.], dtype=float32)
        """
        queue = self._parse_writable_queue(index)
        octets = conversions.to_octets(self.var_type, data, None, casting)
        size = memoryview(octets).nbytes
        if size % self.var_type.item_size:
            raise ArgumentValueError(
                f"data: {size} bytes are not a whole number of {self.var_type.name}, of "
                f"{self.var_type.item_size} bytes each"
            )
        flat = as_int(start)
        if flat is None:
            raise ArgumentTypeError(f"start: expected an int, got {start!r}")
        first, _ = self._parse_range(flat, flat + size // self.var_type.item_size)
        if size:
            write = self._native.write if size < LARGE else self._write_large
            write(queue, octets, first * self.var_type.item_size)

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
        As for `read`, with `stop - start` elements instead of `shape`.

        Raises
        ------
        TypeError
            `start` or `stop` is not an int.
        ValueError
            They are not a range of the buffer's elements, there is no such queue, or `out` does not match.

        Examples
        --------
        >>> vd.asbuffer(np.array([1, 2, 3], np.float32)).read_range(1, 3, 0)
        array([2., 3.], dtype=float32)
        """
        self.require_alive()
        start, stop = self._parse_range(start, stop)
        return self._read(start, (stop - start,), index, out)

    def _parse_range(self, start: int, stop: int) -> tuple[int, int]:
        try:
            first, last = operator.index(start), operator.index(stop)
        except TypeError:
            raise ArgumentTypeError(f"start, stop: expected ints, got {start!r} and {stop!r}") from None
        if not 0 <= first <= last <= self.size:
            raise ArgumentValueError(
                f"start, stop: elements {first} to {last} are not a range of a buffer of {self.size}"
            )
        return first, last
