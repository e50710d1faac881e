"""Choice of the section of an order, and its build."""

from collections.abc import Iterator, Sequence

from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.base.process import log_info, log_warning
from vkdispatch.orders.arguments.argument import Parameter
from vkdispatch.orders.compilation.compilers import BuildFailure, CompileFailure
from vkdispatch.orders.debugging import Debugging
from vkdispatch.orders.errors import Attempt, OrderBuildError
from vkdispatch.orders.models import TABLE, Program, Task
from vkdispatch.orders.text.order import MODELS, Order, Section, check_options, describe_unknown_model


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

    def build_first(self) -> Program:
        """Build the first section, in the default order, that can be built.

        Raises
        ------
        OrderBuildError
            No section can be built.
        ValueError
            All sections are disabled.
        """
        models = self.list_models()
        if not models:
            raise ArgumentValueError(f"{self.order.label}: every section of the order has enable=False")
        return self._build_first_of(models)

    def build_chosen(self, kind: object) -> Program:
        """Build a section of a model, or of the first of several models that can be built.

        Raises
        ------
        OrderBuildError
            No section can be built.
        TypeError, ValueError
            `kind` is not a model of the order.
        """
        return self._build_first_of(self._parse_kind(kind))

    def _build_first_of(self, models: Sequence[str]) -> Program:
        before = len(self.attempts)
        for model in models:
            program = self.build_model(model)
            if program is not None:
                self._warn_of_rejected()
                return program
        self._rejected.clear()
        raise self.make_error(self.attempts[before:])

    def build_model(self, model: str) -> Program | None:
        """Build a section of a model once. Return None if that is impossible; `attempts` has the reason."""
        program = self._built.get(model)
        if program is not None:
            return program
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

    def make_error(self, attempts: Sequence[Attempt]) -> OrderBuildError:
        """Return the error that reports failed attempts."""
        label = self.order.label
        reasons = "\n".join(
            f"{attempt.model} (section of line {attempt.line}): {_indent(attempt.message)}"
            for attempt in attempts
        )
        return OrderBuildError(f"{label}: no section could be built here.\n{reasons}", tuple(attempts))

    def _find_sections(self, model: str) -> Iterator[Section]:
        return (section for section in self.order.sections if section.enabled and model in section.models)

    def _parse_kind(self, kind: object) -> list[str]:
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


def _indent(text: str) -> str:
    return text.replace("\n", "\n    ")
