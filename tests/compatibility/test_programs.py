"""Every program of the tables runs, and the documentation shows these tables."""

from __future__ import annotations

import pytest

from tests.compatibility.programs import Program
from tests.compatibility.tables import SYSTEMS, path, table

_ALL = [(system, program) for system, collection in SYSTEMS.items() for program in collection.programs]


@pytest.mark.parametrize(
    "program", [program for _, program in _ALL], ids=[f"{s}-{p.run.__name__}" for s, p in _ALL]
)
def test_program_runs(program: Program) -> None:
    program.run()


@pytest.mark.parametrize("system", SYSTEMS)
def test_table_is_in_the_documentation(system: str) -> None:
    assert path(system).read_text() == table(SYSTEMS[system]), "run python -m tests.compatibility.tables"
