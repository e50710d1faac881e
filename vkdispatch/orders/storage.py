"""What orders keep on disk: libraries, the versions of compilers, and which of them have passed their test.

It is in the disk cache of the package, or in a folder of its own that `python -m vkdispatch.orders config`
names. That choice is a setting, kept in the user's folder of settings. The environment variable
VKDISPATCH_CACHE goes before it.

Libraries are executed: as in the disk cache, what others could have written is ignored, with one warning.
"""

import functools
import hashlib
import json
import os
from contextlib import suppress

from vkdispatch.base.compilation import disk_cache
from vkdispatch.base.compilation.disk_cache import Usage
from vkdispatch.base.compilation.private_folder import PrivateFolder, UntrustedError
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.base.process.logging import log_warning

_KIND = "orders"
_VARIABLE = "VKDISPATCH_CACHE"
_SETTINGS = "orders.json"
_SUFFIX = ".vkd"
_PARTIAL = ".vkd~"
_DIGEST = 16
_LARGEST = 1 << 30
_LONGEST = 1 << 16  # bytes of the settings


def load(key: str) -> bytes | None:
    """Return what is kept under a key, or None: there is nothing, it was damaged, or nothing is kept."""
    chosen = _find_chosen_folder()
    if chosen is None:
        return disk_cache.load(_KIND, key)
    name = _name(key)
    try:
        with PrivateFolder.open(chosen) as folder:
            content = folder.read(name + _SUFFIX, _LARGEST) or b""
            data = content[_DIGEST:]
            if content[:_DIGEST] == _digest(name, data):
                return data
            folder.delete(name + _SUFFIX)
    except UntrustedError as error:
        _warn(str(error))
    except OSError:
        pass
    return None


def store(key: str, data: bytes) -> None:
    """Keep data under a key. Where the disk refuses, nothing happens."""
    chosen = _find_chosen_folder()
    if chosen is None:
        disk_cache.store(_KIND, key, data)
        return
    name = _name(key)
    partial = f"{name}-{os.urandom(6).hex()}{_PARTIAL}"
    try:
        with PrivateFolder.open(chosen, make=True) as folder:
            try:
                folder.write(partial, (_digest(name, data), data))
                folder.replace(name + _SUFFIX, by=partial)
            except BaseException:
                folder.delete(partial)
                raise
    except UntrustedError as error:
        _warn(str(error))
    except OSError as error:
        _warn(f"{chosen!r} cannot be written to ({error})")


def folder() -> str | None:
    """Return the folder of the libraries, which need not exist yet; None: nothing is kept."""
    chosen = _find_chosen_folder()
    if chosen is not None:
        return chosen
    root = disk_cache.folder()
    return os.path.join(root, _KIND) if root is not None else None


def usage() -> Usage:
    """Return how many files are kept, and their bytes."""
    place = folder()
    sizes: list[int] = []
    with suppress(OSError):
        if place is not None:
            with PrivateFolder.open(place) as opened:
                files = [item for item in opened.list() if item.name.endswith(_SUFFIX)]
                sizes = [item.stat(follow_symlinks=False).st_size for item in files]
    return Usage(len(sizes), sum(sizes))


def clear() -> int:
    """Delete all that is kept, and return how many files those were; other files in the folder stay.

    Raises
    ------
    UntrustedError
        Others could have written to the folder.
    """
    place = folder()
    if place is None:
        return 0
    try:
        with PrivateFolder.open(place) as opened:
            names = [item.name for item in opened.list()]
            for name in names:
                if name.endswith(_PARTIAL):
                    opened.delete(name)
            return sum(opened.delete(name) for name in names if name.endswith(_SUFFIX))
    except FileNotFoundError:
        return 0


def choose_folder(path: str | None) -> None:
    """Keep libraries in a folder from now on, in this program and all that start later; None: in the cache.

    Raises
    ------
    UntrustedError
        Others could have written to the folder, or to that of the settings.
    ValueError
        The path is none.
    OSError
        One of them cannot be made.
    """
    if path is not None:
        if not path.strip() or "\0" in path:
            raise ArgumentValueError(f"libdir: expected the path of a folder, got {path!r}")
        path = os.path.abspath(os.path.expanduser(path))
        PrivateFolder.open(path, make=True).__exit__()
    text = json.dumps({} if path is None else {"libdir": path})
    partial = f"{_SETTINGS}-{os.urandom(6).hex()}"
    with PrivateFolder.open(_settings_folder(), make=True) as opened:
        opened.write(partial, (text.encode(),))
        opened.replace(_SETTINGS, by=partial)


def origin() -> str:
    """Say what has named the folder."""
    if os.environ.get(_VARIABLE, "").strip():
        return f"named by {_VARIABLE}"
    return "set by config" if _find_chosen_folder() is not None else "in the disk cache"


def _find_chosen_folder() -> str | None:
    """Return the folder that the settings name, or None: the disk cache is where things are."""
    if os.environ.get(_VARIABLE, "").strip():
        return None
    try:
        with PrivateFolder.open(_settings_folder()) as opened:
            path = json.loads(opened.read(_SETTINGS, _LONGEST) or b"{}").get("libdir")
    except UntrustedError as error:
        _warn(str(error))
        return None
    except (OSError, ValueError, AttributeError):
        return None
    return path if isinstance(path, str) and os.path.isabs(path) else None


def _settings_folder() -> str:
    from platformdirs import user_config_dir

    return user_config_dir("vkdispatch", appauthor=False)


def _name(key: str) -> str:
    return hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=20).hexdigest()


def _digest(name: str, data: bytes) -> bytes:
    # with its name: a file in another's place is none
    return hashlib.blake2b(name.encode() + b"\n" + data, digest_size=_DIGEST).digest()


@functools.cache
def _warn(text: str) -> None:
    """Warn once of each trouble."""
    log_warning(f"orders do without what is kept on disk: {text}")
