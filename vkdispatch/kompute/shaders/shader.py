"""The shader compiler of Kompute 0.7."""

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
    """GLSL to SPIR-V, as in Kompute 0.7. `kp.compile_glsl` does the same without options."""

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
            The function that runs. Kompute 0.7 names this argument `entryPoint`. The module's entry point is
            always "main", as `kp.Manager.algorithm` expects.
        definitions
            Macros, as pairs of a name and a replacement text.

        Returns
        -------
        The SPIR-V module.

        Raises
        ------
        TypeError
            An argument has the wrong type.
        RuntimeError
            The source does not compile (the message has the compiler's log), or a name is invalid.
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
        """Compile several texts as one GLSL compute shader.

        Parameters
        ----------
        sources
            The texts, in order. `#version` belongs in the first one. Messages number the texts from 0.
        files
            The names of the texts in messages, or empty.
        entry_point, definitions
            As of `compile_source`. The result and the errors are the same too.
        """
        unknown = sorted({*older} - {"entryPoint"})
        if unknown:
            raise ArgumentTypeError(f"compile_source has no argument {unknown[0]!r}")
        texts = _parse_texts("sources", sources)
        names = _parse_texts("files", files)
        if not texts or len(names) not in (0, len(texts)):
            raise KomputeError(f"files: {len(names)} names for {len(texts)} sources")
        name = older.get("entryPoint", entry_point)
        if not isinstance(name, str):
            raise ArgumentTypeError(f"entry_point: expected the name of a function, got {name!r}")
        if not _NAME.fullmatch(name):
            raise KomputeError(f"entry_point: expected the name of a function, got {name!r}")
        macros = _parse_macros(definitions)
        joined = texts[0]
        for number, text in enumerate(texts[1:], 1):
            joined += f"\n#line 1 {number}\n{text}"
        if name != "main":  # swap the two names: the text may contain a `main` too
            renamed = {"main": f"main_beside_{name}", name: "main"}
            joined, macros = (
                re.sub(rf"\b(?:main|{name})\b", lambda match: renamed[match[0]], text)
                for text in (joined, macros)
            )
        preprocessing = Preprocessing(macros, (), {}) if macros else None
        return compiler.compile_glsl(joined, ", ".join(names) or "shader", preprocessing=preprocessing)


def _parse_texts(argument: str, value: object) -> list[str]:
    texts = list(require_iterable(argument, value, "a list of texts"))
    for text in texts:
        if not isinstance(text, str):
            raise ArgumentTypeError(f"{argument}: expected texts, got {type(text).__name__}")
    return texts


def _parse_macros(value: object) -> str:
    """Return the lines that define macros. Raises TypeError or RuntimeError for invalid definitions."""
    lines = ""
    for pair in require_iterable("definitions", value, "pairs of a name and a text"):
        if not isinstance(pair, (tuple, list)) or len(pair) != 2 or not all(isinstance(x, str) for x in pair):
            raise ArgumentTypeError(f"definitions: expected pairs of a name and a text, got {pair!r}")
        name, text = pair
        if not _MACRO.fullmatch(name) or "\n" in text:
            raise KomputeError(f"definitions: expected the name of a macro and a line of text, got {pair!r}")
        lines += f"#define {name} {text}\n"
    return lines
