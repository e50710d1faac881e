"""The module's binary was compiled and linked with all protections."""

from __future__ import annotations

import platform
import struct
from pathlib import Path
from typing import NamedTuple

import pytest

import vkdispatch_native as native

pytestmark = pytest.mark.skipif(
    native.allocation_count() is None, reason="sanitized builds have checks of their own"
)

LOAD, DYNAMIC, STACK, RELRO = 1, 2, 0x6474E551, 0x6474E552  # types of segments
EXECUTABLE, WRITABLE = 1, 2
STRINGS, SYMBOLS, RPATH, TEXTREL, RUNPATH, GOT = 5, 6, 15, 22, 29, 3  # tags of the dynamic section
GNU_HASH, FLAGS, FLAGS_1 = 0x6FFFFEF5, 30, 0x6FFFFFFB
X86_64 = 62


class Segment(NamedTuple):
    """A program header."""

    type: int
    flags: int
    offset: int
    address: int
    file_size: int
    size: int


class Symbol(NamedTuple):
    """An entry of the dynamic symbol table; `section` is 0 for imported symbols."""

    name: str
    section: int
    address: int


class Elf:
    """The dynamic linking information of a 64-bit little-endian ELF file."""

    def __init__(self, path: Path) -> None:
        self.data = path.read_bytes()
        assert self.data[:6] == b"\x7fELF\x02\x01"
        (self.machine,) = self.unpack("H", 18)
        (first,) = self.unpack("Q", 32)
        size, count = self.unpack("HH", 54)
        self.segments = []
        for at in range(first, first + size * count, size):
            kind, flags, offset, address, _, in_file, in_memory = self.unpack("IIQQQQQ", at)
            self.segments.append(Segment(kind, flags, offset, address, in_file, in_memory))
        (dynamic,) = self.of_type(DYNAMIC)
        rows = struct.iter_unpack("<qQ", self.data[dynamic.offset : dynamic.offset + dynamic.file_size])
        self.tags: dict[int, int] = dict(rows)

    def unpack(self, form: str, offset: int) -> tuple[int, ...]:
        return struct.unpack_from("<" + form, self.data, offset)

    def of_type(self, kind: int) -> list[Segment]:
        return [segment for segment in self.segments if segment.type == kind]

    def offset(self, address: int) -> int:
        """Return the file offset of an address."""
        inside = [
            segment
            for segment in self.of_type(LOAD)
            if segment.address <= address < segment.address + segment.file_size
        ]
        return address - inside[0].address + inside[0].offset

    def symbol_count(self) -> int:
        """Return the length of the symbol table, which is only known from the hash table."""
        at = self.offset(self.tags[GNU_HASH])
        buckets, first, bloom, _ = self.unpack("IIII", at)
        chains = at + 16 + 8 * bloom + 4 * buckets
        last = max(self.unpack(f"{buckets}I", chains - 4 * buckets))
        if last < first:
            return first
        while not self.unpack("I", chains + 4 * (last - first))[0] & 1:
            last += 1
        return last + 1

    def symbols(self) -> list[Symbol]:
        at, names = self.offset(self.tags[SYMBOLS]), self.offset(self.tags[STRINGS])
        found = []
        for index in range(1, self.symbol_count()):
            name, _, section, address = self.unpack("IHHQ", at + 24 * index)
            end = self.data.index(b"\0", names + name)
            found.append(Symbol(self.data[names + name : end].decode(), section, address))
        return found


@pytest.fixture(scope="module")
def elf() -> Elf:
    assert native.__file__ is not None
    return Elf(Path(native.__file__))


def test_no_memory_is_writable_and_executable(elf: Elf) -> None:
    for segment in elf.of_type(LOAD):
        assert segment.flags & (WRITABLE | EXECUTABLE) != WRITABLE | EXECUTABLE
    (stack,) = elf.of_type(STACK)
    assert not stack.flags & EXECUTABLE


def test_relocated_data_is_read_only_once_it_is_loaded(elf: Elf) -> None:
    assert elf.tags.get(FLAGS, 0) & 8 or elf.tags.get(FLAGS_1, 0) & 1  # all symbols are bound at once
    (relro,) = elf.of_type(RELRO)
    (dynamic,) = elf.of_type(DYNAMIC)
    end = relro.address + relro.size
    assert relro.address <= dynamic.address < end
    if GOT in elf.tags:
        assert relro.address <= elf.tags[GOT] < end


def test_code_has_no_relocations_and_no_library_search_path(elf: Elf) -> None:
    assert TEXTREL not in elf.tags
    assert not elf.tags.get(FLAGS, 0) & 4
    assert RPATH not in elf.tags
    assert RUNPATH not in elf.tags


def test_stacks_are_guarded_and_calls_are_fortified(elf: Elf) -> None:
    imported = {symbol.name for symbol in elf.symbols() if not symbol.section}
    assert "__stack_chk_fail" in imported
    if platform.libc_ver()[0] != "glibc":
        pytest.skip("this C library has no fortified calls")
    assert {"__snprintf_chk", "__sprintf_chk"} <= imported


def test_one_symbol_is_exported(elf: Elf) -> None:
    (exported,) = [symbol for symbol in elf.symbols() if symbol.section]
    assert exported.name == "PyInit_vkdispatch_native"
    if elf.machine == X86_64:  # targets of indirect jumps are marked
        at = elf.offset(exported.address)
        assert elf.data[at : at + 4] == b"\xf3\x0f\x1e\xfa"
