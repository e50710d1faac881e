"""A warning about launches whose size counts rows along x where the kernel counts columns, or the reverse."""

import re

from vkdispatch.analyses.contents import contents
from vkdispatch.codegen.trace.kernel_warnings import warn
from vkdispatch.ir import Builtin, Expr, Kernel, Op, Storage
from vkdispatch.ir.location import Loc


def check_orientation(kernel: Kernel, exec_size: object) -> None:
    """Warn if `exec_size` is the shape of a matrix, and the kernel indexes the matrix the other way round."""
    if not isinstance(exec_size, str):
        return
    text = exec_size.replace(" ", "")
    if re.fullmatch(r"\w+\.(size|shape\[\d\])", text):
        _check_single_axis(kernel, exec_size)
        return
    name = text.lstrip("(").partition(".")[0]
    columns = text in (f"{name}.shape[::-1]", f"({name}.shape[1],{name}.shape[0])")
    if not columns and text != f"{name}.shape":
        return
    wrong, right = (("x", "y"), ("y", "x")) if columns else (("y", "x"), ("x", "y"))
    orders: dict[tuple[str, ...], Loc | None] = {}
    for expr in contents(kernel).expressions:
        if isinstance(expr.value, Storage) and expr.value.label == name and len(expr.axes) == 2:
            orders.setdefault(tuple(_letter_of(entry) for entry, _ in expr.axes), expr.loc)
    if wrong not in orders or right in orders:
        return
    size, other = (
        (f"{name}.shape[::-1]", f"{name}.shape") if columns else (f"{name}.shape", f"{name}.shape[::-1]")
    )
    first, second = wrong
    warn(
        f"exec_size {size!r} and {name}[gid.{first}, gid.{second}] do not go together, unless the matrix is "
        f"square: the first number of a size counts along x. Write exec_size {other!r}, or "
        f"{name}[gid.{second}, gid.{first}]",
        orders[wrong],
    )


def _check_single_axis(kernel: Kernel, exec_size: str) -> None:
    """Warn if invocations are counted along x alone, and an array is indexed by their y."""
    for expr in contents(kernel).expressions:
        letters = [_letter_of(entry) for entry, _ in expr.axes]
        if isinstance(expr.value, Storage) and "y" in letters and "x" in letters:
            name = expr.value.label
            warn(
                f"exec_size {exec_size!r} counts invocations along x alone, so that gid.y is 0: for a matrix "
                f"write exec_size '{name}.shape[::-1]' and {name}[gid.y, gid.x]",
                expr.loc,
            )
            return


def _letter_of(entry: Expr) -> str:
    """Return "x" for the x of a global id, or a conversion of it; "" for others."""
    while entry.op is Op.CONSTRUCT and len(entry.args) == 1:
        (entry,) = entry.args
    is_id = entry.op is Op.COMPONENT and entry.args[0].value is Builtin.GLOBAL_INVOCATION_ID
    return str(entry.value) if is_id else ""
