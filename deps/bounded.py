"""What comes from elsewhere, held to bounds: downloads in bytes and seconds, archives in unpacked bytes."""

from __future__ import annotations

import gzip
import io
import lzma
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from http.client import HTTPMessage
from typing import IO

CHUNK = 1 << 16
IDLE_SECONDS = 30.0  # that a server may say nothing
SCHEMES = ("http", "https", "file")


class BoundError(ValueError):
    """More came, or took longer, than is allowed; or it came another way."""


# --- downloads ------------------------------------------------------------------------------------


def get(url: str, most: int, seconds: float, tries: int = 3) -> bytes:
    """Return what is at `url`, an http, https or file URL.

    Raises BoundError for more than `most` bytes and for a redirect to another scheme (but from http to
    https), TimeoutError after `seconds` for all tries together, and other OSErrors as urllib does.
    """
    outcome: list[bytes | Exception] = []
    deadline = time.monotonic() + seconds

    def work() -> None:
        try:
            outcome.append(_get_with_tries(url, most, deadline, tries))
        except Exception as error:
            outcome.append(error)

    # On a thread: names, handshakes and headers can take any time, and only what waits here can leave them.
    thread = threading.Thread(target=work, name=f"get {url}", daemon=True)
    thread.start()
    thread.join(seconds)
    if not outcome:
        raise TimeoutError(f"not there after {seconds:g} s")
    (result,) = outcome
    if isinstance(result, Exception):
        raise result
    return result


def _get_with_tries(url: str, most: int, deadline: float, tries: int) -> bytes:
    for left in reversed(range(tries)):
        try:
            return _get_once(url, most, deadline)
        except urllib.error.HTTPError:
            raise  # the server answered: asking again changes nothing
        except OSError:
            if left == 0 or time.monotonic() + 1 > deadline:
                raise
            time.sleep(1)
    raise AssertionError("unreachable")


def _get_once(url: str, most: int, deadline: float) -> bytes:
    _check_scheme(url)
    opener = urllib.request.build_opener(_SameScheme)
    with opener.open(url, timeout=IDLE_SECONDS) as reply:
        data = bytearray()
        # read1: at most one wait for the network. What the reply says of its length counts for nothing.
        while chunk := reply.read1(CHUNK):
            data += chunk
            if len(data) > most:
                raise BoundError(f"more than the {most} bytes that are expected")
            if time.monotonic() > deadline:
                raise TimeoutError("it came too slowly")
    return bytes(data)


def _check_scheme(url: str) -> None:
    if urllib.parse.urlsplit(url).scheme not in SCHEMES:
        raise BoundError(f"{url}: expected an http, https or file URL")


class _SameScheme(urllib.request.HTTPRedirectHandler):
    """Follows redirects within a scheme, and from http to https."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        scheme = urllib.parse.urlsplit(newurl).scheme
        if scheme != req.type and (req.type, scheme) != ("http", "https"):
            raise BoundError(f"{req.full_url} redirects to {newurl}, another scheme")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


# --- archives -------------------------------------------------------------------------------------


def decompress(name: str, data: bytes, most: int) -> IO[bytes]:
    """Return the content of a file with the suffix .gz, .tgz, .xz, .zst or none of them.

    Raises BoundError for more than `most` bytes, and EOFError, OSError or lzma.LZMAError for damaged data.
    """
    whole = bytearray()
    with _reader(name, data) as stream:
        while chunk := stream.read(CHUNK):
            whole += chunk
            if len(whole) > most:
                raise BoundError(f"{name}: more than {most} bytes when unpacked")
    return io.BytesIO(whole)


def _reader(name: str, data: bytes) -> AbstractContextManager[IO[bytes] | io.BufferedIOBase]:
    if name.endswith((".gz", ".tgz")):
        return gzip.GzipFile(fileobj=io.BytesIO(data))
    if name.endswith(".xz"):
        return lzma.LZMAFile(io.BytesIO(data))
    if name.endswith(".zst"):
        return _zstd(name, data)
    return io.BytesIO(data)


@contextmanager
def _zstd(name: str, data: bytes) -> Iterator[IO[bytes]]:
    """Give the output of the program zstd, which ends when no more of it is wanted."""
    with tempfile.TemporaryFile() as source:
        source.write(data)
        source.seek(0)
        with subprocess.Popen(["zstd", "-dc"], stdin=source, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            try:
                yield process.stdout
            except BaseException:
                process.kill()
                raise
    if process.returncode != 0:
        raise OSError(f"{name}: zstd cannot unpack it")
