"""Complex types of buffers and of the computation."""

from collections.abc import Callable, Sequence
from typing import Any

from vkdispatch.base.context import get_context
from vkdispatch.base.dtype import (
    DType,
    complex64,
    complex128,
    component_type,
    dtype,
    float16,
    float32,
    float64,
    is_complex,
)
from vkdispatch.base.errors import ArgumentValueError, UnsupportedError
from vkdispatch.fft.arguments.buffers import require_buffer
from vkdispatch.shader.map import MappingFunction


def require_complex(kind: object, role: str) -> None:
    """Raise ValueError unless `kind` is complex32, complex64 or complex128; `role` names the argument."""
    if not (isinstance(kind, type) and issubclass(kind, dtype) and is_complex(kind)):
        shown = kind.__name__ if isinstance(kind, type) else repr(kind)
        advice = (
            "; it is the buffer's dtype unless given; for real data make vd.asbuffer(data, vd.complex64), "
            "or vd.asrfftbuffer(data) for vd.fft.rfft and rfft2"
            if kind in (float16, float32, float64)
            else ""
        )
        raise ArgumentValueError(
            f"{role}: expected vd.complex32, vd.complex64 or vd.complex128, got {shown}{advice}"
        )


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


def require_no_type(side: str, kind: DType | None, mapping: MappingFunction | None) -> None:
    """Raise ValueError for the type of a side ("input", "output", "kernel") that a map reads or writes."""
    if kind is not None and mapping is not None:
        verb = "written" if side == "output" else "read"
        raise ArgumentValueError(f"{side}_type: {side}_map decides what is {verb}; leave it out")


def supports(kind: DType) -> bool:
    """Whether the devices compute in a complex type. complex32 needs no support: it is packed in words."""
    infos = get_context().device_infos
    if kind is complex128:
        return all(bool(info.float_64_support) for info in infos)
    return True


def choose_compute_type(*io_types: DType | None) -> DType:
    """Return the widest of some types, at least complex64; complex64 if the devices do not support it."""
    widest: DType = complex64
    for kind in io_types:
        if kind is not None and kind.item_size > widest.item_size:
            widest = kind
    return widest if supports(widest) else complex64


def resolve_output_type(
    buffers: Sequence[Any], output_map: MappingFunction | None, output_type: DType | None
) -> DType | None:
    """Return the type of the output buffer, or None if a map writes."""
    if output_map is not None:
        require_no_type("output", output_type, output_map)
        return None
    kind = buffers[0].var_type if output_type is None and hasattr(buffers[0], "var_type") else output_type
    if kind is None:
        require_buffer(buffers[0], "output buffer")
    ensure_supported_complex_precision(kind, role="output_type")
    return kind


def resolve_input_type(
    buffers: Sequence[Any],
    input_map: MappingFunction | None,
    output_map: MappingFunction | None,
    input_type: DType | None,
    output_precision: DType | None,
    check: Callable[..., None] = ensure_supported_complex_precision,
) -> DType | None:
    """Return the type of the input buffer, or None if a map reads.

    `check(kind, role=...)` raises for a wrong type.
    """
    if input_map is not None:
        require_no_type("input", input_type, input_map)
        return None
    if output_map is not None:
        position = len(output_map.buffer_types)
        if position >= len(buffers):
            raise ArgumentValueError(
                "buffers: with output_map and no input_map, an input buffer argument must be provided after "
                f"those of the map ({position}), got {len(buffers)} arguments"
            )
        if input_type is None:
            buffer = buffers[position]
            input_type = (
                buffer.var_type if hasattr(buffer, "var_type") else require_buffer(buffer, "input").var_type
            )
        check(input_type, role="input_type")
        return input_type
    kind = output_precision if input_type is None else input_type
    check(kind, role="input_type")
    if kind is not output_precision:
        raise ArgumentValueError(
            "input_type: without input_map one buffer is read and written, so it must be the same "
            f"as output_type; got {kind.name if kind else None} and "
            f"{output_precision.name if output_precision else None}"
        )
    return kind


def resolve_compute_type(compute_type: DType | None, *io_types: DType | None) -> DType:
    """Return the type of the computation, checked; None takes what `choose_compute_type` returns."""
    if compute_type is None:
        return choose_compute_type(*io_types)
    ensure_supported_complex_precision(compute_type, role="compute_type")
    return compute_type
