"""Kernels as operators of PyTorch: `vd.torch.kernel_op`."""

import inspect
import math
import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from vkdispatch.base import errors
from vkdispatch.base.buffer import Buffer
from vkdispatch.base.buffers.foreign import copy_argument, share_argument
from vkdispatch.base.context import get_context
from vkdispatch.base.dtype import DType, is_integer_dtype, is_scalar
from vkdispatch.base.host_numpy import np
from vkdispatch.base.sharing.cuda_link import end_visits
from vkdispatch.shader.shader_function import ShaderFunction
from vkdispatch.shader.signature import BufferSlot, Parameter

__all__ = ["kernel_op"]

_MAX_WORK = 10_000  # steps, to find out whether two tensors share elements


def kernel_op(kernel: ShaderFunction, name: str | None = None) -> Callable[..., None]:
    """Return a custom PyTorch operator that runs a kernel on tensors and works with `torch.compile`.

    Buffers of the kernel become tensors, and values become floats and ints. Tensors for buffers of vectors or
    matrices have the components along the last axes. The operator changes the tensors that the kernel writes,
    and returns None. Tensors on the host of a CPU driver, and those of `vd.cuda.torch_pool()`, are used in
    place. Others are copied on the device before the kernel runs, and back after it if the kernel writes
    them. Kernels have no derivatives: tensors that require a gradient raise ValueError, also in
    `torch.compile`. Pass `x.detach()`, and define the derivative with a `torch.autograd.Function`.

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
    ValueError
        `name` is not a name of an operator.
    NotImplementedError
        The kernel has images, structures or vectors as parameters, or a default is infinite or NaN.
    ImportError
        PyTorch is not installed.
    """
    import torch

    errors.check_type("kernel", kernel, ShaderFunction, "a kernel")
    if name is not None and re.fullmatch(r"\w+(\.\w+)*::\w+", name) is None:
        raise errors.ArgumentValueError(f'name: expected "namespace::name", got {name!r}')
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
    options: dict[str, Any] = {}
    if "tags" in inspect.signature(torch.library.custom_op).parameters:
        # the host submits the kernel, and CUDA graphs would replay none; a sequence, as PyTorch 2.11 asks
        options["tags"] = (torch.Tag.cudagraph_unsafe,)
    operator: Any = torch.library.custom_op(title, run, mutates_args=names, schema=schema, **options)
    operator.register_fake(run_fake)
    for key in ("Conjugate", "Negative"):  # tensors whose elements PyTorch changes as it reads them: see _run
        operator._lib.impl(operator._name, torch.library.fallthrough_kernel, key)
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
        raise errors.UnsupportedError(
            f"kernel: operators accept tensors and numbers; {parameter.name!r} is neither"
        )
    default = "" if parameter.default is None else f"={parameter.default}"
    if isinstance(parameter.default, float) and not math.isfinite(parameter.default):
        raise errors.UnsupportedError(
            f"kernel: PyTorch has no default {parameter.default} for {parameter.name!r}; give the kernel none"
        )
    return f"{'int' if is_integer_dtype(kind) else 'float'} {parameter.name}{default}"


def _name_argument(kernel: ShaderFunction, place: int) -> str:
    return f"{kernel._kernel.who}: argument {kernel._kernel.names[place]!r}"


def _refuse_gradients(kernel: ShaderFunction, values: tuple[Any, ...]) -> None:
    """Raise ValueError if gradients are to flow through a kernel: PyTorch would leave it out of them."""
    for place, value in enumerate(values):
        if getattr(value, "requires_grad", False):
            raise errors.ArgumentValueError(
                f"{_name_argument(kernel, place)}: the tensor requires a gradient, which operators of "
                "kernels do not compute; pass x.detach()"
            )


def _run(kernel: ShaderFunction, values: tuple[Any, ...], written: tuple[int, ...]) -> None:
    """Call a kernel with tensors: in place, or by copies."""
    tensors = [place for place, value in enumerate(values) if hasattr(type(value), "__dlpack__")]
    buffers: list[Any] = list(values)
    copies: dict[int, Buffer[Any]] = {}
    for place in tensors:
        known = next(
            (other for other in tensors if other < place and _is_same(values[other], values[place])), None
        )
        if known is not None:
            buffers[place] = buffers[known]
            continue
        name = _name_argument(kernel, place)
        kind = _find_kind(kernel, place)
        try:
            buffers[place] = share_argument(values[place], name, kind)
        except errors.SharingError:
            copies[place] = buffers[place] = copy_argument(_resolve(values[place]), name, kind)
    _check_copies(kernel, values, tensors, written, copies)
    kernel(*buffers)
    for place in written:
        if place in copies:
            values[place].copy_(_as_tensor(copies[place], values[place]))
    end_visits(get_context())


def _find_kind(kernel: ShaderFunction, place: int) -> DType | None:
    slot = kernel._kernel.parameters[place].slots[0]
    return slot.kind if isinstance(slot, BufferSlot) else None


def _resolve(tensor: Any) -> Any:
    """Return a tensor with its elements one behind the other, as they are read."""
    return (
        tensor.resolve_conj().resolve_neg().contiguous() if str(tensor.layout) == "torch.strided" else tensor
    )


def _is_same(first: Any, second: Any) -> bool:
    """Whether two tensors are the same elements."""
    return first is second or (
        _describe(first) == _describe(second)
        and (first.is_conj(), first.is_neg()) == (second.is_conj(), second.is_neg())
    )


def _describe(tensor: Any) -> tuple[Any, ...]:
    if str(tensor.layout) != "torch.strided":
        return (id(tensor),)
    return tensor.device, tensor.dtype, tensor.data_ptr(), tensor.shape, tensor.stride()


def _check_copies(
    kernel: ShaderFunction,
    values: tuple[Any, ...],
    tensors: list[int],
    written: tuple[int, ...],
    copies: dict[int, Buffer[Any]],
) -> None:
    """Raise OverlapError if a copy would not show what the kernel writes to another tensor, or hide it."""
    for place in copies:
        for other in tensors:
            if (
                other != place
                and (place in written or other in written)
                and not _is_same(values[place], values[other])
                and _may_overlap(values[place], values[other])
            ):
                raise errors.OverlapError(
                    f"{_name_argument(kernel, place)}: the tensor has to be copied, and it shares elements "
                    f"with argument {kernel._kernel.names[other]!r}; the kernel writes one of them, so give "
                    "x.clone()"
                )


def _may_overlap(first: Any, second: Any) -> bool:
    if first.device != second.device or not (first.numel() and second.numel()):
        return False
    shown = []
    for tensor in (first, second):
        size = tensor.element_size()
        shape, strides = (*tensor.shape, size), (*(stride * size for stride in tensor.stride()), 1)
        interface = {
            "version": 3,
            "shape": shape,
            "strides": strides,
            "typestr": "|u1",
            "data": (tensor.data_ptr(), True),
        }
        shown.append(
            np.asarray(SimpleNamespace(__array_interface__=interface))
        )  # only its addresses are used
    shares_memory: Any = np.shares_memory
    try:
        return bool(shares_memory(*shown, max_work=_MAX_WORK))
    except np.exceptions.TooHardError:
        return True


def _as_tensor(buffer: Buffer[Any], like: Any) -> Any:
    """Return a tensor with the elements of a buffer, in place where that is possible."""
    import torch

    try:
        tensor = torch.from_dlpack(buffer)
    except BufferError:
        tensor = torch.from_numpy(buffer.read(0))
    return tensor.reshape(like.shape)
