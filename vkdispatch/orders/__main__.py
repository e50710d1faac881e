"""`python -m vkdispatch.orders config` and `cache`: the commands of accelpy."""

from vkdispatch.orders.command_line import main

main()
