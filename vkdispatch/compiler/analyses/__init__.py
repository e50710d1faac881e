"""What is found out about a program without changing it."""

import typing as _typing

from vkdispatch.base import submodules_of as _submodules_of

if _typing.TYPE_CHECKING:
    from vkdispatch.compiler.analyses import contents as contents
    from vkdispatch.compiler.analyses import joint_flow as joint_flow
    from vkdispatch.compiler.analyses import launch_values as launch_values
    from vkdispatch.compiler.analyses import naming as naming
    from vkdispatch.compiler.analyses import traffic as traffic
    from vkdispatch.compiler.analyses import verify as verify
else:
    __getattr__ = _submodules_of(__name__)  # for modules of which a launch may need nothing
