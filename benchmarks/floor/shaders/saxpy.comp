#version 450
// y = a x + y, one element an invocation.
layout(local_size_x_id = 0) in;
layout(push_constant) uniform Numbers { float a; uint count; };
layout(set = 0, binding = 0) restrict buffer Y { float y[]; };
layout(set = 0, binding = 1) restrict readonly buffer X { float x[]; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < count) y[i] = a * x[i] + y[i];
}
