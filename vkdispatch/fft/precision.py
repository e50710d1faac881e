"""Which complex types a transform reads, computes in and writes."""

from typing import Any

from vkdispatch.base.context import get_context
from vkdispatch.base.dtype import DType, complex64, complex128, component_type, dtype, is_complex
from vkdispatch.base.errors import ArgumentValueError, UnsupportedError


def require_complex(kind: Any, role: str) -> None:
    """Raise ValueError unless `kind` is complex32, complex64 or complex128; `role` names the argument."""
    if not (isinstance(kind, type) and issubclass(kind, dtype) and is_complex(kind)):
        shown = kind.__name__ if isinstance(kind, type) else repr(kind)
        raise ArgumentValueError(f"{role}: expected vd.complex32, vd.complex64 or vd.complex128, got {shown}")


def ensure_supported_complex_precision(dtype: Any, role: str = "type") -> None:
    """Raise ValueError unless `dtype` is a complex type, and NotImplementedError if the device lacks it.

    `role` names the argument in the message.
    """
    require_complex(dtype, role)
    if not supports(dtype):
        part = component_type(dtype)
        error = UnsupportedError(
            f"{role}: {dtype.name}: the device does not compute in it, it has no {part.name}; "
            "use vd.complex64"
        )
        error._dtypes = (part,)
        raise error


def supports(kind: DType) -> bool:
    """Whether the device computes with a complex type; halves are packed in words where it lacks them."""
    infos = get_context().device_infos
    if kind is complex128:
        return all(bool(info.float_64_support) for info in infos)
    return True


def choose_compute_type(*io_types: DType | None) -> DType:
    """Return the widest of the types that are given, at least complex64, as far as the device supports it."""
    widest: DType = complex64
    for kind in io_types:
        if kind is not None and kind.item_size > widest.item_size:
            widest = kind
    return widest if supports(widest) else complex64
