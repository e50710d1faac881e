"""Kernels that are methods: each instance has its own, traced for the values of its attributes."""

import dis
import functools
import threading
import types
import weakref
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

from vkdispatch.base.errors import ArgumentTypeError, ComponentError, UsageError
from vkdispatch.base.record import record
from vkdispatch.codegen.trace.current import is_tracing
from vkdispatch.compiler.ir.location import located
from vkdispatch.shader.dependencies import Versions, find_functions, freeze
from vkdispatch.shader.pickling.references import Home, Referenced, find_home
from vkdispatch.shader.shader_function import ShaderFunction

# The names of the attributes that a method may read (None: all), and those of them with values in the class.
_Watched = tuple[tuple[str, ...] | None, frozenset[str]]
Make = Callable[[type[Any], "weakref.ref[Any]"], ShaderFunction]

_ABSENT = object()
# Names by which code can access attributes that it does not name.
_DYNAMIC = frozenset(("super", "locals", "eval", "exec", "vars", "__dict__"))
_ATTRIBUTE_OPCODES = frozenset(("LOAD_ATTR", "LOAD_METHOD", "STORE_ATTR", "DELETE_ATTR"))


@record(eq=False)
class _Entry:
    """The kernels of an instance, by the state of its attributes."""

    instance: "weakref.ref[Any]"
    kernels: Versions[ShaderFunction]


class _InstanceKernel(ShaderFunction):
    """A kernel whose launch size names the instance, which it holds. It shares all else with a kernel."""

    __slots__ = ("instance",)

    def __init__(self, kernel: ShaderFunction, instance: Any) -> None:
        self.__dict__ = kernel.__dict__
        self.instance = instance


class KernelMethod(Referenced):
    """A kernel in a class whose first parameter, the instance, has no annotation.

    The attribute of this name of an instance is a `ShaderFunction`, traced on first access with the values
    that attributes of the instance have then. It is traced again when one that it may read has changed.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        make: Make,
        recipe: tuple[Callable[..., "KernelMethod"], tuple[Any, ...]],
        *,
        of_class: bool = False,
        names_instance: bool = False,
    ) -> None:
        """Make a method of a function. `make` traces it for an instance of a class.

        `recipe` has a function of a module, and arguments of which it makes such a method again.
        The class is the instance if `of_class`. `names_instance` says whether the launch size names it.
        """
        assert isinstance(function, types.FunctionType)
        self._function = function
        self._make = make
        self._recipe = recipe
        self._of_class = of_class
        self._names_instance = names_instance
        self._shown = function.__qualname__
        self._owner: type[Any] | None = None
        self._entries: dict[int, _Entry] = {}
        self._watched: weakref.WeakKeyDictionary[type[Any], _Watched] = weakref.WeakKeyDictionary()
        self._lock = threading.RLock()
        functools.update_wrapper(self, function)

    def __set_name__(self, owner: type[Any], name: str) -> None:
        self._owner = owner
        self._shown = f"{owner.__name__}.{name}"

    def __get__(self, instance: Any, owner: type[Any] | None = None) -> Any:
        if self._owner is None and owner is not None:
            # cloudpickle makes classes without `__set_name__`
            self._owner = next((each for each in owner.__mro__ if self in vars(each).values()), None)
        if self._of_class:
            return self._get_kernel(type(instance) if owner is None else owner)
        return self if instance is None else self._get_kernel(instance)

    def _home(self) -> Home | None:
        return find_home(self._function)

    def _describe(self) -> str:
        return f"kernel {self._shown}"

    def _get_state(self) -> tuple[Any, ...]:
        return self._recipe

    def _set_state(self, *state: Any) -> None:
        make, arguments = state
        self.__dict__.update(make(*arguments).__dict__)

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        """Call the kernel of the first argument, as `Class.method(instance, ...)` does in Python.

        Raises TypeError if that is not an instance of the class.
        """
        if args and self._owner is not None and isinstance(args[0], self._owner):
            self._get_kernel(args[0])(*args[1:], **kwargs)
            return
        raise ArgumentTypeError(self._explain())

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise ComponentError(self._explain())

    def _explain(self) -> str:
        first = self._function.__code__.co_varnames[0]
        return (
            f"{self._shown}: its first parameter {first!r} has no annotation, so it is a method, and a "
            f"kernel only as an attribute of an instance; annotate {first!r} to make it an argument"
        )

    def _get_kernel(self, instance: Any) -> ShaderFunction:
        if is_tracing():
            raise located(
                UsageError,
                f"{self._shown}: a kernel cannot call another one; make what they share a plain method",
            )
        with self._lock:
            entry = self._get_entry(instance)
            state = self._capture_state(instance)
            kernel = entry.kernels.find(state)
            if kernel is None:
                kernel = self._make(type(instance), entry.instance)
                kernel._method = entry.instance, self._function.__name__
                entry.kernels.add(
                    state, kernel, self._shown, "for one instance, as attributes that it reads change"
                )
            return _InstanceKernel(kernel, instance) if self._names_instance else kernel

    def _get_entry(self, instance: Any) -> _Entry:
        entry = self._entries.get(id(instance))
        if entry is not None and entry.instance() is instance:
            return entry
        number, entries = id(instance), self._entries

        def forget(gone: "weakref.ref[Any]") -> None:
            # Another instance may have the same id by now.
            if number in entries and entries[number].instance is gone:
                del entries[number]

        try:
            reference = weakref.ref(instance, forget)
        except TypeError:
            raise ArgumentTypeError(
                f"{self._shown}: instances of {type(instance).__name__} cannot be referred to weakly, so "
                "their kernels would never be freed; add '__weakref__' to its __slots__ (dataclasses: "
                "weakref_slot=True)"
            ) from None
        entry = entries[number] = _Entry(reference, Versions({}))
        return entry

    def _capture_state(self, instance: Any) -> tuple[Any, ...]:
        owner = instance if isinstance(instance, type) else type(instance)
        if owner not in self._watched:
            read = find_read_attributes(self._function, owner)
            every = frozenset(name for each in owner.__mro__ for name in vars(each))
            of_class = _find_values(owner, every if read is None else read)
            self._watched[owner] = (None if read is None else tuple(sorted(read)), of_class)
        names, of_class = self._watched[owner]
        return _capture_attributes(
            instance, tuple(getattr(instance, "__dict__", ())) if names is None else names, of_class
        )


def find_read_attributes(function: types.FunctionType, owner: type[Any]) -> frozenset[str] | None:
    """Return the names of the attributes that a method, and the methods that it names, may read.

    None if unknown: it passes the instance to something else.
    """
    names: set[str] = set()
    pending: list[types.FunctionType] = [function]
    while pending:
        codes = tuple(_walk_codes(pending.pop().__code__))
        if _passes_instance_on(codes) or any(not _DYNAMIC.isdisjoint(code.co_names) for code in codes):
            return None
        found = {each.argval for code in codes for each in dis.get_instructions(code) if _is_attribute(each)}
        for name in found - names:
            pending.extend(find_functions(_look_up(owner, name)))
        names |= found
    return frozenset(names)


def _walk_codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for value in code.co_consts:
        if isinstance(value, types.CodeType):
            yield from _walk_codes(value)


def _passes_instance_on(codes: tuple[types.CodeType, ...]) -> bool:
    """Whether a method uses its instance for anything but attributes by name."""
    if not codes[0].co_argcount:
        return False
    first = codes[0].co_varnames[0]
    for code in codes:
        instructions = [each for each in dis.get_instructions(code) if each.opname != "LOAD_CLOSURE"]
        for each, following in pairwise(instructions):
            named = first in each.argval if isinstance(each.argval, tuple) else each.argval == first
            if named and each.opname.startswith("LOAD_") and not _is_attribute(following):
                return True
    return False


def _is_attribute(instruction: dis.Instruction) -> bool:
    return instruction.opname in _ATTRIBUTE_OPCODES


def _find_values(owner: type[Any], names: frozenset[str]) -> frozenset[str]:
    """Return the names for which a class has plain values, or slots of its instances."""
    found = [(name, _look_up(owner, name)) for name in names if not name.startswith("__")]
    return frozenset(
        name
        for name, value in found
        if value is not _ABSENT
        and (isinstance(value, types.MemberDescriptorType) or not hasattr(type(value), "__get__"))
    )


def _look_up(owner: type[Any], name: str) -> Any:
    return next((vars(each)[name] for each in owner.__mro__ if name in vars(each)), _ABSENT)


def _capture_attributes(instance: Any, names: tuple[str, ...], of_class: frozenset[str]) -> tuple[Any, ...]:
    """Return the values of attributes, for comparison. The class has values for those `of_class`."""
    is_class = isinstance(instance, type)
    own: dict[str, Any] = {} if is_class else getattr(instance, "__dict__", {})
    found = [(name, own[name]) for name in names if name in own]
    found += [(name, getattr(instance, name, None)) for name in of_class if name not in own]
    return tuple([(name, freeze(value)) for name, value in found])
