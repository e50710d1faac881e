"""Errors travel to other processes as they are: class, message, attributes, traceback."""

from __future__ import annotations

import pickle
from collections.abc import Iterator

import pytest

import vkdispatch as vd
import vkdispatch.numpy
import vkdispatch.orders
from vkdispatch.base.errors import MissingPackageError, ShaderBuildError
from vkdispatch.orders.errors import OrderMismatchError


def subclasses(kind: type[vd.VkDispatchError]) -> Iterator[type[vd.VkDispatchError]]:
    if kind.__module__.startswith("vkdispatch."):  # other tests define errors, too
        yield kind
    for each in kind.__subclasses__():
        yield from subclasses(each)


def make(kind: type[vd.VkDispatchError]) -> vd.VkDispatchError:
    if issubclass(kind, ShaderBuildError):
        return kind("it failed", shader_source="void main() {}", compiler_log="line 1")
    if issubclass(kind, vd.BackendUnavailableError):
        return kind("vulkan", "it failed")
    if issubclass(kind, OrderMismatchError):
        return kind("it failed", ("c", "python"), "x", (1, 2))
    return kind("it failed")


@pytest.mark.parametrize("by_tblib", [False, True])
def test_every_error_is_pickled(by_tblib: bool) -> None:
    # Dask pickles errors by tblib, which has rules of its own for those that leave it to Python
    install = pytest.importorskip("tblib.pickling_support").install if by_tblib else None
    kinds = set(subclasses(vd.VkDispatchError))
    assert {MissingPackageError, vd.DeviceTimeoutError, vd.OutOfDeviceMemoryError} <= kinds
    for kind in kinds:
        try:
            raise make(kind)
        except vd.VkDispatchError as caught:
            error = caught
        error.add_note("a note")
        if install is not None:
            install(error)
        copy = pickle.loads(pickle.dumps(error))
        assert type(copy) is kind
        assert str(copy) == str(error) == "it failed"
        assert copy.args == error.args
        assert copy.__dict__ == error.__dict__
        if by_tblib:  # else it depends on whether somebody has installed tblib for all errors
            assert copy.__traceback__ is not None
