"""CSV and TSV, by pyarrow's streaming reader: every cell as it is written."""

from __future__ import annotations

import codecs
import contextlib
import csv
import io
import re
import threading
from collections.abc import Collection, Iterator

import pyarrow as pa
import pyarrow.csv

from maxdisc.files.batches import Opened
from maxdisc.files.byte_streams import HEAD_BYTES, Stream, batch_bytes, decoded
from maxdisc.files.naming import name_columns
from maxdisc.files.places import SourceError

_SHOWN = 40
# So long pyarrow's thread is waited for; of a large file it may have read all that it reads ahead.
_PATIENCE = 0.2
# Maximum number of lines of quoted column names.
_QUOTED_NAMES = 2**20
# The first line of a CSV that Excel writes for itself.
_SEPARATOR_LINE = re.compile(rb'"?sep=([^\r\n])"?\r?\n')
# Number of rows from which the separator is guessed.
_TRIED = 50
_OPENS, _TAB_OPENS = re.compile(rb'(?:^|[,;|\t])"'), re.compile(rb'(?:^|\t)"')
# What pyarrow says of a ragged row. Its handler for such rows would be simpler, but fails where they are not
# UTF-8.
_RAGGED = re.compile(r"Row #(\d+): Expected (\d+) columns, got (\d+): (.*)", re.DOTALL)


def open_delimited(
    stream: Stream,
    columns: Collection[str] | None = None,
    tabs: bool = False,
    separator: str | None = None,
    header: bool | None = True,
) -> Opened:
    """Begin to read a delimited file; without ``header`` it is guessed whether the first row names columns.

    Cells come as bytes: what they mean, and whether they are UTF-8, is settled column by column, where the
    row can still be told.
    """
    only_tabs = tabs and separator is None
    opens = _TAB_OPENS if only_tabs else _OPENS
    first = _header_record(stream, opens)
    if hint := _SEPARATOR_LINE.fullmatch(first):
        separator = separator or hint[1].decode()
        first = _header_record(stream, opens)
    with stream.trouble():
        look = stream.bytes.read(HEAD_BYTES)
    delimiter = separator or _delimiter(first, look, tabs)
    where = f"{stream.name}, the row of names"
    line = decoded(first, where)
    if "\0" in line:
        raise SourceError(f"{where}: it has NUL bytes; if the file is UTF-16, say --encoding utf-16-le.")
    cells = _cells(line, delimiter, where)
    below = _rows_of(look, delimiter)
    names, named, notes = name_columns(cells, below, header, stream.name)
    wanted = [i for i, name in enumerate(names) if columns is None or name in columns]
    begun = look if named else first + look
    return Opened(names, _tables(stream, names, wanted, delimiter, begun), named=named, notes=notes)


def _cells(line: str, delimiter: str, where: str) -> list[str]:
    try:
        return next(csv.reader(io.StringIO(line, newline=""), delimiter=delimiter))
    except csv.Error as error:
        raise SourceError(f"{where}: {error}.") from None


def _rows_of(look: bytes, delimiter: str) -> list[list[str]]:
    """Return some whole rows of the beginning of a file."""
    lines = look.decode("utf-8", "replace").splitlines(keepends=True)
    rows: list[list[str]] = []
    # A longer beginning may end within a row.
    lines = lines[:-1] if len(look) >= HEAD_BYTES else lines
    with contextlib.suppress(csv.Error):
        rows += (row for row in csv.reader(lines, delimiter=delimiter) if row)
    return rows


def _header_record(stream: Stream, opens: re.Pattern[bytes]) -> bytes:
    """Return the first line that is not blank; quoted names may span several lines."""
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
    """Return whether a quoted cell continues after the line; quotes open only at the start of a cell."""
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


def _delimiter(first: bytes, look: bytes, tabs: bool) -> str:
    """Return the separator that is in the first row, and of several the one by which all rows are as long."""
    there = [d for d in "\t;|," if d.encode() in first]
    if tabs and (not there or there[0] == "\t"):
        return "\t"
    text = first.decode("utf-8", "replace")
    even = [d for d in there if _is_even(text, look, d)]
    if even and (tabs or len(there) > 1):
        return even[0]
    if tabs:
        return "\t"
    return "," if "," in there or not there else max(there, key=text.count)


def _is_even(first: str, look: bytes, delimiter: str) -> bool:
    """Return whether a separator divides the first row and those below it into equally many cells."""
    try:
        n_cells = len(next(csv.reader([first], delimiter=delimiter)))
    except csv.Error:
        return False
    return all(len(row) == n_cells for row in _rows_of(look, delimiter)[:_TRIED])


class _Reads:
    """Stream for pyarrow's thread that signals its end."""

    closed = False

    def __init__(self, file: io.BufferedReader, begun: bytes) -> None:
        self._file, self._begun = file, begun
        self._stopped = False
        self.ended = threading.Event()

    def stop(self) -> None:
        """Let there be no more, and wait for the thread to see it.

        It reads ahead: if Python ends meanwhile, the process is aborted.
        """
        self._stopped = True
        self.ended.wait(_PATIENCE)

    def read(self, size: int = -1) -> bytes:
        if self._stopped or self._file.closed:
            self.ended.set()
            return b""
        data, self._begun = self._begun[:size] if size >= 0 else self._begun, self._begun[size:]
        data += self._file.read(size - len(data) if size >= 0 else -1)
        if not data:
            self.ended.set()
        return data


def _tables(
    stream: Stream, names: list[str], wanted: list[int], delimiter: str, begun: bytes
) -> Iterator[pa.Table]:
    if not begun:
        return
    # Columns are called by position, as names may come twice.
    positions = [str(i) for i in range(len(names))]
    reads = _Reads(stream.bytes, begun)
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
            raise _explained(stream.name, str(error)) from None
        finally:
            reads.stop()


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
