"""Methods and attributes of arrays beyond the array API standard, compared with NumPy's."""

import pytest

import numpy as np
import vkdispatch.numpy as vnp
from tests.numpy.both import run_texts

DATA = np.random.default_rng(3).integers(-9, 9, (4, 6)).astype(np.float64)


def test_methods() -> None:
    run_texts(
        """
        x.partition(2); x.sort(); r = x
        x.partition(1, axis=0); x.sort(axis=0, stable=True); r = x
        r = x.argpartition(0)[:, 0]
        r = x.compress(m.asarray([True, False, True]), axis=1)
        r = x.compress(m.asarray([False, True]))
        r = y.choose([m.asarray([1, 2, 3]), m.asarray([4, 5, 6])])
        x.put(m.asarray([1, -1]), m.asarray([7., 8])); r = x
        x.put(m.asarray([99]), 1., mode="clip"); r = x
        r = x.sum(axis=0, initial=5., where=x > 0)
        r = x.prod(where=x > 0)
        r = x.max(axis=1, initial=3)
        r = x.min(initial=99., where=x > 0)
        r = x.mean(where=x > 0)
        r = x.all(where=x > 9), x.any(axis=0, where=x < 0)
        r = x.trace(1, dtype=m.float32)
        r = x.dot(x.T, m.zeros((4, 4)))
        r = x.argsort(stable=True)
        r = x.astype(m.int32, casting="safe")
        r = x.astype("f4", "C", "same_kind")
        r = x.astype(m.float64, copy=False)
        """,
        DATA,
        np.array([0, 1, 0]),
    )
    assert vnp.asarray(DATA).tobytes("F") == DATA.tobytes("F")
    assert abs(vnp.asarray(DATA).std(axis=0, correction=1).numpy() - DATA.std(axis=0, ddof=1)).max() < 1e-12


def test_views_as_other_dtypes() -> None:
    run_texts(
        """
        r = x.view(m.int64)
        r = x.view(m.uint8)
        r = x.view("c16")
        r = x[1:, 2:4].view("c16")
        r = x[1:, 2:4].view(m.float32)
        r = x[:, ::2].view(m.uint64)
        r = x[:, ::2].view(m.uint32)
        r = x.T.view(m.uint32)
        r = x[:, :3].view("c16")
        r = x[0, 0].view(m.int64)
        r = x[0, 0].view(m.int32)
        y = x.view(m.int64); y[0] = 0; r = x
        y = x.view(m.int64); x += 1; r = y
        z = x + 1; y = z.view(m.int64); z *= 2; r = y
        y = x.view(); y[1] = 5; r = x
        y = x[1].view(m.uint8); w = y + 1; x[1] = 3; r = w
        """,
        DATA,
    )
    with pytest.raises(TypeError, match="dtype"):
        vnp.asarray(DATA).view(bool)
