"""The code of a kernel given as GLSL or SPIR-V, and the values of its specialization constants."""

from collections.abc import Mapping
from typing import Any

from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.base.record import record, replace
from vkdispatch.base.spirv.module import Module
from vkdispatch.base.spirv.reflection import Interface, SpecConstant, Value, reflect
from vkdispatch.shader.launch.size import Extent
from vkdispatch.shader.raw.arguments import RawArgument


@record
class RawCode:
    """The code of a kernel, and the options that the user gave with it.

    Attributes
    ----------
    glsl
        The text, or None if SPIR-V was given.
    local_size
        The workgroup size that the user gave, or None for the code's own.
    specialization
        Values of specialization constants by id.
    untrusted
        Whether its author is not trusted.
    """

    name: str
    glsl: str | None
    module: Module
    entry_point: str
    arguments: tuple[RawArgument, ...]
    local_size: Extent | None
    specialization: Mapping[int, Value]
    untrusted: bool = False

    @property
    def argument(self) -> str:
        """What messages call the code."""
        return f"{self.name}: {'source' if self.glsl is not None else 'spirv'}"


def parse_values(
    code: RawCode, interface: Interface, values: "Mapping[int | str, Value]"
) -> dict[int, Value]:
    """Return checked values of specialization constants by id."""
    if not isinstance(values, Mapping):
        raise ArgumentTypeError(f"{code.name}: specialization: expected a dictionary, got {values!r}")
    found = {}
    for key, value in values.items():
        constant = _find_constant(code, interface, key)
        try:
            constant.pack(value)
        except (ArgumentTypeError, ArgumentValueError) as error:
            raise type(error)(f"{code.name}: {error}") from None
        kinds: dict[str, type[Any]] = {"bool": bool, "int": int, "float": float}
        found[constant.id] = kinds[constant.kind](value)
    return found


def _find_constant(code: RawCode, interface: Interface, key: object) -> SpecConstant:
    known = interface.spec_constants
    for constant in known.values():
        if key == constant.name != "" or (key == constant.id and not isinstance(key, bool)):
            return constant
    names = ", ".join(
        f"{number} ({constant.name})" if constant.name else str(number)
        for number, constant in sorted(known.items())
    )
    stripped = known and not any(constant.name for constant in known.values())
    hint = ": the code has no names, so pass ids" if stripped and isinstance(key, str) else ""
    raise ArgumentValueError(
        f"{code.name}: specialization: the code has no constant {key!r}; it has {names or 'none'}{hint}"
    )


def specialize(code: RawCode) -> tuple[RawCode, Interface, Extent]:
    """Return the code with its workgroup size among the constants, the resulting interface, and that size."""
    interface = reflect(code.module, code.entry_point, code.specialization, code.argument)
    if code.local_size is None:
        if interface.local_size is None:
            raise ArgumentValueError(
                f"{code.name}: local_size: the code computes it in a way that is not supported; pass it"
            )
        return code, interface, interface.local_size
    if interface.local_size is None:
        return code, interface, code.local_size
    values = dict(code.specialization)
    for wanted, declared, number in zip(
        code.local_size, interface.local_size, interface.local_size_ids, strict=True
    ):
        if number is not None and values.get(number, wanted) == wanted:
            values[number] = wanted
        elif wanted != declared:
            raise ArgumentValueError(
                f"{code.name}: local_size: {code.local_size} is passed, the code says "
                f"{interface.local_size}; add ids for its axes, as in layout(local_size_x_id = 0) in;"
            )
    code = replace(code, specialization=values)
    return code, reflect(code.module, code.entry_point, values, code.argument), code.local_size or (1, 1, 1)
