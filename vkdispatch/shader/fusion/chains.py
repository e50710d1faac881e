"""Chains of recorded launches that one kernel can replace."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from vkdispatch.base.buffer import Buffer
from vkdispatch.base.context import Handle
from vkdispatch.base.record import record
from vkdispatch.compiler.analyses.launch_values import Extent, Linear
from vkdispatch.compiler.ir import Storage
from vkdispatch.compiler.passes.elementwise import Part, is_kept_in_registers
from vkdispatch.execution_pipeline.optimization import Launch
from vkdispatch.shader.fusion.fused_kernel import FusedKernel, fuse_parts, join_names
from vkdispatch.shader.fusion.links import Key, Link, Use, make_link

# Larger kernels take long to compile, and run out of registers.
_MOST_EXPRESSIONS = 2000
# Every device takes uniform blocks of 16 KiB.
_MOST_ARGUMENT_BYTES = 8192
_MOST_BUFFERS = 64


def find_chains(
    launches: Sequence[Launch], uses: Mapping[int, int], discarded: frozenset[int]
) -> "list[FusedChain]":
    """Find chains among launches in a row; see `Fusible.fuse` in `execution_pipeline.optimization`."""
    most = min([_MOST_BUFFERS, *(launch.kernel.most_buffers for launch in launches)])
    return [
        chain.fuse(first, uses, discarded) for first, chain in _split(launches, most) if len(chain.links) > 1
    ]


@record(eq=False)
class FusedChain:
    """Launches in a row, and the launch that can replace them.

    Attributes
    ----------
    first, count
        The number of the first launch, and how many there are.
    kernel, resources, extent
        The launch that replaces them: its kernel, its buffers and samplers, and its invocations.
    values
        See `Fusion` in `execution_pipeline.optimization`.
    """

    first: int
    count: int
    kernel: FusedKernel
    resources: tuple[Handle, ...]
    extent: Extent
    values: tuple[tuple[int, int, int, str], ...]


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
            if last.reach.element.returns or last.extent != link.extent:
                return False
            if type(last.kernel.description.backend) is not type(link.kernel.description.backend):
                return False
            if size > _MOST_EXPRESSIONS or argument_bytes > _MOST_ARGUMENT_BYTES:
                return False
            if len(keys) > self._most_buffers:
                return False
        self.links.append(link)
        self._uses, self._keys, self._size, self._bytes = uses, keys, size, argument_bytes
        return True

    def fuse(self, first: int, uses: Mapping[int, int], discarded: frozenset[int]) -> "FusedChain":
        """Describe the kernel that replaces the chain, whose first launch has the number `first`."""
        numbers = {key: number for number, key in enumerate(self._keys)}
        places = self._number_places(numbers)
        parts = tuple(_make_part(link, numbers, places) for link in self.links)
        own_uses: dict[int, int] = {}
        for link in self.links:
            for handle in {resource._memory_handle for resource in link.launch.resources}:
                own_uses[handle] = own_uses.get(handle, 0) + 1
        # One dispatch may store what another loads as another type.
        views = Counter(handle for handle, _ in numbers)
        unread = frozenset(
            number
            for (handle, _), number in numbers.items()
            if handle in discarded and own_uses[handle] == uses[handle] and views[handle] == 1
        )
        names = tuple(link.kernel.description.name for link in self.links)
        kernel = self.links[0].kernel
        sizes = {link.kernel.local_size for link in self.links} - {None}
        planar = frozenset(
            number for link in self.links for number, is_planar in _find_planar(link, numbers) if is_planar
        )
        fused = fuse_parts(
            join_names(names),
            parts,
            unread,
            planar,
            sizes.pop() if len(sizes) == 1 else None,
            kernel.description.backend,
        )
        handles = {
            numbers[key]: link.bound[position] for link in self.links for position, key in link.keys.items()
        }
        resources = tuple(handles[number] for number in fused.resources)
        extent, values = self.links[0].extent, tuple(self._list_values(fused))
        return FusedChain(first, len(self.links), fused, resources, extent, values)

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
                low, high = link.reach.space.limits(form)
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
    found: list[int | None] = []
    for expr, form in zip(element.elements, link.reach.forms, strict=True):
        assert isinstance(expr.value, Storage)
        place = None if form is None else places.get((of_resource[expr.value.index], form))
        found.append(place)
    shapes = tuple(
        (arguments[info.shader_shape_name], of_resource[info.binding])
        for info in link.kernel.description.shader_arg_infos
        if info.shader_shape_name is not None and info.binding is not None
    )
    return Part(element, of_resource, tuple(found), shapes)


def _find_planar(link: Link, numbers: Mapping[Key, int]) -> Iterator[tuple[int, bool]]:
    keys = link.keys
    for info in link.kernel.description.shader_arg_infos:
        if info.binding is not None:
            yield numbers[keys[info.binding]], info.planar
