"""Rewritten functions: which need a rewrite, how new code replaces the old, and how it is traced."""

import ast
import builtins
import functools
import inspect
import threading
import types
from collections import deque
from collections.abc import Callable
from typing import Any

from vkdispatch.base.errors import ArgumentTypeError, UsageError
from vkdispatch.base.record import record
from vkdispatch.codegen.objects.resources import BufferVariable
from vkdispatch.codegen.trace.current import current, is_tracing
from vkdispatch.codegen.variables import ShaderVariable
from vkdispatch.compiler.ir.location import is_foreign, located
from vkdispatch.control_flow import frame, tracer
from vkdispatch.control_flow.conditions import REPLACED, require_known
from vkdispatch.control_flow.frame import is_host_draw, wrap_host_draw
from vkdispatch.control_flow.names import has_control_flow, is_generator, walk_tree
from vkdispatch.control_flow.python_ranges import LoopIndex
from vkdispatch.control_flow.source import (
    Call,
    Source,
    compile_function,
    explain_missing,
    find_calls,
    find_source,
)
from vkdispatch.control_flow.statements import rewrite_function, rewrite_lambda

# ---- Rewritten functions: which functions need a rewrite, and how new code replaces the old --------------


_RUNTIME = "_vd_rt"
# Builtins that call a function of the user, and builtins with side effects; `choose_callee` replaces them.
CALLING = (builtins.map, builtins.filter, functools.reduce)
EFFECTS = (builtins.print, builtins.input, builtins.next)
_REPLACED = frozenset((*REPLACED, *CALLING, *EFFECTS))
# Methods of GPU values, which call no user code.
_METHODS = frozenset(dir(ShaderVariable)) | frozenset(dir(BufferVariable)) | {"sample", "append", "dtype"}
_DYNAMIC = frozenset(("locals", "super", "eval", "exec", "vars", "dir", "__class__"))


@record(frozen=False)
class _Code:
    """What is known about the code of a function.

    Attributes
    ----------
    source
        Its source, or None.
    reason
        Why it has no source or cannot be rewritten.
    missing
        Whether it is because the source was not found.
    calls
        The dotted names of the functions that it calls.
    control_flow
        Whether it has control flow to rewrite.
    rewritten, tried
        The rewritten code, and whether rewriting was attempted.
    """

    source: Source | None
    reason: str = ""
    missing: bool = False
    calls: tuple[Call, ...] = ()
    control_flow: bool = False
    rewritten: types.CodeType | None = None
    tried: bool = False


_MAX_CODES = 2048
_codes: dict[tuple[str, types.CodeType], _Code] = {}
# Calls of functions that have nothing else to rewrite according to their bytecode; None for others.
_straight: dict[types.CodeType, frozenset[Call] | None] = {}
_lock = threading.Lock()


def rewrite_plain_function(function: types.FunctionType) -> Any:
    """Return the rewritten function, or the function itself if it needs no rewrite or allows none."""
    code = function.__code__
    if is_foreign(code.co_filename) or _RUNTIME in code.co_freevars:
        return function
    active = tracer.find_tracer()
    if active is not None and not active.enabled:
        return function
    calls = _find_straight_calls(code)
    if calls is not None and not any(_may_call_user_code(function, names) for names in calls):
        return function
    known = _find_code(function)
    if known.source is None:
        _explain(active, code, known.reason)
        return function
    if not known.control_flow and not any(_may_call_user_code(function, names) for names in known.calls):
        return function
    with _lock:
        if not known.tried:
            known.rewritten, known.reason = _rewrite_code(code, known.source)
            known.tried = True
    if known.rewritten is None:
        _explain(active, code, known.reason)
        return function
    return _replace_code(function, known.rewritten)


def _explain(active: tracer.Tracer | None, code: types.CodeType, reason: str) -> None:
    """Note why a function is not rewritten, for errors about truth values."""
    if active is not None:
        active.recorder.truth_notes[code] = reason


def _find_straight_calls(code: types.CodeType) -> frozenset[Call] | None:
    if code not in _straight:
        _straight[code] = None if _mentions_dynamic(code) else find_calls(code)
        _limit_size(_straight)
    return _straight.get(code)


def _mentions_dynamic(code: types.CodeType) -> bool:
    return any(not _DYNAMIC.isdisjoint(names) for names in (code.co_names, code.co_freevars))


def _limit_size(known: dict[Any, Any]) -> None:
    if len(known) > _MAX_CODES:
        with _lock:
            # drop the oldest entry: programs may create functions without limit
            known.pop(next(iter(known)), None)


def _find_code(function: types.FunctionType) -> _Code:
    code = function.__code__
    # two files may hold equal code
    key = (code.co_filename, code)
    known = _codes.get(key)
    if known is None:
        known = _inspect_code(code, function.__globals__)
        # what is not found may be there later: a reload brings equal code with its source
        if known.source is not None or not known.missing:
            known = _codes.setdefault(key, known)
            _limit_size(_codes)
    return known


def _inspect_code(code: types.CodeType, module: dict[str, Any]) -> _Code:
    source, name = find_source(code, module), code.co_name
    if source is None:
        return _Code(None, explain_missing(code, module), missing=True)
    node = source.node
    inners = walk_tree(node)
    if any(isinstance(inner, ast.Name) and inner.id in _DYNAMIC for inner in inners):
        return _Code(None, f"{name!r} uses super(), locals(), exec or their like, and runs as it is")
    if isinstance(node, ast.FunctionDef) and is_generator(node, inners):
        return _Code(None, f"{name!r} is a generator, and runs as it is")
    calls = {_find_dotted_name(inner.func) for inner in inners if isinstance(inner, ast.Call)}
    return _Code(source, calls=tuple(calls), control_flow=has_control_flow(inners))


def _rewrite_code(code: types.CodeType, source: Source) -> tuple[types.CodeType | None, str]:
    """Rewrite a function. Returns the new code, or None and the reason."""
    rewritten: ast.FunctionDef | ast.Lambda
    try:
        # the rewriting changes the tree
        fresh = _copy(source.node) if source.shared else source.node
        if isinstance(fresh, ast.FunctionDef):
            rewritten = rewrite_function(fresh, frozenset(code.co_freevars))
        else:
            rewritten = rewrite_lambda(fresh)
        compiled = compile_function(rewritten, code, source.class_name, (_RUNTIME,))
    except RecursionError:
        why = "its statements or expressions nest too deeply for Python; split chains of over 200 `elif`"
        return None, f"{code.co_name!r} could not be rewritten ({why})"
    except (SyntaxError, ValueError) as error:
        return None, f"{code.co_name!r} could not be rewritten ({error})"
    if compiled is None:
        return None, f"{code.co_name!r} could not be rewritten"
    return _rename_blocks(compiled, code.co_name, code.co_qualname), ""


def _copy(node: ast.FunctionDef | ast.Lambda) -> ast.FunctionDef | ast.Lambda:
    def copy_node(value: Any) -> Any:
        if isinstance(value, ast.AST):
            new = type(value)(**{name: copy_node(inner) for name, inner in ast.iter_fields(value)})
            return ast.copy_location(new, value)
        return [copy_node(inner) for inner in value] if isinstance(value, list) else value

    result: ast.FunctionDef | ast.Lambda = copy_node(node)
    return result


def _rename_blocks(code: types.CodeType, name: str, qualified: str) -> types.CodeType:
    """Give the blocks of a function its name, for tracebacks."""
    constants = []
    for value in code.co_consts:
        if isinstance(value, types.CodeType):
            block = value.co_name.startswith("_vd_")
            inner = (name, qualified) if block else (value.co_name, f"{qualified}.<locals>.{value.co_name}")
            value = _rename_blocks(value, *inner)
        constants.append(value)
    return code.replace(co_name=name, co_qualname=qualified, co_consts=tuple(constants))


def _find_dotted_name(function: ast.expr) -> Call:
    """Return the dotted name of a called function, or () if it has none."""
    names: list[str] = []
    while isinstance(function, ast.Attribute):
        names.append(function.attr)
        function = function.value
    if not isinstance(function, ast.Name):
        # a method of a value that an expression made
        return ("", names[0]) if names else ()
    return (function.id, *reversed(names))


def _may_call_user_code(function: types.FunctionType, names: Call) -> bool:
    """Whether a call may reach user code, or a Python function that is replaced."""
    if not names:
        return True
    code = function.__code__
    first, *rest = names
    if first == "" or first in code.co_varnames or first in code.co_cellvars:
        return not rest or rest[-1] not in _METHODS
    if first in code.co_freevars:
        cell = (function.__closure__ or ())[code.co_freevars.index(first)]
        try:
            value = cell.cell_contents
        except ValueError:
            return True
    elif first in function.__globals__:
        value = function.__globals__[first]
    else:
        value = getattr(_builtins(function), first, None)
    for name in rest:
        if isinstance(value, ShaderVariable):
            return False
        value = getattr(value, name, None)
    if is_host_draw(value):
        return True
    if isinstance(value, types.MethodType):
        value = value.__func__
    if isinstance(value, types.FunctionType):
        return not is_foreign(value.__code__.co_filename)
    try:
        if value in _REPLACED:
            return True
    except TypeError:
        pass
    if value is None or isinstance(value, (type, types.BuiltinFunctionType)):
        return False
    method = getattr(type(value), "__call__", None)  # noqa: B004
    if isinstance(value, functools.partial):
        return True
    return isinstance(method, types.FunctionType) and not is_foreign(method.__code__.co_filename)


def _builtins(function: types.FunctionType) -> Any:
    members = function.__globals__.get("__builtins__", __builtins__)
    return types.SimpleNamespace(**members) if isinstance(members, dict) else members


def _replace_code(function: types.FunctionType, code: types.CodeType) -> types.FunctionType:
    """Make a function with new code that shares everything else with the old one, closures included."""
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    cells[_RUNTIME] = types.CellType(frame)
    new = types.FunctionType(
        code,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        tuple(cells[name] for name in code.co_freevars),
    )
    new.__kwdefaults__ = function.__kwdefaults__
    new.__dict__.update(function.__dict__)
    if hasattr(function, "__annotate__"):
        # Python 3.14 evaluates them when they are asked for
        new.__annotate__ = function.__annotate__  # type: ignore[attr-defined]
    else:
        new.__annotations__ = function.__annotations__
    new.__qualname__ = function.__qualname__
    new.__doc__ = function.__doc__
    new.__module__ = function.__module__
    return new


# ---- The functions that rewritten code calls in place of the functions in the source ---------------------


def choose_callee(function: Any) -> Any:
    """Return the function to call in place of another: a rewritten one, a replacement, or itself."""
    kind = type(function)
    if kind is types.FunctionType:
        return rewrite_plain_function(function)
    if is_host_draw(function):
        return wrap_host_draw(function)
    if kind is types.MethodType:
        inner = choose_callee(function.__func__)
        return function if inner is function.__func__ else types.MethodType(inner, function.__self__)
    if kind is functools.partial:
        inner = choose_callee(function.func)
        same = inner is function.func
        return function if same else functools.partial(inner, *function.args, **function.keywords)
    if kind is types.BuiltinMethodType and isinstance(function.__self__, _CONTAINERS):
        return _wrap_filling_method(function)
    try:
        replaced = _REPLACED_CALLS.get(function)
    except TypeError:
        replaced = None
    if replaced is not None:
        return replaced
    return _rewrite_object(function)


def _wrap_filling_method(method: Any) -> Any:
    """Return a method of a container that freezes the values it stores."""
    active = tracer.find_tracer()
    if method.__name__ not in _FILLING or active is None or not active.gpu:
        return method

    def fill(*args: Any, **kwargs: Any) -> Any:
        return method(*map(active.freeze, args), **kwargs)

    return fill


def _map(function: Any, *iterables: Any, **kwargs: Any) -> Any:
    return builtins.map(choose_callee(function), *iterables, **kwargs)


def _filter(function: Any, values: Any) -> Any:
    test = bool if function is None else choose_callee(function)
    return builtins.filter(lambda value: require_known(test(value), "filter"), values)


def _reduce(function: Any, *args: Any) -> Any:
    return functools.reduce(choose_callee(function), *args)


def _wrap_effect(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function with side effects, so that the loops around it are unrolled."""

    def run(*args: Any, **kwargs: Any) -> Any:
        active = tracer.find_tracer()
        if active is not None and active.attempts:
            raise tracer.Retry(active.attempts[-1])
        return function(*args, **kwargs)

    return run


def _wrap_type_test(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function that inspects the type of a value, so that loops over its index are unrolled."""

    def run(*args: Any) -> Any:
        if args and isinstance(args[0], LoopIndex):
            args[0].unroll()
        return function(*args)

    return run


_CONTAINERS = (list, dict, set, deque)
_FILLING = frozenset(("append", "appendleft", "extend", "insert", "add", "update", "setdefault"))
_OF_FUNCTIONS: tuple[Callable[..., Any], ...] = (_map, _filter, _reduce)
_REPLACED_CALLS = {
    **REPLACED,
    **dict(zip(CALLING, _OF_FUNCTIONS, strict=True)),
    **{function: _wrap_effect(function) for function in EFFECTS},
    **{function: _wrap_type_test(function) for function in (builtins.isinstance, builtins.type)},
}


def _rewrite_object(value: Any) -> Any:
    """Return the rewritten `__call__` of an object of a user-defined class, or the object."""
    method = getattr(type(value), "__call__", None)  # noqa: B004
    if type(method) is types.FunctionType and not isinstance(value, type):
        inner = rewrite_plain_function(method)
        if inner is not method:
            return types.MethodType(inner, value)
    return value


frame.choose_callee = choose_callee


# ---- Entry points: the functions to call to trace a kernel, or a function as a part of a kernel ----------


def prepare_kernel(function: Callable[..., Any], rewrite: bool) -> Callable[..., Any]:
    """Return the function to call to trace a kernel in the current recording.

    Parameters
    ----------
    function
        The user's function.
    rewrite
        Whether plain Python control flow may become GPU control flow.
    """
    flags = getattr(getattr(function, "__code__", None), "co_flags", 0)
    if flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        name = getattr(function, "__name__", "kernel")
        raise ArgumentTypeError(
            f"{name}: a kernel is a plain function, not a generator and not async: it would not run"
        )
    recorder = current()
    active = tracer.Tracer(recorder, enabled=rewrite)
    recorder.extension = active
    if not rewrite:
        recorder.aliasing = True
        recorder.truth_notes[None] = "the kernel was declared with rewrite=False"
        return function
    inner = choose_callee(function)
    if inner is not function:
        # a rewritten lambda makes no frame, so the next frame is not the kernel's
        active.kernel_next = getattr(inner, "__name__", "<lambda>") != "<lambda>"
    return _wrap_kernel(inner, active)


def _wrap_kernel(function: Callable[..., Any], active: tracer.Tracer) -> Callable[..., Any]:
    @functools.wraps(function)
    def run(*args: Any) -> Any:
        __tracebackhide__ = True  # notebooks and pytest leave this frame out
        try:
            result = function(*args)
        except tracer.EndlessRecursionError as error:
            raise UsageError(str(error)) from None
        except RecursionError as error:
            raise located(
                UsageError,
                "the functions of this kernel call one another too deeply while it is traced, or its "
                "conditions nest too deeply for Python; a recursion must end by a condition that Python "
                "knows, not by a value of the GPU: use a loop; split a chain of more than 200 `elif`",
                tracer.last_place(error.__traceback__, recursive=True),
            ) from None
        if active.abandoned is not None:
            raise located(
                UsageError,
                "an exception left a block that the GPU decides about, and was caught outside of it; Python "
                "raises exceptions while it traces: catch it inside, or raise it where Python decides",
                active.abandoned,
            )
        return result

    return run


def prepare_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function to call to trace a function as part of the current kernel."""
    return choose_callee(function) if is_tracing() and tracer.require_tracer().enabled else function
