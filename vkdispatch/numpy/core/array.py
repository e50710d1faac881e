"""The class Array."""

import math
import operator
import sys
from collections.abc import Callable, Iterator
from types import GenericAlias, ModuleType
from typing import TYPE_CHECKING, Any, Generic, NoReturn, SupportsIndex, overload

import numpy as np

from vkdispatch.base.buffer import Buffer
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.base.native_module import native
from vkdispatch.base.sharing.dlpack import has_dlpack, parse_request
from vkdispatch.execution_pipeline.command_graph import pause_recording
from vkdispatch.numpy.core import memory
from vkdispatch.numpy.core.application import apply_ufunc, assign, cast, loops, make_operation
from vkdispatch.numpy.core.expressions import Node, Value, evaluate, evaluate_apart, shown_view, shows_parts
from vkdispatch.numpy.core.memory import View
from vkdispatch.numpy.core.operations import COPY

array_of: "Callable[[Value], Array]" = native.array_of
value_of: "Callable[[Array], Value]" = native.value_of
_operate = native.operate
# Applies strides, which its caller has from the array, to what `__array__` returns.
_AS_STRIDED = getattr(np.lib.stride_tricks.as_strided, "__code__", None)

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    ShapeT = TypeVar("ShapeT", bound=tuple[Any, ...], default=tuple[Any, ...], covariant=True)
    ScalarT = TypeVar("ScalarT", bound=np.generic, default=Any, covariant=True)
    # Of a result: what an argument says. A length alone is a shape of one axis.
    OfShape = TypeVar("OfShape", bound=tuple[int, ...], default=tuple[int])
    OfScalar = TypeVar("OfScalar", bound=np.generic, default=Any)
else:
    from typing import TypeVar

    ShapeT, ScalarT, OfShape, OfScalar = map(TypeVar, ("ShapeT", "ScalarT", "OfShape", "OfScalar"))
Scalar = type[OfScalar] | np.dtype[OfScalar]


def namespace() -> Any:
    """Return `vkdispatch.numpy`, of which methods of arrays are functions."""
    return sys.modules["vkdispatch.numpy"]


_HOST = "x.numpy() is a NumPy array with its elements"
# What arrays of other libraries and buffers have, and what to use instead.
_ABSENT = {
    **dict.fromkeys(("read", "cpu", "get", "to_numpy", "copy_to_host", "__array_interface__"), _HOST),
    **dict.fromkeys(
        ("data", "ctypes"), "the memory is the device's: " + _HOST + ", vnp.asbuffer(x) the buffer"
    ),
    "setflags": "vnp.broadcast_to(x, x.shape) is a read-only view",
    "resize": "y = vnp.resize(x, shape), or x.reshape(shape), is an array of another shape",
    "byteswap": "x.numpy().byteswap() is a NumPy array",
    "getfield": "x.view(dtype) shows the bytes as elements of another dtype",
    "setfield": "x.view(dtype)[...] = value writes the bytes as elements of another dtype",
    "write": "x[...] = array writes all elements",
    "var_type": "x.dtype is the type of its elements",
}


class Array(native.ArrayBase, Generic[ShapeT, ScalarT]):
    """An array of any number of dimensions on a Vulkan device, with the interface of `numpy.ndarray`.

    `vkdispatch.numpy.asarray` and the other functions of that module make arrays. Element-wise operations are
    computed when something needs their values: several of them run as one kernel.

    Annotations may name the shape and NumPy's scalar type, as `Array[tuple[int, int], np.float32]`.

    Examples
    --------
    >>> x = vnp.asarray([[1, 2], [3, 4]])
    >>> x.T @ x + 1
    Array([[11, 15],
           [15, 21]], dtype=int64)
    >>> x[0, 1] = 9
    >>> x.numpy()
    array([[1, 9],
           [3, 4]])

    Attributes
    ----------
    shape, ndim, size, dtype, itemsize, nbytes
        As NumPy's.
    """

    __slots__ = ()
    # NumPy's scalars on the left leave operators to arrays
    __array_priority__ = 1000

    _value: Value

    if not TYPE_CHECKING:
        __class_getitem__ = classmethod(GenericAlias)  # with one argument or two

    def __init__(
        self,
        shape: Any,
        dtype: Any = None,
        buffer: Any = None,
        offset: int = 0,
        strides: Any = None,
        order: Any = None,
    ) -> None:
        """Make an array with undefined values, as `vkdispatch.numpy.empty`. See `numpy.ndarray`.

        Raises TypeError for a `buffer`, for `strides`, and for a `shape` that is none.
        """
        if not isinstance(shape, (int, np.integer, tuple, list)):
            raise ArgumentTypeError(
                f"Array: expected a shape, got {shape!r:.60}; make arrays of data with vnp.asarray(data). "
                "Functions of vkdispatch.numpy replace those of Python's numbers, such as vnp.mean(x) "
                "statistics.mean(x)"
            )
        if buffer is not None or strides is not None or offset:
            raise ArgumentTypeError(
                "buffer, offset, strides: vnp.ndarray(shape, dtype) makes new memory; vnp.asarray(data) "
                "takes data, and vnp.from_dlpack(data) memory"
            )
        self._value = namespace().empty(shape, dtype, order)._value

    # -- what it is

    @property
    def shape(self) -> ShapeT:
        """The length of each axis."""
        return self._value.shape  # type: ignore[return-value]  # an annotation says how many there are

    @shape.setter
    def shape(self, shape: Any) -> None:
        try:
            self._value = namespace().reshape(self, shape, copy=False)._value
        except ArgumentValueError as error:
            if "copy" not in str(error):
                raise
            raise AttributeError(
                f"shape: {self.shape} to {shape} needs a copy, as the elements lie in memory; use x.reshape"
            ) from None

    @property
    def ndim(self) -> int:
        """How many axes it has."""
        return len(self._value.shape)

    @property
    def size(self) -> int:
        """How many elements it has."""
        return self._value.size

    @property
    def dtype(self) -> np.dtype[ScalarT]:
        """The type of an element, a NumPy dtype."""
        return self._value.dtype

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return self._value.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self._value.size * self._value.dtype.itemsize

    @property
    def strides(self) -> memory.Shape:
        """How many bytes neighbours along each axis are apart."""
        view = view_of(self)
        return tuple(stride * view.dtype.itemsize for stride in view.strides)

    @property
    def flags(self) -> Any:
        """How the elements lie in memory. See `numpy.ndarray.flags`."""
        return namespace().array_flags(self)

    @property
    def base(self) -> "Array | None":
        """None for an array with memory of its own; for a view, an array of all elements of its memory.

        That one has one axis, and is a new object each time: compare memory with `vnp.shares_memory`.
        """
        return namespace().base_of(self)

    @property
    def device(self) -> memory.Device:
        """The device that holds it."""
        return memory.device_of(self._value)

    @property
    def T(self) -> "Array[ShapeT, ScalarT]":  # noqa: N802
        """The array with its axes in reverse order: a view."""
        return self.transpose()

    @property
    def mT(self) -> "Array[ShapeT, ScalarT]":  # noqa: N802
        """The array with its last two axes exchanged: a view. Raises ValueError for fewer than two axes."""
        return namespace().matrix_transpose(self)

    @property
    def real(self) -> "Array[ShapeT]":
        """The real parts: a view."""
        return namespace().view_part(self, 0)

    @real.setter
    def real(self, value: Any) -> None:
        self.real[...] = value

    @property
    def imag(self) -> "Array[ShapeT]":
        """The imaginary parts: a view; of arrays that are not complex read-only zeros."""
        return namespace().view_part(self, 1)

    @imag.setter
    def imag(self, value: Any) -> None:
        if self.dtype.kind != "c":
            raise ArgumentTypeError(f"imag: an array of {self.dtype} has no imaginary parts to set")
        self.imag[...] = value

    @property
    def flat(self) -> Any:
        """The elements along one axis: to iterate over as NumPy scalars, to read and to write by index."""
        return namespace().FlatIterator(self)

    @flat.setter
    def flat(self, value: Any) -> None:
        self.flat[...] = value

    # -- values on the host

    def numpy(self) -> "np.ndarray[ShapeT, np.dtype[ScalarT]]":
        """Return the elements as a NumPy array, after computing them and waiting for them.

        Raises UsageError if they are not computed yet and a graph records the calls of this thread.
        """
        value = self._value
        if type(value) is Node and value.failure is None:
            shown = shown_view(value)
            if shown is not None:
                values = read_view(shown)
                if value.result is None and value.failure is None:  # else another thread has written there
                    return values
        return read_view(compute(self))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> "np.ndarray[Any, Any]":
        """Let `np.asarray(x)` read the values, always as a copy; `np.from_dlpack(x)` shows the memory.

        Raises ValueError for `copy=False`.
        """
        if copy is False:
            raise ArgumentValueError("copy: False was passed, but values on the host are always a copy")
        caller = sys._getframe(1)
        if caller.f_code is _AS_STRIDED:
            return read_memory(compute(self))
        if "ndimage" in caller.f_code.co_filename and isinstance(caller.f_locals.get("output"), Array):
            # it would write to the copy
            raise ArgumentTypeError(
                "output: scipy.ndimage cannot write to an Array; pass a dtype or nothing, and use the result"
            )
        values = self.numpy()
        return values if dtype is None else values.astype(dtype, copy=False)

    def item(self, *index: Any) -> Any:
        """Return the only element, or the one at an index, as a Python number. Raises as NumPy's."""
        return self.numpy().item(*index)

    def tolist(self) -> Any:
        """Return the elements as nested lists of Python numbers."""
        return self.numpy().tolist()

    def tobytes(self, order: Any = "C") -> bytes:
        """Return the elements as bytes in C order, or another one. See `numpy.ndarray.tobytes`."""
        # bytes are in no order but C and F
        return self.ravel({None: "C", "K": "C"}.get(order, order)).numpy().tobytes()

    def tofile(self, fid: Any, sep: str = "", format: str = "%s") -> None:
        """Write the elements to a file, as bytes or as text. See `numpy.ndarray.tofile`."""
        self.numpy().tofile(fid, sep, format)

    def dump(self, file: Any) -> None:
        """Pickle the array to a file. See `numpy.ndarray.dump`."""
        self.numpy().dump(file)

    def dumps(self) -> bytes:
        """Return the array as a pickle of NumPy's array. See `numpy.ndarray.dumps`."""
        return self.numpy().dumps()

    def _number(self) -> Any:
        if self.shape:
            raise ArgumentTypeError(
                "only 0-dimensional arrays can be converted to Python scalars, got the shape "
                f"{self.shape}; use item() for an array of one element"
            )
        return self.numpy()[()].item()

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ArgumentValueError(
                f"the truth value of an array of {self.size} elements is ambiguous; use any() or all()"
            )
        return bool(self.numpy().item())

    def __int__(self) -> int:
        return int(self._number())

    def __float__(self) -> float:
        return float(self._number())

    def __complex__(self) -> complex:
        return complex(self._number())

    def __hash__(self) -> int:
        """Return the hash of the number of an array without axes, which takes the place of NumPy's scalars.

        Raises TypeError for other arrays.
        """
        if self.shape:
            raise ArgumentTypeError(
                f"unhashable type: an Array of the shape {self.shape}; tuple(x.tolist()) is hashable"
            )
        return hash(self._number())

    def __trunc__(self) -> int:
        return math.trunc(self._number())

    def as_integer_ratio(self) -> tuple[int, int]:
        """Return two integers whose quotient is the number of an array without axes. See `float`."""
        return self._number().as_integer_ratio()

    def is_integer(self) -> bool:
        """Whether the number of an array without axes is whole. See `float`."""
        return bool(self._number().is_integer())

    def __round__(self, digits: int | None = None) -> Any:
        if self.dtype.kind == "b":
            raise ArgumentTypeError("round: expected a number, got a boolean")
        return round(self._number(), digits)

    def __index__(self) -> int:
        if self.dtype.kind not in "iu" or self.shape:
            raise ArgumentTypeError("only integer scalar arrays can be converted to a scalar index")
        return int(self._number())

    def __len__(self) -> int:
        if not self.shape:
            raise ArgumentTypeError("len() of unsized object: the array has no axes")
        return self.shape[0]

    def __iter__(self) -> Iterator["Array[tuple[Any, ...], ScalarT]"]:
        if not self.shape:
            raise ArgumentTypeError("iteration over a 0-d array")
        return (self[i] for i in range(self.shape[0]))

    def __contains__(self, value: Any) -> bool:
        return bool((self == value).any())

    def __repr__(self) -> str:
        return namespace().array_repr(self)

    def __str__(self) -> str:
        return namespace().array_str(self)

    def __format__(self, spec: str) -> str:
        if not self.shape:
            return format(self.numpy()[()], spec)
        if spec:
            raise ArgumentTypeError(f"unsupported format string passed to Array.__format__: {spec!r}")
        return str(self)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            """Tell what to use instead of an attribute that arrays of other libraries and buffers have."""
            advice = f"; {_ABSENT[name]}" if name in _ABSENT else ""
            # Python suggests similar names by the last two
            text = f"{type(self).__name__!r} object has no attribute {name!r}{advice}"
            raise AttributeError(text, name=name, obj=self)

    def _repr_html_(self) -> str:
        return namespace().array_html(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return namespace().reduce_array(self)

    def __dask_tokenize__(self) -> Any:
        """Return what identifies the values for Dask: equal for equal dtypes, shapes and elements."""
        return namespace().identify_array(self)

    def __copy__(self) -> "Array[ShapeT, ScalarT]":
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> "Array[ShapeT, ScalarT]":
        return self.copy()

    # -- elements

    def __getitem__(self, index: Any) -> "Array[tuple[Any, ...], ScalarT]":
        part = native.known_part(self, index)
        return namespace().get_items(self, index) if part is None else part

    def __setitem__(self, index: Any, value: Any) -> None:
        namespace().set_items(self, index, value)

    # -- protocols

    def __array_namespace__(self, *, api_version: str | None = None) -> ModuleType:
        """Return `vkdispatch.numpy`. Raises ValueError for an unknown version of the array API standard."""
        if api_version not in (None, "2021.12", "2022.12", "2023.12", "2024.12", "2025.12"):
            raise ArgumentValueError(
                f"api_version: expected '2025.12' or an earlier one, got {api_version!r}"
            )
        return namespace()

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return namespace().call_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return namespace().call_function(func, types, args, kwargs)

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[Any, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """Return a DLPack capsule of the elements, which are computed before. See `vd.Buffer.__dlpack__`."""
        return namespace().to_dlpack(self, parse_request(stream, max_version, dl_device, copy))

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return DLPack's type and number of the device. See `vd.Buffer.__dlpack_device__`."""
        return namespace().dlpack_device(self)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The elements as CUDA's libraries take them. See `vd.Buffer.__cuda_array_interface__`."""
        return namespace().cuda_interface(self)

    def _lend_elements(self, ordered: bool) -> Any:
        """Return the elements in memory of the host: see `vd.share`."""
        return namespace().lend_elements(self, ordered)

    @property
    def __vkdispatch_array__(self) -> "Array":
        return self

    def __vkdispatch_buffer__(self, context: Any) -> Buffer[Any]:
        """Let kernels and functions on buffers take the array."""
        return namespace().asbuffer(self)

    def __vkdispatch_argument__(self, is_recorded: bool, is_mapped: bool) -> Any:
        """Return what stands for the array in calls that take buffers. See `vnp.as_argument`."""
        return namespace().as_argument(self, is_recorded, is_mapped)

    @staticmethod
    def __vkdispatch_result__(buffer: Buffer[Any]) -> "Array":
        """Return an array of what a function on buffers returns for arrays."""
        return array_from(buffer)

    def to_device(self, device: Any, /, *, stream: Any = None) -> "Array[ShapeT, ScalarT]":
        """Return the array on a device: itself if it is there, else a copy."""
        return namespace().to_device(self, device, stream=stream)

    # -- methods that are functions of the namespace

    @overload
    def astype(
        self,
        dtype: Scalar[OfScalar],
        order: str = ...,
        casting: Any = ...,
        subok: bool = ...,
        copy: bool = ...,
        *,
        device: Any = ...,
    ) -> "Array[ShapeT, OfScalar]": ...
    @overload
    def astype(
        self,
        dtype: Any,
        order: str = ...,
        casting: Any = ...,
        subok: bool = ...,
        copy: bool = ...,
        *,
        device: Any = ...,
    ) -> "Array[ShapeT]": ...
    def astype(
        self,
        dtype: Any,
        order: str = "K",
        casting: Any = "unsafe",
        subok: bool = True,
        copy: bool = True,
        *,
        device: Any = None,
    ) -> "Array[ShapeT]":
        """Return the array with another dtype. See `numpy.ndarray.astype`. `order` is as of `asarray`.

        Raises TypeError where `casting` does not allow it.
        """
        if casting != "unsafe":
            check_cast(self._value.dtype, memory.parse_dtype(dtype), "astype", casting)
        found = namespace().astype(self, dtype, copy=copy, device=device)
        return found if order == "K" else namespace().asarray(found, order=order)

    def view(self, dtype: Any = None) -> "Array":
        """Return an array on the same memory, whose bytes are elements of another dtype.

        Raises ValueError if lines of elements are no lines of elements of that dtype.
        """
        return namespace().view_as(self, dtype)

    def copy(self, order: str = "C") -> "Array[ShapeT, ScalarT]":
        """Return an array with memory of its own, in C order unless `order` is "F"."""
        return namespace().copy(self, order)

    def fill(self, value: Any) -> None:
        """Set all elements to a number."""
        self[...] = value

    @overload
    def reshape(
        self, shape: OfShape | int, /, *, order: str = ..., copy: bool | None = ...
    ) -> "Array[OfShape, ScalarT]": ...
    @overload
    def reshape(
        self, *shape: Any, order: str = ..., copy: bool | None = ...
    ) -> "Array[tuple[Any, ...], ScalarT]": ...
    def reshape(self, *shape: Any, order: str = "C", copy: bool | None = None) -> "Array":
        """Return the elements with another shape: a view where that is possible."""
        wanted = shape[0] if len(shape) == 1 else shape
        return namespace().reshape(self, wanted, order=order, copy=copy)

    def ravel(self, order: str = "C") -> "Array[tuple[int], ScalarT]":
        """Return the elements along one axis: a view where that is possible."""
        return namespace().ravel(self, order)

    def flatten(self, order: str = "C") -> "Array[tuple[int], ScalarT]":
        """Return a copy of the elements along one axis, in an order as of `ravel`."""
        return self.ravel(order).copy()

    def transpose(self, *axes: Any) -> "Array[ShapeT, ScalarT]":
        """Return the array with its axes in another order: a view."""
        order = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else (axes or None)
        return namespace().transpose(self, order)

    def swapaxes(self, axis1: int, axis2: int) -> "Array[ShapeT, ScalarT]":
        """Return the array with two axes exchanged: a view."""
        return namespace().swapaxes(self, axis1, axis2)

    def squeeze(self, axis: Any = None) -> "Array[tuple[Any, ...], ScalarT]":
        """Return the array without axes of length one: a view."""
        return namespace().squeeze(self, axis)

    def sum(
        self, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False, **options: Any
    ) -> "Array":
        """Return the sum along axes. See `numpy.sum`."""
        return namespace().sum(self, axis=axis, dtype=dtype, out=out, keepdims=keepdims, **options)

    def prod(
        self, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False, **options: Any
    ) -> "Array":
        """Return the product along axes. See `numpy.prod`."""
        return namespace().prod(self, axis=axis, dtype=dtype, out=out, keepdims=keepdims, **options)

    def mean(
        self,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        keepdims: bool = False,
        *,
        where: Any = None,
    ) -> "Array":
        """Return the mean along axes. See `numpy.mean`."""
        return namespace().mean(self, axis=axis, dtype=dtype, out=out, keepdims=keepdims, where=where)

    def var(
        self,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        ddof: float = 0,
        keepdims: bool = False,
        **options: Any,
    ) -> "Array":
        """Return the variance along axes. See `numpy.var`."""
        return namespace().var(self, axis=axis, dtype=dtype, out=out, ddof=ddof, keepdims=keepdims, **options)

    def std(
        self,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        ddof: float = 0,
        keepdims: bool = False,
        **options: Any,
    ) -> "Array":
        """Return the standard deviation along axes. See `numpy.std`."""
        return namespace().std(self, axis=axis, dtype=dtype, out=out, ddof=ddof, keepdims=keepdims, **options)

    def min(
        self, axis: Any = None, out: Any = None, keepdims: bool = False, **options: Any
    ) -> "Array[tuple[Any, ...], ScalarT]":
        """Return the least elements along axes. See `numpy.min`."""
        return namespace().min(self, axis=axis, out=out, keepdims=keepdims, **options)

    def max(
        self, axis: Any = None, out: Any = None, keepdims: bool = False, **options: Any
    ) -> "Array[tuple[Any, ...], ScalarT]":
        """Return the largest elements along axes. See `numpy.max`."""
        return namespace().max(self, axis=axis, out=out, keepdims=keepdims, **options)

    def all(
        self, axis: Any = None, out: Any = None, keepdims: bool = False, *, where: Any = None
    ) -> "Array[tuple[Any, ...], np.bool_]":
        """Return whether all elements along axes are true. See `numpy.all`."""
        return namespace().all(self, axis=axis, out=out, keepdims=keepdims, where=where)

    def any(
        self, axis: Any = None, out: Any = None, keepdims: bool = False, *, where: Any = None
    ) -> "Array[tuple[Any, ...], np.bool_]":
        """Return whether any element along axes is true. See `numpy.any`."""
        return namespace().any(self, axis=axis, out=out, keepdims=keepdims, where=where)

    def argmin(
        self, axis: Any = None, out: Any = None, keepdims: bool = False
    ) -> "Array[tuple[Any, ...], np.int64]":
        """Return the indices of the least elements. See `numpy.argmin`."""
        return namespace().argmin(self, axis=axis, out=out, keepdims=keepdims)

    def argmax(
        self, axis: Any = None, out: Any = None, keepdims: bool = False
    ) -> "Array[tuple[Any, ...], np.int64]":
        """Return the indices of the largest elements. See `numpy.argmax`."""
        return namespace().argmax(self, axis=axis, out=out, keepdims=keepdims)

    def cumsum(self, axis: Any = None, dtype: Any = None, out: Any = None) -> "Array":
        """Return the running sum. See `numpy.cumsum`."""
        return namespace().cumsum(self, axis=axis, dtype=dtype, out=out)

    def cumprod(self, axis: Any = None, dtype: Any = None, out: Any = None) -> "Array":
        """Return the running product. See `numpy.cumprod`."""
        return namespace().cumprod(self, axis=axis, dtype=dtype, out=out)

    def clip(self, min: Any = None, max: Any = None, out: Any = None) -> "Array":
        """Return the elements limited to an interval. See `numpy.clip`."""
        return namespace().clip(self, min, max, out=out)

    def round(self, decimals: int = 0, out: Any = None) -> "Array":
        """Return the elements rounded to a number of decimals. See `numpy.round`."""
        return namespace().round(self, decimals, out=out)

    def conj(self) -> "Array[ShapeT, ScalarT]":
        """Return the complex conjugates; an array of other numbers as it is."""
        return namespace().conj(self) if self.dtype.kind == "c" else self

    conjugate = conj

    def take(
        self, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise"
    ) -> "Array[tuple[Any, ...], ScalarT]":
        """Return elements at indices. See `numpy.take`."""
        return namespace().take(self, indices, axis=axis, out=out, mode=mode)

    def repeat(self, repeats: Any, axis: Any = None) -> "Array[tuple[Any, ...], ScalarT]":
        """Return each element several times. See `numpy.repeat`."""
        return namespace().repeat(self, repeats, axis=axis)

    def nonzero(self) -> tuple["Array[tuple[int], np.int64]", ...]:
        """Return the indices of elements that are not zero. See `numpy.nonzero`."""
        return namespace().nonzero(self)

    def sort(self, axis: int = -1, kind: Any = None, *, stable: Any = None) -> None:
        """Sort the array in place. See `numpy.ndarray.sort`."""
        self[...] = namespace().sort(self, axis=axis)

    def argsort(
        self, axis: Any = -1, kind: Any = None, *, stable: Any = None
    ) -> "Array[tuple[Any, ...], np.int64]":
        """Return the indices that would sort the array. See `numpy.argsort`."""
        return namespace().argsort(self, axis=axis)

    def partition(self, kth: Any, axis: int = -1, kind: Any = None) -> None:
        """Bring larger elements behind the place `kth`, and smaller ones before it, in place."""
        self[...] = namespace().partition(self, kth, axis)

    def argpartition(self, kth: Any, axis: int | None = -1, kind: Any = None) -> "Array":
        """Return the indices that would partition the array. See `numpy.argpartition`."""
        return namespace().argpartition(self, kth, axis)

    def choose(self, choices: Any, out: Any = None, mode: str = "raise") -> "Array":
        """Return elements of several arrays, which this one numbers. See `numpy.choose`."""
        return namespace().choose(self, choices, out, mode)

    def compress(self, condition: Any, axis: int | None = None, out: Any = None) -> "Array":
        """Return the parts along an axis for which a condition holds. See `numpy.compress`."""
        return namespace().compress(condition, self, axis, out)

    def put(self, indices: Any, values: Any, mode: str = "raise") -> None:
        """Write values to places of the flattened array. See `numpy.put`."""
        namespace().put(self, indices, values, mode)

    def searchsorted(
        self, v: Any, side: str = "left", sorter: Any = None
    ) -> "Array[tuple[Any, ...], np.int64]":
        """Return where elements go in the sorted array. See `numpy.searchsorted`."""
        return namespace().searchsorted(self, v, side=side, sorter=sorter)

    def dot(self, b: Any, out: Any = None) -> Any:
        """Return the dot product. See `numpy.dot`."""
        return namespace().dot(self, b, out)

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> "Array[tuple[Any, ...], ScalarT]":
        """Return a diagonal: a view. See `numpy.diagonal`."""
        return namespace().diagonal(self, offset, axis1, axis2)

    def trace(
        self, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None
    ) -> "Array":
        """Return the sum of a diagonal. See `numpy.trace`."""
        return namespace().trace(self, offset, axis1, axis2, dtype, out)

    # -- operators

    def __add__(self, other: Any) -> "Array":
        return _operate("add", self, other)

    def __radd__(self, other: Any) -> "Array":
        return _operate("add", other, self)

    def __iadd__(self, other: Any) -> "Array":
        return _in_place("add", self, other)

    def __sub__(self, other: Any) -> "Array":
        return _operate("subtract", self, other)

    def __rsub__(self, other: Any) -> "Array":
        return _operate("subtract", other, self)

    def __isub__(self, other: Any) -> "Array":
        return _in_place("subtract", self, other)

    def __mul__(self, other: Any) -> "Array":
        return _operate("multiply", self, other)

    def __rmul__(self, other: Any) -> "Array":
        return _operate("multiply", other, self)

    def __imul__(self, other: Any) -> "Array":
        return _in_place("multiply", self, other)

    def __truediv__(self, other: Any) -> "Array":
        return _operate("divide", self, other)

    def __rtruediv__(self, other: Any) -> "Array":
        return _operate("divide", other, self)

    def __itruediv__(self, other: Any) -> "Array":
        return _in_place("divide", self, other)

    def __floordiv__(self, other: Any) -> "Array":
        return _operate("floor_divide", self, other)

    def __rfloordiv__(self, other: Any) -> "Array":
        return _operate("floor_divide", other, self)

    def __ifloordiv__(self, other: Any) -> "Array":
        return _in_place("floor_divide", self, other)

    def __mod__(self, other: Any) -> "Array":
        return _operate("remainder", self, other)

    def __rmod__(self, other: Any) -> "Array":
        return _operate("remainder", other, self)

    def __imod__(self, other: Any) -> "Array":
        return _in_place("remainder", self, other)

    def __divmod__(self, other: Any) -> tuple["Array", "Array"]:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> tuple["Array", "Array"]:
        return other // self, other % self

    def __pow__(self, other: Any) -> "Array":
        return _power(self, other)

    def __rpow__(self, other: Any) -> "Array":
        return _operate("power", other, self)

    def __ipow__(self, other: Any) -> "Array":
        return _in_place("power", self, other)

    def __matmul__(self, other: Any) -> "Array":
        if not isinstance(other, Array):
            return _refuse(other, "matmul")
        return namespace().matmul(self, other)

    def __rmatmul__(self, other: Any) -> "Array":
        return _refuse(other, "matmul")

    def __imatmul__(self, other: Any) -> "Array":
        result = self @ other
        check_cast(result.dtype, self.dtype, "matmul")
        self[...] = result
        return self

    def __and__(self, other: Any) -> "Array":
        return _operate("bitwise_and", self, other)

    def __rand__(self, other: Any) -> "Array":
        return _operate("bitwise_and", other, self)

    def __iand__(self, other: Any) -> "Array":
        return _in_place("bitwise_and", self, other)

    def __or__(self, other: Any) -> "Array":
        return _operate("bitwise_or", self, other)

    def __ror__(self, other: Any) -> "Array":
        return _operate("bitwise_or", other, self)

    def __ior__(self, other: Any) -> "Array":
        return _in_place("bitwise_or", self, other)

    def __xor__(self, other: Any) -> "Array":
        return _operate("bitwise_xor", self, other)

    def __rxor__(self, other: Any) -> "Array":
        return _operate("bitwise_xor", other, self)

    def __ixor__(self, other: Any) -> "Array":
        return _in_place("bitwise_xor", self, other)

    def __lshift__(self, other: Any) -> "Array":
        return _operate("left_shift", self, other)

    def __rlshift__(self, other: Any) -> "Array":
        return _operate("left_shift", other, self)

    def __ilshift__(self, other: Any) -> "Array":
        return _in_place("left_shift", self, other)

    def __rshift__(self, other: Any) -> "Array":
        return _operate("right_shift", self, other)

    def __rrshift__(self, other: Any) -> "Array":
        return _operate("right_shift", other, self)

    def __irshift__(self, other: Any) -> "Array":
        return _in_place("right_shift", self, other)

    def __lt__(self, other: Any) -> "Array[tuple[Any, ...], np.bool_]":
        return _operate("less", self, other)

    def __le__(self, other: Any) -> "Array[tuple[Any, ...], np.bool_]":
        return _operate("less_equal", self, other)

    def __gt__(self, other: Any) -> "Array[tuple[Any, ...], np.bool_]":
        return _operate("greater", self, other)

    def __ge__(self, other: Any) -> "Array[tuple[Any, ...], np.bool_]":
        return _operate("greater_equal", self, other)

    def __eq__(self, other: object) -> "Array[tuple[Any, ...], np.bool_]":  # type: ignore[override]
        return _operate("equal", self, other)

    def __ne__(self, other: object) -> "Array[tuple[Any, ...], np.bool_]":  # type: ignore[override]
        return _operate("not_equal", self, other)

    def __neg__(self) -> "Array[ShapeT, ScalarT]":
        return _operate("negative", self)

    def __pos__(self) -> "Array[ShapeT, ScalarT]":
        return _operate("positive", self)

    def __abs__(self) -> "Array[ShapeT]":
        return _operate("absolute", self)

    def __invert__(self) -> "Array[ShapeT, ScalarT]":
        return _operate("invert", self)


def array_from(buffer: Buffer[Any], shape: memory.Shape | None = None) -> Array:
    """Return the array of a buffer that nobody else has."""
    lengths = buffer.shape if shape is None else shape
    return array_of(View(memory.Storage(buffer), lengths, memory.numpy_type(buffer.var_type)))


def view_of(array: Array) -> View:
    """Return the view of an array, for others to show its memory; it is computed if it is not yet.

    While a graph records, that is not recorded.
    """
    value = array._value
    if type(value) is View:
        return value
    array._value = view = evaluate_apart(value)
    return view


def compute(array: Array) -> View:
    """Compute an array if it is not yet. Raises UsageError while a graph records the calls of this thread."""
    value = array._value
    if type(value) is View:
        return value
    array._value = view = evaluate(value)
    return view


# What messages about an array of NumPy say to do.
CONVERT = "convert it with vnp.asarray"
_NUMBERS = (bool, int, float, complex, np.number, np.bool_)
_EQUALITY = {"equal": "__eq__", "not_equal": "__ne__"}
COMPARISONS = {"less", "less_equal", "greater", "greater_equal", "equal", "not_equal"}


def parse_operand(value: Any, name: str = "x") -> Any:
    """Return the expression or view of an array; numbers as they are, also those in NumPy's 0-d arrays.

    Raises
    ------
    TypeError
        It is neither. NumPy's arrays are refused: they would be copied to the device in silence.
    """
    if isinstance(value, Array):
        return value_of(value)
    if isinstance(value, _NUMBERS):
        return value
    if _is_scalar(value):
        return value[()]
    if isinstance(value, (np.ndarray, Buffer)):
        raise ArgumentTypeError(f"{name}: expected an Array or a number, got {describe(value)}; {CONVERT}")
    if hasattr(value, "var_type"):
        # imported here: programs without kernels need no place in their source
        from vkdispatch.compiler.ir.location import located

        raise located(
            ArgumentTypeError,
            f"{name}: functions of vkdispatch.numpy take arrays, and are called outside kernels; for a GPU "
            "value there are the functions of vc, such as vc.sin",
        )
    raise ArgumentTypeError(
        f"{name}: expected an Array or a number, got {describe(value)}{suggest_array(value)}"
    )


def suggest_array(value: object) -> str:
    """Return what messages add about an array of another library: how it becomes one of this namespace."""
    return "; make one on its memory with vnp.from_dlpack(x)" if has_dlpack(value) else ""


def describe(value: object) -> str:
    """Return what messages call a value that is no array."""
    if isinstance(value, np.ndarray):
        return f"a NumPy array of shape {value.shape} and dtype {value.dtype}"
    return f"{value!r} ({type(value).__name__})" if len(repr(value)) < 40 else f"a {type(value).__name__}"


def _refuse(other: object, name: str) -> Any:
    if isinstance(other, (Buffer, np.ndarray)):
        parse_operand(other, name)
    return NotImplemented


def _combine(name: str, *operands: Any) -> Any:
    """Return the array of an operator for what `native.operate` does not know."""
    if len(operands) == 1:
        return array_of(apply_ufunc(name, (value_of(operands[0]),)))
    values: list[Any] = []
    for operand in operands:
        if not isinstance(operand, (Array, *_NUMBERS)) and not _is_scalar(operand):
            refused = _refuse(operand, name)
            return _compare(name, operands[0], operand) if name in _EQUALITY else refused
        values.append(parse_operand(operand))
    if name in COMPARISONS and type(values[1]) is int:
        values[1] = bound_integer(values[1], values[0].dtype)
    return array_of(apply_ufunc(name, tuple(values)))


def _compare(name: str, x: Array, other: Any) -> Any:
    """Return which elements are equal to something else, or are not, where Python would say False."""
    if isinstance(other, (list, tuple, range)):
        given = namespace().asarray(list(other) if isinstance(other, range) else other, device=x.device)
        return _operate(name, x, given)
    answer = getattr(type(other), _EQUALITY[name])(other, x)
    if answer is not NotImplemented:
        return answer
    return namespace().full(x.shape, name == "not_equal", device=x.device)


native.serve_operators(Array, loops, _combine)


def _is_scalar(value: object) -> bool:
    """Whether a value is a NumPy array without axes, which holds a number."""
    return isinstance(value, np.ndarray) and not value.ndim and value.dtype.kind in "biufc"


def bound_integer(number: int, dtype: memory.Kind) -> float:
    """Return an integer to compare elements with: one that the dtype cannot hold becomes infinite."""
    if dtype.kind not in "iu":
        return number
    limits = np.iinfo(dtype)
    if number > limits.max:
        return math.inf
    return -math.inf if number < limits.min else number


# What NumPy computes for powers of Python numbers.
_POWERS: dict[Any, str] = {2: "square", -1: "reciprocal", 0.5: "sqrt"}


def _power(x: Array, y: Any) -> Any:
    if type(y) in (int, float):
        name = _POWERS.get(y)
        if name is not None and (x.dtype.kind in "fc" or (name == "square" and type(y) is int)):
            return array_of(apply_ufunc(name, (value_of(x),)))
    return _operate("power", x, y)


def _in_place(name: str, x: Array, y: Any) -> Any:
    if name == "power" and x.dtype.kind in "biu" and isinstance(y, (Array, int, np.integer)):
        # before the exponents are looked at, which a call that fails must not
        check_cast(np.result_type(x.dtype, y.dtype if isinstance(y, Array) else y), x.dtype, name)
    result = _power(x, y) if name == "power" else _operate(name, x, y)
    if result is NotImplemented:
        return result
    store(x, result._value, name)
    return x


def store(target: Array, value: Value, name: str) -> None:
    """Set all elements of an array to a value of the same shape.

    Raises
    ------
    TypeError
        The value's dtype does not go into the array's by a "same_kind" cast.
    ValueError
        The value has another shape.
    UsageError
        A graph records the calls of this thread.
    """
    memory.refuse_recording()
    check_cast(value.dtype, target.dtype, name)
    if value.shape != target.shape:
        raise ArgumentValueError(
            f"{name}: the result of shape {value.shape} does not fit the array of shape {target.shape}"
        )
    own = value_of(target)
    if type(own) is Node and not shows_parts(own):
        # nothing else shows its memory yet, nor shall what the value shows
        if type(value) is Node:
            target._value = cast(value, own.dtype)
        else:
            target._value = make_operation(COPY, (value,), (own.dtype,), own.shape, own.dtype)
    else:
        assign(view_of(target), value, name)


def check_cast(source: memory.Kind, target: memory.Kind, name: str, casting: Any = "same_kind") -> None:
    """Raise TypeError if NumPy's rule `casting` does not allow a cast."""
    if source is not target and not np.can_cast(source, target, casting):
        raise ArgumentTypeError(
            f"{name}: cannot cast from {source} to {target} by the rule {casting!r}; use astype"
        )


def require_out(out: Any, name: str = "out") -> Array:
    """Return an argument that is written to. Raises TypeError if it is no Array."""
    if not isinstance(out, Array):
        written = "" if name == "out" else ", which is written to"
        raise ArgumentTypeError(
            f"{name}: expected an Array{written}, got {describe(out)}{suggest_array(out)}"
        )
    return out


def store_result(out: Any, result: Array) -> Array:
    """Return a result, or store it in `out` and return that. Raises TypeError if `out` is no Array."""
    if out is None:
        return result
    store(require_out(out), value_of(result), "out")
    return out


def read_view(view: View) -> "np.ndarray[Any, Any]":
    """Return the elements of a view as a NumPy array."""
    buffer = view.storage.buffer
    if view.size == 0:
        return np.empty(view.shape, view.dtype)
    if not view.is_contiguous:
        from vkdispatch.numpy.core.kernels import gather

        with pause_recording():
            return read_view(gather(view))
    is_whole = view.size == buffer.size
    values = buffer.read(0) if is_whole else buffer.read_range(view.offset, view.offset + view.size, 0)
    return np.asarray(values).reshape(view.shape)


def read_memory(view: View) -> "np.ndarray[Any, Any]":
    """Return the elements of a view as a read-only NumPy array that has its strides."""
    buffer = view.storage.buffer
    if not buffer.size:
        return read_view(view)
    elements = np.asarray(buffer.read(0)).reshape(-1)
    elements.flags.writeable = False
    strides = tuple(stride * view.dtype.itemsize for stride in view.strides)
    return np.ndarray(view.shape, view.dtype, elements, view.offset * view.dtype.itemsize, strides)


def parse_index(value: SupportsIndex, name: str) -> int:
    """Return an integer argument. Raises TypeError for anything else."""
    try:
        return operator.index(value)
    except TypeError:
        raise ArgumentTypeError(f"{name}: expected an int, got {describe(value)}") from None


def parse_count(value: SupportsIndex, name: str) -> int:
    """Return an integer argument of at least 0. Raises TypeError or ValueError for anything else."""
    count = parse_index(value, name)
    if count < 0:
        raise ArgumentValueError(f"{name}: expected at least 0, got {count}")
    return count


ndarray = Array  # NumPy's name
