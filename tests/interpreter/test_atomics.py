"""Atomics and subgroup operations of the interpreter, against loops in plain Python."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.base import dtype as dt
from vkdispatch.base.dtype import DType, bool_
from vkdispatch.codegen.abbreviations import Buff, f32, f64, i32, u32, u64, uv4, v2
from vkdispatch.codegen.trace.current import current
from vkdispatch.codegen.variables import ShaderVariable
from vkdispatch.compiler.ir import Expr, Op
from vkdispatch.compiler.ir import expressions as ex

ROWS = 300
_RULES: dict[str, Callable[[Any, Any], Any]] = {
    "atomicAdd": operator.add,
    "atomicMin": min,
    "atomicMax": max,
    "atomicAnd": operator.and_,
    "atomicOr": operator.or_,
    "atomicXor": operator.xor,
    "atomicExchange": lambda before, value: value,
}


def atomic(function: str, place: Any, *operands: Any) -> ShaderVariable:
    expr = Expr(Op.ATOMIC, place.var_type, (place.expr, *(operand.expr for operand in operands)), function)
    return ShaderVariable(current().declare(place.var_type, expr))


@pytest.mark.parametrize("places", [1, 7, 250])
@pytest.mark.parametrize("kind", [i32, u32, u64, f32, f64], ids=lambda kind: kind.name)
@pytest.mark.parametrize("function", [*_RULES, "atomicCompSwap"])
def test_atomics_return_the_previous_value(function: str, kind: DType, places: int) -> None:
    if dt.is_float_dtype(kind) and function in ("atomicAnd", "atomicOr", "atomicXor"):
        return

    @vd.shader(exec_size=ROWS, local_size=64)
    def body(cells: Buff[kind], values: Buff[kind], out: Buff[kind]) -> None:
        i = vc.global_invocation_id().x
        place = cells[i % places]
        if function == "atomicCompSwap":
            out[i] = atomic(function, place, values[(i + 1) % ROWS], values[i])
        else:
            with vc.if_block(i % 5 != 0):
                out[i] = atomic(function, place, values[i])

    host = np.dtype(dt.to_numpy_dtype(kind))
    generator = np.random.default_rng(places)
    values = generator.integers(0, 4 if function == "atomicCompSwap" else 1 << 30, ROWS).astype(host)
    if dt.is_float_dtype(kind):
        values = (values / host.type(3)).astype(host)
    cells = generator.integers(0, 4, places).astype(host)
    expected_cells, found = cells.copy(), np.zeros(ROWS, host)
    with np.errstate(over="ignore"):
        for i in range(ROWS):
            place = i % places
            if function == "atomicCompSwap":
                found[i] = expected_cells[place]
                if found[i] == values[(i + 1) % ROWS]:
                    expected_cells[place] = values[i]
            elif i % 5:
                found[i] = expected_cells[place]
                expected_cells[place] = _RULES[function](expected_cells[place], values[i])
    out = np.zeros(ROWS, host)
    body.interpret(cells, values, out, races=True)
    np.testing.assert_array_equal(out, found)
    np.testing.assert_array_equal(cells, expected_cells)


def test_atomics_on_shared_memory_and_components() -> None:
    @vd.shader(exec_size=256, local_size=64)
    def body(out: Buff[uv4]) -> None:
        total = vc.shared_buffer(u32, 2)
        lane = vc.local_invocation_index()
        with vc.if_block(lane < 2):
            total[lane] = 0
        vc.barrier()
        atomic("atomicAdd", total[lane % 2], lane)
        vc.barrier()
        with vc.if_block(lane == 0):
            atomic("atomicAdd", out[0].y, total[0])
            atomic("atomicMax", out[0].w, total[1])

    out = np.zeros((1, 4), np.uint32)
    body.interpret(out)
    assert out.tolist() == [[0, 4 * sum(range(0, 64, 2)), 0, sum(range(1, 64, 2))]]


def test_out_of_range_atomic_raises() -> None:
    @vd.shader(exec_size=4)
    def body(out: Buff[i32]) -> None:
        atomic("atomicAdd", out[vc.global_invocation_id().x], ShaderVariable(ex.literal(1, i32)))

    out = np.zeros(3, np.int32)
    with pytest.raises(IndexError, match=r"index 3 .*'out'"):
        body.interpret(out)
    out[:] = 0
    body.interpret(out, check=False)
    assert out.tolist() == [1, 1, 1]


# ---- subgroups -----------------------------------------------------------------------------------

LOCAL = 100


def run(
    function: str, kind: DType, result: DType, values: Any, size: int, *more: Any, every: int = 0
) -> np.ndarray[Any, Any]:
    """Call a subgroup function in workgroups of 100, of which each third row is left out if `every` is 3."""
    stored = i32 if result is bool_ else result

    @vd.shader(exec_size=2 * LOCAL, local_size=LOCAL)
    def body(values: Buff[i32 if kind is bool_ else kind], out: Buff[stored]) -> None:
        i = vc.global_invocation_id().x
        value = values[i].expr
        value = ex.condition(value) if kind is bool_ else value
        others = [each(i).expr if callable(each) else ex.literal(each, u32) for each in more]
        args = () if function == "subgroupElect" else (value, *others)

        def write() -> None:
            found = ShaderVariable(ex.subgroup(function, result, *args))
            out[i] = found.to_dtype(stored) if result is bool_ else found

        if every:
            with vc.if_block(i % every != 0):
                write()
        else:
            write()

    host = np.dtype(dt.to_numpy_dtype(dt.component_type(stored)))
    out = np.full((2 * LOCAL, *stored.true_numpy_shape), 77, host)
    body.interpret(values, out, subgroup_size=size)
    return out


def groups_of(size: int, every: int) -> list[list[int]]:
    """Rows of the active invocations of each subgroup."""
    found = []
    for start in (0, LOCAL):
        for first in range(start, start + LOCAL, size):
            rows = range(first, min(first + size, start + LOCAL))
            found.append([row for row in rows if not every or row % every])
    return [rows for rows in found if rows]


_REDUCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "Add": lambda a, b: (a + b) % 2**32,
    "Mul": lambda a, b: (a * b) % 2**32,
    "Min": min,
    "Max": max,
    "And": operator.and_,
    "Or": operator.or_,
    "Xor": operator.xor,
}
_START = {"Add": 0, "Mul": 1, "Min": 2**32 - 1, "Max": 0, "And": 2**32 - 1, "Or": 0, "Xor": 0}


@pytest.mark.parametrize("every", [0, 3])
@pytest.mark.parametrize("size", [1, 8, 32, 64, 128])
@pytest.mark.parametrize("name", list(_REDUCTIONS))
def test_reductions_and_scans(name: str, size: int, every: int) -> None:
    values = np.random.default_rng(4).integers(0, 2**32, 2 * LOCAL, dtype=np.uint32)
    whole = run(f"subgroup{name}", u32, u32, values, size, every=every)
    inclusive = run(f"subgroupInclusive{name}", u32, u32, values, size, every=every)
    exclusive = run(f"subgroupExclusive{name}", u32, u32, values, size, every=every)
    clustered = run(f"subgroupClustered{name}", u32, u32, values, size, min(4, size), every=every)
    for rows in groups_of(size, every):
        total = _START[name]
        first = rows[0] // LOCAL * LOCAL
        for row in rows:
            assert exclusive[row] == total
            total = _REDUCTIONS[name](total, int(values[row]))
            assert inclusive[row] == total
            near = _START[name]
            for other in rows:
                if (other - first) // min(4, size) == (row - first) // min(4, size):
                    near = _REDUCTIONS[name](near, int(values[other]))
            assert clustered[row] == near
        assert all(whole[row] == total for row in rows)


@pytest.mark.parametrize("size", [4, 32])
def test_reductions_of_floats_and_vectors(size: int) -> None:
    values = (np.arange(4 * LOCAL).reshape(-1, 2) / 4 - 20).astype(np.float32)
    total = run("subgroupAdd", v2, v2, values, size)
    low = run("subgroupExclusiveMin", v2, v2, values, size)
    for rows in groups_of(size, 0):
        np.testing.assert_array_equal(total[rows], np.broadcast_to(values[rows].sum(axis=0), (len(rows), 2)))
        assert np.isposinf(low[rows[0]]).all()
        if len(rows) > 2:
            np.testing.assert_array_equal(low[rows[2]], values[rows[:2]].min(axis=0))


@pytest.mark.parametrize("every", [0, 3])
@pytest.mark.parametrize("size", [4, 32, 128])
def test_votes_broadcasts_and_shuffles(size: int, every: int) -> None:
    values = np.random.default_rng(5).integers(0, 3, 2 * LOCAL, dtype=np.uint32)
    truths = np.random.default_rng(6).integers(0, 8, 2 * LOCAL).astype(np.int32)

    def lane(row: int) -> int:
        return row % LOCAL % size

    call = {
        name: run(f"subgroup{name}", u32, u32, values, size, *more, every=every)
        for name, more in {
            "BroadcastFirst": (),
            "ShuffleXor": (1,),
            "ShuffleUp": (2,),
            "ShuffleDown": (2,),
            "Shuffle": (lambda i: (i * 5) % size,),
            "Broadcast": (1,),
            "QuadBroadcast": (2,),
            "QuadSwapHorizontal": (),
            "QuadSwapVertical": (),
            "QuadSwapDiagonal": (),
        }.items()
    }
    votes = {
        name: run(f"subgroup{name}", bool_, bool_, truths, size, every=every)
        for name in ("All", "Any", "Elect")
    }
    equal = run("subgroupAllEqual", u32, bool_, values, size, every=every)
    for rows in groups_of(size, every):
        by_lane = {lane(row): int(values[row]) for row in rows}
        for row in rows:
            own = lane(row)
            sources = {
                "BroadcastFirst": lane(rows[0]),
                "ShuffleXor": own ^ 1,
                "ShuffleUp": own - 2,
                "ShuffleDown": own + 2,
                "Shuffle": row * 5 % size,
                "Broadcast": 1,
                "QuadBroadcast": own // 4 * 4 + 2,
                "QuadSwapHorizontal": own ^ 1,
                "QuadSwapVertical": own ^ 2,
                "QuadSwapDiagonal": own ^ 3,
            }
            for name, source in sources.items():
                # of a lane that is not active anything may come
                if source in by_lane:
                    assert call[name][row] == by_lane[source], name
            assert votes["All"][row] == all(truths[other] != 0 for other in rows)
            assert votes["Any"][row] == any(truths[other] != 0 for other in rows)
            assert votes["Elect"][row] == (row == rows[0])
            assert equal[row] == (len(set(by_lane.values())) == 1)


@pytest.mark.parametrize("every", [0, 3])
@pytest.mark.parametrize("size", [8, 32, 128])
def test_ballots(size: int, every: int) -> None:
    truths = np.random.default_rng(7).integers(0, 2, 2 * LOCAL).astype(np.int32)
    ballot = run("subgroupBallot", bool_, uv4, truths, size, every=every)
    numbers = {
        name: run(f"subgroupBallot{name}", uv4, u32, ballot, size, every=every)
        for name in ("BitCount", "InclusiveBitCount", "ExclusiveBitCount", "FindLSB", "FindMSB")
    }
    inverse = run("subgroupInverseBallot", uv4, bool_, ballot, size, every=every)
    third = run("subgroupBallotBitExtract", uv4, bool_, ballot, size, 3, every=every)
    for rows in groups_of(size, every):
        ones = [row % LOCAL % size for row in rows if truths[row]]
        whole = sum(1 << lane for lane in ones)
        for row in rows:
            own = row % LOCAL % size
            assert sum(int(word) << 32 * n for n, word in enumerate(ballot[row])) == whole
            assert numbers["BitCount"][row] == len(ones)
            assert numbers["InclusiveBitCount"][row] == sum(lane <= own for lane in ones)
            assert numbers["ExclusiveBitCount"][row] == sum(lane < own for lane in ones)
            if ones:
                assert numbers["FindLSB"][row] == ones[0]
                assert numbers["FindMSB"][row] == ones[-1]
            assert inverse[row] == truths[row]
            assert third[row] == (3 in ones)
