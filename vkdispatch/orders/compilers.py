"""Compilers: their search, versions, vendors and commands, and what is stored of them on disk."""

import functools
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from vkdispatch.base.compilation import disk_cache
from vkdispatch.base.compilation.disk_cache import PrivateFolder, UntrustedError, Usage
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.base.process import log_warning, show_wait
from vkdispatch.base.record import record

# ---- Vendors of compilers, which a compiler command can name instead of a program ------------------------


@record
class Vendor:
    """The compilers of one vendor.

    Attributes
    ----------
    marks
        Words that identify its compilers: one of them is in the output of `--version`.
    programs
        Names of programs by language ("cpp", "fortran", "cuda" or "hip"), in order of preference.
    """

    marks: tuple[str, ...]
    programs: Mapping[str, tuple[str, ...]]


_XLF = tuple(f"xlf{year}{threads}" for year in ("2008", "2003", "95", "90") for threads in ("_r", ""))

VENDORS = {
    "gnu": Vendor(("Free Software Foundation",), {"cpp": ("g++",), "fortran": ("gfortran",)}),
    "cray": Vendor(("Cray",), {"cpp": ("CC", "crayCC"), "fortran": ("ftn", "crayftn")}),
    "amd": Vendor(
        ("AMD", "AOCC", "HIP", "clang", "flang"),
        {"cpp": ("amdclang++", "clang++"), "fortran": ("amdflang", "flang"), "hip": ("hipcc",)},
    ),
    "ibm": Vendor(("IBM",), {"cpp": ("ibm-clang++_r", "xlc++_r", "xlc++"), "fortran": _XLF}),
    "nvidia": Vendor(
        ("NVIDIA",), {"cuda": ("nvcc",), "cpp": ("nvc++", "pgc++"), "fortran": ("nvfortran", "pgfortran")}
    ),
    "pgi": Vendor(("PGI", "NVIDIA"), {"cpp": ("pgc++", "nvc++"), "fortran": ("pgfortran", "nvfortran")}),
    "intel": Vendor(("Intel",), {"cpp": ("icpx", "icpc"), "fortran": ("ifx", "ifort")}),
}
"""The vendors of accelpy."""


# ---- Storage of libraries, compiler versions and the results of self-tests on disk -----------------------
#
# They are in the disk cache of the package, or in a folder that `python -m vkdispatch.orders config` sets.
# That choice is stored in the user's settings. The environment variable VKDISPATCH_CACHE has precedence
# over it.
#
# Libraries are executed. As in the disk cache, files that other users could have written are ignored, with
# one warning.


_KIND = "orders"
_VARIABLE = "VKDISPATCH_CACHE"
_SETTINGS = "orders.json"
_SUFFIX = ".vkd"
_PARTIAL = ".vkd~"
_DIGEST = 16
_MAX_BYTES = 1 << 30
_MAX_SETTINGS_BYTES = 1 << 16


def load(key: str) -> bytes | None:
    """Return the data stored under a key. None: it is missing or damaged, or storage is disabled."""
    chosen = _find_chosen_folder()
    if chosen is None:
        return disk_cache.load(_KIND, key)
    name = _hash_key(key)
    try:
        with PrivateFolder.open(chosen) as folder:
            content = folder.read(name + _SUFFIX, _MAX_BYTES) or b""
            data = content[_DIGEST:]
            if content[:_DIGEST] == _hash_data(name, data):
                return data
            folder.delete(name + _SUFFIX)
    except UntrustedError as error:
        _warn(str(error))
    except OSError:
        pass
    return None


def store(key: str, data: bytes) -> None:
    """Store data under a key. Has no effect if the disk cannot be written."""
    chosen = _find_chosen_folder()
    if chosen is None:
        disk_cache.store(_KIND, key, data)
        return
    name = _hash_key(key)
    partial = f"{name}-{os.urandom(6).hex()}{_PARTIAL}"
    try:
        with PrivateFolder.open(chosen, make=True) as folder:
            try:
                folder.write(partial, (_hash_data(name, data), data))
                folder.replace(name + _SUFFIX, by=partial)
            except BaseException:
                folder.delete(partial)
                raise
    except UntrustedError as error:
        _warn(str(error))
    except OSError as error:
        _warn(f"{chosen!r} cannot be written to ({error})")


def find_folder() -> str | None:
    """Return the folder of the libraries, which may not exist yet. None: storage is disabled."""
    chosen = _find_chosen_folder()
    if chosen is not None:
        return chosen
    root = disk_cache.folder()
    return os.path.join(root, _KIND) if root is not None else None


def measure_usage() -> Usage:
    """Return the number of stored files, and their size in bytes."""
    place = find_folder()
    sizes: list[int] = []
    with suppress(OSError):
        if place is not None:
            with PrivateFolder.open(place) as opened:
                files = [item for item in opened.list() if item.name.endswith(_SUFFIX)]
                sizes = [item.stat(follow_symlinks=False).st_size for item in files]
    return Usage(len(sizes), sum(sizes))


def clear() -> int:
    """Delete all stored files, and return their number. Other files in the folder are kept.

    Raises
    ------
    UntrustedError
        Other users could have written to the folder.
    """
    place = find_folder()
    if place is None:
        return 0
    try:
        with PrivateFolder.open(place) as opened:
            names = [item.name for item in opened.list()]
            for name in names:
                if name.endswith(_PARTIAL):
                    opened.delete(name)
            return sum(opened.delete(name) for name in names if name.endswith(_SUFFIX))
    except FileNotFoundError:
        return 0


def choose_folder(path: str | None) -> None:
    """Set the folder of libraries for this program and later ones. None: the disk cache.

    Raises
    ------
    UntrustedError
        Other users could have written to the folder or to that of the settings.
    ValueError
        The path is invalid.
    OSError
        A folder cannot be made.
    """
    if path is not None:
        if not path.strip() or "\0" in path:
            raise ArgumentValueError(f"libdir: expected the path of a folder, got {path!r}")
        path = os.path.abspath(os.path.expanduser(path))
        PrivateFolder.open(path, make=True).__exit__()
    text = json.dumps({} if path is None else {"libdir": path})
    partial = f"{_SETTINGS}-{os.urandom(6).hex()}"
    with PrivateFolder.open(_find_settings_folder(), make=True) as opened:
        opened.write(partial, (text.encode(),))
        opened.replace(_SETTINGS, by=partial)


def describe_origin() -> str:
    """Return how the folder was chosen."""
    if os.environ.get(_VARIABLE, "").strip():
        return f"named by {_VARIABLE}"
    return "set by config" if _find_chosen_folder() is not None else "in the disk cache"


def _find_chosen_folder() -> str | None:
    """Return the folder in the settings. None: the disk cache is used."""
    if os.environ.get(_VARIABLE, "").strip():
        return None
    try:
        with PrivateFolder.open(_find_settings_folder()) as opened:
            path = json.loads(opened.read(_SETTINGS, _MAX_SETTINGS_BYTES) or b"{}").get("libdir")
    except UntrustedError as error:
        _warn(str(error))
        return None
    except (OSError, ValueError, AttributeError):
        return None
    return path if isinstance(path, str) and os.path.isabs(path) else None


def _find_settings_folder() -> str:
    from platformdirs import user_config_dir

    return user_config_dir("vkdispatch", appauthor=False)


def _hash_key(key: str) -> str:
    return hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=20).hexdigest()


def _hash_data(name: str, data: bytes) -> bytes:
    # Includes the name: a renamed file is invalid.
    return hashlib.blake2b(name.encode() + b"\n" + data, digest_size=_DIGEST).digest()


@functools.cache
def _warn(text: str) -> None:
    """Warn of each problem once."""
    log_warning(f"orders ignore the files on disk: {text}")


# ---- Compilers: their search, their versions and their commands ------------------------------------------


TIMEOUT_SECONDS = 600
"""Seconds that a compiler can take for an order."""

_VERSION_TIMEOUT_SECONDS = 60

# Marks of versions, in the order of the search: Cray has its own Fortran, but its C++ is clang.
_VENDOR_MARKS = (
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
# Directives that do not affect results.
_HARMLESS = "tile|unroll|assumes?|nothing"
# A warning of an ignored directive, with the source lines that follow. Its text depends on the locale.
_IGNORED = {
    family: re.compile(
        rf"^.*#\s*pragma {family} (?!(?:{_HARMLESS})\b).*\[-Wunknown-pragmas\]\n?(?:^ .*\n?)*", re.MULTILINE
    )
    for family in _FAMILIES.values()
}
_HINT = (
    "\nThe messages name no line of the order. Check for an unbalanced bracket, block or quote in the body, "
    "and for an argument with a name of the language or its library."
)


class BuildFailure(Exception):
    """A section cannot be built, for the reason in the message. Users see an `OrderBuildError`."""


class CompileFailure(BuildFailure):
    """A compiler rejects the text of a section."""


@record
class Compiler:
    """A compiler of this machine.

    Attributes
    ----------
    path
        The path of the program.
    words
        The user's options for it.
    vendor
        The vendor whose options it takes: "gnu", "clang", "flang", "nvhpc", "intel", "cray", "ibm", "nvcc",
        "hip", or "" for others.
    version
        The output of `--version`.
    """

    path: str
    words: tuple[str, ...]
    vendor: str
    version: str

    @property
    def title(self) -> str:
        """The name, and the first line of the version."""
        lines = [line.strip() for line in self.version.splitlines() if line.strip()]
        if self.vendor == "nvcc":
            lines = [line for line in lines if line.startswith("Cuda compilation tools")] or lines
        name, version = os.path.basename(self.path), lines[0] if lines else "no version"
        return version if version.startswith(name) else f"{name} ({version})"


@record
class Source:
    """The source of a library.

    Attributes
    ----------
    text
        The text.
    suffix
        The suffix of its file, which determines the language.
    label
        The name of the order in messages.
    order
        The text of the order.
    """

    text: str
    suffix: str
    label: str
    order: str


@record
class Search:
    """The search for the compilers of a model.

    Attributes
    ----------
    variable
        The environment variable that names a compiler.
    names
        Programs on PATH, in order of preference.
    folders
        Other folders to search. Environment variables are expanded.
    package
        What to install, for the message if no compiler is found.
    language
        "cpp", "fortran", "cuda" or "hip".
    """

    variable: str
    names: tuple[str, ...]
    folders: tuple[str, ...] = ()
    package: str = ""
    language: str = "cpp"


def find_compilers(search: Search, chosen: Sequence[str] | None) -> Iterator[Compiler]:
    """Yield compilers of this machine: those of the `chosen` commands, or those that the search finds.

    A command begins with a program, or with the name of a vendor, which stands for each of its compilers for
    the language.

    Raises
    ------
    BuildFailure
        There is no compiler. The message lists the searched names.
    """
    commands = [shlex.split(command) for command in chosen or ()]
    if chosen is None:
        preferred = os.environ.get(search.variable, "")
        commands = [shlex.split(preferred), *([name] for name in search.names)]
    seen: set[tuple[str, ...]] = set()
    missing, rejected = [], []
    for words in commands:
        if not words:
            continue
        # In accelpy this word stands for its own options, which are always passed here.
        options = tuple(word for word in words[1:] if word != "{default}")
        vendor = VENDORS.get(words[0]) if chosen is not None else None
        names = (words[0],) if vendor is None else vendor.programs.get(search.language, ())
        if not names:
            rejected.append(f"compile: {words[0]} has no compiler for {_LANGUAGES[search.language]}")
        for name in names:
            path = _find_program(name, search.folders)
            if path is None:
                missing.append(name)
                continue
            version = find_version(path)
            kind = next((kind for kind, mark in _VENDOR_MARKS if mark in version), "")
            compiler = Compiler(path, options, kind, version)
            if vendor is not None and not any(mark in compiler.version for mark in vendor.marks):
                rejected.append(f"compile: {compiler.title} is not a compiler of {words[0]}")
            elif (os.path.realpath(path), *options) not in seen:
                seen.add((os.path.realpath(path), *options))
                yield compiler
    if not seen:
        names_searched = ", ".join(missing)
        if chosen is None:
            raise BuildFailure(
                f"no compiler found: looked for {names_searched} on PATH and for {search.variable}; install "
                f"{search.package}, or name a compiler with compile="
            )
        if missing:
            rejected.append(f"compile: there is no program {names_searched} here")
        raise BuildFailure("\n".join(rejected))


def find_version(path: str) -> str:
    """Return the output of a compiler's `--version`, or an empty string."""
    try:
        status = os.stat(path)
    except OSError:
        return ""
    key = f"version\n{os.path.realpath(path)}\n{status.st_mtime_ns}\n{status.st_size}"
    known = _versions.get(key)
    if known is None:
        stored = load(key)
        known = stored.decode(errors="replace") if stored else _query_version(path)
        if known and not stored:
            store(key, known.encode())
        _versions[key] = known
    return known


def compile_library(compiler: Compiler, options: Sequence[str], source: Source) -> bytes:
    """Compile a source to a shared library, and return its contents.

    Raises
    ------
    BuildFailure
        The source does not compile. The message has the compiler's output.
    CompileFailure
        The text has errors, or the compiler ignores a directive of its model, which could give wrong results.
    """
    with tempfile.TemporaryDirectory(prefix="vkdispatch-order-") as folder:
        name = f"accelpy{source.suffix}"
        for path, text in ((name, source.text), (source.label, source.order)):
            # If the order has no file, compilers quote its lines from this one.
            if not os.path.isabs(path):
                Path(folder, path).write_text(text, encoding="utf-8", errors="surrogateescape")
        command = make_command(compiler, options, source.suffix)
        try:
            with show_wait(f"compiling an order with {compiler.title}"):
                done = run_program(command, TIMEOUT_SECONDS, folder)
        except subprocess.TimeoutExpired:
            raise BuildFailure(f"{compiler.title}: no result after {TIMEOUT_SECONDS} s") from None
        except OSError as error:
            raise BuildFailure(f"{compiler.title}: cannot be run ({error})") from None
        log = done.stderr.strip() or done.stdout.strip() or f"exit status {done.returncode}"
        if done.returncode:
            is_located = re.search(rf"^{re.escape(source.label)}:\d+", log, re.MULTILINE)
            raise CompileFailure(f"{compiler.title}:\n{_shorten(log)}{'' if is_located else _HINT}")
        for option, family in _FAMILIES.items():
            ignored = _IGNORED[family].findall(log) if option in options else None
            if ignored:
                raise CompileFailure(f"{compiler.title}:\n{_shorten(''.join(ignored).strip())}")
        try:
            return Path(folder, "accelpy.so").read_bytes()
        except OSError:
            raise BuildFailure(f"{compiler.title}: no library from {shlex.join(command)}") from None


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
    """Return the command that compiles a source file to a library, run in the folder of the file."""
    return [compiler.path, *options, f"accelpy{suffix}", *compiler.words, "-o", "accelpy.so"]


_LANGUAGES = {"cpp": "C++", "fortran": "Fortran", "cuda": "CUDA", "hip": "HIP"}
_versions: dict[str, str] = {}


def _find_program(name: str, folders: Sequence[str]) -> str | None:
    path = shutil.which(os.path.expanduser(name))
    for folder in folders if path is None else ():
        filled = os.path.expandvars(folder)
        if "$" not in filled and path is None:
            path = shutil.which(name, path=filled)
    # Compilers run in another folder.
    return os.path.abspath(path) if path else None


def _query_version(path: str) -> str:
    try:
        done = run_program([path, "--version"], _VERSION_TIMEOUT_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


def _shorten(text: str, most: int = 40) -> str:
    lines = text.splitlines()
    if len(lines) <= most:
        return text
    return "\n".join([*lines[:most], f"... and {len(lines) - most} more lines"])
