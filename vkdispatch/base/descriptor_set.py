"""Which buffer lies at which binding of a plan."""

import operator

import vkdispatch_native as native
from vkdispatch.base.buffer import Buffer
from vkdispatch.base.compute_plan import ComputePlan
from vkdispatch.base.cuda_capture import require_cuda
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, UnsupportedError, UsageError
from vkdispatch.base.handle import Handle

# Buffer, binding index, byte offset, byte range (0: the rest), reads, writes.
Binding = tuple[native.Buffer, int, int, int, bool, bool]


class DescriptorSet(Handle):
    """The buffers that a dispatch of a plan reads and writes."""

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
        self.require_alive()
        if not isinstance(buffer, Buffer):
            raise ArgumentTypeError(f"buffer: expected a vd.Buffer, got {type(buffer).__name__}")
        buffer.require_alive()
        if write_access and not uniform and not buffer.is_writable:
            raise ArgumentValueError("write_access: the buffer is read-only memory of another library")
        if buffer.context is not self.context:
            raise UsageError("buffer: it belongs to a context that is gone; make it again")
        binding = operator.index(binding)
        self._check_binding(binding, uniform)
        offset, size = operator.index(offset), operator.index(range)
        if offset < 0 or size < 0 or offset + max(size, 1) > buffer.mem_size:
            raise ArgumentValueError(
                f"offset, range: {size or 'all'} bytes from {offset} on; the buffer has {buffer.mem_size}"
            )
        write_access = bool(write_access) and not uniform
        self._bindings[binding] = (buffer._native, binding, offset, size, bool(read_access), write_access)
        self.register_parent(buffer)

    def _check_binding(self, binding: int, uniform: bool) -> None:
        kinds = self.compute_plan.binding_list
        if not 0 <= binding < len(kinds):
            raise ArgumentValueError(
                f"binding: {self.compute_plan.shader_name!r} has 0 to {len(kinds) - 1}, got {binding}"
            )
        wanted = 3 if uniform else 1
        if kinds[binding] != wanted:
            names = {1: "a storage buffer", 3: "a uniform buffer", 5: "a sampler"}
            raise ArgumentValueError(f"binding: {binding} is {names[kinds[binding]]}, not {names[wanted]}")

    def bind_sampler(
        self, sampler: object, binding: int, read_access: bool = True, write_access: bool = True
    ) -> None:
        """Put a sampler at a binding of set 0. Raises NotImplementedError: there are no images yet."""
        raise UnsupportedError("bind_sampler: there are no images yet")

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
