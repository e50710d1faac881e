"""The buffers and images at the bindings of a plan."""

import operator
from typing import TYPE_CHECKING

from vkdispatch.base.buffer import Buffer
from vkdispatch.base.compute_plan import ComputePlan
from vkdispatch.base.context import Handle, wrong_context
from vkdispatch.base.errors import ArgumentValueError, UsageError, check_type
from vkdispatch.base.init import require_cuda
from vkdispatch.base.native_module import native

# Only programs with images import their modules.
if TYPE_CHECKING:
    from vkdispatch.base.image import Image, Sampler

# Buffer, image or sampler, binding index, byte offset, byte range (0: the rest), reads, writes.
Binding = tuple[native.Buffer | native.Image | native.Sampler, int, int, int, bool, bool]
_KINDS = {1: "a storage buffer", 3: "a uniform buffer", 4: "a storage image", 5: "a sampler"}


class DescriptorSet(Handle):
    """The buffers and images that a dispatch of a plan reads and writes."""

    def __init__(self, compute_plan: ComputePlan) -> None:
        """Make an empty set for a plan. Raises TypeError if `compute_plan` is not a `ComputePlan`."""
        check_type("compute_plan", compute_plan, ComputePlan, "a ComputePlan")
        compute_plan.require_alive()
        super().__init__(compute_plan.context)
        self.compute_plan = compute_plan
        self.register_parent(compute_plan)
        self._bindings: dict[int, Binding] = {}

    def bind_buffer(
        self,
        buffer: "Buffer[object]",  # type: ignore[type-var]
        binding: int,
        offset: int = 0,
        range: int = 0,
        uniform: bool = False,
        read_access: bool = True,
        write_access: bool = True,
    ) -> None:
        """Bind `range` bytes of `buffer`, from byte `offset` on, at a binding of set 0; 0 means all the rest.

        Parameters
        ----------
        uniform
            The binding is a uniform block.
        read_access
            The kernel reads through the binding.
        write_access
            The kernel writes through the binding. Barriers depend on these two.

        Raises
        ------
        TypeError
            `buffer` is not a buffer.
        ValueError
            The plan has no such binding, the binding has another type, or the bytes lie outside the buffer.
        """
        self._check_usable(buffer, Buffer, "buffer")
        if write_access and not uniform and not buffer.is_writable:
            raise ArgumentValueError("write_access: the buffer is read-only memory of another library")
        binding = operator.index(binding)
        self._check_binding(binding, 3 if uniform else 1)
        offset, size = operator.index(offset), operator.index(range)
        if offset < 0 or size < 0 or offset + max(size, 1) > buffer.mem_size:
            raise ArgumentValueError(
                f"offset, range: {size or 'all'} bytes from {offset} on; the buffer has {buffer.mem_size}"
            )
        write_access = bool(write_access) and not uniform
        self._bindings[binding] = (buffer._native, binding, offset, size, bool(read_access), write_access)
        self.register_parent(buffer)

    def bind_sampler(
        self, sampler: "Sampler", binding: int, read_access: bool = True, write_access: bool = True
    ) -> None:
        """Bind a sampler and its image at a binding of set 0.

        Parameters
        ----------
        read_access
            The kernel samples the image. Barriers depend on this.
        write_access
            Ignored; it is there for consistency with `bind_buffer`.

        Raises
        ------
        TypeError
            `sampler` is not a sampler.
        ValueError
            The plan has no such binding, or the binding has another type.
        """
        from vkdispatch.base.image import Sampler

        self._check_usable(sampler, Sampler, "sampler")
        sampler.image.require_alive()
        binding = operator.index(binding)
        self._check_binding(binding, 5)
        self._bindings[binding] = (sampler._native, binding, 0, 0, bool(read_access), False)
        self.register_parent(sampler)

    def bind_image(
        self, image: "Image", binding: int, read_access: bool = True, write_access: bool = True
    ) -> None:
        """Bind an image at a binding of set 0 as a storage image.

        Parameters
        ----------
        read_access, write_access
            The kernel loads from it or stores to it. Barriers depend on these two.

        Raises
        ------
        TypeError
            `image` is not an image.
        ValueError
            The plan has no such binding, the binding has another type, or the device cannot store to the
            image.
        """
        from vkdispatch.base.image import Image

        self._check_usable(image, Image, "image")
        binding = operator.index(binding)
        self._check_binding(binding, 4)
        if not image.is_storable:
            raise ArgumentValueError(f"image: the device cannot store to {image!r}")
        self._bindings[binding] = (image._native, binding, 0, 0, bool(read_access), bool(write_access))
        self.register_parent(image)

    def _check_usable(self, value: Handle, kind: type[Handle], name: str) -> None:
        self.require_alive()
        check_type(name, value, kind, f"a vd.{kind.__name__}")
        value.require_alive()
        if value.context is not self.context:
            raise wrong_context(f"{name}: it", value.context)

    def _check_binding(self, binding: int, wanted: int) -> None:
        kinds = self.compute_plan.binding_list
        if not 0 <= binding < len(kinds):
            raise ArgumentValueError(
                f"binding: {self.compute_plan.shader_name!r} has 0 to {len(kinds) - 1}, got {binding}"
            )
        if kinds[binding] != wanted:
            raise ArgumentValueError(f"binding: {binding} is {_KINDS[kinds[binding]]}, not {_KINDS[wanted]}")

    def set_inline_uniform_payload(self, payload: bytes) -> None:
        """Raise RuntimeError: 0.1.0 passed uniform data with a launch on the CUDA backend only."""
        raise require_cuda("set_inline_uniform_payload", "bind a buffer with uniform=True")

    def bindings(self, without: int = -1) -> tuple[Binding, ...]:
        """Return the bindings. Raises RuntimeError if one other than `without` is empty."""
        self.require_alive()
        missing = [
            index
            for index in range(len(self.compute_plan.binding_list))
            if index not in self._bindings and index != without
        ]
        if missing:
            raise UsageError(f"nothing is bound at binding {missing[0]} of {self.compute_plan.shader_name!r}")
        return tuple(self._bindings[index] for index in sorted(self._bindings))
