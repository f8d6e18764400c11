"""One file from the network: verified TLS, checked, resumable, whole or absent, fetched once however many processes ask.

While it arrives it is called `<name>.partial`, with the server's mark of its version beside it; a later call continues there.
"""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import os
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

from spam_gnn.errors import BadInput, DiskError

Opener = Callable[[urllib.request.Request], Any]  # a request -> a response as urllib gives it
Advance = Callable[[int, int | None], None]  # bytes so far, bytes in all where known
_ATTEMPTS = 3  # connections that break off are taken up again this often
_SECONDS = 30.0  # without a byte, after which a connection counts as broken
_PIECE = 1 << 18


class _HttpsOnly(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, req: Any, fp: Any, code: Any, msg: Any, headers: Any, newurl: str) -> Any:  # noqa: PLR0913, RUF100
        _refuse_unless_https(newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _refuse_unless_https(url: str) -> None:
    if not url.startswith("https://"):
        raise BadInput(f"{url}: files are fetched over https only; correct the address")


def verified_open(request: urllib.request.Request) -> Any:
    """Open over https with the certificate checked, following redirects to https only."""
    _refuse_unless_https(request.full_url)
    context = ssl.create_default_context()
    opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=context), _HttpsOnly())
    return opener.open(request, timeout=_SECONDS)


def file_sha256(path: Path) -> str:
    """Hexadecimal SHA-256 of a file."""
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise BadInput(f"{path}: cannot be read ({error.strerror}); check its permissions") from None


def fetch(url: str, target: Path, sha256: str | None, *, opener: Opener = verified_open) -> Path:
    """Fetch `url` to `target` unless it is there already, and return it.

    Args:
        url: the address.
        target: the file to make; its folder is created.
        sha256: what the content must hash to; None where it is not known.
        opener: how a request is opened. The default refuses all but verified https.

    Raises:
        BadInput: the server cannot be reached, or sends something else. DiskError: the file cannot be written.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(target.with_name(f".{target.name}.lock")):
            if target.exists():  # another process fetched it while this one waited
                return target
            partial = target.with_name(f"{target.name}.partial")
            _with_retries(url, partial, opener)
            _check(url, partial, sha256)
            _publish(partial, target)
    except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError, ssl.SSLError) as error:
        reason = getattr(error, "reason", None) or error
        raise BadInput(f"{url}: cannot be fetched ({reason}); try again, what has arrived is kept") from None
    except (OSError, Timeout) as error:
        if isinstance(error, BadInput | DiskError):
            raise
        raise DiskError(f"{target}: cannot be written ({error}); free space or set SPAM_GNN_DATA to another folder") from None
    return target


def _with_retries(url: str, partial: Path, opener: Opener) -> None:
    with _bar(partial.stem) as advance:
        for attempt in range(_ATTEMPTS):
            try:
                return _receive(url, partial, opener, advance)
            except urllib.error.HTTPError as error:
                if error.code == 416:  # the part here is longer than the file there: begin anew
                    _discard(partial)
                elif error.code < 500:
                    raise
                if attempt == _ATTEMPTS - 1:
                    raise
            except (http.client.HTTPException, TimeoutError, ConnectionError):
                if attempt == _ATTEMPTS - 1:
                    raise
    return None


def _receive(url: str, partial: Path, opener: Opener, advance: Advance) -> None:
    """Append what is missing. A server that cannot resume, or whose file has changed, sends all of it (code 200)."""
    mark = _mark(partial)
    have = partial.stat().st_size if partial.exists() and mark.exists() else 0
    request = urllib.request.Request(url, headers={"User-Agent": "spam-gnn", "Accept-Encoding": "identity"})
    if have:
        request.add_header("Range", f"bytes={have}-")
        request.add_header("If-Range", mark.read_text())
    with opener(request) as response:
        resumed = response.status == 206 and str(response.headers.get("Content-Range", "")).startswith(f"bytes {have}-")
        have = have if resumed else 0
        length = response.headers.get("Content-Length")
        total = have + int(length) if length is not None else None
        version = response.headers.get("ETag") or response.headers.get("Last-Modified")
        with _disk(partial), partial.open("ab" if resumed else "wb") as stream:
            if version is None or version.startswith("W/"):
                mark.unlink(missing_ok=True)  # nothing that If-Range could compare: an interrupted file starts again
            else:
                mark.write_text(version)
            while piece := _next(response):
                stream.write(piece)
                have += len(piece)
                advance(have, total)
            stream.flush()
            os.fsync(stream.fileno())
    if total is not None and have < total:
        raise ConnectionError(f"broke off after {have} of {total} bytes")


class _NetworkBreak(Exception):
    """Carries a network error, which is an OSError too, past the handler of disk errors."""


def _next(response: Any) -> bytes:
    try:
        return response.read(_PIECE)
    except OSError as error:
        raise _NetworkBreak(str(error)) from error


@contextlib.contextmanager
def _disk(partial: Path) -> Iterator[None]:
    """A disk that is full or gone leaves nothing behind; a network that breaks off leaves what has arrived."""
    try:
        yield
    except _NetworkBreak as error:
        raise ConnectionError(str(error)) from None
    except OSError as error:
        with contextlib.suppress(OSError):
            _discard(partial)
        raise DiskError(f"{partial.parent / partial.stem}: cannot be written ({error.strerror}); free space, or set "
                        "SPAM_GNN_DATA to another folder") from None  # fmt: skip


def _check(url: str, partial: Path, sha256: str | None) -> None:
    found = file_sha256(partial)
    if sha256 is not None and found != sha256:
        _discard(partial)
        raise BadInput(f"{url}: found SHA-256 {found}, expected {sha256}; it is not the benchmark's file, nothing was kept")


def _publish(partial: Path, target: Path) -> None:
    partial.replace(target)
    _mark(partial).unlink(missing_ok=True)
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _mark(partial: Path) -> Path:
    return partial.with_name(f"{partial.name}.version")


def _discard(partial: Path) -> None:
    partial.unlink(missing_ok=True)
    _mark(partial).unlink(missing_ok=True)


@contextlib.contextmanager
def _bar(name: str) -> Iterator[Advance]:
    """A progress bar on standard error, if that is a terminal."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(bar_width=20), DownloadColumn(), TransferSpeedColumn(),
               TimeRemainingColumn())  # fmt: skip
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(name, total=None)
        yield lambda have, total: progress.update(task, completed=have, total=total)
