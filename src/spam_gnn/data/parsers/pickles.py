"""Benchmark files that are pickles (Planetoid, LINKX's splits), read so that nothing in them can be executed.

A pickle names the functions it wants called. This unpickler knows a handful: those that rebuild numpy arrays, scipy's CSR
matrix, dict and list. Any other name is refused before it is looked up.
"""

from __future__ import annotations

import collections
import pickle
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import scipy.sparse

from spam_gnn.errors import BadInput


def _rebuild(kind: Any, shape: Any, code: Any) -> np.ndarray:
    """numpy's `_reconstruct` for plain arrays only: an empty one, whose content the pickle then sets."""
    if kind is not np.ndarray:
        raise pickle.UnpicklingError(f"an array of type {kind!r}")
    del shape, code
    return np.ndarray.__new__(np.ndarray, (0,), "b")


_HARMLESS: dict[tuple[str, str], Any] = {
    **{(f"numpy.{core}.multiarray", "_reconstruct"): _rebuild for core in ("core", "_core")},
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    **{(f"scipy.sparse.{module}", "csr_matrix"): scipy.sparse.csr_matrix for module in ("csr", "_csr")},
    ("collections", "defaultdict"): collections.defaultdict,
    ("__builtin__", "list"): list,
    ("builtins", "list"): list,
    ("_codecs", "encode"): lambda text, coding: text.encode(coding),  # how Python 3 writes bytes in old protocols
}


class _ArraysOnly(pickle.Unpickler):
    def find_class(self, module_name: str, global_name: str) -> Any:
        try:
            return _HARMLESS[module_name, global_name]
        except KeyError:
            raise pickle.UnpicklingError(f"it names {module_name}.{global_name}") from None


def _read(path: Path, stream: BinaryIO) -> Any:
    try:
        return _ArraysOnly(stream, encoding="latin1").load()
    except Exception as error:  # a damaged pickle can raise nearly anything
        raise BadInput(f"{path}: not an array file of the benchmark ({error}); fetch it again from its source") from None


def read_pickle(path: Path) -> Any:
    """A Planetoid `ind.*` file: an array, a CSR matrix or a dict of lists."""
    with path.open("rb") as stream:
        return _read(path, stream)


def read_object_array(path: Path) -> np.ndarray:
    """A `.npy` file whose elements are Python objects, which numpy itself only reads by running the pickle."""
    with path.open("rb") as stream:
        try:
            version = np.lib.format.read_magic(stream)
            header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}[version]
            shape, _, kind = header(stream)
        except (ValueError, KeyError, EOFError) as error:
            raise BadInput(f"{path}: not a .npy file ({error}); fetch it again from its source") from None
        if kind.hasobject:
            return np.asarray(_read(path, stream), dtype=object).reshape(shape)
    return np.load(path, allow_pickle=False)
