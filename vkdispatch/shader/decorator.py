"""`@vd.shader`: a Python function, or a method, traced into a kernel."""

from __future__ import annotations

import dis
import functools
import sys
import threading
import types
import weakref
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

import vkdispatch.codegen as vc
from vkdispatch.base import errors
from vkdispatch.base.record import record
from vkdispatch.codegen.trace.current import is_tracing
from vkdispatch.compiler import lints
from vkdispatch.compiler.ir.location import is_foreign, located
from vkdispatch.control_flow.frame import check_result
from vkdispatch.control_flow.replacement import prepare_kernel
from vkdispatch.shader.dependencies import Versions, find_functions, freeze
from vkdispatch.shader.pickling import Home, Referenced, find_home
from vkdispatch.shader.program import CheckOption as Check
from vkdispatch.shader.program import parse_check
from vkdispatch.shader.shader_function import ShaderFunction, make_following
from vkdispatch.shader.signature import Signature, find_origin, is_method, read_signature
from vkdispatch.shader.size import GroupSize, Size, bind_instance, is_instance_named, parse_local_size

if TYPE_CHECKING:
    from vkdispatch.shader.calling import Decorated


# ---- Kernels that are methods: each instance has its own, traced for the values of its attributes --------


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

    instance: weakref.ref[Any]
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
        recipe: tuple[Callable[..., KernelMethod], tuple[Any, ...]],
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
            self._owner = next((base for base in owner.__mro__ if self in vars(base).values()), None)
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
        raise errors.ArgumentTypeError(self._explain())

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise errors.ComponentError(self._explain())

    def _explain(self) -> str:
        first = self._function.__code__.co_varnames[0]
        return (
            f"{self._shown}: its first parameter {first!r} has no annotation, so it is a method, and a "
            f"kernel only as an attribute of an instance; annotate {first!r} to make it an argument"
        )

    def _get_kernel(self, instance: Any) -> ShaderFunction:
        if is_tracing():
            raise located(
                errors.UsageError,
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

        def forget(gone: weakref.ref[Any]) -> None:
            # Another instance may have the same id by now.
            if number in entries and entries[number].instance is gone:
                del entries[number]

        try:
            reference = weakref.ref(instance, forget)
        except TypeError:
            raise errors.ArgumentTypeError(
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
            every = frozenset(name for base in owner.__mro__ for name in vars(base))
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
        attributes = {op.argval for code in codes for op in dis.get_instructions(code) if _is_attribute(op)}
        for name in attributes - names:
            pending.extend(find_functions(_look_up(owner, name)))
        names |= attributes
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
        instructions = [op for op in dis.get_instructions(code) if op.opname != "LOAD_CLOSURE"]
        for op, following in pairwise(instructions):
            named = first in op.argval if isinstance(op.argval, tuple) else op.argval == first
            if named and op.opname.startswith("LOAD_") and not _is_attribute(following):
                return True
    return False


def _is_attribute(instruction: dis.Instruction) -> bool:
    return instruction.opname in _ATTRIBUTE_OPCODES


def _find_values(owner: type[Any], names: frozenset[str]) -> frozenset[str]:
    """Return the names for which a class has plain values, or slots of its instances."""
    values = [(name, _look_up(owner, name)) for name in names if not name.startswith("__")]
    return frozenset(
        name
        for name, value in values
        if value is not _ABSENT
        and (isinstance(value, types.MemberDescriptorType) or not hasattr(type(value), "__get__"))
    )


def _look_up(owner: type[Any], name: str) -> Any:
    return next((vars(base)[name] for base in owner.__mro__ if name in vars(base)), _ABSENT)


def _capture_attributes(instance: Any, names: tuple[str, ...], of_class: frozenset[str]) -> tuple[Any, ...]:
    """Return the values of attributes, for comparison. The class has values for those `of_class`."""
    is_class = isinstance(instance, type)
    attributes: dict[str, Any] = {} if is_class else getattr(instance, "__dict__", {})
    values = [(name, attributes[name]) for name in names if name in attributes]
    values += [(name, getattr(instance, name, None)) for name in of_class if name not in attributes]
    return tuple([(name, freeze(value)) for name, value in values])


# ---- `@vd.shader`: a Python function traced into a kernel ------------------------------------------------


def shader(  # noqa: PLR0913 - public, the signature of 0.1.0 and more
    exec_size: Size | None = None,
    local_size: GroupSize | None = None,
    workgroups: Size | None = None,
    flags: vc.ShaderFlags = vc.ShaderFlags.NONE,
    arg_type_annotations: Sequence[Any] | None = None,
    arg_names: Sequence[str] | None = None,
    arg_defaults: Sequence[Any] | None = None,
    check: Check | None = None,
    rewrite: bool = True,
    precise_math: bool = False,
) -> Callable[[Decorated], ShaderFunction[Decorated]]:
    """Turn the decorated function into a kernel. Tracing runs its body once, and needs no device.

    It is traced again when it is called after a change of what it read from outside: global variables,
    closures, attributes, the contents of lists, dicts and small arrays, and the functions that it calls.

    In a class, a first parameter without annotation is the instance. Each instance has a kernel of its own,
    traced when the attribute is first accessed, and again when attributes that it may read have changed.

    Parameters
    ----------
    exec_size
        Invocations of a call: an int, a tuple of 1 to 3 ints, a Python expression over the arguments such as
        "data.size", or a callable such as `lambda args: args.data.size`. Calls may override it.
    local_size
        Invocations per workgroup, 1 to 3 ints. Default: the device's maximum along x, or 256 where the
        kernel does not depend on it (no `workgroups`, shared memory, barriers or ids of workgroups). For such
        a kernel, "auto" takes the size that `autotune` has measured for launches like the first, in this
        process or an earlier one, or 256 without a measurement.
    workgroups
        Instead of `exec_size`: the workgroups of a call, in the same forms.
    flags
        Options of the generated code.
    arg_type_annotations
        Used instead of the function's own annotations.
    arg_names, arg_defaults
        Names and default values that go with them.
    check
        What the device checks, which takes time: "bounds" (every index of a buffer, shared buffer, image,
        vector or matrix; the first bad one raises IndexError, and nothing is written out of bounds), "nan"
        (stored values; FloatingPointError), "asserts" (`assert` on values of the GPU; AssertionError),
        "loops" (`while` loops end after a number of rounds; "loops=5000" sets it), several of them in a set
        or with commas. True: bounds, loops and asserts. None takes the environment variable VKDISPATCH_CHECK,
        in which 1 is True. Calls of a checked kernel wait for it.
    rewrite
        Whether Python's own control flow works on GPU values: `if`, `while`, `for`, `and`... become GPU code
        if only the GPU knows the condition. False leaves the function's source as it is.
    precise_math
        Whether functions of float32 and float16 such as `vc.sin`, `vc.exp` and `vc.pow` are computed to a few
        units in the last place over their whole range, instead of by the device's own functions, which are
        faster and may be inaccurate (Vulkan requires of `sin` an absolute error below 2**-11 between -pi and
        pi). Functions of float64 always are. It also keeps the order of the kernel's additions,
        multiplications and divisions, and each of them rounds; see `vc.precise`.

    Raises
    ------
    ValueError
        A size is invalid, both sizes are given, or an argument has no annotation.
    TypeError
        An annotation does not suit a kernel argument, the parentheses of `@vd.shader(...)` are missing, or
        the kernel returns a value.
    NameError
        A size given as text names something that is not an argument.

    Examples
    --------
    >>> @vd.shader("data.size")
    ... def double(data: Buff[f32]) -> None:
    ...     i = vc.global_invocation_id().x
    ...     data[i] = 2 * data[i]
    >>> buffer = vd.asbuffer(np.array([1, 2, 3], np.float32))
    >>> double(buffer)
    >>> buffer.read(0)
    array([2., 4., 6.], dtype=float32)
    """
    if _is_kernel(exec_size):
        raise errors.ArgumentTypeError(
            "@vd.shader needs parentheses and a launch size, such as @vd.shader('data.size')"
        )
    if precise_math:
        flags |= vc.ShaderFlags.PRECISE_MATH
    if exec_size is not None and workgroups is not None:
        raise errors.ArgumentValueError("exec_size, workgroups: pass one of the two, not both")
    if not (isinstance(local_size, str) and local_size == "auto"):
        parse_local_size(local_size)
    parse_check(check)
    # Annotations given as text may name local types.
    local_names = sys._getframe(1).f_locals

    def trace(
        function: Callable[..., Any], signature: Signature, exec_size: object, workgroups: object
    ) -> ShaderFunction:
        __tracebackhide__ = True  # notebooks and pytest leave this frame out
        with vc.shader_context(flags) as context:
            arguments = context.declare_input_arguments(
                list(signature.annotations), list(signature.names), list(signature.defaults)
            )
            try:
                check_result(function, prepare_kernel(function, rewrite)(*arguments))
            except Exception as error:
                # imported here: modules for tracebacks take time to import
                from vkdispatch.base.errors import hide_own_frames

                _note_call(error)
                hide_own_frames(error, errors.notebook_shell())
                raise
        description = context.get_description(getattr(function, "__name__", "shader"))
        lints.check_dimensions(description.kernel, exec_size)
        lints.check_orientation(description.kernel, exec_size)
        if not is_foreign(getattr(function, "__code__", shader.__code__).co_filename):
            lints.check_barriers(description.kernel, local_size)
        lints.check_sums(description.kernel, exec_size, workgroups, local_size)
        lints.check_streams(context.builder.uniform_streams, exec_size, workgroups, local_size)
        origin = find_origin(function)
        traced = ShaderFunction(description, local_size, workgroups, exec_size, origin=origin, check=check)
        traced._defined = find_home(function)
        return traced

    def decorate(function: Callable[..., Any]) -> ShaderFunction:
        __tracebackhide__ = True
        of_class = isinstance(function, classmethod)
        if isinstance(function, (staticmethod, classmethod)):
            function = function.__func__
            method = of_class
        else:
            method = is_method(function, arg_type_annotations)
        if not callable(function):
            raise errors.ArgumentTypeError(f"@vd.shader(...): expected a function, got {function!r}")
        signature = read_signature(
            function, arg_type_annotations, arg_names, arg_defaults, local_names, method=method
        )
        if not method:
            return make_following(function, lambda: trace(function, signature, exec_size, workgroups))
        first = function.__code__.co_varnames[0]

        def make(owner: type[Any], instance: Callable[[], Any]) -> ShaderFunction:
            __tracebackhide__ = True
            sizes = [
                bind_instance(option, size, first, instance, signature.names)
                for option, size in (("exec_size", exec_size), ("workgroups", workgroups))
            ]

            def trace_bound() -> ShaderFunction:
                __tracebackhide__ = True
                # held weakly, as the kernel does not keep its instance
                target = instance()
                if target is None:
                    raise errors.UsageError(
                        f"{function.__qualname__}: the kernel must be traced again, as what it reads has "
                        "changed, but the instance that it is a method of is gone; keep that"
                    )
                return trace(types.MethodType(function, target), signature, *sizes)

            return make_following(function, trace_bound, owner)

        for option, size in (("exec_size", exec_size), ("workgroups", workgroups)):
            bind_instance(option, size, first, object, signature.names)
        has_instance_size = is_instance_named(exec_size, first) or is_instance_named(workgroups, first)
        # For type checkers it is the kernel of an instance.
        arguments = signature.annotations, signature.names, signature.defaults
        options = exec_size, local_size, workgroups, flags, *arguments, check, rewrite
        recipe = _make_method, (function, of_class, *options)
        return cast(
            ShaderFunction,
            KernelMethod(function, make, recipe, of_class=of_class, names_instance=has_instance_size),
        )

    return cast("Callable[[Decorated], ShaderFunction[Decorated]]", decorate)


def _make_method(function: Any, of_class: bool, *options: Any) -> KernelMethod:
    """Decorate the function of a pickled method again."""
    method: Any = shader(*options)(classmethod(function) if of_class else function)
    return cast(KernelMethod, method)


def _note_call(error: Exception) -> None:
    """Say how to write `vc.global_invocation_id.x` and `vc.atomic_add(buf, i, 1)`."""
    if isinstance(error, TypeError) and str(error).startswith("atomic_") and "positional" in str(error):
        error.add_note("An atomic takes an element and a value: write vc.atomic_add(buf[i], value)")
    function = getattr(error, "obj", None)
    name = getattr(function, "__name__", "")
    if isinstance(error, AttributeError) and function is not None and getattr(vc, name, None) is function:
        error.add_note(f"vc.{name} is a function: write vc.{name}().{error.name}")


def _is_kernel(value: object) -> bool:
    """Whether a kernel was given where `exec_size` goes: `@vd.shader` without parentheses."""
    annotations = getattr(value, "__annotations__", None)
    code = getattr(value, "__code__", None)
    return bool(annotations) or (code is not None and code.co_argcount != 1)
