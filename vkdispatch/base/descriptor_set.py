"""Which buffer or image lies at which binding of a plan."""

import operator
from typing import TYPE_CHECKING

from vkdispatch.base.buffer import Buffer
from vkdispatch.base.compute_plan import ComputePlan
from vkdispatch.base.context import wrong_context
from vkdispatch.base.cuda_capture import require_cuda
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, UsageError
from vkdispatch.base.handle import Handle
from vkdispatch.base.native_module import native

# Only who has images imports them.
if TYPE_CHECKING:
    from vkdispatch.base.image import Image, Sampler

# Buffer, image or sampler, binding index, byte offset, byte range (0: the rest), reads, writes.
Binding = tuple[native.Buffer | native.Image | native.Sampler, int, int, int, bool, bool]
_KINDS = {1: "a storage buffer", 3: "a uniform buffer", 4: "a storage image", 5: "a sampler"}


class DescriptorSet(Handle):
    """The buffers and images that a dispatch of a plan reads and writes."""

    def __init__(self, compute_plan: ComputePlan) -> None:
        """Make an empty set for a plan. Raises TypeError if `compute_plan` is no `ComputePlan`."""
        if not isinstance(compute_plan, ComputePlan):
            raise ArgumentTypeError(
                f"compute_plan: expected a ComputePlan, got {type(compute_plan).__name__}"
            )
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
        """Put `range` bytes of `buffer` from byte `offset` on (0: all the rest) at a binding of set 0.

        Parameters
        ----------
        uniform
            The binding is a uniform block.
        read_access
            The kernel reads through it.
        write_access
            The kernel writes through it. Barriers follow from these two.

        Raises
        ------
        TypeError
            `buffer` is no buffer.
        ValueError
            The plan has no such binding, it is of another type, or the bytes lie outside the buffer.
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
        """Put an image, seen through a sampler, at a binding of set 0.

        Parameters
        ----------
        read_access
            The kernel samples it. Barriers follow from this.
        write_access
            Taken for the sake of likeness to `bind_buffer`; nothing is written through a sampler.

        Raises
        ------
        TypeError
            `sampler` is no sampler.
        ValueError
            The plan has no such binding, or it is of another type.
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
        """Put an image at a binding of set 0 as a storage image.

        Parameters
        ----------
        read_access, write_access
            The kernel loads from it, stores to it. Barriers follow from these two.

        Raises
        ------
        TypeError
            `image` is no image.
        ValueError
            The plan has no such binding, it is of another type, or the image cannot be stored to.
        """
        from vkdispatch.base.image import Image

        self._check_usable(image, Image, "image")
        binding = operator.index(binding)
        self._check_binding(binding, 4)
        if not image.is_storable:
            raise ArgumentValueError(f"image: the device cannot store to {image!r}")
        self._bindings[binding] = (image._native, binding, 0, 0, bool(read_access), bool(write_access))
        self.register_parent(image)

    def _check_usable(self, given: Handle, kind: type[Handle], name: str) -> None:
        self.require_alive()
        if not isinstance(given, kind):
            raise ArgumentTypeError(f"{name}: expected a vd.{kind.__name__}, got {type(given).__name__}")
        given.require_alive()
        if given.context is not self.context:
            raise wrong_context(f"{name}: it", given.context)

    def _check_binding(self, binding: int, wanted: int) -> None:
        kinds = self.compute_plan.binding_list
        if not 0 <= binding < len(kinds):
            raise ArgumentValueError(
                f"binding: {self.compute_plan.shader_name!r} has 0 to {len(kinds) - 1}, got {binding}"
            )
        if kinds[binding] != wanted:
            raise ArgumentValueError(f"binding: {binding} is {_KINDS[kinds[binding]]}, not {_KINDS[wanted]}")

    def set_inline_uniform_payload(self, payload: bytes) -> None:
        """Pass uniform data within the launch, on the CUDA backend. Raises RuntimeError on all others."""
        raise require_cuda("set_inline_uniform_payload", "bind a buffer with uniform=True")

    def bindings(self, without: int = -1) -> tuple[Binding, ...]:
        """Return what is bound. Raises RuntimeError if a binding other than `without` is still empty."""
        self.require_alive()
        missing = [
            index
            for index in range(len(self.compute_plan.binding_list))
            if index not in self._bindings and index != without
        ]
        if missing:
            raise UsageError(f"nothing is bound at binding {missing[0]} of {self.compute_plan.shader_name!r}")
        return tuple(self._bindings[index] for index in sorted(self._bindings))
