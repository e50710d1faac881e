"""What a graph records: kernels with their launchers, and plans with their bindings."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from vkdispatch.base.buffer import Buffer
from vkdispatch.base.compute_plan import ComputePlan
from vkdispatch.base.descriptor_set import Binding
from vkdispatch.base.record import record
from vkdispatch.execution_pipeline.optimization import Fusible

# Programs with kernels in SPIR-V need not import the kernel language, which takes longest of all.
if TYPE_CHECKING:
    from vkdispatch.base.image import Sampler
    from vkdispatch.compiler.analyses.contents import ArgumentLayout


class Recorder(Protocol):
    """A launcher, as far as graphs use it; `Launcher` in `vkdispatch_native` is one."""

    def record(
        self, commands: Any, arguments: Any, limit: Any, limit_is_groups: bool, /
    ) -> "tuple[int, bytes | bytearray] | None":
        """Append a dispatch; return where its arguments lie in an instance, and their bytes."""


class Recordable(Protocol):
    """A compiled kernel, as graphs record it: `BuiltKernel` in `vkdispatch.shader.launch.launcher`."""

    @property
    def plan(self) -> ComputePlan:
        """The plan to dispatch. Destroying it ends the graph."""

    @property
    def launcher(self) -> Recorder:
        """The launcher that binds and packs its arguments."""

    @property
    def fusible(self) -> Fusible | None:
        """What `optimize` needs to fuse its dispatches; None leaves them as they are."""


@record
class BoundPlan:
    """A plan with its bindings, recorded in place of a kernel; its arguments are bytes, its limit workgroups.

    `bindings` has one for each of the plan's, except that of a block of arguments at `uniform_binding`.
    """

    plan: ComputePlan
    bindings: Sequence[Binding]
    uniform_binding: int = -1

    @property
    def launcher(self) -> "BoundPlan":
        """The plan itself: there is nothing left to bind."""
        return self

    @property
    def fusible(self) -> None:
        """None: what the plan does is unknown."""

    def record(
        self, commands: Any, arguments: "bytes | bytearray", groups: Any, limit_is_groups: bool, /
    ) -> "tuple[int, bytes | bytearray]":
        """Append a dispatch of `groups` workgroups along x, y and z; see `Recorder`."""
        offset = commands.record(
            self.plan._native, self.bindings, groups, len(arguments), self.uniform_binding
        )
        return offset, arguments


class Described(Protocol):
    """A kernel's description, as far as `record_shader` uses it."""

    @property
    def name(self) -> str:
        """Name of the kernel, for messages."""

    @property
    def binding_type_list(self) -> Sequence[int]:
        """The type of each binding: 3 is the uniform block of arguments."""

    def layout(self) -> "ArgumentLayout":
        """Return the layout of the arguments."""


@record(sealed=True)
class BufferBindInfo:
    """A buffer, its binding, and how the kernel accesses it."""

    buffer: Buffer[Any]
    binding: int
    shape_name: str | None
    read_access: bool
    write_access: bool


@record(sealed=True)
class ImageBindInfo:
    """A sampler, its binding, and how the kernel accesses its image."""

    sampler: "Sampler"
    binding: int
    read_access: bool
    write_access: bool
