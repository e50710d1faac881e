"""Every function that takes buffers takes arrays of other libraries in their memory, or says what to call."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import vkdispatch as vd
import vkdispatch.numpy as vnp
from tests.calls.choices import Choices
from tests.calls.random_calls import FAMILIES, tasks_of, write
from tests.calls.running import _Run, expectations
from tests.calls.values import VECTORS, kind_of
from vkdispatch.base.errors import VkDispatchError
from vkdispatch.codegen.abbreviations import f32

from .arrays import Array, aligned, double


class Theirs:
    """An array of a library of its own: it has DLPack and nothing else of NumPy's but a shape."""

    def __init__(self, data: Array) -> None:
        self.data = data

    @property
    def shape(self) -> tuple[int, ...]:
        return self.data.shape

    @property
    def size(self) -> int:
        return self.data.size

    def __dlpack__(self, **options: Any) -> Any:
        return self.data.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def read(self, queue: int = 0) -> Array:
        """Return the elements, for the harness of random calls."""
        return self.data


class WithTheirs(_Run):
    """A random call with arrays of another library in place of buffers."""

    def make_buffers(self, before: Any = None) -> None:
        for name in self.case.arrays:
            host = self.hosts[0][name]
            self.namespace[name] = host
            self.namespace[name.upper()] = Theirs(aligned(host))

    def write(self, first: int) -> None:
        for name in self.case.arrays:
            self.namespace[name.upper()].data[...] = self.hosts[first][name]

    def evaluate_results(self) -> Any:
        names = {**self.namespace}
        for name in self.case.arrays:
            theirs = names[name.upper()]
            if names["result"] is theirs:  # it was `out`
                names["result"] = vd.asbuffer(theirs.data)
            names[name.upper()] = vd.asbuffer(theirs.data)
        return eval(self.case.results, names)


def is_for_buffers(case: Any, function: str) -> bool:
    """Whether a call is no method of a buffer, and its elements are of dtypes that NumPy has."""
    if case.queues > 1 or function.startswith(
        ("vd.Buffer", "vd.RFFTBuffer", "vd.fft.fftshift", "vd.fft.iff")
    ):
        return False
    if ".view(" in " ".join([*case.lines, case.call]):
        return False
    lacking = (*VECTORS, "bfloat16", "complex32")
    return all(
        each.kind not in lacking and kind_of(each.kind).name not in lacking for each in case.arrays.values()
    )


@pytest.mark.parametrize("start", range(4))
def test_random_calls_with_arrays_of_another_library(takes_host: None, start: int) -> None:
    equal = 0
    for seed, _, function in tasks_of(1000 + 70 * start, 70, tuple(FAMILIES)):
        case = write(Choices(seed=seed), function)
        if not is_for_buffers(case, function):
            continue
        right, refusal = expectations(case)
        run = WithTheirs(case)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run.make_buffers()
            try:
                found = run.call()
            except VkDispatchError as error:
                text = " ".join([str(error), *getattr(error, "__notes__", ())])
                assert refusal or "Theirs" not in text or "from_dlpack" in text, (function, text)
                continue
            assert not refusal, (function, refusal)
            run.judge(found, 0, right[case.graph])
        run.check_inputs()
        equal += 1
    assert equal >= 15


@vd.reduce.reduce(0)
def total(a: f32, b: f32) -> f32:
    return a + b


def test_reductions_of_users_take_arrays(takes_host: None) -> None:
    data = aligned(np.arange(64, dtype=np.float32))
    for x in (data, Theirs(data), vnp.asarray(data), vnp.from_dlpack(data, copy=False)):
        assert total(x).read(0) == data.sum()
    assert total(vnp.asarray(data)[::2]).read(0) == data[::2].sum()
    graph = vd.CommandGraph()
    result = total(data, graph=graph)
    for factor in (2, 4):
        data *= 2
        graph.submit()
        assert result.read(0) == factor * np.arange(64).sum()
    with pytest.raises(ValueError, match=r"total: argument 1: .*from_dlpack"):
        total(Theirs(data[::2]))
    with pytest.raises(ValueError, match=r"total: argument 1: expected a vd.Buffer"):
        total([1.0, 2.0])


def test_copies_use_their_memory(takes_host: None) -> None:
    data = aligned(np.arange(64, dtype=np.float32))
    own = vd.Buffer(64, vd.float32)
    vd.copyto(own, Theirs(data))
    np.testing.assert_array_equal(own.read(0), data)
    double(own)
    vd.copyto(Theirs(data), own)
    np.testing.assert_array_equal(data, 2 * np.arange(64))
    host = np.zeros(64, np.float32)
    vd.copyto(host, Theirs(data))
    np.testing.assert_array_equal(host, data)
    vd.copyto(Theirs(data), np.ones(64, np.float32))
    assert (data == 1).all()
    with pytest.raises(ValueError, match=r"dst: .*from_dlpack"):
        vd.copyto(Theirs(data[::2]), vd.Buffer(32, vd.float32))


def test_arrays_say_how_to_convert_others() -> None:
    theirs: Any = Theirs(aligned(np.arange(64, dtype=np.float32)))
    x = vnp.ones(64, np.float32)
    for call in (
        lambda: vnp.sum(theirs),
        lambda: vnp.add(x, theirs),
        lambda: vnp.add(x, 1, out=theirs),
        lambda: vnp.sum(x, out=theirs),
        lambda: vnp.copyto(theirs, x),
        lambda: vnp.sort(theirs),
        lambda: vnp.where(x > 0, x, theirs),
        lambda: vnp.linalg.norm(theirs),
        lambda: vnp.fft.fft(theirs),
        lambda: x.__setitem__(0, theirs),
    ):
        with pytest.raises(TypeError, match="from_dlpack"):
            call()
    for convert in (vd.asbuffer, vd.fft.fftshift, vd.fft.ifftshift):
        with pytest.raises(TypeError, match="from_dlpack"):
            convert(theirs)
    with pytest.raises(TypeError):
        x + theirs
