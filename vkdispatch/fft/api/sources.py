"""The generated code of transforms, convolutions and transpositions: what each function would run.

Each returns a `ShaderSource`, or a tuple of them in the order in which they run; the functions with `print`
in their names print them instead. Of several axes there is one for each, also where the function that runs
has a kernel for two at once, as its `print_shader` shows. `line_numbers` numbers the lines. Errors are those
of the functions that run.
"""

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ParamSpec

from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.codegen import ShaderSource
from vkdispatch.fft.api.shaders import make_convolution_shader, make_fft_shader, make_transpose_shader
from vkdispatch.fft.arguments.buffers import checked_map
from vkdispatch.fft.arguments.shapes import SignalRange, checked_shape
from vkdispatch.shader.map import MappingFunction

_P = ParamSpec("_P")
Shape = int | Sequence[int]
Map = MappingFunction | None
Sources = tuple[ShaderSource, ...]
# A line that no workgroup holds takes several kernels: a list of their sources.
Source = ShaderSource | list[ShaderSource]


def fft_src(
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
    """Return the code of `fft` for complex64 buffers of a shape."""
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


def _many(
    who: str,
    buffer_shape: Shape,
    count: int,
    most: int,
    inverse: bool,
    normalize: bool,
    maps: tuple[Map, Map],
    line_numbers: bool | None,
) -> Sources:
    shape = _checked(who, buffer_shape, count, most)
    input_map, output_map = checked_map(maps[0], "input_map"), checked_map(maps[1], "output_map")
    return _flat(
        fft_src(
            shape,
            len(shape) - count + step,
            inverse,
            normalize,
            False,
            input_map if step == 0 else None,
            output_map if step == count - 1 else None,
            line_numbers=line_numbers,
        )
        for step in range(count)
    )


def _checked(who: str, buffer_shape: Shape, count: int, most: int) -> tuple[int, ...]:
    shape = checked_shape(buffer_shape)
    if not count <= len(shape) <= most:
        wanted = f"{count}" if most == count else f"{count} or {most}"
        raise ArgumentValueError(f"{who}: expected a shape of {wanted} axes, got {shape}")
    return shape


def fft2_src(
    buffer_shape: Shape, input_map: Map = None, output_map: Map = None, line_numbers: bool | None = False
) -> Sources:
    """Return the code of `fft2`, one for each axis."""
    return _many("fft2_src", buffer_shape, 2, 3, False, True, (input_map, output_map), line_numbers)


def fft3_src(
    buffer_shape: Shape, input_map: Map = None, output_map: Map = None, line_numbers: bool | None = False
) -> Sources:
    """Return the code of `fft3`, one for each axis."""
    return _many("fft3_src", buffer_shape, 3, 3, False, True, (input_map, output_map), line_numbers)


def ifft2_src(
    buffer_shape: Shape,
    normalize: bool = True,
    input_map: Map = None,
    output_map: Map = None,
    line_numbers: bool | None = False,
) -> Sources:
    """Return the code of `ifft2`, one for each axis."""
    maps = (input_map, output_map)
    return _many("ifft2_src", buffer_shape, 2, 3, True, normalize, maps, line_numbers)


def ifft3_src(
    buffer_shape: Shape,
    normalize: bool = True,
    input_map: Map = None,
    output_map: Map = None,
    line_numbers: bool | None = False,
) -> Sources:
    """Return the code of `ifft3`, one for each axis."""
    maps = (input_map, output_map)
    return _many("ifft3_src", buffer_shape, 3, 3, True, normalize, maps, line_numbers)


def _real(
    who: str, buffer_shape: Shape, count: int, inverse: bool, normalize: bool, line_numbers: bool | None
) -> Sources:
    shape = _checked(who, buffer_shape, count, 3)
    half = (*shape[:-1], shape[-1] // 2 + 1)
    others = range(len(shape) - count, len(shape) - 1)
    if inverse:
        passes = [ifft_src(half, axis, normalize, line_numbers=line_numbers) for axis in others]
        return _flat([*passes, irfft_src(shape, normalize, line_numbers)])
    passes = [fft_src(half, axis, line_numbers=line_numbers) for axis in reversed(others)]
    return _flat([rfft_src(shape, line_numbers), *passes])


def rfft2_src(buffer_shape: Shape, line_numbers: bool | None = False) -> Sources:
    """Return the code of `rfft2`, one for each axis; the shape is that of the reals."""
    return _real("rfft2_src", buffer_shape, 2, False, True, line_numbers)


def rfft3_src(buffer_shape: Shape, line_numbers: bool | None = False) -> Sources:
    """Return the code of `rfft3`, one for each axis; the shape is that of the reals."""
    return _real("rfft3_src", buffer_shape, 3, False, True, line_numbers)


def irfft2_src(buffer_shape: Shape, normalize: bool = True, line_numbers: bool | None = False) -> Sources:
    """Return the code of `irfft2`, one for each axis; the shape is that of the reals."""
    return _real("irfft2_src", buffer_shape, 2, True, normalize, line_numbers)


def irfft3_src(buffer_shape: Shape, normalize: bool = True, line_numbers: bool | None = False) -> Sources:
    """Return the code of `irfft3`, one for each axis; the shape is that of the reals."""
    return _real("irfft3_src", buffer_shape, 3, True, normalize, line_numbers)


def convolve_src(
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
    """Return the code of `convolve` for complex64 buffers of a shape."""
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
    """Return the code of `convolve2D`: there, in between, and back."""
    shape = _checked("convolve2D_src", buffer_shape, 2, 3)
    return _flat(
        (
            fft_src(shape, input_map=input_map, line_numbers=line_numbers),
            convolve_src(
                shape,
                kernel_map,
                axis=len(shape) - 2,
                normalize=normalize,
                transposed_kernel=transposed_kernel,
                kernel_inner_only=kernel_inner_only,
                line_numbers=line_numbers,
            ),
            ifft_src(shape, normalize=normalize, output_map=output_map, line_numbers=line_numbers),
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
    """Return the code of `convolve2DR`: there, in between, and back; the shape is that of the reals."""
    shape = _checked("convolve2DR_src", buffer_shape, 2, 3)
    return _flat(
        (
            rfft_src(shape, line_numbers),
            convolve_src(
                (*shape[:-1], shape[-1] // 2 + 1),
                kernel_map,
                axis=len(shape) - 2,
                normalize=normalize,
                transposed_kernel=transposed_kernel,
                kernel_inner_only=kernel_inner_only,
                line_numbers=line_numbers,
            ),
            irfft_src(shape, normalize, line_numbers),
        )
    )


def transpose_src(
    buffer_shape: Shape,
    axis: int | None = None,
    kernel_inner_only: bool = False,
    line_numbers: bool | None = False,
) -> Any:
    """Return the code of `transpose` for complex64 buffers; the shape is that of the convolution."""
    return make_transpose_shader(buffer_shape, axis, kernel_inner_only).get_src(line_numbers)


def _flat(sources: Iterable[Source]) -> Sources:
    """Return the sources of several passes in a row."""
    found: list[ShaderSource] = []
    for source in sources:
        found += source if isinstance(source, list) else [source]
    return tuple(found)


def _show(sources: Source | Sources) -> None:
    for source in sources if isinstance(sources, (tuple, list)) else (sources,):
        print(source)


def _printing(source: Callable[_P, Any]) -> Callable[_P, None]:
    """Return the function that prints what a function of this module returns."""

    @functools.wraps(source)
    def function(*args: _P.args, **kwargs: _P.kwargs) -> None:
        _show(source(*args, **kwargs))

    function.__name__ = function.__qualname__ = source.__name__.replace("_src", "_print_src")
    function.__doc__ = f"Print what `{source.__name__}` returns; it takes the same arguments."
    return function


fft_print_src = _printing(fft_src)
ifft_print_src = _printing(ifft_src)
rfft_print_src = _printing(rfft_src)
irfft_print_src = _printing(irfft_src)
fft2_print_src = _printing(fft2_src)
fft3_print_src = _printing(fft3_src)
ifft2_print_src = _printing(ifft2_src)
ifft3_print_src = _printing(ifft3_src)
rfft2_print_src = _printing(rfft2_src)
rfft3_print_src = _printing(rfft3_src)
irfft2_print_src = _printing(irfft2_src)
irfft3_print_src = _printing(irfft3_src)
convolve_print_src = _printing(convolve_src)
convolve2D_print_src = _printing(convolve2D_src)  # noqa: N816
convolve2DR_print_src = _printing(convolve2DR_src)  # noqa: N816
transpose_print_src = _printing(transpose_src)
