"""Results of tasks: computed and checked in the thread and the time of their task.

Arrays are lazy, and the device runs behind the host. Dask, however, takes what a task returns for its
result: it measures it, sends it to other processes, and blames the task for its errors. So each task that
returns Arrays computes them, waits for the device, and raises the errors that the device has found. `wrap`
changes functions of Dask for that.
"""

import functools
import sys
from collections.abc import Callable, Iterator
from typing import Any

from vkdispatch.base.process import RunningTask

_CONTAINERS = (list, tuple, set, frozenset)


def wrap(holder: Any, name: str) -> Callable[[Callable[..., Any]], None]:
    """Replace a function of Dask by the decorated one, which gets it before its arguments."""

    def replace(function: Callable[..., Any]) -> None:
        original = getattr(holder, name)

        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> Any:
            return function(original, *args, **kwargs)

        setattr(holder, name, call)

    return replace


def finish_result(result: Any) -> Any:
    """Return the result of a task, whose Arrays and Buffers are computed and checked.

    Parameters
    ----------
    result
        Anything. Arrays and Buffers are found in it, and in lists, tuples, sets and dicts. A map called with
        its arguments becomes a Buffer.

    Raises
    ------
    VkDispatchError, MemoryError
        An Array could not be computed.
    """
    result = evaluate_result(result)
    for context, memory in _list_memory(result):
        check_memory(context, memory)
    return result


def check_memory(context: Any, memory: Any) -> None:
    """Wait until the memory of a buffer is written on each queue, and raise what the device has found."""
    for queue in range(context.queue_count):
        memory.check(queue)
        context._native.wait_until(memory.last_write(queue), None, True)
        memory.check(queue)


def evaluate_result(result: Any) -> Any:
    """Return the result of a task, whose Arrays and Buffers are given to the device to compute.

    Raises as `finish_result`, but not what the device finds later.
    """
    module = sys.modules.get("vkdispatch.shader.map")
    if module is not None and isinstance(result, module.MappedArray):
        from vkdispatch.base.buffer import asbuffer

        result = asbuffer(result)
    for _ in _list_memory(result):
        pass
    return result


def find_arrays(value: Any) -> Iterator[Any]:
    """Yield the Arrays and Buffers in a value: itself, or what is in lists, tuples, sets and dicts."""
    # a task that has made one has loaded its module
    homes = ("vkdispatch.numpy.core.array", "Array"), ("vkdispatch.base.buffer", "Buffer")
    kinds = tuple(getattr(sys.modules[home], name) for home, name in homes if home in sys.modules)
    return _find(value, kinds)


def _find(value: Any, kinds: tuple[type, ...]) -> Iterator[Any]:
    if isinstance(value, kinds):
        yield value
    elif isinstance(value, (*_CONTAINERS, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _find(item, kinds)


def count_bytes(value: Any) -> int:
    """Return the bytes of device memory that the Arrays and Buffers in a value show."""
    return sum(
        array.mem_size * array.context.queue_count if hasattr(array, "mem_size") else array.nbytes
        for array in find_arrays(value)
    )


def _list_memory(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield context and memory of each Array, which is computed, and of each Buffer in a value."""
    for array in find_arrays(value):
        if hasattr(array, "mem_size"):
            array.require_alive()
            yield array.context, array._native
        else:
            storage = sys.modules["vkdispatch.numpy.core.array"].view_of(array).storage
            yield storage.context, storage.memory


class _Finished:
    """A task whose result is computed and checked."""

    __slots__ = ("task",)

    def __init__(self, task: Callable[..., Any]) -> None:
        self.task = task

    def __call__(self, data: Any) -> Any:
        with RunningTask():
            return finish_result(self.task(data))


def watch_local() -> None:
    """Have the schedulers of one machine finish the results of tasks: threads, processes, synchronous."""
    from dask import local

    @wrap(local, "execute_task")
    def execute_task(execute: Any, key: Any, task_info: Any, dumps: Any, loads: Any, *others: Any) -> Any:
        def load(info: Any) -> Any:
            task, data = loads(info)
            return _Finished(task), data

        return execute(key, task_info, dumps, load, *others)


def watch_workers() -> None:
    """Have the workers of `distributed` in this process finish the results of tasks."""
    from distributed import worker

    @wrap(worker, "_run_task_simple")
    def run_task(run: Any, task: Any, data: Any, *others: Any) -> Any:
        return run(_Finished(task), data, *others)
