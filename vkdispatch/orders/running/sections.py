"""The section of an order that runs, and the sections that it is compared with."""

from collections.abc import Sequence

from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.base.process import log_warning
from vkdispatch.orders.arguments.argument import Argument
from vkdispatch.orders.debugging import Debugging
from vkdispatch.orders.errors import Attempt
from vkdispatch.orders.models import Program
from vkdispatch.orders.running.builder import Builder
from vkdispatch.orders.text.order import Order


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
        chosen = self.parse_kind(kind, class_name)
        self.program = self._builder.build_first() if chosen is None else self._builder.build_chosen(chosen)
        self.others = self._build_compared(self._builder, self.program)
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
        return self._builder.build_chosen(kind)

    def build_others(self) -> tuple[Program, ...]:
        """Build all sections except the one that runs."""
        return self._builder.build_others(self.program)

    def choose(self, program: Program) -> None:
        """Run this section from now on."""
        self.program = program
        if self.is_verified:
            self.others = self._builder.build_others(program)

    def build_for(self, arguments: Sequence[Argument]) -> tuple[Program, Sequence[Program]] | None:
        """Build the sections for a run with other arguments. Return None if the types are the same."""
        builder = self._find_builder(arguments)
        if builder is self._builder:
            return None
        program = builder.build_chosen(self.program.model)
        return program, self._build_compared(builder, program)

    def _build_compared(self, builder: Builder, program: Program) -> Sequence[Program]:
        return builder.build_others(program) if self.is_verified else ()

    def _find_builder(self, arguments: Sequence[Argument]) -> Builder:
        """Return the builder for arguments of these types."""
        key = tuple((each.parameter.code, each.parameter.ndim) for each in arguments)
        builder = self._builders.get(key)
        if builder is None:
            parameters = [each.parameter for each in arguments]
            builder = Builder(self.order, parameters, self._compile, self._debugging)
            self._builders[key] = builder
        return builder
