"""Copies between buffers, and between buffers and arrays.

A kernel copies between buffers: on large GPUs it moves five times as much as `vkCmdCopyBuffer`. On CPUs the
driver is faster, and kernels copy only in graphs.
"""

from typing import Any

import numpy as np

import vkdispatch.codegen as vc
from vkdispatch.base.buffer import Array, Buffer
from vkdispatch.base.buffers.foreign import replace_arrays, replace_foreign
from vkdispatch.base.buffers.kinds import copy_between_contexts
from vkdispatch.base.context import get_context
from vkdispatch.base.derived_dtypes import is_structure
from vkdispatch.base.dtype import DType, cache, uint8, uint16, uint32
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, OverlapError
from vkdispatch.base.sharing.cuda_link import end_visits
from vkdispatch.codegen.annotations import buffer
from vkdispatch.codegen.trace.current import is_tracing
from vkdispatch.execution_pipeline.command_graph import CommandGraph, current
from vkdispatch.shader.shader_function import ShaderFunction


def copyto(dst: "Buffer[Any] | Array", src: "Buffer[Any] | Array", graph: CommandGraph | None = None) -> None:
    """Copy all elements of `src` to `dst`, like `numpy.copyto`.

    Between buffers the device copies, and this returns at once. An array as `src` is `dst.write(src)`, one as
    `dst` is `src.read(0, out=dst)`.

    Buffers may belong to two contexts. CUDA copies from one NVIDIA GPU to another if the extra `[cuda]` is
    installed, and this returns at once: later work, reads and `queue_wait_idle` of both contexts wait for the
    copy. Elsewhere the copy goes through host memory, and this returns when it is done.

    Parameters
    ----------
    dst, src
        Of the same shape and dtype. At least one of them is a buffer. Arrays of libraries other than NumPy
        are buffers on their memory.
    graph
        The graph to record a copy between buffers in; None takes the thread's `vd.global_graph()`.

    Raises
    ------
    TypeError
        Neither is a buffer, or one is something other than a buffer or an array.
    ValueError
        Their shapes or dtypes differ; a copy from or to an array, or between contexts, is to be recorded in a
        graph; or the context of `src` is another one and has several queues, each with its own copy.
    OverlapError
        Their memory overlaps in part.

    Examples
    --------
    >>> source = vd.asbuffer(np.array([1, 2, 3], np.float32))
    >>> target = vd.Buffer((3,), f32)
    >>> vd.copyto(target, source)
    >>> target.read(0)
    array([1., 2., 3.], dtype=float32)
    """
    replaced = replace_arrays((dst, src), graph is not None or current.chosen is not None)
    if replaced is not None:
        dst, src = replaced
    # NumPy's arrays are read and written as they are; those of other libraries are used in place
    names = {at: name for at, name in ((0, "dst"), (1, "src")) if not isinstance((dst, src)[at], np.ndarray)}
    shared = replace_foreign((dst, src), names)
    if shared is not None:
        copyto(shared[0], shared[1], graph)
        end_visits(get_context())
        return
    for name, value in (("dst", dst), ("src", src)):
        if not isinstance(value, (Buffer, np.ndarray)):
            raise ArgumentTypeError(f"{name}: expected a vd.Buffer or an array, got {type(value).__name__}")
    if isinstance(dst, Buffer) and isinstance(src, Buffer):
        _check_same_elements(dst, src)
        chosen = graph if graph is not None else current.chosen
        if dst.context is not src.context:
            if chosen is not None or is_tracing():
                raise ArgumentValueError("dst, src: copies between contexts cannot be recorded")
            copy_between_contexts(dst, src)
        elif chosen is None and not is_tracing() and all(info.is_cpu() for info in dst.context.device_infos):
            dst._native.copy_from(src._native)  # the driver is faster than a kernel
        else:
            _make_kernel(dst.var_type)(dst, src, graph=graph)
    elif graph is not None:
        raise ArgumentValueError("graph: copies from and to arrays cannot be recorded")
    elif isinstance(dst, Buffer):
        dst.write(np.asarray(src))
    elif isinstance(src, Buffer):
        src.read(0, out=dst)
    else:
        raise ArgumentTypeError("dst, src: expected at least one vd.Buffer; numpy.copyto copies arrays")


def _check_same_elements(dst: "Buffer[Any]", src: "Buffer[Any]") -> None:
    if dst.shape != src.shape or dst.var_type is not src.var_type:
        raise ArgumentValueError(
            f"src: expected shape {dst.shape} of {dst.var_type.name} as dst has, got shape {src.shape} of "
            f"{src.var_type.name}"
        )
    dst.require_alive()
    src.require_alive()
    if dst._native is not src._native and dst._native.overlaps(src._native):
        raise OverlapError("dst: it shares a part of its memory with src; copy src to another buffer first")


_WORDS = (uint32, uint16, uint8)


@cache
def _make_kernel(kind: DType) -> ShaderFunction:
    # Structures are copied as words.
    word = next(word for word in _WORDS if kind.item_size % word.item_size == 0)
    unit = word if is_structure(kind) else kind
    count = kind.item_size // unit.item_size
    with vc.shader_context() as context:
        dst, src = context.declare_input_arguments([buffer[unit]] * 2, ["dst", "src"])
        i = vc.global_invocation_id().x
        dst[i] = src[i]
    description = context.get_description("copy").reinterpreting()
    return ShaderFunction(description, None, None, lambda args: args.dst.size * count)
