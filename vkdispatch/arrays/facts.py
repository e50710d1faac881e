"""Facts about the devices of a context that plans of kernels depend on, gathered once."""

from vkdispatch.arrays.numbers import floor_power_of_two
from vkdispatch.base.context import Context, get_context
from vkdispatch.base.devices import MatrixProduct
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.base.process import read_choices
from vkdispatch.base.record import record

_STATE_KEY = "arrays.facts"
_PLAN_VARIABLE = "VKDISPATCH_PLAN"
_BALLOT, _SHUFFLE, _SHIFT = 0x8, 0x10, 0x20
NVIDIA, AMD, INTEL = 0x10DE, 0x1002, 0x8086
# Drivers of other vendors may run kernels with smaller subgroups than they report.
_WHOLE_SUBGROUPS = (NVIDIA, AMD)


# Plans are memoized by these facts. Each context has one object, so it is compared and hashed by identity.
@record(eq=False)
class DeviceFacts:
    """What all devices of a context can do.

    Attributes
    ----------
    is_cpu
        Whether kernels are planned for a CPU driver: one device is such, or VKDISPATCH_PLAN says so.
    vendors
        Vulkan's vendor numbers.
    subgroup_size
        Invocations of a subgroup.
    has_one_subgroup_size
        Whether all devices have subgroups of that size.
    has_full_subgroups
        Whether every subgroup has that many invocations if the size of the workgroup is a multiple of it.
    has_shuffle, has_shift
        Whether an invocation can read the values of any other of its subgroup, or of those before it.
    has_ballot
        Whether subgroups can vote.
    has_arithmetic
        Whether subgroups have sums and products.
    max_group
        The most invocations of a workgroup along x.
    shared_memory
        Bytes of workgroup memory.
    features
        Vulkan's names of the features that kernels may use.
    products
        Products of cooperative matrices.
    """

    is_cpu: bool
    vendors: frozenset[int]
    subgroup_size: int
    has_one_subgroup_size: bool
    has_full_subgroups: bool
    has_shuffle: bool
    has_shift: bool
    has_ballot: bool
    has_arithmetic: bool
    max_group: int
    shared_memory: int
    features: frozenset[str]
    products: tuple[MatrixProduct, ...]

    def power_group(self, wanted: int) -> int:
        """Return the largest power of two up to `wanted` invocations that a workgroup may have."""
        return floor_power_of_two(min(wanted, self.max_group))


def device_facts(context: Context | None = None) -> DeviceFacts:
    """Return the facts about the devices of a context; None for the current one."""
    context = get_context() if context is None else context
    if not context.runs:
        return _gather_facts(context)  # the limits of the dummy backend may change
    found: DeviceFacts | None = context.kept.get(_STATE_KEY)
    return context._keep(_STATE_KEY, lambda: _gather_facts(context)) if found is None else found


def _is_planned_for_cpu(context: Context) -> bool:
    chosen = read_choices(_PLAN_VARIABLE, ("cpu", "gpu"))
    if len(chosen) > 1:
        raise ArgumentValueError(f"{_PLAN_VARIABLE}: expected cpu or gpu, got both")
    return "cpu" in chosen or (context.is_cpu() and not chosen)


def _gather_facts(context: Context) -> DeviceFacts:
    infos = context.device_infos
    operations = -1 if context.subgroup_enabled else 0
    for info in infos:
        operations &= info.supported_operations
    return DeviceFacts(
        _is_planned_for_cpu(context),
        frozenset(info.vendor_id for info in infos),
        context.subgroup_size,
        len({info.sub_group_size for info in infos}) == 1,
        all(info.vendor_id in _WHOLE_SUBGROUPS or info.is_cpu() for info in infos),
        bool(operations & _SHUFFLE),
        bool(operations & _SHIFT),
        bool(operations & _BALLOT),
        context.subgroup_arithmetic,
        context.max_invocations_along_x,
        context.max_shared_memory,
        context.features,
        tuple(
            product
            for product in infos[0].cooperative_matrices
            if all(product in info.cooperative_matrices for info in infos)
        ),
    )
