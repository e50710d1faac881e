"""A reduction that can be called: planned for the buffer's shape, launched as one kernel or two."""

import threading
from collections.abc import Sequence
from typing import Any
from weakref import ref

from vkdispatch.arrays.aliasing import check_overlap
from vkdispatch.arrays.elements import wide_type
from vkdispatch.arrays.facts import device_facts
from vkdispatch.arrays.mapping import Source, identity_map, make_source
from vkdispatch.arrays.operand import Operand
from vkdispatch.base.buffer import Buffer, function_buffer
from vkdispatch.base.context import Context, as_int, context_of, get_context, is_current, use_context
from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, UsageError
from vkdispatch.base.init import is_dummy
from vkdispatch.base.record import record
from vkdispatch.codegen import Buffer as BufferAnnotation
from vkdispatch.codegen import ShaderSource
from vkdispatch.codegen.recording import is_tracing
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.reduce.accumulators import Accumulator, accumulator_of
from vkdispatch.reduce.counters import Counters
from vkdispatch.reduce.kernels import stage_kernel
from vkdispatch.reduce.operations import ReduceOp, check_identity, check_operation
from vkdispatch.reduce.planning import KernelForm, Pass, Plan, Planner, normalized_axes, shape_of
from vkdispatch.shader.map import MappingFunction, check_elements
from vkdispatch.shader.parameters import WrongBufferError, given
from vkdispatch.shader.references import Home, Referenced
from vkdispatch.shader.shader_function import ShaderFunction

# Shapes whose plans are kept.
_MOST_PLANS = 256


@record
class _Launch:
    """A kernel and the numbers that follow a call's own arguments."""

    kernel: ShaderFunction
    numbers: tuple[int, ...]


@record
class _Launches:
    """What a call for one shape does: its launches, and the shape of the result's buffer.

    `views` are the arguments that the first takes once more, to load several elements at once; `partials` is
    how many partial results there are between, and `counters` how many the first needs to know the last of
    its workgroups.
    """

    first: _Launch
    second: _Launch | None
    views: tuple[int, ...]
    partials: int
    counters: int
    shape: tuple[int, ...]


class ReduceFunction(Referenced):
    """A reduction. Calling it queues the work, or records it into a graph, and returns the result's buffer.

    It is copied and pickled as Python functions are: by module and name.

    Attributes
    ----------
    reduction
        What combines two values.
    out_type
        The result's dtype.
    group_size
        Invocations of a workgroup; None until the stages are made, unless it was given.
    map_func
        What gives a value for each element; None for the elements as they are.
    input_types
        Annotations of the arguments.
    axes
        The axes that are reduced, as given; None for all.
    stage1, stage2
        The kernels that reduce a large buffer to one value; None until made.
    """

    _defined: Home | None = None

    def _home(self) -> Home | None:
        return self._defined

    def _described(self) -> str:
        return f"reduction {self.name!r}"

    def __init__(
        self,
        reduction: ReduceOp,
        group_size: int | None = None,
        axes: Any = None,
        mapping_function: MappingFunction | None = None,
        *,
        name: str | None = None,
        plain: bool = False,
    ) -> None:
        """Prepare a reduction; needs no device.

        Parameters
        ----------
        mapping_function
            What gives a value for each element; its return type is the result's.
        name
            How messages call it.
        plain
            Whether the mapping function gives the elements of its buffer as they are.

        Raises
        ------
        TypeError, ValueError
            An argument is not what it should be, or the operation makes no sense for the dtype.
        """
        if not isinstance(reduction, ReduceOp):
            raise ArgumentTypeError(
                f"reduction: expected a ReduceOp such as vd.reduce.SubgroupAdd, got {reduction!r}"
            )
        if not isinstance(mapping_function, MappingFunction):
            raise ArgumentTypeError(
                f"mapping_function: expected a vd.map(...), which has the result's dtype, got "
                f"{mapping_function!r}"
            )
        if mapping_function.return_type is None:
            raise ArgumentValueError(
                "mapping_function: it needs a return annotation, such as -> f32: the dtype of the result"
            )
        if group_size is not None and (as_int(group_size) or 0) < 1:
            raise ArgumentValueError(f"group_size: expected a positive int, got {group_size!r}")
        self.reduction = reduction
        self.out_type: DType = mapping_function.return_type
        check_operation(reduction, self.out_type)
        check_identity(reduction.identity, self.out_type)
        self.group_size = None if group_size is None else int(group_size)
        self._given_group = self.group_size
        self.map_func = None if plain else mapping_function
        self.input_types = mapping_function.buffer_types
        self.axes = axes
        self._axes = normalized_axes(axes)
        self.stage1: ShaderFunction | None = None
        self.stage2: ShaderFunction | None = None
        self.name = name or getattr(mapping_function.mapping_function, "__name__", "reduction")
        self._mapping = mapping_function
        self._plain = plain
        first = self.input_types[0] if self.input_types else None
        if getattr(first, "__origin__", None) is not BufferAnnotation:
            raise ArgumentValueError(
                f"{self.name}: its first argument must be a buffer, such as x: Buff[f32]: its elements are "
                "what is reduced"
            )
        self._lock = threading.RLock()
        self._source: Source | None = None
        self._forget()

    def _forget(self) -> None:
        """Drop all that depends on a context."""
        self._context: ref[Context] | None = None
        self._planner: Planner | None = None
        self._views: tuple[int, ...] = ()
        self._accumulator: Accumulator | None = None
        self._kernels: dict[KernelForm, ShaderFunction] = {}
        self._launches: dict[tuple[tuple[int, ...], bool], _Launches] = {}

    @property
    def _counters(self) -> Counters:
        return get_context()._state_of(self, Counters)

    def _is_planned(self) -> bool:
        """Whether what is known holds for the current context."""
        return self._context is not None and self._context() is get_context()

    # -- calling

    def __call__(self, *args: Any, graph: CommandGraph | None = None) -> Buffer[Any]:
        """Reduce the first buffer; returns at once.

        Parameters
        ----------
        *args
            The buffer; then whatever else the mapping function takes.
        graph
            Where to record; None takes the thread's `vd.global_graph()`.

        Returns
        -------
        A new buffer of `out_type`, whose row 0 is the result: `result.read(0)[0]` is a number (a vector, a
        complex number), or an array of one for each position along the axes that are not reduced, in their
        order.

        Raises
        ------
        TypeError, ValueError
            An argument is missing, too many or of the wrong kind, or the buffer lacks an axis.
        ShaderBuildError
            The kernel does not compile (first call).
        """
        if is_tracing():
            raise UsageError(f"{self.name}: a kernel cannot call a reduction; call it before, or after")
        self._check(args)
        context = context_of(args)
        if context is not None and not is_current(context) and context.usable:
            with use_context(context):
                return self(*args, graph=graph)
        launches = self._launches_for(args)
        if self._source is not None and self._source.stores:
            self._check_overlap(self._source, args)
        result: Buffer[Any] = function_buffer(launches.shape, self.out_type)
        first, second = launches.first, launches.second
        views = (args[position] for position in launches.views)
        own: list[Buffer[Any]] = [result]
        if launches.partials:
            partials: Buffer[Any] = function_buffer(launches.partials, wide_type(self.out_type))
            own = [partials] if second else [result, partials, self._counters.zeros(launches.counters)]
        first.kernel(*own, *args, *views, *first.numbers, graph=graph)
        if second is not None:
            second.kernel(result, partials, *second.numbers, graph=graph)
        return result

    def _check(self, args: tuple[Any, ...]) -> None:
        if is_dummy():
            raise UsageError(f"{self.name}: kernels do not run on the dummy backend; see get_src()")
        if len(args) != len(self.input_types):
            names = ", ".join(Source(self._mapping, self._plain, self.out_type).names)
            few = len(args) < len(self.input_types)
            kind = ArgumentValueError if few else ArgumentTypeError
            raise kind(
                f"{self.name}: takes {len(self.input_types)} arguments ({names}) by position, got {len(args)}"
            )
        if not isinstance(args[0], Buffer):
            raise WrongBufferError(
                f"{self.name}: argument 1: expected a vd.Buffer, got {given(args[0])}; make one with "
                "vd.asbuffer(...)"
            )
        for position, (annotation, argument) in enumerate(zip(self.input_types, args, strict=True), 1):
            check_elements(f"{self.name}: argument {position}", annotation, argument)

    def _check_overlap(self, source: Source, args: tuple[Any, ...]) -> None:
        x = args[0]
        array = Operand(x.shape, x.size, x.var_type, x.context, source, args, str(self.name))
        check_overlap((), elsewhere=[array])

    # -- planning

    def _launches_for(self, args: tuple[Any, ...]) -> _Launches:
        shape: tuple[int, ...] = args[0].shape
        key = (shape, self._short(args))
        found = self._launches.get(key)
        if found is not None and self._is_planned():
            return found
        with self._lock:
            planner = self._ready()
            short = self._short(args)
            if short:
                assert self._source is not None
                source = self._source.elementwise()
                assert self._accumulator is not None
                planner = Planner(source, self._accumulator, get_context(), self._given_group)
            found = self._launched(planner.plan(shape_of(shape, self._axes)))
            while len(self._launches) >= _MOST_PLANS:
                del self._launches[next(iter(self._launches))]
            self._launches[shape, short] = found
            return found

    def _short(self, args: tuple[Any, ...]) -> bool:
        """Whether a buffer lacks some of the elements that loads of several would read ahead of the map."""
        return any(
            isinstance(args[position], Buffer)
            and args[position].mem_size < args[0].size * self.input_types[position].__args__[0].item_size
            for position in self._views
        )

    def _launched(self, plan: Plan) -> _Launches:
        shape = (1,) if plan.count == 1 else (1, plan.count)
        second = None if plan.second is None else self._launch(plan.second)
        views = self._views if plan.first.form.vector else ()
        counters = plan.first.params.blocks if plan.first.form.finishing else 0
        return _Launches(self._launch(plan.first), second, views, plan.partials, counters, shape)

    def _launch(self, launch: Pass) -> _Launch:
        return _Launch(self._kernel(launch.form), launch.params.checked())

    def _ready(self) -> Planner:
        """Return the planner for the global context."""
        if self._planner is None or not self._is_planned():
            context = get_context()
            self._forget()
            if self._source is None:
                self._source = make_source(self._mapping, self.out_type, plain=self._plain)
            self._views = tuple(position for position, _ in self._source.views)
            self._accumulator = accumulator_of(self.reduction, self.out_type, device_facts(context).features)
            self._planner = Planner(self._source, self._accumulator, context, self._given_group)
            self.group_size = self._planner.group
            self._context = ref(context)
        return self._planner

    def _kernel(self, form: KernelForm) -> ShaderFunction:
        kernel = self._kernels.get(form)
        if kernel is None:
            assert self._source is not None and self._accumulator is not None
            kernel = stage_kernel(form, self._source, self._accumulator)
            self._kernels[form] = kernel
        return kernel

    # -- the generated code

    def make_stages(self) -> None:
        """Make the kernels that reduce a large buffer to one value, unless that is done.

        Raises
        ------
        TypeError, ValueError
            The mapping function or the operation is wrong, or the device has no workgroups of `group_size`.
        """
        with self._lock:
            first, second = self._ready().whole()
            self.stage1 = self._kernel(first)
            self.stage2 = self._kernel(second)

    def get_src(self, line_numbers: bool | None = None) -> list[ShaderSource]:
        """Return the GLSL of both stages of the reduction of a large buffer to one value.

        The second is launched only where the first's last workgroup does not do its work.
        """
        self.make_stages()
        assert self.stage1 is not None and self.stage2 is not None
        return [self.stage1.get_src(line_numbers), self.stage2.get_src(line_numbers)]

    def print_src(self, line_numbers: bool | None = None) -> None:
        """Print the GLSL of both stages; see `get_src`."""
        for source in self.get_src(line_numbers):
            print(source)

    def __repr__(self) -> str:
        return "\n".join(map(repr, self.get_src()))


def make_reduction_stage(
    reduction: ReduceOp,
    out_type: DType,
    group_size: int | None,
    output_is_input: bool,
    map_func: MappingFunction | None = None,
    input_types: Sequence[Any] | None = None,
) -> ShaderFunction:
    """Return a stage of the reduction of a large buffer to one value.

    Parameters
    ----------
    output_is_input
        Whether it is the second stage, which reduces what the first has left.
    map_func, input_types
        A mapping function, and annotations used instead of its own.
    """
    mapping = map_func or identity_map(out_type)
    if input_types is not None:
        mapping = MappingFunction(list(input_types), mapping.return_type, mapping.mapping_function)
    source = make_source(mapping, out_type, plain=map_func is None)
    context = get_context()
    accumulator = accumulator_of(reduction, out_type, device_facts(context).features)
    first, second = Planner(source, accumulator, context, group_size).whole()
    return stage_kernel(second if output_is_input else first, source, accumulator)
