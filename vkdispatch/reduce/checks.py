"""Warnings about operations of users that do not combine values as a reduction needs it."""

import math
from typing import Any

import numpy as np

import vkdispatch.codegen as vc
from vkdispatch.base.dtype import DType, is_complex, is_float_dtype, is_scalar, is_signed_dtype
from vkdispatch.base.errors import VkDispatchError
from vkdispatch.codegen.arguments import buffer
from vkdispatch.compiler.ir.location import warn, without_warnings
from vkdispatch.families.kernels import trace_kernel
from vkdispatch.families.values import wide_type
from vkdispatch.reduce.operations import ReduceOp, find_identity, is_predefined, make_number

# Three values to combine: results are small, and exact or nearly so.
_TRIPLES = ((1, 2, 3), (5, 3, 2), (2, 7, 4))
_TOLERANCE = 1e-3


def check_combination(name: str, operation: ReduceOp, kind: DType) -> None:
    """Warn if a user's function is not associative, or swallows values that it combines with the identity.

    It is tried on a few numbers, by NumPy.
    """
    wide = wide_type(kind)
    if is_predefined(operation) or not is_scalar(kind) or is_complex(kind):
        return
    if str(getattr(operation.reduction, "__module__", "")).partition(".")[0] == "vkdispatch":
        return
    try:
        with without_warnings():
            left, right, alone, identity = _try_numbers(operation, kind, wide)
    except (VkDispatchError, ArithmeticError, TypeError, ValueError):
        return  # a call will say what is wrong
    for (a, b, c), first, second in zip(_TRIPLES, left, right, strict=True):
        if not math.isclose(first, second, rel_tol=_TOLERANCE):
            warn(
                f"reduction {name!r}: the function is not associative: of {a}, {b}, {c} it makes {first:g} "
                f"if it combines {a} and {b} first, but {second:g} if it combines {b} and {c} first; the "
                "device combines values in an order of its own"
            )
            return
    for sign in (1, -1):
        values = [sign * each[0] for each in _TRIPLES]
        found = alone[sign]
        if found and all(each == identity for each in found) and identity not in values:
            warn(
                f"reduction {name!r}: {identity:g} is no identity of the function: it makes "
                f"{found[0]:g} of {identity:g} and {values[0]:g}; give the number that changes nothing, such "
                "as 1 for a product, '-inf' for a maximum, 'inf' for a minimum"
            )
            return


def _try_numbers(
    operation: ReduceOp, kind: DType, wide: DType
) -> tuple[list[float], list[float], dict[int, list[float]], float]:
    """Combine the triples from the left and from the right, and numbers of both signs with the identity."""
    combine, identity = operation.reduction, find_identity(operation, kind)
    signed = is_float_dtype(wide) or is_signed_dtype(wide)

    def body(out: Any, given: Any) -> None:
        i = vc.global_invocation_id().x
        a, b, c = (given[i, column].to_register() for column in range(3))
        start = make_number(identity, wide).to_register()
        for place, value in enumerate(
            (
                combine(combine(a, b), c),
                combine(a, combine(b, c)),
                combine(start, a),
                combine(start, -a if signed else a),
            )
        ):
            out[i, place] = value

    count, host = len(_TRIPLES), np.float64 if is_float_dtype(wide) else np.int64
    arguments = [("out", buffer[wide]), ("given", buffer[wide])]
    kernel = trace_kernel("try", body, arguments, count, exec_size=count)
    given = np.array(_TRIPLES).astype(_numpy_type(wide))
    out = np.zeros((count, 4), given.dtype)
    with np.errstate(all="ignore"):
        kernel.interpret(out, given)
    left, right, positive, negative = (column.tolist() for column in out.astype(host).T)
    return left, right, {1: positive, -1: negative if signed else []}, float(identity)


def _numpy_type(kind: DType) -> Any:
    return np.dtype(kind.name)
