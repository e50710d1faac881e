"""A recorded launch as a link of a chain: what its kernel accesses, and what is proven of that."""

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from vkdispatch.base.buffer import Buffer
from vkdispatch.base.context import Handle
from vkdispatch.base.dtype import is_integer_dtype, is_scalar, is_vector, uvec3
from vkdispatch.base.memory.packing import component_dtype
from vkdispatch.base.record import field, record
from vkdispatch.codegen import ShaderDescription
from vkdispatch.compiler.analyses.launch_values import Extent, Linear
from vkdispatch.compiler.analyses.traffic import Space
from vkdispatch.compiler.ir import Argument, Storage
from vkdispatch.compiler.passes.elementwise import Elementwise, decide_branches, elementwise, resolve_branches
from vkdispatch.execution_pipeline.optimization import Launch
from vkdispatch.shader.fusion.fusible import FusibleKernel


@record(eq=False)
class _Reach:
    """A kernel as a launch runs it: without the branches that it never takes, and with its indices.

    Attributes
    ----------
    element
        The kernel.
    forms
        The index of each of its elements; None if that is not a linear form of the global id.
    space
        The invocations.
    """

    element: Elementwise
    forms: tuple[Linear | None, ...]
    space: Space


@functools.lru_cache(maxsize=1024)
def _analyze(description: ShaderDescription) -> Elementwise | None:
    return elementwise(description.kernel)


@functools.lru_cache(maxsize=1024)
def _decide(description: ShaderDescription, known: tuple[bool | None, ...]) -> Elementwise | None:
    return resolve_branches(description.kernel, known)


@functools.lru_cache(maxsize=4096)
def _find_reach(
    description: ShaderDescription, extent: Extent, values: tuple[tuple[int, ...] | None, ...]
) -> _Reach | None:
    """Analyze a kernel. `values` are those of the arguments that its indices and conditions consist of."""
    whole = _analyze(description)
    assert whole is not None
    known = dict(zip(whole.deciding, values, strict=True))
    answers = decide_branches(whole, Space(extent, known.get, whole.definitions))
    element = _decide(description, answers)
    if element is None:
        return None
    space = Space(extent, known.get, element.definitions)
    return _Reach(element, tuple(space.form(found.args[0]) for found in element.elements), space)


# A resource of a chain: the handle of a buffer or sampler, and its type in the kernel.
Key = tuple[int, Any]


@record(eq=False, frozen=False)
class Use:
    """The accesses of a chain to a buffer."""

    links: int = 0
    written: bool = False
    kinds: set[Any] = field(factory=set)
    forms: set[Linear | None] = field(factory=set)

    def join(self, other: "Use") -> "Use":
        """Return the accesses of both."""
        return Use(
            self.links + other.links,
            self.written or other.written,
            self.kinds | other.kinds,
            self.forms | other.forms,
        )

    def is_apart(self, space: Space) -> bool:
        """Whether no invocation accesses what another one writes in another link."""
        if not self.written or self.links == 1:
            return True
        if len(self.kinds) > 1 or len(self.forms) > 1:
            return False
        (form,) = self.forms
        return form is not None and space.is_injective(form)


@record(eq=False)
class Link:
    """A launch of a chain.

    Attributes
    ----------
    launch, kernel
        The recorded launch and its kernel.
    reach
        The kernel as this launch runs it.
    extent
        Its invocations.
    bound, keys
        By position among the kernel's resources: the handle that is bound, and its key in the chain.
    uses
        The accesses to its buffers, by handle.
    """

    launch: Launch
    kernel: FusibleKernel
    reach: _Reach
    extent: Extent
    bound: dict[int, Handle]
    keys: dict[int, Key]
    uses: dict[int, Use]


def make_link(launch: Launch) -> Link | None:
    """Return a launch as a link of a chain, or None if it cannot be proven to be element-wise."""
    kernel = launch.kernel
    if not isinstance(kernel, FusibleKernel) or any(map(_may_overlap, launch.resources)):
        return None
    whole = _analyze(kernel.description)
    exec_offset = kernel.layout.exec_offset
    if whole is None or exec_offset is None:
        return None
    # The variant for many invocations has its limit and shapes in 64 bits.
    limits = {member.dtype for member in kernel.layout.members if member.offset == exec_offset}
    wide = uvec3 not in limits
    sizes = np.frombuffer(launch.block, np.uint64 if wide else np.uint32, 3, exec_offset)
    x, y, z = (int(size) for size in sizes)
    if not x * y * z:
        return None
    values = tuple(_read_integers(launch, argument, wide=wide) for argument in whole.deciding)
    reach = _find_reach(kernel.description, (x, y, z), values)
    if reach is None:
        return None
    # a journal of errors may follow the kernel's own
    bound = dict(zip(kernel.resources, launch.resources, strict=False))
    keys = _find_keys(kernel, bound)
    return Link(launch, kernel, reach, (x, y, z), bound, keys, _find_uses(reach, bound))


def _may_overlap(resource: Handle) -> bool:
    """Whether other buffers may show a part of a resource's memory."""
    return isinstance(resource, Buffer) and resource._native.may_overlap


def _find_keys(kernel: FusibleKernel, bound: Mapping[int, Handle]) -> dict[int, Key]:
    resources = kernel.description.kernel.resources
    keys: dict[int, Key] = {}
    for position, handle in bound.items():
        resource = resources[position]
        kind: Any = resource.dtype
        if not isinstance(resource, Storage):
            kind = (resource.dtype, resource.dimensions, resource.arrayed)
        keys[position] = (handle._memory_handle, kind)
    return keys


def _find_uses(reach: _Reach, bound: Mapping[int, Handle]) -> dict[int, Use]:
    element = reach.element
    uses: dict[int, Use] = {}
    for expr, form in zip(element.elements, reach.forms, strict=True):
        storage = expr.value
        assert isinstance(storage, Storage)
        use = uses.setdefault(bound[storage.index]._memory_handle, Use(1))
        use.kinds.add(storage.dtype)
        use.forms.add(form)
        use.written = use.written or id(expr) in element.written
    return uses


def _read_integers(launch: Launch, argument: Argument, *, wide: bool) -> tuple[int, ...] | None:
    """Return the components of an argument, or None if they are not integers or a submit may change them."""
    kind = argument.dtype
    offset = launch.kernel.layout.offset_of(argument.name)
    plain = is_integer_dtype(kind) and (is_scalar(kind) or is_vector(kind))
    if offset in launch.bound or not plain:
        return None
    host = component_dtype(kind)
    count = kind.item_size // host.itemsize
    infos = launch.kernel.description.shader_arg_infos
    if wide and any(info.shader_shape_name == argument.name for info in infos):
        host = np.dtype(np.int64)
    return tuple(int(value) for value in np.frombuffer(launch.block, host, count, offset))
