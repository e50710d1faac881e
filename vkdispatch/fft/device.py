"""What plans ask about the device."""

from vkdispatch.base.context import get_context


def runs_on_cpu() -> bool:
    """Whether kernels run on a CPU: workgroup memory has no banks there, and barriers are dear."""
    return any(info.is_cpu() for info in get_context().device_infos)
