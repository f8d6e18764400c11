"""Where raw files are: looked up in `$SPAM_GNN_DATA`, `shared/datasets` beside the checkout, the cache; then fetched.

Each file is looked up by itself, so that a folder which holds a part of a dataset is used for that part. What is found is
held to its SHA-256 before anything reads it. `SPAM_GNN_OFFLINE=1` forbids fetching.
"""

from __future__ import annotations

import os
import shutil
import zipfile
from pathlib import Path

from spam_gnn.data.fetch import Opener, fetch, file_sha256, verified_open
from spam_gnn.data.spec import DatasetSpec, FilePaths, RawFile
from spam_gnn.errors import BadInput, DiskError


def cache_folder() -> Path:
    """The user's cache for this package: fetched files in `datasets`, parsed graphs in `parsed`."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "spam-gnn"


def data_folders() -> list[Path]:
    """The folders searched for raw files, in order."""
    given = os.environ.get("SPAM_GNN_DATA")
    beside = Path(__file__).resolve().parents[4] / "shared" / "datasets"
    return [*([Path(given)] if given else []), beside, cache_folder() / "datasets"]


def find(spec: DatasetSpec, file: RawFile) -> Path | None:
    """The file in the first data folder that has it."""
    places = (base / spec.folder / file.name for base in data_folders())
    return next((place for place in places if place.is_file()), None)


def is_present(spec: DatasetSpec, protocol: str | None = None) -> bool:
    """Whether every file that the protocol needs is on this machine."""
    return all(find(spec, file) is not None for file in spec.files_for(protocol))


def verified(spec: DatasetSpec, file: RawFile, path: Path) -> str:
    """The file's SHA-256, after it was compared with the known one."""
    found, known = file_sha256(path), spec.sha256(file)
    if known is not None and found != known:
        raise BadInput(f"{path}: found SHA-256 {found}, expected {known}; it is damaged or of another version, move it away "
                       f"and run: spam-gnn datasets fetch {spec.name}")  # fmt: skip
    return found


def ensure(spec: DatasetSpec, protocol: str | None = None, *, opener: Opener = verified_open) -> FilePaths:
    """Paths by file name, all present; what is missing is fetched into the cache.

    Raises:
        BadInput: a file is absent and cannot be fetched; the line names it, where it was looked for and where to put it.
    """
    paths: dict[str, Path] = {}
    for file in spec.files_for(protocol):
        paths[file.name] = find(spec, file) or _fetched(spec, file, opener)
    return paths


def _fetched(spec: DatasetSpec, file: RawFile, opener: Opener) -> Path:
    place = Path(spec.folder) / file.name
    looked = ", ".join(str(base) for base in data_folders())
    target = cache_folder() / "datasets" / place
    put = f"put it at {target}, or set SPAM_GNN_DATA to the folder that holds {place}"
    if file.url is None or os.environ.get("SPAM_GNN_OFFLINE"):
        why = "no address serves it as it is" if file.url is None else "SPAM_GNN_OFFLINE is set"
        raise BadInput(f"{place}: not found in {looked}, and not fetched ({why}); {put}")
    try:
        if file.member is None:
            return fetch(file.url, target, spec.sha256(file), opener=opener)
        archive = cache_folder() / "archives" / file.url.rpartition("/")[2]
        return _extracted(fetch(file.url, archive, None, opener=opener), file.member, target)
    except BadInput as error:
        raise BadInput(f"{place}: not found in {looked}, and not fetched: {error}; or {put}") from None


def _extracted(archive: Path, member: str, target: Path) -> Path:
    """One member of a zip archive, whole or absent. The name to write to is ours, never the archive's."""
    partial = target.with_name(f"{target.name}.{os.getpid()}.partial")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(archive) as stored, stored.open(member) as source, partial.open("wb") as copy:
            shutil.copyfileobj(source, copy)
            copy.flush()
            os.fsync(copy.fileno())
        partial.replace(target)
    except (zipfile.BadZipFile, KeyError) as error:
        partial.unlink(missing_ok=True)
        raise BadInput(f"{archive}: holds no usable {member} ({error}); delete the archive and fetch it again") from None
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise DiskError(f"{target}: cannot be written ({error.strerror}); free space or set SPAM_GNN_DATA") from None
    return target
