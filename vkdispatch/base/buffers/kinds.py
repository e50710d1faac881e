"""Buffers by short names, for real FFTs, and copied to other contexts."""

from collections.abc import Callable
from typing import Any, TypeVar

from vkdispatch.base import dtype
from vkdispatch.base.buffer import Array, Buffer, Shape
from vkdispatch.base.context import Context
from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import ArgumentValueError, SharingError, check_type
from vkdispatch.base.host_numpy import np
from vkdispatch.base.memory.data import parse_shape
from vkdispatch.base.memory.transfers import pinned_array
from vkdispatch.base.sharing.cuda_link import can_link, find_link
from vkdispatch.base.sharing.cuda_memory import copy_between_links
from vkdispatch.base.synchronization import ReadFuture

# ---- Copies of a buffer's contents to a buffer of another context ----------------------------------------


_PART = 8 << 20  # bytes: long enough for the bus, short enough that the first and the last one cost little


def copy_between_contexts(dst: Buffer[Any], src: Buffer[Any]) -> None:
    """Copy the bytes of `src` to `dst`, which is as large and belongs to another context.

    Between NVIDIA GPUs that CUDA knows, CUDA copies, in the order of both contexts' work, and this returns at
    once. Elsewhere the bytes go through pinned host memory: one device fills a part of it while the other one
    empties the part before. This returns when all are written. If the context of `dst` has several queues,
    each one's copy of `dst` is written.

    Raises
    ------
    ValueError
        The context of `src` has several queues, each with its own copy of the buffer.
    """
    src.require_alive()
    dst.require_alive()
    if src.context.queue_count > 1:
        raise ArgumentValueError(
            f"src: its context has {src.context.queue_count} queues, each with its own copy of the buffer; "
            "use dst.write(src.read(index))"
        )
    if not _copy_by_cuda(dst, src):
        _copy_by_host(dst, src)


def _copy_by_cuda(dst: Buffer[Any], src: Buffer[Any]) -> bool:
    """Copy by CUDA if it knows both devices. Return whether it does."""
    if not (can_link(src.context) and can_link(dst.context)):
        return False
    dst._native.settle()  # raises if it is read-only
    try:
        source, target = find_link(src.context), find_link(dst.context)
        copy_between_links(target, dst._native, source, src._native, src.mem_size)
    except SharingError:
        return False
    return True


def _copy_by_host(dst: Buffer[Any], src: Buffer[Any]) -> None:
    size = src.mem_size
    blocks: Any = pinned_array(src.context, 0, (2, min(size, _PART)), np.dtype(np.uint8))

    def start_reading(first: int) -> ReadFuture:
        block = blocks[first // _PART % 2, : min(_PART, size - first)]
        points = src._native.read_async(0, block, first)
        return ReadFuture(src.context, points, block, None)

    future = start_reading(0)
    for first in range(0, size, _PART):
        part: Any = future.result()
        if first + _PART < size:
            future = start_reading(first + _PART)
        dst._native.write(-1, part, first)


# ---- Short names to allocate buffers: `vd.buffer_f32(shape)` is `vd.Buffer(shape, vd.float32)` -----------


_D = TypeVar("_D", bound=dtype.dtype)


def _make_allocator(kind: type[_D]) -> Callable[[Shape], Buffer[_D]]:
    def allocate(shape: Shape) -> Buffer[_D]:
        return Buffer(shape, kind)

    allocate.__name__ = allocate.__qualname__ = f"buffer of {kind.name}"
    allocate.__doc__ = f"Allocate a buffer of {kind.name}; see `Buffer`."
    return allocate


buffer_u32 = _make_allocator(dtype.uint32)
buffer_uv2 = _make_allocator(dtype.uvec2)
buffer_uv3 = _make_allocator(dtype.uvec3)
buffer_uv4 = _make_allocator(dtype.uvec4)
buffer_i32 = _make_allocator(dtype.int32)
buffer_iv2 = _make_allocator(dtype.ivec2)
buffer_iv3 = _make_allocator(dtype.ivec3)
buffer_iv4 = _make_allocator(dtype.ivec4)
buffer_f32 = _make_allocator(dtype.float32)
buffer_v2 = _make_allocator(dtype.vec2)
buffer_v3 = _make_allocator(dtype.vec3)
buffer_v4 = _make_allocator(dtype.vec4)
buffer_c64 = _make_allocator(dtype.complex64)
buffer_u16 = _make_allocator(dtype.uint16)
buffer_uhv2 = _make_allocator(dtype.uhvec2)
buffer_uhv3 = _make_allocator(dtype.uhvec3)
buffer_uhv4 = _make_allocator(dtype.uhvec4)
buffer_i16 = _make_allocator(dtype.int16)
buffer_ihv2 = _make_allocator(dtype.ihvec2)
buffer_ihv3 = _make_allocator(dtype.ihvec3)
buffer_ihv4 = _make_allocator(dtype.ihvec4)
buffer_f16 = _make_allocator(dtype.float16)
buffer_hv2 = _make_allocator(dtype.hvec2)
buffer_hv3 = _make_allocator(dtype.hvec3)
buffer_hv4 = _make_allocator(dtype.hvec4)
buffer_f64 = _make_allocator(dtype.float64)
buffer_dv2 = _make_allocator(dtype.dvec2)
buffer_dv3 = _make_allocator(dtype.dvec3)
buffer_dv4 = _make_allocator(dtype.dvec4)


# ---- Buffers for in-place real FFTs: rows of real numbers, padded to hold their spectrum -----------------


_FOURIER_OF_SIZE: dict[int, DType] = {2: dtype.complex32, 4: dtype.complex64, 8: dtype.complex128}


class RFFTBuffer(Buffer[Any]):
    """Memory for a real signal of `shape` or its half spectrum, shape[:-1] + (shape[-1] // 2 + 1,).

    Each row along the last axis holds 2 * (n // 2 + 1) real numbers. A real signal uses the first n of them.

    Examples
    --------
    >>> buffer = vd.RFFTBuffer((2, 4))
    >>> buffer.write_real(np.ones((2, 4), np.float32))
    >>> vd.fft.rfft(buffer)
    >>> buffer.read_fourier(0).real
    array([[4., 0., 0.],
           [4., 0., 0.]], dtype=float32)

    Attributes
    ----------
    real_shape
        Shape of the real signal.
    fourier_shape
        Shape of the half spectrum, the same as `shape`.
    real_type
        dtype of the real numbers.
    """

    def __init__(
        self, shape: Shape, fourier_type: DType = dtype.complex64, *, context: Context | None = None
    ) -> None:
        """Allocate memory for a real signal of `shape` and its spectrum of `fourier_type`.

        The buffer belongs to the current context unless `context` is given.

        Raises
        ------
        ValueError
            `fourier_type` is not complex, or `shape` has no axis.
        """
        real_shape = parse_shape(shape)
        if not any(fourier_type is kind for kind in _FOURIER_OF_SIZE.values()):
            raise ArgumentValueError(
                f"fourier_type: expected a complex dtype such as vd.complex64, got {fourier_type!r}"
            )
        if not real_shape:
            raise ArgumentValueError("shape: a real FFT needs at least one axis, got ()")
        super().__init__((*real_shape[:-1], real_shape[-1] // 2 + 1), fourier_type, context=context)
        self.real_shape = self._order = real_shape
        self.fourier_shape = self.shape
        self.real_type = dtype.component_type(fourier_type)

    def write_real(self, data: Array, index: int | None = None) -> None:
        """Write a real signal of shape `real_shape`, cast to `real_type`. The padding is set to 0.

        Raises
        ------
        ValueError
            `data` has another shape or is complex.
        """
        self._check(data, self.real_shape, "biuf", "real")
        padded = (*self.shape[:-1], 2 * self.shape[-1])
        rows = np.zeros(padded, dtype.to_numpy_dtype(self.real_type))
        rows[..., : self.real_shape[-1]] = data
        self.write(rows.reshape(*self.shape, 2), index)

    def read_real(self, index: int | None = None) -> Array:
        """Return the real signal, like `Buffer.read`."""
        queues = range(self.context.queue_count) if index is None else (index,)
        rows = np.stack([self._read_rows(queue) for queue in queues])
        signal = rows[..., : self.real_shape[-1]]
        return signal if index is None else signal[0]

    def write_fourier(self, data: Array, index: int | None = None) -> None:
        """Write a half spectrum of shape `fourier_shape`, cast to the buffer's dtype.

        Raises
        ------
        ValueError
            `data` has another shape or is not complex.
        """
        self._check(data, self.fourier_shape, "c", "complex")
        if self.var_type is dtype.complex32:
            self.write(np.stack([data.real, data.imag], axis=-1).astype(np.float16), index)
        else:
            self.write(data.astype(dtype.to_numpy_dtype(self.var_type)), index)

    def read_fourier(self, index: int | None = None) -> Array:
        """Return the half spectrum; the same as `read`."""
        return self.read(index)

    def _list_arguments(self) -> tuple[Any, ...]:
        return self.real_shape, self.var_type

    def _describe_shape(self) -> tuple[str, ...]:
        return f"real_shape={self.real_shape}", f"shape={self.shape}"

    def _read_rows(self, queue: int) -> Array:
        spectrum = self.read(queue)
        real = np.dtype(dtype.to_numpy_dtype(self.real_type))
        # complex32 is read as pairs of float32.
        held = np.dtype(np.float32) if self.var_type is dtype.complex32 else real
        return np.ascontiguousarray(spectrum).view(held).astype(real, copy=False)

    def _check(self, arr: Array, shape: tuple[int, ...], kinds: str, wanted: str) -> None:
        check_type("data", arr, np.ndarray, "a NumPy array")
        if arr.shape != shape or arr.dtype.kind not in kinds:
            raise ArgumentValueError(
                f"data: expected {wanted} numbers of shape {shape}, got {arr.dtype} of {arr.shape}"
            )


def asrfftbuffer(data: Array, fourier_type: DType | None = None) -> RFFTBuffer:
    """Create an RFFTBuffer from a real array. By default, the spectrum has the precision of the array.

    Raises
    ------
    TypeError
        `data` is not an array.
    ValueError
        `data` is complex, of a dtype with no matching complex one, or has no axes.

    Examples
    --------
    >>> buffer = vd.asrfftbuffer(np.array([1, 2, 3, 4], np.float32))
    >>> buffer.read_real(0)
    array([1., 2., 3., 4.], dtype=float32)
    """
    check_type("data", data, np.ndarray, "a NumPy array")
    if not data.ndim:
        raise ArgumentValueError("data: a real FFT needs at least one axis, got an array without")
    if fourier_type is None:
        fourier_type = _FOURIER_OF_SIZE.get(data.dtype.itemsize) if data.dtype.kind in "iuf" else None
    if data.dtype.kind == "c" or fourier_type is None:
        raise ArgumentValueError(f"data: expected real numbers of 16, 32 or 64 bits, got {data.dtype}")
    buffer = RFFTBuffer(data.shape, fourier_type)
    buffer.write_real(data)
    return buffer
