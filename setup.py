"""Build of the native module; everything that is data stands in ``pyproject.toml``.

One extension module is made of ``vkdispatch_native/python/wrapper.pyx`` (Cython) and all ``.cpp`` beside it.
Translation units are compiled in parallel, and an object is reused while its command line, its source and all
headers it includes are what they were. ``VKDISPATCH_SANITIZE=1`` makes the build for ``make test-asan``,
``VKDISPATCH_SANITIZE=thread`` that for ``make test-tsan``. One abi3 module serves every Python with a GIL;
free-threaded Pythons know no stable ABI yet, and get a module for their version.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT / "deps"))

import fetch_deps  # noqa: E402  (found through the line above)
import hardening  # noqa: E402
import sbom  # noqa: E402

NATIVE = Path("vkdispatch_native")
WRAPPER = NATIVE / "python" / "wrapper.pyx"
SANITIZE = os.environ.get("VKDISPATCH_SANITIZE", "")  # "1": addresses and undefined behaviour; "thread"
if SANITIZE not in ("", "1", "thread"):
    sys.exit(f"VKDISPATCH_SANITIZE: expected 1 or thread, got {SANITIZE!r}")
FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
BUILD = Path("build", "native", {"": "release", "1": "sanitize"}.get(SANITIZE, f"sanitize-{SANITIZE}"))
if FREE_THREADED:
    BUILD = BUILD.with_name(f"{BUILD.name}-{sys.implementation.cache_tag}t")

DEFINES = ["-DVK_NO_PROTOTYPES=", "-DVMA_STATIC_VULKAN_FUNCTIONS=0", "-DVMA_DYNAMIC_VULKAN_FUNCTIONS=1"]
DEFINES += [] if FREE_THREADED else ["-DPy_LIMITED_API=0x030B0000"]
COMMON = ["-std=c++17", "-fPIC", "-pthread", "-fvisibility=hidden", "-fvisibility-inlines-hidden"]
WARNINGS = ["-Wall", "-Wextra", "-Wshadow"]
RELEASE = ["-O2", "-DNDEBUG", "-ffunction-sections", "-fdata-sections"]
SANITIZED = ["-O1", "-g", "-fno-omit-frame-pointer"]
if SANITIZE == "thread":
    SANITIZED += ["-fsanitize=thread"]
else:
    # The vptr check needs the type information of glslang's classes, which is compiled without any.
    SANITIZED += ["-fsanitize=address,undefined", "-fno-sanitize=vptr", "-fno-sanitize-recover=undefined"]
# Most of it is VkFFT's header, which writes kernels and is in no hurry: small, and soon built.
SMALL = {NATIVE / "libs" / "vkfft.cpp": ["-Os"]}
# VkFFT reads beside arrays inside of a structure; AddressSanitizer still sees what would leave the structure.
UNBOUND = {NATIVE / "libs" / "vkfft.cpp": ["-fno-sanitize=bounds"]}
# libstdc++ inside the module, and one exported symbol: nothing can clash with what else a process has loaded.
RELEASE_LINK = [
    "-static-libstdc++",
    f"-Wl,--version-script={NATIVE / 'exports.map'}",
    "-Wl,--exclude-libs,ALL",
]
RELEASE_LINK += ["-s", "-Wl,--gc-sections", "-Wl,-O1", *hardening.LINK]


def native_sources() -> list[Path]:
    """Return the translation units written by hand."""
    return sorted(path for path in NATIVE.rglob("*.cpp") if path.name != "wrapper.cpp")


def translate_wrapper() -> Path:
    """Run Cython on ``wrapper.pyx`` when it or what it includes has changed; return the C++ file."""
    import Cython
    from Cython.Build import cythonize

    extension = Extension("vkdispatch_native", [str(WRAPPER)], language="c++")
    # A folder for each Cython version: another version's output is never taken for this one's.
    folder = Path("build", f"cython-{Cython.__version__}")
    cythonize(
        [extension],
        build_dir=str(folder),
        include_path=[str(NATIVE), str(WRAPPER.parent)],
        language_level=3,
        quiet=True,
    )
    return folder / WRAPPER.with_suffix(".cpp")


def compile_command(source: Path, prefix: Path) -> list[str]:
    """Return the command that compiles ``source``, less its outputs."""
    # Third-party headers come through -isystem: their warnings are not ours to heed.
    includes = [f"-I{NATIVE}", "-isystem", str(prefix / "include"), "-isystem", sysconfig.get_path("include")]
    own = WARNINGS if source.is_relative_to(NATIVE) else ["-w"]
    # Sanitizers see more than the hardening, which would hide calls of memcpy and others from them.
    release = RELEASE + fetch_deps.hardening_flags() + SMALL.get(source, [])
    kind = SANITIZED + UNBOUND.get(source, []) if SANITIZE else release
    flags = COMMON + kind + own + DEFINES + includes
    extra = shlex.split(os.environ.get("CXXFLAGS", ""))
    return [*fetch_deps.compiler(), *flags, *extra, "-c", str(source)]


def dependencies(depfile: Path) -> list[Path]:
    """Return the files that a ``-MMD`` depfile names, less the target."""
    text = depfile.read_text().replace("\\\n", " ").split(":", 1)[1]
    return [Path(name.replace("\\ ", " ")) for name in re.findall(r"(?:\\ |\S)+", text)]


def fingerprint(command: list[str], files: list[Path]) -> str:
    """Return a hash of a command, the compiler and the contents of all files that go into its outcome."""
    digest = hashlib.sha256(f"{shlex.join(command)}\n{fetch_deps.compiler_identity()}".encode())
    for path in files:
        digest.update(f"\n{path}\n".encode())
        digest.update(path.read_bytes() if path.is_file() else b"missing")
    return digest.hexdigest()


def run(command: list[str], what: str) -> None:
    """Run one compiler or linker call; raises CompileError with its output when it fails."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise CompileError(f"{what} failed:\n{shlex.join(command)}\n{done.stdout}")
    if done.stdout.strip():
        print(done.stdout, file=sys.stderr)  # warnings


def compile_one(source: Path, prefix: Path) -> Path:
    """Compile ``source`` unless its object is up to date; return the object."""
    target = BUILD / f"{'-'.join(source.with_suffix('').parts[-3:])}.o"
    depfile, stamp = target.with_suffix(".d"), target.with_suffix(".stamp")
    command = compile_command(source, prefix)
    known = target.exists() and depfile.exists() and stamp.exists()
    if known and stamp.read_text() == fingerprint(command, dependencies(depfile)):
        return target
    stamp.unlink(missing_ok=True)
    run([*command, "-MMD", "-MF", str(depfile), "-o", str(target)], f"compiling {source}")
    stamp.write_text(fingerprint(command, dependencies(depfile)))
    fetch_deps.say(f"compiled {source}")
    return target


def link(objects: list[Path], prefix: Path) -> Path:
    """Link the module unless it is up to date; return its path."""
    target = BUILD / "vkdispatch_native.so"
    stamp = target.with_suffix(".stamp")
    archives = sorted((prefix / "lib").glob("*.a"))
    flags = SANITIZED if SANITIZE else RELEASE_LINK
    command = [*fetch_deps.compiler(), "-shared", *flags, *shlex.split(os.environ.get("LDFLAGS", ""))]
    command += [*map(str, objects), "-Wl,--start-group", *map(str, archives), "-Wl,--end-group"]
    command += ["-ldl", "-lpthread"]
    state = fingerprint(command, [*objects, NATIVE / "exports.map"])
    if not (target.exists() and stamp.exists() and stamp.read_text() == state):
        stamp.unlink(missing_ok=True)
        run([*command, "-o", str(target)], "linking")
        stamp.write_text(state)
    return target


def require_headers() -> None:
    """Raise CompileError if Python's headers are missing. The compiler would say so only after minutes."""
    header = Path(sysconfig.get_path("include"), "Python.h")
    if not header.is_file():
        raise CompileError(
            f"{header} is missing. Install the headers of this Python (Debian and Ubuntu: python3-dev; "
            "Fedora: python3-devel), or use a Python that has them."
        )


def build_native() -> Path:
    """Compile and link the native module; return the shared object in the build folder."""
    os.chdir(ROOT)
    require_headers()
    prefix = fetch_deps.prepare()
    BUILD.mkdir(parents=True, exist_ok=True)
    with fetch_deps.locked(BUILD / "lock"):
        sources = [translate_wrapper(), *native_sources()]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            objects = list(pool.map(lambda source: compile_one(source, prefix), sources))
        return link(objects, prefix)


class BuildNative(build_ext):
    """``build_ext`` with our own compile and link steps."""

    def build_extension(self, ext: Extension) -> None:
        """Build the module and put it where setuptools wants it."""
        try:
            built = build_native()
        except (fetch_deps.DepsError, subprocess.CalledProcessError) as error:
            raise CompileError(str(error)) from error
        target = Path(self.get_ext_fullpath(ext.name))
        target.parent.mkdir(parents=True, exist_ok=True)
        # A process may have the old file mapped: replace it, never write into it.
        partial = target.with_name(f"{target.name}.{os.getpid()}.tmp")
        shutil.copy2(built, partial)
        partial.replace(target)


class WheelWithOrigins(bdist_wheel):
    """``bdist_wheel`` that says what is linked into the module, and adds the licences of it."""

    def write_wheelfile(self, wheelfile_base: str, **options: str) -> None:
        """Write WHEEL as usual, and ``licenses/third_party`` and ``sboms`` beside it."""
        super().write_wheelfile(wheelfile_base, **options)
        licenses = fetch_deps.prepare() / "licenses"
        shutil.copytree(licenses, Path(wheelfile_base, "licenses", "third_party"), dirs_exist_ok=True)
        for module in Path(self.bdist_dir).glob("vkdispatch_native*.so"):  # none in an editable install
            path = Path(wheelfile_base, "sboms", "vkdispatch_native.cdx.json")  # where PEP 770 has it
            path.parent.mkdir(exist_ok=True)
            path.write_text(sbom.as_json(sbom.document(ROOT, module, fetch_deps.look_up())))


setup(
    ext_modules=[
        Extension(
            "vkdispatch_native",
            [str(WRAPPER), *map(str, native_sources())] if NATIVE.is_dir() else [str(WRAPPER)],
            language="c++",
            py_limited_api=not FREE_THREADED,
        )
    ],
    cmdclass={"build_ext": BuildNative, "bdist_wheel": WheelWithOrigins},
    options={} if FREE_THREADED else {"bdist_wheel": {"py_limited_api": "cp311"}},
)
