"""All names of the kernel language; `vkdispatch.codegen` has them when the first one is used."""
# ruff: noqa: F403

import typing as _typing
from math import e as e
from math import inf as inf
from math import nan as nan
from math import pi as pi
from math import tau as tau
from types import ModuleType as _ModuleType

from vkdispatch.codegen.abbreviations import *
from vkdispatch.codegen.arguments import *
from vkdispatch.codegen.backends import *
from vkdispatch.codegen.builder import *
from vkdispatch.codegen.description import *
from vkdispatch.codegen.execution.control_flow import *
from vkdispatch.codegen.execution.invocation import *
from vkdispatch.codegen.execution.printing import *
from vkdispatch.codegen.execution.registers import *
from vkdispatch.codegen.execution.subgroups import *
from vkdispatch.codegen.functions.arithmetic import *
from vkdispatch.codegen.functions.bits import *
from vkdispatch.codegen.functions.complex_numbers import *
from vkdispatch.codegen.functions.index_raveling import *
from vkdispatch.codegen.functions.trigonometry import *
from vkdispatch.codegen.functions.vectors import *
from vkdispatch.codegen.objects.matrices import *
from vkdispatch.codegen.objects.resources import *
from vkdispatch.codegen.variables import *
from vkdispatch.compiler.forms import ArgumentLayout as ArgumentLayout
from vkdispatch.compiler.forms import StructElement as StructElement
from vkdispatch.compiler.ir import ShaderFlags as ShaderFlags

if _typing.TYPE_CHECKING:
    from vkdispatch.codegen.typed_names import *

# last: threads that import parts of the package at once wait for each other in one order
import vkdispatch.codegen.random as random  # isort: skip

# Type checkers export what a star imports, and would read a computed list as an empty one.
if not _typing.TYPE_CHECKING:
    __all__ = sorted(
        name
        for name, value in globals().items()
        if value is random
        or name == "_ArgType"
        or not (name.startswith("_") or isinstance(value, _ModuleType))
    )
