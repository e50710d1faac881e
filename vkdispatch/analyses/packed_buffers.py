"""Buffers of elements that a device has no storage for: which of a kernel's they are."""

from vkdispatch.analyses.contents import contents, mentioned
from vkdispatch.base.dtype import (
    DType,
    bfloat16,
    component_type,
)
from vkdispatch.base.structures import leaves_of
from vkdispatch.ir import (
    Kernel,
    MatrixLoad,
    MatrixStore,
    RawStatement,
    RawText,
    Storage,
)
from vkdispatch.ir.variant import INT16, STORAGE, Variant, emulates


def is_lacking(kind: DType, variant: Variant) -> bool:
    """Whether a form of a kernel does without buffers of such elements."""
    scalar = component_type(kind)
    if STORAGE.get(scalar.item_size) in variant.lacks or (scalar is bfloat16 and INT16 in variant.lacks):
        return True
    return scalar.item_size == 2 and emulates(scalar, variant.lacks)


def packed_buffers(kernel: Kernel, variant: Variant) -> frozenset[int]:
    """Return which of a kernel's buffers are words in this form, by position among its resources."""
    return frozenset(
        resource.index
        for resource in kernel.resources
        if isinstance(resource, Storage)
        and any(is_lacking(leaf, variant) for _, leaf, _ in leaves_of(resource.dtype))
    )


def reaches_elements(kernel: Kernel, buffers: frozenset[int]) -> bool:
    """Whether a kernel accesses any of the buffers other than by loading and storing elements."""
    for statement in contents(kernel).statements:
        if isinstance(statement, RawStatement) and mentioned(statement.text) & buffers:
            return True
        if isinstance(statement, (MatrixLoad, MatrixStore)):
            element = statement.source if isinstance(statement, MatrixLoad) else statement.place
            if isinstance(element.value, Storage) and element.value.index in buffers:
                return True
    expressions = contents(kernel).expressions
    return any(
        isinstance(each.value, RawText) and mentioned(each.value.text) & buffers for each in expressions
    )
