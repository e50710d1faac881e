"""SPIR-V modules read and refused: by hand, and with words changed at random."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import vkdispatch as vd
from vkdispatch.base.compilation.compiler import compile_glsl
from vkdispatch.base.spirv import opcodes as op
from vkdispatch.base.spirv.module import read_module, text
from vkdispatch.base.spirv.reflection import rebind, reflect
from vkdispatch.base.validation import read_valid_module
from vkdispatch.codegen.abbreviations import Buff, Const, f32, u32, v4

SOURCE = """#version 450
layout(local_size_x = 8, local_size_y_id = 5) in;
layout(constant_id = 0) const int N = 4;
layout(binding = 0) readonly buffer A { float a[]; };
layout(set = 1, binding = 3) buffer O { vec4 o[]; } result;
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
CODE = np.frombuffer(compile_glsl(SOURCE, "test"), np.uint32)
ARGUMENTS = [("a", Buff[f32]), ("o", Buff[v4], (1, 3)), ("alpha", Const[f32]), ("n", Const[u32])]


def changed(seed: int) -> bytes:
    """Return the module with a few words changed."""
    choice = random.Random(seed)
    words = CODE.copy()
    for _ in range(choice.randint(1, 3)):
        at = choice.randrange(len(words))
        words[at] = choice.choice(
            [
                choice.randrange(200),
                int(words[choice.randrange(len(words))]),
                int(words[at]) ^ (1 << choice.randrange(32)),
                choice.randrange(2**32),
                choice.randrange(1, 6) << 16 | choice.randrange(300),
            ]
        )
    return words.tobytes()


def test_valid_module() -> None:
    module = read_valid_module(CODE.tobytes())
    found = reflect(module, specialization={5: 3})
    assert (found.local_size, found.local_size_ids) == ((8, 3, 1), (None, 5, None))
    assert [(r.set, r.binding, r.kind, r.readable, r.writable) for r in found.resources] == [
        (0, 0, "storage buffer", True, False),
        (1, 3, "storage buffer", True, True),
    ]
    block = found.push_constants
    assert block is not None and [member[:2] for member in block.members] == [("alpha", 0), ("n", 4)]
    assert [(c.id, c.name, c.kind) for c in found.spec_constants.values() if c.name] == [(0, "N", "int")]
    assert found.shared_bytes == 8 * (1 + 3 * 4) * 4
    moved = reflect(read_valid_module(rebind(module, {(0, 0): 1, (1, 3): 0}, found)))
    assert [(r.set, r.binding, r.name) for r in moved.resources] == [(0, 0, "result"), (0, 1, "A")]


def test_extension_instructions_are_accepted() -> None:
    code = compile_glsl(
        """#version 450
        #extension GL_EXT_shader_atomic_float : enable
        layout(local_size_x = 8) in;
        layout(binding = 0) buffer A { float a[]; };
        void main() { a[1] = atomicAdd(a[0], 1.0) * 2.0; }
        """,
        "test",
    )
    module = read_valid_module(code)
    assert max(instruction.opcode for instruction in module.instructions) == 6035  # OpAtomicFAddEXT


def test_byte_orders_and_containers() -> None:
    for code in (CODE, bytearray(CODE), memoryview(CODE.tobytes()), CODE.byteswap().tobytes()):
        assert (read_valid_module(code).words == CODE).all()


@pytest.mark.parametrize(
    ("code", "error", "text"),
    [
        ("text", TypeError, "expected the bytes"),
        (b"", ValueError, "0 bytes are no SPIR-V"),
        (bytes(21), ValueError, "21 bytes are no SPIR-V"),
        (bytes(40), ValueError, "starts with"),
        (CODE[:-1].tobytes(), ValueError, "Missing OpFunctionEnd"),
        (CODE[:-1].tobytes() + bytes(4), ValueError, "says 0 words"),
        (np.concatenate([CODE, CODE[5:7]]).tobytes()[:-4], ValueError, "says 2 words, 1 are left"),
    ],
)
def test_malformed_modules(code: object, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        read_valid_module(code)


@pytest.mark.parametrize(
    ("word", "value", "text"),
    [
        (1, 0x00010700, "SPIR-V 1.7 is newer"),
        (1, 0x00020600, "SPIR-V 2.6|no version"),
        (1, 0x00000000, "no version"),
        (3, 0, "0 identifiers"),
        (3, 1 << 30, "identifiers"),
        (3, 5, "must be less than the ID bound '5'"),
        (4, 1, "header"),
    ],
)
def test_malformed_headers(word: int, value: int, text: str) -> None:
    words = CODE.copy()
    words[word] = value
    with pytest.raises(ValueError, match=text):
        read_valid_module(words.tobytes())


def test_entry_points() -> None:
    module = read_valid_module(CODE.tobytes())
    with pytest.raises(ValueError, match="no compute entry point 'other'; it has 'main'"):
        reflect(module, "other")
    words = CODE.copy()
    entry = next(module.of(op.ENTRY_POINT))
    words[entry.at + 1] = 4  # a fragment shader
    with pytest.raises(ValueError, match="no compute entry point 'main'; it has none"):
        reflect(read_module(words.tobytes()))


@pytest.mark.parametrize(
    ("opcode", "operand", "value", "text"),
    [
        (op.FUNCTION_CALL, 2, 1, "requires a type"),
        (61, 0, 1, "is not a type id"),  # the type of a load
        (65, 2, 1, "requires a type"),  # what an access chain starts from
        (133, 0, 2, "Expected floating scalar"),  # the type of a multiplication
        (250, 1, 1, "must be the ID of an OpLabel"),  # where a branch leads
        (op.NAME, 0, 1 << 20, "have not been defined"),
    ],
)
def test_invalid_instructions_are_refused(opcode: int, operand: int, value: int, text: str) -> None:
    words = CODE.copy()
    instruction = next(read_valid_module(CODE.tobytes()).of(opcode))
    words[instruction.at + 1 + operand] = value
    with pytest.raises(ValueError, match=text):
        read_valid_module(words.tobytes())


Code = list[list[int]]


def edited(edit: Callable[[Code, dict[str, int]], object]) -> bytes:
    """Return the module with its instructions, lists of words, edited; identifiers go by name."""
    words = CODE.tolist()
    module = read_valid_module(CODE.tobytes())
    code = [words[i.at : i.at + (words[i.at] >> 16)] for i in module.instructions]
    names = {text(i.operands[1:])[0]: i.operands[0] for i in module.of(op.NAME)}
    edit(code, names)
    return np.array([*words[:5], *(word for each in code for word in each)], np.uint32).tobytes()


def find(code: Code, opcode: int, *operands: int) -> int:
    """Return the place of the first instruction that has these last operands."""
    return next(
        at
        for at, each in enumerate(code)
        if each[0] & 0xFFFF == opcode and (not operands or tuple(each[-len(operands) :]) == operands)
    )


def built_in(code: Code, number: int) -> int:
    return find(code, op.DECORATE, 11, number)


EDITS: list[tuple[str, Callable[[Code, dict[str, int]], object], str]] = [
    # the five that crashed Mesa's compiler
    ("no BuiltIn", lambda code, _: code.pop(built_in(code, 28)), "input without a BuiltIn"),
    (
        "unknown BuiltIn",
        lambda code, _: code[built_in(code, 28)].__setitem__(3, 4000),
        "Invalid built-in operand: 4000",
    ),
    (
        "BuiltIn of another type",
        lambda code, _: code[built_in(code, 28)].__setitem__(3, 36),
        "requires one of these capabilities",
    ),
    (
        "BuiltIn twice",
        lambda code, names: code[built_in(code, 29)].__setitem__(3, 28),
        "duplicate input variables",
    ),
    (
        "BuiltIn of no input",
        lambda code, names: code[built_in(code, 28)].__setitem__(1, names["main"]),
        "BuiltIns can only target variables",
    ),
    (
        "no block",
        lambda code, names: code.pop(find(code, op.DECORATE, names["P"], 2)),
        "missing Block decoration",
    ),
    (
        "no offset",
        lambda code, names: code.pop(find(code, op.MEMBER_DECORATE, names["P"], 1, 35, 4)),
        "explicitly laid out with Offset",
    ),
    (
        "a far offset",
        lambda code, names: code[find(code, op.MEMBER_DECORATE, names["P"], 1, 35, 4)].__setitem__(
            4, 0xFFFFFFFF
        ),
        "explicitly laid out with Offset",
    ),
    (
        "a member too many",
        lambda code, names: code[find(code, op.MEMBER_DECORATE, names["P"], 1, 35, 4)].__setitem__(2, 9),
        "is out of bounds",
    ),
    ("a short product", lambda code, _: shorten(code[find(code, 133)]), "expected more operands"),
    ("a short load", lambda code, _: shorten(code[find(code, 61)]), "expected more operands"),
    (
        "a strange instruction",
        lambda code, _: code[find(code, 133)].__setitem__(0, 5 << 16 | 303),
        "Invalid instruction OpGetDefaultQueue",
    ),
    (
        "a constant in a function",
        lambda code, _: code.insert(find(code, 254), code[find(code, op.CONSTANT)]),
        "defined more than once",
    ),
    ("used before it is defined", lambda code, _: use_early(code), "has not been defined"),
    (
        "a merge that no branch follows",
        lambda code, _: code.insert(find(code, 247) + 1, [1 << 16]),
        "must immediately precede",
    ),
    (
        "two merges into one block",
        lambda code, _: merge_twice(code),
        "already a merge block for another header",
    ),
    ("an index beyond the end", lambda code, _: beyond(code), "beyond the end"),
]


def shorten(instruction: list[int]) -> None:
    instruction.pop()
    instruction[0] -= 1 << 16


def use_early(code: Code) -> None:
    """Exchange a load and the instruction after it that uses what is loaded."""
    at = next(at for at, each in enumerate(code) if each[0] & 0xFFFF == 61 and each[2] in code[at + 1][1:])
    code[at], code[at + 1] = code[at + 1], code[at]


def merge_twice(code: Code) -> None:
    first, second = [each for each in code if each[0] & 0xFFFF == 247][-2:]
    second[1] = first[1]


def beyond(code: Code) -> None:
    """Have `pairs[3]` be `pairs[16]`, of eight."""
    three, sixteen = (
        {each[2] for each in code if each[0] & 0xFFFF == op.CONSTANT and each[3] == value}
        for value in (3, 16)
    )
    chain = next(each for each in code if each[0] & 0xFFFF == 65 and three & {each[4]})
    chain[4] = sixteen.pop()


@pytest.mark.parametrize(("edit", "text"), [each[1:] for each in EDITS], ids=[each[0] for each in EDITS])
def test_modules_that_crash_drivers_are_refused(
    edit: Callable[[Code, dict[str, int]], object], text: str
) -> None:
    with pytest.raises(ValueError, match=text):
        read_valid_module(edited(edit))


CALLS = """#version 450
layout(binding = 0) buffer A {{ float a[]; }};
float f0(float x) {{ return x; }}
{functions}
void main() {{ a[0] = f{count}(a[1]); }}
"""


def calling(count: int) -> str:
    """Return GLSL with functions that each call the one before twice."""
    lines = [f"float f{i}(float x) {{ return f{i - 1}(x) + f{i - 1}(x); }}" for i in range(1, count + 1)]
    return CALLS.format(functions="\n".join(lines), count=count)


def nested(depth: int) -> str:
    """Return GLSL with structures in each other."""
    lines = [f"struct S{i} {{ S{i - 1} s; }};" for i in range(1, depth)]
    structures = "\n".join(["#version 450", "struct S0 { float s; };", *lines])
    return (
        f"{structures}\nlayout(binding = 0) buffer A {{ S{depth - 1} a[]; }};\nvoid main() {{ a[0] = a[1]; }}"
    )


def test_recursive_functions_are_refused() -> None:
    words = np.frombuffer(compile_glsl(calling(2), "test"), np.uint32).copy()
    module = read_valid_module(words.tobytes())
    names = {text(i.operands[1:])[0]: i.operands[0] for i in module.of(op.NAME)}
    inner = next(i for i in module.of(op.FUNCTION_CALL) if i.operands[2] == names["f0(f1;"])
    words[inner.at + 3] = names["f2(f1;"]
    with pytest.raises(ValueError, match="call graph with cycles"):
        read_valid_module(words.tobytes())


@pytest.mark.parametrize(
    ("source", "text"),
    [(calling(40), "a function of .* instructions, with its calls"), (nested(300), "nested 256 deep")],
    ids=["calls", "structures"],
)
def test_small_modules_that_become_large(source: str, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        read_valid_module(compile_glsl(source, "test"))


def test_random_modules_are_read_or_refused() -> None:
    read = 0
    for seed in range(1500):
        try:
            module = read_valid_module(changed(seed))
            reflect(module)
            read += 1
        except ValueError:
            continue
    assert 0 < read < 1500


def test_all_rules_are_checked() -> None:
    words = CODE.copy()
    capability = next(read_valid_module(CODE.tobytes()).of(op.CAPABILITY))
    words[capability.at + 1] = 6  # of OpenCL kernels
    with pytest.raises(ValueError, match="main: spirv: invalid SPIR-V: "):
        vd.spirv_kernel(words.tobytes(), ARGUMENTS)


def test_drivers_accept_modules_that_pass(
    tmp_path: Path, run_python: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    if not vd.get_context().device_infos[0].is_cpu():
        pytest.skip("what other drivers make of nonsense is not known")
    if vd.get_context().device_infos[0].device_name.startswith("SwiftShader"):
        pytest.skip("SwiftShader goes on after its parser refuses a module, and ends the process")
    for seed in range(1000):
        code = changed(seed)
        try:
            module = read_valid_module(code)
            reflect(module)
        except ValueError:
            continue
        (tmp_path / f"{seed}.spv").write_bytes(code)
    assert len(list(tmp_path.iterdir())) > 20
    done = run_python(
        "import vkdispatch as vd\nfrom pathlib import Path\nfrom vkdispatch.codegen.abbreviations import *\n"
        "arguments = [('a', Buff[f32]), ('o', Buff[v4], (1, 3)), ('alpha', Const[f32]), ('n', Const[u32])]\n"
        f"for file in sorted(Path({str(tmp_path)!r}).iterdir()):\n"
        "    print(file.name, flush=True)\n"
        "    try: vd.spirv_kernel(file.read_bytes(), arguments).build()\n"
        "    except (ValueError, NotImplementedError, vd.ShaderBuildError): pass\n"
        "print('survived')",
        PATH="/nonexistent",
        VKDISPATCH_DEBUG="0",
    )
    assert done.stdout.split()[-1:] == ["survived"], (done.returncode, done.stdout[-20:], done.stderr[-2000:])
