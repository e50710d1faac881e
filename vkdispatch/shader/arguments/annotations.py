"""Annotations of the parameters of maps."""

from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base.buffer import Buffer
from vkdispatch.base.dtype import dtype
from vkdispatch.base.memory.data import parse_dtype
from vkdispatch.shader.arguments.values import check_element, take_elements

# The names that annotations are usually written with.
_SHORT: dict[Any, str] = {vc.Buffer: "Buff", vc.Constant: "Const", vc.Variable: "Var"}


def format_annotation(annotation: Any) -> str:
    """Return an annotation as text, such as "Buff[f32]"."""
    if is_value(annotation):
        return str(annotation.name)
    inner = ", ".join(format_annotation(each) for each in getattr(annotation, "__args__", ()))
    origin = getattr(annotation, "__origin__", annotation)
    name = _SHORT.get(origin, origin.__name__)
    return f"{name}[{inner}]" if inner else name


def is_value(annotation: object) -> bool:
    """Whether a parameter with this annotation takes a value."""
    return isinstance(annotation, type) and issubclass(annotation, dtype) and hasattr(annotation, "name")


def parse_elements(label: str, annotation: Any, argument: Any) -> Any:
    """Return the argument of a parameter; for `Buff[...]` a buffer as `take_elements` does."""
    if isinstance(argument, Buffer) and getattr(annotation, "__origin__", None) is vc.Buffer:
        return take_elements(label, parse_dtype(annotation.__args__[0]), argument)
    return argument


def check_elements(label: str, annotation: Any, argument: Any) -> None:
    """Raise WrongBufferError where a parameter annotated `Buff[...]` gets a buffer of another dtype."""
    if isinstance(argument, Buffer) and getattr(annotation, "__origin__", None) is vc.Buffer:
        check_element(label, parse_dtype(annotation.__args__[0]), argument.var_type)
