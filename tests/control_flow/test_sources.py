"""The source of a function is found wherever Python has it, and never that of another one."""

import importlib
import importlib.util
import linecache
import os
import sys
import textwrap
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import Buff, f32
from vkdispatch.control_flow.source import find_source

INPUTS = np.array([-3, -1, -0.5, 0, 0.25, 1, 2, 7], np.float32)


def run(function: Any) -> list[float]:
    """Apply a function to each input by a kernel."""

    @vd.shader("x.size")
    def kernel(x: Buff[f32]) -> None:
        i = vc.global_invocation_id().x
        x[i] = function(x[i])

    x = vd.asbuffer(INPUTS)
    kernel(x)
    found: list[float] = x.read(0).tolist()
    return found


# fmt: off
DICT = {"a": lambda v: max(v, 0.0), "b": lambda v: v if v > 0 else v / 4, "c": lambda v: -v if v < 0 else v}
TWINS = (lambda v: v if v > 0 else 0.5, lambda v: v if v > 0 else 0.5, lambda v: v if v < 0 else 0.5)
NESTED = [lambda v: (lambda w: w if w > v else v)(1.0), lambda v: (lambda w: w if w < v else v)(1.0)]
MADE = [(lambda k: lambda v: v if v > k else k + 1.0)(k) for k in (0.0, 1.0)]  # noqa: B023
BY_DEFAULT = [lambda v, f=lambda v: max(v, 1.0), g=lambda v: min(v, 1.0): f(v) + 8 * g(v)]
CLOSURES = (lambda a, b: (lambda v: v if v > 0 else a, lambda v: v if v > 0 else b))(0.125, 4.0)
ONLY_CONSTANTS = [lambda v: 1.0, lambda v: 2.0]
SIGNS = [lambda v: v if v > 9 else 0.0, lambda v: v if v in (1,) else -0.0, lambda v: v if v > 9 else 0]
SPREAD = (lambda v: (v
                     if v > 0 else
                     1.0), lambda v: (v
                                      if v < 0 else
                                      2.0), lambda v: (v if v < 1 else 2.0))
# fmt: on
LAMBDAS = [*DICT.values(), *TWINS, *NESTED, *MADE, *BY_DEFAULT, *CLOSURES, *ONLY_CONSTANTS, *SPREAD]
LAMBDAS += [SIGNS[0], SIGNS[2]]


@pytest.mark.parametrize("function", LAMBDAS, ids=range(len(LAMBDAS)))
def test_lambdas_that_share_a_line(function: Any) -> None:
    expected = [np.float32(function(float(value))) for value in INPUTS]
    np.testing.assert_array_equal(run(function), np.array(expected))


def test_lambdas_without_columns_are_told_apart_by_their_code() -> None:
    def strip(code: types.CodeType) -> types.CodeType:
        inner = [strip(each) if isinstance(each, types.CodeType) else each for each in code.co_consts]
        # one entry for all instructions that gives them the first line and no column
        return code.replace(co_linetable=_make_table(len(code.co_code) // 2), co_consts=tuple(inner))

    for group in (DICT.values(), TWINS, ONLY_CONSTANTS, SIGNS):
        for function in group:
            code = strip(function.__code__)
            assert {column for _, _, column, _ in code.co_positions()} == {None}
            found, expected = find_source(code), find_source(function.__code__)
            assert found is not None
            assert expected is not None
            if group is not TWINS:
                assert found.node is expected.node


def _make_table(units: int) -> bytes:
    """Return a line table whose entries have lines and no columns (kind 13, without a change of line)."""
    entries = []
    while units:
        count = min(units, 8)
        entries.append(bytes([0x80 | 13 << 3 | count - 1, 0]))
        units -= count
    return b"".join(entries)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def write_file(path: Path, text: str, version: int) -> None:
    path.write_text(textwrap.dedent(text))
    # another time, as an edit has: linecache looks at it and at the size
    os.utime(path, (1_000_000_000 + version,) * 2)


KERNELS = """
    import vkdispatch as vd
    import vkdispatch.codegen as vc
    from vkdispatch.codegen.abbreviations import *

    @vd.shader("x.size")
    def kernel(x: Buff[f32]):
        i = vc.global_invocation_id().x
        if x[i] > 0:
            x[i] = {}
"""


def test_reloading_an_edited_module(folder: Path) -> None:
    def run_kernel() -> float:
        x = vd.asbuffer(np.ones(1, np.float32))
        module.kernel(x)
        return float(x.read(0)[0])

    path = folder / "edited_kernels.py"
    write_file(path, KERNELS.format(5.0), 0)
    module = importlib.import_module("edited_kernels")
    assert run_kernel() == 5
    for version, text in enumerate(("\n\n" + KERNELS, KERNELS, KERNELS + "    # the end"), 1):
        write_file(path, text.format(5.0 + version), version)
        importlib.reload(module)
        assert run_kernel() == 5 + version


def test_functions_that_are_updated_in_place(folder: Path) -> None:
    # as IPython's autoreload does: the old function gets the new code
    path = folder / "edited_helpers.py"
    text = "def helper(v):\n    if v > 0:\n        v = {}\n    return v\n"
    write_file(path, text.format(5.0), 0)
    helper = importlib.import_module("edited_helpers").helper
    assert run(helper)[-1] == 5
    write_file(path, "# a comment\n" + text.format(6.0), 1)
    helper.__code__ = importlib.reload(sys.modules["edited_helpers"]).helper.__code__
    assert run(helper)[-1] == 6


def test_a_source_that_comes_back_is_found(folder: Path) -> None:
    path = folder / "edited_and_back.py"
    text = "def helper(v):\n    if v > 0:\n        v = 5.0\n    return v\n"
    write_file(path, text, 0)
    helper = importlib.import_module("edited_and_back").helper
    write_file(path, text.replace("5.0", "6.0"), 1)
    with pytest.raises(ValueError, match="edited since"):
        run(helper)
    write_file(path, text, 2)
    assert run(helper)[-1] == 5


EDITS = [
    ("k = 0.0", "k = -0.0"),
    ("(1, 2)", "(True, 2)"),
    ("{1, 2}", "{1, 3}"),
    ("def inner(w): return w + 1", "def inner(w): return w + 2"),
    ("def inner(w): return w + 1", "def inner(w): return w - 1"),
    ("p + q", "q + p"),
    ("helper(v, w", "helper(v, *w"),
]


@pytest.mark.parametrize("edit", EDITS, ids=range(len(EDITS)))
def test_an_edit_that_leaves_most_of_the_code_is_noticed(folder: Path, edit: tuple[str, str]) -> None:
    text = """
    def outer(p, q):
        def helper(v, w=0):
            def inner(w): return w + 1
            k = 0.0
            if v > 0 and 1 in {1, 2} and 2 in (1, 2):
                v = inner(v) + k + (p + q)
            return v
        return helper
    """
    path = folder / "slightly_edited.py"
    write_file(path, text, 0)
    helper = importlib.import_module("slightly_edited").outer(1, 2)
    write_file(path, text.replace(*edit), 1)
    assert edit[0] in text
    with pytest.raises(ValueError, match="edited since"):
        run(helper)


SOURCELESS = """
def kernel(x: Buff[f32], n: Const[i32]) -> None:
    i = vc.global_invocation_id().x
    total = 0.0
    {}
        total += 1.0
    x[i] = total
"""


@pytest.mark.parametrize("line", ["for j in range(n):", "while i < 3:", "if int(n):", "if n > 3:"])
def test_a_kernel_without_a_source_says_so(line: str) -> None:
    names: dict[str, Any] = {"vc": vc, **vars(vc.abbreviations)}
    text = SOURCELESS.format(line)
    exec(text, names)
    message = r"the source of 'kernel' was not found .*'<string>'.*linecache\.cache"
    with pytest.raises((ValueError, TypeError), match=message):
        vd.shader("x.size")(names["kernel"])
    # what the message says to do
    name = f"<kernel {line}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    exec(compile(text, name, "exec"), names)
    if "int(" not in line:
        vd.shader("x.size")(names["kernel"])


def test_a_file_that_is_gone_is_named(folder: Path) -> None:
    path = folder / "gone.py"
    write_file(path, "def helper(v):\n    return v if v > 0 else -v\n", 0)
    helper = importlib.import_module("gone").helper
    path.unlink()
    linecache.checkcache(str(path))
    with pytest.raises(ValueError, match=r"gone\.py' cannot be read"):
        run(helper)
