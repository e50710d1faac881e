"""Orders: one task as native code in several programming models, run in the best one available.

Names and behavior follow accelpy 0.3, and those of its later `Kernel`: `import vkdispatch.orders as accelpy`
runs its programs.
"""

from vkdispatch.orders.accel import (
    Accel,
    AccelBase,
    CppAccel,
    CudaAccel,
    FortranAccel,
    HipAccel,
    OpenaccCppAccel,
    OpenaccFortranAccel,
    OpenmpCppAccel,
    OpenmpFortranAccel,
)
from vkdispatch.orders.errors import Attempt, OrderBuildError, OrderMismatchError, OrderRunError
from vkdispatch.orders.kernel import (
    AccelData,
    Kernel,
    Region,
    Spec,
    Task,
    build_sharedlib,
    invoke_sharedlib,
    load_sharedlib,
)
from vkdispatch.orders.order import Order, Section
from vkdispatch.orders.sections import Verification

__all__ = [
    "Accel",
    "AccelBase",
    "AccelData",
    "Attempt",
    "CppAccel",
    "CudaAccel",
    "FortranAccel",
    "HipAccel",
    "Kernel",
    "OpenaccCppAccel",
    "OpenaccFortranAccel",
    "OpenmpCppAccel",
    "OpenmpFortranAccel",
    "Order",
    "OrderBuildError",
    "OrderMismatchError",
    "OrderRunError",
    "Region",
    "Section",
    "Spec",
    "Task",
    "Verification",
    "build_sharedlib",
    "invoke_sharedlib",
    "load_sharedlib",
]


def __dir__() -> list[str]:
    return sorted({*(name for name in globals() if name.startswith("__")), *__all__})
