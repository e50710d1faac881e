"""Types that lie in buffers only (int8, uint8, bool, bfloat16): what kernels see, and what is stored."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.base.memory.data import from_bfloat16, to_bfloat16
from vkdispatch.codegen.abbreviations import Buff, Const, Var, b8, bf16, f32, i8, i32, u8

SIZES = [1, 7, 64, 257, 1031]


def bfloat16_of(values: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
    """Round float32 to bfloat16 by exact arithmetic, without a look at the bits of the result."""
    wide = values.astype(np.float64)
    _, exponent = np.frexp(wide)
    unit = np.exp2(np.maximum(exponent, -125).astype(np.float64) - 8)
    rounded = np.rint(wide / unit) * unit
    limit = np.float64(np.finfo(np.float32).max)
    with np.errstate(over="ignore", invalid="ignore"):
        return np.where(np.abs(rounded) > limit, np.sign(rounded) * np.inf, rounded).astype(np.float32)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("kind", "host", "seen"), [(i8, np.int8, np.int32), (u8, np.uint8, np.uint32), (b8, np.bool_, np.bool_)]
)
def test_small_types_are_loaded_and_stored(kind: Any, host: Any, seen: Any, size: int) -> None:
    values = np.random.default_rng(size).integers(0, 256, size).astype(np.uint8).view(np.int8).astype(host)

    @vd.shader(
        "wide.size", arg_type_annotations=[Buff[kind], Buff[kind], Buff[i32]], arg_names=["a", "b", "wide"]
    )
    def copy(a: Any, b: Any, wide: Any) -> None:
        t = vc.global_invocation_id().x
        b[t] = a[t]
        wide[t] = a[t].to_dtype(vd.int32)

    a = vd.asbuffer(values)
    assert a.var_type is kind and a.mem_size == size
    b, wide = vd.Buffer(size, kind), vd.Buffer(size, vd.int32)
    copy(a, b, wide)
    result = b.read(0)
    assert result.dtype == host
    np.testing.assert_array_equal(result, values)
    np.testing.assert_array_equal(wide.read(0), values.astype(seen).astype(np.int32))


@pytest.mark.parametrize(("kind", "host"), [(i8, np.int8), (u8, np.uint8)])
def test_arithmetic_is_wide_and_stores_keep_the_low_bits(kind: Any, host: Any) -> None:
    values = np.arange(256, dtype=np.uint8).view(host)

    @vd.shader("a.size", arg_type_annotations=[Buff[kind], Buff[i32]], arg_names=["a", "wide"])
    def double(a: Any, wide: Any) -> None:
        t = vc.global_invocation_id().x
        wide[t] = (a[t] * 3).to_dtype(vd.int32)
        a[t] += 100
        a[t] *= 3

    a, wide = vd.asbuffer(values), vd.Buffer(256, vd.int32)
    double(a, wide)
    np.testing.assert_array_equal(wide.read(0), values.astype(np.int32) * 3)
    np.testing.assert_array_equal(a.read(0), ((values.astype(np.int64) + 100) * 3).astype(host))


def test_neighbouring_elements_are_unchanged() -> None:
    @vd.shader(exec_size=300)
    def every_third(a: Buff[u8], b: Buff[b8], c: Buff[bf16]) -> None:
        t = vc.global_invocation_id().x * 3
        a[t] = t
        b[t] = (t % 2) == 1
        c[t] = t.to_dtype(vd.float32)

    size = 900
    a, b = vd.asbuffer(np.full(size, 77, np.uint8)), vd.asbuffer(np.ones(size, np.bool_))
    c = vd.Buffer(size, vd.bfloat16)
    c.write(np.full(size, -1, np.float32))
    every_third(a, b, c)
    index = np.arange(size)
    hit = index % 3 == 0
    np.testing.assert_array_equal(a.read(0), np.where(hit, index, 77).astype(np.uint8))
    np.testing.assert_array_equal(b.read(0), np.where(hit, index % 2 == 1, True))
    np.testing.assert_array_equal(c.read(0), np.where(hit, bfloat16_of(index.astype(np.float32)), -1))


def test_truth_values_in_operators_and_conditions() -> None:
    a = np.array([0, 0, 1, 1, 1], np.bool_)
    b = np.array([0, 1, 0, 1, 1], np.bool_)

    @vd.shader("out.size")
    def logic(x: Buff[b8], y: Buff[b8], out: Buff[i32], flags: Buff[b8]) -> None:
        t = vc.global_invocation_id().x
        out[t] = 0
        with vc.if_block(vc.all(x[t], y[t])):
            out[t] = 1
        with vc.else_if_block(x[t]):
            out[t] = 2
        flags[t] = x[t] ^ y[t]
        flags[t] |= x[t] & y[t]

    out, flags = vd.Buffer(5, vd.int32), vd.Buffer(5, vd.bool_)
    logic(vd.asbuffer(a), vd.asbuffer(b), out, flags)
    np.testing.assert_array_equal(out.read(0), np.select([a & b, a], [1, 2], 0))
    np.testing.assert_array_equal(flags.read(0), a | b)


@pytest.mark.parametrize("value", [True, False, np.True_, np.False_])
def test_truth_values_of_python_are_stored(value: Any) -> None:
    @vd.shader("flags.size")
    def store(flags: Buff[b8]) -> None:
        flags[vc.global_invocation_id().x] = value

    flags = vd.asbuffer(np.array([True, False]))
    store(flags)
    assert flags.read(0).tolist() == [value, value]


def test_bytes_that_are_neither_0_nor_1_count_as_true() -> None:
    @vd.shader("out.size")
    def count(x: Buff[b8], out: Buff[i32]) -> None:
        t = vc.global_invocation_id().x
        out[t] = x[t].to_dtype(vd.int32)

    x, out = vd.Buffer(4, vd.bool_), vd.Buffer(4, vd.int32)
    x.write(bytes([0, 1, 2, 255]))
    count(x, out)
    assert out.read(0).tolist() == [0, 1, 1, 1]


@dataclass
class Options:
    flag: vd.bool_
    scale: vd.float32


def test_truth_values_as_arguments() -> None:
    @vd.shader("out.size")
    def choose(out: Buff[f32], negate: Const[b8], on: Var[b8], options: Options) -> None:
        t = vc.global_invocation_id().x
        out[t] = 1
        with vc.if_block(negate):
            out[t] *= -1
        with vc.if_block(on):
            out[t] *= 10
        with vc.if_block(options.flag):
            out[t] *= options.scale

    for negate in (False, True):
        for on in (0, 1):
            for flag in (np.False_, np.True_):
                out = vd.Buffer(3, vd.float32)
                choose(out, negate, on, Options(flag, 0.5))  # type: ignore[arg-type]
                expected = (-1 if negate else 1) * (10 if on else 1) * (0.5 if flag else 1)
                assert out.read(0).tolist() == [expected] * 3


SPECIAL = np.array(
    [0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 3.4028235e38, -3.4028235e38, 3.39e38, 1.00390625, 1.01171875],
    np.float32,
)


@pytest.mark.parametrize("size", SIZES)
def test_bfloat16_rounds_to_even_on_host_and_device(size: int) -> None:
    random = np.random.default_rng(size).integers(0, 1 << 32, size, np.uint32).view(np.float32)
    values = np.concatenate([SPECIAL, random[np.abs(random) > 2e-38]])

    @vd.shader("out.size")
    def store(x: Buff[f32], half: Buff[bf16], out: Buff[f32]) -> None:
        t = vc.global_invocation_id().x
        half[t] = x[t]
        out[t] = half[t]

    x = vd.asbuffer(values)
    half, out = vd.Buffer(len(values), vd.bfloat16), vd.Buffer(len(values), vd.float32)
    assert half.mem_size == 2 * len(values)
    store(x, half, out)
    expected = bfloat16_of(values)
    np.testing.assert_array_equal(half.read(0), expected)
    np.testing.assert_array_equal(out.read(0), expected)
    assert np.signbit(out.read(0)[1])
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(from_bfloat16(to_bfloat16(values)), expected)
    half.write(values)
    np.testing.assert_array_equal(half.read(0), expected)
    raw = np.empty(len(values), np.uint16)
    assert half.read(0, out=raw[None][0]) is not None
    np.testing.assert_array_equal(from_bfloat16(raw), expected)


def test_bfloat16_computes_in_float32() -> None:
    values = np.linspace(-3, 3, 101, dtype=np.float32)

    @vd.shader("x.size")
    def poly(x: Buff[bf16]) -> None:
        t = vc.global_invocation_id().x
        x[t] = x[t] * x[t] * 1.5 + 0.25
        x[t] += 1

    x = vd.Buffer(101, vd.bfloat16)
    x.write(values)
    start = x.read(0)
    poly(x)
    once = bfloat16_of((start * start * np.float32(1.5) + np.float32(0.25)).astype(np.float32))
    np.testing.assert_array_equal(x.read(0), bfloat16_of(once + np.float32(1)))


class Named:
    """What ml_dtypes gives NumPy, as far as we look."""

    name = "bfloat16"


def test_numpy_mapping() -> None:
    from vkdispatch.base import dtype as dt

    for kind, host in ((dt.int8, np.int8), (dt.uint8, np.uint8), (dt.bool_, np.bool_)):
        assert dt.from_numpy_dtype(host) is kind and dt.to_numpy_dtype(kind) is host
    assert dt.from_numpy_dtype("bfloat16") is dt.from_numpy_dtype(Named()) is dt.bfloat16
    assert dt.to_numpy_dtype(dt.bfloat16) == dt.BFLOAT16_HOST
    assert dt.from_numpy_dtype(dt.BFLOAT16_HOST) is dt.bfloat16
    assert dt.bool_.name == "bool" and dt.bool_.item_size == dt.int8.item_size == 1


@pytest.mark.parametrize(
    ("body", "error", "text"),
    [
        (lambda a, b: a.__setitem__(0, 256), ValueError, "256 does not fit in int8"),
        (lambda a, b: a.__setitem__(0, -129), ValueError, "-129 does not fit in int8"),
        (lambda a, b: a.__setitem__(0, 1.5), ValueError, "cannot store the float 1.5"),
        (lambda a, b: b.__setitem__(0, vc.to_int(3)), ValueError, "cannot store int32 in float32"),
        (lambda a, b: vc.new_register(vd.int8, 1), ValueError, "int8 is only for buffers; .*int32"),
        (lambda a, b: vc.shared_buffer(vd.bfloat16, 4), ValueError, "bfloat16 is only for buffers"),
        (lambda a, b: a[0].to_dtype(vd.uint8), ValueError, "uint8 is only for buffers; .*uint32"),
        (lambda a, b: vc.atomic_add(a[0], 1), TypeError, "atomic_add"),
    ],
)
def test_wrong_arguments_are_refused(
    body: Callable[[Any, Any], None], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        vd.shader(1, arg_type_annotations=[Buff[i8], Buff[bf16]])(body)


def test_error_names_what_the_buffer_holds() -> None:
    def store(a: Any) -> None:
        a[0] = vc.to_int(3)

    with pytest.raises(ValueError, match="cannot store int32 in uint32") as caught:
        vd.shader(1, arg_type_annotations=[Buff[vd.uint8]])(store)
    assert caught.value.__notes__ == [
        "The buffer holds uint8; kernels read and write its elements as uint32."
    ]
    with pytest.raises(ValueError, match="cannot store int32 in uint32") as caught:
        vd.shader(1, arg_type_annotations=[Buff[vd.uint32]])(store)
    assert not hasattr(caught.value, "__notes__")
