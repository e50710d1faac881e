"""Functions of values of every type: the compiled code declares its types, and computes what NumPy does."""

from __future__ import annotations

import inspect
import struct
from typing import Any

import numpy as np
import pytest

import vkdispatch.codegen as vc
import vkdispatch_native as native
from vkdispatch.base import dtype as dt
from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import VkDispatchError
from vkdispatch.codegen.abbreviations import f16, i16, u16
from vkdispatch.codegen.functions import arithmetic, bits
from vkdispatch.codegen.functions import arithmetic as common
from vkdispatch.codegen.functions import trigonometry as special
from vkdispatch.codegen.functions import trigonometry as trigonometry
from vkdispatch.codegen.functions import vectors as geometry

from .running import close, evaluate, host, need, same, supports

_CAPABILITY, _EXTENDED, _INT, _FLOAT, _VECTOR = 17, 12, 21, 22, 23
_OF_TYPES = {(_INT, 8): 39, (_INT, 16): 22, (_FLOAT, 16): 9}  # Int8, Int16, Float16
MODULES = (arithmetic, bits, common, geometry, special, trigonometry)
FUNCTIONS = sorted({name for module in MODULES for name in module.__all__} - {"comment"})
INTEGER_KINDS: tuple[DType, ...] = (
    *(i16, dt.ihvec2, dt.ihvec3, dt.ihvec4),
    *(u16, dt.uhvec2, dt.uhvec3, dt.uhvec4),
)
FLOAT_KINDS: tuple[DType, ...] = (f16, dt.hvec2, dt.hvec3, dt.hvec4)


def undeclared(code: bytes) -> set[int]:
    """Capabilities that extended instructions need for the types of their results, and that are missing."""
    words = struct.unpack(f"<{len(code) // 4}I", code)
    declared, needed, of_type = set(), set(), dict[int, int]()
    at = 5
    while at < len(words):
        opcode, size = words[at] & 0xFFFF, words[at] >> 16
        first, second = words[at + 1 : at + 3] if size > 2 else (words[at + 1] if size > 1 else 0, 0)
        if opcode == _CAPABILITY:
            declared.add(first)
        elif (opcode, second) in _OF_TYPES:
            of_type[first] = _OF_TYPES[opcode, second]
        elif opcode == _VECTOR and second in of_type:
            of_type[first] = of_type[second]
        elif opcode == _EXTENDED and first in of_type:
            needed.add(of_type[first])
        at += size
    return needed - declared


def alone(name: str, kind: DType) -> bytes | None:
    """Compile a kernel that stores one function of elements of a buffer; None if it takes no such values."""
    function = getattr(vc, name)
    parameters = [p for p in inspect.signature(function).parameters.values() if p.default is p.empty]
    with vc.shader_context() as context:
        (source,) = context.declare_input_arguments([vc.Buff[kind]])
        try:
            result = function(*(source[place] for place in range(len(parameters))))
        except VkDispatchError:
            return None
        results: tuple[Any, ...] = result if isinstance(result, tuple) else (result,)
        if {each.var_type for each in results} != {kind}:
            return None
        for place, each in enumerate(results):
            source[place] = each
        return native.compile_glsl(context.get_description().make_source(64, 1, 1))


@pytest.mark.parametrize("kind", [*INTEGER_KINDS, *FLOAT_KINDS], ids=lambda kind: kind.name)
def test_code_declares_the_types_of_its_instructions(kind: DType) -> None:
    compiled = {name: code for name in FUNCTIONS if (code := alone(name, kind)) is not None}
    assert len(compiled) > (4 if kind in INTEGER_KINDS else 40), sorted(compiled)
    lacking = {name: missing for name, code in compiled.items() if (missing := undeclared(code))}
    assert not lacking


def test_raw_code_declares_the_types_of_its_instructions() -> None:
    source = """#version 450
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
#extension GL_EXT_shader_8bit_storage : require
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) buffer Data { i8vec2 data[]; };
void main() { data[0] = max(data[0], data[1]); }
"""
    assert undeclared(native.compile_glsl(source)) == set()


# -- values: every type, in one kernel for each

KINDS: tuple[DType, ...] = (
    *(dt.int8, dt.uint8, *INTEGER_KINDS, *FLOAT_KINDS),
    *(dt.int32, dt.ivec2, dt.ivec3, dt.ivec4, dt.uint32, dt.uvec2, dt.uvec3, dt.uvec4, dt.int64, dt.uint64),
    *(dt.float32, dt.vec2, dt.vec3, dt.vec4, dt.float64, dt.dvec2, dt.dvec3, dt.dvec4),
)
# Functions of the language and their twins in NumPy: of what keeps its type, and of what becomes a float.
SAME: dict[str, tuple[Any, Any]] = {
    "abs": (lambda a, b, c: vc.abs(a), lambda a, b, c: np.abs(a)),
    "min": (lambda a, b, c: vc.min(a, b), lambda a, b, c: np.minimum(a, b)),
    "max": (lambda a, b, c: vc.max(a, b), lambda a, b, c: np.maximum(a, b)),
    "max of a number": (lambda a, b, c: vc.max(a, 3), lambda a, b, c: np.maximum(a, 3)),
    "clip": (lambda a, b, c: vc.clip(a, b, b + 2), lambda a, b, c: np.clip(a, b, b + 2)),
    "floor_divide": (lambda a, b, c: vc.floor_divide(a, c), lambda a, b, c: np.floor(a / c)),
    "floor_mod": (lambda a, b, c: vc.floor_mod(a, c), lambda a, b, c: a - c * np.floor(a / c)),
    "multiply": (lambda a, b, c: a * b, lambda a, b, c: a * b),
    "subtract": (lambda a, b, c: a - b, lambda a, b, c: a - b),
}
REAL: dict[str, tuple[Any, Any]] = {
    "sign": (lambda a, b, c: vc.sign(a), lambda a, b, c: np.sign(a)),
    "floor": (lambda a, b, c: vc.floor(a / 8), lambda a, b, c: np.floor(a / 8)),
    "ceil": (lambda a, b, c: vc.ceil(a), lambda a, b, c: np.ceil(a)),
    "trunc": (lambda a, b, c: vc.trunc(a), lambda a, b, c: np.trunc(a)),
    "round": (lambda a, b, c: vc.round(a * 0.5), lambda a, b, c: np.rint(a * 0.5)),
    "fract": (lambda a, b, c: vc.fract(a), lambda a, b, c: a - np.floor(a)),
    "mod": (lambda a, b, c: vc.mod(a, 8), lambda a, b, c: a - 8 * np.floor(a / 8)),
    "mix": (lambda a, b, c: vc.mix(a, b, 0.25), lambda a, b, c: a + (b - a) * 0.25),
    "step": (lambda a, b, c: vc.step(b, a), lambda a, b, c: a >= b),
    "smoothstep": (lambda a, b, c: vc.smoothstep(0.0, 64.0, a), lambda a, b, c: _smooth(a / 64)),
    "fma": (lambda a, b, c: vc.fma(a, b, c), lambda a, b, c: a * b + c),
    "ldexp": (lambda a, b, c: vc.ldexp(a, 3), lambda a, b, c: a * 8),
    "radians": (lambda a, b, c: vc.radians(a), lambda a, b, c: np.radians(a)),
    "sqrt": (lambda a, b, c: vc.sqrt(c), lambda a, b, c: np.sqrt(c)),
    "exp2": (lambda a, b, c: vc.exp2(c), lambda a, b, c: np.exp2(c)),
    "pow": (lambda a, b, c: vc.pow(c, 1.5), lambda a, b, c: c**1.5),
}
BITS: dict[str, tuple[Any, Any]] = {
    "and": (lambda a, b, c: a & b, lambda a, b, c: a & b),
    "xor": (lambda a, b, c: a ^ b, lambda a, b, c: a ^ b),
    "invert": (lambda a, b, c: ~a, lambda a, b, c: ~a),
    "right": (lambda a, b, c: a >> c, lambda a, b, c: a >> c),
    "left": (lambda a, b, c: a << c, lambda a, b, c: a << c),
}


def _smooth(x: Any) -> Any:
    at = np.clip(x, 0, 1)
    return at * at * (3 - 2 * at)


def operands(kind: DType, count: int) -> list[Any]:
    """Two small numbers of either sign, and one from 1 to 7, that all types have exactly."""
    scalar, shape = host(kind), (count, *kind.true_numpy_shape)
    generator = np.random.default_rng(5)
    low = 0 if scalar.kind == "u" else -11
    step = 4 if scalar.kind == "f" else 1
    bounds = ((low * step, 12 * step), (low * step, 12 * step), (step, 7 * step + 1))
    return [(generator.integers(*each, shape) / step).astype(scalar) for each in bounds]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_functions_of_every_type(kind: DType) -> None:
    need(kind)
    inputs = operands(kind, 67)
    whole = host(kind).kind in "iu"
    wide = [each.astype(np.int64 if whole else np.float64) for each in inputs]
    # integers of 64 bits become float64
    real = REAL if host(kind).itemsize < 8 or supports(dt.float64) else {}
    rules = {**SAME, **real, **(BITS if whole else {})}
    found = evaluate(
        lambda a, b, c: [rule(a, b, c) for rule, _ in rules.values()], *((kind, each) for each in inputs)
    )
    for (name, (_, twin)), actual in zip(rules.items(), found, strict=True):
        expected = np.asarray(twin(*wide))
        if name in REAL:
            small = actual.dtype == np.float16
            assert actual.dtype.kind == "f", name
            close(actual, expected, 4e-3 if small else 1e-4, 4e-3 if small else 1e-4, name)
        else:
            same(actual, (expected.astype(np.int64) if whole else expected).astype(actual.dtype), name)
