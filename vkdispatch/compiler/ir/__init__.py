"""The typed program that a kernel is: expression trees held by a tree of statements.

The kernel language, the analyses, the passes, the interpreter and the GLSL writer share only this package.
`compiler.analyses.verify.verify` is the specification in executable form.
"""

import typing as _typing

from vkdispatch.base import names_elsewhere as _names_elsewhere

if _typing.TYPE_CHECKING:
    from vkdispatch.compiler.ir.program import *  # noqa: F403
    from vkdispatch.compiler.ir.traversal import *  # noqa: F403
else:
    __getattr__ = _names_elsewhere(__name__, {"compiler.ir.program": "*", "compiler.ir.traversal": "*"})
