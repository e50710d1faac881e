"""How samplers find values between and outside the texels of an image; needs no device."""

import math
from typing import Any

from vkdispatch.base.dtype import DType, float32, int32, uint32
from vkdispatch.base.errors import ArgumentTypeError, ArgumentValueError
from vkdispatch.base.host_numpy import np
from vkdispatch.base.images.format import AddressMode, BorderColor, Filter, host_dtype
from vkdispatch.base.record import record

_KINDS: tuple[DType, ...] = (float32, int32, uint32)


@record
class SamplerSettings:
    """The settings of a sampler, checked, with every filter decided; `Sampler` says what they mean."""

    mag_filter: Filter
    min_filter: Filter
    mip_filter: Filter
    address_mode: AddressMode
    mip_lod_bias: float
    min_lod: float
    max_lod: float
    border_color: BorderColor


def parse_settings(
    kind: DType,
    mag_filter: Filter | None,
    min_filter: Filter | None,
    mip_filter: Filter | None,
    address_mode: AddressMode,
    mip_lod_bias: float,
    min_lod: float,
    max_lod: float,
    border_color: BorderColor,
) -> SamplerSettings:
    """Check the settings of a sampler of an image with channels of type `kind`.

    Raises
    ------
    TypeError
        An argument is no member of its enumeration or no number.
    ValueError
        LINEAR was asked for of an image of integers, or a number is not possible.
    """
    filters = [
        _parse_filter(name, value, kind)
        for name, value in (
            ("mag_filter", mag_filter),
            ("min_filter", min_filter),
            ("mip_filter", mip_filter),
        )
    ]
    _check_member("address_mode", address_mode, AddressMode)
    _check_member("border_color", border_color, BorderColor)
    numbers = [
        _parse_number(name, value)
        for name, value in (("mip_lod_bias", mip_lod_bias), ("min_lod", min_lod), ("max_lod", max_lod))
    ]
    if numbers[1] > numbers[2]:
        raise ArgumentValueError(f"min_lod, max_lod: {numbers[1]} is more than {numbers[2]}")
    bias, lowest, highest = numbers
    return SamplerSettings(
        filters[0], filters[1], filters[2], address_mode, bias, lowest, highest, border_color
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
            f"{name}: there is nothing between integers; an image of {kind.name} needs Filter.NEAREST"
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
    """A NumPy array to be sampled by `kernel.interpret`, which needs no device; no device takes it.

    Attributes
    ----------
    data
        The texels.
    enable_mipmaps
        Whether there are mip levels.
    settings
        How they are sampled.
    """

    def __init__(
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
            float32, int32 or uint32: the axes of the image, the layers of an array in front, then the one
            to four channels, unless there is only one.
        mag_filter, min_filter, mip_filter, address_mode, mip_lod_bias, min_lod, max_lod, border_color
            As for `vd.Image.sample`.
        enable_mipmaps
            Whether there are mip levels, as in an image with them.

        Raises
        ------
        TypeError
            `data` is no array, or an argument is no member of its enumeration or no number.
        ValueError
            The dtype is none of the three, LINEAR was asked for of integers, or a number is not possible.
        """
        if not isinstance(data, np.ndarray):
            raise ArgumentTypeError(f"data: expected a NumPy array, got {type(data).__name__}")
        kinds = [kind for kind in _KINDS if data.dtype == host_dtype(kind)]
        if not kinds:
            raise ArgumentValueError(f"data: images are of float32, int32 or uint32, got {data.dtype}")
        self.data = data
        self.enable_mipmaps = enable_mipmaps
        self.settings = parse_settings(
            kinds[0],
            mag_filter,
            min_filter,
            mip_filter,
            address_mode,
            mip_lod_bias,
            min_lod,
            max_lod,
            border_color,
        )

    def __repr__(self) -> str:
        return f"<HostSampler of an array of {self.data.dtype} and shape {self.data.shape}>"
