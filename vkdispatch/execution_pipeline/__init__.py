"""Recording dispatches once and replaying them with other values."""

from typing import TYPE_CHECKING

from vkdispatch.base import submodules_of

if not TYPE_CHECKING:
    __getattr__ = submodules_of(__name__)
