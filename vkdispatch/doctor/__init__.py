"""`vd.doctor()` and `vkdispatch doctor`: what this machine has, whether it works, and what to do if not.

What may crash runs in child processes (`child`, `vulkan`), one for each driver and device. `machine` gathers
what needs no driver, `advice` finds the problems, and `report` puts everything together.
"""
