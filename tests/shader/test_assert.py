"""`assert` on values of the GPU: a check of the device and of the interpreter, nothing without."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.base.errors import CheckError
from vkdispatch.codegen.abbreviations import Buff, i32


def make(check: Any) -> Any:
    @vd.shader("out.size", check=check)
    def kernel(out: Buff[i32]) -> None:
        i = vc.global_invocation_id().x
        assert out[i] < 100, f"too large: {out[i]}"
        out[i] += 1

    return kernel


def is_small(x: Any) -> Any:
    k = 0
    while k < 5:
        if x == k:
            return True
        k += 1
    return False


def make_called(check: Any) -> Any:
    @vd.shader("out.size", check=check)
    def kernel(out: Buff[i32]) -> None:
        i = vc.global_invocation_id().x
        if i > 1:
            assert is_small(out[i])
        out[i] += 1

    return kernel


@pytest.mark.parametrize("check", [True, "asserts", {"asserts", "nan"}])
def test_first_violation_is_reported(check: Any) -> None:
    kernel = make(check)
    data = np.array([1, 2, 100, 3, 500], np.int32)
    out = vd.asbuffer(data)
    with pytest.raises(
        AssertionError, match=r"assertion failed: too large: .*invocation \([24], 0, 0\)"
    ) as caught:
        kernel(out)
    assert isinstance(caught.value, CheckError)
    assert "1 more" in str(caught.value) or "2 " in str(caught.value)
    line = make.__code__.co_firstlineno + 4
    assert f"test_assert.py:{line}" in str(caught.value)
    # the invocation goes on
    assert out.read(0).tolist() == (data + 1).tolist()
    kernel(vd.asbuffer(np.zeros(5, np.int32)))


def test_nothing_without_checks() -> None:
    for make_one in (make, make_called):
        for check in (False, "bounds"):
            kernel = make_one(check)
            out = vd.asbuffer(np.array([1, 200, 300], np.int32))
            kernel(out)
            assert out.read(0).tolist() == [2, 201, 301]
        assert "while" not in make_one(False).get_src(build=False).code
        assert "100" not in make_one(False).get_src(build=False).code


def test_condition_of_statements() -> None:
    kernel = make_called("asserts")
    out = vd.asbuffer(np.array([7, 7, 4, 0], np.int32))
    kernel(out)
    assert out.read(0).tolist() == [8, 8, 5, 1]
    with pytest.raises(AssertionError, match=r"assertion failed, in invocation \(3, 0, 0\)"):
        kernel(vd.asbuffer(np.array([7, 7, 4, 9], np.int32)))


def test_interpreter() -> None:
    with pytest.raises(AssertionError, match=r"assertion failed: too large: .*\(1, 0, 0\)"):
        make(None).interpret(np.array([1, 100], np.int32))
    with pytest.raises(AssertionError, match=r"assertion failed, in invocation \(2, 0, 0\)"):
        make_called(None).interpret(np.array([7, 7, 7], np.int32))
    data = np.array([1, 100], np.int32)
    make(None).interpret(data, check=False)
    assert data.tolist() == [2, 101]
    data = np.array([7, 7, 4], np.int32)
    make_called(None).interpret(data)
    assert data.tolist() == [8, 8, 5]


def test_what_python_knows() -> None:
    def known(out: Buff[i32]) -> None:
        size = 3
        assert size == 4, f"size is {size}"
        out[0] = 1

    with pytest.raises(AssertionError, match="size is 3"):
        vd.shader(1)(known)


def test_condition_that_assigns() -> None:
    def assigns(out: Buff[i32]) -> None:
        assert (x := out[0] + (1 if out[0] > 0 else 2)) > 3  # noqa: RUF018
        out[0] = x

    with pytest.raises(RuntimeError, match=r"its condition assigns 'x'.*\(test_assert\.py"):
        vd.shader(1)(assigns)
