"""Devices of arrays: each is a context of `vd.make_context`."""

from typing import Any

from vkdispatch.base.context import Context, get_context, is_current
from vkdispatch.base.errors import ArgumentTypeError
from vkdispatch.numpy.core.expressions import Node
from vkdispatch.numpy.core.memory import View

__all__ = ["Device"]


class Device:
    """Where arrays lie. Devices are equal if they are the same context.

    Attributes
    ----------
    context
        The `vd.Context`.
    """

    __slots__ = ("context",)

    def __init__(self, context: Context) -> None:
        self.context = context

    @property
    def is_current(self) -> bool:
        """Whether the context is the current one."""
        return is_current(self.context)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and other.context is self.context

    def __hash__(self) -> int:
        return hash(id(self.context))

    def __repr__(self) -> str:
        return f"<device {' and '.join(info.device_name for info in self.context.device_infos)!r}>"


def parse_device(device: Any) -> Device:
    """Return the device that an argument stands for: None is the current context's.

    Raises TypeError if it is neither a device nor a context.
    """
    if device is None:
        return Device(get_context())
    if isinstance(device, Device):
        return device
    if isinstance(device, Context):
        return Device(device)
    raise ArgumentTypeError(
        f"device: expected a device such as x.device, a vd.Context or None, got {device!r}"
    )


def _context_of(value: Any) -> Context | None:
    if type(value) is Node and value.result is not None:
        value = value.result
    if type(value) is View:
        return value.storage.context  # type: ignore[no-any-return]
    if type(value) is Node:
        for operand in value.operands:
            context = _context_of(operand)
            if context is not None:
                return context
    return None


def device_of(value: Any) -> Device:
    """Return the device of an expression or view."""
    return Device(_context_of(value) or get_context())
