"""Elements moved: transposed, gathered, scattered, joined."""

from vkdispatch.rearrange.choosing import where
from vkdispatch.rearrange.joining import concatenate, flip, pad, repeat, roll, stack, tile
from vkdispatch.rearrange.taking import put, take, take_along_axis
from vkdispatch.rearrange.transposing import transpose

__all__ = [
    "concatenate",
    "flip",
    "pad",
    "put",
    "repeat",
    "roll",
    "stack",
    "take",
    "take_along_axis",
    "tile",
    "transpose",
    "where",
]
