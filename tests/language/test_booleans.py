"""Booleans in kernels: what operators make of them, wherever they come from."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
import vkdispatch.numpy as vnp
from vkdispatch.codegen.abbreviations import Buff, Const, Var, b8, f32, i32

X = np.array([1, -1, 0, 2, np.nan], np.float32)
HELD = X > 0

# ---- where booleans come from: each function makes x[t] > 0 ----------------------------------------


def expression(x: Any, t: Any) -> Any:
    return x[t] > 0


def register(x: Any, t: Any) -> Any:
    return (x[t] > 0).to_register()


def named_register(x: Any, t: Any) -> Any:
    flag = vc.new_register(b8)
    flag[:] = x[t] > 0
    return flag


def precise(x: Any, t: Any) -> Any:
    return vc.precise(x[t] > 0)


def local_array(x: Any, t: Any) -> Any:
    flags = vc.local_array(b8, 3)
    flags[t % 3] = x[t] > 0
    return flags[t % 3]


def shared_memory(x: Any, t: Any) -> Any:
    flags = vc.shared_buffer(b8, 256)
    flags[t] = x[t] > 0
    vc.barrier()
    return flags[t]


def selected(x: Any, t: Any) -> Any:
    return vc.select(x[t] > -0.5, x[t] > 0, x[t] > 5)


def selected_number(x: Any, t: Any) -> Any:
    return vc.select(x[t] > 0, True, x[t] > 5)


def smaller(x: Any, t: Any) -> Any:
    return vc.min(x[t] > 0, x[t] > -5)


def larger(x: Any, t: Any) -> Any:
    return vc.max(x[t] > 0, x[t] > 5)


def magnitude(x: Any, t: Any) -> Any:
    return abs(x[t] > 0)


def converted(x: Any, t: Any) -> Any:
    return vc.to_dtype(b8, vc.select(x[t] > 0, x[t], 0))


def joined(x: Any, t: Any) -> Any:
    return ((x[t] > 0) & (x[t] > -1) | (x[t] > 5)) ^ (x[t] > 6)


def with_python(x: Any, t: Any) -> Any:
    return ((x[t] > 0) & True | False) ^ np.False_


def shuffled(x: Any, t: Any) -> Any:
    return vc.subgroup_shuffle_xor(x[t] > 0, 0)


def _is_positive(value: Any) -> Any:
    if value > 0:
        return True
    return value > 5


def returned(x: Any, t: Any) -> Any:
    return _is_positive(x[t])


def assigned(x: Any, t: Any) -> Any:
    found = False
    for i in range(2):
        if x[t] > i:
            found = True
    return found


def conditional(x: Any, t: Any) -> Any:
    return True if x[t] > 0 else x[t] > 5


def logical(x: Any, t: Any) -> Any:
    return not (not x[t] > 0 or x[t] > 5)


def updated(x: Any, t: Any) -> Any:
    flag = (x[t] > -5).to_register()
    flag &= x[t] > 0
    flag |= x[t] > 5
    return flag


FORMS = [
    *(expression, register, named_register, precise, local_array, shared_memory, selected, selected_number),
    *(smaller, larger, magnitude, converted, joined, with_python, shuffled, returned, assigned, conditional),
    *(logical, updated),
]


def _run(kernel: Any, interpreted: bool, *args: Any, kind: Any = vd.float32) -> "np.ndarray[Any, Any]":
    out = vd.Buffer(X.size, kind)
    (kernel.interpret if interpreted else kernel)(out, vd.asbuffer(X), *args)
    result: np.ndarray[Any, Any] = out.read(0)
    return result


@pytest.mark.parametrize("interpreted", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_not_of_a_boolean_is_logical(form: Callable[..., Any], interpreted: bool) -> None:
    @vd.shader("out.size")
    def invert(out: Buff[b8], x: Buff[f32], chosen: Buff[i32], twice: Buff[f32]) -> None:
        t = vc.global_invocation_id().x.to_dtype(i32)
        flag = form(x, t)
        assert flag.var_type is b8
        out[t] = ~flag
        with vc.if_block(~flag):
            chosen[t] = 1
        with vc.else_block():
            chosen[t] = 2
        twice[t] = (~~flag).to_dtype(f32)

    chosen, twice = vd.Buffer(X.size, vd.int32), vd.Buffer(X.size, vd.float32)
    found = _run(invert, interpreted, chosen, twice, kind=vd.bool_)
    np.testing.assert_array_equal(found, ~HELD)
    np.testing.assert_array_equal(chosen.read(0), np.where(~HELD, 1, 2))
    np.testing.assert_array_equal(twice.read(0), HELD)


@dataclass
class Options:
    flag: vd.bool_
    scale: vd.float32


@pytest.mark.parametrize("interpreted", [False, True])
@pytest.mark.parametrize("value", [False, True])
def test_not_of_arguments_and_elements(value: bool, interpreted: bool) -> None:
    @vd.shader("out.size")
    def count(
        out: Buff[f32], x: Buff[f32], a: Const[b8], b: Var[b8], options: Options, flags: Buff[b8]
    ) -> None:
        t = vc.global_invocation_id().x
        out[t] = 0
        for place, flag in enumerate((a, b, options.flag, flags[t], a.to_register(), flags[t].to_register())):
            with vc.if_block(~flag):
                out[t] += 1 << place

    flags = vd.asbuffer(np.full(X.size, value))
    found = _run(count, interpreted, value, value, Options(value, 1.0), flags)  # type: ignore[arg-type]
    np.testing.assert_array_equal(found, np.full(X.size, 0 if value else 63))


# Python's own results, for which NumPy's booleans become integers
NUMBERS: dict[str, Callable[[Any], Any]] = {
    "-c": lambda c: -c,
    "+c": lambda c: +c,
    "c + c": lambda c: c + c,
    "c - 1": lambda c: c - 1,
    "c * 3": lambda c: c * 3,
    "c / 2": lambda c: c / 2,
    "c // 1": lambda c: c // 1,
    "c % 2": lambda c: c % 2,
    "c ** 2": lambda c: c**2,
    "c << 2": lambda c: c << 2,
    "6 >> c": lambda c: 6 >> c,
    "c & 3": lambda c: c & 3,
    "2 | c": lambda c: 2 | c,
    "c ^ 3": lambda c: c ^ 3,
    "c ^ c": lambda c: c ^ c,
    "c == 1": lambda c: c == 1,
    "c != True": lambda c: c != True,  # noqa: E712
    "True & c": lambda c: True & c,
    "c < 1": lambda c: c < 1,
    "c == 2": lambda c: c == 2,
}


@pytest.mark.parametrize("python", [False, True])
@pytest.mark.parametrize("form", [expression, register, local_array, selected_number])
def test_numbers_of_booleans(form: Callable[..., Any], python: bool) -> None:
    @vd.shader("x.size", flags=vc.ShaderFlags.PYTHON_DIVISION if python else vc.ShaderFlags.NONE)
    def compute(out: Buff[f32], x: Buff[f32]) -> None:
        t = vc.global_invocation_id().x.to_dtype(i32)
        for place, function in enumerate(NUMBERS.values()):
            out[t * len(NUMBERS) + place] = function(form(x, t)).to_dtype(f32)

    wanted = [[float(function(flag)) for function in NUMBERS.values()] for flag in HELD.tolist()]
    for interpreted in (False, True):
        out = vd.Buffer((X.size, len(NUMBERS)), vd.float32)
        (compute.interpret if interpreted else compute)(out, vd.asbuffer(X))
        np.testing.assert_array_equal(out.read(0), np.array(wanted, np.float32))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda flag: flag.__iadd__(1),
            r"\+=: the result is int32 and does not go into bool; to count, start",
        ),
        (
            lambda flag: flag.__setitem__(slice(None), vc.to_dtype(i32, 2)),
            r"cannot store int32 in bool; .*bool_\)",
        ),
        (lambda flag: flag & -2, "&: a bool and -2, which is ~True in Python; use `not`"),
        (lambda flag: -1 | flag, r"\|: a bool and -1, which is ~False in Python; use `not`"),
        (lambda flag: flag ^ -5, r"\^: a bool and -5; convert the bool with \.to_dtype\(vd\.int32\)"),
    ],
)
def test_numbers_that_do_not_go_with_booleans(change: Callable[[Any], Any], message: str) -> None:
    def update(out: Buff[i32], x: Buff[f32]) -> None:
        change((x[0] > 0).to_register())

    with pytest.raises((TypeError, ValueError), match=message):
        vd.shader("out.size")(update)


@pytest.mark.parametrize("interpreted", [False, True])
def test_not_of_booleans_that_python_knows(interpreted: bool) -> None:
    @vd.shader("out.size")
    def count(out: Buff[f32], x: Buff[f32], most: Const[i32]) -> None:
        t = vc.global_invocation_id().x.to_dtype(i32)
        known, done = 0, False
        for i in range(4):
            if ~(i > 1) and ~done:
                known += 1
        counted = 0
        for i in range(most):
            if ~(i > 1):
                counted += 1
        out[t] = (10 * known + counted + vc.select((x[t] > 0) & ~done, 100, 0)).to_dtype(f32)

    found = _run(count, interpreted, 4)
    np.testing.assert_array_equal(found, 22 + 100 * HELD)


def test_not_in_maps_and_vectorized_functions() -> None:
    @vd.map
    def outside(value: f32) -> f32:
        found = (value > 0).to_register()
        return vc.select(~found, 1.0, 0.0)

    assert float(vd.sum(outside(vd.asbuffer(X))).item()) == np.sum(~HELD)

    def invert(value: Any) -> Any:
        found = (value > 0).to_register() if hasattr(value, "to_register") else np.bool_(value > 0)
        return ~found

    found = vnp.vectorize(invert)(vnp.asarray(X)).numpy()
    assert found.dtype == np.bool_
    np.testing.assert_array_equal(found, ~HELD)
    np.testing.assert_array_equal((~(vnp.asarray(X) > 0)).numpy(), ~HELD)
