"""Many branches, jumps and nested conditions: computed right, or refused at their line."""

import importlib.util
import linecache
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd

_HEAD = """
import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import Buff, i32
"""
_KERNEL = """
@vd.shader("out.size")
def kernel(out: Buff[i32], source: Buff[i32]) -> None:
    i = vc.global_invocation_id().x
    v = source[i]
"""


def load(folder: Path, text: str) -> Any:
    path = folder / "nested_kernel.py"
    path.write_text(_HEAD + text)
    linecache.checkcache(str(path))
    spec = importlib.util.spec_from_file_location("nested_kernel", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.kernel


def indent(depth: int, *lines: str) -> str:
    return "".join(f"{'    ' + ' ' * depth}{line}\n" for line in lines)


def elif_chain(n: int) -> str:
    parts = (indent(0, f"{'el' * (j > 0)}if v == {j}:", f"    out[i] = {3 * j}") for j in range(n))
    return _KERNEL + "".join(parts) + indent(0, "else:", "    out[i] = -1")


def chain_with_jumps(n: int) -> str:
    parts = (
        indent(4, f"{'el' * (j > 0)}if v == {j} + n:", f"    out[i] = {3 * j}", "    break") for j in range(n)
    )
    head = indent(0, "out[i] = -1", f"for n in vc.range(v - v, {n}):")
    return _KERNEL + head + "".join(parts) + indent(4, "elif n > 2:", "    break")


def cases(n: int) -> str:
    parts = (indent(4, f"case {j}:", f"    out[i] = {3 * j}") for j in range(n))
    return _KERNEL + indent(0, "match v:") + "".join(parts) + indent(4, "case _:", "    out[i] = -1")


def computed_conditions(n: int) -> str:
    # each `else` block has variables that inner ones use
    lines = ""
    for j in range(n):
        lines += indent(j, f"if v == {j}:", f" out[i] = {3 * j}", "else:", f" w{j} = source[i] + {j}")
    return _KERNEL + lines + indent(n, f"out[i] = w{n - 1} - w0 - {n}")


def conditional_expression(n: int) -> str:
    parts = " else ".join(f"source[i] * 2 + {j} if v == {j}" for j in range(n))
    return _KERNEL + indent(0, f"out[i] = {parts} else -1")


def returns(n: int) -> str:
    lines = indent(0, "zero = v - source[i]")
    for j in range(n):
        lines += indent(0, f"if v == {j}:", f"    out[i] = {3 * j} + zero", "    return")
        lines += indent(0, "zero += v - source[i]")
    return _KERNEL + lines + indent(0, "out[i] = -1")


def returns_of_a_function(n: int) -> str:
    parts = (indent(0, f"if v == {j}:", f"    return {3 * j}") for j in range(n))
    return "def f(v):\n" + "".join(parts) + indent(0, "return -1") + _KERNEL + indent(0, "out[i] = f(v)")


def returns_in_loops(n: int) -> str:
    lines = ""
    for j in range(n):
        lines += indent(0, "for a in vc.range(2):", f"    if v == {j} and a == 1:")
        lines += indent(8, "out[i] = 3 * v", "return")
    return _KERNEL + lines + indent(0, "out[i] = -1")


def continues(n: int) -> str:
    lines = indent(0, "out[i] = -1", "for a in vc.range(v, v + 2):")
    for j in range(n):
        lines += indent(4, f"if a == {j}:", f"    out[i] = {3 * j}", "    continue")
    return _KERNEL + lines + indent(4, f"if a > {n} or a < 0:", "    continue", "out[i] = 3 * v")


def breaks(n: int) -> str:
    parts = (indent(4, f"if source[i] == {j} + r:", f"    out[i] = {3 * j}", "    break") for j in range(n))
    head = indent(0, "out[i] = -1", "r = v - v", "while r < 1:")
    return _KERNEL + head + "".join(parts) + indent(4, "r += 1")


def returns_in_a_loop_written_out(n: int) -> str:
    lines = indent(0, "w = v", f"for a in reversed(range({n})):", "    w = (w + v % 7) % 1009")
    lines += indent(4, "if v == a:", "    out[i] = 3 * v", "    b = 0", "    while True:", "        b += 1")
    lines += indent(12, "if b > 2:", "    break", "if w > -9:", "    return") + indent(8, "break")
    return _KERNEL + lines + indent(0, "out[i] = -1")


def expected(n: int) -> tuple[Any, Any]:
    x = np.arange(-2, n + 6, dtype=np.int32)
    return x, np.where((x >= 0) & (x < n), 3 * x, -1)


def check(kernel: Any, x: Any, wanted: Any) -> None:
    out = vd.Buffer(len(x), vd.int32)
    out.write(np.full(len(x), -9, np.int32))
    kernel(out, vd.asbuffer(x))
    np.testing.assert_array_equal(out.read(0), wanted)
    host = np.full(len(x), -9, np.int32)
    kernel.interpret(host, x.copy())
    np.testing.assert_array_equal(host, wanted)


@pytest.mark.parametrize("count", [60, 90, 150])
@pytest.mark.parametrize("make", [elif_chain, cases, conditional_expression, returns_of_a_function])
def test_many_branches(make: Callable[[int], str], count: int, tmp_path: Path) -> None:
    check(load(tmp_path, make(count)), *expected(count))


@pytest.mark.parametrize("make", [returns, returns_in_loops, breaks])
def test_many_jumps(make: Callable[[int], str], tmp_path: Path) -> None:
    check(load(tmp_path, make(90)), *expected(90))


def test_cases_with_loops_that_end_early(tmp_path: Path) -> None:
    """A break of a loop inside a case does not make an `if` chain of the switch."""
    n = 80
    lines = indent(0, "out[i] = -1", "with vc.switch_block(v):")
    for j in range(n):
        lines += indent(4, f"with vc.case_block({j}):", f"    out[i] = {j}", "    for a in vc.range(8):")
        lines += indent(12, f"out[i] += {j}", "if source[i] + a == v + 1:", "    break")
    check(load(tmp_path, _KERNEL + lines), *expected(n))


def test_jumps_in_a_chain(tmp_path: Path) -> None:
    n = 90
    x, _ = expected(n)
    wanted = []
    for v in x.tolist():
        hit = next((m for m in range(4) if 0 <= v - m < n), None)  # the round that leaves by a branch
        wanted.append(-1 if hit is None else 3 * (v - hit))
    check(load(tmp_path, chain_with_jumps(n)), x, wanted)


def test_many_continues(tmp_path: Path) -> None:
    n = 90
    x, _ = expected(n)
    wanted = []
    for v in x.tolist():
        result = -1
        for a in (v, v + 1):
            result = 3 * a if 0 <= a < n else result if a > n or a < 0 else 3 * v
        wanted.append(result)
    check(load(tmp_path, continues(n)), x, wanted)


def test_returns_in_a_loop_written_out(tmp_path: Path) -> None:
    check(load(tmp_path, returns_in_a_loop_written_out(24)), *expected(24))


@pytest.mark.parametrize("depth", [40, 70, 90])
def test_nested_conditions(depth: int, tmp_path: Path) -> None:
    lines = indent(0, "r = v - v")
    for j in range(depth):
        lines += indent(j, f"if v > {j}:", f" t{j} = source[i] + {j}", f" r = t{j} - t{max(j - 1, 0)} + {j}")
    x, _ = expected(depth)
    wanted = np.array([0 if v <= 0 else min(v, depth) - 1 + (v > 1) for v in x.tolist()])
    check(load(tmp_path, _KERNEL + lines + indent(0, "out[i] = r")), x, wanted)


@pytest.mark.parametrize("depth", [40, 60])
def test_else_blocks_with_variables(depth: int, tmp_path: Path) -> None:
    check(load(tmp_path, computed_conditions(depth)), *expected(depth))


@pytest.mark.parametrize("depth", [40, 70, 90])
def test_statements_after_nested_conditions(depth: int, tmp_path: Path) -> None:
    lines = indent(0, "r = v - v")
    lines += "".join(indent(j, f"if v > {j}:") for j in range(depth)) + indent(depth, "r = r + 1")
    lines += "".join(indent(j, "r = r + 2 * v - source[i]") for j in range(depth - 1, 0, -1))
    x, _ = expected(depth)
    wanted = (x >= depth) + x * np.clip(x, 0, depth - 1)
    check(load(tmp_path, _KERNEL + lines + indent(0, "out[i] = r")), x, wanted)


def test_nested_operators(tmp_path: Path) -> None:
    """Nested `and`, each of which may be skipped: computed, or refused by drivers with a limit."""
    tests = " and (".join(f"source[i] > {j}" for j in range(90))
    kernel = load(tmp_path, _KERNEL + indent(0, f"out[i] = 1 if {tests}{')' * 89} else 0"))
    x, _ = expected(90)
    if vd.get_context().device_infos[0].is_llvmpipe():
        with pytest.raises(vd.UnsupportedError, match=r"nested \d+ deep here.* takes 72: .*nested_kernel"):
            kernel(vd.Buffer(len(x), vd.int32), vd.asbuffer(x))
    else:
        check(kernel, x, (x >= 90).astype(int))


def test_loops_in_nested_conditions(tmp_path: Path) -> None:
    lines = indent(0, "r = v - v")
    for j in range(0, 60, 4):
        lines += indent(j, f"if v > {j}:", f" for a{j} in vc.range(v - v, 2):", f"  if source[i] > {j + 1}:")
        lines += indent(j + 3, "r = r + 1", f"if a{j} == 1:")
    kernel = load(tmp_path, _KERNEL + lines + indent(60, "r = r + 1") + indent(0, "out[i] = r"))
    x, _ = expected(60)
    wanted = [2 * sum(v > j + 1 for j in range(0, 60, 4)) + (v > 57) for v in x.tolist()]
    check(kernel, x, wanted)


@pytest.mark.parametrize("count", [300, 1000])
def test_chains_that_python_does_not_trace(count: int, tmp_path: Path) -> None:
    with pytest.raises((vd.UsageError, vd.ArgumentValueError), match="nest too deeply for Python"):
        load(tmp_path, elif_chain(count))


@pytest.mark.parametrize("depth", [150, 400])
def test_nests_too_deep_for_any_device(depth: int, tmp_path: Path) -> None:
    opened = indent(
        4, f"for j in range({depth}):", "    stack.enter_context(vc.if_block(v > j))", "out[i] = v"
    )
    text = "import contextlib\n" + _KERNEL + indent(0, "with contextlib.ExitStack() as stack:") + opened
    with pytest.raises(vd.UsageError, match="more than 120 levels"):
        load(tmp_path, text)
