"""Where segments begin: flags, or the places of their first elements."""

from vkdispatch.base.dtype import DType, bool_

FLAGS: DType = bool_
