"""Mapping functions: pieces of kernel that FFTs and reductions apply to each element."""

import inspect
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import vkdispatch.codegen as vc
from vkdispatch.base.dtype import DType, dtype
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.rewrite.functions import inlined
from vkdispatch.shader.signature import read_signature


@dataclass(frozen=True, eq=False)
class MappingFunction:
    """A function to be traced inside another kernel. Equal only to itself.

    Attributes
    ----------
    buffer_types
        Annotations of its arguments, such as `Buff[f32]`.
    return_type
        Dtype of the result, or None.
    mapping_function
        The Python function.
    """

    buffer_types: list[Any]
    return_type: DType | None
    mapping_function: Callable[..., Any]
    instance_id: uuid.UUID = field(default_factory=uuid.uuid4)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MappingFunction) and other.instance_id == self.instance_id

    def __hash__(self) -> int:
        return hash(self.instance_id)

    def callback(self, *variables: Any) -> Any:
        """Trace the function, in a block of its own, on variables of the kernel being traced.

        Returns
        -------
        A register that holds the result, or None without `return_type`.

        Raises
        ------
        ValueError
            The function returned nothing although it has a return type.
        """
        if self.return_type is None:
            with vc.scope_block():
                inlined(self.mapping_function)(*variables)
            return None
        register = vc.new_register(self.return_type)
        with vc.scope_block():
            result = inlined(self.mapping_function)(*variables)
            if result is None:
                raise ArgumentValueError(
                    f"map {self.mapping_function.__name__!r} must return a {self.return_type.name}, got None"
                )
            register[:] = result
        return register


def map(
    func: Callable[..., Any], return_type: DType | None = None, input_types: Sequence[Any] | None = None
) -> MappingFunction:
    """Make a mapping function; also usable as the decorator `@vd.map`.

    Parameters
    ----------
    func
        Traced where the map is used.
    return_type
        Dtype of the result; None takes the return annotation.
    input_types
        Annotations used instead of the function's own.

    Raises
    ------
    ValueError
        An argument has no annotation.
    TypeError
        An annotation has no dtype, or `func` is not callable.
    """
    if not callable(func):
        raise ArgumentTypeError(f"func: expected a function, got {func!r}")
    signature = read_signature(func, input_types)
    for name, annotation in zip(signature.names, signature.annotations, strict=True):
        if not getattr(annotation, "__args__", None):
            raise ArgumentTypeError(
                f"argument {name!r}: expected an annotation such as Buff[f32], got {annotation!r}"
            )
    return MappingFunction(list(signature.annotations), return_type or _return_type(func), func)


def _return_type(func: Callable[..., Any]) -> DType | None:
    annotation = inspect.signature(func).return_annotation
    if isinstance(annotation, str):
        annotation = eval(annotation, getattr(func, "__globals__", {}))
    if annotation in (inspect.Signature.empty, None):
        return None
    if not (isinstance(annotation, type) and issubclass(annotation, dtype)):
        raise ArgumentTypeError(f"return annotation: expected a dtype such as vd.float32, got {annotation!r}")
    return annotation
