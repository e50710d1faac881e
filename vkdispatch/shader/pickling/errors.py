"""The error of what cannot be pickled."""

import pickle

from vkdispatch.base.errors import ArgumentTypeError


class UnpicklableError(ArgumentTypeError, pickle.PicklingError):
    """An object cannot be pickled, or what a pickle refers to is not found."""
