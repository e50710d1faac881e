"""The programs made so far: the latest ones of a context are kept."""

import threading
from collections import OrderedDict

from vkdispatch.base.context import get_context
from vkdispatch.vkfft.program import Program, Request

MOST_PROGRAMS = 256

_programs: OrderedDict[tuple[int, Request], Program] = OrderedDict()
_lock = threading.RLock()


def program_for(request: Request) -> Program:
    """Return the program of a request in the current context. Raises as `Program`."""
    context = get_context()
    key = (context._handle, request)
    with _lock:
        program = _programs.get(key)
        if program is None:
            _forget_closed_contexts()
            program = _programs[key] = Program(context, request)
            while len(_programs) > MOST_PROGRAMS:
                _programs.popitem(last=False)
        _programs.move_to_end(key)
        return program


def clear_plan_cache() -> None:
    """Forget every plan. Work that was queued or recorded goes on, and a `VkFFTPlan` keeps what it has."""
    with _lock:
        _programs.clear()


def cached_programs() -> int:
    """Return how many plans are kept."""
    return len(_programs)


def _forget_closed_contexts() -> None:
    gone = [key for key, program in _programs.items() if not program.context.usable]
    for key in gone:
        del _programs[key]
