"""Rewrites of a program into another one, and what they need to know for it."""

import typing as _typing

from vkdispatch.base import submodules_of as _submodules_of

if _typing.TYPE_CHECKING:
    from vkdispatch.compiler.passes import bounds as bounds
    from vkdispatch.compiler.passes import builders as builders
    from vkdispatch.compiler.passes import coarsen as coarsen
    from vkdispatch.compiler.passes import diagnostics as diagnostics
    from vkdispatch.compiler.passes import elementwise as elementwise
    from vkdispatch.compiler.passes import fuse as fuse
    from vkdispatch.compiler.passes import instrument as instrument
    from vkdispatch.compiler.passes import loop_limits as loop_limits
    from vkdispatch.compiler.passes import lowering as lowering
    from vkdispatch.compiler.passes import nesting as nesting
    from vkdispatch.compiler.passes import reads as reads
    from vkdispatch.compiler.passes import widen as widen
else:
    __getattr__ = _submodules_of(__name__)  # for modules of which a launch may need nothing
