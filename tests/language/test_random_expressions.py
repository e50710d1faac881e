"""Random expressions, evaluated by kernels and by NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.base.dtype import DType
from vkdispatch.codegen.abbreviations import Buff, f32, i32, u32

from .running import buffer_of, filled, host, integers, same
from .trees import BOOL, Grower, Node, compute, trace

ROWS = 96
KINDS: list[DType] = [i32, u32, f32, BOOL]
VARIABLES = [
    *(Node("variable", i32, name=f"i{n}") for n in range(2)),
    *(Node("variable", u32, name=f"u{n}") for n in range(2)),
    *(Node("variable", f32, name=f"f{n}", bound=8, fraction=2) for n in range(2)),
]


def columns() -> dict[str, Any]:
    """One value of every variable for each row: all the edges, and small numbers where most is decided."""
    generator = np.random.default_rng(5)
    values: dict[str, Any] = {}
    for seed, node in enumerate(VARIABLES):
        if node.kind is f32:
            values[node.name] = (generator.integers(-32, 33, ROWS) / 4).astype(np.float32)
        else:
            values[node.name] = integers(node.kind, ROWS, seed)
            values[node.name][::3] = generator.integers(0, 20, ROWS)[::3]
            values[node.name] = generator.permutation(values[node.name])
    return values


@st.composite
def forests(draw: Callable[[Any], Any]) -> list[Node]:
    """A tree of each type; they may share parts."""
    grower = Grower(draw, VARIABLES)
    return [grower.node(kind, 5) for kind in KINDS]


@settings(max_examples=80, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(forests())
def test_kernels_agree_with_numpy(forest: list[Node]) -> None:
    @vd.shader(
        exec_size=ROWS,
        local_size=32,
        arg_type_annotations=[Buff[kind] for kind in (i32, u32, f32, i32, u32, f32)],
        rewrite=False,  # there is no control flow, and tracing takes a tenth of the time
    )
    def body(*buffers: Any) -> None:
        i = vc.global_invocation_id().x
        source = dict(zip((i32, u32, f32), buffers[:3], strict=True))
        variables = {
            node.name: source[node.kind][i + ROWS * (place % 2)].to_register(node.name)
            for place, node in enumerate(VARIABLES)
        }
        known: dict[int, Any] = {}
        values = [trace(node, variables, known) for node in forest]
        buffers[3][i] = values[0]
        buffers[4][i] = values[1]
        buffers[5][i] = values[2]
        buffers[3][i + ROWS] = values[3]

    host_values = columns()
    inputs = [
        buffer_of(kind, np.concatenate([host_values[n.name] for n in VARIABLES if n.kind is kind]))
        for kind in (i32, u32, f32)
    ]
    outputs = [filled(2 * ROWS, i32), filled(ROWS, u32), filled(ROWS, f32)]
    body(*inputs, *outputs)
    whole, unsigned, real = (out.read(0) for out in outputs)
    known: dict[int, Any] = {}
    with np.errstate(all="ignore"):
        expected = [np.broadcast_to(compute(node, host_values, known), ROWS) for node in forest]
    for node, actual, values in zip(
        forest, (whole[:ROWS], unsigned, real, whole[ROWS:]), expected, strict=True
    ):
        same(actual, values.astype(host(i32)) if node.kind is BOOL else values, repr(node))
