"""Comparisons of the sections of an order: swap, verify and race."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.orders.here import available, other_model
from tests.orders.tasks import ADD, ADD_3D, NATIVE
from vkdispatch.base.process import LogLevel, set_log_level
from vkdispatch.orders import Accel, Order, OrderBuildError, OrderMismatchError, OrderRunError
from vkdispatch.orders.sections import find_tolerance

COUNT = """
set_argnames("x", ("y", "log"))
[cpp]
    for (int i = 0; i < x.size; i++) y(i) += x(i);
    log(ACCELPY_ACCEL_RUNID) = 1;
[openmp_cpp]
    #pragma omp for
    for (int i = 0; i < x.size; i++) y(i) += x(i);
    #pragma omp single
    log(ACCELPY_ACCEL_RUNID) = 2;
[fortran]
    y = y + x
    log(ACCELPY_ACCEL_RUNID + 1) = 3
[openmp_fortran: enable=False]
    nothing
[hip: compile="no-such-compiler"]
    y(threadIdx.x) += x(threadIdx.x);
"""


@pytest.fixture
def other() -> str:
    """Return the model that is compared with `cpp`."""
    return other_model()


def test_a_task_continues_in_another_model(other: str) -> None:
    x, y, log = np.arange(100.0), np.zeros(100), np.zeros(9, np.int32)
    accel = Accel(x, Order(COUNT), y, log, kind="cpp")
    accel.run()
    placement = accel._placed.placement
    accel.swap("openmp_cpp")
    assert accel.model == "openmp_cpp"
    accel.run(4)
    accel.swap(["hip", other])
    accel.run()
    # no data was moved, and there was no wait
    assert accel._placed.placement is placement
    accel.swap("cpp")
    accel.run()
    accel.stop()
    assert log.tolist() == [1, 2, 3 if other == "fortran" else 2, 1, 0, 0, 0, 0, 0]
    np.testing.assert_array_equal(y, 4 * x)


def test_a_swap_copies_arrays_to_another_layout() -> None:
    x, z = np.arange(60.0).reshape(3, 4, 5), np.zeros((3, 4, 5))
    accel = Accel(x, x, 1.0, Order(ADD_3D), z, kind="cpp")
    accel.run()
    for kind in available("fortran", "openmp_cpp", "cuda", "openmp_cpp", "fortran"):
        accel.swap(kind)
        assert accel.model == kind
        np.testing.assert_array_equal(z, 2 * x)  # the results were copied back
        z[...] = 0
        accel.run(5, (3, 4))
        np.testing.assert_array_equal(accel.output, 2 * x)
    accel.stop()


def test_a_failed_swap_changes_nothing() -> None:
    x, y, log = np.arange(5.0), np.zeros(5), np.zeros(9, np.int32)
    accel = Accel(x, Order(COUNT), y, log, kind="cpp")
    with pytest.raises(
        OrderBuildError, match=r"hip \(section of line 16\): compile: there is no program no-"
    ):
        accel.swap("hip")
    with pytest.raises(ValueError, match="openmp_fortran is disabled"):
        accel.swap("openmp_fortran")
    accel.run()
    accel.stop()
    assert (accel.model, log[0]) == ("cpp", 1)


def test_sections_check_one_another() -> None:
    x, y, z = np.arange(1000.0), np.ones(1000), np.zeros(1000)
    accel = Accel(x, y, Order(ADD), z, verify=True)
    assert accel.verification is None
    accel.run(64, 16)
    accel.stop()
    np.testing.assert_array_equal(z, x + y)
    found = accel.verification
    assert found is not None
    assert sorted(found.models) == sorted(available(*NATIVE))
    assert found.models[0] == accel.model
    assert set(found.errors) == set(found.models[1:])
    assert set(found.errors.values()) == {0.0}
    assert {attempt.model for attempt in found.missing} == set(NATIVE) - set(found.models)


def test_accumulated_outputs_are_verified_in_each_run(other: str) -> None:
    x, y, log = np.arange(10.0), np.zeros(20)[::2], np.zeros(9, np.int32)
    accel = Accel(x, Order(COUNT.replace("= 2;", "= 1;").replace("= 3", "= 1")), y, log, verify=True)
    for _ in range(3):
        accel.run()
    accel.swap(other)
    accel.run()
    accel.stop()
    np.testing.assert_array_equal(y, 4 * x)
    assert accel.verification is not None
    assert accel.verification.models[0] == other
    assert log.tolist() == [1] * 4 + [0] * 5


WRONG = """
set_argnames(("x", "delta"), ("y", "z"))
[cpp]
    for (int i = 0; i < x.shape[0]; i++) for (int j = 0; j < x.shape[1]; j++) y(i, j) = x(i, j);
    z = 1;
"""
WRONG_AS = {
    "fortran": "[fortran]\ny = x\ny(2, 3) = y(2, 3) + delta\nz = 1\n",
    "openmp_cpp": """[openmp_cpp]
    #pragma omp single
    for (int i = 0; i < x.size; i++) y(i / 5, i % 5) = x(i / 5, i % 5);
    #pragma omp single
    {
        y(1, 2) += delta;
        z = 1;
    }
""",
}


@pytest.mark.parametrize(
    ("dtype", "delta", "verify", "differs"),
    [
        ("i4", 1, True, True),
        ("f4", 1e-1, True, True),
        ("f4", 1e-5, True, False),
        ("f8", 1e-5, True, True),
        ("f8", 1e-5, 1e-3, False),
        ("f8", 1e-13, True, False),
        ("f8", 1e-13, 0, True),
        ("c8", 1e-1, True, True),
        ("c16", 1e-5, True, True),
    ],
)
def test_verify_finds_wrong_numbers_and_accepts_rounding(
    dtype: str, delta: float, verify: Any, differs: bool, other: str
) -> None:
    x = np.arange(20).reshape(4, 5).astype(dtype)
    y, z = np.zeros((4, 5), dtype), np.zeros((), np.int32)
    accel = Accel(x, float(delta), Order(WRONG + WRONG_AS[other]), y, z, kind="cpp", verify=verify)
    run_id = accel.run()
    if not differs:
        accel.stop()
        np.testing.assert_array_equal(y, x)  # the result of the chosen section
        return
    with pytest.raises(OrderMismatchError, match=rf"cpp and {other} disagree: y\(1, 2\) is") as caught:
        accel.wait(run_id)
    error = caught.value
    assert (error.models, error.argument, error.index) == (("cpp", other), "y", (1, 2))
    assert isinstance(error, AssertionError)
    accel.stop()


@pytest.mark.parametrize(
    ("value", "theirs", "in_fortran", "agree"),
    [
        ("NAN", "NAN", "ieee_value(y, ieee_quiet_nan)", True),
        ("INFINITY", "INFINITY", "ieee_value(y, ieee_positive_inf)", True),
        ("-INFINITY", "INFINITY", "ieee_value(y, ieee_positive_inf)", False),
        ("1.0", "NAN", "ieee_value(y, ieee_quiet_nan)", False),
        ("1e300 * 1e8", "1e308", "1d308", True),
        ("0.0", "1e-300", "1d-300", False),
    ],
)
def test_verification_of_nan_and_infinity(
    value: str, theirs: str, in_fortran: str, agree: bool, other: str
) -> None:
    body = f"use ieee_arithmetic\ny = {in_fortran}" if other == "fortran" else f"y = {theirs};"
    text = f'set_argnames((), "y")\n[cpp]\ny = {value};\n[{other}]\n{body}\n'
    y = np.zeros(())
    accel = Accel(Order(text), y, kind="cpp", verify=True)
    accel.run()
    if agree:
        accel.stop()
    else:
        with pytest.raises(OrderMismatchError, match=f"cpp and {other} disagree: y is"):
            accel.stop()


def test_tolerances() -> None:
    assert find_tolerance(np.dtype("i8")) == find_tolerance(np.dtype("?")) == 0
    assert find_tolerance(np.dtype("f8")) == find_tolerance(np.dtype("c16")) == 2.0**-26
    assert find_tolerance(np.dtype("f4")) == find_tolerance(np.dtype("c8")) == pytest.approx(2.0**-11.5)


def test_large_integers_are_compared_exactly(other: str) -> None:
    body = "y(2) = 9007199254740992_8" if other == "fortran" else "y(1) = 9007199254740992;"
    text = f'set_argnames((), "y")\n[cpp]\ny(1) = 9007199254740993;\n[{other}]\n{body}\n'
    accel = Accel(Order(text), np.zeros(3, np.int64), kind="cpp", verify=True)
    accel.run()
    with pytest.raises(OrderMismatchError, match=r"y\(1\) is 9007199254740993 and 9007199254740992"):
        accel.stop()


def test_a_section_that_fails_fails_the_verification() -> None:
    text = "[cpp]\naccelpy_out0(0) = 1;\n[openmp_cpp]\n#pragma omp parallel\n{}\nthrow 1;\n"
    accel = Accel(Order(text), np.zeros(1), kind="cpp", verify=True)
    accel.run()
    with pytest.raises(OrderRunError, match="openmp_cpp: an exception"):
        accel.stop()


def test_verification_of_a_single_section_warns(capsys: pytest.CaptureFixture[str]) -> None:
    set_log_level(LogLevel.WARNING)
    accel = Accel(Order("[cpp]\n"), np.zeros(1), verify=True)
    assert "cannot compare cpp with another section" in capsys.readouterr().out
    accel.run()
    accel.stop()
    assert accel.verification is not None
    assert accel.verification.models == ("cpp",)


def test_the_fastest_wins_a_race(other: str) -> None:
    slow = "for (int k = 0; k < 500; k++) for (int i = 0; i < x.size; i++) y(i) += std::sqrt(x(i) + k);"
    text = f'set_argnames("x", "y")\n[openmp_cpp]\n#pragma omp single\n{slow}\n'
    if other == "fortran":
        fastest = "fortran"
        text += f"[cpp]\n{slow}\n[fortran]\ny = y + 1\n"
    else:
        fastest = "cpp"
        text += "[cpp]\nfor (int i = 0; i < x.size; i++) y(i) += 1;\n"
    x, y = np.ones(20_000), np.zeros(20_000)
    accel = Accel(x, Order(text), y)
    assert accel.model == "openmp_cpp"
    accel.run()
    times = accel.race(2, repeats=5)
    assert set(times) == {fastest, "cpp", "openmp_cpp"}
    assert next(iter(times)) == accel.model == fastest
    assert list(times.values()) == sorted(times.values())
    assert all(0 < seconds < 60 for seconds in times.values())
    # earlier runs have ended, and the race left no runs
    before = y.copy()
    assert (before > 0).all()
    accel.run()
    accel.stop()
    np.testing.assert_array_equal(y, before + 1)
