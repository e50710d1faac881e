"""Warnings about launches whose size does not fit the ids that the kernel reads."""

import re

from vkdispatch.analyses.contents import contents
from vkdispatch.codegen.trace.kernel_warnings import warn
from vkdispatch.ir import Builtin, Expr, Kernel, Op, Storage
from vkdispatch.ir.location import Loc


def check_dimensions(kernel: Kernel, exec_size: object) -> None:
    """Warn if `exec_size` has one number and the kernel reads y, or has two and the kernel reads x only."""
    if not isinstance(exec_size, str):
        return
    text = exec_size.replace(" ", "")
    name = text.partition(".")[0]
    used = _read_axes(kernel)
    if re.fullmatch(r"\w+\.(size|shape\[\d\])", text):
        if "y" in used:
            warn(
                f"exec_size {exec_size!r} counts along x only, so y is 0 in all invocations. Write exec_size "
                f"'{name}.shape[::-1]' for {name}[gid.y, gid.x], or index all elements by {name}[gid.x]",
                used["y"],
            )
    elif text == f"{name}.shape[::-1]" and set(used) == {"x"}:
        warn(
            f"exec_size {exec_size!r} counts along x and y, and the kernel reads x only, so all rows of "
            f"invocations do the same. Write exec_size '{name}.size', or {name}[gid.y, gid.x]",
            used["x"],
        )


def _read_axes(kernel: Kernel) -> dict[str, Loc | None]:
    """Return the components of the global id that a kernel reads, with places; none if it reads other ids."""
    axes: dict[str, Loc | None] = {}
    for expr in contents(kernel).expressions:
        if expr.op is Op.COMPONENT and expr.args[0].value is Builtin.GLOBAL_INVOCATION_ID:
            axes.setdefault(str(expr.value), expr.loc)
            continue
        if any(arg.value is Builtin.GLOBAL_INVOCATION_ID for arg in expr.args):
            return {}
        if expr.op is Op.BUILTIN and expr.value is not Builtin.GLOBAL_INVOCATION_ID:
            return {}
    return axes


def check_orientation(kernel: Kernel, exec_size: object) -> None:
    """Warn if `exec_size` is the shape of a matrix, and the kernel indexes the matrix the other way round."""
    if not isinstance(exec_size, str):
        return
    text = exec_size.replace(" ", "")
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


def _letter_of(entry: Expr) -> str:
    """Return "x" for the x of a global id, or a conversion of it; "" for others."""
    while entry.op is Op.CONSTRUCT and len(entry.args) == 1:
        (entry,) = entry.args
    is_id = entry.op is Op.COMPONENT and entry.args[0].value is Builtin.GLOBAL_INVOCATION_ID
    return str(entry.value) if is_id else ""
