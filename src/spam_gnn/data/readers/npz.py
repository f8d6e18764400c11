"""`.npz`: named arrays, never a pickle. Each array's size is checked against its header before it is read.

Keys: `edge_index` (2, m) positions; `x` (n, d), or `x_data`, `x_indices`, `x_indptr`, `x_shape` of a CSR matrix; `y` (n,) whole
numbers (negative = unlabelled), floats (NaN or negative = unlabelled) or texts ("" = unlabelled); `train_mask`, `val_mask`,
`test_mask` (n,); `node_id` (n,); `edge_weight` (m,), accepted and not used. `edge_index` and `y` are needed.
"""

from __future__ import annotations

import warnings
import zipfile
from pathlib import Path

import numpy as np
import scipy.sparse
from numpy.lib import format as npy

from spam_gnn.data.readers.content import opened
from spam_gnn.data.readers.table import defect, listed
from spam_gnn.errors import SpamError, TooLarge
from spam_gnn.resources import available_memory_mb

SPARSE = ("x_data", "x_indices", "x_indptr", "x_shape")
MASKS = ("train_mask", "val_mask", "test_mask")
KEYS = ("x", *SPARSE, "edge_index", "y", *MASKS, "node_id", "edge_weight")
_PICKLED = (
    "an array of Python objects, which only pickle can read, and no pickle is ever loaded; save it as numbers or texts "
    "(for texts: array.astype(str))"
)


def read_arrays(path: Path) -> tuple[dict[str, np.ndarray], list[str]]:
    """The arrays of the known keys, and the names of the others."""
    file = str(path)
    with opened(path, unpack=False) as handle:
        start = handle.read(8)
        if not start:
            raise defect(file, "the file is empty; write it with numpy.savez")
        if start.startswith(b"\x93NUMPY"):
            raise defect(file, "found a single array (.npy); save all arrays by name with numpy.savez")
        if start[:1] == b"\x80":
            raise defect(file, "found a pickle, and no pickle is ever loaded; save the arrays by name with numpy.savez")
        if start[:4] not in (b"PK\x03\x04", b"PK\x05\x06"):
            raise defect(file, "this is no .npz file; write it with numpy.savez")
        handle.seek(0)
        try:
            with zipfile.ZipFile(handle) as archive:  # pyright: ignore[reportArgumentType]
                return _members(file, archive)
        except (SpamError, FileNotFoundError):
            raise
        except Exception as error:  # zipfile and zlib raise a dozen types on damaged files
            reason = str(error).split("\n", 1)[0][:120]
            raise defect(file, f"this is no .npz file or a damaged one ({reason}); write it again with numpy.savez") from None


def _members(file: str, archive: zipfile.ZipFile) -> tuple[dict[str, np.ndarray], list[str]]:
    names = [info.filename.removesuffix(".npy") for info in archive.infolist()]
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise defect(file, "found two arrays of this name; keep one", column=repeated)
    promised = sum(info.file_size for info in archive.infolist()) / 2**20
    if promised > available_memory_mb():
        free = f"{available_memory_mb():.0f} MiB are free"
        raise TooLarge(f"{file}: holds {promised:.0f} MiB unpacked and {free}; use a smaller graph")
    known = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
    arrays = {name: _array(file, name, archive, known[name]) for name in KEYS if name in known}
    return arrays, [name for name in names if name not in KEYS]


def _array(file: str, name: str, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> np.ndarray:
    with archive.open(info) as member, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numpy warns of headers written by Python 2; they are read all the same
        version = npy.read_magic(member)
        read_header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, fortran, kind = read_header(member)
        if kind.hasobject:
            raise defect(file, f"found {_PICKLED}", column=name)
        size = int(np.prod(shape, dtype=object)) * kind.itemsize
        rest = info.file_size - member.tell()
        if size != rest or any(length < 0 for length in shape):
            found = f"found {rest} bytes where the header of shape {shape} needs {size}"
            raise defect(file, f"{found}; write the file again", column=name)
        data = member.read()  # to the end, where zipfile compares the checksum
    flat = np.frombuffer(data, dtype=kind) if size else np.empty(0, dtype=kind)
    return flat.reshape(shape, order="F" if fortran else "C")


def feature_matrix(file: str, arrays: dict[str, np.ndarray]) -> np.ndarray | scipy.sparse.csr_array | None:
    """(n, d) float32 dense or CSR; None where there are no features."""
    sparse = [name for name in SPARSE if name in arrays]
    if "x" in arrays and sparse:
        raise defect(file, f"found x and {listed(sparse)} together; keep the dense or the sparse form", column="x")
    if "x" in arrays:
        x = arrays["x"]
        if x.ndim != 2 or x.dtype.kind not in "iufb":
            raise defect(file, f"found shape {x.shape} of {x.dtype}; give numbers, one row per node: (n, d)", column="x")
        return finite(file, "x", x)
    if not sparse:
        return None
    missing = [name for name in SPARSE if name not in arrays]
    if missing:
        raise defect(file, f"found {listed(sparse)} without {listed(missing)}; save all four of a CSR matrix")
    shape = arrays["x_shape"].reshape(-1)
    if shape.size != 2 or shape.dtype.kind not in "iu" or (shape < 0).any():
        raise defect(file, f"found {shape.tolist()[:5]}; give two whole numbers, nodes and features", column="x_shape")
    for name in ("x_indices", "x_indptr"):
        if arrays[name].ndim != 1 or arrays[name].dtype.kind not in "iu":
            raise defect(file, f"found shape {arrays[name].shape} of {arrays[name].dtype}; give one row of whole numbers",
                         column=name)  # fmt: skip
    values = arrays["x_data"]
    if values.ndim != 1 or values.dtype.kind not in "iufb":
        raise defect(file, f"found shape {values.shape} of {values.dtype}; give one row of numbers", column="x_data")
    parts = (finite(file, "x_data", values), arrays["x_indices"].astype(np.int64), arrays["x_indptr"].astype(np.int64))
    try:
        matrix = scipy.sparse.csr_array(parts, shape=(int(shape[0]), int(shape[1])))
        matrix.check_format(full_check=True)
    except ValueError as error:
        found = f"found a CSR matrix that does not fit together ({error})"
        raise defect(file, f"{found}; save it again", column="x_indptr") from None
    return matrix


def finite(file: str, name: str, values: np.ndarray) -> np.ndarray:
    """Numbers as float32, none of them NaN or infinite."""
    with np.errstate(over="ignore"):
        narrow = values.astype(np.float32)
    bad = ~np.isfinite(narrow)
    if bad.any():
        place = tuple(np.argwhere(bad)[0].tolist())
        found = f"found {values[place]} ({int(bad.sum())} such values), NaN, infinite or too large for float32"
        raise defect(file, f"{found}; impute it", place[0], name)
    return narrow
