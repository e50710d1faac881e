"""Results of tasks: the arrays in them, evaluated and checked."""

from collections.abc import Iterator
from typing import Any

from vkdispatch.arrays.deferred_errors import close_findings
from vkdispatch.base.buffer import Buffer, asbuffer
from vkdispatch.base.context import Context, queue_wait_idle
from vkdispatch.base.contexts.current import find_current_context
from vkdispatch.numpy.core.array import Array, view_of
from vkdispatch.shader.map import MappedArray


def find_arrays(value: object) -> Iterator["Array | Buffer[Any]"]:
    """Yield the arrays and buffers in a value: itself, or what is in lists, tuples, sets and dicts."""
    if isinstance(value, (Array, Buffer)):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from find_arrays(each)
    elif isinstance(value, (list, tuple, set, frozenset)):
        for each in value:
            yield from find_arrays(each)


def count_bytes(value: object) -> int:
    """Return the bytes of device memory that the arrays and buffers in a value show."""
    return sum(
        each.nbytes if isinstance(each, Array) else each.mem_size * each.context.queue_count
        for each in find_arrays(value)
    )


def evaluate(value: Any) -> Any:
    """Return a value with everything in it computed, or at least given to the device.

    Raises
    ------
    VkDispatchError
        Something cannot be computed. The message names the operation and its line.
    """
    if isinstance(value, MappedArray):
        value = asbuffer(value)
    for each in find_arrays(value):
        if isinstance(each, Array):
            view_of(each)
    return value


def settle(value: Any) -> Any:
    """Return a value with everything in it computed, after the device has done all work given to it.

    Raises
    ------
    VkDispatchError
        As `evaluate`, or the device has found an error, which is raised nowhere else then.
    """
    try:
        value = evaluate(value)
        for context in _list_contexts(value):
            queue_wait_idle(context=context)
    except Exception:
        forget_errors()
        raise
    return value


def forget_errors() -> None:
    """Have the errors that this thread has got from the device raised in no other one."""
    context = find_current_context()
    if context is not None:
        close_findings(context)


def _list_contexts(value: object) -> list[Context]:
    """Return the current context, if there is one, and those of the arrays in a value."""
    found: dict[int, Context] = {}
    current = find_current_context()
    if current is not None:
        found[id(current)] = current
    for each in find_arrays(value):
        context: Context = each.context if isinstance(each, Buffer) else view_of(each).storage.context
        found[id(context)] = context
    return list(found.values())
