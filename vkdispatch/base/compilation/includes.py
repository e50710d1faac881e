"""The includes and macros of a GLSL source: the input of the preprocessor."""

import os
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, ShaderBuildError
from vkdispatch.base.record import record

# Included texts by name, or a folder of files.
Shelf = Mapping[str, str] | Path
_Found = tuple[int, str]  # number of the shelf, name there

_MAX_INCLUDED = 64 << 20  # bytes, of all files
# Matches more than the directives that the compiler accepts, with comments: the compiler decides. The limits
# bound the time that untrusted sources can take.
_MENTION = re.compile(
    r"""include(?>\s|\\\r?\n|/\*[^*\n]{0,80}\*/)*+(?:"([^"\n]{1,255})"|<([^>\n]{1,255})>)"""
)
_FAILURE = re.compile(
    r"^ERROR: (?P<file>.*?):(?P<line>\d+): '#include' : (?P<why>.*) for header name: (?P<name>.*)$", re.M
)
_ERROR = re.compile(r"^ERROR: (?P<file>.*?):\d+: .*$", re.M)
_TOO_DEEP = "files that include each other"
_MACRO = re.compile(r"(?!GL_|defined$)(?!.*__)[A-Za-z_]\w*", re.ASCII)


@record
class Preprocessing:
    """The input of the preprocessor besides the source.

    Attributes
    ----------
    preamble
        GLSL to insert after the `#version`.
    includes
        For each directive: the file that contains it ("" for the source), the included name, whether it is in
        quotes, and a name in `texts`, or else the reason why there is none.
    texts
        The included texts, by their names in messages.
    """

    preamble: str
    includes: tuple[tuple[str, str, bool, str], ...]
    texts: Mapping[str, str]

    @property
    def key(self) -> str:
        """A key for caches, which differs if the result may differ."""
        return repr((self.preamble, self.includes, sorted(self.texts.items())))

    @property
    def options(self) -> dict[str, Any]:
        """The arguments of the compiler."""
        return {"preamble": self.preamble, "includes": self.includes, "texts": dict(self.texts)}

    def explain(self, log: str) -> str:
        """Return a compiler's log in readable form: if an include is missing, only that."""
        failure = _FAILURE.search(log)
        if failure is not None and _TOO_DEEP not in failure["why"]:
            where = f"line {failure['line']} of " + (
                "the source" if failure["file"] == "0" else failure["file"]
            )
            return f"ERROR: {where}: #include {failure['name']!r}: {failure['why']}"
        error = _ERROR.search(log)
        cycle = next(filter(None, map(self._find_cycle, self.texts)), None)
        if error is None or cycle is None or (failure is None and error["file"] not in cycle):
            return log
        # The messages about reading such a file a second time are not useful.
        steps = ", which includes ".join([*cycle, cycle[0]])
        place = self._locate(cycle[-1], cycle[0])
        why = f"files that include each other: {steps}; put #ifndef NAME, #define NAME and #endif around each"
        return f"ERROR: {place}: {why}" + ("" if failure is not None else f"\n{error[0]}")

    def _find_cycle(self, file: str) -> list[str] | None:
        """Return the chain of files by which a file includes itself, or None."""
        links: dict[str, list[str]] = {}
        for place, _, _, target in self.includes:
            links.setdefault(place, []).append(target)
        paths = [[file]]
        seen: set[str] = set()
        for path in paths:
            for target in links.get(path[-1], ()):
                if target == file:
                    return path
                if target not in seen:
                    seen.add(target)
                    paths.append([*path, target])
        return None

    def _locate(self, file: str, target: str) -> str:
        """Return where a file includes another, such as "line 3 of a.glsl"."""
        written = {name for place, name, _, found in self.includes if place == file and found == target}
        for number, line in enumerate(self.texts[file].splitlines(), 1):
            found = _MENTION.search(line)
            if found and (found[1] or found[2]) in written:
                return f"line {number} of {file}"
        return file


def resolve_includes(
    name: str, source: str, include: object = None, defines: object = None, *, confined: bool = False
) -> Preprocessing | None:
    """Find the texts that a source includes. Return None if it has neither includes nor macros.

    Parameters
    ----------
    name
        The name of the source in messages.
    include
        Texts by name, a folder, or a list of these, which are searched in order. The includes of an included
        file are searched for in its own folder first.
    defines
        Values of macros by name: numbers, text, True and False as 1 and 0, or None for nothing.
    confined
        Whether to refuse files outside of the folders.

    Raises
    ------
    TypeError, ValueError
        `include` or `defines` has an invalid type or value.
    ShaderBuildError
        The included texts are too large.
    """
    shelves = _parse_include(include)
    preamble = _write_preamble(defines)
    if _MENTION.search(source) is None:
        return Preprocessing(preamble, (), {}) if preamble else None
    reader = _Reader(name, source, shelves, confined)
    extension = "#extension GL_GOOGLE_include_directive : enable\n"
    return Preprocessing(extension + preamble, tuple(reader.includes), reader.texts)


class _Reader:
    """Reads a source and everything that it includes, each text once."""

    def __init__(self, name: str, source: str, shelves: Sequence[Shelf], confined: bool) -> None:
        self.name = name
        self.source = source
        self.shelves = shelves
        self.confined = confined
        self.includes: list[tuple[str, str, bool, str]] = []
        self.texts: dict[str, str] = {}
        self.labels: dict[_Found, str] = {}
        self.size = 0
        waiting: list[tuple[str, str, _Found | None]] = [("", source, None)]
        while waiting:
            label, text, place = waiting.pop()
            mentions = {(quoted or angled, bool(quoted)) for quoted, angled in _MENTION.findall(text)}
            for written, is_quoted in sorted(mentions):
                target = self._resolve(written, is_quoted, place, waiting)
                self.includes.append((label, written, is_quoted, target))

    def _resolve(
        self, written: str, quoted: bool, place: _Found | None, waiting: list[tuple[str, str, _Found | None]]
    ) -> str:
        """Return the name in `texts` of the text that a directive includes, or what is wrong."""
        why = ""
        for candidate in self._list_candidates(written, quoted, place):
            if candidate in self.labels:
                return self.labels[candidate]
            try:
                text = _read(self.shelves[candidate[0]], candidate[1], self.confined)
            except (OSError, UnicodeDecodeError, ValueError) as error:
                why = f"{self._make_label(candidate)} cannot be read: {error}"
                break
            if text is not None:
                self.size += len(text)
                if self.size > _MAX_INCLUDED:
                    raise ShaderBuildError(
                        f"the GLSL of {self.name!r} includes more than {_MAX_INCLUDED >> 20} MiB",
                        shader_source=self.source,
                    )
                label = self.labels[candidate] = self._make_label(candidate)
                self.texts[label] = text if text.endswith("\n") else text + "\n"
                waiting.append((label, text, candidate))
                return label
        why = why or f"there is no such file; {self._describe_search()}"
        return why if why not in self.texts else f"{why}."

    def _list_candidates(self, written: str, quoted: bool, place: _Found | None) -> Iterator[_Found]:
        if quoted and place is not None:
            yield place[0], posixpath.normpath(posixpath.join(posixpath.dirname(place[1]), written))
        for number in range(len(self.shelves)):
            yield number, posixpath.normpath(written)

    def _make_label(self, candidate: _Found) -> str:
        shelf = self.shelves[candidate[0]]
        label = candidate[1] if isinstance(shelf, Mapping) else str(shelf / candidate[1])
        label = "".join(
            character if character.isprintable() and character not in '"' else "?" for character in label
        )
        while label in self.texts:  # of another shelf
            label += f" (include[{candidate[0]}])"
        return label

    def _describe_search(self) -> str:
        if not self.shelves:
            return "pass its text or its folder as include="
        return "searched " + " and ".join(map(_describe_shelf, self.shelves))


def _describe_shelf(shelf: Shelf) -> str:
    if isinstance(shelf, Path):
        return f"the folder {str(shelf)!r}"
    names = ", ".join(map(repr, list(shelf)[:8])) + (", ..." if len(shelf) > 8 else "")
    return f"the texts {names or '(none)'}"


def _read(shelf: Shelf, name: str, confined: bool) -> str | None:
    """Return a text from a shelf, or None if it has no such text."""
    if isinstance(shelf, Mapping):
        return shelf.get(name)
    path = shelf / name
    if not path.is_file():
        return None
    # resolved, as links may lead outside as well as ".."
    if confined and not path.resolve().is_relative_to(shelf.resolve()):
        return None
    if path.stat().st_size > _MAX_INCLUDED:
        raise ValueError(f"it has more than {_MAX_INCLUDED >> 20} MiB")
    return path.read_text(encoding="utf-8")


def _parse_include(include: object) -> list[Shelf]:
    given: Sequence[Any] = include if isinstance(include, (list, tuple)) else [include]
    return [_parse_shelf(shelf) for shelf in given if shelf is not None]


def _parse_shelf(given: object) -> Shelf:
    if isinstance(given, Mapping):
        texts = {}
        for name, text in given.items():
            if not isinstance(name, str) or not name or not name.isprintable() or '"' in name:
                raise ArgumentValueError(f"include: expected the name of a file, got {name!r}")
            if not isinstance(text, str):
                raise ArgumentTypeError(f"include: {name!r}: expected GLSL text, got {type(text).__name__}")
            texts[posixpath.normpath(name)] = text
        return texts
    if isinstance(given, (str, os.PathLike)):
        folder = Path(given)
        if not folder.is_dir():
            raise ArgumentValueError(
                f"include: there is no folder {str(given)!r}; pass texts by name, as in {{'a.glsl': '...'}}"
            )
        return folder
    raise ArgumentTypeError(
        f"include: expected texts by name, a folder, or a list of these, got {type(given).__name__} {given!r}"
    )


def _write_preamble(defines: object) -> str:
    if defines is None:
        return ""
    if not isinstance(defines, Mapping):
        raise ArgumentTypeError(f"defines: expected a dictionary of macros, got {defines!r}")
    lines = []
    for name, value in defines.items():
        if not isinstance(name, str) or _MACRO.fullmatch(name) is None:
            raise ArgumentValueError(f"defines: {name!r} cannot be the name of a macro")
        lines.append(f"#define {name} {_write_macro_value(name, value)}".rstrip() + "\n")
    return "".join(lines)


def _write_macro_value(name: str, value: object) -> str:
    if value is None:
        return ""
    if hasattr(value, "item") and getattr(value, "ndim", 0) == 0:  # of NumPy
        value = value.item()
    if isinstance(value, (bool, int)):
        return str(int(value))
    if isinstance(value, float) and value - value == 0:
        return repr(value)
    if isinstance(value, str) and "\n" not in value and "\r" not in value and not value.endswith("\\"):
        return value
    raise ArgumentValueError(
        f"defines: {name}: expected a finite number, one line of text, True, False or None, got {value!r}"
    )
