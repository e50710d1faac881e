"""Validation of SPIR-V modules, in this process or in a child process."""

import sys

from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.base.native_module import native
from vkdispatch.base.spirv import opcodes as op
from vkdispatch.base.spirv.module import Limits, Module, read_module

# The validator's time grows with the square of a module's size, and with the cube of how deep its branches
# nest. What exceeds these numbers is validated in a child process, whose time is limited.
_MAX_WORDS, _MAX_BRANCHES = 1 << 16, 256


def read_valid_module(code: object, argument: str = "spirv", untrusted: bool = False) -> Module:
    """Take a module apart, and have SPIRV-Tools validate it.

    Parameters
    ----------
    code
        The module, in either byte order.
    argument
        How messages call it.
    untrusted
        Whether a child process validates the module, as for modules that take long.

    Raises
    ------
    TypeError
        `code` is no bytes.
    ValueError
        It is no SPIR-V, of a version that is newer than 1.6, invalid, or more than drivers take.
    ShaderBuildError
        The validator crashed or exceeded a limit in a child process.
    """
    module = read_module(code, argument)
    limits = Limits(module, argument)
    limits.check_nesting()  # the validator takes ages for what is nested too deep
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
