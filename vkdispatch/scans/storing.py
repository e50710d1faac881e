"""Results of scans: neighbouring elements are stored as vectors, unless an output map is between."""

from collections.abc import Sequence
from typing import Any

from vkdispatch.base.dtype import DType, component_type
from vkdispatch.base.record import record
from vkdispatch.families.operands import Sink
from vkdispatch.families.values import join_words, split_words, view_type

_WIDEST = 16  # bytes of the widest store


def choose_result_view(together: int, sink: Sink) -> tuple[DType, int] | None:
    """Return the dtype and the number of elements of a vector store, or None to store one by one."""
    if sink.mapping is not None or component_type(sink.out_type).item_size < 4:
        return None
    count = min(together, _WIDEST // sink.out_type.item_size)
    view = view_type(sink.out_type, count) if count > 1 else None
    return None if view is None else (view, count)


@record(eq=False)
class ResultStore:
    """Where results go, in a trace.

    Attributes
    ----------
    sink
        How an element is stored.
    view
        What `choose_result_view` gives.
    result, result_view
        The buffer, and a view of it as `view` says.
    arguments
        The arguments of the sink.
    together
        Elements of a vector.
    """

    sink: Sink
    view: tuple[DType, int] | None
    result: Any
    result_view: Any
    arguments: Sequence[Any]
    together: int

    def store_vector(self, position: Any, row: Sequence[Any]) -> None:
        """Store a vector at a position, which counts vectors."""
        if self.view is None:
            for i, value in enumerate(row):
                self.store_element(position * self.together + i if self.together > 1 else position, value)
            return
        view, count = self.view
        steps = self.together // count
        kind = self.sink.out_type
        for step in range(steps):
            part = [
                value if value.var_type is kind else value.to_dtype(kind)
                for value in row[step * count : (step + 1) * count]
            ]
            words = [word for value in part for word in split_words(value)]
            place = position * steps + step if steps > 1 else position
            self.result_view[place] = join_words(view, words)

    def store_element(self, index: Any, value: Any) -> None:
        """Store an element."""
        self.sink.store(self.result, self.arguments, index, value)
