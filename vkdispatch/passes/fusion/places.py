"""Places: elements of buffers that belong to one invocation each, and which kernels read and write them."""

from collections.abc import Sequence

from vkdispatch.base.dtype import DType, component_type, compute_type, is_matrix
from vkdispatch.base.record import record
from vkdispatch.ir import (
    Argument,
    Block,
    Expr,
    ImageBinding,
    Op,
    Register,
    Statement,
    Storage,
    Store,
    evaluated,
    map_statement,
    nodes,
    root_of,
    walk,
)
from vkdispatch.passes.fusion.elementwise import Elementwise


@record
class Part:
    """A kernel of a chain.

    Attributes
    ----------
    element
        The kernel.
    resources
        For each of its resources a number; equal numbers stand for the same buffer or image.
    places
        For each of `element.elements` the number of its place, or None if it stays in memory.
    shapes
        (argument, number) of each argument that is the shape of a buffer.
    """

    element: Elementwise
    resources: tuple[int, ...]
    places: tuple[int | None, ...]
    shapes: tuple[tuple[Argument, int], ...]


def is_kept_in_registers(kind: DType) -> bool:
    """Whether elements of a buffer come back from memory as they were: no conversion, no rounding."""
    # a matrix has no simple way to be rounded
    return component_type(kind).item_size >= 4 and compute_type(kind) is kind and not is_matrix(kind)


@record(eq=False, frozen=False)
class Place:
    """An element that belongs to one invocation.

    `element` is its expression in memory, as the first part that uses it writes it. `register` is made at the
    first use.
    """

    storage: int
    kind: DType
    label: str
    readers: set[int]
    writers: set[int]
    element: Expr | None = None
    register: Register | None = None


def collect_places(parts: Sequence[Part]) -> list[Place]:
    """Collect the places of a chain, by number."""
    places: dict[int, Place] = {}
    for position, part in enumerate(parts):
        for element, number in zip(part.element.elements, part.places, strict=True):
            if number is None:
                continue
            storage = element.value
            assert isinstance(storage, Storage)
            resource = part.resources[storage.index]
            place = places.setdefault(number, Place(resource, element.dtype, storage.label, set(), set()))
            read = part.element.written.get(id(element))
            if read is not None:
                place.writers.add(position)
            if read is None or read:
                place.readers.add(position)
    return [places[number] for number in range(len(places))]


def remove_stores(
    body: Block, discarded: frozenset[int], resources: dict[int, Storage | ImageBinding]
) -> Block:
    """Remove stores to discarded buffers that are never loaded from."""
    loaded = {
        id(expr.value)
        for statement in walk(body)
        for expr in nodes(evaluated(statement))
        if expr.op is Op.ELEMENT
    }
    dead = {
        id(resources[number])
        for number in discarded
        if number in resources and id(resources[number]) not in loaded
    }
    return _prune(body, dead) if dead else body


def _prune(block: Block, dead: set[int]) -> Block:
    out: list[Statement] = []
    for statement in block:
        if isinstance(statement, Store):
            root = root_of(statement.place)
            if root.op is Op.ELEMENT and id(root.value) in dead:
                continue
        out.append(map_statement(statement, block=lambda inner: _prune(inner, dead)))
    return tuple(out)
