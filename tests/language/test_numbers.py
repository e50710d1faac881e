"""Python numbers beside GPU values: one rule for types, whichever comes first and whatever the sign."""

from __future__ import annotations

import itertools
import math
import operator
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.base import dtype as dt
from vkdispatch.base.dtype import DType
from vkdispatch.codegen.abbreviations import (
    Buff,
    Const,
    f16,
    f32,
    f64,
    i16,
    i32,
    i64,
    iv2,
    u8,
    u16,
    u32,
    u64,
    uv2,
    v2,
)

from .running import (
    FLOATS,
    INTEGERS,
    bits,
    buffer_of,
    evaluate,
    filled,
    host,
    integers,
    need,
    result_types,
    same,
    wrapped,
)

Rule = Callable[[Any, Any], Any]

ALWAYS_OR_NEVER = "ignore:.*this is (always|never) true"
COMPARISONS: dict[str, Rule] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
LINEAR: dict[str, Rule] = {"+": operator.add, "-": operator.sub}
BITWISE: dict[str, Rule] = {"&": operator.and_, "|": operator.or_, "^": operator.xor}
# GPU functions, and what they mean.
OTHERS: dict[str, tuple[Rule, Rule]] = {
    "*": (operator.mul, operator.mul),
    "min": (vc.min, min),
    "max": (vc.max, max),
    "clip": (lambda x, y: vc.clip(x, y, y), lambda x, y: y),
    "select": (lambda x, y: vc.select(x < y, x, y), lambda x, y: x if x < y else y),
}


def edges(kind: DType) -> list[int]:
    """Ints at the edges of an integer type, and beyond."""
    top = 1 << (bits(kind) - 1)
    return [0, 1, 5, top - 1, top, 2 * top - 1, 2 * top, -1, -top, -top - 1, -2 * top, 1 << 70]


def values(kind: DType) -> Any:
    """Values of an integer type, its edges among them."""
    return integers(kind, 12, 3)


def limits(kind: DType) -> tuple[int, int]:
    info = np.iinfo(host(kind))
    return int(info.min), int(info.max)


def fits(number: int, kind: DType) -> bool:
    low, high = limits(kind)
    return low <= number <= high


def is_taken(symbol: str, number: int, kind: DType, *, first: bool) -> bool:
    """Whether the rule lets a number meet a GPU value; `first` where it is the left side."""
    if fits(number, kind):
        return True
    signed = dt.is_signed_dtype(kind)
    if symbol in LINEAR and not signed and not (symbol == "-" and first):
        return -limits(kind)[1] <= number < 0
    if symbol in BITWISE:
        return 0 <= number < 1 << bits(kind) if signed else symbol == "&"
    return False


def on_both(rule: Callable[..., Any], *inputs: tuple[DType, Any]) -> list[Any]:
    """Results on the device, which are the interpreter's."""
    found = evaluate(rule, *inputs)
    for device, interpreted in zip(found, evaluate(rule, *inputs, interpret=True), strict=True):
        same(device, interpreted)
    return found


@pytest.mark.filterwarnings(ALWAYS_OR_NEVER)
@pytest.mark.parametrize("kind", INTEGERS, ids=lambda kind: kind.name)
def test_python_ints_take_the_type_of_integer_operands(kind: DType) -> None:
    need(kind)
    cases: list[tuple[str, Rule, Rule, int, bool]] = []
    rules = {name: (rule, rule) for name, rule in {**LINEAR, **BITWISE}.items()} | OTHERS
    for (name, (rule, exact)), number in itertools.product(rules.items(), edges(kind)):
        for first in (False, True):
            if is_taken(name, number, kind, first=first):
                cases.append((name, rule, exact, number, first))
                continue

            def misuse(x: Any, rule: Rule = rule, number: int = number, first: bool = first) -> None:
                rule(number, x) if first else rule(x, number)

            with pytest.raises(ValueError, match=f"{number} does not fit in {kind.name} ") as raised:
                vd.shader(1, arg_type_annotations=[Const[kind]])(misuse)
            assert "test_numbers.py:" in str(raised.value)

    def forms(x: Any) -> list[Any]:
        return [rule(n, x) if first else rule(x, n) for _, rule, _, n, first in cases]

    assert set(result_types(forms, [kind])) == {kind}
    x = values(kind)
    for (name, _, exact, number, first), found in zip(cases, on_both(forms, (kind, x)), strict=True):
        expected = [exact(number, int(a)) if first else exact(int(a), number) for a in x]
        same(found, wrapped(expected, kind), f"{name} {number} {first}")


@pytest.mark.parametrize("kind", INTEGERS, ids=lambda kind: kind.name)
def test_in_place_operators_follow_the_rule(kind: DType) -> None:
    need(kind)
    taken = [number for number in edges(kind) if is_taken("+", number, kind, first=False)]

    def forms(x: Any) -> list[Any]:
        results = []
        for number in taken:
            r, s = x.to_register(), x.to_register()
            r += number
            s -= number
            results += [r, s]
        return results

    x = values(kind)
    found = on_both(forms, (kind, x))
    for number, more, less in zip(taken, found[::2], found[1::2], strict=True):
        same(more, wrapped([int(a) + number for a in x], kind))
        same(less, wrapped([int(a) - number for a in x], kind))


@pytest.mark.filterwarnings(ALWAYS_OR_NEVER)
@pytest.mark.parametrize("kind", INTEGERS, ids=lambda kind: kind.name)
def test_comparisons_of_integers_are_exact(kind: DType) -> None:
    need(kind)
    numbers: list[Any] = [*edges(kind), 4.5, -0.5, 5.0, 1e30, -1e30, math.inf, -math.inf, math.nan]
    top = 1 << (bits(kind) - 1)
    numbers += [float(top), float(-top), float(2 * top), top - 0.5 if bits(kind) < 64 else 0.25]
    cases = list(itertools.product(COMPARISONS.values(), numbers))

    def forms(x: Any) -> list[Any]:
        return [form.to_dtype(i32) for rule, n in cases for form in (rule(x, n), rule(n, x))]

    x = np.concatenate([values(kind), np.array([5, 4], host(kind))])
    found = on_both(forms, (kind, x))
    for (rule, number), after, before in zip(cases, found[::2], found[1::2], strict=True):
        same(after, [rule(int(a), number) for a in x], f"{rule.__name__} {number}")
        same(before, [rule(number, int(a)) for a in x], f"{number} {rule.__name__}")


@pytest.mark.parametrize("kind", [f16, *FLOATS], ids=lambda kind: kind.name)
def test_comparisons_of_floats_with_ints_are_exact(kind: DType) -> None:
    need(kind)
    digits = np.finfo(host(kind)).nmant + 1
    odd, large = (1 << digits) + 1, 10**400
    numbers = [0, 3, -7, odd, -odd, odd + 1, 10**30, -(10**30), 10**39, large, -large]
    if kind is not f64:
        numbers += [70000, -70000] if kind is f16 else [1 << 128, -(1 << 128)]
    cases = list(itertools.product(COMPARISONS.values(), numbers))

    def forms(x: Any) -> list[Any]:
        return [form.to_dtype(i32) for rule, n in cases for form in (rule(x, n), rule(n, x))]

    top = float(np.finfo(host(kind)).max)
    x = np.array([0, 3, -7, odd - 1, odd + 1, -odd - 1, top, -top, math.inf, -math.inf, math.nan], host(kind))
    found = on_both(forms, (kind, x))
    for (rule, number), after, before in zip(cases, found[::2], found[1::2], strict=True):
        same(after, [rule(float(a), number) for a in x], f"{rule.__name__} {number}")
        same(before, [rule(number, float(a)) for a in x], f"{number} {rule.__name__}")


def test_comparisons_of_floats_with_floats_round_the_number() -> None:
    x = np.array([0.1, 3.4e38, math.inf, -math.inf], np.float32)
    equal, below, most, above = on_both(
        lambda v: [
            (v == 0.1).to_dtype(i32),
            (v < 1e39).to_dtype(i32),
            (v <= 1e39).to_dtype(i32),
            (v > -1e300) * 1,
        ],
        (f32, x),
    )
    same(equal, x == np.float32(0.1))
    same(below, x < math.inf)
    same(most, x < math.inf)
    same(above, x > -math.inf)


@pytest.mark.parametrize(("a", "b"), list(itertools.permutations(INTEGERS, 2)), ids=lambda kind: kind.name)
def test_comparisons_of_two_integer_types_are_exact(a: DType, b: DType) -> None:
    need(a, b)
    pairs = [(int(p), int(q)) for p, q in itertools.product([*values(a), 5], [*values(b), 5])]
    x, y = (
        np.array(column, host(kind)) for column, kind in zip(zip(*pairs, strict=True), (a, b), strict=True)
    )
    found = on_both(lambda p, q: [rule(p, q).to_dtype(i32) for rule in COMPARISONS.values()], (a, x), (b, y))
    for (name, rule), actual in zip(COMPARISONS.items(), found, strict=True):
        same(actual, [rule(p, q) for p, q in pairs], name)


def test_equality_of_vectors_is_exact() -> None:
    x, y = np.array([[-1, 2], [3, 4], [3, 5]]), np.array([[2**32 - 1, 2], [3, 4], [3, 4]])
    equal, different, number = on_both(
        lambda p, q: [(p == q).to_dtype(i32), (q != p).to_dtype(i32), (p == 2**32 - 1).to_dtype(i32)],
        (iv2, x),
        (uv2, y),
    )
    same(equal, [0, 1, 0])
    same(different, [1, 0, 1])
    same(number, [0, 0, 0])


@pytest.mark.parametrize(
    ("kind", "number"),
    [(f16, 65520), (f16, -1e6), (f32, 1e39), (f32, 1 << 128), (f64, 10**400), (f32, -(10**400))],
)
def test_numbers_too_large_for_a_float(kind: DType, number: float) -> None:
    with vc.shader_context() as context:
        x, out = context.declare_input_arguments([Const[kind], Buff[kind]])
        for misuse in (lambda: x + number, lambda: number * x, lambda: x / number, lambda: vc.max(number, x)):
            with pytest.raises(ValueError, match=f"does not fit in {kind.name}"):
                misuse()
        with pytest.raises(ValueError, match=f"does not fit in {kind.name}"):
            out[0] = number
        assert [(x + n).var_type for n in (math.inf, math.nan, 65504, 0.1)] == [kind] * 4


def test_true_division_converts_both_sides_at_once() -> None:
    u, i = np.array([3_000_000_000, 7], np.uint32), np.array([-2, 4], np.int32)
    mixed, other, number, large, back = on_both(
        lambda a, b: [a / b, b / a, a / -2, b / 3_000_000_000, 3_000_000_000 / b], (u32, u), (i32, i)
    )
    same(mixed, u.astype(np.float32) / i.astype(np.float32))
    same(other, i.astype(np.float32) / u.astype(np.float32))
    same(number, u.astype(np.float32) / np.float32(-2))
    same(large, i.astype(np.float32) / np.float32(3e9))
    same(back, np.float32(3e9) / i.astype(np.float32))
    with vc.shader_context() as context:
        (x,) = context.declare_input_arguments([Const[u16]])
        # it would be infinite
        with pytest.raises(ValueError, match=r"/: 65535 does not fit in float16, .*to_dtype\(vd.float32\)"):
            x / 65535


def types_of(rules: list[Callable[..., Any]], *kinds: DType) -> list[DType]:
    """Types that rules give in a kernel whose Python is rewritten."""
    found: list[DType] = []

    def kernel(*values: Any) -> None:
        found.extend([rule(*values).var_type for rule in rules])

    vd.shader(1, arg_type_annotations=[Const[kind] for kind in kinds])(kernel)
    return found


def test_a_float_makes_floats_of_integers() -> None:
    rules: list[Callable[[Any], Any]] = [
        lambda x: x + 1.5,
        lambda x: 1.5 - x,
        lambda x: vc.clip(x, -1, 2.5),
        lambda x: vc.clip(0.5, -1, x),
        lambda x: max(1.5, 2, x),
        lambda x: max(x, 2, 1.5),
        lambda x: min(2, x, 1.5),
        lambda x: vc.select(x == 3, x, 0.5),
    ]
    for kind in INTEGERS:
        assert types_of(rules, kind) == [f32] * len(rules)


@pytest.mark.parametrize("kind", INTEGERS, ids=lambda kind: kind.name)
def test_shifts_by_the_width_or_more_are_refused(kind: DType) -> None:
    width = bits(kind)
    with vc.shader_context() as context:
        (x,) = context.declare_input_arguments([Const[kind]])
        assert (x << width - 1).var_type is (x >> 0).var_type is kind
        for count, rule in itertools.product((width, -1), (operator.lshift, operator.rshift)):
            with pytest.raises(
                ValueError, match=f"{kind.name} is shifted by 0 to {width - 1} bits, got {count}"
            ):
                rule(x, count)


# ---- stores and conversions ----------------------------------------------------------------------


@pytest.mark.parametrize("kind", [dt.int8, dt.uint8, *INTEGERS], ids=lambda kind: kind.name)
def test_stores_accept_numbers_that_fit(kind: DType) -> None:
    need(kind)
    taken = [number for number in edges(kind) if fits(number, kind)]

    @vd.shader(1)
    def store(out: Buff[kind]) -> None:  # type: ignore[valid-type]
        for position, number in enumerate(taken):
            out[position] = number

    out = filled(len(taken), kind)
    store(out)
    array = np.zeros(len(taken), host(kind))
    store.interpret(array)
    same(out.read(0), taken)
    same(array, taken)
    for number in set(edges(kind)) - set(taken):
        with vc.shader_context() as context:
            (place,) = context.declare_input_arguments([Buff[kind]])
            with pytest.raises(ValueError, match=f"{number} in {kind.name}: it does not fit"):
                place[0] = number


@pytest.mark.parametrize("kind", INTEGERS, ids=lambda kind: kind.name)
def test_conversions_keep_bits(kind: DType) -> None:
    need(kind)
    width = bits(kind)
    taken = [number for number in edges(kind) if -(1 << (width - 1)) <= number < 1 << width]
    found = on_both(
        lambda x: [form for n in taken for form in (vc.to_dtype(kind, n), vc.new_register(kind, n))] + [x],
        (kind, np.zeros(1)),
    )
    for number, converted, register in zip(taken, found[::2], found[1::2], strict=False):
        same(converted, wrapped([number], kind))
        same(register, wrapped([number], kind))
    with vc.shader_context():
        for number in set(edges(kind)) - set(taken):
            with pytest.raises(ValueError, match=f"{number} does not fit in {kind.name}"):
                vc.to_dtype(kind, number)


def test_conditional_of_two_numbers_has_a_type_for_both() -> None:
    need(i64)
    large, small, wide = on_both(
        lambda x: [
            vc.select(x > 0, 3_000_000_000, 1),
            vc.select(x > 0, 1, -1),
            vc.select(x > 0, 3_000_000_000, -1),
        ],
        (i32, np.array([1, -1])),
    )
    assert (large.dtype, small.dtype, wide.dtype) == (np.uint32, np.int32, np.int64)
    same(large, [3_000_000_000, 1])
    same(small, [1, -1])
    same(wide, [3_000_000_000, -1])


def test_atomics_follow_the_operators() -> None:
    @vd.shader(1)
    def kernel(u: Buff[u32], i: Buff[i32]) -> None:
        vc.atomic_add(u[0], -3)
        vc.atomic_sub(u[1], -3)
        vc.atomic_and(u[2], ~7)
        vc.atomic_and(i[0], 0xFFFF0000)
        vc.atomic_xor(i[1], 0xFFFFFFFF)

    start = np.array([5, 0xFFFFFFFF, 0x80000017], np.uint32)
    u, i = buffer_of(u32, start), buffer_of(i32, [-1, 5])
    kernel(u, i)
    same(u.read(0), [2, 2, 0x80000010])
    same(i.read(0), [-65536, ~5])
    with vc.shader_context() as context:
        u, i = context.declare_input_arguments([Buff[u32], Buff[i32]])
        for misuse in (
            lambda: vc.atomic_max(u[0], -1),
            lambda: vc.atomic_or(u[0], -1),
            lambda: vc.atomic_exchange(i[0], 1 << 31),
            lambda: vc.atomic_add(i[0], 1 << 31),
            lambda: vc.atomic_compare_exchange(u[0], 0, -1),
        ):
            with pytest.raises(ValueError, match="does not fit in"):
                misuse()


# ---- functions of numbers, and Python's functions ------------------------------------------------


def test_functions_of_ints_alone_give_ints() -> None:
    for found, expected in (
        (vc.max(1, 2), 2),
        (vc.min(np.int64(1), 2), 1),
        (vc.abs(-(1 << 70)), 1 << 70),
        (vc.clip(300, 0, 255), 255),
        (vc.clamp(-3, 0, 255), 0),
        (vc.dot(3, 4), 12),
        (vc.floor_divide(-7, 2), -4),
        (vc.floor_mod(-7, 2), 1),
    ):
        assert found == expected and type(found) is int
    for found in (
        vc.max(1, 2.0),
        vc.abs(-2.5),
        vc.clip(1, 0, 2.0),
        vc.mix(0, 4, 1),
        vc.sign(-3),
        vc.floor(2),
    ):
        assert type(found) is float


def test_python_functions_of_integers_stay_exact() -> None:
    @vd.shader(1)
    def kernel(out: Buff[i32], x: Buff[i32]) -> None:
        out[0] = int(max(1, 2, x[0]))
        out[1] = max(x[0], 1, 2) // 2
        out[2] = min(1 << 30, (1 << 30) - 1, x[0]) & 0xFFFF
        out[3] = round(x[0])
        out[4] = math.floor(x[0]) + math.ceil(x[0]) - math.trunc(x[0])
        quotient, remainder = divmod(x[0], 1000)
        out[5], out[6] = quotient, remainder
        out[7] = sum([x[0], 1, 2])
        out[8] = sum([1, 2, x[0]], -5)
        out[9] = abs(-x[0])
        out[10] = bool(x[0]) + 1
        out[11] = max([3, x[0]])

    value = (1 << 24) + 1
    expected = [
        *(value, value // 2, value & 0xFFFF, value, value, value // 1000, value % 1000),
        *(value + 3, value - 2, value, 2, value),
    ]
    out, x = filled(12, i32), buffer_of(i32, [value])
    kernel(out, x)
    same(out.read(0), expected)
    array = np.zeros(12, np.int32)
    kernel.interpret(array, np.array([value], np.int32))
    same(array, expected)


def test_min_and_max_have_one_type_in_every_order() -> None:
    for numbers in ((1, 2), (1, 2.5), (70000, 1), (2.5, 1.5, 2)):
        orders = list(itertools.permutations(["a", "b", *numbers]))
        rules = [
            lambda a, b, order=order, rule=rule: rule(*({"a": a, "b": b}.get(part, part) for part in order))
            for order in orders
            for rule in (_largest, _smallest)
        ]
        floats = any(isinstance(number, float) for number in numbers)
        assert set(types_of(rules, u16, i32)) == {f32 if floats else i32}


def _largest(*values: Any) -> Any:
    return max(*values)


def _smallest(*values: Any) -> Any:
    return min(values)


# ---- variables of plain control flow -------------------------------------------------------------


def test_joined_numbers_keep_their_values() -> None:
    need(i64, i16)

    @vd.shader("x.size")
    def kernel(wide: Buff[i64], out: Buff[i32], x: Buff[i16]) -> None:
        i = vc.global_invocation_id().x
        a, b, c = 3_000_000_000, True, 100_000
        if x[i] > 0:
            a = -1
            b = 5
            c = x[i]
        wide[i] = a
        out[2 * i] = b
        out[2 * i + 1] = c

    x = np.array([1, -1], np.int16)
    wide, out = filled(2, i64), filled(4, i32)
    kernel(wide, out, buffer_of(i16, x))
    same(wide.read(0), [-1, 3_000_000_000])
    same(out.read(0), [5, 1, 1, 100_000])


@pytest.mark.parametrize(
    ("kind", "number"), [(u32, -1), (i32, 1 << 31), (u64, -1), (i64, 1 << 63), (u32, -(1 << 31))]
)
def test_joined_numbers_without_a_common_type(kind: DType, number: int) -> None:
    with pytest.raises(NameError, match=f"{kind.name} and the number {number}, which does not fit in it"):

        @vd.shader("x.size")
        def kernel(x: Buff[kind]) -> None:  # type: ignore[valid-type]
            i = vc.global_invocation_id().x
            value = x[i]
            if i == 0:
                value = number
            x[i] = value


# ---- warnings ------------------------------------------------------------------------------------


def warned(body: Callable[..., Any], *annotations: Any) -> list[str]:
    """Messages of warnings while a kernel is traced, each with the source line that it names."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        vd.shader(1, arg_type_annotations=list(annotations))(body)
    assert all(entry.category is vd.KernelWarning for entry in caught)
    return [str(entry.message) for entry in caught]


DOUBTFUL: list[tuple[str, str, Callable[[Any, Any], Any]]] = [
    ("abs(i - 4)", "abs of uint32", lambda i, x: abs(i - 4)),
    ("vc.abs(i - x[0])", "abs of uint32", lambda i, x: vc.abs(i - x[0])),
    ("abs(2 * (i + -1))", "abs of uint32", lambda i, x: abs(2 * (i + -1))),
    ("vc.sign(i - 1)", "sign of uint32", lambda i, x: vc.sign(i - 1)),
    ("vc.max(i - 1, 0)", "max with 0", lambda i, x: vc.max(i - 1, 0)),
    ("max(0, i - 1)", "max with 0", lambda i, x: max(0, i - 1)),
    ("vc.clip(i - 1, 0, 7)", "clip with 0", lambda i, x: vc.clip(i - 1, 0, 7)),
    ("i - 1 < 0", "< 0: this is never true", lambda i, x: i - 1 < 0),
    ("i - 1 >= 0", ">= 0: this is always true", lambda i, x: i - 1 >= 0),
    ("0 <= i - 1", ">= 0: this is always true", lambda i, x: 0 <= i - 1),  # noqa: SIM300
    ("x[0] == -1", "== -1: this is never true", lambda i, x: x[0] == -1),
    ("x[0] != 1 << 32", "this is always true", lambda i, x: x[0] != 1 << 32),
    ("x[0] < 0", "< 0: this is never true", lambda i, x: x[0] < 0),
    ("x[0] <= 2**32 - 1", "this is always true", lambda i, x: x[0] <= 2**32 - 1),
    ("x[0] == 0.5", "this is never true", lambda i, x: x[0] == 0.5),
    ("(i - 4) * 0.5", "* converts uint32 to float32", lambda i, x: (i - 4) * 0.5),
    ("1.5 + (i % 8 - 4)", "+ converts uint32 to float32", lambda i, x: 1.5 + (i % 8 - 4)),
    ("(i - 4) / 4", "/ converts uint32 to float32", lambda i, x: (i - 4) / 4),
    ("float(i - 4)", "float converts uint32 to float32", lambda i, x: float(i - 4)),
    ("(i - 4).to_dtype(f32)", "converts uint32 to float32", lambda i, x: (i - 4).to_dtype(f32)),
    ("vc.to_vec2(i - 4, 0)", "converts uint32 to float32", lambda i, x: vc.to_vec2(i - 4, 0)),
    ("vc.sin(i - 4)", "sin converts uint32 to float32", lambda i, x: vc.sin(i - 4)),
    ("(i - 4) // 2", "// of uint32", lambda i, x: (i - 4) // 2),
    ("(2 * i - 7) / 8", "/ converts uint32 to float32", lambda i, x: (2 * i - 7) / 8),
    ("(i * 2 - 8 + 1) / 8", "/ converts uint32 to float32", lambda i, x: (i * 2 - 8 + 1) / 8),
    ("0.5 * -i", "* converts uint32 to float32", lambda i, x: 0.5 * -i),
    ("vc.exp(1 - i)", "exp converts uint32 to float32", lambda i, x: vc.exp(1 - i)),
    (
        "(vc.to_uvec2(i, i % 4) - 2).to_dtype(v2)",
        "converts uvec2 to float32",
        lambda i, x: (vc.to_uvec2(i, i % 4) - 2).to_dtype(v2),
    ),
    ("(i - 4) * 3 / 2", "/ converts uint32 to float32", lambda i, x: (i - 4) * 3 / 2),
    ("-i / 2", "/ converts uint32 to float32: the negative of", lambda i, x: -i / 2),
    ("vc.exp(-i * i)", "the negative of an unsigned integer", lambda i, x: vc.exp(-i * i)),
    ("x[-i]", "x[x.size - i] does", lambda i, x: x[-i]),
    ("(x[i] - 128) * 0.5", "* converts uint32 to float32", lambda i, x: (x[i] - 128) * 0.5),
]


@pytest.mark.parametrize("case", range(len(DOUBTFUL)), ids=[text for text, _, _ in DOUBTFUL])
def test_pointless_operations_warn_at_their_line(case: int) -> None:
    text, message, rule = DOUBTFUL[case]

    def body(x: Any) -> None:
        rule(vc.global_invocation_id().x, x)

    (found,) = warned(body, Buff[u32])
    assert message in found and "test_numbers.py:" in found and text in found
    assert ("to_dtype(vd.int32)" in found) == ("i" in text)


def test_remainder_of_a_wrapped_id_warns() -> None:
    def body(x: Any) -> None:
        i = vc.global_invocation_id().x
        x[(i - 1) % 10] = 0
        x[(i + -1) % x.size] = 0
        x[(i - 1) % 16] = 0  # wraps around to the same number
        x[(i + 9) % 10] = 0

    found = warned(body, Buff[u32])
    assert len(found) == 2 and all("% of uint32" in each and "(i + n - 1) % n" in each for each in found)


def test_remainder_of_a_negative_number_warns() -> None:
    def body(x: Any, radius: Any) -> None:
        i = vc.global_invocation_id().x.to_dtype(i32)
        n = x.size
        x[(i - 1) % n] = 0
        x[(i - radius) % 8] = 0
        for d in range(-radius, radius):
            x[(i + d) % n] = 0
            x[(i + d + n) % n] = 0
        x[(i + n - 1) % n] = x[vc.floor_mod(i - 1, n)]
        if i > 0:
            x[(i - 1) % n] = 0

    found = warned(body, Buff[i32], Const[i32])
    assert len(found) == 3 and all("% of int32" in each and "vc.floor_mod" in each for each in found)

    def as_python(x: Buff[i32]) -> None:
        x[(vc.global_invocation_id().x.to_dtype(i32) - 1) % x.size] = 0

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        vd.shader("x.size", flags=vc.ShaderFlags.PYTHON_DIVISION)(as_python)


def test_differences_of_pixels_warn() -> None:
    def body(out: Any, x: Any, y: Any, offsets: Any) -> None:
        i = vc.global_invocation_id().x
        pixel = x[i]
        out[i] = (pixel - y[i]) * 0.5
        out[i] = (offsets[i + 1] - offsets[i]) * 0.5  # never negative where offsets ascend
        out[i] = (-i).to_dtype(i32) * 0.5 + (i & -i) * 0.5

    (found,) = warned(body, Buff[f32], Buff[u8], Buff[u8], Buff[u32])
    assert "(pixel - y[i]) * 0.5" in found


def test_wrapped_ids_do_not_warn_where_they_may_be_right() -> None:
    def body(out: Any, n: Any) -> None:
        i = vc.global_invocation_id().x
        d = i - 4
        out[0] = vc.sqrt(d * d) + (i - 4 + 8) / 2 + (63 - i) * 0.5 + (i - i % 8) / 8 + (i + 1 - 1) * 0.5
        out[1] = (i.to_dtype(i32) - 4) * 0.5 + (i - n) / 2 + (i - out.size // 2) / 2
        out[5] = (2 * i + 4 - 3) * 0.5 + (7 - i % 8) / 2 + (vc.workgroup_size().x - 1) / 2
        if i >= 4:
            out[2] = (i - 4) * 0.5
        out[3] = (i - 4) * 0.25 if i >= 4 else 0.0
        if i < 3:
            return
        out[4] = (i - 3) * 0.5

    assert warned(body, Buff[f32], Const[i32]) == []


def test_ranges_that_start_below_zero_warn() -> None:
    def body(out: Any) -> None:
        i = vc.global_invocation_id().x
        for j in range(i - 2, i + 3):
            out[j] = 1
        for j in range(i, i + 3):
            out[j] = 1
        for j in range(i.to_dtype(i32) - 2, i.to_dtype(i32) + 3):
            out[j] = 1

    (found,) = warned(body, Buff[f32])
    assert "range: it has no rounds" in found and "for j in range(i - 2, i + 3)" in found


def test_differences_after_a_test_do_not_warn() -> None:
    def weigh(i: Any) -> Any:
        if i < 10:
            return 0.0
        return (i - 10) * 0.5

    def body(out: Any) -> None:
        i = vc.global_invocation_id().x
        out[i] = weigh(i) + (1 - i % 2) * 2.0 + (1 - (i & 1)) * 0.5
        j = vc.global_invocation_id().x
        while j > 0:
            out[0] += out[j - 1]
            j = (j - 1) // 2
        j = vc.global_invocation_id().x
        while True:
            if j == 0:
                break
            j = (j - 1) // 2
        j = vc.global_invocation_id().x
        while j > 0:
            j -= 1
            out[0] += j * 0.5

    assert warned(body, Buff[f32]) == []


def test_pointless_comparisons_warn_through_registers() -> None:
    def body(out: Any) -> None:
        i = vc.global_invocation_id().x
        d = i - 4
        if i > 2:
            d = d + 1
        if d < 0:
            out[0] = 1
        j = out[1].to_register()
        j -= 3
        out[2] = abs(j)

    found = warned(body, Buff[u32])
    assert len(found) == 2
    assert "< 0: this is never true" in found[0] and "wraps around" in found[0]
    assert "abs of uint32" in found[1]


def test_correct_operations_do_not_warn() -> None:
    def body(out: Any, x: Any, n: Any) -> None:
        i = vc.global_invocation_id().x
        if 0 <= i < n and 2 * i + 1 >= 0:
            out[0] = abs(x[0]) + vc.max(x[0], 0) + vc.clip(i, 0, 7)
        for k in range(i):
            if k >= 0 and k in range(5):
                out[k] = vc.max(i - 1, 3)
        if x[i] > 0 and x[i] < 2**32 - 1 and n >= 0 and n < 1 << 30:
            out[1] = min(x[i] - 1, 5) & -8

    assert warned(body, Buff[u32], Buff[u32], Const[i32]) == []


def test_library_kernels_do_not_warn() -> None:
    rng = np.random.default_rng(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", vd.KernelWarning)
        for kind in (np.uint32, np.int32, np.float32):
            x = vd.asbuffer(rng.integers(0, 100, 3000).astype(kind))
            for function in (
                vd.sum,
                vd.max,
                vd.argmax,
                vd.cumsum,
                vd.sort,
                vd.argsort,
                vd.unique,
                vd.nonzero,
            ):
                function(x)
            vd.pad(x, 3, "reflect")
            vd.roll(x, 5)
        vd.fft.fft(vd.asbuffer(rng.normal(size=(4, 60)).astype(np.complex64)))


# ---- halves --------------------------------------------------------------------------------------


def test_floor_division_of_halves_is_numpys() -> None:
    need(f16)
    drawn = np.random.default_rng(1).integers(0, 1 << 16, (2, 30000)).astype(np.uint16).view(np.float16)
    a, b = (
        np.concatenate([np.array(first, np.float16), row])
        for first, row in zip(
            ([2047, -2047, 5, -5, 0, 65504], [2.5, 2.5, math.inf, -0.1, 3, 6e-8]), drawn, strict=True
        )
    )
    fine = np.isfinite(a) & ~np.isnan(b) & (b != 0)
    a, b = a[fine], b[fine]
    found = on_both(
        lambda x, y: [
            vc.floor_divide(x, y),
            vc.floor_mod(x, y),
            vc.floor_divide(x, 2.5),
            vc.floor_mod(x, 0.1),
        ],
        (f16, a),
        (f16, b),
    )
    with np.errstate(all="ignore"):
        for actual, expected in zip(
            found, (a // b, a % b, a // np.float16(2.5), a % np.float16(0.1)), strict=True
        ):
            same(actual, expected)


def test_floor_division_of_vectors_of_halves() -> None:
    need(f16)
    a, b = np.array([[2047, -7], [9, 1]], np.float16), np.array([[2.5, 2], [-4, 3]], np.float16)
    quotient, remainder, number = on_both(
        lambda x, y: [vc.floor_divide(x, y), vc.floor_mod(x, y), vc.floor_mod(x, 2.5)],
        (dt.hvec2, a),
        (dt.hvec2, b),
    )
    same(quotient, a // b)
    same(remainder, a % b)
    same(number, a % np.float16(2.5))
