"""Directives of OpenMP and OpenACC: which a body has decides what has to stand around it; clauses of data."""

import re
from collections.abc import Sequence

_C = r"^[ \t]*#[ \t]*pragma[ \t]+{}[ \t]+(\w+)"
_FORTRAN = r"^[ \t]*!\${}[ \t]+(\w+)"


def first_directive(body: str, family: str, *, fortran: bool) -> str:
    """Return the first word of the first directive of a family ("omp" or "acc") in a body, or nothing."""
    pattern = (_FORTRAN if fortran else _C).format(family)
    for match in re.finditer(pattern, body, re.MULTILINE | re.IGNORECASE):
        word = match[1].lower()
        # These say something of functions or of data, and nothing of who runs what.
        if word not in ("declare", "data", "enter", "exit", "routine", "update", "threadprivate", "requires"):
            return word
    return ""


def map_clauses(inputs: Sequence[str], outputs: Sequence[str], give: str, both: str) -> str:
    """Return the clauses that map data: `give` and `both` begin those of inputs and of outputs."""
    text = f" {give}{', '.join(inputs)})" if inputs else ""
    return text + (f" {both}{', '.join(outputs)})" if outputs else "")
