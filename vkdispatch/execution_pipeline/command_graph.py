"""Recorded kernel calls, replayed with the same or with other values for variables bound by name."""

import struct
from _thread import RLock, _local
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Protocol

from vkdispatch.base.buffer import Buffer
from vkdispatch.base.command_list import ALL_QUEUES, ANY_QUEUE, CommandList, Rows, parse_instances
from vkdispatch.base.compute_plan import ComputePlan
from vkdispatch.base.context import Context, get_context
from vkdispatch.base.descriptor_set import Binding, DescriptorSet
from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, CheckError, UsageError
from vkdispatch.base.handle import Handle
from vkdispatch.base.host.packing import pack, pack_rows
from vkdispatch.base.host_numpy import np
from vkdispatch.base.process.listing import internal
from vkdispatch.base.record import record
from vkdispatch.execution_pipeline.buffer_builder import BufferBuilder, BufferedStructEntry, BufferUsage
from vkdispatch.execution_pipeline.optimization import Fusible, Moves, Recording, plan_fusions

# Programs with kernels in SPIR-V need not import the kernel language, which takes longest of all.
if TYPE_CHECKING:
    from vkdispatch.analyses.layout import ArgumentLayout
    from vkdispatch.base.image import Sampler
    from vkdispatch.execution_pipeline.diagnostics import Diagnostics, Probe


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
        """What is dispatched. The graph ends with it."""

    @property
    def launcher(self) -> Recorder:
        """What binds and packs its arguments."""

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


class BoundVariable:
    """A named value of a graph, to be passed as the argument of a `Var[...]` parameter."""

    __slots__ = ("graph", "name")

    if TYPE_CHECKING:
        # type checkers see by this that a bound variable is a value of `Var[D]`
        def __rmul__(self, other: Any, /) -> "BoundVariable": ...

    def __init__(self, graph: "CommandGraph", name: str) -> None:
        self.graph = graph
        self.name = name

    def __call__(self, *_: object) -> str:
        """Return the name. Bound variables are callable, which distinguishes them from values."""
        return self.name

    def __repr__(self) -> str:
        return f"<variable {self.name!r} of a CommandGraph>"


@record
class _Slot:
    """Offset of a bound variable in an instance's bytes, and its dtype."""

    offset: int
    kind: DType


class CommandGraph(CommandList):
    """Kernel calls recorded in order, to be submitted any number of times.

    A submit runs the whole recording `instance_count` times, one after another. Recording goes on after a
    submit: later submits replay everything recorded since the last `reset`. Threads may share a graph:
    each call records or submits as a whole.

    Attributes
    ----------
    submit_on_record
        Whether each recorded call is submitted at once.
    pc_values
        Values of bound variables by name, as given to `set_var`.
    uniform_values
        Values that `record_shader` was given, by (shader_uuid, name).
    recorded_descriptor_sets
        What `record_shader` has bound.
    """

    def __init__(
        self,
        reset_on_submit: bool = False,
        submit_on_record: bool = False,
        context: Context | None = None,
    ) -> None:
        """Make an empty graph.

        Parameters
        ----------
        reset_on_submit
            Forget the recording after each submit.
        submit_on_record
            Submit after each recorded call.
        context
            The context of the graph; None: the current one.
        """
        super().__init__(context)
        self._reset_on_submit = reset_on_submit
        self.submit_on_record = submit_on_record
        # held by all calls that change or replay the recording
        self._lock = RLock()
        # The argument bytes of one instance. Bound variables are written into a copy.
        self._instance = bytearray()
        self._slots: dict[str, list[_Slot]] = {}
        self.pc_values: dict[str, object] = {}
        self.uniform_values: dict[tuple[object, str], object] = {}
        self.recorded_descriptor_sets: list[DescriptorSet] = []
        # Of each observed kernel: the offset of its launch number in an instance, and what it reports.
        self._probes: list[tuple[int, Probe]] = []
        self._diagnostics: Diagnostics | None = None
        # what `optimize` needs of each dispatch, in order
        self._recorded = Recording()

    def _append_dispatch(
        self,
        kernel: Recordable,
        arguments: Any,
        limit: Any,
        limit_is_groups: bool,
        resources: Sequence[Handle] = (),
        variables: Mapping[str, Iterable[tuple[int, DType]]] | None = None,
        probe: "tuple[int, Probe] | None" = None,
    ) -> bool:
        """Append a dispatch. Every recorded kernel is appended here.

        Parameters
        ----------
        arguments
            One value per slot of the kernel's launcher; of a `BoundPlan`, the bytes.
        limit
            Invocations, or workgroups if `limit_is_groups`, as `Launcher.launch`.
        resources
            The buffers, images and samplers that it binds. The graph ends with them.
        variables
            Per bound name, (byte offset in the dispatch's arguments, dtype) of each use.
        probe
            Of an observed kernel: the offset of its launch number (uint32) in the dispatch's arguments, and
            what its reports mean. `resources` then include the buffer of `diagnostics`.

        Returns
        -------
        False, with nothing recorded, where the launcher refuses its arguments.
        """
        with self._lock:
            recorded = kernel.launcher.record(self._native, arguments, limit, limit_is_groups)
            if recorded is None:
                return False
            offset, block = recorded
            if len(self._instance) == offset:
                self._instance += block
            else:
                self._store_block(offset, block)
            self._recorded.add(kernel.fusible, resources, offset)
            plan, parents = kernel.plan, self.parents
            if plan._handle not in parents:
                self.register_parent(plan)
            for parent in resources:
                if parent._handle not in parents:
                    self.register_parent(parent)
            if variables:
                for name, places in variables.items():
                    slots = self._slots.setdefault(name, [])
                    slots.extend(_Slot(offset + place, kind) for place, kind in places)
            if probe is not None:
                self._probes.append((offset + probe[0], probe[1]))
            if self.submit_on_record:
                self.submit()
        return True

    @internal
    @contextmanager
    def recording_together(self) -> Iterator[None]:
        """Record several dispatches as one call: with `submit_on_record`, they are submitted together."""
        with self._lock:
            submits, self.submit_on_record = self.submit_on_record, False
            try:
                yield
            except BaseException:
                if submits and self._reset_on_submit:
                    self.reset()  # which forgets the first half of the call too
                raise
            finally:
                self.submit_on_record = submits
            if submits:
                self.submit()

    def _store_block(self, offset: int, block: "bytes | bytearray") -> None:
        """Store the argument bytes of a dispatch at their offset in an instance."""
        missing = offset - len(self._instance)
        if missing > 0:
            self._instance += bytes(missing)
        self._instance[offset : offset + len(block)] = block

    @internal
    def record_shader(
        self,
        plan: ComputePlan,
        shader_description: Described,
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
        block, variables = _pack_members(shader_description.name, layout, exec_limits, values)
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
                raise ArgumentValueError(
                    f"{shader_description.name}: pc_values: {variable!r} was bound by another graph"
                )
        bound = BoundPlan(plan, descriptors.bindings(uniform_binding), uniform_binding)
        slots: dict[str, list[tuple[int, DType]]] = {}
        for variable, slot in variables:
            slots.setdefault(variable.name, []).append((slot.offset, slot.kind))
        with self.recording_together():
            self._append_dispatch(bound, block, groups, True, tuple(descriptors.parents.values()), slots)
            self.register_parent(descriptors)
            self.recorded_descriptor_sets.append(descriptors)
            self.uniform_values.update({(shader_uuid, name): value for name, value in values.items()})

    def _append(self, record: Callable[[], object], resources: Sequence[Handle] = ()) -> None:
        with self._lock:
            offset = self.get_instance_size()
            super()._append(record)
            self._recorded.add(None, resources, offset)

    @internal
    def start(self, queue_index: int) -> int:
        """Submit to a queue; return the number of the batch to wait for, 0 for none. Raises as `submit`."""
        if self._probes or self._slots:
            self.submit(1, queue_index)
            return self.context._native.last_value(queue_index)
        self._complete_instance()
        return self._native.submit(queue_index, self._instance, 1)

    @internal
    def run(self, queue_index: int) -> None:
        """Submit to a queue and wait, as a rule with one call of the native module. Raises as `submit`."""
        if self._probes or self._slots:
            self.context._native.wait_for(queue_index, self.start(queue_index), True)
            return
        self._complete_instance()
        self._native.evaluate(queue_index, self._instance, None)

    @internal
    def truncate(self, count: int) -> None:
        """Keep the first `count` commands only; bound variables keep their names."""
        with self._lock:
            self._native.rearrange(range(count))
            self._recorded.truncate(count)
            size = self.get_instance_size()
            del self._instance[size:]
            for name, slots in self._slots.items():
                self._slots[name] = [slot for slot in slots if slot.offset < size]
            self._probes = [(offset, probe) for offset, probe in self._probes if offset < size]

    def optimize(self, temporaries: Iterable[Buffer[Any]] = ()) -> int:
        """Replace dispatches in a row by one where that changes nothing but the time they take.

        Neighbouring dispatches of element-wise kernels over the same invocations become one kernel: values
        passed from one to the next stay in registers, and each element is loaded and stored once.
        Element-wise means: if one kernel of a chain writes a buffer that another one accesses, then every
        invocation accesses a single element of it, its own. Kernels for which this cannot be proven, and
        those with image stores, shared memory, atomics, prints or checks, end a chain and stay as they are.

        The recording may go on, be reset or optimized again afterwards. Bound variables keep their names.

        Parameters
        ----------
        temporaries
            Buffers whose contents are not read after a submit. They are not written at all unless other
            dispatches of the graph use them.

        Returns
        -------
        How many dispatches were saved.

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
            self._complete_instance()
            bound = sorted(slot.offset for slots in self._slots.values() for slot in slots)
            plan = plan_fusions(recorded, self._instance, bound, discarded)
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
            self._relocate(moves, self._instance)
            self._relocate(Moves.pack(arranged), bytearray(self.get_instance_size()))
            ends = accumulate((size for _, size in arranged), initial=0)
            self._recorded = Recording(
                (*recorded[number][:2], end) for number, end in zip(order, ends, strict=False)
            )
            return plan.saved

    def _relocate(self, moves: Moves, target: bytearray) -> None:
        """Move argument bytes to their new offsets, and update the offsets of variables and probes."""
        moves.copy(self._instance, target)
        self._instance = target
        for name, slots in self._slots.items():
            self._slots[name] = [_Slot(moves.follow(slot.offset), slot.kind) for slot in slots]
        self._probes = [(moves.follow(offset), probe) for offset, probe in self._probes]

    def __repr__(self) -> str:
        try:
            count = self.length
        except RuntimeError:
            return self._describe("no commands")
        variables = "".join(f", variable {name!r}" for name in self._slots)
        return self._describe(f"{count} command{'s' * (count != 1)}{variables}")

    def bind_var(self, name: str) -> BoundVariable:
        """Return an object to pass as the argument of a `Var[...]` parameter; `set_var` gives it values.

        The same name may be bound several times. `submit` needs a value for each name that a recorded kernel
        uses.

        Raises
        ------
        TypeError
            `name` is no text.
        """
        if not isinstance(name, str):
            raise ArgumentTypeError(f"name: expected text, got {name!r}")
        with self._lock:
            self._slots.setdefault(name, [])
        return BoundVariable(self, name)

    def set_var(self, name: str, value: object) -> None:
        """Give a bound variable its value for the following submits.

        Parameters
        ----------
        name
            As given to `bind_var`.
        value
            A number, vector or matrix of the parameter's dtype. For a submit of N > 1 instances: one number
            for all of them, or a sequence of N values.

        Raises
        ------
        ValueError
            No variable of that name was bound.
        TypeError
            `value` cannot be numbers.
        """
        array = _as_numbers(name, value)
        with self._lock:
            self._check_bound(name)
            # copied, so that later changes by the caller have no effect
            self.pc_values[name] = array.copy() if isinstance(value, np.ndarray) else array

    def _check_bound(self, name: str) -> None:
        if name not in self._slots:
            known = ", ".join(map(repr, self._slots)) or "none"
            raise ArgumentValueError(f"name: no variable {name!r} was bound in this graph; bound are {known}")

    def _check_set(self) -> None:
        """Raise ValueError where a variable that a recorded kernel uses has no value."""
        for name, slots in self._slots.items():
            if slots and name not in self.pc_values:
                raise ArgumentValueError(
                    f"variable {name!r} has no value; call graph.set_var({name!r}, ...) before the submit"
                )

    # The public order of arguments differs from that of CommandList.
    def submit(  # type: ignore[override]
        self, instance_count: int | None = None, queue_index: int = ALL_QUEUES
    ) -> None:
        """Queue everything recorded, `instance_count` times (None: once).

        Returns immediately, unless a recorded kernel prints or is checked: then it waits for the work.

        Parameters
        ----------
        instance_count
            How many runs; each has its own row of bound values.
        queue_index
            -2: every queue of the context, each with its own copy of the buffers; -1: any queue; else the
            queue of that index.

        Raises
        ------
        ValueError
            A bound variable has no value, or its value does not fit its type or the number of instances; or
            there is no such queue.
        CheckError
            A checked kernel violated a check. All work has been done.
        """
        self.require_alive()
        instances = 1 if instance_count is None else parse_instances(instance_count)
        with self._lock:
            self._check_set()
            rows = self._pack_rows(instances)
            if self._probes:
                self._submit_observed(rows, instances, queue_index)
            else:
                self._submit_rows(rows, instances, queue_index)
            if self._reset_on_submit:
                self.reset()

    @property
    @internal
    def diagnostics(self) -> "Diagnostics":
        """The receiver of what observed kernels of this graph report."""
        if self._diagnostics is None:
            from vkdispatch.execution_pipeline.diagnostics import Diagnostics  # and with it the language

            self._diagnostics = Diagnostics(self.context, prints=True)
        return self._diagnostics

    def _submit_observed(self, rows: Rows, instances: int, queue_index: int) -> None:
        """Submit launches with their numbers, wait, and deliver their prints and violations."""
        numbered = np.frombuffer(bytearray(rows), np.uint8).reshape(instances, -1)
        count = len(self._probes)
        for position, (offset, _) in enumerate(self._probes):
            numbers = np.arange(position, instances * count, count, dtype=np.uint32)
            numbered[:, offset : offset + 4] = numbers.view(np.uint8).reshape(instances, 4)

        def launch() -> bool:
            self._submit_rows(bytearray(numbered), instances, queue_index)
            return True

        try:
            self.diagnostics.observe(launch, [probe for _, probe in self._probes])
        except CheckError:
            # the submit took place all the same
            if self._reset_on_submit:
                self.reset()
            raise

    def submit_any(self, instance_count: int | None = None) -> None:
        """Queue everything recorded on any one queue; see `submit`."""
        self.submit(instance_count, ANY_QUEUE)

    def _pack_rows(self, instances: int) -> Rows:
        """Return the argument bytes of all instances, with the values of bound variables."""
        self._complete_instance()
        size = len(self._instance)
        if not self.pc_values and instances == 1:
            return self._instance
        # NumPy releases the GIL while it copies
        rows = np.empty((instances, size), np.uint8)
        rows[:] = np.frombuffer(self._instance, np.uint8)
        for name, value in self.pc_values.items():
            for slot in self._slots[name]:
                packed = pack_rows(slot.kind, value, instances, f"variable {name!r}")
                rows[:, slot.offset : slot.offset + slot.kind.item_size] = np.frombuffer(
                    packed, np.uint8
                ).reshape(instances, -1)
        return rows.reshape(-1).data

    def _complete_instance(self) -> None:
        """Append zeros for the arguments of dispatches that have no packed ones."""
        self._instance += bytes(self.get_instance_size() - len(self._instance))

    @internal
    def prepare_submission_state(self, instance_count: int) -> None:
        """Check that `submit(instance_count)` would work, without submitting. Raises as `submit`."""
        self.require_alive()
        with self._lock:
            self._check_set()
            self._pack_rows(parse_instances(instance_count))

    @internal
    def prepare_for_cuda_graph_capture(self, instance_count: int | None = None) -> None:
        """Check that a submit would work, as `prepare_submission_state`: nothing else needs preparing."""
        self.prepare_submission_state(1 if instance_count is None else instance_count)

    @property
    @internal
    def pc_builder(self) -> BufferBuilder:
        """A copy of one instance's argument bytes, with the places of bound variables as its elements."""
        builder = BufferBuilder(usage=BufferUsage.PUSH_CONSTANT)
        with self._lock:
            rows = self._pack_rows(1)
            for name, slots in self._slots.items():
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
        """Forget the recording, the bound variables and their values. Work already submitted goes on."""
        with self._lock:
            super().reset()
            self._instance = bytearray()
            self._slots = {}
            self.pc_values = {}
            self.uniform_values = {}
            self.recorded_descriptor_sets = []
            self._probes = []
            self._recorded = Recording()


def _find_handles(temporaries: Iterable[Buffer[Any]]) -> frozenset[int]:
    """Return the handles of buffers. Raises TypeError or RuntimeError if they are none."""
    if isinstance(temporaries, Buffer) or not isinstance(temporaries, Iterable):
        raise ArgumentTypeError(f"temporaries: expected a sequence of buffers, got {temporaries!r}")
    handles = set()
    for position, buffer in enumerate(temporaries):
        if not isinstance(buffer, Buffer):
            raise ArgumentTypeError(f"temporaries: entry {position}: expected a vd.Buffer, got {buffer!r}")
        buffer.require_alive()
        handles.add(buffer._memory_handle)
    return frozenset(handles)


def _pack_members(
    who: str, layout: "ArgumentLayout", exec_limits: Sequence[int], values: Mapping[str, object]
) -> tuple[bytearray, list[tuple[BoundVariable, _Slot]]]:
    """Return a dispatch's argument bytes, and the offsets of bound variables in them."""
    block = bytearray(layout.size)
    variables = []
    for member in layout.members:
        if member.offset == layout.exec_offset:
            continue
        if member.name not in values:
            raise ArgumentValueError(f"{who}: uniform_values, pc_values: {member.name!r} has no value")
        value = values[member.name]
        if isinstance(value, BoundVariable):
            variables.append((value, _Slot(member.offset, member.dtype)))
            continue
        packed = pack(member.dtype, value, f"{who}: {member.name!r}")
        block[member.offset : member.offset + len(packed)] = packed
    unknown = set(values) - {member.name for member in layout.members}
    if unknown:
        raise ArgumentValueError(
            f"{who}: uniform_values, pc_values: no member is called {sorted(unknown)[0]!r}"
        )
    if layout.exec_offset is not None:
        try:
            struct.pack_into("<3I", block, layout.exec_offset, *(*exec_limits, 1, 1)[:3])
        except (struct.error, TypeError):
            raise ArgumentValueError(
                f"{who}: exec_limits: expected 1 to 3 ints of 32 bits, got {exec_limits!r}"
            ) from None
    return block, variables


def _as_numbers(name: str, value: object) -> "np.ndarray[Any, Any]":
    if value is None or callable(value):
        raise ArgumentTypeError(f"value: variable {name!r} needs numbers, got {value!r}")
    try:
        array = np.asarray(value)
    except (TypeError, ValueError) as error:
        raise ArgumentValueError(
            f"value: variable {name!r} needs numbers of one shape, got {value!r}"
        ) from error
    if array.dtype.kind not in "biufc":
        raise ArgumentTypeError(f"value: variable {name!r} needs numbers, got {value!r}")
    return array


class _ThreadGraphs(_local):
    """The graphs of the running thread."""

    chosen: CommandGraph | None = None


class _DefaultGraph(_local):
    """The running thread's own graph in a context."""

    graph: CommandGraph | None = None


current = _ThreadGraphs()
_DEFAULT = "graphs.default"


def default_graph() -> CommandGraph:
    """Return this thread's own graph, which submits every call as it is recorded and then forgets it."""
    default = get_context()._keep(_DEFAULT, _DefaultGraph)
    graph = default.graph
    if graph is None or graph.destroyed:
        graph = default.graph = CommandGraph(reset_on_submit=True, submit_on_record=True)
    return graph


def global_graph() -> CommandGraph:
    """Return the graph that this thread's calls without `graph=` go to."""
    return current.chosen if current.chosen is not None else default_graph()


def set_global_graph(graph: CommandGraph | None = None) -> None:
    """Record this thread's calls without `graph=` into `graph`; None restores the default graph.

    Raises
    ------
    RuntimeError
        A graph is set already.
    TypeError
        `graph` is no CommandGraph.
    """
    if graph is not None and not isinstance(graph, CommandGraph):
        raise ArgumentTypeError(f"graph: expected a CommandGraph or None, got {type(graph).__name__}")
    if graph is not None and current.chosen is not None:
        raise UsageError("a global graph is set already; call set_global_graph(None) first")
    current.chosen = graph
