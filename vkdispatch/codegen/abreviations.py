"""The older spelling of `vkdispatch.codegen.abbreviations`, with the same contents."""

from vkdispatch.codegen.abbreviations import *  # noqa: F403
