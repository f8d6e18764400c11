"""Parquet, by pyarrow (the extra `parquet`), in batches of rows. Messages count rows from 1."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from spam_gnn.data.readers.content import opened
from spam_gnn.data.readers.table import HEADER, Block, Table, defect, finite_float32, shown
from spam_gnn.errors import BadInput, SpamError

_ROWS = 1 << 16


class ParquetTable(Table):
    """Columns of numbers, texts, categories, dates or truth values; a null is an empty cell."""

    def __init__(self, path: Path) -> None:
        self.file, self._path = str(path), path
        with opened(path, unpack=False) as handle:
            if not handle.read(1):
                raise defect(self.file, "the file is empty; write a Parquet file (pandas: to_parquet)")
        with self._understood(), self._open() as file:
            names = [str(name) for name in file.schema_arrow.names]
            self._types = {str(field.name): field.type for field in file.schema_arrow}
        self.columns = tuple(names)
        if len(names) < 2:
            raise self.defect(f"found {len(names)} column{'s' * (len(names) != 1)}; a table needs at least two")
        repeated = next((name for name in names if names.count(name) > 1), None)
        if repeated is not None:
            raise self.defect(f"found {names.count(repeated)} columns of this name; rename all but one", repeated)
        if not all(name.strip() for name in names):
            raise self.defect("found a column without a name; name it or delete it")

    def place(self, row: int) -> int | None:
        return None if row == HEADER else row + 1

    def blocks(
        self, text: Sequence[str] = (), number: Sequence[str] = (), key: Sequence[str] = ()
    ) -> Iterator[Block]:
        wanted = list(dict.fromkeys([*text, *number, *key]))
        for name in wanted:
            self._check_type(name)
        with self._understood(), self._open() as file:
            if not wanted:  # pyarrow counts no rows where no columns are asked for
                yield Block(file.metadata.num_rows)
                return
            for batch in file.iter_batches(_ROWS, columns=wanted, use_threads=False):
                column = {name: _plain(batch.column(name)) for name in wanted}
                values = {name: _number(column[name]) for name in number}
                block = Block(
                    batch.num_rows, text={name: _text(column[name]) for name in text},
                    number={name: value for name, value in values.items() if value is not None},
                    key={name: _key(column[name]) for name in key},
                )  # fmt: skip
                yield block

    def _open(self) -> Any:
        import pyarrow.parquet as pq

        # Checksums are verified where the writer stored them; a plain file has none.
        return pq.ParquetFile(self._path, page_checksum_verification=True, pre_buffer=False, buffer_size=1 << 20)

    @contextlib.contextmanager
    def _understood(self) -> Iterator[None]:
        """Whatever pyarrow says of a damaged file, as one line."""
        try:
            yield
        except ImportError:
            raise BadInput(f"{self.file}: reading Parquet needs pyarrow; pip install 'spam-gnn[parquet]'") from None
        except SpamError:
            raise
        except Exception as error:
            reason = str(error).split("\n", 1)[0][:120]
            found = f"this is no Parquet file or a damaged one ({type(error).__name__}: {reason})"
            raise defect(self.file, f"{found}; write or copy it again") from None

    def _check_type(self, name: str) -> None:
        import pyarrow.types as kinds

        kind = self._types[name]
        kind = kind.value_type if kinds.is_dictionary(kind) else kind
        if kinds.is_nested(kind) or kinds.is_binary(kind) or kinds.is_large_binary(kind) or kinds.is_fixed_size_binary(kind):
            advice = "spread it over columns of numbers or texts, or delete it"
            raise self.defect(f"found a column of type {shown(str(self._types[name]))}; {advice}", name)


def _plain(column: Any) -> Any:
    """Categories as what they stand for; decimals as numbers."""
    import pyarrow as pa

    column.validate(full=True)  # a damaged file may hold offsets that lead nowhere
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    return column


def _number(column: Any) -> np.ndarray | None:
    """(rows,) float32, or None where a cell is missing, infinite or no number."""
    import pyarrow as pa

    if column.null_count or not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        return None
    return finite_float32(column.to_numpy(zero_copy_only=False))


def _key(column: Any) -> np.ndarray:
    """(rows,) int64 where all are whole numbers that fit, otherwise texts."""
    import pyarrow as pa

    if pa.types.is_integer(column.type) and not column.null_count:
        values = column.to_numpy(zero_copy_only=False)
        if values.dtype != np.uint64 or not len(values) or values.max() < 2**63:
            return values.astype(np.int64)
    return _text(column)


def _text(column: Any) -> np.ndarray:
    """(rows,) texts; a whole float as a whole number, since a column of them with gaps is stored as floats."""
    import pyarrow as pa

    if pa.types.is_floating(column.type):
        values = np.asarray(column.cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)
        return np.array([whole_float(v) for v in values.tolist()], dtype=object)
    if pa.types.is_boolean(column.type):
        return np.array(["" if v is None else str(v) for v in column.to_pylist()], dtype=object)
    cells = column.cast(pa.string()).fill_null("") if not pa.types.is_null(column.type) else pa.array([""] * len(column))
    return np.array([cell.strip() for cell in cells.to_pylist()], dtype=object)


def whole_float(value: float) -> str:
    """'3' for 3.0, '0.5' for 0.5, '' for NaN."""
    if value != value:
        return ""
    return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
