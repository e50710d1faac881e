"""Pickles of kernels, maps, reductions and scans: by name where a module has them, else by value."""

import copyreg
import functools
import inspect
import io
import linecache
import os
import pickle
import sys
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable
from importlib import import_module
from itertools import zip_longest
from types import CodeType, FunctionType
from typing import Any, Self

from vkdispatch.base.buffer import Buffer
from vkdispatch.base.derived_dtypes import array_type, cooperative_type, placed_type
from vkdispatch.base.dtype import Cooperative, LocalArray, Placed
from vkdispatch.base.errors import ArgumentTypeError
from vkdispatch.base.process import Unshared
from vkdispatch.base.record import field, record
from vkdispatch.compiler.ir import Expr, Kernel, expressions_of, postorder, walk

# ---- The error of what cannot be pickled -----------------------------------------------------------------


class UnpicklableError(ArgumentTypeError, pickle.PicklingError):
    """An object cannot be pickled, or what a pickle refers to is not found."""


# ---- The source lines of functions that are pickled by value ---------------------------------------------
#
# Rewriting and error messages need them.


_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_DIGEST = 8


@record(frozen=False)
class Sources:
    """The source of pickled code objects.

    Attributes
    ----------
    texts
        The lines of each file, of which those of no pickled function are empty.
    own
        The paths, within this package, of its own files.
    """

    texts: dict[str, str] = field(factory=dict)
    own: dict[str, str] = field(factory=dict)


def collect_sources(codes: list[CodeType]) -> Sources:
    """Return the lines of code objects, as far as their files are found."""
    sources = Sources()
    wanted: dict[str, set[int] | None] = {}
    for code in codes:
        file = code.co_filename
        if file.startswith(_PACKAGE):
            sources.own[file] = file[len(_PACKAGE) :]
            continue
        numbers = wanted.setdefault(file, set())
        if code.co_name == "<lambda>" or "__class__" in code.co_freevars:
            wanted[file] = None  # such functions are found in the tree of the whole file only
        elif numbers is not None:
            numbers.update(_line_numbers(code))
    for file, numbers in sorted(wanted.items()):
        lines = linecache.getlines(file)
        if lines:
            kept = [line if numbers is None or at in numbers else "\n" for at, line in enumerate(lines, 1)]
            sources.texts[file] = "".join(kept[: None if numbers is None else max(numbers)])
    return sources


def _line_numbers(code: CodeType) -> range:
    """Return the numbers of the lines from the first decorator of a function to its end."""
    first = last = code.co_firstlineno
    pending = [code]
    while pending:
        inner = pending.pop()
        last = max([last, *(end for _, end, _, _ in inner.co_positions() if end is not None)])
        pending += [value for value in inner.co_consts if isinstance(value, CodeType)]
    return range(first, last + 1)


def install_sources(sources: Sources) -> dict[str, str]:
    """Make pickled lines known to this process. Return the file names to give to code objects, by old ones.

    A file that is the same here keeps its name. Other lines get a name of their own in `linecache`, which is
    where tracebacks, `inspect` and the rewriting of kernels read them.
    """
    names = {file: _PACKAGE + path for file, path in sources.own.items()}
    for file, text in sources.texts.items():
        if _has_lines(file, text):
            continue
        from hashlib import blake2b  # imported here: it takes time, and few programs need it

        digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_DIGEST).hexdigest()
        name = f"<pickled {digest}>/{file.lstrip('/')}"
        # Without a time, linecache does not look for the file.
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
        names[file] = name
    return names


def _has_lines(file: str, text: str) -> bool:
    """Whether a file of this process has the lines of a text that are not empty."""
    local, pickled = linecache.getlines(file), text.splitlines(keepends=True)
    if len(local) < len(pickled):
        return False
    pairs = zip_longest(local[: len(pickled)], pickled)
    return all(mine == theirs for mine, theirs in pairs if theirs is not None and theirs.strip())


# ---- Copying and pickling of kernels, maps and reductions ------------------------------------------------
#
# By module and name as of functions, or by value.


Home = tuple[str, str]


class Referenced:
    """An object that is pickled as its module and its name there, if it has them, else by value.

    What is defined in a function, in `__main__`, or in a module of `cloudpickle.register_pickle_by_value` is
    pickled by value, which needs cloudpickle. Copies of it are the same object.
    """

    __slots__ = ()

    @property
    def _is_fixed(self) -> bool:
        """Whether nothing can change what it computes, so that it keeps its pickle by value."""
        return False

    def _home(self) -> Home | None:
        """Return the module and the qualified name of the function that it was made from, if known."""
        raise NotImplementedError

    def _describe(self) -> str:
        """Return what messages call it."""
        raise NotImplementedError

    def _get_state(self) -> tuple[Any, ...]:
        """Return what `_set_state` takes: all that it is made of, without what depends on a device."""
        raise NotImplementedError

    def _set_state(self, *state: Any) -> None:
        """Make this object, whose `__init__` was not called, equivalent to the one that the state is of."""
        raise NotImplementedError

    def _get_content(self) -> tuple[Any, ...]:
        """Return what determines the results that it computes."""
        return self._get_state()

    def _arrive(self, key: bytes) -> None:
        """Take note that it was loaded from a pickle by value with this hash."""

    def _reduce_otherwise(self) -> tuple[Any, ...] | None:
        """Return how it is pickled if not by value: by name; None if it has none."""
        name = _find_name(self, self._home())
        return (_load_named, name) if isinstance(name, tuple) else None

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce__(self) -> str | tuple[Any, ...]:
        otherwise = self._reduce_otherwise()
        if otherwise is not None:
            return otherwise
        if not can_pickle_functions():
            home = self._home()
            if home is not None and _look_up(*home) is self:
                return _load_named, home
            raise UnpicklableError(
                f"{self._describe()} cannot be pickled by name: {_find_name(self, home)}; define it at the "
                "top level of a module, or install cloudpickle"
            )
        return load_payload, (make_payload(self),)

    def __reduce_ex__(self, protocol: Any) -> str | tuple[Any, ...]:
        return self.__reduce__()

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        return type(self).__name__, hash_content(self)


def find_home(function: Callable[..., Any]) -> Home | None:
    """Return the module and the qualified name of a function, or None if it has none."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    return (module, name) if module and name else None


def _find_name(item: object, home: Home | None) -> Home | str:
    """Return module and name under which a process that imports the module finds an object, or why not."""
    if home is None:
        return "it was not made from a function that a module has by name"
    module, qualified = home
    if _is_pickled_by_value(module):
        return f"{module} is not the same module in another process"
    if _look_up(module, qualified) is item:
        return home
    # Its name may differ from that of its function, as in `scaled = vd.map(multiply)`.
    for name, value in list(vars(sys.modules.get(module, object)).items()):
        if value is item:
            return module, name
    return "it is defined in a function" if "<locals>" in qualified else f"{module}.{qualified} is not it"


def _is_pickled_by_value(module: str) -> bool:
    """Whether functions of a module are pickled by value: of scripts, and where cloudpickle was told so."""
    if module == "__main__":
        return True
    cloudpickle: Any = sys.modules.get("cloudpickle")
    marked = cloudpickle.list_registry_pickle_by_value() if cloudpickle is not None else ()
    return any(module == prefix or module.startswith(f"{prefix}.") for prefix in marked)


def _look_up(module: str, qualified: str) -> object:
    """Return the object that a loaded module has under a name, or None."""
    value: Any = sys.modules.get(module)
    for part in qualified.split("."):
        value = getattr(value, part, None)
    return value


def _load_named(module: str, qualified: str) -> Any:
    """Return an object that was pickled by name.

    Raises
    ------
    UnpicklableError
        The module has no such name here.
    """
    import_module(module)
    value = _look_up(module, qualified)
    if value is None:
        raise UnpicklableError(
            f"a pickle refers to {module}.{qualified}, which this process does not have; define it at the "
            "top level of that module"
        )
    return value


# ---- Pickles by value ------------------------------------------------------------------------------------
#
# The traced program of a kernel, or the functions of a map, with their source lines.
#
# A payload is a compressed pickle. Its hash is its key: a process that loads it again gets the same object,
# with what was compiled for it, as long as that is in use or among the payloads loaded last.


# Objects loaded last are kept although nothing uses them: tasks load a kernel again and again.
_MAX_RECENT = 128
_MAX_RECENT_BYTES = 64 << 20
_LEVEL = 6


_known: "weakref.WeakValueDictionary[bytes, Any]" = weakref.WeakValueDictionary()
_recent: OrderedDict[bytes, tuple[Any, int]] = OrderedDict()
_payloads: "weakref.WeakKeyDictionary[Any, bytes]" = weakref.WeakKeyDictionary()
_lock = threading.RLock()


def can_pickle_functions() -> bool:
    """Whether functions that no module has can be pickled: whether cloudpickle is installed."""
    try:
        import cloudpickle  # noqa: F401
    except ImportError:
        return False
    return True


def make_payload(item: Any) -> bytes:
    """Pickle an object by value.

    Raises
    ------
    TypeError
        What its functions refer to cannot be pickled, or lies on a device.
    """
    known = _payloads.get(item)
    if known is not None:
        return known
    file = io.BytesIO()
    pickler = _pickler_class()(file, item, with_places=True)
    pickler.dump(item)
    sources = collect_sources(pickler.codes)
    parts = _name_version(), sources.texts, sources.own, file.getvalue()
    import zlib  # imported here: few programs pickle by value

    payload = zlib.compress(pickle.dumps(parts), _LEVEL)
    if item._is_fixed:
        with _lock:
            _payloads[item] = payload
            _known.setdefault(_hash(payload), item)
    return payload


def load_payload(payload: bytes) -> Any:
    """Return the object of a payload; the same one for equal payloads, as long as it is kept.

    Raises
    ------
    UnpicklingError
        It was made by another version of Python or of this package.
    """
    key = _hash(payload)
    item = _known.get(key)
    if item is None:
        # without the lock, since loading may import modules
        item = _load(payload)
        item._arrive(key)
    with _lock:
        # another thread may have been faster
        item = _known.setdefault(key, item)
        if item._is_fixed:
            _payloads.setdefault(item, payload)
        _recent[key] = item, len(payload)
        _recent.move_to_end(key)
        while len(_recent) > _MAX_RECENT or sum(size for _, size in _recent.values()) > _MAX_RECENT_BYTES:
            _recent.popitem(last=False)
    return item


def hash_content(item: Any) -> str:
    """Return a hash of what an object computes: of its functions, and the values that they refer to.

    Where the functions are written does not count.
    """
    file = io.BytesIO()
    _pickler_class()(file, item, with_places=False).dump(item)
    return _hash(file.getvalue()).hex()


def _hash(data: bytes) -> bytes:
    from hashlib import blake2b

    return blake2b(data, digest_size=16).digest()


def _name_version() -> str:
    from vkdispatch import __version__

    return f"{sys.implementation.cache_tag}, vkdispatch {__version__}"


class _Names(threading.local):
    """The names that files of pickled functions have here, while a payload is loaded."""

    by_file: dict[str, str] | None = None


_names = _Names()


def _load(payload: bytes) -> Any:
    import zlib

    version, texts, own, data = pickle.loads(zlib.decompress(payload))
    if version != _name_version():
        raise pickle.UnpicklingError(
            f"a kernel or map was pickled by value by {version}, and this process runs {_name_version()}: "
            "such pickles hold byte code; use one version, or define the kernel in a module that both have"
        )
    outer, _names.by_file = _names.by_file, install_sources(Sources(texts, own))
    try:
        return pickle.loads(data)
    finally:
        _names.by_file = outer


def _make_code(
    make: Callable[..., CodeType], arguments: tuple[Any, ...], file: str | None = None
) -> CodeType:
    """Make a pickled code object, with the name that its file has here."""
    code = make(*arguments)
    file = code.co_filename if file is None else file
    return code.replace(co_filename=(_names.by_file or {}).get(file, file))


def list_operands_first(kernel: Kernel) -> list[Expr]:
    """Return the expressions of a kernel, each after its operands.

    A pickle that holds them in this order before the kernel needs no recursion for them.
    """
    expressions: list[Expr] = []
    done: set[int] = set()
    for statement in walk(kernel.body):
        for root in expressions_of(statement):
            for expr in postorder(root, done, _list_parts):
                done.add(id(expr))
                expressions.append(expr)
    return expressions


def _list_parts(expr: Expr) -> Iterable[Expr]:
    return (*expr.args, *(part for pair in expr.axes for part in pair))


class _PlainPickler(pickle.Pickler):
    """A pickler that pickles no functions by value, where cloudpickle is not installed."""

    def reducer_override(self, obj: Any) -> Any:
        return NotImplemented


@functools.cache
def _pickler_class() -> Any:
    """Return the class of picklers. cloudpickle, its base if it is installed, is imported on first use."""
    try:
        from cloudpickle import Pickler
    except ImportError:
        Pickler = _PlainPickler  # noqa: N806

    class ValuePickler(Pickler):  # type: ignore[misc]
        """A pickler of one kernel or map by value, with the objects that it refers to."""

        def __init__(self, file: io.BytesIO, item: Any, *, with_places: bool) -> None:
            super().__init__(file, protocol=5)
            self.item = item
            self.with_places = with_places
            self.codes: list[CodeType] = []
            self.functions: list[FunctionType] = []

        def reducer_override(self, obj: Any) -> Any:
            if isinstance(obj, type):
                return _reduce_type(obj) or super().reducer_override(obj)
            if isinstance(obj, CodeType):
                return self.reduce_code(obj)
            if hasattr(type(obj), "_get_state"):
                return self.reduce_ours(obj)
            if isinstance(obj, (Buffer, Unshared)) or hasattr(type(obj), "__vkdispatch_buffer__"):
                raise _refuse(self.item, obj, self.functions)
            if isinstance(obj, FunctionType):
                self.functions.append(obj)
            return super().reducer_override(obj)

        def reduce_code(self, code: CodeType) -> Any:
            if self.with_places:
                self.codes.append(code)
                # cloudpickle 3.1.3 and later leave the name of the file out
                return _make_code, (*self.dispatch_table[CodeType](code), code.co_filename)
            bare = code.replace(co_filename="", co_firstlineno=1, co_linetable=b"")
            return self.dispatch_table[CodeType](bare)

        def reduce_ours(self, obj: Any) -> Any:
            if obj is not self.item:
                otherwise = obj._reduce_otherwise()
                if otherwise is not None:
                    return otherwise
            state = obj._get_state() if self.with_places else obj._get_content()
            return _new, (type(obj),), state, None, None, _fill

    return ValuePickler


def _new(kind: type[Any]) -> Any:
    return object.__new__(kind)


def _fill(item: Any, state: tuple[Any, ...]) -> None:
    item._set_state(*state)


def _reduce_type(kind: type[Any]) -> Any:
    """Return how a dtype that a kernel made is made again, or None for other classes."""
    made: Any = kind
    if issubclass(kind, LocalArray) and kind is not LocalArray:
        return array_type, (made.child_type, made.child_count)
    if issubclass(kind, Cooperative) and kind is not Cooperative:
        return cooperative_type, (made.scalar, made.rows, made.columns, made.use, made.scope)
    if issubclass(kind, Placed) and kind is not Placed:
        return placed_type, (made.name, made.child_type, made.numpy_shape, made.strides)
    reduce = copyreg.dispatch_table.get(type(kind))
    recipe = reduce(kind) if reduce is not None else None
    return recipe if isinstance(recipe, tuple) else None


def _refuse(item: Any, obj: Any, functions: list[FunctionType]) -> UnpicklableError:
    """Return the error for an object of a device that pickled functions refer to."""
    kind = type(obj).__name__
    where = f"it refers to a {kind}"
    for function in reversed(functions):
        variables = inspect.getclosurevars(function)
        values = {**variables.globals, **variables.nonlocals}
        names = [name for name, value in values.items() if value is obj]
        if names:
            where = f"its function {function.__name__!r} refers to {names[0]!r}, a {kind}"
    return UnpicklableError(
        f"{item._describe()} cannot be pickled: {where}, which is on a device; make it an argument, or "
        "refer to a NumPy array or a number"
    )
