"""Records behave as the dataclasses they stand in for."""

import dataclasses
from typing import Any

import pytest

from vkdispatch.base.record import field, record, replace


@record
class Point:
    """A place."""

    x: int
    y: int = 2

    @property
    def total(self) -> int:
        return self.x + self.y


@record(eq=False, frozen=False)
class Box:
    items: list[int] = field(factory=list)
    name: str = "box"


@dataclasses.dataclass(frozen=True, slots=True)
class Twin:
    x: int
    y: int = 2


def test_records_are_made_compared_and_shown_like_dataclasses() -> None:
    for args, kwargs in (((1,), {}), ((1, 5), {}), ((), {"y": 3, "x": 4})):
        point, twin = Point(*args, **kwargs), Twin(*args, **kwargs)
        assert repr(point) == repr(twin).replace("Twin", "Point")
        assert point == Point(twin.x, twin.y) and hash(point) == hash(Point(twin.x, twin.y))
        assert (point.x, point.y, point.total) == (twin.x, twin.y, twin.x + twin.y)
    assert Point(1) != Point(2) and Point(1) != Twin(1) and Point(1) != (1, 2)
    assert Point.__doc__ == "A place." and Point.__qualname__ == "Point"
    match Point(7, 8):
        case Point(x, y):
            assert (x, y) == (7, 8)


@pytest.mark.parametrize("arguments", [((), {}), ((1, 2, 3), {}), ((1,), {"z": 1}), ((1,), {"x": 1})])
def test_wrong_arguments_are_refused(arguments: Any) -> None:
    args, kwargs = arguments
    with pytest.raises(TypeError):
        Point(*args, **kwargs)


def test_slots_factories_identity_and_copies() -> None:
    first, second = Box(), Box()
    first.items.append(1)
    assert second.items == [] and first != Box([1]) and first == first
    assert not hasattr(first, "__dict__")
    with pytest.raises(AttributeError):
        first.other = 1  # type: ignore[attr-defined]
    copy = replace(first, name="crate")
    assert copy.items is first.items and (copy.name, first.name) == ("crate", "box")
    with pytest.raises(TypeError):
        replace(first, colour="red")
