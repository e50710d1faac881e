"""What plans ask about the device."""

from vkdispatch.base.context import get_context


def runs_on_cpu() -> bool:
    """Whether kernels run on a CPU: workgroup memory has no banks there, and barriers are dear."""
    return get_context().is_cpu()
