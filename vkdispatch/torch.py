"""Kernels as operators of PyTorch: `vd.torch.kernel_op`."""

import re
from collections.abc import Callable
from typing import Any

from vkdispatch.base.buffer import Buffer
from vkdispatch.base.buffers.foreign import from_dlpack, share_argument
from vkdispatch.base.context import get_context
from vkdispatch.base.dtype import is_integer_dtype, is_scalar
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, SharingError, UnsupportedError
from vkdispatch.base.sharing.cuda import end_visits
from vkdispatch.shader.arguments.parameters import Parameter
from vkdispatch.shader.arguments.slots import BufferSlot
from vkdispatch.shader.shader_function import ShaderFunction

__all__ = ["kernel_op"]


def kernel_op(kernel: ShaderFunction, name: str | None = None) -> Callable[..., None]:
    """Return a custom PyTorch operator that runs a kernel on tensors and works with `torch.compile`.

    Buffers of the kernel become tensors, and values become floats and ints. The operator changes the tensors
    that the kernel writes, and returns None. Tensors on the host of a CPU driver, and those of
    `vd.cuda.torch_pool()`, are used in place. Others are copied on the device before the kernel runs, and
    back after it if the kernel writes them. Kernels have no derivatives: tensors that require a gradient
    raise ValueError, also in `torch.compile`. Pass `x.detach()`, and define the derivative with a
    `torch.autograd.Function`.

    Parameters
    ----------
    kernel
        A kernel whose arguments are buffers and numbers.
    name
        "namespace::name" of the operator. None means "vkdispatch::" and the kernel's name.

    Raises
    ------
    TypeError
        `kernel` is not a kernel.
    NotImplementedError
        The kernel has images, structures or vectors as parameters.
    ImportError
        PyTorch is not installed.
    """
    import torch

    if not isinstance(kernel, ShaderFunction):
        raise ArgumentTypeError(f"kernel: expected a kernel, got {type(kernel).__name__}")
    parameters = kernel._kernel.parameters
    arguments = [_declare(parameter, place) for place, parameter in enumerate(parameters)]
    written = tuple(place for place, parameter in enumerate(parameters) if _is_written(parameter))
    names = [parameters[place].name for place in written]

    def run(*values: Any) -> None:
        _refuse_gradients(kernel, values)
        _run(kernel, values, written)

    def run_fake(*values: Any) -> None:
        _refuse_gradients(kernel, values)

    title = name or "vkdispatch::" + re.sub(r"\W", "_", kernel._kernel.name)
    schema = f"({', '.join(arguments)}) -> ()"
    operator: Any = torch.library.custom_op(title, run, mutates_args=names, schema=schema)
    operator.register_fake(run_fake)
    result: Callable[..., None] = operator
    return result


def _is_written(parameter: Parameter) -> bool:
    slot = parameter.slots[0]
    return isinstance(slot, BufferSlot) and slot.writes


def _declare(parameter: Parameter, place: int) -> str:
    """Return an argument as PyTorch's schemas write it."""
    slot = parameter.slots[0]
    if isinstance(slot, BufferSlot):
        return f"Tensor(a{place}!) {parameter.name}" if slot.writes else f"Tensor {parameter.name}"
    kind = getattr(slot, "kind", None)
    if len(parameter.slots) > 1 or parameter.fields is not None or kind is None or not is_scalar(kind):
        raise UnsupportedError(f"kernel: operators accept tensors and numbers; {parameter.name!r} is neither")
    default = "" if parameter.default is None else f"={parameter.default}"
    return f"{'int' if is_integer_dtype(kind) else 'float'} {parameter.name}{default}"


def _name_argument(kernel: ShaderFunction, place: int) -> str:
    return f"{kernel._kernel.who}: argument {kernel._kernel.names[place]!r}"


def _refuse_gradients(kernel: ShaderFunction, values: tuple[Any, ...]) -> None:
    """Raise ValueError if gradients are to flow through a kernel: PyTorch would leave it out of them."""
    for place, value in enumerate(values):
        if getattr(value, "requires_grad", False):
            raise ArgumentValueError(
                f"{_name_argument(kernel, place)}: the tensor requires a gradient, which operators of "
                "kernels do not compute; pass x.detach()"
            )


def _run(kernel: ShaderFunction, values: tuple[Any, ...], written: tuple[int, ...]) -> None:
    """Call a kernel with tensors: in place, or by copies."""
    buffers: list[Any] = list(values)
    copies: dict[int, Buffer[Any]] = {}
    for place, value in enumerate(values):
        if not hasattr(type(value), "__dlpack__"):
            continue
        known = next((each for each in range(place) if values[each] is value), None)
        if known is not None:
            buffers[place] = buffers[known]
            continue
        try:
            buffers[place] = share_argument(value, _name_argument(kernel, place))
        except SharingError:
            copies[place] = buffers[place] = from_dlpack(value.contiguous(), copy=True)
    kernel(*buffers)
    for place in written:
        if place in copies:
            values[place].copy_(_as_tensor(copies[place], values[place]))
    end_visits(get_context())


def _as_tensor(buffer: Buffer[Any], like: Any) -> Any:
    """Return a tensor with the elements of a buffer, in place where that is possible."""
    import torch

    try:
        found = torch.from_dlpack(buffer)
    except BufferError:
        found = torch.from_numpy(buffer.read(0))
    return found.reshape(like.shape)
