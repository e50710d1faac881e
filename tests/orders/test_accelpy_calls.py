"""The calls of accelpy 0.3: arrays of a single run, results of a run, lists, classes."""

from __future__ import annotations

import contextlib
import copy
import pickle
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
from tests.orders.emulated_gpu import make_compiler
from tests.orders.here import missing, require
from vkdispatch.base.record import replace
from vkdispatch.orders import (
    Accel,
    AccelBase,
    CppAccel,
    CudaAccel,
    FortranAccel,
    HipAccel,
    OpenaccCppAccel,
    OpenaccFortranAccel,
    OpenmpCppAccel,
    OpenmpFortranAccel,
    Order,
    OrderBuildError,
    OrderMismatchError,
    OrderRunError,
)
from vkdispatch.orders.models import TABLE
from vkdispatch.orders.models.native import NativeModel

# Each model has its data in another place: the array, a copy in the other layout, a GPU, a buffer.
SIDES = ("cpp", "fortran", "cuda", "glsl")
ADD_TO = """
set_argnames("x", "y")
[cpp]
    for (int i = 0; i < x.shape[0]; i++) for (int j = 0; j < x.shape[1]; j++) y(i, j) += x(i, j);
[fortran]
    y = y + x
[cuda]
    y(threadIdx.y, threadIdx.x) += x(threadIdx.y, threadIdx.x);
[glsl]
    uint i = gl_GlobalInvocationID.y, j = gl_GlobalInvocationID.x;
    y(i, j) += x(i, j);
"""
MEMBERS = (4, 3)
# Run n continues once the gate exceeds n.
WAITS = """
set_argnames(("gate", "x"), "y")
[cpp]
#include <unistd.h>
    const volatile int64_t *const flag = &gate(0);
    while (*flag <= ACCELPY_ACCEL_RUNID) usleep(200);
    y(0) += x(0);
    if (x(0) < 0) throw 5;
"""


@pytest.fixture(params=SIDES)
def side(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> dict[str, Any]:
    """Return the arguments for an Accel with its data in one of these places. The GPU is emulated."""
    kind: str = request.param
    require("cpp" if kind == "cuda" else kind)
    if kind != "cuda":
        return {"kind": kind}
    model = TABLE[kind]
    assert isinstance(model, NativeModel)
    monkeypatch.setitem(TABLE, kind, replace(model, find_obstacle=lambda: None, find_device_flags=tuple))
    return {"kind": kind, "compile": make_compiler(tmp_path_factory.mktemp(kind), kind)}


def _block(start: float) -> Any:
    return np.arange(start, start + 12, dtype=np.float32).reshape(3, 4)


class Gate:
    """An Accel whose runs wait for `gate[0]`."""

    def __init__(self) -> None:
        self.gate, self.x, self.y = np.zeros(1, np.int64), np.ones(1), np.zeros(1)
        self.accel = Accel(self.gate, self.x, Order(WAITS), self.y, kind="cpp")


@pytest.fixture
def gate() -> Iterator[Gate]:
    made = Gate()
    yield made
    made.gate[0] = 99
    with contextlib.suppress(OrderRunError):
        made.accel.stop(timeout=60)


# --- before 0.3: the text first


@pytest.mark.parametrize("is_file", [False, True])
def test_the_text_first(side: dict[str, Any], tmp_path: Path, is_file: bool) -> None:
    x, y = _block(1), np.ones((3, 4), np.float32)
    path = tmp_path / "order.txt"
    path.write_text(ADD_TO)
    accel = Accel(path if is_file else ADD_TO, x, y, **side)
    accel.run(MEMBERS)
    accel.wait()  # in these versions it fills the outputs
    np.testing.assert_array_equal(y, x + 1)
    accel.run(MEMBERS)
    accel.stop()
    np.testing.assert_array_equal(y, 2 * x + 1)


def test_sides_of_the_text_first() -> None:
    require("cpp")
    text = 'set_argnames(("x", "y"), ("sum", "difference"))\n[cpp]\n sum(0) = x + y; difference(0) = x - y;\n'
    for inputs in ((5, 3), [np.array(5), np.array(3)]):
        total, difference = np.zeros(1, np.int64), [0]
        CppAccel(text, inputs, (total, difference)).run()
        accel = CppAccel(text, inputs, (total, difference))
        accel.run()
        accel.wait()
        assert (total[0], difference) == (8, [2])
    accel = CppAccel('set_argnames("x", "y")\n[cpp]\n y(0) = x(0) + x(1);\n', [3, 4], total)
    accel.run()
    accel.wait()
    assert total[0] == 7
    with pytest.raises(TypeError, match=r"Accel\(text, \(a, b\), c\), got 3 arguments"):
        CppAccel(text, 1, 2, total)
    with pytest.raises(ValueError, match="names 2 inputs"):
        CppAccel(text, 1, total)


# --- run(inputs=, outputs=)


def test_a_run_with_other_arrays(side: dict[str, Any]) -> None:
    x, y, other, z = _block(1), np.zeros((3, 4), np.float32), _block(50), np.ones((3, 4), np.float32)
    accel = Accel(x, Order(ADD_TO), y, **side)
    first = accel.run(MEMBERS)
    second = accel.run(MEMBERS, inputs=[other], outputs=(z,))
    accel.wait(second)
    np.testing.assert_array_equal(z, other + 1)  # a wait is enough
    assert accel.output(second) is None
    accel.wait(first)
    accel.run(MEMBERS)
    accel.stop()
    np.testing.assert_array_equal(y, 2 * x)
    np.testing.assert_array_equal(z, other + 1)


def test_runs_with_shared_arrays_wait_for_one_another(side: dict[str, Any]) -> None:
    x, y, other, z = _block(1), np.zeros((3, 4), np.float32), _block(50), np.zeros((3, 4), np.float32)
    accel = Accel(x, Order(ADD_TO), y, **side)
    accel.run(MEMBERS)  # y = x
    accel.run(MEMBERS, inputs=[other])  # y = x + other
    accel.run(MEMBERS)  # y = 2 x + other
    accel.run(MEMBERS, inputs=[y], outputs=[z])  # z = 2 x + other
    accel.run(MEMBERS, inputs=[z], outputs=[z])  # z = 4 x + 2 other
    accel.run(MEMBERS, outputs=[z])  # z = 5 x + 2 other
    accel.run(MEMBERS)  # y = 3 x + other
    accel.stop()
    np.testing.assert_array_equal(y, 3 * x + other)
    np.testing.assert_array_equal(z, 5 * x + 2 * other)


def test_runs_with_other_arrays_are_asynchronous(gate: Gate) -> None:
    results = [np.zeros(1) for _ in range(3)]
    numbers = [gate.accel.run(inputs=[gate.gate, [i + 7.0]], outputs=[z]) for i, z in enumerate(results)]
    assert gate.accel.isbusy()
    gate.gate[0] = 2
    gate.accel.wait(numbers[:2], 60)
    assert [z[0] for z in results] == [7, 8, 0]
    with pytest.raises(vd.WaitTimeoutError, match="run 2 has not ended"):
        gate.accel.wait(2, 0.01)
    gate.gate[0] = 3
    gate.accel.stop()
    assert results[2][0] == 9
    assert gate.y[0] == 0


def test_a_run_waits_for_another_that_uses_its_arrays() -> None:
    gate, y = np.zeros(1, np.int64), np.zeros((2, 2))[:, 0]  # not contiguous: runs work on copies of it
    accel = Accel(gate, [1.0], Order(WAITS), y, kind="cpp")
    accel.run(inputs=[gate, [10.0]])
    opened = threading.Timer(0.2, gate.fill, (99,))
    opened.start()
    accel.run()
    accel.stop()
    opened.join()
    assert y[0] == 11


def test_other_dtypes_and_dimensions_are_built_again() -> None:
    text = 'set_argnames("x", "y")\n[cpp]\nfor (int i = 0; i < y.size; i++) y.data[i] = x.data[i] / 2;\n'
    y, whole, plane = np.zeros(3), np.zeros(2, np.int32), np.zeros((2, 2), np.float32)
    accel = Accel(np.arange(3.0), Order(text), y, verify=False)
    accel.run(inputs=[np.array([3, 5], np.int32)], outputs=[whole])
    accel.run(inputs=[np.full((2, 2), 3, np.float32)], outputs=[plane])
    accel.run()
    accel.stop()
    assert whole.tolist() == [1, 2]
    assert plane.tolist() == [[1.5, 1.5], [1.5, 1.5]]
    assert y.tolist() == [0, 0.5, 1]
    # a failed build is an error of this run
    scalar = Accel(np.arange(3.0), Order('set_argnames("x", "y")\n[cpp]\ny(0) = x(0);\n'), y)
    with pytest.raises(OrderBuildError, match="cpp"):
        scalar.run(inputs=[3.0])
    scalar.run()
    scalar.stop()


def test_waiting_for_a_failed_run_with_other_arrays_raises(gate: Gate) -> None:
    gate.gate[0] = 99
    run_id = gate.accel.run(inputs=[gate.gate, [-1.0]], outputs=[np.zeros(1)])
    with pytest.raises(OrderRunError, match="cpp: an exception of the body"):
        gate.accel.wait(run_id)
    gate.accel.run()
    gate.accel.stop()
    assert gate.y[0] == 1


def test_runs_with_other_arrays_are_verified() -> None:
    text = """set_argnames("x", "y")
[cpp]
    for (int i = 0; i < x.size; i++) y(i) = x(i);
[openmp_cpp]
    for (int i = 0; i < x.size; i++) y(i) = x(i) < 5 ? x(i) : 0;
"""
    x, y, z = np.arange(3.0), np.zeros(3), np.zeros(3)
    accel = Accel(x, Order(text), y, kind="cpp", verify=True)
    accel.run()
    accel.stop()
    accel.run(inputs=[x + 3], outputs=[z])
    with pytest.raises(OrderMismatchError, match=r"y\(2\) is 5.0 and 0.0"):
        accel.stop()


def test_other_buffers_are_recorded() -> None:
    accel = Accel(
        vd.asbuffer(_block(1)), Order(ADD_TO), vd.asbuffer(np.zeros((3, 4), np.float32)), kind="glsl"
    )
    other, z, graph = vd.asbuffer(_block(50)), vd.asbuffer(np.ones((3, 4), np.float32)), vd.CommandGraph()
    accel.run(MEMBERS, inputs=[other], outputs=[z], graph=graph)
    graph.submit(2)
    np.testing.assert_array_equal(z.read(0), 2 * _block(50) + 1)
    assert not accel.output.read(0).any()


# --- wait, output and stop, by run


def test_waiting_for_all_runs(gate: Gate) -> None:
    gate.accel.wait()  # no runs
    for _ in range(3):
        gate.accel.run()
    with pytest.raises(vd.WaitTimeoutError, match="run 0 has not ended"):
        gate.accel.wait(timeout=0.01)
    gate.gate[0] = 2
    gate.accel.wait([0, 1], timeout=60)
    with pytest.raises(vd.WaitTimeoutError, match="run 2 has not ended"):
        gate.accel.wait(None, 0.01)
    gate.gate[0] = 3
    gate.accel.wait()
    assert not gate.accel.isbusy()
    # each wait raises the error of the run, also after the stop
    gate.gate[0], gate.x[0] = 99, -1
    failed = gate.accel.run()
    for _ in range(2):
        with pytest.raises(OrderRunError):
            gate.accel.wait()
    gate.accel.stop()  # already reported
    with pytest.raises(OrderRunError):
        gate.accel.wait(failed)


def test_stopping_one_run_does_not_stop_others(gate: Gate) -> None:
    first, second = gate.accel.run(), gate.accel.run()
    with pytest.raises(vd.WaitTimeoutError, match="run 0 has not ended"):
        gate.accel.stop(0, timeout=0.01)
    gate.gate[0] = 1
    gate.accel.stop(0)
    assert gate.y[0] == 1
    assert gate.accel.isbusy()
    gate.accel.stop(first)  # again
    gate.gate[0] = 2
    gate.accel.stop([first, second])
    assert gate.y[0] == 2
    assert gate.accel._placed.placement is None  # freed with the last run


def test_stop_copies_the_results_of_one_run(side: dict[str, Any]) -> None:
    x, y = _block(1), np.zeros((3, 4), np.float32)
    accel = Accel(x, Order(ADD_TO), y, **side)
    for count in (1, 2):
        accel.stop(accel.run(MEMBERS))
        np.testing.assert_array_equal(y, count * x)


def test_stopping_without_results(side: dict[str, Any]) -> None:
    x, y, z = _block(1), np.zeros((3, 4), np.float32), np.zeros((3, 4))
    accel = Accel(x, Order(ADD_TO), y, **side)
    accel.run(MEMBERS)
    accel.stop(output=False)
    if side["kind"] != "cpp":
        assert not y.any()
    accel.run(MEMBERS)
    accel.stop(None, z)  # and to another array, of a wider dtype
    np.testing.assert_array_equal(y, 2 * x)
    np.testing.assert_array_equal(z, 2 * x)


def test_output_as_a_method(side: dict[str, Any]) -> None:
    x, y, z = _block(1), np.zeros((3, 4), np.float32), np.zeros((3, 4), np.float32)
    accel = Accel(x, Order(ADD_TO), y, **side)
    assert accel.run(MEMBERS) == 0
    assert accel.output() is y
    np.testing.assert_array_equal(y, x)
    # results are copied once, unless forced
    y[:] = 0
    assert accel.output(None) is y
    assert not y.any()
    accel.output(force=True)
    in_place = side["kind"] == "cpp"
    np.testing.assert_array_equal(y, 0 * x if in_place else x)
    y[:] = x
    accel.run(MEMBERS)
    rows = [[0.0] * 4 for _ in range(3)]
    accel.output([0, 1], z)
    accel.output(1, output=[rows])
    for found in (y, z, rows):
        np.testing.assert_array_equal(found, 2 * x)
    accel.stop()
    accel.output()  # of a stopped run
    np.testing.assert_array_equal(y, 2 * x)


def test_output_as_a_method_waits_only_for_its_run(gate: Gate) -> None:
    gate.accel.run()
    gate.accel.run()
    with pytest.raises(vd.WaitTimeoutError, match="run 0 has not ended"):
        gate.accel.output(timeout=0.01)
    gate.gate[0] = 1
    assert gate.accel.output(0)[0] == 1
    assert gate.accel.isbusy()
    with pytest.raises(vd.WaitTimeoutError, match="run 1 has not ended"):
        gate.accel.output(1, timeout=0.01)
    gate.gate[0], gate.x[0] = 2, -1
    with pytest.raises(OrderRunError):
        gate.accel.output(1)
    own = gate.accel.run(inputs=[gate.gate, [1.0]], outputs=[[0.0]])
    with pytest.raises(vd.ArgumentValueError, match=f"output: run {own} has outputs of its own"):
        gate.accel.output(own, output=gate.y)


def test_results_of_later_runs_are_copied_as_well() -> None:
    gate, y = np.zeros(1, np.int64), np.zeros((2, 2))[:, 0]  # not contiguous: results are copied back
    accel = Accel(gate, [1.0], Order(WAITS), y, kind="cpp")
    accel.run()
    accel.run()
    gate[0] = 1
    accel.output(0)
    assert y[0] == 1
    gate[0] = 2
    accel.stop()
    assert y[0] == 2


def test_output_as_an_attribute_is_the_array() -> None:
    text = 'set_argnames("x", "y")\n[cpp]\nfor (int i = 0; i < 3; i++) y(i) = x(i);\n'
    x, y = np.array([1.0, 2, 4]), np.zeros(3)
    accel = Accel(x, Order(text), y)
    accel.run()
    output = accel.output
    assert isinstance(output, np.ndarray)
    assert np.asarray(output) is y
    assert np.array(output, np.int64).tolist() == [1, 2, 4]
    assert np.shares_memory(output, y)
    assert (output.shape, output.dtype, len(output), output.sum()) == ((3,), np.float64, 3, 7)
    assert output[-1] == 4
    assert list(output) == [1, 2, 4]
    assert 2 in output
    for found in (output + x, x + output, 2 * output, output * 2, np.add(output, output), x - -output):
        assert type(found) is np.ndarray
        np.testing.assert_array_equal(found, 2 * y)
    np.testing.assert_array_equal(np.concatenate([output, x]), [*y, *y])
    np.testing.assert_array_equal(output @ output, 21)
    np.testing.assert_array_equal(1 - output, 1 - y)
    np.testing.assert_array_equal(2**output, 2**y)
    np.testing.assert_array_equal(output == y, [True] * 3)
    assert (repr(output), str(output), f"{output}") == (repr(y), str(y), str(y))
    for twin in (copy.copy(output), copy.deepcopy(output), pickle.loads(pickle.dumps(output))):
        assert type(twin) is np.ndarray
        assert not np.shares_memory(twin, y)
        np.testing.assert_array_equal(twin, y)
    with pytest.raises(TypeError, match="unhashable"):
        hash(output)
    with pytest.raises(AttributeError, match=r"'numpy\.ndarray' object has no attribute 'nothing'"):
        _ = output.nothing
    output[0] = 9
    np.negative(x, out=output)
    assert y.tolist() == [-1, -2, -4]
    output += 1
    assert output is y
    with pytest.raises(AttributeError):
        accel.output = x  # type: ignore[misc]


def test_output_as_an_attribute_waits_when_used(gate: Gate) -> None:
    gate.accel.run()
    output = gate.accel.output
    assert gate.accel.isbusy()
    gate.gate[0] = 1
    assert output[0] == 1
    assert not gate.accel.isbusy()
    gate.gate[0] = 2
    gate.accel.run()
    assert float(output[0]) == 2  # later runs too


def test_output_as_an_attribute_of_several_or_of_a_buffer() -> None:
    a, b = np.zeros(2), [0.0]
    accel = Accel(Order("[cpp]\naccelpy_out0(0) = 1;\naccelpy_out1(0) = 2;\n"), a, b)
    accel.run()
    first, second = accel.output
    assert first is a
    assert second is b
    assert isinstance(accel.output, tuple)
    assert len(accel.output) == 2
    assert accel.output() == (a, b)
    assert (a[0], b) == (1, [2])
    # the output of a buffer is an argument of kernels
    y = vd.asbuffer(np.ones(4, np.float32))
    accel = Accel(vd.asbuffer(np.ones(4, np.float32)), Order(ADD_ONE), y)
    accel.run()
    chained = Accel(accel.output, Order(ADD_ONE), np.zeros(4, np.float32))
    chained.run()
    np.testing.assert_array_equal(chained.output, [2] * 4)


ADD_ONE = 'set_argnames("x", "y")\n[cpp]\nfor (int i = 0; i < x.size; i++) y(i) += x(i);\n'


# --- lists


def test_lists_are_filled_in_place() -> None:
    out, rows, flags = [0.0], [[0, 0], [0, 0], [0, 0]], [False, True]
    inner = rows[1]
    text = """set_argnames(("a", "b"), ("out", "rows", "flags"))
[cpp]
    out(0) += a + b;
    for (int i = 0; i < 3; i++) for (int j = 0; j < 2; j++) rows(i, j) = 10 * i + j;
    flags(0) = true;
    flags(1) = false;
"""
    accel = Accel(1.0, 2.0, Order(text), out, rows, flags)
    accel.run()
    accel.stop()
    assert (out, rows, flags) == ([3.0], [[0, 1], [10, 11], [20, 21]], [True, False])
    assert rows[1] is inner
    assert [type(each) for each in (out[0], rows[0][0], flags[0])] == [float, int, bool]
    out[0] = 10.0  # the next run starts from the values in the list, as with arrays
    accel.run()
    assert accel.output[0] == [13.0]
    # of one run
    other = [0.5]
    accel.run(outputs=[other, rows, flags])
    accel.wait()
    assert (other, out) == ([3.5], [13.0])
    out.append(0.0)
    accel.stop()
    with pytest.raises(
        vd.ArgumentValueError, match=r"output 'out', a list: its shape was \(1,\).*is \(2,\) now"
    ):
        accel.run()


@pytest.mark.parametrize("kind", SIDES[:2] + SIDES[3:])
def test_nested_lists_in_each_model(kind: str) -> None:
    require(kind)
    rows = np.zeros((3, 4)).tolist()
    if kind == "glsl" and "shaderFloat64" not in vd.get_context().device_infos[0].features:
        pytest.skip("the device has no float64")
    with Accel(_block(1), Order(ADD_TO), rows, kind=kind) as accel:
        accel.run(MEMBERS)
        accel.run(MEMBERS)
    assert rows == (2 * _block(1)).tolist()


def test_a_list_can_be_input_and_output() -> None:
    both = [1.0, 2.0]
    with Accel(both, Order(ADD_ONE), both) as accel:
        accel.run()
        accel.run()
    assert both == [4.0, 8.0]


def test_an_empty_list_is_an_output() -> None:
    empty: list[float] = []
    with Accel([], Order(ADD_ONE), empty) as accel:
        accel.run()
    assert empty == []


@pytest.mark.parametrize(
    ("given", "kind", "said"),
    [
        ([(0.0, 0.0)], TypeError, "expected nested lists"),
        ([np.zeros(2), np.zeros(2)], TypeError, "expected nested lists"),
        ([[0.0] * 2] * 2, ValueError, "it contains the same list twice"),
        ([[0.0], [0.0, 1.0]], TypeError, "numpy.asarray cannot convert it"),
        (["text"], TypeError, ".* got the dtype"),
        ([2**70], TypeError, ".* got the dtype object"),
    ],
)
def test_invalid_lists_raise(given: list[Any], kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=f"output 'y' .number 1 after the order.: {said}"):
        Accel([1.0], Order(ADD_ONE), given)


def test_the_same_list_as_two_outputs_raises() -> None:
    out = [0.0]
    with pytest.raises(vd.ArgumentValueError, match="outputs: the same list is passed for two of them"):
        Accel(Order("[cpp]\n"), out, out)


# --- classes


CLASSES = {
    "fortran": FortranAccel,
    "openacc_fortran": OpenaccFortranAccel,
    "openmp_fortran": OpenmpFortranAccel,
    "cpp": CppAccel,
    "hip": HipAccel,
    "cuda": CudaAccel,
    "openacc_cpp": OpenaccCppAccel,
    "openmp_cpp": OpenmpCppAccel,
}


@pytest.mark.parametrize("model", CLASSES)
def test_classes_with_a_single_model(model: str) -> None:
    language = "fortran" if model.endswith("fortran") else "c"
    body = {"fortran": "y(1) = 5", "c": "y(0) = 5;"}[language]
    # other models are earlier in the order, or can be built too
    text = f'set_argnames((), "y")\n[cpp]\ny(0) = 6;\n[glsl]\ny(0) = 7;\n[{model}]\n{body}\n'
    if model == "cpp":
        text = text.replace("y(0) = 6;", body).removesuffix(f"[cpp]\n{body}\n")
    y = np.zeros(1)
    if missing(model):
        with pytest.raises(OrderBuildError, match=f"{model} .section of line"):
            CLASSES[model](Order(text), y)
        return
    accel = CLASSES[model](Order(text), y)
    assert isinstance(accel, AccelBase)
    assert (accel.model, accel.name) == (model, model)
    accel.run(1)
    accel.stop()
    assert y[0] == 5
    accel.race(1, repeats=1)
    assert accel.model == model
    with pytest.raises(vd.ArgumentValueError, match=f"kind: {CLASSES[model].__name__} has the model {model}"):
        accel.swap("glsl")
    with pytest.raises(vd.ArgumentValueError, match=r"kind: .* got 'glsl'; use Accel for other models"):
        CLASSES[model](Order(text), y, kind="glsl")
    assert CLASSES[model](Order(text), y, kind=["glsl", model]).model == model


def test_the_base_class_accepts_all_models() -> None:
    assert isinstance(Accel(Order("[cpp]\n"), np.zeros(1)), AccelBase)
    assert AccelBase(Order("[cpp]\n"), np.zeros(1)).model == "cpp"
    with pytest.raises(vd.ArgumentValueError, match="fortran is not in the order"):
        FortranAccel(Order("[cpp]\n"), np.zeros(1))


# --- debug


def test_debug_prints_and_writes_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    body = "y(0) = 20211205;"
    text = f'set_argnames((), "y")\n[hip: compile="no-such-compiler"]\n[cpp]\n{body}\n'
    accel = Accel(Order(text), np.zeros(1), debug=True)
    accel.run(2, 3)
    accel.stop()
    said = capfd.readouterr().err
    assert all(line.startswith("<order>: ") for line in said.splitlines())
    assert "hip cannot be built: compile: there is no program no-such-compiler here" in said
    assert "cpp: compiled now, by g++" in said
    assert " -O0 " in said
    assert " -g " in said
    assert "run 0 begins: cpp, Grid(members=(2, 1, 1), teams=(3, 1, 1)" in said
    assert "run 0 ended after " in said
    (source,) = (tmp_path / "_accelpy_debug_").glob("cpp-*.cpp")
    assert body in source.read_text()
    assert f"source in _accelpy_debug_/{source.name}" in said
    # a stored library is not compiled again, and failures of runs are printed
    failing = Order('set_argnames("x", "y")\n[cpp]\nif (x < 0) throw 5;\n')
    for _ in range(2):
        accel = Accel(-1, failing, np.zeros(1), debug=True)
    assert "cpp: stored before" in capfd.readouterr().err
    accel.run()
    with pytest.raises(OrderRunError):
        accel.stop()
    assert "run 0 failed: cpp: an exception of the body" in capfd.readouterr().err
    # without debug nothing is printed or written
    Accel(Order(text), np.zeros(1)).stop()
    assert capfd.readouterr().err == ""
    # the order runs even if nothing can be written
    monkeypatch.setattr("vkdispatch.orders.errors.FOLDER", str(source))
    y = np.zeros(1)
    with Accel(Order("[cpp]\naccelpy_out0(0) = 3;\n"), y, debug=True) as accel:
        accel.run()
    assert y[0] == 3
    assert "cannot be written" in capfd.readouterr().err


def test_debug_writes_shaders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with Accel(_block(1), Order(ADD_TO), _block(1), kind="glsl", debug=True) as accel:
        accel.run(MEMBERS)
    (source,) = (tmp_path / "_accelpy_debug_").glob("glsl-*.comp")
    assert "y(i, j) += x(i, j);" in source.read_text()
    assert "run 0 ended" in capfd.readouterr().err
