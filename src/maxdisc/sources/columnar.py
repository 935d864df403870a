"""Parquet, some rows at a time."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Collection, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from maxdisc.sources.batches import Opened
from maxdisc.sources.places import Place, SourceError
from maxdisc.sources.streams import BATCH_BYTES, Stream

_MOST_ROWS = 2**16


def open_parquet(stream: Stream, place: Place, columns: Collection[str] | None = None) -> Opened:
    """Begin to read a Parquet file; one that cannot be read out of order is copied to disk first."""
    source: Any = stream.bytes
    if place.once or stream.compressed:
        source = tempfile.TemporaryFile()  # noqa: SIM115  # it goes when it is closed
        with stream.trouble():
            shutil.copyfileobj(stream.bytes, source)
        source.seek(0)
    try:
        file = pyarrow.parquet.ParquetFile(source)
    except (pa.ArrowInvalid, OSError) as error:
        raise SourceError(f"{stream.name} is not a whole Parquet file: {_first_sentence(error)}") from None
    names = list(file.schema_arrow.names)
    wanted = [name for name in names if columns is None or name in columns]
    return Opened(names, _tables(file, stream.name, wanted), file.metadata.num_rows)


def _tables(file: pyarrow.parquet.ParquetFile, name: str, wanted: list[str]) -> Iterator[pa.Table]:
    metadata = file.metadata
    size = sum(metadata.row_group(g).total_byte_size for g in range(metadata.num_row_groups))
    rows = max(1, min(_MOST_ROWS, BATCH_BYTES * metadata.num_rows // max(1, size)))
    try:
        for batch in file.iter_batches(batch_size=rows, columns=wanted):
            yield pa.Table.from_batches([batch])
    except (pa.ArrowInvalid, OSError) as error:
        raise SourceError(f"{name} is damaged: {_first_sentence(error)}") from None


def _first_sentence(error: Exception) -> str:
    return " ".join(str(error).split()).split(". ")[0].rstrip(".") + "."
