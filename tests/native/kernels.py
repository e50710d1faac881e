"""Hand-written GLSL and small wrappers for tests of the native engine."""

from __future__ import annotations

from typing import Any

import numpy as np

import vkdispatch_native as native

HEADER = """#version 450
#extension GL_EXT_scalar_block_layout : require
layout(local_size_x = 64) in;
"""

# data[i] = data[i] * factor + 1, with the arguments as push constants
AFFINE = (
    HEADER
    + """
layout(push_constant, scalar) uniform Arguments { uvec3 limit; float factor; } PC;
layout(set = 0, binding = 0, scalar) buffer Data { float data[]; };
void main() {
    if (any(greaterThanEqual(gl_GlobalInvocationID, PC.limit))) return;
    uint i = gl_GlobalInvocationID.x;
    data[i] = data[i] * PC.factor + 1.0;
}
"""
)

# the same, with the arguments in uniform memory
AFFINE_UNIFORM = (
    HEADER
    + """
layout(set = 0, binding = 0, scalar) uniform Arguments { uvec3 limit; float factor; float unused[96]; } UBO;
layout(set = 0, binding = 1, scalar) buffer Data { float data[]; };
void main() {
    if (any(greaterThanEqual(gl_GlobalInvocationID, UBO.limit))) return;
    uint i = gl_GlobalInvocationID.x;
    data[i] = data[i] * UBO.factor + 1.0;
}
"""
)

# target[i] = source[(i + 1) % n]: reads what a neighbour wrote earlier
ROTATE = (
    HEADER
    + """
layout(push_constant, scalar) uniform Arguments { uvec3 limit; } PC;
layout(set = 0, binding = 0, scalar) readonly buffer Source { float source[]; };
layout(set = 0, binding = 1, scalar) writeonly buffer Target { float target[]; };
void main() {
    if (any(greaterThanEqual(gl_GlobalInvocationID, PC.limit))) return;
    uint i = gl_GlobalInvocationID.x;
    target[i] = source[(i + 1) % PC.limit.x];
}
"""
)

# keeps one invocation busy for a while
SPIN = (
    HEADER
    + """
layout(push_constant, scalar) uniform Arguments { uint rounds; } PC;
layout(set = 0, binding = 0, scalar) buffer Data { uint data[]; };
void main() {
    uint x = data[0];
    for (uint i = 0; i < PC.rounds; ++i) { x = x * 1664525u + 1013904223u; }
    if (gl_GlobalInvocationID.x == 0) data[0] = x;
}
"""
)


class Array:
    """A native buffer with the two attributes that a launcher uses."""

    def __init__(self, engine: native.Engine, values: np.ndarray[Any, Any]) -> None:
        self.dtype, self.shape = values.dtype, values.shape
        self._native = native.Buffer(engine, values.nbytes)
        self.shader_shape = (values.size, 1, 1, values.size)
        self._native.write(-1, np.ascontiguousarray(values))

    def read(self, queue: int = 0) -> np.ndarray[Any, Any]:
        out = np.empty(self.shape, self.dtype)
        self._native.read_into(queue, out)
        return out


def affine_launcher(engine: native.Engine) -> tuple[native.Plan, native.Launcher]:
    """Return the plan of `AFFINE` and a launcher of (buffer, factor)."""
    plan = native.Plan(engine, native.compile_glsl(AFFINE), [1], 16, "affine")
    slots = [native.BufferSlot(binding=0), native.ScalarSlot(offset=12, code="f")]
    return plan, native.Launcher(engine, plan, slots, 16, -1, 0, -1, (64, 1, 1), (65535, 65535, 65535), None)
