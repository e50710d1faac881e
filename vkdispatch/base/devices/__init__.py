"""Which Vulkan devices there are, what they can do, which drivers offer them."""
