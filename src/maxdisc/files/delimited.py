"""CSV and TSV, by pyarrow's streaming reader: every cell as it is written."""

from __future__ import annotations

import codecs
import csv
import io
import re
import threading
from collections.abc import Collection, Iterator

import pyarrow as pa
import pyarrow.csv

from maxdisc.files.batches import Opened
from maxdisc.files.byte_streams import Stream, batch_bytes, decoded
from maxdisc.files.places import SourceError

_SHOWN = 40
# So long the end of a damaged file is waited for; large ones are not read ahead to their end.
_PATIENCE = 0.5
# Names in quotes may go on over lines, but not for ever.
_QUOTED_NAMES = 2**20
_OPENS, _TAB_OPENS = re.compile(rb'(?:^|[,;|\t])"'), re.compile(rb'(?:^|\t)"')
# What pyarrow says of a ragged row. Its handler for such rows would be simpler, but fails where they are not
# UTF-8.
_RAGGED = re.compile(r"Row #(\d+): Expected (\d+) columns, got (\d+): (.*)", re.DOTALL)


def open_delimited(stream: Stream, columns: Collection[str] | None = None, tabs: bool = False) -> Opened:
    """Begin to read a delimited file whose first row names its columns.

    Cells come as bytes: what they mean, and whether they are UTF-8, is settled column by column, where the
    row can still be told.
    """
    header = _header_record(stream, _TAB_OPENS if tabs else _OPENS)
    delimiter = "\t" if tabs else _delimiter(header)
    text = decoded(header, f"{stream.name}, the row of names")
    try:
        cells = next(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
    except csv.Error as error:
        raise SourceError(f"{stream.name}, the row of names: {error}.") from None
    names = [" ".join(cell.split()) or f"column {i}" for i, cell in enumerate(cells, 1)]
    wanted = [i for i, name in enumerate(names) if columns is None or name in columns]
    return Opened(names, _tables(stream, names, wanted, delimiter))


def _header_record(stream: Stream, opens: re.Pattern[bytes]) -> bytes:
    """Return the first line that is not blank; quoted names may go on over several."""
    with stream.trouble():
        record = b""
        while not record.strip():
            record = stream.bytes.readline(batch_bytes()).removeprefix(codecs.BOM_UTF8)
            if not record:
                raise SourceError(f"{stream.name} is empty.")
        lines, quoted, left = [record], _ends_quoted(record, opens), _QUOTED_NAMES
        while quoted:
            more = stream.bytes.readline(left)
            left -= len(more)
            if not more or left <= 0:
                raise SourceError(
                    f'{stream.name}, the row of names: a quote (") begins a name and never ends: close it.'
                )
            lines.append(more)
            quoted = _ends_quoted(more, opens, quoted=True)
        record = b"".join(lines)
    # Old Macs ended lines with a carriage return alone; then this is the whole file.
    if record.count(b"\r") > 1 and not record.endswith(b"\n"):
        raise SourceError(
            f"{stream.name} ends its lines with a carriage return alone: convert it to newlines."
        )
    return record


def _ends_quoted(line: bytes, opens: re.Pattern[bytes], quoted: bool = False) -> bool:
    """Return whether a quoted cell goes on after the line; a quote opens one only where a cell begins."""
    at = 0
    while True:
        if quoted:
            end = line.find(b'"', at)
            if end < 0:
                return True
            doubled = line[end + 1 : end + 2] == b'"'
            quoted, at = doubled, end + 1 + doubled
        elif found := opens.search(line, at):
            quoted, at = True, found.end()
        else:
            return False


def _delimiter(header: bytes) -> str:
    """Return a comma, unless there is none and another usual one."""
    others = [d for d in (b"\t", b";", b"|") if d in header]
    return "," if b"," in header or not others else max(others, key=header.count).decode()


class _Reads:
    """What pyarrow's thread reads from; tells when it has come to the end."""

    closed = False

    def __init__(self, file: io.BufferedReader) -> None:
        self._file = file
        self.ended = threading.Event()

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        if not data:
            self.ended.set()
        return data


def _tables(stream: Stream, names: list[str], wanted: list[int], delimiter: str) -> Iterator[pa.Table]:
    if not stream.bytes.peek(1):
        return
    # Columns are called by position, as names may come twice.
    positions = [str(i) for i in range(len(names))]
    reads = _Reads(stream.bytes)
    with stream.trouble():
        try:
            reader = pyarrow.csv.open_csv(
                pa.PythonFile(reads, mode="r"),
                # One thread, so that a ragged row has a number.
                read_options=pyarrow.csv.ReadOptions(
                    column_names=positions, block_size=batch_bytes(), use_threads=False
                ),
                parse_options=pyarrow.csv.ParseOptions(
                    delimiter=delimiter,
                    newlines_in_values=True,
                ),
                convert_options=pyarrow.csv.ConvertOptions(
                    include_columns=[positions[i] for i in wanted],
                    column_types=dict.fromkeys(positions, pa.binary()),
                    strings_can_be_null=False,
                    check_utf8=False,
                ),
            )
            for batch in reader:
                yield pa.Table.from_batches([batch]).rename_columns([names[i] for i in wanted])
        except pa.ArrowInvalid as error:
            # Its thread reads ahead: if Python ends meanwhile, the process is aborted.
            reads.ended.wait(_PATIENCE)
            raise _explained(stream.name, str(error)) from None


def _explained(name: str, error: str) -> SourceError:
    if found := _RAGGED.search(error):
        row, expected, actual, text = found.groups()
        begins = text if len(text) <= _SHOWN else text[:_SHOWN] + "..."
        fields = "1 field" if actual == "1" else f"{actual} fields"
        return SourceError(f"{name} row {row}: {fields}, expected {expected}: {begins!r}.")
    if "straddl" in error:
        most = batch_bytes() // 2**20
        return SourceError(f'{name} has a row longer than {most} MiB: is there a quote (") that never ends?')
    return SourceError(f"{name}: {' '.join(error.split())}")
