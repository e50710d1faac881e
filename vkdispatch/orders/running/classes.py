"""The classes of accelpy, each for one programming model."""

from typing import ClassVar

from vkdispatch.orders.running.accel import Accel

AccelBase = Accel
"""The base class of all of them."""


class FortranAccel(Accel):
    """`Accel` of the model `fortran`."""

    name: ClassVar[str | None] = "fortran"


class OpenaccFortranAccel(Accel):
    """`Accel` of the model `openacc_fortran`."""

    name: ClassVar[str | None] = "openacc_fortran"


class OpenmpFortranAccel(Accel):
    """`Accel` of the model `openmp_fortran`."""

    name: ClassVar[str | None] = "openmp_fortran"


class CppAccel(Accel):
    """`Accel` of the model `cpp`."""

    name: ClassVar[str | None] = "cpp"


class HipAccel(Accel):
    """`Accel` of the model `hip`."""

    name: ClassVar[str | None] = "hip"


class CudaAccel(Accel):
    """`Accel` of the model `cuda`."""

    name: ClassVar[str | None] = "cuda"


class OpenaccCppAccel(Accel):
    """`Accel` of the model `openacc_cpp`."""

    name: ClassVar[str | None] = "openacc_cpp"


class OpenmpCppAccel(Accel):
    """`Accel` of the model `openmp_cpp`."""

    name: ClassVar[str | None] = "openmp_cpp"
