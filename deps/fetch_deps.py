#!/usr/bin/env python3
"""Obtain what the native module is built from: Vulkan's headers, volk, VMA, glslang, SPIRV-Tools and VkFFT.

Each package of ``deps.lock.json`` is looked for, one by one, in this order:

1. ``$DEPS_PREFIX``, a folder with ``include/`` and ``lib/``;
2. the system (``$VULKAN_SDK``, ``/usr/local``, ``/usr``), when new enough; ``DEPS_SYSTEM=0`` skips this;
3. the pinned file of a Debian mirror (``$DEPS_MIRROR``, or else the mirrors that apt is configured with),
   checked against its sha256. glslang and SPIRV-Tools come as source and are compiled here, once.

The outcome is one folder ``<cache>/vkdispatch-build/<key>/{include,lib,licenses}``; the key is made of the
lock file, the compiler, the flags and the system packages used, so a finished folder never changes. Runs that
meet wait for each other, and an interrupted one goes on where it stopped.

Run as a script it prints the folder's path; ``setup.py`` calls :func:`prepare`.
"""

from __future__ import annotations

import fcntl
import fnmatch
import hashlib
import json
import lzma
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.parse
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import bounded
import hardening

LOCK_FILE = Path(__file__).resolve().with_name("deps.lock.json")
DOWNLOAD_SECONDS = 300.0  # for one file from one mirror
UNPACKED_BYTES = 256 << 20  # of one archive
# -O1: translating a shader is as fast as with -O2, and compiling glslang takes a third less.
LIBRARY_FLAGS = ["-std=c++17", "-O1", "-DNDEBUG", "-fPIC", "-w", "-fno-rtti", "-fno-exceptions"]
LIBRARY_FLAGS += [
    "-fvisibility=hidden",
    "-fvisibility-inlines-hidden",
    "-ffunction-sections",
    "-fdata-sections",
]
GLSLANG_FOLDERS = (
    "SPIRV",
    "SPIRV/CInterface",
    "glslang/CInterface",
    "glslang/GenericCodeGen",
    "glslang/MachineIndependent",
    "glslang/MachineIndependent/preprocessor",
    "glslang/OSDependent/Unix",
    "glslang/ResourceLimits",
)
GLSLANG_LEFT_OUT = {"SPVRemapper.cpp"}
# An installed glslang may be split over several archives; those that exist are linked as one group.
GLSLANG_ARCHIVES = (
    "libglslang.a",
    "libglslang-default-resource-limits.a",
    "libMachineIndependent.a",
    "libGenericCodeGen.a",
    "libOSDependent.a",
    "libSPIRV.a",
    "libSPIRV-Tools-opt.a",
    "libSPIRV-Tools.a",
)
GLSLANG_PROBE = """
#include <glslang/Public/ResourceLimits.h>
#include <glslang/Public/ShaderLang.h>
#include <glslang/SPIRV/GlslangToSpv.h>
bool probe(glslang::TIntermediate& tree, std::vector<unsigned>& words) {
  glslang::GlslangToSpv(tree, words);
  return glslang::InitializeProcess() && GetDefaultResources()->maxDrawBuffers > 0;
}
"""
# The validator; its optimizer, linker and fuzzer are in other folders.
SPIRV_TOOLS_FOLDERS = ("source", "source/util", "source/val")
SPIRV_TOOLS_LEFT_OUT = {"pch_source.cpp", "software_version.cpp", "timer.cpp"}
SPIRV_TOOLS_ARCHIVE = "libSPIRV-Tools.a"
# Instruction sets whose tables are generated alike, and the prefix of the names in them.
SPIRV_TOOLS_VENDORS = {
    "spv-amd-shader-explicit-vertex-parameter": "",
    "spv-amd-shader-trinary-minmax": "",
    "spv-amd-gcn-shader": "",
    "spv-amd-shader-ballot": "",
    "debuginfo": "",
    "opencl.debuginfo.100": "CLDEBUG100_",
    "nonsemantic.shader.debuginfo.100": "SHDEBUG100_",
    "nonsemantic.clspvreflection": "",
    "nonsemantic.vkspreflection": "",
}
Version = tuple[int, ...]


class DepsError(RuntimeError):
    """A dependency could not be obtained; the message says which, why, and the ways out."""


@dataclass(frozen=True)
class Package:
    """One entry of the lock file.

    ``path`` is below a mirror's root, ``size`` is in bytes, ``keep`` are globs of the members to unpack
    (``*`` also matches ``/``), ``system_minimum`` is the oldest installed version that may be used instead.
    ``license`` is an SPDX expression, ``source`` the project's repository.
    """

    name: str
    version: str
    group: str
    path: str
    sha256: str
    size: int
    keep: tuple[str, ...]
    system_minimum: str
    license: str
    source: str


@dataclass(frozen=True)
class Found:
    """A package that is already installed below ``root`` in version ``version``."""

    package: Package
    root: Path
    version: Version


def say(text: str) -> None:
    """Print one line of progress on stderr, with the seconds since ``$BUILD_CLOCK`` (epoch) or the start."""
    start = float(os.environ.get("BUILD_CLOCK") or _START)
    print(f"[{int(time.time() - start):4d} s] {text}", file=sys.stderr, flush=True)


_START = time.time()


def read_lock() -> list[Package]:
    """Return the packages of ``deps.lock.json``."""
    entries = json.loads(LOCK_FILE.read_text())["packages"]
    return [Package(**{**entry, "keep": tuple(entry["keep"])}) for entry in entries]


def cache_folder() -> Path:
    """Return ``$XDG_CACHE_HOME/vkdispatch-build`` (``~/.cache`` when the variable is unset)."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "vkdispatch-build"


def compiler() -> list[str]:
    """Return the C++ compiler as a command: ``$CXX``, else ``g++``.

    Raises DepsError when it cannot be run.
    """
    command = shlex.split(os.environ.get("CXX") or "g++")
    if shutil.which(command[0]) is None:
        raise DepsError(
            f"no C++ compiler: {command[0]!r} is not on PATH. "
            "Install one (Debian: apt-get install g++) or set CXX."
        )
    return command


def hardening_flags() -> list[str]:
    """Return the flags of `hardening` that the compiler knows."""
    return hardening.compile_flags(tuple(compiler()))


def compiler_identity() -> str:
    """Return what compiler and machine say of themselves; objects are reused only while it is the same."""
    command = compiler()
    said = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True).stdout
    return f"{shlex.join(command)} | {said.splitlines()[0]} | {platform.machine()}"


# --- packages that are already there --------------------------------------------------------------


def parse_version(text: str) -> Version:
    """Return the leading ``1.2.3`` of ``text`` as a tuple of ints."""
    match = re.match(r"\d+(?:\.\d+)*", text)
    return tuple(int(part) for part in match.group().split(".")) if match else ()


def _macro(text: str, name: str) -> int | None:
    match = re.search(rf"^#\s*define\s+{name}\s+\(?(\d+)", text, re.MULTILINE)
    return int(match.group(1)) if match else None


def _vulkan_version(include: Path) -> Version:
    text = (include / "vulkan/vulkan_core.h").read_text(errors="replace")
    complete = re.search(r"VK_HEADER_VERSION_COMPLETE VK_MAKE_API_VERSION\(\d+, (\d+), (\d+)", text)
    patch = _macro(text, "VK_HEADER_VERSION")
    return (int(complete.group(1)), int(complete.group(2)), patch) if complete and patch is not None else ()


def _volk_version(include: Path) -> Version:
    # There is another library named volk (vector kernels); its header does not define this macro.
    text = (include / "volk.h").read_text(errors="replace")
    patch = _macro(text, "VOLK_HEADER_VERSION")
    if patch is None or not (include / "volk.c").is_file():
        return ()
    # volk states only the headers' patch number; 1.4 began at 303 and kept counting.
    return (1, 4 if patch >= 303 else 3, patch)


def _vma_version(include: Path) -> Version:
    text = (include / "vk_mem_alloc.h").read_text(errors="replace")
    match = re.search(r"<b>Version (\d+(?:\.\d+)*)", text)
    return parse_version(match.group(1)) if match else ()


def _vkfft_version(include: Path) -> Version:
    text = (include / "vkFFT/vkFFT_AppManagement/vkFFT_RunApp.h").read_text(errors="replace")
    text += (include / "vkFFT.h").read_text(errors="replace")
    match = re.search(r"return (\d)(\d\d)(\d\d);", text)
    return tuple(int(part) for part in match.groups()) if match else ()


def _glslang_version(include: Path) -> Version:
    text = (include / "glslang/build_info.h").read_text(errors="replace")
    parts = [_macro(text, f"GLSLANG_VERSION_{part}") for part in ("MAJOR", "MINOR", "PATCH")]
    return tuple(part for part in parts if part is not None)


def _spirv_tools_version(include: Path) -> Version:
    (include / "spirv-tools/libspirv.h").stat()
    for folder in library_folders(include.parent):
        if (folder / SPIRV_TOOLS_ARCHIVE).is_file():
            text = (folder / "pkgconfig/SPIRV-Tools.pc").read_text()
            match = re.search(r"^Version: *v?(.*)$", text, re.MULTILINE)
            return parse_version(match.group(1)) if match else ()
    return ()


READ_VERSION: dict[str, Callable[[Path], Version]] = {
    "vulkan-headers": _vulkan_version,
    "volk": _volk_version,
    "vma": _vma_version,
    "vkfft": _vkfft_version,
    "glslang": _glslang_version,
    "spirv-tools": _spirv_tools_version,
}
# Below include/: what is taken over from an installed package.
INCLUDE_NAMES = {
    "vulkan-headers": ("vulkan", "vk_video"),
    "volk": ("volk.h", "volk.c"),
    "vma": ("vk_mem_alloc.h",),
    "vkfft": ("vkFFT.h", "vkFFT"),
    "glslang": ("glslang",),
    "spirv-tools": ("spirv-tools",),
}


def search_roots() -> list[Path]:
    """Return the existing folders that may hold installed packages, best first."""
    names = [os.environ.get("DEPS_PREFIX")]
    if os.environ.get("DEPS_SYSTEM", "1") != "0":
        names += [os.environ.get("VULKAN_SDK"), "/usr/local", "/usr"]
    roots = [Path(name) for name in names if name]
    prefix = os.environ.get("DEPS_PREFIX")
    if prefix and not (Path(prefix) / "include").is_dir():
        raise DepsError(f"DEPS_PREFIX={prefix!r} has no include/; give a folder with include/ and lib/.")
    return [root for root in roots if (root / "include").is_dir()]


def find_installed(package: Package, roots: list[Path]) -> Found | None:
    """Return the first installed copy of ``package`` that is new enough, or None."""
    if package.name not in READ_VERSION:
        return None  # SPIRV-Tools is compiled with the headers that its version needs
    least = parse_version(package.system_minimum)
    for root in roots:
        try:
            version = READ_VERSION[package.name](root / "include")
        except OSError:
            continue
        if version < least:
            stated = ".".join(map(str, version)) or "unknown"
            say(f"{package.name} {stated} in {root} is not usable (at least {package.system_minimum} needed)")
        elif package.name != "glslang" or _glslang_links(root):
            return Found(package, root, version)
    return None


def library_folders(root: Path) -> tuple[Path, ...]:
    """Return the folders below ``root`` that may hold libraries."""
    return root / "lib", root / "lib64", root / "lib" / f"{platform.machine()}-linux-gnu"


def glslang_archives(root: Path) -> list[Path]:
    """Return the archives of an installed glslang below ``root``; empty when the main one is missing."""
    for folder in library_folders(root):
        if (folder / GLSLANG_ARCHIVES[0]).is_file():
            return [folder / name for name in GLSLANG_ARCHIVES if (folder / name).is_file()]
    return []


def _glslang_links(root: Path) -> bool:
    """Try an installed glslang: headers and archives must make a shared object without open ends."""
    archives = glslang_archives(root)
    if not archives:
        return False
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch, "probe.cpp")
        source.write_text(GLSLANG_PROBE)
        command = [*compiler(), "-std=c++17", "-fPIC", "-shared", f"-I{root / 'include'}", str(source)]
        command += ["-o", str(Path(scratch, "probe.so")), "-Wl,--no-undefined", "-lpthread"]
        command += ["-Wl,--start-group", *map(str, archives), "-Wl,--end-group"]
        done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        say(f"glslang in {root} does not link and is not used")
    return done.returncode == 0


def link_installed(found: Found, prefix: Path) -> None:
    """Make an installed package visible in ``prefix`` through symbolic links."""
    name = found.package.name
    links = {prefix / "include" / entry: found.root / "include" / entry for entry in INCLUDE_NAMES[name]}
    if name == "glslang":
        links |= {prefix / "lib" / path.name: path for path in glslang_archives(found.root)}
    elif name == "spirv-tools":
        paths = [folder / SPIRV_TOOLS_ARCHIVE for folder in library_folders(found.root)]
        links[prefix / "lib" / SPIRV_TOOLS_ARCHIVE] = next(path for path in paths if path.is_file())
    for link, target in links.items():
        if target.exists():
            link.parent.mkdir(parents=True, exist_ok=True)
            link.unlink(missing_ok=True)
            link.symlink_to(target.resolve())
    texts = [*found.root.glob(f"share/doc/*{name}*/copyright"), *found.root.glob(f"licenses/{name}.txt")]
    for license_file in texts:
        _write(prefix / "licenses" / f"{name}.txt", license_file.read_bytes())


# --- packages from a mirror -----------------------------------------------------------------------


def mirrors() -> list[str]:
    """Return the mirrors' roots: ``$DEPS_MIRROR`` (several: separated by blanks), else those of apt.

    Raises DepsError when there is none.
    """
    given = os.environ.get("DEPS_MIRROR", "").split()
    found = given or _apt_mirrors()
    if not found:
        raise DepsError(
            "no Debian mirror is known: apt is not configured here and DEPS_MIRROR is not set. "
            "Set DEPS_MIRROR to the root of a Debian mirror (the folder that holds pool/)." + _ways_out()
        )
    return [uri.rstrip("/") for uri in found]


def _apt_mirrors() -> list[str]:
    uris: list[str] = []
    if shutil.which("apt-get"):
        command = ["apt-get", "indextargets", "--format", "$(REPO_URI)"]
        uris = subprocess.run(command, capture_output=True, text=True).stdout.split()
    for path in [Path("/etc/apt/sources.list"), *sorted(Path("/etc/apt/sources.list.d").glob("*"))]:
        if path.suffix in {".list", ".sources"} and path.is_file():
            active = re.sub(r"(?m)^\s*#.*$", "", path.read_text(errors="replace"))
            uris += re.findall(r"https?://\S+", active)
    usable = [uri.rstrip("/") for uri in uris if uri.startswith(("http://", "https://", "file:"))]
    # A security archive has a pool of its own, in which none of our files is: try it last.
    return sorted(dict.fromkeys(usable), key=lambda uri: "security" in uri)


def _ways_out() -> str:
    return (
        "\nWays out: DEPS_MIRROR=<root of a Debian mirror that still has the file>; or install the packages "
        "(Debian 13 names: libvulkan-dev libvulkan-volk-dev libvulkan-memory-allocator-dev glslang-dev "
        "spirv-tools libvkfft-dev); or DEPS_PREFIX=<folder with include/ and lib/libglslang.a>; "
        "or pin the version that the mirror has now in deps/deps.lock.json."
    )


def download(package: Package) -> Path:
    """Return the verified file of ``package`` in the cache, fetched when it is not there yet.

    Raises DepsError when no mirror has it, or when what came is not the pinned file.
    """
    target = cache_folder() / "downloads" / package.sha256 / PurePosixPath(package.path).name
    if target.is_file() and hashlib.sha256(target.read_bytes()).hexdigest() == package.sha256:
        return target
    failures: list[str] = []
    for mirror in mirrors():
        url = f"{mirror}/{urllib.parse.quote(package.path, safe='/+~')}"
        try:
            data = bounded.get(url, package.size, DOWNLOAD_SECONDS)
        except (OSError, ValueError) as error:
            failures.append(f"  {mirror}: {error}")
            continue
        got = hashlib.sha256(data).hexdigest()
        if got == package.sha256:
            _write(target, data)
            say(f"fetched {package.name} {package.version} ({len(data) / 1e6:.1f} MB)")
            return target
        failures.append(
            f"  {mirror}: {len(data)} bytes with sha256 {got}, "
            f"but {package.size} bytes with sha256 {package.sha256} are pinned"
        )
    raise DepsError(
        f"{package.name} {package.version}: no mirror gave {package.path} as pinned "
        "(files leave a mirror's pool when a newer version replaces them):\n"
        + "\n".join(failures)
        + _ways_out()
    )


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    partial.write_bytes(data)
    partial.replace(path)  # never a half-written file under the final name


def unpack(package: Package, archive: Path, prefix: Path) -> None:
    """Unpack the kept members of ``archive`` to ``prefix``.

    Raises DepsError when a glob matches nothing, when a kept member is a link or lies outside of the prefix,
    and when the archive is damaged or too large.
    """
    unused = set(package.keep)
    try:
        with _open_tar(archive) as tar:
            for member in tar:
                name = member.name.removeprefix("./")
                globs = {glob for glob in package.keep if fnmatch.fnmatchcase(name, glob)}
                if globs and not member.isdir():
                    unused -= globs
                    _write(_place(package, name, prefix), _content(package, tar, member))
    except (tarfile.TarError, EOFError, OSError, lzma.LZMAError, bounded.BoundError) as error:
        raise DepsError(f"{package.name}: {archive.name} cannot be unpacked: {error}") from error
    if unused:
        raise DepsError(
            f"{package.name}: nothing in {archive.name} matches {sorted(unused)} of the lock file"
        )


def _content(package: Package, tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    # Only what it holds itself: a link could lead anywhere, and a sparse file could be of any size.
    if not member.isfile() or member.issparse():
        raise DepsError(f"{package.name}: {member.name!r} of the archive is not a plain file")
    content = tar.extractfile(member)
    assert content is not None
    return content.read()


def _place(package: Package, name: str, prefix: Path) -> Path:
    """Return the path of the member ``name``; DepsError where it lies outside of ``prefix``."""
    path = prefix / _destination(package, name)
    # A folder on the way may be a link to an installed package.
    if not path.resolve().is_relative_to(prefix.resolve()):
        raise DepsError(f"{package.name}: {name!r} of the archive would be written to {path.resolve()}")
    return path


def _destination(package: Package, name: str) -> PurePosixPath:
    """Say where in the prefix the member ``name`` goes. A name that leads out of the prefix is refused."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts:
        raise DepsError(f"{package.name}: the archive has a member with the unsafe name {name!r}")
    if path.name in {"copyright", "LICENSE", "LICENSE.txt"}:
        return PurePosixPath("licenses", f"{package.name}.txt")
    if path.parts[:2] == ("usr", "include"):
        return PurePosixPath(*path.parts[1:])
    return PurePosixPath("src", package.name, *path.parts[1:])  # a source tarball: less its top folder


def _open_tar(archive: Path) -> tarfile.TarFile:
    name, data = archive.name, archive.read_bytes()
    if archive.suffix == ".deb":
        name, data = _tar_of_deb(archive.name, data)
    if name.endswith(".zst") and shutil.which("zstd") is None:
        raise DepsError(f"{name} needs the program zstd (Debian: apt-get install zstd)")
    return tarfile.open(fileobj=bounded.decompress(name, data, UNPACKED_BYTES), mode="r:")


def _tar_of_deb(name: str, data: bytes) -> tuple[str, bytes]:
    for member, content in _ar_members(data):
        if member.startswith("data.tar"):
            return member, content
    raise DepsError(f"{name}: not a Debian package (no data.tar in it)")


def _ar_members(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield (name, content) of an ``ar`` archive: 60-byte headers, contents padded to even lengths."""
    if not data.startswith(b"!<arch>\n"):
        raise DepsError("not an ar archive")
    at = 8
    while at + 60 <= len(data):
        name, digits = (
            data[at : at + 16].decode("ascii", "replace").strip().rstrip("/"),
            data[at + 48 : at + 58],
        )
        size = int(digits) if digits.strip().isdigit() else -1
        if not 0 <= size <= len(data) - at - 60:
            raise DepsError(f"not an ar archive: its member {name!r} has no possible size")
        yield name, data[at + 60 : at + 60 + size]
        at += 60 + size + size % 2


# --- glslang --------------------------------------------------------------------------------------


def glslang_sources(source: Path) -> list[Path]:
    """Return the .cpp files of glslang that make a GLSL to SPIR-V compiler (no HLSL, no remapper)."""
    files = [path for folder in GLSLANG_FOLDERS for path in sorted((source / folder).glob("*.cpp"))]
    return [path for path in files if path.name not in GLSLANG_LEFT_OUT]


def build_glslang(source: Path, prefix: Path) -> None:
    """Compile glslang's source folder into ``lib/libglslang.a`` and ``include/glslang`` of ``prefix``."""
    _glslang_headers(source, prefix)
    build_archive("libglslang.a", glslang_sources(source), [source, prefix / "include"], prefix)


def build_archive(name: str, sources: list[Path], includes: list[Path], prefix: Path) -> None:
    """Compile ``sources`` into the archive ``lib/<name>`` of ``prefix``.

    An interrupted build goes on where it stopped. Raises DepsError with the compiler's output when a file
    fails.
    """
    archive = prefix / "lib" / name
    if archive.is_file():
        return
    objects = prefix / "objects" / name
    objects.mkdir(parents=True, exist_ok=True)
    # The largest files first, so that no processor is left alone with one of them at the end.
    files = sorted(sources, key=lambda path: -path.stat().st_size)
    flags = [*LIBRARY_FLAGS, *hardening_flags(), *(f"-I{folder}" for folder in includes)]
    results: list[Path] = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = [pool.submit(_compile, path, objects, flags) for path in files]
        try:
            for done in as_completed(jobs):
                results.append(done.result())
                if len(results) % 4 == 0 or len(results) == len(files):
                    say(f"{name} {len(results)}/{len(files)}")
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    archive.parent.mkdir(exist_ok=True)
    partial = archive.with_suffix(".tmp")
    partial.unlink(missing_ok=True)
    subprocess.run([os.environ.get("AR", "ar"), "rcs", str(partial), *map(str, sorted(results))], check=True)
    partial.replace(archive)
    shutil.rmtree(objects)


def _compile(source: Path, objects: Path, flags: list[str]) -> Path:
    target = objects / f"{source.parent.name}-{source.stem}.o"
    if not target.exists():
        partial = target.with_suffix(f".{os.getpid()}.tmp")
        command = [*compiler(), *flags, "-c", str(source), "-o", str(partial)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise DepsError(f"{source.name} does not compile:\n{shlex.join(command)}\n{done.stderr}")
        partial.replace(target)
    return target


def _glslang_headers(source: Path, prefix: Path) -> None:
    """Lay the public headers out as an installed glslang does: include/glslang/{Public,Include,SPIRV,...}."""
    include = prefix / "include" / "glslang"
    for folder, into in (("glslang/Public", "Public"), ("glslang/Include", "Include"), ("SPIRV", "SPIRV")):
        shutil.copytree(source / folder, include / into, dirs_exist_ok=True, ignore=_not_headers)
    machine = include / "MachineIndependent"
    machine.mkdir(exist_ok=True)
    shutil.copy2(source / "glslang/MachineIndependent/Versions.h", machine)
    command = [sys.executable, str(source / "build_info.py"), str(source)]
    command += ["-i", str(source / "build_info.h.tmpl"), "-o", str(include / "build_info.h")]
    subprocess.run(command, check=True)


def _not_headers(folder: str, names: list[str]) -> set[str]:
    return {name for name in names if not name.endswith((".h", ".hpp"))}


# --- SPIRV-Tools ----------------------------------------------------------------------------------


def build_spirv_tools(source: Path, prefix: Path) -> None:
    """Compile the validator of SPIRV-Tools' source folder into ``lib/libSPIRV-Tools.a`` of ``prefix``."""
    tables = source / "tables"
    tables.mkdir(exist_ok=True)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(_generate, _table_commands(source, prefix / "include" / "spirv", tables)))
    files = [path for folder in SPIRV_TOOLS_FOLDERS for path in sorted((source / folder).glob("*.cpp"))]
    files = [path for path in files if path.name not in SPIRV_TOOLS_LEFT_OUT]
    includes = [source, source / "include", tables, prefix / "include"]
    build_archive(SPIRV_TOOLS_ARCHIVE, files, includes, prefix)
    public = Path("include", "spirv-tools")
    shutil.copytree(source / public, prefix / public, dirs_exist_ok=True)


def _generate(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise DepsError(f"this does not generate a table:\n{shlex.join(command)}\n{done.stderr}")


def _table_commands(source: Path, headers: Path, tables: Path) -> list[list[str]]:
    """Return the commands that generate tables from the grammars of SPIRV-Headers, as its CMake files do."""

    def run(script: str, **options: Path | str) -> list[str]:
        words = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
        return [sys.executable, str(source / "utils" / script), *words]

    def grammar(name: str) -> Path:
        return headers / "unified1" / f"{name}.grammar.json"

    generate, generate_header = "generate_grammar_tables.py", "generate_language_headers.py"
    core = {
        "spirv_core_grammar": grammar("spirv.core"),
        "extinst_debuginfo_grammar": grammar("extinst.debuginfo"),
        "extinst_cldebuginfo100_grammar": grammar("extinst.opencl.debuginfo.100"),
        "output_language": "c++",
    }
    commands = [
        run(
            generate,
            **core,
            core_insts_output=tables / "core.insts-unified1.inc",
            operand_kinds_output=tables / "operand.kinds-unified1.inc",
        ),
        run(
            generate,
            **core,
            extension_enum_output=tables / "extension_enum.inc",
            enum_string_mapping_output=tables / "enum_string_mapping.inc",
        ),
        run(
            generate,
            extinst_glsl_grammar=grammar("extinst.glsl.std.450"),
            glsl_insts_output=tables / "glsl.std.450.insts.inc",
            output_language="c++",
        ),
        run(
            generate,
            extinst_opencl_grammar=grammar("extinst.opencl.std.100"),
            opencl_insts_output=tables / "opencl.std.insts.inc",
        ),
        run(
            "generate_registry_tables.py",
            xml=headers / "spir-v.xml",
            generator_output=tables / "generators.inc",
        ),
    ]
    for name, prefix in SPIRV_TOOLS_VENDORS.items():
        output = tables / f"{name}.insts.inc"
        options = {"extinst_vendor_grammar": grammar(f"extinst.{name}"), "vendor_insts_output": output}
        commands.append(run(generate, **options, vendor_operand_kind_prefix=prefix))
    for header, name in (
        ("DebugInfo", "debuginfo"),
        ("OpenCLDebugInfo100", "opencl.debuginfo.100"),
        ("NonSemanticShaderDebugInfo100", "nonsemantic.shader.debuginfo.100"),
    ):
        output = tables / f"{header}.h"
        options = {"extinst_grammar": grammar(f"extinst.{name}"), "extinst_output_path": output}
        commands.append(run(generate_header, **options))
    return commands


# --- all together ---------------------------------------------------------------------------------


def prefix_key(installed: list[Found]) -> str:
    """Return the name of the prefix: a hash over everything that decides what is in it."""
    flags = shlex.join([*LIBRARY_FLAGS, *hardening_flags()])
    folders = ",".join(GLSLANG_FOLDERS + SPIRV_TOOLS_FOLDERS)
    parts = [LOCK_FILE.read_text(), compiler_identity(), flags, folders]
    parts += [f"{found.package.name} {found.root} {found.version}" for found in installed]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the file lock ``path``: of two builds at once, one works and the other waits for its outcome."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            say("another build is at work: waiting for it")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def look_up() -> dict[Package, Found | None]:
    """Return each package that is needed with its installed copy; None: the pinned file is used."""
    roots = search_roots()
    packages = {package.name: package for package in read_lock()}
    installed = {name: find_installed(package, roots) for name, package in packages.items()}
    glslang, tools = installed["glslang"], installed["spirv-tools"]
    root = tools.root if tools is not None else None
    if glslang is not None and glslang.root != root and _holds_spirv_tools(glslang.root):
        say(f"glslang in {glslang.root} is not used: it comes with a SPIRV-Tools that is not used")
        installed["glslang"] = None  # two copies of SPIRV-Tools do not link
    if tools is not None:
        del installed["spirv-headers"]  # only needed to compile SPIRV-Tools
    return {packages[name]: found for name, found in installed.items()}


def _holds_spirv_tools(root: Path) -> bool:
    return any(path.name == SPIRV_TOOLS_ARCHIVE for path in glslang_archives(root))


def prepare() -> Path:
    """Return the folder with ``include/``, ``lib/`` and ``licenses/`` of all dependencies, made when missing.

    Raises DepsError when one of them cannot be obtained.
    """
    looked_up = look_up()
    installed = [found for found in looked_up.values() if found is not None]
    prefix = cache_folder() / prefix_key(installed)
    if prefix.is_dir():
        return prefix
    with locked(prefix.with_suffix(".lock")):
        if not prefix.is_dir():
            work = prefix.with_suffix(".partial")
            work.mkdir(parents=True, exist_ok=True)
            _fill(work, looked_up)
            work.rename(prefix)
    return prefix


def _fill(work: Path, looked_up: dict[Package, Found | None]) -> None:
    for package, found in looked_up.items():
        if found is None:
            unpack(package, download(package), work)
        else:
            say(f"using {package.name} {'.'.join(map(str, found.version))} of {found.root}")
            link_installed(found, work)
    for name, build in (("glslang", build_glslang), ("spirv-tools", build_spirv_tools)):
        source = work / "src" / name
        if source.is_dir():
            build(source, work)
            shutil.rmtree(source)


def main() -> int:
    """Prepare the dependencies and print the folder; the exit status is 1, with one message, on failure."""
    try:
        print(prepare())
    except (DepsError, subprocess.CalledProcessError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
