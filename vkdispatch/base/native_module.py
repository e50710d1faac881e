"""The native module as `native`, or its stand-in (see `base.host_numpy`)."""

from typing import TYPE_CHECKING

from vkdispatch.base import errors
from vkdispatch.base.host_numpy import import_or_stand_in, is_absent

if TYPE_CHECKING:
    import vkdispatch_native as native
else:
    native = import_or_stand_in(
        "vkdispatch_native",
        lambda: errors.BackendUnavailableError(
            "vulkan",
            "the native module vkdispatch_native is not installed: kernels can be traced and their text be "
            "read (get_src(), print_src()), but not run; build it with `pip install .` in the "
            "sources of vkdispatch",
        ),
    )

if not is_absent(native):
    # early versions of the other project called vkdispatch have a native module of this name
    if not hasattr(native, "set_error_types"):
        from vkdispatch.installation import refuse_mixture

        refuse_mixture()
    native.set_error_types(
        errors.VulkanError,
        errors.DeviceLostError,
        errors.OutOfDeviceMemoryError,
        errors.ArgumentValueError,
        errors.DeviceTimeoutError,
        errors.UsageError,
    )

__all__ = ["native"]
