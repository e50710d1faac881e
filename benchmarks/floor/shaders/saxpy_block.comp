#version 450
// y = a x + y, four elements an invocation, a workgroup apart; all loads before the first store.
layout(local_size_x_id = 0) in;
layout(push_constant) uniform Numbers { float a; uint count; };
layout(set = 0, binding = 0) restrict buffer Y { float y[]; };
layout(set = 0, binding = 1) restrict readonly buffer X { float x[]; };

void main() {
    uint stride = gl_WorkGroupSize.x;
    uint first = gl_WorkGroupID.x * stride * 4 + gl_LocalInvocationID.x;
    float sums[4];
    for (int k = 0; k < 4; ++k) {
        uint i = first + k * stride;
        sums[k] = i < count ? a * x[i] + y[i] : 0.0;
    }
    for (int k = 0; k < 4; ++k) {
        uint i = first + k * stride;
        if (i < count) y[i] = sums[k];
    }
}
