"""What a workload did while calls failed: steps may raise a VkDispatchError, and no number may be wrong."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import vkdispatch as vd


@dataclass
class Item:
    """An object of a workload.

    Attributes
    ----------
    value
        The object, or None where it could not be made.
    sure
        Whether every step that made its contents what they are has succeeded: reading it gives the truth
        then, or raises. After a step that raised nobody can say what it holds.
    """

    name: str
    value: Any = None
    sure: bool = True


@dataclass
class Trial:
    """One run of a workload.

    Attributes
    ----------
    errors
        The VkDispatchErrors, with the steps that raised them.
    faults
        What must not be: wrong numbers and exceptions that are not ours, with their kind.
    items
        What the workload made.
    """

    errors: list[str] = field(default_factory=list)
    faults: list[tuple[str, str]] = field(default_factory=list)
    items: list[Item] = field(default_factory=list)
    checked: int = 0

    def make(self, name: str, work: Callable[..., Any], *arguments: Any) -> Item:
        """Return what `work` makes of the arguments, of which items stand for their values."""
        item = Item(name)
        self.items.append(item)
        self._run(name, work, arguments, [item], item)
        return item

    def do(
        self,
        work: Callable[..., Any],
        *arguments: Any,
        writes: Sequence[Item] = (),
        anew: Sequence[Item] = (),
    ) -> bool:
        """Run a step that changes what it `writes`, and gives new contents to what it writes `anew`."""
        name = getattr(work, "__name__", type(work).__name__)
        done = self._run(name, work, arguments, writes, None)
        for item in anew:
            item.sure = done and all(
                each.sure for each in arguments if isinstance(each, Item) and each is not item
            )
        return done

    def check(self, item: Item, read: Callable[[Any], Any], truth: Any, *, close: float = 0.0) -> None:
        """Read an item, which raises or gives the truth, off by less than `close` of it."""
        if item.value is None:
            return
        try:
            found = read(item.value)
        except vd.VkDispatchError as error:
            self._note_error(f"read {item.name}", error)
            return
        except Exception as error:
            self._foreign(f"read {item.name}", error)
            return
        if item.sure:
            self.checked += 1
            self._compare(item.name, np.asarray(found), np.asarray(truth), close)

    def _compare(self, name: str, found: Any, truth: Any, close: float) -> None:
        same = found.shape == truth.shape and (
            np.allclose(found, truth, rtol=close, atol=close) if close else np.array_equal(found, truth)
        )
        if not same:
            where = ""
            if found.shape == truth.shape:
                at = np.flatnonzero(~np.isclose(found, truth, rtol=close, atol=close).reshape(-1))
                where = f", {len(at)} of {found.size} elements, from {at[0] if len(at) else '?'} on"
            text = f"{name}: {found.reshape(-1)[:4]}... in place of {truth.reshape(-1)[:4]}...{where}"
            self.faults.append(("wrong", " ".join(text.split())))

    def _run(
        self,
        name: str,
        work: Callable[..., Any],
        arguments: Sequence[Any],
        writes: Sequence[Item],
        made: Item | None,
    ) -> bool:
        needs = [each for each in arguments if isinstance(each, Item)]
        changed = [each for each in writes if each is not made]
        if any(each.value is None for each in needs):
            return self._unsure(writes)
        try:
            value = work(*(each.value if isinstance(each, Item) else each for each in arguments))
        except vd.VkDispatchError as error:
            self._note_error(name, error)
            return self._unsure(writes)
        except Exception as error:
            self._foreign(name, error)
            return self._unsure(writes)
        if made is not None:
            made.value = value
            made.sure = all(each.sure for each in needs)
        if changed and not all(each.sure for each in needs):
            self._unsure(changed)
        return True

    @staticmethod
    def _unsure(items: Sequence[Item]) -> bool:
        for each in items:
            each.sure = False
        return False

    def _note_error(self, step: str, error: Exception) -> None:
        self.errors.append(f"{step}: {type(error).__name__}: {error}")

    def _foreign(self, step: str, error: Exception) -> None:
        lines = "".join(traceback.format_exception(error)[-4:])
        self.faults.append(("foreign", f"{step}: {type(error).__name__}: {error}\n{lines}"))
