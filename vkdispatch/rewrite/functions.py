"""Entry points: the functions to call to trace a kernel, or a function as a part of a kernel."""

import functools
import inspect
from collections.abc import Callable
from typing import Any

from vkdispatch.base.errors import ArgumentTypeError, UsageError
from vkdispatch.codegen.trace.current import current, is_tracing
from vkdispatch.compiler.ir.location import located
from vkdispatch.rewrite.callees import choose_callee
from vkdispatch.rewrite.state.signals import EndlessRecursionError
from vkdispatch.rewrite.state.tracer import Tracer, last_place, require_tracer


def prepare_kernel(function: Callable[..., Any], rewrite: bool) -> Callable[..., Any]:
    """Return the function to call to trace a kernel in the current recording.

    Parameters
    ----------
    function
        The user's function.
    rewrite
        Whether plain Python control flow may become GPU control flow.
    """
    flags = getattr(getattr(function, "__code__", None), "co_flags", 0)
    if flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        name = getattr(function, "__name__", "kernel")
        raise ArgumentTypeError(
            f"{name}: a kernel is a plain function, not a generator and not async: it would not run"
        )
    recorder = current()
    active = Tracer(recorder, enabled=rewrite)
    recorder.extension = active
    if not rewrite:
        recorder.aliasing = True
        recorder.truth_notes[None] = "the kernel was declared with rewrite=False"
        return function
    inner = choose_callee(function)
    if inner is not function:
        # a rewritten lambda makes no frame, so the next frame is not the kernel's
        active.kernel_next = getattr(inner, "__name__", "<lambda>") != "<lambda>"
    return _wrap_kernel(inner, active)


def _wrap_kernel(function: Callable[..., Any], active: Tracer) -> Callable[..., Any]:
    @functools.wraps(function)
    def run(*args: Any) -> Any:
        __tracebackhide__ = True  # notebooks and pytest leave this frame out
        try:
            result = function(*args)
        except EndlessRecursionError as error:
            raise UsageError(str(error)) from None
        except RecursionError as error:
            raise located(
                UsageError,
                "the functions of this kernel call one another too deeply while it is traced, or its "
                "conditions nest too deeply for Python; a recursion must end by a condition that Python "
                "knows, not by a value of the GPU: use a loop; split a chain of more than 200 `elif`",
                last_place(error.__traceback__, recursive=True),
            ) from None
        if active.abandoned is not None:
            raise located(
                UsageError,
                "an exception left a block that the GPU decides about, and was caught outside of it; Python "
                "raises exceptions while it traces: catch it inside, or raise it where Python decides",
                active.abandoned,
            )
        return result

    return run


def prepare_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function to call to trace a function as part of the current kernel."""
    return choose_callee(function) if is_tracing() and require_tracer().enabled else function
