"""The forms in which one kernel is written, for launches of different sizes."""

from vkdispatch.base.record import record


@record
class Variant:
    """A form of a kernel that does the same as the plain one.

    Attributes
    ----------
    folded
        It takes any grid in a launch of another shape: devices limit the workgroups along an axis.
    addressed
        Its storage buffers are reached by device address: devices limit what a binding reaches.
    wide
        Invocation ids and indices have 64 bits.
    coarse
        How many elements along x one invocation does.
    """

    folded: bool = False
    addressed: bool = False
    wide: bool = False
    coarse: int = 1


PLAIN = Variant()
