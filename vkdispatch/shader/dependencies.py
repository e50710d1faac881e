"""What a function read from outside while it was traced, and whether that has other values by now.

That is global variables, closures, default values, attributes of modules, classes and objects, and the
contents of lists, dicts, sets and small arrays, for a function and those that it calls. Bytecode tells what
is read. A native guard compares it at each call, by identity. Where that fails, it is compared by value.
Arrays that a trace copies, by `vc.constant_array`, are compared by identity only.
"""

import contextlib
import functools
import sys
import threading
import types
import warnings
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Sequence, Sized
from typing import Any, Generic, TypeGuard, TypeVar

from vkdispatch.base.context import Handle
from vkdispatch.base.errors import KernelWarning
from vkdispatch.base.host_numpy import is_absent, np
from vkdispatch.base.native_module import native
from vkdispatch.base.record import record
from vkdispatch.codegen.constant_arrays import watch_copies
from vkdispatch.compiler.ir.location import is_foreign

Guard = native.Guard
_T = TypeVar("_T")
_Chains = Iterable[tuple[str, ...]]

# The most versions of a kernel that are kept, and the number of traces that causes a warning.
MAX_VERSIONS = 16
_MANY_TRACES = 32
# Larger arrays and containers are compared by identity.
_MAX_BYTES = 1 << 16
_MAX_ITEMS = 1000
_MAX_WATCHES = 1000
_DEEPEST = 6
_DEEPEST_OBJECT = 3
_ATTEMPTS = 3
_PLAIN = (int, bool, str, bytes, complex, type(None))
_CONTAINERS = (list, dict, set, frozenset, deque)
_EXACT = frozenset((tuple, *_CONTAINERS))
# A value that is used for more than attributes by name.
_WHOLE: _Chains = ((),)
_LIBRARIES = frozenset(("vkdispatch", "vkdispatch_native", "numpy", *sys.stdlib_module_names)) - {"__main__"}
# Modules whose functions return the same for the same arguments, and functions that may not.
_STEADY = frozenset(
    (
        *("vkdispatch", "numpy", "builtins", "math", "cmath", "operator", "functools", "itertools", "string"),
        *("collections", "typing", "types", "enum", "dataclasses", "contextlib", "abc", "numbers"),
    )
)
_BASES = frozenset(("abc", "collections.abc", "enum", "types", "typing"))
_UNSTEADY = frozenset(("open", "input", "eval", "exec", "globals", "locals", "vars", "next", "__import__"))
_MAX_SHARED = 256
# What of a buffer or an image never changes.
_METADATA = frozenset(
    ("shape", "real_shape", "fourier_shape", "ndim", "size", "mem_size", "var_type", "dtype")
)
# The functions of users in objects of this package that kernels call, and in those of functools.cache.
_CARRIED = ("mapping_function", "pyfunc", "__wrapped__")


class Identity:
    """An object compared by identity, and held by a weak reference if possible."""

    __slots__ = ("number", "target")

    def __init__(self, value: Any) -> None:
        self.number = id(value)
        try:
            self.target: Callable[[], Any] = weakref.ref(value)
        except TypeError:
            self.target = lambda: value

    def __hash__(self) -> int:
        return self.number

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Identity):
            return False
        mine = self.target()
        return mine is not None and mine is other.target()


def freeze(value: Any, depth: int = 0) -> Any:
    """Return something hashable that is equal for equal numbers, texts, arrays, and containers of them.

    Other objects are equal to themselves.
    """
    kind = type(value)
    if kind in _PLAIN:
        return (kind, value)
    if kind is float:
        return (kind, value.hex())
    if isinstance(value, np.generic):
        return (kind, value.tobytes())
    if isinstance(value, np.ndarray) and not value.dtype.hasobject and value.nbytes <= _MAX_BYTES:
        return (kind, value.dtype.str, value.shape, value.tobytes())
    if depth < _DEEPEST and (not isinstance(value, Sized) or len(value) <= _MAX_ITEMS):
        if kind in (tuple, list):
            return (kind, *(freeze(item, depth + 1) for item in value))
        if kind in (set, frozenset):
            return (kind, frozenset(freeze(item, depth + 1) for item in value))
        if kind is dict:
            items = (freeze(item, depth + 1) for pair in value.items() for item in pair)
            return (kind, *items)
        if hasattr(kind, "__dataclass_fields__"):
            fields = (getattr(value, name, None) for name in kind.__dataclass_fields__)
            return (kind, *(freeze(item, depth + 1) for item in fields))
    return Identity(value)


@record(eq=False, frozen=False)
class Versions(Generic[_T]):
    """The latest versions of a kernel, by the state of what it read. The one used last is at the end."""

    made: dict[Any, _T]
    traces: int = 0

    def find(self, state: Any) -> _T | None:
        """Return the version for a state, or None."""
        version = self.made.pop(state, None)
        if version is not None:
            self.made[state] = version
        return version

    def add(self, state: Any, version: _T, who: str, reason: str) -> None:
        """Keep a version, and warn if there were many of what messages call `who`."""
        self.traces += 1
        if len(self.made) >= MAX_VERSIONS:
            del self.made[next(iter(self.made))]
        self.made[state] = version
        if self.traces == _MANY_TRACES:
            text = (
                f"{who} was traced {_MANY_TRACES} times {reason}; make what changes an argument of the kernel"
            )
            warnings.warn(text, KernelWarning, stacklevel=4)


@record(eq=False)
class _Watch:
    """Something that was read: an entry of a dict, an attribute, or the contents of a container or an array.

    `is_name` tells variables from parts of values, which tracing itself may change.
    """

    kind: str
    owner: Any
    name: str | None
    value: Any
    is_name: bool

    @property
    def place(self) -> tuple[int, str | None]:
        """What tells it from others while the owner lives."""
        return id(self.owner), self.name


def _make_guard(watches: Iterable[_Watch]) -> Guard:
    kinds: dict[str, list[Any]] = {"entry": [], "attribute": [], "container": [], "array": []}
    for watch in watches:
        named = (watch.owner, watch.value) if watch.name is None else (watch.owner, watch.name, watch.value)
        kinds[watch.kind].append(named)
    return Guard(*kinds.values())


class Snapshot:
    """What a function reads now.

    Attributes
    ----------
    state
        The values, for comparison with those of another time.
    unclear
        What cannot be compared, as messages say it.
    is_complete
        Whether functions with an equal state read the same, even if they are others.
    """

    def __init__(
        self, functions: Iterable[types.FunctionType], owner: type | None, ignored: dict[Any, Any]
    ) -> None:
        """Look at functions. `owner` is the class of a method; `ignored` are places that are left out."""
        self._watches: dict[Any, _Watch] = {}
        self.unclear: dict[str, None] = {}
        self.is_complete = True
        self._arrays: set[int] = set()
        self._ignored = ignored
        self._state: list[Any] = []
        self._seen: dict[int, tuple[int, Any]] = {}
        self._names: set[str] = set()
        self._classes: list[type] = []
        # The installed packages whose objects are looked into: those of the functions themselves.
        self._own = {_root_of(each) for each in functions}
        for function in functions:
            self._visit_function(function, is_kernel=True)
        if owner is not None:
            self._add_class(owner)
        self._visit_methods()
        self.state = tuple(self._state)

    @functools.cached_property
    def guard(self) -> Guard:
        """A guard, which holds as long as nothing has changed."""
        return _make_guard(self._watches.values())

    @property
    def places(self) -> set[Any]:
        """The places of all that is compared."""
        return set(self._watches)

    def find_changed(self) -> list[_Watch]:
        """Return what has changed since."""
        if self.guard.holds():
            return []
        return [watch for watch in self._watches.values() if not _make_guard([watch]).holds()]

    def reads_array(self, array: Any) -> bool:
        """Whether an array is among what is read."""
        return id(array) in self._arrays

    def _watch(self, kind: str, owner: Any, name: str | None, value: Any, is_name: bool = False) -> bool:
        """Note what is read. Return False if it is ignored."""
        watch = _Watch(kind, owner, name, value, is_name)
        if watch.place in self._ignored:
            return False
        if watch.place not in self._watches:
            self._watches[watch.place] = watch
        return True

    def _is_distant(self, value: Any) -> bool:
        """Whether a function or class is of a library, or of another installed package than the kernel."""
        root = _root_of(value)
        return root in _LIBRARIES or (root not in self._own and _is_installed(root))

    def _is_new(self, value: Any) -> bool:
        """Whether a value was not visited. It is kept alive, so that its id stays its own."""
        first = self._seen.get(id(value))
        if first is not None:
            self._state.append(first[0])
            return False
        self._seen[id(value)] = len(self._seen), value
        return True

    # -- functions

    def _visit_function(self, function: types.FunctionType, *, is_kernel: bool = False) -> None:
        code, names = function.__code__, function.__globals__
        self._state.append((code, id(names)))
        if not self._is_new(function):
            return
        if is_foreign(code.co_filename) or self._is_distant(function):
            wrapped = getattr(function, "__wrapped__", None)  # such as that of a context manager
            if isinstance(wrapped, types.FunctionType):
                self._visit_function(wrapped)
            if function.__closure__:
                self._state.append(Identity(function))
            is_open = function.__closure__ is None or wrapped is not None
            self.is_complete &= is_open and not is_kernel and _is_steady(function)
            return
        from vkdispatch.control_flow.source import find_reads  # something is traced

        reads = find_reads(code)
        self._names |= reads.names
        self.is_complete &= not (reads.imports or reads.assigned or reads.names & _UNSTEADY)
        if not is_kernel:
            for attribute in ("__code__", "__defaults__", "__kwdefaults__"):
                self._watch("attribute", function, attribute, getattr(function, attribute))
            self._visit(function.__defaults__, code.co_name)
            self._visit(function.__kwdefaults__, code.co_name)
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            if name in reads.variables and name not in reads.assigned:
                try:
                    value = cell.cell_contents
                except ValueError:  # such as the kernel's own name
                    continue
                if self._watch("attribute", cell, "cell_contents", value, is_name=True):
                    self._visit(value, name, reads.variables[name])
        for name, chains in reads.variables.items():
            if name in names and name not in reads.assigned and name not in code.co_freevars:
                value = names[name]
                if _is_library(value):
                    self._visit_library(value, chains)
                elif self._watch("entry", names, name, value, is_name=True):
                    self._visit(value, name, chains)

    def _add_class(self, kind: type) -> None:
        if kind not in self._classes:
            self._classes += [base for base in kind.__mro__ if not self._is_distant(base)]

    def _visit_methods(self) -> None:
        """Visit the methods that may be called by name or by operators, of the classes that were met."""
        visited: set[tuple[type, str]] = set()
        while True:
            waiting = [
                (kind, name)
                for kind in dict.fromkeys(self._classes)
                for name in kind.__dict__
                if name in self._names or (name.startswith("__") and name.endswith("__"))
            ]
            new = [member_of for member_of in waiting if member_of not in visited]
            if not new:
                return
            visited.update(new)
            for kind, name in new:
                member = kind.__dict__[name]
                for function in find_functions(member):
                    self._visit_function(function)
                is_value = not name.startswith("__") and not hasattr(type(member), "__get__")
                if is_value and self._watch("attribute", kind, name, member):
                    self._visit(member, f"{kind.__name__}.{name}")

    # -- values

    def _visit(self, value: Any, label: str, chains: _Chains = _WHOLE, depth: int = 0) -> None:
        """Note a value, and what is read through it by these chains of attributes."""
        kind = type(value)
        if len(self._watches) >= _MAX_WATCHES:
            self.unclear[f"more than {_MAX_WATCHES} values"] = None
            return
        if kind in _PLAIN or kind is float or isinstance(value, np.generic):
            self._state.append(freeze(value))
        elif kind is types.FunctionType:
            self.is_complete &= not any(chains)
            self._visit_function(value)
        elif kind is types.MethodType:
            self._visit(value.__func__, label)
            self._visit(value.__self__, label, _WHOLE, depth + 1)
        elif isinstance(value, np.ndarray):
            self._visit_array(value, label)
        elif kind is tuple or isinstance(value, (tuple, *_CONTAINERS)):
            self._visit_container(value, label, depth)
        elif kind is functools.partial:
            self._visit((value.func, value.args, value.keywords), label, _WHOLE, depth + 1)
        elif isinstance(value, types.ModuleType):
            self._state.append(Identity(value))
            self._visit_module(value, label, chains)
        elif self._is_distant(value if isinstance(value, type) else kind) and not _is_namespace(kind):
            self._visit_foreign(value, label, chains)
        else:
            self._visit_object(value, label, chains, depth)

    def _visit_module(self, value: types.ModuleType, label: str, chains: _Chains) -> None:
        if _is_library(value):
            self._visit_library(value, chains)
            return
        for name, rest in _group(chains).items():
            member = vars(value).get(name, native.NO_VALUE)
            if not name:
                self.is_complete = False
            elif _is_library(member):
                self._visit_library(member, rest)
            elif self._watch("entry", vars(value), name, member, is_name=True):
                self._visit(member, f"{label}.{name}", rest)

    def _visit_library(self, module: types.ModuleType, chains: _Chains) -> None:
        """Note a module whose contents are not looked into."""
        name = module.__name__
        self._state.append(name)
        draws = ".random" in name or (name.endswith("numpy") and any("random" in chain for chain in chains))
        self.is_complete &= name.partition(".")[0] in _STEADY and not draws

    def _visit_metadata(self, value: Handle, chains: _Chains) -> bool:
        """Note attributes of a buffer or image, such as its shape. Return whether no more of it is read."""
        attributes = {name: getattr(value, name, native.NO_VALUE) for name in _group(chains)}
        if not (_METADATA.issuperset(attributes) and all(map(_is_plain, attributes.values()))):
            return False
        self._state.append(type(value))
        for name, attribute in attributes.items():
            if self._watch("attribute", value, name, attribute):
                self._state.append(freeze(attribute))
        return True

    def _visit_foreign(self, value: Any, label: str, chains: _Chains) -> None:
        if isinstance(value, Handle) and self._visit_metadata(value, chains):
            return
        self._state.append(Identity(value))
        self.is_complete &= _is_steady(value)
        attributes: Any = {}
        with contextlib.suppress(AttributeError):  # without asking GPU values, which have names of their own
            attributes = object.__getattribute__(value, "__dict__")
        for name in _CARRIED:
            if isinstance(attributes.get(name), types.FunctionType):
                self._visit_function(attributes[name])
        root = type(value).__module__.partition(".")[0]
        if type(value).__hash__ is None and root != "vkdispatch":
            self.unclear[f"{label} ({type(value).__name__})"] = None

    def _visit_array(self, value: Any, label: str) -> None:
        self._arrays.add(id(value))
        if (id(value), None) in self._ignored:
            self._state.append(Identity(value))
        elif value.dtype.hasobject or value.nbytes > _MAX_BYTES:
            self._state.append(Identity(value))
            self.is_complete = False
            if value.flags.writeable:
                self.unclear[f"{label} (an array of {value.nbytes} bytes)"] = None
        elif self._watch("array", value, None, (value.tobytes(), value.shape, value.dtype)):
            self._state.append(freeze(value))

    def _visit_container(self, value: Any, label: str, depth: int) -> None:
        if not self._is_new(value):
            return
        self.is_complete &= type(value) in _EXACT or hasattr(value, "_fields")
        if len(value) > _MAX_ITEMS or depth > _DEEPEST:
            self._state.append(Identity(value))
            self.is_complete = False
            if not isinstance(value, tuple):
                self.unclear[f"{label} (a {type(value).__name__} of {len(value)} items)"] = None
            return
        if isinstance(value, (set, frozenset)):
            items = tuple(value)
            self.is_complete &= all(map(_is_plain, items))
            if isinstance(value, frozenset) or self._watch("container", value, None, items):
                self._state.append(freeze(value))
            return
        pairs = value.items() if isinstance(value, dict) else ()
        items = tuple(item for pair in pairs for item in pair) if isinstance(value, dict) else tuple(value)
        if isinstance(value, tuple) or self._watch("container", value, None, items):
            self._state.append((type(value), len(items)))
            for number, item in enumerate(items):
                self._visit(item, f"{label}[{number}]", _WHOLE, depth + 1)

    def _visit_object(self, value: Any, label: str, chains: _Chains, depth: int) -> None:
        """Note what is read of a class of the user, or of an instance of one."""
        is_class = isinstance(value, type)
        kind = value if is_class else type(value)
        bases = {base.__module__ for base in kind.__mro__ if self._is_distant(base) and base is not object}
        self.is_complete &= bases <= _BASES
        self._state.append(Identity(value) if is_class else kind)
        groups = _group(chains)
        is_whole = "" in groups
        attributes = None if is_class else getattr(value, "__dict__", None)
        for name, rest in groups.items():
            if name:
                is_whole |= self._visit_attribute(
                    value, kind, attributes, name, rest, f"{label}.{name}", depth
                )
        if is_whole:
            self._add_class(kind)
        if is_class or not is_whole or not self._is_new(value):
            return
        if depth > _DEEPEST_OBJECT:
            self.unclear[f"{label} (a {kind.__name__})"] = None
            return
        if isinstance(attributes, dict):
            self._visit_container(attributes, label, depth)
        for base in kind.__mro__:
            for name, member in vars(base).items():
                if isinstance(member, types.MemberDescriptorType):
                    self._visit_attribute(value, kind, None, name, _WHOLE, f"{label}.{name}", depth)

    def _visit_attribute(
        self, value: Any, kind: type, attributes: Any, name: str, rest: _Chains, label: str, depth: int
    ) -> bool:
        """Note an attribute. Return whether a function of the class runs, which may read all others."""
        member = next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), native.NO_VALUE)
        if isinstance(attributes, dict) and name in attributes and not hasattr(type(member), "__set__"):
            if self._watch("entry", attributes, name, attributes[name]):
                self._visit(attributes[name], label, rest, depth + 1)
            return False
        functions = find_functions(member)
        for function in functions:
            self._visit_function(function)
        if functions:
            return True
        attribute = getattr(value, name, native.NO_VALUE)
        if attribute is native.NO_VALUE or getattr(value, name, native.NO_VALUE) is not attribute:
            return True  # made anew each time
        if self._watch("attribute", value, name, attribute):
            self._visit(attribute, label, rest, depth + 1)
        return False


def _group(chains: _Chains) -> dict[str, list[tuple[str, ...]]]:
    """Return chains of attributes by the first one; "" where there is none."""
    groups: dict[str, list[tuple[str, ...]]] = {}
    for chain in chains:
        groups.setdefault(chain[0] if chain else "", []).append(chain[1:])
    return groups


def _is_library(value: Any) -> bool:
    """Whether a value is a module of this package, NumPy or the standard library."""
    return isinstance(value, types.ModuleType) and value.__name__.partition(".")[0] in _LIBRARIES


def _is_plain(value: Any) -> bool:
    """Whether a value is a number, a text, a dtype, or a tuple of such."""
    if type(value) is tuple:
        return all(map(_is_plain, value))
    return type(value) in (*_PLAIN, float) or (isinstance(value, type) and _root_of(value) == "vkdispatch")


def _is_steady(value: Any) -> bool:
    """Whether something that is not looked into means the same at any time."""
    if getattr(value, "mapping_function", None) is not None and _root_of(type(value)) == "vkdispatch":
        return True
    owner = getattr(value, "__self__", None)
    if isinstance(value, types.BuiltinFunctionType) and isinstance(owner, types.ModuleType):
        return owner.__name__ in _STEADY and value.__name__ not in _UNSTEADY
    if isinstance(value, (type, types.FunctionType)):
        name = value.__module__ if isinstance(value, type) else value.__globals__.get("__name__")
        return str(name).partition(".")[0] in _STEADY and "random" not in str(name)
    return isinstance(value, (np.ufunc, np.dtype))


def _root_of(value: Any) -> str:
    """Return the package of a function or class."""
    module = getattr(value, "__module__", None)
    return module.partition(".")[0] if isinstance(module, str) else ""


@functools.lru_cache(maxsize=1024)
def _is_installed(root: str) -> bool:
    file = getattr(sys.modules.get(root), "__file__", None)
    return file is not None and ("site-packages" in file or "dist-packages" in file)


def _is_namespace(kind: type) -> bool:
    return f"{kind.__module__}.{kind.__name__}" in ("types.SimpleNamespace", "argparse.Namespace")


def find_functions(member: Any) -> list[types.FunctionType]:
    """Return the Python functions that access to a member of a class may call."""
    if isinstance(member, property):
        functions: list[Any] = [member.fget]
    elif isinstance(member, functools.cached_property):
        functions = [member.func]
    else:
        functions = [getattr(member, "__func__", member)]
    return [function for function in functions if isinstance(function, types.FunctionType)]


class Dependencies:
    """What functions depend on. What tracing itself changes is left out."""

    def __init__(self, *functions: types.FunctionType, owner: type | None = None) -> None:
        """Follow functions; `owner` is the class of a method."""
        self.functions, self._owner = functions, owner
        self._ignored: dict[Any, Any] = {}

    @property
    def ignores(self) -> bool:
        """Whether something is left out."""
        return bool(self._ignored)

    def look(self) -> Snapshot:
        """Return what the functions read now."""
        return Snapshot(self.functions, self._owner, self._ignored)

    def trace(self, make: Callable[[], _T]) -> tuple[Snapshot, _T]:
        """Trace by `make`, again if a variable changes meanwhile. Return what was read, and the result."""
        for attempt in range(_ATTEMPTS):
            snapshot = self.look()
            with watch_copies() as copied:
                made = make()
            if self.ignore_copied(snapshot, copied):
                snapshot = self.look()
            if not self.ignore_changed(snapshot, names=attempt == _ATTEMPTS - 1):
                return snapshot, made
            if not any(watch.is_name for watch in snapshot.find_changed()):
                break
        return self.look(), made

    def ignore_changed(self, snapshot: Snapshot, *, names: bool) -> bool:
        """Leave out what a trace has changed: parts of values, and variables if `names`."""
        changed = snapshot.find_changed()
        self.ignore(watch for watch in changed if names or not watch.is_name)
        return bool(changed)

    def ignore_copied(self, snapshot: Snapshot, arrays: Iterable[Any]) -> bool:
        """Leave out the contents of arrays that a trace has copied. Return whether there are such."""
        copied = {(id(array), None): array for array in arrays if snapshot.reads_array(array)}
        is_new = not copied.keys() <= self._ignored.keys()
        self._ignored.update(copied)
        return is_new

    def ignore(self, watches: Iterable[_Watch]) -> None:
        """Leave these out from now on."""
        self._ignored.update({watch.place: watch.owner for watch in watches})


_shared: dict[Any, Any] = {}
_sharing = threading.Lock()


def _share(family: Any, functions: Sequence[types.FunctionType], snapshot: Snapshot, version: Any) -> Any:
    """Return the version of functions of one family that have the same code as these and read the same."""
    defaults = tuple(
        (function.__defaults__, tuple((function.__kwdefaults__ or {}).items())) for function in functions
    )
    if snapshot.unclear or not snapshot.is_complete or not _is_plain(defaults):
        return version
    key = family, freeze(defaults), snapshot.state
    with _sharing:
        version = _shared.pop(key, version)
        _shared[key] = version
        if len(_shared) > _MAX_SHARED:
            del _shared[next(iter(_shared))]
    return version


class Edition:
    """The version of functions that are traced as parts of kernels, by what they read."""

    def __init__(self, *functions: Any, first: Any, family: Any = None) -> None:
        """Follow functions, as far as they are the user's. `first` stands for the first version.

        Functions that are made anew have the version of those with the same code that read the same, and that
        have an equal `family`, if there is one.
        """
        followed = [each for each in functions if follows(each)]
        self._dependencies = Dependencies(*followed) if followed else None
        self._family = family
        if family is not None and not followed and isinstance(functions[0], types.FunctionType):
            first = _share(family, functions, Snapshot(functions, None, {}), first)
        self._first, self._latest = first, first
        self._known: Versions[Any] = Versions({})
        self._guard: Guard | None = None
        self._snapshot: Snapshot | None = None
        self._lock = threading.RLock()

    def find(self) -> Any:
        """Return what is equal for equal versions, and hashable."""
        if self._dependencies is None or (self._guard is not None and self._guard.holds()):
            return self._latest
        with self._lock:
            snapshot = self._dependencies.look()
            version = self._known.find(snapshot.state)
            if version is None:
                version = object() if self._known.made else self._first
                if self._family is not None and not self._dependencies.ignores:
                    version = _share(self._family, self._dependencies.functions, snapshot, version)
            self._use(snapshot, version)
            return version

    def settle(self, copied: Iterable[Any] = ()) -> None:
        """Leave out what a trace has changed since the last `find`, and arrays that it has copied."""
        if self._snapshot is not None and self._dependencies is not None:
            with self._lock:
                if self._dependencies.ignore_copied(self._snapshot, copied):
                    self._use(self._dependencies.look(), self._latest)
        if self._guard is not None and self._dependencies is not None and not self._guard.holds():
            with self._lock:
                assert self._snapshot is not None
                self._dependencies.ignore_changed(self._snapshot, names=False)
                if not any(watch.is_name for watch in self._snapshot.find_changed()):
                    self._use(self._dependencies.look(), self._latest)

    def _use(self, snapshot: Snapshot, version: Any) -> None:
        made = self._known.made
        made[snapshot.state] = version
        if len(made) > MAX_VERSIONS:
            del made[next(iter(made))]
        if self._snapshot is None and snapshot.unclear and self._dependencies is not None:
            function = self._dependencies.functions[0]
            warn_unnoticed(function, function.__name__, snapshot)
        self._snapshot, self._guard, self._latest = snapshot, snapshot.guard, version


def follows(function: Any, owner: type | None = None) -> TypeGuard[types.FunctionType]:
    """Whether a function, perhaps of a class, is one of the user's that may read something from outside."""
    if not isinstance(function, types.FunctionType) or is_absent(native):
        return False
    code, names = function.__code__, function.__globals__
    if is_foreign(code.co_filename):
        return False
    return owner is not None or bool(code.co_freevars) or _reads_globals(code, names)


def _reads_globals(code: types.CodeType, names: dict[str, Any]) -> bool:
    """Whether a function reads a global variable that is no module of a library: most kernels do not."""
    return any(name in names and not _is_library(names[name]) for name in code.co_names) or any(
        _reads_globals(constant, names) for constant in code.co_consts if isinstance(constant, types.CodeType)
    )


def warn_unnoticed(function: Callable[..., Any], who: str, snapshot: Snapshot) -> None:
    """Warn of what cannot be compared."""
    code, unclear = function.__code__, list(snapshot.unclear)
    named = ", ".join(unclear[:3]) + (f" and {len(unclear) - 3} others" if len(unclear) > 3 else "")
    text = (
        f"{who}: changes of {named} are not noticed after the trace: pass them as arguments, or make them "
        "tuples or read-only arrays"
    )
    warnings.warn_explicit(text, KernelWarning, code.co_filename, code.co_firstlineno)
