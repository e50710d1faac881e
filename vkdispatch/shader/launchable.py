"""Calling, launching and recording: a program with its parameters, launch size and compiled variants."""

from __future__ import annotations

import functools
import math
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any
from weakref import ref

from vkdispatch.base.buffers.foreign import replace_arrays, replace_foreign
from vkdispatch.base.command_list import ALL_QUEUES, ANY_QUEUE
from vkdispatch.base.context import (
    Context,
    context_of,
    get_context,
    is_current,
    parse_queue,
    use_context,
    wrong_context,
)
from vkdispatch.base.dtype import is_integer_dtype, is_scalar
from vkdispatch.base.errors import ArgumentValueError, UsageError
from vkdispatch.base.init import is_dummy
from vkdispatch.base.process import as_int
from vkdispatch.base.record import replace
from vkdispatch.base.sharing.cuda_link import end_visits
from vkdispatch.base.sharing.dlpack import refuse_write
from vkdispatch.codegen.constant_arrays import ConstantArray
from vkdispatch.codegen.description import ShaderDescription
from vkdispatch.codegen.trace.current import is_tracing
from vkdispatch.compiler import analyses, passes
from vkdispatch.compiler.forms import PLAIN, Variant
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.execution_pipeline.optimization import Fusion
from vkdispatch.execution_pipeline.optimization import Launch as RecordedLaunch
from vkdispatch.execution_pipeline.timings import KernelFacts, register_facts
from vkdispatch.shader import signature, tracing
from vkdispatch.shader.arguments import add_constants, check_values, upload_constants
from vkdispatch.shader.building import BuiltKernel, Coarsening, Launch, choose_addressing, choose_variant
from vkdispatch.shader.dependencies import Guard
from vkdispatch.shader.launching import FastPath, KernelState, TiledFastPath, load_size
from vkdispatch.shader.program import FusibleKernel, Program, find_bound_resources
from vkdispatch.shader.size import Extent, LaunchSize, is_incomplete, parse_launch_size, parse_local_size

if TYPE_CHECKING:
    from vkdispatch.execution_pipeline.diagnostics import Diagnostics

_SIZE_OPTIONS = ("exec_size", "workgroups")
# The default workgroup size: it suits GPUs and CPUs. Kernels whose results may depend on the workgroup size
# get the largest that the device allows, as in 0.1.0, which is the second number on most devices.
_DEFAULT_GROUP = 256
_USUAL_MOST = 1024
# A launch is retried when another thread destroys an argument while it is being launched.
_ATTEMPTS = 100
# Compiled kernels that are kept for calls which size shared memory, of one kernel.
_MAX_SIZES = 64


class _Owner:
    """The key of a kernel's state in contexts, shared by the kernel objects that stand for one method."""

    __slots__ = ("__weakref__",)


def _no_referent() -> None:
    """Return None, as a weak reference to a deleted object does."""


class LaunchableKernel:
    """A program that can be called: built on first use, bound once, launched with one native call.

    Attributes
    ----------
    program
        What is compiled.
    who
        The kernel and where it is defined, for messages.
    local_size
        The workgroup size that the user gave, or None.
    size
        The launch size that the user gave, or None.
    parameters, constants
        What a call takes, and the constant arrays that are appended to that.
    slots
        What both fill, in order.
    latest, fast
        Weak references to the state used last, and to its fast path.
    guard
        Holds as long as what the kernel was traced from has not changed; None if nothing of it can.
    """

    guard: Guard | None = None
    internal = False  # whether the kernel is one of the package's own, which profiles leave out

    def __init__(
        self, program: Program, origin: str | None, local_size: object, workgroups: object, exec_size: object
    ) -> None:
        """Prepare a program to be called; see `ShaderFunction`."""
        self.program = program
        self.name = program.name
        self.origin = origin
        self.who = signature.describe_kernel(self.name, origin)
        self._is_auto = isinstance(local_size, str) and local_size == "auto"
        self.local_size = None if self._is_auto else parse_local_size(local_size)
        self._depends_on_groups = self.local_size is None and program.depends_on_workgroups()
        self._has_workgroups = workgroups is not None
        if self._is_auto:
            self.require_free_groups()
        self.parameters = program.parameters
        self.names = tuple(parameter.name for parameter in self.parameters)
        slots = {
            position: slot
            for position, parameter in enumerate(self.parameters)
            if parameter.fields is None and isinstance(slot := parameter.slots[0], signature.BufferSlot)
        }
        self._buffers = {at: f"{self.who}: argument {self.names[at]!r}" for at in slots}
        self._kinds = {at: slot.kind for at, slot in slots.items() if slot.kind is not None}
        self._written = [at for at, slot in slots.items() if slot.writes]
        constants = program.constants
        self.slots = tuple(slot for parameter in (*self.parameters, *constants) for slot in parameter.slots)
        self.constants: tuple[ConstantArray, ...] = tuple(parameter.default for parameter in constants)
        self.size: LaunchSize | None = None
        for option, size in zip(_SIZE_OPTIONS, (exec_size, workgroups), strict=True):
            if size is not None:
                self.size = parse_launch_size(option, size, self.names)
        self._has_warned = False  # of gaps in shared memory
        self._lock = threading.RLock()
        self._owner = _Owner()
        self.latest: Callable[[], KernelState | None] = _no_referent
        self.fast: Callable[[], FastPath | None] = _no_referent

    def enter(self, context: Context) -> KernelState:
        """Return the kernel's state in a context. The kernel's attributes describe that state from now on."""
        state = context._state_of(self._owner, KernelState)
        if self.latest() is not state:
            self._show(state)
        return state

    def restart(self, context: Context, tuned: Extent | None) -> KernelState:
        """Drop what was built in a context, to use another workgroup size."""
        state = context._states[self._owner] = KernelState(tuned, is_searched=True)
        self._show(state)
        return state

    def _show(self, state: KernelState) -> None:
        with self._lock:
            self.latest = ref(state)
            self.fast = _no_referent if state.fast is None else ref(state.fast)

    # -- calling

    def check_and_call(self, args: tuple[Any, ...], graph: object, kwargs: dict[str, Any]) -> bool:
        """Check all arguments, compile the kernel if necessary, and launch or record it.

        Returns False, and does nothing, if what the kernel was traced from has changed.
        """
        context = graph.context if isinstance(graph, CommandGraph) else context_of((*args, *kwargs.values()))
        if context is not None and not is_current(context) and context.usable:
            with use_context(context):
                return self.check_and_call(args, graph, kwargs)
        if is_tracing():
            raise UsageError(
                f"{self.who}: a kernel cannot call another one; make what they share a plain function"
            )
        if graph is not None and not isinstance(graph, CommandGraph):
            raise ArgumentValueError(
                f"{self.who}: graph: expected a vd.CommandGraph, got {type(graph).__name__}"
            )
        if is_dummy():
            raise UsageError(f"{self.who}: kernels do not run on the dummy backend; see get_src()")
        queue = ALL_QUEUES
        named = kwargs
        if "queue_index" in kwargs and "queue_index" not in self.names:
            named = dict(kwargs)
            queue = self._parse_queue(named.pop("queue_index"), graph)
        size, named = self.read_size(named)
        values = signature.bind_values(self.who, self.parameters, args, named)
        # With keyword arguments and defaults resolved, most calls can take the fast path too.
        latest = self.latest()
        fast = None if latest is None else latest.fast_paths.get(size.option)
        if fast is not None and fast.run(values, size, graph, queue):
            return True
        replaced = replace_arrays(values, graph is not None)
        if replaced is not None:
            if fast is not None and fast.run(replaced, size, graph, queue):
                return True
            return self.check_and_call(replaced, graph, self._options_of(size, kwargs, queue))
        shared = replace_foreign(values, self._buffers, self._kinds)
        if shared is not None:
            try:
                self._require_writable(shared)
                if fast is not None and fast.run(shared, size, graph, queue):
                    return True
                return self.check_and_call(shared, graph, self._options_of(size, kwargs, queue))
            finally:
                end_visits(get_context())
        context = get_context()
        state = self.enter(context)
        if graph is not None:
            self._check_graph(graph, context)
        call = check_values(self.who, self.parameters, values, context, graph)
        call = add_constants(call, self.constants, context)
        extent = self.compute_extent(size, values)
        if call.views and not size.in_groups:
            call.check_count(self.who, math.prod(extent))
        if 0 in extent:
            return True  # of no invocations: nothing to launch or to record
        if self._is_auto and not state.is_searched:
            state = self._use_stored_size(extent, context)
        local_size = self.choose_group(size.in_groups, context, state)
        coarsening = self._choose_coarsening(context, state)
        is_traced = self.program.is_traced
        form = choose_addressing(self.who, self.slots, call.slots, context, is_traced=is_traced)
        variant = choose_variant(
            self.who, extent, size.in_groups, local_size, coarsening, context, form, is_traced=is_traced
        )
        if self.is_sized_by_calls:
            variant = replace(variant, shared=self._find_shared_sizes(call.slots))
        if not size.in_groups and is_incomplete(extent, local_size) and self._fills_tiles:
            self._warn_of_gaps(extent, local_size)
        kernel = self.get_kernel(context, state, local_size, variant)
        launch = Launch(call, extent, size.in_groups, graph, queue)
        for _ in range(_ATTEMPTS):
            if self._run(kernel, state.diagnostics, variant, launch):
                return True
            if self.guard is not None and not self.guard.holds():
                return False
        raise UsageError(f"{self.who}: an argument was destroyed by another thread during the call")

    @property
    def is_sized_by_calls(self) -> bool:
        """Whether calls decide the size of shared memory, so that only a call builds the kernel."""
        return self.program.is_sized_by_calls

    def _find_shared_sizes(self, values: Sequence[Any]) -> tuple[int, ...]:
        """Return the sizes of shared memory that the values of a call decide."""
        assert self.program.kernel is not None
        integers = {
            slot.member: int(value)
            for slot, value in zip(self.slots, values, strict=True)
            if isinstance(slot, signature.ValueSlot) and is_scalar(slot.kind) and is_integer_dtype(slot.kind)
        }
        return analyses.launch_values.find_shared_sizes(self.who, self.program.kernel, integers)

    @property
    def _fills_tiles(self) -> bool:
        return not self.internal and self.program.fills_tiles

    def _warn_of_gaps(self, extent: Extent, local_size: Extent) -> None:
        if not self._has_warned and self.program.kernel is not None:
            self._has_warned = True
            from vkdispatch.shader.traced.generation import warn_of_gaps

            warn_of_gaps(self.program.kernel, extent, local_size)

    def _require_writable(self, values: tuple[Any, ...]) -> None:
        """Raise SharingError if the kernel writes memory that another library shares to be read only."""
        for position in self._written:
            if not getattr(values[position], "is_writable", True):
                refuse_write(self._buffers[position])

    def _run(
        self, kernel: BuiltKernel, diagnostics: Diagnostics | None, variant: Variant, launch: Launch
    ) -> bool:
        if tracing.LEVEL >= tracing.LAUNCHES:
            action = "launches" if launch.graph is None else "records"
            tracing.show_launch(self.who, action, launch.extent, launch.in_groups, kernel.local_size)
        observation = self.program.observation
        if observation is None or diagnostics is None:
            return kernel.run(launch)
        done: bool = observation.select(variant).run(self.who, kernel, diagnostics, launch)
        return done

    def _options_of(self, size: LaunchSize, kwargs: dict[str, Any], queue: int) -> dict[str, Any]:
        """Return the options of a call for another one with the same arguments in order."""
        options: dict[str, Any] = {} if size is self.size else {size.option: kwargs[size.option]}
        if queue != ALL_QUEUES and "queue_index" not in self.names:
            options["queue_index"] = queue
        return options

    def _parse_queue(self, queue_index: object, graph: CommandGraph | None) -> int:
        if queue_index is None:
            return ALL_QUEUES
        if graph is not None:
            raise ArgumentValueError(
                f"{self.who}: queue_index: recorded calls run on the queue of the submit; pass it to "
                "graph.submit()"
            )
        if as_int(queue_index) == ANY_QUEUE:
            return ANY_QUEUE
        return parse_queue(queue_index, get_context(), f"{self.who}: queue_index")

    def read_size(self, kwargs: dict[str, Any]) -> tuple[LaunchSize, dict[str, Any]]:
        """Return the launch size of a call, and the keyword arguments that are the kernel's own."""
        options = [option for option in _SIZE_OPTIONS if option in kwargs]
        if len(options) == 2:
            raise ArgumentValueError(f"{self.who}: exec_size, workgroups: pass one of the two, not both")
        if not options:
            if self.size is None:
                raise ArgumentValueError(
                    f"{self.who}: there is no launch size; pass exec_size= or workgroups= here or in "
                    "@vd.shader(...)"
                )
            return self.size, kwargs
        option = options[0]
        if kwargs[option] is None:
            raise ArgumentValueError(f"{self.who}: {option}: None is not a launch size; omit it")
        named = {name: value for name, value in kwargs.items() if name != option}
        return parse_launch_size(option, kwargs[option], self.names), named

    def _check_graph(self, graph: CommandGraph, context: Context) -> None:
        graph.require_alive()
        if graph.context is not context:
            raise wrong_context(f"{self.who}: graph: it", graph.context)

    def compute_extent(self, size: LaunchSize, values: tuple[Any, ...]) -> Extent:
        """Return the extent of a call with these values. Raises as `LaunchSize.extent`."""
        try:
            return size.extent(values)
        except Exception as error:
            error.add_note(f"while computing {size.option} of {self.who}")
            raise

    # -- building

    def get_kernel(
        self, context: Context, state: KernelState, local_size: Extent, variant: Variant
    ) -> BuiltKernel:
        """Return a compiled variant, and compile it first if necessary. Any thread may call it."""
        with self._lock:
            kernel = state.built.get((local_size, variant))
            if kernel is None:
                if self.is_sized_by_calls:
                    if not variant.shared:
                        raise UsageError(
                            f"{self.who}: calls decide the size of its shared memory; it is built by a call"
                        )
                    _drop_oldest(state)
                begin = perf_counter()
                kernel = self._compile(context, state, local_size, variant)
                times = kernel.times or (("build", perf_counter() - begin),)
                build = self.program.note_build(self.who, variant, local_size, times)
                tracing.show_build(build, kernel.source, kernel.form)
                known = self.name, self.origin, local_size, self.program.make_finder()
                register_facts(kernel.plan, KernelFacts(*known, kernel.layout, self.internal, build))
                state.built[local_size, variant] = kernel
                self._adopt(kernel, local_size, variant, context, state)
            return kernel

    def _compile(
        self, context: Context, state: KernelState, local_size: Extent, variant: Variant
    ) -> BuiltKernel:
        program, slots = self.program, self.slots
        coarsening = self._choose_coarsening(context, state)
        kernel = program.compile(slots, context, local_size, variant, coarsening)
        kernel.launcher.guard = self.guard
        loop_guard = program.loop_guard(context, variant)
        if loop_guard is not None:
            # One for all variants, which the fast path passes to each.
            state.loop_guard = state.loop_guard or loop_guard.make_values(self.who, context)
            kernel = replace(kernel, loop_guard=state.loop_guard)
        if program.observation is not None:
            if state.diagnostics is None:
                from vkdispatch.execution_pipeline.diagnostics import Diagnostics

                instrumented = program.observation.select(variant).instrumented
                state.diagnostics = Diagnostics(context, prints=instrumented.prints)
            return kernel
        # Fusing reads recorded arguments in the layout of the plain form.
        if not program.is_traced or variant.addressed:
            return kernel
        resources = find_bound_resources(program, slots)
        most = min(info.max_bound_storage_buffers for info in context.device_infos)
        fusible = _RecordedKernel(program, kernel.layout, resources, self.local_size, most)
        return replace(kernel, fusible=fusible)

    def _adopt(
        self, kernel: BuiltKernel, local_size: Extent, variant: Variant, context: Context, state: KernelState
    ) -> None:
        """Register a compiled kernel: on the fast paths that it serves, and for the attributes."""
        if variant.folded:
            return
        is_plain = (
            self.program.observation is None
            and not variant.shared
            and all(parameter.fields is None for parameter in self.parameters)
            and tracing.LEVEL < tracing.LAUNCHES
        )
        for option in _SIZE_OPTIONS:
            in_groups = option == "workgroups"
            if is_plain and local_size == self.choose_group(in_groups, context, state):
                if option not in state.fast_paths:
                    constants: tuple[Any, ...] = upload_constants(self.constants, context)
                    slots, loop_guard = self.slots, self.program.loop_guard(context, variant)
                    if kernel.loop_guard is not None and loop_guard is not None:
                        constants += kernel.loop_guard.slots
                        slots += loop_guard.slots
                    state.fast_paths[option] = (
                        TiledFastPath(slots, in_groups, constants, local_size)
                        if self._fills_tiles and not in_groups
                        else FastPath(slots, in_groups, constants)
                    )
                state.fast_paths[option].add(kernel, variant)
        is_shown = state.primary is None or variant == PLAIN
        if is_shown and local_size == self.choose_group(self.is_sized_in_groups, context, state):
            state.primary = kernel
            # What a driver's limit of rounds adds is not shown: sources do not depend on the device.
            is_own = kernel.loop_guard is None
            state.show = (
                (lambda: kernel.source) if is_own else partial(self.program.show, local_size, variant)
            )
            state.fast = state.fast_paths.get(self.size.option) if self.size else None
            self._show(state)

    def _choose_coarsening(self, context: Context, state: KernelState) -> Coarsening:
        if state.coarsening is None:
            state.coarsening = self.program.choose_coarsening(context)
        return state.coarsening

    # -- workgroup sizes

    @property
    def is_sized_in_groups(self) -> bool:
        """Whether the kernel's own launch size counts workgroups."""
        return self.size is not None and self.size.in_groups

    def choose_group(self, in_groups: bool, context: Context, state: KernelState) -> Extent:
        """Return the workgroup size for launches by invocations, or by workgroups if `in_groups`."""
        if self.local_size is not None:
            return self.local_size
        if state.tuned is not None and not in_groups:
            return state.tuned
        most = context.max_invocations_along_x
        # Code that depends on the workgroup size gets the largest one, and so does the source on the dummy
        # backend.
        is_largest = in_groups or self._depends_on_groups or not context.runs
        return (most if is_largest else min(_DEFAULT_GROUP, most), 1, 1)

    def assume_group(self, in_groups: bool) -> Extent:
        """Return the workgroup size to assume without a device."""
        if self.local_size is not None:
            return self.local_size
        return (_USUAL_MOST if in_groups or self._depends_on_groups else _DEFAULT_GROUP, 1, 1)

    def require_free_groups(self) -> None:
        """Raise RuntimeError unless the kernel does the same for every workgroup size."""
        if self.local_size is not None:
            reason = f"has the local_size {self.local_size}; leave it out"
        elif self._has_workgroups:
            reason = "is launched by workgroups; pass an exec_size"
        elif self._depends_on_groups:
            reason = "may depend on the size of its workgroups (shared memory, barriers, their ids, raw code)"
        elif self.program.observation is not None:
            reason = "prints or is checked, which takes most of its time"
        else:
            return
        raise UsageError(f"{self.who}: no workgroup size can be chosen by measurement: the kernel {reason}")

    def _use_stored_size(self, extent: Extent, context: Context) -> KernelState:
        """Use the workgroup size that was measured for launches of this size, in any process."""
        with self._lock:
            state = self.enter(context)
            if state.is_searched:
                return state
            best = load_size(context, self.program.description, extent)
            return self.restart(context, None if best is None else (best, 1, 1))


def _drop_oldest(state: KernelState) -> None:
    """Make room for a kernel with shared memory of another size."""
    sized = [key for key in state.built if key[1].shared]
    for key in sized[: max(0, len(sized) + 1 - _MAX_SIZES)]:
        del state.built[key]


class _RecordedKernel(FusibleKernel):
    """A kernel as graphs record it."""

    __slots__ = ()

    def fuse(
        self, launches: Sequence[RecordedLaunch], uses: Mapping[int, int], discarded: frozenset[int]
    ) -> list[Fusion]:
        """Find chains among launches in a row; see `Fusible` in `execution_pipeline.optimization`."""
        # Imported on first use: most programs fuse nothing.
        from vkdispatch.shader.fusion import find_chains

        return find_chains(launches, uses, discarded, _make_fused_kernel)


# Equal chains share one kernel.
@functools.lru_cache(maxsize=256)
def _make_fused_kernel(description: ShaderDescription, local_size: Extent | None) -> LaunchableKernel:
    from vkdispatch.shader.traced.program import TracedProgram

    program = TracedProgram(description.name, description, passes.diagnostics.Checks(), None)
    return LaunchableKernel(program, None, local_size, None, None)
