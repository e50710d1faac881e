"""The generated code of transforms, convolutions and transpositions.

Each function returns the code of the function of the same name without `_src`: a `ShaderSource`, or a tuple
of them in the order of their launches. The functions with `print` in their names print it. Buffers are
complex64. Transforms of several axes have a kernel for each axis here, although the function that runs may
use one for two, as its `print_shader` shows. `line_numbers` numbers the lines. Errors are those of the
functions that run.
"""

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Concatenate, ParamSpec

from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.codegen.description import ShaderSource
from vkdispatch.families.calls import bind_variant
from vkdispatch.fft.arguments import SignalRange, parse_map, parse_shape
from vkdispatch.fft.shader_factories import make_convolution_shader, make_fft_shader, make_transpose_shader
from vkdispatch.shader.map import MappingFunction

__all__ = [
    "convolve2DR_print_src",
    "convolve2DR_src",
    "convolve2D_print_src",
    "convolve2D_src",
    "convolve_print_src",
    "convolve_src",
    "fft2_print_src",
    "fft2_src",
    "fft3_print_src",
    "fft3_src",
    "fft_print_src",
    "fft_src",
    "ifft2_print_src",
    "ifft2_src",
    "ifft3_print_src",
    "ifft3_src",
    "ifft_print_src",
    "ifft_src",
    "irfft2_print_src",
    "irfft2_src",
    "irfft3_print_src",
    "irfft3_src",
    "irfft_print_src",
    "irfft_src",
    "rfft2_print_src",
    "rfft2_src",
    "rfft3_print_src",
    "rfft3_src",
    "rfft_print_src",
    "rfft_src",
    "transpose_print_src",
    "transpose_src",
]

_P = ParamSpec("_P")
Shape = int | Sequence[int]
Map = MappingFunction | None
Sources = tuple[ShaderSource, ...]


# the signature of 0.1.0
def fft_src(  # noqa: PLR0913
    buffer_shape: Shape,
    axis: int | None = None,
    inverse: bool = False,
    normalize_inverse: bool = True,
    r2c: bool = False,
    input_map: Map = None,
    output_map: Map = None,
    input_signal_range: SignalRange | None = None,
    line_numbers: bool | None = False,
) -> Any:
    """Return the code of `fft`: a list where the lines need several kernels."""
    kernel = make_fft_shader(
        buffer_shape,
        axis,
        inverse,
        normalize_inverse,
        r2c,
        input_map,
        output_map,
        input_signal_range=input_signal_range,
    )
    return kernel.get_src(line_numbers)


def ifft_src(
    buffer_shape: Shape,
    axis: int | None = None,
    normalize: bool = True,
    input_map: Map = None,
    output_map: Map = None,
    line_numbers: bool | None = False,
) -> Any:
    """Return the code of `ifft`."""
    return fft_src(
        buffer_shape, axis, True, normalize, False, input_map, output_map, line_numbers=line_numbers
    )


def rfft_src(buffer_shape: Shape, line_numbers: bool | None = False) -> Any:
    """Return the code of `rfft`; the shape is that of the reals."""
    return fft_src(buffer_shape, r2c=True, line_numbers=line_numbers)


def irfft_src(buffer_shape: Shape, normalize: bool = True, line_numbers: bool | None = False) -> Any:
    """Return the code of `irfft`; the shape is that of the reals."""
    return fft_src(
        buffer_shape, inverse=True, normalize_inverse=normalize, r2c=True, line_numbers=line_numbers
    )


# ---- several axes ----------------------------------------------------------------------------------


def _fft_of_last(
    count: int,
    buffer_shape: Shape,
    input_map: Map = None,
    output_map: Map = None,
    line_numbers: bool | None = False,
) -> Sources:
    shape = _check_axes(f"fft{count}_src", buffer_shape, count)
    return _sources_of_axes(shape, count, fft_src, (input_map, output_map), line_numbers=line_numbers)


def _ifft_of_last(
    count: int,
    buffer_shape: Shape,
    normalize: bool = True,
    input_map: Map = None,
    output_map: Map = None,
    line_numbers: bool | None = False,
) -> Sources:
    shape = _check_axes(f"ifft{count}_src", buffer_shape, count)
    options = {"normalize": normalize, "line_numbers": line_numbers}
    return _sources_of_axes(shape, count, ifft_src, (input_map, output_map), **options)


def _rfft_of_last(count: int, buffer_shape: Shape, line_numbers: bool | None = False) -> Sources:
    shape = _check_axes(f"rfft{count}_src", buffer_shape, count)
    others = reversed(range(len(shape) - count, len(shape) - 1))
    passes = [fft_src(_half_of(shape), axis, line_numbers=line_numbers) for axis in others]
    return _flatten([rfft_src(shape, line_numbers), *passes])


def _irfft_of_last(
    count: int, buffer_shape: Shape, normalize: bool = True, line_numbers: bool | None = False
) -> Sources:
    shape = _check_axes(f"irfft{count}_src", buffer_shape, count)
    others = range(len(shape) - count, len(shape) - 1)
    passes = [ifft_src(_half_of(shape), axis, normalize, line_numbers=line_numbers) for axis in others]
    return _flatten([*passes, irfft_src(shape, normalize, line_numbers)])


def _define(
    template: Callable[Concatenate[int, _P], Sources], name: str, count: int
) -> Callable[_P, Sources]:
    """Return the function of the code of `name`, a transform of `count` axes."""
    doc = f"Return the code of `{name}`, one source for each axis"
    doc += "; the shape is that of the reals." if "r" in name else "."
    bound = bind_variant(template, count, f"{name}_src", doc)

    @functools.wraps(bound)
    def function(*args: _P.args, **kwargs: _P.kwargs) -> Sources:
        return bound(*args, **kwargs)

    return function


fft2_src = _define(_fft_of_last, "fft2", 2)
fft3_src = _define(_fft_of_last, "fft3", 3)
ifft2_src = _define(_ifft_of_last, "ifft2", 2)
ifft3_src = _define(_ifft_of_last, "ifft3", 3)
rfft2_src = _define(_rfft_of_last, "rfft2", 2)
rfft3_src = _define(_rfft_of_last, "rfft3", 3)
irfft2_src = _define(_irfft_of_last, "irfft2", 2)
irfft3_src = _define(_irfft_of_last, "irfft3", 3)


def _check_axes(name: str, buffer_shape: Shape, count: int) -> tuple[int, ...]:
    """Return a shape of at least `count` axes. Raises ValueError for fewer."""
    shape = parse_shape(buffer_shape)
    if len(shape) < count:
        raise ArgumentValueError(f"{name}: expected a shape of at least {count} axes, got {shape}")
    return shape


def _sources_of_axes(
    shape: tuple[int, ...], count: int, source: Callable[..., Any], maps: tuple[Map, Map], **options: Any
) -> Sources:
    """Return the code of each of the last axes; the maps belong to the first and the last of them."""
    first: dict[str, Any] = {"input_map": parse_map(maps[0], "input_map")}
    last: dict[str, Any] = {"output_map": parse_map(maps[1], "output_map")}
    axes = range(len(shape) - count, len(shape))
    return _flatten(
        source(shape, axis, **options, **(first if axis == axes[0] else last if axis == axes[-1] else {}))
        for axis in axes
    )


def _half_of(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of the half spectrum of reals."""
    return (*shape[:-1], shape[-1] // 2 + 1)


def _flatten(sources: Iterable[ShaderSource | list[ShaderSource]]) -> Sources:
    """Return the sources of several passes in a row."""
    flat: list[ShaderSource] = []
    for source in sources:
        flat += source if isinstance(source, list) else [source]
    return tuple(flat)


# ---- convolutions ----------------------------------------------------------------------------------


# the signature of 0.1.0
def convolve_src(  # noqa: PLR0913
    buffer_shape: Shape,
    kernel_map: Map = None,
    kernel_num: int = 1,
    axis: int | None = None,
    normalize: bool = True,
    transposed_kernel: bool = False,
    kernel_inner_only: bool = False,
    input_map: Map = None,
    output_map: Map = None,
    input_signal_range: SignalRange | None = None,
    line_numbers: bool | None = False,
) -> Any:
    """Return the code of `convolve`: a list where the lines need several kernels."""
    kernel = make_convolution_shader(
        buffer_shape,
        kernel_map,
        kernel_num,
        axis,
        normalize,
        transposed_kernel,
        kernel_inner_only,
        input_map,
        output_map,
        input_signal_range=input_signal_range,
    )
    return kernel.get_src(line_numbers)


def convolve2D_src(  # noqa: N802
    buffer_shape: Shape,
    kernel_map: Map = None,
    normalize: bool = True,
    transposed_kernel: bool = False,
    kernel_inner_only: bool = False,
    input_map: Map = None,
    output_map: Map = None,
    line_numbers: bool | None = False,
) -> Sources:
    """Return the code of `convolve2D`: the forward transform, the convolution, the inverse transform."""
    shape = _check_axes("convolve2D_src", buffer_shape, 2)
    options: dict[str, Any] = {"normalize": normalize, "line_numbers": line_numbers}
    kernel: dict[str, Any] = {"transposed_kernel": transposed_kernel, "kernel_inner_only": kernel_inner_only}
    return _flatten(
        (
            fft_src(shape, input_map=input_map, line_numbers=line_numbers),
            convolve_src(shape, kernel_map, axis=len(shape) - 2, **kernel, **options),
            ifft_src(shape, output_map=output_map, **options),
        )
    )


def convolve2DR_src(  # noqa: N802
    buffer_shape: Shape,
    kernel_map: Map = None,
    transposed_kernel: bool = False,
    kernel_inner_only: bool = False,
    normalize: bool = True,
    line_numbers: bool | None = False,
) -> Sources:
    """Return the code of `convolve2DR`, as `convolve2D_src` does; the shape is that of the reals."""
    shape = _check_axes("convolve2DR_src", buffer_shape, 2)
    options: dict[str, Any] = {"normalize": normalize, "line_numbers": line_numbers}
    kernel: dict[str, Any] = {"transposed_kernel": transposed_kernel, "kernel_inner_only": kernel_inner_only}
    return _flatten(
        (
            rfft_src(shape, line_numbers),
            convolve_src(_half_of(shape), kernel_map, axis=len(shape) - 2, **kernel, **options),
            irfft_src(shape, **options),
        )
    )


def transpose_src(
    buffer_shape: Shape,
    axis: int | None = None,
    kernel_inner_only: bool = False,
    line_numbers: bool | None = False,
) -> Any:
    """Return the code of `transpose`; the shape is that of the convolution."""
    return make_transpose_shader(buffer_shape, axis, kernel_inner_only).get_src(line_numbers)


# ---- printing --------------------------------------------------------------------------------------


def _define_printing(source: Callable[_P, Any]) -> Callable[_P, None]:
    """Return the function that prints what a function of this module returns."""

    @functools.wraps(source)
    def function(*args: _P.args, **kwargs: _P.kwargs) -> None:
        sources = source(*args, **kwargs)
        for text in sources if isinstance(sources, (tuple, list)) else (sources,):
            print(text)

    function.__name__ = function.__qualname__ = source.__name__.replace("_src", "_print_src")
    function.__doc__ = f"Print what `{source.__name__}` returns; it takes the same arguments."
    return function


fft_print_src = _define_printing(fft_src)
ifft_print_src = _define_printing(ifft_src)
rfft_print_src = _define_printing(rfft_src)
irfft_print_src = _define_printing(irfft_src)
fft2_print_src = _define_printing(fft2_src)
fft3_print_src = _define_printing(fft3_src)
ifft2_print_src = _define_printing(ifft2_src)
ifft3_print_src = _define_printing(ifft3_src)
rfft2_print_src = _define_printing(rfft2_src)
rfft3_print_src = _define_printing(rfft3_src)
irfft2_print_src = _define_printing(irfft2_src)
irfft3_print_src = _define_printing(irfft3_src)
convolve_print_src = _define_printing(convolve_src)
convolve2D_print_src = _define_printing(convolve2D_src)  # noqa: N816
convolve2DR_print_src = _define_printing(convolve2DR_src)  # noqa: N816
transpose_print_src = _define_printing(transpose_src)
