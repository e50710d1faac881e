"""The arguments of scan kernels: declared, unpacked in a trace and passed to a launch, always in one order.

results (and a view of them); partial results, and their flags; words of a look-back; flags of segments;
arguments of the source, and views of them; arguments of the sink; numbers
"""

from collections.abc import Sequence
from itertools import islice
from typing import Any, Protocol

from vkdispatch.base.buffer import Buffer
from vkdispatch.base.dtype import DType, uint32
from vkdispatch.base.record import record
from vkdispatch.codegen.arguments import buffer, constant
from vkdispatch.families.operands import Operand, Output, Sink
from vkdispatch.families.sources import Source
from vkdispatch.scans.storing import ResultStore, choose_result_view


class Form(Protocol):
    """The part of a kernel's form that decides which arguments it has."""

    @property
    def mode(self) -> str:
        """What the kernel does: "scan", "reduce" or "lookback"."""

    @property
    def together(self) -> int:
        """Elements of a vector."""

    @property
    def flag_type(self) -> DType | None:
        """The dtype of the flags that mark where segments begin; None without segments."""

    @property
    def is_carried(self) -> bool:
        """Whether the kernel reads partial results of what comes before."""

    @property
    def is_segmented(self) -> bool:
        """Whether segments begin elsewhere than at the first element."""

    @property
    def board(self) -> tuple[tuple[str, DType], ...]:
        """Names and dtypes of the buffers of a look-back."""


def declare_arguments(
    form: Form, kind: DType, source: Source, sink: Sink, numbers: Sequence[str]
) -> list[tuple[str, Any]]:
    """Return names and annotations of a kernel's arguments; `kind` is the dtype that is combined."""
    arguments: list[tuple[str, Any]] = []
    if form.mode != "reduce":
        arguments.append(("scan_result", buffer[sink.out_type]))
        view = choose_result_view(form.together, sink)
        if view is not None:
            arguments.append(("scan_result_view", buffer[view[0]]))
    if form.mode == "reduce" or form.is_carried:
        arguments.append(("scan_partials", buffer[kind]))
        if form.is_segmented:
            arguments.append(("scan_partial_flags", buffer[uint32]))
    arguments += [(name, buffer[words]) for name, words in form.board]
    if form.flag_type is not None:
        arguments.append(("scan_flags", buffer[form.flag_type]))
    arguments += source.parameters
    arguments += [(f"scan_{source.names[at]}_{view.name}", buffer[view]) for at, view in source.views]
    if form.mode != "reduce":
        arguments += sink.parameters
    return arguments + [(f"scan_{name}", constant[uint32]) for name in numbers]


@record(eq=False)
class Variables:
    """The variables of a kernel that is being traced. Those that it does not have are None or empty.

    Attributes
    ----------
    store
        Where results go.
    partials, partial_flags
        Partial results, and whether a segment begins in each.
    board
        The buffers of a look-back.
    flags
        Where segments begin.
    arguments, views
        The arguments of the source, and views of them.
    number
        The numbers, by name.
    """

    store: ResultStore
    partials: Any
    partial_flags: Any
    board: tuple[Any, ...]
    flags: Any
    arguments: list[Any]
    views: list[Any]
    number: dict[str, Any]


def unpack_variables(
    form: Form, source: Source, sink: Sink, variables: Sequence[Any], numbers: Sequence[str]
) -> Variables:
    """Return the variables of a kernel by their meaning."""
    left = iter(variables)
    has_results = form.mode != "reduce"
    view = choose_result_view(form.together, sink) if has_results else None
    result = next(left) if has_results else None
    result_view = next(left) if view else None
    has_partials = form.mode == "reduce" or form.is_carried
    partials = next(left) if has_partials else None
    partial_flags = next(left) if has_partials and form.is_segmented else None
    board = tuple(islice(left, len(form.board)))
    flags = next(left) if form.flag_type is not None else None
    arguments = list(islice(left, len(source.annotations)))
    views = list(islice(left, len(source.views)))
    sink_arguments = list(islice(left, len(sink.annotations))) if has_results else []
    store = ResultStore(sink, view, result, result_view, sink_arguments, form.together)
    number = dict(zip(numbers, left, strict=True))
    return Variables(store, partials, partial_flags, board, flags, arguments, views, number)


def launch_values(
    form: Form,
    x: Operand,
    output: Output,
    result: Buffer[Any],
    own: Sequence[Buffer[Any]],
    flags: Buffer[Any] | None,
    numbers: Sequence[int],
) -> list[Any]:
    """Return what a kernel is launched with; `own` are partial results, or the board of a look-back."""
    values = [*own, *([] if flags is None else [flags]), *x.arguments, *x.views]
    if form.mode != "reduce":
        results = [result, result] if choose_result_view(form.together, output.sink) else [result]
        values = [*results, *values, *output.arguments]
    return [*values, *numbers]
