"""What waits to be computed: computing it now, and saying what will run."""

import math
from typing import Any

from vkdispatch.base.errors import ArgumentTypeError, describe_place
from vkdispatch.execution_pipeline.timings import format_bytes as _size
from vkdispatch.numpy.core.array import Array, compute, describe, value_of
from vkdispatch.numpy.core.expressions import INDEX, Node, is_same_view, lock, shown_view
from vkdispatch.numpy.core.memory import Kind, Shape, View, stretch


def eval(*arrays: Any) -> None:
    """Compute arrays now, instead of when their values are needed.

    Parameters
    ----------
    *arrays
        Arrays, and lists and tuples of them. What is computed already stays as it is.

    Raises
    ------
    TypeError
        Something else is given.
    UsageError
        A graph records the calls of this thread.

    Examples
    --------
    >>> x = vnp.arange(3) + 1
    >>> vnp.eval(x)
    >>> x
    Array([1, 2, 3], dtype=int64)
    """
    for array in arrays:
        if isinstance(array, (list, tuple)):
            eval(*array)
        elif isinstance(array, Array):
            compute(array)
        else:
            raise ArgumentTypeError(f"arrays: expected Arrays, got {describe(array)}")


class _Kernel:
    """A kernel that will run: what it computes, and the lines of its text."""

    def __init__(self, root: Node, number: int) -> None:
        self.root = root
        self.number = number
        self.views: list[tuple[View, str]] = []
        self.names: dict[int, str] = {}
        self.inputs: list[str] = []
        self.steps: list[tuple[str, str]] = []
        self.read = 0


def explain(x: Any) -> str:
    """Return a text that says what will run when the values of an array are needed. Nothing runs now.

    It lists the kernels, the arrays that each reads, its operations and their lines in the program, and the
    bytes that it reads and writes: each element of memory counts once. A function such as `sum` that takes
    the array may compute the last kernel where it reads the elements, so that these are never written.

    Raises
    ------
    TypeError
        `x` is not an Array.

    Examples
    --------
    >>> x = vnp.sqrt(vnp.arange(4, dtype=vnp.float32)) + 1
    >>> print(vnp.explain(x).splitlines()[0])
    1 kernel: 0 B read, 16 B written
    """
    if not isinstance(x, Array):
        raise ArgumentTypeError(f"x: expected an Array of vkdispatch.numpy, got {describe(x)}")
    with lock:
        value = value_of(x)
        if type(value) is not Node:
            return f"nothing will run: {x.dtype} {x.shape} is computed"
        kernels: list[_Kernel] = []
        _plan(value, kernels)
    read = sum(each.read for each in kernels)
    written = sum(_bytes(each.root.dtype, each.root.shape) for each in kernels)
    count = f"{len(kernels)} kernel{'s' * (len(kernels) != 1)}"
    lines = [f"{count}: {_size(read)} read, {_size(written)} written"]
    for kernel in kernels:
        result = f"{kernel.root.dtype} {kernel.root.shape}"
        sizes = f"{_size(kernel.read)} read, {_size(_bytes(kernel.root.dtype, kernel.root.shape))} written"
        lines.append(f"kernel {kernel.number}: {result}, {sizes}")
        lines += [f"    {text}" for text in kernel.inputs]
        width = max(len(text) for text, _ in kernel.steps)
        lines += [f"    {text.ljust(width)}  {place}" for text, place in kernel.steps]
    return "\n".join(lines)


def _plan(root: Node, kernels: list[_Kernel]) -> _Kernel:
    """Add the kernel that computes an expression behind those that it needs."""
    for known in kernels:
        if known.root is root:
            return known
    kernel = _Kernel(root, 0)
    _add(root, kernel, kernels)
    kernel.number = len(kernels) + 1
    kernels.append(kernel)
    return kernel


def _add(value: Any, kernel: _Kernel, kernels: list[_Kernel]) -> str:
    """Add the steps of a value to a kernel, and return its name there."""
    known = kernel.names.get(id(value))
    if known is not None:
        return known
    view = value.result if type(value) is Node else value
    if view is None and value.shape != kernel.root.shape:
        view = shown_view(value)
    if type(view) is View:
        name = _add_view(view, kernel)
    elif type(value) is Node and value.shape != kernel.root.shape:
        other = _plan(value, kernels)
        name = f"the result of kernel {other.number}"
        kernel.read += _bytes(value.dtype, value.shape)
    elif type(value) is Node:
        operands = [
            "index" if each is INDEX else _add(each, kernel, kernels) if _is_value(each) else repr(each)
            for each in value.operands
        ]
        name = f"v{len(kernel.steps)}"
        text = f"{name} = {value.loop.operation.name}({', '.join(operands)})"
        kinds = {operand.dtype for operand in value.operands if _is_value(operand)}
        if kinds != {value.dtype}:
            text += f": {value.dtype}"
        kernel.steps.append((text, describe_place(*value.line)))
    kernel.names[id(value)] = name
    return name


def _is_value(operand: Any) -> bool:
    return type(operand) is Node or type(operand) is View


def _add_view(view: View, kernel: _Kernel) -> str:
    for other, name in kernel.views:
        if is_same_view(other, view):
            return name
    name = f"x{len(kernel.views)}"
    kernel.views.append((view, name))
    strides = stretch(kernel.root.shape, view.shape, view.strides)
    shape = tuple(length for length, step in zip(kernel.root.shape, strides, strict=True) if step)
    kernel.read += _bytes(view.dtype, shape)
    layout = "" if view.is_contiguous else f", strides {view.strides}"
    kernel.inputs.append(f"{name}: {view.dtype} {view.shape}{layout}")
    return name


def _bytes(dtype: Kind, shape: Shape) -> int:
    return dtype.itemsize * math.prod(shape)
