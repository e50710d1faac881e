"""What is fetched is held to bounds, whatever servers and archives say."""

from __future__ import annotations

import gzip
import hashlib
import io
import lzma
import shutil
import socket
import tarfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import bounded
import fetch_deps
import pytest

SECONDS = 60.0  # more than any of these tests takes
Reply = Callable[[BaseHTTPRequestHandler], None]


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")


@contextmanager
def serve(reply: Reply) -> Iterator[str]:
    """Give the URL of a server whose answers `reply` writes."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            try:
                reply(self)
            except OSError:
                self.close_connection = True  # the client has left

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def send(data: bytes, length: int | None = None) -> Reply:
    def reply(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        if length is not None:
            request.send_header("Content-Length", str(length))
        request.end_headers()
        request.wfile.write(data)

    return reply


def redirect(to: str) -> Reply:
    def reply(request: BaseHTTPRequestHandler) -> None:
        request.send_response(302)
        request.send_header("Location", to)
        request.end_headers()

    return reply


# -- downloads


def test_what_is_there_is_returned(tmp_path: Path) -> None:
    data = bytes(range(256)) * 1000
    with serve(send(data)) as url:
        assert bounded.get(url, len(data), SECONDS) == data
        with serve(redirect(f"{url}/elsewhere")) as other:
            assert bounded.get(other, len(data), SECONDS) == data
    (tmp_path / "file").write_bytes(data)
    assert bounded.get((tmp_path / "file").as_uri(), len(data), SECONDS) == data


@pytest.mark.parametrize("length", [None, 1 << 40, 3])
def test_a_byte_too_many_is_refused(length: int | None) -> None:
    with serve(send(b"four", length)) as url:
        if length == 3:  # then the reply is over, for HTTP
            assert bounded.get(url, 3, SECONDS) == b"fou"
        else:
            with pytest.raises(bounded.BoundError, match="more than the 3 bytes"):
                bounded.get(url, 3, SECONDS)


def test_a_reply_without_end_is_left() -> None:
    ended = threading.Event()

    def reply(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.end_headers()
        try:
            while True:
                request.wfile.write(b"x" * 65536)
        finally:
            ended.set()

    with serve(reply) as url:
        with pytest.raises(bounded.BoundError, match="more than the 1000000 bytes"):
            bounded.get(url, 1_000_000, SECONDS)
        assert ended.wait(SECONDS)  # the connection was closed


@pytest.mark.parametrize("where", ["status", "headers", "body"])
def test_a_slow_reply_is_left(where: str) -> None:
    enough = threading.Event()
    before = {"status": b"", "headers": b"HTTP/1.0 200 OK\r\n", "body": b"HTTP/1.0 200 OK\r\n\r\n"}

    def reply(request: BaseHTTPRequestHandler) -> None:
        request.wfile.write(before[where])
        while not enough.wait(0.01):  # never silent for long
            request.wfile.write(b"x")

    with serve(reply) as url:
        try:
            with pytest.raises(TimeoutError):
                bounded.get(url, 1 << 30, 0.5)
        finally:
            enough.set()


def test_other_schemes_are_refused(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"secret")
    local = (tmp_path / "secret").as_uri()
    refused = pytest.raises((bounded.BoundError, OSError), match=r"another scheme|is not allowed")
    for target in [local, "ftp://127.0.0.1/secret", "data:,secret"]:
        with serve(redirect(target)) as url, refused:
            bounded.get(url, 100, SECONDS)
    for url in ["ftp://127.0.0.1/secret", "data:,secret", "secret"]:
        with pytest.raises(bounded.BoundError, match="expected an http, https or file URL"):
            bounded.get(url, 100, SECONDS)


def test_https_does_not_lead_to_http() -> None:
    follow = bounded._SameScheme().redirect_request
    secure = bounded.urllib.request.Request("https://example.org/a")
    message = HTTPMessage()
    with pytest.raises(bounded.BoundError, match="another scheme"):
        follow(secure, io.BytesIO(), 302, "Found", message, "http://example.org/b")
    plain = bounded.urllib.request.Request("http://example.org/a")
    assert follow(plain, io.BytesIO(), 302, "Found", message, "https://example.org/b") is not None


def package(path: str, data: bytes, keep: tuple[str, ...] = ("*",)) -> fetch_deps.Package:
    return fetch_deps.Package(
        name="thing",
        version="1",
        group="core",
        path=path,
        sha256=hashlib.sha256(data).hexdigest(),
        size=len(data),
        keep=keep,
        system_minimum="1",
        license="MIT",
        source="https://example.org/thing",
    )


def test_the_next_mirror_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = b"what is pinned"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    wanted = package("pool/thing.tar", right)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # nobody listens
        dead = f"http://127.0.0.1:{closed.getsockname()[1]}"
        with serve(send(b"x" * 100)) as long, serve(send(b"other bytes!!!")) as wrong:
            monkeypatch.setenv("DEPS_MIRROR", f"{long} {wrong}")
            with pytest.raises(fetch_deps.DepsError) as caught:
                fetch_deps.download(wanted)
            assert "more than the 14 bytes" in str(caught.value)
            assert "are pinned" in str(caught.value)
            assert not list(tmp_path.rglob("thing*"))
            with serve(send(right)) as good:
                monkeypatch.setenv("DEPS_MIRROR", f"{long} {dead} {wrong} {good}")
                found = fetch_deps.download(wanted)
    assert found.read_bytes() == right


# -- archives


def tar_of(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w") as tar:
        for member, content in members:
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return whole.getvalue()


def member(name: str, kind: bytes = tarfile.REGTYPE, target: str = "") -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname = kind, target
    return entry


def unpack(folder: Path, name: str, data: bytes, keep: tuple[str, ...] = ("*",)) -> None:
    archive = folder / name
    archive.write_bytes(data)
    prefix = folder / "prefix"
    prefix.mkdir(exist_ok=True)
    fetch_deps.unpack(package(name, data, keep), archive, prefix)


def files_in(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def compress(data: bytes, suffix: str) -> bytes:
    if suffix == ".zst":
        if shutil.which("zstd") is None:
            pytest.skip("there is no program zstd")
        return fetch_deps.subprocess.run(["zstd", "-c"], input=data, capture_output=True, check=True).stdout
    return {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress}[suffix](data)


def deb_of(suffix: str, data: bytes) -> bytes:
    packed = compress(data, suffix)
    header = f"{'data.tar' + suffix:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(packed):<10}`\n".encode()
    return b"!<arch>\n" + header + packed + b"\n" * (len(packed) % 2)


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz", ".zst"])
@pytest.mark.parametrize("pack", [compress, deb_of])
def test_plain_files_are_unpacked(tmp_path: Path, suffix: str, pack: Callable[..., bytes]) -> None:
    tar = tar_of(
        (member("./usr", tarfile.DIRTYPE), b""),
        (member("./usr/include/thing/a.h"), b"one"),
        (member("./usr/share/doc/thing/copyright"), b"a licence"),
        (member("./usr/lib/left.out"), b"no"),
    )
    keep = ("usr/include/*", "*/copyright")
    if pack is deb_of:
        unpack(tmp_path, "thing.deb", deb_of(suffix, tar), keep)
    else:
        unpack(tmp_path, f"thing.tar{suffix}", compress(tar, suffix), keep)
    expected = {"include/thing/a.h": b"one", "licenses/thing.txt": b"a licence"}
    assert files_in(tmp_path / "prefix") == expected


@pytest.mark.parametrize("name", ["/etc/thing", "../thing", "usr/include/../../../thing"])
def test_a_path_outside_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(fetch_deps.DepsError, match="unsafe name"):
        unpack(tmp_path, "thing.tar", tar_of((member(name), b"x")))
    assert files_in(tmp_path / "prefix") == {}


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
def test_links_and_devices_are_refused(tmp_path: Path, kind: bytes) -> None:
    entry = member("usr/include/thing.h", kind, "/etc/passwd")
    with pytest.raises(fetch_deps.DepsError, match="not a plain file"):
        unpack(tmp_path, "thing.tar", tar_of((entry, b"")))
    assert files_in(tmp_path / "prefix") == {}


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    outside = tmp_path / "system" / "thing"
    outside.mkdir(parents=True)
    include = tmp_path / "prefix" / "include"
    include.mkdir(parents=True)
    (include / "thing").symlink_to(outside)  # as link_installed() leaves one
    with pytest.raises(fetch_deps.DepsError, match="would be written to"):
        unpack(tmp_path, "thing.tar", tar_of((member("usr/include/thing/a.h"), b"x")))
    assert files_in(outside) == {}


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz", ".zst"])
def test_an_archive_that_grows_too_large_is_refused(
    tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch_deps, "UNPACKED_BYTES", 1 << 20)
    tar = tar_of((member("usr/include/a.h"), b"fits"))
    unpack(tmp_path, f"thing.tar{suffix}", compress(tar, suffix))
    tar = tar_of((member("usr/include/a.h"), b"fits"), (member("left/out"), bytes(1 << 20)))
    with pytest.raises(fetch_deps.DepsError, match="more than 1048576 bytes"):
        unpack(tmp_path, f"thing.tar{suffix}", compress(tar, suffix), ("usr/include/*",))


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz", ".zst"])
def test_a_damaged_archive_is_refused(tmp_path: Path, suffix: str) -> None:
    data = compress(tar_of((member("usr/include/a.h"), bytes(range(256)) * 100)), suffix)
    with pytest.raises(fetch_deps.DepsError, match="cannot be unpacked"):
        unpack(tmp_path, f"thing.tar{suffix}", data[: len(data) // 2])


@pytest.mark.parametrize("digits", [b"-60       ", b"99        ", b"x         ", b"          "])
def test_a_package_whose_members_have_no_possible_size_is_refused(tmp_path: Path, digits: bytes) -> None:
    header = b"data.tar".ljust(48) + digits + b"`\n"
    with pytest.raises(fetch_deps.DepsError, match="no possible size"):
        unpack(tmp_path, "thing.deb", b"!<arch>\n" + header + b"y" * 10)
