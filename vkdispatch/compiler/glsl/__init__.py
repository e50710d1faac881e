"""The writer: a program as GLSL."""

import typing as _typing

from vkdispatch.base import submodules_of as _submodules_of

if _typing.TYPE_CHECKING:
    from vkdispatch.compiler.glsl import emulation as emulation
    from vkdispatch.compiler.glsl import exponentials as exponentials
    from vkdispatch.compiler.glsl import expressions as expressions
    from vkdispatch.compiler.glsl import helpers as helpers
    from vkdispatch.compiler.glsl import mathematics as mathematics
    from vkdispatch.compiler.glsl import packing as packing
    from vkdispatch.compiler.glsl import precision as precision
    from vkdispatch.compiler.glsl import spelling as spelling
    from vkdispatch.compiler.glsl import trigonometry as trigonometry
    from vkdispatch.compiler.glsl import writer as writer
else:
    __getattr__ = _submodules_of(__name__)  # for modules of which a launch may need nothing
