"""Printed texts of kernels, one for each invocation."""

import numpy as np

from vkdispatch.interpreter.values import Array, broadcast_rows
from vkdispatch.ir import Print
from vkdispatch.passes.messages import host_value, message_text


def format_values(statement: Print, values: list[Array], rows: int) -> list[str]:
    """Format the values that each invocation prints."""
    columns = [np.asarray(broadcast_rows(value, rows)).reshape(rows, -1) for value in values]
    texts: list[str] = []
    for row in range(rows):
        shown = [
            host_value(arg.dtype, column[row]) for arg, column in zip(statement.args, columns, strict=True)
        ]
        texts.append(message_text(statement.format, statement.style, shown))
    return texts
