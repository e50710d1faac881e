"""Results of scans: vectors of neighbouring elements are stored at once, unless a map comes between."""

from collections.abc import Sequence
from typing import Any

from vkdispatch.arrays.maps.output import Sink
from vkdispatch.arrays.values.elements import view_type
from vkdispatch.arrays.values.words import join_words, split_words
from vkdispatch.base.dtype import DType, component_type
from vkdispatch.base.record import record

_STORE = 16  # bytes of the widest store


def result_view(together: int, sink: Sink) -> tuple[DType, int] | None:
    """Return as what vectors are stored, and how many elements of them at once; None: one by one."""
    if sink.mapping is not None or component_type(sink.out_type).item_size < 4:
        return None
    count = min(together, _STORE // sink.out_type.item_size)
    view = view_type(sink.out_type, count) if count > 1 else None
    return None if view is None else (view, count)


@record(eq=False)
class Stores:
    """Where results go: the buffer, and the same as `view` tells; `extra` are the arguments of the sink."""

    sink: Sink
    view: tuple[DType, int] | None
    result: Any
    result_as_view: Any
    extra: Sequence[Any]
    together: int

    def store(self, position: Any, row: Sequence[Any]) -> None:
        """Store a vector; `position` is counted in vectors."""
        if self.view is None:
            for i, value in enumerate(row):
                self.store_one(position * self.together + i if self.together > 1 else position, value)
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
            self.result_as_view[place] = join_words(view, words)

    def store_one(self, index: Any, value: Any) -> None:
        """Store an element."""
        self.sink.store(self.result, self.extra, index, value)
