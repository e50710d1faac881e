"""Images of other libraries: what they say of a `VkImage`, with Vulkan's numbers."""

from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.base.integers import as_int

GENERAL_LAYOUT = 1
# VkImageLayout: undefined, general, color attachment, shader read-only, transfer source and target,
# preinitialized, presented, read-only, attachment. The others are of depths and stencils, and of video.
_LAYOUTS = (0, GENERAL_LAYOUT, 2, 5, 6, 7, 8, 1000001002, 1000314000, 1000314001)
# VkImageUsageFlagBits
SAMPLED_USAGE, STORAGE_USAGE = 0x4, 0x8
_TRANSFERS = 0x1 | 0x2
ALL_USAGES = _TRANSFERS | SAMPLED_USAGE | STORAGE_USAGE


def parse_layout(layout: object) -> int:
    """Return the number of a `VkImageLayout`. Raises ValueError if an image of colors cannot have it."""
    number = as_int(layout)
    if number not in _LAYOUTS:
        raise ArgumentValueError(f"layout: expected a VkImageLayout of images of colors, got {layout!r}")
    return number


def parse_usage(usage: object) -> int:
    """Return `VkImageUsageFlags`. Raises ValueError if kernels and transfers cannot use such an image."""
    number = as_int(usage)
    if number is None or number & _TRANSFERS != _TRANSFERS or not number & (SAMPLED_USAGE | STORAGE_USAGE):
        raise ArgumentValueError(
            "usage: expected VkImageUsageFlags with TRANSFER_SRC (1), TRANSFER_DST (2), and SAMPLED (4) or "
            f"STORAGE (8), got {usage!r}"
        )
    return number
