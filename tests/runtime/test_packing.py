"""Host values to bytes: every dtype, NumPy's casts, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vkdispatch.base import dtype
from vkdispatch.base.errors import VkDispatchError
from vkdispatch.base.memory.data import component_dtype, pack, pack_rows, plain_scalar

REALS = [getattr(dtype, f"{kind}{bits}") for kind in ("int", "uint", "float") for bits in (16, 32, 64)]


@pytest.mark.parametrize("kind", REALS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("value", [0, 1, 7, True, 2.0, np.int8(5), np.float64(3), np.array(4), np.array([6])])
def test_scalars(kind: Any, value: Any) -> None:
    expected = np.asarray(value).reshape(()).astype(component_dtype(kind))
    assert pack(kind, value, "x") == expected.tobytes()
    assert plain_scalar(kind, value, "x") == expected.item()


def test_inexact_numbers_are_refused() -> None:
    for kind, value in (
        (dtype.int32, 3.9),
        (dtype.int32, -0.5),
        (dtype.uint16, np.float32(65535.5)),
        (dtype.float16, 2049),
        (dtype.float16, 70000.0),
        (dtype.float32, 2**24 + 1),
        (dtype.float32, np.uint64(2**63 + 1)),
        (dtype.float32, -1e39),
        (dtype.float64, 2**53 + 1),
        (dtype.hvec2, (0, 2049)),
        (dtype.vec2, np.array([1.0, 1e39])),
        (dtype.complex64, 1e39j),
    ):
        with pytest.raises(ValueError, match="x: "):
            pack(kind, value, "x")
    assert plain_scalar(dtype.float16, 2050, "x") == 2050
    assert plain_scalar(dtype.float32, 2**63, "x") == 2**63
    assert plain_scalar(dtype.float32, 0.1, "x") == np.float32(0.1)
    assert plain_scalar(dtype.float16, 2049.0, "x") == 2048


@pytest.mark.parametrize(
    "kind", [dtype.complex32, dtype.complex64, dtype.complex128], ids=lambda kind: kind.name
)
@pytest.mark.parametrize("value", [1, 2.5, 1 + 2j, np.complex64(3 - 1j)])
def test_complex(kind: Any, value: Any) -> None:
    pair = np.frombuffer(pack(kind, value, "z"), component_dtype(kind))
    assert complex(*pair.tolist()) == complex(value)


@pytest.mark.parametrize(
    "kind", [dtype.vec2, dtype.vec3, dtype.dvec4, dtype.ivec3, dtype.uhvec2, dtype.hvec3]
)
def test_vectors(kind: Any) -> None:
    values = list(range(kind.child_count))
    expected = np.array(values, component_dtype(kind)).tobytes()
    assert (
        pack(kind, values, "v")
        == pack(kind, tuple(values), "v")
        == pack(kind, np.array(values), "v")
        == expected
    )


def test_matrices() -> None:
    rows = [[1, 2], [3, 4]]
    assert pack(dtype.mat2, rows, "m") == np.array(rows, np.float32).tobytes()


def test_rows() -> None:
    assert pack_rows(dtype.float32, 2, 3, "x") == np.full(3, 2, np.float32).tobytes()
    assert pack_rows(dtype.float32, [1, 2, 3], 3, "x") == np.array([1, 2, 3], np.float32).tobytes()
    assert pack_rows(dtype.vec2, [[1, 2], [3, 4]], 2, "x") == np.array([1, 2, 3, 4], np.float32).tobytes()
    for kind, value, rows in ((dtype.float32, [1, 2], 3), (dtype.vec2, [1, 2], 2), (dtype.float32, [[1]], 1)):
        with pytest.raises(ValueError, match="x: expected"):
            pack_rows(kind, value, rows, "x")


@pytest.mark.parametrize(
    ("kind", "value", "error"),
    [
        (dtype.float32, None, TypeError),
        (dtype.float32, "1", TypeError),
        (dtype.float32, 1j, TypeError),
        (dtype.float32, len, TypeError),
        (dtype.float32, object(), TypeError),
        (dtype.float32, (1.0,), ValueError),
        (dtype.float32, [1, 2], ValueError),
        (dtype.float32, [[1], [2, 3]], ValueError),
        (dtype.vec3, 1.0, ValueError),
        (dtype.vec3, (1, 2), ValueError),
        (dtype.vec3, (1, 2, "3"), TypeError),
        (dtype.mat2, [1, 2, 3, 4], ValueError),
        (dtype.int32, float("nan"), ValueError),
        (dtype.int32, float("inf"), ValueError),
        (dtype.int32, 2**31, ValueError),
        (dtype.uint32, -1, ValueError),
        (dtype.uint32, 2**32, ValueError),
        (dtype.int16, 40000, ValueError),
        (dtype.uint64, 2**64, ValueError),
        (dtype.uint64, 10**30, ValueError),
        (dtype.complex64, "1j", TypeError),
        (dtype.complex64, (1, 2), ValueError),
    ],
)
def test_wrong_values_are_refused(kind: Any, value: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="argument 'x'") as caught:
        pack(kind, value, "argument 'x'")
    assert isinstance(caught.value, VkDispatchError)


def test_limits_fit() -> None:
    for kind in REALS[:6]:
        limits = np.iinfo(component_dtype(kind))
        for value in (limits.min, limits.max):
            assert plain_scalar(kind, int(value), "x") == value


JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.complex_numbers()
    | st.text(max_size=3)
    | st.binary(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=2), inner, max_size=2)
    ),
    max_leaves=6,
)


@given(
    value=JUNK,
    kind=st.sampled_from([*REALS, dtype.complex64, dtype.vec3, dtype.ivec2, dtype.mat2]),
    rows=st.integers(1, 3),
)
def test_random_values_pack_or_are_refused(value: Any, kind: Any, rows: int) -> None:
    try:
        packed = pack_rows(kind, value, rows, "x")
    except VkDispatchError:
        return
    assert len(packed) == rows * kind.item_size
