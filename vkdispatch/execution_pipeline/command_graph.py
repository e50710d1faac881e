"""Recorded kernel calls, replayed with the same values or with others for bound variables."""

import warnings
from _thread import RLock, _local
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Self

from vkdispatch.base import errors
from vkdispatch.base.buffer import Buffer, renew_contents
from vkdispatch.base.command_list import ALL_QUEUES, ANY_QUEUE, CommandList, Rows, parse_instances
from vkdispatch.base.compute_plan import ComputePlan
from vkdispatch.base.context import Context, Handle, get_context
from vkdispatch.base.descriptor_set import DescriptorSet
from vkdispatch.base.dtype import DType
from vkdispatch.base.host_numpy import np
from vkdispatch.base.process import internal
from vkdispatch.execution_pipeline import recordable
from vkdispatch.execution_pipeline.buffer_builder import BufferBuilder, BufferedStructEntry, BufferUsage
from vkdispatch.execution_pipeline.optimization import Moves, Recording, plan_fusions
from vkdispatch.execution_pipeline.recordable import BufferBindInfo, ImageBindInfo

# Programs with kernels in SPIR-V need not import the kernel language, which takes longest of all.
if TYPE_CHECKING:
    from vkdispatch.execution_pipeline.diagnostics import Diagnostics, Probe


class CommandGraph(CommandList):
    """Kernel calls recorded in order, to be submitted any number of times.

    A submit runs the whole recording `instance_count` times, one after another. Recording can continue after
    a submit: later submits replay everything recorded since the last `reset`. Threads can share a graph: each
    call records or submits as a whole.

    Examples
    --------
    >>> x = vd.asbuffer(np.array([1, 2, 3], np.float32))
    >>> graph = vd.CommandGraph()
    >>> total = vd.cumsum(x, graph=graph)
    >>> graph.submit()
    >>> total.read(0)
    array([1., 3., 6.], dtype=float32)

    Attributes
    ----------
    submit_on_record
        Whether each recorded call is submitted at once.
    uniform_values
        Values that were passed to `record_shader`, by (shader_uuid, name).
    recorded_descriptor_sets
        The bindings of `record_shader`.
    """

    def __init__(
        self, reset_on_submit: bool = False, submit_on_record: bool = False, context: Context | None = None
    ) -> None:
        """Create an empty graph.

        Parameters
        ----------
        reset_on_submit
            Whether to clear the recording after each submit.
        submit_on_record
            Whether to submit after each recorded call.
        context
            The context of the graph; None: the current one.
        """
        super().__init__(context)
        self._reset_on_submit = reset_on_submit
        self.submit_on_record = submit_on_record
        # Held by all calls that change or replay the recording.
        self._lock = RLock()
        self._arguments = recordable.ArgumentBytes()
        self.uniform_values: dict[tuple[object, str], object] = {}
        self.recorded_descriptor_sets: list[DescriptorSet] = []
        self._diagnostics: Diagnostics | None = None
        # What `optimize` needs of each dispatch, in order.
        self._recorded = Recording()

    @property
    def pc_values(self) -> dict[str, object]:
        """The values of bound variables by name, as given to `set_var`."""
        return self._arguments.values

    def _append_dispatch(
        self,
        kernel: recordable.Recordable,
        arguments: Any,
        limit: Any,
        limit_is_groups: bool,
        resources: Sequence[Handle] = (),
        variables: Mapping[str, Iterable[tuple[int, DType]]] | None = None,
        probe: "tuple[int, Probe] | None" = None,
    ) -> bool:
        """Append a dispatch. All recorded kernels pass through here.

        Parameters
        ----------
        arguments
            One value per slot of the kernel's launcher; the bytes for a `BoundPlan`.
        limit
            Invocations, or workgroups if `limit_is_groups`, as `Launcher.launch`.
        resources
            The buffers, images and samplers that it binds. The graph ends with them.
        variables
            Per bound name, (byte offset in the dispatch's arguments, dtype) of each use.
        probe
            For an observed kernel: the offset of its launch number (uint32) in the dispatch's arguments, and
            what its reports mean. `resources` then include the buffer of `diagnostics`.

        Returns
        -------
        False, with nothing recorded, if the launcher refuses the arguments.
        """
        with self._lock:
            mark = self._mark() if self.submit_on_record else (0, 0, 0, 0)
            recorded = kernel.launcher.record(self._native, arguments, limit, limit_is_groups)
            if recorded is None:
                return False
            offset, block = recorded
            packed = self._arguments
            instance = packed.instance
            if len(instance) == offset:
                instance += block
            else:
                packed.store(offset, block)
            self._recorded.add(kernel.fusible, resources, offset)
            plan, parents = kernel.plan, self.parents
            if plan._handle not in parents:
                self.register_parent(plan)
            for parent in resources:
                if parent._handle not in parents:
                    self.register_parent(parent)
            if variables:
                packed.add_variables(offset, variables)
            if probe is not None:
                packed.probes.append((offset + probe[0], probe[1]))
            if self.submit_on_record:
                try:
                    self.submit()
                except BaseException:
                    self._rewind(mark)
                    raise
        return True

    @internal
    @contextmanager
    def recording_together(self) -> Iterator[None]:
        """Record several dispatches as one call: with `submit_on_record`, they are submitted together."""
        with self.recording_whole():
            submits, self.submit_on_record = self.submit_on_record, False
            try:
                yield
            finally:
                self.submit_on_record = submits
            if submits:
                self.submit()

    @internal
    @contextmanager
    def recording_whole(self) -> Iterator[None]:
        """Keep what is recorded only if nothing is raised: a failed call does not run with later ones."""
        with self._lock:
            mark = self._mark()
            try:
                yield
            except BaseException:
                self._rewind(mark)
                raise

    def _mark(self) -> tuple[int, int, int, int]:
        """Return the present end of the recording, for `_rewind`."""
        native = self._native
        return native.length, native.object_count, len(self.parents), len(self.recorded_descriptor_sets)

    def _rewind(self, mark: tuple[int, int, int, int]) -> None:
        """Forget what was recorded since, with its resources; bound variables keep their names."""
        length, objects, parents, sets = mark
        if self.destroyed:
            return
        for number in list(self.parents)[parents:]:
            self.parents.pop(number).children_dict.pop(self._handle, None)
        del self.recorded_descriptor_sets[sets:]
        try:
            if self._native.length > length:
                self.truncate(length)
            self._native.forget_objects(objects)
        except errors.VkDispatchError:
            return  # the context was closed meanwhile, and the graph ends with it

    @internal
    def record_shader(  # noqa: PLR0913 - the signature of 0.1.0
        self,
        plan: ComputePlan,
        shader_description: recordable.Described,
        exec_limits: Sequence[int],
        blocks: Sequence[int],
        bound_buffers: Sequence[BufferBindInfo],
        bound_samplers: Sequence[ImageBindInfo] = (),
        uniform_values: Mapping[str, object] | None = None,
        pc_values: Mapping[str, object] | None = None,
        shader_uuid: object = None,
    ) -> None:
        """Append a dispatch of a kernel whose plan the caller compiled.

        Parameters
        ----------
        plan
            Compiled from `shader_description.make_source(...)`.
        shader_description
            The kernel.
        exec_limits
            Invocations along x, y and z; those beyond return at once.
        blocks
            Workgroups along x, y and z.
        bound_buffers, bound_samplers
            The resources and their bindings. The members named by `shape_name` get the buffers' shapes.
        uniform_values, pc_values
            Values of the argument block's members by name; a variable of `bind_var` among `pc_values` gets
            its value at each submit.
        shader_uuid
            Key of this dispatch's values in `uniform_values`.

        Raises
        ------
        TypeError
            An argument is of the wrong kind.
        ValueError
            A member is unknown or has no value, or a value does not fit.
        RuntimeError
            A binding is empty, or an object was destroyed.
        """
        self.require_alive()
        layout = shader_description.layout()
        shapes = {info.shape_name: info.buffer.shader_shape for info in bound_buffers if info.shape_name}
        values = {**(uniform_values or {}), **(pc_values or {}), **shapes}
        block, variables = recordable.pack_members(shader_description.name, layout, exec_limits, values)
        uniform_binding = list(shader_description.binding_type_list).index(3) if layout.uniform else -1
        descriptors = DescriptorSet(plan)
        for info in bound_buffers:
            descriptors.bind_buffer(
                info.buffer, info.binding, read_access=info.read_access, write_access=info.write_access
            )
        for image in bound_samplers:
            descriptors.bind_sampler(image.sampler, image.binding, image.read_access, image.write_access)
        groups = self._parse_blocks(blocks)
        for variable, _ in variables:
            if variable.graph is not self:
                raise errors.ArgumentValueError(
                    f"{shader_description.name}: pc_values: {variable!r} was bound by another graph"
                )
        bound = recordable.BoundPlan(plan, descriptors.bindings(uniform_binding), uniform_binding)
        slots: dict[str, list[tuple[int, DType]]] = {}
        for variable, slot in variables:
            slots.setdefault(variable.name, []).append((slot.offset, slot.kind))
        before = self.uniform_values.copy()
        try:
            with self.recording_together():
                self._append_dispatch(bound, block, groups, True, tuple(descriptors.parents.values()), slots)
                self.register_parent(descriptors)
                self.recorded_descriptor_sets.append(descriptors)
                self.uniform_values.update({(shader_uuid, name): value for name, value in values.items()})
        except BaseException:
            self.uniform_values = before
            raise

    def _append(self, record: Callable[[], object], resources: Sequence[Handle] = ()) -> None:
        with self._lock:
            offset = self.get_instance_size()
            super()._append(record)
            self._recorded.add(None, resources, offset)

    @internal
    def start(self, queue_index: int) -> int:
        """Submit to a queue; return the number of the batch to wait for, 0 for none. Raises as `submit`."""
        arguments = self._arguments
        if arguments.probes or arguments.variables:
            self.submit(1, queue_index)
            return self.context._native.last_value(queue_index)
        arguments.complete(self.get_instance_size())
        return self._native.submit(queue_index, arguments.instance, 1)

    @internal
    def run(self, queue_index: int) -> None:
        """Submit to a queue and wait, usually with one call of the native module. Raises as `submit`."""
        arguments = self._arguments
        if arguments.probes or arguments.variables:
            self.context._native.wait_for(queue_index, self.start(queue_index), True)
            return
        arguments.complete(self.get_instance_size())
        self._native.evaluate(queue_index, arguments.instance, None)

    @internal
    def truncate(self, count: int) -> None:
        """Keep the first `count` commands only; bound variables keep their names."""
        with self._lock:
            self._native.rearrange(range(count))
            self._recorded.truncate(count)
            self._arguments.truncate(self.get_instance_size())

    def optimize(self, temporaries: Iterable[Buffer[Any]] = ()) -> int:
        """Replace consecutive dispatches by a single one where this only changes the time they take.

        Consecutive dispatches of element-wise kernels over the same invocations become one kernel: values
        passed from one to the next stay in registers, and each element is loaded and stored once.
        Element-wise means: if one kernel of a chain writes a buffer that another one accesses, then every
        invocation accesses a single element of it, its own. Kernels for which this cannot be proven, and
        those with image stores, shared memory, atomics, prints or checks, end a chain and stay as they are.

        Afterwards the graph can be recorded further, reset or optimized again. Bound variables keep their
        names.

        Parameters
        ----------
        temporaries
            Buffers whose contents are not read after a submit. They are not written at all unless other
            dispatches of the graph use them.

        Returns
        -------
        The number of dispatches saved.

        Raises
        ------
        TypeError
            An entry of `temporaries` is not a buffer.
        RuntimeError
            The graph or one of the buffers was destroyed.
        ShaderBuildError
            The driver rejected a fused kernel. The recording is unchanged.
        """
        self.require_alive()
        discarded = _find_handles(temporaries)
        with self._lock:
            count = self._native.length
            recorded = self._recorded.dispatches()
            if self.submit_on_record or len(recorded) != count:
                return 0
            arguments = self._arguments
            arguments.complete(self.get_instance_size())
            bound = sorted(slot.offset for slots in arguments.variables.values() for slot in slots)
            plan = plan_fusions(recorded, arguments.instance, bound, discarded)
            if not plan.saved:
                return 0
            try:
                order = plan.record(self, count)
                recorded = self._recorded.dispatches()
                moves = plan.find_moves(recorded, order)
                arranged = self._native.rearrange(order)
            except BaseException:
                self.truncate(count)
                raise
            arguments.move(moves, arguments.instance)
            arguments.move(Moves.pack(arranged), bytearray(self.get_instance_size()))
            ends = accumulate((size for _, size in arranged), initial=0)
            self._recorded = Recording(
                (*recorded[number][:2], end) for number, end in zip(order, ends, strict=False)
            )
            return plan.saved

    def __repr__(self) -> str:
        try:
            count = self.length
        except RuntimeError:
            return self._describe("no commands")
        variables = "".join(f", variable {name!r}" for name in self._arguments.variables)
        return self._describe(f"{count} command{'s' * (count != 1)}{variables}")

    def bind_var(self, name: str) -> recordable.BoundVariable:
        """Return an object to pass as the argument of a `Var[...]` parameter; `set_var` gives it values.

        The same name can be bound several times. `submit` needs a value for each name that a recorded kernel
        uses.

        Raises
        ------
        TypeError
            `name` is not a string.
        """
        if not isinstance(name, str):
            raise errors.ArgumentTypeError(f"name: expected text, got {name!r}")
        with self._lock:
            self._arguments.variables.setdefault(name, [])
        return recordable.BoundVariable(self, name)

    def set_var(self, name: str, value: object) -> None:
        """Set the value of a bound variable for the following submits.

        Parameters
        ----------
        name
            The name that was passed to `bind_var`.
        value
            A number, vector or matrix of the parameter's dtype. For a submit of N > 1 instances: one number
            for all of them, or a sequence of N values.

        Raises
        ------
        ValueError
            No variable of that name was bound.
        TypeError
            `value` cannot be converted to numbers.
        """
        with self._lock:
            self._arguments.set_value(name, value)

    def __enter__(self) -> Self:
        """Record this thread's calls without `graph=` into this graph, until the `with` block ends.

        Raises RuntimeError if this thread has a global graph already.
        """
        set_global_graph(self)
        return self

    def __exit__(self, *_: object) -> None:
        set_global_graph(None)

    # The public order of arguments differs from that of CommandList.
    def submit(  # type: ignore[override]
        self, instance_count: int | None = None, queue_index: int = ALL_QUEUES
    ) -> None:
        """Submit everything recorded, `instance_count` times (None: once).

        Returns immediately, unless a recorded kernel prints or is checked: then it waits for the work. A
        graph without calls does nothing, and warns.

        Parameters
        ----------
        instance_count
            The number of runs; each has a separate row of bound values.
        queue_index
            -2: every queue of the context, each with its own copy of the buffers; -1: any queue; else the
            queue of that index.

        Raises
        ------
        ValueError
            A bound variable has no value, its value does not fit its type or the number of instances, or
            there is no such queue.
        CheckError
            A checked kernel violated a check. All work has been done.
        """
        self.require_alive()
        instances = 1 if instance_count is None else parse_instances(instance_count)
        with self._lock:
            if not (self._native.length or self._reset_on_submit or self.submit_on_record):
                warnings.warn(
                    "this graph has no calls: a call is recorded by graph=..., or within `with graph:`, and "
                    "runs at once otherwise",
                    RuntimeWarning,
                    stacklevel=2,
                )
            rows = self._pack_rows(instances)
            if self._arguments.probes:
                self._submit_observed(rows, instances, queue_index)
            else:
                self._send(rows, instances, queue_index)

    @property
    @internal
    def diagnostics(self) -> "Diagnostics":
        """The receiver of the reports of this graph's observed kernels."""
        if self._diagnostics is None:
            # imports the kernel language
            from vkdispatch.execution_pipeline.diagnostics import Diagnostics

            self._diagnostics = Diagnostics(self.context, prints=True)
        return self._diagnostics

    def _submit_observed(self, rows: Rows, instances: int, queue_index: int) -> None:
        """Submit launches with their numbers, wait, and deliver their prints and violations."""
        arguments = self._arguments
        numbered = arguments.number_launches(rows, instances)

        def launch() -> bool:
            self._send(numbered, instances, queue_index)
            return True

        self.diagnostics.observe(launch, [probe for _, probe in arguments.probes])

    def _send(self, rows: Rows, instances: int, queue_index: int) -> None:
        """Submit, and clear the recording if it is to be: it does not run again if a wait is interrupted."""
        try:
            self._submit_rows(rows, instances, queue_index)
        except errors.OutOfDeviceMemoryError:
            # a cached buffer whose upload failed
            if not sum(map(renew_contents, self.parents.values())):
                raise
            self._submit_rows(rows, instances, queue_index)
        if self._reset_on_submit:
            self.reset()

    def submit_any(self, instance_count: int | None = None) -> None:
        """Submit everything recorded to any one queue; see `submit`."""
        self.submit(instance_count, ANY_QUEUE)

    def _pack_rows(self, instances: int) -> Rows:
        """Return the argument bytes of all instances. Raises ValueError if a variable has no value."""
        arguments = self._arguments
        arguments.require_values()
        arguments.complete(self.get_instance_size())
        return arguments.pack_rows(instances)

    @internal
    def prepare_submission_state(self, instance_count: int) -> None:
        """Check that `submit(instance_count)` would work, without submitting. Raises as `submit`."""
        self.require_alive()
        with self._lock:
            self._pack_rows(parse_instances(instance_count))

    @internal
    def prepare_for_cuda_graph_capture(self, instance_count: int | None = None) -> None:
        """Check that a submit would work, as `prepare_submission_state` does."""
        self.prepare_submission_state(1 if instance_count is None else instance_count)

    @property
    @internal
    def pc_builder(self) -> BufferBuilder:
        """A copy of one instance's argument bytes, with the places of bound variables as its elements."""
        builder = BufferBuilder(usage=BufferUsage.PUSH_CONSTANT)
        arguments = self._arguments
        with self._lock:
            arguments.complete(self.get_instance_size())
            rows = arguments.pack_rows(1)
            for name, slots in arguments.variables.items():
                for position, slot in enumerate(slots):
                    place = slice(slot.offset, slot.offset + slot.kind.item_size)
                    builder.element_map[name, str(position)] = BufferedStructEntry(place, slot.kind, 1)
        builder.instance_bytes = len(rows)
        builder.prepare(1)
        if builder.backing_buffer is not None:
            builder.backing_buffer[:] = np.frombuffer(rows, np.uint8)
        return builder

    @property
    @internal
    def uniform_builder(self) -> BufferBuilder:
        """An empty builder: a graph keeps all arguments in the bytes that `pc_builder` shows."""
        builder = BufferBuilder(usage=BufferUsage.UNIFORM_BUFFER)
        builder.prepare(1)
        return builder

    def reset(self) -> None:
        """Clear the recording, the bound variables and their values. Submitted work continues."""
        with self._lock:
            super().reset()
            self._arguments = recordable.ArgumentBytes()
            self.uniform_values = {}
            self.recorded_descriptor_sets = []
            self._recorded = Recording()


def _find_handles(temporaries: Iterable[Buffer[Any]]) -> frozenset[int]:
    """Return the handles of buffers. Raises TypeError for other objects, RuntimeError for destroyed ones."""
    if isinstance(temporaries, Buffer) or not isinstance(temporaries, Iterable):
        raise errors.ArgumentTypeError(f"temporaries: expected a sequence of buffers, got {temporaries!r}")
    handles = set()
    for position, buffer in enumerate(temporaries):
        if not isinstance(buffer, Buffer):
            raise errors.ArgumentTypeError(
                f"temporaries: entry {position}: expected a vd.Buffer, got {buffer!r}"
            )
        buffer.require_alive()
        handles.add(buffer._memory_handle)
    return frozenset(handles)


class _ThreadGraphs(_local):
    """The graphs of the running thread."""

    chosen: CommandGraph | None = None


class _DefaultGraph(_local):
    """The running thread's own graph in a context."""

    graph: CommandGraph | None = None


current = _ThreadGraphs()
_DEFAULT = "graphs.default"


def default_graph() -> CommandGraph:
    """Return the default graph of this thread, which submits every call at once and does not keep it.

    Examples
    --------
    >>> vd.default_graph() is vd.global_graph()
    True
    """
    default = get_context()._keep(_DEFAULT, _DefaultGraph)
    graph = default.graph
    if graph is None or graph.destroyed:
        graph = default.graph = CommandGraph(reset_on_submit=True, submit_on_record=True)
    return graph


def global_graph() -> CommandGraph:
    """Return the graph into which calls of this thread without `graph=` are recorded.

    Examples
    --------
    >>> vd.global_graph() is vd.default_graph()
    True
    """
    return current.chosen if current.chosen is not None else default_graph()


def set_global_graph(graph: CommandGraph | None = None) -> None:
    """Record calls of this thread without `graph=` into `graph`; None restores the default graph.

    Raises
    ------
    RuntimeError
        A graph is set already.
    TypeError
        `graph` is not a CommandGraph.

    Examples
    --------
    >>> graph = vd.CommandGraph()
    >>> vd.set_global_graph(graph)
    >>> total = vd.sum(vd.asbuffer(np.ones(4, np.float32)))
    >>> vd.set_global_graph(None)
    >>> graph.submit()
    >>> float(total)
    4.0
    """
    if graph is not None and not isinstance(graph, CommandGraph):
        raise errors.ArgumentTypeError(f"graph: expected a CommandGraph or None, got {type(graph).__name__}")
    if graph is not None and current.chosen is not None:
        raise errors.UsageError("a global graph is set already; call set_global_graph(None) first")
    current.chosen = graph


@contextmanager
def pause_recording() -> Iterator[None]:
    """Run this thread's calls at once, also while a graph records them."""
    chosen, current.chosen = current.chosen, None
    try:
        yield
    finally:
        current.chosen = chosen
