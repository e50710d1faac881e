"""The other process of `test_travel.py`: it calls functions of this file with pickled objects."""

from __future__ import annotations

import gc
import pickle
import struct
import sys
import weakref
from typing import Any

import cloudpickle
import numpy as np

import vkdispatch as vd
import vkdispatch.numpy as vnp
from vkdispatch.shader.launchable import LaunchableKernel


def run_kernel(kernel: Any, data: Any, *arguments: Any) -> Any:
    buffer = vd.asbuffer(data)
    kernel(buffer, *arguments)
    return buffer.read(0)


def run_on_buffer(kernel: Any, buffer: Any) -> Any:
    kernel(buffer)
    return buffer.read(0)


def run_function(function: Any, *arrays: Any) -> Any:
    return function(*(vd.asbuffer(each) for each in arrays)).read(0)


def run_on_array(function: Any, data: Any) -> Any:
    return np.asarray(function(vnp.asarray(data)))


def run_method(instance: Any, name: str, data: Any) -> Any:
    buffer = vd.asbuffer(data)
    getattr(instance, name)(buffer)
    return buffer.read(0)


def run_through_class(instance: Any, name: str, data: Any) -> Any:
    buffer = vd.asbuffer(data)
    getattr(type(instance), name)(instance, buffer)
    return buffer.read(0)


def read(mapped: Any) -> Any:
    return mapped.read(0)


def call(function: Any, *arguments: Any) -> Any:
    return function(*arguments)


def count_compilations(kernel: Any, mapped: Any) -> list[int]:
    """Return how many kernels are compiled when pickles of a kernel and a map are loaded and run 30 times."""
    original = LaunchableKernel._compile
    compiled: list[str] = []
    counts = []

    def count(self: Any, *arguments: Any) -> Any:
        compiled.append(self.name)
        return original(self, *arguments)

    LaunchableKernel._compile = count  # type: ignore[method-assign]
    try:
        data = vd.asbuffer(np.arange(32, dtype=np.float32))
        for sent in (kernel, mapped):
            compiled.clear()
            for _ in range(30):
                item = pickle.loads(sent)
                result = item(data)
                if result is not None:
                    result.read(0)
                del item, result
                gc.collect()
            counts.append(len(compiled))
    finally:
        LaunchableKernel._compile = original  # type: ignore[method-assign]
    return counts


def is_same_after_two_ways(sent: bytes) -> bool:
    item = pickle.loads(sent)
    return pickle.loads(pickle.dumps(item)) is item and pickle.loads(sent) is item


def count_kept(sent: list[bytes]) -> int:
    """Return how many of the kernels of some pickles stay alive when nothing uses them."""
    references = [weakref.ref(pickle.loads(each)) for each in sent]
    gc.collect()
    return sum(reference() is not None for reference in references)


def tokenize(item: Any) -> str:
    from dask.base import tokenize

    token: str = tokenize(item)
    return token


def serve() -> None:
    """Answer calls (name of a function, pickle of its first arguments, others) until the input ends."""
    given, answers = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr
    while head := given.read(8):
        data = given.read(struct.unpack("<q", head)[0])
        try:
            name, sent, arguments = pickle.loads(data)
            answer: Any = True, globals()[name](*pickle.loads(sent), *arguments)
        except Exception as error:
            answer = False, (type(error).__name__, str(error))
        data = cloudpickle.dumps(answer)
        answers.write(struct.pack("<q", len(data)) + data)
        answers.flush()


if __name__ == "__main__":
    serve()
