"""Writing of tables in batches: CSV, TSV, Parquet, JSON Lines."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, BinaryIO, Protocol

import pyarrow as pa
import pyarrow.parquet

from maxdisc.files.places import SourceError, format_of_name

WRITTEN = ("csv", "tsv", "parquet", "jsonl")
_ARROW = {str: pa.string(), float: pa.float64(), int: pa.int64()}
#: How text begins that spreadsheets take for a formula, and text that is a number all the same.
_FORMULA = re.compile(r"[\t\r\n]| *[=+\-@\uff1d\uff0b\uff0d\uff20]")
_NUMBER = re.compile(r" *[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)? *")


class Sink(Protocol):
    """Where rows go."""

    def write(self, columns: Sequence[Sequence[Any]]) -> None:
        """Append rows, given column by column."""

    def close(self) -> None:
        """Write what is still due; the file below is left open."""


def format_to_write(path: Path | None, asked: str | None = None) -> str:
    """Return the format of an output file, by its name unless one is asked for; standard output gets CSV."""
    form = asked or ("csv" if path is None else format_of_name(path))
    if form not in WRITTEN:
        raise SourceError(
            f"cannot tell the format of {path}: end its name with .csv, .tsv, .parquet or .jsonl."
            if asked is None
            else f"{asked!r} cannot be written: use {', '.join(WRITTEN)}."
        )
    return form


def open_sink(
    file: BinaryIO, form: str, names: Sequence[str], types: Sequence[type], inert: bool = False
) -> Sink:
    """Return a writer of rows with these columns in a format: csv, tsv, parquet or jsonl.

    Cells of ``inert`` CSV and TSV begin with an apostrophe where spreadsheets would run them.
    """
    if form == "parquet":
        return _Parquet(file, names, types)
    if form == "jsonl":
        return _JsonLines(file, names)
    return _Delimited(file, names, "\t" if form == "tsv" else ",", inert)


class _Delimited:
    def __init__(self, file: BinaryIO, names: Sequence[str], delimiter: str, inert: bool) -> None:
        self._file, self._delimiter = file, delimiter
        self._cell: Callable[[Any], Any] = _inert if inert else _short
        self._rows([map(self._cell, names)])

    def write(self, columns: Sequence[Sequence[Any]]) -> None:
        self._rows(zip(*[map(self._cell, column) for column in columns], strict=True))

    def _rows(self, rows: Any) -> None:
        # What ends a line is what csv puts into quotes, and some readers end lines at any of both.
        lines: list[str] = []
        into = SimpleNamespace(write=lambda line: lines.append(line.removesuffix("\r\n")))
        csv.writer(into, delimiter=self._delimiter, lineterminator="\r\n").writerows(rows)
        self._file.write("".join(f"{line}\n" for line in lines).encode("utf-8"))

    def close(self) -> None:
        self._file.flush()


class _JsonLines:
    def __init__(self, file: BinaryIO, names: Sequence[str]) -> None:
        self._file, self._names = file, names

    def write(self, columns: Sequence[Sequence[Any]]) -> None:
        lines = [
            json.dumps(dict(zip(self._names, row, strict=True)), ensure_ascii=False) + "\n"
            for row in zip(*columns, strict=True)
        ]
        self._file.write("".join(lines).encode("utf-8"))

    def close(self) -> None:
        self._file.flush()


class _Parquet:
    def __init__(self, file: BinaryIO, names: Sequence[str], types: Sequence[type]) -> None:
        self._schema = pa.schema([(name, _ARROW[kind]) for name, kind in zip(names, types, strict=True)])
        self._writer = pyarrow.parquet.ParquetWriter(file, self._schema, compression="zstd")

    def write(self, columns: Sequence[Sequence[Any]]) -> None:
        arrays = [pa.array(c, field.type) for c, field in zip(columns, self._schema, strict=True)]
        self._writer.write_table(pa.Table.from_arrays(arrays, schema=self._schema))

    def close(self) -> None:
        self._writer.close()


def _short(value: Any) -> Any:
    return f"{value:.6g}" if isinstance(value, float) else value


def _inert(value: Any) -> Any:
    if isinstance(value, str) and _FORMULA.match(value) and not _NUMBER.fullmatch(value):
        return f"'{value}"
    return _short(value)
