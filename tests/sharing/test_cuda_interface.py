"""What arrays of CUDA say of themselves, and streams in protocols: no GPU is needed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

import vkdispatch as vd
from vkdispatch.base.sharing.cuda_link import parse_dlpack_stream, parse_stream
from vkdispatch.base.sharing.cuda_memory import read_interface


def array(**changes: Any) -> Any:
    """Return an object with an interface of 12 floats."""
    interface = {"shape": (3, 4), "typestr": "<f4", "data": (4096, False), "version": 3, "stream": 7}
    return SimpleNamespace(__cuda_array_interface__={**interface, **changes})


def test_elements_of_an_interface() -> None:
    found = read_interface(array(), 0)
    assert (found.address, found.size, found.shape, found.kind) == (4096, 48, (3, 4), vd.float32)
    assert (found.is_read_only, found.stream) == (False, 7)
    assert read_interface(array(data=(0, True), shape=(0, 4)), 0).is_read_only
    for shape, strides in (((3, 4), (16, 4)), ((3, 1), (4, 400)), ((0, 4), (1, 1)), ((), ())):
        assert read_interface(array(shape=shape, strides=strides), 0).shape == shape


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"mask": array()}, "mask"),
        ({"strides": (32, 4)}, "C order"),
        ({"strides": (4, 12)}, "C order"),
        ({"typestr": "<M8[s]"}, "obj"),
        ({"typestr": ">f4"}, "obj"),
    ],
)
def test_interfaces_that_no_buffer_has(changes: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        read_interface(array(**changes), 0)


def test_objects_without_an_interface() -> None:
    with pytest.raises(TypeError, match="__cuda_array_interface__"):
        read_interface([1], 0)
    with pytest.raises(ValueError, match="lacks data"):
        read_interface(SimpleNamespace(__cuda_array_interface__={"shape": (), "typestr": "<f4"}), 0)


def test_streams_as_libraries_name_them() -> None:
    named = (SimpleNamespace(cuda_stream=5), SimpleNamespace(ptr=5), SimpleNamespace(handle=5), 5)
    assert {parse_stream(each) for each in named} == {5}
    assert (parse_stream(None), parse_stream(0), parse_stream(-1), parse_stream(2)) == (1, 1, None, 2)
    assert parse_dlpack_stream(None) == 1
    for wrong, error in ((0, ValueError), (-2, ValueError), ("a", TypeError)):
        with pytest.raises(error, match="stream"):
            parse_dlpack_stream(wrong)
