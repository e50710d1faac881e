"""Runs a program on the device and by the interpreter, compares with Python, and makes it smaller."""

from __future__ import annotations

import linecache
import re
import time
import warnings
from collections.abc import Callable, Container
from dataclasses import dataclass
from typing import Any

import numpy as np

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.base.dtype import DType
from vkdispatch.base.errors import VkDispatchError

from . import source_model
from .random_sources import write
from .source_tree import Buffer, Program, edits

TYPES: dict[str, DType] = {
    name: getattr(vc, name)
    for name in (
        "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "f32", "b8",
        "iv2", "iv3", "iv4", "uv2", "uv3", "uv4", "v2", "v3", "v4",
    )
}  # fmt: skip
HOST = {
    "i8": np.int8, "u8": np.uint8, "i16": np.int16, "u16": np.uint16, "i32": np.int32, "u32": np.uint32,
    "i64": np.int64, "u64": np.uint64, "f32": np.float32, "b8": np.bool_, "iv": np.int32, "uv": np.uint32,
    "v": np.float32,
}  # fmt: skip
_LARGE = 400_000


@dataclass(frozen=True)
class Difference:
    """What went wrong, and how: `cause` is the same for programs that fail alike."""

    cause: str
    text: str


def array(buffer: Buffer) -> np.ndarray[Any, Any]:
    kind = buffer.kind if buffer.kind in HOST else buffer.kind.rstrip("234")
    return np.array(buffer.data, HOST[kind])


def expected(program: Program) -> list[list[Any]]:
    """What the buffers hold after plain Python has run the program."""
    return source_model.run(
        program.source(),
        [(buffer.kind, buffer.data) for buffer in program.buffers],
        [place for _, place in program.parameters],
        program.exec_size,
        program.local_size,
        wraps=program.edge is not None and program.edge.rule == "wraps",
    )


def _annotation(kind: str) -> Any:
    buffer: Any = vc.Buff
    return buffer[TYPES[kind]]


def build(program: Program) -> Any:
    """Trace the program as a kernel."""
    source = program.source()
    name = f"<program {abs(hash(source))}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    namespace: dict[str, Any] = {"__name__": "random_kernel"}
    exec(compile(source, name, "exec", dont_inherit=True), namespace)
    try:
        return vd.shader(
            exec_size=program.exec_size,
            local_size=program.local_size,
            flags=vc.ShaderFlags.PYTHON_DIVISION,
            arg_type_annotations=[
                _annotation(program.buffers[place].kind) for _, place in program.parameters
            ],
        )(namespace["kernel"])
    finally:
        del linecache.cache[name]


def difference(program: Program, *, interpreter: bool = True, device: bool = True) -> Difference | None:
    """Compute a program in all ways; what differs, or None. Raises ModelError for a bad program."""
    edge = program.edge
    try:
        right = expected(program)
    except source_model.ModelError:
        if edge is None or edge.fits:
            raise
        right = []
    wanted = [array(Buffer(buffer.kind, data)) for buffer, data in zip(program.buffers, right, strict=False)]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            kernel = build(program)
            text = str(kernel.get_src().code)
    except VkDispatchError as error:
        if edge is not None and not edge.fits:
            at_line = f":{len(program.source().splitlines())})" in str(error)
            return None if at_line else Difference("refused elsewhere", str(error))
        return Difference(f"refused: {type(error).__name__}: {masked(str(error))}", str(error))
    except Exception as error:
        return Difference(
            f"raised: {type(error).__name__}: {masked(str(error))}", f"{type(error).__name__}: {error}"
        )
    # `u + -1` is `u - 1`, a mask keeps its bits, and a choice may be made in a wider type
    lenient = edge is not None and edge.form in ("sum or mask", "choice")
    if edge is not None and not edge.fits and not lenient and (edge.rule == "wraps" or not wanted):
        return Difference(f"accepted: a number that does not fit, {edge.form}", text)
    if len(text) > _LARGE:
        return Difference("large", f"{len(text)} characters of GLSL")
    ways: list[tuple[str, Callable[[Any, Program], list[np.ndarray[Any, Any]]]]] = []
    if interpreter:
        ways.append(("the interpreter", _interpret))
    if device:
        ways.append(("the device", _launch))
    wrong, told = [], []
    for way, compute in ways:
        try:
            results = compute(kernel, program)
        except Exception as error:
            wrong.append(f"{way} raised {type(error).__name__} {masked(str(error))}")
            told.append(f"{way}: {type(error).__name__}: {error}")
            continue
        for place, (actual, values) in enumerate(zip(results, wanted, strict=True)):
            if not np.array_equal(actual, values):
                wrong.append(way)
                told.append(_where(way, place, actual, values))
                break
    if not wrong:
        return None
    return Difference("differ: " + " and ".join(wrong), "\n".join((*told, text)))


def _where(way: str, place: int, actual: np.ndarray[Any, Any], right: np.ndarray[Any, Any]) -> str:
    rows = np.unique(np.argwhere(actual != right)[:, 0])[:8]
    wrong = f"{way}, buffer {place}, elements {rows.tolist()}: {actual[rows].tolist()}"
    return f"{wrong}, right is {right[rows].tolist()}"


def _interpret(kernel: Any, program: Program) -> list[np.ndarray[Any, Any]]:
    arrays = [array(buffer) for buffer in program.buffers]
    size = vd.get_context().device_infos[0].sub_group_size
    kernel.interpret(*(arrays[place] for _, place in program.parameters), subgroup_size=size, races=True)
    return arrays


def _launch(kernel: Any, program: Program) -> list[np.ndarray[Any, Any]]:
    buffers = []
    for buffer in program.buffers:
        values = array(buffer)
        made: vd.Buffer[Any] = vd.Buffer((len(values),), TYPES[buffer.kind])
        made.write(values)
        buffers.append(made)
    kernel(*(buffers[place] for _, place in program.parameters))
    return [buffer.read(0) for buffer in buffers]


def masked(text: str) -> str:
    """First line of a message without the names and numbers of a program."""
    first = text.split("\n")[0]
    first = re.sub(r"'[a-z]+(_too)?\d*'", "'N'", re.sub(r"\(<program.*?\)", "", first))
    return re.sub(r"-?\d+(\.\d+)?", "#", first)[:150]


def shrink(program: Program, cause: str, budget: float = 60.0, **ways: bool) -> Program:
    """Leave out what the failure does not need."""
    end = time.monotonic() + budget
    shorter = True
    while shorter and time.monotonic() < end:
        shorter = False
        for edit in edits(program):
            if time.monotonic() > end:
                break
            before = program.source()
            edit.do()
            if program.source() == before or not _fails(program, cause, **ways):
                edit.undo()
            else:
                shorter = True
    return program


def _fails(program: Program, cause: str, **ways: bool) -> bool:
    try:
        found = difference(program, **ways)
    except Exception:
        return False
    return found is not None and found.cause == cause


def supported(feature: str) -> bool:
    """Whether the default device has the types that programs of a feature use."""
    kinds = {
        "narrow": ("i8", "i16", "u16"),
        "wide": ("i64", "u64"),
        "arithmetic": ("i8", "i16", "u16", "i64", "u64", "b8"),
        "edges": ("i8", "i16", "i64"),
        "floats": ("b8",),
    }
    info = vd.get_context().device_infos[0]
    has = {
        "i8": info.storage_buffer_8_bit_access, "b8": info.storage_buffer_8_bit_access,
        "i16": info.storage_buffer_16_bit_access and info.int_16_support,
        "u16": info.storage_buffer_16_bit_access and info.int_16_support,
        "i64": info.int_64_support, "u64": info.int_64_support,
    }  # fmt: skip
    return all(has[kind] for kind in kinds.get(feature, ()))


def check(
    seed: int, features: tuple[str, ...], *, leave: Container[str] = (), **ways: bool
) -> Difference | None:
    """Compute the program of a seed; what differs, with a small program that does so too, or None.

    Programs that fail of one of the causes in `leave` are not made smaller.
    """
    found = difference(write(seed, features), **ways)
    if found is None:
        return None
    if found.cause in leave:
        return Difference(found.cause, write(seed, features).description())
    program = shrink(write(seed, features), found.cause, **ways)
    again = difference(program, **ways) or found
    return Difference(found.cause, f"{program.description()}\n{again.text}")
