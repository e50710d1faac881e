"""Kernels that are kept on disk: a later process launches them without tracing, and computes the same."""

from __future__ import annotations

import functools
import json
import operator
import os
import subprocess
import sys
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.base import derived_dtypes
from vkdispatch.base.compilation import disk_cache
from vkdispatch.codegen.abbreviations import f32
from vkdispatch.families import stored, tuning
from vkdispatch.families.sources import identity_map
from vkdispatch.reduce.accumulators import SubgroupAdd, SubgroupMax, make_accumulator
from vkdispatch.shader import building
from vkdispatch.shader.stored import StoredProgram

# Calls of each family, and what NumPy computes; the last line tells what was traced.
CALLS = """
import json, sys
import numpy as np, vkdispatch as vd, vkdispatch.numpy as vnp
rng = np.random.default_rng(5)
x = rng.normal(size=(37, 300)).astype(np.float32)
z = (x[0, :257] + 1j * x[1, :257]).astype(np.complex64)
n = rng.integers(0, 50, 5000).astype(np.int32)
b, c, m = vd.asbuffer(x), vd.asbuffer(z), vd.asbuffer(n)
long = np.tile(z, 120)[:30011]
def transform(buffer):
    vd.fft.fft(buffer)
    return buffer.read(0)
checks = {
    "sum": (vd.sum(b, axis=0).read(0), x.sum(0), 1e-4),
    "mean": (vd.mean(b).read(0), x.mean(), 1e-5),
    "max": (vd.max(b, axis=1).read(0), x.max(1), 0),
    "argmin": (vd.argmin(b, axis=1).read(0), x.argmin(1), 0),
    "cumsum": (vd.cumsum(m).read(0), n.cumsum(), 0),
    "sort": (vd.sort(b).read(0), np.sort(x), 0),
    "long sort": (vd.sort(vd.asbuffer(np.tile(n, 20))).read(0), np.sort(np.tile(n, 20)), 0),
    "unique": (vd.unique(m).read(0), np.unique(n), 0),
    "matmul": (vd.matmul(b, vd.asbuffer(x.T.copy())).read(0), x @ x.T, 1e-3),
    "transpose": (vd.transpose(b).read(0), x.T, 0),
    "take": (vd.take(b, vd.asbuffer(n[:20] % 37), axis=0).read(0), x[n[:20] % 37], 0),
    "fft": (transform(c), np.fft.fft(z), 1e-3),
    "long fft": (transform(vd.asbuffer(long)), np.fft.fft(long), 2e-2),
    "arrays": (np.asarray(vnp.exp(-vnp.asarray(x)) * 2 + 1), np.exp(-x) * 2 + 1, 1e-4),
    "sum of arrays": (np.asarray((vnp.asarray(x) ** 2).sum(0)), (x**2).sum(0), 1e-3),
}
wrong = [name for name, (got, want, most) in checks.items() if not np.allclose(got, want, 1e-4, most)]
print(json.dumps({"wrong": wrong, "traced": "vkdispatch.codegen.language" in sys.modules}))
"""


def _find_key(context: Any) -> str | None:
    return stored._find_key(stored._find_setting(context), checks=False)


def _run(program: str, folder: Path, **variables: str) -> dict[str, Any]:
    environment = {**os.environ, "VKDISPATCH_CACHE": str(folder), **variables}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def test_a_second_process_traces_nothing(tmp_path: Path) -> None:
    first = _run(CALLS, tmp_path, PYTHONHASHSEED="1")
    assert first == {"wrong": [], "traced": True}
    assert _run(CALLS, tmp_path, PYTHONHASHSEED="2") == {"wrong": [], "traced": False}


# What is asked of a kernel that was not traced: its text, a graph that fuses, an interpreted call, a pickle.
QUESTIONS = """
import json, pickle, sys
import numpy as np, vkdispatch as vd
from vkdispatch.families import kernels
from vkdispatch.base.dtype import uint32
buffer = vd.asbuffer(np.arange(1000, dtype=np.uint32))
clear = kernels._make_clear_kernel(uint32)
clear(buffer, exec_size=1000)
before = "vkdispatch.codegen.language" in sys.modules
text = clear.get_src().code
array = np.arange(10, dtype=np.uint32)
clear.interpret(array, exec_size=10)
other = pickle.loads(pickle.dumps(clear))
graph = vd.CommandGraph()
clear(buffer, exec_size=1000, graph=graph)
clear(buffer, exec_size=1000, graph=graph)
graph.submit()
print(json.dumps({
    "text": text, "zeros": not buffer.read(0).any() and not array.any(), "before": before,
    "again": clear.shader_description.shader_source((256, 1, 1)).code == text, "name": other.name,
}))
"""


def test_what_was_not_traced_answers_as_if_it_was(tmp_path: Path) -> None:
    first, second = (_run(QUESTIONS, tmp_path) for _ in range(2))
    assert first.pop("before") is True
    assert second.pop("before") is False
    assert first == second
    assert first["zeros"]
    assert first["again"]
    assert "words" in first["text"] or "buf0" in first["text"]


@pytest.fixture
def as_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """Treat functions of this file, and those made by `eval`, as functions of the package."""
    monkeypatch.setattr(stored, "_FOLDERS", (*stored._FOLDERS, __file__, "<string>"))


_calls: list[int] = []


@pytest.mark.usefixtures("as_package")
def test_changed_code_is_traced_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    def make(number: int) -> int:
        _calls.append(number)
        return number + 1

    _calls.clear()
    monkeypatch.setattr(tuning, "_changes", 0)
    unique = os.urandom(8).hex()
    context = vd.get_context()
    for edition, expected in (("one", [3]), ("one", [3]), ("two", [3, 3]), ("one", [3, 3])):
        monkeypatch.setattr(stored, "_describe_code", functools.partial(str, f"{edition} {unique}"))
        monkeypatch.delitem(context.kept, stored._STATE_KEY, raising=False)
        maker = stored.store_results(make)  # as in a new process: nothing is kept in it
        assert maker(3) == 4
        assert _calls == expected
    monkeypatch.delitem(context.kept, stored._STATE_KEY, raising=False)


@pytest.mark.usefixtures("as_package")
def test_damaged_and_foreign_entries_are_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    def make(number: int) -> int:
        return number + 1

    monkeypatch.setattr(disk_cache, "load", lambda kind, key: b"no pickle")
    assert stored.store_results(make)(-5) == -4


def _outside(x: Any) -> Any:
    return x


class _Outside:
    pass


class _Colour(Enum):
    RED = 1


@pytest.mark.parametrize(
    "value",
    [
        *(_outside, lambda x: x, [1, _outside], object(), np.zeros(3), (identity_map(vd.float32), _outside)),
        *(_Outside, _Outside(), _Colour.RED, np.dtype([("x", "f4"), ("y", "f4")]), {"key": _Outside}),
        derived_dtypes.structure((("x", vd.float32), ("y", vd.float32))),
    ],
)
def test_values_of_users_have_no_text(value: Any) -> None:
    with pytest.raises(stored._UnknownError):
        stored.describe_value(value)


DIFFERENT: list[Any] = [
    *(0, 0.0, -0.0, False, None, "0", b"0", 1, (1,), [1], ((1,),), {1: 2}, {2: 1}, frozenset({1, 2})),
    *(
        frozenset({1}),
        vd.float32,
        vd.int32,
        vd.vec2,
        operator.add,
        operator.mul,
        np.dtype("f4"),
        np.dtype("i4"),
    ),
    *(identity_map(vd.float32), identity_map(vd.int32), float("nan"), float("inf"), complex(0, -0.0)),
    *(
        make_accumulator(SubgroupAdd, vd.float32, frozenset()),
        make_accumulator(SubgroupMax, vd.float32, frozenset()),
    ),
    make_accumulator(SubgroupAdd, vd.int32, frozenset()),
]


def test_different_values_have_different_texts() -> None:
    texts = [stored.describe_value(value) for value in DIFFERENT]
    assert len(set(texts)) == len(DIFFERENT)
    assert texts == [stored.describe_value(value) for value in DIFFERENT]


@pytest.mark.usefixtures("as_package")
def test_functions_differ_by_what_they_refer_to() -> None:
    def make(number: int, operation: Callable[[int, int], int]) -> Callable[[int], int]:
        def inner(x: int) -> int:
            return operation(x, number)

        return inner

    functions = [make(1, operator.add), make(2, operator.add), make(1, operator.mul)]
    assert len({stored.describe_value(function) for function in functions}) == 3
    assert stored.describe_value(make(1, operator.add)) == stored.describe_value(functions[0])


@pytest.mark.usefixtures("as_package")
def test_functions_of_one_line_differ() -> None:
    text = "[lambda: vc.exp, lambda: vc.log, lambda: 1, lambda: 2, lambda: (lambda: 3), lambda: (lambda: 4)]"
    functions: list[Any] = eval(text, {"vc": vc})
    assert len({stored.describe_value(function) for function in functions}) == len(functions)


def test_a_wrapper_of_a_user_has_no_text() -> None:
    @functools.wraps(vc.sin)
    def wrapper(x: Any) -> Any:
        return vc.sin(x) + 1

    with pytest.raises(stored._UnknownError):
        stored.describe_value(wrapper)


def test_files_newer_than_the_import_are_not_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    assert stored._describe_code.__wrapped__() is not None
    monkeypatch.setattr(stored, "IMPORTED_AT", 0.0)
    assert stored._describe_code.__wrapped__() is None


@pytest.mark.parametrize("is_kept", [True, False])
def test_checks_are_not_those_of_earlier_calls(monkeypatch: pytest.MonkeyPatch, is_kept: bool) -> None:
    from vkdispatch.families import kernels

    make = kernels._make_clear_kernel
    if not is_kept:
        monkeypatch.setenv("VKDISPATCH_CACHE", "off")
    monkeypatch.setattr(tuning, "_changes", 0)
    monkeypatch.delitem(vd.get_context().kept, stored._STATE_KEY, raising=False)
    make.cache_clear()
    make(vd.uint32)(vd.asbuffer(np.ones(10, np.uint32)), exec_size=10)  # compiled, so that it is kept
    plain = make(vd.uint32)
    monkeypatch.setenv("VKDISPATCH_CHECK", "bounds")
    assert make(vd.uint32)._kernel.program.observation is not None
    monkeypatch.delenv("VKDISPATCH_CHECK")
    assert make(vd.uint32) is plain
    assert plain._kernel.program.observation is None
    monkeypatch.delitem(vd.get_context().kept, stored._STATE_KEY)


def test_functions_are_glsl_in_threads_that_write_another_language() -> None:
    x = vd.asbuffer(np.arange(333, dtype=np.float64))
    vc.set_codegen_backend(vc.CUDABackend())
    try:
        assert float(vd.sum(x, axis=0, keepdims=True)) == 333 * 332 / 2
    finally:
        vc.set_codegen_backend(None)
    assert float(vd.sum(x, axis=0, keepdims=True)) == 333 * 332 / 2


def test_a_value_that_holds_itself_has_a_text() -> None:
    value: list[Any] = [1]
    value.append(value)
    other: list[Any] = [1]
    other.append(other)
    assert stored.describe_value(value) == stored.describe_value(other)


def test_nothing_is_kept_for_maps_of_users() -> None:
    @vd.map
    def half(x: f32) -> f32:
        return x / 2

    x = np.arange(777, dtype=np.float32)
    total = vd.sum(half(vd.asbuffer(x)))
    np.testing.assert_allclose(float(total), x.sum() / 2, rtol=1e-6)
    with pytest.raises(stored._UnknownError):
        stored.describe_value(half)


def test_nothing_is_kept_under_other_numbers_or_forced_forms(monkeypatch: pytest.MonkeyPatch) -> None:
    context = vd.get_context()
    monkeypatch.setattr(tuning, "_changes", 0)
    assert _find_key(context) is not None
    monkeypatch.setattr(building, "_FORCED", frozenset({"wide"}))
    assert _find_key(context) is None
    monkeypatch.setattr(building, "_FORCED", frozenset())
    monkeypatch.setattr(tuning, "_changes", 1)
    assert _find_key(context) is None
    assert _find_key(None) is None
    monkeypatch.setenv("VKDISPATCH_CACHE", "off")
    monkeypatch.setattr(tuning, "_changes", 0)
    monkeypatch.delitem(context.kept, stored._STATE_KEY)
    assert _find_key(context) is None
    monkeypatch.delitem(context.kept, stored._STATE_KEY)


def test_kernels_of_a_process_are_kept_with_their_program(monkeypatch: pytest.MonkeyPatch) -> None:
    from vkdispatch.families import kernels

    monkeypatch.setattr(tuning, "_changes", 0)
    monkeypatch.delitem(vd.get_context().kept, stored._STATE_KEY, raising=False)
    kernels._make_clear_kernel.cache_clear()
    clear = kernels._make_clear_kernel(vd.uint32)
    assert isinstance(clear._kernel.program, StoredProgram)
    data = vd.asbuffer(np.ones(100, np.uint32))
    clear(data, exec_size=100)
    assert not data.read(0).any()
    assert isinstance(clear.plan, object)
    assert vc.language is not None
