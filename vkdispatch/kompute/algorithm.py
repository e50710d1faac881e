"""A kernel bound to memory, with its workgroups and constants, and how its code is built."""

import operator
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from vkdispatch.base.compilation.compiler import compile_glsl
from vkdispatch.base.context import Context
from vkdispatch.base.errors import ArgumentTypeError
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.kompute import log
from vkdispatch.kompute.code import (
    SpirvDispatch,
    copy_constants,
    find_push_types,
    parse_constants,
    read_spirv,
)
from vkdispatch.kompute.enums import KomputeError, Opaque, require_iterable
from vkdispatch.kompute.memory import Image, Memory

# ---- Building of SPIR-V, GLSL and traced kernels for the dispatches of an algorithm ----------------------


Array = np.ndarray[Any, Any]


Groups = tuple[int, int, int]


class Dispatchable(Protocol):
    """A built algorithm, which records dispatches."""

    push_types: frozenset[tuple[str, int]]  # kinds and bits of the push constants
    images: tuple[Image, ...]  # the images among its memory
    stored_images: tuple[Image, ...]  # the images that the kernel writes to

    def record(self, graph: CommandGraph, constants: Array) -> None:
        """Append a dispatch to a graph."""

    def with_groups(self, groups: Groups, *, chosen: bool) -> "Dispatchable":
        """Return a copy with other workgroup counts, or with its own if the caller has `chosen` none."""

    def repeat(self, count: int) -> "Dispatchable | None":
        """Return an equivalent of `count` dispatches in one dispatch, or None if that is impossible."""


def build(
    context: Context,
    memories: Sequence[Memory],
    code: Any,
    groups: Groups | None,
    spec_consts: Any,
    push_consts: Any,
) -> tuple[Dispatchable, Array]:
    """Build an algorithm. Return the pipeline and the push constants.

    Parameters
    ----------
    code
        SPIR-V, GLSL text, or a traced kernel.
    groups
        Workgroups of a dispatch. None: the size of a traced kernel, or one for each element of the first
        memory object.

    Raises
    ------
    RuntimeError
        The code is invalid, or does not match the arguments.
    """
    if not isinstance(code, (bytes, str)):
        # Imported here: this module needs the kernel language.
        from vkdispatch.kompute.traced import TracedDispatch

        traced = TracedDispatch(context, memories, code, groups, spec_consts, push_consts)
        return traced, traced.constants
    module = read_spirv(compile_glsl(code, "algorithm") if isinstance(code, str) else code)
    constants = parse_constants("push_consts", push_consts, find_push_types(module[1]))
    groups = groups or (len(memories[0]), 1, 1)
    return SpirvDispatch(context, memories, module, groups, spec_consts, constants), constants


# ---- A kernel bound to memory, with its workgroups and constants -----------------------------------------


NO_CONSTANTS: Array = np.zeros(0, np.float32)


class Algorithm(Opaque):
    """A kernel bound to memory: SPIR-V, GLSL or a traced kernel, with workgroups and constants.

    Without memory or code an algorithm is empty: `is_init()` is False, and only OpMult and `rebuild` accept
    it.
    """

    __slots__ = (
        "_bound",
        "_built",
        "_code",
        "_context",
        "_memories",
        "_push",
        "_requested_workgroup",
        "_spec",
        "_workgroup",
    )

    _maker = "kp.Manager.algorithm"
    _context: Context
    _memories: tuple[Memory, ...]
    _bound: list[tuple[Memory, Any]]  # each with its native memory when it was bound
    _code: Any  # SPIR-V bytes, GLSL text, or a vd.ShaderFunction
    _built: "Dispatchable | None"
    _push: Array
    _spec: Any
    _workgroup: Groups
    _requested_workgroup: Groups  # the argument, with zeros for the size of the first memory object

    def get_mem_objects(self) -> list[Memory]:
        """Return the tensors and images that the algorithm is bound to."""
        return list(self._memories)

    get_tensors = get_mem_objects

    def is_init(self) -> bool:
        """Whether the algorithm can be dispatched: it has memory and code and was not destroyed."""
        return self._built is not None

    def destroy(self) -> None:
        """Free the pipeline once the device no longer uses it. Idempotent."""
        self._built = None
        log.debug("algorithm destroyed")

    def rebuild(
        self,
        tensors: Sequence[Memory] = (),
        spirv: Any = b"",
        workgroup: Sequence[int] = (0, 0, 0),
        spec_consts: Any = (),
        push_consts: Any = (),
    ) -> None:
        """Bind the algorithm to other memory, code and constants. Recorded dispatches do not change.

        Raises the errors of `kp.Manager.algorithm`.
        """
        self._set_up(self._context, tensors, spirv, workgroup, spec_consts, push_consts)

    def set_workgroup(self, workgroup: Sequence[int]) -> None:
        """Set the workgroups of later recordings. Raises as `kp.Manager.algorithm`."""
        requested = _parse_workgroup(workgroup)
        groups = _count_workgroups(requested, self._memories)
        if self._built is not None:
            self._built = self._built.with_groups(groups, chosen=requested[0] > 0)
        self._workgroup, self._requested_workgroup = groups, requested

    def get_workgroup(self) -> Groups:
        """Return the number of workgroups along x, y and z."""
        return self._workgroup

    def set_push_consts(self, push_consts: Any) -> None:
        """Set the default push constants of dispatches.

        Raises
        ------
        TypeError, RuntimeError
            As `kp.Manager.algorithm`, or if the size in bytes changes.
        """
        self._push = self._parse_push_consts(push_consts)

    set_push_constants = set_push_consts

    def get_push_consts(self) -> Array:
        """Return the default push constants of dispatches."""
        return self._push.copy()

    def get_spec_consts(self) -> Array:
        """Return the specialization constants."""
        return np.array(self._spec)

    def _set_up(
        self,
        context: Context,
        tensors: Sequence[Memory],
        spirv: Any,
        workgroup: Sequence[int],
        spec_consts: Any,
        push_consts: Any,
    ) -> None:
        """Build the algorithm. If that raises, nothing changes."""
        memories = parse_memories(context, "tensors", tensors)
        counts = _parse_workgroup(workgroup)
        groups = _count_workgroups(counts, memories)
        built: Dispatchable | None = None
        spec_consts = copy_constants("spec_consts", spec_consts)
        push_consts = copy_constants("push_consts", push_consts)
        push = parse_constants("push_consts", push_consts, frozenset())
        is_code = isinstance(spirv, (bytes, str))
        if not is_code and not hasattr(spirv, "shader_description"):
            raise ArgumentTypeError(
                "spirv: expected the bytes of a SPIR-V module, GLSL text or a vd.shader, got "
                f"{type(spirv).__name__}"
            )
        if memories and (spirv or not is_code):
            explicit = groups if counts[0] else None
            built, push = build(context, memories, spirv, explicit, spec_consts, push_consts)
        self._context, self._memories, self._code = context, memories, spirv
        self._workgroup, self._requested_workgroup = groups, counts
        self._built, self._push, self._spec = built, push, spec_consts
        self._bound = [(memory, memory._native) for memory in memories]
        if built is not None:
            log.debug(
                "algorithm built: number of tensors and images %d, workgroups %s, push constants %d bytes",
                *(len(memories), groups, push.nbytes),
            )

    def _require_built(self) -> "Dispatchable":
        """Return the pipeline to dispatch.

        Raises RuntimeError if the algorithm is empty or its memory was destroyed.
        """
        built = self._built
        if built is None:
            raise KomputeError(
                "algorithm: it has no tensors or no code, or was destroyed, so there is nothing to dispatch"
            )
        for memory, native in self._bound:
            if not memory._initialized:
                memory._require()
            if memory._native is not native:  # the memory was rebuilt
                return self._rebind()
        return built

    def _rebind(self) -> "Dispatchable":
        """Bind rebuilt memory. Raises RuntimeError if the code no longer fits it."""
        push = self._push
        self._set_up(self._context, self._memories, self._code, self._requested_workgroup, self._spec, push)
        built = self._built
        assert built is not None
        return built

    def _parse_push_consts(self, values: Any) -> Array:
        """Return push constants of the original size in bytes. Empty: the current ones."""
        declared = self._built.push_types if self._built is not None else frozenset()
        constants = parse_constants("push_consts", values, declared)
        if constants.size == 0:
            return self._push
        if constants.nbytes != self._push.nbytes:
            raise KomputeError(
                f"push_consts: {constants.nbytes} bytes; the algorithm was made with {self._push.nbytes}, "
                "which cannot change"
            )
        return constants.copy()  # the caller may change its array


def make_algorithm(
    context: Context, tensors: Any, spirv: Any, workgroup: Any, spec_consts: Any, push_consts: Any
) -> Algorithm:
    """Make an algorithm; see `kp.Manager.algorithm`."""
    algorithm = Algorithm.__new__(Algorithm)
    algorithm._set_up(context, tensors, spirv, workgroup, spec_consts, push_consts)
    return algorithm


def check_algorithm(algorithm: object) -> Algorithm:
    """Return an algorithm. Raises TypeError for anything else."""
    if not isinstance(algorithm, Algorithm):
        raise ArgumentTypeError(f"algorithm: expected a kp.Algorithm, got {algorithm!r}")
    return algorithm


def parse_memories(context: Context, argument: str, value: object) -> tuple[Memory, ...]:
    """Return memory objects of a context.

    Raises
    ------
    TypeError
        An item is not a memory object.
    RuntimeError
        One was destroyed, or belongs to another device.
    """
    if isinstance(value, Memory):  # a ListTensor is iterable
        raise ArgumentTypeError(f"{argument}: expected a list of tensors and images, got {value!r}")
    memories = tuple(require_iterable(argument, value, "a list of tensors and images"))
    for memory in memories:
        if not isinstance(memory, Memory):
            raise ArgumentTypeError(f"{argument}: expected tensors and images, got {memory!r}")
        memory._require()
        if memory._context is not context:
            raise KomputeError(f"{argument}: {memory!r} belongs to a Manager of another device or queues")
    return memories


def _parse_workgroup(value: object) -> Groups:
    """Return three workgroup counts. Raises TypeError for anything else."""
    try:
        if isinstance(value, (str, bytes)):
            raise TypeError
        sizes = tuple(operator.index(size) for size in value)  # type: ignore[attr-defined]
        if len(sizes) != 3 or min(sizes) < 0:
            raise TypeError
    except TypeError:
        raise ArgumentTypeError(f"workgroup: expected three counts, 0 or more, got {value!r}") from None
    return sizes


def _count_workgroups(counts: Groups, memories: Sequence[Memory]) -> Groups:
    """Return workgroups along x, y and z. With x = 0, one for each element of the first memory object."""
    x, y, z = counts
    if x == 0:
        return (len(memories[0]) if memories else 0, 1, 1)
    return (x, max(y, 1), max(z, 1))
