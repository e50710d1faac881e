"""`@vd.shader`: a Python function traced into a kernel."""

import sys
import types
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

import vkdispatch.codegen as vc
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError, UsageError, notebook_shell
from vkdispatch.compiler.ir.location import is_foreign
from vkdispatch.compiler.lints import (
    check_barriers,
    check_dimensions,
    check_orientation,
    check_streams,
    check_sums,
)
from vkdispatch.control_flow.frame import check_result
from vkdispatch.control_flow.replacement import prepare_kernel
from vkdispatch.shader.arguments.signature import Signature, find_origin, is_method, read_signature
from vkdispatch.shader.launch.size import (
    GroupSize,
    Size,
    bind_instance,
    is_instance_named,
    parse_local_size,
)
from vkdispatch.shader.method import KernelMethod
from vkdispatch.shader.observation import Check, parse_check
from vkdispatch.shader.pickling.references import find_home
from vkdispatch.shader.shader_function import ShaderFunction, make_following

if TYPE_CHECKING:
    from vkdispatch.shader.calling import Decorated


def shader(  # noqa: PLR0913 - public, the signature of 0.1.0 and more
    exec_size: Size | None = None,
    local_size: GroupSize | None = None,
    workgroups: Size | None = None,
    flags: vc.ShaderFlags = vc.ShaderFlags.NONE,
    arg_type_annotations: Sequence[Any] | None = None,
    arg_names: Sequence[str] | None = None,
    arg_defaults: Sequence[Any] | None = None,
    check: Check | None = None,
    rewrite: bool = True,
    precise_math: bool = False,
) -> "Callable[[Decorated], ShaderFunction[Decorated]]":
    """Turn the decorated function into a kernel. Tracing runs its body once, and needs no device.

    It is traced again when it is called after a change of what it read from outside: global variables,
    closures, attributes, the contents of lists, dicts and small arrays, and the functions that it calls.

    In a class, a first parameter without annotation is the instance. Each instance has a kernel of its own,
    traced when the attribute is first accessed, and again when attributes that it may read have changed.

    Parameters
    ----------
    exec_size
        Invocations of a call: an int, a tuple of 1 to 3 ints, a Python expression over the arguments such as
        "data.size", or a callable such as `lambda args: args.data.size`. Calls may override it.
    local_size
        Invocations per workgroup, 1 to 3 ints. Default: the device's maximum along x, or 256 where the
        kernel does not depend on it (no `workgroups`, shared memory, barriers or ids of workgroups). For such
        a kernel, "auto" takes the size that `autotune` has measured for launches like the first, in this
        process or an earlier one, or 256 without a measurement.
    workgroups
        Instead of `exec_size`: the workgroups of a call, in the same forms.
    flags
        Options of the generated code.
    arg_type_annotations
        Used instead of the function's own annotations.
    arg_names, arg_defaults
        Names and default values that go with them.
    check
        What the device checks, which takes time: "bounds" (every index of a buffer, shared buffer, image,
        vector or matrix; the first bad one raises IndexError, and nothing is written out of bounds), "nan"
        (stored values; FloatingPointError), "asserts" (`assert` on values of the GPU; AssertionError),
        "loops" (`while` loops end after a number of rounds; "loops=5000" sets it), several of them in a set
        or with commas. True: bounds, loops and asserts. None takes the environment variable VKDISPATCH_CHECK,
        in which 1 is True. Calls of a checked kernel wait for it.
    rewrite
        Whether Python's own control flow works on GPU values: `if`, `while`, `for`, `and`... become GPU code
        if only the GPU knows the condition. False leaves the function's source as it is.
    precise_math
        Whether functions of float32 and float16 such as `vc.sin`, `vc.exp` and `vc.pow` are computed to a few
        units in the last place over their whole range, instead of by the device's own functions, which are
        faster and may be inaccurate (Vulkan requires of `sin` an absolute error below 2**-11 between -pi and
        pi). Functions of float64 always are. It also keeps the order of the kernel's additions,
        multiplications and divisions, and each of them rounds; see `vc.precise`.

    Raises
    ------
    ValueError
        A size is invalid, both sizes are given, or an argument has no annotation.
    TypeError
        An annotation does not suit a kernel argument, the parentheses of `@vd.shader(...)` are missing, or
        the kernel returns a value.
    NameError
        A size given as text names something that is not an argument.

    Examples
    --------
    >>> @vd.shader("data.size")
    ... def double(data: Buff[f32]) -> None:
    ...     i = vc.global_invocation_id().x
    ...     data[i] = 2 * data[i]
    >>> buffer = vd.asbuffer(np.array([1, 2, 3], np.float32))
    >>> double(buffer)
    >>> buffer.read(0)
    array([2., 4., 6.], dtype=float32)
    """
    if _is_kernel(exec_size):
        raise ArgumentTypeError(
            "@vd.shader needs parentheses and a launch size, such as @vd.shader('data.size')"
        )
    if precise_math:
        flags |= vc.ShaderFlags.PRECISE_MATH
    if exec_size is not None and workgroups is not None:
        raise ArgumentValueError("exec_size, workgroups: pass one of the two, not both")
    if not (isinstance(local_size, str) and local_size == "auto"):
        parse_local_size(local_size)
    parse_check(check)
    # Annotations given as text may name local types.
    local_names = sys._getframe(1).f_locals

    def trace(
        function: Callable[..., Any], signature: Signature, exec_size: object, workgroups: object
    ) -> ShaderFunction:
        __tracebackhide__ = True  # notebooks and pytest leave this frame out
        with vc.shader_context(flags) as context:
            arguments = context.declare_input_arguments(
                list(signature.annotations), list(signature.names), list(signature.defaults)
            )
            try:
                check_result(function, prepare_kernel(function, rewrite)(*arguments))
            except Exception as error:
                # imported here: modules for tracebacks take time to import
                from vkdispatch.base.tracebacks import hide_own_frames

                _note_call(error)
                hide_own_frames(error, notebook_shell())
                raise
        description = context.get_description(getattr(function, "__name__", "shader"))
        check_dimensions(description.kernel, exec_size)
        check_orientation(description.kernel, exec_size)
        if not is_foreign(getattr(function, "__code__", shader.__code__).co_filename):
            check_barriers(description.kernel, local_size)
        check_sums(description.kernel, exec_size, workgroups, local_size)
        check_streams(context.builder.uniform_streams, exec_size, workgroups, local_size)
        origin = find_origin(function)
        traced = ShaderFunction(description, local_size, workgroups, exec_size, origin=origin, check=check)
        traced._defined = find_home(function)
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
            return make_following(function, lambda: trace(function, signature, exec_size, workgroups))
        first = function.__code__.co_varnames[0]

        def make(owner: type[Any], instance: Callable[[], Any]) -> ShaderFunction:
            __tracebackhide__ = True
            sizes = [
                bind_instance(option, size, first, instance, signature.names)
                for option, size in (("exec_size", exec_size), ("workgroups", workgroups))
            ]

            def trace_bound() -> ShaderFunction:
                __tracebackhide__ = True
                # held weakly, as the kernel does not keep its instance
                target = instance()
                if target is None:
                    raise UsageError(
                        f"{function.__qualname__}: the kernel must be traced again, as what it reads has "
                        "changed, but the instance that it is a method of is gone; keep that"
                    )
                return trace(types.MethodType(function, target), signature, *sizes)

            return make_following(function, trace_bound, owner)

        for option, size in (("exec_size", exec_size), ("workgroups", workgroups)):
            bind_instance(option, size, first, object, signature.names)
        has_instance_size = is_instance_named(exec_size, first) or is_instance_named(workgroups, first)
        # For type checkers it is the kernel of an instance.
        options = exec_size, local_size, workgroups, flags, signature, check, rewrite
        recipe = _make_method, (function, of_class, *options)
        return cast(
            ShaderFunction,
            KernelMethod(function, make, recipe, of_class=of_class, names_instance=has_instance_size),
        )

    return cast("Callable[[Decorated], ShaderFunction[Decorated]]", decorate)


def _make_method(  # noqa: PLR0913 - the options of the decorator
    function: Any,
    of_class: bool,
    exec_size: Any,
    local_size: Any,
    workgroups: Any,
    flags: Any,
    signature: Signature,
    check: Any,
    rewrite: bool,
) -> KernelMethod:
    """Decorate the function of a pickled method again."""
    arguments = signature.annotations, signature.names, signature.defaults
    decorate = shader(exec_size, local_size, workgroups, flags, *arguments, check, rewrite)
    made: Any = decorate(classmethod(function) if of_class else function)
    return cast(KernelMethod, made)


def _note_call(error: Exception) -> None:
    """Say how to write `vc.global_invocation_id.x` and `vc.atomic_add(buf, i, 1)`."""
    if isinstance(error, TypeError) and str(error).startswith("atomic_") and "positional" in str(error):
        error.add_note("An atomic takes an element and a value: write vc.atomic_add(buf[i], value)")
    function = getattr(error, "obj", None)
    name = getattr(function, "__name__", "")
    if isinstance(error, AttributeError) and function is not None and getattr(vc, name, None) is function:
        error.add_note(f"vc.{name} is a function: write vc.{name}().{error.name}")


def _is_kernel(value: object) -> bool:
    """Whether a kernel was given where `exec_size` goes: `@vd.shader` without parentheses."""
    annotations = getattr(value, "__annotations__", None)
    code = getattr(value, "__code__", None)
    return bool(annotations) or (code is not None and code.co_argcount != 1)
