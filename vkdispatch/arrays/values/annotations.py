"""Annotations for dtypes that are values: `buffer[kind]` is `Buff[kind]`, and so is `constant`."""

from typing import Any, Protocol, cast

import vkdispatch.codegen as vc


class _Generic(Protocol):
    def __getitem__(self, kind: object, /) -> Any: ...


buffer = cast(_Generic, vc.Buff)
constant = cast(_Generic, vc.Const)
