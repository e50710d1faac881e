#version 450
// y = a x + y, four neighbours an invocation, as vectors; the count is a multiple of four.
layout(local_size_x_id = 0) in;
layout(push_constant) uniform Numbers { float a; uint count; };
layout(set = 0, binding = 0) restrict buffer Y { vec4 y[]; };
layout(set = 0, binding = 1) restrict readonly buffer X { vec4 x[]; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    if (4 * i < count) y[i] = a * x[i] + y[i];
}
