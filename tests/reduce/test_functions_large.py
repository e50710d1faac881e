"""NumPy's reductions in other surroundings: forms for large buffers, checks, contexts, threads."""

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


ELSEWHERE = """
import threading
import numpy as np, vkdispatch as vd
from vkdispatch.base.context import destroy_context
x = np.random.default_rng(0).integers(0, 50, (3, 50_021)).astype(np.int32)
def right(buffer):
    assert (vd.sum(buffer, 1).read(0) == x.sum(axis=1)).all()
    assert vd.argmax(buffer).read(0) == x.argmax()
    assert (vd.max(buffer, 0).read(0) == x.max(axis=0)).all()
for turn in range(2):
    right(vd.asbuffer(x))
    destroy_context()
buffer = vd.asbuffer(x)
done = []
def work():
    for _ in range(5):
        right(buffer)
    done.append(1)
threads = [threading.Thread(target=work) for _ in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print("fine", len(done))
"""


@pytest.mark.parametrize("check", ["", "1"])
def test_contexts_and_threads_and_checks(
    run_python: Callable[..., CompletedProcess[str]], check: str
) -> None:
    ran = run_python(ELSEWHERE, VKDISPATCH_CHECK=check)
    assert ran.stdout.strip() == "fine 4", ran.stderr
