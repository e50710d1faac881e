"""The section of an order that runs: its choice, its build, its work, and comparison with others."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.base.process import log_info, log_warning
from vkdispatch.base.record import record
from vkdispatch.orders.arguments import Argument, Array, Grid, Parameter, copy_arguments
from vkdispatch.orders.compilers import BuildFailure, CompileFailure
from vkdispatch.orders.errors import Attempt, Debugging, OrderBuildError, OrderMismatchError
from vkdispatch.orders.models import TABLE, Placement, Program, Task
from vkdispatch.orders.order import MODELS, Order, check_options, describe_unknown_model

# ---- Choice of the section of an order, and its build ----------------------------------------------------


class Builder:
    """Builds the sections of an order for arguments of given types.

    Attributes
    ----------
    attempts
        The sections that could not be built, in order.
    """

    def __init__(
        self,
        order: Order,
        parameters: Sequence[Parameter],
        compile: tuple[str, ...] | None,
        debugging: Debugging | None = None,
    ) -> None:
        self.order = order
        self.attempts: list[Attempt] = []
        self._rejected: list[Attempt] = []
        self._parameters = tuple(parameters)
        self._compile = compile
        self._debugging = debugging
        self._built: dict[str, Program] = {}
        for section in order.sections:
            if section.enabled:
                for model in section.models:
                    if model in TABLE:
                        check_options(section, TABLE[model].options, order.label)

    def list_models(self) -> list[str]:
        """Return the models of the enabled sections, in the default order."""
        enabled = {model for section in self.order.sections if section.enabled for model in section.models}
        return [model for model in MODELS if model in enabled]

    def build_first(self, models: Sequence[str]) -> Program:
        """Build a section of the first of some models that can be built.

        Raises
        ------
        OrderBuildError
            No section can be built.
        ValueError
            There is no model, as all sections are disabled.
        """
        label = self.order.label
        if not models:
            raise ArgumentValueError(f"{label}: every section of the order has enable=False")
        before = len(self.attempts)
        for model in models:
            program = self.build_model(model)
            if program is not None:
                self._warn_of_rejected()
                return program
        self._rejected.clear()
        failed = self.attempts[before:]
        listed = "\n".join(attempt.describe().replace("\n", "\n    ") for attempt in failed)
        raise OrderBuildError(f"{label}: no section could be built here.\n{listed}", tuple(failed))

    def build_model(self, model: str) -> Program | None:
        """Build a section of a model once. Return None if that is impossible; `attempts` has the reason."""
        program = self._built.get(model)
        if program is not None:
            return program
        self.attempts = [attempt for attempt in self.attempts if attempt.model != model]
        for section in self.order.sections:
            if not section.enabled or model not in section.models:
                continue
            task = Task(
                self.order, section, self._parameters, self._compile or section.compile, self._debugging
            )
            try:
                program = self._built[model] = TABLE[model].build(task)
                return program
            except BuildFailure as failure:
                self.attempts.append(Attempt(model, section.line, str(failure)))
                log_info(f"{self.order.label}: {model} cannot be built: {failure}")
                if self._debugging is not None:
                    self._debugging.print(f"{model} cannot be built: {failure}")
                if isinstance(failure, CompileFailure):
                    self._rejected.append(self.attempts[-1])
        return None

    def build_others(self, program: Program) -> tuple[Program, ...]:
        """Build all other sections, and return those that can be built."""
        candidates = (self.build_model(model) for model in self.list_models() if model != program.model)
        programs = tuple(other for other in candidates if other is not None)
        self._warn_of_rejected()
        return programs

    def _warn_of_rejected(self) -> None:
        """Warn of sections with errors that were skipped in favor of others."""
        rejected, self._rejected = self._rejected, []
        for attempt in rejected:
            log_warning(
                f"{self.order.label}: {attempt.model} is skipped because of errors: {attempt.message}"
            )

    def parse_kind(self, kind: object) -> list[str]:
        """Return models of the order. Raises TypeError or ValueError if `kind` names none or another one."""
        names = [kind] if isinstance(kind, str) else kind
        if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
            raise ArgumentTypeError(f"kind: expected the name of a model, or a list of names, got {kind!r}")
        if not names:
            raise ArgumentValueError(
                "kind: expected the name of a model, got an empty list; None tries them all"
            )
        available = self.list_models()
        for name in names:
            if name not in MODELS:
                raise ArgumentValueError(f"kind: {describe_unknown_model(name)}")
        chosen = [name for name in names if name in available]
        if not chosen:
            is_disabled = any(name in section.models for section in self.order.sections for name in names)
            why = "is disabled by enable=False in" if is_disabled else "is not in the order"
            raise ArgumentValueError(
                f"kind: {', '.join(names)} {why} {self.order.label}, "
                f"which has {', '.join(available) or 'no other'}"
            )
        return chosen


# ---- Comparison of the sections of an order: their results, and their times ------------------------------


@record
class Verification:
    """The result of `verify=True` for the latest run.

    Attributes
    ----------
    models
        The compared models, beginning with that of the results. A single one: nothing was compared.
    errors
        The largest error of each other model, relative to the output's largest value.
    missing
        The sections that could not be built.
    """

    models: tuple[str, ...]
    errors: Mapping[str, float]
    missing: tuple[Attempt, ...]


def run_on_copies(program: Program, arguments: Sequence[Argument], grid: Grid, run_id: int) -> list[Array]:
    """Run a program on copies of the outputs, and return the copies."""
    copies = copy_arguments(arguments)
    placement = program.place(copies, 0)
    try:
        if not grid.is_empty:
            program.run(placement, grid, run_id, 0, 0)
        placement.fetch()
    finally:
        placement.close()
    return [copy.read() for copy in copies if copy.parameter.is_output]


def compare(
    arguments: Sequence[Argument],
    models: tuple[str, str],
    first: Sequence[Array],
    second: Sequence[Array],
    tolerance: float | None,
) -> float:
    """Return the largest error between the outputs of two models, relative to an output's largest value.

    Raises
    ------
    OrderMismatchError
        The error exceeds `tolerance`, or the default tolerance of the dtype.
    """
    worst = 0.0
    outputs = [argument for argument in arguments if argument.parameter.is_output]
    for output, a, b in zip(outputs, first, second, strict=True):
        allowed = tolerance if tolerance is not None else find_tolerance(output.parameter.dtype)
        error, index = _find_largest_error(a, b)
        worst = max(worst, error)
        # This form fails for NaN.
        if not error <= allowed:
            name = output.parameter.name
            place = f"{name}({', '.join(map(str, index))})" if index else name
            raise OrderMismatchError(
                f"verify: the sections {models[0]} and {models[1]} disagree: {place} is {a[index]!s} and "
                f"{b[index]!s}, a relative error of {error:.2g}; the tolerance is {allowed:.2g}",
                models,
                name,
                index,
            )
    return worst


def find_tolerance(dtype: np.dtype[Any]) -> float:
    """Return the tolerance between sections, relative to the largest value of an output.

    Integers and bools must be equal. Floats may differ by the square root of their precision: half of the
    digits agree, and sums in another order differ by far less.
    """
    return float(np.sqrt(np.finfo(dtype).eps)) if dtype.kind in "fc" else 0.0


def measure_best_time(
    program: Program, arguments: Sequence[Argument], grid: Grid, device: int, repeats: int
) -> float:
    """Return the shortest time of several runs in seconds, without copies to or from the accelerator."""
    placement: Placement = program.place(copy_arguments(arguments), device)
    times = []
    try:
        # The first run loads code and allocates memory.
        for _ in range(repeats + 1):
            start = time.perf_counter()
            program.run(placement, grid, 0, device, 0)
            times.append(time.perf_counter() - start)
    finally:
        placement.close()
    return min(times[1:])


def _find_largest_error(a: Array, b: Array) -> tuple[float, tuple[int, ...]]:
    """Return the largest error, relative to the largest finite value, and its index."""
    if a.size == 0:
        return 0.0, (0,) * a.ndim
    if a.dtype.kind not in "fc":
        # Floats cannot represent every int64: only compare.
        differ = a != b
        return (float("inf") if differ.any() else 0.0), _find_first_maximum(differ)
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    x, y = a.astype(wide), b.astype(wide)
    same = (a == b) | (np.isnan(x) & np.isnan(y))
    values = np.abs(np.concatenate((x.ravel(), y.ravel())))
    scale = float(np.max(values, where=np.isfinite(values), initial=0.0)) or 1.0
    with np.errstate(invalid="ignore", over="ignore"):
        errors = np.where(same, 0.0, np.abs(x - y) / scale)
    # One value is a number and the other is not.
    errors = np.where(np.isnan(errors), np.inf, errors)
    index = _find_first_maximum(errors)
    return float(errors[index]), index


def _find_first_maximum(array: Array) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(array)), array.shape))


# ---- The work of a run: what the thread of its channel does ----------------------------------------------


Work = Callable[[int], None]  # takes the id of the run


@record(eq=False)
class Request:
    """A call of `Accel.run` with its arguments parsed.

    Attributes
    ----------
    program, others
        The section that runs, and the sections that it is compared with.
    arguments, placement
        The arguments, and where the section finds them.
    grid, device, channel, timeout
        As in `Accel.run`.
    is_own
        Whether the arguments are those of the Accel.
    """

    program: Program
    others: Sequence[Program]
    arguments: Sequence[Argument]
    placement: Placement
    grid: Grid
    device: int
    channel: int
    timeout: float | None
    is_own: bool


def make_work(request: Request) -> Work:
    """Return work that runs a section."""
    program, placement, grid = request.program, request.placement, request.grid
    device, channel = request.device, request.channel

    def work(run_id: int) -> None:
        if not grid.is_empty:
            program.run(placement, grid, run_id, device, channel)

    return work


def make_verified_work(
    request: Request, tolerance: float | None, report: Callable[[str, dict[str, float]], None]
) -> Work:
    """Return work that runs a section and compares its outputs with those of the others.

    `report` is called with the model of the section, and the error of each other section by model. The work
    raises OrderMismatchError.
    """
    run = make_work(request)
    model, arguments = request.program.model, request.arguments

    def work(run_id: int) -> None:
        results = {
            other.model: run_on_copies(other, arguments, request.grid, run_id) for other in request.others
        }
        run(run_id)
        request.placement.fetch()
        outputs = [argument.read() for argument in arguments if argument.parameter.is_output]
        errors = {
            other: compare(arguments, (model, other), outputs, result, tolerance)
            for other, result in results.items()
        }
        report(model, errors)

    return work


def add_results(work: Work, arguments: Sequence[Argument], placement: Placement) -> Work:
    """Return work that also copies its results back and frees its memory."""

    def complete(run_id: int) -> None:
        try:
            work(run_id)
            placement.fetch()
            for argument in arguments:
                argument.store_items()
        finally:
            placement.close()

    return complete


def add_debugging(work: Work, debugging: Debugging, description: str) -> Work:
    """Return work that also prints when it begins and ends."""

    def report(run_id: int) -> None:
        debugging.print(f"run {run_id} begins: {description}")
        start = time.perf_counter()
        try:
            work(run_id)
        except BaseException as error:
            debugging.print(f"run {run_id} failed: {error}")
            raise
        debugging.print(f"run {run_id} ended after {(time.perf_counter() - start) * 1e3:.3f} ms")

    return report


# ---- The section of an order that runs, and the sections that it is compared with ------------------------


class Sections:
    """Builds the sections of an order for the arguments of its runs.

    Parameters
    ----------
    compile
        Compiler commands that replace the search, or None.
    debugging
        Where `debug=True` prints and writes, or None.
    model
        The only model allowed, for a class such as `CppAccel`. None: all models.
    is_verified
        Whether the other sections are built too, to compare their results.

    Attributes
    ----------
    program, others
        The section that runs, and the sections that it is compared with.
    """

    program: Program
    others: Sequence[Program] = ()

    def __init__(
        self,
        order: Order,
        compile: tuple[str, ...] | None,
        debugging: Debugging | None,
        model: str | None,
        is_verified: bool,
    ) -> None:
        self.order = order
        self.is_verified = is_verified
        self._compile = compile
        self._debugging = debugging
        self._model = model
        self._builders: dict[object, Builder] = {}

    def build(self, arguments: Sequence[Argument], kind: object, class_name: str) -> None:
        """Build the section that runs for the arguments of an Accel, and the others if it is verified.

        Raises
        ------
        OrderBuildError
            No section can be built.
        TypeError, ValueError
            `kind` is not a model of the order or of the class.
        """
        self._builder = self._find_builder(arguments)
        builder, chosen = self._builder, self.parse_kind(kind, class_name)
        models = builder.list_models() if chosen is None else builder.parse_kind(chosen)
        self.program = builder.build_first(models)
        self.others = self._build_others_to_verify(self._builder, self.program)
        if self.is_verified and not self.others:
            log_warning(
                f"{self.order.label}: verify cannot compare {self.program.model} with another section; "
                "see attempts"
            )

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """The sections that could not be built, in order."""
        return tuple(self._builder.attempts)

    def parse_kind(self, kind: object, class_name: str) -> object:
        """Return `kind`, or the model of a class with a single one. Raises ValueError for another."""
        model = self._model
        if model is None:
            return kind
        if kind is None or kind == model or (isinstance(kind, (list, tuple)) and model in kind):
            return model
        raise ArgumentValueError(
            f"kind: {class_name} has the model {model}, got {kind!r}; use Accel for other models"
        )

    def build_chosen(self, kind: object) -> Program:
        """Build a section of a model, for the arguments of the Accel. Raises as `build`."""
        return self._builder.build_first(self._builder.parse_kind(kind))

    def build_others(self) -> tuple[Program, ...]:
        """Build all sections except the one that runs."""
        return self._builder.build_others(self.program)

    def choose(self, program: Program) -> None:
        """Run this section from now on."""
        self.program = program
        self.others = self._build_others_to_verify(self._builder, program)

    def build_for(self, arguments: Sequence[Argument]) -> tuple[Program, Sequence[Program]] | None:
        """Build the sections for a run with other arguments. Return None if the types are the same."""
        builder = self._find_builder(arguments)
        if builder is self._builder:
            return None
        program = builder.build_first([self.program.model])
        return program, self._build_others_to_verify(builder, program)

    def _build_others_to_verify(self, builder: Builder, program: Program) -> Sequence[Program]:
        return builder.build_others(program) if self.is_verified else ()

    def _find_builder(self, arguments: Sequence[Argument]) -> Builder:
        """Return the builder for arguments of these types."""
        parameters = [argument.parameter for argument in arguments]
        key = tuple((parameter.code, parameter.ndim) for parameter in parameters)
        if key not in self._builders:
            self._builders[key] = Builder(self.order, parameters, self._compile, self._debugging)
        return self._builders[key]
