"""A cache of compiled programs: each context keeps the most recently used ones."""

import threading
from collections import OrderedDict
from weakref import WeakSet

from vkdispatch.base.context import Context, get_context
from vkdispatch.vkfft.program import Program, Request

MOST_PROGRAMS = 256

_Programs = OrderedDict[Request, Program]
_PROGRAMS = "vkfft.programs"
_contexts: "WeakSet[Context]" = WeakSet()
_lock = threading.RLock()


def find_program(request: Request) -> Program:
    """Return the program for a request in the current context. Raises the errors of `Program`."""
    context = get_context()
    with _lock:
        _contexts.add(context)
        programs = context._keep(_PROGRAMS, _Programs)
        program = programs.get(request)
        if program is None:
            program = programs[request] = Program(context, request)
            while len(programs) > MOST_PROGRAMS:
                programs.popitem(last=False)
        programs.move_to_end(request)
        return program


def clear_plan_cache() -> None:
    """Clear the cache. Queued and recorded work continues, and a `VkFFTPlan` keeps its programs.

    Examples
    --------
    >>> vd.vkfft.clear_plan_cache()
    """
    with _lock:
        for context in _contexts:
            context.kept.pop(_PROGRAMS, None)


def count_cached_programs() -> int:
    """Return the number of cached programs."""
    with _lock:
        return sum(len(context.kept.get(_PROGRAMS, ())) for context in _contexts)
