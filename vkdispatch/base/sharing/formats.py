"""The types of elements in DLPack: as what a dtype is exported, and as what foreign elements are taken."""

from vkdispatch.base import dtype
from vkdispatch.base.dtype import DType, component_type, is_complex
from vkdispatch.base.errors import SharingError
from vkdispatch.base.structures import is_structure

# Code, bits and lanes.
Format = tuple[int, int, int]

_INT, _UINT, _FLOAT, _BFLOAT, _COMPLEX, _BOOL = 0, 1, 2, 4, 5, 6
_FORMATS: dict[DType, Format] = {
    dtype.bool_: (_BOOL, 8, 1),
    dtype.int8: (_INT, 8, 1),
    dtype.int16: (_INT, 16, 1),
    dtype.int32: (_INT, 32, 1),
    dtype.int64: (_INT, 64, 1),
    dtype.uint8: (_UINT, 8, 1),
    dtype.uint16: (_UINT, 16, 1),
    dtype.uint32: (_UINT, 32, 1),
    dtype.uint64: (_UINT, 64, 1),
    dtype.float16: (_FLOAT, 16, 1),
    dtype.float32: (_FLOAT, 32, 1),
    dtype.float64: (_FLOAT, 64, 1),
    dtype.bfloat16: (_BFLOAT, 16, 1),
    dtype.complex32: (_COMPLEX, 32, 1),
    dtype.complex64: (_COMPLEX, 64, 1),
    dtype.complex128: (_COMPLEX, 128, 1),
}
_DTYPES = {found: kind for kind, found in _FORMATS.items()}
# In Python's struct module, with NumPy's Z for complex numbers. It has nothing for the others.
_TEXTS = {
    dtype.bool_: "?",
    dtype.int8: "b",
    dtype.int16: "h",
    dtype.int32: "i",
    dtype.int64: "q",
    dtype.uint8: "B",
    dtype.uint16: "H",
    dtype.uint32: "I",
    dtype.uint64: "Q",
    dtype.float16: "e",
    dtype.float32: "f",
    dtype.float64: "d",
    dtype.complex64: "Zf",
    dtype.complex128: "Zd",
}
_NAMES = {0: "int", 1: "uint", 2: "float", 3: "opaque", 4: "bfloat", 5: "complex", 6: "bool"}
_SMALL = {
    7: "float8_e3m4",
    8: "float8_e4m3",
    9: "float8_e4m3b11fnuz",
    10: "float8_e4m3fn",
    11: "float8_e4m3fnuz",
    12: "float8_e5m2",
    13: "float8_e5m2fnuz",
    14: "float8_e8m0fnu",
    15: "float6_e2m3fn",
    16: "float6_e3m2fn",
    17: "float4_e2m1fn",
}


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


def dtype_of(found: Format, name: str) -> DType:
    """Return the dtype of elements in DLPack. Raises SharingError, which calls them `name`."""
    try:
        return _DTYPES[found]
    except KeyError:
        code, bits, lanes = found
        text = _SMALL.get(code) or f"{_NAMES.get(code, f'type code {code} of ')}{bits}"
        text += f" in vectors of {lanes}" * (lanes != 1)
        raise SharingError(
            f"{name}: elements of {text} have no dtype here; the producer can convert them first"
        ) from None
