#version 450
// One addition to each of a few elements: what is measured is everything but the kernel.
layout(local_size_x_id = 0) in;
layout(push_constant) uniform Numbers { float step; uint count; };
layout(set = 0, binding = 0) buffer Data { float data[]; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < count) data[i] += step;
}
