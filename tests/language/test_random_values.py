"""Random expressions over all types, computed by a device, by the interpreter and by plain Python.

More of them: VKDISPATCH_RANDOM_KERNELS=1000 pytest tests/language/test_random_values.py
"""

from __future__ import annotations

import os
from random import Random
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.base import dtype as dt
from vkdispatch.base.dtype import DType
from vkdispatch.codegen.abbreviations import Buff, f32, f64, i32, i64, u32, u64

from .random_values import FLOATS, INTEGERS, Grower, Node, compute, trace
from .running import filled, host, integers, on_nvidia, supports

ROWS = 16
TREES = 12
KERNELS = int(os.environ.get("VKDISPATCH_RANDOM_KERNELS", "40"))
FIRST = int(os.environ.get("VKDISPATCH_RANDOM_SEED", "0"))
# One result buffer for each family of types that goes into it unchanged.
CARRIERS: list[DType] = [i32, u32, f32, i64, u64, f64]


def carrier(kind: DType) -> DType:
    """Type of the buffer that takes the components of a value unchanged."""
    scalar = dt.component_type(kind)
    return {dt.bool_: i32, dt.int16: i32, dt.uint16: u32, dt.float16: f32}.get(scalar, scalar)


def available() -> list[DType]:
    return [kind for kind in (*INTEGERS, *FLOATS) if supports(kind)]


def variables_of(kinds: list[DType]) -> list[Node]:
    """Two variables of every scalar type."""
    return [
        Node("variable", kind, value=f"{kind.name}_{n}", bound=8, fraction=2)
        for kind in kinds
        for n in range(2)
    ]


def columns(variables: list[Node]) -> dict[str, list[Any]]:
    """Values of each variable: all the edges, and small numbers where most is decided."""
    found: dict[str, list[Any]] = {}
    generator = np.random.default_rng(3)
    for seed, node in enumerate(variables):
        if dt.is_float_dtype(node.kind):
            values = generator.integers(-32, 33, ROWS) / 4
        else:
            values = integers(node.kind, ROWS, seed)
            values[::3] = generator.integers(0, 20, ROWS)[::3]
            values = generator.permutation(values)
        found[node.value] = values.tolist()
    return found


def scalar_parts(value: Any, kind: DType) -> list[Any]:
    return [value[n] for n in range(kind.child_count)] if dt.is_vector(kind) else [value]


@pytest.mark.parametrize("start", range(FIRST, FIRST + KERNELS, 10))
def test_device_interpreter_and_python_agree(start: int) -> None:
    for seed in range(start, min(start + 10, FIRST + KERNELS)):
        check(seed)


def check(seed: int) -> None:
    kinds = available()
    random = Random(seed)
    variables = variables_of(kinds)
    grower = Grower(random, variables, kinds, nvidia=on_nvidia())
    targets = [*kinds, dt.bool_, *(vector for kind in kinds for vector in grower.vectors(kind))]
    forest = [grower.node(random.choice(targets), 4) for _ in range(TREES)]
    found = difference(forest, variables)
    if found is None:
        return
    # say it for the smallest part that differs by itself
    parts: dict[int, Node] = {}
    for node in forest:
        collect(node, parts)
    for part in parts.values():
        alone = difference([part], variables) if part.op not in ("variable", "literal") else None
        if alone is not None:
            raise AssertionError(f"seed {seed}: {alone}")
    raise AssertionError(f"seed {seed}, of all expressions together only: {found}")


def collect(node: Node, parts: dict[int, Node]) -> None:
    """Gather a node and its operands, operands first."""
    if id(node) not in parts:
        for arg in node.args:
            collect(arg, parts)
        parts[id(node)] = node


def inputs_of(variables: list[Node], values: dict[str, list[Any]], kind: DType) -> Any:
    """The columns of all variables that one buffer carries, one after another."""
    own = [
        np.array(values[n.value], host(n.kind)).astype(host(kind))
        for n in variables
        if carrier(n.kind) is kind
    ]
    return np.concatenate(own)


def difference(forest: list[Node], variables: list[Node]) -> str | None:
    """Compute trees in the three ways; what differs, or None."""
    values = columns(variables)
    carriers = [kind for kind in CARRIERS if supports(kind)]
    owners: dict[DType, list[Node]] = {kind: [] for kind in carriers}
    for node in forest:
        owners[carrier(node.kind)] += [node] * len(scalar_parts([0] * 4, node.kind))

    @vd.shader(
        exec_size=ROWS,
        local_size=8,
        arg_type_annotations=[Buff[kind] for kind in (*carriers, *carriers)],
        rewrite=False,  # there is no control flow, and tracing takes a tenth of the time
    )
    def body(*buffers: Any) -> None:
        row = vc.global_invocation_id().x
        sources = dict(zip(carriers, buffers[: len(carriers)], strict=True))
        results = dict(zip(carriers, buffers[len(carriers) :], strict=True))
        places = dict.fromkeys(carriers, 0)
        environment = {}
        for node in variables:
            kind = carrier(node.kind)
            value = sources[kind][row + ROWS * places[kind]]
            environment[node.value] = value.to_dtype(node.kind).to_register(node.value)
            places[kind] += 1
        places = dict.fromkeys(carriers, 0)
        known: dict[int, Any] = {}
        for node in forest:
            kind = carrier(node.kind)
            for part in scalar_parts(trace(node, environment, known), node.kind):
                results[kind][row + ROWS * places[kind]] = part.to_dtype(kind)
                places[kind] += 1

    inputs = {kind: inputs_of(variables, values, kind) for kind in carriers}
    outputs = [filled(max(1, len(owners[kind])) * ROWS, kind) for kind in carriers]
    body(*(vd.asbuffer(inputs[kind]) for kind in carriers), *outputs)
    interpreted = [np.zeros(max(1, len(owners[kind])) * ROWS, host(kind)) for kind in carriers]
    body.interpret(*inputs.values(), *interpreted, races=True)
    expected: dict[DType, list[list[Any]]] = {kind: [[] for _ in owners[kind]] for kind in carriers}
    for row in range(ROWS):
        environment = {name: column[row] for name, column in values.items()}
        places, known = dict.fromkeys(carriers, 0), {}
        for node in forest:
            for part in scalar_parts(compute(node, environment, known), node.kind):
                expected[carrier(node.kind)][places[carrier(node.kind)]].append(part)
                places[carrier(node.kind)] += 1
    for kind, output, array in zip(carriers, outputs, interpreted, strict=True):
        for way, given in (("the interpreter", array), ("the device", output.read(0))):
            rows = given.reshape(-1, ROWS)
            for actual, wanted, node in zip(rows, expected[kind], owners[kind], strict=False):
                if not np.array_equal(actual, np.array(wanted, host(kind))):
                    return f"{way} differs from Python: {node}\n{actual}\n{wanted}\n{body.get_src()}"
    return None
