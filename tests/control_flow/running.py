"""Run one function twice: as ordinary Python for each invocation, and as a part of a kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import Buff, i32

COUNT = 300


def on_gpu(function: Callable[..., Any], count: int = COUNT, *arrays: Any) -> Any:
    """Results of function(i, *arrays) on the device, with i an int32; arrays become buffers of int32."""

    def kernel(out: Any, *buffers: Any) -> None:
        i = vc.global_invocation_id().x.to_dtype(i32)
        out[i] = function(i, *buffers)

    annotations = [Buff[i32]] * (1 + len(arrays))
    run = vd.shader(exec_size=count, arg_type_annotations=annotations)(kernel)
    out: vd.Buffer[Any] = vd.Buffer((count,), i32)
    buffers = []
    for array in arrays:
        buffer: vd.Buffer[Any] = vd.Buffer((len(array),), i32)
        buffer.write(np.asarray(array, np.int32))
        buffers.append(buffer)
    run(out, *buffers)
    return out.read(0)


def agree(function: Callable[..., Any], count: int = COUNT, *arrays: Any) -> None:
    """Check that the device computes what Python does."""
    expected = [int(function(i, *arrays)) for i in range(count)]
    found = on_gpu(function, count, *arrays)
    assert found.tolist() == expected
