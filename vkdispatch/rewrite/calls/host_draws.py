"""Random numbers and times of the host, which a kernel gets once: while it is traced."""

import time
import types
from collections.abc import Callable
from typing import Any

from vkdispatch.compiler.ir.location import warn

# Modules of the classes whose methods are functions such as random.random and np.random.rand.
_GENERATORS = frozenset(("random", "numpy.random.mtrand", "numpy.random._generator"))
_DRAWS_NONE = frozenset(("seed", "getstate", "setstate", "get_state", "set_state", "spawn"))
_METHODS = (types.MethodType, types.BuiltinMethodType)
_CLOCKS = (time.time, time.time_ns, time.monotonic, time.perf_counter, time.perf_counter_ns)


def is_host_draw(function: object) -> bool:
    """Whether a function returns something else at each call: a random number, or the time."""
    if not isinstance(function, _METHODS):
        return False
    if function in _CLOCKS:
        return True
    return type(function.__self__).__module__ in _GENERATORS and function.__name__ not in _DRAWS_NONE


def wrap_host_draw(function: Any) -> Callable[..., Any]:
    """Wrap such a function, so that calls in a kernel warn."""
    is_clock = function in _CLOCKS
    advice = "" if is_clock else "; vc.random.Philox(seed, sequence=i) draws one for each"

    def draw(*args: Any, **kwargs: Any) -> Any:
        warn(
            f"{function.__name__}() runs once, while Python traces the kernel: all invocations and all calls "
            f"get this {'time' if is_clock else 'number'}{advice}. If one is meant for all, pass it as an "
            "argument"
        )
        return function(*args, **kwargs)

    return draw
