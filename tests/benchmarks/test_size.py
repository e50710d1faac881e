from pathlib import Path

from benchmarks import size

_TEXT = '''"""A module.

With two paragraphs.
"""

import os
from collections.abc import (  # a comment
    Callable,
    Iterator,
)

NAME = """two
lines"""


class Thing:
    """A class."""

    def act(self) -> None:
        """Act."""

        # a comment
        print(
            os.sep,
        )
'''


def test_lines_of_code_are_lines_without_prose() -> None:
    found = size.measure_text(_TEXT, "thing.py")
    # 5 lines of imports, 2 of NAME, 1 of the class, 4 of its function
    assert (found.files, found.code, found.imports) == (1, 12, 5)
    assert (found.longest, found.where) == (4, "thing.py:19")
    assert found.import_share == 5 / 12


def test_folders_and_their_budget(tmp_path: Path) -> None:
    (tmp_path / "room" / "closet").mkdir(parents=True)
    for place in ("top.py", "room/a.py", "room/closet/b.py"):
        (tmp_path / place).write_text(_TEXT)
    sizes = size.measure_package(tmp_path)
    assert {name: (found.files, found.code) for name, found in sizes.items()} == {
        "vkdispatch": (3, 36),
        ".": (1, 12),
        "room": (2, 24),
    }
    assert size.find_excess(sizes, {"vkdispatch": {"files": 3, "code": 36}, "room": {"code": 24}}) == []
    excess = size.find_excess(sizes, {"vkdispatch": {"imports": 41}, "room": {"files": 1, "code": 23}})
    assert excess == [
        "vkdispatch: imports 41.7, the budget is 41",
        "room: files 2, the budget is 1",
        "room: code 24, the budget is 23",
    ]
    assert "room" in size.format_report(sizes)
