"""Programs in the style of accelpy's documentation and tests."""

from __future__ import annotations

import numpy as np
import pytest

import vkdispatch.orders as accelpy
from tests.compatibility.programs import Collection
from tests.orders.here import available
from vkdispatch.orders import Accel, Order

PROGRAMS = Collection()
program = PROGRAMS.add

_SUM = """
set_argnames(("a", "b"), "c")

[hip, cuda]
    int id = blockIdx.x * blockDim.x + threadIdx.x;
    if(id < a.size) c(id) = a(id) + b(id);

[cpp]
    for (int id = 0; id < a.shape[0]; id++) {
        c(id) = a(id) + b(id);
    }

[openmp_cpp]
    #pragma omp for
    for (int id = 0; id < a.shape[0]; id++) {
        c(id) = a(id) + b(id);
    }

[fortran]
    INTEGER id

    DO id=1, a_attr%shape(1)
        c(id) = a(id) + b(id)
    END DO

[openmp_fortran]
    INTEGER id

    !$omp do
    DO id=1, a_attr%shape(1)
        c(id) = a(id) + b(id)
    END DO
    !$omp end do
"""


@program(
    "The sum of two vectors: `Accel(a, b, Order(text), c)`, `run(N)`, `stop()`",
    "the library is built once for each dtype and rank, and cached on disk",
)
def vectors() -> None:
    a, b = np.arange(100), np.arange(100)
    c = np.zeros(100, dtype=np.int64)
    accel = Accel(a, b, Order(_SUM), c)
    accel.run(100)
    accel.stop()
    assert np.array_equal(c, a + b)


@program(
    "`kind=`: one model or a list, the best first; C++, Fortran, OpenMP in both",
    "an order can also have sections with GLSL and Python kernels (`glsl`, `vkdispatch`)",
)
def kinds() -> None:
    for kind in (*available("cpp", "openmp_cpp", "fortran", "openmp_fortran"), ["cuda", "hip", "cpp"]):
        a, b, c = np.arange(50.0), np.ones(50), np.zeros(50)
        accel = Accel(a, b, Order(_SUM), c, kind=kind)
        accel.run(50)
        accel.stop()
        assert np.array_equal(c, a + b)


@program(
    "The classes that name a model: `CppAccel`, `FortranAccel`, `OpenmpCppAccel`, `OpenmpFortranAccel`, ..."
)
def classes() -> None:
    named = {
        "cpp": "CppAccel",
        "fortran": "FortranAccel",
        "openmp_cpp": "OpenmpCppAccel",
        "openmp_fortran": "OpenmpFortranAccel",
    }
    for kind in available(*named):
        a, b, c = np.arange(50.0), np.ones(50), np.zeros(50)
        accel = getattr(accelpy, named[kind])(a, b, Order(_SUM), c)
        accel.run(50)
        accel.stop()
        assert np.array_equal(c, a + b)


@program("Numbers as inputs, several outputs, arrays of two dimensions, `x.shape[d]`, `x.size`")
def arguments() -> None:
    order = Order("""
set_argnames(("a", "scale"), ("doubled", "total"))

[cpp]
    total(0) = 0;
    for (int i = 0; i < a.shape[0]; i++)
        for (int j = 0; j < a.shape[1]; j++) {
            doubled(i, j) = a(i, j) * scale;
            total(0) += a(i, j);
        }
""")
    a = np.random.default_rng(1).random((5, 9))
    doubled, total = np.zeros_like(a), np.zeros(1)
    accel = Accel(a, 2.5, order, doubled, total)
    accel.run()
    accel.stop()
    assert np.allclose(doubled, a * 2.5) and np.isclose(total[0], a.sum())


@program("Lists as inputs and outputs: an output is filled in place")
def lists() -> None:
    c = [0.0] * 6
    accel = Accel([1.0, 2, 3, 4, 5, 6], [1.0] * 6, Order(_SUM), c, kind="cpp")
    accel.run()
    accel.stop()
    assert c == [2, 3, 4, 5, 6, 7]


@program(
    "Run ids: `run` returns one, `wait(run_id)`, `stop(run_id)`, `isbusy()`",
    "an error of a run is raised by each call that waits for it",
)
def runs() -> None:
    a, b, c = np.arange(50.0), np.ones(50), np.zeros(50)
    accel = Accel(a, b, Order(_SUM), c, kind="cpp")
    first, second = accel.run(50), accel.run(50)
    accel.wait(first)
    accel.wait(second, timeout=60)
    accel.stop(first)
    accel.stop()
    assert np.array_equal(c, a + b) and not accel.isbusy()


@program("Different arrays for one run: `run(inputs=, outputs=)`")
def other_arrays() -> None:
    a, b, c = np.arange(50.0), np.ones(50), np.zeros(50)
    accel = Accel(a, b, Order(_SUM), c, kind="cpp")
    other = np.zeros(50)
    accel.run(50, inputs=(a, a), outputs=[other])
    accel.run(50)
    accel.stop()
    assert np.array_equal(other, a + a) and np.array_equal(c, a + b)


@program(
    "`output(run_id)` copies the results back while the accelerator stays in use",
    "`accel.output` without a call represents the array",
)
def output() -> None:
    a, b, c = np.arange(50.0), np.ones(50), np.zeros(50)
    accel = Accel(a, b, Order(_SUM), c, kind="cpp")
    accel.run(50)
    accel.output()
    assert np.array_equal(c, a + b) and np.array_equal(accel.output, a + b)
    accel.stop()


@program("`compile=`: a command, a list, or a vendor with flags, such as `gnu -O2`")
def compilers() -> None:
    for command in ("g++ -O1", ["nvc++ -fast", "g++"], "gnu -O2", ["cray", "gnu -O2"]):
        a, b, c = np.arange(50.0), np.ones(50), np.zeros(50)
        accel = Accel(a, b, Order(_SUM), c, kind="cpp", compile=command)
        accel.run(50)
        accel.stop()
        assert np.array_equal(c, a + b)


@program(
    "The preamble: Python names in options of sections, `enable=`, `compile=`",
    "only arithmetic builtins are available",
)
def preamble() -> None:
    order = Order("""
fast = False
set_argnames("a", "c")

[openmp_cpp: enable=fast]
    this is no C++

[cpp: compile="g++ -O2"]
    for (int i = 0; i < a.size; i++) c(i) = a(i) + 1;
""")
    a, c = np.arange(9.0), np.zeros(9)
    with Accel(a, order, c) as accel:
        accel.run()
    assert accel.model == "cpp" and np.array_equal(c, a + 1)


@program("Members, teams and assignments, and their macros: `ACCELPY_WORKER_DIM0`, `ACCELPY_TEAM_DIM0`, ...")
def workers() -> None:
    order = Order("""
set_argnames("a", "c")

[cpp]
    c(0) = ACCELPY_WORKER_DIM0; c(1) = ACCELPY_TEAM_DIM0; c(2) = ACCELPY_ASSIGN_DIM0;
""")
    c = np.zeros(3, np.int64)
    with Accel(0, order, c, kind="cpp") as accel:
        accel.run(2, (3, 1), 5)
    assert c.tolist() == [2, 3, 5]


@program(
    "A body that does not compile", "the error has the messages of each compiler, with lines of the order"
)
def errors() -> None:
    order = Order("""set_argnames("a", "c")
[cpp]
    c(0) = typo(0);
""")
    with pytest.raises(RuntimeError, match="<order>:3"):
        Accel(np.zeros(1), order, np.zeros(1))
