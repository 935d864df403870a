"""Parquet, some rows at a time."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import pyarrow as pa
import pyarrow.parquet

from maxdisc.files.batches import Opened
from maxdisc.files.byte_streams import Stream, batch_bytes
from maxdisc.files.places import SourceError

_MOST_ROWS = 2**16


def open_parquet(stream: Stream, columns: Collection[str] | None = None) -> Opened:
    """Begin to read a Parquet file."""
    try:
        file = pyarrow.parquet.ParquetFile(stream.seekable())
    except (pa.ArrowInvalid, OSError) as error:
        raise SourceError(f"{stream.name} is not a whole Parquet file: {_first_sentence(error)}") from None
    names = list(file.schema_arrow.names)
    wanted = [name for name in names if columns is None or name in columns]
    return Opened(names, _tables(file, stream.name, wanted), file.metadata.num_rows)


def _tables(file: pyarrow.parquet.ParquetFile, name: str, wanted: list[str]) -> Iterator[pa.Table]:
    metadata = file.metadata
    size = sum(metadata.row_group(g).total_byte_size for g in range(metadata.num_row_groups))
    rows = max(1, min(_MOST_ROWS, batch_bytes() * metadata.num_rows // max(1, size)))
    good = 0
    try:
        for batch in file.iter_batches(batch_size=rows, columns=wanted):
            yield pa.Table.from_batches([batch])
            good += batch.num_rows
    except (pa.ArrowInvalid, OSError) as error:
        raise SourceError(f"{name} is damaged after row {good}: {_first_sentence(error)}") from None


def _first_sentence(error: Exception) -> str:
    return " ".join(str(error).split()).split(". ")[0].rstrip(".") + "."
