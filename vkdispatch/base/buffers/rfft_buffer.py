"""Buffers for in-place real FFTs: rows of real numbers, padded to hold their spectrum."""

from typing import Any



from vkdispatch.base import dtype
from vkdispatch.base.buffer import Array, Buffer, Shape
from vkdispatch.base.context import Context
from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.base.host.layout import parse_shape
from vkdispatch.base.host_numpy import np

_FOURIER_OF_SIZE: dict[int, DType] = {2: dtype.complex32, 4: dtype.complex64, 8: dtype.complex128}


def _is_complex(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, dtype.dtype) and dtype.is_complex(kind)


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
        """Allocate memory for a real signal of `shape` (1 to 3 axes) and its spectrum of `fourier_type`.

        The buffer belongs to the current context unless `context` is given.

        Raises
        ------
        ValueError
            `fourier_type` is not complex, or `shape` has no axis.
        """
        real_shape = parse_shape(shape)
        if not (_is_complex(fourier_type)):
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
        rows = np.zeros(self._padded_shape(), dtype.to_numpy_dtype(self.real_type))
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

    def _padded_shape(self) -> tuple[int, ...]:
        return (*self.shape[:-1], 2 * self.shape[-1])

    def _read_rows(self, queue: int) -> Array:
        spectrum = self.read(queue)
        real = np.dtype(dtype.to_numpy_dtype(self.real_type))
        # complex32 is read as pairs of float32.
        held = np.dtype(np.float32) if self.var_type is dtype.complex32 else real
        return np.ascontiguousarray(spectrum).view(held).astype(real, copy=False)

    def _check(self, arr: object, shape: tuple[int, ...], kinds: str, wanted: str) -> None:
        if not isinstance(arr, np.ndarray):
            raise ArgumentTypeError(f"data: expected a NumPy array, got {type(arr).__name__}")
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
    if not isinstance(data, np.ndarray):
        raise ArgumentTypeError(f"data: expected a NumPy array, got {type(data).__name__}")
    if not data.ndim:
        raise ArgumentValueError("data: a real FFT needs at least one axis, got an array without")
    if fourier_type is None:
        fourier_type = _FOURIER_OF_SIZE.get(data.dtype.itemsize) if data.dtype.kind in "iuf" else None
    if data.dtype.kind == "c" or fourier_type is None:
        raise ArgumentValueError(f"data: expected real numbers of 16, 32 or 64 bits, got {data.dtype}")
    buffer = RFFTBuffer(data.shape, fourier_type)
    buffer.write_real(data)
    return buffer
