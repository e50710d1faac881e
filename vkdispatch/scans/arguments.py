"""The arguments of a scan's kernel, in one order for who declares them, who traces it and who launches it.

results (and a view of them); partial results, and their flags; the board of a look-back; flags; those of the
source, and views of them; those of the sink; numbers
"""

from collections.abc import Sequence
from itertools import islice
from typing import Any, Protocol

from vkdispatch.arrays.kernels import buffer, constant
from vkdispatch.arrays.maps.operand import Operand
from vkdispatch.arrays.maps.output import Output, Sink
from vkdispatch.arrays.maps.source import Source
from vkdispatch.base.buffer import Buffer
from vkdispatch.base.dtype import DType, uint32
from vkdispatch.base.record import record
from vkdispatch.scans.storing import Stores, result_view


class Form(Protocol):
    """What arguments depend on of a kernel's form."""

    @property
    def mode(self) -> str:
        """What it does: scan, reduce or lookback."""

    @property
    def together(self) -> int:
        """Elements of a vector."""

    @property
    def flagged(self) -> DType | None:
        """What a buffer holds that tells where segments begin; None: there is none."""

    @property
    def carried(self) -> bool:
        """Whether there are partial results of what comes before."""

    @property
    def segmented(self) -> bool:
        """Whether segments begin other than with the first element."""

    @property
    def board(self) -> tuple[tuple[str, DType], ...]:
        """Names and elements of the buffers that a look-back has."""


def declared(
    form: Form, kind: DType, source: Source, sink: Sink, numbers: Sequence[str]
) -> list[tuple[str, Any]]:
    """Return names and annotations; `kind` is what is combined."""
    arguments: list[tuple[str, Any]] = []
    if form.mode != "reduce":
        arguments.append(("scan_result", buffer[sink.out_type]))
        view = result_view(form.together, sink)
        if view is not None:
            arguments.append(("scan_result_view", buffer[view[0]]))
    if form.mode == "reduce" or form.carried:
        arguments.append(("scan_partials", buffer[kind]))
        if form.segmented:
            arguments.append(("scan_partial_flags", buffer[uint32]))
    arguments += [(name, buffer[words]) for name, words in form.board]
    if form.flagged is not None:
        arguments.append(("scan_flags", buffer[form.flagged]))
    arguments += source.parameters
    arguments += [(f"scan_{source.names[at]}_{view.name}", buffer[view]) for at, view in source.views]
    if form.mode != "reduce":
        arguments += sink.parameters
    return arguments + [(f"scan_{name}", constant[uint32]) for name in numbers]


@record(eq=False)
class Given:
    """The variables of a kernel being traced; None where it has none of a kind."""

    stores: Stores
    partials: Any
    partial_flags: Any
    board: tuple[Any, ...]
    flags: Any
    arguments: list[Any]
    views: list[Any]
    number: dict[str, Any]


def given(form: Form, source: Source, sink: Sink, variables: Sequence[Any], numbers: Sequence[str]) -> Given:
    """Return the variables by what they are."""
    left = iter(variables)
    scans = form.mode != "reduce"
    view = result_view(form.together, sink) if scans else None
    result = next(left) if scans else None
    result_as_view = next(left) if view else None
    partial = form.mode == "reduce" or form.carried
    partials = next(left) if partial else None
    partial_flags = next(left) if partial and form.segmented else None
    board = tuple(islice(left, len(form.board)))
    flags = next(left) if form.flagged is not None else None
    arguments = list(islice(left, len(source.annotations)))
    views = list(islice(left, len(source.views)))
    extra = list(islice(left, len(sink.annotations))) if scans else []
    stores = Stores(sink, view, result, result_as_view, extra, form.together)
    number = dict(zip(numbers, left, strict=True))
    return Given(stores, partials, partial_flags, board, flags, arguments, views, number)


def launched(
    form: Form,
    x: Operand,
    out: Output,
    result: Buffer[Any],
    own: Sequence[Any],
    flags: Buffer[Any] | None,
    numbers: Sequence[int],
) -> list[Any]:
    """Return what a kernel is launched with; `own` are partial results, or the board."""
    values = [*own, *([] if flags is None else [flags]), *x.arguments, *x.views]
    if form.mode != "reduce":
        results = [result, result] if result_view(form.together, out.sink) else [result]
        values = [*results, *values, *out.arguments]
    return [*values, *numbers]
