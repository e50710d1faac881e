"""Memory of arrays: dtypes, devices, storages and views."""

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, cast

import numpy as np

from vkdispatch.base import dtype as dt
from vkdispatch.base.buffer import Buffer
from vkdispatch.base.context import Context, get_context, is_current, use_context
from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, BackendUnavailableError, UsageError
from vkdispatch.base.native_module import native
from vkdispatch.execution_pipeline.command_graph import current
from vkdispatch.families.tuning import device_facts
from vkdispatch.rearrange.transposing import merge_axes, transpose

# ---- NumPy dtypes of arrays, the dtypes of kernels for them, and NumPy's rules of promotion --------------


Kind = np.dtype[Any]

bool_ = np.dtype(np.bool_)
int64 = np.dtype(np.int64)
float32 = np.dtype(np.float32)
float64 = np.dtype(np.float64)

_INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_KERNEL_TYPES: dict[Kind, DType] = {bool_: dt.bool_}
for _name in (*_INTEGERS, "float16", "float32", "float64", "complex64", "complex128"):
    _KERNEL_TYPES[np.dtype(_name)] = getattr(dt, _name)
_NUMPY_TYPES = {kernel: kind for kind, kernel in _KERNEL_TYPES.items()}
_KINDS: dict[type, Kind] = {kind.type: kind for kind in _KERNEL_TYPES}
NARROWER = {float64: float32, np.dtype(np.complex128): np.dtype(np.complex64)}
_REAL: dict[str, Kind] = {}


def kernel_type(kind: Kind) -> DType:
    """Return the dtype that kernels have for a NumPy dtype. Raises TypeError if there is none."""
    try:
        return _KERNEL_TYPES[kind]
    except KeyError:
        raise ArgumentTypeError(
            f"dtype: arrays can have booleans, integers, real and complex numbers, got {kind}"
        ) from None


def numpy_type(kind: DType) -> Kind:
    """Return the NumPy dtype of a dtype of kernels. Raises TypeError if there is none."""
    try:
        return _NUMPY_TYPES[kind]
    except KeyError:
        raise ArgumentTypeError(f"dtype: an array has no elements of type {kind.name}") from None


def parse_dtype(value: object, name: str = "dtype") -> Kind:
    """Return the NumPy dtype that an argument stands for. Raises TypeError if arrays cannot have it."""
    if isinstance(value, type):
        if value in _KINDS:
            return _KINDS[value]
        if issubclass(value, dt.dtype):
            return numpy_type(value)
    try:
        kind: Kind = np.dtype(cast(Any, value)).newbyteorder("=")
    except TypeError:
        raise ArgumentTypeError(f"{name}: expected a dtype such as float32, got {value!r}") from None
    if value is None or kind not in _KERNEL_TYPES:
        raise ArgumentTypeError(
            f"{name}: arrays can have booleans, integers, real and complex numbers, got {value!r}"
        )
    return kind


def part_kind(kind: Kind) -> Kind:
    """Return the dtype of the parts of complex numbers; of other numbers their own."""
    return np.dtype(f"f{kind.itemsize // 2}") if kind.kind == "c" else kind


def has_float64() -> bool:
    """Whether the devices of the current context compute with float64; true without any device."""
    try:
        return bool(get_context().device_infos[0].float_64_support)
    except BackendUnavailableError:
        return True  # arrays without elements can have it


def default_real() -> Kind:
    """Return the dtype of real numbers that nothing else decides."""
    if "real" not in _REAL:
        return float64 if has_float64() else float32
    return _REAL["real"]


def parse_real(dtype: object) -> Kind:
    """Return the dtype that an argument stands for; None: the one of `default_real`."""
    return default_real() if dtype is None else parse_dtype(dtype)


def default_complex() -> Kind:
    """Return the complex dtype that goes with `default_real`."""
    return np.dtype(np.complex128) if default_real() == float64 else np.dtype(np.complex64)


def default_setting() -> Kind | None:
    """Return the dtype that `set_default_dtype` has set; None: that of the device."""
    return _REAL.get("real")


def set_default_dtype(dtype: object) -> None:
    """Let new real arrays have this dtype unless another one is given.

    Parameters
    ----------
    dtype
        float32 or float64; None restores the default: float64 where the device has it, else float32.

    Raises
    ------
    TypeError
        `dtype` is neither.

    Examples
    --------
    >>> vnp.set_default_dtype(vnp.float32)
    >>> vnp.ones(2)
    Array([1., 1.], dtype=float32)
    >>> vnp.set_default_dtype(None)
    """
    if dtype is None:
        _REAL.clear()
        return
    kind = parse_dtype(dtype)
    if kind not in (float32, float64):
        raise ArgumentTypeError(f"dtype: expected float32, float64 or None, got {dtype!r}")
    _REAL["real"] = kind


@lru_cache(4096)
def resolve(ufunc: np.ufunc, operands: tuple[Any, ...], wide: bool) -> tuple[Kind, ...]:
    """Return the dtypes with which a ufunc computes: of each input, then of each output.

    Parameters
    ----------
    operands
        The dtype of each input; of a Python number its type, which adapts to the others.
    wide
        Whether integers become float64 where they become real; else float32.

    Raises
    ------
    TypeError
        NumPy's function does not take these dtypes.
    """
    kinds = ufunc.resolve_dtypes((*operands, *(None,) * ufunc.nout))
    if not wide and not any(isinstance(operand, np.dtype) and operand in NARROWER for operand in operands):
        kinds = tuple(NARROWER.get(kind, kind) for kind in kinds)
    return tuple(kinds)


# ---- What arrays do while a graph records the calls of the running thread --------------------------------


def refuse_recording() -> None:
    """Raise UsageError while a graph records the calls of this thread."""
    if current.chosen is not None:
        raise UsageError(
            "a graph records the calls of this thread (`with graph:` or vd.set_global_graph), but it cannot "
            "record operations on Arrays of vkdispatch.numpy: compute before the recording starts or after "
            "it ends. Kernels and functions on buffers can be recorded, and accept Arrays"
        )


# ---- Memory of arrays: storages, and views that show elements of a storage by shape and strides ----------


Shape = tuple[int, ...]
Storage = native.Storage
View = native.View
c_strides = native.c_strides
is_c_order = native.is_c_order


class _Refusal(list[Any]):
    """In place of readers of a memory that must not be written: the reason."""

    def __init__(self, reason: str) -> None:
        self.reason = reason


def refuse_writes(storage: Storage, reason: str) -> None:
    """Have every write to a memory raise ValueError with this message."""
    memory = storage.memory
    memory.readers = _Refusal(reason)
    memory.watch()


def require_writable(memory: native.Buffer) -> None:
    """Raise ValueError if `refuse_writes` was called for a memory."""
    if type(memory.readers) is _Refusal:
        raise ArgumentValueError(memory.readers.reason)


def share_storage(storage: Storage, kind: Kind | None = None, *, is_read_only: bool = False) -> Storage:
    """Return another storage on the same memory: of elements of another dtype, or read-only for arrays."""
    storage.share()
    own = storage.buffer
    if kind is not None:
        length = storage.nbytes // kind.itemsize
        own = Buffer.of_memory(storage.context, storage.memory, (length,), kernel_type(kind))
    other = Storage(own, is_shared=True)
    other.is_read_only = is_read_only or storage.is_read_only
    return other


def part_of(view: View, number: int, kind: Kind) -> View:
    """Return the view of the real parts of complex numbers (0), or of the imaginary ones (1)."""
    storage = share_storage(view.storage, kind)
    strides = tuple(2 * stride for stride in view.strides)
    return View(storage, view.shape, kind, 2 * view.offset + number, strides)


def is_read_only(view: View) -> bool:
    """Whether a view must not be written: it is one of `broadcast_to`, or it may show an element twice."""
    if view.storage.is_read_only or view.storage.memory.read_only:
        return True
    if view.size == 0:
        return False
    axes = zip(view.shape, view.strides, strict=True)
    reach = 0
    for stride, length in sorted((abs(stride), length) for length, stride in axes if length > 1):
        if stride <= reach:
            return True
        reach += stride * (length - 1)
    return False


def is_f_order(view: View) -> bool:
    """Whether the elements of a view lie one behind the other with the first axis changing fastest."""
    return is_c_order(view.shape[::-1], view.strides[::-1])


def overlaps(first: View, second: View) -> bool:
    """Whether two views may show the same element."""
    if first.storage.memory is not second.storage.memory or not (first.size and second.size):
        return False
    a, b = bounds(first), bounds(second)
    item, other = first.dtype.itemsize, second.dtype.itemsize
    return a[0] * item < (b[1] + 1) * other and b[0] * other < (a[1] + 1) * item


def bounds(view: View) -> tuple[int, int]:
    """Return the places of the first and the last element that a view shows."""
    low = high = view.offset
    for length, stride in zip(view.shape, view.strides, strict=True):
        if stride < 0:
            low += (length - 1) * stride
        else:
            high += (length - 1) * stride
    return low, high


def stretch(shape: Shape, own: Shape, strides: Shape) -> Shape:
    """Return the strides of elements in a larger shape: 0 along axes on which they are repeated."""
    kept = (0 if length == 1 else stride for length, stride in zip(own, strides, strict=True))
    return (*(0,) * (len(shape) - len(own)), *kept)


def join_axes(axes: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Leave out axes of one element, and join neighbours that go on evenly: pairs of length and stride."""
    found: list[tuple[int, int]] = []
    for length, stride in axes:
        if length == 1:
            continue
        if found and found[-1][1] == stride * length:
            found[-1] = (found[-1][0] * length, stride)
        else:
            found.append((length, stride))
    return found


def reshape_strides(view: View, shape: Shape) -> Shape | None:
    """Return the strides with which a view has another shape of the same size; None if it has none."""
    if view.is_contiguous or view.size == 0:
        return c_strides(shape)
    # neighbouring axes that lie as one are taken together, and parted again
    runs = join_axes(zip(view.shape, view.strides, strict=True))
    strides: list[int] = []
    axes = list(reversed(shape))
    position = 0
    for run, stride in reversed(runs):
        step = stride
        rest = run
        while rest > 1:
            if position == len(axes) or rest % axes[position]:
                return None
            strides.append(step)
            step *= axes[position]
            rest //= axes[position]
            position += 1
    strides += [1] * (len(axes) - position)
    return tuple(reversed(strides))


# ---- Copies of transposed views, by the tiles of `vd.transpose` ------------------------------------------


# Elements below which a launch costs more than where its elements lie.
_MIN_ELEMENTS = 1 << 14
_TILED = ((1, 0), (0, 2, 1), (2, 1, 0), (1, 0, 2))
# On CPUs the other kernel is as fast unless elements are small, or lines short.
_SMALL_ITEM, _SHORT = 2, 16


def turn(view: View) -> View | None:
    """Return a copy of a view that shows a whole memory with its axes in another order; None for others."""
    memory = view.storage.buffer
    if view.size < _MIN_ELEMENTS or view.offset or view.size != memory.size or min(view.strides) <= 0:
        return None
    order = sorted(range(len(view.shape)), key=lambda axis: (-view.strides[axis], view.shape[axis] != 1))
    shape = tuple(view.shape[axis] for axis in order)
    if not is_c_order(shape, tuple(view.strides[axis] for axis in order)):
        return None
    lengths, axes = merge_axes(shape, [order.index(axis) for axis in range(len(order))])
    if axes not in _TILED:
        return None
    with use_context(memory.context):
        if device_facts().is_cpu and view.dtype.itemsize > _SMALL_ITEM and min(lengths[-2:]) > _SHORT:
            return None
    source = Buffer.of_memory(memory.context, memory._native, lengths, memory.var_type)
    return View(Storage(transpose(source, axes)), view.shape, view.dtype)


# ---- Devices of arrays: each is a context of `vd.make_context` -----------------------------------


class Device:
    """Where arrays lie. Devices are equal if they are the same context.

    Attributes
    ----------
    context
        The `vd.Context`.
    """

    __slots__ = ("context",)

    def __init__(self, context: Context) -> None:
        self.context = context

    @property
    def is_current(self) -> bool:
        """Whether the context is the current one."""
        return is_current(self.context)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and other.context is self.context

    def __hash__(self) -> int:
        return hash(id(self.context))

    def __repr__(self) -> str:
        return f"<device {' and '.join(info.device_name for info in self.context.device_infos)!r}>"


def parse_device(device: Any) -> Device:
    """Return the device that an argument stands for: None is the current context's.

    Raises TypeError if it is neither a device nor a context.
    """
    if device is None:
        return Device(get_context())
    if isinstance(device, Device):
        return device
    if isinstance(device, Context):
        return Device(device)
    raise ArgumentTypeError(
        f"device: expected a device such as x.device, a vd.Context or None, got {device!r}"
    )


def _context_of(value: Any) -> Context | None:
    if type(value) is native.Node and value.result is not None:
        value = value.result
    if type(value) is View:
        return value.storage.context  # type: ignore[no-any-return]
    if type(value) is native.Node:
        for operand in value.operands:
            context = _context_of(operand)
            if context is not None:
                return context
    return None


def device_of(value: Any) -> Device:
    """Return the device of an expression or view."""
    return Device(_context_of(value) or get_context())
