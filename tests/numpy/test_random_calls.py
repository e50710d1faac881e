"""Random calls beside NumPy, a few of them: `python -m tests.numpy.random_calls` makes more."""

from __future__ import annotations

from typing import Any

import pytest

import numpy as np
import vkdispatch.numpy as vnp
from tests.calls import running
from tests.calls.choices import Choices
from tests.calls.random_calls import tasks_of
from tests.numpy.random_calls import LEFT_OUT, check, public_functions, write, writers
from tests.numpy.writers import FAMILIES

_EACH = 25


@pytest.mark.parametrize("family", FAMILIES)
def test_same_as_numpy(family: str) -> None:
    if family == "special":
        pytest.importorskip("scipy.special")
    for seed, _, function in tasks_of(0, _EACH, (family,), writers):
        found, _ = check(function, Choices(seed=seed), set(), 5)
        assert found.verdict in (running.EQUAL, running.REFUSED), f"seed {seed}: {found.cause}\n{found.text}"


def test_every_public_function_is_called() -> None:
    """A new function or method needs a template in `writers`, or a reason in `random_calls.LEFT_OUT`."""
    called = {function for family in FAMILIES.values() for function in family}
    left_out = {name for names in LEFT_OUT.values() for name in names.split()}
    assert public_functions() - called - left_out == set()
    assert left_out - public_functions() == set()
    assert {each for each in called - public_functions() if "__" not in each} == set()


def test_the_same_choices_make_the_same_call() -> None:
    for family in FAMILIES:
        for seed, _, function in tasks_of(100, 3, (family,), writers):
            choices = Choices(seed=seed)
            text = write(choices, function).describe()
            assert write(Choices(choices.made), function).describe() == text


def _made(function: str) -> running.Outcome:
    """Make calls of a function until one differs."""
    for seed in range(200):
        found, _ = check(function, Choices(seed=seed), set(), 0)
        if found.verdict not in (running.EQUAL, running.REFUSED):
            return found
    raise AssertionError("no call differed")


def _overwriting(x: Any, *rest: Any, **options: Any) -> Any:
    result = _FLIPUD(x, *rest, **options).copy()
    if isinstance(x, vnp.Array) and x.size > 1 and x.flags.writeable:
        x[...] = result
    return result


def _narrow(x: Any) -> Any:
    return _FLIPUD(x).astype(np.float32) if x.dtype == np.float64 else _FLIPUD(x)


def _late(x: Any) -> Any:
    return _FLIPUD(x) if x.ndim < 2 else _FLIPUD(x).copy()


_FLIPUD = vnp.flipud


@pytest.mark.parametrize(
    ("bad", "cause"),
    [(_overwriting, "argument"), (_narrow, "dtype"), (_late, "value"), (lambda x: x[99:98:7], "shape")],
)
def test_differences_are_found(bad: Any, cause: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vnp, "flipud", bad)
    found = _made("flipud")
    assert found.verdict == running.FAILED
    assert cause in found.cause
