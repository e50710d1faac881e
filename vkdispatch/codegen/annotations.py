"""Annotations of kernel arguments as values, for dtypes that are known at run time only.

Type checkers refuse `Buff[kind]` where `kind` is a variable; `buffer[kind]` is the same object, with a type.
"""

from types import GenericAlias
from typing import Any, Protocol, cast

from vkdispatch.base.dtype import DType
from vkdispatch.codegen import arguments

# What parameters of kernels are annotated with: Buff[f32], Const[f32], a dataclass of dtypes...
Annotation = type[Any] | GenericAlias


class _Annotations(Protocol):
    def __getitem__(self, kind: DType, /) -> Annotation: ...


buffer = cast(_Annotations, arguments.Buffer)
constant = cast(_Annotations, arguments.Constant)
