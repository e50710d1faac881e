"""Random numbers in bulk: the same streams on every device, and, of Philox4x64, the same as NumPy's."""

from vkdispatch.random.generator import Generator

__all__ = ["Generator"]


def __dir__() -> list[str]:
    return sorted({*(name for name in globals() if name.startswith("__")), *__all__})
