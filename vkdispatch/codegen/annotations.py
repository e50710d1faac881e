"""Annotations of the package's own kernels, whose classes are imported when a kernel is traced."""

import sys
from importlib import import_module
from types import GenericAlias
from typing import Any

from vkdispatch.base.dtype import DType

Annotation = type[Any] | GenericAlias
"""What parameters of kernels are annotated with: Buff[f32], Const[f32], a dataclass of dtypes..."""


class _Annotations:
    """`Buffer[D]` or `Constant[D]`, which is made when it is asked for."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __getitem__(self, kind: DType, /) -> Annotation:
        annotation: Annotation = getattr(import_module("vkdispatch.codegen.arguments"), self._name)[kind]
        return annotation


def is_buffer(annotation: object) -> bool:
    """Whether an annotation is `Buffer[D]`. It does not import the language."""
    language = sys.modules.get("vkdispatch.codegen.arguments")
    return language is not None and getattr(annotation, "__origin__", None) is language.Buffer


buffer = _Annotations("Buffer")
constant = _Annotations("Constant")
