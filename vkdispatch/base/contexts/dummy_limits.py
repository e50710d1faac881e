"""The limits of the dummy backend's context, which tests set to trace kernels for other devices."""

from vkdispatch.base.contexts.current import get_context
from vkdispatch.base.errors import ArgumentValueError, UsageError
from vkdispatch.base.init import get_backend, is_dummy
from vkdispatch.base.integers import as_int, parse_positive


def set_dummy_context_params(
    subgroup_size: int | None = None,
    subgroup_enabled: bool | None = None,
    max_workgroup_size: tuple[int, int, int] | None = None,
    max_workgroup_invocations: int | None = None,
    max_workgroup_count: tuple[int, int, int] | None = None,
    max_shared_memory: int | None = None,
) -> None:
    """Change limits of the dummy backend's context, which is created if there is none. None keeps a limit.

    Parameters
    ----------
    subgroup_size
        Invocations in a subgroup.
    subgroup_enabled
        Whether kernels can use subgroup operations.
    max_workgroup_size
        Maximum invocations of a workgroup along x, y and z.
    max_workgroup_invocations
        Maximum invocations of a workgroup.
    max_workgroup_count
        Maximum workgroups of a launch along x, y and z.
    max_shared_memory
        Maximum bytes of shared memory of a workgroup.

    Raises
    ------
    RuntimeError
        The backend is not the dummy one.
    ValueError
        A limit is not a positive int, three positive ints, or True or False.
    """
    if not is_dummy():
        raise UsageError(
            f"set_dummy_context_params: the backend is {get_backend()!r}; "
            "call vd.initialize(backend='dummy') first"
        )
    if subgroup_enabled is not None and not isinstance(subgroup_enabled, bool):
        raise ArgumentValueError(f"subgroup_enabled: expected True or False, got {subgroup_enabled!r}")
    size = _parse_limit("subgroup_size", subgroup_size)
    invocations = _parse_limit("max_workgroup_invocations", max_workgroup_invocations)
    shared = _parse_limit("max_shared_memory", max_shared_memory)
    workgroup = _parse_triple("max_workgroup_size", max_workgroup_size)
    count = _parse_triple("max_workgroup_count", max_workgroup_count)
    # All arguments are valid: only now the context changes.
    context = get_context()
    context.uniform_buffer_alignment = 0
    context.subgroup_size = size or context.subgroup_size
    if subgroup_enabled is not None:
        context.subgroup_enabled = context.subgroup_arithmetic = subgroup_enabled
    context.max_workgroup_size = workgroup or context.max_workgroup_size
    context.max_workgroup_invocations = invocations or context.max_workgroup_invocations
    context.max_workgroup_count = count or context.max_workgroup_count
    context.max_shared_memory = shared or context.max_shared_memory


def _parse_limit(argument: str, value: object) -> int | None:
    return None if value is None else parse_positive(argument, value)


def _parse_triple(argument: str, value: object) -> tuple[int, int, int] | None:
    if value is None:
        return None
    numbers = [as_int(item) for item in value] if isinstance(value, (tuple, list)) else []
    match numbers:
        case [int(x), int(y), int(z)] if min(x, y, z) >= 1:
            return (x, y, z)
    raise ArgumentValueError(f"{argument}: expected three positive ints, got {value!r}")
