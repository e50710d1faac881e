"""Compiled kernels: from GLSL to SPIR-V, checked against the devices, to a compute pipeline."""

import math
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING

from vkdispatch.base import process
from vkdispatch.base.compilation.compiler import compile_glsl, load_pipelines, pipeline_keys, store_pipelines
from vkdispatch.base.context import Context, Handle
from vkdispatch.base.errors import ArgumentValueError, UnsupportedError, check_type
from vkdispatch.base.native_module import native
from vkdispatch.base.process import show_wait
from vkdispatch.base.spirv.interface import Interface
from vkdispatch.base.spirv.opcodes import NEWEST_OF_1_2, Capability

if TYPE_CHECKING:
    from vkdispatch.base.spirv.module import Module


# ---- Checks that the devices of a context support a SPIR-V module ----------------------------------------


# SPIR-V capability -> the attribute of a device that tells whether it is supported, and its name in messages.
_FEATURES: dict[int, tuple[str, str]] = {
    Capability.FLOAT16: ("float_16_support", "float16"),
    Capability.FLOAT64: ("float_64_support", "float64"),
    Capability.INT64: ("int_64_support", "64-bit integers"),
    Capability.INT16: ("int_16_support", "16-bit integers"),
    Capability.GROUP_NON_UNIFORM: ("subgroup_enabled", "subgroup operations"),
    Capability.GROUP_NON_UNIFORM_ARITHMETIC: ("subgroup_arithmetic", "subgroup arithmetic"),
    Capability.STORAGE_BUFFER_8_BIT_ACCESS: ("storage_buffer_8_bit_access", "buffers of 8-bit elements"),
    Capability.STORAGE_BUFFER_16_BIT_ACCESS: ("storage_buffer_16_bit_access", "buffers of 16-bit elements"),
    Capability.UNIFORM_AND_STORAGE_BUFFER_16_BIT_ACCESS: (
        "uniform_and_storage_buffer_16_bit_access",
        "uniform blocks with 16-bit members",
    ),
    Capability.STORAGE_PUSH_CONSTANT_16: ("storage_push_constant_16", "push constants of 16 bits"),
    Capability.ATOMIC_FLOAT32_ADD: ("shader_buffer_float32_atomic_add", "atomic addition of float32"),
}


def check_features(who: str, interface: Interface, context: Context) -> None:
    """Check that the devices of the context support the version, capabilities and shared memory of a module.

    Raises
    ------
    UnsupportedError
        A device lacks a capability of the module, or takes no SPIR-V of its version.
    ValueError
        The shared arrays of the module are too large.
    """
    for device in context.device_infos:
        vulkan = (device.version_major, device.version_minor)
        if interface.version > NEWEST_OF_1_2 and vulkan < (1, 3):
            raise UnsupportedError(
                f"{who}: SPIR-V 1.6 needs Vulkan 1.3, and the device {device.device_name!r} has "
                f"{vulkan[0]}.{vulkan[1]}; compile it with --target-env=vulkan1.2"
            )
        for capability, (attribute, what) in _FEATURES.items():
            if capability in interface.capabilities and not getattr(device, attribute):
                raise UnsupportedError(f"{who}: the device {device.device_name!r} has no {what}")
    if interface.shared_bytes > context.max_shared_memory:
        raise ArgumentValueError(
            f"{who}: its shared arrays take {interface.shared_bytes} bytes; a workgroup on this device has "
            f"{context.max_shared_memory}"
        )


def check_workgroup(who: str, interface: Interface, context: Context) -> None:
    """Raise ValueError if the workgroups of a module exceed the limits of the devices."""
    size = interface.local_size
    if size is None:
        return
    most, invocations = context.max_workgroup_size, context.max_workgroup_invocations
    if any(count > limit for count, limit in zip(size, most, strict=True)) or math.prod(size) > invocations:
        raise ArgumentValueError(
            f"{who}: workgroups of {size} invocations exceed the limits of this device: {most}, "
            f"{invocations} in all"
        )


# ---- Compiled kernels: from GLSL to SPIR-V to a compute pipeline -----------------------------------------


_BINDING_TYPES = (1, 3, 4, 5)


class ComputePlan(Handle):
    """A compute pipeline made from GLSL.

    Attributes
    ----------
    shader_source
        The GLSL.
    binding_list
        The type of each binding of descriptor set 0: 1 storage buffer, 3 uniform buffer, 4 storage image,
        5 sampler.
    pc_size
        Bytes of push constants.
    shader_name
        Its name in tools and messages.
    """

    # data of profiles about the plan, which live as long as it does
    facts: object = None

    def __init__(  # noqa: PLR0913  public: each is an option of its own
        self,
        shader_source: str,
        binding_type_list: Sequence[int],
        pc_size: int,
        shader_name: str = "shader",
        *,
        spirv: bytes | None = None,
        checked: bool = False,
        entry_point: str = "main",
        specialization: Sequence[tuple[int, bytes]] = (),
        context: Context | None = None,
        place: str | None = None,
        uniform_blocks: Sequence[tuple[int, int, int]] = (),
    ) -> None:
        """Compile `shader_source`, or use compiled code.

        Parameters
        ----------
        shader_source
            GLSL.
        binding_type_list
            The type of binding 0, 1, ... of descriptor set 0.
        pc_size
            Bytes of push constants.
        shader_name
            The name of the plan in tools and messages.
        spirv
            Compiled code to use. `shader_source` is then for display only.
        checked
            Whether `spirv` is known to be valid. If not, it is checked.
        entry_point
            The function to run.
        specialization
            Specialization constants to set: id and bytes of each.
        context
            The context of the plan. None means the current context.
        place
            Where the kernel is defined, such as "kernel.py:12", for errors.
        uniform_blocks
            Binding, offset and bytes of uniform blocks whose values are passed with each launch, after the
            push constants in one block of arguments.

        Raises
        ------
        TypeError
            `shader_source` is not text.
        ValueError
            A binding type is unknown, `pc_size` is negative, the limits of the device are exceeded, or
            `spirv` is invalid.
        ShaderBuildError
            The source does not compile. The log is in the message and in `compiler_log`.
        VulkanError
            The driver failed to create the pipeline.
        """
        check_type("shader_source", shader_source, str, "GLSL text")
        self.shader_source = shader_source
        self.binding_list = [_parse_binding_type(kind) for kind in binding_type_list]
        self.pc_size = operator.index(pc_size)
        self.shader_name = str(shader_name)
        if not 0 <= self.pc_size < 1 << 32:
            raise ArgumentValueError(f"pc_size: expected bytes, 0 or more and less than 4 GiB, got {pc_size}")
        module: Module | None = None
        # Compile before anything touches the device, so that a mistake in the text leaves nothing behind.
        if spirv is None:
            spirv = compile_glsl(shader_source, self.shader_name)
        elif not checked:
            module = _check_spirv(spirv, f"{self.shader_name}: spirv")
        super().__init__(context)
        if module is not None:
            from vkdispatch.base.spirv.reflection import reflect

            argument = f"{self.shader_name}: spirv"
            interface = reflect(module, entry_point, argument=argument)
            if not specialization:  # sizes may depend on it
                check_features(argument, interface, self.context)
                check_workgroup(argument, interface, self.context)
        keys = pipeline_keys(
            self.context.device_infos, spirv, self.binding_list, self.pc_size, entry_point, specialization
        )
        try:
            with show_wait(f"compiling kernel {self.shader_name!r}"):
                layout = self.binding_list, self.pc_size, self.shader_name, entry_point, specialization
                pipelines, where = load_pipelines(keys), place or ""
                self._native = native.Plan(
                    self.context._native, spirv, *layout, pipelines, where, uniform_blocks
                )
        except ValueError as error:
            raise ArgumentValueError(f"{self.shader_name}: {error}") from None
        store_pipelines(keys, self._native.new_cache_data())
        if self.context.is_cpu():  # these drivers compile a pipeline when it first runs
            process.has_new_kernels = True

    def _release(self) -> None:
        # It is missing if the driver failed to create the pipeline.
        pipeline = getattr(self, "_native", None)
        if pipeline is not None:
            pipeline.destroy()


def _check_spirv(spirv: bytes, argument: str) -> "Module":
    from vkdispatch.base.validation import read_valid_module  # imported here, as few programs need it

    return read_valid_module(spirv, argument)


def _parse_binding_type(kind: int) -> int:
    value = operator.index(kind)
    if value not in _BINDING_TYPES:
        raise ArgumentValueError(
            "binding_type_list: expected 1 (storage buffer), 3 (uniform buffer), 4 (storage image) or "
            f"5 (sampler), got {kind!r}"
        )
    return value
