"""Results of tasks: computed and checked in the thread and the time of their task.

Arrays are lazy, and the device runs behind the host. Dask, however, takes what a task returns for its
result: it measures it, sends it to other processes, and blames the task for its errors. So each task that
returns Arrays computes them, waits for the device, and raises the errors that the device has found.
"""

import functools
import sys
from collections.abc import Callable
from typing import Any

from vkdispatch.base.process.tasks import RunningTask

_CONTAINERS = (list, tuple, set)


def finish_result(result: Any) -> Any:
    """Return the result of a task, whose Arrays are computed and checked.

    Parameters
    ----------
    result
        Anything. Arrays are found in it, and in lists, tuples, sets and dicts.

    Raises
    ------
    VkDispatchError, MemoryError
        An Array could not be computed.
    """
    # a task that has made an Array has loaded its module
    module = sys.modules.get("vkdispatch.numpy.core.array")
    if module is not None:
        _finish(result, module)
    return result


def _finish(result: Any, module: Any) -> None:
    if isinstance(result, module.Array):
        _wait_for(module.view_of(result))
    elif isinstance(result, _CONTAINERS):
        for each in result:
            _finish(each, module)
    elif isinstance(result, dict):
        for each in result.values():
            _finish(each, module)


def _wait_for(view: Any) -> None:
    """Wait until the device has written a view, and raise its errors."""
    memory = view.storage.memory
    memory.check(0)
    view.storage.context._native.wait_until(memory.last_write(0), None, True)
    memory.check(0)


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

    execute = local.execute_task

    @functools.wraps(execute)
    def execute_task(key: Any, task_info: Any, dumps: Any, loads: Any, *others: Any) -> Any:
        def load(info: Any) -> Any:
            task, data = loads(info)
            return _Finished(task), data

        return execute(key, task_info, dumps, load, *others)

    local.execute_task = execute_task


def watch_workers() -> None:
    """Have the workers of `distributed` in this process finish the results of tasks."""
    from distributed import worker

    run = worker._run_task_simple

    @functools.wraps(run)
    def run_task(task: Any, data: Any, *others: Any) -> Any:
        return run(_Finished(task), data, *others)

    worker._run_task_simple = run_task
