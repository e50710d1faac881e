"""Write the texts of many kernels, as JSON: a process runs this with NumPy and the native module, or without.

    python tests/codegen/texts.py [--bare] < programs.json

`programs.json` has random kernels: a list of source text, kinds of buffers, and sizes.
"""

from __future__ import annotations

import importlib
import inspect
import io
import itertools
import json
import linecache
import math
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

BARE = "--bare" in sys.argv
if BARE:
    sys.modules["numpy"] = sys.modules["vkdispatch_native"] = None  # type: ignore[assignment]
BEFORE = set(sys.modules)

import vkdispatch as vd  # noqa: E402
import vkdispatch.codegen as vc  # noqa: E402
from vkdispatch.base.errors import VkDispatchError  # noqa: E402
from vkdispatch.codegen.abbreviations import *  # noqa: E402, F403
from vkdispatch.codegen.abbreviations import (  # noqa: E402
    Buff,
    Const,
    Img2,
    SImg2,
    Var,
    b8,
    c64,
    f16,
    f32,
    f64,
    hv2,
    i16,
    i32,
    i64,
    m3,
    u8,
    u32,
    u64,
    v2,
    v3,
    v4,
)
from vkdispatch.compiler.forms import FLOAT16, INT16, INT64, SHORT_ARGUMENTS, STORAGE, Variant  # noqa: E402

LACKS_ALL = frozenset({*STORAGE.values(), FLOAT16, INT16, INT64, SHORT_ARGUMENTS})
LACKS_CLASSES = frozenset({"arithmetic", "clustered"})
FORMS = {
    "folded": Variant(folded=True),
    "wide": Variant(addressed=True, wide=True),
    "lacking": Variant(lacks=LACKS_ALL),
    "by lanes": Variant(lacks=LACKS_CLASSES),
}


@dataclass
class Particle:
    place: v3
    velocity: v3
    mass: f32
    kind: u32


@dataclass
class Settings:
    scale: Const[f32]
    shift: Const[v2]


def reduced(data: Buff[f32], sums: Buff[f32]) -> None:
    i = vc.global_invocation_id().x
    lane = vc.local_invocation_id().x
    tile = vc.shared_buffer(f32, 64)
    tile[lane] = data[i]
    vc.barrier()
    step = 32
    while step > 0:  # Python's own: unrolled
        if lane < step:
            tile[lane] += tile[lane + step]
        vc.barrier()
        step //= 2
    if lane == 0:
        sums[vc.workgroup_id().x] = tile[0]


def grouped(data: Buff[f32], whole: Buff[i32], found: Buff[f32]) -> None:
    i = vc.global_invocation_id().x
    total = vc.subgroup_add(data[i])
    least, most = vc.subgroup_min(whole[i]), vc.subgroup_max(data[i])
    before = vc.subgroup_exclusive_add(whole[i])
    found[i] = total + least + most + before + vc.subgroup_broadcast_first(data[i])


def stepped(particles: Buff[Particle], counts: Buff[u32], dt: Const[f32], settings: Settings) -> None:
    i = vc.global_invocation_id().x
    particle = particles[i]
    particles[i].velocity = particle.velocity * (1.0 - 0.1 * dt)
    particles[i].place += particles[i].velocity * dt
    if particle.mass > 2.5 and particle.kind != 3:
        vc.atomic_add(counts[particle.kind], 1)
    elif not particle.mass < settings.scale + settings.shift.x:
        particles[i].mass = 1e-3


def drawn(out: Buff[v2], whole: Buff[u32], seed: Const[u32]) -> None:
    i = vc.global_invocation_id().x
    rng = vc.random.Philox(seed, sequence=i)
    place = vc.new_vec2_register(0, 0)
    for _ in range(10):
        place += vc.to_vec2(rng.normal(), rng.uniform(-1, 1))
    out[i] = place
    whole[i] = vc.to_uint(rng.integers(0, 100)) + rng.uint32()


def escaped(out: Buff[i32], size: Const[i32], zoom: Var[f64]) -> None:
    i = vc.global_invocation_id().x.to_dtype(i32)
    x, y = (i % size) * zoom - 2.0, (i // size) * zoom - 1.5
    u = v = 0.0
    count = 0
    while u * u + v * v < 4 and count < 100:
        u, v = u * u - v * v + x, 2 * u * v + y
        count += 1
        if count == 77:
            continue
        if u > 1e30:
            break
    else:
        count = -1
    out[i] = count


def narrow(small: Buff[u8], half: Buff[f16], halves: Buff[hv2], flags: Buff[b8], short: Buff[i16]) -> None:
    i = vc.global_invocation_id().x
    half[i] = half[i] * 0.1 + 65519.0
    halves[i] = halves[i] / 3
    flags[i] = (small[i] > 300) | (half[i] < 1e9) | (short[i] == 70000)
    small[i] += 1
    short[i] //= 7


def divided(half: Buff[f16], single: Buff[f32], short: Buff[i16]) -> None:
    i = vc.global_invocation_id().x
    half[i] = half[i] % 0.3 + half[i] // 0.7
    single[i] %= 0.3
    short[i] %= 7


def wide(large: Buff[i64], unsigned: Buff[u64], exact: Buff[f64]) -> None:
    i = vc.global_invocation_id().x
    large[i] = large[i] * 3 - (1 << 40) + unsigned[i] // 7
    exact[i] = vc.sin(exact[i]) + vc.erf(exact[i]) + exact[i] ** 3 + 0.1
    if large[i] > 2.5 or exact[i] < (1 << 60) + 1:
        unsigned[i] = vc.max(unsigned[i], 5)


def compared(x: Buff[f32], out: Buff[i32]) -> None:
    i = vc.global_invocation_id().x
    value = x[i]
    for number in (16777217, -16777217, (1 << 100) + 1, 0.1, 1e39, -1e39, 10**50, math.inf):
        if value < number:
            out[i] += 1
        if value >= number:
            out[i] -= 1
        if value == number:
            out[i] ^= 3


def spelled(x: Buff[f32]) -> None:
    i = vc.global_invocation_id().x
    numbers = [1 / 3, 0.1, 2.0**-149, 2.0**-126, 2.0**100, 16777216.0, 1e10, 0.10000000149011612, 1e-5]
    numbers += [
        5.960464477539063e-08,
        3.4028234663852886e38,
        math.pi,
        vc.exp(0.7),
        vc.sin(1e6),
        -0.0,
        math.nan,
    ]
    for number in numbers:
        x[i] += number


def turned(m: Buff[m3], v: Buff[v3], z: Buff[c64]) -> None:
    i = vc.global_invocation_id().x
    v[i] = m[i] * vc.normalize(v[i]) + vc.cross(v[i], vc.to_vec3(0.5, 1, 2))
    m[i] = vc.transpose(m[i]) * 2
    z[i] = z[i] * (1 + 2j) / vc.abs(z[i])
    table = vc.local_array(f32, 4)
    for j in range(4):
        table[j] = vc.dot(v[i], v[j])
    v[i].x = table[i % 4]


def seen(source: Img2[f32], target: SImg2[v4]) -> None:
    here = vc.global_invocation_id()
    x, y = here.x.to_dtype(f32), here.y.to_dtype(f32)
    target[here.x, here.y] = source.sample(((x - 0.5) / 2, (y - 0.5) / 2)) * 0.5


def told(x: Buff[f32]) -> None:
    i = vc.global_invocation_id().x
    assert x[i] >= 0, "negative"
    if x[i] > 100:
        vc.print("large:", x[i], "at", i)
    x[i] = vc.sqrt(x[i])


class Blur:
    def __init__(self, weights: list[float]) -> None:
        self.weights = weights

    @vd.shader("out.size")
    def run(self, x: Buff[f32], out: Buff[f32]) -> None:
        i = vc.global_invocation_id().x
        total = 0.0
        for offset, weight in enumerate(self.weights):
            total += weight * x[i + offset]
        out[i] = total


KERNELS: dict[str, tuple[Any, dict[str, Any]]] = {
    "reduced": (reduced, {"local_size": 64}),
    "grouped": (grouped, {}),
    "stepped": (stepped, {}),
    "drawn": (drawn, {}),
    "escaped": (escaped, {}),
    "escaped with Python's division": (escaped, {"flags": vc.ShaderFlags.PYTHON_DIVISION}),
    "narrow": (narrow, {}),
    "divided": (divided, {"flags": vc.ShaderFlags.PYTHON_DIVISION}),
    "wide": (wide, {"precise_math": True}),
    "compared": (compared, {}),
    "spelled": (spelled, {}),
    "turned": (turned, {"workgroups": (4, 2)}),
    "seen": (seen, {"exec_size": (64, 64)}),
    "told": (told, {}),
    "told and checked": (told, {"check": True}),
    "stepped and checked": (stepped, {"check": "bounds,nan,loops=50"}),
}


def written(name: str, kernel: Any) -> Iterator[tuple[str, str]]:
    """Yield the texts of a kernel: as it is, and in the forms that it has."""
    yield name, repr(kernel.get_src(build=False))
    for form, variant in FORMS.items():
        try:
            text = kernel.shader_description.shader_source((64, 1, 1), variant).code
        except (VkDispatchError, AssertionError, KeyError, ValueError) as error:
            text = type(error).__name__
        yield f"{name}, {form}", text


def decorated() -> Iterator[tuple[str, str]]:
    for name, (function, options) in KERNELS.items():
        sized = {} if "workgroups" in options or "exec_size" in options else {"exec_size": 1000}
        yield from written(name, vd.shader(**sized, **options)(function))
    yield from written("method", Blur([0.25, 0.5, 0.25]).run)


def by_hand() -> Iterator[tuple[str, str]]:
    """Build kernels as programs of 0.1.0's core package do."""
    with vc.shader_context() as context:
        x, n = context.declare_input_arguments([vc.Buffer[vd.float32], vc.Constant[vd.uint32]])
        i = vc.global_invocation_id().x
        vc.if_statement(i < n)
        x[i] = vc.sin(x[i]) * 0.5
        vc.end()
    yield "context", context.get_description("scale").make_source(64, 1, 1)
    builder = vc.ShaderBuilder(flags=vc.ShaderFlags.NO_EXEC_BOUNDS)
    vc.set_builder(builder)
    try:
        builder.declare_shader_arguments([vc.Buffer[vd.int32]])
        (x,) = builder.get_shader_arguments()
        tile = builder.shared_buffer(vd.int32, 64, var_name="tile")
        tile[vc.local_invocation_id().x] = 2
        x[0] = tile[1] + 1
    finally:
        vc.set_builder(None)
    yield "builder", builder.build("core").make_source(8, 8, 1)
    made = vd.make_shader_function(context.get_description("scale"), local_size=32, exec_count=100)
    shown = io.StringIO()
    with redirect_stdout(shown):
        made.print_src(line_numbers=True)
        print(made)
    if BARE:  # where there is a device, print_src shows what it gets
        assert made.get_src().code == made.get_src(build=False).code
        assert "   1: #version" in shown.getvalue()
    yield "made", made.get_src(build=False).code


def functions() -> Iterator[tuple[str, str]]:
    """Yield what each function of the language becomes, on values of every type and on numbers."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docs" / "extensions"))
    reference = importlib.import_module("reference")
    for name in (name for _, _, names in reference.sections() for name in names):
        if name != "constant_array":  # the one that takes NumPy's arrays
            for row in reference.rows(name):
                yield f"{name} of {row.kind}", f"{row.results} {row.glsl}"
            yield from numbers(name)


def numbers(name: str) -> Iterator[tuple[str, str]]:
    """Yield what a function of numbers gives outside of kernels."""
    function = getattr(vc, name)
    count = len(inspect.signature(function).parameters)
    given = [0.0, -0.0, 0.3, 1, -2.5, 7, 1e300, math.inf, -math.inf, math.nan]
    for values in itertools.product(given if count < 3 else [0.3, 2, -1.0], repeat=min(count, 3)):
        try:
            result = function(*values)
        except Exception as error:
            result = error
        shown = isinstance(result, (int, float, complex, tuple))
        yield f"{name}{values}", repr(result) if shown else type(result).__name__


def random_kernels() -> Iterator[tuple[str, str]]:
    for number, program in enumerate(json.load(sys.stdin)):
        source, name = program["source"], f"<program {number}>"
        linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
        namespace: dict[str, Any] = {"__name__": "__main__"}
        exec(compile(source, name, "exec"), namespace)
        kinds = [vc.Buff[getattr(vc, kind)] for kind in program["kinds"]]
        try:
            kernel = vd.shader(
                tuple(program["exec_size"]),
                tuple(program["local_size"]) if program["local_size"] else None,
                flags=vc.ShaderFlags.PYTHON_DIVISION,
                arg_type_annotations=kinds,
            )(namespace["kernel"])
        except VkDispatchError as error:
            yield name, str(error)
        else:
            yield from written(name, kernel)


def main() -> None:
    warnings.simplefilter("ignore")
    vd.shader  # noqa: B018
    # what a browser's Python lacks, or is slow to load
    heavy = {"ctypes", "multiprocessing", "subprocess", "socket", "asyncio", "concurrent", "ssl"}
    imported = {name.partition(".")[0] for name in sys.modules if name not in BEFORE}
    texts = dict(itertools.chain(decorated(), by_hand(), random_kernels(), functions()))
    facts = {"imported": sorted(imported & heavy), "threads": threading.active_count()}
    json.dump({"facts": facts, "texts": texts}, sys.stdout)


if __name__ == "__main__":
    main()
