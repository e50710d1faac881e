"""The programs of kernels given as GLSL or SPIR-V."""

from typing import cast

from vkdispatch.base.compute_plan import ComputePlan, check_features
from vkdispatch.base.context import Context
from vkdispatch.base.errors import ArgumentValueError, DeviceLostError, ShaderBuildError, VulkanError
from vkdispatch.base.spirv.reflection import Interface, rebind
from vkdispatch.codegen import ShaderDescription, ShaderSource
from vkdispatch.compiler.ir.statements import Variant
from vkdispatch.shader.arguments.slots import Slot
from vkdispatch.shader.launch.launcher import BuiltKernel, bind_kernel
from vkdispatch.shader.launch.requirements import check_local_size
from vkdispatch.shader.launch.size import Extent
from vkdispatch.shader.launch.variants import UNCOARSENED, Coarsening
from vkdispatch.shader.launchable import describe_kernel
from vkdispatch.shader.raw.code import RawCode, specialize
from vkdispatch.shader.raw.interface import make_description


class RawProgram:
    """The program of a kernel given as GLSL or SPIR-V; see `Program` in `vkdispatch.shader.program`.

    It has one variant, and there is no IR to add prints or checks to.

    Attributes
    ----------
    code
        The code, with the workgroup size among its constants.
    interface
        What the code declares.
    local_size
        Invocations of a workgroup along x, y and z.
    """

    observation = None
    kernel = None

    def __init__(self, code: RawCode, origin: str | None) -> None:
        """Read what code declares. Raises ValueError if the arguments do not fit that."""
        self.code, self.interface, self.local_size = specialize(code)
        text = code.glsl
        if text is None:
            text = _describe_module(self.code, self.interface, self.local_size)
        self._who = describe_kernel(code.name, origin)
        self._raw = make_description(code.name, text, code.arguments, self.interface, self.local_size)
        # It has all attributes that launching uses.
        self.description = cast(ShaderDescription, self._raw)

    def depends_on_workgroups(self) -> bool:
        """Return True: what the code depends on is unknown."""
        return True

    def loop_guard(self, context: Context, variant: Variant) -> None:
        """Return that loops are not guarded: what the code does in them is unknown."""

    def choose_coarsening(self, context: Context) -> Coarsening:
        """Return that no launch uses a coarse variant."""
        return UNCOARSENED

    def compile(
        self,
        slots: tuple[Slot, ...],
        context: Context,
        local_size: Extent,
        variant: Variant,
        coarsening: Coarsening,
    ) -> BuiltKernel:
        """Compile the code; see `Program`. Raises ValueError for the folded variant, which does not exist."""
        who = self._who
        if variant.folded:
            raise ArgumentValueError(
                f"{who}: a launch on this device has at most {context.max_workgroup_count} workgroups (of "
                f"{local_size}); launch several times"
            )
        check_local_size(who, local_size, context)
        check_features(who, self.interface, context)
        source = self._raw.shader_source(local_size)
        return bind_kernel(context, self._build_plan(context, source), slots, self._raw.arguments, source)

    def _build_plan(self, context: Context, source: ShaderSource) -> ComputePlan:
        constants = [
            (number, self.interface.spec_constants[number].pack(value))
            for number, value in sorted(self.code.specialization.items())
        ]
        spirv = rebind(self.code.module, self._raw.places, self.interface)
        if self.code.untrusted:
            from vkdispatch.base.untrusted.compiler import check_pipeline

            types, size = self._raw.binding_type_list, self._raw.pc_size
            check_pipeline(context, spirv, types, size, self.code.entry_point, constants, self._raw.name)
        try:
            return ComputePlan(
                self._raw.text,
                self._raw.binding_type_list,
                self._raw.pc_size,
                self._raw.name,
                spirv=spirv,
                checked=True,
                context=context,
                entry_point=self.code.entry_point,
                specialization=constants,
                uniform_blocks=self._raw.uniform_blocks,
            )
        except DeviceLostError:
            raise
        except VulkanError as error:
            raise ShaderBuildError(
                f"{self._who}: the driver rejected the kernel: {error}", shader_source=source.numbered()
            ) from error


def _describe_module(code: RawCode, interface: Interface, local_size: Extent) -> str:
    """Describe a module, in place of a source."""
    major, minor = code.module.version
    lines = [
        f"// SPIR-V {major}.{minor}, {code.module.words.nbytes} bytes, entry point {code.entry_point!r}",
        f"// workgroups of {local_size}",
    ]
    lines += [
        f"// set {resource.set}, binding {resource.binding}: {resource.kind} {resource.name}".rstrip()
        for resource in interface.resources
    ]
    if interface.push_constants is not None:
        lines += [
            f"// push constants, byte {offset}: {kind} {name}".rstrip()
            for name, offset, kind in interface.push_constants.members
        ]
    lines += [
        f"// constant {constant.id}: {constant.kind} {constant.name}".rstrip()
        for constant in interface.spec_constants.values()
    ]
    return "\n".join(lines) + "\n"
