"""The fetcher against a server of our own: resuming, checksums, one download for many processes, errors in one line."""

from __future__ import annotations

import hashlib
import http.server
import multiprocessing
import threading
import urllib.request
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from spam_gnn.data import fetch as fetching
from spam_gnn.data import store
from spam_gnn.data.entries import SPECS
from spam_gnn.data.fetch import fetch, verified_open
from spam_gnn.data.spec import RawFile
from spam_gnn.errors import BadInput, DiskError

CONTENT = bytes(range(256)) * 4000  # about 1 MB
DIGEST = hashlib.sha256(CONTENT).hexdigest()


def plain_open(request):
    """What the tests pass for an opener; the package itself has none that speaks plain http."""
    return urllib.request.urlopen(request, timeout=10)


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        server = self.server
        begin = 0
        asked = self.headers.get("Range")
        server.requests.append((self.path, asked))
        if asked and server.resumes and self.headers.get("If-Range") == server.version:
            begin = int(asked.removeprefix("bytes=").removesuffix("-"))
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {begin}-{len(server.content) - 1}/{len(server.content)}")
        else:
            self.send_response(200)
        self.send_header("ETag", server.version)
        self.send_header("Content-Length", str(len(server.content) - begin))
        self.end_headers()
        body = server.content[begin:]
        self.wfile.write(body[: server.cuts.pop(0)] if server.cuts else body)

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    found = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found.content, found.version, found.requests, found.cuts, found.resumes = CONTENT, '"v1"', [], [], True
    found.url = f"http://127.0.0.1:{found.server_port}/file.bin"
    thread = threading.Thread(target=found.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield found
    found.shutdown()
    thread.join()
    found.server_close()


def visible(folder):
    return sorted(p.name for p in folder.iterdir() if not p.name.endswith(".lock"))


def test_a_file_arrives_whole_and_is_fetched_once(server, tmp_path):
    target = tmp_path / "deep" / "file.bin"
    for _ in range(2):
        assert fetch(server.url, target, DIGEST, opener=plain_open).read_bytes() == CONTENT
    assert visible(target.parent) == ["file.bin"]
    assert len(server.requests) == 1


def test_a_broken_connection_is_taken_up_where_it_broke(server, tmp_path):
    server.cuts = [300_000, 200_000]
    fetch(server.url, tmp_path / "file.bin", DIGEST, opener=plain_open)
    assert (tmp_path / "file.bin").read_bytes() == CONTENT
    assert [asked for _, asked in server.requests] == [None, "bytes=300000-", "bytes=500000-"]


def test_a_stopped_download_is_resumed_by_the_next_call(server, tmp_path):
    server.cuts = [100_000, 100_000, 100_000]  # as often as one call tries
    with pytest.raises(BadInput, match="what has arrived is kept"):
        fetch(server.url, tmp_path / "file.bin", DIGEST, opener=plain_open)
    assert visible(tmp_path) == ["file.bin.partial", "file.bin.partial.version"]
    fetch(server.url, tmp_path / "file.bin", DIGEST, opener=plain_open)
    assert server.requests[-1][1] == "bytes=300000-"
    assert (tmp_path / "file.bin").read_bytes() == CONTENT
    assert visible(tmp_path) == ["file.bin"]


@pytest.mark.parametrize("change", ["version", "resumes"])
def test_a_changed_file_or_a_server_that_cannot_resume_starts_again(server, tmp_path, change):
    server.cuts = [100_000] * 3
    with pytest.raises(BadInput):
        fetch(server.url, tmp_path / "file.bin", None, opener=plain_open)
    server.content = CONTENT[::-1]
    setattr(server, change, '"v2"' if change == "version" else False)
    fetch(server.url, tmp_path / "file.bin", None, opener=plain_open)
    assert (tmp_path / "file.bin").read_bytes() == CONTENT[::-1]  # no mixture of the two, though no checksum is known


def test_a_part_longer_than_the_file_starts_again(server, tmp_path):
    (tmp_path / "file.bin.partial").write_bytes(CONTENT + b"more")
    (tmp_path / "file.bin.partial.version").write_text('"v1"')

    def refusing(request):
        if request.get_header("Range"):
            raise urllib.error.HTTPError(request.full_url, 416, "Range Not Satisfiable", None, None)
        return plain_open(request)

    assert fetch(server.url, tmp_path / "file.bin", DIGEST, opener=refusing).read_bytes() == CONTENT


def test_a_wrong_checksum_keeps_nothing(server, tmp_path):
    with pytest.raises(BadInput, match=f"found SHA-256 {DIGEST}, expected {'0' * 64}") as caught:
        fetch(server.url, tmp_path / "file.bin", "0" * 64, opener=plain_open)
    assert "\n" not in str(caught.value)
    assert visible(tmp_path) == []


def _one_of_eight(url, target, start):
    start.wait()
    fetch(url, Path(target), DIGEST, opener=plain_open)


def test_eight_processes_make_one_request(server, tmp_path):
    context = multiprocessing.get_context("fork")
    start = context.Event()
    workers = [context.Process(target=_one_of_eight, args=(server.url, tmp_path / "file.bin", start)) for _ in range(8)]
    for worker in workers:
        worker.start()
    start.set()
    for worker in workers:
        worker.join(60)
    assert [worker.exitcode for worker in workers] == [0] * 8
    assert len(server.requests) == 1
    assert (tmp_path / "file.bin").read_bytes() == CONTENT


def test_a_refused_connection_is_one_line(tmp_path):
    with pytest.raises(BadInput, match="cannot be fetched .*refused") as caught:
        fetch("http://127.0.0.1:1/file.bin", tmp_path / "file.bin", DIGEST, opener=plain_open)
    assert "\n" not in str(caught.value)
    assert visible(tmp_path) == []


def test_a_missing_page_is_not_asked_for_again(server, tmp_path):
    asked = []

    def missing(request):
        asked.append(request)
        raise urllib.error.HTTPError(request.full_url, 404, "Not Found", None, None)

    with pytest.raises(BadInput, match="Not Found"):
        fetch(server.url, tmp_path / "file.bin", DIGEST, opener=missing)
    assert len(asked) == 1


def test_a_full_disk_leaves_nothing(server, tmp_path, monkeypatch):
    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(fetching.os, "fsync", full)
    with pytest.raises(DiskError, match="No space left on device"):
        fetch(server.url, tmp_path / "file.bin", DIGEST, opener=plain_open)
    assert visible(tmp_path) == []


def test_only_https_is_opened(tmp_path):
    for url in ("http://example.invalid/file", "file:///etc/passwd", "ftp://example.invalid/file"):
        with pytest.raises(BadInput, match="https only"):
            fetch(url, tmp_path / "file", None)
    with pytest.raises(BadInput, match="https only"):
        fetching._HttpsOnly().redirect_request(None, None, 302, "", {}, "http://example.invalid/")
    assert all(file.url is None or file.url.startswith("https://") for spec in SPECS.values() for file in spec.files)
    assert fetch.__kwdefaults__["opener"] is verified_open


@pytest.fixture
def folders(monkeypatch, tmp_path):
    """An empty machine: no data folder but the cache."""
    monkeypatch.delenv("SPAM_GNN_OFFLINE", raising=False)
    monkeypatch.delenv("SPAM_GNN_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(store, "data_folders", lambda: [tmp_path / "given", tmp_path / "cache" / "spam-gnn" / "datasets"])
    return tmp_path


def test_files_are_looked_up_in_order_and_then_fetched(server, folders):
    spec = replace(SPECS["roman-empire"], folder="toy", files=(RawFile("raw/a", server.url), RawFile("raw/b", server.url)))
    given = folders / "given" / "toy" / "raw" / "a"
    given.parent.mkdir(parents=True)
    given.write_bytes(b"mine")
    assert not store.is_present(spec)
    paths = store.ensure(spec, opener=plain_open)
    fetched = folders / "cache" / "spam-gnn" / "datasets" / "toy" / "raw" / "b"
    assert paths == {"raw/a": given, "raw/b": fetched}  # each file by itself: a folder may hold a part
    assert fetched.read_bytes() == CONTENT
    assert store.is_present(spec)


def test_offline_the_line_names_the_file_where_it_was_looked_for_and_where_to_put_it(folders, monkeypatch):
    monkeypatch.setenv("SPAM_GNN_OFFLINE", "1")
    with pytest.raises(BadInput) as caught:
        store.ensure(SPECS["roman-empire"])
    line = str(caught.value)
    assert "\n" not in line
    place = "roman_empire/raw/roman_empire.npz"
    for part in (place, str(folders / "given"), str(folders / "cache" / "spam-gnn" / "datasets" / place), "SPAM_GNN_DATA"):
        assert part in line


def test_a_member_of_an_archive_is_taken_out(server, folders, tmp_path):
    archive = tmp_path / "made.zip"
    with zipfile.ZipFile(archive, "w") as made:
        made.writestr("arxiv/raw/edge.csv.gz", b"edges")
    server.content = archive.read_bytes()
    spec = replace(SPECS["arxiv-year"], folder="toy", files=(RawFile("raw/edge", server.url, "arxiv/raw/edge.csv.gz"),))
    assert store.ensure(spec, opener=plain_open)["raw/edge"].read_bytes() == b"edges"
    lost = replace(spec, files=(RawFile("raw/other", server.url, "arxiv/raw/none"),))
    with pytest.raises(BadInput, match="holds no usable arxiv/raw/none"):
        store.ensure(lost, opener=plain_open)
    assert len(server.requests) == 1


def test_a_damaged_file_is_named_with_both_checksums(folders):
    spec = SPECS["minesweeper"]
    path = folders / "given" / "minesweeper" / "raw" / "minesweeper.npz"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"not it")
    with pytest.raises(BadInput, match=f"{path}: found SHA-256 .*, expected {spec.sha256(spec.files[0])}"):
        store.verified(spec, spec.files[0], path)
