"""Cases of functions on arrays: what they are given, how they are checked, what they are judged by."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks import array_cases, cases, report, table
from benchmarks.case import BRIEF, SIZES, YARDSTICKS
from benchmarks.libraries import arrays, numpy_arrays, our_arrays
from benchmarks.libraries.arrays import eager
from benchmarks.problems import PROBLEMS, problem
from benchmarks.problems.matrices import from_bits, to_bits
from benchmarks.problems.problem import Problem
from benchmarks.timing import SkipCase

NAMES = [case.name for case in array_cases.CASES]


def tiny(name: str) -> Problem:
    case = cases.BY_NAME[name]
    return PROBLEMS[case.work](case.sized("tiny"))


def solved(given: Problem) -> tuple[Any, ...]:
    """Return NumPy's results."""
    work, fetch = numpy_arrays.prepare(given)
    work()
    return tuple(fetch())


def test_issue_rows_have_their_goals() -> None:
    goals = {row.case: (row.figure, row.goal, row.share) for row in array_cases.ROWS}
    assert goals["sum-all"] == ("gbps", 4250, 0) and goals["cumsum-f32"] == ("gbps", 3400, 0)
    assert goals["sort-i32"] == ("gkeys", 11, 0)
    assert goals["matmul-f32-4096"] == ("tflops", 40, 0) and goals["matmul-f16-4096"] == ("tflops", 400, 0)
    assert goals["sum-columns-1024"] == goals["transpose-f32"] == ("gbps", None, 0.9)
    assert goals["uniform-f32"] == ("gbps", None, 0.9)
    assert all(goals[name] == ("gbps", None, 0.5) for name in cases.of_family("selection"))


def test_every_work_has_a_problem_and_a_function() -> None:
    assert {case.work for case in array_cases.CASES} == set(PROBLEMS)
    for name in NAMES:
        function = tiny(name).function
        assert function in numpy_arrays.FUNCTIONS or function == "matmul-bf16"
        assert function in our_arrays.FUNCTIONS or function in our_arrays.CALLED


def test_sizes_of_each_kind_of_machine() -> None:
    by_name = cases.BY_NAME
    assert problem.count_of(by_name["cumsum-f32"].sized("gpu")) == 2**26
    assert by_name["sort-i32"].sized("gpu")["seconds"] < SIZES["gpu"]["seconds"] / 2
    assert by_name["matmul-f32-8192"].sized("gpu")["depth"] == 8192
    assert by_name["matmul-f32-8192"].sized("cpu")["depth"] == 256
    assert by_name["matmul-f16-batched"].sized("tiny")["matrices"] == 2
    assert tiny("sum-columns-16").inputs[0].shape == (256, 16)
    assert tiny("sum-middle").inputs[0].ndim == 3 and tiny("transpose-f32").inputs[0].shape == (64, 64)
    assert by_name["transpose-f32"].family in BRIEF and by_name["saxpy"].family not in BRIEF


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("library", [numpy_arrays, our_arrays], ids=["numpy", "ours"])
def test_cases_run_and_are_right(library: Any, name: str) -> None:
    case = cases.BY_NAME[name]
    try:
        trial = library.CASES[case.work](case.sized("tiny"))
    except SkipCase as reason:
        pytest.skip(str(reason))
    values = trial.measure()
    figures = {row.figure for row in array_cases.ROWS if row.case == name}
    assert figures <= set(values) and all(value > 0 for value in values.values())
    assert set(values) <= set(cases.FIGURES) and trial.right()


def spoilt(found: np.ndarray[Any, Any]) -> list[Any]:
    """Return results that are wrong: one element is another, the shape is another, and all is zero."""
    other = found.copy()
    # the last, which every sample has; by more than roundings are, and than what is drawn
    other.reshape(-1)[-1:] += other.dtype.type(101 if found.itemsize == 1 else 2000)
    zero = np.zeros_like(found)
    wrong = [other, zero] if found.ndim == 0 else [other, zero, found[:-1]]
    return [each for each in wrong if not np.array_equal(each, found)]


NUMPY_HAS = [name for name in NAMES if name != "argmax-all" and "bf16" not in name]


@pytest.mark.parametrize("name", NUMPY_HAS)
def test_wrong_results_are_noticed(name: str) -> None:
    given = tiny(name)
    found = tuple(np.asarray(result) for result in solved(given))
    assert given.right(*found)
    for wrong in spoilt(found[0]):
        assert not given.right(wrong, *found[1:])
    for wrong in spoilt(found[-1]) if len(found) > 1 else []:
        assert not given.right(*found[:-1], wrong)


def test_sums_over_repeated_blocks() -> None:
    count = 2 * problem.BLOCK + 17
    x = problem.noise(count).astype(np.float64)
    assert problem.sum_over(count) == pytest.approx(x.sum(), rel=1e-12)
    assert problem.sum_over(count, np.square) == pytest.approx((x * x).sum(), rel=1e-12)
    got = problem.some(np.arange(count))
    assert got[0] == 0 and got[-1] == count - 1 and 2**19 < got.size <= 2**21


@pytest.mark.parametrize("count", [1, 2, 4, 1000, 2**16])
def test_scattered_indices_are_a_permutation(count: int) -> None:
    found = problem.scattered(count)
    assert np.array_equal(np.sort(found), np.arange(count))
    assert count < 1000 or np.abs(np.diff(found.astype(int))).mean() > count / 5


def test_what_a_version_lacks_is_skipped() -> None:
    lacking = Problem("transmogrify", (), 1, bool)
    with pytest.raises(SkipCase, match=r"vd\.transmogrify does not exist yet"):
        our_arrays.prepare(lacking)
    with pytest.raises(SkipCase, match="has no such function"):
        eager(lacking, {}, np.asarray, np.asarray)
    with pytest.raises(SkipCase, match="takes seconds"):
        numpy_arrays.prepare(Problem("copy", (), 1e12, bool))


def test_yardsticks_come_with_what_they_judge() -> None:
    names = [case.name for case in cases.select(("selection",))]
    assert names == [array_cases.COPY, *cases.of_family("selection")]
    assert [case.name for case in cases.select((YARDSTICKS,))] == [array_cases.COPY, array_cases.FILL]


def made_up(ours: float, copies: dict[str, float]) -> dict[str, Any]:
    """Return a report of a transpose, and of copies by several libraries."""

    def entry(values: dict[str, float]) -> dict[str, Any]:
        results = {name: {"values": {"gbps": [value]}, "correct": True} for name, value in values.items()}
        return {"results": results}

    entries = {"transpose-f32": entry({"vkdispatch": ours, "torch": 800.0}), array_cases.COPY: entry(copies)}
    return {"size": "gpu", "participants": {"vkdispatch": {}, "torch": {}}, "cases": entries}


def test_goals_are_shares_of_the_best_copy() -> None:
    found = made_up(950.0, {"vkdispatch": 900.0, "torch": 1000.0})
    assert report.best(found, array_cases.COPY, "gbps") == 1000
    (line,) = table.lines(found, "rearranging")
    assert line.goal == 900 and line.met and line.floor == 1000 and line.share == pytest.approx(0.95)
    assert table.cells(line)[4] == "≥ 900 ✓" and table.cells(line)[-1] == "1,000 (95%)"
    (line,) = table.lines(made_up(890.0, {"vkdispatch": 1000.0}), "rearranging")
    assert line.met is False
    (line,) = table.lines(made_up(890.0, {}), "rearranging")
    assert line.goal is None and line.floor is None and table.cells(line)[-1] == "-"


def test_bits_of_bfloat16_are_told_from_floats() -> None:
    given = tiny("matmul-bf16-4096")
    a, b = (from_bits(array) for array in given.inputs)
    assert given.inputs[0].dtype == np.uint16 and np.abs(a).max() <= 0.5 < np.abs(a).max() * 1.01
    assert given.right(a @ b) and given.right(to_bits((a @ b).astype(np.float32)))
    assert not given.right(a @ b + 1) and not given.right(to_bits((a @ b).astype(np.float32))[:-1])


def test_sorts_are_judged_by_how_fast_keys_are_copied() -> None:
    found = made_up(1.0, {"torch": 1000.0})
    entry = {"values": {"gbps": [80.0], "gkeys": [10.0]}, "correct": True}
    found["cases"]["sort-i32"] = {"results": {"vkdispatch": entry}}
    (line,) = table.lines(found, "sorting")
    assert line.floor == 125 and line.share == pytest.approx(0.08) and line.met is False


def test_a_problem_made_ahead_is_taken_once() -> None:
    sizes = cases.BY_NAME["roll"].sized("tiny")
    arrays.load("roll", sizes)
    ahead = arrays.waiting["roll"][1]
    assert arrays.made("roll", sizes) is ahead and arrays.made("roll", sizes) is not ahead
    arrays.load("roll", sizes)
    assert arrays.made("roll", {**sizes, "array": 64}).inputs[0].size == 64
    arrays.load("saxpy", sizes)
    assert not arrays.waiting
