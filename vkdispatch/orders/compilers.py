"""Compilers: where they are, which version, and how they are run."""

import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence

from vkdispatch.base.record import record
from vkdispatch.orders import storage
from vkdispatch.orders.vendors import VENDORS

TIMEOUT_S = 600
"""Seconds that a compiler may take for one order."""

_VERSION_TIMEOUT_S = 60

# In the order of looking: Cray's Fortran is its own, its C++ is clang.
_FAMILIES_OF_OPTIONS = (
    ("nvcc", "Cuda compilation tools"),
    ("nvhpc", "NVIDIA Compilers"),
    ("nvhpc", "PGI Compilers"),
    ("cray", "Cray Fortran"),
    ("ibm", "IBM XL Fortran"),
    ("hip", "HIP version"),
    ("intel", "Intel"),
    ("clang", "clang"),
    ("flang", "flang"),
    ("gnu", "Free Software Foundation"),
)

_FAMILIES = {"-fopenmp": "omp", "-fopenacc": "acc"}
# Without these loops compute the same.
_HARMLESS = "tile|unroll|assumes?|nothing"
# What it says of the directive depends on the language of its messages; the lines below show it.
_IGNORED = {
    family: re.compile(
        rf"^.*#\s*pragma {family} (?!(?:{_HARMLESS})\b).*\[-Wunknown-pragmas\]\n?(?:^ .*\n?)*", re.MULTILINE
    )
    for family in _FAMILIES.values()
}
_AROUND = (
    "\nNo line of the order is said to be wrong. Is a bracket, a block or a quote of the body not closed, or "
    "closed twice? Has the language, or its library, the name of an argument?"
)


class BuildFailure(Exception):
    """A section cannot be built; the message says why. What users see of it is an `OrderBuildError`."""


class CompileFailure(BuildFailure):
    """A compiler does not take the text of a section."""


@record
class Compiler:
    """A compiler of this machine.

    Attributes
    ----------
    path
        The program.
    words
        What the user wrote after its name.
    vendor
        Whose options it takes: "gnu", "clang", "flang", "nvhpc", "intel", "cray", "ibm", "nvcc", "hip", or
        "" for others.
    version
        What it says of itself.
    """

    path: str
    words: tuple[str, ...]
    vendor: str
    version: str

    @property
    def title(self) -> str:
        """The name and the first line of the version."""
        lines = [line.strip() for line in self.version.splitlines() if line.strip()]
        if self.vendor == "nvcc":
            lines = [line for line in lines if line.startswith("Cuda compilation tools")] or lines
        name, said = os.path.basename(self.path), lines[0] if lines else "no version"
        return said if said.startswith(name) else f"{name} ({said})"


@record
class Source:
    """What a compiler is given.

    Attributes
    ----------
    text
        The text.
    suffix
        That of its file, which says which language it is.
    label
        What messages call the order.
    order
        Its text.
    """

    text: str
    suffix: str
    label: str
    order: str


@record
class Search:
    """How the compilers of a model are looked for.

    Attributes
    ----------
    variable
        The environment variable that names one.
    names
        Programs on PATH, the best first.
    folders
        Where else they may be; environment variables among them are filled in.
    package
        What to install, for the message where there is none.
    language
        What they compile: "cpp", "fortran", "cuda" or "hip"; vendors have compilers of some.
    """

    variable: str
    names: tuple[str, ...]
    folders: tuple[str, ...] = ()
    package: str = ""
    language: str = "cpp"


def find_compilers(search: Search, given: Sequence[str] | None) -> Iterator[Compiler]:
    """Yield compilers of this machine: those of the commands given, or else those that the search finds.

    A command begins with a program, or with the name of a vendor: then each of its compilers for the language
    is meant.

    Raises
    ------
    BuildFailure
        There is none: it names what was looked for.
    """
    commands = [shlex.split(command) for command in given or ()]
    if given is None:
        chosen = os.environ.get(search.variable, "")
        commands = [shlex.split(chosen), *([name] for name in search.names)]
    seen: set[tuple[str, ...]] = set()
    missing, refused = [], []
    for words in commands:
        if not words:
            continue
        # accelpy has this word stand for its own options, which are there in any case
        options = tuple(word for word in words[1:] if word != "{default}")
        vendor = VENDORS.get(words[0]) if given is not None else None
        names = (words[0],) if vendor is None else vendor.programs.get(search.language, ())
        if not names:
            refused.append(f"compile: {words[0]} has no compiler for {_LANGUAGES[search.language]}")
        for name in names:
            path = _find_program(name, search.folders)
            if path is None:
                missing.append(name)
                continue
            compiler = _make_compiler(path, options)
            if vendor is not None and not any(mark in compiler.version for mark in vendor.marks):
                refused.append(f"compile: {compiler.title} is no compiler of {words[0]}")
            elif (os.path.realpath(path), *options) not in seen:
                seen.add((os.path.realpath(path), *options))
                yield compiler
    if not seen:
        looked = ", ".join(missing)
        if given is None:
            raise BuildFailure(
                f"no compiler found: looked for {looked} on PATH and for {search.variable}; {search.package} "
                f"has one, and compile= names one"
            )
        if missing:
            refused.append(f"compile: there is no program {looked} here")
        raise BuildFailure("\n".join(refused))


def find_version(path: str) -> str:
    """Return what a compiler says of its version; empty where it says nothing."""
    try:
        status = os.stat(path)
    except OSError:
        return ""
    key = f"version\n{os.path.realpath(path)}\n{status.st_mtime_ns}\n{status.st_size}"
    known = _versions.get(key)
    if known is None:
        kept = storage.load(key)
        known = kept.decode(errors="replace") if kept else _ask_version(path)
        if known and not kept:
            storage.store(key, known.encode())
        _versions[key] = known
    return known


def compile_library(compiler: Compiler, options: Sequence[str], source: Source) -> bytes:
    """Compile a source text to a shared library, and return that.

    Raises
    ------
    BuildFailure
        It does not compile: what the compiler said. CompileFailure, if that is due to the text. So if the
        compiler ignores a directive of the model that it compiles for, which would give wrong numbers.
    """
    with tempfile.TemporaryDirectory(prefix="vkdispatch-order-") as folder:
        name = f"accelpy{source.suffix}"
        for path, text in ((name, source.text), (source.label, source.order)):
            # Where the order has no file, messages find its lines in this one.
            if not os.path.isabs(path):
                _write(os.path.join(folder, path), text)
        command = make_command(compiler, options, source.suffix)
        try:
            done = run_program(command, TIMEOUT_S, folder)
        except subprocess.TimeoutExpired:
            raise BuildFailure(f"{compiler.title}: no result after {TIMEOUT_S} s") from None
        except OSError as error:
            raise BuildFailure(f"{compiler.title}: it cannot be run ({error})") from None
        said = done.stderr.strip() or done.stdout.strip() or f"exit status {done.returncode}"
        if done.returncode:
            placed = re.search(rf"^{re.escape(source.label)}:\d+", said, re.MULTILINE)
            raise CompileFailure(f"{compiler.title}:\n{_shorten(said)}{'' if placed else _AROUND}")
        for option, family in _FAMILIES.items():
            ignored = _IGNORED[family].findall(said) if option in options else None
            if ignored:
                raise CompileFailure(f"{compiler.title}:\n{_shorten(''.join(ignored).strip())}")
        try:
            with open(os.path.join(folder, "accelpy.so"), "rb") as library:
                return library.read()
        except OSError:
            raise BuildFailure(f"{compiler.title}: it made no library of {shlex.join(command)}") from None


def run_program(
    command: Sequence[str], timeout: float, folder: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a program without input, and return its output as text.

    Parameters
    ----------
    timeout
        Seconds.
    folder
        The working directory. None: the current one.

    Raises
    ------
    OSError, subprocess.TimeoutExpired
        The program cannot be run, or takes too long.
    """
    return subprocess.run(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=timeout,
        check=False,
    )


def make_command(compiler: Compiler, options: Sequence[str], suffix: str) -> list[str]:
    """Return the command that makes a library of a source file, in the folder of that file."""
    return [compiler.path, *options, f"accelpy{suffix}", *compiler.words, "-o", "accelpy.so"]


_LANGUAGES = {"cpp": "C++", "fortran": "Fortran", "cuda": "CUDA", "hip": "HIP"}
_versions: dict[str, str] = {}


def _make_compiler(path: str, options: tuple[str, ...]) -> Compiler:
    version = find_version(path)
    return Compiler(path, options, _find_vendor(version), version)


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(text)


def _find_program(name: str, folders: Sequence[str]) -> str | None:
    found = shutil.which(os.path.expanduser(name))
    for folder in folders if found is None else ():
        filled = os.path.expandvars(folder)
        if "$" not in filled and found is None:
            found = shutil.which(name, path=filled)
    # Compilers run in a folder of their own.
    return os.path.abspath(found) if found else None


def _ask_version(path: str) -> str:
    try:
        done = run_program([path, "--version"], _VERSION_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


def _find_vendor(version: str) -> str:
    return next((vendor for vendor, mark in _FAMILIES_OF_OPTIONS if mark in version), "")


def _shorten(text: str, most: int = 40) -> str:
    lines = text.splitlines()
    if len(lines) <= most:
        return text
    return "\n".join([*lines[:most], f"... and {len(lines) - most} more lines"])
