"""Choosing the section of an order, and building it."""

from collections.abc import Iterator, Sequence

from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.base.process.logging import log_info, log_warning
from vkdispatch.orders.arguments import Parameter
from vkdispatch.orders.compilers import BuildFailure, CompileFailure
from vkdispatch.orders.debugging import Debugging
from vkdispatch.orders.errors import Attempt, OrderBuildError
from vkdispatch.orders.models import TABLE, Program, Task
from vkdispatch.orders.order import MODELS, Order, Section, check_options, describe_unknown_model


class Builder:
    """Builds the sections of one order, for arguments of one kind.

    Attributes
    ----------
    attempts
        What could not be built, in the order of trying.
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
        self._refused: list[Attempt] = []
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
        """Return the models of the order that are switched on, in the library's order."""
        written = {model for section in self.order.sections if section.enabled for model in section.models}
        return [model for model in MODELS if model in written]

    def build_first(self) -> Program:
        """Build the first section, in the library's order, that can be built here.

        Raises
        ------
        OrderBuildError
            None can.
        ValueError
            All are switched off.
        """
        wanted = self.list_models()
        if not wanted:
            raise ArgumentValueError(f"{self.order.label}: every section of the order says enable=False")
        return self._build_first_of(wanted)

    def build_chosen(self, kind: object) -> Program:
        """Build a section of a model, or of the first of several that can be built here.

        Raises
        ------
        OrderBuildError
            None can.
        TypeError, ValueError
            `kind` names no model of the order.
        """
        return self._build_first_of(self._parse_kind(kind))

    def _build_first_of(self, wanted: Sequence[str]) -> Program:
        before = len(self.attempts)
        for model in wanted:
            program = self.build_model(model)
            if program is not None:
                self._warn_of_refused()
                return program
        self._refused.clear()
        raise self.make_error(self.attempts[before:])

    def build_model(self, model: str) -> Program | None:
        """Build a section of a model, or return what was built; None: it cannot be, `attempts` says why."""
        found = self._built.get(model)
        if found is not None:
            return found
        self.attempts = [attempt for attempt in self.attempts if attempt.model != model]
        for section in self._find_sections(model):
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
                    self._debugging.say(f"{model} cannot be built: {failure}")
                if isinstance(failure, CompileFailure):
                    self._refused.append(self.attempts[-1])
        return None

    def build_others(self, program: Program) -> tuple[Program, ...]:
        """Build all sections but this one, and return those that can be built here."""
        found = (self.build_model(model) for model in self.list_models() if model != program.model)
        programs = tuple(other for other in found if other is not None)
        self._warn_of_refused()
        return programs

    def _warn_of_refused(self) -> None:
        """Tell of sections with errors that others stand in for, which would go unnoticed."""
        refused, self._refused = self._refused, []
        for attempt in refused:
            log_warning(
                f"{self.order.label}: {attempt.model} is left out, for it has errors: {attempt.message}"
            )

    def make_error(self, attempts: Sequence[Attempt]) -> OrderBuildError:
        """Return the error that tells of failed attempts."""
        label = self.order.label
        told = "\n".join(
            f"{attempt.model} (section of line {attempt.line}): {_indent(attempt.message)}"
            for attempt in attempts
        )
        return OrderBuildError(f"{label}: no section could be built here.\n{told}", tuple(attempts))

    def _find_sections(self, model: str) -> Iterator[Section]:
        return (section for section in self.order.sections if section.enabled and model in section.models)

    def _parse_kind(self, kind: object) -> list[str]:
        names = [kind] if isinstance(kind, str) else kind
        if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
            raise ArgumentTypeError(f"kind: expected the name of a model, or a list of names, got {kind!r}")
        if not names:
            raise ArgumentValueError("kind: an empty list names no model; None tries them all")
        there = self.list_models()
        for name in names:
            if name not in MODELS:
                raise ArgumentValueError(f"kind: {describe_unknown_model(name)}")
        found = [name for name in names if name in there]
        if not found:
            off = any(name in section.models for section in self.order.sections for name in names)
            why = "is switched off by enable=False in" if off else "is not in the order"
            raise ArgumentValueError(
                f"kind: {', '.join(names)} {why} {self.order.label}, "
                f"which has {', '.join(there) or 'no other'}"
            )
        return found


def _indent(text: str) -> str:
    return text.replace("\n", "\n    ")
