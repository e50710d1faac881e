"""What kernels print: one text for each invocation, in the order of invocations."""

import re
from collections.abc import Sequence

from vkdispatch.interpreter.values import Array, spread

# C's length modifiers and unsigned conversions, which Python's % does not need or know
_LENGTH = re.compile(r"(%[-+ #0-9.]*)(?:hh|h|ll|l|L|z|j|t)?([a-zA-Z])")


def printed(format_text: str, args: Sequence[Array], rows: int) -> list[str]:
    """Format the values of each invocation by a C format."""
    python = _LENGTH.sub(lambda match: match[1] + ("d" if match[2] == "u" else match[2]), format_text)
    columns = [spread(arg, rows).tolist() for arg in args]
    if not columns:
        return [python % ()] * rows
    return [python % tuple(values) for values in zip(*columns, strict=True)]
