"""The generation of Kompute's Python module that objects follow where the generations disagree."""

from vkdispatch.base.errors import ArgumentTypeError
from vkdispatch.kompute.errors import KomputeError

_BEFORE_0_7 = ("0.5", "0.6")
_GENERATIONS = (*_BEFORE_0_7, "0.7", "0.8", "0.9", "newest")
_current = "newest"


def use(generation: str = "newest") -> None:
    """Choose the generation of Kompute that new objects of this process follow.

    The names of all generations are always available. The choice matters where the generations disagree. For
    "0.5" and "0.6", `data()` of tensors made without a Manager returns a list. With sequences of
    `create_sequence`, `eval_async()` does not wait, and calls that return the sequence in other generations
    return whether they had an effect. The generations from 0.7 on agree.

    Parameters
    ----------
    generation
        "0.5", "0.6", "0.7", "0.8", "0.9", a release of these such as "0.6.0", or "newest".

    Raises
    ------
    TypeError
        `generation` is not a string.
    RuntimeError
        There is no such generation.
    """
    global _current
    if not isinstance(generation, str):
        raise ArgumentTypeError(f'generation: expected text such as "0.6", got {generation!r}')
    release = ".".join(generation.split(".")[:2])
    if release not in _GENERATIONS:
        raise KomputeError(f"generation: expected one of {', '.join(_GENERATIONS)}, got {generation!r}")
    _current = release


def is_before_0_7() -> bool:
    """Whether the generation in use is 0.5 or 0.6."""
    return _current in _BEFORE_0_7
