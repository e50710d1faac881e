"""Typed arrays in device memory."""

import math
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, NoReturn, Protocol, Self, TypeVar, overload

from vkdispatch.base import dtype
from vkdispatch.base.aliases import names_elsewhere
from vkdispatch.base.context import Context, as_int, parse_queue
from vkdispatch.base.cuda_capture import require_cuda
from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    OutOfDeviceMemoryError,
)
from vkdispatch.base.handle import Handle
from vkdispatch.base.host.data import (
    DIRECT,
    WIDENED,
    Casting,
    check_out,
    layout_in_memory,
    octets_of,
    plain_array,
)
from vkdispatch.base.host.fresh import fresh_array
from vkdispatch.base.host.pinned import pinned_array
from vkdispatch.base.host.protocols import HostProtocols
from vkdispatch.base.host.text import describe_buffer
from vkdispatch.base.host_numpy import np
from vkdispatch.base.native_module import native
from vkdispatch.base.process.listing import internal
from vkdispatch.base.structures import is_dataclass, structure_from_numpy, structure_of
from vkdispatch.base.synchronization.event import Event, ReadFuture
from vkdispatch.base.synchronization.signal import Signal

Shape = int | Sequence[int]
Array = np.ndarray[Any, Any]
# Of a buffer: var_type, shape, size, mem_size and shader_shape.
Layout = tuple[DType, tuple[int, ...], int, int, tuple[int, ...]]
_D = TypeVar("_D", bound=dtype.dtype)

_MAX_DIMENSIONS = 3
_PADDING = ((1, 1, 1), (1, 1), (1,), ())  # by the number of axes
_MAX_BYTES = 1 << 62
_new = object.__new__
_USUAL_ELEMENTS = 1 << 30


class OversizedBufferError(OutOfDeviceMemoryError, ValueError):
    """A buffer of more than 2**30 elements was asked for, and the device cannot hold it."""


class Buffer(HostProtocols, Handle, Generic[_D]):
    """An array of 0 to 3 dimensions in device memory, one copy for each queue of the context.

    Its contents are undefined until written. `copy.copy` and `copy.deepcopy` return a buffer with memory of
    its own in the same context. A pickle holds the contents of every queue's copy; loading it makes a buffer
    in the current context.

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
    _base: "Buffer[Any] | None" = None  # whose memory a view shows
    _order: object = None  # where elements do not lie by `shape`: what calls tell that by, hashable

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
            An int or up to 3 ints. Lengths may be 0.
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
            `shape` has more than 3 axes, or a negative length.
        MemoryError
            The device has no room. Beyond 2**30 elements it is a ValueError as well.
        RuntimeError
            `external_buffer` is given, or the backend is the dummy one.
        """
        if external_buffer is not None:
            raise require_cuda("external_buffer", "leave it out and write the data into the buffer")
        self._set_shape(shape, var_type)
        Handle.__init__(self, context)
        self._allocate(False)

    def _set_shape(self, shape: Shape, var_type: Any) -> None:
        self.var_type, self.shape, self.size, self.mem_size, self.shader_shape = layout_of(shape, var_type)

    def _allocate(self, for_device: bool) -> None:
        # bindings need memory, even of no elements
        size = self.mem_size or self.var_type.item_size
        try:
            self._native = native.Buffer(self.context._native, size, False, for_device)
        except OutOfDeviceMemoryError as error:
            if self.size <= _USUAL_ELEMENTS:
                raise
            raise OversizedBufferError(f"shape: {error}") from None

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
        return cls._of_result(context, memory, layout_of(shape, var_type))

    @classmethod
    def _of_result(cls, context: Context, memory: native.Buffer, layout: Layout) -> "Buffer[Any]":
        """Return a buffer on device memory that is there already, whose layout was made before."""
        made: Buffer[Any] = _new(cls)
        made.var_type, made.shape, made.size, made.mem_size, made.shader_shape = layout
        Handle.__init__(made, context)
        made._native = memory
        return made

    def view(self, var_type: "DType | np.dtype[Any] | type[Any]") -> "Buffer[Any]":
        """Return a buffer on the same memory, with elements of another dtype.

        Nothing is copied or converted, as with `numpy.ndarray.view`: a write to one buffer changes the other.
        The view keeps the memory alive, but cannot be used after this buffer is destroyed.

        Parameters
        ----------
        var_type
            The dtype of the view's elements. If their size differs from that of this buffer's elements, the
            length of the last axis changes: a buffer of float32 of shape (1024, 4) has a view of vec4 of
            shape (1024, 1).

        Raises
        ------
        TypeError
            `var_type` is no dtype.
        ValueError
            The last axis does not hold a whole number of such elements.
        RuntimeError
            The buffer was destroyed.
        """
        self.require_alive()
        kind = parse_dtype(var_type)
        shape = self.shape
        if kind.item_size != self.var_type.item_size:
            octets = (shape[-1] if shape else 1) * self.var_type.item_size
            if not shape or octets % kind.item_size:
                raise ArgumentValueError(
                    f"var_type: the last axis of shape {shape}, of {octets} bytes, is no whole number of "
                    f"{kind.name}, of {kind.item_size} bytes"
                )
            shape = (*shape[:-1], octets // kind.item_size)
        view: Buffer[Any] = Buffer.__new__(Buffer)
        view._set_shape(shape, kind)
        Handle.__init__(view, self.context)
        view._base = base = self if self._base is None else self._base
        view._native = base._native
        view.register_parent(base)
        return view

    @property
    def signals(self) -> list[Signal]:
        """One signal per queue, for the last work given to it so far that writes this buffer."""
        self.require_alive()
        memory = self._native
        return [
            Signal._of(self.context, memory.last_write, memory.check) for _ in range(self.context.queue_count)
        ]

    def copy_between_queues(self, source: int, target: int | None = None) -> None:
        """Copy what queue `source` has of this buffer to queue `target`, or with None to every other queue.

        It takes its place in the work of both queues: it comes after what was given to `source` and to
        `target` before, and before what is given to either of them later. It returns at once. Between devices
        the copy goes through pinned host memory, in parts: where many are under way, or the devices cannot
        share such memory, this call waits for some of them.

        Raises
        ------
        ValueError
            There is no such queue.
        """
        self.require_alive()
        start = parse_queue(source, self.context, "source")
        if target is None:
            ends = [queue for queue in range(self.context.queue_count) if queue != start]
        else:
            ends = [parse_queue(target, self.context, "target")]
        for end in ends:
            self._native.copy_between(start, end)

    def write(
        self,
        data: "Array | bytes | bytearray | memoryview",
        index: int | None = None,
        *,
        casting: Casting = "equiv",
    ) -> None:
        """Copy host data in, after the work already given to the queue; `data` may be reused on return.

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
        """
        queue = self._writable_queue(index)
        self._native.write(queue, self._parse_bytes(data, casting))

    def write_async(
        self,
        data: "Array | bytes | bytearray | memoryview",
        index: int | None = None,
        *,
        casting: Casting = "equiv",
    ) -> Event:
        """Copy host data in without waiting for the device, in the order of the work given to the queue.

        It comes after all that was given to the queue before and uses the buffer, and before what is given to
        it later. Where the device has a queue of its own for copies, it runs beside other work.

        Parameters
        ----------
        data, index, casting
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
        return Event._of(self.context, self._native.write_async(queue, self._parse_bytes(data, casting)))

    def _writable_queue(self, index: int | None) -> int:
        self.require_alive()
        if not self.is_writable:
            raise ArgumentValueError("the buffer is read-only memory of another library")
        return -1 if index is None else parse_queue(index, self.context, "index")

    def _parse_bytes(self, data: object, casting: str) -> Any:
        usual = DIRECT.get(self.var_type)
        if (
            usual is not None
            and type(data) is np.ndarray
            and data.dtype is usual[0]
            and data.shape == self.shape + usual[1]
            and data.flags.c_contiguous
            and casting == "equiv"
        ):
            return data  # without detours
        octets = octets_of(self.var_type, data, self.shape, casting)
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

    def _read(
        self,
        start: int,
        elements: tuple[int, ...],
        index: int | None,
        out: "Array | None" = None,
        tells: bool = True,
    ) -> Array:
        """Read elements of this shape, from the flat index `start` on.

        With `tells`, errors that the device has found until then are raised, once in each thread.
        """
        shape, component = layout_in_memory(self.var_type, elements)
        queues: Sequence[int]
        if index is None:
            queues = range(self.context.queue_count)
            shape = (len(queues), *shape)
        else:
            queues = (parse_queue(index, self.context, "index"),)
        host = fresh_array(shape, component) if out is None else check_out(out, shape, component)
        if host.size:
            offset = start * self.var_type.item_size
            for queue in queues:
                memory: Any = host if index is not None else host[queue : queue + 1]
                self._native.read_into(queue, memory, offset, tells)
        # What NumPy lacks is widened, unless the caller's own memory was filled.
        widened = WIDENED.get(self.var_type) if out is None else None
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
        queue = parse_queue(index, self.context, "index")
        shape, component = layout_in_memory(self.var_type, self.shape)
        if out is None:
            host = pinned_array(self.context, queue, shape, component)
        else:
            host = check_out(out, shape, component)
        memory: Any = host.reshape(-1).view(np.uint8)
        try:
            points = self._native.read_async(queue, memory)
        except ValueError as error:
            raise ArgumentValueError(str(error)) from None
        convert = WIDENED.get(self.var_type) if out is None else None
        if convert is None and out is None and self.context.borrowed:
            convert = np.copy  # pinned memory ends with a device that is somebody else's
        return ReadFuture(self.context, points, host, convert)

    def write_range(
        self,
        data: "Array | bytes | bytearray | memoryview",
        start: int = 0,
        index: int | None = None,
        *,
        casting: Casting = "equiv",
    ) -> None:
        """Copy host data into a part of the buffer, after the work already given to the queue.

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
        """
        queue = self._writable_queue(index)
        octets = octets_of(self.var_type, data, None, casting)
        size = memoryview(octets).nbytes
        if size % self.var_type.item_size:
            raise ArgumentValueError(
                f"data: {size} bytes are no whole elements of {self.var_type.name}, which take "
                f"{self.var_type.item_size} each"
            )
        flat = as_int(start)
        if flat is None:
            raise ArgumentTypeError(f"start: expected an int, got {start!r}")
        first, _ = self._parse_range(flat, flat + size // self.var_type.item_size)
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
        start, stop = self._parse_range(start, stop)
        return self._read(start, (stop - start,), index, out)

    def _parse_range(self, start: int, stop: int) -> tuple[int, int]:
        try:
            first, last = operator.index(start), operator.index(stop)
        except TypeError:
            raise ArgumentTypeError(f"start, stop: expected ints, got {start!r} and {stop!r}") from None
        if not 0 <= first <= last <= self.size:
            raise ArgumentValueError(
                f"start, stop: elements {first} to {last} are no range of a buffer of {self.size}"
            )
        return first, last

    def destroy(self) -> None:
        """Free the device memory as soon as the device has finished with it. Never blocks. Idempotent.

        Expressions of `vkdispatch.numpy` that wait to read it are computed before.
        """
        if not self.destroyed and self.context.usable:
            self._native.settle()
        super().destroy()

    def _summary(self) -> str:
        return f"shape {self.shape}, {self.var_type.name}"

    @property
    def _memory_handle(self) -> int:
        return self._handle if self._base is None else self._base._handle

    def _release(self) -> None:
        # Absent when the allocation failed.
        memory = getattr(self, "_native", None)
        if self._base is not None:
            del self._native
        elif memory is not None:
            memory.destroy()

    def __copy__(self) -> Self:
        self.require_alive()
        made = type(self)(*self._list_arguments(), context=self.context)
        made._native.copy_from(self._native)
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self.__copy__()

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        self.require_alive()
        copies: list[Array] = [np.empty(self.mem_size, np.uint8) for _ in range(self.context.queue_count)]
        for queue, octets in enumerate(copies):
            memory: Any = octets
            self._native.read_into(queue, memory, 0)
        if all(np.array_equal(octets, copies[0]) for octets in copies):
            del copies[1:]
        return _restore, (type(self), self._list_arguments(), copies)

    def _list_arguments(self) -> tuple[Any, ...]:
        """Return the arguments that make such a buffer."""
        return self.shape, self.var_type

    def _extents(self) -> tuple[str, ...]:
        """Return what its text says of its shape."""
        return (f"shape={self.shape}",)

    def __repr__(self) -> str:
        return describe_buffer(self)


def _restore(cls: type[Buffer[Any]], arguments: tuple[Any, ...], copies: "list[Array]") -> Buffer[Any]:
    """Make a buffer of what its pickle has: one content for all queues, or one for each."""
    made = cls(*arguments)
    if len(copies) not in (1, made.context.queue_count):
        raise ArgumentValueError(
            f"the pickled buffer has different contents on {len(copies)} queues, and the current context has "
            f"{made.context.queue_count}: make a context of as many, or pickle buf.read(0)"
        )
    for queue, octets in enumerate(copies):
        memory: Any = octets
        made._native.write(queue if len(copies) > 1 else -1, memory)
    return made


def function_buffer(
    shape: Shape, var_type: "DType | np.dtype[Any]", context: Context | None = None, *, steady: bool = False
) -> Buffer[Any]:
    """Return a buffer for a function on arrays: for its result, or for it to work in. Raises as `Buffer`.

    After a failure, a graph that was recorded with it recovers by itself, as it writes the buffer before it
    reads it; where it is `steady`, it leaves the buffer as it was.
    """
    made: Buffer[Any] = _new(Buffer)
    made._set_shape(shape, var_type)
    Handle.__init__(made, context)
    made._allocate(True)  # kernels fill it: that may be behind what still works on its memory
    made._native.mark(steady)
    return made


def layout_of(shape: Shape, var_type: "DType | np.dtype[Any]") -> Layout:
    """Return what a buffer of this shape and dtype is like: see `Buffer._of_result`. Raises as `Buffer`."""
    kind = parse_dtype(var_type)
    axes = parse_shape(shape)
    size = math.prod(axes)
    octets = size * kind.item_size
    if octets > _MAX_BYTES:
        raise OversizedBufferError(f"shape: {octets} bytes are more memory than any device has")
    return kind, axes, size, octets, axes + _PADDING[len(axes)] + (size,)


def parse_dtype(value: object, name: str = "var_type") -> DType:
    """Return a dtype that memory can hold, from a dtype or a NumPy dtype; `name` is what messages call it.

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
                f"{name}: {value.__name__} cannot be stored in memory; use vd.float32 or the like"
            )
        return value
    if is_dataclass(value):
        return structure_of(value)
    if isinstance(value, np.dtype) and value.names is not None:
        return structure_from_numpy(value)
    if isinstance(value, (np.dtype, str)) or (isinstance(value, type) and issubclass(value, np.generic)):
        return dtype.from_numpy_dtype(value, name)
    raise ArgumentTypeError(f"{name}: expected a vkdispatch dtype such as vd.float32, got {value!r}")


def parse_shape(shape: object) -> tuple[int, ...]:
    """Return a shape as a tuple of ints.

    Raises
    ------
    TypeError
        It is neither an int nor a sequence of ints.
    ValueError
        It has more than 3 axes or a negative one.
    """
    if type(shape) is int and shape >= 0:
        return (shape,)
    if type(shape) is tuple and len(shape) <= _MAX_DIMENSIONS:
        for axis in shape:
            if type(axis) is not int or axis < 0:
                break
        else:
            return shape
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


class Computed(Protocol):
    """An array that the device computes when it is read, such as a map called with its arguments."""

    def __vkdispatch_buffer__(self, context: Context | None) -> "Buffer[Any]": ...


def asbuffer(array: "Array | Computed", *, context: Context | None = None) -> "Buffer[Any]":
    """Make a buffer of an array's shape and dtype and write the array to it.

    Parameters
    ----------
    array
        A NumPy array; or a map called with its arguments, which one kernel computes on the device. If a
        global graph is set, that kernel is recorded.
    context
        Where; None: the current context, or for maps that of their arguments.

    Raises
    ------
    TypeError
        `array` is neither, or has a mask.
    ValueError
        No dtype matches that of the array, it has more than 3 axes, or a map's arguments are in another
        context.
    """
    compute = getattr(type(array), "__vkdispatch_buffer__", None)
    if compute is not None:
        computed: Buffer[Any] = compute(array, context)
        return computed
    if hasattr(array, "__cuda_array_interface__"):
        return from_cuda_array(array)
    if not isinstance(array, np.ndarray):
        raise ArgumentTypeError(
            f"array: expected a NumPy array or a map called with its arguments, got {type(array).__name__}; "
            "use np.asarray(...)"
        )
    if array.dtype.names is not None:
        kind: DType = structure_from_numpy(array.dtype)
    else:
        kind = dtype.from_numpy_dtype(array.dtype.newbyteorder("="), "array")
    array = plain_array(array, "array")
    if array.ndim > _MAX_DIMENSIONS:
        raise ArgumentValueError(
            f"array: a buffer has at most {_MAX_DIMENSIONS} axes, got {array.ndim} in {array.shape}"
        )
    buffer: Buffer[Any] = Buffer(array.shape, kind, context=context)
    buffer.write(array)
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


if not TYPE_CHECKING:
    __getattr__ = names_elsewhere(
        __name__,
        {
            "base.rfft_buffer": "RFFTBuffer asrfftbuffer",
        },
    )
