"""Random kernels as Python source: the device and the interpreter against plain Python.

More of them: VKDISPATCH_RANDOM_KERNELS=1000 pytest tests/language/test_random_sources.py
All of them, with a summary: python -m tests.language.random_kernels --help
"""

from __future__ import annotations

import os

import pytest

from . import source_model
from .random_sources import FEATURES
from .source_running import check, supported
from .source_tree import Block, Buffer, Clause, Line, Program, edits

PROGRAMS = int(os.environ.get("VKDISPATCH_RANDOM_KERNELS", "20"))
FIRST = int(os.environ.get("VKDISPATCH_RANDOM_SEED", "0"))
_AT_ONCE = 10


@pytest.mark.parametrize("start", range(FIRST, FIRST + PROGRAMS, _AT_ONCE))
@pytest.mark.parametrize("feature", FEATURES)
def test_same_as_python(feature: str, start: int) -> None:
    if not supported(feature):
        pytest.skip("the device lacks types of such programs")
    for seed in range(start, min(start + _AT_ONCE, FIRST + PROGRAMS)):
        found = check(seed, (feature,))
        assert found is None, f"{found.cause}\nseed {seed}, {feature}\n{found.text}"


# -- the tests' own tools -----------------------------------------------------------------------------------


def run(source: str, data: list[int], exec_size: tuple[int, ...], local_size: tuple[int, ...]) -> list[int]:
    return source_model.run(source, [("i32", data)], [0], exec_size, local_size)[0]


def test_model_waits_at_barriers() -> None:
    source = """
def first(tile, lane, value):
    tile[lane] = value
    vc.barrier()
    return tile[0]

def kernel(p):
    i = vc.global_invocation_id().x
    lane = vc.local_invocation_index()
    tile = vc.shared_buffer(vc.i32, 4, 'tile')
    for n in range(2):
        old = p[i]
        p[i] = first(tile, 3 - lane, p[i] * 10 + lane) + n
        vc.barrier()
    vc.atomic_add(p[0], old)
"""
    first = 40 + 3
    again = first * 10 + 3
    assert run(source, [1, 2, 3, 4], (4,), (4,))[1:] == [again + 1] * 3
    assert run(source, [1, 2, 3, 4], (4,), (4,))[0] == again + 1 + 4 * first


def test_model_refuses_undefined_behaviour() -> None:
    with pytest.raises(source_model.ModelError, match="index 4 of 4"):
        run("def kernel(p):\n    p[vc.global_invocation_id().x] = 0", [0] * 4, (5,), (8,))
    with pytest.raises(source_model.ModelError, match="2147483648 is no i32"):
        run("def kernel(p):\n    p[0] = 1 << 31", [0], (1,), (1,))
    with pytest.raises(source_model.ModelError, match="different barriers"):
        run("def kernel(p):\n    if vc.local_invocation_index() > 0:\n        vc.barrier()", [0], (2,), (2,))


def test_failing_programs_are_minimized() -> None:
    """Everything goes that the failure, here a store of 7, does not need."""
    inner = Block(
        [Clause(["if p[0] == 3:"], [Line([["p[1] = 2"]]), Line([["p[0] = 7"]])]), Clause(["else:"], [])]
    )
    lines = [Line([["a = 1"]]), Block([Clause(["for n in range(3):"], [inner])]), Line([["p[2] = a"]])]
    kernel = Block([Clause(["def kernel(p):"], lines)], fixed=True)  # type: ignore[arg-type]
    program = Program(0, (), [kernel], [Buffer("i32", [3, 0, 0])], [("p", 0)], (1,), (1,))
    smaller = True
    while smaller:
        smaller = False
        for edit in edits(program):
            edit.do()
            if "p[0] = 7" in program.source():
                smaller = True
            else:
                edit.undo()
    assert program.source().splitlines()[-2:] == ["def kernel(p):", "    p[0] = 7"]
