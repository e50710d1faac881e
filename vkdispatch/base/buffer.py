"""Typed arrays in device memory."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, NoReturn, Protocol, Self, TypeVar, overload

from vkdispatch.base import dtype, errors, names_elsewhere
from vkdispatch.base.context import Context, Handle, get_context, parse_queue
from vkdispatch.base.derived_dtypes import as_pickled, structure_from_numpy
from vkdispatch.base.dtype import DType
from vkdispatch.base.host_numpy import np
from vkdispatch.base.init import is_dummy, require_cuda
from vkdispatch.base.memory import data
from vkdispatch.base.memory.data import OversizedBufferError as OversizedBufferError
from vkdispatch.base.memory.data import Shape as Shape
from vkdispatch.base.memory.protocols import describe_buffer
from vkdispatch.base.memory.transfers import Transfers
from vkdispatch.base.native_module import native
from vkdispatch.base.process import internal
from vkdispatch.base.sharing import cuda_memory, dlpack
from vkdispatch.base.sharing.cuda_link import CudaLoan, can_link, find_link
from vkdispatch.base.sharing.formats import split_elements
from vkdispatch.base.synchronization import Signal

Array = np.ndarray[Any, Any]
_D = TypeVar("_D", bound=dtype.dtype)

_new = object.__new__
_USUAL_ELEMENTS = 1 << 30


class Buffer(Transfers, Generic[_D]):
    """An array of 0 to 3 dimensions in device memory, one copy for each queue of the context.

    Its contents are undefined until written. `copy.copy` and `copy.deepcopy` return a new buffer in the same
    context. A pickle holds the contents of the copies of all queues; loading it makes a buffer in the current
    context.

    Examples
    --------
    >>> buffer = vd.Buffer((2, 3), f32)
    >>> buffer.write(np.ones((2, 3), np.float32))
    >>> buffer.read(0)
    array([[1., 1., 1.],
           [1., 1., 1.]], dtype=float32)

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
        The value of `.shape` in kernels: the axes, padded with 1 to three, then `size`.
    """

    if TYPE_CHECKING:
        # the protocol by which type checkers match a buffer with the annotation `Buff[D]`
        def __getitem__(self, index: Any, /) -> NoReturn: ...
        def __setitem__(self, index: Any, value: Any, /) -> NoReturn: ...
        def _element(self) -> _D: ...

    is_external = False
    owns_memory = True
    cuda_source = None
    cuda_array_stream = None
    _base: "Buffer[Any] | None" = None  # of a view: the buffer that owns the memory
    _loan: object = None  # of memory that the host uses, too
    _cuda_loan: CudaLoan | None = None  # of memory that consumers of the interface below use
    _contents: "Callable[[], Array | bytes] | None" = None  # of a cached buffer; see `cached_buffer`
    _order: object = None  # hashable: differs where the order of elements does not follow from `shape`

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
            An int or several ints. Lengths may be 0. In kernels, a buffer of more than 3 axes has one axis.
        var_type
            A dtype such as `vd.float32`, a NumPy dtype, or a dataclass whose fields are dtypes.
        external_buffer
            Must be None. 0.1.0's CUDA backend aliased the memory that is passed here.
        context
            The context of the buffer. None means the current context.

        Raises
        ------
        TypeError
            `var_type` is not a dtype, or `shape` is neither an int nor a sequence of ints.
        ValueError
            `shape` has a negative length.
        MemoryError
            The device does not have enough memory. For more than 2**30 elements it is also a ValueError.
        RuntimeError
            `external_buffer` is given, or the backend is the dummy one.
        """
        if external_buffer is not None:
            raise require_cuda("external_buffer", "leave it out and write the data into the buffer")
        self._set_layout(data.layout_of(shape, var_type))
        Handle.__init__(self, context)
        self._allocate(False)

    def _set_layout(self, layout: data.Layout) -> None:
        self.var_type, self.shape, self.size, self.mem_size, self.shader_shape = layout

    def _allocate(self, for_device: bool) -> None:
        # A binding needs memory even if there are no elements.
        size = self.mem_size or self.var_type.item_size
        try:
            self._native = native.Buffer(self.context._native, size, False, for_device)
        except errors.OutOfDeviceMemoryError as error:
            if self.size <= _USUAL_ELEMENTS:
                raise
            raise OversizedBufferError(f"shape: {error}") from None

    @internal
    @classmethod
    def of_memory(
        cls, context: Context, memory: native.Buffer, shape: Shape, var_type: "DType | np.dtype[Any]"
    ) -> "Buffer[Any]":
        """Return a buffer on existing device memory, which is freed together with the buffer.

        Raises
        ------
        TypeError, ValueError
            As for a new buffer.
        """
        return cls._of_result(context, memory, data.layout_of(shape, var_type))

    @classmethod
    def _of_result(cls, context: Context, memory: native.Buffer, layout: data.Layout) -> "Buffer[Any]":
        """Return a buffer of a known layout on existing device memory."""
        buffer: Buffer[Any] = _new(cls)
        buffer.var_type, buffer.shape, buffer.size, buffer.mem_size, buffer.shader_shape = layout
        Handle.__init__(buffer, context)
        buffer._native = memory
        return buffer

    @classmethod
    def from_handle(
        cls,
        handle: object,
        shape: Shape,
        var_type: "DType | np.dtype[Any] | type[Any]",
        *,
        owner: object = None,
        context: Context | None = None,
    ) -> "Buffer[Any]":
        """Return a buffer on a `VkBuffer` of another library, which keeps the ownership.

        Both work on the same memory, on one `VkDevice`: that of `vd.make_context_from_handles`, or one whose
        handles the other library got from `context.handles`. You order the work: wait for the other
        library's work before calls that use the buffer, and call `vd.queue_wait_idle()` before the other
        library uses it.

        Parameters
        ----------
        handle
            The `VkBuffer`, as an int or a pointer. It must be bound to memory, have the usages
            STORAGE_BUFFER, TRANSFER_SRC and TRANSFER_DST, and hold the elements from its first byte on,
            rounded up to a multiple of four bytes. This cannot be checked.
        shape, var_type
            As for a new buffer.
        owner
            An object to keep until the device has finished with the buffer, such as the one that destroys
            the `VkBuffer`.
        context
            The context on the device. None means the current context.

        Raises
        ------
        TypeError, ValueError
            `handle` is not a handle, there are no elements, or `shape` or `var_type` is invalid.
        """
        from vkdispatch.base.contexts.selection import as_handle

        number = as_handle("handle", handle)
        layout = data.layout_of(shape, data.parse_dtype(var_type))
        if not layout[3]:
            raise errors.ArgumentValueError(f"shape: expected at least one element, got {layout[1]}")
        place = get_context() if context is None else context
        memory = native.Buffer.over_handle(place._native, number, layout[3], owner)
        buffer = Buffer._of_result(place, memory, layout)
        buffer.is_external, buffer.owns_memory = True, False
        return buffer

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
            `var_type` is not a dtype.
        ValueError
            The last axis does not hold a whole number of such elements.
        RuntimeError
            The buffer was destroyed.

        Examples
        --------
        >>> buffer = vd.asbuffer(np.array([1.0], np.float32))
        >>> hex(buffer.view(u32).read(0)[0])
        '0x3f800000'
        """
        self.require_alive()
        kind = data.parse_dtype(var_type)
        shape = self.shape
        if kind.item_size != self.var_type.item_size:
            octets = (shape[-1] if shape else 1) * self.var_type.item_size
            if not shape or octets % kind.item_size:
                raise errors.ArgumentValueError(
                    f"var_type: the last axis of shape {shape}, of {octets} bytes, is not a whole number of "
                    f"{kind.name}, of {kind.item_size} bytes"
                )
            shape = (*shape[:-1], octets // kind.item_size)
        return self._view(data.layout_of(shape, kind))

    @internal
    def _as_words(self, kind: DType) -> "Buffer[Any]":
        """Return a view with elements of `kind`, whose `shape` still counts this buffer's elements."""
        return self._view((kind, self.shape, self.size, self.mem_size, self.shader_shape))

    def _view(self, layout: data.Layout) -> "Buffer[Any]":
        base = self if self._base is None else self._base
        view = Buffer._of_result(self.context, base._native, layout)
        view._base = base
        view.register_parent(base)
        return view

    @property
    def signals(self) -> list[Signal]:
        """One signal per queue, for the last submitted work of the queue that writes this buffer."""
        self.require_alive()
        memory = self._native
        return [
            Signal._of(self.context, memory.last_write, memory.check) for _ in range(self.context.queue_count)
        ]

    def copy_between_queues(self, source: int, target: int | None = None) -> None:
        """Copy the contents from queue `source` to queue `target`, or with None to every other queue.

        The copy runs after all earlier work of both queues and before all later work. This call returns at
        once. Between devices, the copy goes through pinned host memory in parts; if many parts are pending,
        or the devices cannot share such memory, this call waits for some of them.

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

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[Any, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """Return a DLPack capsule of the memory, for `from_dlpack` of another library.

        All work that uses the buffer is finished. The memory lives as long as the other library uses it;
        until then, calls that use the buffer return when the device is done. Vectors and matrices add their
        own axes after the buffer's.

        Parameters
        ----------
        stream
            None: memory of the host has no streams.
        max_version
            The newest version of DLPack that the consumer knows.
        dl_device
            The device that the consumer wants: None is the buffer's own, (1, 0) the host, to which the buffer
            is copied where it lies elsewhere.
        copy
            True exports a copy, False never copies, None copies to the host if that is asked for and needed.

        Raises
        ------
        BufferError, ValueError
            The memory cannot be shared like that: it does not lie on the host, each queue has a copy, or the
            elements are structures.
        """
        self.require_alive()
        request = dlpack.parse_request(stream, max_version, dl_device, copy)
        kind, shape = split_elements(self.var_type, self.shape)
        return dlpack.export(
            request,
            self.__dlpack_device__,
            lambda: dlpack.lend_memory(self.context, self._native, kind, shape, stream),
            lambda: dlpack.copy_of(self._read_elements(), kind, shape),
            lambda: dlpack.lend_memory(self.context, self.__copy__()._native, kind, shape, stream),
        )

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return DLPack's type and number of the device: (1, 0) where the device's memory is the host's.

        Raises
        ------
        BufferError
            Other libraries cannot use the memory in place; `buf.read(0)` copies it.
        """
        self.require_alive()
        return dlpack.place_of(self.context, "buf.read(0), the counterpart of x.numpy()")

    @property
    def cuda_ptr(self) -> int | None:
        """The CUDA address of the memory; None if CUDA cannot map it.

        The address is valid as long as the buffer exists. `vd.cuda.stream` orders kernels and CUDA's work.
        """
        if self.destroyed or not can_link(self.context):
            return None
        try:
            return find_link(self.context).lend_for_good(self._native)
        except errors.SharingError:
            return None

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The memory as CUDA's libraries take it, version 3.

        Raises AttributeError where CUDA does not know the device.

        Consumers wait for the stream in it, and so for all work on the buffer up to now.
        """
        self.require_alive()
        self._cuda_loan = loan = cuda_memory.lend_by_interface(self.context, self._native, self._cuda_loan)
        shape, component = data.layout_in_memory(self.var_type, self.shape)
        return cuda_memory.make_interface(loan, shape, component, None)

    def _lend_elements(self, ordered: bool) -> dlpack.Elements:
        """Return the elements in memory of the host; see `lend_host_memory`."""
        self.require_alive()
        self.__dlpack_device__()
        kind, shape = split_elements(self.var_type, self.shape)
        return dlpack.lend_host_memory(self.context, self._native, kind, shape, ordered)

    def _read_elements(self) -> Array:
        """Return the content of memory: bfloat16 as uint16, complex32 as pairs of float16."""
        shape, component = data.layout_in_memory(self.var_type, self.shape)
        return self.read(0, np.empty(shape, component))

    def destroy(self) -> None:
        """Free the device memory as soon as the device has finished with it. Never blocks. Idempotent.

        Pending expressions of `vkdispatch.numpy` that read it are computed first.
        """
        if not self.destroyed and self.context.usable:
            self._native.settle()
        super().destroy()

    @property
    def _memory_handle(self) -> int:
        memory = getattr(self, "_native", None)
        return self._handle if memory is None else memory.memory_handle

    def _release(self) -> None:
        # It is missing if the allocation failed.
        memory = getattr(self, "_native", None)
        if self._base is not None:
            # other threads may be about to use it: one that was never made raises what a destroyed one does
            self._native = native.Buffer.__new__(native.Buffer)
        elif memory is not None:
            memory.destroy()

    def __copy__(self) -> Self:
        self.require_alive()
        copy = type(self)(*self._list_arguments(), context=self.context)
        copy._native.copy_from(self._native)
        return copy

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self.__copy__()

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        octets = np.dtype(np.uint8)
        restore, arguments = self._reduce_shape()
        copies = self._copy_into(lambda: data.fresh_array((self.mem_size,), octets))
        for content in copies:
            content.flags.writeable = False  # so that out-of-band buffers need no copy when they are loaded
        return restore, (*arguments, copies)

    def _reduce_shape(self) -> tuple[Any, tuple[type["Buffer[Any]"], tuple[Any, ...]]]:
        """Return a pickle's function, and its arguments but the contents: a class and its own arguments."""
        return _restore, (type(self), tuple(map(as_pickled, self._list_arguments())))

    def _copy_into(self, allocate: Callable[[], Array]) -> list[Array]:
        """Return the contents in new arrays of bytes: one, or one for each queue if they differ."""
        self.require_alive()
        copies: list[Array] = []
        for queue in range(self.context.queue_count):
            memory: Any = allocate()
            self._native.read_into(queue, memory, 0)
            copies.append(memory)
        if all(np.array_equal(octets, copies[0]) for octets in copies):
            del copies[1:]
        return copies

    def _list_arguments(self) -> tuple[Any, ...]:
        """Return the arguments of the class for an equal buffer."""
        return self.shape, self.var_type

    def _describe_shape(self) -> tuple[str, ...]:
        """Return the parts of `repr` about the shape."""
        return (f"shape={self.shape}",)

    def __repr__(self) -> str:
        return describe_buffer(self)


def _restore(cls: type[Buffer[Any]], arguments: tuple[Any, ...], copies: "list[Array]") -> Buffer[Any]:
    """Make a buffer from its pickle, which has one content for all queues or one for each."""
    buffer = cls(*arguments)
    if len(copies) not in (1, buffer.context.queue_count):
        raise errors.ArgumentValueError(
            f"the pickled buffer has different contents on {len(copies)} queues, and the current context has "
            f"{buffer.context.queue_count}: make a context of as many queues, or pickle buf.read(0)"
        )
    for queue, octets in enumerate(copies):
        memory: Any = octets
        buffer._native.write(queue if len(copies) > 1 else -1, memory)
    return buffer


def function_buffer(
    shape: Shape, var_type: "DType | np.dtype[Any]", context: Context | None = None, *, steady: bool = False
) -> Buffer[Any]:
    """Return a buffer for a result or for scratch memory of a function on arrays. Raises as `Buffer`.

    A graph that was recorded with the buffer recovers after a failure, as it writes the buffer before it
    reads it. If the buffer is `steady`, the graph leaves its contents as they were.
    """
    buffer: Buffer[Any] = _new(Buffer)
    buffer._set_layout(data.layout_of(shape, var_type))
    Handle.__init__(buffer, context)
    buffer._allocate(True)  # kernels write it first, perhaps after pending work on reused memory
    buffer._native.mark(steady)
    return buffer


def cached_buffer(
    shape: Shape,
    var_type: DType,
    contents: "Callable[[], Array | bytes]",
    context: Context | None = None,
    *,
    steady: bool = False,
) -> Buffer[Any]:
    """Return a buffer with contents that a cache keeps; `renew_contents` writes them again after a failure.

    Raises as `function_buffer`.
    """
    buffer = function_buffer(shape, var_type, context, steady=steady)
    buffer.write(contents())
    buffer._contents = contents
    return buffer


def renew_contents(buffer: object) -> bool:
    """Write a cached buffer again if a failed upload left it without its contents. Return whether it did.

    Raises
    ------
    MemoryError
        There is no memory for this upload either.
    """
    if not isinstance(buffer, Buffer) or buffer._contents is None or not buffer._native.poisoned:
        return False
    memory, engine = buffer._native, buffer.context._native
    buffer.write(buffer._contents())
    for queue in range(buffer.context.queue_count):
        if memory.poisoned:  # until the device has copied it, calls that read it are refused
            engine.wait_until(memory.last_write(queue), None, alone=True, tells=False)
    return True


class Computed(Protocol):
    """An array that the device computes on demand, such as a map called with its arguments."""

    def __vkdispatch_buffer__(self, context: Context | None) -> "Buffer[Any]": ...


@overload
def asbuffer(array: "Array", var_type: "type[_D]", *, context: Context | None = None) -> "Buffer[_D]": ...


@overload
def asbuffer(
    array: "Array | Computed",
    var_type: "np.dtype[Any] | type[Any] | None" = None,
    *,
    context: Context | None = None,
) -> "Buffer[Any]": ...


def asbuffer(
    array: "Array | Computed",
    var_type: "type[_D] | np.dtype[Any] | type[Any] | None" = None,
    *,
    context: Context | None = None,
) -> "Buffer[Any]":
    """Create a buffer from an array, with its dtype or another one.

    Parameters
    ----------
    array
        A NumPy array, an Array, or a map called with its arguments, which a kernel computes on the device. If
        a global graph is set, the kernel is recorded.
    var_type
        The dtype of the elements, as for `Buffer`; None means that of the array. Numbers are converted by the
        rule "same_kind" of `numpy.can_cast`: float64 to float32, but not float32 to int32. Vectors and
        matrices use the last axes of the array: (1000, 3) becomes 1000 elements of `vd.vec3`.
    context
        The context of the buffer. None means the current context, or that of the arguments of a map.

    Raises
    ------
    TypeError
        `array` is neither, or has a mask; or `var_type` is not a dtype.
    ValueError
        No dtype matches that of the array, or `array` does not fit `var_type`; the arguments of a map are in
        another context; or a map is passed with `var_type`.

    Examples
    --------
    >>> buffer = vd.asbuffer(np.array([1, 2, 3], np.float32))
    >>> buffer.shape
    (3,)
    >>> buffer.read(0)
    array([1., 2., 3.], dtype=float32)
    """
    compute = getattr(type(array), "__vkdispatch_buffer__", None)
    if compute is not None:
        if var_type is not None:
            convert = getattr(array, "astype", None)
            if convert is None:
                raise errors.ArgumentValueError(
                    "var_type: the dtype of a map is its return annotation; omit var_type"
                )
            array = convert(dtype.to_numpy_dtype(data.parse_dtype(var_type)), casting="same_kind")
        computed: Buffer[Any] = compute(array, context)
        return computed
    if hasattr(array, "__cuda_array_interface__"):
        return from_cuda_array(array, None if var_type is None else data.parse_dtype(var_type))
    if not isinstance(array, np.ndarray):
        instead = "vd.from_dlpack(x)" if dlpack.has_dlpack(array) else "np.asarray(...)"
        raise errors.ArgumentTypeError(
            f"array: expected a NumPy array or a map called with its arguments, got {type(array).__name__}; "
            f"use {instead}"
        )
    if var_type is not None:
        kind = data.parse_dtype(var_type)
    elif array.dtype.names is not None:
        kind = structure_from_numpy(array.dtype)
    else:
        kind = dtype.from_numpy_dtype(array.dtype.newbyteorder("="), "array")
    array = data.plain_array(array, "array")
    shape = _shape_of_elements(array, kind)
    buffer: Buffer[Any] = Buffer(shape, kind, context=context)
    buffer.write(array, casting="equiv" if var_type is None else "same_kind")
    return buffer


def _shape_of_elements(array: "Array", kind: DType) -> tuple[int, ...]:
    """Return the shape of an array without the axes of its vectors or matrices. Raises ValueError."""
    shape: tuple[int, ...] = array.shape
    if not (dtype.is_vector(kind) or dtype.is_matrix(kind)) or array.dtype.kind == "c":
        return shape
    tail = kind.true_numpy_shape
    first = max(len(shape) - len(tail), 0)
    if shape[first:] != tail:
        raise errors.ArgumentValueError(
            f"array: elements of {kind.name} need last axes of shape {tail}, got shape {shape}"
        )
    return shape[:first]


def from_cuda_array(
    obj: object,
    var_type: "type[dtype.dtype] | None" = None,
    require_contiguous: bool = True,
    writable: bool | None = None,
    keepalive: bool = True,
) -> "Buffer[Any]":
    """Return a buffer on the memory of a CUDA array that has `__cuda_array_interface__`.

    The memory must be that of a buffer, or of `vd.cuda.torch_pool` or `vd.cuda.cupy_allocator`. Vulkan cannot
    use memory that CUDA allocated; `vd.from_dlpack(obj)` copies it.

    Parameters
    ----------
    var_type
        The dtype of the elements; None means that of the array.
    require_contiguous
        Ignored: elements that are not in C order always raise an error.
    writable
        True raises an error for read-only arrays. False makes the buffer read-only; None does so if the array
        is read-only.
    keepalive
        Ignored: the buffer always keeps the memory alive.

    Raises
    ------
    TypeError, ValueError
        `obj` has no such interface, or it does not fit.
    BufferError
        CUDA allocated the memory, or its address is not aligned for the device.
    RuntimeError
        CUDA does not support the device of the current context.
    """
    context = None if is_dummy() else get_context()
    if context is None or not can_link(context):
        where = "the dummy backend" if context is None else context._devices
        raise errors.UsageError(
            f"from_cuda_array: CUDA cannot share memory of {where}; copy with vd.asbuffer(array.get())"
        )
    elements = cuda_memory.read_interface(obj, find_link(context).ordinal)
    shape, kind = elements.shape, elements.kind
    if var_type is not None and kind is not var_type:
        raise errors.ArgumentValueError(
            f"var_type: expected {kind.name}, as the array has, got {var_type.__name__}"
        )
    if elements.is_read_only and writable:
        raise errors.ArgumentValueError("writable: True was passed, but the array is read-only")
    if not elements.size:
        return Buffer(shape, kind)
    is_read_only = elements.is_read_only or writable is False
    memory = cuda_memory.find_elements(elements, context, is_read_only)
    buffer: Buffer[Any] = Buffer.of_memory(context, memory, shape, kind)
    buffer.is_external, buffer.owns_memory = True, False
    buffer.is_writable = not is_read_only
    return buffer


if not TYPE_CHECKING:
    __getattr__ = names_elsewhere(__name__, {"base.buffers.kinds": "RFFTBuffer asrfftbuffer"})
