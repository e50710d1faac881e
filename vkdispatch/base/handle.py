"""What every device object has in common; it is defined beside the context, where programs import it from."""

from vkdispatch.base.context import Handle

__all__ = ["Handle"]
