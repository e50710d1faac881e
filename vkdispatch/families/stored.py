"""Makers of kernels whose results are kept on disk, so that a later process need not trace them."""

import contextlib
import functools
import io
import os
import pickle
import sys
import types
import weakref
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from threading import RLock
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar, cast

import vkdispatch
from vkdispatch.base.compilation import disk_cache
from vkdispatch.base.context import Context, get_context, use_context
from vkdispatch.base.contexts.current import find_current_context
from vkdispatch.base.devices import identify_devices
from vkdispatch.base.errors import UsageError
from vkdispatch.base.host_numpy import np
from vkdispatch.base.native_module import native
from vkdispatch.base.process import IMPORTED_AT
from vkdispatch.base.record import record
from vkdispatch.codegen.backends import GLSLBackend, get_codegen_backend, set_codegen_backend
from vkdispatch.families import tuning
from vkdispatch.shader import building
from vkdispatch.shader.map import MappingFunction
from vkdispatch.shader.program import is_checking
from vkdispatch.shader.shader_function import ShaderFunction
from vkdispatch.shader.stored import StoredKernel, StoredProgram

if TYPE_CHECKING:
    from vkdispatch.shader.traced.program import TracedProgram

# ---- Texts that are equal in all processes for equal arguments of makers ---------------------------------


class _UnknownError(Exception):
    """A value has no such text."""


_PLAIN = (type(None), bool, int, str, bytes, float, complex)
_PACKAGE = "vkdispatch."
_CALLABLES = ("_operator", "math", "builtins")
_ROOT = os.path.dirname(os.path.abspath(vkdispatch.__file__))
# Of the package's functions: `functools.wraps` lets others have their module.
_FOLDERS = (_ROOT + os.sep,)


def describe_value(value: Any, around: tuple[Any, ...] = ()) -> str:
    """Return a text that is equal for equal values, in this process and in others.

    Functions of this package are known by their place, which is enough where the code is the same, and the
    values that they refer to. `around` are the objects that hold the value. Raises `_UnknownError` for
    functions of users, and for all else without such a text.
    """
    kind = type(value)
    if kind in _PLAIN:
        return f"{kind.__name__} {value!r}"
    for number, other in enumerate(around):
        if other is value:
            return f"above {number}"
    parts = _take_apart(value, kind)
    if isinstance(parts, str):
        return parts
    inner = (*around, value)
    texts = [describe_value(part, inner) for part in parts]
    return f"{_name(kind)}({', '.join(sorted(texts) if kind is frozenset else texts)})"


def _name(kind: Any) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _take_apart(value: Any, kind: type[Any]) -> str | Iterable[Any]:
    """Return the values that a value consists of, or its text."""
    if kind in (tuple, list, frozenset):
        return cast(Iterable[Any], value)
    if kind is dict:
        return [*value.items()]
    if isinstance(value, type):
        return _describe_type(value)
    if isinstance(value, np.dtype) and value.names is None:
        return f"dtype {value.str}"
    if isinstance(value, Enum) and kind.__module__.startswith(_PACKAGE):
        return f"{_name(kind)}.{value.name}"
    if kind is functools.partial:
        return value.func, value.args, value.keywords
    if kind is types.FunctionType:
        return _take_function_apart(value)
    if kind is types.MethodType:
        return value.__func__, value.__self__
    if kind is types.BuiltinFunctionType and value.__module__ in _CALLABLES:
        return f"{value.__module__}.{value.__name__}"
    if kind is MappingFunction:
        return value.mapping_function, value.buffer_types, value.return_type, value.precise_math
    if kind is native.Loop:
        return value.operation, value.kinds, value.dtype
    if kind.__module__.startswith(_PACKAGE):
        if hasattr(kind, "__match_args__"):
            return (getattr(value, name) for name in kind.__match_args__)
        if isinstance(value, (str, int)):
            return f"{_name(kind)} {value!r}"
    if hasattr(value, "__origin__") and hasattr(value, "__args__"):
        return value.__origin__, value.__args__
    raise _UnknownError(value)


def _describe_type(kind: type[Any]) -> str:
    module = kind.__module__
    is_known = module in ("builtins", "numpy") or module.startswith(_PACKAGE)
    # not a class of a user, nor one that was made by a function
    if is_known and getattr(sys.modules[module], kind.__name__, None) is kind:
        return f"type {_name(kind)}"
    raise _UnknownError(kind)


def _take_function_apart(function: Any) -> Iterable[Any]:
    if function.__code__.co_filename == contextlib.__file__:
        return ("decorated by a context", function.__wrapped__)  # `fixed_place`, which changes no kernel
    if not function.__code__.co_filename.startswith(_FOLDERS):
        raise _UnknownError(function)
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    code = _take_code_apart(function.__code__)
    return _name(function), code, cells, function.__defaults__, function.__kwdefaults__


def _take_code_apart(code: types.CodeType) -> tuple[Any, ...]:
    """Return what tells a function from others in its line, such as the next one of a table of lambdas."""
    constants = [
        _take_code_apart(constant)
        if isinstance(constant, types.CodeType)
        else repr(sorted(map(repr, constant)) if isinstance(constant, frozenset) else constant)
        for constant in code.co_consts
    ]
    return code.co_firstlineno, zlib.crc32(code.co_code), code.co_names, code.co_freevars, constants


# ---- The code that makes kernels, and the devices and settings that they are made for --------------------


_KIND = "kernels"
_STATE_KEY = "families.stored"
# Settings that change no kernel.
_NEUTRAL = ("VKDISPATCH_CACHE", "VKDISPATCH_TRACE")


@functools.cache
def _describe_code() -> str | None:
    """Return what changes whenever a module of this package, Python or NumPy does.

    None if a file has changed since the package was imported: what runs here may be what it was before.
    """
    files = [native.__file__] if getattr(native, "__file__", None) else []
    folders = [_ROOT]
    while folders:
        for item in os.scandir(folders.pop()):
            if item.is_dir(follow_symlinks=False):
                folders.append(item.path)
            elif item.name.endswith(".py"):
                files.append(item.path)
    statuses = [os.stat(file) for file in sorted(files)]
    if max(status.st_mtime for status in statuses) > IMPORTED_AT:
        return None
    texts = (f"{status.st_size} {status.st_mtime_ns}" for status in statuses)
    return "\n".join((_ROOT, sys.version, np.__version__, *texts))


@record
class _Setting:
    """What kernels of a context depend on besides the arguments of makers.

    Attributes
    ----------
    devices
        The devices and their facts; "" without a context.
    key
        Those, the code, the numbers and the environment, for keys on disk; None where nothing is kept.
    changes
        How often tuning numbers had changed in this process.
    """

    devices: str = ""
    key: str | None = None
    changes: int = 0


_NO_SETTING = _Setting()


def _find_setting(context: Context | None) -> _Setting:
    """Return the setting of a context, which is described once."""
    if context is None:
        return _NO_SETTING
    known: _Setting | None = context.kept.get(_STATE_KEY)
    if known is None or known.changes != tuning.count_changes():
        known = context.kept[_STATE_KEY] = _describe_setting(context)
    return known


def _describe_setting(context: Context) -> _Setting:
    changes, key = tuning.count_changes(), None
    devices = f"{identify_devices(context.device_infos)}\n{describe_value(tuning.device_facts(context))}"
    code = _describe_code() if context.runs and not changes and disk_cache.is_enabled() else None
    if code is not None:
        variables = [
            f"{name}={value}"
            for name, value in sorted(os.environ.items())
            if name.startswith("VKDISPATCH_") and name not in _NEUTRAL
        ]
        key = "\n".join((devices, code, tuning.describe_kept(context), *variables))
    return _Setting(devices, key, changes)


def _find_key(setting: _Setting, *, checks: bool) -> str | None:
    """Return the key of what is kept in a setting; None where nothing is kept."""
    return None if checks or building._FORCED else setting.key


# ---- Kernels that are made once, in this process and on this machine -------------------------------------


_P = ParamSpec("_P")
_Result_co = TypeVar("_Result_co", covariant=True)


class Maker(Protocol[_P, _Result_co]):
    """A function that makes kernels once for equal arguments."""

    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _Result_co:
        """Return what is made for the arguments."""

    def cache_info(self) -> Any:
        """Return the hits, misses and size of the cache in this process, as `functools.lru_cache` does."""

    def cache_clear(self) -> None:
        """Clear the cache in this process."""


def store_results(make: Callable[_P, _Result_co]) -> Maker[_P, _Result_co]:
    """Decorate a function that makes kernels, to be called once for equal arguments.

    What it makes is kept on disk and depends on its arguments, which must be hashable, the tuning numbers and
    the facts of the devices, and on nothing else.
    """
    return _store(make, tuning.MAX_RESULTS)


def store_all_results(make: Callable[_P, _Result_co]) -> Maker[_P, _Result_co]:
    """Decorate a function as `store_results` does, for a process that keeps all results."""
    return _store(make, None)


def _store(make: Callable[_P, _Result_co], most: int | None) -> Maker[_P, _Result_co]:
    @functools.lru_cache(most)
    def find(key: str | None, devices: str, checks: bool, *args: Any, **options: Any) -> Any:
        maker = functools.partial(make, *args, **options)
        with _tracing_glsl():
            return maker() if key is None else _Shelf.find(maker, key)

    @functools.wraps(make)
    def call(*args: Any, **options: Any) -> Any:
        setting, checks = _find_setting(find_current_context()), is_checking()
        return find(_find_key(setting, checks=checks), setting.devices, checks, *args, **options)

    maker: Any = call
    maker.cache_info, maker.cache_clear = find.cache_info, find.cache_clear
    return cast(Maker[_P, _Result_co], call)


@contextlib.contextmanager
def _tracing_glsl() -> Iterator[None]:
    """Trace for Vulkan, whatever language this thread has chosen for its own kernels."""
    chosen = get_codegen_backend()
    if isinstance(chosen, GLSLBackend):
        yield
        return
    set_codegen_backend(None)
    try:
        yield
    finally:
        set_codegen_backend(chosen)


def _describe_call(make: Callable[[], Any], key: str) -> str | None:
    try:
        return f"{describe_value(make)}\n{key}"
    except _UnknownError:
        return None


class _Shelf:
    """What a maker has made: kernels, and objects that hold them."""

    def __init__(self, make: Callable[[], Any], setting: str, key: str) -> None:
        self._make, self._setting, self._key = make, setting, key
        self._context = weakref.ref(get_context())
        self.lock = RLock()
        self._content = b""
        self.kernels: list[StoredKernel] = []
        self._programs: list[TracedProgram] = []

    @classmethod
    def find(cls, make: Callable[[], Any], setting: str) -> Any:
        """Return what is kept on disk, or make it."""
        key = _describe_call(make, setting)
        if key is None:
            return make()
        shelf = cls(make, setting, key)
        data = disk_cache.load(_KIND, key)
        if data is not None:
            # its digest is right; so something else wrote it, such as a debugger's patched module
            with contextlib.suppress(
                *(pickle.UnpicklingError, AttributeError, EOFError, ImportError, LookupError),
                *(TypeError, ValueError),
            ):
                return shelf._read(data)
        return shelf._fill()

    def _read(self, data: bytes) -> Any:
        content, kernels = pickle.loads(data)
        programs = [StoredProgram(kernel, self, number) for number, kernel in enumerate(kernels)]
        result = _Reader(content, programs).load()
        self._content, self.kernels = content, kernels
        return result

    def _fill(self) -> Any:
        """Make the kernels, whose variants are kept when they are compiled."""
        made = self._make()
        functions = self._write(made)
        if functions is None:
            return made
        for number, function in enumerate(functions):
            program = cast("TracedProgram", function._kernel.program)
            self.kernels.append(_describe_kernel(function))
            function._kernel.program = StoredProgram(self.kernels[-1], self, number, program)
        if not functions:
            self.save()  # no kernel will be compiled
        return made

    def _write(self, made: Any) -> list[ShaderFunction] | None:
        """Set the content to what was made, and return its kernels; None if it cannot be written."""
        file = io.BytesIO()
        writer = _Writer(file)
        try:
            writer.dump(made)
        except (pickle.PicklingError, AttributeError, TypeError):
            return None
        self._content = file.getvalue()
        return writer.functions

    def fits(self, context: Context) -> bool:
        """Whether the kernels are kept for the devices of a context."""
        return _find_key(_find_setting(context), checks=is_checking()) == self._setting

    def trace(self, number: int) -> "TracedProgram":
        """Trace the kernels, and return the program of the one with this number."""
        with self.lock:
            if not self._programs:
                context = self._context()
                usable = get_context() if context is None or not context.usable else context
                with use_context(usable), _tracing_glsl():
                    functions = self._write(self._make())
                made = map(_describe_kernel, functions or ())
                if [*map(_find_facts, made)] != [*map(_find_facts, self.kernels)]:
                    raise UsageError(
                        f"{self.kernels[number].who}: numbers that it was planned with have changed since; "
                        "call the function again"
                    )
                self._programs = [
                    cast("TracedProgram", function._kernel.program) for function in functions or ()
                ]
            return self._programs[number]

    def save(self) -> None:
        """Write what is known of the kernels to the disk."""
        with self.lock:
            disk_cache.store(_KIND, self._key, pickle.dumps((self._content, self.kernels), 5))


def _describe_kernel(function: ShaderFunction) -> StoredKernel:
    """Return what is kept of a traced kernel before any variant is compiled."""
    program = cast("TracedProgram", function._kernel.program)
    return StoredKernel(
        program.name,
        program.place,
        program.who,
        (function.local_size, function.workgroups, function.exec_size),
        program.parameters,
        program.constants,
        program.binding_base,
        function.internal,
        program.depends_on_workgroups(),
        program.fills_tiles,
    )


def _find_facts(kernel: StoredKernel) -> tuple[Any, ...]:
    return kernel.name, kernel.sizes, kernel.parameters, len(kernel.constants), kernel.fills_tiles


class _Writer(pickle.Pickler):
    """Writes what holds kernels, with numbers in place of the kernels."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, 5)
        self.functions: list[ShaderFunction] = []

    def persistent_id(self, value: Any) -> int | None:
        """Return the number of a kernel. Raises PicklingError for one that cannot be kept."""
        if type(value) is not ShaderFunction:
            return None
        program = value._kernel.program
        sizes = value.local_size, value.workgroups, value.exec_size
        if (
            not program.is_traced
            or isinstance(program, StoredProgram)
            or program.observation is not None
            or program.is_sized_by_calls
            or any(map(callable, sizes))
        ):
            raise pickle.PicklingError
        if value not in self.functions:
            self.functions.append(value)
        return self.functions.index(value)


class _Reader(pickle.Unpickler):
    """Reads what a `_Writer` wrote."""

    def __init__(self, content: bytes, programs: Sequence[StoredProgram]) -> None:
        super().__init__(io.BytesIO(content))
        self._functions = [ShaderFunction._restore(program) for program in programs]

    def persistent_load(self, number: int) -> ShaderFunction:
        """Return the kernel with a number."""
        return self._functions[number]
