"""GLSL broken at random, compiled: `python -m tests.fuzz.glsl_sources --count 10000`.

A mutant may be refused. One that compiles goes through our checks of SPIR-V, and is compiled down to the
device's own code; it is not run.
"""

from __future__ import annotations

import random
import re

import vkdispatch as vd
import vkdispatch_native as native
from vkdispatch.base.compute_plan import ComputePlan, check_features
from vkdispatch.base.errors import VkDispatchError
from vkdispatch.base.spirv.reflection import reflect
from vkdispatch.base.validation import read_valid_module

from .driving import main
from .spirv_modules import SOURCES, compile_for_device, kinds_of, push_size

_TOKEN = re.compile(r"\w+|\s+|[^\w\s]")
_KINDS = (
    ("number", r"\d"),
    ("type", r"([iub]?vec|mat)\d|float|int|uint|bool|double"),
    ("word", r"\w"),
    ("space", r"\s"),
    ("operator", r"[-+*/%<>&|^]"),
    ("other", r""),
)
_WORDS = (
    *(
        "0",
        "1u",
        "-1",
        "1e39",
        "0x7fffffff",
        "4294967296",
        "1.0lf",
        "0.0/0.0",
        "vec4",
        "ivec2",
        "mat3x2",
        "bool",
    ),
    *(
        "float[]",
        "int[0]",
        "shared",
        "buffer",
        "const",
        "inout",
        "return",
        "break",
        "discard",
        "if (",
        "for (;;)",
    ),
    *(
        "struct S { S s; };",
        "#define f f f",
        "#if 1",
        "#endif",
        "#extension all : warn",
        "#version 100",
        "{",
        "}",
    ),
    *(
        "[-1]",
        ".xyzw",
        ".length()",
        "barrier();",
        "atomicAdd",
        "gl_WorkGroupSize",
        "gl_Position",
        "main",
        "()",
    ),
    *(
        "layout(binding = 99)",
        "layout(local_size_x = 0) in;",
        "layout(constant_id = 0)",
        "precision",
        "??(",
        "\\\n",
    ),
    *("uint64_t", "float16_t", "dvec4", "sampler2D", "image2D", "subroutine", "/*", "//", "\0", "é", '"'),
)


def mutant(seed: int) -> str:
    """Return a source with a few things changed."""
    choice = random.Random(seed)
    tokens = _TOKEN.findall(choice.choice(SOURCES))
    for _ in range(choice.choice((1, 1, 1, 2, 3, 6))):
        at = choice.randrange(len(tokens))
        match choice.randrange(14):
            case 0:
                del tokens[at : at + choice.choice((1, 1, 2, 5, 20))]
            case 1:
                tokens[at] = choice.choice(_WORDS)
            case 2:
                tokens.insert(at, choice.choice(_WORDS))
            case 3 | 4:
                tokens[at] = choice.choice(tokens)
            case 5:
                other = choice.randrange(len(tokens))
                tokens[at], tokens[other] = tokens[other], tokens[at]
            case 6:
                end = at + choice.choice((2, 10, 50))
                tokens[at:at] = tokens[at:end]
            case 7:
                text = tokens[at]
                place = choice.randrange(len(text))
                tokens[at] = (
                    text[:place] + chr(ord(text[place]) ^ 1 << choice.randrange(7)) + text[place + 1 :]
                )
            case 8:
                count = choice.choice((3, 30, 300))
                first, second = choice.choice((("(", ")"), ("{", "}"), ("[", "]"), ("-", ""), ("vec2(", ")")))
                tokens[at] = first * count + tokens[at] + second * count
            case _:
                of_the_kind = [token for token in tokens if _kind(token) == _kind(tokens[at])]
                tokens[at] = choice.choice(of_the_kind)
        tokens = tokens or ["main"]
    return "".join(tokens)


def _kind(token: str) -> str:
    """Return what a token is exchanged for without an error of syntax: mostly."""
    return next(name for name, pattern in _KINDS if re.match(pattern, token))


def attempt(seed: int) -> str:
    """Compile a mutant as for a user who hands it in, for the device at last."""
    try:
        code = native.compile_glsl(mutant(seed))
    except ValueError:
        return "refused"
    try:
        module = read_valid_module(code)
        interface = reflect(module)
        check_features("mutant", interface, vd.get_context())
        plan = ComputePlan("", kinds_of(interface), push_size(interface), "mutant", spirv=code)
        compile_for_device(plan)
    except (VkDispatchError, ValueError) as error:
        return "compiled, and refused" + ("" if "malformed" not in str(error) else f": {error}")
    return "taken"


if __name__ == "__main__":
    main("tests.fuzz.glsl_sources", "Breaks GLSL at random and compiles it.", attempt, mutant)
