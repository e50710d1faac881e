"""Arrays to and from other libraries, kernels and files, and how their elements lie in memory."""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, Self

import numpy as np

from vkdispatch.base.buffer import Buffer
from vkdispatch.base.buffers.foreign import foreign_buffer, upload
from vkdispatch.base.buffers.kinds import copy_between_contexts
from vkdispatch.base.context import Context
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, SharingError, VulkanError
from vkdispatch.base.record import replace
from vkdispatch.base.sharing import dlpack
from vkdispatch.base.sharing.cuda_link import CUDA, can_link
from vkdispatch.base.sharing.cuda_memory import lend_by_interface, make_interface
from vkdispatch.base.sharing.formats import note, start_clock
from vkdispatch.numpy.basics.creation import empty, zeros
from vkdispatch.numpy.basics.manipulation import broadcast_to
from vkdispatch.numpy.core import memory
from vkdispatch.numpy.core.array import Array, array_of, describe, value_of, view_of
from vkdispatch.numpy.core.conversion import asarray, asnumpy, from_numpy, require_array
from vkdispatch.numpy.core.expressions import Node
from vkdispatch.numpy.core.kernels import as_operand, gather, memory_of, new_view
from vkdispatch.numpy.core.memory import parse_device
from vkdispatch.shader.map import MappedArray

# ---- Arrays as arguments of kernels, of functions on buffers, and of maps --------------------------------


def as_argument(x: Array, is_recorded: bool = False, is_mapped: bool = False) -> Buffer[Any] | MappedArray:
    """Return what stands for an array in a call that takes buffers.

    It is the array's memory if the elements fill that in C order, else a copy, which can be read only, or
    with `is_mapped` a map that computes the elements.

    Raises
    ------
    ValueError
        The call is recorded in a graph, which would read the copy, not the array.
    """
    value = value_of(x)
    if is_mapped and (type(value) is Node or not view_of(x).is_whole):
        return as_operand(value, x.shape)
    view = view_of(x)
    if view.is_whole and not view.storage.is_read_only:
        view.storage.share()
        return memory_of(view, view.shape)
    what = f"an array of shape {view.shape} that is a part of a larger one, not in C order, or read-only,"
    if is_recorded:
        raise ArgumentValueError(
            f"{what} cannot be an argument of a recorded call, because it would be copied now; "
            "pass x.copy(), which the graph reads each time"
        )
    copy = gather(view)
    text = "is written by the kernel, but kernels get a copy of it; pass x.copy() and assign the result"
    memory.refuse_writes(copy.storage, f"{what} {text}")
    return memory_of(copy, copy.shape)


# ---- How elements lie in memory: views as other dtypes, and flags ----------------------------------------


class Flags(NamedTuple):
    """How an array lies in memory. See `numpy.ndarray.flags`; NumPy's names in brackets work too."""

    c_contiguous: bool
    f_contiguous: bool
    owndata: bool
    writeable: bool
    aligned: bool = True

    def __getitem__(self, name: Any) -> Any:
        """Return a flag by its name, such as "C_CONTIGUOUS". Raises KeyError for an unknown one."""
        if not isinstance(name, str):
            return tuple(self)[name]
        short = {field[0]: field for field in self._fields}
        lower = short.get(name.lower(), name.lower())
        if lower in _COMBINATIONS:
            return _COMBINATIONS[lower](self)
        if lower not in self._fields:
            raise KeyError(
                f"unknown flag {name!r}: expected one of {[each.upper() for each in self._fields]}"
            )
        return getattr(self, lower)

    def __getattr__(self, name: str) -> bool:
        """Return a combination of flags that NumPy has: `forc`, `fnc`, `behaved`, `carray`, `farray`."""
        if name in _COMBINATIONS:
            return _COMBINATIONS[name](self)
        raise AttributeError(f"flags: no flag {name!r}")


_COMBINATIONS: dict[str, Callable[[Flags], bool]] = {
    "forc": lambda flags: flags.f_contiguous or flags.c_contiguous,
    "fnc": lambda flags: flags.f_contiguous and not flags.c_contiguous,
    "behaved": lambda flags: flags.aligned and flags.writeable,
    "carray": lambda flags: flags.c_contiguous and flags["BEHAVED"],
    "farray": lambda flags: flags["FNC"] and flags["BEHAVED"],
}


def array_flags(x: Array) -> Flags:
    """Return how an array lies in memory, after computing it."""
    view = view_of(x)
    return Flags(
        c_contiguous=view.is_contiguous,
        f_contiguous=memory.is_f_order(view),
        owndata=view.is_whole and not view.storage.memory.imported,
        writeable=not memory.is_read_only(view),
    )


def base_of(x: Array) -> Array | None:
    """Return None for an array with memory of its own; for a view, an array of all elements of its memory."""
    view = view_of(x)
    if view.is_whole and not view.storage.memory.imported:
        return None
    return array_of(memory.View(view.storage, (view.storage.buffer.size,), view.dtype))


def view_as(x: Array, dtype: Any = None) -> Array:
    """Return an array on the same memory, whose bytes are elements of another dtype.

    Raises
    ------
    TypeError
        Arrays cannot have the dtype.
    ValueError
        The elements' size differs, and they do not lie one behind the other or do not fill the last axis.
    """
    view = view_of(x)
    kind = view.dtype if dtype is None else memory.parse_dtype(dtype)
    if kind == view.dtype:
        return array_of(memory.View(view.storage, view.shape, kind, view.offset, view.strides))
    if view.dtype.kind == "b" or kind.kind == "b":
        raise ArgumentTypeError(f"dtype: {view.dtype} has no view as {kind}; use astype")
    shape, strides, offset = _lay_out(view, kind)
    return array_of(memory.View(memory.share_storage(view.storage, kind), shape, kind, offset, strides))


def view_part(x: Array, number: int) -> Array:
    """Return the real parts of an array (0), or the imaginary ones (1): a view.

    The imaginary parts of other than complex numbers are read-only zeros.
    """
    kind = memory.part_kind(x.dtype)
    if x.dtype.kind != "c":
        return broadcast_to(zeros((), kind, device=x.device), x.shape) if number else x
    view = view_of(x)
    if not view.size:
        return empty(view.shape, kind, device=x.device)
    return array_of(memory.part_of(view, number, kind))


def _lay_out(view: memory.View, kind: memory.Kind) -> tuple[memory.Shape, memory.Shape, int]:
    """Return shape, strides and offset of a view in elements of another dtype."""
    old, new = view.dtype.itemsize, kind.itemsize
    if old == new:
        return view.shape, view.strides, view.offset
    if not view.shape or (view.size and view.strides[-1] != 1 and view.shape[-1] != 1):
        raise ArgumentValueError(f"dtype: a view as {kind} needs a contiguous last axis; copy it first")
    if not view.size and view.shape[-1] * old % new == 0:
        shape = (*view.shape[:-1], view.shape[-1] * old // new)
        return shape, memory.c_strides(shape), 0
    strides = view.strides if view.size else memory.c_strides((*view.shape[:-1], 0))
    numbers = [view.shape[-1] * old, view.offset * old, *(stride * old for stride in strides[:-1])]
    if any(number % new for number in numbers):
        raise ArgumentValueError(
            f"dtype: lines of {view.shape[-1]} elements of {view.dtype} are no lines of {kind}"
        )
    length, offset, *outer = (number // new for number in numbers)
    return (*view.shape[:-1], length), (*outer, 1), offset


# ---- Arrays to and from other libraries, by DLPack and by NumPy's protocols ------------------------------


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None, ordered: bool = True) -> Array:
    """Return an array of the elements of an object that has `__dlpack__`, in their memory where possible.

    On CPUs and integrated GPUs, memory of the host is used where it lies, with its strides: writes to the
    array show in the other library, and the other way round. Elsewhere the elements are copied. See
    `numpy.from_dlpack`.

    Parameters
    ----------
    x
        An array of NumPy, PyTorch or any other library. An Array or a `vd.Buffer` gives an array on its
        memory.
    device
        Where; None is the device of `x`, or the current context's.
    copy
        True always copies, False never does, None copies where it has to.
    ordered
        Whether operations that use shared memory finish before they return; see `vd.from_dlpack`.

    Raises
    ------
    TypeError
        `x` has no `__dlpack__`, or arrays cannot have such elements, such as bfloat16.
    BufferError, ValueError
        The other library refuses to share the elements, or `copy` is False and they have to be copied.

    Examples
    --------
    >>> vnp.from_dlpack(np.arange(3))
    Array([0, 1, 2], dtype=int64)
    """
    if isinstance(x, dlpack.SharedMemory):
        x = x.source
    if isinstance(x, (Array, Buffer)):
        return asarray(x, device=device, copy=copy)
    begin = start_clock()
    place = parse_device(device)
    elements = dlpack.take_elements(x, "x", place.context)
    kind = memory.numpy_type(elements.kind)
    obstacle = dlpack.find_obstacle(elements, place.context)
    if copy is not True and obstacle is None:
        try:
            array = _import(elements, kind, place.context, ordered)
            note("take", place.context, begin)
            return array
        except VulkanError as error:
            obstacle = f"the driver refused it: {error}"
    if copy is False:
        raise SharingError(f"copy: False was passed, but x must be copied: {obstacle}")
    if elements.device[0] == CUDA:
        return asarray(upload(elements, place.context))
    return from_numpy(dlpack.as_numpy(elements), place)


def _import(elements: dlpack.Elements, kind: memory.Kind, context: Context, ordered: bool) -> Array:
    if not math.prod(elements.shape):
        return array_of(new_view(elements.shape, kind, context))
    imported = dlpack.import_memory(elements, context, ordered, is_whole=False)
    buffer = foreign_buffer(imported, elements, (imported.memory.size // kind.itemsize,), context)
    low, _ = dlpack.bounds(elements)
    first = (imported.offset + elements.address - low) // kind.itemsize
    storage = memory.Storage(buffer, is_shared=True)
    return array_of(memory.View(storage, elements.shape, kind, first, elements.strides))


def lend_elements(x: Array, ordered: bool) -> dlpack.Elements:
    """Return the elements of an array in memory of the host, computed, and with all work on them finished.

    Raises SharingError if they do not lie there.
    """
    dlpack_device(x)
    return _lend(x, dlpack.lend_host_memory, ordered)


def _lend(x: Array, lend: Callable[..., dlpack.Elements], option: Any) -> dlpack.Elements:
    """Return the elements of an array, of the memory where they lie, which a function lends."""
    view = view_of(x)
    storage = view.storage
    storage.share()
    lent = lend(storage.context, storage.memory, memory.kernel_type(view.dtype), (), option)
    return replace(
        lent,
        address=lent.address + view.offset * view.dtype.itemsize if view.size else 0,
        shape=view.shape,
        strides=view.strides,
        flags=lent.flags | (dlpack.READ_ONLY if memory.is_read_only(view) else 0),
    )


def to_dlpack(x: Array, request: dlpack.Request) -> Any:
    """Return a DLPack capsule of the elements: `Array.__dlpack__`."""
    return dlpack.export(
        request,
        lambda: dlpack_device(x),
        lambda: _lend(x, dlpack.lend_memory, request.stream),
        lambda: dlpack.copy_of(x.numpy(), memory.kernel_type(x.dtype), x.shape),
        lambda: _lend(x.copy(), dlpack.lend_memory, request.stream),
    )


def dlpack_device(x: Array) -> tuple[int, int]:
    """Return DLPack's type and number of an array's device: `Array.__dlpack_device__`."""
    return dlpack.place_of(x.device.context, "x.numpy()")


def cuda_interface(x: Array) -> dict[str, Any]:
    """Return what `Array.__cuda_array_interface__` shows. Raises AttributeError without CUDA."""
    context = x.device.context
    if not can_link(context):  # before the elements are computed
        raise AttributeError("__cuda_array_interface__: CUDA cannot share this memory")
    view = view_of(x)
    view.storage.share()
    buffer = view.storage.buffer
    buffer._cuda_loan = loan = lend_by_interface(context, view.storage.memory, buffer._cuda_loan)
    size = view.dtype.itemsize
    strides = tuple(stride * size for stride in view.strides)
    shown = make_interface(loan, view.shape, view.dtype, strides, view.offset * size)
    if memory.is_read_only(view):
        shown["data"] = shown["data"][0], True
    return shown


def to_device(x: Array, device: Any, /, *, stream: Any = None) -> Array:
    """Return an array on a device: itself if it is there, else a copy.

    Between NVIDIA GPUs that CUDA knows, CUDA copies from one to the other; else the copy goes through host
    memory.

    Raises ValueError for a stream: there are none.

    Examples
    --------
    >>> x = vnp.arange(3)
    >>> vnp.to_device(x, x.device)
    Array([0, 1, 2], dtype=int64)
    """
    if stream is not None:
        raise ArgumentValueError(f"stream: expected None, got {stream!r}")
    place = parse_device(device)
    x = require_array(x)
    if x.device == place:
        return x
    if x.device.context.queue_count > 1:
        return from_numpy(x.numpy(), place)
    view = view_of(x)
    if not view.is_whole:
        view = gather(view)
    copy = new_view(view.shape, view.dtype, place.context)
    if view.size:
        copy_between_contexts(copy.storage.buffer, view.storage.buffer)
    return array_of(copy)


def asbuffer(x: Array) -> Buffer[Any]:
    """Return the memory of an array as a `vd.Buffer`.

    The buffer and the array share their memory if the elements are contiguous in C order and
    not read-only; else it is a copy.

    Examples
    --------
    >>> vnp.asbuffer(vnp.arange(3, dtype=vnp.float32)).read(0)
    array([0., 1., 2.], dtype=float32)
    """
    if not isinstance(x, Array):
        raise ArgumentTypeError(f"x: expected an Array, got {describe(x)}; vd.asbuffer uploads data")
    view = view_of(x)
    if not view.is_whole or view.storage.is_read_only:
        view = gather(view)
    view.storage.share()
    return memory_of(view, view.shape)


# ---- Arrays in files, in NumPy's formats: they are read and written by NumPy on the host -----------------


class ArchiveFile(Mapping[str, Array]):
    """The arrays of an .npz file by their names; each is read when it is asked for.

    Attributes
    ----------
    files
        The names.
    """

    def __init__(self, archive: Any) -> None:
        self._archive = archive
        self.files: list[str] = archive.files

    def __getitem__(self, name: str) -> Array:
        return asarray(self._archive[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self.files)

    def __len__(self) -> int:
        return len(self.files)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._archive.close()


def load(file: Any, mmap_mode: Any = None, allow_pickle: bool = False, **options: Any) -> Any:
    """Return the array of an .npy file, or those of an .npz file by their names. See `numpy.load`.

    Raises
    ------
    TypeError
        Arrays cannot have the dtype.

    Examples
    --------
    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "x.npy")
    >>> vnp.save(path, vnp.arange(3))
    >>> vnp.load(path)
    Array([0, 1, 2], dtype=int64)
    """
    found = np.load(file, mmap_mode, allow_pickle, **options)
    return asarray(found) if isinstance(found, np.ndarray) else ArchiveFile(found)


def save(file: Any, arr: Any, allow_pickle: bool = False) -> None:
    """Write an array to an .npy file. See `numpy.save`.

    Examples
    --------
    >>> from io import BytesIO
    >>> file = BytesIO()
    >>> vnp.save(file, vnp.arange(3))
    >>> np.load(BytesIO(file.getvalue()))
    array([0, 1, 2])
    """
    np.save(file, asnumpy(arr), allow_pickle)


def savez(file: Any, *args: Any, **kwds: Any) -> None:
    """Write arrays to an .npz file. See `numpy.savez`.

    Examples
    --------
    >>> from io import BytesIO
    >>> file = BytesIO()
    >>> vnp.savez(file, a=vnp.arange(3), b=vnp.ones(2))
    >>> np.load(BytesIO(file.getvalue()))["a"]
    array([0, 1, 2])
    """
    named: Any = {name: asnumpy(each) for name, each in kwds.items()}
    np.savez(file, *map(asnumpy, args), **named)


def savez_compressed(file: Any, *args: Any, **kwds: Any) -> None:
    """Write arrays to a compressed .npz file. See `numpy.savez_compressed`.

    Examples
    --------
    >>> from io import BytesIO
    >>> file = BytesIO()
    >>> vnp.savez_compressed(file, a=vnp.arange(3))
    >>> np.load(BytesIO(file.getvalue()))["a"]
    array([0, 1, 2])
    """
    named: Any = {name: asnumpy(each) for name, each in kwds.items()}
    np.savez_compressed(file, *map(asnumpy, args), **named)


def savetxt(fname: Any, X: Any, *args: Any, **options: Any) -> None:  # noqa: N803
    """Write an array to a file of text. See `numpy.savetxt`.

    Examples
    --------
    >>> import sys
    >>> vnp.savetxt(sys.stdout, vnp.asarray([[1, 2], [3, 4]]), fmt="%d")
    1 2
    3 4
    """
    np.savetxt(fname, asnumpy(X), *args, **options)


def loadtxt(fname: Any, dtype: Any = float, *args: Any, **options: Any) -> Any:
    """Return the numbers of a file of text. See `numpy.loadtxt`.

    Examples
    --------
    >>> vnp.loadtxt(["1 2", "3 4"])
    Array([[1., 2.],
           [3., 4.]], dtype=float64)
    """
    return _upload(np.loadtxt(fname, dtype, *args, **options))


def genfromtxt(fname: Any, dtype: Any = float, *args: Any, **options: Any) -> Any:
    """Return the numbers of a file of text, of which some may be missing. See `numpy.genfromtxt`.

    Examples
    --------
    >>> vnp.genfromtxt(["1,2", "3,"], delimiter=",")
    Array([[ 1.,  2.],
           [ 3., nan]], dtype=float64)
    """
    return _upload(np.genfromtxt(fname, dtype, *args, **options))


def _upload(found: Any) -> Any:
    # with unpack=True there may be several
    return [asarray(array) for array in found] if isinstance(found, list) else asarray(found)


def fromfile(file: Any, dtype: Any = float, count: int = -1, sep: str = "", offset: int = 0) -> Array:
    """Return the numbers of a binary file, or with `sep` of one of text. See `numpy.fromfile`.

    Examples
    --------
    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "x.bin")
    >>> vnp.arange(3, dtype=vnp.float32).numpy().tofile(path)
    >>> vnp.fromfile(path, dtype=vnp.float32)
    Array([0., 1., 2.], dtype=float32)
    """
    return asarray(np.fromfile(file, dtype, count, sep, offset))
