"""`ShaderFunction`, the public class of kernels: called, interpreted, tuned, shown and pickled."""

import copy
import sys
import threading
import types
import warnings
import weakref
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from vkdispatch.base import errors
from vkdispatch.base.compilation.compiler import can_compile, expect_kernels
from vkdispatch.base.compute_plan import ComputePlan
from vkdispatch.base.context import get_context, is_context_initialized
from vkdispatch.base.host_numpy import np
from vkdispatch.base.init import is_dummy
from vkdispatch.base.process import Listed
from vkdispatch.base.process import internal as hidden
from vkdispatch.base.record import replace
from vkdispatch.codegen.backends import GLSLBackend, get_shader_print_line_numbers
from vkdispatch.codegen.constant_arrays import ConstantArray
from vkdispatch.codegen.description import ShaderDescription, ShaderSource
from vkdispatch.codegen.trace.current import is_tracing
from vkdispatch.compiler.forms import PLAIN, Variant
from vkdispatch.execution_pipeline.command_graph import CommandGraph, current
from vkdispatch.shader.arguments import check_values
from vkdispatch.shader.building import BuiltKernel, check_local_size
from vkdispatch.shader.dependencies import Dependencies, Guard, Snapshot, Versions, follows, warn_unnoticed
from vkdispatch.shader.launchable import LaunchableKernel
from vkdispatch.shader.launching import KernelState, find_fastest_size, store_size
from vkdispatch.shader.pickling import Home, Referenced, UnpicklableError, list_operands_first
from vkdispatch.shader.program import Program, parse_check
from vkdispatch.shader.signature import bind_values, describe_kernel, read_constants, read_parameters
from vkdispatch.shader.size import Extent
from vkdispatch.shader.stored import StoredProgram

if TYPE_CHECKING:
    from vkdispatch.shader.calling import Call, Function
else:
    Call, Function = Generic, TypeVar("Function")


# Default values that never change.
_FIXED = (bool, int, float, complex, type(None), np.generic, ConstantArray)


class _Followed:
    """What traces a kernel again, and what was traced before, by the state of what it read.

    Attributes
    ----------
    snapshot
        What the version in use has read.
    is_superseded
        Whether another kernel was made of the same function since, with other values, as in a loop. As each
        has its own values, it is not traced again.
    """

    def __init__(self, dependencies: Dependencies, make: "Callable[[], ShaderFunction]") -> None:
        self.dependencies, self.make = dependencies, make
        self.versions: Versions[ShaderFunction] = Versions({})
        self.lock = threading.RLock()
        self.snapshot: Snapshot | None = None
        self.is_superseded = False


class LaunchBounds:
    """The workgroup size of a kernel."""

    def __init__(self, local_size: Extent) -> None:
        self.local_size = local_size


class ShaderFunction(Referenced, Listed, Call[Function]):
    """A traced kernel. Calling it queues a dispatch, or records one into a graph.

    It is pickled by module and name, as Python functions are, or by value if no module has it: the traced
    program. The kernel of an instance is pickled as methods are: by the instance and the name.

    Attributes
    ----------
    name
        Name of the Python function.
    local_size, workgroups, exec_size, check
        As given to the decorator, or None.
    """

    def __init__(
        self,
        shader_description: ShaderDescription,
        local_size: object = None,
        workgroups: object = None,
        exec_count: object = None,
        *,
        origin: str | None = None,
        check: object = None,
        program: Program | None = None,
    ) -> None:
        """Prepare a traced kernel to be called; needs no device.

        Parameters
        ----------
        shader_description
            The traced kernel.
        local_size
            1 to 3 ints: invocations per workgroup. "auto": the size that `autotune` has measured.
        workgroups, exec_count
            How many workgroups or invocations a call runs, unless the call says otherwise.
        origin
            Where the kernel is defined, such as "kernel.py:12".
        check
            What to check on the device; see `vd.shader`.
        program
            What is compiled, if that is not the traced kernel: GLSL or SPIR-V.

        Raises
        ------
        ValueError
            Both `workgroups` and `exec_count` are given, or a size is invalid.
        """
        if workgroups is not None and exec_count is not None:
            raise errors.ArgumentValueError("exec_size, workgroups: pass one of the two, not both")
        self._description: ShaderDescription | None = shader_description
        if program is None:
            from vkdispatch.shader.traced.program import TracedProgram

            who = describe_kernel(shader_description.name, origin)
            program = TracedProgram(who, shader_description, parse_check(check), origin)
        self._prepare(program, origin, (local_size, workgroups, exec_count), check)

    def _prepare(
        self, program: Program, origin: str | None, sizes: tuple[object, object, object], check: object
    ) -> None:
        self.name = program.name
        self.local_size, self.workgroups, self.exec_size = sizes
        self.check = check
        self._kernel = LaunchableKernel(program, origin, *sizes)
        expect_kernels()

    @classmethod
    def _restore(cls, program: StoredProgram) -> Self:
        """Return a kernel that was compiled before and comes from the disk."""
        function = cls.__new__(cls)
        function._description = None
        stored = program.stored
        function._prepare(program, stored.origin, stored.sizes, None)
        function.internal = stored.is_internal
        return function

    @property
    def shader_description(self) -> ShaderDescription:
        """The traced kernel."""
        if self._description is None:
            self._description = self._kernel.program.description
        return self._description

    # How it is traced again; None if it reads nothing that can change.
    _followed: "_Followed | None" = None
    # Where the function is defined, or for a method its instance and name.
    _defined: Home | None = None
    _method: "tuple[weakref.ref[Any], str] | None" = None

    def _home(self) -> Home | None:
        return self._defined

    def _describe(self) -> str:
        return f"kernel {self._kernel.who}"

    @property
    @hidden
    def internal(self) -> bool:
        """Whether the kernel is one of the package's own, which profiles leave out."""
        return self._kernel.internal

    @internal.setter
    def internal(self, is_internal: bool) -> None:
        self._kernel.internal = is_internal

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        if self._method is None:
            return self
        instance, name = self._take_apart()
        bound: Self = getattr(copy.deepcopy(instance, memo), name)
        return bound

    @property
    def _is_fixed(self) -> bool:
        # functions may read variables that change, and dataclasses have fields that do
        values = [info.default_value for info in self.shader_description.shader_arg_infos]
        is_plain = all(isinstance(value, _FIXED) for value in values) and self._followed is None
        return is_plain and not callable(self.exec_size) and not callable(self.workgroups)

    def _reduce_otherwise(self) -> tuple[Any, ...] | None:
        return super()._reduce_otherwise() if self._method is None else (getattr, self._take_apart())

    def _get_state(self) -> tuple[Any, ...]:
        self._follow()
        description = self.shader_description
        operands = [
            list_operands_first(program) for program in (description.kernel, description.asserting) if program
        ]
        sizes = self.local_size, self.workgroups, self.exec_size
        return operands, description, sizes, self._kernel.origin, self.check, self._defined, self.internal

    def _set_state(self, *state: Any) -> None:
        _, description, sizes, origin, check, self._defined, internal = state
        ShaderFunction.__init__(self, description, *sizes, origin=origin, check=check)
        self.internal = internal

    def _get_content(self) -> tuple[Any, ...]:
        self._follow()
        description = self.shader_description
        if not isinstance(description.backend, GLSLBackend):
            return self._get_state()
        code = description.shader_source((1, 1, 1)).code
        asserting = description.asserting
        asserts = None if asserting is None else replace(description, kernel=asserting).make_source(1, 1, 1)
        sizes = self.local_size, self.workgroups, self.exec_size
        return code, asserts, description.shader_arg_infos, sizes, self.check

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        if self._method is None:
            return super().__dask_tokenize__()
        from dask.base import normalize_token  # Dask calls this

        instance, name = self._take_apart()
        return type(self).__name__, name, normalize_token(instance)

    def _take_apart(self) -> tuple[Any, str]:
        assert self._method is not None
        instance, name = self._method[0](), self._method[1]
        if instance is None:
            raise UnpicklableError(
                f"{self._describe()} cannot be copied or pickled: the instance that it is a method of is "
                "gone; keep that"
            )
        return instance, name

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
        kernel = self._kernel
        fast, size = kernel.fast(), kernel.size
        if fast is not None and size is not None and not kwargs and fast.run(args, size, graph):
            return
        while not self._follow().check_and_call(args, graph, kwargs):
            pass

    def _follow(self) -> LaunchableKernel:
        """Return what is launched, which is traced again if what it was traced from has changed."""
        followed, kernel = self._followed, self._kernel
        if followed is None or kernel.guard is None or kernel.guard.holds() or is_tracing():
            return kernel
        with followed.lock:
            if followed.is_superseded:
                kernel.guard.adopt(Guard())
                warnings.warn(
                    f"{kernel.who}: what it reads has changed, but it keeps the values that it was traced "
                    "with, as another kernel was made of the same function since; make it anew",
                    errors.KernelWarning,
                    stacklevel=3,
                )
                return kernel
            snapshot = followed.dependencies.look()
            known = followed.versions.find(snapshot.state)
            if known is None:
                snapshot, version = followed.dependencies.trace(followed.make)
                version._kernel.guard, version.internal = snapshot.guard, self.internal
                reason = "as what it reads from outside changes"
                followed.versions.add(snapshot.state, version, kernel.who, reason)
            else:
                version = known
                assert version._kernel.guard is not None
                version._kernel.guard.adopt(snapshot.guard)
            followed.snapshot = snapshot
            self._description, self._kernel = version.shader_description, version._kernel
            return self._kernel

    def _supersede(self, later: Snapshot) -> None:
        """Keep the values of variables that a later kernel of the same function has read as others."""
        followed, guard = self._followed, self._kernel.guard
        assert followed is not None and followed.snapshot is not None and guard is not None
        with followed.lock:
            changed = [watch for watch in followed.snapshot.find_changed() if watch.is_name]
            if any(watch.place in later.places for watch in changed):
                followed.is_superseded = True
                followed.dependencies.ignore(changed)
                guard.adopt(followed.dependencies.look().guard)

    if not TYPE_CHECKING:
        __call__ = _call

    @hidden
    def find_launch(self) -> Callable[[tuple[Any, ...], Any, bool, int], bool] | None:
        """Return what launches calls of the context used last, on native memory too; None before a call."""
        fast = self._kernel.fast()
        return None if fast is None or fast.constants else fast.launch

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
        kernel = self._follow()
        kernel.require_free_groups()
        if "graph" in kwargs:
            raise errors.ArgumentTypeError(
                f"{kernel.who}: autotune does not accept a graph: it launches kernels itself"
            )
        size, named = kernel.read_size(kwargs)
        if size.in_groups:
            raise errors.UsageError(f"{kernel.who}: autotune needs an exec_size, not workgroups")
        if is_dummy():
            raise errors.UsageError(f"{kernel.who}: kernels do not run on the dummy backend")
        context = get_context()
        values = bind_values(kernel.who, kernel.parameters, args, named)
        check_values(kernel.who, kernel.parameters, values, context, None)
        extent = kernel.compute_extent(size, values)
        if 0 in extent:
            raise errors.ArgumentValueError(
                f"{kernel.who}: autotune: exec_size: {extent} has no invocations to time"
            )

        def make_trial(local_size: int) -> ShaderFunction:
            return ShaderFunction(
                self.shader_description, (local_size, 1, 1), None, extent, origin=kernel.origin, check=False
            )

        best = find_fastest_size(context, make_trial, kernel.parameters, values)
        store_size(context, self.shader_description, extent, best)
        kernel.restart(context, (best, 1, 1))
        return best

    @property
    def _latest(self) -> KernelState:
        """The state in the context used last."""
        return self._kernel.latest() or KernelState()

    @property
    def _built(self) -> dict[tuple[Extent, Variant], BuiltKernel]:
        """The compiled kernels in the context used last."""
        return self._latest.built

    # -- without a device

    def interpret(
        self, *args: Any, subgroup_size: int = 32, check: object = True, races: bool = False, **kwargs: Any
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
        from vkdispatch.shader.interpretation import interpret_call, make_host_resources, parse_host_checks

        kernel = self._follow()
        who, description = kernel.who, self.shader_description
        size, named = kernel.read_size(kwargs)
        parameters, constants = read_parameters(description), read_constants(description)
        values = bind_values(who, parameters, args, named)
        arrays = tuple(constant.default.array for constant in constants)
        resources = make_host_resources(who, description, (*parameters, *constants), (*values, *arrays))
        extent = kernel.compute_extent(size, resources[: len(values)])
        if 0 in extent:
            return
        interpret_call(
            who,
            description,
            (*parameters, *constants),
            resources,
            extent,
            in_groups=size.in_groups,
            local_size=kernel.assume_group(size.in_groups),
            subgroup_size=subgroup_size,
            checks=parse_host_checks(check),
            races=races,
        )

    # -- building

    @property
    def ready(self) -> bool:
        """Whether the kernel is built."""
        return self._latest.show is not None

    @property
    def plan(self) -> ComputePlan | None:
        """The compiled kernel, once built."""
        primary = self._latest.primary
        return primary.plan if primary else None

    @property
    def source(self) -> str | None:
        """The GLSL, once built."""
        show = self._latest.show
        return show().code if show else None

    @property
    def bounds(self) -> LaunchBounds | None:
        """The workgroup size, once built."""
        show = self._latest.show
        return LaunchBounds(show().local_size) if show else None

    def build(self) -> None:
        """Compile the kernel for the global context, unless that is done. Any thread may call it.

        On the dummy backend, only the source is generated.

        Raises
        ------
        UsageError
            Calls decide the size of its shared memory.
        ShaderBuildError
            The compiler or the driver rejected the kernel. The context stays usable.
        UnsupportedError
            The device lacks a type that the kernel uses.
        """
        kernel, context = self._follow(), get_context()
        state = kernel.enter(context)
        local_size = kernel.choose_group(kernel.is_sized_in_groups, context, state)
        if context.runs:
            kernel.get_kernel(context, state, local_size, PLAIN)
        else:
            check_local_size(kernel.who, local_size, context)
            state.show = partial(self.shader_description.shader_source, local_size)

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
        kernel = self._follow()
        if build and (can_compile() or is_dummy()) and not kernel.is_sized_by_calls:
            self.build()
            kernel = self._follow()
        show = self._latest.show
        if show is None:
            in_groups = kernel.is_sized_in_groups
            local_size = kernel.assume_group(in_groups)
            if is_context_initialized():
                context = get_context()
                local_size = kernel.choose_group(in_groups, context, kernel.enter(context))
            source = kernel.program.description.shader_source(local_size)
        else:
            source = show()
        numbered = get_shader_print_line_numbers() if line_numbers is None else line_numbers
        return source.numbered() if numbered else source

    def print_src(self, line_numbers: bool | None = None) -> None:
        """Print the GLSL; see `get_src`."""
        print(self.get_src(line_numbers))

    def __repr__(self) -> str:
        try:
            return repr(self.get_src())
        except errors.VkDispatchError:
            # There is no device, or the kernel does not compile for it.
            return repr(self.get_src(build=False))

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Print one line in notebooks; `repr` is the code."""
        origin = self._kernel.origin
        where = f" ({origin})" if origin else ""
        sizes = {"exec_size": self.exec_size, "workgroups": self.workgroups, "local_size": self.local_size}
        shown = "".join(
            f", {name}={size!r}" for name, size in sizes.items() if isinstance(size, (int, str, tuple))
        )
        plan = self.plan
        state = "not built yet" if plan is None else f"built for {plan.context._devices}"
        printer.text(f"<kernel {self.name}({', '.join(self._kernel.names)}){where}{shown}, {state}>")


def make_shader_function(
    description: ShaderDescription,
    local_size: object = None,
    workgroups: object = None,
    exec_count: object = None,
    check: object = None,
) -> ShaderFunction:
    """Make a callable kernel of a description, as `vc.shader_context` gives; see `ShaderFunction`.

    Examples
    --------
    >>> with vc.shader_context() as context:
    ...     (data,) = context.declare_input_arguments([Buff[f32]])
    ...     i = vc.global_invocation_id().x
    ...     data[i] = data[i] + 1
    ...     kernel = vd.make_shader_function(context.get_description("add_one"), exec_count=3)
    >>> buffer = vd.asbuffer(np.zeros(3, np.float32))
    >>> kernel(buffer)
    >>> buffer.read(0)
    array([1., 1., 1.], dtype=float32)
    """
    function = ShaderFunction(description, local_size, workgroups, exec_count, check=check)
    function._defined = sys._getframe(1).f_globals.get("__name__", ""), function.name
    return function


def make_following(
    function: Callable[..., Any], make: Callable[[], ShaderFunction], owner: type[Any] | None = None
) -> ShaderFunction:
    """Return the kernel that `make` traces of a function, and traces again when what that reads has changed.

    `owner` is the class of a method.
    """
    __tracebackhide__ = True  # notebooks and pytest leave this frame out
    if not follows(function, owner):
        return make()
    dependencies = Dependencies(function, owner=owner)
    snapshot, kernel = dependencies.trace(make)
    if len(snapshot.guard):
        followed = _Followed(dependencies, make)
        # not the kernel itself, which shows the version used last
        first = ShaderFunction.__new__(ShaderFunction)
        first.__dict__.update(kernel.__dict__)
        followed.versions.add(snapshot.state, first, kernel.name, "")
        followed.snapshot = snapshot
        kernel._followed, kernel._kernel.guard = followed, snapshot.guard
        _supersede_earlier(function, kernel, snapshot)
    if snapshot.unclear:
        warn_unnoticed(function, kernel._kernel.who, snapshot)
    return kernel


# Kernels by the code of their functions.
_made: "weakref.WeakKeyDictionary[types.CodeType, list[weakref.ref[ShaderFunction]]]"
_made = weakref.WeakKeyDictionary()


def _supersede_earlier(function: types.FunctionType, kernel: ShaderFunction, snapshot: Snapshot) -> None:
    """Let kernels keep their values that were made by the same `def`, executed before, as in a loop."""
    earlier = [reference for reference in _made.get(function.__code__, ()) if reference() is not None]
    _made[function.__code__] = [*earlier, weakref.ref(kernel)]
    for other in filter(None, (reference() for reference in earlier)):
        assert other._followed is not None
        (before,) = other._followed.dependencies.functions
        # cells are compared by what they hold
        cells = [tuple(map(id, reference.__closure__ or ())) for reference in (before, function)]
        if before is not function and cells[0] == cells[1]:
            other._supersede(snapshot)
