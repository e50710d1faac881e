"""GLSL for several tests."""

ADD_ONE = """#version 450
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) buffer A { float a[]; };
void main() { a[gl_GlobalInvocationID.x] += 1.0; }
"""

# Each element takes the previous value of its left neighbor. Wrong unless dispatches wait for one another.
DOUBLE_SUM = """#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer A { float a[]; };
layout(set = 0, binding = 1) buffer B { float b[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    uint n = a.length();
    if (i < n) b[i] = a[(i + 1) % n] + a[i];
}
"""

PRODUCT = """#version 450
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) buffer A { float a[]; };
layout(set = 0, binding = 1) buffer B { float b[]; };
layout(set = 0, binding = 2) buffer C { float c[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    c[i] = a[i] * b[i];
}
"""

PUSHED = """#version 450
layout(local_size_x = 1) in;
layout(push_constant) uniform Constants { float x; float y; float z; };
layout(set = 0, binding = 0) buffer A { float a[]; };
void main() { a[0] += x; a[1] += y; a[2] += z; }
"""


def typed(element: str, constant: str) -> str:
    """Return a kernel that writes a specialization constant and a push constant of a type."""
    return f"""#version 450
#extension GL_EXT_shader_explicit_arithmetic_types : enable
layout(local_size_x = 1) in;
layout(constant_id = 0) const {constant} s = {constant}(0);
layout(push_constant) uniform Constants {{ {constant} p; }};
layout(set = 0, binding = 0) buffer A {{ {element} a[]; }};
void main() {{ a[0] = {element}(s); a[1] = {element}(p); }}
"""
