"""Which of Kompute's modules the objects of a program are those of, where these modules disagree."""

from vkdispatch.base.errors import ArgumentTypeError
from vkdispatch.kompute.errors import KomputeError

_BEFORE_0_7 = ("0.5", "0.6")
_GENERATIONS = (*_BEFORE_0_7, "0.7", "0.8", "0.9", "newest")
_used = "newest"


def use(generation: str = "newest") -> None:
    """Choose the generation of Kompute that objects made from now on, in all of the process, behave as.

    Everything that any generation has can be used without this. It decides where they disagree: for "0.5" and
    "0.6", `data()` of tensors made without a Manager is a list; and with sequences of `create_sequence`,
    `eval_async()` does not wait, and calls that the other generations return the sequence from return whether
    they did something. The generations from 0.7 on agree.

    Parameters
    ----------
    generation
        "0.5", "0.6", "0.7", "0.8", "0.9", a release of these such as "0.6.0", or "newest".

    Raises
    ------
    TypeError
        `generation` is no text.
    RuntimeError
        There is no such generation.
    """
    global _used
    if not isinstance(generation, str):
        raise ArgumentTypeError(f'generation: expected text such as "0.6", got {generation!r}')
    release = ".".join(generation.split(".")[:2])
    if release not in _GENERATIONS:
        raise KomputeError(f"generation: expected one of {', '.join(_GENERATIONS)}, got {generation!r}")
    _used = release


def is_before_0_7() -> bool:
    """Whether the generation in use is 0.5 or 0.6."""
    return _used in _BEFORE_0_7
