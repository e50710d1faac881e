"""Every operation on every type it makes sense for, against NumPy."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.base import dtype as dt
from vkdispatch.codegen.abbreviations import *  # noqa: F403
from vkdispatch.reduce import (
    ReduceOp,
    SubgroupAdd,
    SubgroupAnd,
    SubgroupMax,
    SubgroupMin,
    SubgroupMul,
    SubgroupOr,
    SubgroupXor,
)

from .reductions import answer, plain

INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
FLOATS = ["float16", "float32", "float64"]
UFUNCS: dict[str, Any] = {
    "add": np.add,
    "mul": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
# one element, fewer than a load takes, one workgroup with a rest and a tail
SIZES = (1, 3, 1237)
# several workgroups, and a second launch
LARGE = 40_011


def random_integers(name: str, size: Any) -> np.ndarray[Any, Any]:
    info = np.iinfo(name)
    rng = np.random.default_rng(3)
    return rng.integers(info.min, info.max, size, np.dtype(name), endpoint=True)


@pytest.mark.parametrize("name", INTEGERS)
@pytest.mark.parametrize("operation", [SubgroupAdd, SubgroupMin, SubgroupMax], ids=lambda op: op.name)
def test_integers(name: str, operation: ReduceOp) -> None:
    reduction = plain(operation, getattr(vd, name))
    for size in (*SIZES, LARGE):
        data = random_integers(name, size)
        found = answer(reduction(vd.asbuffer(data)))
        assert found.dtype == data.dtype
        assert found == UFUNCS[operation.name].reduce(data, dtype=data.dtype), size


@pytest.mark.parametrize(
    "operation", [SubgroupMul, SubgroupAnd, SubgroupOr, SubgroupXor], ids=lambda op: op.name
)
@pytest.mark.parametrize("name", ["uint8", "int16", "uint32", "int64"])
def test_bits_and_products(name: str, operation: ReduceOp) -> None:
    reduction = plain(operation, getattr(vd, name))
    for size in (1, 3, LARGE):
        # few bits missing or set, and no factor of two: nothing ends as 0 or as all bits
        odd = random_integers(name, size) | 1
        data = {"and": odd | -3 & np.iinfo(name).max, "or": odd & 5}.get(operation.name, odd).astype(name)
        found = answer(reduction(vd.asbuffer(data)))
        assert found == UFUNCS[operation.name].reduce(data, dtype=data.dtype), size


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("operation", [SubgroupAdd, SubgroupMin, SubgroupMax], ids=lambda op: op.name)
def test_floats(name: str, operation: ReduceOp) -> None:
    reduction = plain(operation, getattr(vd, name))
    for size in (*SIZES, LARGE):
        data = np.random.default_rng(size).normal(size=size).astype(name)
        found = answer(reduction(vd.asbuffer(data)))
        assert found.dtype == data.dtype
        expected = UFUNCS[operation.name].reduce(data.astype(np.float64))
        scale = np.finfo(name).eps * max(abs(expected), np.abs(data).sum(dtype=np.float64) / 16)
        assert abs(found - expected) <= (scale if operation is SubgroupAdd else 0), size


def test_halves_are_added_up_in_single_precision() -> None:
    # in half precision 2048 + 1 is 2048
    ones = np.ones(30_000, np.float16)
    assert answer(plain(SubgroupAdd, vd.float16)(vd.asbuffer(ones))) == np.float16(30_000)
    # their sum on the way is more than half precision holds
    data = np.concatenate([np.full(3000, 60.0), np.full(3000, -60.0)]).astype(np.float16)
    assert answer(plain(SubgroupAdd, vd.float16)(vd.asbuffer(data))) == 0


def test_bfloat16() -> None:
    data = np.random.default_rng(0).random(LARGE, dtype=np.float32)
    buffer = vd.Buffer(LARGE, vd.bfloat16)
    buffer.write(data)
    stored = buffer.read(0).astype(np.float64)
    assert answer(plain(SubgroupAdd, vd.bfloat16)(buffer)) == pytest.approx(stored.sum(), rel=2**-8)
    assert answer(plain(SubgroupMax, vd.bfloat16)(buffer)) == stored.max()


@pytest.mark.parametrize("name", ["complex64", "complex128"])
def test_complex(name: str) -> None:
    data = np.exp(1j * np.random.default_rng(0).random(LARGE)).astype(name)
    for size in (1, 2, 1001, LARGE):
        part = np.ascontiguousarray(data[:size])
        found = answer(plain(SubgroupAdd, getattr(vd, name))(vd.asbuffer(part)))
        assert found == pytest.approx(part.sum(dtype=np.complex128), rel=1e-6)
    product = answer(plain(SubgroupMul, getattr(vd, name))(vd.asbuffer(data[:1001].copy())))
    assert product == pytest.approx(np.prod(data[:1001].astype(np.complex128)), rel=1e-4)


def test_complex32() -> None:
    rng = np.random.default_rng(0)
    pairs = rng.random((3001, 2)).astype(np.float16)
    buffer = vd.Buffer(3001, vd.complex32)
    buffer.write(pairs)
    found = answer(plain(SubgroupAdd, vd.complex32)(buffer))
    expected = pairs.astype(np.float64).sum(axis=0)
    assert [found.real, found.imag] == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("name", ["vec2", "vec3", "vec4", "hvec2", "dvec3", "ivec4", "uhvec3", "ihvec4"])
def test_vectors(name: str) -> None:
    kind = getattr(vd, name)
    host = np.dtype(dt.to_numpy_dtype(kind.scalar))
    data = np.random.default_rng(1).integers(0, 9, (20_003, kind.child_count)).astype(host)
    for size in (1, 5, 20_003):
        buffer = vd.Buffer(size, kind)
        buffer.write(np.ascontiguousarray(data[:size]))
        most = answer(plain(SubgroupMax, kind)(buffer))
        assert most.shape == (kind.child_count,)
        assert (most == data[:size].max(axis=0)).all()
        total = data[:size].sum(axis=0, dtype=np.float64)
        if host.itemsize > 2 or size < 1000:
            assert (answer(plain(SubgroupAdd, kind)(buffer)) == total).all()


def test_matrices() -> None:
    data = np.random.default_rng(1).integers(0, 9, (3001, 3, 3)).astype(np.float32)
    buffer = vd.Buffer(3001, vd.mat3)
    buffer.write(data)
    assert (answer(plain(SubgroupAdd, vd.mat3)(buffer)) == data.sum(axis=0)).all()


# ---- operations of the user's ------------------------------------------------------------------


def test_user_function() -> None:
    @vd.reduce.reduce(0)
    def total(a: f32, b: f32) -> f32:  # noqa: F405
        return a + b

    data = np.arange(5000, dtype=np.float32)
    assert answer(total(vd.asbuffer(data))) == data.sum()


def test_user_function_with_control_flow() -> None:
    @vd.reduce.reduce("-inf", axes=[-1])
    def largest(a: i32, b: i32) -> i32:  # noqa: F405
        if a > b:
            return a
        return b

    data = random_integers("int32", (7, 3001))
    assert (answer(largest(vd.asbuffer(data))) == data.max(axis=1)).all()


@pytest.mark.parametrize("identity", [0, 0.0, np.float32(0), np.int64(0)])
def test_identities_may_be_any_number(identity: Any) -> None:
    @vd.reduce.reduce(identity)
    def total(a: u32, b: u32) -> u32:  # noqa: F405
        return a + b

    assert answer(total(vd.asbuffer(np.full(77, 3, np.uint32)))) == 231


def smallest(a: f32, b: f32) -> f32:  # noqa: F405
    return vc.min(a, b)


def largest_of(a: i32, b: i32) -> i32:  # noqa: F405
    return vc.max(a, b)


def product(a: u32, b: u32) -> u32:  # noqa: F405
    return a * b


def modular_product(a: u32, b: u32) -> u32:  # noqa: F405
    return a * b % 1009


def length(a: f32, b: f32) -> f32:  # noqa: F405
    return vc.sqrt(a * a + b * b)


def mean(a: f32, b: f32) -> f32:  # noqa: F405
    return (a + b) / 2


@pytest.mark.parametrize(
    ("function", "identity", "message"),
    [
        (smallest, 0, "0 is no identity of the function: it makes 0 of 0 and 1"),
        (smallest, "inf", ""),
        (largest_of, 0, "0 is no identity of the function: it makes 0 of 0 and -1"),
        (largest_of, "-inf", ""),
        (product, 0, "0 is no identity"),
        (product, 1, ""),
        (modular_product, 1, ""),
        (length, 0, ""),
        (mean, 0, "not associative: of 1, 2, 3 it makes 2.25 if it combines 1 and 2 first, but 1.75"),
    ],
)
def test_functions_that_are_no_reductions_warn(function: Any, identity: Any, message: str) -> None:
    reduction = vd.reduce.reduce(identity)(function)
    x = vd.asbuffer(np.array([3, 4], reduction.out_type.name))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        reduction(x)
        reduction(x)
    assert len(caught) == bool(message)
    assert all(message in str(each.message) for each in caught)


def test_an_operation_with_its_own_subgroup_function() -> None:
    operation = ReduceOp("gcd_of_bits", lambda a, b: a | b, 0, vc.subgroup_or)
    data = random_integers("uint32", 5000) & 0x00F0F0F0
    assert answer(plain(operation, vd.uint32)(vd.asbuffer(data))) == np.bitwise_or.reduce(data)


@pytest.mark.filterwarnings("ignore:reduction")
def test_an_operation_that_gives_a_constant() -> None:
    operation = ReduceOp("nothing", lambda a, b: 7, 7)
    assert answer(plain(operation, vd.int32)(vd.asbuffer(np.zeros(100, np.int32)))) == 7
