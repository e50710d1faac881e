"""`@vd.shader`: a Python function traced into a kernel."""

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

import vkdispatch.codegen as vc
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.rewrite.calls.kernel_result import check_result
from vkdispatch.rewrite.functions import prepare_kernel
from vkdispatch.shader.arguments.references import home_of
from vkdispatch.shader.arguments.signature import Signature, is_method, origin_of, read_signature
from vkdispatch.shader.launch.size import names_instance, parse_local_size, size_of_instance
from vkdispatch.shader.method import KernelMethod
from vkdispatch.shader.observation import checks_of
from vkdispatch.shader.shader_function import ShaderFunction

if TYPE_CHECKING:
    from vkdispatch.shader.calling import Decorated


def shader(
    exec_size: Any = None,
    local_size: Any = None,
    workgroups: Any = None,
    flags: vc.ShaderFlags = vc.ShaderFlags.NONE,
    arg_type_annotations: Sequence[Any] | None = None,
    arg_names: Sequence[str] | None = None,
    arg_defaults: Sequence[Any] | None = None,
    check: Any = None,
    rewrite: bool = True,
    precise_math: bool = False,
) -> "Callable[[Decorated], ShaderFunction[Decorated]]":
    """Turn the decorated function into a kernel. Its body runs once, to be recorded; that needs no device.

    In a class, a first parameter without annotation is the instance: each has a kernel of its own, recorded
    when the attribute is first asked for, and again when attributes that it may read have changed.

    Parameters
    ----------
    exec_size
        Invocations of a call: an int, a tuple of 1 to 3 ints, a Python expression over the arguments such as
        "data.size", or a callable such as `lambda args: args.data.size`. Calls may say otherwise.
    local_size
        Invocations per workgroup, 1 to 3 ints. Default: the device's maximum along x, or 256 where the
        kernel cannot tell (no `workgroups`, shared memory, barriers or ids of workgroups). Of such a kernel,
        "auto" takes the size that `autotune` has measured for launches like the first, here or in an earlier
        process, and 256 where there was no such measurement.
    workgroups
        Instead of `exec_size`: how many workgroups a call runs, in the same forms.
    flags
        Options of the generated code.
    arg_type_annotations
        Used instead of the function's own annotations.
    arg_names, arg_defaults
        Names and default values that go with them.
    check
        What the device checks, at a price: "bounds" (every index of a buffer, shared buffer, image, vector or
        matrix; the first bad one raises IndexError, and nothing is written out of bounds), "nan" (stored
        values; FloatingPointError), "asserts" (`assert` on values of the GPU; AssertionError), "loops"
        (`while` loops end after so many rounds; "loops=5000" says how many), several of them in a set or with
        commas. True: bounds, loops and asserts. None takes the environment's VKDISPATCH_CHECK, in which 1 is
        True. Calls of a checked kernel wait for it.
    rewrite
        Whether Python's own control flow works on GPU values: `if`, `while`, `for`, `and`... become GPU code
        where only the GPU knows the condition. False leaves the function's source alone.
    precise_math
        Whether functions of float32 and float16 such as `vc.sin`, `vc.exp` and `vc.pow` are computed to a few
        units in the last place over their whole range, instead of by the device's own functions, which are
        faster and may be loose (Vulkan asks of `sin` an absolute error below 2**-11 between -pi and pi).
        Functions of float64 always are.

    Raises
    ------
    ValueError
        Sizes are none, or both `exec_size` and `workgroups` are given, or an argument has no annotation.
    TypeError
        An annotation is no kernel argument, the parentheses of `@vd.shader(...)` are missing, or the kernel
        returns a value.
    NameError
        A size given as text names something that is no argument.
    """
    if _is_kernel(exec_size):
        raise ArgumentTypeError(
            "@vd.shader needs parentheses and a launch size, such as @vd.shader('data.size')"
        )
    if precise_math:
        flags |= vc.ShaderFlags.PRECISE_MATH
    if exec_size is not None and workgroups is not None:
        raise ArgumentValueError("exec_size, workgroups: give one of the two, not both")
    if not (isinstance(local_size, str) and local_size == "auto"):
        parse_local_size(local_size)
    checks_of(check)
    # Local types that annotations given as text may name.
    local_names = sys._getframe(1).f_locals

    def trace(
        function: Callable[..., Any], signature: Signature, exec_size: Any, workgroups: Any
    ) -> ShaderFunction:
        __tracebackhide__ = True  # notebooks and pytest leave this frame out
        with vc.shader_context(flags) as context:
            arguments = context.declare_input_arguments(
                list(signature.annotations), list(signature.names), list(signature.defaults)
            )
            check_result(function, prepare_kernel(function, rewrite)(*arguments))
        description = context.get_description(getattr(function, "__name__", "shader"))
        origin = origin_of(function)
        traced = ShaderFunction(description, local_size, workgroups, exec_size, origin=origin, check=check)
        traced._defined = home_of(function)
        return traced

    def decorate(function: Callable[..., Any]) -> ShaderFunction:
        __tracebackhide__ = True
        of_class = isinstance(function, classmethod)
        if isinstance(function, (staticmethod, classmethod)):
            function = function.__func__
            method = of_class
        else:
            method = is_method(function, arg_type_annotations)
        if not callable(function):
            raise ArgumentTypeError(f"@vd.shader(...): expected a function, got {function!r}")
        signature = read_signature(
            function, arg_type_annotations, arg_names, arg_defaults, local_names, method=method
        )
        if not method:
            return trace(function, signature, exec_size, workgroups)
        first = function.__code__.co_varnames[0]

        def make(bound: Callable[..., Any], instance: Callable[[], Any]) -> ShaderFunction:
            return trace(
                bound,
                signature,
                size_of_instance("exec_size", exec_size, first, instance, signature.names),
                size_of_instance("workgroups", workgroups, first, instance, signature.names),
            )

        for option, size in (("exec_size", exec_size), ("workgroups", workgroups)):
            size_of_instance(option, size, first, object, signature.names)
        asks = names_instance(exec_size, first) or names_instance(workgroups, first)
        # to type checkers it is what an instance has
        return cast(ShaderFunction, KernelMethod(function, make, of_class=of_class, names_instance=asks))

    return cast("Callable[[Decorated], ShaderFunction[Decorated]]", decorate)


def _is_kernel(value: Any) -> bool:
    """Whether a kernel was given where `exec_size` goes: `@vd.shader` without parentheses."""
    annotations = getattr(value, "__annotations__", None)
    code = getattr(value, "__code__", None)
    return bool(annotations) or (code is not None and code.co_argcount != 1)
