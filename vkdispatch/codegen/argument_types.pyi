"""What type checkers see of `Buff[D]`, `Const[D]` and their like. Nothing imports this at run time.

One annotation serves two sides: a kernel's body, which computes with GPU values, and its call, which gives
buffers and numbers. So each is a protocol that says what the call may give, by members that only such objects
have, while the body may do what GPU values do: a class derived from Any has every operator and attribute.
"""

from typing import Any, Never, Protocol, TypeVar, overload

import numpy as np

from vkdispatch.codegen.variables import ShaderVariable

_D = TypeVar("_D")
_D_co = TypeVar("_D_co", covariant=True)

_Numbers = complex | tuple[Any, ...] | list[Any] | np.ndarray[Any, Any] | np.generic | ShaderVariable

class _Binding(Protocol):
    """A variable bound by a graph, `vd.CommandGraph.bind_var`."""

    name: str
    graph: Any

# Numbers, tuples, lists and arrays have `__rmul__`, and so have text and bytes: its result tells them apart.
# Nothing can be given for Never, so that operators in kernels use the second form.
class Constant(Any, Protocol[_D_co]):  # type: ignore[misc]
    """`Const[D]`: a number, a sequence or an array."""

    @overload
    def __rmul__(self, other: Never, /) -> _Numbers: ...
    @overload
    def __rmul__(self, other: Any, /) -> Any: ...

class Variable(Any, Protocol[_D_co]):  # type: ignore[misc]
    """`Var[D]`: the same, or a variable bound by a graph."""

    @overload
    def __rmul__(self, other: Never, /) -> _Numbers | _Binding: ...
    @overload
    def __rmul__(self, other: Any, /) -> Any: ...

class Buffer(Any, Protocol[_D_co]):  # type: ignore[misc]
    """`Buff[D]`: a `vd.Buffer[D]`."""

    def __getitem__(self, index: Any, /) -> ShaderVariable: ...
    def __setitem__(self, index: Any, value: Any, /) -> None: ...
    def _element(self) -> _D_co: ...

class _Sampled(Any, Protocol[_D_co]):  # type: ignore[misc]
    """A `vd.Sampler`."""

    image: Any
    settings: Any

class Image1D(_Sampled[_D_co], Protocol[_D_co]): ...
class Image2D(_Sampled[_D_co], Protocol[_D_co]): ...
class Image2DArray(_Sampled[_D_co], Protocol[_D_co]): ...
class Image3D(_Sampled[_D_co], Protocol[_D_co]): ...

class _Stored(Any, Protocol[_D_co]):  # type: ignore[misc]
    """A `vd.Image`."""

    @property
    def is_storable(self) -> bool: ...

class StorageImage1D(_Stored[_D_co], Protocol[_D_co]): ...
class StorageImage2D(_Stored[_D_co], Protocol[_D_co]): ...
class StorageImage2DArray(_Stored[_D_co], Protocol[_D_co]): ...
class StorageImage3D(_Stored[_D_co], Protocol[_D_co]): ...
