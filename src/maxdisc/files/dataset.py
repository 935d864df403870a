"""The rows of one or more files with the same columns."""

from __future__ import annotations

import codecs
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import chain
from typing import Any

from maxdisc.files.batches import Batch, Opened
from maxdisc.files.byte_streams import Stream, is_text, require_encoding
from maxdisc.files.delimited import open_delimited
from maxdisc.files.documents import LABEL, TEXT, open_folder, open_lines
from maxdisc.files.jsonlines import open_jsonl
from maxdisc.files.parquet import open_parquet
from maxdisc.files.places import (
    BINARY,
    FORMATS,
    Place,
    SourceError,
    find_places,
    format_of_bytes,
    format_of_content,
    require_no_markup,
    require_workbook,
)
from maxdisc.files.readings import Reading, sources
from maxdisc.files.roles import nearest
from maxdisc.files.svmlight import open_svmlight

# Whoever reads such text says which encoding it is.
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_ARTICLES = {"parquet": "a Parquet file", "h5ad": "an h5ad file", "excel": "an Excel file"}


class Dataset:
    """Rows of files, folders, globs or standard input, read in batches."""

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        format: str | None = None,
        encoding: str = "utf-8",
        text_column: str | None = None,
        label_column: str | None = None,
        layer: str | None = None,
        sheet: str | None = None,
        separator: str | None = None,
        header: bool | None = None,
        readings: Mapping[str, Reading] | None = None,
    ) -> None:
        if format is not None and format not in FORMATS:
            raise SourceError(f"there is no format {format!r}: use {', '.join(FORMATS)}.")
        require_encoding(encoding)
        self.places = find_places(arguments, format)
        self.encoding = encoding
        self.text_column = text_column
        self.label_column = label_column
        self.layer = layer
        self.sheet = sheet
        self.separator = separator
        #: Whether first rows hold names; None until the first file has been opened, if it is to be guessed.
        self.header = header
        self.readings: Mapping[str, Reading] = readings or {}
        #: What was guessed of the first file, a line each.
        self.notes: tuple[str, ...] = ()
        self.formats: dict[str, str] = {}
        self.values: dict[str, str] = {}
        self.matrix_names: list[str] | None = None
        self._names: list[str] | None = None
        self._preview: Batch | None = None
        self._begun: Iterator[Batch] | None = None
        self._read_once = False
        self._finished_bytes = self._current_bytes = 0
        files = [place.size for place in self.places]
        self.total_bytes = sum(files) if all(files) else 0

    @property
    def name(self) -> str:
        """Name of the data in messages: the first file, and the number of others."""
        more = len(self.places) - 1
        return self.places[0].name + (f" and {more} more" if more else "")

    @property
    def is_h5ad(self) -> bool:
        """Whether the first file is AnnData's, by its first bytes or, of a stream, as it was said to be."""
        place = self.places[0]
        if place.once or place.path is None or place.format == "folder":
            return place.format == "h5ad"
        with place.path.open("rb") as file:
            return format_of_bytes(file.read(64), place.name) == "h5ad"

    @property
    def options(self) -> dict[str, Any]:
        """How its files are read, for another process that reads some of them."""
        names = ("encoding", "layer", "sheet", "separator", "header", "readings")
        return {name: getattr(self, name) for name in names}

    @property
    def done_bytes(self) -> int:
        """How many bytes of ``total_bytes`` have been read in this pass."""
        return self._finished_bytes + self._current_bytes

    @property
    def names(self) -> list[str]:
        """The columns of the first file."""
        self.preview()
        assert self._names is not None  # the preview has found them
        return self._names

    def preview(self) -> Batch:
        """Return the first rows, with all columns; a stream continues from there."""
        if self._preview is None:
            place = self.places[0]
            batches = self._batches_of(place, None)
            first = next(batches, None)
            if first is None:
                raise SourceError(f"{place.name} has a row of names, but no rows below it.")
            if place.once:
                self._begun = chain([first], batches)
            else:
                batches.close()
            self._preview = first
        return self._read_as_known(self._preview)

    def find_formats(self) -> dict[str, str]:
        """Return the format of every file; those that were not opened are looked into, if it takes that.

        A fit that is resumed need not read all files again.
        """
        for place in self.places:
            if place.name not in self.formats and place.format == "folder":
                self.formats[place.name] = "folder"
            elif place.name not in self.formats:
                with closing(Stream(place, self.encoding)) as stream:
                    self.formats[place.name] = self._find_format(place, stream)
        return self.formats

    def batches(
        self, columns: Collection[str] | None = None, *, may_be_empty: bool = False
    ) -> Iterator[Batch]:
        """Yield all rows in order, in batches of bounded memory; every file must have the ``columns``."""
        if any(place.once for place in self.places):
            if self._read_once:
                raise SourceError(f"{self.name} can be read only once: write it to a file first.")
            self._read_once = True
        self._finished_bytes = self._current_bytes = 0
        wanted = self.names if columns is None else columns
        empty = True
        for place in self.places:
            rows: Iterator[Batch] = self._batches_of(place, wanted)
            if self._begun is not None and place is self.places[0]:
                self._require_columns(self.names, wanted, place)
                rows, self._begun = self._begun, None
            for batch in rows:
                empty = False
                yield self._read_as_known(batch)
            self._finished_bytes += place.size
            self._current_bytes = 0
        if empty and not may_be_empty:
            raise SourceError(f"{self.name} has no rows.")

    def _read_as_known(self, batch: Batch) -> Batch:
        """Return a batch with the readings of now: the first rows are there before anyone knows them."""
        return batch if batch.readings is self.readings else replace(batch, readings=self.readings)

    def _batches_of(self, place: Place, columns: Collection[str] | None) -> Generator[Batch, None, None]:
        stream = None if place.format == "folder" else Stream(place, self.encoding)
        try:
            read = None if columns is None else {*columns, *sources(columns, self.readings)}
            opened = self._opened(place, stream, read)
            if self._names is None:
                self._names = opened.names
            if columns is not None:
                self._require_columns(opened.names, columns, place)
            row = 0
            for part in opened.tables:
                table, matrix = part if isinstance(part, tuple) else (part, None)
                if table.num_rows == 0:
                    continue
                table = table.rename_columns([self._called(name, place) for name in table.column_names])
                yield Batch(table, place.name, row + 1, matrix, None, opened.matrix_names, self.readings)
                row += table.num_rows
                if opened.n_rows:
                    self._current_bytes = place.size * row // opened.n_rows
                elif stream is not None:
                    self._current_bytes = min(stream.position(), place.size)
        finally:
            if stream is not None:
                stream.close()

    def _opened(self, place: Place, stream: Stream | None, columns: Collection[str] | None) -> Opened:
        if stream is None:
            self.formats[place.name] = "folder"
            opened = open_folder(place, self.encoding)
        else:
            form = self.formats[place.name] = self._find_format(place, stream)
            for flag, of, given in (
                ("--layer", ("h5ad",), self.layer),
                ("--sheet", ("excel",), self.sheet),
                ("--sep", ("csv", "tsv"), self.separator),
            ):
                if given is not None and form not in of:
                    kind = {"csv": "delimited", "excel": "Excel"}.get(of[0], of[0])
                    raise SourceError(f"{flag} is of {kind} files, and {place.name} is {form}: leave it out.")
            opened = self._open(form, place, stream, columns)
        if self._names is None:
            # The files that follow are like the first.
            self.header, self.notes = opened.named, opened.notes
        if opened.values:
            self.values[place.name] = opened.values
        self._require_alike(place, opened.matrix_names)
        names = [self._called(name, place) for name in opened.names]
        return replace(opened, names=names)

    def _find_format(self, place: Place, stream: Stream) -> str:
        """Return the format of a file: by its first bytes, by its name, or by the first line of text."""
        if declared := format_of_bytes(stream.magic(), place.name):
            return declared
        head = stream.head()
        if not head:
            raise SourceError(f"{place.name} is empty.")
        if place.format in BINARY and not is_text(head) and not head.startswith(_UTF16):
            raise SourceError(
                f"{place.name} is not {_ARTICLES[place.format]}: its first bytes say otherwise."
            )
        texts = sources(filter(None, [self.text_column]), self.readings)
        form = place.format if place.format not in BINARY else None
        form = form or format_of_content(head, texts)
        if form in ("csv", "tsv"):
            require_no_markup(head, place.name)
        return form

    def _open(self, form: str, place: Place, stream: Stream, columns: Collection[str] | None) -> Opened:
        if form == "parquet":
            return open_parquet(stream, columns)
        if form == "jsonl":
            return open_jsonl(stream, columns)
        if form == "svmlight":
            return open_svmlight(stream)
        if form == "h5ad":
            # These need extras of their own.
            from maxdisc.files.h5ad import open_h5ad

            return open_h5ad(stream, columns, self.layer)
        if form == "excel":
            require_workbook(stream.seekable(), place.name)
            from maxdisc.files.excel import open_excel

            return open_excel(stream, columns, self.sheet, self.header)
        if form == "lines":
            return open_lines(stream)
        if form == "folder":
            raise SourceError(f"{place.name} is not a folder.")
        return open_delimited(stream, columns, form == "tsv", self.separator, self.header)

    def _require_alike(self, place: Place, names: list[str] | None) -> None:
        """Raise ``SourceError`` unless the matrices of all files have the same columns."""
        first = self.places[0].name
        if place is self.places[0]:
            self.matrix_names = names
        elif (names is None) != (self.matrix_names is None):
            raise SourceError(f"{place.name} and {first} are not of one kind: use files of one format.")
        elif names is not None and names != self.matrix_names:
            raise SourceError(
                f"{place.name} has other genes than {first}, or has them in another order: bring them into "
                "line, or use one file at a time."
            )

    def _require_columns(self, names: Sequence[str], features: Collection[str], place: Place) -> None:
        require_columns(names, sources(features, self.readings, names), place.name)

    def _called(self, name: str, place: Place) -> str:
        """Name unnamed columns by the requested names."""
        if self.formats[place.name] in ("lines", "folder", "svmlight"):
            return {TEXT: self.text_column, LABEL: self.label_column}.get(name) or name
        return name


def require_columns(names: Sequence[str], wanted: Collection[str], source: str) -> None:
    """Raise ``SourceError`` unless a file has each of the columns, once."""
    have = set(names)
    missing = [name for name in wanted if name not in have]
    if missing:
        shown = ", ".join(map(repr, missing[:5])) + (
            f" and {len(missing) - 5} more" if len(missing) > 5 else ""
        )
        raise SourceError(f"{source} has no column {shown}{nearest(missing[0], names)}")
    if len(have) < len(names):
        asked = set(wanted)
        twice = sorted({name for name in names if names.count(name) > 1} & asked)
        if twice:
            raise SourceError(f"{source} has more than one column {twice[0]!r}: rename one of them.")
