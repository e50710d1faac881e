"""Validation of SPIR-V modules, in this process or in a child process."""

import sys

from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.base.native_module import native
from vkdispatch.base.spirv import opcodes as op
from vkdispatch.base.spirv.module import Limits, Module, read_module

# The validator's time grows with the square of a module's size, and with the cube of how deep its branches
# nest. A module that exceeds these numbers is validated in a child process, whose time is limited.
_MAX_WORDS, _MAX_BRANCHES = 1 << 16, 256


def read_valid_module(code: object, argument: str = "spirv", untrusted: bool = False) -> Module:
    """Read a module as `read_module` does, and have SPIRV-Tools validate it.

    Parameters
    ----------
    code, argument
        As for `read_module`, whose errors are raised, too.
    untrusted
        Whether a child process validates the module, as it does for large ones.

    Raises
    ------
    ValueError
        The module is invalid, or exceeds what drivers can compile.
    ShaderBuildError
        The validator crashed or exceeded a limit in a child process.
    """
    module = read_module(code, argument)
    limits = Limits(module, argument)
    limits.check_nesting()  # deeply nested types take the validator very long
    spirv = module.words.tobytes()
    branches = sum(1 for _ in module.of(op.LOOP_MERGE, op.SELECTION_MERGE))
    large = len(module.words) > _MAX_WORDS or branches > _MAX_BRANCHES
    if untrusted or (large and sys.executable):
        from vkdispatch.base.untrusted.compiler import find_untrusted_error  # few programs need this

        complaint = find_untrusted_error(spirv, argument)
    else:
        complaint = native.find_spirv_error(spirv)
    if complaint is not None:
        raise ArgumentValueError(f"{argument}: invalid SPIR-V: {complaint.strip()}")
    limits.check()
    return module
