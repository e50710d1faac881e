"""`vd.explain`: what becomes of a kernel, a call, or an array that waits to be computed."""

from typing import Any

from vkdispatch.base.errors import ArgumentTypeError
from vkdispatch.numpy.core.array import Array
from vkdispatch.numpy.interchange.lazy import eval as compute
from vkdispatch.numpy.interchange.lazy import explain as describe_plan
from vkdispatch.shader.explaining import Explanation, explain_call, explain_kernel
from vkdispatch.shader.shader_function import ShaderFunction


def explain(subject: Any, /, *args: Any, **kwargs: Any) -> Explanation:
    """Show what becomes of kernels: their program after each pass, their GLSL, and their SPIR-V.

    Parameters
    ----------
    subject
        A kernel, in the forms that were built; it is built if there is none, and not run. Or a function,
        such as `vd.sum`, which is called: its kernels are those that it runs or builds. Or an Array, which is
        computed; `vkdispatch.numpy.explain` says what would run instead.
    *args, **kwargs
        The arguments of the call. A kernel with arguments is called, too.

    Returns
    -------
    Explanation
        `print` shows the text, `save("page.html")` writes a page to click through, and notebooks show that.

    Raises
    ------
    TypeError
        `subject` is something else.
    NotImplementedError
        The device has no timestamps, which tell what a call ran.

    Examples
    --------
    >>> x = vd.asbuffer(np.ones(1000, np.float32))
    >>> explanation = vd.explain(vd.sum, x)
    >>> [kernel.name for kernel in explanation.kernels]
    ['sum_rows']
    >>> "void main()" in str(explanation)
    True
    """
    if isinstance(subject, Array) and not args and not kwargs:
        plan = describe_plan(subject)
        explanation = explain_call(compute, (subject,), {})
        return Explanation(f"Array {subject.dtype} {subject.shape}", plan, explanation.kernels)
    if isinstance(subject, ShaderFunction) and not args and not kwargs:
        return explain_kernel(subject)
    if not callable(subject) or isinstance(subject, type):
        raise ArgumentTypeError(
            "subject: expected a kernel, a function with its arguments, or an Array, got "
            f"{type(subject).__name__} {subject!r:.60}"
        )
    return explain_call(subject, args, kwargs)
