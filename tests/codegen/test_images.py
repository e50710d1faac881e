"""Images in the IR and in GLSL, without a device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import vkdispatch.codegen as vc
from vkdispatch.base.dtype import float32, int32, ivec2, uint32, vec2, vec3, vec4
from vkdispatch.base.errors import VkDispatchError
from vkdispatch.codegen.abbreviations import (
    Buff,
    Img1,
    Img2,
    Img3,
    SImg1,
    SImg2,
    SImg3,
    f32,
    f64,
    i16,
    i32,
    iv2,
    u16,
    u32,
    uv4,
    v2,
    v3,
    v4,
)
from vkdispatch.compiler import ir
from vkdispatch.compiler.analyses.verify import verify

from .tracing import compiled, statements, trace


def texts(body: Callable[..., Any], *annotations: Any) -> list[str]:
    return statements(compiled(body, annotations))


def declarations(*annotations: Any) -> list[str]:
    header = trace(lambda *images: None, annotations).header
    return [line for line in header.splitlines() if "uniform" in line and "Arguments" not in line]


@pytest.mark.parametrize(
    ("annotation", "declaration"),
    [
        (Img1[f32], "layout(set = 0, binding = 0) uniform sampler1D tex0;"),
        (Img2[f32], "layout(set = 0, binding = 0) uniform sampler2D tex0;"),
        (Img2[v4], "layout(set = 0, binding = 0) uniform sampler2D tex0;"),
        (Img2[f64], "layout(set = 0, binding = 0) uniform sampler2D tex0;"),
        (Img3[i32], "layout(set = 0, binding = 0) uniform isampler3D tex0;"),
        (Img3[i16], "layout(set = 0, binding = 0) uniform isampler3D tex0;"),
        (Img3[u16], "layout(set = 0, binding = 0) uniform usampler3D tex0;"),
        (vc.Image2DArray[u32], "layout(set = 0, binding = 0) uniform usampler2DArray tex0;"),
        (SImg1[f32], "layout(set = 0, binding = 0, r32f) readonly uniform image1D img0;"),
        (SImg2[v2], "layout(set = 0, binding = 0, rg32f) readonly uniform image2D img0;"),
        (SImg2[v4], "layout(set = 0, binding = 0, rgba32f) readonly uniform image2D img0;"),
        (SImg3[i32], "layout(set = 0, binding = 0, r32i) readonly uniform iimage3D img0;"),
        (SImg3[iv2], "layout(set = 0, binding = 0, rg32i) readonly uniform iimage3D img0;"),
        (SImg1[uv4], "layout(set = 0, binding = 0, rgba32ui) readonly uniform uimage1D img0;"),
        (
            vc.StorageImage2DArray[u32],
            "layout(set = 0, binding = 0, r32ui) readonly uniform uimage2DArray img0;",
        ),
    ],
)
def test_declarations(annotation: Any, declaration: str) -> None:
    (line,) = declarations(annotation)
    assert line.startswith(declaration)


def test_statements() -> None:
    def kernel(tex: Any, img: Any, pair: Any, layers: Any, out: Any) -> None:
        at = vc.global_invocation_id()
        out[0] = tex.sample((1, 2.5), 3)
        out[1] = tex.load(at, 1)
        out[2] = layers.sample((at.x, at.y, 1))
        img[at.x, at.y] = 2.0
        pair[at.x, at.y] = pair[0, 1]

    lines = texts(kernel, Img2[f32], SImg2[f32], SImg2[v2], vc.Image2DArray[f32], Buff[v4])
    assert (
        "buf4.data[0] = textureLod(tex0, (vec2(1.0f, 2.5f) + 0.5f) / vec2(textureSize(tex0, 0)), 3.0f);"
        in lines
    )
    assert "buf4.data[1] = texelFetch(tex0, ivec2(gl_GlobalInvocationID.xy), 1);" in lines
    assert any("+ vec3(0.5f, 0.5f, 0.0f)) / vec3(textureSize(tex3, 0).xy, 1), 0.0f);" in x for x in lines)
    assert any(x.startswith("imageStore(img1, ") and x.endswith(", vec4(2.0f));") for x in lines)
    assert any("vec4(imageLoad(img2, ivec2(0, 1)).xy, 0, 0));" in x for x in lines)


def test_sizes_are_computed_once() -> None:
    def kernel(tex: Any, out: Any) -> None:
        out[0] = vc.to_float(tex.size().x + tex.size().y)
        out[1] = vc.to_float(tex.size().x * tex.size().y)

    assert sum("textureSize" in line for line in texts(kernel, Img2[f32], Buff[f32])) == 1


def test_loads_are_not_moved_across_stores() -> None:
    def kernel(img: Any, out: Any) -> None:
        out[0] = img[0] + img[0] * img[0]
        img[0] = 1.0
        out[1] = img[0] + img[0] * img[0]

    assert sum("imageLoad" in line for line in texts(kernel, SImg1[f32], Buff[f32])) >= 2


def test_image_names_are_reserved() -> None:
    def kernel(tex: Any, img: Any, out: Any) -> None:
        register = tex.load((0, 0)).to_register("img1")
        other = register.to_register("tex0")
        out[0] = other
        img[0, 0] = other

    lines = texts(kernel, Img2[f32], SImg2[v4], Buff[v4])
    assert lines[0].startswith("vec4 img1_")
    assert lines[1].startswith("vec4 tex0_")


def test_images_of_another_kernel_are_refused() -> None:
    kept: list[Any] = []
    trace(lambda img: kept.append(img), [SImg2[f32]])
    with pytest.raises(RuntimeError, match=r"img0.*does not exist here.*test_images.py"):
        trace(lambda img: kept[0].store((0, 0), 1.0), [SImg2[f32]])
    with pytest.raises(RuntimeError, match="does not exist here"):
        trace(lambda out: out.__setitem__(0, kept[0][0, 0]), [Buff[f32]])


SAMPLED = ir.ImageBinding(0, 2, "tex")
STORED = ir.ImageBinding(1, 2, "img", vec2, storage=True)


def literal(value: float, kind: Any) -> ir.Expr:
    return ir.Expr(ir.Op.LITERAL, kind, (), value)


def vector(kind: Any, scalar: Any, *values: float) -> ir.Expr:
    return ir.Expr(ir.Op.CONSTRUCT, kind, tuple(literal(value, scalar) for value in values))


AT = vector(ivec2, int32, 0, 0)
POSITION = vector(vec2, float32, 0.0, 0.0)
ZERO, LEVEL = literal(0, int32), literal(0.0, float32)


def kernel_of(*statements: ir.Statement) -> ir.Kernel:
    return ir.Kernel("k", (), (SAMPLED, STORED), (), statements, None)


def declare(expr: ir.Expr) -> ir.Statement:
    return ir.Declare(ir.Register("r", expr.dtype), expr)


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        (
            ir.Expr(ir.Op.SAMPLE, vec4, (POSITION, LEVEL), SAMPLED),
            [
                ir.Expr(ir.Op.SAMPLE, vec4, (AT, LEVEL), SAMPLED),
                ir.Expr(ir.Op.SAMPLE, vec4, (POSITION, ZERO), SAMPLED),
                ir.Expr(ir.Op.SAMPLE, vec3, (POSITION, LEVEL), SAMPLED),
                ir.Expr(ir.Op.SAMPLE, vec2, (POSITION, LEVEL), STORED),
            ],
        ),
        (
            ir.Expr(ir.Op.IMAGE_LOAD, vec4, (AT, ZERO), SAMPLED),
            [
                ir.Expr(ir.Op.IMAGE_LOAD, vec4, (AT,), SAMPLED),
                ir.Expr(ir.Op.IMAGE_LOAD, vec4, (POSITION, ZERO), SAMPLED),
                ir.Expr(ir.Op.IMAGE_LOAD, vec4, (AT, LEVEL), SAMPLED),
                ir.Expr(ir.Op.IMAGE_LOAD, float32, (AT, ZERO), SAMPLED),
            ],
        ),
        (
            ir.Expr(ir.Op.IMAGE_LOAD, vec2, (AT,), STORED),
            [
                ir.Expr(ir.Op.IMAGE_LOAD, vec2, (AT, ZERO), STORED),
                ir.Expr(ir.Op.IMAGE_LOAD, vec4, (AT,), STORED),
                ir.Expr(ir.Op.IMAGE_LOAD, vec2, (ZERO,), STORED),
            ],
        ),
        (
            ir.Expr(ir.Op.IMAGE_SIZE, ivec2, (ZERO,), SAMPLED),
            [
                ir.Expr(ir.Op.IMAGE_SIZE, ivec2, (), SAMPLED),
                ir.Expr(ir.Op.IMAGE_SIZE, uint32, (ZERO,), SAMPLED),
                ir.Expr(ir.Op.IMAGE_SIZE, ivec2, (ZERO,), STORED),
            ],
        ),
    ],
)
def test_verify_expressions(good: ir.Expr, bad: list[ir.Expr]) -> None:
    verify(kernel_of(declare(good)))
    for expr in bad:
        with pytest.raises(VkDispatchError, match=f"malformed {expr.op.name}"):
            verify(kernel_of(declare(expr)))


def test_verify_stores() -> None:
    verify(kernel_of(ir.ImageStore(STORED, AT, POSITION)))
    for store in (
        ir.ImageStore(SAMPLED, AT, vector(vec4, float32, 0.0, 0.0, 0.0, 0.0)),
        ir.ImageStore(STORED, POSITION, POSITION),
        ir.ImageStore(STORED, AT, LEVEL),
    ):
        with pytest.raises(VkDispatchError):
            verify(kernel_of(store))


@pytest.mark.parametrize(
    ("annotation", "message"),
    [(SImg2[v3], "three components"), (SImg2[f64], "float64"), (SImg2[i16], "int16"), (Img2[3], "dtype")],
)
def test_wrong_annotations_are_refused(annotation: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        trace(lambda image: None, [annotation])
