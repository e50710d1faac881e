"""Elements moved: transposed, gathered, scattered, joined."""

from vkdispatch.rearrange.choosing import where
from vkdispatch.rearrange.joining import concatenate, stack
from vkdispatch.rearrange.padding import flip, pad, repeat, roll, tile
from vkdispatch.rearrange.putting import put
from vkdispatch.rearrange.taking import take, take_along_axis
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
