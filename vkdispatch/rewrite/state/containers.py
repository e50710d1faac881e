"""Contents of Python containers and objects: captured, compared and restored."""

import warnings
from collections import deque
from collections.abc import Iterator
from operator import is_
from types import BuiltinFunctionType, FunctionType, GeneratorType, ModuleType
from typing import Any

from vkdispatch.base.errors import UsageError
from vkdispatch.base.host_numpy import np
from vkdispatch.base.record import record
from vkdispatch.codegen.variables import ShaderVariable
from vkdispatch.compiler.ir.location import located
from vkdispatch.rewrite.state.values import LocalValue, Unbound, are_same

# Modules whose objects are not inspected.
_FOREIGN = ("vkdispatch", "numpy", "builtins", "types", "functools", "collections", "enum")
# Levels of containers in containers that are captured.
DEEPEST = 4
_PLAIN = (ShaderVariable, int, float, str, bytes, type, FunctionType, ModuleType, BuiltinFunctionType)
# Types of immutable values without contents.
ATOMS = frozenset(
    (
        *(int, float, bool, complex, str, bytes, type(None), Unbound, LocalValue, ShaderVariable),
        *(FunctionType, BuiltinFunctionType, ModuleType, type),
    )
)
# Bytes of an array that are compared.
_MOST_BYTES = 1 << 20


@record
class GlobalVariable:
    """A variable of a module, as a container of one value."""

    module: dict[str, Any]
    name: str


def collect_containers(
    label: str, value: Any, found: list[tuple[str, Any, list[Any]]], seen: set[object], depth: int
) -> None:
    """Append to `found` the label, container and contents of a value and of what it contains.

    `seen` has the identities of values that are known, `depth` is the number of levels to descend.
    """
    if isinstance(value, _PLAIN) or value is None or id(value) in seen:
        return
    inner = list_contents(value)
    if inner is None:
        return
    if not isinstance(value, tuple):
        seen.add(id(value))
        noun = type(value).__name__ if type(value).__module__ in ("builtins", "numpy") else "object"
        found.append((f"the {noun} {label!r}", value, inner))
    if depth and not ATOMS.issuperset(map(type, inner)):
        for part in inner[:512]:
            collect_containers(label, part, found, seen, depth - 1)


def list_contents(value: Any) -> list[Any] | None:
    """Return the contents of a container or of an object of a user's class, or None."""
    if isinstance(value, GlobalVariable):
        return [value.module[value.name]] if value.name in value.module else []
    if isinstance(value, (list, tuple, deque)):
        return list(value)
    if isinstance(value, dict):
        return [*value.keys(), *value.values()]
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=id)
    if isinstance(value, np.ndarray):
        step = -(-value.nbytes // _MOST_BYTES) or 1
        return [value.shape, value.reshape(-1)[::step].tobytes()]
    if isinstance(value, Iterator):
        return _iterator_state(value)
    if _is_foreign(type(value)):
        return None
    members = members_of(value) or {}
    held = [*members.keys(), *members.values()]
    return held + [getattr(value, name, None) for name in _slots(value)]


def _slots(value: Any) -> list[str]:
    names: list[str] = []
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        names.extend((slots,) if isinstance(slots, str) else slots)
    return names


def refill(container: Any, before: list[Any], *, strict: bool) -> None:
    """Restore contents that `list_contents` returned."""
    half = len(before) // 2
    if isinstance(container, GlobalVariable):
        container.module.pop(container.name, None)
        container.module.update(zip([container.name], before, strict=False))
    elif isinstance(container, (list, deque)):
        container.clear()
        container.extend(before)
    elif isinstance(container, set):
        container.clear()
        container.update(before)
    elif isinstance(container, dict):
        container.clear()
        container.update(zip(before[:half], before[half:], strict=True))
    elif (members := members_of(container)) is not None and not _slots(container):
        members.clear()
        members.update(zip(before[:half], before[half:], strict=True))
    elif isinstance(container, np.ndarray) and container.nbytes == len(before[1]):
        container[...] = np.frombuffer(before[1], container.dtype).reshape(container.shape)
    elif strict:
        raise located(
            UsageError,
            f"a value of type {type(container).__name__} changes in a function that has to be traced twice, "
            "since it returns values of several types; return one type",
        )


def members_of(value: Any) -> dict[str, Any] | None:
    """Return the attributes of an object of a user's class, or None."""
    members = None if _is_foreign(type(value)) else getattr(value, "__dict__", None)
    return members if isinstance(members, dict) else None


def _iterator_state(iterator: Iterator[Any]) -> list[Any] | None:
    """Return the state of an iterator, or None if it is not accessible."""
    if isinstance(iterator, GeneratorType):
        frame = iterator.gi_frame
        return [] if frame is None else [frame.f_lasti, *frame.f_locals.values()]
    if type(iterator).__module__ not in ("builtins", "itertools"):
        return None
    try:
        with warnings.catch_warnings():
            # itertools deprecates what pickle is made of
            warnings.simplefilter("ignore")
            state = iterator.__reduce__()
    except TypeError:
        return None
    return [inner for part in state[1:] for inner in (part if isinstance(part, tuple) else (part,))]


def _is_foreign(kind: type) -> bool:
    module = getattr(kind, "__module__", "builtins") or "builtins"
    return module.split(".")[0] in _FOREIGN


def is_unchanged(now: list[Any] | None, before: list[Any]) -> bool:
    """Whether contents that `list_contents` returned are the same as before."""
    if now is None or len(now) != len(before):
        return False
    return all(map(is_, now, before)) or all(
        a is b or are_same((a, b)) for a, b in zip(now, before, strict=True)
    )
