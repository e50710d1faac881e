"""What plans ask about the device."""

from vkdispatch.arrays.facts import device_facts


def runs_on_cpu() -> bool:
    """Whether kernels run on a CPU: workgroup memory has no banks there, and barriers are dear."""
    return device_facts().is_cpu
