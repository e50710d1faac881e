"""NumPy's reductions in the forms of kernels for large buffers."""

from __future__ import annotations

from collections.abc import Callable
from subprocess import CompletedProcess

import pytest

FORMS = """
import numpy as np, vkdispatch as vd
rng = np.random.default_rng(0)
def check(name, x, axis):
    found = getattr(vd, name)(vd.asbuffer(x), axis=axis).read(0)
    expected = getattr(np, name)(x, axis=axis)
    assert found.dtype == expected.dtype and np.allclose(found, expected, rtol=1e-5), (name, x.shape, axis)
for shape, axis in (((40_003,), None), ((5, 700), 0), ((5, 700), 1), ((4, 6, 70), 1)):
    check("argmin", rng.integers(0, 50, shape).astype(np.int32), axis)
x = rng.normal(size=(5, 700)).astype(np.float32)
for axis in (0, 1):
    check("var", x, axis)
check("count_nonzero", rng.integers(0, 3, (5, 700)).astype(np.int32), 1)
mask = rng.random((5, 700)) < 0.5
x = rng.integers(0, 50, (5, 700)).astype(np.int32)
for where in (mask, mask[0], mask[:, :1]):
    assert (vd.sum(vd.asbuffer(x), 1, where=vd.asbuffer(where)).read(0) == x.sum(axis=1, where=where)).all()
assert (vd.dot(vd.asbuffer(x), vd.asbuffer(x[0])).read(0) == x @ x[0]).all()
print("fine")
"""


@pytest.mark.parametrize("forms", ["wide,addressed", "wide"])
def test_forms_for_large_buffers(run_python: Callable[..., CompletedProcess[str]], forms: str) -> None:
    ran = run_python(FORMS, VKDISPATCH_FORCE_VARIANT=forms)
    assert ran.stdout.strip() == "fine", ran.stderr
