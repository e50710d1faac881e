"""Copies between buffers, and between buffers and arrays.

Between buffers a kernel copies: on big GPUs `vkCmdCopyBuffer` moves a fifth of what kernels do. On processors
it is the other way round; there, only graphs have kernels copy.
"""

from typing import Any

import numpy as np

from vkdispatch.base.array_arguments import replace_arrays
from vkdispatch.base.buffer import Array, Buffer
from vkdispatch.base.dtype import DType, uint8, uint16, uint32
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.base.structures import is_structure
from vkdispatch.codegen.abbreviations import Buff
from vkdispatch.codegen.builder import shader_context
from vkdispatch.codegen.functions.invocation import global_invocation_id
from vkdispatch.codegen.trace.recording import is_tracing
from vkdispatch.execution_pipeline.command_graph import CommandGraph, current
from vkdispatch.shader.shader_function import ShaderFunction


def copyto(dst: "Buffer[Any] | Array", src: "Buffer[Any] | Array", graph: CommandGraph | None = None) -> None:
    """Copy all elements of `src` to `dst`, like `numpy.copyto`.

    Between buffers the device copies, and this returns at once. An array as `src` is `dst.write(src)`, one as
    `dst` is `src.read(0, out=dst)`.

    Parameters
    ----------
    dst, src
        Of one shape and dtype; at least one of them a buffer.
    graph
        Where to record a copy between buffers; None takes the thread's `vd.global_graph()`.

    Raises
    ------
    TypeError
        Neither is a buffer, or one is neither a buffer nor an array.
    ValueError
        Their shapes or dtypes differ, or an array is to be recorded in a graph.
    """
    replaced = replace_arrays((dst, src), {}, graph is not None or current.chosen is not None)
    if replaced is not None:
        dst, src = replaced[1]
    for name, value in (("dst", dst), ("src", src)):
        if not isinstance(value, (Buffer, np.ndarray)):
            raise ArgumentTypeError(f"{name}: expected a vd.Buffer or an array, got {type(value).__name__}")
    if isinstance(dst, Buffer) and isinstance(src, Buffer):
        _check_alike(dst, src)
        chosen = graph if graph is not None else current.chosen
        if chosen is None and not is_tracing() and _on_processor(dst, src):
            dst._native.copy_from(src._native)
        else:
            _kernel(dst.var_type)(dst, src, graph=graph)
    elif graph is not None:
        raise ArgumentValueError("graph: copies from and to arrays cannot be recorded")
    elif isinstance(dst, Buffer):
        dst.write(np.asarray(src))
    elif isinstance(src, Buffer):
        src.read(0, out=dst)
    else:
        raise ArgumentTypeError("dst, src: expected at least one vd.Buffer; numpy.copyto copies arrays")


def _on_processor(dst: "Buffer[Any]", src: "Buffer[Any]") -> bool:
    """Whether a copy by the driver is possible, and is the faster one."""
    dst.require_alive()
    src.require_alive()
    context = dst.context
    return context is src.context and all(info.is_cpu() for info in context.device_infos)


def _check_alike(dst: "Buffer[Any]", src: "Buffer[Any]") -> None:
    if dst.shape != src.shape or dst.var_type is not src.var_type:
        raise ArgumentValueError(
            f"src: expected shape {dst.shape} of {dst.var_type.name} as dst has, got shape {src.shape} of "
            f"{src.var_type.name}"
        )


_WORDS = (uint32, uint16, uint8)
_kernels: dict[DType, ShaderFunction] = {}


def _kernel(kind: DType) -> ShaderFunction:
    if kind not in _kernels:
        _kernels[kind] = _copying(kind)
    return _kernels[kind]


def _copying(kind: DType) -> ShaderFunction:
    # structures are copied as words
    word = next(word for word in _WORDS if kind.item_size % word.item_size == 0)
    unit = word if is_structure(kind) else kind
    count = kind.item_size // unit.item_size
    annotation: Any = Buff
    with shader_context() as context:
        dst, src = context.declare_input_arguments([annotation[unit]] * 2, ["dst", "src"])
        i = global_invocation_id().x
        dst[i] = src[i]
    description = context.get_description("copy").reinterpreting()
    return ShaderFunction(description, None, None, lambda args: args.dst.size * count)
