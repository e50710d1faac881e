"""The types of elements in DLPack, and notes of hand-overs between libraries."""

import time
from typing import Literal

from vkdispatch.base import dtype
from vkdispatch.base.context import Context
from vkdispatch.base.derived_dtypes import is_structure
from vkdispatch.base.dtype import DType, component_type, is_complex
from vkdispatch.base.errors import SharingError
from vkdispatch.base.memory.data import SCALAR_CODES
from vkdispatch.base.record import record

# ---- The types of elements in DLPack ---------------------------------------------------------------------
#
# As what a dtype is exported, and as what foreign elements are taken.


# Code, bits and lanes.
Format = tuple[int, int, int]

_INT, _UINT, _FLOAT, _BFLOAT, _COMPLEX, _BOOL = 0, 1, 2, 4, 5, 6
_KINDS: dict[int, tuple[DType, ...]] = {
    _BOOL: (dtype.bool_,),
    _INT: (dtype.int8, dtype.int16, dtype.int32, dtype.int64),
    _UINT: (dtype.uint8, dtype.uint16, dtype.uint32, dtype.uint64),
    _FLOAT: (dtype.float16, dtype.float32, dtype.float64),
    _BFLOAT: (dtype.bfloat16,),
    _COMPLEX: (dtype.complex32, dtype.complex64, dtype.complex128),
}
_FORMATS: dict[DType, Format] = {
    kind: (code, 8 * kind.item_size, 1) for code, kinds in _KINDS.items() for kind in kinds
}
_DTYPES = {format: kind for kind, format in _FORMATS.items()}
# In Python's struct module, with NumPy's Z for complex numbers. It has nothing for the others.
_TEXTS: dict[DType, str] = {
    **SCALAR_CODES,
    dtype.bool_: "?",
    dtype.int8: "b",
    dtype.uint8: "B",
    dtype.complex64: "Zf",
    dtype.complex128: "Zd",
}
_NAMES = {0: "int", 1: "uint", 2: "float", 3: "opaque", 4: "bfloat", 5: "complex", 6: "bool"}
# By DLPack's codes, from 7 on.
_SMALL = dict(
    enumerate(
        (
            *("float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz"),
            *("float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"),
            *("float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn"),
        ),
        7,
    )
)


def split_elements(kind: DType, shape: tuple[int, ...]) -> tuple[DType, tuple[int, ...]]:
    """Return the scalar or complex dtype of elements, and the shape with the axes of vectors and matrices.

    Raises SharingError, a BufferError, for structures.
    """
    if is_structure(kind):
        raise SharingError(
            f"elements of the structure {kind.name} have no dtype in other libraries; share "
            "buf.view(vd.uint8)"
        )
    if is_complex(kind):
        return kind, shape
    return component_type(kind), shape + kind.true_numpy_shape


def dlpack_format(kind: DType) -> Format:
    """Return DLPack's code, bits and lanes of a scalar or complex dtype. Raises SharingError."""
    try:
        return _FORMATS[kind]
    except KeyError:
        raise SharingError(f"DLPack has no elements of type {kind.name}") from None


def buffer_format(kind: DType) -> str:
    """Return the format of a dtype in Python's buffer protocol; "" if it has none."""
    return _TEXTS.get(kind, "")


def dtype_of(format: Format, name: str) -> DType:
    """Return the dtype of elements in DLPack. Raises SharingError, which calls them `name`."""
    try:
        return _DTYPES[format]
    except KeyError:
        code, bits, lanes = format
        text = _SMALL.get(code) or f"{_NAMES.get(code, f'type code {code} of ')}{bits}"
        text += f" in vectors of {lanes}" * (lanes != 1)
        raise SharingError(
            f"{name}: elements of {text} have no dtype here; the producer can convert them first"
        ) from None


# ---- Hand-overs between a context and other libraries, noted while profiles run --------------------------


HandOverKind = Literal["lend", "take", "host wait", "device wait", "stream wait"]


@record
class HandOver:
    """A hand-over of memory, or of the turn to use it, between a context and another library.

    Attributes
    ----------
    kind
        "lend": memory was shared with another library. "take": memory of another library was taken. "host
        wait": a call waited for the device, since memory that it used is shared in order. "device wait": the
        context's work waits for a CUDA stream. "stream wait": a CUDA stream waits for the context's work.
    begin, end
        What it took of the host: seconds on the clock of `time.perf_counter`.
    """

    kind: HandOverKind
    begin: float
    end: float

    @property
    def duration(self) -> float:
        """Seconds from begin to end."""
        return self.end - self.begin


class Journal:
    """The hand-overs of a context from its construction until `close`."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.entries: list[HandOver] = []
        _journals.append(self)

    def close(self) -> None:
        """Note no more. Idempotent."""
        if self in _journals:
            _journals.remove(self)


_journals: list[Journal] = []


def start_clock() -> float:
    """Return the time if a hand-over that begins is to be noted, else 0."""
    return time.perf_counter() if _journals else 0.0


def note(kind: HandOverKind, context: Context | None, begin: float) -> None:
    """Note a hand-over that ends now. `begin` is what `start_clock` gave."""
    if begin:
        entry = HandOver(kind, begin, time.perf_counter())
        for journal in tuple(_journals):
            if journal.context is context:
                journal.entries.append(entry)
