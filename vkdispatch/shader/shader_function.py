"""A kernel that can be called: built on first use, bound once, launched with one native call."""

import copy
import functools
import sys
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar
from weakref import ref

from vkdispatch.analyses.contents import depends_on_workgroups
from vkdispatch.base.array_arguments import replace_arrays
from vkdispatch.base.command_list import ALL_QUEUES, ANY_QUEUE
from vkdispatch.base.compilation.compiler import can_compile, expect_kernels
from vkdispatch.base.compute_plan import ComputePlan
from vkdispatch.base.context import (
    Context,
    as_int,
    get_context,
    is_context_initialized,
    is_current,
    parse_queue,
    use_context,
    wrong_context,
)
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, UsageError, VkDispatchError
from vkdispatch.base.handle import context_of
from vkdispatch.base.init import is_dummy
from vkdispatch.base.process.listing import Listed
from vkdispatch.base.record import replace
from vkdispatch.codegen import ShaderDescription, ShaderSource, get_shader_print_line_numbers
from vkdispatch.codegen.constants import ConstantArray
from vkdispatch.codegen.trace.recording import is_tracing
from vkdispatch.execution_pipeline.command_graph import CommandGraph, current
from vkdispatch.execution_pipeline.diagnostics import Diagnostics
from vkdispatch.execution_pipeline.kernel_facts import KernelFacts, describe
from vkdispatch.execution_pipeline.optimization import Fusion, Launch
from vkdispatch.ir.variant import PLAIN, Variant
from vkdispatch.passes.diagnostics import Checks
from vkdispatch.shader.arguments.constants import add_constants, upload_constants
from vkdispatch.shader.arguments.parameters import (
    CheckedCall,
    bind_values,
    check_values,
    read_constants,
    read_parameters,
    read_slots,
)
from vkdispatch.shader.arguments.references import Home, Referenced, UnpicklableError
from vkdispatch.shader.fusible import FusibleKernel, bound_resources
from vkdispatch.shader.launch.launcher import (
    BuiltKernel,
    FastPath,
    build_kernel,
    check_local_size,
)
from vkdispatch.shader.launch.size import Extent, LaunchSize, parse_launch_size, parse_local_size
from vkdispatch.shader.launch.variants import (
    UNCOARSENED,
    Coarsening,
    choose_coarsening,
    choose_variant,
    reach,
)
from vkdispatch.shader.observation import Observation, checks_of, observe

if TYPE_CHECKING:
    from vkdispatch.shader.calling import Call, Function
    from vkdispatch.shader.fusion import FusedChain, FusedKernel
else:
    Call, Function = Generic, TypeVar("Function")

_SIZE_OPTIONS = ("exec_size", "workgroups")
# The default workgroup size: it suits GPUs and CPUs. Kernels whose results may depend on the workgroup size
# get the largest that the device allows, as in 0.1.0; the second number is that limit on most devices.
_DEFAULT_GROUP = 256
_USUAL_MOST = 1024
# A launch is retried when another thread destroys an argument while it is being launched.
_ATTEMPTS = 100


class LaunchBounds:
    """The workgroup size of a kernel."""

    def __init__(self, local_size: Extent) -> None:
        self.local_size = local_size


class _State:
    """The state of a kernel in one context. The context holds it, so that kernels keep no context alive.

    Attributes
    ----------
    tuned
        The fastest workgroup size found by measurement, or None.
    is_searched
        Whether a measured size was looked up.
    built
        The compiled kernels, by workgroup size and variant.
    primary, shown
        The compiled kernel and the source that the attributes `plan` and `source` of the kernel return.
    fast_paths, fast
        The fast path for each option of the launch size, and that for the decorator's option.
    """

    __slots__ = (
        "__weakref__",
        "built",
        "coarsening",
        "diagnostics",
        "fast",
        "fast_paths",
        "is_searched",
        "primary",
        "shown",
        "tuned",
    )

    def __init__(self, tuned: Extent | None = None, *, is_searched: bool = False) -> None:
        self.tuned = tuned
        self.is_searched = is_searched
        self.built: dict[tuple[Extent, Variant], BuiltKernel] = {}
        self.coarsening: Coarsening | None = None
        self.primary: BuiltKernel | None = None
        self.shown: ShaderSource | None = None
        self.fast: FastPath | None = None
        self.fast_paths: dict[str, FastPath] = {}
        self.diagnostics: Diagnostics | None = None


class _Owner:
    """The key of a kernel's state in contexts, shared by the kernel objects that stand for one method."""

    __slots__ = ("__weakref__",)


def _no_referent() -> None:
    """Return None, as a weak reference to an object that is gone does."""


class ShaderFunction(Referenced, Listed, Call[Function]):
    """A traced kernel. Calling it queues a dispatch, or records one into a graph.

    It is copied and pickled as Python functions are: by module and name. The kernel of an instance is pickled
    as methods are: by the instance and the name.

    Attributes
    ----------
    name
        Name of the Python function.
    shader_description
        The traced kernel.
    local_size, workgroups, exec_size, check
        As given to the decorator, or None.
    """

    def __init__(
        self,
        shader_description: ShaderDescription,
        local_size: Any = None,
        workgroups: Any = None,
        exec_count: Any = None,
        *,
        origin: str | None = None,
        check: Any = None,
    ) -> None:
        """Prepare a traced kernel to be called; needs no device.

        Parameters
        ----------
        shader_description
            The traced kernel.
        local_size
            1 to 3 ints: invocations per workgroup. "auto": what `autotune` has found out.
        workgroups, exec_count
            How many workgroups or invocations a call runs, unless the call says.
        origin
            Where the kernel is defined, such as "kernel.py:12".
        check
            What to check on the device; see `vd.shader`.

        Raises
        ------
        ValueError
            Both `workgroups` and `exec_count` are given, or a size is none.
        """
        if workgroups is not None and exec_count is not None:
            raise ArgumentValueError("exec_size, workgroups: give one of the two, not both")
        self.shader_description = shader_description
        self.name = shader_description.name
        self.local_size = local_size
        self.workgroups = workgroups
        self.exec_size = exec_count
        self._origin = origin
        self._who = f"{self.name} ({origin})" if origin else self.name
        self._auto = isinstance(local_size, str) and local_size == "auto"
        self._local_size = None if self._auto else parse_local_size(local_size)
        self._depends_on_groups = self._local_size is None and depends_on_workgroups(
            shader_description.kernel
        )
        self.check = check
        self._observation = self._observe(checks_of(check))
        if self._auto:
            self._require_free_groups()
        # The description that is launched: an instrumented one if the kernel prints or is checked.
        self._launched = self._observation.description if self._observation else shader_description
        self._parameters = read_parameters(self._launched)
        self._names = tuple(parameter.name for parameter in self._parameters)
        self._slots = read_slots(self._launched)
        self._constants: tuple[ConstantArray, ...] = tuple(
            parameter.default for parameter in read_constants(self._launched)
        )
        self._size = self._parse_decorated_size()
        self._lock = threading.RLock()
        self._owner = _Owner()
        # Weak references to the state used last and to its fast path.
        self._latest: Callable[[], _State | None] = _no_referent
        self._fast: Callable[[], FastPath | None] = _no_referent
        expect_kernels()

    # Whether there is an IR, from which any variant can be generated; hand-written kernels have none.
    _traced = True
    internal = False  # whether the kernel is one of the package's own, which profiles leave out
    # Where the function is defined, or for a method its instance and name.
    _defined: Home | None = None
    _method: "tuple[weakref.ref[Any], str] | None" = None

    def _home(self) -> Home | None:
        return self._defined

    def _describe(self) -> str:
        return f"kernel {self._who}"

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        if self._method is None:
            return self
        instance, name = self._take_apart()
        bound: Self = getattr(copy.deepcopy(instance, memo), name)
        return bound

    def __reduce__(self) -> str | tuple[Any, ...]:
        return super().__reduce__() if self._method is None else (getattr, self._take_apart())

    def _take_apart(self) -> tuple[Any, str]:
        assert self._method is not None
        instance, name = self._method[0](), self._method[1]
        if instance is None:
            raise UnpicklableError(
                f"{self._describe()} cannot be copied or pickled: the instance that it is a method of is "
                "gone; keep that"
            )
        return instance, name

    def _observe(self, checks: Checks) -> Observation | None:
        return observe(self.shader_description, checks)

    def _parse_decorated_size(self) -> LaunchSize | None:
        if self.exec_size is not None:
            return parse_launch_size("exec_size", self.exec_size, self._names)
        if self.workgroups is not None:
            return parse_launch_size("workgroups", self.workgroups, self._names)
        return None

    def _enter(self, context: Context) -> _State:
        """Return the kernel's state in a context. The kernel's attributes describe that state from now on."""
        state = context._state_of(self._owner, _State)
        if self._latest() is not state:
            self._show(state)
        return state

    def _restart(self, context: Context, tuned: Extent | None) -> _State:
        """Drop what was built in a context, to use another workgroup size."""
        state = context._states[self._owner] = _State(tuned, is_searched=True)
        self._show(state)
        return state

    def _show(self, state: _State) -> None:
        with self._lock:
            self._latest = ref(state)
            self._fast = _no_referent if state.fast is None else ref(state.fast)

    # -- calling

    def _call(self, *args: Any, graph: CommandGraph | None = None, **kwargs: Any) -> None:
        """Queue a dispatch and return at once, or record it into a graph.

        A kernel that prints or is checked is waited for instead, and what it prints is written to
        `sys.stdout`.

        Parameters
        ----------
        *args, **kwargs
            The kernel's arguments, by position or name; also `exec_size` or `workgroups`, which beat the
            decorator's, and `queue_index`, unless a parameter of the kernel has that name: the one queue to
            launch on, -1 for the least busy one, None for every queue, each on its own copy of the buffers.
        graph
            Where to record; None takes the thread's `vd.global_graph()`.

        Raises
        ------
        TypeError, ValueError
            An argument is missing, unknown, of the wrong kind or shape, the size is none, or there is no such
            queue.
        ShaderBuildError
            The kernel does not compile (first call).
        CheckError
            A checked kernel violated a check. Only its valid operations took effect.
        """
        # The fast path: the launcher refuses any call that needs more than packing its arguments.
        if graph is None:
            graph = current.chosen
        fast, size = self._fast(), self._size
        if fast is not None and size is not None and not kwargs and fast.run(args, size, graph):
            return
        self._check_and_call(args, graph, kwargs)

    if not TYPE_CHECKING:
        __call__ = _call

    def _check_and_call(self, args: tuple[Any, ...], graph: object, kwargs: dict[str, Any]) -> None:
        """Check all arguments, compile the kernel if necessary, and launch or record it."""
        context = graph.context if isinstance(graph, CommandGraph) else context_of((*args, *kwargs.values()))
        if context is not None and not is_current(context) and context.usable:
            with use_context(context):
                self._check_and_call(args, graph, kwargs)
            return
        if is_tracing():
            raise UsageError(
                f"{self._who}: a kernel cannot call another one; make what they share a plain function"
            )
        if graph is not None and not isinstance(graph, CommandGraph):
            raise ArgumentValueError(
                f"{self._who}: graph: expected a vd.CommandGraph, got {type(graph).__name__}"
            )
        if is_dummy():
            raise UsageError(f"{self._who}: kernels do not run on the dummy backend; see get_src()")
        queue = ALL_QUEUES
        if "queue_index" in kwargs and "queue_index" not in self._names:
            queue = self._parse_queue(kwargs.pop("queue_index"), graph)
        size, named = self._read_size(kwargs)
        values = bind_values(self._who, self._parameters, args, named)
        # With keyword arguments and defaults resolved, most calls can take the fast path too.
        latest = self._latest()
        fast = None if latest is None else latest.fast_paths.get(size.option)
        if fast is not None and fast.run(values, size, graph, queue):
            return
        replaced = replace_arrays(values, {}, graph is not None)
        if replaced is not None and fast is not None and fast.run(replaced[1], size, graph, queue):
            return
        if replaced is not None:
            options: dict[str, Any] = {} if size is self._size else {size.option: kwargs[size.option]}
            if queue != ALL_QUEUES and "queue_index" not in self._names:
                options["queue_index"] = queue
            self._check_and_call(replaced[1], graph, options)
            return
        context = get_context()
        state = self._enter(context)
        if graph is not None:
            self._check_graph(graph, context)
        call = check_values(self._who, self._parameters, values, context, graph)
        call = add_constants(call, self._constants, context)
        extent = self._compute_extent(size, values)
        if self._auto and not state.is_searched:
            state = self._recall(extent, context)
        local_size = self._choose_group(size.in_groups, context, state)
        coarsening = self._choose_coarsening(context, state)
        form = reach(self._who, self._slots, call.slots, context, own=self._traced)
        variant = choose_variant(
            self._who, extent, size.in_groups, local_size, coarsening, context, form, own=self._traced
        )
        kernel = self._get_kernel(context, state, local_size, variant)
        for _ in range(_ATTEMPTS):
            if self._run(kernel, state.diagnostics, variant, call, extent, size.in_groups, graph, queue):
                return
        raise UsageError(f"{self._who}: an argument was destroyed by another thread during the call")

    def _run(
        self,
        kernel: BuiltKernel,
        diagnostics: Diagnostics | None,
        variant: Variant,
        call: CheckedCall,
        extent: Extent,
        in_groups: bool,
        graph: CommandGraph | None,
        queue: int,
    ) -> bool:
        observation = self._observation
        if observation is None or diagnostics is None:
            return kernel.run(call, extent, in_groups, graph, queue=queue)
        observation = observation.form(variant)
        return observation.run(self._who, kernel, diagnostics, call, extent, in_groups, graph, queue)

    def _parse_queue(self, queue_index: object, graph: CommandGraph | None) -> int:
        if queue_index is None:
            return ALL_QUEUES
        if graph is not None:
            raise ArgumentValueError(
                f"{self._who}: queue_index: what is recorded runs where its graph is submitted; give it to "
                "graph.submit()"
            )
        if as_int(queue_index) == ANY_QUEUE:
            return ANY_QUEUE
        return parse_queue(queue_index, get_context(), f"{self._who}: queue_index")

    def _read_size(self, kwargs: dict[str, Any]) -> tuple[LaunchSize, dict[str, Any]]:
        """Return the launch size of a call, and the keyword arguments that are the kernel's own."""
        given = [option for option in _SIZE_OPTIONS if option in kwargs]
        if len(given) == 2:
            raise ArgumentValueError(f"{self._who}: exec_size, workgroups: give one of the two, not both")
        if not given:
            if self._size is None:
                raise ArgumentValueError(
                    f"{self._who}: no launch size; give exec_size= or workgroups= here or in @vd.shader(...)"
                )
            return self._size, kwargs
        option = given[0]
        if kwargs[option] is None:
            raise ArgumentValueError(f"{self._who}: {option}: None is no launch size; leave it out")
        named = {name: value for name, value in kwargs.items() if name != option}
        return parse_launch_size(option, kwargs[option], self._names), named

    def _check_graph(self, graph: CommandGraph, context: Context) -> None:
        graph.require_alive()
        if graph.context is not context:
            raise wrong_context(f"{self._who}: graph: it", graph.context)

    def _compute_extent(self, size: LaunchSize, values: tuple[Any, ...]) -> Extent:
        try:
            return size.extent(values)
        except Exception as error:
            error.add_note(f"while computing {size.option} of {self._who}")
            raise

    # -- workgroup sizes by measurement

    def autotune(self, *args: Any, **kwargs: Any) -> int:
        """Measure which workgroup size is the fastest for a call, and use it from now on.

        Sizes from 32 to the device's limit are run several times each. The kernel writes to copies, so that
        the arguments keep their contents. The choice applies to all calls of this kernel with an `exec_size`.
        It is stored on disk for the device, its driver, the kernel's code and the number of invocations
        (rounded up to a power of two), where kernels with `local_size="auto"` find it.

        Parameters
        ----------
        *args, **kwargs
            As for a call, without `graph`.

        Returns
        -------
        int
            Invocations of a workgroup, along x. Where several are equally fast it is 256.

        Raises
        ------
        TypeError, ValueError
            As for a call.
        RuntimeError
            The kernel has a `local_size`, is launched by `workgroups`, may depend on the size of its
            workgroups, prints, or is checked.
        NotImplementedError
            The device has no timestamps.
        MemoryError
            There is no room for the copies.
        """
        # imported on first use, as the interpreter is
        from vkdispatch.shader.launch.tuning import find_fastest_size, remember

        self._require_free_groups()
        if "graph" in kwargs:
            raise ArgumentTypeError(f"{self._who}: autotune takes no graph: it launches by itself")
        size, named = self._read_size(kwargs)
        if size.in_groups:
            raise UsageError(f"{self._who}: autotune needs an exec_size, not workgroups")
        if is_dummy():
            raise UsageError(f"{self._who}: kernels do not run on the dummy backend")
        context = get_context()
        values = bind_values(self._who, self._parameters, args, named)
        check_values(self._who, self._parameters, values, context, None)
        extent = self._compute_extent(size, values)

        def trial(local_size: int) -> ShaderFunction:
            return ShaderFunction(
                self.shader_description, (local_size, 1, 1), None, extent, origin=self._origin, check=False
            )

        best = find_fastest_size(context, trial, self._parameters, values)
        remember(context, self.shader_description, extent, best)
        self._restart(context, (best, 1, 1))
        return best

    @property
    def _built(self) -> dict[tuple[Extent, Variant], BuiltKernel]:
        """The compiled kernels in the context used last."""
        latest = self._latest()
        return latest.built if latest else {}

    def _require_free_groups(self) -> None:
        """Raise RuntimeError unless the kernel does the same for every workgroup size."""
        if self._local_size is not None:
            reason = f"has the local_size {self._local_size}; leave it out"
        elif self.workgroups is not None:
            reason = "is launched by workgroups; give an exec_size"
        elif self._depends_on_groups:
            reason = "may depend on the size of its workgroups (shared memory, barriers, their ids, raw code)"
        elif self._observation is not None:
            reason = "prints or is checked, which takes most of its time"
        else:
            return
        raise UsageError(f"{self._who}: no workgroup size can be chosen by measurement: the kernel {reason}")

    def _recall(self, extent: Extent, context: Context) -> _State:
        """Use the workgroup size that was measured for launches of this size, in any process."""
        with self._lock:
            state = self._enter(context)
            if state.is_searched:
                return state
            from vkdispatch.shader.launch.tuning import recall

            best = recall(context, self.shader_description, extent)
            return self._restart(context, None if best is None else (best, 1, 1))

    # -- without a device

    def interpret(
        self,
        *args: Any,
        subgroup_size: int = 32,
        check: Any = True,
        races: bool = False,
        **kwargs: Any,
    ) -> None:
        """Run the kernel with NumPy instead of a device, and return when it is done.

        Parameters
        ----------
        *args, **kwargs
            As for a call, with NumPy arrays in place of buffers: of the dtype, complex numbers as NumPy's
            (complex32: a last axis of 2 float16), vectors and matrices with their components as last axes.
            They are written in place. A `vd.Buffer` is read, and written when the kernel has run. Likewise
            for images: arrays of their axes, with the channels as last axis unless there is only one, a
            `vd.HostSampler` to say how to sample one, or a `vd.Image` or `vd.Sampler`.
        subgroup_size
            Invocations of a subgroup: a power of two up to 128.
        check
            What is an error: "bounds" (an index out of range; unchecked, reads there give 0 and writes do
            nothing), "nan" (a NaN that is stored), "loops=5000" (a `while` loop of more rounds than that),
            several of them in a set or with commas. True is bounds and loops, of up to a million rounds.
        races
            Whether it is an error that two invocations access one element, at least one of them to write
            something new, with no barrier of their workgroup between.

        Raises
        ------
        TypeError, ValueError
            As for a call.
        IndexError
            An index is out of range. Here and below: what was written before stays written.
        FloatingPointError
            A NaN was stored.
        RuntimeError
            A barrier that only a part of a workgroup reaches, a loop of too many rounds, or a race.
        NotImplementedError
            The kernel holds GLSL text.
        """
        # The interpreter is imported on first use: that takes as long as the rest of the package.
        from vkdispatch.shader.interpretation import host_resources, interpret_call, parse_host_checks

        size, named = self._read_size(kwargs)
        parameters = read_parameters(self.shader_description)
        values = bind_values(self._who, parameters, args, named)
        constants = read_constants(self.shader_description)
        parameters = (*parameters, *constants)
        values = (*values, *(constant.default.array for constant in constants))
        values = host_resources(self._who, self.shader_description, parameters, values)
        interpret_call(
            self._who,
            self.shader_description,
            parameters,
            values,
            self._compute_extent(size, values[: len(values) - len(constants)]),
            in_groups=size.in_groups,
            local_size=self._local_size or self._assume_group(size.in_groups),
            subgroup_size=subgroup_size,
            checks=parse_host_checks(check),
            races=races,
        )

    # -- building

    @property
    def ready(self) -> bool:
        """Whether the kernel is built."""
        latest = self._latest()
        return latest is not None and latest.shown is not None

    @property
    def plan(self) -> ComputePlan | None:
        """The compiled kernel, once built."""
        latest = self._latest()
        return latest.primary.plan if latest and latest.primary else None

    @property
    def source(self) -> str | None:
        """The GLSL, once built."""
        latest = self._latest()
        return latest.shown.code if latest and latest.shown else None

    @property
    def bounds(self) -> LaunchBounds | None:
        """The workgroup size, once built."""
        latest = self._latest()
        return LaunchBounds(latest.shown.local_size) if latest and latest.shown else None

    def build(self) -> None:
        """Compile the kernel for the global context, unless that is done. Any thread may call it.

        On the dummy backend, only the source is generated.

        Raises
        ------
        ShaderBuildError
            The compiler or the driver rejected the kernel. The context stays usable.
        UnsupportedError
            The device lacks a type that the kernel uses.
        """
        context = get_context()
        state = self._enter(context)
        local_size = self._choose_group(self._is_sized_in_groups, context, state)
        if context.runs:
            self._get_kernel(context, state, local_size, PLAIN)
        else:
            check_local_size(self._who, local_size, context)
            state.shown = self.shader_description.shader_source(local_size)

    def _get_kernel(
        self, context: Context, state: _State, local_size: Extent, variant: Variant
    ) -> BuiltKernel:
        with self._lock:
            kernel = state.built.get((local_size, variant))
            if kernel is None:
                kernel = self._compile(context, state, local_size, variant)
                counted = self._launched.kernel if self._traced else None
                facts = (self.name, self._origin, local_size, counted, kernel.layout, self.internal)
                describe(kernel.plan, KernelFacts(*facts))
                state.built[local_size, variant] = kernel
                self._adopt(kernel, local_size, variant, context, state)
            return kernel

    def _compile(self, context: Context, state: _State, local_size: Extent, variant: Variant) -> BuiltKernel:
        observation = self._observation.form(variant) if self._observation is not None else None
        slots = self._slots if observation is None else observation.slots
        kernel = build_kernel(
            self._who,
            self._launched if observation is None else observation.description,
            slots,
            context,
            local_size,
            variant=variant,
            coarsening=self._choose_coarsening(context, state),
            observed=observation is not None,
            place=self._origin,
        )
        if observation is None and variant.addressed:
            # fusing reads recorded arguments in the layout of the plain form
            return kernel
        if observation is None:
            fusible = _RecordedKernel(
                self._launched,
                kernel.layout,
                bound_resources(self._launched, slots),
                self._local_size,
                min(info.max_bound_storage_buffers for info in context.device_infos),
            )
            return replace(kernel, fusible=fusible)
        if state.diagnostics is None:
            state.diagnostics = Diagnostics(context, prints=observation.instrumented.prints)
        return kernel

    def _adopt(
        self, kernel: BuiltKernel, local_size: Extent, variant: Variant, context: Context, state: _State
    ) -> None:
        """Register a compiled kernel: on the fast paths that it serves, and for the attributes."""
        if variant.folded:
            return
        plain = self._observation is None and all(parameter.fields is None for parameter in self._parameters)
        for option in _SIZE_OPTIONS:
            in_groups = option == "workgroups"
            if plain and local_size == self._choose_group(in_groups, context, state):
                if option not in state.fast_paths:
                    constants = upload_constants(self._constants, context)
                    state.fast_paths[option] = FastPath(self._slots, in_groups, constants)
                state.fast_paths[option].add(kernel, variant)
        shown = state.primary is None or variant == PLAIN
        if local_size == self._choose_group(self._is_sized_in_groups, context, state) and shown:
            state.primary = kernel
            state.shown = kernel.source
            state.fast = state.fast_paths.get(self._size.option) if self._size else None
            self._show(state)

    def _choose_coarsening(self, context: Context, state: _State) -> Coarsening:
        if state.coarsening is None:
            # prints and checks report single invocations
            observed = self._observation is not None
            kernel = self._launched.kernel
            state.coarsening = UNCOARSENED if observed else choose_coarsening(kernel, context)
        return state.coarsening

    @property
    def _is_sized_in_groups(self) -> bool:
        return self._size is not None and self._size.in_groups

    def _choose_group(self, in_groups: bool, context: Context, state: _State) -> Extent:
        if self._local_size is not None:
            return self._local_size
        most = context.max_invocations_along_x
        # Code that depends on the workgroup size gets the largest one, and so does the source on the dummy
        # backend.
        if state.tuned is not None and not in_groups:
            return state.tuned
        wanted = most if in_groups or self._depends_on_groups or not context.runs else _DEFAULT_GROUP
        return (min(wanted, most), 1, 1)

    def _assume_group(self, in_groups: bool) -> Extent:
        """Return the workgroup size to assume without a device."""
        return (_USUAL_MOST if in_groups or self._depends_on_groups else _DEFAULT_GROUP, 1, 1)

    # -- the generated code

    def get_src(self, line_numbers: bool | None = None, build: bool = True) -> ShaderSource:
        """Return the GLSL.

        Parameters
        ----------
        line_numbers
            Whether each line starts with its number; None takes `vc.get_shader_print_line_numbers()`.
        build
            Compile it first. Without, no device is needed. Nor is one where there is no native module to
            compile with.
        """
        if build and (can_compile() or is_dummy()):
            self.build()
        latest = self._latest()
        source = latest.shown if latest else None
        if source is None:
            local_size = self._local_size or self._assume_group(self._is_sized_in_groups)
            if is_context_initialized():
                context = get_context()
                local_size = self._choose_group(self._is_sized_in_groups, context, self._enter(context))
            source = self._launched.shader_source(local_size)
        numbered = get_shader_print_line_numbers() if line_numbers is None else line_numbers
        return source.numbered() if numbered else source

    def print_src(self, line_numbers: bool | None = None) -> None:
        """Print the GLSL; see `get_src`."""
        print(self.get_src(line_numbers))

    def __repr__(self) -> str:
        try:
            return repr(self.get_src())
        except VkDispatchError:
            # there is no device, or the kernel does not compile for it
            return repr(self.get_src(build=False))

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Print one line in notebooks; `repr` is the code."""
        where = f" ({self._origin})" if self._origin else ""
        sizes = {"exec_size": self.exec_size, "workgroups": self.workgroups, "local_size": self.local_size}
        shown = "".join(
            f", {name}={size!r}" for name, size in sizes.items() if isinstance(size, (int, str, tuple))
        )
        plan = self.plan
        state = "not built yet" if plan is None else f"built for {plan.context._devices}"
        printer.text(f"<kernel {self.name}({', '.join(self._names)}){where}{shown}, {state}>")


class _RecordedKernel(FusibleKernel):
    """What graphs keep of a kernel; see `Fusible` in `execution_pipeline.optimization`."""

    __slots__ = ()

    def fuse(
        self, launches: Sequence[Launch], uses: Mapping[int, int], discarded: frozenset[int]
    ) -> list[Fusion]:
        """Find chains among launches in a row; see `Fusible`."""
        # imported on first use: most programs fuse nothing
        from vkdispatch.shader.fusion import find_chains

        return [
            Fusion(chain.first, chain.count, _FusedLaunch(chain), chain.values)
            for chain in find_chains(launches, uses, discarded)
        ]


class _FusedLaunch:
    """The launch that replaces a chain of launches; see `Chained` in `execution_pipeline.optimization`."""

    def __init__(self, chain: "FusedChain") -> None:
        self._chain = chain

    def record(self, graph: CommandGraph) -> None:
        """Record it with zeros as values; those of the launches that it replaces are copied later."""
        chain = self._chain
        run = _function_of(chain.kernel)
        run(*chain.resources, *chain.kernel.zeros, graph=graph, exec_size=chain.extent)


# equal chains share one kernel
@functools.lru_cache(maxsize=256)
def _function_of(kernel: "FusedKernel") -> ShaderFunction:
    return ShaderFunction(kernel.description, kernel.local_size, check=False)


def make_shader_function(
    description: ShaderDescription,
    local_size: Any = None,
    workgroups: Any = None,
    exec_count: Any = None,
    check: Any = None,
) -> ShaderFunction:
    """Make a callable kernel of a description, as `vc.shader_context` gives; see `ShaderFunction`."""
    made = ShaderFunction(description, local_size, workgroups, exec_count, check=check)
    made._defined = sys._getframe(1).f_globals.get("__name__", ""), made.name
    return made
