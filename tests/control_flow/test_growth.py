"""Tracing takes steps in proportion to the kernel's length: lines that Python runs are counted, not time."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import vkdispatch as vd
from vkdispatch.codegen.trace.recording import Recorder
from vkdispatch.compiler.glsl.writer import write_kernel
from vkdispatch.compiler.ir.location import Loc

HEAD = """
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import Buff, i32

def helper(x):
    if x > 3:
        return 7
    return x

def kernel(out: Buff[i32], p: Buff[i32]):
    i = vc.global_invocation_id().x.to_dtype(i32)
    a, b = p[i], 3
    if a > 3:
        b = b + 1
"""
PARTS = {
    "if": "    if a > {n}:\n        b = b + {n}\n    else:\n        a = a + b\n",
    "known if": "    if {n} > 3:\n        a = a + {n}\n",
    "while": "    while a > {n}:\n        a = a - 1\n",
    "call": "    a = helper(a) + {n}\n",
    "choice": "    a = a + 1 if a > {n} and i > 3 else b + a\n",
    "operation": "    a = a * b + {n}\n    b = (b ^ a) - i\n",
    "store": "    out[i + {n}] = p[i + {n}] * {n} + i\n",
}


def kernel_of(part: str, count: int, folder: Path) -> Any:
    """Make a module with a kernel that has a part so many times."""
    path = folder / f"growth_{part.replace(' ', '_')}_{count}.py"
    body = "".join(PARTS[part].format(n=n) for n in range(count))
    path.write_text(f"{HEAD}{body}    out[i] = a + b\n")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.kernel


def steps(kernel: Any) -> int:
    """Lines that Python runs to trace a kernel and to write its GLSL."""
    count = 0

    def follow(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        count += 1
        return follow

    before = sys.gettrace()
    sys.settrace(follow)
    try:
        write_kernel(vd.shader(exec_size=64)(kernel).shader_description.kernel)
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("part", PARTS)
def test_steps_grow_with_the_kernel(part: str, tmp_path: Path) -> None:
    steps(kernel_of(part, 3, tmp_path))
    few, many = (steps(kernel_of(part, count, tmp_path)) for count in (100, 400))
    assert many < 4.12 * few


class _Code:
    """Code of many instructions, which counts how many positions are decoded."""

    co_filename, co_firstlineno = __file__, 1

    def __init__(self) -> None:
        self.decoded = 0

    def co_positions(self) -> Any:
        for line in range(1, 501):
            self.decoded += 1
            yield line, line, 0, 1


def test_positions_are_decoded_once() -> None:
    code: Any = _Code()
    assert [Loc(code, 2 * index).line for index in range(500)] == list(range(1, 501))
    assert code.decoded == 500


class _Names(set[str]):
    """A set that counts how often it is asked."""

    asked = 0

    def __contains__(self, name: object) -> bool:
        self.asked += 1
        return super().__contains__(name)


def test_names_are_found_at_once() -> None:
    recorder = Recorder()
    recorder._names = names = _Names()
    assert [recorder.claim_name("b") for _ in range(300)] == ["b", *(f"b_{n}" for n in range(1, 300))]
    assert names.asked < 1000


def test_names_after_a_rewind() -> None:
    recorder = Recorder()
    first = [recorder.claim_name("b") for _ in range(3)]
    mark = recorder.mark()
    second = [recorder.claim_name(name) for name in ("b", "b", "c", "b_4")]
    recorder.rewind(mark)
    assert [recorder.claim_name(name) for name in ("b", "b", "c", "b_4")] == second
    assert (first, second) == (["b", "b_1", "b_2"], ["b_3", "b_4", "c", "b_4_1"])
