"""The programs made so far: each context keeps its latest ones."""

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


def program_for(request: Request) -> Program:
    """Return the program of a request in the current context. Raises as `Program`."""
    context = get_context()
    with _lock:
        _contexts.add(context)
        programs = context._keep(_PROGRAMS, _Programs)
        program = programs.get(request)
        if program is None or program.poisoned:
            program = programs[request] = Program(context, request)
            while len(programs) > MOST_PROGRAMS:
                programs.popitem(last=False)
        programs.move_to_end(request)
        return program


def clear_plan_cache() -> None:
    """Forget every plan. Work that was queued or recorded goes on, and a `VkFFTPlan` keeps what it has."""
    with _lock:
        for context in _contexts:
            context.kept.pop(_PROGRAMS, None)


def cached_programs() -> int:
    """Return how many plans are kept."""
    with _lock:
        return sum(len(context.kept.get(_PROGRAMS, ())) for context in _contexts)
