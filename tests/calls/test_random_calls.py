"""Random calls against NumPy, a few of them: `python -m tests.calls.random_calls` makes more."""

from __future__ import annotations

import functools
import sys
from typing import Any

import pytest

import vkdispatch as vd

from . import running
from .choices import Choices, shrink
from .random_calls import CRASHED, Calls, check, tasks_of, write
from .surface import FAMILIES, LEFT_OUT, public_functions, writers

_EACH = 15
_SERIES = 8


@pytest.mark.parametrize("family", FAMILIES)
def test_same_as_numpy(family: str) -> None:
    for seed, _, function in tasks_of(0, _EACH, (family,)):
        found, _ = check(function, Choices(seed=seed), set(), 10)
        assert found.verdict in (running.EQUAL, running.REFUSED), f"seed {seed}: {found.cause}\n{found.text}"


@pytest.mark.parametrize("family", FAMILIES)
def test_repeated_calls_same_as_numpy(family: str) -> None:
    for seed, _, function in tasks_of(500, _SERIES, (family,)):
        found, _ = check(function, Choices(seed=seed), set(), 10, repeat=4)
        assert found.verdict in (running.EQUAL, running.REFUSED), f"seed {seed}: {found.cause}\n{found.text}"


def test_every_public_function_is_called() -> None:
    """A new function needs calls, or a reason in `surface.LEFT_OUT` to have none."""
    called = {function for family in FAMILIES for function in writers(family)}
    left_out = {function for functions in LEFT_OUT.values() for function in functions}
    assert public_functions() - called - left_out == set()
    assert left_out - public_functions() == set()


# -- the tests' own tools


def made(function: str, seconds: float = 0) -> running.Outcome:
    """Make calls of a function until one fails."""
    for seed in range(60):
        found, _ = check(function, Choices(seed=seed), set(), seconds)
        if found.verdict not in (running.EQUAL, running.REFUSED):
            return found
    raise AssertionError("no call failed")


def test_a_wrong_value_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = vd.cumsum

    @functools.wraps(right)
    def cumsum(x: Any, *arguments: Any, **options: Any) -> Any:
        result = right(x, *arguments, **options)
        if options.get("reverse") and result.size:
            vd.put(result, vd.asbuffer(running.np.zeros(1, int)), 7)
        return result

    monkeypatch.setattr(vd, "cumsum", cumsum)
    found = made("vd.cumsum")
    assert found.verdict == running.FAILED
    assert "wrong" in found.cause
    assert "reverse=True" in found.text


def of_first_data(right: Any) -> Any:
    """Return a function that gives the first result again."""
    known: dict[Any, Any] = {}

    @functools.wraps(right)
    def call(x: Any, *arguments: Any, **options: Any) -> Any:
        key = (getattr(x, "shape", None), getattr(x, "var_type", None), str(arguments), str(options))
        return known.setdefault(key, right(x, *arguments, **options))

    return call


def in_one_memory(right: Any) -> Any:
    """Return a function whose results are overwritten by later ones."""
    known: dict[Any, Any] = {}

    @functools.wraps(right)
    def call(x: Any, *arguments: Any, **options: Any) -> Any:
        result = right(x, *arguments, **options)
        kept = known.setdefault((result.shape, result.var_type), result)
        if kept is not result and result.size and options.get("graph") is None:
            vd.copyto(kept, result)
        return kept

    return call


@pytest.mark.parametrize("bad", [of_first_data, in_one_memory])
def test_a_wrong_later_call_is_found(bad: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vd, "flip", bad(vd.flip))
    for seed in range(60):
        found, _ = check("vd.flip", Choices(seed=seed), set(), 0, repeat=3)
        if found.verdict not in (running.EQUAL, running.REFUSED):
            break
    assert found.verdict == running.FAILED
    assert found.cause.startswith("vd.flip, later call" if bad is of_first_data else "vd.flip, ")
    assert "-- call 1" in found.text


def test_failures_are_made_small(monkeypatch: pytest.MonkeyPatch) -> None:
    right = vd.fft.fftfreq

    @functools.wraps(right)
    def fftfreq(n: int, *rest: Any) -> Any:
        return right(n, *rest) + len(rest)

    monkeypatch.setattr(vd.fft, "fftfreq", fftfreq)
    found = made("vd.fft.fftfreq", 60)
    assert "result = vd.fft.fftfreq(8, 0.5)" in found.text


def test_shrinking_ends_with_the_least_choices() -> None:
    found = shrink([7, 0, 93, 5, 12, 8], lambda made: sum(made) > 20, 60)
    assert found == [21]


def test_a_wrong_dtype_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = vd.count_nonzero

    @functools.wraps(right)
    def narrow(x: Any, *rest: Any, **options: Any) -> Any:
        return right(x, *rest, **({} if "out" in options else {"dtype": vd.int32}), **options)

    monkeypatch.setattr(vd, "count_nonzero", narrow)
    assert "dtype" in made("vd.count_nonzero").text


def test_a_written_input_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = vd.flip

    @functools.wraps(right)
    def flip(x: Any, *rest: Any, **options: Any) -> Any:
        result = right(x, *rest, **options)
        if isinstance(x, vd.Buffer) and x.size > 1 and options.get("graph") is None:
            vd.random.Generator(0).shuffle(x, x.shape.index(max(x.shape)))
        return result

    monkeypatch.setattr(vd, "flip", flip)
    assert "the input a was written" in made("vd.flip").text


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (KeyError("axis"), "raised KeyError"),
        (vd.ArgumentValueError("something is wrong"), "refused without an argument's name"),
    ],
)
def test_a_bad_exception_is_found(error: Exception, cause: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def tile(x: Any, reps: Any, out: Any = None, graph: Any = None, output_map: Any = None) -> Any:
        raise error

    monkeypatch.setattr(vd, "tile", tile)
    found = made("vd.tile")
    assert found.verdict == running.FAILED
    assert cause in found.cause


def test_a_refusal_of_what_numpy_computes_is_a_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    def tile(x: Any, reps: Any, out: Any = None, graph: Any = None, output_map: Any = None) -> Any:
        raise vd.ArgumentValueError("reps: not today")

    monkeypatch.setattr(vd, "tile", tile)
    found = made("vd.tile")
    assert (found.verdict, found.cause) == (running.GAP, "vd.tile: ArgumentValueError: reps: not today")


def test_an_accepted_mistake_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = vd.argmax

    @functools.wraps(right)
    def lenient(x: Any, axis: Any = None, **options: Any) -> Any:
        return right(x, 0 if axis is True else axis, **options)

    monkeypatch.setattr(vd, "argmax", lenient)
    for seed in range(2000):
        case = write(Choices(seed=seed), "vd.argmax")
        if "axis=True" in case.call and case.queues == 1 and case.arrays["a"].shape[:1] not in ((), (0,)):
            break
    assert "accepted" in running.run(case).cause


def test_the_same_choices_make_the_same_call() -> None:
    for family in FAMILIES:
        for seed, _, function in tasks_of(100, 5, (family,)):
            choices = Choices(seed=seed)
            text = running.describe(write(choices, function))
            assert running.describe(write(Choices(choices.made), function)) == text


def test_a_crash_is_told() -> None:
    worker = Calls([])
    worker.process.kill()
    worker.process.wait()
    worker.command = [sys.executable, "-c", "import os, sys; sys.stdin.readline(); os.abort()"]
    worker.start()
    worker.give((3, "reductions", "vd.sum"))
    task, verdict, cause, text = worker.answer()
    worker.end()
    assert (task[0], verdict) == (3, CRASHED)
    assert "exit status -6" in cause
    assert "vd.sum(" in text
