"""Every function of the reference has an example in its docstring, and the examples show what they say.

The kernel language has none: `tests/examples/test_reference.py` runs each of its functions on every type.
"""

from __future__ import annotations

import doctest
import importlib
import inspect
import math
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
import vkdispatch.numpy as vnp
from tests.examples.docs_modules import DOCS, load_module
from vkdispatch.codegen import abbreviations

API = DOCS / "reference" / "api"
ARRAYS = load_module("array_reference")
_NUMBER = re.compile(r"[-+]?\d+\.?\d*(?:e[-+]?\d+)?")
# Functions that tests cannot run, or that only raise errors.
WITHOUT = {
    # another library or its device
    *("vkdispatch.cuda.stream", "vkdispatch.cuda.torch_pool", "vkdispatch.cuda.cupy_allocator"),
    *("vkdispatch.torch.kernel_op", "vkdispatch.from_cuda_array", "vkdispatch.make_context_from_handles"),
    *("vkdispatch.cuda_graph_capture", "vkdispatch.get_cuda_capture"),
    # a backend, a file or a context that the other examples lack
    *(
        "vkdispatch.set_dummy_context_params",
        "vkdispatch.spirv_kernel",
        "vkdispatch.base.context.destroy_context",
    ),
    *("vkdispatch.base.spirv.module.read_module", "vkdispatch.base.spirv.reflection.reflect"),
    "vkdispatch.base.validation.read_valid_module",
    # parts of kernels and of reductions; pages of the documentation show them at work
    *("vkdispatch.reduce.make_reduction_stage", "vkdispatch.fft.global_trasposed_write_iterator"),
    *("vkdispatch.fft.memory_reads_iterator", "vkdispatch.fft.memory_writes_iterator"),
}


def list_members(kind: str) -> Iterator[tuple[str, Any]]:
    """Yield what the reference names by `autofunction` or `autoclass`, without the kernel language."""
    pages = [page for page in sorted(API.rglob("*.rst")) if page.stem != "language"]
    text = "".join(page.read_text() for page in pages)
    for name in re.findall(rf"^\.\. auto{kind}:: ([\w.]+)$", text, re.MULTILINE):
        parts = name.split(".")
        for length in range(len(parts) - 1, 0, -1):
            try:
                value: Any = importlib.import_module(".".join(parts[:length]))
            except ImportError:
                continue
            for part in parts[length:]:
                value = getattr(value, part)
            yield name, value
            break
    for entry in ARRAYS.entries():
        if callable(entry.value) and inspect.isclass(entry.value) == (kind == "class"):
            yield f"{entry.module}.{entry.name}", entry.value


def find_methods() -> Iterator[tuple[str, Any]]:
    """Yield classes and methods that have examples."""
    for name, value in list_members("class"):
        for member, method in [("", value), *inspect.getmembers(value, inspect.isfunction)]:
            if ">>> " in (inspect.getdoc(method) or ""):
                yield f"{name}.{member}".rstrip("."), method


FUNCTIONS = dict(list_members("function"))
METHODS = dict(find_methods())
SPACES = sorted({name.rpartition(".")[0] for name in FUNCTIONS})


class Checker(doctest.OutputChecker):
    """Compares text without white space, and numbers by value: devices differ in last digits."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        if super().check_output(want, got, optionflags):
            return True
        texts = [_NUMBER.sub("#", "".join(text.split())) for text in (want, got)]
        numbers = [[float(number) for number in _NUMBER.findall(text)] for text in (want, got)]
        return texts[0] == texts[1] and all(
            math.isclose(x, y, rel_tol=1e-5, abs_tol=1e-6) for x, y in zip(*numbers, strict=True)
        )


def run_example(name: str, text: str) -> str:
    """Run the example of a docstring, and return what went wrong."""
    names = {**vars(abbreviations), "np": np, "vd": vd, "vc": vc, "vnp": vnp, "__name__": "__main__"}
    test = doctest.DocTestParser().get_doctest(text, names, name, name, 0)
    said: list[str] = []
    runner = doctest.DocTestRunner(Checker(), verbose=False, optionflags=doctest.ELLIPSIS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", vnp.linalg.PerformanceWarning)
        runner.run(test, out=said.append)
    return "".join(said)


def run_examples(named: dict[str, Any]) -> str:
    """Run the examples of several docstrings, and undo what they set."""
    try:
        return "".join(run_example(name, inspect.getdoc(value) or "") for name, value in named.items())
    finally:
        vd.set_log_level(vd.LogLevel.WARNING)
        vd.set_global_graph(None)


@pytest.mark.parametrize("space", SPACES)
def test_examples_of_functions(space: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = {name: value for name, value in FUNCTIONS.items() if name.rpartition(".")[0] == space}
    assert run_examples(found) == ""


def test_examples_of_classes_and_methods() -> None:
    assert len(METHODS) >= 70
    assert run_examples(METHODS) == ""


def test_every_function_has_an_example() -> None:
    refused = set(vnp._NAMES["interchange.inspection"].split())
    lacking = {name for name, value in FUNCTIONS.items() if ">>> " not in (inspect.getdoc(value) or "")}
    lacking -= {f"vkdispatch.numpy.{name}" for name in refused}
    assert lacking == {name for name in WITHOUT if name in FUNCTIONS}


def test_every_function_on_arrays_is_on_one_page() -> None:
    groups = ARRAYS.GROUPS
    placed = [name for sections in groups.values() for names in sections.values() for name in names.split()]
    assert sorted(placed) == sorted(ARRAYS.entries_by_name())
    for group in groups:
        assert f".. array-functions:: {group}\n" in (API / "numpy" / f"{group}.rst").read_text()


def test_wrong_outputs_are_found() -> None:
    """A changed digit, a changed word, and a missing line."""
    assert run_example("f", ">>> vnp.arange(2)\nArray([0, 1], dtype=int64)\n") == ""
    for shown in ("Array([0, 2], dtype=int64)", "Array([0, 1], dtype=int32)", "Array([0], dtype=int64)", ""):
        assert "Failed example" in run_example("f", f">>> vnp.arange(2)\n{shown}\n")
