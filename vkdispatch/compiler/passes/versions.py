"""The versions of a program that its passes made, as text, and what differs between them."""

from vkdispatch.base.record import record
from vkdispatch.compiler.ir import Kernel
from vkdispatch.compiler.ir.text import Line, ProgramWriter, join_lines
from vkdispatch.compiler.passes.order import PASSES, list_steps


@record
class ProgramVersion:
    """The program of a kernel after the pass `name`, or as it was traced ("trace").

    Attributes
    ----------
    about
        What the pass does.
    lines
        The program as text, each line with the place in Python that it comes from.
    """

    name: str
    about: str
    lines: tuple[Line, ...]

    @property
    def text(self) -> str:
        """The program, with places in Python at the right."""
        return join_lines(self.lines)

    def difference(self, before: "ProgramVersion") -> list[str]:
        """Return the lines that differ from the version before, marked with + and -, and their neighbours."""
        import difflib  # slow to import

        old, new = ([line.text for line in version.lines] for version in (before, self))
        return list(difflib.unified_diff(old, new, n=2, lineterm=""))[2:]


def list_versions(kernel: Kernel) -> tuple[ProgramVersion, ...]:
    """Return the versions that led to a program, the traced one first; see `order.keep_steps`."""
    steps, writer = list_steps(kernel), ProgramWriter()
    names = ["trace", *(step.name for step in steps)]
    kernels = [*(step.before for step in steps), kernel]
    return tuple(
        ProgramVersion(name, PASSES.get(name, "the program as traced"), tuple(writer.write(version)))
        for name, version in zip(names, kernels, strict=True)
    )
