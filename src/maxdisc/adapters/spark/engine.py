"""Spark as an engine: jobs go to a DataFrame's partitions, sums come back as a tree."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from maxdisc.adapters.spark.columns import Piece
from maxdisc.rows.partitions import Job, Summand, entrywise

#: So many sums are added up in one place.
FAN_IN = 8
#: Sums of more bytes come in blocks of features: several of them pass through the memory of one JVM at once.
MOST_BYTES = 2**26

_SUMS = "part int, sums binary"
_PIECES = "piece binary"
_UNREADABLE = re.compile(r"\[FAILED_READ_FILE[.\w]*\][^\n]*?while reading file (\S+?)\.?\s")


@dataclass(frozen=True)
class Refused:
    """What is wrong with some rows: carried to the driver like a sum, and said there, in one line."""

    reason: str


@dataclass(frozen=True, eq=False)
class FrameEngine:
    """Partitions of a DataFrame, each read piece by piece; ``pieces`` must be picklable."""

    frame: DataFrame
    pieces: Callable[[Iterator[pa.RecordBatch]], Iterator[Piece]]
    n_partitions: int = FAN_IN**2

    def added(self, job: Job[Summand]) -> list[Summand]:
        sums = self.frame.mapInArrow(partial(_summed, job, self.pieces), _SUMS)
        left = self.n_partitions
        while left > FAN_IN:
            left = -(-left // FAN_IN)
            # Sorted, so that sums are added in one order, whichever comes first.
            sums = sums.repartition(left, "part").sortWithinPartitions("part").mapInArrow(_merged, _SUMS)
        try:
            rows = sorted((row.part, row.sums) for row in sums.collect())
        except (PySparkException, Py4JJavaError) as error:
            raise _told(error) from error
        total: Any = reduce(_plus, (pickle.loads(found) for _, found in rows), [])
        if isinstance(total, Refused):
            raise ValueError(total.reason)
        if not total:
            raise ValueError("there are no rows to learn from.")
        return list(total)

    def kept(self, change: Callable[[Any], Any]) -> FrameEngine:
        """Cache the pieces after a change in the memory and on the disks of the cluster."""
        pieces = self.frame.mapInArrow(partial(_pickled, change, self.pieces), _PIECES).persist()
        return FrameEngine(pieces, _unpickled, self.n_partitions)


def _told(error: Exception) -> Exception:
    """Return the error of an unreadable file as one line; any other error unchanged."""
    found = _UNREADABLE.search(str(error) + " ")
    return error if found is None else ValueError(f"{found[1]} cannot be read: is it whole?")


def _plus(one: Any, other: Any) -> Any:
    refused = sorted((r for r in (one, other) if isinstance(r, Refused)), key=lambda r: r.reason)
    return refused[0] if refused else entrywise(one, other)


def _one_row(part: int, total: Any) -> pa.RecordBatch:
    arrays = [pa.array([part], pa.int32()), pa.array([pickle.dumps(total)], pa.binary())]
    return pa.RecordBatch.from_arrays(arrays, ["part", "sums"])


def _summed(
    job: Job[Any], pieces: Callable[..., Iterator[Any]], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield what a job makes of a partition: one row, or none."""
    total: Any = []
    try:
        for piece in pieces(batches):
            try:
                total = entrywise(total, job(piece))
            except ValueError as error:
                raise ValueError(piece.located(str(error))) from error
    except ValueError as error:
        total = Refused(str(error))
    if total:
        task = TaskContext.get()
        yield _one_row(task.partitionId() if task else 0, total)


def _merged(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the sum of sums: one row, or none."""
    part, total = 0, None
    for batch in batches:
        for row, sums in zip(batch["part"].to_pylist(), batch["sums"], strict=True):
            more = pickle.loads(sums.as_buffer())
            part, total = (row, more) if total is None else (part, _plus(total, more))
    if total is not None:
        yield _one_row(part, total)


def _pickled(
    change: Callable[[Any], Any], pieces: Callable[..., Iterator[Any]], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    try:
        for piece in pieces(batches):
            yield _one_piece(change(piece))
    except ValueError as error:
        yield _one_piece(Refused(str(error)))


def _one_piece(piece: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([pickle.dumps(piece)], pa.binary())], ["piece"])


def _unpickled(batches: Iterator[pa.RecordBatch]) -> Iterator[Any]:
    for batch in batches:
        for stored in batch["piece"]:
            piece = pickle.loads(stored.as_buffer())
            if isinstance(piece, Refused):
                raise ValueError(piece.reason)
            yield piece
