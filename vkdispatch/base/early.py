"""Vulkan loaded on another thread, while the program still imports what will use it."""

import os
import threading
from contextlib import suppress

import vkdispatch_native as native


def debug_requested() -> bool:
    """Whether the environment asks for the validation layer."""
    return os.environ.get("VKDISPATCH_DEBUG", "").strip().lower() in ("1", "true", "yes", "on")


def load_vulkan() -> None:
    """Begin to load Vulkan, which takes longer than all our imports; who needs it then waits for the rest.

    Where that fails, the next who loads it hears of it. A process ends, or forks, after it.
    """
    if native.is_initialized() or os.environ.get("VKDISPATCH_BACKEND", "vulkan") != "vulkan":
        return
    loader = threading.Thread(target=_load, name="vkdispatch loads Vulkan")
    loader.start()
    os.register_at_fork(before=loader.join)


def _load() -> None:
    with suppress(RuntimeError):
        native.initialize(debug_requested())
