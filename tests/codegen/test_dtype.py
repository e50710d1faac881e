"""dtypes: the table, promotion, NumPy, memory layout."""

import itertools

import numpy as np
import pytest

from vkdispatch.base import dtype as dt

SCALARS = [dt.uint16, dt.int16, dt.uint32, dt.int32, dt.uint64, dt.int64, dt.float16, dt.float32, dt.float64]
VECTORS = list(dt._Vector.__subclasses__())
COMPLEX = [dt.complex32, dt.complex64, dt.complex128]
MATRICES = [dt.mat2, dt.mat3, dt.mat4]


@pytest.mark.parametrize(("a", "b"), list(itertools.product(SCALARS, SCALARS)))
def test_scalar_promotion_is_the_later_rank(a, b):
    assert dt.cross_type(a, b) is SCALARS[max(SCALARS.index(a), SCALARS.index(b))]


@pytest.mark.parametrize(("a", "b"), list(itertools.product(SCALARS, SCALARS)))
def test_promotion_is_numpys_where_both_are_of_one_kind(a, b):
    same_kind = a.name.rstrip("0123456789") == b.name.rstrip("0123456789")
    if same_kind:
        expected = np.promote_types(dt.to_numpy_dtype(a), dt.to_numpy_dtype(b))
        assert dt.to_numpy_dtype(dt.cross_type(a, b)) == expected


@pytest.mark.parametrize(
    ("vector", "scalar"), list(itertools.product(VECTORS, [dt.int16, dt.uint32, dt.float32]))
)
def test_vector_scalar_promotion(vector, scalar):
    crossed = dt.cross_type(vector, scalar)
    assert crossed is dt.cross_type(scalar, vector)
    assert crossed.child_count == vector.child_count
    assert crossed.scalar is dt.cross_type(vector.scalar, scalar)


@pytest.mark.parametrize(("a", "b"), list(itertools.product(VECTORS, VECTORS)))
def test_vector_vector_promotion(a, b):
    if a.child_count != b.child_count:
        with pytest.raises(ValueError, match="same length"):
            dt.cross_type(a, b)
    else:
        assert dt.cross_type(a, b).scalar is dt.cross_type(a.scalar, b.scalar)


@pytest.mark.parametrize(("a", "b"), list(itertools.product(COMPLEX, COMPLEX)))
def test_complex_promotion(a, b):
    assert dt.cross_type(a, b) is COMPLEX[max(COMPLEX.index(a), COMPLEX.index(b))]


@pytest.mark.parametrize(
    ("scalar", "expected"),
    [
        (dt.int16, dt.complex64),
        (dt.uint32, dt.complex64),
        (dt.int64, dt.complex128),
        (dt.float16, dt.complex64),
        (dt.float64, dt.complex128),
    ],
)
def test_complex_scalar_promotion(scalar, expected):
    assert dt.cross_type(dt.complex64, scalar) is expected
    assert dt.cross_type(scalar, dt.complex64) is expected


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (dt.complex64, dt.vec2),
        (dt.vec2, dt.complex64),
        (dt.complex64, dt.mat2),
        (dt.mat2, dt.mat3),
        (dt.mat2, dt.vec2),
        (dt.vec3, dt.mat3),
    ],
)
def test_types_that_do_not_meet(a, b):
    with pytest.raises(ValueError, match="cannot be combined"):
        dt.cross_type(a, b)


@pytest.mark.parametrize("matrix", MATRICES)
def test_matrix_products(matrix):
    vector = matrix.child_type
    assert dt.cross_multiply_type(matrix, vector) is vector
    assert dt.cross_multiply_type(vector, matrix) is vector
    assert dt.cross_multiply_type(matrix, dt.int32) is matrix
    with pytest.raises(ValueError, match="matrix"):
        dt.cross_multiply_type(matrix, dt.to_vector(dt.int32, matrix.child_count))


def test_truth_values_count_as_int32():
    assert dt.cross_type(dt.bool_, dt.bool_) is dt.int32
    assert dt.cross_type(dt.bool_, dt.float32) is dt.float32


@pytest.mark.parametrize("kind", [*SCALARS, *VECTORS, *COMPLEX, *MATRICES])
def test_table_is_consistent(kind):
    assert kind.item_size == dt.component_count(kind) * dt.component_type(kind).item_size
    assert dt.is_float_dtype(kind) != dt.is_integer_dtype(kind)
    assert sum(check(kind) for check in (dt.is_scalar, dt.is_complex, dt.is_vector, dt.is_matrix)) == 1
    assert kind.name == kind.__name__
    assert kind.true_numpy_shape == (() if kind.dimentions == 0 else kind.shape)
    assert len({kind, dt.dtype}) == 2


@pytest.mark.parametrize("kind", [*SCALARS, dt.complex64, dt.complex128])
def test_numpy_round_trip(kind):
    host = dt.to_numpy_dtype(kind)
    assert dt.from_numpy_dtype(host) is kind
    assert dt.from_numpy_dtype(np.dtype(host)) is kind
    assert dt.from_numpy_dtype(kind.name) is kind
    assert np.dtype(host).itemsize == kind.item_size


def test_complex32_has_a_host_dtype():
    host = dt.to_numpy_dtype(dt.complex32)
    assert (host.name, host.itemsize, host.format, host.kind) == ("complex32", 4, "ee", "complex")
    assert dt.from_numpy_dtype(host) is dt.from_numpy_dtype("complex32") is dt.complex32


@pytest.mark.parametrize("host", [np.longdouble, str, "nonsense", None, ">f4", np.dtype("V8"), object()])
def test_unsupported_numpy_dtypes(host):
    with pytest.raises(ValueError, match="NumPy dtype"):
        dt.from_numpy_dtype(host)


@pytest.mark.parametrize("kind", [dt.vec2, dt.mat3])
def test_no_numpy_dtype(kind):
    with pytest.raises(ValueError, match="no NumPy dtype"):
        dt.to_numpy_dtype(kind)


@pytest.mark.parametrize(
    ("scalar", "count"),
    [(dt.int64, 2), (dt.uint64, 1), (dt.float32, 5), (dt.float32, 0), (dt.vec2, 2), (dt.bool_, 2)],
)
def test_unknown_vector_types_are_refused(scalar, count):
    with pytest.raises(ValueError, match="to_vector"):
        dt.to_vector(scalar, count)


def test_make_floating():
    assert dt.make_floating_dtype(dt.uint16) is dt.float16
    assert dt.make_floating_dtype(dt.ivec3) is dt.vec3
    assert dt.make_floating_dtype(dt.uint64) is dt.float64
    assert dt.make_floating_dtype(dt.mat2) is dt.mat2
    assert dt.make_floating_dtype(dt.complex32) is dt.complex32


def test_scalar_layout_aligns_to_components():
    offsets, size = dt.scalar_layout([(dt.vec3, 1), (dt.float64, 1), (dt.ihvec3, 2), (dt.float32, 1)])
    assert offsets == (0, 16, 24, 36)
    assert size == 40


def test_is_dtype_needs_a_class():
    with pytest.raises(TypeError):
        dt.is_dtype(3)
    assert not dt.is_dtype(int)
