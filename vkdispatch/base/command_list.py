"""Lists of recorded dispatches, to submit many times."""

import operator
from collections.abc import Callable, Sequence

from vkdispatch.base.compute_plan import ComputePlan
from vkdispatch.base.context import Context, Handle, parse_queue, wrong_context
from vkdispatch.base.descriptor_set import DescriptorSet
from vkdispatch.base.errors import ArgumentValueError, check_type
from vkdispatch.base.init import require_cuda
from vkdispatch.base.native_module import native
from vkdispatch.base.process import internal, parse_positive

ALL_QUEUES = -2
ANY_QUEUE = -1
Rows = bytes | bytearray | memoryview
# A source or target of copies.
Copied = native.Buffer | native.HostBlock


class CommandList(Handle):
    """Dispatches in order. `submit` takes a snapshot: the list may be changed or reset right afterwards."""

    _instead = "record the calls in another one"

    def __init__(self, context: Context | None = None) -> None:
        """Make an empty list in a context. None means the current context."""
        super().__init__(context)
        self._native = native.CommandList(self.context._native)

    @internal
    def get_instance_size(self) -> int:
        """Return the bytes of push constants of one run of the list."""
        return self._native.instance_size

    @property
    def length(self) -> int:
        """The number of recorded commands."""
        return self._native.length

    @internal
    def record_compute_plan(
        self, plan: ComputePlan, descriptor_set: DescriptorSet, blocks: Sequence[int]
    ) -> None:
        """Append a dispatch of `blocks` (x, y, z) workgroups. In a graph, its push constants are zeros.

        Raises
        ------
        TypeError
            An argument is of the wrong type.
        ValueError
            `blocks` are not three positive ints within the device's limits.
        RuntimeError
            A binding is empty, or an object was destroyed.
        """
        self.require_alive()
        check_type("plan", plan, ComputePlan, "a ComputePlan")
        check_type("descriptor_set", descriptor_set, DescriptorSet, "a DescriptorSet")
        plan.require_alive()
        for name, item in (("plan", plan), ("descriptor_set", descriptor_set)):
            if item.context is not self.context:
                raise wrong_context(f"{name}: it", item.context)
        if len(plan.binding_list) != len(descriptor_set.compute_plan.binding_list):
            raise ArgumentValueError("descriptor_set: it belongs to a plan with other bindings")
        groups = self._parse_blocks(blocks)
        bindings = descriptor_set.bindings()

        def record() -> None:
            try:
                self._native.record(plan._native, bindings, groups, plan.pc_size)
            except ValueError as error:
                raise ArgumentValueError(f"{plan.shader_name!r}: {error}") from None
            self.register_parent(plan)
            self.register_parent(descriptor_set)

        self._append(record, tuple(descriptor_set.parents.values()))

    def _parse_blocks(self, blocks: Sequence[int]) -> tuple[int, int, int]:
        try:
            x, y, z = (operator.index(count) for count in blocks)
        except (TypeError, ValueError):
            raise ArgumentValueError(f"blocks: expected three ints, got {blocks!r}") from None
        limit = self.context.max_workgroup_count
        if any(not 1 <= count <= most for count, most in zip((x, y, z), limit, strict=True)):
            raise ArgumentValueError(f"blocks: expected 1 to {limit} workgroups, got {(x, y, z)}")
        return (x, y, z)

    @internal
    def record_copy(
        self, source: Copied, target: Copied, size: int, source_offset: int = 0, target_offset: int = 0
    ) -> None:
        """Append a copy of `size` bytes between buffers, or between a buffer and pinned memory.

        Raises
        ------
        ValueError
            The bytes reach beyond the end, or overlap.
        """
        self._append(lambda: self._native.record_copy(source, source_offset, target, target_offset, size))

    @internal
    def record_texel_copy(self, image: native.Image, other: Copied, *, to_image: bool) -> None:
        """Append a copy between mip level 0 of an image and a buffer or pinned memory, tightly packed."""
        self._append(lambda: self._native.record_image_copy(image, other, 0, to_image))

    @internal
    def record_image_copy(self, source: native.Image, target: native.Image) -> None:
        """Append a copy of mip level 0 between two images of the same shape and texel size."""
        self._append(lambda: self._native.record_image_to_image(source, target))

    @internal
    def record_barrier(self) -> None:
        """Append a barrier between all earlier and all later commands.

        Recorded commands do not need it: barriers are inserted wherever two commands conflict.
        """
        self._append(self._native.record_barrier)

    @internal
    def record_timestamp(self) -> None:
        """Append a timestamp, taken when all earlier commands are done; see `timestamps`."""
        self._append(self._native.record_timestamp)

    @internal
    def timestamps(self, queue_index: int = 0) -> list[int]:
        """Return the timestamps, in ticks, of the last submit to a queue, for which the caller has waited."""
        return self._native.timestamps(queue_index)

    def _append(self, record: Callable[[], object], resources: Sequence[Handle] = ()) -> None:
        """Append a command by calling `record`. Graphs also note the `resources` of a dispatch."""
        record()

    def reset(self) -> None:
        """Remove every recorded dispatch. Submitted work continues."""
        self.require_alive()
        self._native.reset()
        self.clear_parents()

    def submit(
        self,
        data: "bytes | bytearray | memoryview | None" = None,
        queue_index: int = ALL_QUEUES,
        instance_count: int | None = None,
        cuda_stream: object = None,
    ) -> None:
        """Submit the whole list `instance_count` times. Returns at once.

        Parameters
        ----------
        data
            The push constants of all recorded dispatches in order, once per instance.
        queue_index
            A queue; -2 means every queue, -1 any one queue.
        instance_count
            How many times to run the list. None means once per instance in `data`.

        Raises
        ------
        ValueError
            Both `data` and `instance_count` are None, the sizes do not match, or there is no such queue.
        RuntimeError
            `cuda_stream` is not None; only 0.1.0's CUDA backend has streams.
        """
        self.require_alive()
        if cuda_stream is not None:
            raise require_cuda("cuda_stream", "leave it out")
        if data is None and instance_count is None:
            raise ArgumentValueError("data, instance_count: one of the two is needed")
        payload = bytes(data) if data is not None else b""
        size = self.get_instance_size()
        if instance_count is None:
            instance_count = max(len(payload) // size, 1) if size else 1
        self._submit_rows(payload, parse_instances(instance_count), queue_index)

    def _submit_rows(
        self, rows: "bytes | bytearray | memoryview", instance_count: int, queue_index: int
    ) -> None:
        size = self.get_instance_size()
        if len(rows) != size * instance_count:
            raise ArgumentValueError(
                f"data: expected {instance_count} instances of {size} bytes, got {len(rows)} bytes"
            )
        if queue_index not in (ALL_QUEUES, ANY_QUEUE):
            queue_index = parse_queue(queue_index, self.context, "queue_index")
        if self._native.length:
            self._native.submit(queue_index, rows, instance_count)

    def _release(self) -> None:
        commands = getattr(self, "_native", None)
        if commands is not None:
            commands.destroy()


def parse_instances(instance_count: object) -> int:
    """Return an instance count as an int. Raises ValueError if it is not a positive int."""
    return parse_positive("instance_count", instance_count)
