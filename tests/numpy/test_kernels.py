"""Arrays as arguments of kernels, graphs, maps and functions on buffers; Python functions as operations."""

import math
from typing import Any

import pytest

import numpy as np
import vkdispatch as vd
import vkdispatch.codegen as vc
import vkdispatch.numpy as vnp
from vkdispatch.families.operands import parse_operand
from vkdispatch.shader.map import MappedArray
from vkdispatch.shader.shader_function import ShaderFunction

HOST = np.arange(12, dtype=np.float32).reshape(3, 4)


@vd.shader("dst.size")
def scale(
    dst: vc.Buff[vc.f32],  # type: ignore[valid-type]
    src: vc.Buff[vc.f32],  # type: ignore[valid-type]
    factor: vc.Const[vc.f32],  # type: ignore[valid-type]
) -> None:
    i = vc.global_invocation_id().x
    dst[i] = src[i] * factor


@vd.map
def squared(x: vc.f32) -> vc.f32:  # type: ignore[valid-type]
    return x * x


def array(data: Any = HOST) -> Any:
    return vnp.asarray(np.asarray(data))


def test_a_launch_that_fails_after_it_was_queued_is_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    x = vnp.zeros(5)
    view = x[:]  # so that writes go to the memory
    x[1:] += 1
    find_launch = ShaderFunction.find_launch

    def find_failing(kernel: Any) -> Any:
        def launch(*arguments: Any) -> None:
            known(*arguments)
            raise vd.VulkanError("while it waited for another batch")

        known = find_launch(kernel)
        return known and launch

    monkeypatch.setattr(ShaderFunction, "find_launch", find_failing)
    with pytest.raises(vd.VulkanError, match="another batch"):
        x[1:] += 1
    monkeypatch.undo()
    assert view.tolist() == [0, 2, 2, 2, 2]


# ---- kernels


def test_a_kernel_reads_and_writes_arrays_in_their_own_memory() -> None:
    out = vnp.zeros((3, 4), dtype=np.float32)
    memory = vnp.asbuffer(out)
    scale(out, array(), 2.0)
    np.testing.assert_array_equal(out.numpy(), HOST * 2)
    np.testing.assert_array_equal(memory.read(0), HOST * 2)


@pytest.mark.parametrize(
    "make",
    [
        lambda x: x.T,
        lambda x: x[:, ::-1],
        lambda x: x[1:, :],
        lambda x: x + 1,
        lambda x: (vnp if isinstance(x, vnp.ndarray) else np).broadcast_to(x[0], (3, 4)),
        lambda x: (x * 2)[::2],
    ],
)
def test_a_kernel_reads_views_and_expressions(make: Any) -> None:
    source, expected = make(array()), make(HOST)
    out = vnp.zeros(expected.shape, dtype=np.float32)
    scale(out, source, 3.0)
    np.testing.assert_array_equal(out.numpy(), np.ascontiguousarray(expected) * 3)


def test_arrays_are_given_by_name_and_to_a_size_of_the_call() -> None:
    out = vnp.zeros((3, 4), dtype=np.float32)
    scale(out, src=array().T, factor=1.0, exec_size=3, queue_index=0)
    expected = np.zeros(12, np.float32)
    expected[:3] = HOST.T.ravel()[:3]
    np.testing.assert_array_equal(out.numpy().ravel(), expected)


def test_an_array_of_more_than_three_axes_is_flat_in_a_kernel() -> None:
    out = vnp.zeros((2, 1, 3, 2), dtype=np.float32)
    scale(out, array().reshape(1, 2, 2, 3), 2.0)
    np.testing.assert_array_equal(out.numpy().ravel(), HOST.ravel() * 2)


@pytest.mark.parametrize("part", [lambda x: x[:2], lambda x: x.T, lambda x: x[::2], lambda x: x[1:]])
def test_a_part_of_an_array_is_not_written_by_a_kernel(part: Any) -> None:
    out = array()
    for _ in range(2):
        with pytest.raises(ValueError, match=r"scale .*'dst'.*pass x.copy\(\)"):
            scale(part(out), array(), 2.0)
    np.testing.assert_array_equal(out.numpy(), HOST)


def test_wrong_arrays_are_refused_as_wrong_buffers_are() -> None:
    with pytest.raises(TypeError, match="'src': expected elements of float32, the buffer has int32"):
        scale(array(), array().astype(np.int32), 1.0)
    with pytest.raises(ValueError, match="'factor'"):
        scale(array(), array(), array())


def test_kernels_compute_the_expressions_that_read_what_they_write() -> None:
    out = array()
    before, total = out + 1, (out * 2).sum()
    scale(out, array(), 10.0)
    np.testing.assert_array_equal(before.numpy(), HOST + 1)
    np.testing.assert_array_equal(out.numpy(), HOST * 10)
    assert float(total) == HOST.sum() * 2


def test_expressions_between_launches_see_what_was_there() -> None:
    out, expected, seen = array(), HOST, []
    for factor in (2.0, 3.0, 0.5, 1.0):
        seen.append((out - 1, expected - 1))
        scale(out, out, factor)
        expected = expected * np.float32(factor)
        seen.append((out * 2, expected * 2))
    np.testing.assert_array_equal(out.numpy(), expected)
    for found, wanted in seen:
        np.testing.assert_array_equal(found.numpy(), wanted)


@vd.shader("words.size")
def negate(words: vc.Buff[vc.u32], numbers: vc.Buff[vc.f32]) -> None:  # type: ignore[valid-type]
    i = vc.global_invocation_id().x
    words[i] = words[i] ^ 0x80000000
    numbers[i] = numbers[i] + 1


def test_one_memory_is_not_written_as_two_types() -> None:
    x, other = array(), array()
    negate(x.view(np.uint32), other)
    np.testing.assert_array_equal(x.numpy(), -HOST)
    for words, numbers in (
        (x.view(np.uint32), x),
        (x.view(np.uint32), vnp.asbuffer(x)),
        (vnp.asbuffer(x.view(np.uint32)), x),
    ):
        with pytest.raises(
            ValueError, match="'words' and argument 'numbers' share memory, as uint32 and as float32"
        ):
            negate(words, numbers)
    np.testing.assert_array_equal(x.numpy(), -HOST)
    np.testing.assert_array_equal(other.numpy(), HOST + 1)


def test_read_only_arrays_are_read_but_not_written() -> None:
    out, line = array(), vnp.broadcast_to(array(np.float32([2])), (1,))
    for _ in range(2):
        scale(out, line, 1.0, exec_size=1)
        with pytest.raises(ValueError, match=r"scale .*'dst'"):
            scale(line, out, 1.0, exec_size=1)
    np.testing.assert_array_equal(out.numpy().ravel()[:2], [2, 1])
    assert line.tolist() == [2]


def test_buffers_and_arrays_are_mixed() -> None:
    buffer = vd.asbuffer(HOST)
    scale(buffer, array() + 1, 2.0)
    np.testing.assert_array_equal(vnp.asarray(buffer).numpy(), (HOST + 1) * 2)


# ---- graphs


def test_graphs_read_and_write_the_memory_of_arrays_each_time() -> None:
    out, source = vnp.zeros((3, 4), dtype=np.float32), array()
    graph = vd.CommandGraph()
    scale(out, source, 2.0, graph=graph)
    before = out + 1
    graph.submit()
    np.testing.assert_array_equal(before.numpy(), np.ones((3, 4)))
    np.testing.assert_array_equal(out.numpy(), HOST * 2)
    source[...] = 1
    between = out + 1
    graph.submit()
    np.testing.assert_array_equal(between.numpy(), HOST * 2 + 1)
    np.testing.assert_array_equal(out.numpy(), np.full((3, 4), 2))


@vd.shader("dst.size")
def reverse(dst: vc.Buff[vc.f32], src: vc.Buff[vc.f32]) -> None:  # type: ignore[valid-type]
    i = vc.global_invocation_id().x
    dst[i] = src[dst.size - 1 - i]


def test_fused_kernels_know_the_memory_of_an_array_in_every_shape() -> None:
    out, middle = vnp.zeros((3, 4), dtype=np.float32), vnp.zeros((3, 4), dtype=np.float32)
    graph = vd.CommandGraph()
    with graph:
        scale(middle, array(), 2.0)
        reverse(out, middle.reshape(4, 3))
        scale(out.reshape(12), out, 3.0)
        scale(out.reshape(2, 6), out.reshape(12), 0.5)
    assert graph.optimize() == 2  # all but `reverse`, whose elements others have written
    graph.submit()
    np.testing.assert_array_equal(out.numpy().ravel(), HOST.ravel()[::-1] * 3)


def test_a_graph_refuses_what_would_be_copied() -> None:
    graph = vd.CommandGraph()
    with pytest.raises(ValueError, match="recorded call"):
        scale(array(), array().T, 2.0, graph=graph)
    with pytest.raises(ValueError, match="recorded call"):
        vd.sum(array().T, graph=graph)


def test_a_global_graph_records_kernels_but_no_expressions() -> None:
    graph = vd.CommandGraph()
    source, out = array(), vnp.zeros((3, 4), dtype=np.float32)
    vd.set_global_graph(graph)
    try:
        doubled = source * 2
        scale(out, doubled, 1.0)
        with pytest.raises(RuntimeError, match="set_global_graph"):
            vnp.sum(source)
    finally:
        vd.set_global_graph(None)
    np.testing.assert_array_equal(doubled.numpy(), HOST * 2)
    np.testing.assert_array_equal(out.numpy(), np.zeros((3, 4)))
    graph.submit()
    np.testing.assert_array_equal(out.numpy(), HOST * 2)


# ---- functions on buffers


def test_functions_on_buffers_return_arrays_for_arrays() -> None:
    x = array()
    for found, expected in (
        (vd.sum(x), HOST.sum()),
        (vd.sum(x * 2 + 1, axis=0), (HOST * 2 + 1).sum(0)),
        (vd.max(x.T, axis=0), HOST.T.max(0)),
        (vd.concatenate([x, x]), np.concatenate([HOST, HOST])),
        (vd.sort(x[:, ::-1], axis=1), HOST),
        (vd.matmul(x, x.T), HOST @ HOST.T),
    ):
        assert isinstance(found, vnp.ndarray)
        np.testing.assert_allclose(found.numpy(), expected)
    values, places = vd.topk(x.ravel(), 2)
    assert values.tolist() == [11, 10]
    assert places.tolist() == [11, 10]
    assert isinstance(vd.sum(vd.asbuffer(HOST)), vd.Buffer)


def test_out_is_the_array_that_was_given() -> None:
    out = vnp.zeros(4, dtype=np.float32)
    before = out + 1
    assert vd.sum(array(), axis=0, out=out) is out
    np.testing.assert_array_equal(out.numpy(), HOST.sum(0))
    np.testing.assert_array_equal(before.numpy(), np.ones(4))
    with pytest.raises(ValueError, match="written"):
        vd.sum(array(), axis=0, out=vnp.zeros(8, dtype=np.float32)[::2])


def test_transforms_in_place_write_whole_arrays_only() -> None:
    host = np.arange(8).astype(np.complex64)
    z = array(host)
    before = z * 2
    vd.fft.fft(z)
    np.testing.assert_allclose(z.numpy(), np.fft.fft(host), atol=1e-5)
    np.testing.assert_array_equal(before.numpy(), host * 2)
    with pytest.raises(ValueError, match="written"):
        vd.fft.fft(z[::2])


def test_functions_on_buffers_take_any_number_of_axes() -> None:
    host = np.arange(120, dtype=np.float32).reshape(2, 3, 1, 4, 5)
    for x in (array(host), array(host.T).T, array(host) + 0):
        found = vd.sum(x, axis=(0, 3))
        assert isinstance(found, vnp.ndarray)
        np.testing.assert_array_equal(found.numpy(), host.sum((0, 3)))
        np.testing.assert_array_equal(vd.transpose(x, (3, 0, 4, 1, 2)).numpy(), host.transpose(3, 0, 4, 1, 2))


def test_expressions_that_a_call_writes_are_computed_before() -> None:
    x = array()
    out = vnp.zeros(3, dtype=np.float32)
    x[:, 0] = out
    assert vd.sum(vnp.broadcast_to(out, (2, 3)) + 1, axis=0, out=out) is out
    np.testing.assert_array_equal(out.numpy(), [2, 2, 2])


def test_arguments_decide_before_anything_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[Any] = []

    def note(x: Any, name: str = "x") -> Any:
        tried.append(type(x))
        return parse_operand(x, name)

    monkeypatch.setattr("vkdispatch.rearrange.transposing.parse_operand", note)
    x = array(np.arange(77, dtype=np.float32).reshape(7, 11))
    vd.transpose(x)
    vd.transpose(x[1:])
    assert tried == [vd.Buffer, MappedArray]


def test_maps_take_arrays() -> None:
    assert float(vnp.asarray(vd.sum(squared(array().T)))) == (HOST**2).sum()
    np.testing.assert_array_equal(vnp.asarray(squared(array()[::2])).numpy(), HOST[::2] ** 2)
    found = vd.sum(array(), axis=0)
    assert isinstance(found, vnp.ndarray)


def test_copyto_takes_arrays() -> None:
    out = vnp.zeros((3, 4), dtype=np.float32)
    before = out + 1
    vd.copyto(out, array() + 1)
    np.testing.assert_array_equal(out.numpy(), HOST + 1)
    np.testing.assert_array_equal(before.numpy(), np.ones((3, 4)))
    with pytest.raises(ValueError, match="written"):
        vd.copyto(out[:, ::-1], array())


# ---- Python functions as operations


def collatz(n: Any) -> Any:
    count = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        count += 1
    return count


def test_vectorize_runs_control_flow_and_fuses() -> None:
    x = vnp.arange(1, 20)
    steps = vnp.vectorize(collatz)(x)
    assert (steps * 2 + 1).tolist() == [collatz(n) * 2 + 1 for n in range(1, 20)]
    explained = vnp.explain(vnp.vectorize(collatz)(x) + 1)
    assert explained.startswith("1 kernel:")
    assert "= collatz(v0): int32" in explained
    assert int(vnp.vectorize(collatz)(27)) == 111


def test_vectorize_leaves_its_operands_as_they_are() -> None:
    def triangular(n: Any) -> Any:
        total = 0
        while n > 0:
            total += n
            n -= 1
        return total

    x = vnp.arange(1, 9)
    n = vnp.vectorize(triangular)(x)
    host = np.arange(1, 9) * np.arange(2, 10) // 2
    assert (vnp.vectorize(triangular)(n) * n + n).tolist() == (host * (host + 1) // 2 * host + host).tolist()


def test_vectorize_takes_defaults_names_and_dtypes() -> None:
    host = np.linspace(-1, 1, 5)
    soft = vnp.vectorize(lambda a, b=2.0: math.sin(a) * b if a > 0 else 0.0)
    np.testing.assert_allclose(soft(array(host)).numpy(), np.where(host > 0, np.sin(host) * 2, 0), rtol=1e-6)
    assert soft(array(host.astype(np.float32)), b=3).dtype == np.float32

    @vnp.vectorize(otypes="fi")  # type: ignore[untyped-decorator]
    def both(a: float, b: Any) -> Any:
        """Return two."""
        return a + b, a - b

    first, second = both(vnp.asarray([[1], [2]]), vnp.asarray([1.5, 2.5]))
    assert both.__doc__ == "Return two."
    assert (first.dtype, second.dtype) == (np.float32, np.int32)
    np.testing.assert_array_equal(first.numpy(), [[2.5, 3.5], [3.5, 4.5]])
    np.testing.assert_array_equal(second.numpy(), [[0, -1], [0, 0]])

    def third(a: vc.f32) -> np.float64:  # type: ignore[valid-type]
        return a / 3  # type: ignore[operator, no-any-return]

    assert vnp.vectorize(third)(vnp.asarray([1])).numpy() == np.float32(1) / np.float32(3)


def test_vectorize_refuses_what_it_cannot_compute() -> None:
    for call, message in (
        (lambda: vnp.vectorize(3), "expected a function"),
        (lambda: vnp.vectorize(collatz)(), "missing a required argument"),
        (lambda: vnp.vectorize(collatz)(np.arange(3)), "convert it with vnp.asarray"),
        (lambda: vnp.vectorize(lambda a: "x")(vnp.ones(1)), "return a number"),
        (lambda: vnp.vectorize(lambda *a: 1), "any number of arguments"),
    ):
        with pytest.raises(TypeError, match=message):
            call()
    with pytest.raises(ValueError, match="excluded"):
        vnp.vectorize(collatz, excluded={0})
    with pytest.raises(ValueError, match="otypes: 2 dtypes"):
        vnp.vectorize(collatz, otypes="ii")(vnp.ones(1, dtype=np.int32))


def _floor(x: Any, y: Any) -> Any:
    return x // (y * y + 1) + x % (y * y + 1)


def _mixed(x: Any, y: Any) -> Any:
    return (x + y) * 2 - y


def _halves(x: Any, y: Any) -> Any:
    return x * 0.5 + y / 3


def _compared(x: Any, y: Any) -> Any:
    return x < y


def _updated(x: Any, y: Any) -> Any:
    before = x
    x += y
    return x * before


def _chosen(x: Any, y: Any) -> Any:
    return x - y if x > y else y - x


@pytest.mark.parametrize("function", [_floor, _mixed, _halves, _compared, _updated, _chosen])
def test_vectorize_computes_as_numpy(function: Any) -> None:
    kinds = ("i1", "u1", "i4", "u4", "i8", "f4", "f8")
    own = vnp.vectorize(function)
    for first in kinds:
        for second in kinds:
            x, y = (np.array([7, 3, 100, 0, 5], each) for each in (first, second))
            if "u" not in first:
                x = -x
            if function is _updated:
                expected = (x + y) * x
            else:
                expected = np.where(x > y, x - y, y - x) if function is _chosen else function(x, y)
            found = own(vnp.asarray(x), vnp.asarray(y))
            if function is not _chosen or x.dtype.itemsize > 2:  # values that an if joins have four bytes
                assert found.dtype == expected.dtype, (first, second)
            np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6)


def test_vectorize_of_other_numbers() -> None:
    t = vnp.asarray([True, False])
    assert (vnp.vectorize(lambda x, y: x + y)(t, t)).tolist() == [True, False]
    a = vnp.asarray(np.array([-7, 7], np.int32))
    square = vnp.vectorize(lambda x: x**2)(a)
    assert (square.dtype, square.tolist()) == (np.int32, [49, 49])
    root = vnp.vectorize(lambda x: math.sqrt(x))(vnp.asarray([2**31 + 1]))
    assert (root.dtype, root.tolist()) == (np.float64, [math.sqrt(2**31 + 1)])
    assert vnp.vectorize(lambda x: int(x))(vnp.asarray([3e9])).tolist() == [3_000_000_000]
    u, i = vnp.asarray(np.array([3_000_000_000], np.uint32)), vnp.asarray(np.array([-1], np.int32))
    assert vnp.vectorize(lambda x, y: max(x, y))(u, i).tolist() == [3_000_000_000]
    assert vnp.vectorize(lambda x, y: (x < y, x != y))(i, u)[0].tolist() == [True]
    with pytest.raises(OverflowError, match="300"):
        vnp.vectorize(lambda x: x + 300)(vnp.zeros(1, np.int8))
