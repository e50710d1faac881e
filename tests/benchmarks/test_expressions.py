"""The programs over arrays that benchmarks time compute what NumPy computes, and their table is right."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import vkdispatch.numpy as vnp
from benchmarks import expressions, new_process
from benchmarks.libraries_apart import run_apart

PROGRAMS: dict[Callable[..., Any], list[tuple[int, ...]]] = {
    expressions.ten_operations: [(70,), (70,)],
    expressions.copy: [(70,)],
    expressions.standardize: [(50, 4), (50, 3)],
    expressions.softmax: [(7, 9)],
    expressions.stencil: [(9, 8)],
    expressions.nearest: [(30, 4), (5, 4)],
    expressions.black_scholes: [(40,)] * 3,
    expressions.develop: [(5, 6, 3)],
}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.__name__)
def test_programs_compute_what_numpy_computes(program: Callable[..., Any]) -> None:
    rng = np.random.default_rng(0)
    hosts = [rng.random(shape, np.float32) + np.float32(0.5) for shape in PROGRAMS[program]]
    found = program(vnp, *map(vnp.asarray, hosts))
    np.testing.assert_allclose(found.numpy(), program(np, *hosts), rtol=2e-4, atol=2e-4)


def test_edges_of_a_picture() -> None:
    picture = np.random.default_rng(0).integers(0, 256, (20, 30, 3), np.uint8)
    found = expressions.edges(vnp, vnp.asarray(picture)).numpy()
    expected = expressions.edges(np, picture)
    assert set(np.unique(expected)) == {0, 255}
    assert found.dtype == np.uint8
    np.testing.assert_array_equal(found, expected)


def test_the_table_has_bandwidths_and_their_share_of_a_copy() -> None:
    size = expressions.SIZES[-1]
    figures = {f"ten operations, {size}": [200.0, 50.0, 12 * size], f"copy, {size}": [150.0, 9.0, 8 * size]}
    text = expressions.table({"vkdispatch": figures}).splitlines()
    assert text[2] == f"| ten operations, {size} | 200 (50), 4.03 TB/s | - | - | - |"
    assert text[-1] == "vkdispatch: ten operations at 1.12 of the speed of a copy"


def test_a_library_that_is_not_there_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_apart("benchmarks.no_such_module", "--library", "x") is None
    assert "--library x: " in capsys.readouterr().err


def test_only_the_first_process_compiles() -> None:
    done = CliRunner().invoke(new_process.main, ["--longest", "8"])
    assert done.exit_code == 0, done.output
    first, next_one = (int(each) for each in re.findall(r"(\d+) kernels compiled", done.output))
    assert first > 10
    assert next_one == 0
