"""Random numbers in bulk: the same streams on every device, and, of Philox4x64, the same as NumPy's."""

from vkdispatch.random.generator import Generator

__all__ = ["Generator"]
