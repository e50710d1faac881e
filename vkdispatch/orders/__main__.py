"""`python -m vkdispatch.orders config` and `cache`: accelpy's commands."""

from vkdispatch.orders.commands import main

main()
