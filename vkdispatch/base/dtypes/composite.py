"""Types that kernels make: cooperative matrices, arrays of one invocation, members of blocks with strides."""

import math
from collections.abc import Sequence

from vkdispatch.base.dtype import (
    COMPUTED_AS,
    Cooperative,
    DType,
    LocalArray,
    Placed,
    array_shape,
    bfloat16,
    cache,
    component_type,
    compute_type,
    is_complex,
    item_of,
)


@cache
def cooperative_type(scalar: DType, rows: int, columns: int, use: str, scope: str) -> DType:
    """Type of a matrix that a "subgroup" or a "workgroup" holds together.

    `use` is its role in a product: "a", "b" or "accumulator".
    """
    glsl = "bfloat16_t" if scalar is bfloat16 else scalar.glsl_type
    named_use = {"a": "A", "b": "B", "accumulator": "Accumulator"}[use]
    shape = (rows, columns)
    return type(
        f"cooperative_{scalar.name}_{rows}x{columns}_{use}",
        (Cooperative,),
        {
            "name": f"{scope} matrix {use} of {rows}x{columns} {scalar.name}",
            "glsl_type": f"coopmat<{glsl}, gl_Scope{scope.title()}, {rows}, {columns}, "
            f"gl_MatrixUse{named_use}>",
            "item_size": rows * columns * scalar.item_size,
            "format_str": scalar.format_str,
            "child_type": scalar,
            "child_count": rows * columns,
            "scalar": scalar,
            "shape": shape,
            "numpy_shape": shape,
            "true_numpy_shape": shape,
            "rows": rows,
            "columns": columns,
            "use": use,
            "scope": scope,
        },
    )


@cache
def array_type(kind: DType, count: int) -> DType:
    """Type of an array in one invocation or structure, of `count` values of type `kind`."""
    axes, item = (count, *array_shape(kind)), item_of(kind)
    name = f"{item.name}[{', '.join(map(str, axes))}]"
    shape = (count, *kind.true_numpy_shape)
    made = type(
        name,
        (LocalArray,),
        {
            "name": name,
            "glsl_type": item.glsl_type + "".join(f"[{axis}]" for axis in axes),
            "item_size": count * kind.item_size,
            "format_str": kind.format_str,
            "child_type": kind,
            "child_count": count,
            "scalar": component_type(kind),
            "shape": (count, *kind.shape),
            "numpy_shape": shape,
            "true_numpy_shape": shape,
        },
    )
    if compute_type(kind) is not kind:
        COMPUTED_AS[made] = array_type(compute_type(kind), count)
    return made


def wrap_array(kind: DType, shape: Sequence[int]) -> DType:
    """Type of an array of a shape, of values of type `kind`; `kind` itself without axes."""
    for count in reversed(shape):
        kind = array_type(kind, count)
    return kind


@cache
def placed_type(name: str, kind: DType, shape: tuple[int, ...], strides: tuple[int, ...]) -> DType:
    """Type of a member of a block: an array of shape `shape` of scalars or complex numbers of type `kind`.

    `strides` has the bytes between elements along each axis, and for a complex type also the bytes between
    the real and the imaginary part. The size ends with the last component: trailing padding does not count.
    """
    counts = (*shape, 2) if is_complex(kind) else shape
    last = sum((count - 1) * stride for count, stride in zip(counts, strides, strict=True))
    scalar = component_type(kind)
    return type(
        name,
        (Placed,),
        {
            "name": name,
            "glsl_type": kind.glsl_type,
            "item_size": last + scalar.item_size,
            "format_str": kind.format_str,
            "child_type": kind,
            "child_count": math.prod(shape),
            "scalar": scalar,
            "shape": counts,
            "numpy_shape": shape,
            "true_numpy_shape": shape,
            "strides": strides,
        },
    )
