"""What type checkers see of calling a kernel. Nothing imports this at run time.

A call without options has the parameters of the function, with their names and defaults. Python's types
cannot add keywords to those, so that calls with options give all arguments by position, or all by name.
"""

from collections.abc import Callable, Sequence
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypedDict, TypeVar, Unpack, overload

from typing_extensions import TypeVar as TypeVarWithDefault

from vkdispatch.execution_pipeline.command_graph import CommandGraph
from vkdispatch.shader.shader_function import ShaderFunction

_Size = int | Sequence[int] | str | Callable[[Any], Any]

class Options(TypedDict, total=False):
    """Keywords that any call of a kernel takes."""

    exec_size: _Size
    workgroups: _Size
    graph: CommandGraph | None
    queue_index: int | None

_Any = Callable[..., Any]
Function = TypeVarWithDefault("Function", bound=_Any, default=_Any, covariant=True)
Decorated = TypeVar("Decorated", bound=_Any)
_P = ParamSpec("_P")
_Instance = TypeVar("_Instance")
_A = TypeVar("_A")
_B = TypeVar("_B")
_C = TypeVar("_C")
_D = TypeVar("_D")
_E = TypeVar("_E")
_F = TypeVar("_F")
_G = TypeVar("_G")
_H = TypeVar("_H")
_I = TypeVar("_I")
_J = TypeVar("_J")
_K = TypeVar("_K")
_L = TypeVar("_L")

class Call(Generic[Function]):
    """The calls of a kernel that was made of a function."""

    @overload
    def __call__(self: Call[Callable[_P, Any]], *args: _P.args, **kwargs: _P.kwargs) -> None: ...
    @overload
    def __call__(self: Call[Callable[[], Any]], **options: Unpack[Options]) -> None: ...
    @overload
    def __call__(self: Call[Callable[[_A], Any]], *args: *tuple[_A], **options: Unpack[Options]) -> None: ...
    @overload
    def __call__(
        self: Call[Callable[[_A, _B], Any]], *args: *tuple[_A, _B], **options: Unpack[Options]
    ) -> None: ...
    @overload
    def __call__(
        self: Call[Callable[[_A, _B, _C], Any]], *args: *tuple[_A, _B, _C], **options: Unpack[Options]
    ) -> None: ...
    @overload
    def __call__(
        self: Call[Callable[[_A, _B, _C, _D], Any]], *args: *tuple[_A, _B, _C, _D], **options: Unpack[Options]
    ) -> None: ...
    @overload
    def __call__(
        self: Call[Callable[[_A, _B, _C, _D, _E], Any]],
        *args: *tuple[_A, _B, _C, _D, _E],
        **options: Unpack[Options],
    ) -> None: ...
    @overload
    def __call__(
        self: Call[Callable[[_A, _B, _C, _D, _E, _F], Any]],
        *args: *tuple[_A, _B, _C, _D, _E, _F],
        **options: Unpack[Options],
    ) -> None: ...
    @overload
    def __call__(
        self: Call[Callable[[_A, _B, _C, _D, _E, _F, _G], Any]],
        *args: *tuple[_A, _B, _C, _D, _E, _F, _G],
        **options: Unpack[Options],
    ) -> None: ...
    @overload
    def __call__(
        self: Call[Callable[[_A, _B, _C, _D, _E, _F, _G, _H], Any]],
        *args: *tuple[_A, _B, _C, _D, _E, _F, _G, _H],
        **options: Unpack[Options],
    ) -> None: ...
    @overload
    def __call__(
        self: Call[Callable[[_A, _B, _C, _D, _E, _F, _G, _H, _I], Any]],
        *args: *tuple[_A, _B, _C, _D, _E, _F, _G, _H, _I],
        **options: Unpack[Options],
    ) -> None: ...
    @overload
    def __call__(
        self: Call[Callable[[_A, _B, _C, _D, _E, _F, _G, _H, _I, _J], Any]],
        *args: *tuple[_A, _B, _C, _D, _E, _F, _G, _H, _I, _J],
        **options: Unpack[Options],
    ) -> None: ...
    @overload
    def __call__(
        self: Call[Callable[[_A, _B, _C, _D, _E, _F, _G, _H, _I, _J, _K], Any]],
        *args: *tuple[_A, _B, _C, _D, _E, _F, _G, _H, _I, _J, _K],
        **options: Unpack[Options],
    ) -> None: ...
    @overload
    def __call__(
        self: Call[Callable[[_A, _B, _C, _D, _E, _F, _G, _H, _I, _J, _K, _L], Any]],
        *args: *tuple[_A, _B, _C, _D, _E, _F, _G, _H, _I, _J, _K, _L],
        **options: Unpack[Options],
    ) -> None: ...
    # more arguments are not looked at
    @overload
    def __call__(
        self: Call[
            Callable[Concatenate[Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, Any, _P], Any]
        ],
        *args: Any,
        **options: Unpack[Options],
    ) -> None: ...
    @overload
    def __call__(  # type: ignore[overload-cannot-match]
        self,
        *,
        exec_size: _Size = ...,
        workgroups: _Size = ...,
        graph: CommandGraph | None = ...,
        queue_index: int | None = ...,
        **named: Any,
    ) -> None: ...

    # a kernel in a class is a method
    @overload
    def __get__(self, instance: None, owner: Any = None) -> Self: ...
    @overload
    def __get__(
        self: Call[Callable[Concatenate[_Instance, _P], Any]], instance: _Instance, owner: Any = None
    ) -> ShaderFunction[Callable[_P, Any]]: ...
    @overload
    def __get__(self, instance: object, owner: Any = None) -> Self: ...
