"""Pickles by value: the traced program of a kernel, or the functions of a map, with their source lines.

A payload is a compressed pickle. Its hash is its key: a process that loads it again gets the same object,
with what was compiled for it, as long as that is in use or among the payloads loaded last.
"""

import copyreg
import functools
import hashlib
import inspect
import io
import pickle
import sys
import threading
import weakref
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterable
from types import CodeType, FunctionType
from typing import Any

from vkdispatch.base.buffer import Buffer
from vkdispatch.base.derived_dtypes import array_type, cooperative_type, placed_type
from vkdispatch.base.dtype import Cooperative, LocalArray, Placed
from vkdispatch.base.process import Unshared
from vkdispatch.compiler.ir import Kernel
from vkdispatch.compiler.ir.nodes import Expr
from vkdispatch.compiler.ir.traversal import expressions_of, postorder, walk
from vkdispatch.shader.pickling.errors import UnpicklableError
from vkdispatch.shader.pickling.sources import Sources, collect_sources, install_sources

# Objects loaded last are kept although nothing uses them: tasks load a kernel again and again.
_MOST_RECENT = 128
_MOST_RECENT_BYTES = 64 << 20
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
    found = _known.get(key)
    if found is None:
        # without the lock, since loading may import modules
        found = _load(payload)
        found._arrive(key)
    with _lock:
        # another thread may have been faster
        found = _known.setdefault(key, found)
        if found._is_fixed:
            _payloads.setdefault(found, payload)
        _recent[key] = found, len(payload)
        _recent.move_to_end(key)
        while len(_recent) > _MOST_RECENT or sum(size for _, size in _recent.values()) > _MOST_RECENT_BYTES:
            _recent.popitem(last=False)
    return found


def hash_content(item: Any) -> str:
    """Return a hash of what an object computes: of its functions, and the values that they refer to.

    Where the functions are written does not count.
    """
    file = io.BytesIO()
    _pickler_class()(file, item, with_places=False).dump(item)
    return _hash(file.getvalue()).hex()


def _hash(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()


def _name_version() -> str:
    from vkdispatch import __version__

    return f"{sys.implementation.cache_tag}, vkdispatch {__version__}"


class _Names(threading.local):
    """The names that files of pickled functions have here, while a payload is loaded."""

    by_file: dict[str, str] | None = None


_names = _Names()


def _load(payload: bytes) -> Any:
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
    found: list[Expr] = []
    done: set[int] = set()
    for statement in walk(kernel.body):
        for root in expressions_of(statement):
            for expr in postorder(root, done, _list_parts):
                done.add(id(expr))
                found.append(expr)
    return found


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
    found = reduce(kind) if reduce is not None else None
    return found if isinstance(found, tuple) else None


def _refuse(item: Any, obj: Any, functions: list[FunctionType]) -> UnpicklableError:
    """Return the error for an object of a device that pickled functions refer to."""
    kind = type(obj).__name__
    for function in functions:
        variables = inspect.getclosurevars(function)
        for name, value in (*variables.nonlocals.items(), *variables.globals.items()):
            if value is obj:
                where = f"its function {function.__name__!r} refers to {name!r}, a {kind}"
                break
        else:
            continue
        break
    else:
        where = f"it refers to a {kind}"
    return UnpicklableError(
        f"{item._describe()} cannot be pickled: {where}, which is on a device; make it an argument, or "
        "refer to a NumPy array or a number"
    )
