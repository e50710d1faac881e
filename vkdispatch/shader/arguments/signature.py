"""The arguments of a kernel, read from its Python signature."""

import contextlib
import inspect
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from vkdispatch.base.dtype import DType, dtype
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, describe_place
from vkdispatch.base.record import record


@record
class Signature:
    """Annotations, names and defaults (None: no default) of a kernel's arguments, in call order."""

    annotations: tuple[Any, ...]
    names: tuple[str, ...]
    defaults: tuple[Any, ...]


def read_signature(
    function: Callable[..., Any],
    annotations: Sequence[Any] | None = None,
    names: Sequence[str] | None = None,
    defaults: Sequence[Any] | None = None,
    local_names: Mapping[str, Any] | None = None,
    *,
    method: bool = False,
) -> Signature:
    """Read a function's signature, or use the given annotations instead.

    Parameters
    ----------
    function
        The kernel.
    annotations
        Used instead of those of the function.
    names
        Only with `annotations`: names of the arguments (default: param0, param1...).
    defaults
        Only with `annotations`: default values, None where there is none.
    local_names
        Local variables where the function is defined, for annotations given as text.
    method
        Whether to leave out the first parameter, the instance.

    Raises
    ------
    ValueError
        An argument has no annotation, or the lengths disagree.
    TypeError
        An annotation given as text does not evaluate.
    """
    if annotations is None:
        if names is not None or defaults is not None:
            raise ArgumentValueError("arg_names, arg_defaults: they need arg_type_annotations")
        return _read_function(function, local_names or {}, method)
    count = len(annotations)
    names = tuple(f"param{index}" for index in range(count)) if names is None else tuple(names)
    defaults = (None,) * count if defaults is None else tuple(defaults)
    for option, given in (("arg_names", names), ("arg_defaults", defaults)):
        if len(given) != count:
            raise ArgumentValueError(
                f"{option}: expected {count}, as many as arg_type_annotations, got {len(given)}"
            )
    for name in names:
        if not str(name).isidentifier():
            raise ArgumentValueError(f"arg_names: expected Python names, got {name!r}")
    return Signature(tuple(annotations), names, defaults)


def is_method(function: object, annotations: Sequence[Any] | None) -> bool:
    """Whether a function is defined in a class and its first parameter, the instance, has no annotation."""
    if not isinstance(function, types.FunctionType):
        return False
    parameters = tuple(inspect.signature(function).parameters.values())
    around = function.__qualname__.rpartition(".")[0]
    if not around or around.endswith("<locals>") or not parameters:
        return False
    first = parameters[0]
    plain = first.kind in (first.POSITIONAL_ONLY, first.POSITIONAL_OR_KEYWORD)
    without = first.annotation is first.empty and plain
    return without and (annotations is None or len(annotations) < len(parameters))


def _read_function(function: Callable[..., Any], local_names: Mapping[str, Any], method: bool) -> Signature:
    annotations, names, defaults = [], [], []
    parameters = tuple(inspect.signature(function).parameters.values())
    who = describe_function(function)
    for parameter in parameters[method:]:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise ArgumentValueError(
                f"{who}: argument *{parameter.name}: name each argument, or pass arg_type_annotations"
            )
        if parameter.annotation is parameter.empty:
            raise ArgumentValueError(
                f"{who}: argument {parameter.name!r} has no annotation; write, say, "
                f"{parameter.name}: Buff[f32]"
            )
        annotations.append(_evaluate(function, parameter.name, parameter.annotation, local_names))
        names.append(parameter.name)
        defaults.append(None if parameter.default is parameter.empty else parameter.default)
    return Signature(tuple(annotations), tuple(names), tuple(defaults))


def _evaluate(
    function: Callable[..., Any], name: str, annotation: Any, local_names: Mapping[str, Any]
) -> Any:
    """Evaluate an annotation given as text, as with `from __future__ import annotations`."""
    if not isinstance(annotation, str):
        return annotation
    try:
        visible = {**local_names, **_read_closure(function)}
        annotation = eval(annotation, getattr(function, "__globals__", {}), visible)
        # Once more for an annotation in quotes with that import.
        if isinstance(annotation, str):
            annotation = eval(annotation, getattr(function, "__globals__", {}), visible)
        return annotation
    except Exception as error:
        raise ArgumentTypeError(
            f"{describe_function(function)}: argument {name!r}: the annotation {annotation!r} does not "
            f"evaluate: {error}"
        ) from error


def describe_function(function: Callable[..., Any]) -> str:
    """Return what messages call a function that is no kernel yet: its name, and where it is defined."""
    origin = find_origin(function)
    name = getattr(function, "__name__", type(function).__name__)
    return f"{name} ({origin})" if origin else name


def _read_closure(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the variables of enclosing functions that a function uses, without unassigned ones."""
    code, cells = getattr(function, "__code__", None), getattr(function, "__closure__", None)
    values = {}
    for name, cell in zip(code.co_freevars if code else (), cells or (), strict=False):
        with contextlib.suppress(ValueError):  # unassigned, such as the kernel's own name
            values[name] = cell.cell_contents
    return values


def read_return_type(function: Callable[..., Any], name: str) -> DType:
    """Return the dtype of a function's return annotation.

    Raises
    ------
    ValueError
        There is none.
    TypeError
        It is no dtype.
    """
    kind = find_return_type(function, f"{name}: ")
    if kind is None:
        raise ArgumentValueError(f"{name}: it needs a return annotation, such as -> f32: the result's dtype")
    return kind


def find_return_type(function: Callable[..., Any], where: str = "") -> DType | None:
    """Return the dtype of a function's return annotation, or None if there is none.

    Raises TypeError if it is no dtype; the message begins with `where`.
    """
    annotation = inspect.signature(function).return_annotation
    if isinstance(annotation, str):
        annotation = eval(annotation, getattr(function, "__globals__", {}))
    if annotation in (inspect.Signature.empty, None):
        return None
    if not (isinstance(annotation, type) and issubclass(annotation, dtype) and hasattr(annotation, "name")):
        raise ArgumentTypeError(
            f"{where}return annotation: expected a dtype such as vd.float32, got {annotation!r}"
        )
    return annotation


def find_origin(function: Callable[..., Any]) -> str | None:
    """Return "file.py:12" for the line where a function is defined, or None if unknown.

    If the function has an attribute `stands_for`, a function of the user, then where that is defined.
    """
    code = getattr(getattr(function, "stands_for", function), "__code__", None)
    if code is None:
        return None
    return describe_place(code.co_filename, code.co_firstlineno)
