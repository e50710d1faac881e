"""A kernel as GLSL: statements as lines, and what stands around them."""

from vkdispatch.base import dtype as dt
from vkdispatch.base.derived_dtypes import array_type, is_structure
from vkdispatch.base.record import record, replace
from vkdispatch.compiler import ir
from vkdispatch.compiler.analyses import contents as facts
from vkdispatch.compiler.analyses.launch_values import sizes_of_shared
from vkdispatch.compiler.analyses.naming import NamingPlan, local_names, plan_names
from vkdispatch.compiler.forms import PLAIN, ArgumentLayout, Variant, emulates
from vkdispatch.compiler.glsl import emulation, expressions, spelling
from vkdispatch.compiler.glsl.emulation import extensions
from vkdispatch.compiler.glsl.emulation import helper_lines as emulation_lines
from vkdispatch.compiler.glsl.helpers import helper_lines, rounds_halves
from vkdispatch.compiler.glsl.packing import Names, Packing
from vkdispatch.compiler.ir.literals import is_long
from vkdispatch.compiler.ir.location import Loc
from vkdispatch.compiler.ir.names import FreshNames
from vkdispatch.compiler.passes.builders import read
from vkdispatch.compiler.passes.loop_limits import has_jump
from vkdispatch.compiler.passes.order import is_bounded_outside, make_form

# ---- Statements as lines of GLSL, with the Python line of each -------------------------------------------


class BodyWriter:
    """Writes statements as lines, remembering the Python line of each."""

    def __init__(self, names: Names, plan: NamingPlan, variables: FreshNames) -> None:
        self._names = names
        self._plan = plan
        self._variables = variables
        self._depth = 1
        self._local: list[int] = []
        self.lines: list[str] = []
        self.line_map: list[Loc | None] = []

    def line(self, text: str, loc: Loc | None = None) -> None:
        """Write one line, indented."""
        self.lines.append(spelling.INDENT * self._depth + text if text else "")
        self.line_map.append(loc)

    def block(self, block: ir.Block) -> None:
        """Write all statements of a block."""
        outside = dict(self._names.of_number)
        for position, statement in enumerate(block):
            for number in self._plan.before.get((id(block), position), ()):
                self._declare_name(number)
            self._local = local_names(self._plan, statement)
            for number in self._local:
                self._declare_name(number)
            self._statement(statement)
            self._forget_local()
        self._names.of_number = outside

    def _forget_local(self) -> None:
        """Drop the names that hold for one statement: what they were computed from may change now."""
        for number in self._local:
            del self._names.of_number[number]
        self._local = []

    def _declare_name(self, number: int) -> None:
        expr = self._plan.numbering.exprs[number]
        text = expressions.value_text(expr, self._names)[0]
        name = self._new_name(expr)
        self.line(f"{expr.dtype.glsl_type} {name} = {text};", expr.loc)
        self._names.of_number[number] = name

    def _new_name(self, expr: ir.Expr) -> str:
        name = ""
        if expr.op is ir.Op.COMPONENT and isinstance(expr.args[0].value, ir.Builtin):
            prefix = spelling.COMPONENT_NAMES.get(expr.args[0].value)
            name = f"{prefix}_{expr.value}" if prefix else ""
        if not name or name in self._variables:
            return self._variables.claim_number("t")
        return self._variables.claim(name)

    def _text(self, expr: ir.Expr) -> str:
        return expressions.full_text(expr, self._names)

    def _statement(self, statement: ir.Statement) -> None:
        loc = statement.loc
        if isinstance(statement, ir.Declare):
            self._declare(statement)
        elif isinstance(statement, ir.Store):
            self.line(f"{self._assignment(statement)};", loc)
        elif isinstance(statement, ir.ImageStore):
            target, texel = statement.image.name, self._texel(statement.value)
            self.line(f"imageStore({target}, {self._text(statement.coordinate)}, {texel});", loc)
        elif isinstance(statement, (ir.MatrixLoad, ir.MatrixStore)):
            self._matrix(statement)
        elif isinstance(statement, ir.If):
            self._if(statement)
        elif isinstance(statement, ir.While):
            hint = "[[dont_unroll]] " if statement.rolled else ""
            self._braces(f"{hint}while ({self._text(statement.condition)}) {{", statement.body, loc)
        elif isinstance(statement, ir.For):
            self._for(statement)
        elif isinstance(statement, ir.Switch):
            self._switch(statement)
        elif isinstance(statement, ir.Scope):
            self._comment(statement.comment, loc)
            self._braces("{", statement.body, loc)
        elif isinstance(statement, ir.Effect):
            self.line(f"{statement.function}();", loc)
        elif isinstance(statement, ir.Print):
            # GLSL has none: `compiler.passes.instrument` turns prints into statements that have
            self._comment(f"print {statement.format!r}", loc)
        elif isinstance(statement, ir.Assert):
            self._comment(f"assert {statement.message!r}", loc)
        elif isinstance(statement, (ir.Break, ir.Continue, ir.Return)):
            self.line(f"{type(statement).__name__.lower()};", loc)
        elif isinstance(statement, ir.Comment):
            if statement.preceding_new_line and self.lines and not self.lines[-1].endswith("{"):
                self.line("")
            self._comment(statement.text, loc)
        elif isinstance(statement, ir.RawStatement):
            for text in self._names.raw(statement.text).splitlines():
                self.line(text, loc)

    def _declare(self, statement: ir.Declare) -> None:
        register, value = statement.register, statement.value
        precise = "precise " if register.precise else ""
        declared = f"{precise}{register.dtype.glsl_type} {register.name} = "
        if value.op is ir.Op.CONSTRUCT and dt.is_array(register.dtype) and not value.args:
            # `= {}` would be the value at the start of the invocation, not of each round of a loop
            zero = self._variables.claim(f"{register.name}_zero")
            self.line(f"const {register.dtype.glsl_type} {zero} = {self._text(value)};", statement.loc)
            self.line(f"{declared}{zero};", statement.loc)
            return
        if value.op is ir.Op.ATOMIC and str(value.value).startswith("atomicStore"):
            # the one atomic that gives no value
            self.line(f"{declared}{self._text(value.args[1])};", statement.loc)
            stored = replace(value, args=(value.args[0], read(register)))
            self.line(f"{self._text(stored)};", statement.loc)
            return
        self.line(f"{declared}{self._text(value)};", statement.loc)

    def _assignment(self, statement: ir.Store) -> str:
        place = statement.place
        packed = expressions.find_packed_place(place, self._names)
        if packed is not None:
            return self._assign_packed(statement, packed)
        target = expressions.place_text(place, self._names)
        kind = expressions.stored_as(place)
        if kind is not None:
            return f"{target} = {spelling.STORED[kind].store.format(self._text(statement.value))}"
        if statement.operator is None:
            return f"{target} = {self._text(statement.value)}"
        if emulates(place.dtype, self._names.lacks):
            value = f"({self._text(statement.value)})"
            return f"{target} = {emulation.write_operation(statement.operator, place.dtype, target, value)}"
        return expressions.update_text(target, statement.operator, place, statement.value, self._names)

    def _assign_packed(self, statement: ir.Store, packed: tuple[ir.Storage, dt.DType, dt.DType, str]) -> str:
        """Write a store to an element, or a part of one, that lies in words."""
        storage, kind, value, at = packed
        text = self._text(statement.value)
        if statement.operator is not None:
            old = self._names.packing.load(storage, kind, value, at)
            if emulates(value, self._names.lacks):
                text = emulation.write_operation(statement.operator, value, old, f"({text})")
            else:
                text = f"{value.glsl_type}({old} {statement.operator} ({text}))"
        return self._names.packing.store(storage, kind, value, at, text)

    def _matrix(self, statement: ir.MatrixLoad | ir.MatrixStore) -> None:
        """Write the transfer of a cooperative matrix."""
        if isinstance(statement, ir.MatrixLoad):
            function, matrix, element = "coopMatLoad", statement.matrix, statement.source
        else:
            function, matrix, element = "coopMatStore", statement.value, statement.place
        array, index = expressions.array_text(element, self._names)
        stride = self._text(statement.stride)
        start = f"{self._text(matrix)}, {array}, {index}, "
        if not statement.window:
            order = f"gl_CooperativeMatrixLayout{'Column' if statement.transposed else 'Row'}Major"
            self.line(f"{function}({start}{stride}, {order});", statement.loc)
            return
        rows, columns, row, column = map(self._text, statement.window)
        sizes = matrix.dtype.shape
        spans = [(rows, row, sizes[0]), (columns, column, sizes[1])][:: -1 if statement.transposed else 1]
        clamp = "gl_CooperativeMatrixClampModeConstantNV"
        self.line("{", statement.loc)
        self._depth += 1
        self.line(f"tensorLayoutNV<2, {clamp}> whole = createTensorLayoutNV(2, {clamp});", statement.loc)
        self.line(f"whole = setTensorLayoutDimensionNV(whole, {spans[0][0]}, {spans[1][0]});", statement.loc)
        self.line(f"whole = setTensorLayoutStrideNV(whole, {stride}, 1);", statement.loc)
        part = "sliceTensorLayoutNV(whole, " + ", ".join(f"{first}, {size}" for _, first, size in spans) + ")"
        if statement.transposed:
            turn = "tensorViewNV<2, false, 1, 0> turned = createTensorViewNV(2, false, 1, 0);"
            self.line(turn, statement.loc)
            part += ", turned"
        self.line(f"{function}TensorNV({start}{part});", statement.loc)
        self._depth -= 1
        self.line("}", statement.loc)

    def _texel(self, value: ir.Expr) -> str:
        """Write a value as the four components that an image store takes."""
        text, prefix = self._text(value), spelling.GVEC[dt.component_type(value.dtype)]
        given = dt.component_count(value.dtype)
        if given == 4:
            return text
        return f"{prefix}vec4({text})" if given == 1 else f"{prefix}vec4({text}, 0, 0)"

    def _if(self, statement: ir.If) -> None:
        conditions = [self._text(condition) for condition, _ in statement.branches]
        self._forget_local()
        for position, (condition, body) in enumerate(statement.branches):
            keyword = "} else if" if position else "if"
            self.line(f"{keyword} ({conditions[position]}) {{", condition.loc or statement.loc)
            self._nested(body)
        if statement.orelse is not None:
            self.line("} else {", statement.loc)
            self._nested(statement.orelse)
        self.line("}", statement.loc)

    def _for(self, statement: ir.For) -> None:
        name, kind = statement.counter.name, statement.counter.dtype.glsl_type
        start, stop, step = (self._text(bound) for bound in (statement.start, statement.stop, statement.step))
        upward, downward = f"{name} < {stop}", f"{name} > {stop}"
        change = f"{name} += {step}"
        amount = statement.step.value
        if statement.step.op is not ir.Op.LITERAL or not isinstance(amount, int):
            condition = f"{step} > 0 ? {upward} : {step} < 0 && {downward}"
        elif amount > 0:
            condition = upward
        elif amount < 0:
            condition, change = downward, f"{name} -= {-amount}"
        else:
            condition = "false"
        change = {f"{name} += 1": f"++{name}", f"{name} += 1u": f"++{name}", f"{name} -= 1": f"--{name}"}.get(
            change, change
        )
        hint = "[[unroll]] " if statement.unrolled else ""
        head = f"{hint}for ({kind} {name} = {start}; {condition}; {change}) {{"
        self._braces(head, statement.body, statement.loc)

    def _switch(self, statement: ir.Switch) -> None:
        loc = statement.loc
        value = self._text(statement.value)
        self._forget_local()
        if any(has_jump(body, ir.Break) for body in ir.blocks_of(statement)):
            # GLSL's break would leave the switch instead
            self._switch_by_if(statement, value)
            return
        self.line(f"switch ({value}) {{", loc)
        for values, body in statement.cases:
            labels = " ".join(
                f"case {spelling.literal_text(number, statement.value.dtype)}:" for number in values
            )
            self._braces(f"{labels} {{", body, loc, "} break;")
        self._braces("default: {", statement.default or (), loc, "} break;")
        self.line("}", loc)

    def _switch_by_if(self, statement: ir.Switch, value: str) -> None:
        loc, kind = statement.loc, statement.value.dtype
        name = self._new_name(statement.value)
        self.line(f"{kind.glsl_type} {name} = {value};", loc)
        for position, (values, body) in enumerate(statement.cases):
            keyword = "} else if" if position else "if"
            conditions = " || ".join(f"{name} == {spelling.literal_text(number, kind)}" for number in values)
            self.line(f"{keyword} ({conditions}) {{", loc)
            self._nested(body)
        if statement.default is not None:
            self.line("} else {" if statement.cases else "{", loc)
            self._nested(statement.default)
        if statement.cases or statement.default is not None:
            self.line("}", loc)

    def _braces(self, head: str, block: ir.Block, loc: Loc | None, end: str = "}") -> None:
        self.line(head, loc)
        self._nested(block)
        self.line(end, loc)

    def _nested(self, block: ir.Block) -> None:
        self._depth += 1
        self.block(block)
        self._depth -= 1

    def _comment(self, text: str | None, loc: Loc | None) -> None:
        if text is None:
            return
        # NUL ends the source
        lines = text.replace("\0", "").replace("*/", "* /").splitlines() or [""]
        if len(lines) == 1:
            self.line(f"/* {lines[0]} */", loc)
            return
        self.line("/*", loc)
        for line in lines:
            self.line(f" * {line}".rstrip(), loc)
        self.line(" */", loc)


# ---- A whole kernel as GLSL: extensions, interface and main function -------------------------------------


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


def write_kernel(kernel: ir.Kernel, variant: Variant = PLAIN) -> GlslText:
    """Write a kernel as GLSL. A folded kernel takes the true count of workgroups as an argument."""
    kernel = make_form(kernel, variant)
    bounded = is_bounded_outside(kernel, variant)
    layout = facts.argument_layout(kernel, variant)
    packing = _packing(kernel, variant, layout)
    body = _write_body(kernel, variant, layout, packing, bounded=bounded)
    used = facts.usage(kernel)
    if variant.lacks:
        used = emulation.usage_by_lanes(_leave_out_emulated(used, variant), kernel, variant.lacks)
    if variant.addressed and layout.addresses:
        used = replace(used, addresses=True)
    interface = tuple(_interface(kernel, layout, packing, sizes_of_shared(kernel, variant.shared)))
    lines = tuple(body.lines)
    if variant.lacks:
        interface += tuple(emulation.lane_functions(kernel, variant.lacks, spelling.literal_text))
        interface = tuple(emulation.plain_types(line, variant.lacks) for line in interface)
        lines = tuple(emulation.plain_types(line, variant.lacks) for line in lines)
        interface = (*emulation_lines((*interface, *lines)), *interface)
    return GlslText(
        (
            "#version 450",
            *(f"#extension {name} : require" for name in extensions(used, kernel.flags)),
            *((emulation.BFLOAT16,) if emulation.has_bfloat16_matrices(used) else ()),
            *((spelling.PRECISE,) if kernel.flags & ir.ShaderFlags.PRECISE_MATH else ()),
        ),
        interface,
        ("void main() {", *lines, "}"),
        (None, *body.line_map, None),
    )


def _leave_out_emulated(used: facts.Usage, variant: Variant) -> facts.Usage:
    """Leave out the types that a form does without, for which GLSL needs extensions."""
    # an array stays one, of words
    arrays = {array_type(dt.uint32, 1)} if any(map(dt.is_array, used.dtypes)) else set()
    return replace(
        used,
        dtypes={kind for kind in used.dtypes if not emulates(kind, variant.lacks)} | arrays,
        subgroup_dtypes={kind for kind in used.subgroup_dtypes if not emulates(kind, variant.lacks)},
        stored={kind for kind in used.stored if not facts.is_lacking(kind, variant)},
    )


def _packing(kernel: ir.Kernel, variant: Variant, layout: ArgumentLayout) -> Packing:
    """Say how the words of packed buffers are written."""
    packing = Packing(position="uint64_t" if variant.addressed else "uint", lacks=variant.lacks)
    packed = facts.packed_buffers(kernel, variant)
    for resource in kernel.resources:
        if not isinstance(resource, ir.Storage) or resource.index not in packed:
            continue
        word = f"{resource.name}.data[{{}} >> 2]"
        if resource.index in layout.addresses:
            start = f"{layout.block}.{layout.addresses[resource.index]}"
            word = f"{spelling.reference_name(resource)}({start} + ({{}} & ~3ul)).data[0]"
        packing.words[resource.index] = word
    return packing


def _interface(
    kernel: ir.Kernel, layout: ArgumentLayout, packing: Packing, sizes: dict[int, int]
) -> list[str]:
    lines: list[str] = []
    if layout.members:
        kind = "set = 0, binding = 0, scalar" if layout.uniform else "push_constant, scalar"
        lines.append(f"layout({kind}) uniform Arguments {{")
        lines += [
            f"{spelling.INDENT}{member.dtype.glsl_type} {member.name};"
            for member in layout.members
            if member.name not in layout.halves
        ]
        if layout.halves:
            start = min(member.offset for member in layout.members if member.name in layout.halves)
            lines.append(f"{spelling.INDENT}uint {spelling.HALVES}[{(layout.size - start) // 4}];")
        lines += [f"}} {layout.block};", ""]
    access = facts.resource_access(kernel)
    bindings = facts.resource_bindings(kernel, layout)
    for resource in kernel.resources:
        label = (
            f"  // {resource.label}"
            if resource.label.isprintable() and not resource.label.endswith("\\")
            else ""
        )
        if isinstance(resource, ir.ImageBinding):
            lines.append(_image_declaration(resource, bindings[resource.index], access) + label)
            continue
        qualifier = _storage_qualifier(resource, kernel, access)
        kind = spelling.memory_type(resource.dtype)
        if resource.index in packing.words:
            kind = "uint"
            # words are exchanged, so what is written is read as well
            qualifier = "" if qualifier == "writeonly " else qualifier
        elif is_structure(resource.dtype):
            kind = f"Element{resource.index}"
            lines += spelling.structure_declaration(kind, resource.dtype)
        block = f"buffer {spelling.reference_name(resource)} {{ {kind} data[]; }}"
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
        isinstance(resource, ir.Storage)
        and resource.dtype is dt.bfloat16
        and resource.index not in packing.words
        for resource in kernel.resources
    ):
        lines += [*spelling.BFLOAT16_BITS.strip().splitlines(), ""]
    lines += helper_lines(kernel, packing.lacks)
    for array in kernel.shared:
        counts = (sizes.get(id(array), "/* as calls decide */"), *dt.array_shape(array.dtype))
        axes = "".join(f"[{count}]" for count in counts)
        lines.append(f"shared {dt.item_of(array.dtype).glsl_type} {array.name}{axes};")
    if kernel.shared:
        lines.append("")
    return lines


def _reference_declaration(
    buffer: ir.Storage, block: str, label: str, layout: ArgumentLayout
) -> tuple[str, str]:
    size = 4 if block.endswith("{ uint data[]; }") else buffer.dtype.item_size
    # A buffer starts at a multiple of all these, so an element lies at multiples of what divides its size.
    alignment = min(size & -size, 16)
    address = f"{layout.block}.{layout.addresses[buffer.index]}"
    return (
        f"layout(buffer_reference, scalar, buffer_reference_align = {alignment}) {block};{label}",
        # for GLSL text of the user
        f"#define {buffer.name} {spelling.reference_name(buffer)}({address})",
    )


def _qualifier(index: int, access: facts.Access) -> str:
    reads, writes = index in access.reads, index in access.writes
    return "readonly " if not writes else "writeonly " if not reads else ""


def _storage_qualifier(buffer: ir.Storage, kernel: ir.Kernel, access: facts.Access) -> str:
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


def _orders_buffers(kernel: ir.Kernel) -> bool:
    """Whether workgroups may pass data to each other: what orders memory orders coherent accesses only."""
    barriers = ("memoryBarrier", "memoryBarrierBuffer")
    atomics = facts.find_operations(kernel, ir.Op.ATOMIC)
    return any(atomic.value in ("atomicLoad", "atomicStore") for atomic in atomics) or any(
        isinstance(statement, ir.Effect) and statement.function in barriers
        for statement in facts.contents(kernel).statements
    )


def _image_declaration(image: ir.ImageBinding, binding: int, access: facts.Access) -> str:
    scalar = dt.component_type(image.dtype)
    shape = f"{image.dimensions}D{'Array' if image.arrayed else ''} {image.name};"
    if not image.storage:
        return f"layout(set = 0, binding = {binding}) uniform {spelling.GVEC[scalar]}sampler{shape}"
    channels = {1: "r", 2: "rg", 4: "rgba"}[dt.component_count(image.dtype)]
    texel = f"{channels}32{spelling.FORMAT_LETTERS[scalar]}"
    qualifier = _qualifier(image.index, access)
    kind = f"{spelling.GVEC[scalar]}image{shape}"
    return f"layout(set = 0, binding = {binding}, {texel}) {qualifier}uniform {kind}"


def _write_body(
    kernel: ir.Kernel, variant: Variant, layout: ArgumentLayout, packing: Packing, *, bounded: bool = False
) -> BodyWriter:
    plan = plan_names(kernel)
    builtins = dict(spelling.BUILTINS)
    if variant.folded:
        builtins[ir.Builtin.GLOBAL_INVOCATION_ID] = spelling.FOLDED_GLOBAL_ID
        builtins[ir.Builtin.WORKGROUP_ID] = spelling.FOLDED_WORKGROUP_ID
        builtins[ir.Builtin.NUM_WORKGROUPS] = facts.GROUP_COUNT
    names = Names(builtins, layout.block, plan)
    names.addresses, names.lengths, names.halves = layout.addresses, layout.lengths, layout.halves
    names.packing = packing
    names.lacks = variant.lacks
    names.shared = sizes_of_shared(kernel, variant.shared)
    names.rounds_integers = any(
        dt.component_type(expr.dtype) is dt.float64
        and any(is_long(dt.component_type(arg.dtype)) for arg in expr.args)
        for expr in facts.find_operations(kernel, ir.Op.CONSTRUCT)
    )
    names.rounds_halves = rounds_halves(kernel, variant.lacks)
    writer = BodyWriter(names, plan, FreshNames.of_variables(kernel))
    if variant.folded:
        _fold_prologue(writer, layout.block)
    if bounded and kernel.exec_count is not None:
        global_id = builtins[ir.Builtin.GLOBAL_INVOCATION_ID]
        writer.line(
            f"if (any(greaterThanEqual({global_id}, {layout.block}.{kernel.exec_count.name}))) return;"
        )
    if writer.lines and kernel.body:
        writer.line("")
    writer.block(kernel.body)
    return writer


def _fold_prologue(writer: BodyWriter, block: str) -> None:
    """Find the workgroup's id in the true grid from its position in the launched one.

    Surplus workgroups end.
    """
    count = facts.GROUP_COUNT
    lines = (
        f"uvec3 {count} = {block}.{count};",
        "uint workgroup_index = gl_WorkGroupID.z * gl_NumWorkGroups.y + gl_WorkGroupID.y;",
        "workgroup_index = workgroup_index * gl_NumWorkGroups.x + gl_WorkGroupID.x;",
        f"if (workgroup_index >= {count}.x * {count}.y * {count}.z) return;",
        f"uint workgroup_row = workgroup_index / {count}.x;",
        f"uvec3 {spelling.FOLDED_WORKGROUP_ID} = uvec3(workgroup_index, workgroup_row, workgroup_row);",
        f"{spelling.FOLDED_WORKGROUP_ID}.xy %= {count}.xy;",
        f"{spelling.FOLDED_WORKGROUP_ID}.z /= {count}.y;",
        (
            f"uvec3 {spelling.FOLDED_GLOBAL_ID} = {spelling.FOLDED_WORKGROUP_ID} * gl_WorkGroupSize"
            " + gl_LocalInvocationID;"
        ),
    )
    for line in lines:
        writer.line(line)


def statements_text(block: ir.Block) -> str:
    """Write statements on their own, as they stand in the main function."""
    kernel = ir.Kernel("", (), (), (), block, None)
    body = _write_body(kernel, PLAIN, facts.argument_layout(kernel), Packing())
    return "".join(line + "\n" for line in body.lines)
