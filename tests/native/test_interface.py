"""Mismatches between shader code and bindings are found before a driver sees them."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest

import vkdispatch_native as native

from .kernels import AFFINE, AFFINE_UNIFORM, HEADER

STORAGE_BUFFER, UNIFORM_BUFFER, STORAGE_IMAGE, SAMPLER = 1, 3, 4, 5
D1, D2, D3, D2_ARRAY = 0, 1, 2, 5
SETTINGS = (0, 0, 0, 0, 0.0, 0.0, 0.0, 0)

IMAGES = {
    (D1, 100): (8, 1, 1),
    (D2, 100): (8, 8, 1),
    (D3, 100): (8, 8, 8),
    (D2_ARRAY, 100): (8, 8, 1),
    (D2, 99): (8, 8, 1),
    (D2, 98): (8, 8, 1),
    (D2, 103): (8, 8, 1),
    (D2, 109): (8, 8, 1),
}


def spirv(declaration: str, layout: str, use: str) -> bytes:
    return native.compile_glsl(
        HEADER
        + f"""
layout(set = 0, binding = 0{layout}) uniform {declaration};
layout(set = 0, binding = 1) buffer Out {{ vec4 data[]; }};
void main() {{ data[gl_GlobalInvocationID.x] = vec4({use}); }}
"""
    )


@pytest.mark.parametrize(
    ("declaration", "layout", "use", "accepted"),
    [
        ("sampler1D s", "", "textureLod(s, 0.5, 0)", {(D1, 100)}),
        ("sampler2D s", "", "textureLod(s, vec2(0.5), 0)", {(D2, 100), (D2, 103), (D2, 109)}),
        ("sampler3D s", "", "textureLod(s, vec3(0.5), 0)", {(D3, 100)}),
        ("sampler2DArray s", "", "textureLod(s, vec3(0.5), 0)", {(D2_ARRAY, 100)}),
        ("isampler2D s", "", "textureLod(s, vec2(0.5), 0)", {(D2, 99)}),
        ("usampler2D s", "", "textureLod(s, vec2(0.5), 0)", {(D2, 98)}),
        ("samplerCube s", "", "textureLod(s, vec3(0.5), 0)", set()),
        ("image1D s", ", r32f", "imageLoad(s, 0)", {(D1, 100)}),
        ("image2D s", ", r32f", "imageLoad(s, ivec2(0))", {(D2, 100)}),
        ("image2D s", ", rg32f", "imageLoad(s, ivec2(0))", {(D2, 103)}),
        ("image2D s", ", rgba32f", "imageLoad(s, ivec2(0))", {(D2, 109)}),
        ("image2D s", ", rgba8", "imageLoad(s, ivec2(0))", set()),
        ("iimage2D s", ", r32i", "imageLoad(s, ivec2(0))", {(D2, 99)}),
        ("uimage2D s", ", r32ui", "imageLoad(s, ivec2(0))", {(D2, 98)}),
        ("image3D s", ", r32f", "imageLoad(s, ivec3(0))", {(D3, 100)}),
        ("image2DArray s", ", r32f", "imageLoad(s, ivec3(0))", {(D2_ARRAY, 100)}),
    ],
)
def test_images_must_be_as_declared(
    engine: native.Engine, declaration: str, layout: str, use: str, accepted: set[tuple[int, int]]
) -> None:
    kind = STORAGE_IMAGE if layout else SAMPLER
    plan = native.Plan(engine, spirv(declaration, layout, use), [kind, STORAGE_BUFFER], 0, "use")
    out = native.Buffer(engine, 64 * 16)
    for (view, form), extent in IMAGES.items():
        image: Any = native.Image(engine, view, form, extent, 1, 1, True)
        bound = image if layout else native.Sampler(image, *SETTINGS)
        commands = native.CommandList(engine)
        bindings = [(bound, 0, 0, 0, True, False), (out, 1, 0, 0, False, True)]
        if (view, form) in accepted:
            commands.record(plan, bindings, (1, 1, 1), 0)
            commands.submit(-2, b"", 1)
        else:
            with pytest.raises(ValueError, match="other axes or texels"):
                commands.record(plan, bindings, (1, 1, 1), 0)
    engine.wait_idle()


@pytest.mark.parametrize(
    ("source", "types", "message"),
    [
        (AFFINE, [UNIFORM_BUFFER], "declares a storage buffer .* has a uniform buffer"),
        (AFFINE, [SAMPLER], "declares a storage buffer .* has a sampler"),
        (AFFINE, [STORAGE_IMAGE], "declares a storage buffer .* has a storage image"),
        (AFFINE, [], "declares set 0, binding 0"),
        (AFFINE.replace("binding = 0", "binding = 1"), [STORAGE_BUFFER], "declares set 0, binding 1"),
        (AFFINE.replace("set = 0", "set = 1"), [STORAGE_BUFFER], "declares set 1, binding 0"),
        (AFFINE_UNIFORM, [STORAGE_BUFFER, STORAGE_BUFFER], "declares a uniform buffer"),
    ],
)
def test_bindings_must_be_as_declared(
    engine: native.Engine, source: str, types: list[int], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        native.Plan(engine, native.compile_glsl(source), types, 16, "wrong")


def test_arrays_of_resources_are_refused(engine: native.Engine) -> None:
    code = spirv("sampler2D s[2]", "", "textureLod(s[1], vec2(0.5), 0)")
    with pytest.raises(ValueError, match="an unsupported resource"):
        native.Plan(engine, code, [SAMPLER, STORAGE_BUFFER], 0, "array")


def test_damaged_modules(engine: native.Engine) -> None:
    words = np.frombuffer(native.compile_glsl(AFFINE), np.uint32)
    for damaged in (words[:6], np.append(words, np.uint32(0)), np.append(words, np.uint32(9 << 16))):
        with pytest.raises(ValueError, match="damaged"):
            native.Plan(engine, damaged.tobytes(), [STORAGE_BUFFER], 16, "damaged")
    header = struct.pack("5I", 0x07230203, 0x10500, 0, 100, 0)
    for word in (0x0000_0019, 0xFFFF_0019):
        with pytest.raises(ValueError, match="damaged"):
            native.Plan(engine, header + struct.pack("I", word), [], 0, "damaged")
