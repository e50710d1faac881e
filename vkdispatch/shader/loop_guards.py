"""Kernels on devices whose driver ends loops after a number of rounds: the form that is compiled there.

How many rounds a driver allows is measured, once for each device and driver (`find_loop_limit`).
"""

from typing import Any

from vkdispatch.base.buffer import Buffer
from vkdispatch.base.buffers.kernel_errors import NOTES, Check, StandingTicket, journal_of
from vkdispatch.base.command_list import ALL_QUEUES
from vkdispatch.base.compilation import disk_cache
from vkdispatch.base.context import Context, use_context
from vkdispatch.base.dtype import uint32
from vkdispatch.base.errors import LoopLimitError, VkDispatchError
from vkdispatch.base.record import record, replace
from vkdispatch.codegen import ShaderDescription
from vkdispatch.codegen.description import GLSLBackend
from vkdispatch.compiler.ir import Declare, Expr, Kernel, Op, Register, Storage, Store, While
from vkdispatch.compiler.ir.location import Loc, located
from vkdispatch.compiler.ir.statements import PLAIN
from vkdispatch.compiler.passes.builders import binary, less, read, uint
from vkdispatch.compiler.passes.loop_limits import LimitedLoops, count_rounds, limit_loops
from vkdispatch.execution_pipeline.kernel_facts import KernelFacts, register_facts
from vkdispatch.shader.arguments.slots import BufferSlot, Slot, ValueSlot
from vkdispatch.shader.launch.build import KernelSource, build_kernel
from vkdispatch.shader.launch.launcher import GuardValues
from vkdispatch.shader.launch.variants import UNCOARSENED

_STATE_KEY = "loops.limit"
# No loop of the probe has more rounds: what goes on longer is taken not to end.
_PROBED = 1 << 20


@record(eq=False)
class LoopGuard:
    """A kernel whose loops report that the driver ended them, and what a launch passes for that.

    Attributes
    ----------
    description
        The kernel.
    slots
        The slots of the launcher that follow those of the kernel: the journal, and the ticket.
    places
        The Python lines of the loops.
    """

    description: ShaderDescription
    slots: tuple[Slot, Slot]
    places: tuple[Loc | None, ...]

    def make_values(self, who: str, context: Context) -> GuardValues:
        """Return what launches in a context pass for the slots."""
        ticket = StandingTicket(context, _LoopCheck(who, self.places))
        return GuardValues(journal_of(context), ticket)


def guard_loops(description: ShaderDescription, context: Context) -> LoopGuard | None:
    """Return the form of a kernel for the devices of a context; None if it is the kernel itself."""
    kernel = description.kernel
    if count_rounds(kernel.body) <= _SAFE_ROUNDS:
        return None
    limit = find_loop_limit(context)
    limited = None if limit is None else limit_loops(kernel, limit, NOTES)
    return None if limited is None else _make_guard(description, limited)


def _make_guard(description: ShaderDescription, limited: LimitedLoops) -> LoopGuard:
    guarded = replace(description, kernel=limited.kernel)
    binding = limited.binding + guarded.resource_binding_base
    slots = (
        BufferSlot("journal", binding, None, reads=True, writes=True, item_size=uint32.item_size),
        ValueSlot("ticket", limited.ticket, uint32),
    )
    return LoopGuard(guarded, slots, limited.places)


class _LoopCheck(Check):
    """The check that the driver ended no loop of a kernel."""

    __slots__ = ("_places", "_who")

    def __init__(self, who: str, places: tuple[Loc | None, ...]) -> None:
        self._who, self._places = who, places

    @property
    def function(self) -> str:
        return self._who

    def error(self, place: int, words: Any, queue: int, call: str) -> VkDispatchError:
        where = "" if words is None else " in invocation ({}, {}, {})".format(*map(int, words[0:5:2]))
        message = (
            f"{self._who}: a loop was ended by the driver{where}, which limits the rounds of all loops of an "
            "invocation together; use more invocations with fewer rounds each"
        )
        return located(LoopLimitError, message, self._places[place - 1])


# ---- the limit of a driver -----------------------------------------------------------------------

# Any driver allows as many, so that for most kernels no limit need be known.
_SAFE_ROUNDS = 1 << 12


def find_loop_limit(context: Context) -> int | None:
    """Return after how many rounds a device of a context ends loops; None if it does not.

    It is measured by a kernel with a long loop, and kept on disk for the device and its driver.
    """
    if _STATE_KEY not in context.kept:
        devices = (
            f"{info.uuid.hex() if info.uuid else ''} {info.device_name} {info.driver_version}"
            for info in context.device_infos
        )
        key = "\n".join((f"loop limit of {_PROBED} rounds 1", *devices))
        stored = disk_cache.load("measured", key)
        rounds = int(stored) if stored is not None and stored.isdigit() else 0
        if not 0 < rounds <= _PROBED:
            rounds = _measure_rounds(context)
            disk_cache.store("measured", key, str(rounds).encode())
        context.kept[_STATE_KEY] = None if rounds == _PROBED else rounds
    limit: int | None = context.kept[_STATE_KEY]
    return limit


def _measure_rounds(context: Context) -> int:
    """Return the fewest rounds that a loop has on a device of a context when it should have `_PROBED`."""
    data = Storage(0, uint32, "data")
    rounds, value = Register("rounds", uint32), Register("value", uint32)

    def element(index: int) -> Expr:
        return Expr(Op.ELEMENT, uint32, (uint(index),), data)

    # What a loop without a limit would compute must not be known without it.
    following = binary("^", binary("*", read(value), uint(1664525)), read(rounds))
    body = (Store(read(value), following), Store(read(rounds), uint(1), "+"))
    kernel = Kernel(
        "probe_loops",
        (),
        (data,),
        (),
        (
            Declare(rounds, uint(0)),
            Declare(value, element(1)),
            While(less(read(rounds), element(0)), body),
            Store(element(1), read(value)),
            Store(element(2), read(rounds)),
        ),
        None,
    )
    description = ShaderDescription(kernel, (), GLSLBackend())
    slot = BufferSlot("data", 0, None, reads=True, writes=True, item_size=uint32.item_size)
    source = KernelSource("probe_loops", description, (slot,), None)
    with use_context(context):
        built = build_kernel(source, context, (1, 1, 1), PLAIN, UNCOARSENED)
        facts = KernelFacts(kernel.name, None, (1, 1, 1), kernel, built.layout, internal=True)
        register_facts(built.plan, facts)
        buffer: Buffer[Any] = Buffer(3, uint32)
        buffer.write(_PROBED.to_bytes(4, "little") + bytes(8))
        built.launcher.launch((buffer,), (1, 1, 1), True, ALL_QUEUES)
        # what other work has found is not this one's to raise
        counts = [
            int(buffer._read(0, buffer.shape, queue, raise_findings=False)[2])
            for queue in range(context.queue_count)
        ]
        buffer.destroy()
    return min(counts)
