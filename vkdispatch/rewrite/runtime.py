"""What rewritten code calls."""

from collections.abc import Callable
from typing import Any

from vkdispatch.rewrite.frames import enter
from vkdispatch.rewrite.operators import and_, bind, chain, choose, contains, known, not_, or_

# `functions`, which makes the code that calls this, puts the function here.
callee: Callable[[Any], Any]

__all__ = ["and_", "bind", "chain", "choose", "contains", "enter", "known", "not_", "or_"]
