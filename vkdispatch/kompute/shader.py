"""The compiler as Kompute 0.7 has it."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from vkdispatch.base.compilation import compiler
from vkdispatch.base.compilation.includes import Preprocessing
from vkdispatch.base.errors import ArgumentTypeError
from vkdispatch.kompute.arguments import require_iterable
from vkdispatch.kompute.errors import KomputeError

_NAME = re.compile(r"[A-Za-z_]\w*")
_MACRO = re.compile(r"[A-Za-z_]\w*(\([\w, ]*\))?")


class Shader:
    """GLSL to SPIR-V, as in Kompute 0.7. `kp.compile_glsl` does the same for text alone."""

    __slots__ = ()

    @staticmethod
    def compile_source(
        source: str,
        entry_point: str = "main",
        definitions: Iterable[tuple[str, str]] = (),
        **older: Any,
    ) -> bytes:
        """Compile a GLSL compute shader, in this process and without a device.

        Parameters
        ----------
        source
            GLSL for Vulkan.
        entry_point
            The function that runs; 0.7 calls this `entryPoint`. The module's entry point is "main" whatever
            it is called here, as `kp.Manager.algorithm` expects.
        definitions
            Macros: pairs of a name and its text.

        Returns
        -------
        The SPIR-V module.

        Raises
        ------
        TypeError
            An argument is of the wrong type.
        RuntimeError
            The source does not compile, with the compiler's whole log; or a name is none.
        """
        return Shader.compile_sources([source], (), entry_point, definitions, **older)

    @staticmethod
    def compile_sources(
        sources: Sequence[str],
        files: Sequence[str] = (),
        entry_point: str = "main",
        definitions: Iterable[tuple[str, str]] = (),
        **older: Any,
    ) -> bytes:
        """Compile texts that make one GLSL compute shader, in order.

        Parameters
        ----------
        sources
            The texts. `#version` belongs to the first one. Messages number the texts from 0.
        files
            Their names, for messages: as many, or none.
        entry_point, definitions
            As of `compile_source`, which this returns and raises as.
        """
        unknown = sorted({*older} - {"entryPoint"})
        if unknown:
            raise ArgumentTypeError(f"compile_source has no argument {unknown[0]!r}")
        texts = _parse_texts("sources", sources)
        names = _parse_texts("files", files)
        if not texts or len(names) not in (0, len(texts)):
            raise KomputeError(f"files: {len(names)} names for {len(texts)} sources")
        chosen = older.get("entryPoint", entry_point)
        if not isinstance(chosen, str):
            raise ArgumentTypeError(f"entry_point: expected the name of a function, got {chosen!r}")
        if not _NAME.fullmatch(chosen):
            raise KomputeError(f"entry_point: expected the name of a function, got {chosen!r}")
        macros = _parse_macros(definitions)
        joined = texts[0]
        for number, text in enumerate(texts[1:], 1):
            joined += f"\n#line 1 {number}\n{text}"
        if chosen != "main":  # the two change names, so that either may be there
            other = {"main": f"main_beside_{chosen}", chosen: "main"}
            joined, macros = (
                re.sub(rf"\b(?:main|{chosen})\b", lambda found: other[found[0]], text)
                for text in (joined, macros)
            )
        preprocessing = Preprocessing(macros, (), {}) if macros else None
        return compiler.compile_glsl(joined, ", ".join(names) or "shader", preprocessing=preprocessing)


def _parse_texts(argument: str, given: object) -> list[str]:
    texts = list(require_iterable(argument, given, "a list of texts"))
    for text in texts:
        if not isinstance(text, str):
            raise ArgumentTypeError(f"{argument}: expected texts, got {type(text).__name__}")
    return texts


def _parse_macros(given: object) -> str:
    """Return the lines that define macros. Raises TypeError and RuntimeError where one is none."""
    lines = ""
    for pair in require_iterable("definitions", given, "pairs of a name and a text"):
        if not isinstance(pair, (tuple, list)) or len(pair) != 2 or not all(isinstance(x, str) for x in pair):
            raise ArgumentTypeError(f"definitions: expected pairs of a name and a text, got {pair!r}")
        name, text = pair
        if not _MACRO.fullmatch(name) or "\n" in text:
            raise KomputeError(f"definitions: expected the name of a macro and a line of text, got {pair!r}")
        lines += f"#define {name} {text}\n"
    return lines
