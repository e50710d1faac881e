"""SPIR-V modules broken at random, made into pipelines: `python -m tests.fuzz.spirv_modules --count 10000`.

A mutant may be refused, by us or by the driver. One that is taken is compiled down to the device's own code;
it is not run: what it would do is another matter.
"""

from __future__ import annotations

import functools
import random

import numpy as np

import vkdispatch as vd
import vkdispatch_native as native
from vkdispatch.base.compute_plan import ComputePlan, check_features
from vkdispatch.base.errors import VkDispatchError
from vkdispatch.base.spirv.interface import Interface
from vkdispatch.base.spirv.reflection import reflect
from vkdispatch.base.validation import read_valid_module

from .driving import main

_MIXED = """#version 450
layout(local_size_x = 8, local_size_y_id = 5) in;
layout(constant_id = 0) const int N = 4;
layout(binding = 0) readonly buffer A { float a[]; };
layout(binding = 1) buffer O { vec4 o[]; } result;
layout(push_constant) uniform P { float alpha; uint n; } pc;
struct Pair { float x; mat2 m[3]; };
shared Pair pairs[8];
float f(float x, int k) {
    for (int i = 0; i < k; i++) { x = x * 0.5 + 1; if (x > 3) break; }
    switch (k) { case 1: return x; case 2: return -x; default: return x + 1; }
}
void main() {
    uint i = gl_GlobalInvocationID.x;
    pairs[gl_LocalInvocationIndex % 8].m[i % 3][1] = vec2(a[i % 16], 1).yx;
    barrier();
    if (i >= pc.n || isnan(pc.alpha)) return;
    result.o[i] = vec4(f(pairs[3].m[0][1].y, N) * pc.alpha, bvec3(i > 2)).wzyx;
}
"""
_ATOMIC = """#version 450
#extension GL_KHR_shader_subgroup_arithmetic : enable
#extension GL_KHR_shader_subgroup_ballot : enable
layout(local_size_x = 16) in;
layout(binding = 0) buffer A { uint a[]; };
layout(binding = 1) uniform U { uvec4 scale[4]; int shift; };
shared uint counts[16];
void main() {
    uint i = gl_LocalInvocationID.x;
    counts[i] = 0;
    barrier();
    atomicAdd(counts[a[i] & 15u], 1u);
    memoryBarrierShared();
    barrier();
    uint sum = subgroupInclusiveAdd(counts[i]);
    uvec4 votes = subgroupBallot(sum > 3);
    a[i + gl_WorkGroupID.x * gl_WorkGroupSize.x] = (sum << shift) + bitCount(votes.x) + scale[i & 3].y
        + atomicMax(a[32], sum) + bitfieldExtract(sum, 2, 3) + uint(findMSB(sum)) + gl_NumWorkGroups.y;
}
"""
_PLAIN = """#version 450
layout(local_size_x = 64) in;
layout(binding = 0) buffer A { float a[]; };
layout(push_constant) uniform P { uint n; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < n) a[i] = sin(a[i]) * 2.0 + exp2(a[i]) - mix(a[i], 0.5, fract(a[i]));
}
"""
_LOOPS = """#version 450
layout(local_size_x = 4) in;
layout(binding = 0) buffer A { ivec2 a[]; };
int g(inout ivec2 v, int k) { v.x += k; return v.y > 0 ? v.x / v.y : k % 7; }
void main() {
    ivec2 v = a[gl_GlobalInvocationID.x];
    int seen[5] = int[5](0, 1, 2, 3, 4);
    do {
        for (int i = 0; i < 5; ++i) {
            if (seen[i] == v.x) continue;
            seen[i] ^= g(v, i) | (v.y >> 1);
            for (uint j = 0u; j < uint(i); j++) v.y = ~v.y + int(j) * -v.x;
        }
    } while (v.x > 100 && v.y < 3);
    a[gl_GlobalInvocationID.x] = v + seen[v.x & 3];
}
"""
_IMAGES = """#version 450
layout(local_size_x = 4, local_size_y = 4) in;
layout(binding = 0, rgba32f) uniform image2D target;
layout(binding = 1) uniform sampler2D source;
layout(binding = 2, r32ui) uniform uimage2D counts;
void main() {
    ivec2 at = ivec2(gl_GlobalInvocationID.xy);
    if (any(greaterThanEqual(at, imageSize(target)))) return;
    vec4 texel = imageLoad(target, at) + texelFetch(source, at, 0);
    imageAtomicAdd(counts, at, uint(texel.x));
    imageStore(target, at, texel * textureLod(source, vec2(at) / vec2(textureSize(source, 0)), 0.0));
}
"""
_WIDE = """#version 450
#extension GL_EXT_shader_explicit_arithmetic_types : enable
#extension GL_EXT_shader_16bit_storage : enable
#extension GL_EXT_shader_8bit_storage : enable
layout(local_size_x = 32) in;
layout(binding = 0) buffer A { int64_t a[]; };
layout(binding = 1) buffer B { float16_t b[]; };
layout(binding = 2) buffer C { uint8_t c[]; };
layout(binding = 3) buffer D { double d[]; };
struct Row { mat3 m; vec3 v; };
Row rows[2];
void main() {
    uint i = gl_GlobalInvocationID.x;
    rows[i & 1].m = outerProduct(vec3(b[i]), vec3(1, 2, float(d[i])));
    rows[0].v = transpose(rows[1].m) * rows[0].v + inverse(rows[0].m)[1];
    int exponent;
    float part = frexp(rows[0].v.x, exponent) + determinant(rows[1].m);
    a[i] = a[i] * int64_t(c[i]) + exponent + a.length();
    b[i] = float16_t(part) + float16_t(dot(rows[0].v, rows[1].v));
    c[i] = uint8_t(packHalf2x16(rows[0].v.xy) >> 8);
    d[i] = pow(abs(rows[0].v.y), 1.5) + unpackUnorm4x8(uint(a[i])).z + d[i] / double(c[i]);
}
"""
SOURCES = (_MIXED, _ATOMIC, _PLAIN, _LOOPS, _IMAGES, _WIDE)


@functools.cache
def originals() -> tuple[np.ndarray[tuple[int], np.dtype[np.uint32]], ...]:
    """Return the modules that mutants are made of."""
    return tuple(np.frombuffer(native.compile_glsl(source), np.uint32) for source in SOURCES)


def mutant(seed: int) -> bytes:
    """Return a module with one to four things changed."""
    choice = random.Random(seed)
    words = choice.choice(originals()).tolist()
    head, body = words[:5], instructions(words)
    for _ in range(choice.choice((1, 1, 1, 2, 3, 4))):
        choice.choice((flip, replace, replace, put_identifier, delete, duplicate, swap, move, cut, grow))(
            choice, body, head
        )
    if not choice.randrange(50):
        head[choice.randrange(5)] ^= 1 << choice.randrange(32)
    return np.array(head + [word for instruction in body for word in instruction], np.uint32).tobytes()


Body = list[list[int]]


def instructions(words: list[int]) -> Body:
    """Return the instructions of a sound module, each with its first word."""
    at, found = 5, []
    while at < len(words):
        found.append(words[at : at + (words[at] >> 16)])
        at += words[at] >> 16
    return found


def flip(choice: random.Random, body: Body, head: list[int]) -> None:
    """Flip a bit."""
    instruction = choice.choice(body)
    instruction[choice.randrange(len(instruction))] ^= 1 << choice.randrange(32)


def replace(choice: random.Random, body: Body, head: list[int]) -> None:
    """Set an operand, or the opcode, to something else."""
    instruction = choice.choice(body)
    at = choice.randrange(len(instruction))
    if at == 0:
        instruction[0] = instruction[0] & ~0xFFFF | choice.choice(body)[0] & 0xFFFF
    else:
        instruction[at] = choice.choice(
            (
                0,
                1,
                choice.randrange(64),
                choice.randrange(1 << 32),
                instruction[at] + 1 & 0xFFFFFFFF,
                0xFFFFFFFF,
            )
        )


def put_identifier(choice: random.Random, body: Body, head: list[int]) -> None:
    """Set an operand to an identifier, likely one that exists."""
    instruction = choice.choice(body)
    if len(instruction) > 1:
        instruction[choice.randrange(1, len(instruction))] = choice.randrange(head[3] + 1)


def delete(choice: random.Random, body: Body, head: list[int]) -> None:
    """Leave an instruction out."""
    if len(body) > 1:
        del body[choice.randrange(len(body))]


def duplicate(choice: random.Random, body: Body, head: list[int]) -> None:
    """Repeat an instruction, under a new identifier where it has one."""
    at = choice.randrange(len(body))
    again = list(body[at])
    if choice.randrange(2) and len(again) > 2:
        again[2] = head[3]
        head[3] += 1
    body.insert(choice.choice((at + 1, choice.randrange(len(body)))), again)


def swap(choice: random.Random, body: Body, head: list[int]) -> None:
    """Exchange two instructions, most often neighbours."""
    first = choice.randrange(len(body))
    second = choice.choice(((first + 1) % len(body), choice.randrange(len(body))))
    body[first], body[second] = body[second], body[first]


def move(choice: random.Random, body: Body, head: list[int]) -> None:
    """Put an instruction elsewhere."""
    body.insert(choice.randrange(len(body)), body.pop(choice.randrange(len(body))))


def cut(choice: random.Random, body: Body, head: list[int]) -> None:
    """Take the last word off an instruction, which may say so or not."""
    instruction = choice.choice(body)
    if len(instruction) > 1:
        instruction.pop()
        instruction[0] -= choice.choice((0, 1 << 16, 1 << 16, 1 << 16))


def grow(choice: random.Random, body: Body, head: list[int]) -> None:
    """Append a word to an instruction, which may say so or not."""
    instruction = choice.choice(body)
    instruction.append(choice.choice((0, 1, choice.randrange(head[3]), choice.randrange(1 << 32))))
    instruction[0] = instruction[0] + choice.choice((0, 1 << 16, 1 << 16, 1 << 16)) & 0xFFFFFFFF


def attempt(seed: int) -> str:
    """Make a pipeline of a mutant as for a user who hands it in, and compile it for the device."""
    code = mutant(seed)
    try:
        module = read_valid_module(code)
        interface = reflect(module)
        check_features("mutant", interface, vd.get_context())
        plan = ComputePlan("", kinds_of(interface), push_size(interface), "mutant", spirv=code)
    except (VkDispatchError, ValueError) as error:
        return "refused by the driver" if isinstance(error, vd.VulkanError) else "refused"
    try:
        compile_for_device(plan)
    except (VkDispatchError, ValueError, RuntimeError):
        return "refused late"
    return "taken"


def push_size(interface: Interface) -> int:
    """Return the bytes of push constants that a module declares."""
    return -(-interface.push_constants.size // 4) * 4 if interface.push_constants else 0


def kinds_of(interface: Interface) -> list[int]:
    """Return what a module wants bound at 0, 1, ... as the numbers that plans take."""
    numbers = {"storage buffer": 1, "uniform buffer": 3, "storage image": 4, "sampled image": 5}
    found = {resource.binding: numbers.get(resource.kind, 1) for resource in interface.resources}
    if any(binding > 16 for binding in found):
        raise ValueError("a binding that is not there")
    return [found.get(index, 1) for index in range(max(found, default=-1) + 1)]


def compile_for_device(plan: ComputePlan) -> None:
    """Have a driver that compiles at the first dispatch do so: dispatch no workgroups."""
    engine = plan.context._native
    if any(kind not in (1, 3) for kind in plan.binding_list):
        return
    buffer = native.Buffer(engine, 1 << 12)
    commands = native.CommandList(engine)
    bindings = [(buffer, index, 0, 0, True, True) for index in range(len(plan.binding_list))]
    commands.record(plan._native, bindings, (0, 1, 1), plan.pc_size)
    commands.submit(0, bytes(commands.instance_size), 1)
    vd.queue_wait_idle()


if __name__ == "__main__":
    main(
        "tests.fuzz.spirv_modules",
        "Breaks SPIR-V modules at random and makes pipelines of them.",
        attempt,
        lambda seed: mutant(seed).hex(" ", 4),
    )
