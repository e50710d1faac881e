"""Storage of libraries, compiler versions and the results of self-tests on disk.

They are in the disk cache of the package, or in a folder that `python -m vkdispatch.orders config` sets. That
choice is stored in the user's settings. The environment variable VKDISPATCH_CACHE has precedence over it.

Libraries are executed. As in the disk cache, files that other users could have written are ignored, with one
warning.
"""

import functools
import hashlib
import json
import os
from contextlib import suppress

from vkdispatch.base.compilation import disk_cache
from vkdispatch.base.compilation.disk_cache import PrivateFolder, UntrustedError, Usage
from vkdispatch.base.errors import ArgumentValueError
from vkdispatch.base.process import log_warning

_KIND = "orders"
_VARIABLE = "VKDISPATCH_CACHE"
_SETTINGS = "orders.json"
_SUFFIX = ".vkd"
_PARTIAL = ".vkd~"
_DIGEST = 16
_MOST_BYTES = 1 << 30
_MOST_SETTINGS_BYTES = 1 << 16


def load(key: str) -> bytes | None:
    """Return the data stored under a key. None: it is missing or damaged, or storage is disabled."""
    chosen = _find_chosen_folder()
    if chosen is None:
        return disk_cache.load(_KIND, key)
    name = _hash_key(key)
    try:
        with PrivateFolder.open(chosen) as folder:
            content = folder.read(name + _SUFFIX, _MOST_BYTES) or b""
            data = content[_DIGEST:]
            if content[:_DIGEST] == _hash_data(name, data):
                return data
            folder.delete(name + _SUFFIX)
    except UntrustedError as error:
        _warn(str(error))
    except OSError:
        pass
    return None


def store(key: str, data: bytes) -> None:
    """Store data under a key. Has no effect if the disk cannot be written."""
    chosen = _find_chosen_folder()
    if chosen is None:
        disk_cache.store(_KIND, key, data)
        return
    name = _hash_key(key)
    partial = f"{name}-{os.urandom(6).hex()}{_PARTIAL}"
    try:
        with PrivateFolder.open(chosen, make=True) as folder:
            try:
                folder.write(partial, (_hash_data(name, data), data))
                folder.replace(name + _SUFFIX, by=partial)
            except BaseException:
                folder.delete(partial)
                raise
    except UntrustedError as error:
        _warn(str(error))
    except OSError as error:
        _warn(f"{chosen!r} cannot be written to ({error})")


def find_folder() -> str | None:
    """Return the folder of the libraries, which may not exist yet. None: storage is disabled."""
    chosen = _find_chosen_folder()
    if chosen is not None:
        return chosen
    root = disk_cache.folder()
    return os.path.join(root, _KIND) if root is not None else None


def measure_usage() -> Usage:
    """Return the number of stored files, and their size in bytes."""
    place = find_folder()
    sizes: list[int] = []
    with suppress(OSError):
        if place is not None:
            with PrivateFolder.open(place) as opened:
                files = [item for item in opened.list() if item.name.endswith(_SUFFIX)]
                sizes = [item.stat(follow_symlinks=False).st_size for item in files]
    return Usage(len(sizes), sum(sizes))


def clear() -> int:
    """Delete all stored files, and return their number. Other files in the folder are kept.

    Raises
    ------
    UntrustedError
        Other users could have written to the folder.
    """
    place = find_folder()
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
    """Set the folder of libraries for this program and later ones. None: the disk cache.

    Raises
    ------
    UntrustedError
        Other users could have written to the folder or to that of the settings.
    ValueError
        The path is invalid.
    OSError
        A folder cannot be made.
    """
    if path is not None:
        if not path.strip() or "\0" in path:
            raise ArgumentValueError(f"libdir: expected the path of a folder, got {path!r}")
        path = os.path.abspath(os.path.expanduser(path))
        PrivateFolder.open(path, make=True).__exit__()
    text = json.dumps({} if path is None else {"libdir": path})
    partial = f"{_SETTINGS}-{os.urandom(6).hex()}"
    with PrivateFolder.open(_find_settings_folder(), make=True) as opened:
        opened.write(partial, (text.encode(),))
        opened.replace(_SETTINGS, by=partial)


def describe_origin() -> str:
    """Return how the folder was chosen."""
    if os.environ.get(_VARIABLE, "").strip():
        return f"named by {_VARIABLE}"
    return "set by config" if _find_chosen_folder() is not None else "in the disk cache"


def _find_chosen_folder() -> str | None:
    """Return the folder in the settings. None: the disk cache is used."""
    if os.environ.get(_VARIABLE, "").strip():
        return None
    try:
        with PrivateFolder.open(_find_settings_folder()) as opened:
            path = json.loads(opened.read(_SETTINGS, _MOST_SETTINGS_BYTES) or b"{}").get("libdir")
    except UntrustedError as error:
        _warn(str(error))
        return None
    except (OSError, ValueError, AttributeError):
        return None
    return path if isinstance(path, str) and os.path.isabs(path) else None


def _find_settings_folder() -> str:
    from platformdirs import user_config_dir

    return user_config_dir("vkdispatch", appauthor=False)


def _hash_key(key: str) -> str:
    return hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=20).hexdigest()


def _hash_data(name: str, data: bytes) -> bytes:
    # Includes the name: a renamed file is invalid.
    return hashlib.blake2b(name.encode() + b"\n" + data, digest_size=_DIGEST).digest()


@functools.cache
def _warn(text: str) -> None:
    """Warn of each problem once."""
    log_warning(f"orders ignore the files on disk: {text}")
