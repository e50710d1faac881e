"""Graphs, several calls under way, wrong calls, and what a reduction tells about itself."""

from __future__ import annotations

from collections.abc import Callable
from subprocess import CompletedProcess
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
from vkdispatch.base.record import replace
from vkdispatch.codegen.abbreviations import *  # noqa: F403
from vkdispatch.families.kernels import _Scratch
from vkdispatch.reduce import (
    ReduceFunction,
    ReduceOp,
    SubgroupAdd,
    SubgroupMax,
    SubgroupMul,
    kernels,
    mapped_io_index,
    planning,
)
from vkdispatch.reduce.planning import ReductionParams, Shape

from .reductions import answer, plain

total = plain(SubgroupAdd, vd.float32)


@vd.reduce.map_reduce(SubgroupAdd)
def scaled(x: Buff[f32], factor: Var[f32]) -> f32:  # noqa: F405
    return x[mapped_io_index()] * factor


# ---- graphs ------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [100, 100_000])
def test_a_graph_replays_with_other_input(size: int) -> None:
    buffer = vd.Buffer(size, vd.float32)
    graph = vd.CommandGraph()
    result = total(buffer, graph=graph)
    for value in (1, 2, 3):
        buffer.write(np.full(size, value, np.float32))
        graph.submit()
        assert answer(result) == value * size


def test_work_before_and_after_in_a_graph() -> None:
    @vd.shader("data.size")
    def fill(data: Buff[f32], value: Var[f32]):  # noqa: F405
        data[vc_id()] = value

    @vd.shader("data.size")
    def divide(data: Buff[f32], by: Buff[f32]):  # noqa: F405
        data[vc_id()] = data[vc_id()] / by[0]

    buffer = vd.Buffer(50_000, vd.float32)
    graph = vd.CommandGraph()
    fill(buffer, graph.bind_var("value"), graph=graph)
    first = total(buffer, graph=graph)
    divide(buffer, first, graph=graph)
    second = total(buffer, graph=graph)
    for value in (2.0, 5.0):
        graph.set_var("value", value)
        graph.submit()
        assert answer(first) == 50_000 * value
        assert answer(second) == pytest.approx(1, rel=1e-5)


def vc_id() -> Any:
    import vkdispatch.codegen as vc

    return vc.global_invocation_id().x


def test_a_variable_of_a_graph() -> None:
    graph = vd.CommandGraph()
    result = scaled(vd.asbuffer(np.ones(70_000, np.float32)), graph.bind_var("k"), graph=graph)
    for factor in (3, 4):
        graph.set_var("k", factor)
        graph.submit()
        assert answer(result) == 70_000 * factor


def test_the_global_graph_of_a_thread() -> None:
    graph = vd.CommandGraph()
    buffer = vd.asbuffer(np.ones(1000, np.float32))
    vd.set_global_graph(graph)
    try:
        result = total(buffer)
    finally:
        vd.set_global_graph()
    graph.submit()
    assert answer(result) == 1000


def test_many_calls_in_flight() -> None:
    buffers = [vd.asbuffer(np.full(60_000 + i, i, np.float32)) for i in range(20)]
    results = [total(buffer) for buffer in buffers]
    assert [answer(each) for each in results] == [i * (60_000 + i) for i in range(20)]


def test_results_that_are_never_awaited() -> None:
    buffer = vd.asbuffer(np.ones(60_000, np.float32))
    for _ in range(20):
        total(buffer)
    assert answer(total(buffer)) == 60_000


def test_a_result_may_be_reduced_again() -> None:
    data = np.arange(6000, dtype=np.float32).reshape(20, 300)
    rows = plain(SubgroupAdd, vd.float32, [1])(vd.asbuffer(data))
    assert rows.shape == (1, 20)
    assert answer(total(rows)) == data.sum()


def test_another_context(run_python: Callable[..., CompletedProcess[str]]) -> None:
    ran = run_python(
        """
import numpy as np, vkdispatch as vd
from vkdispatch.base.context import destroy_context
from vkdispatch.codegen.abbreviations import *

@vd.reduce.reduce(0)
def add(a: f32, b: f32) -> f32:
    return a + b

for turn in range(2):
    print(add(vd.asbuffer(np.ones(50_000 + turn, np.float32))).read(0)[0])
    destroy_context()
"""
    )
    assert ran.stdout.split() == ["50000.0", "50001.0"], ran.stderr


@pytest.mark.parametrize("finishing", [0, 1])
@pytest.mark.parametrize(
    ("shape", "axes"),
    [((300_007,), None), ((3, 90_000), [1]), ((3, 90_001), [1]), ((90_000, 3), [0]), ((300, 2, 400), [0, 2])],
    ids=str,
)
def test_one_launch_or_two(
    monkeypatch: pytest.MonkeyPatch, finishing: int, shape: tuple[int, ...], axes: list[int] | None
) -> None:
    monkeypatch.setenv("VKDISPATCH_PLAN", "gpu")
    monkeypatch.setattr(planning, "tuning", replace(planning.tuning, finishing=finishing))
    rng = np.random.default_rng(0)
    # few of them are not 0: their sums are exact in half precision too
    data = rng.integers(-9, 9, shape) * (rng.random(shape) < 0.001)
    for kind in (vd.float32, vd.float16):
        reduction = plain(SubgroupAdd, kind, axes)
        buffer = vd.asbuffer(data.astype(kind.name))
        results = [reduction(buffer) for _ in range(6)]
        expected = data.sum(axis=None if axes is None else tuple(axes)).ravel()
        assert all((answer(each) == expected).all() for each in results)
        launches = reduction._find_launches(reduction._parse_operand((buffer,)), reduction._axes)
        assert launches.form.is_segmented
        assert (launches.second is None) == bool(finishing)
        # the counters are as they were
        scratch = vd.get_context()._keep("families.scratch", _Scratch).buffers
        counters = [zeros for (owner, *_), turns in scratch.items() if owner == "reduce" for zeros in turns]
        assert not any(zeros.read(0).any() for zeros in counters)


def test_checks_switched_on_between_calls_ignore_earlier_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VKDISPATCH_PLAN", "gpu")
    reduction, buffer = plain(SubgroupAdd, vd.float32), vd.asbuffer(np.ones(300_007, np.float32))
    x = reduction._parse_operand((buffer,))
    for checks, finishing in (("", True), ("1", False), ("", True)):
        monkeypatch.setenv("VKDISPATCH_CHECK", checks)
        assert answer(reduction(buffer)) == 300_007
        # a check that ends invocations would leave the counters of a single launch wrong
        assert reduction._find_launches(x, reduction._axes).form.is_finishing == finishing


def test_launches_are_kept_for_a_limited_number_of_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vkdispatch.families.tuning.MAX_RESULTS", 4)
    with vd.use_context(vd.Context([0], [[0]])) as context:
        for size in range(1, 11):
            assert answer(total(vd.asbuffer(np.ones(size, np.float32)))) == size
            assert vd.sum(vd.asbuffer(np.ones(size, np.float32))).read(0) == size
        assert len(context.kept["reduce.plans"].plans) == 4


@pytest.mark.parametrize("size", [10, 300_007])
def test_a_buffer_of_a_closed_context_is_refused(size: int) -> None:
    context = vd.Context([0], [[0]])
    with vd.use_context(context):
        buffer = vd.asbuffer(np.ones(size, np.float32))
        assert answer(total(buffer)) == size
    assert answer(total(buffer)) == size
    context.close()
    with pytest.raises(RuntimeError, match="argument 1: the buffer belongs to a context that is gone"):
        total(buffer)


def test_the_group_size_is_that_of_the_last_call() -> None:
    reduction = plain(SubgroupAdd, vd.float32)
    assert reduction.group_size is None
    reduction(vd.asbuffer(np.ones(100, np.float32)))
    chosen = reduction.group_size
    assert chosen is not None
    reduction.make_stages()
    assert reduction.group_size == chosen


# ---- wrong calls -------------------------------------------------------------------------------


@pytest.mark.parametrize("axes", [[2], [-3], [0, 0], [0, -2]], ids=str)
def test_axes_out_of_range_are_refused(axes: list[int]) -> None:
    with pytest.raises(ValueError, match="axes"):
        plain(SubgroupAdd, vd.float32, axes)(vd.Buffer((3, 4), vd.float32))


@pytest.mark.parametrize(("axes", "error"), [([], ValueError), ("0", TypeError), ([0.5], TypeError)])
def test_values_that_are_not_axes(axes: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="axes"):
        plain(SubgroupAdd, vd.float32, axes)


def test_wrong_arguments() -> None:
    buffer = vd.Buffer(10, vd.float32)
    with pytest.raises(ValueError, match=r"scaled: takes 2 arguments \(x, factor\)"):
        scaled(buffer)
    with pytest.raises(TypeError, match="takes 2 arguments"):
        scaled(buffer, 1.0, 2.0)
    with pytest.raises(ValueError, match=r"expected a vd\.Buffer"):
        scaled([1.0, 2.0, 3.0], 1.0)
    with pytest.raises(ValueError, match="graph"):
        scaled(buffer, 1.0, graph=3)
    with pytest.raises(ValueError, match="argument 1: expected elements of float32, the buffer has float16"):
        total(vd.Buffer(10, vd.float16))


def test_wrong_workgroups() -> None:
    subgroup = vd.get_context().device_infos[0].sub_group_size
    for size in (subgroup + 1, 1 << 20):
        with pytest.raises(ValueError, match="group_size: expected a multiple of the subgroup size"):
            plain(SubgroupAdd, vd.float32, None, size)(vd.Buffer(3, vd.float32))
    with pytest.raises(ValueError, match="group_size"):
        plain(SubgroupAdd, vd.float32, None, 0)


@pytest.mark.parametrize(
    ("operation", "kind", "text"),
    [
        (SubgroupMax, vd.complex64, "has no order"),
        (SubgroupMax, vd.mat2, "has no order"),
        (SubgroupMul, vd.mat2, "order"),
        (vd.reduce.SubgroupXor, vd.float32, "expected integers"),
        (vd.reduce.SubgroupAnd, vd.complex64, "expected integers"),
        (SubgroupAdd, vd.bool_, "uint32"),
        (ReduceOp("half", lambda a, b: a, 0.5), vd.int32, "pass an integer"),
        (ReduceOp("text", lambda a, b: a, "zero"), vd.int32, "'inf'"),
        (ReduceOp("imaginary", lambda a, b: a, 1j), vd.float32, "is not a float32"),
    ],
)
def test_undefined_operations_are_refused(operation: ReduceOp, kind: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        plain(operation, kind)


def test_wrong_definitions() -> None:
    with pytest.raises(ValueError, match="return annotation"):

        @vd.reduce.reduce(0)
        def nothing(a: f32, b: f32):  # noqa: F405
            return a + b

    with pytest.raises(ValueError, match="return annotation"):

        @vd.reduce.map_reduce(SubgroupAdd)
        def unmapped(a: Buff[f32]):  # noqa: F405
            return a[mapped_io_index()]

    with pytest.raises(ValueError, match="combines float64"):

        @vd.reduce.reduce(0, mapping_function=vd.map(lambda x: x[0], vd.float32, [Buff[f32]]))  # noqa: F405
        def other(a: f64, b: f64) -> f64:  # noqa: F405
            return a + b

    with pytest.raises(ValueError, match="first argument must be a buffer"):

        @vd.reduce.map_reduce(SubgroupAdd)
        def constant(a: Const[f32]) -> f32:  # noqa: F405
            return a

    with pytest.raises(TypeError, match="parentheses"):
        vd.reduce.reduce(lambda a, b: a + b)
    with pytest.raises(TypeError, match="ReduceOp"):
        vd.reduce.map_reduce(0)


def test_wrong_results_of_a_map() -> None:
    @vd.reduce.map_reduce(SubgroupAdd)
    def float_of_int(x: Buff[i32]) -> f32:  # noqa: F405
        return x[mapped_io_index()]

    @vd.reduce.map_reduce(SubgroupAdd)
    def nothing(x: Buff[i32]) -> f32:  # noqa: F405
        x[mapped_io_index()]

    with pytest.raises(ValueError, match="int32"):
        float_of_int(vd.Buffer(3, vd.int32))
    with pytest.raises(ValueError, match="must return a float32"):
        nothing(vd.Buffer(3, vd.int32))


def test_no_reduction_inside_a_kernel() -> None:
    buffer = vd.Buffer(3, vd.float32)
    with pytest.raises(RuntimeError, match="a kernel cannot call a reduction"):

        @vd.shader("x.size")
        def kernel(x: Buff[f32]):  # noqa: F405
            total(buffer)


# ---- what it tells -----------------------------------------------------------------------------


def test_attributes() -> None:
    @vd.reduce.map_reduce(SubgroupAdd, axes=[1], group_size=64)
    def squares(x: Buff[f32]) -> f64:  # noqa: F405
        return x[mapped_io_index()].to_dtype(vd.float64) ** 2

    assert isinstance(squares, ReduceFunction)
    assert squares.reduction is SubgroupAdd
    assert squares.out_type is vd.float64
    assert (squares.axes, squares.group_size) == ([1], 64)
    assert squares.input_types == [Buff[f32]]  # noqa: F405
    assert isinstance(squares.map_func, vd.MappingFunction)
    assert (squares.stage1, squares.stage2) == (None, None)
    squares.make_stages()
    assert isinstance(squares.stage1, vd.ShaderFunction)
    assert squares.stage1 is not squares.stage2


def test_sources(capsys: pytest.CaptureFixture[str]) -> None:
    sources = scaled.get_src()
    assert [source.name for source in sources] == ["scaled_rows", "add_rows_of_partials"]
    assert all(source.code.startswith("#version") for source in sources)
    assert "factor" in sources[0].code
    scaled.print_src(line_numbers=True)
    assert "   1: #version" in capsys.readouterr().out
    assert repr(scaled) == "\n".join(map(repr, sources))


def test_single_stage() -> None:
    for second in (False, True):
        stage = vd.reduce.make_reduction_stage(SubgroupAdd, vd.float32, None, second)
        assert isinstance(stage, vd.ShaderFunction)
    assert len(ReductionParams().as_arguments()) == 8


def test_kernels_are_shared_by_shapes() -> None:
    reduction = plain(SubgroupAdd, vd.float32)
    before = kernels.make_stage_kernel.cache_info().misses  # type: ignore[attr-defined]
    for size in range(5000, 5100):
        assert answer(reduction(vd.asbuffer(np.ones(size, np.float32)))) == size
    assert kernels.make_stage_kernel.cache_info().misses <= before + 2  # type: ignore[attr-defined]


def test_steps_that_need_more_than_32_bits_are_refused() -> None:
    reduction = plain(SubgroupAdd, vd.float32, [0])
    x = reduction._parse_operand((vd.Buffer((1, 1), vd.float32),))
    planner = reduction._make_planner(x.source, x.context)
    plan = planner.plan(Shape("columns", 1 << 36, 4, 1 << 36))
    with pytest.raises(ValueError, match="axes"):
        plan.first.params.as_arguments()
