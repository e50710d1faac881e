"""Names of built-in values, arguments and expressions in one form of a kernel."""

import re

from vkdispatch.analyses.naming import NamingPlan
from vkdispatch.base.record import field, record
from vkdispatch.glsl.packing import Packing
from vkdispatch.glsl.spelling import BUILTINS
from vkdispatch.ir import Builtin, Expr


@record(eq=False, frozen=False)
class Names:
    """Names of built-in values, of the argument block, and of expressions that have a name."""

    builtins: dict[Builtin, str] = field(factory=lambda: BUILTINS)
    block: str = "PC"
    plan: NamingPlan | None = None
    of_number: dict[int, str] = field(factory=dict)
    # of buffers that are reached by address: members of the argument block, by position of the resource
    addresses: dict[int, str] = field(factory=dict)
    lengths: dict[int, str] = field(factory=dict)
    # buffers whose elements are packed in words
    packing: Packing = field(factory=Packing)
    # features that the form does without
    lacks: frozenset[str] = frozenset()
    # where arguments of 16 bits lie that are packed in words, by name
    halves: dict[str, int] = field(factory=dict)
    # counts of elements of shared arrays, by identity
    shared: dict[int, int] = field(factory=dict)
    # whether integers of 64 bits become float64
    rounds_integers: bool = False
    # whether halves made of float32 become float32 again
    rounds_halves: bool = False

    def name_of(self, expr: Expr) -> str | None:
        """Return the name that an expression was given, if any."""
        if not self.of_number or self.plan is None:
            return None
        number = self.plan.numbering.by_id.get(id(expr))
        if number is None:
            number = self.plan.numbering.number(expr)
        return self.of_number.get(number)

    def raw(self, text: str) -> str:
        """Adapt raw GLSL, which was written against the default names."""
        renamed = {BUILTINS[key]: name for key, name in self.builtins.items() if BUILTINS[key] != name}
        if self.block != "PC":
            renamed["PC"] = self.block
        if not renamed:
            return text
        pattern = r"\b(" + "|".join(renamed) + r")\b"
        return re.sub(pattern, lambda match: renamed[match[0]], text)
