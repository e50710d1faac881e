"""Fusing recorded launches in a row into one kernel: found, proven, and described as that kernel."""

import functools
import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from vkdispatch.base.buffer import Buffer
from vkdispatch.base.context import Handle
from vkdispatch.base.dtype import is_integer_dtype, is_scalar, is_vector, uvec3
from vkdispatch.base.memory.data import component_dtype
from vkdispatch.base.record import field, record
from vkdispatch.codegen.backends import CodeGenBackend
from vkdispatch.codegen.description import ArgType, ShaderArgumentInfo, ShaderDescription
from vkdispatch.compiler.analyses.launch_values import Extent, Linear, Space
from vkdispatch.compiler.ir import Argument, Storage
from vkdispatch.compiler.passes.elementwise import (
    Elementwise,
    Part,
    decide_branches,
    elementwise,
    is_kept_in_registers,
    resolve_branches,
)
from vkdispatch.compiler.passes.fuse import fuse
from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.execution_pipeline.optimization import Fusion, Launch
from vkdispatch.shader.program import FusibleKernel
from vkdispatch.shader.signature import make_zero

# ---- A recorded launch as a link of a chain: what its kernel accesses, and what is proven of that --------


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
    return _Reach(element, tuple(space.form(access.args[0]) for access in element.elements), space)


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
        written = self.written or other.written
        return Use(self.links + other.links, written, self.kinds | other.kinds, self.forms | other.forms)

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


# ---- The kernel that does the work of a chain of launches ------------------------------------------------


_LONGEST_NAME = 80


@record(eq=False)
class FusedKernel:
    """A kernel that replaces several.

    Attributes
    ----------
    description, local_size
        The kernel, and its workgroup size if the user gave one of the several one.
    resources
        The number in the chain of each of its resources.
    zeros
        Values for its other arguments, to be replaced when it is recorded.
    members
        For each of the several, the member that each argument became.
    """

    description: ShaderDescription
    local_size: Extent | None
    resources: tuple[int, ...]
    zeros: tuple[Any, ...]
    members: tuple[dict[str, str], ...]


# Equal chains share one description, which is compiled once.
@functools.lru_cache(maxsize=256)
def fuse_parts(
    name: str,
    parts: tuple[Part, ...],
    unread: frozenset[int],
    planar: frozenset[int],
    local_size: Extent | None,
    backend: CodeGenBackend,
) -> FusedKernel:
    """Return the kernel that does the work of several.

    Parameters
    ----------
    parts
        The kernels, in order.
    unread, planar
        Resources of the chain that nothing reads afterwards, and those that are indexed by two axes.
    """
    fused = fuse(name, parts, unread)
    kernel = fused.kernel
    infos = [
        ShaderArgumentInfo(
            f"{resource.label}_{position}",
            ArgType.BUFFER if isinstance(resource, Storage) else ArgType.IMAGE,
            None,
            resource.name,
            fused.shapes.get(number),
            position,
            resource.dtype,
            image=None if isinstance(resource, Storage) else resource,
            planar=number in planar and number in fused.shapes,
        )
        for position, (number, resource) in enumerate(zip(fused.resources, kernel.resources, strict=True))
    ]
    shapes = set(fused.shapes.values())
    values = [
        argument
        for argument in kernel.arguments
        if argument is not kernel.exec_count and argument.name not in shapes
    ]
    infos.extend(
        ShaderArgumentInfo(
            argument.name,
            ArgType.VARIABLE,
            None,
            argument.name,
            dtype=argument.dtype,
            members=(argument.name,),
            member_dtypes=(argument.dtype,),
        )
        for argument in values
    )
    description = ShaderDescription(kernel, tuple(infos), backend)
    zeros = tuple(make_zero(argument.dtype) for argument in values)
    return FusedKernel(description, local_size, fused.resources, zeros, fused.members)


def join_names(names: Sequence[str]) -> str:
    """Join kernels' names: "a+b*3+c", or "a+...+c (17)" where that is long."""
    runs = [(name, len(list(group))) for name, group in itertools.groupby(names)]
    text = "+".join(name if count == 1 else f"{name}*{count}" for name, count in runs)
    return text if len(text) <= _LONGEST_NAME else f"{names[0]}+...+{names[-1]} ({len(names)})"


# ---- Chains of recorded launches that one kernel can replace ---------------------------------------------


# Larger kernels take long to compile, and run out of registers.
_MAX_EXPRESSIONS = 2000
# Every device takes uniform blocks of 16 KiB.
_MAX_ARGUMENT_BYTES = 8192
_MAX_BUFFERS = 64


# Makes the kernel of a description and a workgroup size, to be recorded.
MakeKernel = Callable[[ShaderDescription, Extent | None], Any]


def find_chains(
    launches: Sequence[Launch], uses: Mapping[int, int], discarded: frozenset[int], make_kernel: MakeKernel
) -> list[Fusion]:
    """Find chains among launches in a row; see `Fusible.fuse` in `execution_pipeline.optimization`."""
    most = min([_MAX_BUFFERS, *(launch.kernel.most_buffers for launch in launches)])
    return [
        chain.fuse(first, uses, discarded, make_kernel)
        for first, chain in _split(launches, most)
        if len(chain.links) > 1
    ]


class _Chain:
    """Launches in a row that one kernel can replace."""

    def __init__(self, most_buffers: int) -> None:
        self.links: list[Link] = []
        self._most_buffers = most_buffers
        self._uses: dict[int, Use] = {}
        self._keys: dict[Key, None] = {}
        self._size = 0
        self._bytes = 0

    def add(self, link: Link) -> bool:
        """Append a launch to the chain, and return True, if the proof holds for it."""
        uses, keys = dict(self._uses), self._keys | dict.fromkeys(link.keys.values())
        for handle, use in link.uses.items():
            uses[handle] = uses[handle].join(use) if handle in uses else use
            if not uses[handle].is_apart(link.reach.space):
                return False
        element = link.reach.element
        size = self._size + element.size
        argument_bytes = self._bytes + sum(argument.dtype.item_size for argument in element.kernel.arguments)
        if self.links:
            last = self.links[-1]
            backends = [type(other.kernel.description.backend) for other in (last, link)]
            if last.reach.element.returns or last.extent != link.extent or backends[0] is not backends[1]:
                return False
            if (
                size > _MAX_EXPRESSIONS
                or argument_bytes > _MAX_ARGUMENT_BYTES
                or len(keys) > self._most_buffers
            ):
                return False
        self.links.append(link)
        self._uses, self._keys, self._size, self._bytes = uses, keys, size, argument_bytes
        return True

    def fuse(
        self, first: int, uses: Mapping[int, int], discarded: frozenset[int], make_kernel: MakeKernel
    ) -> Fusion:
        """Return how one launch replaces the chain, whose first launch has the number `first`."""
        numbers = {key: number for number, key in enumerate(self._keys)}
        places = self._number_places(numbers)
        parts = tuple(_make_part(link, numbers, places) for link in self.links)
        chain_uses = Counter(
            handle
            for link in self.links
            for handle in {resource._memory_handle for resource in link.launch.resources}
        )
        # One dispatch may store what another loads as another type.
        views = Counter(handle for handle, _ in numbers)
        unread = frozenset(
            number
            for (handle, _), number in numbers.items()
            if handle in discarded and chain_uses[handle] == uses[handle] and views[handle] == 1
        )
        names = tuple(link.kernel.description.name for link in self.links)
        sizes = {link.kernel.local_size for link in self.links} - {None}
        planar = frozenset(number for link in self.links for number in _find_planar(link, numbers))
        local_size = sizes.pop() if len(sizes) == 1 else None
        backend = self.links[0].kernel.description.backend
        fused = fuse_parts(join_names(names), parts, unread, planar, local_size, backend)
        handles = {
            numbers[key]: link.bound[position] for link in self.links for position, key in link.keys.items()
        }
        resources = tuple(handles[number] for number in fused.resources)
        extent, values = self.links[0].extent, tuple(self._list_values(fused))

        def record(graph: CommandGraph) -> None:
            # with zeros as values: those of the replaced launches are copied later
            kernel = make_kernel(fused.description, fused.local_size)
            kernel.check_and_call((*resources, *fused.zeros), graph, {"exec_size": extent})

        return Fusion(first, len(self.links), record, values)

    def _number_places(self, numbers: Mapping[Key, int]) -> dict[tuple[int, Linear], int]:
        """Assign numbers to the elements of one invocation each that several launches access."""
        touched: dict[tuple[int, Linear], set[int]] = {}
        for position, link in enumerate(self.links):
            keys, bound = link.keys, link.bound
            for element, form in zip(link.reach.element.elements, link.reach.forms, strict=True):
                storage = element.value
                assert isinstance(storage, Storage)
                if form is None or not is_kept_in_registers(storage.dtype):
                    continue
                buffer = bound[storage.index]
                assert isinstance(buffer, Buffer)
                low, high = link.reach.space.ranges.bounds(form)
                # Elements out of bounds have no value to keep.
                if low >= 0 and high < buffer.mem_size // storage.dtype.item_size:
                    touched.setdefault((numbers[keys[storage.index]], form), set()).add(position)
        shared = [place for place, links in touched.items() if len(links) > 1]
        return {place: number for number, place in enumerate(shared)}

    def _list_values(self, fused: "FusedKernel") -> Iterator[tuple[int, int, int, str]]:
        for position, (link, members) in enumerate(zip(self.links, fused.members, strict=True)):
            layout = link.kernel.layout
            for argument in link.reach.element.kernel.arguments:
                if argument.name in members:
                    offset = layout.offset_of(argument.name)
                    yield position, offset, argument.dtype.item_size, members[argument.name]


def _split(launches: Sequence[Launch], most_buffers: int) -> Iterator[tuple[int, _Chain]]:
    """Yield chains, as long as possible, that launches in a row make, each with the number of its first."""
    chain, first = _Chain(most_buffers), 0
    for position, launch in enumerate(launches):
        link = make_link(launch)
        if link is not None and chain.links and chain.add(link):
            continue
        if chain.links:
            yield first, chain
        chain, first = _Chain(most_buffers), position
        if link is not None:
            chain.add(link)
    if chain.links:
        yield first, chain


def _make_part(link: Link, numbers: Mapping[Key, int], places: Mapping[tuple[int, Linear], int]) -> Part:
    element, keys = link.reach.element, link.keys
    arguments = {argument.name: argument for argument in element.kernel.arguments}
    of_resource = tuple(numbers[keys[position]] for position in range(len(element.kernel.resources)))
    registers: list[int | None] = []
    for expr, form in zip(element.elements, link.reach.forms, strict=True):
        assert isinstance(expr.value, Storage)
        place = None if form is None else places.get((of_resource[expr.value.index], form))
        registers.append(place)
    shapes = tuple(
        (arguments[info.shader_shape_name], of_resource[info.binding])
        for info in link.kernel.description.shader_arg_infos
        if info.shader_shape_name is not None and info.binding is not None
    )
    return Part(element, of_resource, tuple(registers), shapes)


def _find_planar(link: Link, numbers: Mapping[Key, int]) -> Iterator[int]:
    for info in link.kernel.description.shader_arg_infos:
        if info.binding is not None and info.planar:
            yield numbers[link.keys[info.binding]]
