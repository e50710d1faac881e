"""The settings of samplers, checked; needs no device."""

import math
from typing import Any

from vkdispatch.base.dtype import DType, float32, int32, uint32
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.base.host_numpy import np
from vkdispatch.base.images.format import AddressMode, BorderColor, Filter, host_dtype
from vkdispatch.base.record import record

_KINDS: tuple[DType, ...] = (float32, int32, uint32)


@record
class SamplerOptions:
    """The settings of a sampler as the caller gives them; `vd.Sampler` documents them."""

    mag_filter: Filter | None = None
    min_filter: Filter | None = None
    mip_filter: Filter | None = None
    address_mode: AddressMode = AddressMode.CLAMP_TO_EDGE
    mip_lod_bias: float = 0.0
    min_lod: float = 0.0
    max_lod: float = 0.0
    border_color: BorderColor = BorderColor.FLOAT_OPAQUE_WHITE


@record
class SamplerSettings:
    """The settings of a sampler after checks, with a filter in place of each None."""

    mag_filter: Filter
    min_filter: Filter
    mip_filter: Filter
    address_mode: AddressMode
    mip_lod_bias: float
    min_lod: float
    max_lod: float
    border_color: BorderColor


def parse_settings(kind: DType, options: SamplerOptions) -> SamplerSettings:
    """Check the settings of a sampler for an image with channels of type `kind`.

    Raises
    ------
    TypeError
        An option is not a member of its enumeration or not a number.
    ValueError
        A filter is LINEAR for an image of integers, or a number is not allowed.
    """
    mag_filter, min_filter, mip_filter = (
        _parse_filter(name, getattr(options, name), kind)
        for name in ("mag_filter", "min_filter", "mip_filter")
    )
    _check_member("address_mode", options.address_mode, AddressMode)
    _check_member("border_color", options.border_color, BorderColor)
    bias, lowest, highest = (
        _parse_number(name, getattr(options, name)) for name in ("mip_lod_bias", "min_lod", "max_lod")
    )
    if lowest > highest:
        raise ArgumentValueError(f"min_lod, max_lod: {lowest} is more than {highest}")
    return SamplerSettings(
        mag_filter, min_filter, mip_filter, options.address_mode, bias, lowest, highest, options.border_color
    )


def _check_member(name: str, value: object, kind: "type[Filter | AddressMode | BorderColor]") -> None:
    if not isinstance(value, kind):
        raise ArgumentTypeError(f"{name}: expected a vd.{kind.__name__}, got {value!r}")


def _parse_filter(name: str, value: Filter | None, kind: DType) -> Filter:
    integers = kind is not float32
    if value is None:
        return Filter.NEAREST if integers else Filter.LINEAR
    _check_member(name, value, Filter)
    if value is Filter.LINEAR and integers:
        raise ArgumentValueError(
            f"{name}: integers cannot be interpolated; an image of {kind.name} needs Filter.NEAREST"
        )
    return value


def _parse_number(name: str, value: object) -> float:
    if isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool):
        number = float(value)
        if math.isfinite(number):
            return number
        raise ArgumentValueError(f"{name}: expected a finite number, got {value!r}")
    raise ArgumentTypeError(f"{name}: expected a number, got {value!r}")


class HostSampler:
    """A NumPy array to sample with `kernel.interpret`, which needs no device. Launches do not accept it.

    Attributes
    ----------
    data
        The texels.
    enable_mipmaps
        Whether there are mip levels.
    settings
        The filters and other settings.
    """

    def __init__(  # noqa: PLR0913  public: each is an option of its own
        self,
        data: np.ndarray[Any, Any],
        mag_filter: Filter | None = None,
        min_filter: Filter | None = None,
        mip_filter: Filter | None = None,
        address_mode: AddressMode = AddressMode.CLAMP_TO_EDGE,
        mip_lod_bias: float = 0.0,
        min_lod: float = 0.0,
        max_lod: float = 0.0,
        border_color: BorderColor = BorderColor.FLOAT_OPAQUE_WHITE,
        enable_mipmaps: bool = False,
    ) -> None:
        """Describe how to sample an array.

        Parameters
        ----------
        data
            An array of float32, int32 or uint32. Its axes are the layers, if there are several; the axes of
            the image; and the one to four channels, which can be omitted for one.
        mag_filter, min_filter, mip_filter, address_mode, mip_lod_bias, min_lod, max_lod, border_color
            As for `vd.Image.sample`.
        enable_mipmaps
            Whether there are mip levels, as for `vd.Image2D`.

        Raises
        ------
        TypeError
            `data` is not an array, or an argument is not a member of its enumeration or not a number.
        ValueError
            The dtype is not one of the three, a filter is LINEAR for integers, or a number is not allowed.
        """
        if not isinstance(data, np.ndarray):
            raise ArgumentTypeError(f"data: expected a NumPy array, got {type(data).__name__}")
        kinds = [kind for kind in _KINDS if data.dtype == host_dtype(kind)]
        if not kinds:
            raise ArgumentValueError(f"data: images are of float32, int32 or uint32, got {data.dtype}")
        self.data = data
        self.enable_mipmaps = enable_mipmaps
        options = SamplerOptions(
            mag_filter,
            min_filter,
            mip_filter,
            address_mode,
            mip_lod_bias,
            min_lod,
            max_lod,
            border_color,
        )
        self.settings = parse_settings(kinds[0], options)

    def __repr__(self) -> str:
        return f"<HostSampler of an array of {self.data.dtype} and shape {self.data.shape}>"
