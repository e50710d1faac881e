"""A whole kernel as GLSL: extensions, interface and main function."""

from vkdispatch.analyses.contents import Access, Usage, contents, find_operations, resource_access, usage
from vkdispatch.analyses.launch_values import sizes_of_shared
from vkdispatch.analyses.layout import (
    GROUP_COUNT,
    ArgumentLayout,
    argument_layout,
    resource_bindings,
)
from vkdispatch.analyses.naming import plan_names
from vkdispatch.analyses.packed_buffers import is_lacking, packed_buffers
from vkdispatch.base.dtype import (
    array_shape,
    bfloat16,
    component_count,
    component_type,
    float64,
    int64,
    is_array,
    item_of,
    uint32,
    uint64,
)
from vkdispatch.base.dtypes.composite import array_type
from vkdispatch.base.record import record, replace
from vkdispatch.base.structures import is_structure
from vkdispatch.glsl.emulation import plain_types
from vkdispatch.glsl.emulation_functions import helper_lines as emulation_lines
from vkdispatch.glsl.extensions import BFLOAT16, extensions, has_bfloat16_matrices
from vkdispatch.glsl.helpers import helper_lines, rounds_halves
from vkdispatch.glsl.lanes import lane_functions, usage_by_lanes
from vkdispatch.glsl.literals import literal_text
from vkdispatch.glsl.names import Names
from vkdispatch.glsl.packing import Packing
from vkdispatch.glsl.spelling import (
    BFLOAT16_BITS,
    BUILTINS,
    FOLDED_GLOBAL_ID,
    FOLDED_WORKGROUP_ID,
    FORMAT_LETTERS,
    GVEC,
    HALVES,
    INDENT,
    PRECISE,
)
from vkdispatch.glsl.statements import BodyWriter
from vkdispatch.glsl.structures import memory_type, reference_name, structure_declaration
from vkdispatch.ir import (
    Block,
    Builtin,
    Declare,
    Effect,
    ImageBinding,
    Kernel,
    Op,
    ShaderFlags,
    Storage,
)
from vkdispatch.ir.location import Loc
from vkdispatch.ir.names import FreshNames
from vkdispatch.ir.variant import PLAIN, Variant, emulates
from vkdispatch.passes.blocks import put_in_blocks
from vkdispatch.passes.bounds import guard_effects, keeps_workgroups
from vkdispatch.passes.coarsen import coarsen
from vkdispatch.passes.widen import widen


@record
class GlslText:
    """A kernel as GLSL, but for its workgroup size.

    `header` is extensions and interface, `body` the main function; `body_map` has the Python line of each
    line of the body.
    """

    extensions: tuple[str, ...]
    interface: tuple[str, ...]
    body: tuple[str, ...]
    body_map: tuple[Loc | None, ...]

    @property
    def header(self) -> str:
        """Everything before the main function, without the workgroup size."""
        return "\n".join((*self.extensions, "", *self.interface))

    def source(self, local_size: tuple[int, int, int]) -> tuple[str, tuple[Loc | None, ...]]:
        """Return the complete text, and the Python line of each of its lines."""
        x, y, z = local_size
        size = f"layout(local_size_x = {x}, local_size_y = {y}, local_size_z = {z}) in;"
        before = (*self.extensions, "", size, "", *self.interface)
        return "\n".join((*before, *self.body)) + "\n", (*(None for _ in before), *self.body_map)


def write_kernel(kernel: Kernel, variant: Variant = PLAIN) -> GlslText:
    """Write a kernel as GLSL. A folded kernel takes the true count of workgroups as an argument."""
    bounded = kernel.exec_count is not None
    if keeps_workgroups(kernel):
        kernel, bounded = guard_effects(kernel), False
    if variant.coarse > 1:
        in_blocks = variant.blocks and not (variant.addressed or variant.wide or variant.lacks)
        kernel, bounded = put_in_blocks(kernel) if in_blocks else coarsen(kernel, variant.coarse), False
    if variant.wide:
        kernel, bounded = widen(kernel, bounded=bounded), False
    layout = argument_layout(kernel, variant)
    block = "UBO" if layout.uniform else "PC"
    packing = _packing(kernel, block, variant, layout)
    body = _write_body(kernel, block, variant, layout, packing, bounded=bounded)
    used = usage(kernel)
    if variant.lacks:
        used = usage_by_lanes(_leave_out_emulated(used, variant), kernel, variant.lacks)
    if variant.addressed and layout.addresses:
        used = replace(used, addresses=True)
    interface, lines = (
        tuple(_interface(kernel, layout, packing, sizes_of_shared(kernel, variant.shared))),
        tuple(body.lines),
    )
    if variant.lacks:
        interface += tuple(lane_functions(kernel, variant.lacks, literal_text))
        interface = tuple(plain_types(line, variant.lacks) for line in interface)
        lines = tuple(plain_types(line, variant.lacks) for line in lines)
        interface = (*emulation_lines((*interface, *lines)), *interface)
    return GlslText(
        (
            "#version 450",
            *(f"#extension {name} : require" for name in extensions(used, kernel.flags)),
            *((BFLOAT16,) if has_bfloat16_matrices(used) else ()),
            *((PRECISE,) if kernel.flags & ShaderFlags.PRECISE_MATH else ()),
        ),
        interface,
        ("void main() {", *lines, "}"),
        (None, *body.line_map, None),
    )


def _leave_out_emulated(used: Usage, variant: Variant) -> Usage:
    """Leave out the types that a form does without, for which GLSL needs extensions."""
    # an array stays one, of words
    arrays = {array_type(uint32, 1)} if any(map(is_array, used.dtypes)) else set()
    return replace(
        used,
        dtypes={kind for kind in used.dtypes if not emulates(kind, variant.lacks)} | arrays,
        subgroup_dtypes={kind for kind in used.subgroup_dtypes if not emulates(kind, variant.lacks)},
        stored={kind for kind in used.stored if not is_lacking(kind, variant)},
    )


def _packing(kernel: Kernel, block: str, variant: Variant, layout: ArgumentLayout) -> Packing:
    """Say how the words of packed buffers are written."""
    packing = Packing(position="uint64_t" if variant.addressed else "uint", lacks=variant.lacks)
    packed = packed_buffers(kernel, variant)
    for resource in kernel.resources:
        if not isinstance(resource, Storage) or resource.index not in packed:
            continue
        word = f"{resource.name}.data[{{}} >> 2]"
        if resource.index in layout.addresses:
            start = f"{block}.{layout.addresses[resource.index]}"
            word = f"{reference_name(resource)}({start} + ({{}} & ~3ul)).data[0]"
        packing.words[resource.index] = word
    return packing


def _interface(kernel: Kernel, layout: ArgumentLayout, packing: Packing, sizes: dict[int, int]) -> list[str]:
    lines: list[str] = []
    if layout.members:
        kind = "set = 0, binding = 0, scalar" if layout.uniform else "push_constant, scalar"
        lines.append(f"layout({kind}) uniform Arguments {{")
        lines += [
            f"{INDENT}{member.dtype.glsl_type} {member.name};"
            for member in layout.members
            if member.name not in layout.halves
        ]
        if layout.halves:
            start = min(member.offset for member in layout.members if member.name in layout.halves)
            lines.append(f"{INDENT}uint {HALVES}[{(layout.size - start) // 4}];")
        lines += [f"}} {'UBO' if layout.uniform else 'PC'};", ""]
    access = resource_access(kernel)
    bindings = resource_bindings(kernel, layout)
    for resource in kernel.resources:
        label = (
            f"  // {resource.label}"
            if resource.label.isprintable() and not resource.label.endswith("\\")
            else ""
        )
        if isinstance(resource, ImageBinding):
            lines.append(_image_declaration(resource, bindings[resource.index], access) + label)
            continue
        qualifier = _storage_qualifier(resource, kernel, access)
        kind = memory_type(resource.dtype)
        if resource.index in packing.words:
            kind = "uint"
            # words are exchanged, so what is written is read as well
            qualifier = "" if qualifier == "writeonly " else qualifier
        elif is_structure(resource.dtype):
            kind = f"Element{resource.index}"
            lines += structure_declaration(kind, resource.dtype)
        block = f"buffer {reference_name(resource)} {{ {kind} data[]; }}"
        if resource.index in layout.addresses:
            lines += _reference_declaration(resource, qualifier + block, label, layout)
            continue
        binding = bindings[resource.index]
        lines.append(
            f"layout(set = 0, binding = {binding}, scalar) {qualifier}{block} {resource.name};{label}"
        )
    if kernel.resources:
        lines.append("")
    lines += packing.lines()
    if any(
        isinstance(resource, Storage) and resource.dtype is bfloat16 and resource.index not in packing.words
        for resource in kernel.resources
    ):
        lines += [*BFLOAT16_BITS.strip().splitlines(), ""]
    lines += helper_lines(kernel, packing.lacks)
    for array in kernel.shared:
        counts = (sizes.get(id(array), "/* as calls decide */"), *array_shape(array.dtype))
        axes = "".join(f"[{count}]" for count in counts)
        lines.append(f"shared {item_of(array.dtype).glsl_type} {array.name}{axes};")
    if kernel.shared:
        lines.append("")
    return lines


def _reference_declaration(
    buffer: Storage, block: str, label: str, layout: ArgumentLayout
) -> tuple[str, str]:
    size = 4 if block.endswith("{ uint data[]; }") else buffer.dtype.item_size
    # A buffer starts at a multiple of all these, so an element lies at multiples of what divides its size.
    alignment = min(size & -size, 16)
    address = f"{'UBO' if layout.uniform else 'PC'}.{layout.addresses[buffer.index]}"
    return (
        f"layout(buffer_reference, scalar, buffer_reference_align = {alignment}) {block};{label}",
        # for GLSL text of the user
        f"#define {buffer.name} {reference_name(buffer)}({address})",
    )


def _qualifier(index: int, access: Access) -> str:
    reads, writes = index in access.reads, index in access.writes
    return "readonly " if not writes else "writeonly " if not reads else ""


def _storage_qualifier(buffer: Storage, kernel: Kernel, access: Access) -> str:
    """Return what a buffer's declaration promises: what it only reads may be written by another name.

    A call may pass one buffer for several parameters of its type, and drivers believe a `readonly`. No
    call passes a constant array.
    """
    if buffer.constant is not None:
        return "readonly "
    qualifier = _qualifier(buffer.index, access)
    if buffer.index in access.reads and buffer.index in access.writes and _orders_buffers(kernel):
        return "coherent "
    written = {other.dtype for other in kernel.resources if other.index in access.writes}
    return "" if qualifier == "readonly " and buffer.dtype in written else qualifier


def _orders_buffers(kernel: Kernel) -> bool:
    """Whether workgroups may pass data to each other: what orders memory orders coherent accesses only."""
    barriers = ("memoryBarrier", "memoryBarrierBuffer")
    ordering = ("atomicLoad", "atomicStore")
    return any(
        (isinstance(each, Effect) and each.function in barriers)
        or (isinstance(each, Declare) and each.value.op is Op.ATOMIC and each.value.value in ordering)
        for each in contents(kernel).statements
    )


def _image_declaration(image: ImageBinding, binding: int, access: Access) -> str:
    scalar = component_type(image.dtype)
    shape = f"{image.dimensions}D{'Array' if image.arrayed else ''} {image.name};"
    if not image.storage:
        return f"layout(set = 0, binding = {binding}) uniform {GVEC[scalar]}sampler{shape}"
    channels = {1: "r", 2: "rg", 4: "rgba"}[component_count(image.dtype)]
    texel = f"{channels}32{FORMAT_LETTERS[scalar]}"
    qualifier = _qualifier(image.index, access)
    return f"layout(set = 0, binding = {binding}, {texel}) {qualifier}uniform {GVEC[scalar]}image{shape}"


def _write_body(
    kernel: Kernel,
    block: str,
    variant: Variant,
    layout: ArgumentLayout | None = None,
    packing: Packing | None = None,
    *,
    bounded: bool = False,
) -> BodyWriter:
    plan = plan_names(kernel)
    builtins = dict(BUILTINS)
    if variant.folded:
        builtins[Builtin.GLOBAL_INVOCATION_ID] = FOLDED_GLOBAL_ID
        builtins[Builtin.WORKGROUP_ID] = FOLDED_WORKGROUP_ID
        builtins[Builtin.NUM_WORKGROUPS] = GROUP_COUNT
    names = Names(builtins, block, plan)
    if layout is not None:
        names.addresses, names.lengths, names.halves = layout.addresses, layout.lengths, layout.halves
    names.lacks = variant.lacks
    names.shared = sizes_of_shared(kernel, variant.shared)
    names.rounds_integers = any(
        component_type(expr.dtype) is float64
        and any(component_type(arg.dtype) in (int64, uint64) for arg in expr.args)
        for expr in find_operations(kernel, Op.CONSTRUCT)
    )
    names.rounds_halves = rounds_halves(kernel, variant.lacks)
    if packing is not None:
        names.packing = packing
    writer = BodyWriter(names, plan, FreshNames.of_variables(kernel))
    if variant.folded:
        _fold_prologue(writer, block)
    if bounded and kernel.exec_count is not None:
        global_id = builtins[Builtin.GLOBAL_INVOCATION_ID]
        writer.line(f"if (any(greaterThanEqual({global_id}, {block}.{kernel.exec_count.name}))) return;")
    if writer.lines and kernel.body:
        writer.line("")
    writer.block(kernel.body)
    return writer


def _fold_prologue(writer: BodyWriter, block: str) -> None:
    """Find the workgroup's id in the true grid from its position in the launched one.

    Surplus workgroups end.
    """
    lines = (
        f"uvec3 {GROUP_COUNT} = {block}.{GROUP_COUNT};",
        "uint workgroup_index = gl_WorkGroupID.z * gl_NumWorkGroups.y + gl_WorkGroupID.y;",
        "workgroup_index = workgroup_index * gl_NumWorkGroups.x + gl_WorkGroupID.x;",
        f"if (workgroup_index >= {GROUP_COUNT}.x * {GROUP_COUNT}.y * {GROUP_COUNT}.z) return;",
        f"uint workgroup_row = workgroup_index / {GROUP_COUNT}.x;",
        f"uvec3 {FOLDED_WORKGROUP_ID} = uvec3(workgroup_index, workgroup_row, workgroup_row);",
        f"{FOLDED_WORKGROUP_ID}.xy %= {GROUP_COUNT}.xy;",
        f"{FOLDED_WORKGROUP_ID}.z /= {GROUP_COUNT}.y;",
        f"uvec3 {FOLDED_GLOBAL_ID} = {FOLDED_WORKGROUP_ID} * gl_WorkGroupSize + gl_LocalInvocationID;",
    )
    for line in lines:
        writer.line(line)


def statements_text(block: Block) -> str:
    """Write statements on their own, as they stand in the main function."""
    kernel = Kernel("", (), (), (), block, None)
    return "".join(line + "\n" for line in _write_body(kernel, "PC", PLAIN).lines)
