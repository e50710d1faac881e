"""Random programs with every statement, run by a device and by the interpreter.

More of them: VKDISPATCH_RANDOM_KERNELS=1000 pytest tests/language/test_random_kernels.py
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
from vkdispatch.base.dtype import DType
from vkdispatch.codegen.abbreviations import Buff, i32

from .random_programs import COUNTERS, SLOTS, Program
from .random_values import FLOATS, INTEGERS
from .running import integers, on_nvidia, supports

pytestmark = pytest.mark.filterwarnings("ignore:.*runs once, while Python traces")

LOCAL = 32
ROWS = 128
KERNELS = int(os.environ.get("VKDISPATCH_RANDOM_KERNELS", "40"))
FIRST = int(os.environ.get("VKDISPATCH_RANDOM_SEED", "0"))


def kernel_of(seed: int, kinds: list[DType]) -> Any:
    """The program of a seed as a kernel over out, source and counters.

    The generator opens blocks by hand. Tracing it with `if` and `while` rewritten takes 50 times as long and
    gives copies of values besides: one in eight programs has them.
    """

    @vd.shader(exec_size=ROWS, local_size=LOCAL, rewrite=seed % 8 == 0)
    def body(out: Buff[i32], source: Buff[i32], counters: Buff[i32]) -> None:
        Program(seed, kinds, out, source, counters, ROWS, LOCAL, nvidia=on_nvidia()).write()

    return body


def check(seed: int) -> None:
    kinds = [kind for kind in (*INTEGERS, *FLOATS) if supports(kind)]
    body = kernel_of(seed, kinds)
    source = integers(i32, ROWS, seed)
    source[::3] = np.arange(ROWS)[::3] - 20
    out, counters = np.zeros(ROWS * SLOTS, np.int32), np.zeros(COUNTERS, np.int32)
    buffers = [vd.asbuffer(array) for array in (out, source, counters)]
    body(*buffers)
    size = vd.get_context().device_infos[0].sub_group_size
    body.interpret(out, source, counters, subgroup_size=size, races=True)
    actual, _, counted = (buffer.read(0) for buffer in buffers)
    for device, interpreter, what in ((actual, out, "out"), (counted, counters, "counters")):
        if not np.array_equal(device, interpreter):
            rows = np.unique(np.flatnonzero(device != interpreter) // (SLOTS if what == "out" else 1))
            raise AssertionError(
                f"seed {seed}: {what} differs in {rows}\n{device}\n{interpreter}\n{body.get_src()}"
            )


@pytest.mark.parametrize("start", range(FIRST, FIRST + KERNELS, 10))
def test_device_and_interpreter_agree(start: int) -> None:
    for seed in range(start, min(start + 10, FIRST + KERNELS)):
        check(seed)
