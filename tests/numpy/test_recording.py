"""Arrays while a graph records the thread's calls: their operations are refused, kernels still take them."""

import io
from collections.abc import Callable
from typing import Any

import pytest

import numpy as np
import vkdispatch as vd
import vkdispatch.codegen as vc
import vkdispatch.numpy as vnp
from vkdispatch.numpy.core.expressions import Node

pytestmark = pytest.mark.filterwarnings("ignore:this graph has no calls")

HOST = np.array([[4, 1, 3], [2, 7, 5], [6, 9, 11]], np.float32)


@vd.shader("data.size")
def add_one(data: vc.Buff[vc.f32]) -> None:  # type: ignore[valid-type]
    i = vc.global_invocation_id().x
    data[i] = data[i] + 1.0


@vd.shader("total.size")
def accumulate(total: vc.Buff[vc.f32], amount: vc.Buff[vc.f32]) -> None:  # type: ignore[valid-type]
    i = vc.global_invocation_id().x
    total[i] = total[i] + amount[i]


def make_stored() -> Any:
    return vnp.asarray(HOST)


def lazy() -> Any:
    return vnp.asarray(HOST) * 1


def is_pending(x: Any) -> bool:
    return type(x._value) is Node and x._value.result is None


def set_part(x: Any, index: Any, value: Any) -> None:
    x[index] = value


def set_imaginary(x: Any) -> None:
    (x + 0j).imag = 1


# ---- what is refused

WRITES: dict[str, Callable[[Any], object]] = {
    "+=": lambda x: x.__iadd__(1),
    "-=": lambda x: x.__isub__(x),
    "*=": lambda x: x.__imul__(2),
    "/=": lambda x: x.__itruediv__(2),
    "//=": lambda x: x.__ifloordiv__(2),
    "%=": lambda x: x.__imod__(2),
    "**=": lambda x: x.__ipow__(2),
    "@=": lambda x: x.__imatmul__(x),
    "x[...] = number": lambda x: set_part(x, ..., 5),
    "x[:] = array": lambda x: set_part(x, slice(None), x + 1),
    "x[:2] = number": lambda x: set_part(x, slice(2), 5),
    "x[0] = list": lambda x: set_part(x, 0, [1, 2, 3]),
    "x[indices]": lambda x: set_part(x, [0, 2], 5),
    "x[mask]": lambda x: set_part(x, x > 4, 0),
    "real": lambda x: setattr(x, "real", 0),
    "fill": lambda x: x.fill(5),
    "sort": lambda x: x.sort(),
    "partition": lambda x: x.partition(1),
    "put": lambda x: x.put([0], 5),
    "copyto": lambda x: vnp.copyto(x, 5),
    "putmask": lambda x: vnp.putmask(x, x > 4, 0),
    "fill_diagonal": lambda x: vnp.fill_diagonal(x, 0),
    "out": lambda x: vnp.add(x, 1, out=x),
    "out of NumPy's function": lambda x: np.add(x, 1, out=x),
    "out of concatenate": lambda x: vnp.concatenate([x[:1], x[:2]], out=x),
    "out of sum": lambda x: vnp.sum(x, axis=0, out=x[0]),
    "at": lambda x: np.add.at(x, ([0, 0], [1, 1]), 1),
    "shuffle": lambda x: vnp.random.default_rng(1).shuffle(x),
}
COMPUTATIONS: dict[str, Callable[[Any], object]] = {
    "numpy": lambda x: (x + 1).numpy(),
    "asarray of NumPy": lambda x: np.asarray(x + 1),
    "print": lambda x: print(x + 1, file=io.StringIO()),
    "repr": lambda x: repr(x + 1),
    "item": lambda x: (x[0, :1] + 1).item(),
    "float": lambda x: float(x[0, 0] + 1),
    "bool": lambda x: bool(x[0, 0] > 1),
    "tolist": lambda x: (x * 2).tolist(),
    "eval": lambda x: vnp.eval(x + 1),
    "copy": lambda x: x.copy(),
    "copy of a transpose": lambda x: x.T.copy(),
    "reshape that copies": lambda x: x.T.reshape(-1),
    "array of arrays": lambda x: vnp.asarray([x, x]),
    "concatenate": lambda x: vnp.concatenate([x, x]),
    "stack": lambda x: vnp.stack([x, x]),
    "x[indices]": lambda x: x[[0, 2]],
    "x[mask]": lambda x: x[x > 4],
    "take": lambda x: vnp.take(x, vnp.asarray([0, 2]), axis=0),
    "nonzero": lambda x: vnp.nonzero(x),
    "sum": lambda x: x.sum(),
    "cumsum": lambda x: x.cumsum(),
    "sort": lambda x: vnp.sort(x),
    "searchsorted": lambda x: vnp.searchsorted(x[0], x[1]),
    "unique": lambda x: vnp.unique_values(x),
    "quantile": lambda x: vnp.quantile(x, 0.3),
    "histogram": lambda x: vnp.histogram(x),
    "convolve": lambda x: vnp.convolve(x[0], x[1]),
    "pad": lambda x: vnp.pad(x, 1),
    "matmul": lambda x: x @ x,
    "einsum": lambda x: vnp.einsum("ij,jk", x, x),
    "dot": lambda x: x.dot(x),
    "solve": lambda x: vnp.linalg.solve(x, x),
    "inv": lambda x: vnp.linalg.inv(x),
    "qr": lambda x: vnp.linalg.qr(x),
    "det": lambda x: vnp.linalg.det(x),
    "eigh": lambda x: vnp.linalg.eigh(x),
    "fft": lambda x: vnp.fft.fft(x),
    "irfft": lambda x: vnp.fft.irfft(x),
    "fftn of complex numbers": lambda x: vnp.fft.fftn(x),
    "rand": lambda x: vnp.random.rand(3),
    "normal": lambda x: vnp.random.default_rng(1).normal(size=3),
    "integers": lambda x: vnp.random.default_rng(1).integers(0, x + 20),
    "gamma": lambda x: vnp.random.default_rng(1).gamma(x),
    "permutation": lambda x: vnp.random.default_rng(1).permutation(x),
    "imag": set_imaginary,
}


@pytest.mark.filterwarnings("ignore::vkdispatch.numpy.linalg.PerformanceWarning")
@pytest.mark.parametrize("make", [make_stored, lazy])
@pytest.mark.parametrize("name", [*WRITES, *(f"computation: {name}" for name in COMPUTATIONS)])
def test_operations_are_refused_and_change_nothing(name: str, make: Callable[[], Any]) -> None:
    operation = WRITES.get(name) or COMPUTATIONS[name.removeprefix("computation: ")]
    x, graph = make(), vd.CommandGraph()
    with (
        graph,
        pytest.raises(RuntimeError, match=r"with graph.*set_global_graph.*compute before.*accept Arrays$"),
    ):
        operation(x)
    assert graph.length == 0
    graph.submit(2)
    np.testing.assert_array_equal(x.numpy(), HOST)
    operation(x)  # the end of the block allows it


@pytest.mark.parametrize("name", WRITES)
def test_refused_writes_compute_nothing_that_waits_to_read(name: str) -> None:
    x = make_stored()
    waiting = x * 3
    with vd.CommandGraph(), pytest.raises(RuntimeError, match="cannot record"):
        WRITES[name](x)
    assert is_pending(waiting)
    np.testing.assert_array_equal(waiting.numpy(), HOST * 3)


def test_the_statement_of_an_operator_in_place_is_refused() -> None:
    x, graph = vnp.ones(4, dtype=vnp.float32), vd.CommandGraph()
    with graph, pytest.raises(RuntimeError, match="cannot record"):
        x += 1
    graph.submit(3)
    np.testing.assert_array_equal(x.numpy(), np.ones(4))


def test_a_refused_draw_takes_no_numbers() -> None:
    generator = vnp.random.default_rng(3)
    with vd.CommandGraph(), pytest.raises(RuntimeError, match="cannot record"):
        generator.random(5)
    np.testing.assert_array_equal(generator.random(5).numpy(), vnp.random.default_rng(3).random(5).numpy())


def test_a_global_graph_is_named_with_what_ends_it() -> None:
    x = make_stored()
    vd.set_global_graph(vd.CommandGraph())
    try:
        with pytest.raises(RuntimeError, match="set_global_graph"):
            x.fill(0)
    finally:
        vd.set_global_graph(None)
    np.testing.assert_array_equal(x.numpy(), HOST)


# ---- what works

BUILT: dict[str, Callable[[Any], Any]] = {
    "arithmetic": lambda x: (x + 1) * x - x**2,
    "broadcast": lambda x: x + x[0],
    "comparison": lambda x: x > 4,
    "astype": lambda x: x.astype(np.int32),
    "slice": lambda x: x[::2, 1:],
    "row": lambda x: x[1],
    "element": lambda x: x[1, 2],
    "slice of an expression": lambda x: (x * 2 + 1)[1:],
    "transpose": lambda x: x.T,
    "reshape": lambda x: x.reshape(9),
    "operation of views": lambda x: x.T[::-1] * x[0],
    "long": lambda x: sum((x * k for k in range(150)), x),
}


@pytest.mark.parametrize("make", [make_stored, lazy])
@pytest.mark.parametrize("name", BUILT)
def test_expressions_and_views_are_made_and_computed_later(name: str, make: Callable[[], Any]) -> None:
    x, graph = make(), vd.CommandGraph()
    with graph:
        found = BUILT[name](x)
        assert found.shape == BUILT[name](HOST).shape
    assert graph.length == 0
    np.testing.assert_array_equal(found.numpy(), BUILT[name](HOST))


def test_where_and_creation_are_expressions_too() -> None:
    x, graph = make_stored(), vd.CommandGraph()
    with graph:
        found = vnp.where(x > 4, x, vnp.zeros(3)) + vnp.arange(3)
        uploaded = vnp.asarray([1, 2])
    assert graph.length == 0
    np.testing.assert_array_equal(found.numpy(), np.where(HOST > 4, HOST, 0) + np.arange(3))
    assert uploaded.tolist() == [1, 2]


def test_memory_that_is_computed_is_read_as_that_of_buffers_is() -> None:
    x, graph = make_stored(), vd.CommandGraph()
    with graph:
        np.testing.assert_array_equal(x.numpy(), HOST)
        np.testing.assert_array_equal(x.T[1:].numpy(), HOST.T[1:])
        assert float(x[1, 1]) == 7
        assert str(x[0]) == str(HOST[0])
        np.testing.assert_array_equal(vnp.asbuffer(x).read(0), HOST)
    assert graph.length == 0


@pytest.mark.parametrize("make", [make_stored, lazy])
def test_recorded_kernels_read_and_write_arrays_each_time(make: Callable[[], Any]) -> None:
    total, amount, graph = make(), make(), vd.CommandGraph()
    with graph:
        accumulate(total, amount)
        add_one(amount.reshape(9))
    assert graph.length == 2
    np.testing.assert_array_equal(total.numpy(), HOST)
    graph.submit(3)
    np.testing.assert_array_equal(total.numpy(), HOST * 4 + 3)
    np.testing.assert_array_equal(amount.numpy(), HOST + 3)


def test_an_expression_that_is_an_argument_is_computed_when_the_call_is_recorded() -> None:
    x, total, graph = make_stored(), vnp.zeros((3, 3), dtype=np.float32), vd.CommandGraph()
    with graph:
        amount = x * 2 + 1
        accumulate(total, amount)
        accumulate(total, x.T + 0)
    assert graph.length == 2
    assert not is_pending(amount)
    x += 100  # what the expressions read
    graph.submit(2)
    np.testing.assert_array_equal(total.numpy(), 2 * (HOST * 2 + 1 + HOST.T))
    amount[...] = 1  # the graph reads its memory each time
    graph.submit()
    np.testing.assert_array_equal(total.numpy(), 2 * (HOST * 2 + 1 + HOST.T) + 1 + HOST.T)


def test_functions_on_buffers_record_arrays() -> None:
    x, graph = make_stored(), vd.CommandGraph()
    with graph:
        total = vd.sum(x)
        add_one(x)
    assert graph.length > 1
    graph.submit()
    assert float(total) == HOST.sum()
    graph.submit()
    assert float(total) == HOST.sum() + HOST.size


def test_an_expression_has_the_values_of_the_line_whatever_recorded_kernels_write() -> None:
    x, graph = make_stored(), vd.CommandGraph()
    before = x + 1
    with graph:
        inside = x * 2
        add_one(x)
        after = x * 3  # the kernel has not run
        graph.submit()
        between = x * 4
        graph.submit()
    np.testing.assert_array_equal(before.numpy(), HOST + 1)
    np.testing.assert_array_equal(inside.numpy(), HOST * 2)
    np.testing.assert_array_equal(after.numpy(), HOST * 3)
    np.testing.assert_array_equal(between.numpy(), (HOST + 1) * 4)
    np.testing.assert_array_equal(x.numpy(), HOST + 2)
    assert graph.length == 1
