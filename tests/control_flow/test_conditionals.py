"""Conditional expressions of large operands: values that are used again and again are computed once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import Buff, i32

COUNT = 200
DATA = (np.arange(COUNT) * 7 % 23).astype(np.int32) - 4


def tangled(a: Any, p: Any, q: Any) -> Any:
    """Each division by Python's rules uses its operands several times."""
    q = ((-q) - ((2 + p) % 997)) % 7
    p = ((p + q) % 997) // 4
    return ((~((-6 & p) % 513)) % 100) % 1009 + a


def chosen(p: Any, i: Any) -> Any:
    return 3 if p[i] == 1 else tangled(1, p[i], i)


def chosen_twice(p: Any, i: Any) -> Any:
    return (p[i] if p[i] > 9 else 5) if i % 2 == 0 else (tangled(1, p[i], i) if p[i] < 5 else 7)


def joined(p: Any, i: Any) -> Any:
    return (p[i] > 2 and tangled(0, p[i], i) < 50) or tangled(3, p[i], 5) == 60


def operand(p: Any, i: Any) -> Any:
    return p[tangled(0, p[i], i) % 8 if p[i] > 3 else i] + i


def compared(p: Any, i: Any) -> Any:
    result = 4
    if p[i] == 1:
        result = 1
    elif tangled(1, p[i], i) > 30 and p[i] < 9:
        result = 2
    elif tangled(2, p[i], i) > 20:
        result = 3
    return result


def repeated(p: Any, i: Any) -> Any:
    n = rounds = 0
    while rounds < 20 and tangled(n, p[i], i) < 90:
        n += tangled(1, p[i], n)
        rounds += 1
    return n


def repeated_by_itself(p: Any, i: Any) -> Any:
    n = p[i] + 10
    while tangled(n, n, i) < 90:
        n += 9
    return n


FUNCTIONS = [chosen, chosen_twice, joined, operand, compared, repeated, repeated_by_itself]


def shader_of(function: Any) -> Any:
    def kernel(out: Any, p: Any) -> None:
        i = vc.global_invocation_id().x.to_dtype(i32)
        out[i] = function(p, i)

    flags = vc.ShaderFlags.PYTHON_DIVISION
    return vd.shader(exec_size=COUNT, flags=flags, arg_type_annotations=[Buff[i32]] * 2)(kernel)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_conditional_expressions_give_pythons_values(function: Any) -> None:
    expected = [int(function(DATA.tolist(), i)) for i in range(COUNT)]
    out = vd.Buffer(COUNT, vd.int32)
    run = shader_of(function)
    run(out, vd.asbuffer(DATA))
    assert out.read(0).tolist() == expected
    # written out, it would be megabytes
    assert len(str(run)) < 10_000


def test_interpreter_gives_the_same_values() -> None:
    for function in FUNCTIONS:
        expected = [int(function(DATA.tolist(), i)) for i in range(COUNT)]
        out = np.zeros(COUNT, np.int32)
        shader_of(function).interpret(out, DATA.copy())
        assert out.tolist() == expected, function.__name__


def test_select() -> None:
    @vd.shader("out.size", flags=vc.ShaderFlags.PYTHON_DIVISION)
    def kernel(out: Buff[i32], p: Buff[i32]) -> None:
        i = vc.global_invocation_id().x.to_dtype(i32)
        out[i] = vc.select(p[i] > 4, tangled(1, p[i], i), vc.select(p[i] > 0, tangled(2, p[i], i), 5))

    out = vd.Buffer(COUNT, vd.int32)
    kernel(out, vd.asbuffer(DATA))
    values = DATA.tolist()
    expected = [
        tangled(1, value, i) if value > 4 else tangled(2, value, i) if value > 0 else 5
        for i, value in enumerate(values)
    ]
    assert out.read(0).tolist() == expected
    assert len(str(kernel)) < 10_000


def test_only_the_chosen_operand_is_evaluated() -> None:
    """A large operand behind `and` may read beyond the end of a buffer where it is not evaluated."""

    @vd.shader("out.size", flags=vc.ShaderFlags.PYTHON_DIVISION, check=True)
    def kernel(out: Buff[i32], p: Buff[i32]) -> None:
        i = vc.global_invocation_id().x.to_dtype(i32)
        out[i] = tangled(1, p[i + 5], i) if i + 5 < COUNT else -1

    out = vd.Buffer(COUNT, vd.int32)
    kernel(out, vd.asbuffer(DATA))
    values = DATA.tolist()
    expected = [tangled(1, values[i + 5], i) if i + 5 < COUNT else -1 for i in range(COUNT)]
    assert out.read(0).tolist() == expected


def test_small_conditionals_become_selects() -> None:
    @vd.shader("out.size")
    def kernel(out: Buff[i32], p: Buff[i32]) -> None:
        i = vc.global_invocation_id().x.to_dtype(i32)
        out[i] = 3 if p[i] == 1 else (p[i] + 2) * (p[i] - 2) // 3

    text = str(kernel)
    assert "?" in text
    assert "else" not in text


def test_long_chain_of_choices() -> None:
    def kernel(out: Any, p: Any) -> None:
        i = vc.global_invocation_id().x.to_dtype(i32)
        value = p[i]
        for step in range(40):
            value = value * 3 % 1009 if value % 5 == step % 5 else value + value % 7
        out[i] = value

    def expected(value: int) -> int:
        for step in range(40):
            value = value * 3 % 1009 if value % 5 == step % 5 else value + value % 7
        return value

    run = vd.shader(exec_size=COUNT, arg_type_annotations=[Buff[i32]] * 2)(kernel)
    out = vd.Buffer(COUNT, vd.int32)
    data = np.abs(DATA)
    run(out, vd.asbuffer(data))
    assert out.read(0).tolist() == [expected(value) for value in data.tolist()]
    assert len(str(run)) < 20_000
