"""Records behave as the dataclasses they stand in for."""

import dataclasses
import functools
import inspect
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


def test_records_behave_like_dataclasses() -> None:
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


@record(sealed=True, slots=False)
class Sealed:
    """Users get to see it."""

    name: str
    rest: tuple[int, ...] = field(default=(), hidden=True)
    items: list[int] = field(factory=list)

    @functools.cached_property
    def length(self) -> int:
        return len(self.name)


def test_hidden_fields_and_sealed_records() -> None:
    item = Sealed("a", (1,))
    assert (
        repr(item) == "Sealed(name='a', items=[])" and item == Sealed("a", (2,)) and item != Sealed("b", (1,))
    )
    assert (item.rest, item.length) == ((1,), 1)
    with pytest.raises(AttributeError, match="name"):
        item.name = "b"  # type: ignore[misc]
    with pytest.raises(AttributeError):
        del item.name
    assert replace(item, name="bc").length == 2


def test_dataclasses_functions_accept_records() -> None:
    assert dataclasses.is_dataclass(Point) and dataclasses.is_dataclass(Sealed("a"))
    for kind, twin in ((Point, Twin), (Point(1), Twin(1))):
        ours, theirs = dataclasses.fields(kind), dataclasses.fields(twin)  # type: ignore[arg-type]
        assert [(f.name, f.type, f.default) for f in ours] == [(f.name, f.type, f.default) for f in theirs]
    assert dataclasses.replace(Point(1), y=5) == Point(1, 5)  # type: ignore[type-var]
    assert dataclasses.asdict(Box([1])) == {"items": [1], "name": "box"}  # type: ignore[call-overload]
    assert inspect.signature(Sealed).parameters.keys() == {"name", "rest", "items"}
    assert inspect.signature(Point) == inspect.signature(Point.__init__).replace(
        parameters=list(inspect.signature(Point.__init__).parameters.values())[1:]
    )


def test_records_behave_the_same_before_and_after_compilation() -> None:
    @record
    class Some:
        name: str
        size: int = 3
        items: list[int] = field(factory=list)

    made = [Some("a", items=[1]) for _ in range(40)]
    assert all(item == made[0] and item.size == 3 and item.items == [1] for item in made)
    assert Some("a").items is not Some("a").items


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [((), {}), (("a", 1, 2), {}), (("a",), {"name": "b"}), (("a",), {"colour": 1}), ((), {"size": 1})],
)
def test_first_record_of_a_class_refuses_wrong_arguments(
    args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    @record
    class Some:
        name: str
        size: int = 3

    with pytest.raises(TypeError) as early:
        Some(*args, **kwargs)
    with pytest.raises(TypeError) as late:
        Some(*args, **kwargs)
    assert str(early.value) == str(late.value)
    assert "__init__() " in str(early.value)


def _compared() -> tuple[type[Any], type[Any]]:
    """Return records that nobody has compared yet."""

    @record
    class Some:
        name: str
        size: float
        rest: Any = field(default=None, hidden=True)

    @record
    class Other:
        name: str
        size: float

    return Some, Other


def test_comparisons_and_hashes_stay_the_same_once_they_are_compiled() -> None:
    nan = float("nan")
    some, other = _compared()
    pairs = [
        (some("a", 1), some("a", 1.0, "ignored")),
        (some("a", 1), some("a", 2)),
        (some("a", 1), some("b", 1)),
        (some("a", nan), some("a", nan)),  # the same object
        (some("a", nan), some("a", float("nan"))),
        (some("a", 1), other("a", 1)),
        (some("a", 1), ("a", 1)),
        (some("a", 1), None),
    ]

    def results() -> list[Any]:
        equal = [(a == b, b == a, a != b, a.__eq__(b)) for a, b in pairs]
        return [equal, [hash(item) for pair in pairs for item in pair if item is not None]]

    first = results()
    assert [row[0] for row in first[0]] == [True, False, False, True, False, False, False, False]
    assert [row[2] for row in first[0]] == [not row[0] for row in first[0]]
    assert first[0][5][3] is NotImplemented and first[0][6][3] is NotImplemented
    assert first[1][0] == first[1][1]
    for _ in range(20):
        assert results() == first
    assert inspect.isfunction(vars(some)["__eq__"]) and inspect.isfunction(vars(some)["__hash__"])
    assert some.__eq__.__qualname__ == f"{some.__qualname__}.__eq__"


def test_records_that_are_never_compared_are_not_compiled() -> None:
    some, _ = _compared()
    assert some("a", 1).name == "a"
    assert not inspect.isfunction(vars(some)["__eq__"]) and not inspect.isfunction(vars(some)["__hash__"])


@pytest.mark.parametrize("times", [1, 40])
def test_unhashable_fields_raise_as_in_tuples(times: int) -> None:
    class Odd:
        __hash__ = object.__hash__

        def __eq__(self, other: object) -> bool:
            raise ArithmeticError("not comparable")

    some, _ = _compared()
    for _ in range(times):
        with pytest.raises(TypeError, match="unhashable type: 'list'"):
            hash(some("a", []))
        with pytest.raises(ArithmeticError):
            _ = some("a", Odd()) == some("a", Odd())
        odd = Odd()
        assert some("a", odd) == some("a", odd)
