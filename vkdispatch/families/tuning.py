"""What plans depend on besides shapes and types: facts about devices, and measured numbers."""

import math
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache, wraps
from itertools import count
from typing import Any, ClassVar, Generic, ParamSpec, Self, TypeVar, cast, overload

from vkdispatch.base.compilation import disk_cache
from vkdispatch.base.context import Context, get_context
from vkdispatch.base.contexts.current import find_current_context
from vkdispatch.base.devices import MatrixProduct, identify_devices
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.base.process import read_choices
from vkdispatch.base.record import record

# ---- Memoization: sources, sinks and kernels are made once for equal arguments ---------------------------


_P = ParamSpec("_P")
_Result = TypeVar("_Result")
_Function = TypeVar("_Function", bound=Callable[..., Any])
# The maximum number of results stored for each function, so that those of short-lived maps are dropped.
MAX_RESULTS = 1024


def memoize(function: _Function) -> _Function:
    """Decorate a function to be called once for equal arguments, which must be hashable."""
    return cast(_Function, lru_cache(MAX_RESULTS)(function))


def memoize_numbers(function: Callable[_P, _Result]) -> Callable[_P, _Result]:
    """Decorate a function of numbers and types, which is called once for equal arguments of the same type.

    It may be called with any arguments: those that == does not tell apart from others, such as -0.0, and
    those that may not be hashable are passed on to the function.
    """
    known = lru_cache(MAX_RESULTS, typed=True)(function)

    @wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _Result:
        for value in args:
            plain = type(value) is int or isinstance(value, type) or (type(value) is float and value != 0)
            if not plain and not (type(value) is float and math.copysign(1.0, value) > 0):
                return function(*args, **kwargs)
        return known(*args, **kwargs)  # type: ignore[arg-type]

    return call


# ---- Plans: what the calls of a family launch, kept for equal calls --------------------------------------


class PlanCache(Generic[_Result]):
    """Plans by key. They are dropped when a number of the table changes that they depend on."""

    def __init__(self) -> None:
        """Start without plans."""
        self._kept: tuple[object, dict[Any, _Result]] = None, {}

    @property
    def plans(self) -> dict[Any, _Result]:
        """The plans of the present numbers."""
        return self._kept[1]

    def find(self, table: "Table", key: Any, make: Callable[[], _Result]) -> _Result:
        """Return the plan under a key, made if there is none."""
        present = table.edition
        edition, plans = self._kept
        if edition != present:
            # another thread that is making a plan of earlier numbers keeps it with those
            plans = {}
            self._kept = present, plans
        plan = plans.get(key)
        if plan is None:
            plan = make()
            if len(plans) >= MAX_RESULTS:
                plans.clear()
            plans[key] = plan
        return plan


# ---- Facts about the devices of a context that plans of kernels depend on, gathered once -----------------


_FACTS_KEY = "families.facts"
_PLAN_VARIABLE = "VKDISPATCH_PLAN"
_BALLOT, _SHUFFLE, _SHIFT = 0x8, 0x10, 0x20
NVIDIA, AMD, INTEL = 0x10DE, 0x1002, 0x8086
# Drivers of other vendors may run kernels with smaller subgroups than they report.
_WHOLE_SUBGROUPS = (NVIDIA, AMD)


def floor_power_of_two(number: int) -> int:
    """Return the largest power of two that is not above a number, but at least 1."""
    return 1 << (max(number, 1).bit_length() - 1)


# Plans are memoized by these facts. Each context has one object, so it is compared and hashed by identity.
@record(eq=False)
class DeviceFacts:
    """What all devices of a context can do.

    Attributes
    ----------
    is_cpu
        Whether kernels are planned for a CPU driver: one device is such, or VKDISPATCH_PLAN says so.
    vendors
        Vulkan's vendor numbers.
    subgroup_size
        Invocations of a subgroup.
    has_one_subgroup_size
        Whether all devices have subgroups of that size.
    has_full_subgroups
        Whether every subgroup has that many invocations if the size of the workgroup is a multiple of it.
    has_shuffle, has_shift
        Whether an invocation can read the values of any other of its subgroup, or of those before it.
    has_ballot
        Whether subgroups can vote.
    has_arithmetic
        Whether subgroups have sums and products.
    max_group
        The most invocations of a workgroup along x.
    shared_memory
        Bytes of workgroup memory.
    features
        Vulkan's names of the features that kernels may use.
    products
        Products of cooperative matrices.
    """

    is_cpu: bool
    vendors: frozenset[int]
    subgroup_size: int
    has_one_subgroup_size: bool
    has_full_subgroups: bool
    has_shuffle: bool
    has_shift: bool
    has_ballot: bool
    has_arithmetic: bool
    max_group: int
    shared_memory: int
    features: frozenset[str]
    products: tuple[MatrixProduct, ...]

    def power_group(self, wanted: int) -> int:
        """Return the largest power of two up to `wanted` invocations that a workgroup may have."""
        return floor_power_of_two(min(wanted, self.max_group))


def device_facts(context: Context | None = None) -> DeviceFacts:
    """Return the facts about the devices of a context; None for the current one."""
    context = get_context() if context is None else context
    if not context.runs:
        return _gather_facts(context)  # the limits of the dummy backend may change
    facts: DeviceFacts | None = context.kept.get(_FACTS_KEY)
    return context._keep(_FACTS_KEY, lambda: _gather_facts(context)) if facts is None else facts


def _is_planned_for_cpu(context: Context) -> bool:
    chosen = read_choices(_PLAN_VARIABLE, ("cpu", "gpu"))
    if len(chosen) > 1:
        raise ArgumentValueError(f"{_PLAN_VARIABLE}: expected cpu or gpu, got both")
    return "cpu" in chosen or (context.is_cpu() and not chosen)


def _gather_facts(context: Context) -> DeviceFacts:
    infos = context.device_infos
    operations = -1 if context.subgroup_enabled else 0
    for info in infos:
        operations &= info.supported_operations
    return DeviceFacts(
        _is_planned_for_cpu(context),
        frozenset(info.vendor_id for info in infos),
        context.subgroup_size,
        len({info.sub_group_size for info in infos}) == 1,
        all(info.vendor_id in _WHOLE_SUBGROUPS or info.is_cpu() for info in infos),
        bool(operations & _SHUFFLE),
        bool(operations & _SHIFT),
        bool(operations & _BALLOT),
        context.subgroup_arithmetic,
        context.max_invocations_along_x,
        context.max_shared_memory,
        context.features,
        tuple(
            product
            for product in infos[0].cooperative_matrices
            if all(product in info.cooperative_matrices for info in infos)
        ),
    )


# ---- Numbers found by measurement: what plans depend on besides shapes, types and the device -------------
#
# Each family of functions has one table or a few, subclasses of `Table`.
# A number has a default and names the device that it was found on; the comment above it says what it is.
# `python -m benchmarks tune` measures the candidates of the numbers on another device. What it keeps in the
# cache folder replaces the defaults on that device.
#
# `table.number` is the value for the devices of the current context. Plans read it; repeated calls do not.
# Numbers change plans and kernels. Those marked with `changes_rounding` also change the order in which
# floating-point numbers are summed, and so the last bits of results; the others change no bit of a result.


H200, LLVMPIPE = "NVIDIA H200", "llvmpipe"
H200_AND_LLVMPIPE = f"{H200} and {LLVMPIPE}"

_T = TypeVar("_T")
_STATE_KEY = "families.tuning"
_KIND = "tuning"
# Texts of values, and checksums of the numbers that they are for, by the numbers' keys.
_Kept = dict[str, tuple[str, str]]
_NOTHING: _Kept = {}


class Number(Generic[_T]):
    """A number of a table, and what is known of it.

    Attributes
    ----------
    name, key
        Its name in its table, and after the table's family and a dot.
    default
        The value that counts on devices for which no other one was found.
    candidates
        Values worth measuring; the default is one of them. None where measuring is of no use: costs that
        only count relative to each other, and numbers that others follow from.
    found_on
        The device that the default was found on. Numbers that were found on llvmpipe decide plans for CPUs.
    changes_rounding
        Whether other values change the order of floating-point sums, and so the last bits of results.
    """

    __slots__ = ("candidates", "changes_rounding", "default", "found_on", "key", "name")

    def __init__(
        self,
        default: _T,
        candidates: Sequence[_T] = (),
        *,
        found_on: str = "",
        changes_rounding: bool = False,
    ) -> None:
        self.name = self.key = ""
        self.default = default
        self.candidates = tuple(candidates)
        self.found_on = found_on
        self.changes_rounding = changes_rounding

    def __set_name__(self, owner: type[Any], name: str) -> None:
        self.name = name

    @overload
    def __get__(self, table: None, owner: type[Any]) -> Self: ...
    @overload
    def __get__(self, table: "Table", owner: type[Any]) -> _T: ...
    def __get__(self, table: "Table | None", owner: type[Any]) -> Self | _T:
        if table is None:
            return self
        assigned = table._assigned
        if assigned and self.name in assigned:
            value: _T = assigned[self.name]
            return value
        # as `_kept_here`, written out: plans read some ten numbers
        context = find_current_context()
        if context is None:
            return self.default
        kept: _Kept | None = context.kept.get(_STATE_KEY)
        if kept is None:
            kept = _kept_here()
        return self.find_in(kept) if kept else self.default

    def __set__(self, table: "Table", value: _T) -> None:
        table._assigned[self.name] = value
        plan_anew()

    def find_in(self, kept: _Kept) -> _T:
        """Return the kept value if it is one of the candidates of this very number, else the default."""
        text, checksum = kept.get(self.key, ("", ""))
        if checksum != self.checksum:
            return self.default
        return next((value for value in self.candidates if repr(value) == text), self.default)

    @property
    def checksum(self) -> str:
        """A checksum of what the number is: a value that was found for another definition does not count."""
        return f"{zlib.crc32(repr((self.default, self.candidates)).encode()):08x}"

    def decides(self, is_cpu: bool) -> bool:
        """Whether plans depend on it, for CPUs or for GPUs."""
        return (LLVMPIPE if is_cpu else H200) in self.found_on


class Table:
    """The numbers of a family. Numbers that a table was made with, or that were assigned, come first.

    Attributes
    ----------
    family
        The name of the family.
    numbers
        All numbers by name.
    """

    family: ClassVar[str]
    numbers: ClassVar[dict[str, Number[Any]]]
    __match_args__: ClassVar[tuple[str, ...]]  # for `record.replace`
    _serials: ClassVar[Iterator[int]] = count()

    def __init_subclass__(cls, *, family: str, found_on: str = H200) -> None:
        """Take the family's name, and the device that numbers were found on which name none."""
        cls.family = family
        cls.numbers = {name: number for name, number in vars(cls).items() if isinstance(number, Number)}
        cls.__match_args__ = tuple(cls.numbers)  # type: ignore[misc]
        for name, each in cls.numbers.items():
            each.key = f"{family}.{name}"
            each.found_on = each.found_on or found_on

    def __init__(self, **values: Any) -> None:
        unknown = values.keys() - self.numbers.keys()
        if unknown:
            raise TypeError(f"{type(self).__name__}: no number is named {', '.join(sorted(unknown))}")
        self._assigned = values
        self._serial = next(self._serials)
        self._snapshot: tuple[int, _Kept, tuple[Any, ...], object] = -1, _NOTHING, (), None

    @property
    def edition(self) -> tuple[int, int]:
        """What tells this table from others and from itself before a change; for plans of one context."""
        return self._serial, _changes

    def values(self) -> tuple[Any, ...]:
        """Return the values for the current context in the order of the numbers, quickly if none changed."""
        return self._take_snapshot()[2]

    def key(self) -> object:
        """Return an object that is the same for equal numbers; for keys of plans that contexts share."""
        return self._take_snapshot()[3]

    def _take_snapshot(self) -> tuple[int, _Kept, tuple[Any, ...], object]:
        kept = _kept_here()
        snapshot = self._snapshot
        if snapshot[0] != _changes or snapshot[1] is not kept:
            changes = _changes
            values = tuple(number.__get__(self, type(self)) for number in self.numbers.values())
            snapshot = changes, kept, values, _value_keys.setdefault((self.family, values), _Values(values))
            self._snapshot = snapshot
        return snapshot

    @contextmanager
    def change(self, **values: Any) -> Iterator[None]:
        """Plan with other numbers for a while."""
        before = dict(self._assigned)
        self._assigned |= values
        plan_anew()
        try:
            yield
        finally:
            self._assigned = before
            plan_anew()


_changes = 0
_value_keys: dict[tuple[str, tuple[Any, ...]], "_Values"] = {}


class _Values:
    """The values of a table. Equal ones are the same object, so that they are compared by identity."""

    __slots__ = __match_args__ = ("values",)

    def __init__(self, values: tuple[Any, ...]) -> None:
        self.values = values


def plan_anew() -> None:
    """Let what was planned so far in the current context not be used again."""
    global _changes
    _changes += 1
    context = find_current_context()
    if context is not None:
        context.calls.clear()


def count_changes() -> int:
    """Return how often numbers of tables were changed in this process."""
    return _changes


# ---- memory


def describe_kept(context: Context) -> str:
    """Return a text of the numbers that are kept for the devices of a context."""
    return repr(sorted(context._keep(_STATE_KEY, lambda: load_kept(context)).items()))


def _kept_here() -> _Kept:
    """Return what is kept for the current context, loaded once; nothing where there is no context."""
    context = find_current_context()
    if context is None:
        return _NOTHING
    kept: _Kept | None = context.kept.get(_STATE_KEY)
    return context._keep(_STATE_KEY, lambda: load_kept(context)) if kept is None else kept


def load_kept(context: Context) -> _Kept:
    """Read what is kept for the devices of a context; nothing if it makes no sense."""
    stored = disk_cache.load(_KIND, _key(context)) if context.runs else None
    try:
        lines = (stored or b"").decode().splitlines()
        return {key: (text, checksum) for key, checksum, text in (line.split("\t") for line in lines)}
    except ValueError:
        return {}


def keep(context: Context, values: Mapping[Number[Any], Any]) -> None:
    """Keep numbers that were found for the devices of a context, beside those that are kept already.

    They count in this context from now on, and in contexts that are made later.
    """
    kept = load_kept(context) | {
        number.key: (repr(value), number.checksum) for number, value in values.items()
    }
    _store(context, kept)


def forget(context: Context, keys: Sequence[str] | None = None) -> list[str]:
    """Drop what is kept for the devices of a context, all or some keys; return the keys that were kept."""
    kept = load_kept(context)
    gone = [key for key in kept if keys is None or key in keys]
    if gone:
        _store(context, {key: value for key, value in kept.items() if key not in gone})
    return gone


def _store(context: Context, kept: _Kept) -> None:
    lines = (f"{key}\t{checksum}\t{text}\n" for key, (text, checksum) in sorted(kept.items()))
    disk_cache.store(_KIND, _key(context), "".join(lines).encode())
    context.kept.pop(_STATE_KEY, None)
    plan_anew()


def _key(context: Context) -> str:
    return f"tuning 1\n{identify_devices(context.device_infos)}"
