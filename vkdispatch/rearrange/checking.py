"""What several functions ask of their arguments."""

from typing import Any

from vkdispatch.arrays.operand import Operand
from vkdispatch.base.buffer import Buffer
from vkdispatch.base.errors import ArgumentValueError


def check_apart(target: Buffer[Any], array: Operand, name: str) -> None:
    """Raise ValueError where a result would overwrite what is still to be read."""
    if any(argument is target for argument in array.arguments):
        raise ArgumentValueError(f"out: {name} is read while out is written; give another buffer")
